//! Follows an execution from outside its engine: records and log lines as they reach the disk, in the order in which
//! they happened.

mod subject;
mod witness;

pub use subject::{Happened, Subject, label};
pub use witness::Witness;

use crate::feed::leases;
use anyhow::{Context, bail};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_dialects::view::{Leases, execution_id};
use windlass_kernel::{Execution, ExecutionId, Millis, Net, RunId};
use windlass_protocol::{Level, Line, Stream};
use windlass_store::{Position, Reader};

/// Rows read at a time.
const PAGE: usize = 500;

#[derive(Debug)]
pub struct Follower<R> {
    reader: R,
    id: ExecutionId,
    net: Net,
    /// Step-runs stay there until their last lines have come.
    witness: Witness,
    ended: Vec<RunId>,
    logs: Position,
    /// Lines of step-runs whose beginning had not been read when they came.
    early: Vec<LogLine>,
}

#[derive(Debug)]
pub enum Seen {
    Record(Box<Happened>),
    Line(LogLine),
}

/// A line of a step's log.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub run: RunId,
    pub step: String,
    /// Iteration numbers, where they are known.
    pub path: Vec<u32>,
    pub attempt: u32,
    pub at: Millis,
    pub stream: Stream,
    pub level: Level,
    pub text: String,
    pub data: Option<Arc<Value>>,
}

impl<R: Reader> Follower<R> {
    /// From the beginning of its journal.
    pub fn new(mut reader: R, id: ExecutionId) -> anyhow::Result<Follower<R>> {
        let Some(stored) = reader.load(id)? else { bail!("execution {} does not exist", execution_id(id)) };
        let net = reader.net(stored.state.head.net)?.context("the net of the execution is missing")?;
        let (ended, early) = (Vec::new(), Vec::new());
        Ok(Follower { reader, id, net, witness: Witness::default(), ended, logs: Position(0), early })
    }

    pub fn net(&self) -> &Net {
        &self.net
    }

    /// As of the last record that was seen.
    pub fn state(&self) -> &Execution<'static> {
        self.witness.state()
    }

    /// What workers have of it at this moment.
    pub fn leases(&mut self) -> anyhow::Result<Leases> {
        Ok(leases(&mut self.reader, self.id)?)
    }

    /// What came since the last time. Lines are read after records: a step's lines are on disk before its end is, so
    /// none that belongs to a seen end is missed. Those of a step that began meanwhile wait for the next time.
    pub fn poll(&mut self) -> anyhow::Result<Vec<Seen>> {
        let records = self.records()?;
        let mut lines: VecDeque<LogLine> = self.early.drain(..).collect();
        let over = self.state().phase().is_ended();
        for line in self.lines()? {
            if over || self.witness.knows(line.run) {
                lines.push_back(line);
            } else {
                self.early.push(line);
            }
        }
        for run in self.ended.drain(..) {
            self.witness.forget(run);
        }
        self.ended.extend(records.iter().filter_map(Happened::ended_run));
        Ok(merge(records, lines))
    }

    fn records(&mut self) -> anyhow::Result<Vec<Happened>> {
        let mut seen = Vec::new();
        loop {
            let rows = self.reader.journal(self.id, self.state().head.version, PAGE)?;
            let more = rows.len() >= PAGE;
            for record in rows.into_iter().flat_map(|row| row.records) {
                let happened = self.witness.see(&self.net, record);
                seen.push(
                    happened
                        .with_context(|| format!("the journal of {} is broken", execution_id(self.id)))?,
                );
            }
            if !more {
                return Ok(seen);
            }
        }
    }

    fn lines(&mut self) -> anyhow::Result<Vec<LogLine>> {
        let mut lines = Vec::new();
        loop {
            let chunks = self.reader.logs(self.id, self.logs, PAGE)?;
            let more = chunks.len() >= PAGE;
            for chunk in chunks {
                self.logs = chunk.position;
                let path = self.witness.subject(chunk.run).map(|subject| subject.path.0.clone());
                let parsed: Vec<Line> =
                    serde_json::from_slice(&chunk.lines).context("a chunk of the log cannot be read")?;
                lines.extend(parsed.into_iter().map(|line| LogLine {
                    run: chunk.run,
                    step: chunk.step.clone(),
                    path: path.clone().unwrap_or_default(),
                    attempt: chunk.attempt,
                    at: Millis(line.at),
                    stream: line.stream,
                    level: line.level(),
                    text: line.text,
                    data: line.data,
                }));
            }
            if !more {
                return Ok(lines);
            }
        }
    }
}

/// By time, each in its own order. At the same time a record comes first, unless it ends what the line belongs to.
fn merge(records: Vec<Happened>, mut lines: VecDeque<LogLine>) -> Vec<Seen> {
    let mut merged = Vec::with_capacity(records.len() + lines.len());
    for record in records {
        let ends = record.ended_run();
        let first = |line: &LogLine| {
            line.at < record.record.at || ends == Some(line.run) && line.at == record.record.at
        };
        while let Some(line) = lines.pop_front_if(|line| first(line)) {
            merged.push(Seen::Line(line));
        }
        merged.push(Seen::Record(Box::new(record)));
    }
    merged.extend(lines.into_iter().map(Seen::Line));
    merged
}
