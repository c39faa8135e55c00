//! Checks whether a store is what its journals say (K1). Every journal row is opened, every execution replayed, and
//! its rows are made again and compared. Nothing is skipped silently and nothing stops the check: every problem is
//! reported with its place, and the check continues.

mod compare;

use crate::commit::{CommitId, Creation, Position};
use crate::journal::{Sealed, open};
use crate::project::{facts, stored_rows};
use crate::store::{JournalRow, Reader, StoreError, StoreResult};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use windlass_kernel::{Execution, ExecutionId, Need, Net, NetDigest, RunId, evolve, references};

/// Rows read at a time.
const PAGE: usize = 256;
/// Problems kept in the report; further ones are counted.
const PROBLEMS_MAX: usize = 10_000;
/// Number of nets that are kept in memory.
const NETS_MAX: usize = 256;
/// Maximum number of reads of an execution that is written while it is checked; after them the last read is checked.
const ROUNDS_MAX: usize = 100;

/// Reads what only a check needs.
pub trait Audit: Reader {
    /// Returns problems that the storage itself reports, in its own words.
    fn medium(&mut self) -> StoreResult<Vec<String>>;

    /// Returns executions in the order of the store.
    fn executions(&mut self, after: Option<ExecutionId>, limit: usize) -> StoreResult<Vec<ExecutionId>>;

    fn creation(&mut self, execution: ExecutionId) -> StoreResult<Option<Creation>>;

    /// Returns journal rows of all executions in the order of their positions, as they are stored.
    fn sealed(&mut self, after: Position, limit: usize) -> StoreResult<Vec<SealedRow>>;

    /// Returns which journal rows hold the values of step-runs.
    fn facts(&mut self, execution: ExecutionId) -> StoreResult<Vec<(RunId, Position)>>;

    /// Returns rows without an owner: of executions that do not exist, or leases without an offer.
    fn strays(&mut self, limit: usize) -> StoreResult<Vec<Problem>>;
}

/// A journal row that has not been opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedRow {
    pub position: Position,
    /// None if the execution does not exist.
    pub execution: Option<ExecutionId>,
    pub version: u64,
    pub commit: CommitId,
    pub sealed: Sealed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub execution: Option<ExecutionId>,
    pub version: Option<u64>,
    pub table: &'static str,
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(execution) = self.execution {
            write!(f, "execution {execution}, ")?;
        }
        if let Some(version) = self.version {
            write!(f, "version {version}, ")?;
        }
        write!(f, "{}: {}", self.table, self.what)
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    pub executions: u64,
    pub journal_rows: u64,
    pub records: u64,
    pub problems: Vec<Problem>,
    /// Problems beyond those that are listed.
    pub more: u64,
}

impl Report {
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn add(&mut self, problem: Problem) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(problem);
        } else {
            self.more += 1;
        }
    }
}

/// Checks a whole store, with bounded memory. `progress` is called from time to time with the report so far. `Err`
/// means that the store cannot be read at all.
pub fn check<A: Audit>(store: &mut A, progress: &mut dyn FnMut(&Report)) -> StoreResult<Report> {
    let mut check = Check {
        store,
        report: Report::default(),
        nets: BTreeMap::new(),
        damaged: BTreeSet::new(),
        last: Position(0),
        walked: 0,
        broken_off: BTreeSet::new(),
    };
    check.medium()?;
    check.journal(progress)?;
    check.executions(progress)?;
    check.unreached()?;
    check.strays()?;
    Ok(check.report)
}

struct Check<'a, A> {
    store: &'a mut A,
    report: Report,
    nets: BTreeMap<NetDigest, Option<Arc<Net>>>,
    /// Journal rows reported as damaged.
    damaged: BTreeSet<(ExecutionId, u64)>,
    /// The last journal row when the check began; later commits are not counted.
    last: Position,
    /// Journal rows up to there that a replay read.
    walked: u64,
    /// Executions whose replay did not reach the end of the journal.
    broken_off: BTreeSet<ExecutionId>,
}

