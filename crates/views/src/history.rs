//! The journal of an execution, folded into what its user wants to know: all at once, or record by record as they come.

mod retention;

pub use retention::{FIRINGS_BYTES_MAX, VALUES_BYTES_MAX};

use crate::firing::{End, Firing};
use crate::kept::{Kept, ResultPlace};
use crate::timeline::{
    ExecutionChange, FiringChange, FiringRef, Occurrence, Timeline, TimelineEntry, TokenChange,
};
use retention::{Retention, Slot};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{
    Execution, ExecutionId, Failure, Fence, Gone, Illegal, Millis, Net, Outputs, Record, Role, RunId, StepId,
    TokenId,
};

#[derive(Debug, Clone, Default)]
pub struct History {
    timeline: Timeline,
    /// Results of the execution, by their place in the journal.
    outputs: Outputs<ResultPlace>,
    pub created_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    /// The execution that this one does again (R12).
    pub retry_of: Option<ExecutionId>,
    /// Why it ended or is about to, and when that was decided.
    pub failure: Option<(Failure, Millis)>,
    /// By their order; those of the newest generation (R11).
    firings: BTreeMap<usize, Firing>,
    places: BTreeMap<RunId, usize>,
    /// Iterations of a loop and the hook of a firing, by the firing they belong to.
    parts: BTreeMap<RunId, BTreeSet<usize>>,
    numbers: BTreeMap<StepId, u32>,
    /// Failed firings that were let go of.
    failures: BTreeMap<StepId, u32>,
    retention: Retention,
    denied: BTreeMap<TokenId, Millis>,
    /// Since when a person is asked.
    asked: BTreeMap<RunId, Millis>,
    /// Who held it last, and why.
    hold: Option<ExecutionHold>,
    /// What a person ended last, by step.
    manual: BTreeMap<StepId, (RunId, Fence)>,
    /// Steps that completed at least once, and those that were at least skipped: a later firing takes nothing back.
    completed: BTreeSet<StepId>,
    settled: BTreeSet<StepId>,
}

/// A hold of the whole execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionHold {
    pub at: Millis,
    pub by: String,
    pub reason: String,
}

/// A token that waits before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingGate {
    pub step: StepId,
    pub since: Option<Millis>,
    pub deadline: Option<Millis>,
}

