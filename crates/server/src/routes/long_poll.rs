//! Requests that wait for news, as long as their parameter says.

use crate::app::App;
use crate::problem::Problem;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use windlass_kernel::ExecutionId;

/// Maximum time for which one request waits: less than the time after which proxies give up a request.
const WAIT_MAX_MS: u64 = 30_000;

/// The wait of a request, which begins when its parameters are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LongPoll {
    until: Instant,
}

/// An answer, and whether it has news that a request waits for.
#[derive(Debug)]
pub(crate) struct PolledAnswer<T> {
    pub(crate) answer: T,
    pub(crate) has_news: bool,
}

impl LongPoll {
    /// Begins the wait of the parameter `waitMs`; without it, the request does not wait.
    pub(crate) fn begin(wait_ms: Option<u64>) -> Result<LongPoll, Problem> {
        LongPoll::of_parameter("waitMs", wait_ms)
    }

    pub(crate) fn of_parameter(name: &str, wait_ms: Option<u64>) -> Result<LongPoll, Problem> {
        let wait_ms = wait_ms.unwrap_or_default();
        match wait_ms > WAIT_MAX_MS {
            true => Err(Problem::invalid(name, format!("must be at most {WAIT_MAX_MS}"))),
            false => Ok(LongPoll { until: Instant::now() + Duration::from_millis(wait_ms) }),
        }
    }

    /// Reads after each change of the execution, until an answer has news, the wait is over or the server stops.
    pub(crate) async fn read_news<T, R>(
        self,
        app: &App,
        execution: ExecutionId,
        read: impl FnMut() -> R,
    ) -> Result<T, Problem>
    where
        R: Future<Output = Result<PolledAnswer<T>, Problem>>,
    {
        let follow = app.hub.follow(execution);
        self.read_after(app, || follow.next(), read).await
    }

    /// Reads after each change, until an answer has news, the wait is over or the server stops.
    pub(crate) async fn read_after<T, C, R>(
        self,
        app: &App,
        mut next_change: impl FnMut() -> C,
        mut read: impl FnMut() -> R,
    ) -> Result<T, Problem>
    where
        C: Future<Output = ()>,
        R: Future<Output = Result<PolledAnswer<T>, Problem>>,
    {
        loop {
            // Before the read, so that a change during the read is not missed.
            let changed = next_change();
            let PolledAnswer { answer, has_news } = read().await?;
            if has_news || Instant::now() >= self.until {
                return Ok(answer);
            }
            tokio::select! {
                () = changed => {}
                () = sleep_until(self.until) => {}
                () = app.stopped() => return Ok(answer),
            }
        }
    }
}
