//! A cache from execution ids to their small numbers and their tenants.

use super::columns::{Columns as _, id_bytes};
use super::statements::query_first;
use crate::origin::Tenant;
use crate::store::StoreResult;
use rusqlite::Connection;
use std::collections::{BTreeSet, HashMap};
use windlass_kernel::ExecutionId;

/// Maximum number of entries of one half; about 4 MB. An execution in neither half costs one lookup per commit.
const HALF_MAX: usize = 65_536;

/// The small number of an execution, and its tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Owned {
    pub(super) key: i64,
    pub(super) tenant: Tenant,
}

/// Two halves: a full young one replaces the old one, and an entry that is used again becomes young.
#[derive(Debug)]
pub(super) struct Keys {
    half_max: usize,
    young: HashMap<ExecutionId, Owned>,
    old: HashMap<ExecutionId, Owned>,
    /// One copy of each id for all entries.
    tenants: BTreeSet<Tenant>,
}

impl Default for Keys {
    fn default() -> Self {
        Keys::with_half(HALF_MAX)
    }
}

impl Keys {
    fn with_half(half_max: usize) -> Keys {
        Keys { half_max, young: HashMap::new(), old: HashMap::new(), tenants: BTreeSet::new() }
    }

    /// Returns the entry of an execution that exists, from the cache or from its row.
    pub(super) fn find(&mut self, conn: &Connection, id: ExecutionId) -> StoreResult<Option<Owned>> {
        if let Some(owned) = self.young.get(&id) {
            return Ok(Some(owned.clone()));
        }
        if let Some(owned) = self.old.get(&id).cloned() {
            self.insert(id, owned.clone());
            return Ok(Some(owned));
        }
        let sql = "SELECT key, tenant FROM executions WHERE id = ?1";
        let found = query_first(conn, sql, [id_bytes(id)], |row| Ok((row.get(0)?, row.read(1)?)))?;
        Ok(found.map(|(key, tenant)| self.put(id, key, &tenant)))
    }

    pub(super) fn remove(&mut self, id: ExecutionId) {
        self.young.remove(&id);
        self.old.remove(&id);
    }

    pub(super) fn put(&mut self, id: ExecutionId, key: i64, tenant: &Tenant) -> Owned {
        let tenant = match self.tenants.get(tenant) {
            Some(known) => known.clone(),
            None => {
                self.tenants.insert(tenant.clone());
                tenant.clone()
            }
        };
        let owned = Owned { key, tenant };
        self.insert(id, owned.clone());
        owned
    }

    fn insert(&mut self, id: ExecutionId, owned: Owned) {
        if self.young.len() >= self.half_max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, owned);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXECUTIONS: u128 = 100;

    fn table() -> Connection {
        let conn = Connection::open_in_memory().expect("a database in memory");
        conn.execute_batch("CREATE TABLE executions (id BLOB, key INTEGER, tenant TEXT)").expect("a table");
        for id in 0..EXECUTIONS {
            let row = rusqlite::params![id_bytes(ExecutionId(id)), id as i64, "default"];
            conn.execute("INSERT INTO executions VALUES (?1, ?2, ?3)", row).expect("a row");
        }
        conn
    }

    fn find(keys: &mut Keys, conn: &Connection, id: u128) -> Option<i64> {
        keys.find(conn, ExecutionId(id)).expect("a table that can be read").map(|owned| owned.key)
    }

    #[test]
    fn every_execution_is_found_however_many_there_are() {
        let (conn, mut keys) = (table(), Keys::with_half(4));
        for id in (0..EXECUTIONS).chain((0..EXECUTIONS).rev()) {
            assert_eq!(find(&mut keys, &conn, id), Some(id as i64));
        }
        assert_eq!(find(&mut keys, &conn, EXECUTIONS), None);
    }

    #[test]
    fn executions_in_use_are_answered_from_memory_and_the_others_are_evicted() {
        let (conn, mut keys) = (table(), Keys::with_half(4));
        for id in 1..EXECUTIONS {
            find(&mut keys, &conn, id);
            find(&mut keys, &conn, 0);
        }
        conn.execute_batch("DELETE FROM executions").expect("an empty table");
        assert_eq!(find(&mut keys, &conn, 0), Some(0), "it was used all the time");
        let left = (0..EXECUTIONS).filter(|id| find(&mut keys, &conn, *id).is_some()).count();
        assert!(left <= 8, "{left} entries in two halves of 4");
    }

    #[test]
    fn a_removed_execution_is_looked_up_again() {
        let (conn, mut keys) = (table(), Keys::default());
        keys.put(ExecutionId(3), 77, &Tenant::default());
        assert_eq!(find(&mut keys, &conn, 3), Some(77));
        keys.remove(ExecutionId(3));
        assert_eq!(find(&mut keys, &conn, 3), Some(3));
    }
}
