//! Statements for PostgreSQL.
//!
//! | field | meaning |
//! |---|---|
//! | `command` or `query` | the text; several statements are separated by `;` |
//! | `commands` | a list of texts or of `{command, params}` |
//! | `script` | in place of `command`: the path of a file below the worker's directory, also as `{uri}` |
//! | `params` | a list for `$1`, `$2`, …; for one statement |
//! | `auth` or `credential` | the name of a secret, or a map of the fields below |
//! | `host`, `port`, `user`, `password`, `database`, `schema` | the server; a host that begins with `/` is a directory of sockets |
//! | `sslmode` | `disable`, `prefer` (by default), `require`, or `verify-full`, the only one that verifies the server's identity |
//! | `connection_string` or `dsn` | all of these as one string |
//! | `max_result_bytes` | maximum size of all rows, 32 MiB by default |
//! | `timeout_seconds` | as `spec.timeout`; the statement is cancelled in the server, too |
//! | `args`, `input` | for templates of the other fields |
//!
//! The result of one statement is `{status, rows, row_count, columns}`, and the same under `command_0`; that of several is
//! `{command_0: {…}, command_1: {…}, …}`. Rows are maps by column. Each statement is a transaction of its own unless the
//! text says `BEGIN`. An error has the fact `pg: {code, sqlstate}`; what came before it stays done.

mod config;
mod errors;
mod numeric;
mod param;
mod reach;
mod server;
mod split;
mod value;

use super::ToolContext;
use crate::egress::Egress;
use crate::failure;
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use config::{Order, Statement};
use errors::{PostgresError, too_large};
use futures_util::TryStreamExt;
use param::Param;
use serde_json::{Map, Value, json};
use server::Session;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;
use tokio_postgres::{Client, Column};

/// Maximum time for a server to cancel a statement.
const CANCELLED_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    let order = match Order::read(&call.config, cx).await {
        Ok(order) => order,
        Err(failure) => return Err(failure).into(),
    };
    match done(&order, cx.kit.clients.egress(), halt).await {
        Ok(result) => Ok(result).into(),
        Err(trouble) => trouble.into(),
    }
}

async fn done(order: &Order, egress: &Egress, mut halt: Halt) -> Result<Value, PostgresError> {
    let session = tokio::select! {
        biased;
        _ = halt.requested() => return Err(stopped()),
        session = Session::open(&order.place, egress) => session?,
    };
    let result = {
        let mut work = pin!(all(order, session.client()));
        tokio::select! {
            biased;
            result = &mut work => result,
            _ = halt.requested() => {
                session.cancel(CANCELLED_WITHIN).await;
                // It ends by itself when the server has cancelled it.
                let _ = timeout(CANCELLED_WITHIN, work).await;
                Err(stopped())
            }
        }
    };
    session.close().await;
    result
}

fn stopped() -> PostgresError {
    failure::stopped("the statement").into()
}

async fn all(order: &Order, client: &Client) -> Result<Value, PostgresError> {
    let mut left = order.result_max;
    let mut results = Map::new();
    for (index, statement) in order.statements.iter().enumerate() {
        let name = format!("command_{index}");
        let result = one(statement, client, &mut left)
            .await
            .map_err(|trouble| trouble.in_command(&name, &order.statements))?;
        results.insert(name, result);
    }
    if order.statements.len() == 1
        && let Some(Value::Object(only)) = results.get("command_0")
    {
        let mut whole = only.clone();
        whole.extend(results);
        return Ok(Value::Object(whole));
    }
    Ok(Value::Object(results))
}

async fn one(statement: &Statement, client: &Client, left: &mut usize) -> Result<Value, PostgresError> {
    let prepared = client.prepare(&statement.text).await?;
    let wanted = prepared.params().len();
    if statement.params.len() != wanted {
        let given = statement.params.len();
        return Err(
            errors::invalid(format!("the statement takes {wanted} params, and there are {given}")).into()
        );
    }
    let columns = columns(prepared.columns())?;
    let params = statement.params.iter().map(Param);
    let mut stream = pin!(client.query_raw(&prepared, params).await?);
    let mut rows = Vec::new();
    while let Some(row) = stream.try_next().await? {
        *left = left.checked_sub(row.raw_size_bytes()).ok_or_else(too_large)?;
        rows.push(value::row(&row)?);
    }
    let affected = stream.rows_affected().unwrap_or(rows.len() as u64);
    let row_count = if columns.is_empty() { affected } else { rows.len() as u64 };
    Ok(json!({ "status": "success", "rows": rows, "row_count": row_count, "columns": columns }))
}

/// Converts a row to a map; two columns with one name are an error, because one would be lost.
fn columns(columns: &[Column]) -> Result<Vec<String>, PostgresError> {
    let names: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    let twice = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
    match twice {
        Some((_, name)) => {
            Err(errors::invalid(format!("two columns have the name `{name}`; rename one with AS")).into())
        }
        None => Ok(names),
    }
}
