//! Deliveries of events to the webhook that a start named.

use crate::commit::WorkflowId;
use crate::origin::{Tenant, Webhook};
use crate::store::{Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis};

/// Reads deliveries.
pub trait Outbox: Reader {
    /// Returns executions whose outbox is open, in the order of their creation, after a place.
    fn delivery_sources(&mut self, after: i64, limit: usize) -> StoreResult<Vec<DeliverySource>>;

    fn delivery_source(&mut self, execution: ExecutionId) -> StoreResult<Option<DeliverySource>>;

    /// Returns pending deliveries of an execution, the lowest number first.
    fn pending(&mut self, execution: ExecutionId, limit: usize) -> StoreResult<Vec<StoredDelivery>>;

    /// Returns the messages of an execution that deliveries of this event were made from.
    fn delivered_messages(&mut self, execution: ExecutionId, event: &str) -> StoreResult<Vec<u64>>;

    /// Returns deliveries, the newest first.
    fn deliveries(&mut self, query: &DeliveryQuery) -> StoreResult<Vec<StoredDelivery>>;

    /// Counts pending deliveries of all tenants up to a bound.
    fn backlog(&mut self, bound: usize) -> StoreResult<usize>;
}

/// An execution that was started with a webhook.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliverySource {
    /// Place among all such executions.
    pub place: i64,
    pub execution: ExecutionId,
    pub tenant: Tenant,
    pub workflow: Option<WorkflowId>,
    pub webhook: Webhook,
    /// The last message that deliveries were made from.
    pub seen: u64,
    /// Number of the last delivery.
    pub number: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDelivery {
    /// Counts the deliveries of an execution, from 1.
    pub number: u64,
    /// The message that is delivered.
    pub message: u64,
    pub event: String,
    /// The body that is sent; its signature is a header.
    pub body: String,
}

/// New deliveries of an execution, and the last message they were made from: all of it is written, or nothing.
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
    /// It is not retried, unless a redelivery is requested.
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

/// Result of one attempt to deliver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryAttempt {
    pub execution: ExecutionId,
    pub number: u64,
    pub state: DeliveryState,
    /// Number of attempts so far.
    pub attempts: u32,
    /// Time of the next attempt.
    pub due: Option<Millis>,
    /// Status code of the receiver's answer.
    pub answer: Option<u16>,
    pub error: Option<String>,
    pub at: Millis,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelivery {
    /// Place among all deliveries.
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
    /// Only entries before this position.
    pub before: Option<i64>,
    pub limit: usize,
}
