//! Follows an execution from outside its engine: changes and log lines as they are written to the disk, in the order in
//! which they happened.

use crate::api::ApiProgress;
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Millis};
use windlass_views::{
    LogLevel, LogStream, ProgressChange, ProgressEntry, ProgressFiringChange, ProgressLog, ProgressPage,
    ProgressState, ProgressStep,
};

pub struct Follower {
    progress: ApiProgress,
    id: ExecutionId,
    steps: Vec<ProgressStep>,
    state: ProgressState,
    /// Everything that existed when the follower was made, until the first poll.
    first: Option<Vec<ProgressPage>>,
    /// Firings that may still write log lines: those that live, and those that have ended since the last poll.
    paths: BTreeMap<String, Vec<u32>>,
    ended: Vec<String>,
    /// Lines of firings whose begin has not been read yet.
    early: Vec<LogLine>,
}

#[derive(Debug)]
pub enum FollowedItem {
    Entry(Box<ProgressEntry>),
    Line(LogLine),
}

/// A line of a step's log.
#[derive(Debug, Clone)]
pub struct LogLine {
    pub firing: String,
    pub step: String,
    /// Iteration numbers, if they are known.
    pub path: Vec<u32>,
    pub attempt: u32,
    pub at: Millis,
    pub stream: LogStream,
    pub level: LogLevel,
    pub text: String,
    pub data: Option<Arc<Value>>,
}

impl Follower {
    /// Begins with the first change.
    pub fn new(mut progress: ApiProgress, id: ExecutionId) -> anyhow::Result<Follower> {
        let (mut first, state) = read_pages(&mut progress)?;
        Ok(Follower {
            progress,
            id,
            steps: first.iter_mut().flat_map(|page| std::mem::take(&mut page.steps)).collect(),
            state,
            first: Some(first),
            paths: BTreeMap::new(),
            ended: Vec::new(),
            early: Vec::new(),
        })
    }

    pub fn id(&self) -> ExecutionId {
        self.id
    }

    /// Returns the steps of the definition in its order.
    pub fn steps(&self) -> &[ProgressStep] {
        &self.steps
    }

    /// Returns the state after the last entry that was read.
    pub fn state(&self) -> &ProgressState {
        &self.state
    }

    /// Returns the position of the follower, which changes with every change of the execution.
    pub fn cursor(&self) -> Option<&str> {
        self.progress.cursor()
    }

    /// Returns the entries and lines since the last poll. Lines of a step that began meanwhile are returned by the next
    /// poll.
    pub fn poll(&mut self) -> anyhow::Result<Vec<FollowedItem>> {
        let pages = match self.first.take() {
            Some(first) => first,
            None => {
                let (pages, state) = read_pages(&mut self.progress)?;
                self.state = state;
                pages
            }
        };
        let (mut entries, mut lines) = (Vec::new(), Vec::new());
        for page in pages {
            page.entries.iter().for_each(|entry| self.note_path(entry));
            entries.extend(page.entries);
            lines.extend(page.logs.into_iter().flat_map(|log| log_lines(log, &self.paths)));
        }
        let mut ready: VecDeque<LogLine> = self.early.drain(..).collect();
        let over = self.state.status.is_ended();
        for line in lines {
            if over || self.paths.contains_key(&line.firing) {
                ready.push_back(line);
            } else {
                self.early.push(line);
            }
        }
        for firing in self.ended.drain(..) {
            self.paths.remove(&firing);
        }
        self.ended.extend(entries.iter().filter_map(ended_firing).map(str::to_owned));
        Ok(merge(entries, ready))
    }

    fn note_path(&mut self, entry: &ProgressEntry) {
        if let ProgressChange::Firing { firing, change: ProgressFiringChange::Fired } = &entry.change {
            self.paths.insert(firing.id.clone(), firing.path.clone());
        }
        if let ProgressChange::Restarted { .. } = &entry.change {
            self.paths.clear();
        }
    }
}

/// Reads pages until everything is read, and returns the state after them.
fn read_pages(progress: &mut ApiProgress) -> anyhow::Result<(Vec<ProgressPage>, ProgressState)> {
    let mut pages = Vec::new();
    loop {
        let mut page = progress.next_page()?;
        let state = page.state.take();
        pages.push(page);
        if let Some(state) = state {
            return Ok((pages, state));
        }
    }
}

fn log_lines(log: ProgressLog, paths: &BTreeMap<String, Vec<u32>>) -> impl Iterator<Item = LogLine> {
    let ProgressLog { firing, step, attempt, lines } = log;
    let path = paths.get(&firing).cloned().unwrap_or_default();
    lines.into_iter().map(move |line| LogLine {
        firing: firing.clone(),
        step: step.clone(),
        path: path.clone(),
        attempt,
        at: line.timestamp,
        stream: line.stream,
        level: line.level,
        text: line.text,
        data: line.data,
    })
}

/// Returns the one firing that an entry ends.
fn ended_firing(entry: &ProgressEntry) -> Option<&str> {
    let ProgressChange::Firing { firing, change } = &entry.change else { return None };
    let is_end = matches!(
        change,
        ProgressFiringChange::Done { .. }
            | ProgressFiringChange::Failed { .. }
            | ProgressFiringChange::Cancelled
    );
    is_end.then_some(firing.id.as_str())
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Merges both by time; each list keeps its order. At the same time an entry comes first, unless it ends the step of
/// the line.
fn merge(entries: Vec<ProgressEntry>, mut lines: VecDeque<LogLine>) -> Vec<FollowedItem> {
    let mut merged = Vec::with_capacity(entries.len() + lines.len());
    for entry in entries {
        let (at, ends) = (entry.timestamp, ended_firing(&entry));
        let first = |line: &LogLine| line.at < at || ends == Some(line.firing.as_str()) && line.at == at;
        while let Some(line) = lines.pop_front_if(|line| first(line)) {
            merged.push(FollowedItem::Line(line));
        }
        merged.push(FollowedItem::Entry(Box::new(entry)));
    }
    merged.extend(lines.into_iter().map(FollowedItem::Line));
    merged
}
