//! Entries: rows that belong to no execution's state, each kind by its module.

use super::audit_rows::add_audit;
use super::columns::workflow_bytes;
use super::statements::{execute, query_first};
use super::write::Transaction;
use super::{
    access, artifact_owners, hooks, memory, objects, outbox, quarantine, registry, retention, schedule_runs,
    schedules, workers,
};
use crate::commit::{Applied, WorkflowId};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::rules::{WORKFLOW_DELETION, WorkflowDeletion, count_memory, is_audited, judge_workflow_change};
use crate::store::StoreResult;
use rusqlite::{Connection, params};
use windlass_kernel::Millis;

pub(super) fn write_entry(transaction: &mut Transaction<'_>, entry: &Entry) -> StoreResult<Applied> {
    let Transaction { conn, keys, usage, seal, .. } = transaction;
    let (conn, seal) = (*conn, *seal);
    let changed = match entry {
        Entry::WorkflowStatus { tenant, workflow, status, at } => {
            return change_workflow(conn, tenant, *workflow, |key| {
                let sql = "UPDATE workflows SET status = ?2, updated_at = ?3 WHERE key = ?1";
                execute(conn, sql, params![key, status.name(), at.0]).map(drop)
            });
        }
        Entry::WorkflowDeleted { tenant, workflow, at } => {
            return change_workflow(conn, tenant, *workflow, |key| {
                delete_workflow(conn, (tenant, *workflow), key, *at)
            });
        }
        Entry::Recompiled { definition, net, manifest } => {
            let sql = "UPDATE definitions SET net = ?2, compiler = ?3, manifest = ?4 WHERE id = ?1";
            execute(conn, sql, params![definition.0, net.0, manifest.compiler, manifest.json])?
        }
        Entry::HooksRead { tenant, workflow, hooks, at } => {
            return hooks::put_read(conn, tenant, *workflow, hooks, *at);
        }
        Entry::Forget { execution, ended_before } => {
            return retention::forget(conn, keys, *execution, *ended_before);
        }
        Entry::Clear { rows } => return retention::clear(transaction, *rows),
        Entry::ArtifactsCounted { left } => {
            super::usage::set_artifacts(conn, left)?;
            return Ok(Applied::Done);
        }
        Entry::Object(write) => return objects::write(conn, write),
        Entry::Suspect(suspect) => quarantine::put(conn, suspect)?,
        Entry::Released { execution } => quarantine::remove(conn, *execution)?,
        Entry::Abandoned { execution, at } => quarantine::abandon(conn, *execution, *at)?,
        Entry::Remember(memory) => {
            usage.add(&memory.tenant, count_memory(memory, memory::size(conn, memory)?));
            memory::remember(conn, memory)?
        }
        Entry::Deliveries(new) => outbox::add(conn, new)?,
        Entry::DeliveryAttempted(tried) => outbox::record_try(conn, tried)?,
        Entry::GivenUp { execution, why, at } => outbox::give_up_all(conn, *execution, why, *at)?,
        Entry::OutboxClosed { execution } => return outbox::close(conn, *execution),
        Entry::Redeliver { tenant, execution, number, at } => {
            outbox::request_again(conn, tenant, *execution, *number, *at)?
        }
        Entry::Registry(write) => return registry::write(transaction, write),
        Entry::Schedule(write) => return schedule_runs::write(conn, write),
        Entry::Tenant(tenant) => access::put_tenant(conn, tenant)?,
        Entry::Token(token) => return access::put_token(conn, token),
        Entry::TokenRevoked { tenant, id, at } => return access::revoke_token(conn, tenant, id, *at),
        Entry::TokenDeleted { tenant, id } => access::delete_token(conn, tenant, id)?,
        Entry::TokenUsed { id, at } => access::use_token(conn, id, *at)?,
        Entry::WorkerSession(session) => workers::open_session(conn, session)?,
        Entry::WorkerRenewed { session, expires_at } => workers::renew_session(conn, *session, *expires_at)?,
        Entry::WorkerClosed { session } => workers::close_session(conn, *session)?,
        Entry::Receipt(receipt) => workers::put_receipt(conn, receipt)?,
        Entry::ReceiptsDropped { session, before } => {
            workers::drop_receipts(conn, *session, *before)?;
            return Ok(Applied::Done);
        }
        Entry::ArtifactsOwned { execution, artifacts } => {
            return artifact_owners::add(conn, *execution, artifacts);
        }
        Entry::ArtifactsTakenOver { from, to } => return artifact_owners::take_over(conn, *from, *to),
        Entry::RunnerGroup(group) => workers::put_group(conn, group)?,
        Entry::RunnerGroupDeleted { tenant, name } => workers::delete_group(conn, tenant, name)?,
        Entry::Audit(audit) => {
            add_audit(conn, seal, audit)?;
            return Ok(Applied::Done);
        }
        Entry::Audited { entry, audit } => {
            let applied = write_entry(transaction, entry)?;
            if is_audited(applied) {
                add_audit(conn, seal, audit)?;
            }
            return Ok(applied);
        }
    };
    Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
}

/// Writes a change of a workflow if the rules permit one.
fn change_workflow(
    conn: &Connection,
    of: &Tenant,
    workflow: WorkflowId,
    write: impl FnOnce(i64) -> StoreResult<()>,
) -> StoreResult<Applied> {
    let sql = "SELECT key, deleted_at IS NOT NULL FROM workflows WHERE id = ?2 AND tenant = ?1";
    let values = params![of.0, workflow_bytes(workflow)];
    let found: Option<(i64, bool)> = query_first(conn, sql, values, |row| Ok((row.get(0)?, row.get(1)?)))?;
    let verdict = judge_workflow_change(found.map(|(_, is_deleted)| is_deleted));
    if let (Applied::Done, Some((key, _))) = (verdict, found) {
        write(key)?;
    }
    Ok(verdict)
}

fn delete_workflow(
    conn: &Connection,
    (of, workflow): (&Tenant, WorkflowId),
    key: i64,
    at: Millis,
) -> StoreResult<()> {
    for part in WORKFLOW_DELETION {
        match part {
            WorkflowDeletion::ReleaseHooks => hooks::release(conn, key)?,
            WorkflowDeletion::SkipUnreadHooks => hooks::mark_read(conn, key)?,
            WorkflowDeletion::ReplaceSchedules => schedules::write_triggered(conn, (of, workflow), &[])?,
            WorkflowDeletion::Hide => {
                let sql = "UPDATE workflows SET deleted_at = ?2 WHERE key = ?1";
                execute(conn, sql, [key, at.0])?;
            }
        }
    }
    Ok(())
}
