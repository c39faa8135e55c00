//! One commit: first all its checks, then its rows.

use super::audit_rows::add_audit;
use super::columns::{Columns as _, OFFERED, phase_number};
use super::creation::{create, find_key_holder};
use super::mail;
use super::state::{must_change_one, refresh_run, write_part};
use super::statements::execute;
use super::tasks::{note_asked, note_gate};
use super::write::Transaction;
use crate::commit::{Applied, Commit, Creation, Lease, MailId, Position, Stop};
use crate::journal::seal;
use crate::origin::IdempotencyKey;
use crate::rows::{Class, HeadRow, LiveRun, Part, RunRow};
use crate::rules::{
    CommitFacts, CommitVerdict, KeyHolder, MailEnding, MailFacts, OfferFacts, find_broken_promise,
    is_newly_asked, judge_commit,
};
use crate::store::{StoreError, StoreResult};
use crate::usage::{Usage, bytes};
use rusqlite::{CachedStatement, Connection, params};
use windlass_kernel::{Fence, RunId};

/// Statements of a step in a chain, held for a whole batch.
pub(super) struct Commits<'c> {
    head: CachedStatement<'c>,
    offer: CachedStatement<'c>,
    move_on: CachedStatement<'c>,
    append: CachedStatement<'c>,
    remove_run: CachedStatement<'c>,
    insert_run: CachedStatement<'c>,
    /// Changes of the letters that the current commit consumes.
    endings: Vec<MailEnding>,
}

/// Columns of a head that have an index; they are written when they change.
#[derive(PartialEq)]
struct Marks {
    phase: i64,
    held: bool,
    due: Option<i64>,
    goes_on: bool,
}

impl Marks {
    fn of(head: &HeadRow) -> Marks {
        Marks {
            phase: phase_number(head.phase),
            held: head.held,
            due: head.due.map(|due| due.0),
            goes_on: head.goes_on,
        }
    }
}

/// The head of an execution before the commit.
struct StoredHead {
    version: u64,
    /// Position of its newest journal row.
    last: i64,
    marks: Marks,
}

/// A journal row in which the version passes a multiple of this has a mark. There are fewer rows than this between two
/// marks, which bounds the cost of finding a place in a journal. The first row needs none, because the chain ends there:
/// most executions have no row in the index of the marks.
pub(super) const MARK_EVERY: u64 = 64;

/// Looks up the facts that the rules need about one commit.
struct Lookups<'s, 'c> {
    conn: &'c Connection,
    key: Option<i64>,
    stored: Option<StoredHead>,
    head: &'s mut CachedStatement<'c>,
    offer: &'s mut CachedStatement<'c>,
}

impl Lookups<'_, '_> {
    /// Returns the number of an execution that exists according to the rules.
    fn key(&self) -> StoreResult<i64> {
        self.key.ok_or_else(|| StoreError::Corrupt("an execution without rows has no head".to_owned()))
    }
}

impl CommitFacts for Lookups<'_, '_> {
    fn exists(&mut self) -> StoreResult<bool> {
        Ok(self.key.is_some())
    }

    fn version(&mut self) -> StoreResult<u64> {
        let key = self.key()?;
        let stored = self.head.query_row([key], |row| {
            let marks =
                Marks { phase: row.get(2)?, held: row.get(3)?, due: row.get(4)?, goes_on: row.get(5)? };
            let version: i64 = row.get(0)?;
            Ok(StoredHead { version: version.cast_unsigned(), last: row.get(1)?, marks })
        })?;
        Ok(self.stored.insert(stored).version)
    }

    fn open_fence(&mut self, run: RunId) -> StoreResult<Option<Fence>> {
        let key = self.key()?;
        Ok(find_offer(self.offer, key, run)?.and_then(|offer| offer.fence))
    }

    fn key_holder(&mut self, creation: &Creation, key: &IdempotencyKey) -> StoreResult<Option<KeyHolder>> {
        find_key_holder(self.conn, creation, key)
    }

    fn mail(&mut self, mail: MailId) -> StoreResult<Option<MailFacts>> {
        mail::find_mail(self.conn, mail)
    }
}

