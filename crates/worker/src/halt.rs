//! Asks running work to end.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// A limit this long is none: no process lives a year, and clocks cannot be set much further.
const NEVER_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// Pulled from outside; it says how long there is between TERM and KILL.
#[derive(Debug)]
pub(crate) struct Puller(watch::Sender<Option<u64>>);

/// Seen by the work.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    order: watch::Receiver<Option<u64>>,
    heard: Option<u64>,
}

pub(crate) fn halt() -> (Puller, Halt) {
    let (puller, order) = watch::channel(None);
    (Puller(puller), Halt { order, heard: None })
}

impl Puller {
    pub(crate) fn pull(&self, grace_ms: u64) {
        self.0.send_replace(Some(grace_ms));
    }
}

impl Halt {
    pub(crate) fn is_pulled(&self) -> bool {
        self.order.borrow().is_some()
    }

    /// The grace; again only when it changes.
    pub(crate) async fn pulled(&mut self) -> u64 {
        let heard = self.heard;
        match self.order.wait_for(|order| order.is_some() && *order != heard).await.map(|order| *order) {
            Ok(order) => {
                self.heard = order;
                order.unwrap_or_default()
            }
            // The puller is gone, so it can never be pulled.
            Err(_) => std::future::pending().await,
        }
    }
}

/// What limited work came to, and whether it had to be stopped because its time was up.
pub(crate) struct Limited<T> {
    pub(crate) result: T,
    pub(crate) timed_out: bool,
}

/// Runs `work` under a halt of its own, which is pulled when `outer` is or when the time is up. Always waits for the
/// work's end: that is when its processes are gone.
pub(crate) async fn limited<T, F: Future<Output = T>>(
    limit_ms: Option<u64>,
    grace_ms: u64,
    mut outer: Halt,
    work: impl FnOnce(Halt) -> F,
) -> Limited<T> {
    let (puller, own) = halt();
    let mut work = std::pin::pin!(work(own));
    let limit_ms = limit_ms.filter(|limit_ms| *limit_ms < NEVER_MS);
    let deadline = Instant::now() + Duration::from_millis(limit_ms.unwrap_or(NEVER_MS));
    let mut timed_out = false;
    loop {
        tokio::select! {
            biased;
            result = &mut work => return Limited { result, timed_out },
            grace_ms = outer.pulled() => puller.pull(grace_ms),
            () = sleep_until(deadline), if limit_ms.is_some() && !timed_out => {
                timed_out = true;
                puller.pull(grace_ms);
            }
        }
    }
}
