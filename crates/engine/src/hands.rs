//! Current execution of each thread of the engine, for an operator who looks for the cause of a crash or a hang.

use std::fmt::Debug;
use std::sync::Arc;
use windlass_kernel::ExecutionId;

/// Reports of one thread. They are called several times for each decision, so an implementation must be quick.
pub trait Hand: Debug + Send + Sync {
    /// The thread works on this execution until its next report.
    fn take(&self, execution: ExecutionId);

    /// The thread works, but not on one execution.
    fn work(&self);

    /// The thread waits for work.
    fn rest(&self);
}

/// The reporters of all threads of an engine.
#[derive(Debug, Clone)]
pub struct Hands {
    pub lane: Arc<dyn Hand>,
    pub reader: Arc<dyn Hand>,
    pub writer: Arc<dyn Hand>,
}

impl Default for Hands {
    fn default() -> Self {
        let none: Arc<dyn Hand> = Arc::new(Unwatched);
        Hands { lane: none.clone(), reader: none.clone(), writer: none }
    }
}

/// A reporter that does nothing.
#[derive(Debug)]
struct Unwatched;

impl Hand for Unwatched {
    fn take(&self, _: ExecutionId) {}
    fn work(&self) {}
    fn rest(&self) {}
}
