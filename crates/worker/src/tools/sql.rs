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

mod sqlite;
mod tables;

use super::fields::Fields;
use super::{Desk, postgres};
use crate::failure::invalid;
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use serde_json::{Map, Value};
use std::path::{Component, Path, PathBuf};
use windlass_protocol::Failure;

const TOOL: &str = "sql";
const FIELDS: [&str; 10] =
    ["query", "params", "auth", "database", "tables", "timeout_seconds", "timeout", "args", "input", "name"];

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
        Ok(Order::Sqlite(work)) => sqlite::run(*work, halt).await.into(),
    }
}

enum Order {
    Postgres(Map<String, Value>),
    Sqlite(Box<sqlite::Work>),
}

fn order(call: &Call, desk: &Desk) -> Result<Order, Box<Failure>> {
    let fields = Fields::of(TOOL, &call.config, &FIELDS)?;
    let Some(query) = fields.text("query")? else { return Err(invalid("sql needs `query`, a statement")) };
    let params = match fields.given("params") {
        None => Vec::new(),
        Some(Value::Array(params)) => params.clone(),
        Some(other) => return Err(fields.is_not("params", "a list of values", other)),
    };
    let file = match fields.one_of(&["auth", "database", "tables"])? {
        Some(("auth", auth)) => {
            let config =
                [("query", Value::String(query)), ("params", Value::Array(params)), ("auth", auth.clone())];
            return Ok(Order::Postgres(
                config.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
            ));
        }
        Some(("database", _)) => Some(place(&fields.text("database")?.unwrap_or_default(), desk)?),
        _ => None,
    };
    let tables = fields.map("tables")?.cloned().unwrap_or_default();
    Ok(Order::Sqlite(Box::new(sqlite::Work { query, params, file, tables })))
}

/// Inside the folder of the tenant's databases, whatever the name says.
fn place(name: &str, desk: &Desk) -> Result<PathBuf, Box<Failure>> {
    let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain || name.is_empty() {
        return Err(invalid(format!(
            "`database` of sql is the name of a file, without `..` or `/` in front: `{name}`"
        )));
    }
    match &desk.kit.databases {
        Some(folder) => Ok(folder.join(&desk.node(TOOL)?.work().tenant).join(name)),
        None => Err(invalid("this worker keeps no databases of nodes; give `tables`, or a `connection`")),
    }
}
