//! `sql`: one statement for the `data` nodes of workflows.
//!
//! | field | meaning |
//! |---|---|
//! | `query` | the statement |
//! | `params` | a list of values for it |
//! | `auth` | PostgreSQL: the name of a secret, or a map of its fields; then the statement has `$1`, `$2`, … |
//! | `database` | SQLite: a file of the tenant's own, by its name; it is made when it is missing |
//! | `tables` | SQLite in memory: name to rows, for this statement only; then the statement has `?1` or `?` |
//!
//! The result is `{rows, row_count, columns}`. Rows are maps by column.

use super::fields::Fields;
use super::{Desk, postgres};
use crate::failure::{failure, invalid};
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use crate::sandbox::{
    Bounds, Database, FILE_BYTES_FACTOR, Job, Limits, ROWS_BYTES_MAX, STATEMENT_TIME, Statement,
};
use serde_json::{Map, Value};
use std::path::{Component, Path};
use std::time::Duration;
use windlass_protocol::{ErrorClass, Failure, Tool};

/// Memory of one statement's process: pages and sorting, rows as text, parameters and tables.
const MEMORY_BYTES: u64 = 256 << 20;
/// A statement that is stopped rolls back before its process ends.
const TO_END: Duration = Duration::from_secs(10);

pub(super) async fn run(call: &Call, desk: &Desk, halt: Halt) -> CallResult {
    match order(call, desk) {
        Err(failure) => Err(failure).into(),
        Ok(Order::Postgres(config)) => {
            let mut called = postgres::run(&Call { config, ..call.clone() }, desk, halt).await;
            if let Ok(Value::Object(result)) = &mut called.outcome {
                result.retain(|key, _| ["rows", "row_count", "columns"].contains(&key.as_str()));
            }
            called
        }
        Ok(Order::Sqlite(work)) => sqlite(*work, desk, halt).await.into(),
    }
}

enum Order {
    Postgres(Map<String, Value>),
    Sqlite(Box<Statement>),
}

fn order(call: &Call, desk: &Desk) -> Result<Order, Box<Failure>> {
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
        Some(("database", _)) => Some(place(fields.text("database")?.unwrap_or_default(), desk)?),
        _ => None,
    };
    let tables = fields.map("tables")?.cloned().unwrap_or_default();
    Ok(Order::Sqlite(Box::new(Statement { query, params, database, tables })))
}

/// Inside the folder of the tenant's databases, whatever the name says.
fn place(name: String, desk: &Desk) -> Result<Database, Box<Failure>> {
    let plain = Path::new(&name).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() {
        return Err(invalid(format!(
            "`database` of sql is the name of a file, without `..` or `/` in front: `{name}`"
        )));
    }
    match &desk.kit.databases {
        Some(folder) => {
            let folder = folder.join(&desk.node(Tool::Sql.kind())?.work().tenant);
            Ok(Database { folder, name, quota: desk.kit.database_quota })
        }
        None => Err(invalid("this worker keeps no databases of nodes; give `tables`, or a `connection`")),
    }
}

/// In a process of its own: a statement is a stranger's program.
async fn sqlite(statement: Statement, desk: &Desk, halt: Halt) -> Result<Value, Box<Failure>> {
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
    let rows = desk.compute(Job::Sql(statement), &bounds, halt).await?;
    let too_large = |error| {
        failure(ErrorClass::Validation, "RESULT_TOO_LARGE", format!("the rows cannot be kept: {error}"))
    };
    desk.share.parse(rows).await.map_err(too_large)
}
