//! `sql`: one statement for the `data` nodes of workflows.
//!
//! | field | meaning |
//! |---|---|
//! | `query` | the statement |
//! | `params` | a list of values for it |
//! | `auth` | PostgreSQL: the name of a secret, or a map of its fields; then the statement has `$1`, `$2`, … |
//! | `database` | SQLite: the name of a file of the tenant, which is created if it is missing |
//! | `tables` | SQLite in memory: rows by table name, for this statement only; then the statement has `?1` or `?` |
//!
//! The result is `{rows, row_count, columns}`. Rows are maps by column.

use super::fields::Fields;
use super::{ToolContext, postgres};
use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use crate::sandbox::{
    Bounds, Database, FILE_BYTES_FACTOR, Job, Limits, ROWS_BYTES_MAX, STATEMENT_TIME, Statement,
};
use serde_json::{Map, Value};
use std::time::Duration;
use windlass_protocol::{Failure, Tool, codes};

/// Memory of one statement's process: pages and sorting, rows as text, parameters and tables.
const MEMORY_BYTES: u64 = 256 << 20;
/// Time for a stopped statement to roll back before its process ends.
const TO_END: Duration = Duration::from_secs(10);

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    match order(call, cx) {
        Err(failure) => Err(failure).into(),
        Ok(Order::Postgres(config)) => {
            let mut called = postgres::run(&Call { config, ..call.clone() }, cx, halt).await;
            if let Ok(Value::Object(result)) = &mut called.outcome {
                result.retain(|key, _| ["rows", "row_count", "columns"].contains(&key.as_str()));
            }
            called
        }
        Ok(Order::Sqlite(work)) => sqlite(*work, cx, halt).await.into(),
    }
}

enum Order {
    Postgres(Map<String, Value>),
    Sqlite(Box<Statement>),
}

fn order(call: &Call, cx: &ToolContext) -> Result<Order, Box<Failure>> {
    let fields = Fields::of(Tool::Sql, &call.config)?;
    let Some(query) = fields.text("query")? else { return Err(invalid("sql needs `query`, a statement")) };
    let params = match fields.given("params") {
        None => Vec::new(),
        Some(Value::Array(params)) => params.clone(),
        Some(other) => return Err(fields.is_not("params", "a list of values", other)),
    };
    let database = match fields.one_of(&["auth", "database", "tables"])? {
        Some(("auth", auth)) => {
            let config =
                [("query", Value::String(query)), ("params", Value::Array(params)), ("auth", auth.clone())];
            return Ok(Order::Postgres(
                config.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            ));
        }
        Some(("database", _)) => Some(place(fields.text("database")?.unwrap_or_default(), cx)?),
        _ => None,
    };
    let tables = fields.map("tables")?.cloned().unwrap_or_default();
    Ok(Order::Sqlite(Box::new(Statement { query, params, database, tables })))
}

/// Bytes of a database's name. A file name may have 255, and SQLite appends to it.
const NAME_MAX: usize = 200;

/// Endings of files that SQLite keeps for a database. A statement in one of them would write into another database.
const SIDE_FILES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Returns the problem of a database name. The name is a file, or a file in folders: SQLite must not interpret it as a
/// URI or a special name (`file:…`, `:memory:`), nor as a file of another database.
fn refused(name: &str) -> Option<String> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._- /".contains(letter);
    let begins_well = |part: &str| part.starts_with(|first: char| first.is_alphanumeric() || first == '_');
    let is_side_file =
        |part: &str| SIDE_FILES.iter().any(|ending| part.to_ascii_lowercase().ends_with(ending));
    let why = if name.len() > NAME_MAX {
        format!("has more than {NAME_MAX} bytes; choose a shorter one")
    } else if !name.chars().all(is_plain) || !name.split('/').all(begins_well) {
        "is not the plain name of a file; choose one like `orders.db`, of letters, digits, `.`, `_`, `-` and spaces, \
         in folders or not, each of which begins with a letter, a digit or `_`"
            .to_owned()
    } else if name.split('/').any(is_side_file) {
        "is that of a file which SQLite keeps for a database; name the database without `-wal`, `-shm` or `-journal`"
            .to_owned()
    } else {
        return None;
    };
    Some(why)
}

/// Returns a path inside the folder of the tenant's databases, for every name.
fn place(name: String, cx: &ToolContext) -> Result<Database, Box<Failure>> {
    if let Some(why) = refused(&name) {
        return Err(invalid(format!("the name in `database` of sql {why}: `{}`", shown(&name))));
    }
    match &cx.kit.databases {
        Some(folder) => {
            let folder = folder.join(&cx.node(Tool::Sql)?.work().tenant);
            Ok(Database { folder, name, quota: cx.kit.database_quota })
        }
        None => Err(invalid("this worker keeps no databases of nodes; give `tables`, or a `connection`")),
    }
}

/// Runs the statement in its own process, because it is written by a tenant.
async fn sqlite(statement: Statement, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
    let file_bytes = match &statement.database {
        None => Some(0),
        Some(database) => database.quota.each.map(|each| each.saturating_mul(FILE_BYTES_FACTOR)),
    };
    let limits = Limits { memory_bytes: MEMORY_BYTES, cpu_seconds: STATEMENT_TIME.as_secs(), file_bytes };
    let bounds = Bounds {
        what: "the statement",
        limits,
        time: STATEMENT_TIME + TO_END,
        result_bytes_max: ROWS_BYTES_MAX,
    };
    let rows = cx.compute(Job::Sql(statement), &bounds, halt).await?;
    let too_large = |error| failure(codes::RESULT_TOO_LARGE, format!("the rows cannot be kept: {error}"));
    cx.share.parse(rows).await.map_err(too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_the_plain_name_of_a_file() {
        for name in
            ["orders.db", "a", "2026/orders_v2.sqlite3", "my orders.db", "Aufträge.db", "x-wal.db", "_x"]
        {
            assert_eq!(refused(name), None, "{name}");
        }
        for name in [
            "",
            "/x",
            "x/",
            "a//b",
            "../x",
            "a/../b",
            ".",
            ".hidden",
            "a/.b",
            "-x",
            " x",
            ":memory:",
            "file:x",
            "file:x?mode=rwc",
            "x?vfs=unix",
            "a\\b",
            "a\0b",
            "x.db-wal",
            "x.db-SHM",
            "x.db-journal",
            "x.db-wal/y.db",
            "x\n",
            "C:x",
        ] {
            assert!(refused(name).is_some(), "{name}");
        }
        assert!(refused(&"x".repeat(NAME_MAX)).is_none() && refused(&"x".repeat(NAME_MAX + 1)).is_some());
    }
}
