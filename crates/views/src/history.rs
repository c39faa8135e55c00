//! The journal of an execution, folded into its firings, times, results and gates.

mod retention;

pub use retention::{FIRINGS_BYTES_MAX, VALUES_BYTES_MAX};

use crate::compensation::{Compensation, CompensationFold};
use crate::firing::{End, Firing};
use crate::kept::{HeldValue, ResultPlace};
use crate::timeline::{
    ExecutionChange, FiringChange, FiringRef, Occurrence, Timeline, TimelineEntry, TokenChange,
};
use retention::{Retention, Slot};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{
    Event, Execution, ExecutionId, Failure, Fence, Gone, Illegal, ManualNote, Millis, Net, NoteEffect,
    Outputs, Record, Role, RunId, StepId, TokenId, any_of,
};

#[derive(Debug, Clone, Default)]
pub struct History {
    timeline: Timeline,
    /// Results of the execution, by their place in the journal.
    outputs: Outputs<ResultPlace>,
    pub created_at: Option<Millis>,
    pub started_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    /// The worker that took the execution as a whole, of the newest generation.
    pub runner: Option<String>,
    /// The execution that this one retries (R12).
    pub retry_of: Option<ExecutionId>,
    /// Failure for which it ended or is about to end, and the time of that decision.
    pub failure: Option<(Box<Failure>, Millis)>,
    /// Firings in their order; those of the newest generation (R11).
    firings: BTreeMap<usize, Firing>,
    places: BTreeMap<RunId, usize>,
    /// Iterations of a loop and the hook of a firing, by the firing they belong to.
    parts: BTreeMap<RunId, BTreeSet<usize>>,
    numbers: BTreeMap<StepId, u32>,
    /// Failed firings that were evicted.
    failures: BTreeMap<StepId, u32>,
    retention: Retention,
    denied: BTreeMap<TokenId, Millis>,
    /// Times since which a person is asked, by firing.
    asked: BTreeMap<RunId, Millis>,
    /// The newest hold.
    hold: Option<ExecutionHold>,
    /// Number of tokens by step and arc.
    taken: BTreeMap<(StepId, u32), u32>,
    /// The last firing that a person ended, by step.
    manual: BTreeMap<StepId, ManualEnd>,
    /// Answers to firings that still wait, in their order.
    notes: BTreeMap<RunId, Vec<ManualNote>>,
    /// Users who answered, and the steps they answered for. Refused answers do not count.
    performed_duties: BTreeSet<(String, StepId)>,
    /// Steps that completed at least once, and steps that completed or were skipped at least once. A later firing
    /// changes nothing.
    completed: BTreeSet<StepId>,
    settled: BTreeSet<StepId>,
    compensation: CompensationFold,
}

/// The answer of a person that ended a firing.
#[derive(Debug, Clone, PartialEq)]
pub struct ManualEnd {
    pub run: RunId,
    pub fence: Fence,
    pub at: Millis,
    pub note: Box<ManualNote>,
}

/// A hold of the whole execution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionHold {
    pub at: Millis,
    pub by: String,
    pub reason: String,
}

/// Returns the newest hold among records of an execution.
#[must_use]
pub fn newest_hold<'r>(records: impl DoubleEndedIterator<Item = &'r Record>) -> Option<ExecutionHold> {
    records.rev().find_map(|record| {
        let Event::Held { by, reason } = &record.event else { return None };
        Some(ExecutionHold { at: record.at, by: by.clone(), reason: reason.clone() })
    })
}

/// A token that waits before a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingGate {
    pub step: StepId,
    pub since: Option<Millis>,
    pub deadline: Option<Millis>,
}

