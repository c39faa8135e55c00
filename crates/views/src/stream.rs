//! Messages of the workflow document, made from the records of a journal, its log lines and the leases of workers. Streams
//! and webhooks send the same messages: they are a function of what is stored, so a subscriber that reconnects misses none.

mod message;

pub use message::{Message, MessageBody, position_before};

use crate::entry::{NodeLabel, retry_count};
use crate::history::History;
use crate::large::shared;
use crate::place::{CodePlace, ErrorPlace};
use crate::response::{LeaseInfo, Leases, progress, status};
use crate::shapes::Progress;
use crate::timeline::{ExecutionChange, FiringChange, FiringRef, Occurrence, TimelineEntry};
use message::sequence;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{Event, Failure, Illegal, Millis, Net, Record, RunId, StepId, Times, any_of};
use windlass_protocol::Line;

/// Unhandled failures whose places are held until the end of the execution: as many as the kernel's notes.
const FAILURES_HELD_MAX: usize = 16;

/// Builds the messages of one execution, for one subscriber. It holds what is live, and no results of nodes.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    net: Arc<Net>,
    /// Positions of the definition's code.
    code: Arc<[CodePlace]>,
    history: History,
    /// The status that was reported last.
    status: Option<&'static str>,
    /// Percentage and completed nodes that were reported last.
    progress: Option<(usize, usize)>,
    /// Starts of the live firings.
    starts: BTreeMap<RunId, Start>,
    /// The first unhandled failures, of which one may end the execution.
    failed: Vec<(StepId, String, ErrorPlace)>,
    /// The highest `newer_than` that a message of the rows so far has, or could have.
    newest: u64,
}

/// Start of offered work. The work begins when a worker reports it, and no record has that time. The message has the
/// number of the row that offered the work, which is the same for every subscriber.
#[derive(Debug, Clone, Copy)]
struct Start {
    step: StepId,
    attempt: u32,
    /// None if an earlier execution offered it. It is numbered when it is reported or offered again.
    sequence: Option<u64>,
    at: Millis,
    /// Whether it was passed to a worker or another execution; before that it was only fired.
    offered: bool,
    reported: Reported,
}

/// Whether a start is reported. A lease reports it to one subscriber, a record to all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    No,
    ByLease,
    ByRecord,
}

/// Messages of one row, numbered in their order.
struct Row {
    numbers: std::ops::RangeFrom<u64>,
    position: i64,
    messages: Vec<Message>,
    /// Whether the execution ends in this row: no subscriber can have seen the states in between.
    ends: bool,
    newest: u64,
}

impl Row {
    fn number(&mut self) -> u64 {
        sequence(self.position, self.numbers.next().unwrap_or(u64::MAX))
    }

    fn push(&mut self, at: Millis, body: MessageBody) {
        let sequence = self.message_number();
        self.messages.push(Message { sequence, newer_than: sequence - 1, at, body });
    }

    /// Returns the number of a message that is pushed now, or was sent to some subscribers before.
    fn message_number(&mut self) -> u64 {
        let number = self.number();
        self.newest = number - 1;
        number
    }
}

impl MessageBuilder {
    #[must_use]
    pub fn new(net: Arc<Net>, code: Arc<[CodePlace]>) -> MessageBuilder {
        let (history, starts, failed) = (History::default(), BTreeMap::new(), Vec::new());
        MessageBuilder { net, code, history, status: None, progress: None, starts, failed, newest: 0 }
    }

