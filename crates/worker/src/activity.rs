//! Current unit of the pool's thread, for an operator who looks for the cause of a crash or a hang.

use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::Arc;
use windlass_protocol::Unit;

/// Activity of the pool's thread. The methods are called for every poll, so an implementation must be quick.
pub trait Activity: Debug + Send + Sync {
    /// Reports that the thread works on this unit until the next call.
    fn begin_unit(&self, unit: Unit);

    /// Reports that the thread works, but not on one unit.
    fn begin_work(&self);

    /// Reports that the thread waits for work.
    fn begin_wait(&self);
}

/// Activity of a thread that is not watched.
#[derive(Debug)]
pub(crate) struct Unwatched;

impl Activity for Unwatched {
    fn begin_unit(&self, _: Unit) {}
    fn begin_work(&self) {}
    fn begin_wait(&self) {}
}

/// Wraps a future: while it is polled, its unit is the current one.
pub(crate) async fn note_polls<T>(
    activity: Arc<dyn Activity>,
    unit: Unit,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        activity.begin_unit(unit);
        let polled = work.as_mut().poll(context);
        activity.begin_work();
        polled
    })
    .await
}
