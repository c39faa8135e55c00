//! What each thread of the engine has in hand. After a crash, and when a thread hangs, an operator must
//! learn which execution it was.

use std::fmt::Debug;
use std::sync::Arc;
use windlass_kernel::ExecutionId;

/// The hand of one thread. Called several times for each decision, so an implementation must be quick.
pub trait Hand: Debug + Send + Sync {
    /// The thread has this execution in hand, until it says something else.
    fn take(&self, execution: ExecutionId);

    /// The thread works, and on no execution in particular.
    fn work(&self);

    /// The thread waits until there is something to do.
    fn rest(&self);
}

/// The hands of all threads of an engine.
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

/// A hand that is not watched.
#[derive(Debug)]
struct Unwatched;

impl Hand for Unwatched {
    fn take(&self, _: ExecutionId) {}
    fn work(&self) {}
    fn rest(&self) {}
}
