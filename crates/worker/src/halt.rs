//! Requests to running work to end.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Longest effective limit: no process lives a year, and clocks cannot be set much further.
const NEVER_MS: u64 = 365 * 24 * 60 * 60 * 1000;

/// The sender of the request, with the time between TERM and KILL.
#[derive(Debug)]
pub(crate) struct HaltSender(watch::Sender<Option<u64>>);

/// The receiver of the request in the work.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    order: watch::Receiver<Option<u64>>,
    heard: Option<u64>,
}

pub(crate) fn halt() -> (HaltSender, Halt) {
    let (halt_sender, order) = watch::channel(None);
    (HaltSender(halt_sender), Halt { order, heard: None })
}

impl HaltSender {
    pub(crate) fn request(&self, grace_ms: u64) {
        self.0.send_replace(Some(grace_ms));
    }
}

impl Halt {
    pub(crate) fn is_requested(&self) -> bool {
        self.order.borrow().is_some()
    }

    /// Waits for a request to end, or for a change of its grace, and returns the grace.
    pub(crate) async fn requested(&mut self) -> u64 {
        let heard = self.heard;
        match self.order.wait_for(|order| order.is_some() && *order != heard).await.map(|order| *order) {
            Ok(order) => {
                self.heard = order;
                order.unwrap_or_default()
            }
            // The sender was dropped, so no request can follow.
            Err(_) => std::future::pending().await,
        }
    }
}

/// Result of limited work, and whether it was stopped because of its time limit.
pub(crate) struct Limited<T> {
    pub(crate) result: T,
    pub(crate) timed_out: bool,
}

/// Runs `work` under a halt of its own, which is pulled when `outer` is or when the time limit is reached. Always waits
/// for the end of the work, when its processes have ended.
pub(crate) async fn limited<T, F: Future<Output = T>>(
    limit_ms: Option<u64>,
    grace_ms: u64,
    mut outer: Halt,
    work: impl FnOnce(Halt) -> F,
) -> Limited<T> {
    let (halt_sender, own) = halt();
    let mut work = std::pin::pin!(work(own));
    let limit_ms = limit_ms.filter(|limit_ms| *limit_ms < NEVER_MS);
    let deadline = Instant::now() + Duration::from_millis(limit_ms.unwrap_or(NEVER_MS));
    let mut timed_out = false;
    loop {
        tokio::select! {
            biased;
            result = &mut work => return Limited { result, timed_out },
            grace_ms = outer.requested() => halt_sender.request(grace_ms),
            () = sleep_until(deadline), if limit_ms.is_some() && !timed_out => {
                timed_out = true;
                halt_sender.request(grace_ms);
            }
        }
    }
}
