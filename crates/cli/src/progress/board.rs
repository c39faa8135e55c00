//! The steps of an execution as a list: one row per step, in the order in which they began.

use crate::follow::LogLine;
use crate::format::{Question, plain};
use std::collections::BTreeMap;
use windlass_kernel::{Millis, any_of};
use windlass_views::{
    FiringRole, JoinProgress, OfferedStep, ProgressChange, ProgressEntry, ProgressFiring,
    ProgressFiringChange, ProgressStep, ProgressTimes, label, time,
};

#[derive(Debug, Default)]
pub struct Board {
    rows: Vec<Row>,
    places: BTreeMap<String, usize>,
    pub started_at: Option<Millis>,
}

#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub state: State,
    /// State of the newest firing.
    pub began_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub firings: u32,
    pub iterations: Option<Iterations>,
    /// Number of live firings.
    pub live: u32,
    /// Newest line of its log, or the reason of its failure.
    pub last: String,
    /// Whether `last` is a failure, which a line of a log does not replace.
    pub has_failed: bool,
}

/// Iterations of the newest firing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Iterations {
    pub ended: u32,
    pub failed: u32,
    /// Total number of iterations; None while it is not known.
    pub total: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The step has not fired.
    Coming,
    Waiting,
    Gated,
    Running,
    Retrying,
    Done,
    Failed,
    Skipped,
    Cancelled,
}

impl Board {
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Lists rows for the steps that have not fired, in the order of the definition.
    pub fn coming(&self, steps: &[ProgressStep]) -> Vec<Row> {
        let unfired = steps.iter().filter(|step| !self.places.contains_key(&step.name) && !step.on_demand);
        unfired.map(|step| Row { state: State::Coming, ..Row::new(step.name.clone()) }).collect()
    }

    pub fn line(&mut self, line: &LogLine) {
        if let Some(row) = self.rows.iter_mut().rev().find(|row| row.name == line.step) {
            let text = plain(&line.text);
            if !text.trim().is_empty() && !row.has_failed {
                row.last = text;
            }
        }
    }

    pub fn entry(&mut self, entry: &ProgressEntry) {
        let at = entry.timestamp;
        match &entry.change {
            ProgressChange::Started => self.started_at = Some(at),
            ProgressChange::Restarted { .. } => *self = Board::default(),
            ProgressChange::Firing { firing, change } => self.firing(firing, change, at),
            ProgressChange::Gated { step, .. } => self.row(step).state = State::Gated,
            ProgressChange::Joined { step, .. } => self.row(step).last.clear(),
            ProgressChange::GivenUp { firings } => {
                let whole = firings.iter().filter(|firing| firing.role != FiringRole::Iteration);
                whole.for_each(|firing| self.row(&firing.step).ended(State::Cancelled, at));
            }
            any_of![ProgressChange: TakenOver Paused Held Released ContextChanged Ended] => {}
        }
    }

    fn firing(&mut self, firing: &ProgressFiring, change: &ProgressFiringChange, at: Millis) {
        let row = self.row(&firing.step);
        // Iterations are counted in the row of their loop.
        match (firing.role, change) {
            (FiringRole::Whole | FiringRole::Compensation, _)
            | (FiringRole::Iteration, ProgressFiringChange::IterationEnded) => row.change(change, at),
            (FiringRole::Iteration, ProgressFiringChange::Failed { failure, .. }) => {
                row.fail_iteration(&label("", &firing.path), &failure.message);
            }
            (
                FiringRole::Iteration,
                any_of![ProgressFiringChange: Fired Skipped Queued Waiting Lost RetryScheduled Yielded
                    AwaitingPerson LoopStarted ChildStarted ChildPaused ChildContinued Done Cancelled],
            ) => {}
        }
    }

    /// Marks steps whose work a worker holds as running; other offered work waits for a slot.
    pub fn offered(&mut self, offered: &[OfferedStep]) {
        for OfferedStep { step, running_since } in offered {
            let Some(row) = self.places.get(step).map(|place| &mut self.rows[*place]) else { continue };
            row.state = if running_since.is_some() { State::Running } else { State::Waiting };
            if row.iterations.is_none() {
                row.began_at = running_since.or(row.began_at);
            }
        }
    }

