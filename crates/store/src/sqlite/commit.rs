//! One commit: first everything that must hold, then its rows.

use super::audit_rows::add_audit;
use super::columns::{OFFERED, phase_number};
use super::creation::{create, is_taken};
use super::keys::Keys;
use super::positions::Positions;
use super::rows::{one, part, refresh};
use super::sound::must_be_sound;
use super::write::{accept, close, is_open, key_of};
use crate::commit::{Applied, Commit, Lease, Position, Stop};
use crate::journal::seal;
use crate::rows::{Class, HeadRow, LiveRun, RunRow};
use crate::seal::AuditSeal;
use crate::store::StoreError;
use rusqlite::{CachedStatement, Connection, OptionalExtension, params};
use windlass_kernel::RunId;

/// Statements of a step in a chain, held for a whole batch.
pub(super) struct Commits<'c> {
    head: CachedStatement<'c>,
    fence: CachedStatement<'c>,
    move_on: CachedStatement<'c>,
    append: CachedStatement<'c>,
    remove_run: CachedStatement<'c>,
    insert_run: CachedStatement<'c>,
    /// Bytes of the newest row of a journal.
    appended: usize,
    seal: Option<&'c AuditSeal>,
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

/// An execution as it stands in the store.
struct Standing {
    key: i64,
    /// Its newest journal row.
    last: i64,
    marks: Marks,
}

enum Checked {
    New,
    Standing(Standing),
    Refused(Applied),
}

/// A journal row in which the version passes a multiple of this has a mark. Between two marks lie fewer rows than
/// this, which is what finding a place in a journal costs.
pub(super) const MARK_EVERY: u64 = 64;

