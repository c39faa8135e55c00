//! What a connection is at: whether it has asked for anything yet, which requests are open, and how long their answers have
//! not been taken. HTTP/1 and HTTP/2 are the same here: a client of HTTP/2 that grants no window takes nothing, either,
//! though its socket is never full.

use crate::settings::Settings;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Time within which a response of a known length must be taken, however slowly: 4 MiB at 7 kB a second.
const RESPONSE_MAX: Duration = Duration::from_secs(600);

/// Times that a client may take.
#[derive(Debug, Clone, Copy)]
pub struct ClientTimeouts {
    /// From the connection to its first request.
    pub first: Duration,
    /// From one request to the next.
    pub idle: Duration,
    /// From one part of a response to the next.
    pub write: Duration,
}

impl ClientTimeouts {
    pub fn of(settings: &Settings) -> ClientTimeouts {
        let Settings { header_timeout, idle_timeout, write_timeout, .. } = settings;
        ClientTimeouts { first: *header_timeout, idle: *idle_timeout, write: *write_timeout }
    }
}

/// Why a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientTimeout {
    /// It has not sent a request, or not a whole one.
    Silent,
    /// It sends no other request.
    Idle,
    /// It does not take its response.
    Stuck,
}

#[derive(Debug)]
pub struct ConnectionActivity {
    timeouts: ClientTimeouts,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Since when no request is open: since it was accepted, or since the last response.
    free_since: Instant,
    has_asked: bool,
    open: HashMap<u64, Phase>,
    next: u64,
}

/// A request that is open.
#[derive(Debug, Clone, Copy)]
enum Phase {
    /// The server has nothing to send for the moment.
    Working,
    /// There is something to send since then.
    Sending { since: Instant, end: Option<Instant> },
}

/// A request, open until it is dropped.
#[derive(Debug)]
pub struct Exchange {
    number: u64,
    activity: Arc<ConnectionActivity>,
    /// When the response must have been taken; None for streams.
    end: Option<Instant>,
}

impl ConnectionActivity {
    pub fn new(timeouts: ClientTimeouts, accepted_at: Instant) -> Arc<ConnectionActivity> {
        let state = State { free_since: accepted_at, has_asked: false, open: HashMap::new(), next: 0 };
        Arc::new(ConnectionActivity { timeouts, state: Mutex::new(state) })
    }

    pub fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state.has_asked = true;
        state.open.insert(number, Phase::Working);
        Exchange { number, activity: self.clone(), end: None }
    }

    /// Comes when the client has taken too long for something.
    pub async fn wait_for_timeout(&self) -> ClientTimeout {
        let ClientTimeouts { first, idle, write } = self.timeouts;
        // What begins meanwhile is overdue after the shortest of them at the earliest.
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

    /// When the next thing is overdue, and what is overdue now.
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
    /// There is a response, whole or a stream.
    pub fn answers(&mut self, is_whole: bool) {
        self.end = is_whole.then(|| Instant::now() + RESPONSE_MAX);
        self.sends();
    }

    /// The client has taken all that there was, and there is more.
    pub fn sends(&self) {
        self.put(Phase::Sending { since: Instant::now(), end: self.end });
    }

    /// There is nothing to send until the server has more.
    pub fn waits(&self) {
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

    /// What is overdue so long after now.
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
        assert_eq!(after(&activity, HOUR), None, "a server may work as long as it wants");
        drop(exchange);
        assert_eq!(after(&activity, TIMEOUTS.idle - SECOND), None);
        assert_eq!(after(&activity, TIMEOUTS.idle), Some(ClientTimeout::Idle));
    }

    #[test]
    fn a_client_that_takes_nothing_or_next_to_nothing_is_stuck() {
        let activity = ConnectionActivity::new(TIMEOUTS, Instant::now());
        let mut exchange = activity.begin();
        exchange.answers(true);
        assert_eq!(after(&activity, TIMEOUTS.write - SECOND), None);
        assert_eq!(after(&activity, TIMEOUTS.write), Some(ClientTimeout::Stuck));
        // It takes a byte from time to time.
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
    async fn whoever_waits_for_it_is_told_what_is_overdue() {
        let brief = Duration::from_millis(5);
        let activity = ConnectionActivity::new(ClientTimeouts { first: brief, ..TIMEOUTS }, Instant::now());
        assert_eq!(activity.wait_for_timeout().await, ClientTimeout::Silent);
    }
}
