//! Follows an execution from outside its engine: records and log lines as they are written to the disk, in the order in
//! which they happened.

use crate::api::ApiJournal;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use windlass_kernel::{Execution, ExecutionId, Millis, Net, Path, Record, RunId};
use windlass_protocol::{Level, Stream};
use windlass_server::trail::Chunk;
use windlass_store::Position;
use windlass_views::{
    ExecutionChange, FiringChange, Leases, Occurrence, Timeline, TimelineEntry, execution_id,
};

pub struct Follower {
    journal: ApiJournal,
    id: ExecutionId,
    net: Net,
    timeline: Timeline,
    /// Firings that may still write log lines: those that live, and those that have ended since the last poll.
    paths: BTreeMap<RunId, Path>,
    ended: Vec<RunId>,
    logs: Position,
    leases: Leases,
    /// Lines of step-runs whose begin has not been read yet.
    early: Vec<LogLine>,
}

#[derive(Debug)]
pub enum FollowedItem {
    Record(Box<FollowedRecord>),
    Line(LogLine),
}

#[derive(Debug)]
pub struct FollowedRecord {
    pub record: Record,
    pub entry: TimelineEntry,
}

/// A line of a step's log.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub run: RunId,
    pub step: String,
    /// Iteration numbers, if they are known.
    pub path: Vec<u32>,
    pub attempt: u32,
    pub at: Millis,
    pub stream: Stream,
    pub level: Level,
    pub text: String,
    pub data: Option<Arc<Value>>,
}

impl Follower {
    /// Begins at the start of its journal.
    pub fn new(mut journal: ApiJournal, id: ExecutionId) -> anyhow::Result<Follower> {
        let Some(spec) = journal.net()? else { bail!("there is no execution {}", execution_id(id)) };
        let net = Net::new(spec).with_context(|| format!("the net of {} is broken", execution_id(id)))?;
        Ok(Follower {
            journal,
            id,
            net,
            timeline: Timeline::default(),
            paths: BTreeMap::new(),
            ended: Vec::new(),
            logs: Position(0),
            leases: Leases::new(),
            early: Vec::new(),
        })
    }

    pub fn net(&self) -> &Net {
        &self.net
    }

    /// Returns the state after the last record that was read.
    pub fn state(&self) -> &Execution<'static> {
        self.timeline.state()
    }

    /// Leases of workers at the last poll.
    pub fn leases(&self) -> &Leases {
        &self.leases
    }

    /// Returns the records and lines since the last poll. Lines of a step that began meanwhile are returned by the next
    /// poll.
    pub fn poll(&mut self) -> anyhow::Result<Vec<FollowedItem>> {
        let (records, lines) = self.read()?;
        let mut ready: VecDeque<LogLine> = self.early.drain(..).collect();
        let over = self.state().phase().is_ended();
        for line in lines {
            if over || self.paths.contains_key(&line.run) {
                ready.push_back(line);
            } else {
                self.early.push(line);
            }
        }
        for run in self.ended.drain(..) {
            self.paths.remove(&run);
        }
        self.ended.extend(records.iter().filter_map(|followed| followed.entry.ended_run()));
        Ok(merge(records, ready))
    }

    fn read(&mut self) -> anyhow::Result<(Vec<FollowedRecord>, Vec<LogLine>)> {
        let (mut records, mut lines) = (Vec::new(), Vec::new());
        loop {
            let stretch = self.journal.next(self.state().head.version, self.logs)?;
            self.leases = stretch.leases();
            for record in stretch.records {
                let broken = || format!("the journal of {} is broken", execution_id(self.id));
                let entry = self.timeline.advance(&self.net, &record).with_context(broken)?;
                self.note_path(&entry);
                records.push(FollowedRecord { record, entry });
            }
            for chunk in stretch.logs {
                self.logs = Position(chunk.position);
                self.lines(chunk, &mut lines);
            }
            if !stretch.more {
                return Ok((records, lines));
            }
        }
    }

    fn note_path(&mut self, entry: &TimelineEntry) {
        if let Occurrence::Firing(firing, FiringChange::Fired { .. }) = &entry.occurrence {
            self.paths.insert(firing.run, firing.path.clone());
        }
        if let Occurrence::Execution(ExecutionChange::Restarted { .. }) = &entry.occurrence {
            self.paths.clear();
        }
    }

    fn lines(&self, chunk: Chunk, lines: &mut Vec<LogLine>) {
        let path = self.paths.get(&chunk.run).map(|path| path.0.clone()).unwrap_or_default();
        lines.extend(chunk.lines.into_iter().map(|line| LogLine {
            run: chunk.run,
            step: chunk.step.clone(),
            path: path.clone(),
            attempt: chunk.attempt,
            at: Millis(line.at),
            stream: line.stream,
            level: line.level(),
            text: line.text,
            data: line.data,
        }));
    }
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Merges both by time; each list keeps its order. At the same time a record comes first, unless it ends the step of
/// the line.
fn merge(records: Vec<FollowedRecord>, mut lines: VecDeque<LogLine>) -> Vec<FollowedItem> {
    let mut merged = Vec::with_capacity(records.len() + lines.len());
    for record in records {
        let (at, ends) = (record.entry.at, record.entry.ended_run());
        let first = |line: &LogLine| line.at < at || ends == Some(line.run) && line.at == at;
        while let Some(line) = lines.pop_front_if(|line| first(line)) {
            merged.push(FollowedItem::Line(line));
        }
        merged.push(FollowedItem::Record(Box::new(record)));
    }
    merged.extend(lines.into_iter().map(FollowedItem::Line));
    merged
}