impl<A: Audit> Check<'_, A> {
    fn report_problem(
        &mut self,
        execution: Option<ExecutionId>,
        version: Option<u64>,
        table: &'static str,
        what: String,
    ) {
        self.report.add(Problem { execution, version, table, what });
    }

    /// Returns what could be read. Damage is reported; a store that cannot be read at all ends the check.
    fn read<T>(
        &mut self,
        of: Option<ExecutionId>,
        table: &'static str,
        found: StoreResult<T>,
    ) -> StoreResult<Option<T>> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(StoreError::Corrupt(what) | StoreError::Undecodable(what)) => {
                self.report_problem(of, None, table, what);
                Ok(None)
            }
            Err(StoreError::Unreadable { execution, what }) => {
                self.report_problem(Some(execution), None, table, what);
                Ok(None)
            }
            Err(StoreError::Damaged(damage)) => {
                if self.damaged.insert((damage.execution, damage.version)) {
                    self.report_problem(Some(damage.execution), Some(damage.version), "journal", damage.what);
                }
                Ok(None)
            }
            Err(error @ (StoreError::Full(_) | StoreError::Io(_) | StoreError::Newer { .. })) => Err(error),
        }
    }

    fn medium(&mut self) -> StoreResult<()> {
        let found = self.store.medium();
        for what in self.read(None, "file", found)?.unwrap_or_default() {
            self.report_problem(None, None, "file", what);
        }
        Ok(())
    }

    /// Reads every row by itself, whether or not another row refers to it.
    fn journal(&mut self, progress: &mut dyn FnMut(&Report)) -> StoreResult<()> {
        loop {
            let page = self.store.sealed(self.last, PAGE);
            let page = self.read(None, "journal", page)?.unwrap_or_default();
            let Some(row) = page.last() else { return Ok(()) };
            self.last = row.position;
            for row in &page {
                self.sealed(row);
            }
            progress(&self.report);
        }
    }

    fn sealed(&mut self, row: &SealedRow) {
        self.report.journal_rows += 1;
        let Some(execution) = row.execution else {
            let what = format!("the row at position {} belongs to no execution", row.position.0);
            return self.report_problem(None, Some(row.version), "journal", what);
        };
        match open(execution, row.version, row.commit, &row.sealed) {
            Ok(records) => self.report.records += records.len() as u64,
            Err(damage) => {
                self.damaged.insert((execution, row.version));
                self.report_problem(Some(execution), Some(row.version), "journal", damage.what);
            }
        }
    }

    fn executions(&mut self, progress: &mut dyn FnMut(&Report)) -> StoreResult<()> {
        let mut after = None;
        loop {
            let page = self.store.executions(after, PAGE);
            let page = self.read(None, "executions", page)?.unwrap_or_default();
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(*last);
            for execution in page {
                self.report.executions += 1;
                self.execution(execution)?;
            }
            progress(&self.report);
        }
    }

    fn execution(&mut self, id: ExecutionId) -> StoreResult<()> {
        let creation = self.store.creation(id);
        let creation = self.read(Some(id), "executions", creation)?.flatten();
        let net = match &creation {
            Some(creation) => self.net(id, creation.net)?,
            None => None,
        };
        let (Some(creation), Some(net)) = (creation, net) else {
            self.broken_off.insert(id);
            return Ok(());
        };
        let (facts, artifacts) = (BTreeSet::new(), BTreeSet::new());
        let mut replay = Replay { net, state: Execution::default(), facts, artifacts, last: None };
        for _ in 0..ROUNDS_MAX {
            if !self.replay(id, &mut replay)? {
                self.broken_off.insert(id);
                return Ok(());
            }
            let rows = self.store.rows(id);
            let Some(rows) = self.read(Some(id), "heads", rows)?.flatten() else { return Ok(()) };
            if rows.head.version <= replay.state.head.version {
                let facts = self.store.facts(id);
                let facts = self.read(Some(id), "facts", facts)?.unwrap_or_default();
                let found = replay.differences(&creation, &rows, facts);
                found.into_iter().for_each(|(table, what)| self.report_problem(Some(id), None, table, what));
                return self.artifacts(id, &replay.artifacts);
            }
        }
        let what = "its version is beyond the end of its journal".to_owned();
        self.report_problem(Some(id), Some(replay.state.head.version), "heads", what);
        Ok(())
    }

    /// Reports artifacts that the journal refers to and that are missing or changed.
    fn artifacts(&mut self, id: ExecutionId, keys: &BTreeSet<String>) -> StoreResult<()> {
        for key in keys {
            let found = self.store.values(id, &[Need::Artifact(key.clone())]);
            let found = self.read(Some(id), "artifacts", found)?.unwrap_or_default();
            if !matches!(found.artifacts.get(key), Some(Some(_))) {
                let what = format!("{key} is not there, or is not what it was");
                self.report_problem(Some(id), None, "artifacts", what);
            }
        }
        Ok(())
    }

    /// Reads to the end of the journal. Returns false after a problem was reported.
    fn replay(&mut self, id: ExecutionId, replay: &mut Replay) -> StoreResult<bool> {
        loop {
            let page = self.store.journal(id, replay.state.head.version, PAGE);
            let Some(page) = self.read(Some(id), "journal", page)? else { return Ok(false) };
            if page.is_empty() {
                return Ok(true);
            }
            for row in page {
                self.walked += u64::from(row.position <= self.last);
                let version = row.version;
                if let Err(what) = replay.take(row) {
                    self.report_problem(Some(id), Some(version), "journal", what);
                    return Ok(false);
                }
            }
        }
    }

    fn net(&mut self, of: ExecutionId, digest: NetDigest) -> StoreResult<Option<Arc<Net>>> {
        if self.nets.len() >= NETS_MAX {
            self.nets.clear();
        }
        if !self.nets.contains_key(&digest) {
            let net = self.store.net(digest);
            let net = self.read(Some(of), "nets", net)?.flatten().map(Arc::new);
            self.nets.insert(digest, net);
        }
        let net = self.nets.get(&digest).cloned().flatten();
        if net.is_none() {
            self.report_problem(Some(of), None, "nets", "its net is not in the store".to_owned());
        }
        Ok(net)
    }

    /// Reports journal rows that no replay read: they exist, but nothing leads to them.
    fn unreached(&mut self) -> StoreResult<()> {
        if self.walked == self.report.journal_rows {
            return Ok(());
        }
        let mut next: BTreeMap<ExecutionId, u64> = BTreeMap::new();
        let mut after = Position(0);
        loop {
            let page = self.store.sealed(after, PAGE);
            let page = self.read(None, "journal", page)?.unwrap_or_default();
            let Some(row) = page.last() else { return Ok(()) };
            after = row.position;
            let last = self.last;
            for row in page.iter().filter(|row| row.position <= last) {
                self.in_order(row, &mut next);
            }
        }
    }

    fn in_order(&mut self, row: &SealedRow, next: &mut BTreeMap<ExecutionId, u64>) {
        let Some(execution) = row.execution.filter(|id| !self.broken_off.contains(id)) else { return };
        let Ok(records) = open(execution, row.version, row.commit, &row.sealed) else { return };
        let expected = next.entry(execution).or_default();
        if row.version == *expected {
            *expected += records.len() as u64;
        } else {
            let what = format!("a second row for this version, at position {}", row.position.0);
            self.report_problem(Some(execution), Some(row.version), "journal", what);
        }
    }

    fn strays(&mut self) -> StoreResult<()> {
        let found = self.store.strays(PROBLEMS_MAX);
        let found = self.read(None, "file", found)?.unwrap_or_default();
        found.into_iter().for_each(|problem| self.report.add(problem));
        Ok(())
    }
}

