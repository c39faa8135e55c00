//! One batch as one transaction. Every fact that a write depends on is looked up before its first row is written, so
//! nothing ever has to be undone.

use super::columns::{OFFERED, json};
use super::commit::Commits;
use super::definitions::{define, keep_net};
use super::entry::write_entry;
use super::keys::Keys;
use super::statements::{execute, in_transaction};
use super::{mail, objects, usage};
use crate::commit::{Applied, Lease, LogChunk, Position, Stop, Write};
use crate::entry::Entry;
use crate::objects::PutArtifact;
use crate::origin::Tenant;
use crate::rules::{OfferClaim, Refusals, judge_offer_write};
use crate::seal::AuditSeal;
use crate::store::{StoreError, StoreResult};
use crate::usage::{Usage, UsageChanges, Usages, bytes};
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use windlass_kernel::{ExecutionId, Fence, RunId};

pub(super) fn apply(
    conn: &Connection,
    keys: &mut Keys,
    (usages, seal): (&Usages, Option<&AuditSeal>),
    put: &[PutArtifact],
    writes: &[Write],
) -> StoreResult<Vec<Applied>> {
    let (applied, changes) = in_transaction(conn, || {
        for artifact in put {
            objects::put(conn, artifact)?;
        }
        let mut batch = Batch::new(conn, keys, seal)?;
        let applied = writes.iter().map(|write| batch.write(write)).collect::<StoreResult<_>>()?;
        let Transaction { positions, usage, appended, .. } = batch.transaction;
        usage::count(conn, &usages.take_unwritten())?;
        usage::count(conn, &usage)?;
        if positions.passed(usage::COUNT_EVERY) {
            usage::count_appended(conn, positions.last)?;
        }
        Ok::<_, StoreError>((applied, [usage, appended]))
    })?;
    changes.iter().for_each(|changes| usages.add(changes));
    let counted = writes.iter().filter_map(counted_artifacts).next_back();
    counted.into_iter().for_each(|left| usages.set_artifacts(left));
    Ok(applied)
}

fn counted_artifacts(write: &Write) -> Option<&BTreeMap<Tenant, u64>> {
    let Write::Entry(entry) = write else { return None };
    let Entry::ArtifactsCounted { left } = &**entry else { return None };
    Some(left)
}

/// State that the writes of a transaction share.
pub(super) struct Transaction<'c> {
    pub(super) conn: &'c Connection,
    pub(super) keys: &'c mut Keys,
    pub(super) positions: Positions,
    /// Changes of the usage that are counted in this transaction.
    pub(super) usage: UsageChanges,
    /// Bytes of appended rows, which this or a later transaction counts.
    pub(super) appended: UsageChanges,
    pub(super) seal: Option<&'c AuditSeal>,
}

/// The positions of journal rows and log chunks: one number line orders both.
pub(super) struct Positions {
    /// The last one before the transaction.
    before: Position,
    pub(super) last: Position,
}

impl Positions {
    /// Reads the last position inside the transaction, since another process may have written before it. Positions of deleted rows
    /// are not used again: rows up to the position of `usage_counted` are not counted a second time.
    fn load(conn: &Connection) -> StoreResult<Positions> {
        let sql = "SELECT max(coalesce((SELECT max(position) FROM journal), 0), \
                   coalesce((SELECT max(position) FROM logs), 0), \
                   (SELECT position FROM usage_counted))";
        let last = Position(conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?);
        Ok(Positions { before: last, last })
    }

    pub(super) fn next(&mut self) -> Position {
        self.last.0 += 1;
        self.last
    }

    /// Returns whether the transaction reached or passed a multiple of this number.
    fn passed(&self, multiple: i64) -> bool {
        self.before.0 / multiple < self.last.0 / multiple
    }
}

const SET_CURSOR: &str = "UPDATE step_runs SET cursor = ?4 WHERE class = ?1 AND execution = ?2 AND run = ?3";
const SET_PROGRESS: &str =
    "UPDATE step_runs SET progress = ?4 WHERE class = ?1 AND execution = ?2 AND run = ?3";

struct Batch<'c> {
    transaction: Transaction<'c>,
    commits: Commits<'c>,
    refusals: Refusals,
}

impl<'c> Batch<'c> {
    fn new(conn: &'c Connection, keys: &'c mut Keys, seal: Option<&'c AuditSeal>) -> StoreResult<Self> {
        let (positions, usage, appended) =
            (Positions::load(conn)?, UsageChanges::default(), UsageChanges::default());
        let transaction = Transaction { conn, keys, positions, usage, appended, seal };
        Ok(Batch { transaction, commits: Commits::new(conn)?, refusals: Refusals::default() })
    }

