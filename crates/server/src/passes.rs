//! Background work that is stored as rows. A pass looks for work that is due, after a change and after a restart.

use crate::app::App;
use crate::problem::Problem;
use std::time::{Duration, Instant};

/// Maximum time between two passes: the clock may be set forward.
pub(crate) const PASS_EVERY: Duration = Duration::from_secs(60);
/// Minimum time between two passes. Every commit of an execution can cause one.
const PASS_MIN: Duration = Duration::from_millis(20);
/// A pass that takes long is followed by a pause of this many times its duration, so that many rows use a tenth of one
/// core.
const REST_FACTOR: u32 = 9;
/// Pause after an error of the server.
const TROUBLE: Duration = Duration::from_secs(1);

pub(crate) trait BackgroundWork {
    /// Rows that a pass looks for, in the plural.
    const NOUN: &'static str;
    /// Result of a task that a pass has started.
    type Ended;

    /// Starts the work that is due. Returns the time until the next pass at the latest.
    async fn look(&mut self) -> Result<Duration, Problem>;

    /// Waits for a change of the rows, or for the end of a task. The caller may drop the future at any time: nothing is
    /// lost then.
    async fn next_change(&mut self) -> Option<Self::Ended>;

    /// Takes note of the end of a task.
    async fn note(&mut self, ended: Self::Ended);
}

/// Runs passes until the process stops.
pub(crate) async fn run_passes<W: BackgroundWork>(app: &App, mut work: W) {
    loop {
        let begun = Instant::now();
        let pause = work.look().await.unwrap_or_else(|problem| {
            tracing::warn!(%problem, "cannot look for {}; retrying", W::NOUN);
            TROUBLE
        });
        // Changes during this pause are seen by the next pass.
        let rest = PASS_MIN.max(begun.elapsed() * REST_FACTOR);
        tokio::select! {
            () = tokio::time::sleep(rest) => {}
            () = app.stopped() => break,
        }
        tokio::select! {
            ended = work.next_change() => if let Some(ended) = ended { work.note(ended).await },
            () = tokio::time::sleep(pause) => {}
            () = app.stopped() => break,
        }
    }
}
