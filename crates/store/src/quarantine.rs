//! Executions that are not executed any further: those that crashed the process repeatedly, and those whose rows
//! cannot be read. The mark is a row of its own and not a phase: the journal of the execution stays as it is.

use crate::origin::Tenant;
use crate::store::{Reader, StoreResult};
use windlass_kernel::{ExecutionId, Millis};

/// Number of crashes of the process during work on the same execution, without progress between them, until the
/// execution is quarantined. One or two may be chance: a machine that runs out of memory kills any process.
pub const DEATHS_MAX: u32 = 3;

/// An execution that the process worked on when it crashed, or that is quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    pub execution: ExecutionId,
    /// Version of the execution at the newest crash; a higher version since then is progress.
    pub version: u64,
    pub deaths: u32,
    /// None while it is only suspected, and still executed.
    pub quarantined_at: Option<Millis>,
    pub reason: String,
}

/// The reason why an execution is quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    pub since: Millis,
    pub reason: String,
    /// Number of crashes that led to it; 0 if its rows cannot be read.
    pub deaths: u32,
}

impl Suspect {
    /// Returns None while the execution is only suspected.
    #[must_use]
    pub fn quarantine(&self) -> Option<Quarantine> {
        let Suspect { quarantined_at, reason, deaths, .. } = self;
        quarantined_at.map(|since| Quarantine { since, reason: reason.clone(), deaths: *deaths })
    }
}

pub trait Quarantined: Reader {
    /// Returns every execution that is suspected or quarantined, in the order of ids.
    fn suspects(&mut self) -> StoreResult<Vec<Suspect>>;

    /// Returns facts about an execution without reading its state; None if it does not exist.
    fn outline(&mut self, execution: ExecutionId) -> StoreResult<Option<ExecutionOutline>>;
}

/// Facts about an execution whose state may be unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionOutline {
    pub version: u64,
    pub tenant: Tenant,
    pub parent: Option<ExecutionId>,
}
