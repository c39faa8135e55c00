//! Rows in, messages out: one machine per reader. It holds what is live, and none of what nodes gave.

use super::message::{Message, Tells, sequence};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{Event, Failure, Illegal, Millis, Net, Record, RunId, StepId, Times};
use windlass_protocol::Line;
use windlass_store::{JournalRow, StoredLog};
use windlass_views::{Leases, NodeLabel, Progress, Story, Taken, progress, shared, status};

#[derive(Debug)]
pub struct Telling {
    net: Arc<Net>,
    story: Story,
    /// The status that was told last.
    status: Option<&'static str>,
    /// Percentage and completed nodes as they were told last.
    progress: Option<(usize, usize)>,
    /// Of every live firing: how far its beginning is told.
    starts: BTreeMap<RunId, Start>,
}

/// Work that was given out begins when a worker says so, which no row tells. Its number is that of the row that gave it
/// out, so it is the same for everybody who is told.
#[derive(Debug, Clone, Copy)]
struct Start {
    step: StepId,
    attempt: u32,
    /// None: an earlier execution gave it out. It is numbered when it is told or given out once more.
    sequence: Option<u64>,
    at: Millis,
    /// A worker, or another execution, was asked for it; before that it was only fired.
    given: bool,
    told: bool,
}

/// Messages of one row, numbered as they come.
struct Row {
    numbers: std::ops::RangeFrom<u64>,
    position: windlass_store::Position,
    messages: Vec<Message>,
    /// The execution ends in it: what it does on the way there nobody can have seen.
    ends: bool,
}

impl Row {
    fn number(&mut self) -> u64 {
        sequence(self.position, self.numbers.next().unwrap_or(u64::MAX))
    }

    fn tell(&mut self, at: Millis, tells: Tells) {
        let sequence = self.number();
        self.messages.push(Message { sequence, newer_than: sequence - 1, at, tells });
    }
}

impl Telling {
    #[must_use]
    pub fn new(net: Arc<Net>) -> Telling {
        let (story, starts) = (Story::default(), BTreeMap::new());
        Telling { net, story, status: None, progress: None, starts }
    }

    #[must_use]
    pub fn net(&self) -> &Arc<Net> {
        &self.net
    }

    #[must_use]
    pub fn story(&self) -> &Story {
        &self.story
    }

