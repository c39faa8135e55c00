//! Rows from a node, as tables that exist for one statement.

use super::Statement;
use super::statement::trouble;
use crate::failure::{invalid, shown};
use rusqlite::types::Value as Param;
use rusqlite::{Connection, params_from_iter};
use serde_json::Value;
use windlass_protocol::Failure;

/// Maximum number of tables: as many as one statement can name.
const COLUMNS_MAX: usize = 1_000;

pub(super) fn fill(conn: &Connection, statement: &Statement) -> Result<(), Box<Failure>> {
    for (name, rows) in &statement.tables {
        let Some(rows) = rows.as_array() else {
            return Err(invalid(format!(
                "`tables.{name}` of sql is a list of rows, not {}",
                shown(&rows.to_string())
            )));
        };
        table(conn, name, rows, statement)?;
    }
    Ok(())
}

fn table(conn: &Connection, name: &str, rows: &[Value], statement: &Statement) -> Result<(), Box<Failure>> {
    let mut columns: Vec<&str> = Vec::new();
    for row in rows {
        let Some(row) = row.as_object() else {
            return Err(invalid(format!(
                "a row of `tables.{name}` of sql is a map of columns, not {}",
                shown(&row.to_string())
            )));
        };
        for column in row.keys() {
            if !columns.contains(&column.as_str()) {
                columns.push(column);
            }
        }
        if columns.len() > COLUMNS_MAX {
            return Err(invalid(format!("`tables.{name}` of sql has more than {COLUMNS_MAX} columns")));
        }
    }
    // A table without rows has no columns.
    if columns.is_empty() {
        columns.push("empty");
    }
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let places = vec!["?"; columns.len()].join(", ");
    let run = || {
        conn.execute_batch("BEGIN")?;
        conn.execute(&format!("CREATE TABLE {} ({})", quoted(name), names.join(", ")), [])?;
        let mut insert = conn.prepare(&format!("INSERT INTO {} VALUES ({places})", quoted(name)))?;
        for row in rows {
            let value = |column: &&str| row.get(*column).map_or(Param::Null, cell);
            insert.execute(params_from_iter(columns.iter().map(value)))?;
        }
        conn.execute_batch("COMMIT")
    };
    run().map_err(|error| trouble(&error, statement))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Converts a value to a cell. Lists and maps are stored as JSON, whose fields SQLite can read.
pub(super) fn cell(value: &Value) -> Param {
    match value {
        Value::Null => Param::Null,
        Value::Bool(flag) => Param::Integer(i64::from(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => Param::Integer(whole),
            None => Param::Real(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Param::Text(text.clone()),
        Value::Array(_) | Value::Object(_) => Param::Text(value.to_string()),
    }
}