    #[must_use]
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }

    #[must_use]
    pub fn history(&self) -> &History {
        &self.history
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.history.state().phase().is_ended()
    }

    /// Returns the highest number that a message of the rows so far has or could have. A subscriber that has seen a
    /// message with a higher number needs none of them.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Returns the builder for another subscriber that continues here. It has not seen the starts that leases reported.
    #[must_use]
    pub fn for_another(&self) -> MessageBuilder {
        let mut other = self.clone();
        for start in other.starts.values_mut().filter(|start| start.reported == Reported::ByLease) {
            start.reported = Reported::No;
        }
        other
    }

    /// Returns the messages of the next row of the journal.
    pub fn row(&mut self, position: i64, records: &[Record]) -> Result<Vec<Message>, Illegal> {
        let ends = records.iter().any(|record| matches!(record.event, Event::Ended { .. }));
        let mut row = Row { numbers: 1.., position, messages: Vec::new(), ends, newest: self.newest };
        for record in records {
            let entry = self.history.fold(&self.net, record)?;
            self.add_record(&mut row, &entry);
        }
        if let Some(last) = records.last() {
            self.add_progress(&mut row, last.at);
        }
        self.newest = row.newest;
        Ok(row.messages)
    }

    /// Returns the messages of a chunk of the log of one step.
    #[must_use]
    pub fn log(position: i64, step: &str, lines: Vec<Line>) -> Vec<Message> {
        let messages = lines.into_iter().zip(1..).map(|(line, index)| {
            let sequence = sequence(position, index);
            let (level, node) = (line.level().name(), step.to_owned());
            let body = MessageBody::Log { level, node, text: line.text };
            Message { sequence, newer_than: sequence - 1, at: Millis(line.at), body }
        });
        messages.collect()
    }

    /// Returns a message for each start that the leases report for the first time.
    pub fn leased(&mut self, leases: &Leases) -> Vec<Message> {
        let MessageBuilder { net, starts, .. } = self;
        let begun = leases.iter().filter_map(|(run, at)| {
            let start = starts.get_mut(run).filter(|start| start.reported == Reported::No)?;
            let sequence = start.sequence?;
            start.reported = Reported::ByLease;
            // A subscriber that connects now may not have seen it, even if its last message is newer.
            Some(Message { sequence, newer_than: u64::MAX, at: at.since, body: started(net, start) })
        });
        begun.collect()
    }

    fn add_record(&mut self, row: &mut Row, entry: &TimelineEntry) {
        let (at, began) =
            (entry.at, matches!(entry.occurrence, Occurrence::Execution(ExecutionChange::Started)));
        self.add_status(row, at, began);
        match &entry.occurrence {
            Occurrence::Execution(change) => self.add_execution_change(row, change, at),
            Occurrence::Firing(firing, change) => self.add_firing_change(row, firing, change, at),
            Occurrence::Token(_) => {}
            Occurrence::Cleared { dropped, .. } => {
                dropped.iter().for_each(|(firing, _)| self.forget(firing.run));
            }
        }
    }

    fn add_execution_change(&mut self, row: &mut Row, change: &ExecutionChange, at: Millis) {
        match change {
            ExecutionChange::Forked { .. } => self.restart_numbers(row, at),
            ExecutionChange::Restarted { .. } => {
                self.starts.clear();
                self.failed.clear();
            }
            ExecutionChange::Ended { failure, .. } => self.add_end(row, failure.as_deref(), at),
            any_of![ExecutionChange: Created Started Held Released Paused Resumed Draining Compensating
                Finalizing NotCompensated Patched Bookkeeping] => {}
        }
    }

    fn add_firing_change(&mut self, row: &mut Row, firing: &FiringRef, change: &FiringChange, at: Millis) {
        let run = firing.run;
        match change {
            FiringChange::Fired { .. } => self.begin(row, firing, (1, false), at),
            FiringChange::Offered { attempt } => self.begin(row, firing, (*attempt, true), at),
            FiringChange::ChildStarted { attempt, .. } => {
                self.begin(row, firing, (*attempt, true), at);
                self.add_start(row, run, None);
            }
            FiringChange::Delayed { .. } | FiringChange::LoopStarted { .. } => self.add_start(row, run, None),
            FiringChange::AwaitingManual { times, .. } => self.add_start(row, run, times.as_ref()),
            FiringChange::RetryScheduled { failure, .. } => {
                self.add_start(row, run, None);
                self.add_failure(row, firing, failure, at, false);
            }
            FiringChange::Done { times, .. } => self.add_done(row, run, times.as_ref(), at),
            FiringChange::Failed { failure, times, handled, .. } => {
                self.add_start(row, run, times.as_ref());
                self.add_failure(row, firing, failure, at, true);
                if !handled {
                    self.note_failure(firing, failure);
                }
                self.forget(run);
            }
            FiringChange::Dropped(_) | FiringChange::Skipped(_) => self.forget(run),
            any_of![FiringChange: Waiting Woken Lost Yielded CompletedManually Noted IterationStarted
                IterationEnded ChildPaused ChildReturned AgentDecided Routed] => {}
        }
    }

    fn forget(&mut self, run: RunId) {
        self.starts.remove(&run);
        self.history.forget(run);
    }

    /// Notes that an attempt begins; work that only continues has begun before. A part of a firing is not a node.
    fn begin(&mut self, row: &mut Row, firing: &FiringRef, (attempt, offered): (u32, bool), at: Millis) {
        if !firing.is_whole() {
            return;
        }
        // The number is used in any case, so that numbers do not depend on what a lease reported.
        let sequence = Some(row.number());
        if self.starts.get(&firing.run).is_some_and(|start| start.offered && start.attempt >= attempt) {
            return;
        }
        let (step, reported) = (firing.step, Reported::No);
        self.starts.insert(firing.run, Start { step, attempt, sequence, at, offered, reported });
    }

    fn add_start(&mut self, row: &mut Row, run: RunId, times: Option<&Times>) {
        let Some(start) = self.starts.get_mut(&run) else { return };
        let number = row.message_number();
        if start.reported == Reported::No {
            let at = times.map_or(start.at, |times| times.started_at);
            let (sequence, body) = (start.sequence.unwrap_or(number), started(&self.net, start));
            row.messages.push(Message { sequence, newer_than: number - 1, at, body });
        }
        start.reported = Reported::ByRecord;
    }

    fn add_done(&mut self, row: &mut Row, run: RunId, times: Option<&Times>, at: Millis) {
        self.add_start(row, run, times);
        if let Some(firing) = self.history.firing(run).filter(|firing| firing.is_whole()) {
            let node = NodeLabel::of(self.net.step(firing.step));
            let execution = self.history.state().head.id;
            // It has just ended, so its value is in memory.
            let output = firing.output.as_ref().and_then(|output| output.value.as_ref());
            let output = output.map(|output| shared(execution, output));
            let duration_ms = firing.duration_ms();
            row.push(at, MessageBody::NodeCompleted { node, duration_ms, output });
        }
        self.forget(run);
    }

    fn add_failure(&mut self, row: &mut Row, of: &FiringRef, failure: &Failure, at: Millis, last: bool) {
        let Some(firing) = self.history.firing(of.run).filter(|firing| firing.is_whole()) else { return };
        let step = self.net.step(firing.step);
        let body = MessageBody::NodeFailed {
            node: NodeLabel::of(step),
            failure: failure.clone(),
            place: ErrorPlace::of_record(&self.net, &self.code, of, failure),
            retry_count: retry_count(firing),
            retries_max: step.retry.attempts_max.saturating_sub(1),
            last,
        };
        row.push(at, body);
    }

    /// Remembers where an unhandled failure was, for the end of the execution.
    fn note_failure(&mut self, firing: &FiringRef, failure: &Failure) {
        if self.failed.len() < FAILURES_HELD_MAX {
            let place = ErrorPlace::of_record(&self.net, &self.code, firing, failure);
            self.failed.push((firing.step, failure.message.clone(), place));
        }
    }

    /// Returns the place of the failure that ends the execution, if it is one of a step.
    fn place_of_end(&self, failure: &Failure) -> ErrorPlace {
        let step = failure.facts.step.as_deref().and_then(|step| self.net.find(step));
        let is_it = |(of, message, _): &&(StepId, String, ErrorPlace)| {
            Some(*of) == step && *message == failure.message
        };
        self.failed.iter().find(is_it).map(|(_, _, place)| place.clone()).unwrap_or_default()
    }

    /// Removes the messages of an earlier execution, which are neither reported nor numbered again. Its open work
    /// begins anew.
    fn restart_numbers(&mut self, row: &mut Row, at: Millis) {
        row.messages.clear();
        (row.numbers, row.newest) = (1.., 0);
        self.status = None;
        for start in self.starts.values_mut() {
            *start = Start { sequence: None, offered: false, reported: Reported::No, ..*start };
        }
        self.add_status(row, at, self.history.started_at.is_some());
    }

    /// Adds a message about a changed status. `began` means that the execution has just started.
    fn add_status(&mut self, row: &mut Row, at: Millis, began: bool) {
        let now = status(self.history.state().phase());
        if self.status == Some(now) || (row.ends && self.history.state().phase().is_ending()) {
            return;
        }
        for passed in passed_through(self.status, now).iter().chain([&now]) {
            let progress = self.progress_now();
            row.push(at, MessageBody::Status { status: passed, progress, began: began && *passed == now });
        }
        self.status = Some(now);
    }

    fn add_progress(&mut self, row: &mut Row, at: Millis) {
        let before = self.progress;
        let progress = self.progress_now();
        if let (false, Some(status)) = (before == self.progress || self.is_over(), self.status) {
            row.push(at, MessageBody::Status { status, progress, began: false });
        }
    }

    /// Updates the progress that was reported last. Leases determine the current node; a change of that node alone is
    /// not reported.
    fn progress_now(&mut self) -> Progress {
        let begun = self.starts.iter().filter(|(_, start)| start.reported != Reported::No);
        let leases: Leases =
            begun.map(|(run, start)| (*run, LeaseInfo { since: start.at, progress: None })).collect();
        let progress = progress(&self.net, &self.history, &leases);
        self.progress = Some((progress.percentage, progress.completed_nodes));
        progress
    }

    fn add_end(&mut self, row: &mut Row, failure: Option<&Failure>, at: Millis) {
        let from = self.history.started_at.or(self.history.created_at).unwrap_or(at);
        row.push(
            at,
            MessageBody::Ended {
                status: status(self.history.state().phase()),
                duration_ms: at.since(from),
                outputs: Value::Null,
                node: failure.and_then(|failure| NodeLabel::of_failure(&self.net, failure)),
                place: failure.map(|failure| self.place_of_end(failure)).unwrap_or_default(),
                failure: failure.cloned(),
            },
        );
    }
}

fn started(net: &Net, start: &Start) -> MessageBody {
    MessageBody::NodeStarted { node: NodeLabel::of(net.step(start.step)), attempt: start.attempt }
}

/// Returns the states between two that follow each other in one commit, so that only the document's transitions are
/// seen.
fn passed_through(from: Option<&str>, to: &str) -> &'static [&'static str] {
    match (from, to) {
        (None, "queued") => &[],
        (None, "initializing" | "cancelled") => &["queued"],
        (None, "running" | "failed") => &["queued", "initializing"],
        (None, _) => &["queued", "initializing", "running"],
        (Some("queued"), "running" | "failed") => &["initializing"],
        (Some("queued"), "completed" | "partial_success" | "paused") => &["initializing", "running"],
        (Some("initializing"), "cancelled" | "completed" | "partial_success" | "paused") => &["running"],
        (Some("paused"), "completed" | "failed" | "partial_success") => &["running"],
        (Some(_), _) => &[],
    }
}
