//! Audit rows and their seals.

use super::SqliteReader;
use super::columns::{parsed, tenant};
use super::lists::all;
use crate::access::{Audit, StoredAudit};
use crate::check::Problem;
use crate::origin::Tenant;
use crate::seal::AuditSeal;
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use windlass_kernel::Millis;

pub(super) const COLUMNS: &str = "seq, tenant, at, actor, role, action, target, details, seal";

/// Appends a row, sealed if there is a key.
pub(super) fn add_audit(
    conn: &Connection,
    seal: Option<&AuditSeal>,
    audit: &Audit,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO audit (tenant, at, actor, role, action, target, details) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    let Audit { tenant, at, actor, role, action, target, details } = audit;
    let details = details.to_string();
    let previous = match seal {
        Some(_) => newest(conn, tenant)?,
        None => None,
    };
    conn.prepare_cached(sql)?.execute(params![tenant.0, at.0, actor, role, action, target, details])?;
    let Some(seal) = seal else { return Ok(()) };
    let seq = conn.last_insert_rowid();
    let row = seal.row(previous.as_deref(), seq, audit, &details);
    conn.prepare_cached("UPDATE audit SET seal = ?2 WHERE seq = ?1")?.execute(params![seq, row])?;
    let head = "INSERT INTO audit_heads (tenant, seq, seal) VALUES (?1, ?2, ?3) \
                ON CONFLICT (tenant) DO UPDATE SET seq = excluded.seq, seal = excluded.seal";
    conn.prepare_cached(head)?.execute(params![tenant.0, seq, seal.head(tenant, seq, &row)])?;
    Ok(())
}

/// The seal of the tenant's newest row, if it has one.
fn newest(conn: &Connection, tenant: &Tenant) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT seal FROM audit WHERE tenant = ?1 ORDER BY seq DESC LIMIT 1";
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row([&*tenant.0], |row| row.get(0)).optional()?.flatten())
}

pub(super) fn read(row: &Row<'_>) -> Result<StoredAudit, StoreError> {
    let audit = Audit {
        tenant: tenant(&row.get::<_, String>(1)?),
        at: Millis(row.get(2)?),
        actor: row.get(3)?,
        role: row.get(4)?,
        action: row.get(5)?,
        target: row.get(6)?,
        details: parsed(&row.get::<_, String>(7)?, "an entry of the audit log")?,
    };
    Ok(StoredAudit { seq: row.get(0)?, audit, seal: row.get(8)? })
}

impl SqliteReader {
    /// Rows of the audit log that are not as they were written; the first of each tenant, since nothing after it can be
    /// told from it.
    pub fn check_audit(&mut self, seal: &AuditSeal) -> Result<Vec<Problem>, StoreError> {
        self.at_once(|conn| {
            let owners = "SELECT tenant FROM audit UNION SELECT tenant FROM audit_heads ORDER BY 1";
            let owners = all(conn, owners, [], |row| Ok(tenant(&row.get::<_, String>(0)?)))?;
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

fn check_tenant(conn: &Connection, seal: &AuditSeal, owner: &Tenant) -> Result<Option<String>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, details FROM audit WHERE tenant = ?1 AND seq > ?2 ORDER BY seq");
    let mut statement = conn.prepare(&sql)?;
    let mut rows = statement.query(params![owner.0, seal.from()])?;
    let mut last: Option<(i64, Vec<u8>)> = None;
    while let Some(row) = rows.next()? {
        let (seq, details): (i64, String) = (row.get(0)?, row.get(9)?);
        let Ok(StoredAudit { audit, seal: found, .. }) = read(row) else {
            return Ok(Some(format!("row {seq} cannot be read")));
        };
        let Some(found) = found else { return Ok(Some(format!("row {seq} has no seal"))) };
        let expected = seal.row(last.as_ref().map(|(_, seal)| &seal[..]), seq, &audit, &details);
        if found != expected {
            let what = format!(
                "row {seq} is not as it was written, or the row before it was changed or removed: its seal differs"
            );
            return Ok(Some(what));
        }
        last = Some((seq, found));
    }
    let head = "SELECT seq, seal FROM audit_heads WHERE tenant = ?1";
    let head: Option<(i64, Vec<u8>)> =
        conn.prepare(head)?.query_row([&*owner.0], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(match (last, head) {
        (None, None) => None,
        (Some((seq, row)), Some((newest, head))) if seq == newest && head == seal.head(owner, seq, &row) => {
            None
        }
        (Some((seq, _)), _) => Some(format!("rows after row {seq} are missing: it was not the newest")),
        (None, Some((newest, _))) => Some(format!("all rows up to row {newest} are missing")),
    })
}
