//! The steps of an execution as a list: one row a step, in the order in which they began.

use crate::words::plain;
use std::collections::BTreeMap;
use windlass_kernel::{Event, Execution, Kind, Millis, Role, StepId, Times};
use windlass_server::follow::{Happened, LogLine, Subject};
use windlass_views::Leases;

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
    /// Of the newest firing.
    pub began_at: Option<Millis>,
    pub ended_at: Option<Millis>,
    pub firings: u32,
    /// Iterations that ended, and how many there will be.
    pub iterations: Option<(u32, Option<u32>)>,
    /// Firings that live.
    pub live: u32,
    /// The newest line of its log, or why it failed.
    pub last: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
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

    pub fn line(&mut self, line: &LogLine) {
        if let Some(row) = self.rows.iter_mut().rev().find(|row| row.name == line.step) {
            let text = plain(&line.text);
            if !text.trim().is_empty() {
                row.last = text;
            }
        }
    }

    pub fn record(&mut self, happened: &Happened) {
        let at = happened.record.at;
        match &happened.record.event {
            Event::Started { .. } => self.started_at = Some(at),
            Event::Restarted { .. } => *self = Board::default(),
            event => {
                for subject in &happened.subjects {
                    self.change(subject, event, at);
                }
            }
        }
    }

    /// An offer runs when a worker has it; until then it waits for a slot.
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

    fn change(&mut self, subject: &Subject, event: &Event, at: Millis) {
        let is_part = matches!(subject.role, Role::Iteration { .. });
        let row = self.row(subject);
        match event {
            // Parts are told by the row of their loop.
            Event::IterationEnded { .. } => {
                if let Some((ended, _)) = &mut row.iterations {
                    *ended += 1;
                }
            }
            _ if is_part => {}
            Event::Fired { .. } => row.fired(),
            Event::Skipped { .. } => {
                row.fired();
                row.ended(State::Skipped, at);
            }
            Event::LoopStarted { total, .. } => {
                row.iterations = Some((0, *total));
                row.began(at);
            }
            Event::Offered { .. } | Event::ChildStarted { .. } => row.began(at),
            Event::RetryScheduled { failure, .. } => {
                row.state = State::Retrying;
                row.last = plain(&failure.message);
            }
            Event::Waiting { .. } | Event::Delayed { .. } | Event::Yielded { .. } | Event::Lost { .. } => {
                row.state = State::Waiting;
            }
            Event::Denied { .. } | Event::AwaitingManual { .. } => row.state = State::Gated,
            Event::Done { times, .. } => {
                row.timed(times.as_ref());
                row.ended(State::Done, at);
            }
            Event::Failed { failure, times, .. } => {
                row.last = plain(&failure.message);
                row.timed(times.as_ref());
                row.ended(State::Failed, at);
            }
            Event::Dropped { .. } | Event::Cleared(_) => row.ended(State::Cancelled, at),
            _ => {}
        }
    }

    fn row(&mut self, subject: &Subject) -> &mut Row {
        let place = *self.places.entry(subject.step).or_insert_with(|| {
            self.rows.push(Row::new(subject.name.clone()));
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
        }
    }

    fn fired(&mut self) {
        self.firings += 1;
        self.live += 1;
        self.state = State::Waiting;
    }

    fn began(&mut self, at: Millis) {
        self.state = State::Running;
        self.began_at = Some(at);
        self.ended_at = None;
    }

    /// The lease knows better than the offer when the work began.
    fn timed(&mut self, times: Option<&Times>) {
        if let Some(times) = times {
            self.began_at = Some(times.started_at);
        }
    }

    /// A step that has several firings runs until the last of them has ended; a failure stays to be seen.
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
