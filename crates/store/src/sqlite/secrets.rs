//! Secrets over a connection of their own: the engine may have the store, or nobody.

use super::audit_rows::add_audit;
use super::{Sqlite, connect};
use crate::access::Audit;
use crate::seal::AuditSeal;
use crate::secrets::{Secrets, StoredSecret, Wrapped};
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use std::sync::Arc;
use windlass_kernel::Millis;

const COLUMNS: &str = "tenant, name, version, key, sealed, created_at, updated_at";

#[derive(Debug)]
pub struct SqliteSecrets {
    conn: Connection,
    seal: Option<Arc<AuditSeal>>,
}

impl Sqlite {
    /// Of an existing store. Waits for whoever writes at the moment.
    pub fn secrets(path: &Path) -> Result<SqliteSecrets, StoreError> {
        connect::inspect_existing(path)?;
        Ok(SqliteSecrets { conn: connect::writing(path)?, seal: None })
    }
}

impl SqliteSecrets {
    /// Seals audit rows from now on.
    pub fn seal_audit(&mut self, seal: Arc<AuditSeal>) {
        self.seal = Some(seal);
    }

    /// The number of the newest audit row of all tenants; 0: there is none.
    pub fn last_audit(&mut self) -> Result<i64, StoreError> {
        Ok(self.conn.query_row("SELECT coalesce(max(seq), 0) FROM audit", [], |row| row.get(0))?)
    }

    /// One transaction that nobody else writes in.
    fn whole<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let begun = self.conn.execute_batch("BEGIN IMMEDIATE").map_err(StoreError::from);
        begun?;
        let done = work(&self.conn).and_then(|done| {
            self.conn.execute_batch("COMMIT").map_err(StoreError::from)?;
            Ok(done)
        });
        if done.is_err() {
            // After some errors SQLite has rolled back by itself; either way nothing of it is kept.
            let _ = self.conn.execute_batch("ROLLBACK");
        }
        done
    }
}

impl Secrets for SqliteSecrets {
    fn put(&mut self, secret: &StoredSecret, audit: Option<&Audit>) -> Result<bool, StoreError> {
        let seal = self.seal.clone();
        self.whole(|conn| {
            let there = get(conn, &secret.tenant, &secret.name)?.map_or(0, |there| there.version);
            if there.checked_add(1) != Some(secret.version) {
                return Ok(false);
            }
            let sql = "INSERT INTO secrets (tenant, name, version, key, sealed, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, key = excluded.key,
                 sealed = excluded.sealed, updated_at = excluded.updated_at";
            let StoredSecret { tenant, name, version, key, sealed, created_at, updated_at } = secret;
            conn.execute(sql, params![tenant, name, version, key, sealed, created_at.0, updated_at.0])?;
            audit.map_or(Ok(()), |audit| add_audit(conn, seal.as_deref(), audit))?;
            Ok(true)
        })
    }

    fn get(&mut self, tenant: &str, name: &str) -> Result<Option<StoredSecret>, StoreError> {
        get(&self.conn, tenant, name)
    }

    fn all(&mut self, tenant: Option<&str>) -> Result<Vec<StoredSecret>, StoreError> {
        all(&self.conn, tenant)
    }

    fn delete(&mut self, tenant: &str, name: &str, audit: Option<&Audit>) -> Result<bool, StoreError> {
        let seal = self.seal.clone();
        self.whole(|conn| {
            let gone =
                conn.execute("DELETE FROM secrets WHERE tenant = ?1 AND name = ?2", params![tenant, name])?;
            if gone > 0 {
                audit.map_or(Ok(()), |audit| add_audit(conn, seal.as_deref(), audit))?;
            }
            Ok(gone > 0)
        })
    }

    fn rewrap<E: From<StoreError>>(
        &mut self,
        mut change: impl FnMut(&StoredSecret) -> Result<Wrapped, E>,
    ) -> Result<usize, E> {
        self.whole(|conn| {
            let secrets = all(conn, None)?;
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

fn get(conn: &Connection, tenant: &str, name: &str) -> Result<Option<StoredSecret>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE tenant = ?1 AND name = ?2");
    Ok(conn.prepare_cached(&sql)?.query_row(params![tenant, name], read).optional()?)
}

fn all(conn: &Connection, tenant: Option<&str>) -> Result<Vec<StoredSecret>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE ?1 IS NULL OR tenant = ?1 ORDER BY tenant, name");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params![tenant], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredSecret> {
    Ok(StoredSecret {
        tenant: row.get(0)?,
        name: row.get(1)?,
        version: row.get(2)?,
        key: row.get(3)?,
        sealed: row.get(4)?,
        created_at: Millis(row.get(5)?),
        updated_at: Millis(row.get(6)?),
    })
}
