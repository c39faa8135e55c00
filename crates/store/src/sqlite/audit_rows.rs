//! Audit rows and their seals.

use super::SqliteReader;
use super::columns::Columns as _;
use super::statements::{execute, query_all, query_first};
use crate::access::{Audit, StoredAudit};
use crate::check::Problem;
use crate::origin::Tenant;
use crate::seal::{AuditChain, AuditSeal};
use crate::store::StoreResult;
use rusqlite::{Connection, Row, params};

/// Appends a row, sealed if there is a key.
pub(super) fn add_audit(conn: &Connection, seal: Option<&AuditSeal>, audit: &Audit) -> StoreResult<()> {
    let sql = "INSERT INTO audit (tenant, at, actor, role, action, target, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Audit { tenant, at, actor, role, action, target, details } = audit;
    let details = details.to_string();
    let previous = match seal {
        Some(_) => newest_seal(conn, tenant)?,
        None => None,
    };
    execute(conn, sql, params![tenant.0, at.0, actor, role, action, target, details])?;
    let Some(seal) = seal else { return Ok(()) };
    let seq = conn.last_insert_rowid();
    let row = seal.row(previous.as_deref(), seq, audit, &details);
    execute(conn, "UPDATE audit SET seal = ?2 WHERE seq = ?1", params![seq, row])?;
    let head = "INSERT INTO audit_heads (tenant, seq, seal) VALUES (?1, ?2, ?3) \
                ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, seal = excluded.seal";
    execute(conn, head, params![tenant.0, seq, seal.head(tenant, seq, &row)]).map(drop)
}

/// Returns the seal of the tenant's newest row, if it has one.
fn newest_seal(conn: &Connection, tenant: &Tenant) -> StoreResult<Option<Vec<u8>>> {
    let sql = "SELECT seal FROM audit WHERE tenant = ?1 ORDER BY seq DESC LIMIT 1";
    Ok(query_first(conn, sql, [&*tenant.0], |row| Ok(row.get(0)?))?.flatten())
}

pub(super) fn read_audit(row: &Row<'_>) -> StoreResult<StoredAudit> {
    let audit = Audit {
        tenant: row.read(1)?,
        at: row.read(2)?,
        actor: row.get(3)?,
        role: row.get(4)?,
        action: row.get(5)?,
        target: row.get(6)?,
        details: row.json(7, "an entry of the audit log")?,
    };
    Ok(StoredAudit { seq: row.get(0)?, audit, seal: row.get(8)? })
}

impl SqliteReader {
    /// Returns the first row of each tenant's audit log that is not as it was written; rows after it cannot be checked.
    pub fn check_audit(&mut self, seal: &AuditSeal) -> StoreResult<Vec<Problem>> {
        self.at_once(|conn| {
            let owners = "SELECT tenant FROM audit UNION SELECT tenant FROM audit_heads ORDER BY 1";
            let owners = query_all(conn, owners, [], |row| row.read(0))?;
            let mut problems = Vec::new();
            for owner in owners {
                let what = check_tenant(conn, seal, &owner)?;
                problems.extend(what.map(|what| Problem {
                    execution: None,
                    version: None,
                    table: "audit",
                    what: format!("{what} (tenant {owner})"),
                }));
            }
            Ok(problems)
        })
    }
}

fn check_tenant(conn: &Connection, seal: &AuditSeal, owner: &Tenant) -> StoreResult<Option<String>> {
    let sql = "SELECT seq, tenant, at, actor, role, action, target, details, seal FROM audit \
               WHERE tenant = ?1 AND seq > ?2 ORDER BY seq";
    let mut statement = conn.prepare(sql)?;
    let mut rows = statement.query(params![owner.0, seal.from()])?;
    let mut chain = AuditChain::new(seal);
    while let Some(row) = rows.next()? {
        let (seq, details) = (row.get(0)?, row.text(7)?);
        if let Err(what) = chain.add(seq, read_audit(row).ok().as_ref(), details) {
            return Ok(Some(what));
        }
    }
    let head =
        query_first(conn, "SELECT seq, seal FROM audit_heads WHERE tenant = ?1", [&*owner.0], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    Ok(chain.finish(owner, head))
}
