//! Tenants, tokens and the audit log.

use super::SqliteReader;
use super::audit_rows;
use super::columns::{Columns, json, limit, read_row};
use super::statements::{execute, query_all, query_first};
use crate::access::{Access, AuditQuery, StoredAudit, StoredTenant, StoredToken};
use crate::commit::Applied;
use crate::origin::Tenant;
use crate::rules::{TokenFacts, judge_token, judge_token_revocation};
use crate::store::StoreResult;
use rusqlite::{Connection, Row, params};
use windlass_kernel::Millis;

/// Puts a tenant, or changes its name and limits.
pub(super) fn put_tenant(conn: &Connection, stored: &StoredTenant) -> StoreResult<usize> {
    let sql = "INSERT INTO tenants (id, name, limits, programs, created_at, updated_at) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO UPDATE SET name = excluded.name, \
               limits = excluded.limits, programs = excluded.programs, updated_at = excluded.updated_at";
    let StoredTenant { id, name, limits, programs, created_at, updated_at } = stored;
    execute(conn, sql, params![id.0, name, json(limits), programs, created_at.0, updated_at.0])
}

pub(super) fn put_token(conn: &Connection, token: &StoredToken) -> StoreResult<Applied> {
    let sql =
        "SELECT EXISTS (SELECT 1 FROM tokens WHERE id = ?1), EXISTS (SELECT 1 FROM tokens WHERE digest = ?2)";
    let facts = query_first(conn, sql, params![token.id, token.digest], |row| {
        Ok(read_row![row, TokenFacts: has_id has_digest])
    })?;
    let verdict = facts.map_or(Applied::Duplicate, judge_token);
    if verdict == Applied::Done {
        insert_token(conn, token)?;
    }
    Ok(verdict)
}

fn insert_token(conn: &Connection, token: &StoredToken) -> StoreResult<()> {
    let sql = "INSERT INTO tokens (id, tenant, name, role, digest, created_by, created_at, expires_at, \
               revoked_at, last_used_at, roles, runner_group, person, issuer) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
    let StoredToken {
        id,
        tenant,
        name,
        role,
        roles,
        group,
        person,
        digest,
        issuer,
        created_by,
        created_at,
        expires_at,
        revoked_at,
        last_used_at,
    } = token;
    let [expires_at, revoked_at, last_used_at] =
        [expires_at, revoked_at, last_used_at].map(|time| time.map(|time| time.0));
    let values = params![
        id,
        tenant.0,
        name,
        role,
        digest,
        created_by,
        created_at.0,
        expires_at,
        revoked_at,
        last_used_at,
        json(roles),
        group,
        person,
        issuer
    ];
    execute(conn, sql, values).map(drop)
}

pub(super) fn revoke_token(conn: &Connection, of: &Tenant, id: &str, at: Millis) -> StoreResult<Applied> {
    let sql = "SELECT revoked_at IS NOT NULL FROM tokens WHERE id = ?2 AND tenant = ?1";
    let is_revoked = query_first(conn, sql, params![of.0, id], |row| Ok(row.get(0)?))?;
    let verdict = judge_token_revocation(is_revoked);
    if verdict == Applied::Done {
        let sql = "UPDATE tokens SET revoked_at = ?3 WHERE id = ?2 AND tenant = ?1";
        execute(conn, sql, params![of.0, id, at.0])?;
    }
    Ok(verdict)
}

pub(super) fn delete_token(conn: &Connection, of: &Tenant, id: &str) -> StoreResult<usize> {
    execute(conn, "DELETE FROM tokens WHERE id = ?2 AND tenant = ?1", params![of.0, id])
}

pub(super) fn use_token(conn: &Connection, id: &str, at: Millis) -> StoreResult<usize> {
    let sql = "UPDATE tokens SET last_used_at = ?2 WHERE id = ?1";
    execute(conn, sql, params![id, at.0])
}

impl Access for SqliteReader {
    fn tenants(&mut self) -> StoreResult<Vec<StoredTenant>> {
        let sql =
            "SELECT id, name, limits, programs, created_at, updated_at FROM tenants ORDER BY created_at, id";
        query_all(&self.conn, sql, [], |row| {
            Ok(StoredTenant {
                id: row.read(0)?,
                name: row.read(1)?,
                limits: row.json(2, "the limits of a tenant")?,
                programs: row.read(3)?,
                created_at: row.read(4)?,
                updated_at: row.read(5)?,
            })
        })
    }

    fn tokens(&mut self) -> StoreResult<Vec<StoredToken>> {
        let sql = "SELECT id, tenant, name, role, digest, created_by, created_at, expires_at, revoked_at, \
                   last_used_at, roles, runner_group, person, issuer FROM tokens ORDER BY created_at, id";
        query_all(&self.conn, sql, [], read_token)
    }

    fn audit(&mut self, query: &AuditQuery) -> StoreResult<Vec<StoredAudit>> {
        let sql = "SELECT seq, tenant, at, actor, role, action, target, details, seal FROM audit WHERE tenant = ?1 \
                   AND seq < ?2 AND (?3 IS NULL OR actor = ?3) AND (?4 IS NULL OR action = ?4) \
                   AND (?5 IS NULL OR target = ?5) AND at > ?6 AND at < ?7 ORDER BY seq DESC LIMIT ?8";
        let before = query.before.unwrap_or(i64::MAX);
        let since = query.since.map_or(i64::MIN, |since| since.0);
        let until = query.until.map_or(i64::MAX, |until| until.0);
        let AuditQuery { tenant, actor, action, target, .. } = query;
        let values = params![tenant.0, before, actor, action, target, since, until, limit(query.limit)];
        query_all(&self.conn, sql, values, audit_rows::read_audit)
    }
}

fn read_token(row: &Row<'_>) -> StoreResult<StoredToken> {
    Ok(StoredToken {
        id: row.read(0)?,
        tenant: row.read(1)?,
        name: row.read(2)?,
        role: row.read(3)?,
        digest: row.read(4)?,
        created_by: row.read(5)?,
        created_at: row.read(6)?,
        expires_at: row.read(7)?,
        revoked_at: row.read(8)?,
        last_used_at: row.read(9)?,
        roles: row.json(10, "the roles of a token")?,
        group: row.read(11)?,
        person: row.read(12)?,
        issuer: row.read(13)?,
    })
}