    /// How many records it has seen.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.story.state.head.version
    }

    #[must_use]
    pub fn is_over(&self) -> bool {
        self.story.state.phase().is_ended()
    }

    /// The next row of the journal.
    pub fn row(&mut self, row: &JournalRow) -> Result<Vec<Message>, Illegal> {
        let ends = row.records.iter().any(|record| matches!(record.event, Event::Ended { .. }));
        let mut told = Row { numbers: 1.., position: row.position, messages: Vec::new(), ends };
        for record in &row.records {
            self.story.fold(&self.net, record)?;
            self.record(&mut told, record);
        }
        if let Some(last) = row.records.last() {
            self.tell_progress(&mut told, last.at);
        }
        Ok(told.messages)
    }

    /// Lines of a log.
    pub fn log(&self, chunk: &StoredLog) -> Result<Vec<Message>, serde_json::Error> {
        let lines: Vec<Line> = serde_json::from_slice(&chunk.lines)?;
        let told = lines.into_iter().zip(1..).map(|(line, index)| {
            let sequence = sequence(chunk.position, index);
            let (level, node) = (line.level().name(), chunk.step.clone());
            let tells = Tells::Log { level, node, text: line.text };
            Message { sequence, newer_than: sequence - 1, at: Millis(line.at), tells }
        });
        Ok(told.collect())
    }

    /// What workers have begun with since the last time.
    pub fn leased(&mut self, leases: &Leases) -> Vec<Message> {
        let Telling { net, starts, .. } = self;
        let begun = leases.iter().filter_map(|(run, at)| {
            let start = starts.get_mut(run).filter(|start| !start.told)?;
            let sequence = start.sequence?;
            start.told = true;
            // Whoever asks now cannot have seen it for sure.
            Some(Message { sequence, newer_than: u64::MAX, at: at.since, tells: started(net, start) })
        });
        begun.collect()
    }

    fn record(&mut self, told: &mut Row, record: &Record) {
        let at = record.at;
        self.tell_status(told, at, matches!(record.event, Event::Started { .. }));
        match &record.event {
            Event::Forked(_) => self.begin_anew(told, at),
            Event::Restarted { .. } => self.starts.clear(),
            Event::Fired { run, .. } => self.begin(told, *run, (1, false), at),
            Event::Offered { run, attempt, .. } => self.begin(told, *run, (*attempt, true), at),
            Event::ChildStarted { run, attempt, .. } => {
                self.begin(told, *run, (*attempt, true), at);
                self.tell_start(told, *run, None);
            }
            Event::Delayed { run, .. } | Event::LoopStarted { run, .. } => self.tell_start(told, *run, None),
            Event::AwaitingManual { run, times, .. } => self.tell_start(told, *run, times.as_ref()),
            Event::RetryScheduled { run, failure, .. } => {
                self.tell_start(told, *run, None);
                self.tell_failure(told, *run, failure, at, false);
            }
            Event::Done { run, times, .. } => self.tell_done(told, *run, times.as_ref(), at),
            Event::Failed { run, failure, times, .. } => {
                self.tell_start(told, *run, times.as_ref());
                self.tell_failure(told, *run, failure, at, true);
                self.forget(*run);
            }
            Event::Dropped { run, .. } | Event::Skipped { run, .. } => self.forget(*run),
            Event::Cleared(cleared) => {
                cleared.dropped.iter().for_each(|(run, _, _)| self.forget(*run));
            }
            Event::Ended { failure, .. } => self.tell_end(told, failure.as_ref(), at),
            _ => {}
        }
    }

    fn forget(&mut self, run: RunId) {
        self.starts.remove(&run);
        self.story.forget(run);
    }

    /// A part of a firing (an iteration of its own loop, a hook) is not a node.
    fn step(&self, run: RunId) -> Option<StepId> {
        self.story.firing(run).filter(|firing| firing.is_whole()).map(|firing| firing.step)
    }

    /// Another attempt begins here; work that only goes on has begun before.
    fn begin(&mut self, told: &mut Row, run: RunId, (attempt, given): (u32, bool), at: Millis) {
        let Some(step) = self.step(run) else { return };
        // Numbers are the same whoever counts, so none depends on what a lease told before.
        let sequence = Some(told.number());
        if self.starts.get(&run).is_some_and(|start| start.given && start.attempt >= attempt) {
            return;
        }
        self.starts.insert(run, Start { step, attempt, sequence, at, given, told: false });
    }

    fn tell_start(&mut self, told: &mut Row, run: RunId, times: Option<&Times>) {
        let Some(start) = self.starts.get_mut(&run) else { return };
        let number = told.number();
        if !start.told {
            start.told = true;
            let at = times.map_or(start.at, |times| times.started_at);
            let (sequence, tells) = (start.sequence.unwrap_or(number), started(&self.net, start));
            told.messages.push(Message { sequence, newer_than: number - 1, at, tells });
        }
    }

    fn tell_done(&mut self, told: &mut Row, run: RunId, times: Option<&Times>, at: Millis) {
        self.tell_start(told, run, times);
        if let Some(firing) = self.story.firing(run).filter(|firing| firing.is_whole()) {
            let node = NodeLabel::of(self.net.step(firing.step));
            let execution = self.story.state.head.id;
            // It has ended just now, so that its value is held.
            let output = firing.output.as_ref().and_then(|output| output.value.as_ref());
            let output = output.map(|output| shared(execution, output));
            let duration_ms = firing.duration_ms();
            told.tell(at, Tells::NodeCompleted { node, duration_ms, output });
        }
        self.forget(run);
    }

    fn tell_failure(&mut self, told: &mut Row, run: RunId, failure: &Failure, at: Millis, last: bool) {
        let Some(firing) = self.story.firing(run).filter(|firing| firing.is_whole()) else { return };
        let step = self.net.step(firing.step);
        let tells = Tells::NodeFailed {
            node: NodeLabel::of(step),
            failure: failure.clone(),
            retry_count: firing.attempts.saturating_sub(1),
            retries_max: step.retry.attempts_max.saturating_sub(1),
            last,
        };
        told.tell(at, tells);
    }

    /// What an earlier execution did is not told again, nor numbered: it is as long as that one was. What it left open
    /// begins anew.
    fn begin_anew(&mut self, told: &mut Row, at: Millis) {
        told.messages.clear();
        told.numbers = 1..;
        self.status = None;
        for start in self.starts.values_mut() {
            *start = Start { sequence: None, given: false, told: false, ..*start };
        }
        self.tell_status(told, at, self.story.started_at.is_some());
    }

    /// `began`: the execution has started just now.
    fn tell_status(&mut self, told: &mut Row, at: Millis, began: bool) {
        let now = status(self.story.state.phase());
        if self.status == Some(now) || (told.ends && self.story.state.phase().is_ending()) {
            return;
        }
        for passed in passed_through(self.status, now).iter().chain([&now]) {
            let progress = self.progress_now();
            told.tell(at, Tells::Status { status: passed, progress, began: began && *passed == now });
        }
        self.status = Some(now);
    }

    fn tell_progress(&mut self, told: &mut Row, at: Millis) {
        let before = self.progress;
        let progress = self.progress_now();
        if let (false, Some(status)) = (before == self.progress || self.is_over(), self.status) {
            told.tell(at, Tells::Status { status, progress, began: false });
        }
    }

    /// Leases say which node is the current one; that alone is no news.
    fn progress_now(&mut self) -> Progress {
        let begun = self.starts.iter().filter(|(_, start)| start.told);
        let leases: Leases =
            begun.map(|(run, start)| (*run, Taken { since: start.at, progress: None })).collect();
        let progress = progress(&self.net, &self.story, &leases);
        self.progress = Some((progress.percentage, progress.completed_nodes));
        progress
    }

    fn tell_end(&mut self, told: &mut Row, failure: Option<&Failure>, at: Millis) {
        let from = self.story.started_at.or(self.story.created_at).unwrap_or(at);
        told.tell(
            at,
            Tells::Ended {
                status: status(self.story.state.phase()),
                duration_ms: at.since(from),
                outputs: Value::Null,
                failure: failure.cloned(),
            },
        );
    }
}

fn started(net: &Net, start: &Start) -> Tells {
    Tells::NodeStarted { node: NodeLabel::of(net.step(start.step)), attempt: start.attempt }
}

/// States between two that follow each other in one commit, so that only the document's transitions are seen.
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
