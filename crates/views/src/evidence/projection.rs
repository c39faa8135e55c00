//! Derives evidence from a journal.

use super::{Actor, Category, Classified, Evidence, EvidenceOutcome, RULES_VERSION};
use crate::compensation::{CompensationFold, CompletedAction, hook_operation};
use crate::event_data::tries_of;
use crate::place::ErrorPlace;
use crate::projection::Projection;
use crate::timeline::{ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry};
use crate::wire::{execution_id, time};
use std::collections::BTreeSet;
use windlass_kernel::codes;
use windlass_kernel::net::{Finish, Join, Work};
use windlass_kernel::{
    ExecutionId, Failure, Gone, ManualNote, ManualOutcome, Millis, Net, NoteEffect, Outcome as Ended, Record,
    Role, RunId, StepId, Times, any_of,
};

/// Lists the evidence of one execution.
#[derive(Debug, Clone)]
pub struct EvidenceProjection {
    execution: ExecutionId,
    correlation: String,
    /// Execution whose records are being read: the earlier execution for records that a retry took over.
    running: ExecutionId,
    started_at: Option<Millis>,
    /// Steps that were reached, in nets whose joins reach every step or cancel it.
    reached: BTreeSet<StepId>,
    compensation: CompensationFold,
    count: u64,
    last: Option<String>,
}

/// JSON of an entry without its texts, roughly.
const ENTRY_BYTES: usize = 800;
/// JSON of an entry of a compensation's summary, roughly.
const UNDONE_BYTES: usize = 300;

impl Projection for EvidenceProjection {
    type Item = Evidence;

    fn project(&mut self, net: &Net, _: &Record, entry: &TimelineEntry) -> Vec<Evidence> {
        let at = entry.at;
        self.compensation.note(net, entry);
        let found = match &entry.occurrence {
            Occurrence::Execution(change) => self.execution_evidence(net, change, at),
            Occurrence::Firing(firing, change) => {
                self.note_reached(net, firing);
                let end = self.firing_evidence(net, firing, change, at);
                self.tries_evidence(net, firing, change, at).into_iter().chain(end).collect()
            }
            Occurrence::Token(_) => Vec::new(),
            // Firings that had not ended when the outcome was decided.
            Occurrence::Cleared { dropped, .. } => {
                dropped.iter().map(|(firing, how)| self.action(net, firing, gone(*how), at)).collect()
            }
        };
        found.into_iter().map(|entry| self.chain(entry)).collect()
    }

    fn bytes(entry: &Evidence) -> usize {
        let refs: usize = entry.evidence_refs.iter().map(String::len).sum();
        let said = entry.error.as_ref().map_or(0, |error| error.message.len());
        let undone = entry.compensation.as_ref().map_or(0, |summary| summary.entries.len() * UNDONE_BYTES);
        ENTRY_BYTES + refs + said + undone + entry.notes.as_ref().map_or(0, String::len)
    }
}

impl EvidenceProjection {
    #[must_use]
    pub fn new(execution: ExecutionId, correlation: Option<&str>) -> EvidenceProjection {
        EvidenceProjection {
            execution,
            correlation: correlation.map_or_else(|| execution_id(execution), str::to_owned),
            running: execution,
            started_at: None,
            reached: BTreeSet::new(),
            compensation: CompensationFold::default(),
            count: 0,
            last: None,
        }
    }

    fn execution_evidence(&mut self, net: &Net, change: &ExecutionChange, at: Millis) -> Vec<Evidence> {
        match change {
            ExecutionChange::Created { id, imports, .. } => {
                self.running = *id;
                self.reached.extend(imports.iter().map(|(step, _)| *step));
                Vec::new()
            }
            ExecutionChange::Forked { id, .. } => {
                self.running = *id;
                Vec::new()
            }
            ExecutionChange::Started => {
                self.started_at = Some(at);
                Vec::new()
            }
            ExecutionChange::Held { by, reason } => {
                vec![self.operator(EvidenceOutcome::Held, by, at).with_notes(reason)]
            }
            ExecutionChange::Released { by } => vec![self.operator(EvidenceOutcome::Released, by, at)],
            ExecutionChange::Patched { by, .. } => vec![self.operator(EvidenceOutcome::Patched, by, at)],
            ExecutionChange::Restarted { .. } => {
                self.reached.clear();
                vec![self.system(EvidenceOutcome::Restarted, None, at)]
            }
            ExecutionChange::Draining { outcome, .. } => match outcome {
                Ended::Failed | Ended::Cancelled => self.never_started(net, at),
                Ended::Completed | Ended::Partial => Vec::new(),
            },
            ExecutionChange::NotCompensated { runs } => self.not_run(net, runs, at),
            ExecutionChange::Ended { outcome, failure } => {
                let mut found = self.non_compensable(net, at);
                found.push(self.end(net, *outcome, failure.as_deref(), at));
                found
            }
            any_of![ExecutionChange: Paused Resumed Compensating Finalizing Bookkeeping] => Vec::new(),
        }
    }

