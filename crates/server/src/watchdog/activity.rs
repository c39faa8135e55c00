//! The activity of one thread: its current execution, and the time since it works on it.

use super::record::Record;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_kernel::ExecutionId;
use windlass_protocol::Unit;

/// Turns of the watchdog. They count only while the process runs: a process that was suspended for an hour is not stalled.
#[derive(Debug, Default)]
pub(crate) struct Turns(AtomicU64);

impl Turns {
    pub(crate) fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

#[derive(Debug)]
pub(crate) struct ThreadActivity {
    pub thread: &'static str,
    /// Number of its line in the record.
    place: u64,
    record: Arc<Record>,
    turns: Arc<Turns>,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct State {
    /// The turn in which the current work began; None while the thread waits.
    pub since: Option<u64>,
    pub execution: Option<ExecutionId>,
    /// Whether the execution is in the record.
    written: bool,
}

impl ThreadActivity {
    pub(crate) fn new(
        thread: &'static str,
        place: u64,
        record: Arc<Record>,
        turns: Arc<Turns>,
    ) -> ThreadActivity {
        record.write(place, thread, None, false);
        ThreadActivity { thread, place, record, turns, state: Mutex::default() }
    }

    pub(crate) fn state(&self) -> State {
        *self.lock()
    }

    fn note_execution(&self, execution: ExecutionId) {
        let mut state = self.lock();
        let is_new = state.execution != Some(execution);
        *state = State { since: Some(self.turns.now()), execution: Some(execution), written: state.written };
        if self.record.careful || state.written {
            if is_new || !state.written {
                self.record.write(self.place, self.thread, Some(execution), false);
            }
            state.written = true;
        }
        drop(state);
        #[cfg(debug_assertions)]
        super::fault::inject_fault(self.thread, execution);
    }

    fn end_execution(&self, since: Option<u64>) {
        let mut state = self.lock();
        if state.written {
            self.record.write(self.place, self.thread, None, false);
        }
        *state = State { since, execution: None, written: false };
    }

    /// Records an execution that the thread works on since an earlier turn: it may be the one that ends the process.
    pub(crate) fn sample(&self, now: u64) {
        let mut state = self.lock();
        if !state.written && state.since.is_some_and(|since| since < now) && state.execution.is_some() {
            self.write(&state, false);
            state.written = true;
        }
    }

    /// Records the current execution.
    pub(crate) fn record_current(&self, is_hung: bool) {
        self.write(&self.lock(), is_hung);
    }

    fn write(&self, state: &State, is_hung: bool) {
        self.record.write(self.place, self.thread, state.execution, is_hung);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl windlass_engine::Activity for ThreadActivity {
    fn begin_execution(&self, execution: ExecutionId) {
        self.note_execution(execution);
    }

    fn begin_work(&self) {
        self.end_execution(Some(self.turns.now()));
    }

    fn begin_wait(&self) {
        self.end_execution(None);
    }
}

impl windlass_worker::Activity for ThreadActivity {
    fn begin_unit(&self, unit: Unit) {
        self.note_execution(ExecutionId(unit.execution));
    }

    fn begin_work(&self) {
        self.end_execution(Some(self.turns.now()));
    }

    fn begin_wait(&self) {
        self.end_execution(None);
    }
}