impl History {
    /// Refuses a journal that does not belong to the net or is not whole.
    pub fn of<'r>(net: &Net, journal: impl IntoIterator<Item = &'r Record>) -> Result<History, Illegal> {
        let mut history = History::default();
        for record in journal {
            history.fold(net, record)?;
        }
        Ok(history)
    }

    /// Folds the next record, and returns what happened. After an error the history must be dropped.
    pub fn fold(&mut self, net: &Net, record: &Record) -> Result<TimelineEntry, Illegal> {
        let entry = self.timeline.advance(net, record)?;
        let place = &mut |index, value: &_| ResultPlace::of(entry.version, index, value);
        self.outputs.note_with(record, place);
        self.note(&entry);
        Ok(entry)
    }

    /// Returns the state after the last record.
    #[must_use]
    pub fn state(&self) -> &Execution<'static> {
        self.timeline.state()
    }

    /// Number of records that were folded.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.timeline.version()
    }

    /// Results of the execution so far.
    #[must_use]
    pub fn outputs(&self) -> &Outputs<ResultPlace> {
        &self.outputs
    }

    /// Firings that are not a part of another one, in order; those of the newest generation (R11). Of very many, the
    /// newest, and the newest of every step.
    pub fn whole(&self) -> impl DoubleEndedIterator<Item = &Firing> {
        self.firings.values().filter(|firing| firing.is_whole())
    }

    /// How often a step has fired, whether its firings are held or not.
    #[must_use]
    pub fn fired(&self, step: StepId) -> u32 {
        self.numbers.get(&step).copied().unwrap_or_default()
    }

    /// Failed firings of a step that are not held any more.
    #[must_use]
    pub fn failures_let_go(&self, step: StepId) -> u32 {
        self.failures.get(&step).copied().unwrap_or_default()
    }

    #[must_use]
    pub fn firing(&self, run: RunId) -> Option<&Firing> {
        self.places.get(&run).and_then(|place| self.firings.get(place))
    }

    /// Firings that have not ended, in order; it costs nothing that there were others before.
    pub fn live(&self) -> impl Iterator<Item = &Firing> {
        self.state()
            .runs
            .iter()
            .filter_map(|(run, _)| self.firing(*run))
            .filter(|firing| firing.end.is_none())
    }

    /// Steps that completed, and steps that completed or were skipped.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.completed.len(), self.settled.len())
    }

    /// Lets go of a firing that has ended. Whoever tells each end once needs it no more, and need not hold what grows
    /// with history.
    pub fn forget(&mut self, run: RunId) {
        let place = self.places.remove(&run);
        let firing = place.and_then(|place| self.firings.remove(&place));
        self.parts.remove(&run);
        self.asked.remove(&run);
        let (Some(place), Some(firing)) = (place, firing) else { return };
        self.release(&firing);
        if let Role::Iteration { of, .. } | Role::Hook { of } = firing.role
            && let Some(parts) = self.parts.get_mut(&of)
        {
            parts.remove(&place);
        }
    }

    #[must_use]
    pub fn gates(&self) -> Vec<WaitingGate> {
        let told = self.state().gated.iter().map(|((step, token), gate)| WaitingGate {
            step: *step,
            since: self.denied.get(token).copied(),
            deadline: gate.deadline,
        });
        told.collect()
    }

    /// The firing of a step that a person ended last, and the fence that was answered.
    #[must_use]
    pub fn ended_by_hand(&self, step: StepId) -> Option<(RunId, Fence)> {
        self.manual.get(&step).copied()
    }

    /// The newest hold; it may be released by now.
    #[must_use]
    pub fn hold(&self) -> Option<&ExecutionHold> {
        self.hold.as_ref()
    }

    /// Since when a person is asked about a firing.
    #[must_use]
    pub fn asked_at(&self, run: RunId) -> Option<Millis> {
        self.asked.get(&run).copied()
    }

    /// Iterations of a loop, in order.
    pub fn iterations(&self, of: RunId) -> impl DoubleEndedIterator<Item = &Firing> {
        self.parts_of(of).filter(|firing| matches!(firing.role, Role::Iteration { .. }))
    }

    /// What undoes the firing.
    #[must_use]
    pub fn hook(&self, of: RunId) -> Option<&Firing> {
        self.parts_of(of).find(|firing| matches!(firing.role, Role::Hook { .. }))
    }

    fn parts_of(&self, run: RunId) -> impl DoubleEndedIterator<Item = &Firing> {
        self.parts.get(&run).into_iter().flatten().filter_map(|place| self.firings.get(place))
    }

    fn note(&mut self, entry: &TimelineEntry) {
        let at = entry.at;
        match &entry.occurrence {
            Occurrence::Execution(change) => self.note_execution(change, entry),
            Occurrence::Firing(firing, change) => self.note_firing(firing, change, entry),
            Occurrence::Token(TokenChange::Denied { token, .. }) => drop(self.denied.insert(*token, at)),
            Occurrence::Token(TokenChange::Discarded(_) | TokenChange::Admitted(_)) => {}
            Occurrence::Cleared { dropped, .. } => {
                dropped.iter().for_each(|(firing, how)| self.drop_run(firing.run, *how, at));
            }
        }
    }

    fn note_execution(&mut self, change: &ExecutionChange, entry: &TimelineEntry) {
        let at = entry.at;
        match change {
            ExecutionChange::Created { retry_of, imports, .. } => {
                self.created_at = Some(at);
                self.retry_of = *retry_of;
                self.import(imports, entry.version);
            }
            ExecutionChange::Forked { parent, .. } => {
                self.created_at = Some(at);
                self.started_at = self.started_at.map(|_| at);
                self.retry_of = Some(*parent);
            }
            ExecutionChange::Started => self.started_at = Some(at),
            ExecutionChange::Held { by, reason } => {
                self.hold = Some(ExecutionHold { at, by: by.clone(), reason: reason.clone() });
            }
            ExecutionChange::Draining { failure } => {
                self.failure = failure.clone().map(|failure| (failure, at)).or(self.failure.take());
            }
            ExecutionChange::Ended { failure, .. } => {
                self.ended_at = Some(at);
                let decided = self.failure.take().map_or(at, |(_, decided)| decided);
                self.failure = failure.clone().map(|failure| (failure, decided));
            }
            ExecutionChange::Restarted { .. } => self.begin_anew(),
            ExecutionChange::Released { .. }
            | ExecutionChange::Paused(_)
            | ExecutionChange::Resumed
            | ExecutionChange::Compensating
            | ExecutionChange::Finalizing
            | ExecutionChange::NotCompensated
            | ExecutionChange::Patched { .. }
            | ExecutionChange::Bookkeeping => {}
        }
    }

    fn note_firing(&mut self, firing: &FiringRef, change: &FiringChange, entry: &TimelineEntry) {
        let (run, at, version) = (firing.run, entry.at, entry.version);
        match change {
            FiringChange::Fired { args } => {
                let args = args.as_ref().map(|args| Kept::new(version, 0, args));
                self.push(Firing { fired_at: Some(at), args, ..Firing::new(firing) });
            }
            FiringChange::Skipped(reason) => {
                let mut skipped = Firing::new(firing);
                skipped.end(End::Skipped(Some(*reason)), at, None);
                self.push(skipped);
            }
            FiringChange::Offered { attempt } | FiringChange::ChildStarted { attempt, .. } => {
                self.change(run, |firing| firing.begin(*attempt, at));
            }
            FiringChange::Delayed { .. } | FiringChange::LoopStarted { .. } => self.begin_unoffered(run, at),
            FiringChange::AwaitingManual { .. } => {
                self.asked.insert(run, at);
                self.begin_unoffered(run, at);
            }
            FiringChange::RetryScheduled { failure, .. } => {
                self.change(run, |firing| firing.fail(failure, at))
            }
            FiringChange::Done { output, times, metadata } => self.change(run, |firing| {
                firing.metadata.clone_from(metadata);
                firing.output = Some(Kept::new(version, 0, output));
                firing.end(End::Completed, at, times.as_ref());
            }),
            FiringChange::Failed { failure, handled, output, times, metadata } => {
                self.change(run, |firing| {
                    firing.fail(failure, at);
                    firing.metadata.clone_from(metadata);
                    firing.output = output.as_ref().map(|output| Kept::new(version, 0, output));
                    firing.end(End::Failed { handled: *handled }, at, times.as_ref());
                })
            }
            FiringChange::Dropped(how) => self.drop_run(run, *how, at),
            FiringChange::CompletedManually { fence, .. } => {
                self.manual.insert(firing.step, (run, *fence));
            }
            FiringChange::Waiting { .. }
            | FiringChange::Woken
            | FiringChange::Lost
            | FiringChange::Yielded { .. }
            | FiringChange::IterationStarted
            | FiringChange::IterationEnded
            | FiringChange::ChildReturned
            | FiringChange::AgentDecided
            | FiringChange::Routed { .. } => {}
        }
    }

    /// Work that begins without an offer.
    fn begin_unoffered(&mut self, run: RunId, at: Millis) {
        self.change(run, |firing| firing.begin(firing.attempts.max(1), at));
    }

    /// Completed steps of an earlier execution are the first firings of this one, in their order.
    fn import(&mut self, imports: &[(StepId, Arc<Value>)], version: u64) {
        let mut run = RunId::first(1);
        for (index, (step, output)) in imports.iter().enumerate() {
            let mut firing = Firing::imported(run, *step);
            firing.output = Some(Kept::new(version, index, output));
            firing.end = Some(End::Completed);
            self.push(firing);
            run = run.next();
        }
    }

    fn push(&mut self, mut firing: Firing) {
        let place = self.firings.last_key_value().map_or(0, |(last, _)| last + 1);
        match firing.role {
            Role::Iteration { of, .. } | Role::Hook { of } => {
                self.parts.entry(of).or_default().insert(place);
            }
            Role::Routed | Role::Final | Role::Tool { .. } => {
                let number = self.numbers.entry(firing.step).or_default();
                *number += 1;
                firing.number = *number;
                self.succeed_newest(firing.step);
            }
        }
        let run = firing.run;
        self.places.insert(run, place);
        // A firing may come with its end: skipped, or taken over from an earlier execution.
        let (end, output) = (firing.end.take(), firing.output.take());
        self.firings.insert(place, firing);
        self.hold_value(place, Slot::Args);
        self.change(run, |firing| (firing.end, firing.output) = (end, output));
    }

    fn change(&mut self, run: RunId, change: impl FnOnce(&mut Firing)) {
        let Some(place) = self.places.get(&run).copied() else { return };
        let Some(firing) = self.firings.get_mut(&place) else { return };
        let (had_ended, had_output) = (firing.end.is_some(), firing.output.is_some());
        change(firing);
        let (ends, gives) = (firing.end.is_some() && !had_ended, firing.output.is_some() && !had_output);
        let end = firing.end.filter(|_| firing.is_whole());
        if end == Some(End::Completed) {
            self.completed.insert(firing.step);
        }
        if matches!(end, Some(End::Completed | End::Skipped(_))) {
            self.settled.insert(firing.step);
        }
        if gives {
            self.hold_value(place, Slot::Output);
        }
        if ends {
            self.hold_ended(place);
        }
    }

    fn drop_run(&mut self, run: RunId, how: Gone, at: Millis) {
        let end = match how {
            Gone::Skipped => End::Skipped(None),
            Gone::Cancelled | Gone::Abandoned => End::Cancelled,
        };
        self.change(run, |firing| firing.end(end, at, None));
    }

    fn begin_anew(&mut self) {
        self.started_at = None;
        self.failure = None;
        self.firings.clear();
        self.places.clear();
        self.parts.clear();
        self.numbers.clear();
        self.failures.clear();
        self.hold_nothing();
        self.denied.clear();
        self.asked.clear();
        self.manual.clear();
        self.completed.clear();
        self.settled.clear();
    }
}
