//! Events on their way to whoever asked for them with a start. Rows beside executions, kept for a server.

use crate::commit::WorkflowId;
use crate::origin::{Tenant, Webhook};
use crate::store::{Reader, StoreError};
use windlass_kernel::{ExecutionId, Millis};

/// What a server reads of deliveries.
pub trait Outbox: Reader {
    /// Executions that may still have something to tell, in the order of their creation, after that one.
    fn tellers(&mut self, after: i64, limit: usize) -> Result<Vec<Teller>, StoreError>;

    fn teller(&mut self, execution: ExecutionId) -> Result<Option<Teller>, StoreError>;

    /// Deliveries of an execution that nobody has acknowledged, the lowest number first.
    fn pending(&mut self, execution: ExecutionId, limit: usize) -> Result<Vec<StoredDelivery>, StoreError>;

    /// Messages of an execution that deliveries of this event were made of.
    fn told(&mut self, execution: ExecutionId, event: &str) -> Result<Vec<u64>, StoreError>;

    /// Newest first.
    fn deliveries(&mut self, query: &DeliveryQuery) -> Result<Vec<StoredDelivery>, StoreError>;

    /// Deliveries that nobody has acknowledged, of all tenants, counted up to the bound.
    fn backlog(&mut self, bound: usize) -> Result<usize, StoreError>;
}

/// An execution that somebody wants to hear of.
#[derive(Debug, Clone, PartialEq)]
pub struct Teller {
    /// Its place among the tellers.
    pub place: i64,
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub workflow: Option<WorkflowId>,
    pub webhook: Webhook,
    /// Messages up to this one were looked at.
    pub seen: u64,
    /// Deliveries that were made of them.
    pub number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Counts the deliveries of an execution, from 1.
    pub number: u64,
    /// The message that it tells.
    pub message: u64,
    pub event: String,
    /// What is sent, but for its signature.
    pub body: String,
}

/// Events of an execution that are to be delivered, and how far its messages were looked at: all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDeliveries {
    pub execution: ExecutionId,
    pub seen: u64,
    pub made: Vec<NewDelivery>,
    pub at: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeliveryState {
    Pending,
    Delivered,
    /// Nobody tries again, unless somebody asks for it.
    GivenUp,
}

impl DeliveryState {
    pub const ALL: [DeliveryState; 3] =
        [DeliveryState::Pending, DeliveryState::Delivered, DeliveryState::GivenUp];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            DeliveryState::Pending => "pending",
            DeliveryState::Delivered => "delivered",
            DeliveryState::GivenUp => "given_up",
        }
    }

    #[must_use]
    pub fn of(name: &str) -> Option<DeliveryState> {
        DeliveryState::ALL.into_iter().find(|state| state.name() == name)
    }
}

/// What came of a try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    pub execution: ExecutionId,
    pub number: u64,
    pub state: DeliveryState,
    /// Tries so far.
    pub attempts: u32,
    /// When the next one is due.
    pub due: Option<Millis>,
    /// The status that the receiver answered with.
    pub answer: Option<u16>,
    pub error: Option<String>,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    /// Its place among all deliveries.
    pub place: i64,
    pub execution: ExecutionId,
    pub url: String,
    pub delivery: NewDelivery,
    pub state: DeliveryState,
    pub attempts: u32,
    pub due: Option<Millis>,
    pub answer: Option<u16>,
    pub error: Option<String>,
    pub created_at: Millis,
    pub updated_at: Millis,
}

#[derive(Debug, Clone)]
pub struct DeliveryQuery {
    pub tenant: Tenant,
    pub execution: Option<ExecutionId>,
    pub number: Option<u64>,
    pub state: Option<DeliveryState>,
    pub event: Option<String>,
    /// Before this place.
    pub before: Option<i64>,
    pub limit: usize,
}