impl<'c> Commits<'c> {
    pub(super) fn new(conn: &'c Connection, seal: Option<&'c AuditSeal>) -> Result<Self, StoreError> {
        Ok(Commits {
            head: conn.prepare_cached(
                "SELECT version, last, phase, held, due, goes_on FROM heads WHERE key = ?1",
            )?,
            fence: conn.prepare_cached(
                "SELECT fence FROM step_runs WHERE class = ?1 AND execution = ?2 AND run = ?3",
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
            appended: 0,
            seal,
        })
    }

    /// Bytes that the last commit added to its journal.
    pub(super) fn appended(&self) -> i64 {
        crate::usage::bytes(self.appended)
    }

    pub(super) fn apply(
        &mut self,
        conn: &Connection,
        (keys, positions): (&mut Keys, &mut Positions),
        commit: &Commit,
    ) -> Result<Applied, StoreError> {
        must_be_sound(commit);
        let (key, position) = match (self.check(conn, keys, commit)?, &commit.creation) {
            (Checked::Refused(how), _) => return Ok(how),
            (Checked::Standing(at), _) => {
                let position = self.append(positions.next(), at.key, Some(at.last), commit)?;
                self.head(conn, &at, position, &commit.rows.head)?;
                (at.key, position)
            }
            (Checked::New, Some(creation)) => {
                let key = create(conn, commit.execution, creation)?;
                keys.put(commit.execution, key, &creation.tenant);
                let position = self.append(positions.next(), key, None, commit)?;
                first_head(conn, key, position, &commit.rows.head)?;
                (key, position)
            }
            (Checked::New, None) => unreachable!("only a creation is checked as new"),
        };
        self.rows(conn, key, commit, position)?;
        around(conn, key, commit, self.seal)?;
        Ok(Applied::Committed(position))
    }

    fn check(&mut self, conn: &Connection, keys: &mut Keys, commit: &Commit) -> Result<Checked, StoreError> {
        let checked = match (key_of(conn, keys, commit.execution)?, &commit.creation) {
            (None, Some(creation)) if is_taken(conn, creation)? => Checked::Refused(Applied::Taken),
            (None, Some(_)) => Checked::New,
            (Some(_), Some(_)) => Checked::Refused(Applied::Duplicate),
            (None, None) => Checked::Refused(Applied::Conflict),
            (Some(key), None) => self.check_standing(key, commit)?,
        };
        if !matches!(checked, Checked::Refused(_)) {
            for mail in &commit.consumed {
                if !is_open(conn, *mail)? {
                    return Ok(Checked::Refused(Applied::Duplicate));
                }
            }
        }
        Ok(checked)
    }

    fn check_standing(&mut self, key: i64, commit: &Commit) -> Result<Checked, StoreError> {
        let (version, last, marks): (i64, i64, Marks) = self.head.query_row([key], |row| {
            let (phase, held) = (row.get(2)?, row.get(3)?);
            let marks = Marks { phase, held, due: row.get(4)?, goes_on: row.get(5)? };
            Ok((row.get(0)?, row.get(1)?, marks))
        })?;
        if version != commit.expected.cast_signed() {
            return Ok(Checked::Refused(Applied::Conflict));
        }
        for (run, fence) in &commit.answered {
            let place = params![OFFERED, key, run.0.cast_signed()];
            let open: Option<Option<i64>> = self.fence.query_row(place, |row| row.get(0)).optional()?;
            if open.flatten() != Some(fence.0.cast_signed()) {
                return Ok(Checked::Refused(Applied::Fenced));
            }
        }
        Ok(Checked::Standing(Standing { key, last, marks }))
    }

    fn head(
        &mut self,
        conn: &Connection,
        at: &Standing,
        last: Position,
        head: &HeadRow,
    ) -> Result<(), StoreError> {
        let (key, version) = (at.key, head.version.cast_signed());
        let marks = Marks::of(head);
        let changed = if marks == at.marks {
            self.move_on.execute(params![key, version, last.0, head.at.0, head.state])?
        } else {
            let Marks { phase, held, due, goes_on } = marks;
            conn.prepare_cached(
                "UPDATE heads SET version = ?2, last = ?3, at = ?4, state = ?5, phase = ?6, held = ?7, \
                 due = ?8, goes_on = ?9 WHERE key = ?1",
            )?
            .execute(params![key, version, last.0, head.at.0, head.state, phase, held, due, goes_on])?
        };
        one(changed, "the head")
    }

    fn append(
        &mut self,
        position: Position,
        key: i64,
        before: Option<i64>,
        commit: &Commit,
    ) -> Result<Position, StoreError> {
        let sealed = seal(commit.execution, commit.expected, commit.id, &commit.records);
        self.appended = sealed.bytes.len();
        let marked = commit.expected.next_multiple_of(MARK_EVERY) < commit.rows.head.version;
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
        Ok(position)
    }

    fn rows(
        &mut self,
        conn: &Connection,
        key: i64,
        commit: &Commit,
        position: Position,
    ) -> Result<(), StoreError> {
        for row in &commit.rows.runs {
            let lease = commit.leases.iter().find(|lease| lease.run == row.run);
            self.run(conn, key, row, lease)?;
        }
        for row in &commit.rows.parts {
            part(conn, key, row)?;
        }
        if let Some(ctx) = &commit.rows.ctx {
            conn.prepare_cached("INSERT OR REPLACE INTO contexts (key, ctx) VALUES (?1, ?2)")?
                .execute(params![key, ctx])?;
        }
        for run in &commit.rows.facts {
            // A loop over nothing begins and ends in one commit: two facts, one row.
            conn.prepare_cached(
                "INSERT OR IGNORE INTO facts (execution, run, position) VALUES (?1, ?2, ?3)",
            )?
            .execute(params![key, run.0.cast_signed(), position.0])?;
        }
        Ok(())
    }

    fn run(
        &mut self,
        conn: &Connection,
        key: i64,
        row: &RunRow,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError> {
        match (row.before, &row.after) {
            (Some(before), Some(after)) if before == after.class => refresh(conn, key, row.run, after, lease),
            (before, after) => {
                if let Some(class) = before {
                    self.remove(key, class, row.run)?;
                }
                after.as_ref().map_or(Ok(()), |after| self.insert(key, row.run, after, lease))
            }
        }
    }

    fn remove(&mut self, key: i64, class: Class, run: RunId) -> Result<(), StoreError> {
        let changed = self.remove_run.execute(params![class as i64, key, run.0.cast_signed()])?;
        one(changed, "a step-run that ended")
    }

    fn insert(
        &mut self,
        key: i64,
        run: RunId,
        row: &LiveRun,
        lease: Option<&Lease>,
    ) -> Result<(), StoreError> {
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
}
fn first_head(conn: &Connection, key: i64, last: Position, head: &HeadRow) -> Result<(), StoreError> {
    let Marks { phase, held, due, goes_on } = Marks::of(head);
    let version = head.version.cast_signed();
    conn.prepare_cached(
        "INSERT INTO heads (key, version, last, at, state, phase, held, due, goes_on) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute(params![key, version, last.0, head.at.0, head.state, phase, held, due, goes_on])?;
    Ok(())
}

/// What goes with the commit and is not of the state: stop obligations, mail, and who asked for it.
fn around(conn: &Connection, key: i64, commit: &Commit, seal: Option<&AuditSeal>) -> Result<(), StoreError> {
    for stop in &commit.stops {
        stop_row(conn, key, stop)?;
    }
    for mail in &commit.mail {
        accept(conn, mail)?;
    }
    for mail in &commit.consumed {
        close(conn, *mail, None)?;
    }
    for audit in &commit.audits {
        add_audit(conn, seal, audit)?;
    }
    Ok(())
}

fn stop_row(conn: &Connection, key: i64, stop: &Stop) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT INTO stops (execution, run, fence, session) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![
            key,
            stop.run.0.cast_signed(),
            stop.fence.0.cast_signed(),
            stop.session.0.cast_signed()
        ])?;
    Ok(())
}