    fn write(&mut self, write: &Write) -> StoreResult<Applied> {
        let conn = self.transaction.conn;
        match write {
            Write::Commit(commit) if self.refusals.contain(commit.execution) => Ok(Applied::Conflict),
            Write::Commit(commit) => {
                let applied = self.commits.apply(&mut self.transaction, commit)?;
                self.refusals.record(commit.execution, applied);
                Ok(applied)
            }
            Write::Define(definition) => define(&mut self.transaction, definition),
            Write::Net(net) => keep_net(conn, net).map(|()| Applied::Done),
            Write::Lease(lease) => self.lease(lease),
            Write::Checkpoint { execution, run, fence, cursor } => {
                self.report((*execution, *run, *fence), SET_CURSOR, &json(cursor))
            }
            Write::Progress { execution, run, fence, progress } => {
                self.report((*execution, *run, *fence), SET_PROGRESS, &json(progress))
            }
            Write::Accept(letter) => mail::accept(conn, letter).map(Applied::Accepted),
            Write::Settle { mail, refused } => mail::settle(conn, *mail, refused.as_deref()),
            Write::Fetched { mail } => mail::fetch(conn, *mail),
            Write::Stopped(stop) => self.stopped(stop),
            Write::Log(chunk) => self.log(chunk),
            Write::Entry(entry) => write_entry(&mut self.transaction, entry),
        }
    }

    /// Returns the number of the execution if the claim on its offer is accepted.
    fn claim(
        &mut self,
        (execution, run, fence): (ExecutionId, RunId, Fence),
        claim: OfferClaim,
    ) -> StoreResult<Option<i64>> {
        if self.refusals.contain(execution) {
            return Ok(None);
        }
        let Transaction { conn, keys, .. } = &mut self.transaction;
        let Some(owned) = keys.find(conn, execution)? else { return Ok(None) };
        let offer = self.commits.find_offer(owned.key, run)?;
        Ok((judge_offer_write(offer, fence, claim) == Applied::Done).then_some(owned.key))
    }

    fn lease(&mut self, lease: &Lease) -> StoreResult<Applied> {
        let Lease { execution, run, fence, session, claimed_at, started_at } = *lease;
        let Some(key) = self.claim((execution, run, fence), OfferClaim::Lease(session))? else {
            return Ok(Applied::Fenced);
        };
        let sql = "UPDATE step_runs SET session = ?4, claimed_at = ?5, started_at = ?6 \
                   WHERE class = ?1 AND execution = ?2 AND run = ?3";
        let (run, session) = (run.0.cast_signed(), session.0.cast_signed());
        let values = params![OFFERED, key, run, session, claimed_at.0, started_at.map(|at| at.0)];
        execute(self.transaction.conn, sql, values)?;
        Ok(Applied::Done)
    }

    /// Writes a report of the holder of a lease into a column of its offer.
    fn report(&mut self, offer: (ExecutionId, RunId, Fence), sql: &str, value: &str) -> StoreResult<Applied> {
        let Some(key) = self.claim(offer, OfferClaim::Report)? else { return Ok(Applied::Fenced) };
        execute(self.transaction.conn, sql, params![OFFERED, key, offer.1.0.cast_signed(), value])?;
        Ok(Applied::Done)
    }

    fn stopped(&mut self, stop: &Stop) -> StoreResult<Applied> {
        let Transaction { conn, keys, .. } = &mut self.transaction;
        let Some(owned) = keys.find(conn, stop.execution)? else { return Ok(Applied::Fenced) };
        let sql = "DELETE FROM stops WHERE execution = ?1 AND run = ?2 AND fence = ?3";
        let row = [owned.key, stop.run.0.cast_signed(), stop.fence.0.cast_signed()];
        let deleted = execute(conn, sql, row)?;
        Ok(if deleted == 1 { Applied::Done } else { Applied::Duplicate })
    }

    fn log(&mut self, chunk: &LogChunk) -> StoreResult<Applied> {
        let Transaction { conn, keys, positions, appended, .. } = &mut self.transaction;
        let Some(owned) = keys.find(conn, chunk.execution)? else { return Ok(Applied::Fenced) };
        let sql = "INSERT INTO logs (position, execution, run, step, attempt, at, lines) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let LogChunk { step, attempt, lines, at, .. } = chunk;
        let (position, run) = (positions.next().0, chunk.run.0.cast_signed());
        execute(conn, sql, params![position, owned.key, run, step, attempt, at.0, lines])?;
        appended.add(&owned.tenant, Usage { logs: bytes(lines.len()), ..Usage::default() });
        Ok(Applied::Done)
    }
}