impl History {
    /// Folds a whole journal. Refuses one that does not belong to the net or is incomplete.
    pub fn of<'r>(net: &Net, journal: impl IntoIterator<Item = &'r Record>) -> Result<History, Illegal> {
        let mut history = History::default();
        for record in journal {
            history.fold(net, record)?;
        }
        Ok(history)
    }

    /// Folds the next record, and returns its entry. After an error the history must be dropped.
    pub fn fold(&mut self, net: &Net, record: &Record) -> Result<TimelineEntry, Illegal> {
        let entry = self.timeline.advance(net, record)?;
        let place = &mut |index, value: &_| ResultPlace::of(entry.version, index, value);
        self.outputs.note_with(record, place);
        if let Event::Assigned { worker, .. } = &record.event {
            self.runner = Some(worker.clone());
        }
        self.compensation.note(net, &entry);
        self.note(&entry);
        Ok(entry)
    }

    /// Returns the state after the last record.
    #[must_use]
    pub fn state(&self) -> &Execution<'static> {
        self.timeline.state()
    }

    /// Returns the number of records that were folded.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.timeline.version()
    }

    /// Results of the execution so far.
    #[must_use]
    pub fn outputs(&self) -> &Outputs<ResultPlace> {
        &self.outputs
    }

    /// Lists the firings that are not a part of another one, in order; those of the newest generation (R11). If there
    /// are very many, the list has the newest ones, and the newest of every step.
    pub fn whole(&self) -> impl DoubleEndedIterator<Item = &Firing> {
        self.firings.values().filter(|firing| firing.is_whole())
    }

    /// Returns the number of firings of a step, held or evicted.
    #[must_use]
    pub fn fired(&self, step: StepId) -> u32 {
        self.numbers.get(&step).copied().unwrap_or_default()
    }

    /// Returns the number of failed firings of a step that were evicted.
    #[must_use]
    pub fn evicted_failures(&self, step: StepId) -> u32 {
        self.failures.get(&step).copied().unwrap_or_default()
    }

    #[must_use]
    pub fn firing(&self, run: RunId) -> Option<&Firing> {
        self.places.get(&run).and_then(|place| self.firings.get(place))
    }

    /// Lists the firings that have not ended, in order. The cost does not grow with those that have.
    pub fn live(&self) -> impl Iterator<Item = &Firing> {
        self.state()
            .runs
            .iter()
            .filter_map(|(run, _)| self.firing(*run))
            .filter(|firing| firing.end.is_none())
    }

    /// Returns the number of steps that completed, and of steps that completed or were skipped.
    pub(super) fn progress(&self) -> (usize, usize) {
        (self.completed.len(), self.settled.len())
    }

    /// Removes a firing that has ended, for a reader that reports each end once.
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

    /// Returns when a gate denied a token.
    pub(crate) fn denied_at(&self, token: TokenId) -> Option<Millis> {
        self.denied.get(&token).copied()
    }

    /// Lists the arcs that carried tokens, by step and place, with the number of tokens.
    pub fn taken_arcs(&self) -> impl Iterator<Item = (StepId, u32, u32)> {
        self.taken.iter().map(|((step, arc), count)| (*step, *arc, *count))
    }

    #[must_use]
    pub fn gates(&self) -> Vec<WaitingGate> {
        let gates = self.state().gated.iter().map(|((step, token), gate)| WaitingGate {
            step: *step,
            since: self.denied.get(token).copied(),
            deadline: gate.deadline,
        });
        gates.collect()
    }

    /// Returns the answer that ended the last firing of a step that a person ended.
    #[must_use]
    pub fn last_manual_end(&self, step: StepId) -> Option<&ManualEnd> {
        self.manual.get(&step)
    }

    /// Returns the answers to a firing that still waits for a person: those that were counted, and those that a policy
    /// refused.
    #[must_use]
    pub fn notes(&self, run: RunId) -> &[ManualNote] {
        self.notes.get(&run).map_or(&[], Vec::as_slice)
    }

    /// Lists the users who answered in this execution, and the steps they answered for.
    pub fn performed_duties(&self) -> impl Iterator<Item = (&str, StepId)> {
        self.performed_duties.iter().map(|(user, step)| (user.as_str(), *step))
    }

    /// Returns the newest hold, which may have been released.
    #[must_use]
    pub fn hold(&self) -> Option<&ExecutionHold> {
        self.hold.as_ref()
    }

    /// Returns when a person was asked about a firing.
    #[must_use]
    pub fn asked_at(&self, run: RunId) -> Option<Millis> {
        self.asked.get(&run).copied()
    }

    /// Lists the iterations of a loop, in order.
    pub fn iterations(&self, of: RunId) -> impl DoubleEndedIterator<Item = &Firing> {
        self.parts_of(of).filter(|firing| matches!(firing.role, Role::Iteration { .. }))
    }

    /// Returns the compensation of a firing.
    #[must_use]
    pub fn hook(&self, of: RunId) -> Option<&Firing> {
        self.parts_of(of).find(|firing| matches!(firing.role, Role::Hook { .. }))
    }

    /// Returns the summary of the execution's compensation.
    #[must_use]
    pub fn compensation(&self, net: &Net) -> Compensation {
        self.compensation.summary(net)
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
            Occurrence::Token(
                TokenChange::Discarded(_) | TokenChange::Admitted(_) | TokenChange::Joined { .. },
            ) => {}
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
            ExecutionChange::Draining { failure, .. } => {
                self.failure = failure.clone().map(|failure| (failure, at)).or(self.failure.take());
            }
            ExecutionChange::Ended { failure, .. } => {
                self.ended_at = Some(at);
                let decided = self.failure.take().map_or(at, |(_, decided)| decided);
                self.failure = failure.clone().map(|failure| (failure, decided));
            }
            ExecutionChange::Restarted { .. } => self.reset(),
            any_of![ExecutionChange: Released Paused Resumed Compensating Finalizing NotCompensated
                Patched Bookkeeping] => {}
        }
    }

    fn note_firing(&mut self, firing: &FiringRef, change: &FiringChange, entry: &TimelineEntry) {
        let (run, at, version) = (firing.run, entry.at, entry.version);
        match change {
            FiringChange::Fired { args } => {
                let args = args.as_ref().map(|args| HeldValue::new(version, 0, args));
                self.push(Firing { fired_at: Some(at), args, ..Firing::new(firing) });
            }
            FiringChange::Skipped(reason) => {
                let mut skipped = Firing::new(firing);
                skipped.end(End::Skipped(Some(*reason)), at, None);
                self.push(skipped);
            }
            FiringChange::Offered { attempt } => self.change(run, |firing| firing.begin(*attempt, at)),
            FiringChange::ChildStarted { attempt, child } => self.change(run, |firing| {
                firing.child = Some(*child);
                firing.begin(*attempt, at);
            }),
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
                firing.output = Some(HeldValue::new(version, 0, output));
                firing.end(End::Completed, at, times.as_ref());
            }),
            FiringChange::Failed { failure, handled, deferred, output, times, metadata } => {
                // A failure that is left to the loop around is reported with the failure of that loop.
                let handled = *handled || *deferred;
                self.change(run, |firing| {
                    firing.fail(failure, at);
                    firing.metadata.clone_from(metadata);
                    firing.output = output.as_ref().map(|output| HeldValue::new(version, 0, output));
                    firing.end(End::Failed { handled }, at, times.as_ref());
                })
            }
            FiringChange::Dropped(how) => self.drop_run(run, *how, at),
            FiringChange::CompletedManually { fence, note } => {
                self.performed_duties.insert((note.actor.clone(), firing.step));
                let end = ManualEnd { run, fence: *fence, at, note: note.clone() };
                self.manual.insert(firing.step, end);
            }
            FiringChange::Noted { note } => {
                if note.effect == NoteEffect::Counts {
                    self.performed_duties.insert((note.actor.clone(), firing.step));
                }
                self.notes.entry(run).or_default().push((**note).clone());
            }
            FiringChange::Routed { targets } => {
                for (arc, _) in targets {
                    *self.taken.entry((firing.step, *arc)).or_default() += 1;
                }
            }
            any_of![FiringChange: Waiting Woken Lost Yielded IterationStarted IterationEnded
                ChildPaused ChildReturned AgentDecided] => {}
        }
    }

    /// Begins work without an offer.
    fn begin_unoffered(&mut self, run: RunId, at: Millis) {
        self.change(run, |firing| firing.begin(firing.attempts.max(1), at));
    }

    /// Adds completed steps of an earlier execution as the first firings of this one, in their order.
    fn import(&mut self, imports: &[(StepId, Arc<Value>)], version: u64) {
        let mut run = RunId::first(1);
        for (index, (step, output)) in imports.iter().enumerate() {
            let mut firing = Firing::imported(run, *step);
            firing.output = Some(HeldValue::new(version, index, output));
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
                self.replace_newest(firing.step);
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
        let (ends, has_output) = (firing.end.is_some() && !had_ended, firing.output.is_some() && !had_output);
        let end = firing.end.filter(|_| firing.is_whole());
        if end == Some(End::Completed) {
            self.completed.insert(firing.step);
        }
        if matches!(end, Some(End::Completed | End::Skipped(_))) {
            self.settled.insert(firing.step);
        }
        if has_output {
            self.hold_value(place, Slot::Output);
        }
        if ends {
            self.notes.remove(&run);
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

    fn reset(&mut self) {
        self.started_at = None;
        self.runner = None;
        self.failure = None;
        self.firings.clear();
        self.places.clear();
        self.parts.clear();
        self.numbers.clear();
        self.failures.clear();
        self.release_all();
        self.denied.clear();
        self.asked.clear();
        self.taken.clear();
        self.manual.clear();
        self.notes.clear();
        self.performed_duties.clear();
        self.completed.clear();
        self.settled.clear();
    }
}
