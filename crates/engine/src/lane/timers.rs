//! Durable timers. All of them are rows; the nearest are in memory, one window at a time, so that a million waiting
//! timers cost nothing per tick.

use super::Lane;
use super::deciding::{Pending, PendingKind};
use super::reading::List;
use crate::wake::Lookup;
use std::collections::BTreeSet;
use windlass_kernel::{ExecutionId, Input, Millis, Timer};
use windlass_store::DueTimer;

/// Length of the window in which timers are read.
const WINDOW_MS: u64 = 60_000;
/// Time before the end of a window at which the next one is read.
const AHEAD_MS: u64 = 10_000;
/// Number of timers that are read at a time.
pub const PAGE: usize = 1_000;
/// Maximum number of timers that fire in one wake-up; the rest follow in the next.
const DUE_PER_WAKE_MAX: usize = 1_000;
/// Maximum number of timers in memory; a window with more is shortened.
const ARMED_MAX: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Timers {
    armed: BTreeSet<DueTimer>,
    /// Time before which all due timers are armed.
    until: Option<Millis>,
    /// End of the window that is being read: new timers before it are armed as well.
    reading: Option<Millis>,
    /// Position of the next page.
    after: Option<DueTimer>,
    /// Time of the next read on the steady clock.
    next_read: u64,
}

impl Timers {
    /// Adds a new timer. One beyond the window is found when its window is read.
    pub fn arm(&mut self, timer: DueTimer) {
        let known = self.until.max(self.reading);
        let attempt = matches!(timer.timer, Timer::Attempt { .. });
        // Timers of attempts are stored with the lease, not in a row of their own.
        if attempt || known.is_some_and(|known| timer.at <= known) {
            self.armed.insert(timer);
        }
    }

    /// Reads the window anew after an execution was released, whose timers are in no window that was read.
    pub fn read_again(&mut self) {
        self.next_read = 0;
    }

    pub fn next(&self) -> Option<Millis> {
        self.armed.first().map(|timer| timer.at)
    }

    pub fn next_read(&self) -> Option<u64> {
        self.reading.is_none().then_some(self.next_read)
    }
}

impl<R> Lane<R> {
    pub(super) fn due_timers(&mut self) {
        for _ in 0..DUE_PER_WAKE_MAX {
            if self.timers.next().is_none_or(|at| at > self.now.wall) {
                break;
            }
            let Some(timer) = self.timers.armed.pop_first() else { break };
            let what = match timer.timer {
                Timer::Start if self.starts.is_waiting(timer.execution) => continue,
                Timer::Start => PendingKind::StartDue,
                other => PendingKind::Input(Box::new(Input::TimerDue(other))),
            };
            self.enqueue_input(timer.execution, Pending { what, reply: None, mail: None, audit: None });
        }
        // The wall clock may have jumped beyond the end of the window.
        let is_over = self.timers.until.is_some_and(|until| until <= self.now.wall);
        if self.timers.reading.is_none() && (is_over || self.now.steady >= self.timers.next_read) {
            self.read_window();
        }
    }

    fn read_window(&mut self) {
        let until = self.now.wall.plus(WINDOW_MS);
        self.timers.reading = Some(until);
        self.timers.after = None;
        self.read_list(Lookup::Due { after: None, until }, List::Due);
    }

    pub(super) fn due_found(&mut self, due: &[DueTimer]) {
        let Some(until) = self.timers.reading else { return };
        // Starts that wait for a slot are always due.
        let is_new = |due: &&DueTimer| due.timer != Timer::Start || !self.starts.is_waiting(due.execution);
        self.timers.armed.extend(due.iter().filter(is_new));
        let full = self.timers.armed.len() >= ARMED_MAX;
        if due.len() >= PAGE && !full {
            self.timers.after = due.last().copied();
            return self.read_list(Lookup::Due { after: self.timers.after, until }, List::Due);
        }
        self.timers.reading = None;
        self.timers.until = Some(match due.last() {
            Some(last) if due.len() >= PAGE => last.at,
            _ => until,
        });
        // The window is too long if the wall clock was set back meanwhile.
        let left = self.timers.until.unwrap_or(until).since(self.now.wall).min(WINDOW_MS);
        self.timers.next_read = self.now.steady + left.saturating_sub(AHEAD_MS).max(1);
    }

    /// Arms timers that a hold kept from firing; they are due at once if their time has passed.
    pub(super) fn arm_all(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get(id) else { return };
        for (timer, at) in live.state.timers() {
            self.timers.arm(DueTimer { at, execution: id, timer });
        }
    }
}
