//! Activity of a connection: its open requests, and the time for which the client has read nothing. HTTP/1 and HTTP/2 are
//! treated alike: an HTTP/2 client that grants no window reads nothing, though its socket is never full.

use crate::settings::Settings;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Maximum time to read a response of a known length, however slowly: 4 MiB at 7 kB per second.
const RESPONSE_MAX: Duration = Duration::from_secs(600);

/// Maximum times that a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientTimeouts {
    /// Maximum time from the connection to its first request.
    pub first: Duration,
    /// Maximum time from one request to the next.
    pub idle: Duration,
    /// Maximum time from one part of a response to the next.
    pub write: Duration,
}

impl ClientTimeouts {
    pub(crate) fn of(settings: &Settings) -> ClientTimeouts {
        let Settings { header_timeout, idle_timeout, write_timeout, .. } = settings;
        ClientTimeouts { first: *header_timeout, idle: *idle_timeout, write: *write_timeout }
    }
}

/// The timeout that closed a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientTimeout {
    /// The client has sent no request, or not a complete one.
    Silent,
    /// The client sends no further request.
    Idle,
    /// The client does not read its response.
    Stuck,
}

#[derive(Debug)]
pub(crate) struct ConnectionActivity {
    timeouts: ClientTimeouts,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Time since which no request is open: that of the accept, or of the last response.
    free_since: Instant,
    has_asked: bool,
    open: HashMap<u64, Phase>,
    next: u64,
}

/// The phase of an open request.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The server has nothing to send yet.
    Working,
    /// The server has data to send since this time.
    Sending { since: Instant, end: Option<Instant> },
}

/// An open request; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Exchange {
    number: u64,
    activity: Arc<ConnectionActivity>,
    /// Time by which the response must be read; None for streams.
    end: Option<Instant>,
}

impl ConnectionActivity {
    pub(crate) fn new(timeouts: ClientTimeouts, accepted_at: Instant) -> Arc<ConnectionActivity> {
        let state = State { free_since: accepted_at, has_asked: false, open: HashMap::new(), next: 0 };
        Arc::new(ConnectionActivity { timeouts, state: Mutex::new(state) })
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.has_asked = true;
        state.open.insert(number, Phase::Working);
        Exchange { number, activity: self.clone(), end: None }
    }

    /// Completes when the client exceeds one of the timeouts.
    pub(crate) async fn wait_for_timeout(&self) -> ClientTimeout {
        let ClientTimeouts { first, idle, write } = self.timeouts;
        // A request that begins meanwhile cannot time out before the shortest of the timeouts.
        let again = first.min(idle).min(write);
        loop {
            let now = Instant::now();
            let (end, why) = self.next_end(now);
            if let Some(why) = why {
                return why;
            }
            let look = now + again;
            sleep_until(end.map_or(look, |end| end.min(look))).await;
        }
    }

    /// Returns the time of the next timeout, and the timeout that is exceeded now.
    fn next_end(&self, now: Instant) -> (Option<Instant>, Option<ClientTimeout>) {
        let state = self.lock();
        let sending = state.open.values().filter_map(|phase| match phase {
            Phase::Working => None,
            Phase::Sending { since, end } => {
                let taken = *since + self.timeouts.write;
                Some(end.map_or(taken, |end| end.min(taken)))
            }
        });
        let (end, why) = match (state.open.is_empty(), state.has_asked) {
            (false, _) => (sending.min(), ClientTimeout::Stuck),
            (true, true) => (Some(state.free_since + self.timeouts.idle), ClientTimeout::Idle),
            (true, false) => (Some(state.free_since + self.timeouts.first), ClientTimeout::Silent),
        };
        (end, end.filter(|end| *end <= now).map(|_| why))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// Records the begin of a response: whole, or a stream.
    pub(crate) fn answers(&mut self, is_whole: bool) {
        self.end = is_whole.then(|| Instant::now() + RESPONSE_MAX);
        self.sends();
    }

    /// Records that the client has read everything so far, and more is sent.
    pub(crate) fn sends(&self) {
        self.put(Phase::Sending { since: Instant::now(), end: self.end });
    }

    /// Records that the server has nothing to send.
    pub(crate) fn waits(&self) {
        self.put(Phase::Working);
    }

    fn put(&self, phase: Phase) {
        self.activity.lock().open.insert(self.number, phase);
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.activity.lock();
        state.open.remove(&self.number);
        state.free_since = Instant::now();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUTS: ClientTimeouts = ClientTimeouts {
        first: Duration::from_secs(10),
        idle: Duration::from_secs(75),
        write: Duration::from_secs(30),
    };

    /// Returns the timeout that is exceeded after the given time.
    fn after(activity: &ConnectionActivity, wait: Duration) -> Option<ClientTimeout> {
        activity.next_end(Instant::now() + wait).1
    }

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_connection_is_silent_then_busy_then_idle() {
        let activity = ConnectionActivity::new(TIMEOUTS, Instant::now());
        assert_eq!(after(&activity, TIMEOUTS.first - SECOND), None);
        assert_eq!(after(&activity, TIMEOUTS.first), Some(ClientTimeout::Silent));
        let exchange = activity.begin();
        assert_eq!(after(&activity, HOUR), None, "the server may work without a time limit");
        drop(exchange);
        assert_eq!(after(&activity, TIMEOUTS.idle - SECOND), None);
        assert_eq!(after(&activity, TIMEOUTS.idle), Some(ClientTimeout::Idle));
    }

    #[test]
    fn a_client_that_reads_almost_nothing_is_stuck() {
        let activity = ConnectionActivity::new(TIMEOUTS, Instant::now());
        let mut exchange = activity.begin();
        exchange.answers(true);
        assert_eq!(after(&activity, TIMEOUTS.write - SECOND), None);
        assert_eq!(after(&activity, TIMEOUTS.write), Some(ClientTimeout::Stuck));
        // The client reads a byte from time to time.
        exchange.end = Some(Instant::now() + SECOND);
        exchange.sends();
        assert_eq!(after(&activity, SECOND), Some(ClientTimeout::Stuck));
        let mut stream = activity.begin();
        drop(exchange);
        stream.answers(false);
        stream.waits();
        assert_eq!(after(&activity, HOUR), None, "a stream may be quiet");
        stream.sends();
        assert_eq!(after(&activity, TIMEOUTS.write), Some(ClientTimeout::Stuck));
    }

    #[tokio::test]
    async fn waiting_returns_the_exceeded_timeout() {
        let brief = Duration::from_millis(5);
        let activity = ConnectionActivity::new(ClientTimeouts { first: brief, ..TIMEOUTS }, Instant::now());
        assert_eq!(activity.wait_for_timeout().await, ClientTimeout::Silent);
    }
}