    fn note_reached(&mut self, net: &Net, firing: &FiringRef) {
        if net.policy().join != Join::Each {
            self.reached.insert(firing.step);
        }
    }

    /// Returns evidence for steps that had not been reached when the outcome was decided, which cancels them. Steps of
    /// a loop's body, tools of agents and the final step are not a part of the flow, and an approval is evidence of
    /// its action.
    fn never_started(&self, net: &Net, at: Millis) -> Vec<Evidence> {
        if net.policy().join == Join::Each {
            return Vec::new();
        }
        let is_final = |id: StepId| net.policy().finish == Finish::Step(id);
        let left = net.steps().filter(|(id, step)| {
            step.region.is_none()
                && !step.on_demand
                && step.approves.is_none()
                && !is_final(*id)
                && !self.reached.contains(id)
        });
        let entry = |(_, step): (StepId, &windlass_kernel::net::Step)| {
            let entry = self.blank(Category::Action, EvidenceOutcome::Cancelled, at);
            Evidence { action_id: Some(step.name.clone()), ..entry }.with_notes("never started")
        };
        left.map(entry).collect()
    }

    fn not_run(&self, net: &Net, runs: &[RunId], at: Millis) -> Vec<Evidence> {
        let actions = runs.iter().filter_map(|run| self.compensation.action(*run));
        actions.map(|action| self.undone(net, action, EvidenceOutcome::NotRun, at)).collect()
    }

    fn non_compensable(&self, net: &Net, at: Millis) -> Vec<Evidence> {
        let actions = self.compensation.non_compensable();
        actions.map(|action| self.undone(net, action, EvidenceOutcome::NonCompensable, at)).collect()
    }

    /// Returns the entry of a completed action without an attempt to undo it.
    fn undone(&self, net: &Net, action: &CompletedAction, outcome: EvidenceOutcome, at: Millis) -> Evidence {
        let mut entry = self.blank(Category::Compensation, outcome, at);
        let step = net.step(action.step);
        entry.action_id = Some(step.name.clone());
        entry.path.clone_from(&action.path.0);
        entry.operation = hook_operation(step);
        entry
    }

    /// Returns evidence for failed tries of tasks that were followed by another try or task. The last try is the end
    /// of the step itself.
    fn tries_evidence(
        &self,
        net: &Net,
        firing: &FiringRef,
        change: &FiringChange,
        at: Millis,
    ) -> Vec<Evidence> {
        let mut tries = match change {
            FiringChange::Done { metadata, .. } | FiringChange::Failed { metadata, .. } => {
                tries_of(metadata.as_ref())
            }
            any_of![FiringChange: Fired Skipped Waiting Woken Delayed Offered Lost RetryScheduled Yielded
                AwaitingManual CompletedManually Noted Dropped LoopStarted IterationStarted
                IterationEnded ChildStarted ChildPaused ChildReturned AgentDecided Routed] => Vec::new(),
        };
        if matches!(change, FiringChange::Failed { .. }) {
            tries.pop();
        }
        let failed = tries.into_iter().filter_map(|tried| Some((tried.error?, tried.task, tried.number)));
        let entry = |(error, task, number): (Failure, String, u32)| {
            let entry = self.action(net, firing, EvidenceOutcome::Failed, at).failing_in(net, firing, &error);
            let entry = entry.not_terminal();
            entry.with_notes(&format!("try {number} of task {task}"))
        };
        failed.map(entry).collect()
    }