/// An execution as it follows from its journal.
struct Replay {
    net: Arc<Net>,
    state: Execution<'static>,
    facts: BTreeSet<(RunId, Position)>,
    artifacts: BTreeSet<String>,
    last: Option<JournalRow>,
}

impl Replay {
    fn take(&mut self, row: JournalRow) -> Result<(), String> {
        if row.version != self.state.head.version {
            return Err(format!("version {} was expected here", self.state.head.version));
        }
        for record in &row.records {
            evolve(&mut self.state, &self.net, record).map_err(|illegal| illegal.to_string())?;
            self.artifacts.extend(references(&record.event));
        }
        self.facts.extend(facts(&self.net, &row.records).into_iter().map(|run| (run, row.position)));
        self.last = Some(row);
        Ok(())
    }

    fn differences(
        &self,
        creation: &Creation,
        rows: &crate::rows::Rows,
        facts: Vec<(RunId, Position)>,
    ) -> Vec<(&'static str, String)> {
        let last = self.last.as_ref().map_or(&[][..], |row| &row.records);
        let expected = stored_rows(&self.net, &self.state, last);
        let mut found = compare::rows(&expected, rows);
        found.extend(compare::facts(&self.facts, &facts.into_iter().collect()));
        if creation.inputs != self.state.head.inputs {
            found.push(("executions", "its inputs are not those of its journal".to_owned()));
        }
        found
    }
}
