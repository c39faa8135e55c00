//! What the pool's thread has in hand. After a crash, and when the thread hangs, an operator must learn
//! which work it was.

use std::fmt::Debug;
use std::future::poll_fn;
use std::sync::Arc;
use windlass_protocol::Unit;

/// The hand of the pool's thread. Called for every poll, so an implementation must be quick.
pub trait Hand: Debug + Send + Sync {
    /// The thread works on this unit, until it says something else.
    fn take(&self, unit: Unit);

    /// The thread works, and on no unit in particular.
    fn work(&self);

    /// The thread waits until there is something to do.
    fn rest(&self);
}

/// A hand that is not watched.
#[derive(Debug)]
pub(crate) struct Unwatched;

impl Hand for Unwatched {
    fn take(&self, _: Unit) {}
    fn work(&self) {}
    fn rest(&self) {}
}

/// The same future; while it is polled, its unit is in hand.
pub(crate) async fn in_hand<T>(hand: Arc<dyn Hand>, unit: Unit, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    poll_fn(|context| {
        hand.take(unit);
        let polled = work.as_mut().poll(context);
        hand.work();
        polled
    })
    .await
}