    fn firing_evidence(
        &self,
        net: &Net,
        firing: &FiringRef,
        change: &FiringChange,
        at: Millis,
    ) -> Option<Evidence> {
        let action = |outcome, failure: Option<&Failure>, times: Option<&Times>| {
            let entry = self.action(net, firing, outcome, at).timed(times);
            Some(match failure {
                Some(failure) => entry.failing_in(net, firing, failure),
                None => entry,
            })
        };
        if net.step(firing.step).approves.is_some() {
            return self.approval_evidence(net, firing, change, at);
        }
        match change {
            FiringChange::RetryScheduled { failure, .. } => {
                action(EvidenceOutcome::Failed, Some(failure), None).map(Evidence::not_terminal)
            }
            FiringChange::Lost => action(EvidenceOutcome::Lost, None, None).map(Evidence::not_terminal),
            // The attempt has ended; an approval attempts nothing.
            FiringChange::AwaitingManual { times, .. } => match net.step(firing.step).work {
                Work::Approval { .. } => None,
                any_of![Work: Pure Task Child Delay] => {
                    action(EvidenceOutcome::WaitingForManualCompletion, None, times.as_ref())
                        .map(Evidence::not_terminal)
                }
            },
            FiringChange::CompletedManually { note, .. } => {
                action(manual(&note.outcome), None, None).map(|entry| entry.by_person(note))
            }
            FiringChange::Noted { note } => {
                let (outcome, failure) = noted(&note.effect);
                action(outcome, failure.as_ref(), None).map(|entry| entry.by_person(note))
            }
            FiringChange::Done { times, .. } => action(EvidenceOutcome::Succeeded, None, times.as_ref()),
            FiringChange::Failed { failure, times, .. } => {
                action(EvidenceOutcome::Failed, Some(failure), times.as_ref())
            }
            FiringChange::Skipped(_) => action(EvidenceOutcome::Skipped, None, None),
            FiringChange::Dropped(how) => action(gone(*how), None, None),
            any_of![FiringChange: Fired Waiting Woken Delayed Offered Yielded LoopStarted
                IterationStarted IterationEnded ChildStarted ChildPaused ChildReturned AgentDecided
                Routed] => None,
        }
    }

    /// Returns the evidence of an approval before an action: it belongs to the action, and does not end it.
    fn approval_evidence(
        &self,
        net: &Net,
        firing: &FiringRef,
        change: &FiringChange,
        at: Millis,
    ) -> Option<Evidence> {
        let entry = |outcome| self.action(net, firing, outcome, at).not_terminal();
        match change {
            FiringChange::CompletedManually { note, .. } => {
                Some(entry(manual(&note.outcome)).by_person(note))
            }
            FiringChange::Noted { note } => {
                let (outcome, failure) = noted(&note.effect);
                Some(entry(outcome).failing(failure.as_ref()).by_person(note))
            }
            FiringChange::Failed { failure, .. } => {
                Some(entry(EvidenceOutcome::Failed).failing(Some(failure)))
            }
            FiringChange::Dropped(how) => Some(entry(gone(*how))),
            any_of![FiringChange: Fired Skipped Waiting Woken Delayed Offered Lost RetryScheduled Yielded
                AwaitingManual Done LoopStarted IterationStarted IterationEnded ChildStarted ChildPaused
                ChildReturned AgentDecided Routed] => None,
        }
    }

    fn action(&self, net: &Net, firing: &FiringRef, outcome: EvidenceOutcome, at: Millis) -> Evidence {
        let step = net.step(firing.step);
        let category = if step.approves.is_some() { Category::Approval } else { Category::Action };
        let mut entry = self.blank(category, outcome, at);
        entry.action_id = Some(net.step(net.shown_as(firing.step)).name.clone());
        entry.notes = step.tier.as_ref().map(|tier| format!("execution tier {tier}"));
        entry.path.clone_from(&firing.path.0);
        if let Role::Hook { of } = firing.role {
            entry.category = Category::Compensation;
            entry.operation = hook_operation(step);
            entry.idempotency_key = self.compensation.action(of).and_then(|action| action.key.clone());
        }
        entry.attempt = firing.attempt.map(|attempt| attempt.number);
        entry.started_at_iso = firing.attempt.map(|attempt| time(attempt.began_at));
        entry
    }

    fn operator(&self, outcome: EvidenceOutcome, by: &str, at: Millis) -> Evidence {
        let entry = self.blank(Category::OperatorSurface, outcome, at).not_terminal();
        Evidence { actor: Actor::user(by), ..entry }
    }

    fn system(&self, outcome: EvidenceOutcome, failure: Option<&Failure>, at: Millis) -> Evidence {
        self.blank(Category::System, outcome, at).not_terminal().failing(failure)
    }

    /// Returns the entry for the end. The failure of a cancelled execution names the user who cancelled it.
    fn end(&self, net: &Net, outcome: Ended, failure: Option<&Failure>, at: Millis) -> Evidence {
        let entry = self.system(ended(outcome), failure, at);
        let by = failure
            .filter(|_| outcome == Ended::Cancelled)
            .and_then(|failure| failure.details["by"].as_str());
        Evidence {
            terminal: true,
            started_at_iso: self.started_at.map(time),
            actor: by.map_or(Actor::System, Actor::user),
            compensation: Some(self.compensation.summary(net)).filter(|summary| !summary.entries.is_empty()),
            ..entry
        }
    }

