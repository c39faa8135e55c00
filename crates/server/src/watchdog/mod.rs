//! Detects stalled threads and records their executions. A stalled thread stops the work of all tenants; the process then
//! ends itself, and the next one quarantines the execution.

mod activity;
#[cfg(debug_assertions)]
mod fault;
mod judge;
mod record;

pub(crate) use judge::judge;

use activity::{ThreadActivity, Turns};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use metrics::gauge;
use record::{LastProcess, Record};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use windlass_engine::{Activities, Activity};
use windlass_views::execution_id;
use windlass_worker::Pinger;

/// Time between two checks. Executions that take longer are recorded, in case they end the process.
const TURN: Duration = Duration::from_millis(250);

/// Turns until a thread counts as stalled, which is 5 seconds: no decision, poll or commit takes as long on a healthy host.
const STALL_TURNS: u64 = 20;

/// A stalled thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stall {
    pub thread: &'static str,
    pub seconds: u64,
    /// Id of the execution that it works on.
    pub execution: Option<String>,
}

impl std::fmt::Display for Stall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Stall { thread, seconds, execution } = self;
        write!(f, "the {thread} thread has not responded for {seconds} s")?;
        match execution {
            Some(execution) => write!(f, " and works on {execution}"),
            None => Ok(()),
        }
    }
}

/// The activity of all essential threads.
#[derive(Debug)]
pub struct Vitals {
    lane: Arc<ThreadActivity>,
    reader: Arc<ThreadActivity>,
    writer: Arc<ThreadActivity>,
    pool: Arc<ThreadActivity>,
    http: Arc<ThreadActivity>,
    turns: Arc<Turns>,
    record: Arc<Record>,
}

impl Vitals {
    /// Opens the record of the data folder, and returns the executions of the last process.
    pub fn open(folder: &Path) -> io::Result<(Arc<Vitals>, LastProcess)> {
        let (record, last) = Record::open(folder)?;
        Ok((Vitals::with(record), last))
    }

    /// Returns the vitals of a process without an engine: nothing is recorded.
    #[must_use]
    pub fn unused() -> Arc<Vitals> {
        Vitals::with(Record::unused())
    }

    fn with(record: Record) -> Arc<Vitals> {
        let (record, turns) = (Arc::new(record), Arc::new(Turns::default()));
        let activity =
            |thread, place| Arc::new(ThreadActivity::new(thread, place, record.clone(), turns.clone()));
        let (lane, reader, writer) = (activity("lane", 0), activity("reader", 1), activity("writer", 2));
        let (pool, http) = (activity("pool", 3), activity("http", 4));
        Arc::new(Vitals { lane, reader, writer, pool, http, turns, record })
    }

    #[must_use]
    pub fn of_engine(&self) -> Activities {
        Activities { lane: self.lane.clone(), reader: self.reader.clone(), writer: self.writer.clone() }
    }

    #[must_use]
    pub fn of_pool(&self) -> Arc<dyn windlass_worker::Activity> {
        self.pool.clone()
    }

    /// Reports that the runtime of the server responds, as long as it is polled.
    pub async fn beat(self: Arc<Vitals>) {
        // A stopped server is not stalled.
        let beating = Beating(&*self.http);
        loop {
            beating.0.begin_work();
            tokio::time::sleep(TURN).await;
        }
    }

    /// Returns the thread that is stalled for the longest time, if any.
    #[must_use]
    pub fn stall(&self) -> Option<Stall> {
        let lags = self.all().into_iter().map(|activity| (self.lag(activity), activity));
        let (lag, activity) = lags.max_by_key(|(lag, _)| *lag)?;
        (lag >= STALL_TURNS).then(|| stall(activity, lag))
    }

    fn all(&self) -> [&ThreadActivity; 5] {
        [&self.lane, &self.reader, &self.writer, &self.pool, &self.http]
    }

    fn lag(&self, activity: &ThreadActivity) -> u64 {
        activity.state().since.map_or(0, |since| self.turns.now().saturating_sub(since))
    }

    /// Removes the record at a regular end of the process.
    pub fn end_in_order(&self) {
        self.record.remove();
    }

    /// Records the current executions of all threads, because the engine ended by itself.
    pub fn end_in_trouble(&self) {
        self.all().into_iter().for_each(|activity| activity.record_current(false));
    }
}

struct Beating<'h>(&'h dyn Activity);

impl Drop for Beating<'_> {
    fn drop(&mut self) {
        self.0.begin_wait();
    }
}

fn stall(activity: &ThreadActivity, lag: u64) -> Stall {
    let execution = activity.state().execution.map(execution_id);
    Stall { thread: activity.thread, seconds: lag * TURN.as_millis() as u64 / 1_000, execution }
}

/// The thread that checks all others. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Watchdog {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts the thread. `timeout` is the time after which a stalled thread ends the process; None: never.
    pub(crate) fn start(vitals: Arc<Vitals>, timeout: Option<Duration>) -> io::Result<Watchdog> {
        let (stop, stopped) = bounded(0);
        let watch = Watch { vitals, timeout_turns: timeout.map(turns_of), logged: [false; 5] };
        let thread = std::thread::Builder::new()
            .name("windlass-watchdog".to_owned())
            .spawn(move || watch.run(&stopped))?;
        Ok(Watchdog { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn turns_of(time: Duration) -> u64 {
    u64::try_from(time.as_millis() / TURN.as_millis()).unwrap_or(u64::MAX).max(1)
}

struct Watch {
    vitals: Arc<Vitals>,
    timeout_turns: Option<u64>,
    /// Threads whose stall was logged.
    logged: [bool; 5],
}

impl Watch {
    fn run(mut self, stopped: &Receiver<()>) {
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(TURN) {
            let now = self.vitals.turns.next();
            let vitals = self.vitals.clone();
            for (number, activity) in vitals.all().into_iter().enumerate() {
                activity.sample(now);
                self.look(number, activity);
            }
        }
    }

    fn look(&mut self, number: usize, activity: &ThreadActivity) {
        let lag = self.vitals.lag(activity);
        gauge!("windlass_thread_lag_seconds", "thread" => activity.thread)
            .set(lag as f64 * TURN.as_secs_f64());
        let is_stalled = lag >= STALL_TURNS;
        if is_stalled && !self.logged[number] {
            let Stall { thread, seconds, execution } = stall(activity, lag);
            tracing::error!(thread, seconds, execution, "a thread is stalled, and all work waits for it");
        }
        self.logged[number] = is_stalled;
        // A restart does not repair a disk that does not respond.
        let is_to_blame = !std::ptr::eq(activity, &*self.vitals.writer);
        if is_to_blame && self.timeout_turns.is_some_and(|turns| lag >= turns) {
            self.end_process(activity, lag);
        }
    }

    /// Ends the process. Nothing is lost: acknowledged changes are on disk, and a supervisor starts the next process.
    fn end_process(&self, activity: &ThreadActivity, lag: u64) -> ! {
        activity.record_current(true);
        let Stall { thread, seconds, execution } = stall(activity, lag);
        tracing::error!(
            thread,
            seconds,
            execution,
            "a thread is stalled: the process ends itself, and the next one quarantines the execution"
        );
        std::process::abort();
    }
}

/// The health probe of the essential threads.
#[derive(Debug, Clone)]
pub struct Pulse {
    pub vitals: Arc<Vitals>,
    /// None in a process without a pool.
    pub pool: Option<Pinger>,
}
