//! What became of each step of an execution, for a picture.

use std::collections::BTreeMap;
use windlass_kernel::StepId;
use windlass_views::{End, History, Leases, node_status};

/// By step; a step that was never reached has none.
pub type Marks = BTreeMap<StepId, Mark>;

/// State of the newest firing, and number of firings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    pub state: State,
    pub firings: u32,
    pub failures: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Completed,
    Failed,
    Running,
    /// For a slot, for the time of a retry, at a gate or for a person.
    Waiting,
    Skipped,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Completed => "completed",
            State::Failed => "failed",
            State::Running => "running",
            State::Waiting => "waiting",
            State::Skipped => "skipped",
        }
    }

    pub(super) const ALL: [State; 5] =
        [State::Completed, State::Failed, State::Running, State::Waiting, State::Skipped];
}

impl Mark {
    /// `completed`, or `3 times, failed 1, running`.
    pub(super) fn label(&self) -> String {
        let word = self.state.word();
        match (self.firings, self.failures) {
            (0 | 1, _) => word.to_owned(),
            (times, 0) => format!("{times} times, {word}"),
            (times, failures) => format!("{times} times, {failures} failed, {word}"),
        }
    }
}

#[must_use]
pub fn marks(history: &History, leases: &Leases) -> Marks {
    let mut marks = Marks::new();
    for firing in history.whole() {
        let state = match node_status(history, leases, firing) {
            "completed" => State::Completed,
            "failed" => State::Failed,
            "running" => State::Running,
            "skipped" => State::Skipped,
            _ => State::Waiting,
        };
        let (firings, failures) = (history.fired(firing.step), history.evicted_failures(firing.step));
        let mark = marks.entry(firing.step).or_insert(Mark { state, firings, failures });
        mark.state = state;
        mark.failures += u32::from(matches!(firing.end, Some(End::Failed { .. })));
    }
    for gate in history.gates() {
        let mark = marks.entry(gate.step).or_insert(Mark { state: State::Waiting, firings: 0, failures: 0 });
        mark.state = State::Waiting;
    }
    marks
}
