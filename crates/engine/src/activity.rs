//! Current execution of each thread of the engine, for an operator who looks for the cause of a crash or a hang.

use std::fmt::Debug;
use std::sync::Arc;
use windlass_kernel::ExecutionId;

/// Activity of one thread. The methods are called several times for each decision, so an implementation must be quick.
pub trait Activity: Debug + Send + Sync {
    /// Reports that the thread works on this execution until the next call.
    fn begin_execution(&self, execution: ExecutionId);

    /// Reports that the thread works, but not on one execution.
    fn begin_work(&self);

    /// Reports that the thread waits for work.
    fn begin_wait(&self);
}

/// Activities of all threads of an engine.
#[derive(Debug, Clone)]
pub struct Activities {
    pub lane: Arc<dyn Activity>,
    pub reader: Arc<dyn Activity>,
    pub writer: Arc<dyn Activity>,
}

impl Default for Activities {
    fn default() -> Self {
        let none: Arc<dyn Activity> = Arc::new(Unwatched);
        Activities { lane: none.clone(), reader: none.clone(), writer: none }
    }
}

/// Activity of a thread that is not watched.
#[derive(Debug)]
struct Unwatched;

impl Activity for Unwatched {
    fn begin_execution(&self, _: ExecutionId) {}
    fn begin_work(&self) {}
    fn begin_wait(&self) {}
}
