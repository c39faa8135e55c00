//! The worker of the benchmarks. It uses the protocol of every worker, and answers each order at once.

use super::figures::Latencies;
use super::watched::Tally;
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, unbounded};
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use windlass_engine::Handle;
use windlass_protocol::{
    Beat, Call, LEASE_TTL_MS, Order, Outcome, PROTOCOL_VERSION, Register, Reply, Report, SessionId, Unit,
    Verdict, Work,
};

/// Number of slots: more than any benchmark has in flight, so that no step waits for one.
const SLOTS: u32 = 4_096;
/// Interval of its heartbeats, a third of the time to live of its session.
const BEAT_EVERY: Duration = Duration::from_millis(LEASE_TTL_MS / 3);

#[derive(Debug)]
pub struct Worker {
    thread: JoinHandle<()>,
    notes: Arc<Notes>,
    stop: Sender<Note>,
}

/// Observations of the worker.
#[derive(Debug, Default)]
pub struct Notes {
    /// Latency from the report to its answer, which comes after the commit is on disk.
    latencies: Mutex<Latencies>,
    /// Time of each order, if it is recorded.
    moments: Option<Mutex<Vec<Instant>>>,
    refused: AtomicU64,
}

enum Note {
    Order(Order),
    Stop,
}

/// Behaviour of the worker, and the observations that it records.
#[derive(Debug, Clone)]
pub struct Habits {
    pub output: Value,
    pub keeps_moments: bool,
}

impl Worker {
    /// Registers and begins to answer.
    pub fn start(handle: &Handle, habits: Habits, tally: Arc<Tally>) -> anyhow::Result<Worker> {
        let (notes, arriving) = unbounded();
        let session = register(handle, notes.clone(), tally.clone())?;
        let written =
            Arc::new(Notes { moments: habits.keeps_moments.then(Mutex::default), ..Notes::default() });
        let answering = Answering {
            handle: handle.clone(),
            session,
            output: habits.output,
            notes: written.clone(),
            tally,
            beat_at: Instant::now() + BEAT_EVERY,
        };
        let builder = std::thread::Builder::new().name("bench-worker".into());
        let thread = builder.spawn(move || answering.run(&arriving))?;
        Ok(Worker { thread, notes: written, stop: notes })
    }

    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    pub fn stop(self) {
        let _ = self.stop.send(Note::Stop);
        let _ = self.thread.join();
    }
}

fn register(handle: &Handle, notes: Sender<Note>, tally: Arc<Tally>) -> anyhow::Result<SessionId> {
    let register = Register { protocol: PROTOCOL_VERSION, worker: "bench".into(), slots: SLOTS };
    let (answered, answer) = crossbeam_channel::bounded(1);
    let heard = move |reply| match reply {
        Reply::Order(order) => {
            if let Some(trace) = &tally.trace {
                trace.ordered(&order);
            }
            let _ = notes.send(Note::Order(order));
        }
        other => drop(answered.send(other)),
    };
    handle.send(Call::Register(register), Box::new(heard));
    match answer.recv() {
        Ok(Reply::Registered(registered)) => Ok(registered.session),
        other => anyhow::bail!("the engine did not register the worker: {other:?}"),
    }
}

impl Notes {
    /// Returns the observations since the last call.
    pub fn take_latencies(&self) -> Latencies {
        std::mem::take(&mut *lock(&self.latencies))
    }

    pub fn take_moments(&self) -> Vec<Instant> {
        self.moments.as_ref().map(|moments| std::mem::take(&mut *lock(moments))).unwrap_or_default()
    }

    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn judged(&self, asked: Instant, reply: &Reply) {
        if *reply == Reply::Verdict(Verdict::Accepted) {
            lock(&self.latencies).push(asked.elapsed());
        } else {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }
}

struct Answering {
    handle: Handle,
    session: SessionId,
    output: Value,
    notes: Arc<Notes>,
    tally: Arc<Tally>,
    beat_at: Instant,
}

impl Answering {
    fn run(mut self, arriving: &Receiver<Note>) {
        loop {
            match arriving.recv_deadline(self.beat_at) {
                Ok(Note::Order(Order::Run(work))) => self.answer(&work),
                // The worker runs nothing that could be stopped, and every report was sent already.
                Ok(Note::Order(Order::Stop { .. })) | Err(RecvTimeoutError::Timeout) => {}
                Ok(Note::Order(Order::Unknown) | Note::Stop) | Err(RecvTimeoutError::Disconnected) => return,
            }
            self.beat();
        }
    }

    fn answer(&self, work: &Work) {
        let asked = Instant::now();
        if let Some(moments) = &self.notes.moments {
            lock(moments).push(asked);
        }
        let unit: Unit = work.unit;
        let outcome = Outcome::Done { output: self.output.clone() };
        let report =
            Report { unit, outcome, patch: serde_json::Map::new(), metadata: serde_json::Map::new() };
        let (notes, tally) = (self.notes.clone(), self.tally.clone());
        let heard = move |reply| {
            if let Some(trace) = &tally.trace {
                trace.judged(unit, &reply);
            }
            notes.judged(asked, &reply);
        };
        self.handle.send(Call::Report(Box::new(report)), Box::new(heard));
    }

    /// Sends a heartbeat. The worker holds no units, because each order is answered at once.
    fn beat(&mut self) {
        let now = Instant::now();
        if now >= self.beat_at {
            self.beat_at = now + BEAT_EVERY;
            let beat = Beat { session: self.session, holds: Vec::new(), draining: false };
            self.handle.send(Call::Beat(beat), Box::new(drop));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
