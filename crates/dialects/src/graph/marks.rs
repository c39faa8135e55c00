//! State of each step and each arc of an execution, for a picture.

use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::{Role, RunId, StepId};
use windlass_views::{End, History, Leases, NodeStatus, duration, node_status};

/// The steps and arcs that an execution reached.
#[derive(Debug, Clone, Default)]
pub struct Marks {
    /// A step that was never reached has none.
    pub steps: BTreeMap<StepId, Mark>,
    /// Number of tokens that each arc carried.
    pub arcs: BTreeMap<ArcRef, u32>,
    /// Steps whose results were taken over from an earlier execution, with arcs that no record of this one names.
    pub imported: BTreeSet<StepId>,
}

/// An arc, by its place among those of its step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArcRef {
    pub from: StepId,
    pub arc: usize,
}

/// State of the newest firing, and number of firings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mark {
    pub state: State,
    pub firings: u32,
    pub failures: u32,
    /// Attempts of the newest firing.
    pub attempts: u32,
    /// Duration of the newest firing that has ended.
    pub duration_ms: Option<u64>,
    /// Iterations of the newest firing, if the step itself is repeated.
    pub iterations: Option<Iterations>,
}

/// Iterations that a loop has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Iterations {
    pub begun: u32,
    pub failed: u32,
    /// Older iterations were evicted from memory, so that more can have failed.
    pub is_partial: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum State {
    Completed,
    Failed,
    Running,
    /// It waits for a slot, for the time of a retry, at a gate or for a person.
    #[default]
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
    /// `completed · 1.2 s`, or `3 times · 1 failed · running`.
    pub(super) fn label(&self) -> String {
        let times = (self.firings > 1).then(|| format!("{} times", self.firings));
        let failures = (self.firings > 1 && self.failures > 0).then(|| format!("{} failed", self.failures));
        let iterations = self.iterations.map(|of| of.label());
        let attempts = (self.attempts > 1).then(|| format!("{} attempts", self.attempts));
        let ended = matches!(self.state, State::Completed | State::Failed);
        let duration = self.duration_ms.filter(|ms| ended && *ms > 0).map(duration);
        let duration = duration.map(|text| if self.firings > 1 { format!("last {text}") } else { text });
        let parts = [times, failures, Some(self.state.word().to_owned()), iterations, attempts, duration];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
    }
}

impl Iterations {
    /// `500 iterations, 10 failed`.
    fn label(self) -> String {
        let Iterations { begun, failed, is_partial } = self;
        let unit = if begun == 1 { "iteration" } else { "iterations" };
        match (failed, is_partial) {
            (0, _) => format!("{begun} {unit}"),
            (_, false) => format!("{begun} {unit}, {failed} failed"),
            (_, true) => format!("{begun} {unit}, at least {failed} failed"),
        }
    }

    /// Counts the iterations of a firing. They are numbered in their order, and the newest are always held.
    fn of(history: &History, run: RunId) -> Option<Iterations> {
        let (mut begun, mut failed) = (0, 0);
        for iteration in history.iterations(run) {
            if let Role::Iteration { index, .. } = iteration.role {
                begun = begun.max(index.saturating_add(1));
            }
            failed += u32::from(matches!(iteration.end, Some(End::Failed { .. })));
        }
        (begun > 0).then(|| Iterations { begun, failed, is_partial: history.evicted() > 0 })
    }
}

impl Marks {
    pub(super) fn firings(&self, step: StepId) -> u32 {
        self.steps.get(&step).filter(|mark| mark.state != State::Skipped).map_or(0, |mark| mark.firings)
    }

    /// Counts how often an arc was taken. Arcs of imported steps are judged by the steps that they lead to.
    pub(super) fn taken(&self, arc: ArcRef, to: StepId) -> u32 {
        let known = self.arcs.get(&arc).copied();
        let imported = || self.imported.contains(&arc.from).then(|| self.firings(to).min(1));
        known.or_else(imported).unwrap_or_default()
    }
}

#[must_use]
pub fn marks(history: &History, leases: &Leases) -> Marks {
    let mut marks = Marks::default();
    for firing in history.whole() {
        let state = match node_status(history, leases, firing) {
            NodeStatus::Completed => State::Completed,
            NodeStatus::Failed => State::Failed,
            NodeStatus::Running => State::Running,
            NodeStatus::Skipped => State::Skipped,
            NodeStatus::Pending | NodeStatus::Retrying => State::Waiting,
        };
        let (firings, failures) = (history.fired(firing.step), history.evicted_failures(firing.step));
        let new = Mark { firings, failures, ..Mark::default() };
        let mark = marks.steps.entry(firing.step).or_insert(new);
        mark.state = state;
        mark.attempts = firing.attempts;
        mark.iterations = Iterations::of(history, firing.run);
        mark.duration_ms = firing.duration_ms().or(mark.duration_ms);
        mark.failures += u32::from(matches!(firing.end, Some(End::Failed { .. })));
        if firing.fired_at.is_none() && firing.end == Some(End::Completed) {
            marks.imported.insert(firing.step);
        }
    }
    let waiting = history.state().joining.keys().map(|(step, _)| *step);
    for step in history.gates().iter().map(|gate| gate.step).chain(waiting) {
        marks.steps.entry(step).or_default().state = State::Waiting;
    }
    let arcs = history.taken_arcs().map(|(from, arc, count)| (ArcRef { from, arc: arc as usize }, count));
    marks.arcs.extend(arcs);
    marks
}
