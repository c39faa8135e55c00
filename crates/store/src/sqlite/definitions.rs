//! Definitions as they come in: versions of workflows, and the nets they compile to.

use super::audit_rows::add_audit;
use super::columns::{self, workflow_bytes};
use super::hooks;
use crate::access::Audit;
use crate::commit::{Applied, Definition, DefinitionId, Target, WorkflowId};
use crate::entry::WorkflowStatus;
use crate::seal::AuditSeal;
use crate::store::{StoreError, Which};
use crate::usage::{Usage, UsageChanges, bytes};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::json;
use windlass_kernel::Net;

/// A workflow that a definition becomes a version of.
struct Standing {
    key: i64,
    id: WorkflowId,
    /// Its newest version; 0: it has none yet.
    newest: u32,
}

pub(super) fn define(
    conn: &Connection,
    (usage, seal): (&mut UsageChanges, Option<&AuditSeal>),
    definition: &Definition,
) -> Result<Applied, StoreError> {
    let (found, new_id) = match definition.target {
        Target::New(id) => (None, id),
        Target::Named(id) => match named(conn, definition)? {
            None => (None, id),
            Some(standing) => match known(conn, definition, &standing)? {
                Some(known) => return Ok(Applied::Defined(known, standing.newest, standing.id)),
                None => (Some(standing), id),
            },
        },
        Target::After(id, expected) => match of_id(conn, definition, id)? {
            Some(standing) if expected.is_none_or(|expected| expected == standing.newest) => {
                (Some(standing), id)
            }
            _ => return Ok(Applied::Fenced),
        },
    };
    let own = found.as_ref().map(|standing| standing.key);
    if let Some(other) = hooks::taken(conn, &definition.tenant, own, &definition.hooks)? {
        return Ok(Applied::HookTaken(other));
    }
    let standing = match found {
        Some(standing) => standing,
        None => made(conn, definition, new_id)?,
    };
    let applied = insert(conn, seal, definition, &standing)?;
    let length = definition.source.len() + columns::json(&definition.workload).len();
    usage.add(&definition.tenant, Usage { definitions: bytes(length), ..Usage::default() });
    Ok(applied)
}

pub(super) fn keep_net(conn: &Connection, net: &Net) -> Result<(), StoreError> {
    conn.prepare_cached("INSERT OR IGNORE INTO nets (digest, spec) VALUES (?1, ?2)")?
        .execute(params![net.digest().0, columns::json(net.spec())])?;
    Ok(())
}

fn insert(
    conn: &Connection,
    seal: Option<&AuditSeal>,
    definition: &Definition,
    of: &Standing,
) -> Result<Applied, StoreError> {
    keep_net(conn, &definition.net)?;
    let version = of.newest + 1;
    conn.prepare_cached(
        "INSERT INTO definitions (workflow, name, version, dialect, net, at, workload, source) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        of.key,
        definition.name,
        version,
        definition.dialect,
        definition.net.digest().0,
        definition.at.0,
        columns::json(&definition.workload),
        definition.source,
    ])?;
    let id = DefinitionId(conn.last_insert_rowid());
    conn.prepare_cached(
        "UPDATE workflows SET name = ?2, updated_at = ?3, status = coalesce(?4, status) WHERE key = ?1",
    )?
    .execute(params![
        of.key,
        definition.name,
        definition.at.0,
        definition.status.map(WorkflowStatus::name)
    ])?;
    hooks::read(conn, of.key)?;
    hooks::put(conn, &definition.tenant, of.key, &definition.hooks, definition.at)?;
    if let Some(audit) = audit(definition, of, version) {
        add_audit(conn, seal, &audit)?;
    }
    Ok(Applied::Defined(id, version, of.id))
}

fn audit(definition: &Definition, of: &Standing, version: u32) -> Option<Audit> {
    let author = definition.author.clone()?;
    let action = if version == 1 { "workflow.create" } else { "workflow.change" };
    Some(Audit {
        tenant: definition.tenant.clone(),
        at: definition.at,
        actor: author.actor,
        role: author.role,
        action: action.to_owned(),
        target: Which::Id(of.id).to_string(),
        details: json!({ "name": definition.name, "version": version }),
    })
}

fn made(conn: &Connection, definition: &Definition, id: WorkflowId) -> Result<Standing, StoreError> {
    conn.prepare_cached(
        "INSERT INTO workflows (id, tenant, name, status, created_at, updated_at) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?5)",
    )?
    .execute(params![
        workflow_bytes(id),
        definition.tenant.0,
        definition.name,
        definition.status.unwrap_or_default().name(),
        definition.at.0
    ])?;
    Ok(Standing { key: conn.last_insert_rowid(), id, newest: 0 })
}

const STANDING: &str = "SELECT w.key, w.id, \
     coalesce((SELECT max(version) FROM definitions d WHERE d.workflow = w.key), 0) FROM workflows w \
     WHERE w.tenant = ?1 AND w.deleted_at IS NULL";

fn named(conn: &Connection, definition: &Definition) -> Result<Option<Standing>, StoreError> {
    let sql = format!("{STANDING} AND w.name = ?2 ORDER BY w.key DESC LIMIT 1");
    let mut statement = conn.prepare_cached(&sql)?;
    Ok(statement.query_row(params![definition.tenant.0, definition.name], standing).optional()?)
}

fn of_id(conn: &Connection, definition: &Definition, id: WorkflowId) -> Result<Option<Standing>, StoreError> {
    let sql = format!("{STANDING} AND w.id = ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    Ok(statement.query_row(params![definition.tenant.0, workflow_bytes(id)], standing).optional()?)
}

fn standing(row: &rusqlite::Row<'_>) -> rusqlite::Result<Standing> {
    let id = WorkflowId(u128::from_be_bytes(row.get(1)?));
    Ok(Standing { key: row.get(0)?, id, newest: row.get(2)? })
}

/// The newest version, if it is the same. The same text may compile to another net under a later version of the
/// program: then it is a new version. So is an old text that comes again after another one: whoever asks for the newest
/// gets what was defined last.
fn known(
    conn: &Connection,
    definition: &Definition,
    of: &Standing,
) -> Result<Option<DefinitionId>, StoreError> {
    let mut statement = conn.prepare_cached(
        "SELECT id FROM definitions WHERE workflow = ?1 AND version = ?2 AND net = ?3 AND source = ?4",
    )?;
    let same = params![of.key, of.newest, definition.net.digest().0, definition.source];
    Ok(statement.query_row(same, |row| row.get(0).map(DefinitionId)).optional()?)
}
