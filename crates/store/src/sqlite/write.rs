//! One batch as one transaction. Everything a write needs to be allowed is looked up before its first row is
//! written, so nothing ever has to be undone.

use super::columns::{OFFERED, id_bytes, json, tenant};
use super::commit::Commits;
use super::definitions::{self, define};
use super::entry;
use super::keys::{Keys, Owned};
use super::positions::Positions;
use super::usage;
use crate::commit::{Applied, Lease, LogChunk, Mail, MailId, Progress, Stop, Write};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::seal::AuditSeal;
use crate::store::StoreError;
use crate::usage::{Usage, UsageChanges, Usages, bytes};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use windlass_kernel::{ExecutionId, Fence, RunId};

pub(super) fn apply(
    conn: &Connection,
    keys: &mut Keys,
    (usages, seal): (&Usages, Option<&AuditSeal>),
    writes: &[Write],
) -> Result<Vec<Applied>, StoreError> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
    let applied = Batch::new(conn, keys, seal).and_then(|mut batch| Ok((batch.run(writes)?, batch.usage)));
    let committed = applied.and_then(|(applied, changes)| {
        usage::count(conn, &usages.take_unwritten())?;
        usage::count(conn, &changes)?;
        conn.prepare_cached("COMMIT")?.execute([])?;
        usages.add(&changes);
        let counted = writes.iter().filter_map(counted_artifacts).next_back();
        counted.into_iter().for_each(|left| usages.set_artifacts(left));
        Ok(applied)
    });
    if committed.is_err() {
        // After some errors SQLite has rolled back by itself; either way nothing of it is kept.
        let _ = conn.execute_batch("ROLLBACK");
    }
    committed
}

struct Batch<'c> {
    conn: &'c Connection,
    keys: &'c mut Keys,
    positions: Positions,
    commits: Commits<'c>,
    /// Executions of which a commit was refused: what was decided after it stands on nothing.
    refused: HashSet<ExecutionId>,
    usage: UsageChanges,
    seal: Option<&'c AuditSeal>,
}

fn counted_artifacts(write: &Write) -> Option<&BTreeMap<Tenant, u64>> {
    match write {
        Write::Entry(entry) => match &**entry {
            Entry::ArtifactsCounted { left } => Some(left),
            _ => None,
        },
        _ => None,
    }
}

impl<'c> Batch<'c> {
    fn new(
        conn: &'c Connection,
        keys: &'c mut Keys,
        seal: Option<&'c AuditSeal>,
    ) -> Result<Self, StoreError> {
        let (positions, commits) = (Positions::of(conn)?, Commits::new(conn, seal)?);
        let (refused, usage) = (HashSet::new(), UsageChanges::default());
        Ok(Batch { conn, keys, positions, commits, refused, usage, seal })
    }

    fn run(&mut self, writes: &[Write]) -> Result<Vec<Applied>, StoreError> {
        writes.iter().map(|write| self.write(write)).collect()
    }

    fn write(&mut self, write: &Write) -> Result<Applied, StoreError> {
        match write {
            Write::Commit(commit) if self.refused.contains(&commit.execution) => Ok(Applied::Conflict),
            Write::Commit(commit) => {
                let applied = self.commits.apply(self.conn, (self.keys, &mut self.positions), commit)?;
                match (applied, owner_of(self.conn, self.keys, commit.execution)?) {
                    (Applied::Committed(_), Some(owned)) => {
                        let journal = self.commits.appended();
                        self.usage.add(&owned.tenant, Usage { journal, ..Usage::default() });
                    }
                    (Applied::Committed(_), None) => {}
                    _ => drop(self.refused.insert(commit.execution)),
                }
                Ok(applied)
            }
            Write::Define(definition) => define(self.conn, (&mut self.usage, self.seal), definition),
            Write::Net(net) => definitions::keep_net(self.conn, net).map(|()| Applied::Done),
            Write::Lease(lease) => self.lease(lease),
            Write::Checkpoint { execution, run, fence, cursor } => {
                self.checkpoint(*execution, *run, *fence, cursor)
            }
            Write::Progress { execution, run, fence, progress } => {
                self.progress(*execution, *run, *fence, progress)
            }
            Write::Accept(mail) => accept(self.conn, mail).map(Applied::Accepted),
            Write::Settle { mail, refused } => settle(self.conn, *mail, refused.as_deref()),
            Write::Fetched { mail } => fetched(self.conn, *mail),
            Write::Stopped(stop) => self.stopped(stop),
            Write::Log(chunk) => self.log(chunk),
            Write::Entry(entry) => entry::write(self.conn, (self.keys, &mut self.usage, self.seal), entry),
        }
    }

    /// The number of an execution that offers can be taken from.
    fn open_key(&mut self, id: ExecutionId) -> Result<Option<i64>, StoreError> {
        if self.refused.contains(&id) {
            return Ok(None);
        }
        key_of(self.conn, self.keys, id)
    }

    fn lease(&mut self, lease: &Lease) -> Result<Applied, StoreError> {
        let Some(key) = self.open_key(lease.execution)? else { return Ok(Applied::Fenced) };
        let mut statement = self.conn.prepare_cached(
            "UPDATE step_runs SET session = ?5, claimed_at = ?6, started_at = ?7 \
             WHERE class = ?1 AND execution = ?2 AND run = ?3 AND fence = ?4 \
             AND (session IS NULL OR session = ?5)",
        )?;
        let changed = statement.execute(params![
            OFFERED,
            key,
            lease.run.0.cast_signed(),
            lease.fence.0.cast_signed(),
            lease.session.0.cast_signed(),
            lease.claimed_at.0,
            lease.started_at.map(|at| at.0),
        ])?;
        Ok(if changed == 1 { Applied::Done } else { Applied::Fenced })
    }

