//! Rows beside executions, each kind by its owner.

use super::access;
use super::audit_rows::add_audit;
use super::catalog::standing;
use super::columns::workflow_bytes;
use super::hooks;
use super::keys::Keys;
use super::memory;
use super::outbox;
use super::quarantine;
use super::retention;
use super::usage;
use crate::commit::{Applied, WorkflowId};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::seal::AuditSeal;
use crate::store::{StoreError, Which};
use crate::usage::{Usage, UsageChanges, bytes};
use rusqlite::{Connection, params};
use windlass_kernel::Millis;

pub(super) fn write(
    conn: &Connection,
    (keys, usage, seal): (&mut Keys, &mut UsageChanges, Option<&AuditSeal>),
    entry: &Entry,
) -> Result<Applied, StoreError> {
    let changed = match entry {
        Entry::WorkflowStatus { tenant, workflow, status, at } => conn
            .prepare_cached(
                "UPDATE workflows SET status = ?3, updated_at = ?4 \
                 WHERE tenant = ?1 AND id = ?2 AND deleted_at IS NULL",
            )?
            .execute(params![tenant.0, workflow_bytes(*workflow), status.name(), at.0])?,
        Entry::WorkflowDeleted { tenant, workflow, at } => delete(conn, tenant, *workflow, *at)?,
        Entry::HooksRead { tenant, workflow, hooks, at } => {
            hooks::put_read(conn, tenant, *workflow, hooks, *at)?
        }
        Entry::Forget { execution } => return retention::forget(conn, keys, *execution),
        Entry::Clear { rows } => return retention::clear(conn, usage, *rows),
        Entry::ArtifactsCounted { left } => {
            usage::set_artifacts(conn, left)?;
            return Ok(Applied::Done);
        }
        Entry::Suspect(suspect) => quarantine::put(conn, suspect)?,
        Entry::Released { execution } => quarantine::remove(conn, *execution)?,
        Entry::Abandoned { execution, at } => quarantine::abandon(conn, *execution, *at)?,
        Entry::Remember(memory) => {
            let before = memory::size(conn, memory)?;
            let memories = bytes(memory.value.len()) - before;
            usage.add(&memory.tenant, Usage { memories, ..Usage::default() });
            memory::remember(conn, memory)?
        }
        Entry::Deliveries(new) => outbox::add(conn, new)?,
        Entry::Tried(tried) => outbox::tried(conn, tried)?,
        Entry::GivenUp { execution, why, at } => outbox::give_up(conn, *execution, why, *at)?,
        Entry::ToldAll { execution } => outbox::close(conn, *execution)?,
        Entry::Redeliver { tenant, execution, number, at } => {
            outbox::redeliver(conn, tenant, *execution, *number, *at)?
        }
        Entry::Tenant(tenant) => access::put_tenant(conn, tenant)?,
        Entry::Token(token) => access::put_token(conn, token)?,
        Entry::TokenRevoked { tenant, id, at } => access::revoke(conn, tenant, id, *at)?,
        Entry::TokenUsed { id, at } => access::used(conn, id, *at)?,
        Entry::Audit(audit) => {
            add_audit(conn, seal, audit)?;
            return Ok(Applied::Done);
        }
        Entry::Audited { entry, audit } => {
            let applied = write(conn, (keys, usage, seal), entry)?;
            if applied == Applied::Done {
                add_audit(conn, seal, audit)?;
            }
            return Ok(applied);
        }
    };
    Ok(if changed == 1 { Applied::Done } else { Applied::Duplicate })
}

/// Its hooks are free for other workflows of the tenant.
fn delete(conn: &Connection, of: &Tenant, workflow: WorkflowId, at: Millis) -> Result<usize, StoreError> {
    let Some(key) = standing(conn, of, &Which::Id(workflow))? else { return Ok(0) };
    hooks::release(conn, key)?;
    hooks::read(conn, key)?;
    Ok(conn.prepare_cached("UPDATE workflows SET deleted_at = ?2 WHERE key = ?1")?.execute([key, at.0])?)
}
