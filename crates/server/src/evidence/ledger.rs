//! Folds what happened into evidence.

use super::{Actor, Category, Classified, Evidence, Outcome};
use crate::follow::{Happened, Subject};
use crate::walk::Teller;
use std::collections::BTreeMap;
use windlass_kernel::{
    Cleared, Event, ExecutionId, Failure, Gone, ManualNote, ManualOutcome, Millis, Outcome as Ended, RunId,
    Times,
};
use windlass_views::{execution_id, time};

/// The entries of one execution, record by record.
#[derive(Debug, Clone)]
pub struct Ledger {
    execution: ExecutionId,
    correlation: String,
    /// Whose records are being read: of what a retry took over, the execution before.
    running: ExecutionId,
    started_at: Option<Millis>,
    attempts: BTreeMap<RunId, Attempt>,
    count: u64,
    last: Option<String>,
}

/// The newest of a step-run.
#[derive(Debug, Clone, Copy)]
struct Attempt {
    number: u32,
    began_at: Millis,
}

/// JSON of an entry without what was said, roughly.
const ENTRY_BYTES: usize = 800;

impl Teller for Ledger {
    type Entry = Evidence;

    fn tell(&mut self, happened: &Happened) -> Vec<Evidence> {
        self.begin(happened);
        let entries = self.entries(happened);
        if let Some(run) = happened.ended_run() {
            self.attempts.remove(&run);
        }
        entries.into_iter().map(|entry| self.chain(entry)).collect()
    }

    fn bytes(entry: &Evidence) -> usize {
        let refs: usize = entry.evidence_refs.iter().map(String::len).sum();
        let said = entry.error.as_ref().map_or(0, |error| error.message.len());
        ENTRY_BYTES + refs + said + entry.notes.as_ref().map_or(0, String::len)
    }
}

impl Ledger {
    #[must_use]
    pub fn new(execution: ExecutionId, correlation: Option<&str>) -> Ledger {
        Ledger {
            execution,
            correlation: correlation.map_or_else(|| execution_id(execution), str::to_owned),
            running: execution,
            started_at: None,
            attempts: BTreeMap::new(),
            count: 0,
            last: None,
        }
    }

    fn begin(&mut self, happened: &Happened) {
        let at = happened.record.at;
        let mut attempt =
            |run: RunId, number: u32| self.attempts.insert(run, Attempt { number, began_at: at });
        match &happened.record.event {
            Event::Fired { run, .. } => drop(attempt(*run, 1)),
            Event::Offered { run, attempt: number, .. }
            | Event::ChildStarted { run, attempt: number, .. } => {
                attempt(*run, *number);
            }
            Event::Created(created) => self.running = created.create.id,
            Event::Forked(fork) => self.running = fork.id,
            Event::Started { .. } => self.started_at = Some(at),
            _ => {}
        }
    }

    fn entries(&mut self, happened: &Happened) -> Vec<Evidence> {
        let entry = match &happened.record.event {
            Event::Held { by, reason } => self.operator(happened, Outcome::Held, by).with_notes(reason),
            Event::Released { by } => self.operator(happened, Outcome::Released, by),
            Event::Patched { by, .. } => self.operator(happened, Outcome::Patched, by),
            Event::Restarted { .. } => self.system(happened, Outcome::Restarted, None),
            Event::Ended { outcome, failure } => self.end(happened, *outcome, failure.as_ref()),
            Event::Cleared(cleared) => return self.cleared(happened, cleared),
            _ => {
                return happened
                    .subject()
                    .and_then(|subject| self.step(happened, subject))
                    .into_iter()
                    .collect();
            }
        };
        vec![entry]
    }

    /// What a record says of a single step.
    fn step(&self, happened: &Happened, subject: &Subject) -> Option<Evidence> {
        let tell = |outcome, failure: Option<&Failure>, times: Option<&Times>| {
            self.action(happened, subject, outcome).failing(failure).timed(times)
        };
        let entry = match &happened.record.event {
            Event::RetryScheduled { failure, .. } => {
                tell(Outcome::Failed, Some(failure), None).not_terminal()
            }
            Event::Lost { .. } => tell(Outcome::Lost, None, None).not_terminal(),
            Event::CompletedManually { by, .. } => tell(manual(&by.outcome), None, None).by_person(by),
            Event::Done { times, .. } => tell(Outcome::Succeeded, None, times.as_ref()),
            Event::Failed { failure, times, .. } => tell(Outcome::Failed, Some(failure), times.as_ref()),
            Event::Skipped { .. } => tell(Outcome::Skipped, None, None),
            Event::Dropped { how, .. } => tell(gone(*how), None, None),
            _ => return None,
        };
        Some(entry)
    }

