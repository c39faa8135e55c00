//! Executions that are not worked on: those that took the process down again and again, and those whose rows cannot be
//! read. A row beside the execution, no phase of it: its journal stays as it is.

use crate::origin::Tenant;
use crate::store::{Reader, StoreError};
use windlass_kernel::{ExecutionId, Millis};

/// Deaths of a process with the same execution in hand, without progress between them, until it is quarantined. Once is
/// chance and twice may be: a machine that runs out of memory kills whatever is there.
pub const DEATHS_MAX: u32 = 3;

/// An execution that was in hand when a process died, or that is quarantined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspect {
    pub execution: ExecutionId,
    /// Version of the execution at its newest death; one that has risen since then has made progress.
    pub version: u64,
    pub deaths: u32,
    /// None: it is suspected, and worked on.
    pub quarantined_at: Option<Millis>,
    pub reason: String,
}

/// Why and since when an execution is not worked on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    pub since: Millis,
    pub reason: String,
    /// Deaths of the process that led to it; 0 where its rows cannot be read.
    pub deaths: u32,
}

impl Suspect {
    /// None while it is only suspected.
    #[must_use]
    pub fn quarantine(&self) -> Option<Quarantine> {
        let Suspect { quarantined_at, reason, deaths, .. } = self;
        quarantined_at.map(|since| Quarantine { since, reason: reason.clone(), deaths: *deaths })
    }
}

pub trait Quarantined: Reader {
    /// Every execution in the table, suspected or quarantined, by its id.
    fn suspects(&mut self) -> Result<Vec<Suspect>, StoreError>;

    /// What is known of an execution without reading its state. None: there is no such execution.
    fn standing(&mut self, execution: ExecutionId) -> Result<Option<Standing>, StoreError>;
}

/// What is known of an execution whose state may be unreadable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    pub version: u64,
    pub tenant: Tenant,
    pub parent: Option<ExecutionId>,
}
