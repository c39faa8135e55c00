//! What is recorded of a world: a hash of everything that was seen, and, on request, the story.

use super::world::{Counts, Happening};
use std::collections::BTreeMap;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

/// How one world went.
#[derive(Debug, Clone)]
pub struct Story {
    pub counts: Counts,
    /// Executions by their outcome.
    pub ends: BTreeMap<String, u64>,
    pub on_file: bool,
    /// Of everything that was seen; the same seed gives the same.
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
    pub story: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}: {}\n\ndefinitions", self.seed, self.rule, self.what)?;
        self.definitions.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "\nstory")?;
        self.story.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

#[derive(Debug)]
pub(super) struct Telling {
    hasher: DefaultHasher,
    /// None: nobody reads it.
    lines: Option<Vec<String>>,
}

impl Telling {
    pub fn new(aloud: bool) -> Telling {
        Telling { hasher: DefaultHasher::new(), lines: aloud.then(Vec::new) }
    }

    pub fn mark(&mut self, now: u64, happening: &Happening) {
        now.hash(&mut self.hasher);
        std::mem::discriminant(happening).hash(&mut self.hasher);
    }

    pub fn hash(&mut self, seen: &impl Hash) {
        seen.hash(&mut self.hasher);
    }

    pub fn say(&mut self, now: u64, line: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(format!("{now:>7} {}", line()));
        }
    }

    pub fn is_aloud(&self) -> bool {
        self.lines.is_some()
    }

    pub fn finish(&self) -> u64 {
        self.hasher.finish()
    }

    pub fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}
