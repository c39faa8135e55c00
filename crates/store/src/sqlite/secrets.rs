//! Secrets over a connection of their own: the engine may have the store, or nobody.

use super::{Sqlite, connect};
use crate::secrets::{Secrets, StoredSecret, TENANT, Wrapped};
use crate::store::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use windlass_kernel::Millis;

const COLUMNS: &str = "name, version, key, sealed, created_at, updated_at";

#[derive(Debug)]
pub struct SqliteSecrets {
    conn: Connection,
}

impl Sqlite {
    /// Of an existing store. Waits for whoever writes at the moment.
    pub fn secrets(path: &Path) -> Result<SqliteSecrets, StoreError> {
        connect::inspect_existing(path)?;
        Ok(SqliteSecrets { conn: connect::writing(path)? })
    }
}

impl SqliteSecrets {
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
    fn put(&mut self, secret: &StoredSecret) -> Result<bool, StoreError> {
        self.whole(|conn| {
            let there = get(conn, &secret.name)?.map_or(0, |there| there.version);
            if there.checked_add(1) != Some(secret.version) {
                return Ok(false);
            }
            let sql = "INSERT INTO secrets (tenant, name, version, key, sealed, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, key = excluded.key,
                 sealed = excluded.sealed, updated_at = excluded.updated_at";
            let StoredSecret { name, version, key, sealed, created_at, updated_at } = secret;
            conn.execute(sql, params![TENANT, name, version, key, sealed, created_at.0, updated_at.0])?;
            count(conn)?;
            Ok(true)
        })
    }

    fn get(&mut self, name: &str) -> Result<Option<StoredSecret>, StoreError> {
        get(&self.conn, name)
    }

    fn all(&mut self) -> Result<Vec<StoredSecret>, StoreError> {
        all(&self.conn)
    }

    fn delete(&mut self, name: &str) -> Result<bool, StoreError> {
        self.whole(|conn| {
            let gone =
                conn.execute("DELETE FROM secrets WHERE tenant = ?1 AND name = ?2", params![TENANT, name])?;
            if gone > 0 {
                count(conn)?;
            }
            Ok(gone > 0)
        })
    }

    fn rewrap<E: From<StoreError>>(
        &mut self,
        mut change: impl FnMut(&StoredSecret) -> Result<Wrapped, E>,
    ) -> Result<usize, E> {
        self.whole(|conn| {
            let secrets = all(conn)?;
            for secret in &secrets {
                let Wrapped { key, sealed } = change(secret)?;
                let sql = "UPDATE secrets SET key = ?3, sealed = ?4 WHERE tenant = ?1 AND name = ?2";
                conn.execute(sql, params![TENANT, secret.name, key, sealed]).map_err(StoreError::from)?;
            }
            count(conn)?;
            Ok(secrets.len())
        })
    }

    fn changes(&mut self) -> Result<u64, StoreError> {
        let sql = "SELECT number FROM secret_changes WHERE tenant = ?1";
        let mut statement = self.conn.prepare_cached(sql)?;
        let number: Option<i64> = statement.query_row(params![TENANT], |row| row.get(0)).optional()?;
        Ok(number.unwrap_or_default().unsigned_abs())
    }
}

fn get(conn: &Connection, name: &str) -> Result<Option<StoredSecret>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE tenant = ?1 AND name = ?2");
    Ok(conn.prepare_cached(&sql)?.query_row(params![TENANT, name], read).optional()?)
}

fn all(conn: &Connection) -> Result<Vec<StoredSecret>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM secrets WHERE tenant = ?1 ORDER BY name");
    let mut statement = conn.prepare_cached(&sql)?;
    let rows = statement.query_map(params![TENANT], read)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn count(conn: &Connection) -> Result<(), StoreError> {
    let sql = "INSERT INTO secret_changes (tenant, number) VALUES (?1, 1)
         ON CONFLICT (tenant) DO UPDATE SET number = number + 1";
    conn.execute(sql, params![TENANT])?;
    Ok(())
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredSecret> {
    Ok(StoredSecret {
        name: row.get(0)?,
        version: row.get(1)?,
        key: row.get(2)?,
        sealed: row.get(3)?,
        created_at: Millis(row.get(4)?),
        updated_at: Millis(row.get(5)?),
    })
}
