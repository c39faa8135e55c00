//! Records of a simulated world: a hash of everything that happened and, on request, its events as lines of text.

use super::world::{Counts, Happening};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Result of a world that broke no rule.
#[derive(Debug, Clone)]
pub struct WorldReport {
    pub counts: Counts,
    /// Executions by their outcome.
    pub ends: BTreeMap<String, u64>,
    pub on_file: bool,
    /// Hash of everything that happened. The same seed has the same hash.
    pub hash: u64,
    pub lines: Vec<String>,
}

/// A world that broke a rule, with all that is needed to understand it.
#[derive(Debug, Clone)]
pub struct Violation {
    pub seed: u64,
    pub rule: String,
    pub what: String,
    pub definitions: Vec<String>,
    pub events: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}: {}\n\ndefinitions", self.seed, self.rule, self.what)?;
        self.definitions.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "\nevents")?;
        self.events.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Data that is recorded while a world runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Record {
    Hash,
    Events,
}

#[derive(Debug)]
pub(super) struct EventLog {
    hasher: DefaultHasher,
    /// None if only the hash is recorded.
    lines: Option<Vec<String>>,
}

impl EventLog {
    pub fn new(record: Record) -> EventLog {
        EventLog { hasher: DefaultHasher::new(), lines: (record == Record::Events).then(Vec::new) }
    }

    pub fn hash_happening(&mut self, now: u64, happening: &Happening) {
        now.hash(&mut self.hasher);
        std::mem::discriminant(happening).hash(&mut self.hasher);
    }

    pub fn hash_value(&mut self, seen: &impl Hash) {
        seen.hash(&mut self.hasher);
    }

    pub fn record(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>7} {}", line()));
        }
    }

    pub fn keeps_lines(&self) -> bool {
        self.lines.is_some()
    }

    pub fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