    /// Names the branches that join steps wait for.
    pub fn waiting_joins(&mut self, joins: &[JoinProgress]) {
        for JoinProgress { step, awaited } in joins {
            let row = self.row(step);
            if row.live == 0 && !awaited.is_empty() {
                row.state = State::Waiting;
                row.last = format!("waits for {}", awaited.join(", "));
            }
        }
    }

    fn row(&mut self, step: &str) -> &mut Row {
        let place = *self.places.entry(step.to_owned()).or_insert_with(|| {
            self.rows.push(Row::new(step.to_owned()));
            self.rows.len() - 1
        });
        &mut self.rows[place]
    }
}

impl Row {
    pub fn new(name: String) -> Row {
        Row {
            name,
            state: State::Waiting,
            began_at: None,
            ended_at: None,
            firings: 0,
            iterations: None,
            live: 0,
            last: String::new(),
            has_failed: false,
        }
    }

    fn change(&mut self, change: &ProgressFiringChange, at: Millis) {
        match change {
            ProgressFiringChange::IterationEnded => {
                if let Some(iterations) = &mut self.iterations {
                    iterations.ended += 1;
                }
            }
            ProgressFiringChange::Fired => self.fired(),
            ProgressFiringChange::Skipped => {
                self.fired();
                self.ended(State::Skipped, at);
            }
            ProgressFiringChange::LoopStarted { total } => {
                self.iterations = Some(Iterations { total: *total, ..Iterations::default() });
                self.began(at);
            }
            ProgressFiringChange::Queued { .. } | ProgressFiringChange::ChildStarted { .. } => self.began(at),
            ProgressFiringChange::RetryScheduled { failure, .. } => {
                self.state = State::Retrying;
                self.last = plain(&failure.message);
            }
            any_of![ProgressFiringChange: Waiting Yielded Lost] => self.state = State::Waiting,
            ProgressFiringChange::AwaitingPerson { message, approvers, deadline } => {
                self.state = State::Gated;
                let deadline = deadline.map(time);
                let question = Question { message: message.as_deref(), approvers, deadline };
                self.last = question.to_string().trim_start_matches([':', ' ']).to_owned();
            }
            ProgressFiringChange::ChildPaused { child_id } => {
                self.state = State::Gated;
                self.last = child_id.as_ref().map(|child| format!("{child} waits")).unwrap_or_default();
            }
            ProgressFiringChange::ChildContinued => {
                self.state = State::Running;
                self.last.clear();
            }
            ProgressFiringChange::Done { times } => {
                self.timed(*times);
                self.ended(State::Done, at);
            }
            ProgressFiringChange::Failed { failure, times, .. } => {
                // The failure of an iteration, which is shown already, is more specific than that of its loop.
                if self.iterations.is_none_or(|iterations| iterations.failed == 0) {
                    self.last = plain(&failure.message);
                }
                self.has_failed = true;
                self.timed(*times);
                self.ended(State::Failed, at);
            }
            ProgressFiringChange::Cancelled => self.ended(State::Cancelled, at),
        }
    }

    /// Keeps the newest failure visible while the other iterations run.
    fn fail_iteration(&mut self, index: &str, message: &str) {
        if let Some(iterations) = &mut self.iterations {
            iterations.failed += 1;
        }
        self.last = format!("{index} {}", plain(message));
        self.has_failed = true;
    }

    fn fired(&mut self) {
        self.firings += 1;
        self.has_failed = false;
        self.live += 1;
        self.state = State::Waiting;
    }

    fn began(&mut self, at: Millis) {
        self.state = State::Running;
        self.began_at = Some(at);
        self.ended_at = None;
    }

    /// Sets the begin of the work at its worker, which is more precise than that of the offer.
    fn timed(&mut self, times: ProgressTimes) {
        self.began_at = times.started_at.or(self.began_at);
    }

    /// Ends a firing. A step with several firings runs until the last of them has ended; a failure stays visible.
    fn ended(&mut self, state: State, at: Millis) {
        self.live = self.live.saturating_sub(1);
        self.ended_at = Some(at);
        self.state = match (self.live, self.state) {
            (1.., running) => running,
            (0, State::Failed) => State::Failed,
            (0, _) => state,
        };
    }
}
