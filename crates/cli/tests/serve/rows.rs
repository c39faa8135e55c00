//! Every row of a store, to see whether anything was written.

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::path::Path;

/// Rows by table, as texts.
pub type Rows = BTreeMap<String, Vec<String>>;

/// Returns all rows of a data folder to which a server may be writing, without the times at which tokens were last used.
pub fn all(data: &Path) -> Rows {
    let file = std::fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.extension().is_some_and(|end| end == "db")).unwrap();
    let conn = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let mut tables = conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").unwrap();
    let names: Vec<String> =
        tables.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    names.into_iter().map(|name| (name.clone(), rows(&conn, &name))).collect()
}

fn rows(conn: &Connection, table: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
    let kept: Vec<usize> = (0..statement.column_count())
        .filter(|place| statement.column_name(*place).unwrap() != "last_used_at")
        .collect();
    let rows = statement.query_map([], |row| {
        let values: Result<Vec<Value>, _> = kept.iter().map(|place| row.get(*place)).collect();
        values.map(|values| format!("{values:?}"))
    });
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}