    fn checkpoint(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        fence: Fence,
        cursor: &Value,
    ) -> Result<Applied, StoreError> {
        let Some(key) = self.open_key(execution)? else { return Ok(Applied::Fenced) };
        let mut statement = self.conn.prepare_cached(
            "UPDATE step_runs SET cursor = ?5 \
             WHERE class = ?1 AND execution = ?2 AND run = ?3 AND fence = ?4 AND session IS NOT NULL",
        )?;
        let (run, fence) = (run.0.cast_signed(), fence.0.cast_signed());
        let changed = statement.execute(params![OFFERED, key, run, fence, json(cursor)])?;
        Ok(if changed == 1 { Applied::Done } else { Applied::Fenced })
    }

    fn progress(
        &mut self,
        execution: ExecutionId,
        run: RunId,
        fence: Fence,
        progress: &Progress,
    ) -> Result<Applied, StoreError> {
        let Some(key) = self.open_key(execution)? else { return Ok(Applied::Fenced) };
        let mut statement = self.conn.prepare_cached(
            "UPDATE step_runs SET progress = ?5 \
             WHERE class = ?1 AND execution = ?2 AND run = ?3 AND fence = ?4 AND session IS NOT NULL",
        )?;
        let (run, fence) = (run.0.cast_signed(), fence.0.cast_signed());
        let changed = statement.execute(params![OFFERED, key, run, fence, json(progress)])?;
        Ok(if changed == 1 { Applied::Done } else { Applied::Fenced })
    }

    fn stopped(&mut self, stop: &Stop) -> Result<Applied, StoreError> {
        let Some(key) = key_of(self.conn, self.keys, stop.execution)? else { return Ok(Applied::Fenced) };
        let mut statement =
            self.conn.prepare_cached("DELETE FROM stops WHERE execution = ?1 AND run = ?2 AND fence = ?3")?;
        let changed =
            statement.execute(params![key, stop.run.0.cast_signed(), stop.fence.0.cast_signed()])?;
        Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
    }

    fn log(&mut self, chunk: &LogChunk) -> Result<Applied, StoreError> {
        let Some(Owned { key, tenant }) = owner_of(self.conn, self.keys, chunk.execution)? else {
            return Ok(Applied::Fenced);
        };
        let mut statement = self.conn.prepare_cached(
            "INSERT INTO logs (position, execution, run, step, attempt, at, lines) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?;
        let (position, run) = (self.positions.next().0, chunk.run.0.cast_signed());
        statement.execute(params![position, key, run, chunk.step, chunk.attempt, chunk.at.0, chunk.lines])?;
        self.usage.add(&tenant, Usage { logs: bytes(chunk.lines.len()), ..Usage::default() });
        Ok(Applied::Done)
    }
}

pub(super) fn key_of(conn: &Connection, keys: &mut Keys, id: ExecutionId) -> Result<Option<i64>, StoreError> {
    Ok(owner_of(conn, keys, id)?.map(|owned| owned.key))
}

pub(super) fn owner_of(
    conn: &Connection,
    keys: &mut Keys,
    id: ExecutionId,
) -> Result<Option<Owned>, StoreError> {
    if let Some(owned) = keys.get(id) {
        return Ok(Some(owned));
    }
    let mut statement = conn.prepare_cached("SELECT key, tenant FROM executions WHERE id = ?1")?;
    let found: Option<(i64, String)> =
        statement.query_row([id_bytes(id)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.map(|(key, of)| keys.put(id, key, &tenant(&of))))
}

pub(super) fn accept(conn: &Connection, mail: &Mail) -> Result<MailId, StoreError> {
    let mut statement =
        conn.prepare_cached("INSERT INTO inbox (target, letter, wants_answer, at) VALUES (?1, ?2, ?3, ?4)")?;
    statement.execute(params![id_bytes(mail.to), json(&mail.letter), mail.answered, mail.at.0])?;
    Ok(MailId(conn.last_insert_rowid()))
}

/// Mail that is still to be decided.
pub(super) fn is_open(conn: &Connection, mail: MailId) -> Result<bool, StoreError> {
    let mut statement = conn.prepare_cached("SELECT settled = 0 FROM inbox WHERE seq = ?1")?;
    Ok(statement.query_row([mail.0], |row| row.get(0)).optional()?.unwrap_or(false))
}

/// Open mail gets its answer, or goes if nobody waits for one.
pub(super) fn close(conn: &Connection, mail: MailId, refused: Option<&str>) -> Result<(), StoreError> {
    let mut update = conn
        .prepare_cached("UPDATE inbox SET settled = 1, refused = ?2 WHERE seq = ?1 AND wants_answer = 1")?;
    if update.execute(params![mail.0, refused])? == 0 {
        conn.prepare_cached("DELETE FROM inbox WHERE seq = ?1")?.execute([mail.0])?;
    }
    Ok(())
}

fn settle(conn: &Connection, mail: MailId, refused: Option<&str>) -> Result<Applied, StoreError> {
    if !is_open(conn, mail)? {
        return Ok(Applied::Duplicate);
    }
    close(conn, mail, refused)?;
    Ok(Applied::Done)
}

fn fetched(conn: &Connection, mail: MailId) -> Result<Applied, StoreError> {
    let mut statement = conn.prepare_cached("DELETE FROM inbox WHERE seq = ?1 AND settled = 1")?;
    let changed = statement.execute([mail.0])?;
    Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
}
