//! The steps of an execution as a list: one row per step, in the order in which they began.

use crate::follow::LogLine;
use crate::format::{Question, plain};
use std::collections::BTreeMap;
use windlass_kernel::{Execution, Kind, Millis, Net, Role, StepId, Times, any_of};
use windlass_views::{
    ExecutionChange, FiringChange, Leases, Occurrence, TimelineEntry, TokenChange, execution_id, label, time,
    waiting_joins,
};

#[derive(Debug, Default)]
pub struct Board {
    rows: Vec<Row>,
    places: BTreeMap<StepId, usize>,
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
    pub fn coming(&self, net: &Net) -> Vec<Row> {
        let unfired = net.steps().filter(|(id, step)| !self.places.contains_key(id) && !step.on_demand);
        unfired.map(|(_, step)| Row { state: State::Coming, ..Row::new(step.name.clone()) }).collect()
    }

    pub fn line(&mut self, line: &LogLine) {
        if let Some(row) = self.rows.iter_mut().rev().find(|row| row.name == line.step) {
            let text = plain(&line.text);
            if !text.trim().is_empty() && !row.has_failed {
                row.last = text;
            }
        }
    }

    pub fn record(&mut self, net: &Net, entry: &TimelineEntry) {
        let at = entry.at;
        match &entry.occurrence {
            Occurrence::Execution(change) => self.execution_change(change, at),
            Occurrence::Firing(firing, change) => {
                let row = self.row(net, firing.step);
                let is_part = matches!(firing.role, Role::Iteration { .. });
                // Iterations are counted in the row of their loop.
                match (is_part, change) {
                    (false, _) | (true, FiringChange::IterationEnded) => row.change(change, at),
                    (true, FiringChange::Failed { failure, .. }) => {
                        row.fail_iteration(&label("", &firing.path.0), &failure.message);
                    }
                    (
                        true,
                        any_of![FiringChange: Fired Skipped Waiting Woken Delayed Offered Lost
                            RetryScheduled Yielded AwaitingManual CompletedManually Noted Done Dropped
                            LoopStarted IterationStarted ChildStarted ChildPaused ChildReturned
                            AgentDecided Routed],
                    ) => {}
                }
            }
            Occurrence::Token(TokenChange::Denied { at: Some(token), .. }) => {
                self.row(net, token.step).state = State::Gated;
            }
            Occurrence::Token(
                TokenChange::Denied { .. } | TokenChange::Discarded(_) | TokenChange::Admitted(_),
            ) => {}
            Occurrence::Token(TokenChange::Joined { at, .. }) => self.row(net, at.step).last.clear(),
            Occurrence::Cleared { dropped, .. } => {
                let whole =
                    dropped.iter().filter(|(firing, _)| !matches!(firing.role, Role::Iteration { .. }));
                whole.for_each(|(firing, _)| self.row(net, firing.step).ended(State::Cancelled, at));
            }
        }
    }

    fn execution_change(&mut self, change: &ExecutionChange, at: Millis) {
        match change {
            ExecutionChange::Started => self.started_at = Some(at),
            ExecutionChange::Restarted { .. } => *self = Board::default(),
            any_of![ExecutionChange: Created Forked Held Released Paused Resumed Draining Compensating
                Finalizing NotCompensated Ended Patched Bookkeeping] => {}
        }
    }

    /// Marks offers that a worker holds as running; other offers wait for a slot.
    pub fn taken(&mut self, state: &Execution<'_>, leases: &Leases) {
        let mut since: BTreeMap<StepId, Option<Millis>> = BTreeMap::new();
        for (id, run) in state.runs.iter().filter(|(_, run)| run.state.kind() == Kind::Offered) {
            let began = since.entry(run.step).or_default();
            *began = [*began, leases.get(id).map(|taken| taken.since)].into_iter().flatten().min();
        }
        for (step, began) in since {
            let Some(row) = self.places.get(&step).map(|place| &mut self.rows[*place]) else { continue };
            row.state = if began.is_some() { State::Running } else { State::Waiting };
            if row.iterations.is_none() {
                row.began_at = began.or(row.began_at);
            }
        }
    }

    /// Names the branches that join steps wait for.
    pub fn waiting_joins(&mut self, net: &Net, state: &Execution<'_>) {
        for join in waiting_joins(net, state) {
            let names: Vec<&str> = join.awaited.iter().map(|step| net.step(*step).name.as_str()).collect();
            let row = self.row(net, join.step);
            if row.live == 0 && !names.is_empty() {
                row.state = State::Waiting;
                row.last = format!("waits for {}", names.join(", "));
            }
        }
    }

    fn row(&mut self, net: &Net, step: StepId) -> &mut Row {
        let place = *self.places.entry(step).or_insert_with(|| {
            self.rows.push(Row::new(net.step(step).name.clone()));
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

    fn change(&mut self, change: &FiringChange, at: Millis) {
        match change {
            FiringChange::IterationEnded => {
                if let Some(iterations) = &mut self.iterations {
                    iterations.ended += 1;
                }
            }
            FiringChange::Fired { .. } => self.fired(),
            FiringChange::Skipped(_) => {
                self.fired();
                self.ended(State::Skipped, at);
            }
            FiringChange::LoopStarted { total } => {
                self.iterations = Some(Iterations { total: *total, ..Iterations::default() });
                self.began(at);
            }
            FiringChange::Offered { .. } | FiringChange::ChildStarted { .. } => self.began(at),
            FiringChange::RetryScheduled { failure, .. } => {
                self.state = State::Retrying;
                self.last = plain(&failure.message);
            }
            any_of![FiringChange: Waiting Delayed Yielded Lost] => self.state = State::Waiting,
            FiringChange::AwaitingManual { question, deadline, .. } => {
                self.state = State::Gated;
                let deadline = deadline.map(time);
                let question =
                    Question { message: &question["message"], approvers: &question["approvers"], deadline };
                self.last = question.to_string().trim_start_matches([':', ' ']).to_owned();
            }
            FiringChange::ChildPaused { paused: true, child } => {
                self.state = State::Gated;
                self.last = child.map(|child| format!("{} waits", execution_id(child))).unwrap_or_default();
            }
            FiringChange::ChildPaused { paused: false, .. } => {
                self.state = State::Running;
                self.last.clear();
            }
            FiringChange::Done { times, .. } => {
                self.timed(times.as_ref());
                self.ended(State::Done, at);
            }
            FiringChange::Failed { failure, times, .. } => {
                // The failure of an iteration, which is shown already, is more specific than that of its loop.
                if self.iterations.is_none_or(|iterations| iterations.failed == 0) {
                    self.last = plain(&failure.message);
                }
                self.has_failed = true;
                self.timed(times.as_ref());
                self.ended(State::Failed, at);
            }
            FiringChange::Dropped(_) => self.ended(State::Cancelled, at),
            any_of![FiringChange: Woken CompletedManually Noted IterationStarted ChildReturned AgentDecided
                Routed] => {}
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

    /// Sets the times of the lease, whose begin of the work is more precise than that of the offer.
    fn timed(&mut self, times: Option<&Times>) {
        if let Some(times) = times {
            self.began_at = Some(times.started_at);
        }
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