fn find_offer(statement: &mut CachedStatement<'_>, key: i64, run: RunId) -> StoreResult<Option<OfferFacts>> {
    let mut rows = statement.query([OFFERED, key, run.0.cast_signed()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(OfferFacts { fence: row.read(0)?, session: row.read(1)? }))
}

impl<'c> Commits<'c> {
    pub(super) fn new(conn: &'c Connection) -> StoreResult<Self> {
        Ok(Commits {
            head: conn.prepare_cached(
                "SELECT version, last, phase, held, due, goes_on FROM heads WHERE key = ?1",
            )?,
            offer: conn.prepare_cached(
                "SELECT fence, session FROM step_runs WHERE class = ?1 AND execution = ?2 AND run = ?3",
            )?,
            move_on: conn.prepare_cached(
                "UPDATE heads SET version = ?2, last = ?3, at = ?4, state = ?5 WHERE key = ?1",
            )?,
            append: conn.prepare_cached(
                "INSERT INTO journal \
                 (execution, version, before, mark, commit_id, format, checksum, records, position) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            remove_run: conn
                .prepare_cached("DELETE FROM step_runs WHERE class = ?1 AND execution = ?2 AND run = ?3")?,
            insert_run: conn.prepare_cached(
                "INSERT INTO step_runs \
                 (class, execution, run, fence, due, session, claimed_at, started_at, state) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            )?,
            endings: Vec::new(),
        })
    }

    /// Returns the open offer of a step-run.
    pub(super) fn find_offer(&mut self, key: i64, run: RunId) -> StoreResult<Option<OfferFacts>> {
        find_offer(&mut self.offer, key, run)
    }

    pub(super) fn apply(
        &mut self,
        transaction: &mut Transaction<'c>,
        commit: &Commit,
    ) -> StoreResult<Applied> {
        if let Some(broken) = find_broken_promise(commit) {
            // The engine has a defect: it must stop before anything is written.
            panic!("a commit of execution {} must not be written: {broken}", commit.execution);
        }
        let conn = transaction.conn;
        let owned = transaction.keys.find(conn, commit.execution)?;
        let key = owned.as_ref().map(|owned| owned.key);
        let mut lookups = Lookups { conn, key, stored: None, head: &mut self.head, offer: &mut self.offer };
        let verdict = judge_commit(commit, &mut lookups, &mut self.endings)?;
        let stored = lookups.stored;
        let (position, owned, appended) = match (verdict, &commit.creation, owned, stored) {
            (CommitVerdict::Append, _, Some(owned), Some(stored)) => {
                let position = transaction.positions.next();
                let appended = self.append(position, owned.key, Some(stored.last), commit)?;
                self.update_head(conn, owned.key, &stored.marks, position, &commit.rows.head)?;
                (position, owned, appended)
            }
            (CommitVerdict::Create, Some(creation), ..) => {
                let key = create(conn, commit.execution, creation, commit.rows.head.phase)?;
                let position = transaction.positions.next();
                let owned = transaction.keys.put(commit.execution, key, &creation.origin.tenant);
                let appended = self.append(position, key, None, commit)?;
                insert_head(conn, key, position, &commit.rows.head)?;
                (position, owned, appended)
            }
            (CommitVerdict::Refuse(applied), ..) => return Ok(applied),
            (CommitVerdict::Append | CommitVerdict::Create, ..) => {
                unreachable!("a verdict follows from its facts")
            }
        };
        self.write_rows(conn, owned.key, commit, position)?;
        self.write_around(transaction, owned.key, commit)?;
        transaction.appended.add(&owned.tenant, Usage { journal: bytes(appended), ..Usage::default() });
        Ok(Applied::Committed(position))
    }

    fn update_head(
        &mut self,
        conn: &Connection,
        key: i64,
        before: &Marks,
        last: Position,
        head: &HeadRow,
    ) -> StoreResult<()> {
        let (marks, version) = (Marks::of(head), head.version.cast_signed());
        let changed = if marks == *before {
            self.move_on.execute(params![key, version, last.0, head.at.0, head.state])?
        } else {
            let Marks { phase, held, due, goes_on } = marks;
            let sql = "UPDATE heads SET version = ?2, last = ?3, at = ?4, state = ?5, phase = ?6, held = ?7, \
                       due = ?8, goes_on = ?9 WHERE key = ?1";
            let values = params![key, version, last.0, head.at.0, head.state, phase, held, due, goes_on];
            if phase != before.phase {
                execute(conn, "UPDATE tags SET phase = ?2 WHERE execution = ?1", [key, phase])?;
            }
            execute(conn, sql, values)?
        };
        must_change_one(changed, "the head")
    }

    /// Appends the journal row and returns the bytes of its records.
    fn append(
        &mut self,
        position: Position,
        key: i64,
        before: Option<i64>,
        commit: &Commit,
    ) -> StoreResult<usize> {
        let sealed = seal(commit.execution, commit.expected, commit.id, &commit.records);
        let passes_multiple = commit.expected.next_multiple_of(MARK_EVERY) < commit.rows.head.version;
        let marked = before.is_some() && passes_multiple;
        self.append.execute(params![
            key,
            commit.expected.cast_signed(),
            before,
            marked.then_some(1),
            commit.id.0.to_be_bytes(),
            sealed.format,
            sealed.checksum,
            sealed.bytes,
            position.0,
        ])?;
        Ok(sealed.bytes.len())
    }

    fn write_rows(
        &mut self,
        conn: &Connection,
        key: i64,
        commit: &Commit,
        position: Position,
    ) -> StoreResult<()> {
        for row in &commit.rows.runs {
            let lease = commit.leases.iter().find(|lease| lease.run == row.run);
            self.write_run(conn, key, row, lease)?;
            if is_newly_asked(row) {
                note_asked(conn, key, row.run, commit.rows.head.at)?;
            }
        }
        for row in &commit.rows.parts {
            write_part(conn, key, row)?;
            if row.part == Part::Gated && row.value.is_some() {
                note_gate(conn, key, row, commit.rows.head.at)?;
            }
        }
        if let Some(ctx) = &commit.rows.ctx {
            execute(conn, "INSERT OR REPLACE INTO contexts (key, ctx) VALUES (?1, ?2)", params![key, ctx])?;
        }
        for run in &commit.rows.facts {
            // A loop over nothing begins and ends in one commit: two facts, one row.
            let sql = "INSERT OR IGNORE INTO facts (execution, run, position) VALUES (?1, ?2, ?3)";
            execute(conn, sql, [key, run.0.cast_signed(), position.0])?;
        }
        Ok(())
    }

    fn write_run(
        &mut self,
        conn: &Connection,
        key: i64,
        row: &RunRow,
        lease: Option<&Lease>,
    ) -> StoreResult<()> {
        match (row.before, &row.after) {
            (Some(before), Some(after)) if before == after.class => {
                refresh_run(conn, key, row.run, after, lease)
            }
            (before, after) => {
                if let Some(class) = before {
                    self.remove_run(key, class, row.run)?;
                }
                after.as_ref().map_or(Ok(()), |after| self.insert_run(key, row.run, after, lease))
            }
        }
    }

    fn remove_run(&mut self, key: i64, class: Class, run: RunId) -> StoreResult<()> {
        let changed = self.remove_run.execute(params![class as i64, key, run.0.cast_signed()])?;
        must_change_one(changed, "a step-run that ended")
    }

    fn insert_run(&mut self, key: i64, run: RunId, row: &LiveRun, lease: Option<&Lease>) -> StoreResult<()> {
        self.insert_run.execute(params![
            row.class as i64,
            key,
            run.0.cast_signed(),
            row.fence.map(|fence| fence.0.cast_signed()),
            row.due.map(|due| due.0),
            lease.map(|lease| lease.session.0.cast_signed()),
            lease.map(|lease| lease.claimed_at.0),
            lease.and_then(|lease| lease.started_at).map(|at| at.0),
            row.state,
        ])?;
        Ok(())
    }

    /// Writes what belongs to the commit but not to the state: stop obligations, mail, and audit rows.
    fn write_around(&mut self, transaction: &Transaction<'_>, key: i64, commit: &Commit) -> StoreResult<()> {
        let conn = transaction.conn;
        for Stop { run, fence, session, .. } in &commit.stops {
            let sql = "INSERT INTO stops (execution, run, fence, session) VALUES (?1, ?2, ?3, ?4)";
            execute(conn, sql, [key, run.0.cast_signed(), fence.0.cast_signed(), session.0.cast_signed()])?;
        }
        for letter in &commit.mail {
            mail::accept(conn, letter)?;
        }
        for (mail, ending) in commit.consumed.iter().zip(&self.endings) {
            mail::close(conn, *mail, *ending, None)?;
        }
        for audit in &commit.audits {
            add_audit(conn, transaction.seal, audit)?;
        }
        Ok(())
    }
}

fn insert_head(conn: &Connection, key: i64, last: Position, head: &HeadRow) -> StoreResult<()> {
    let Marks { phase, held, due, goes_on } = Marks::of(head);
    let version = head.version.cast_signed();
    let sql = "INSERT INTO heads (key, version, last, at, state, phase, held, due, goes_on, tenant, workflow) \
               SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, tenant, workflow FROM executions WHERE key = ?1";
    execute(conn, sql, params![key, version, last.0, head.at.0, head.state, phase, held, due, goes_on])?;
    Ok(())
}
