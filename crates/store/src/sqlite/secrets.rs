//! Secrets over a connection of their own, whether or not an engine has the store.

use super::audit_rows::add_audit;
use super::columns::{Columns, read_row};
use super::statements::{in_transaction, query_all, query_first};
use super::{Sqlite, connect};
use crate::access::Audit;
use crate::seal::AuditSeal;
use crate::secrets::{Secrets, StoredSecret, Wrapped};
use crate::store::{StoreError, StoreResult};
use rusqlite::{Connection, Row, params};
use std::path::Path;
use std::sync::Arc;

const COLUMNS: &str = "tenant, name, version, key, sealed, created_at, updated_at";

#[derive(Debug)]
pub struct SqliteSecrets {
    conn: Connection,
    seal: Option<Arc<AuditSeal>>,
}

impl Sqlite {
    /// Opens the secrets of an existing store. Calls wait while another process writes.
    pub fn secrets(path: &Path) -> StoreResult<SqliteSecrets> {
        connect::inspect_existing(path)?;
        Ok(SqliteSecrets { conn: connect::open_writer(path)?, seal: None })
    }
}

impl SqliteSecrets {
    /// Seals audit rows from now on.
    pub fn seal_audit(&mut self, seal: Arc<AuditSeal>) {
        self.seal = Some(seal);
    }

    /// Returns the number of the newest audit row of all tenants; 0 if there is none.
    pub fn last_audit(&mut self) -> StoreResult<i64> {
        Ok(self.conn.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?)
    }
}

impl Secrets for SqliteSecrets {
    fn put(&mut self, secret: &StoredSecret, audit: Option<&Audit>) -> StoreResult<bool> {
        let (conn, seal) = (&self.conn, self.seal.as_deref());
        in_transaction(conn, || {
            if !secret.follows(find_secret(conn, &secret.tenant, &secret.name)?.as_ref()) {
                return Ok(false);
            }
            let sql = "INSERT INTO secrets (tenant, name, version, key, sealed, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, key = excluded.key,
                 sealed = excluded.sealed, updated_at = excluded.updated_at";
            let StoredSecret { tenant, name, version, key, sealed, created_at, updated_at } = secret;
            conn.execute(sql, params![tenant, name, version, key, sealed, created_at.0, updated_at.0])?;
            audit.map_or(Ok(()), |audit| add_audit(conn, seal, audit))?;
            Ok(true)
        })
    }

    fn get(&mut self, tenant: &str, name: &str) -> StoreResult<Option<StoredSecret>> {
        find_secret(&self.conn, tenant, name)
    }

    fn all(&mut self, tenant: Option<&str>) -> StoreResult<Vec<StoredSecret>> {
        list_secrets(&self.conn, tenant)
    }

    fn delete(&mut self, tenant: &str, name: &str, audit: Option<&Audit>) -> StoreResult<bool> {
        let (conn, seal) = (&self.conn, self.seal.as_deref());
        in_transaction(conn, || {
            let gone =
                conn.execute("DELETE FROM secrets WHERE tenant = ?1 AND name = ?2", params![tenant, name])?;
            if gone > 0 {
                audit.map_or(Ok(()), |audit| add_audit(conn, seal, audit))?;
            }
            Ok(gone > 0)
        })
    }

    fn rewrap<E: From<StoreError>>(
        &mut self,
        mut change: impl FnMut(&StoredSecret) -> Result<Wrapped, E>,
    ) -> Result<usize, E> {
        let conn = &self.conn;
        in_transaction(conn, || {
            let secrets = list_secrets(conn, None)?;
            for secret in &secrets {
                let Wrapped { key, sealed } = change(secret)?;
                let sql = "UPDATE secrets SET key = ?3, sealed = ?4 WHERE tenant = ?1 AND name = ?2";
                conn.execute(sql, params![secret.tenant, secret.name, key, sealed])
                    .map_err(StoreError::from)?;
            }
            Ok(secrets.len())
        })
    }
}

fn find_secret(conn: &Connection, tenant: &str, name: &str) -> StoreResult<Option<StoredSecret>> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE tenant = ?1 AND name = ?2");
    query_first(conn, &sql, params![tenant, name], read_secret)
}

fn list_secrets(conn: &Connection, tenant: Option<&str>) -> StoreResult<Vec<StoredSecret>> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE ?1 IS NULL OR tenant = ?1 ORDER BY tenant, name");
    query_all(conn, &sql, params![tenant], read_secret)
}

fn read_secret(row: &Row<'_>) -> StoreResult<StoredSecret> {
    Ok(read_row![row, StoredSecret: tenant name version key sealed created_at updated_at])
}