    fn blank(&self, category: Category, outcome: EvidenceOutcome, at: Millis) -> Evidence {
        Evidence {
            schema_version: 1,
            rules_version: RULES_VERSION,
            evidence_id: String::new(),
            run_id: execution_id(self.running),
            action_id: None,
            path: Vec::new(),
            operation: None,
            idempotency_key: None,
            attempt: None,
            category,
            outcome,
            terminal: true,
            started_at_iso: None,
            ended_at_iso: time(at),
            completed_at_iso: None,
            error: None,
            correlation_id: self.correlation.clone(),
            actor: Actor::System,
            summary: String::new(),
            notes: None,
            evidence_refs: Vec::new(),
            compensation: None,
            previous_hash: None,
            hash_sha256: String::new(),
        }
    }

    fn chain(&mut self, mut entry: Evidence) -> Evidence {
        self.count += 1;
        entry.evidence_id = format!("{}.{}", execution_id(self.execution), self.count);
        entry.summary = entry.summarised();
        let entry = entry.chained(self.last.take());
        self.last = Some(entry.hash_sha256.clone());
        entry
    }
}

impl Evidence {
    fn failing(self, failure: Option<&Failure>) -> Evidence {
        Evidence { error: failure.map(Classified::of), ..self }
    }

    /// Adds the place of a failure, without the iteration, which is in the entry itself.
    fn failing_in(self, net: &Net, firing: &FiringRef, failure: &Failure) -> Evidence {
        let place = ErrorPlace { path: Vec::new(), ..ErrorPlace::of_record(net, &[], firing, failure) };
        Evidence { error: Some(Classified { place, ..Classified::of(failure) }), ..self }
    }

    /// Sets the times of the lease, whose begin of the work is more precise than that of the offer.
    fn timed(self, times: Option<&Times>) -> Evidence {
        let started = times.map(|times| time(times.started_at));
        Evidence { started_at_iso: started.or(self.started_at_iso.clone()), ..self }
    }

    fn not_terminal(self) -> Evidence {
        Evidence { terminal: false, ..self }
    }

    fn with_notes(self, notes: &str) -> Evidence {
        Evidence { notes: Some(notes.to_owned()).filter(|notes| !notes.is_empty()), ..self }
    }

    /// Sets the answer of a person. The step's own end follows as a separate entry.
    fn by_person(self, note: &ManualNote) -> Evidence {
        let notes = note.notes.as_deref().unwrap_or_default();
        let entry = self.not_terminal().with_notes(notes);
        let (evidence_refs, completed_at_iso) = (note.evidence.clone(), note.completed_at.map(time));
        let category = match note.effect {
            NoteEffect::Ends | NoteEffect::Counts => Category::Approval,
            NoteEffect::Refused { .. } => Category::PolicyViolation,
        };
        Evidence { category, actor: Actor::user(&note.actor), evidence_refs, completed_at_iso, ..entry }
    }

    /// Returns a sentence whose only parts from outside are names of steps and codes of errors.
    fn summarised(&self) -> String {
        let undo = if self.category == Category::Compensation { "compensation of " } else { "" };
        let what = self.action_id.as_deref().unwrap_or("the execution");
        let attempt = self.attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
        let code = self.error.as_ref().map(|error| format!(" ({})", error.code)).unwrap_or_default();
        format!("{undo}{what}{attempt}: {}{code}", self.outcome.name())
    }
}

fn manual(outcome: &ManualOutcome) -> EvidenceOutcome {
    match outcome {
        ManualOutcome::Succeeded => EvidenceOutcome::Succeeded,
        ManualOutcome::Failed => EvidenceOutcome::Failed,
        ManualOutcome::Cancelled => EvidenceOutcome::Cancelled,
    }
}

/// Returns the outcome of an answer after which the step still waits, and the violation that refused it.
fn noted(effect: &NoteEffect) -> (EvidenceOutcome, Option<Failure>) {
    match effect {
        NoteEffect::Ends | NoteEffect::Counts => (EvidenceOutcome::Counted, None),
        NoteEffect::Refused { constraint, message } => {
            let message = format!("{constraint}: {message}");
            (EvidenceOutcome::Refused, Some(Failure::new(codes::POLICY_VIOLATION, message)))
        }
    }
}

fn gone(how: Gone) -> EvidenceOutcome {
    match how {
        Gone::Skipped => EvidenceOutcome::Skipped,
        Gone::Cancelled | Gone::Abandoned => EvidenceOutcome::Cancelled,
    }
}

fn ended(outcome: Ended) -> EvidenceOutcome {
    match outcome {
        Ended::Completed => EvidenceOutcome::Succeeded,
        Ended::Partial => EvidenceOutcome::PartialSuccess,
        Ended::Failed => EvidenceOutcome::Failed,
        Ended::Cancelled => EvidenceOutcome::Cancelled,
    }
}