    /// What had not ended when the outcome was decided.
    fn cleared(&mut self, happened: &Happened, cleared: &Cleared) -> Vec<Evidence> {
        let of = |run: RunId| happened.subjects.iter().find(move |subject| subject.run == Some(run));
        let told = cleared.dropped.iter().filter_map(|(run, _, how)| {
            let entry = self.action(happened, of(*run)?, gone(*how));
            self.attempts.remove(run);
            Some(entry)
        });
        told.collect()
    }

    fn action(&self, happened: &Happened, subject: &Subject, outcome: Outcome) -> Evidence {
        let attempt = subject.run.and_then(|run| self.attempts.get(&run));
        let mut entry = self.blank(happened, Category::Action, outcome);
        entry.action_id = Some(subject.name.clone());
        entry.path.clone_from(&subject.path.0);
        entry.attempt = attempt.map(|attempt| attempt.number);
        entry.started_at_iso = attempt.map(|attempt| time(attempt.began_at));
        entry
    }

    fn operator(&self, happened: &Happened, outcome: Outcome, by: &str) -> Evidence {
        let entry = self.blank(happened, Category::OperatorSurface, outcome).not_terminal();
        Evidence { actor: Actor::user(by), ..entry }
    }

    fn system(&self, happened: &Happened, outcome: Outcome, failure: Option<&Failure>) -> Evidence {
        self.blank(happened, Category::System, outcome).not_terminal().failing(failure)
    }

    /// Who cancelled it is told by the failure.
    fn end(&self, happened: &Happened, outcome: Ended, failure: Option<&Failure>) -> Evidence {
        let entry = self.system(happened, ended(outcome), failure);
        let by = failure
            .filter(|_| outcome == Ended::Cancelled)
            .and_then(|failure| failure.details["by"].as_str());
        Evidence {
            terminal: true,
            started_at_iso: self.started_at.map(time),
            actor: by.map_or(Actor::System, Actor::user),
            ..entry
        }
    }

    fn blank(&self, happened: &Happened, category: Category, outcome: Outcome) -> Evidence {
        Evidence {
            schema_version: 1,
            evidence_id: String::new(),
            run_id: execution_id(self.running),
            action_id: None,
            path: Vec::new(),
            attempt: None,
            category,
            outcome,
            terminal: true,
            started_at_iso: None,
            ended_at_iso: time(happened.record.at),
            error: None,
            correlation_id: self.correlation.clone(),
            actor: Actor::System,
            summary: String::new(),
            notes: None,
            evidence_refs: Vec::new(),
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

    /// The lease knows better than the offer when the work began.
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

    /// The step's own end follows as an entry of its own.
    fn by_person(self, note: &ManualNote) -> Evidence {
        let notes = note.notes.as_deref().unwrap_or_default();
        let entry = self.not_terminal().with_notes(notes);
        let evidence_refs = note.evidence.clone();
        Evidence { category: Category::Approval, actor: Actor::user(&note.actor), evidence_refs, ..entry }
    }

    /// In words, without anything that came from outside but names of steps and codes of errors.
    fn summarised(&self) -> String {
        let what = self.action_id.as_deref().unwrap_or("the execution");
        let attempt = self.attempt.map(|attempt| format!(", attempt {attempt}")).unwrap_or_default();
        let code = self.error.as_ref().map(|error| format!(" ({})", error.code)).unwrap_or_default();
        format!("{what}{attempt}: {:?}{code}", self.outcome)
    }
}

fn manual(outcome: &ManualOutcome) -> Outcome {
    match outcome {
        ManualOutcome::Succeeded => Outcome::Succeeded,
        ManualOutcome::Failed => Outcome::Failed,
        ManualOutcome::Cancelled => Outcome::Cancelled,
    }
}

fn gone(how: Gone) -> Outcome {
    match how {
        Gone::Skipped => Outcome::Skipped,
        Gone::Cancelled | Gone::Abandoned => Outcome::Cancelled,
    }
}

fn ended(outcome: Ended) -> Outcome {
    match outcome {
        Ended::Completed => Outcome::Succeeded,
        Ended::Partial => Outcome::PartialSuccess,
        Ended::Failed => Outcome::Failed,
        Ended::Cancelled => Outcome::Cancelled,
    }
}
