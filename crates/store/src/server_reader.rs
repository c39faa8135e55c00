//! The port through which a server reads its store.

use crate::access::Access;
use crate::catalog::Catalog;
use crate::check::Audit;
use crate::hooks::HookReader;
use crate::memory::Memories;
use crate::objects::Objects;
use crate::outbox::Outbox;
use crate::quarantine::Quarantined;
use crate::registry::Registry;
use crate::retention::Retention;
use crate::schedules::Schedules;
use crate::tasks::Tasks;
use crate::workers::Workers;

/// Reads everything that a server reads: all traits of the port.
pub trait ServerReader:
    Access
    + Audit
    + Catalog
    + HookReader
    + Memories
    + Objects
    + Outbox
    + Quarantined
    + Registry
    + Retention
    + Schedules
    + Tasks
    + Workers
{
    /// Returns the number of journal rows read since the reader was opened, which is the cost of its calls.
    fn journal_rows_read(&self) -> u64;
}
