//! Fields of a postgres task. Messages do not contain a password.

use super::split::split;
use crate::failure::{invalid, shown};
use crate::tools::ToolContext;
use crate::tools::auth::Auth;
use crate::tools::fields::Fields;
use crate::tools::source::Source;
use serde_json::{Map, Value};
use std::path::Component;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use windlass_protocol::{Failure, Tool};

/// Default maximum of rows, which are held in memory and stored with the execution.
const RESULT_MAX: usize = 32 * 1024 * 1024;

/// Time after which a server that does not accept the connection is considered dead.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Order {
    pub(super) place: PostgresServer,
    pub(super) statements: Vec<Statement>,
    pub(super) result_max: usize,
}

#[derive(Debug, PartialEq)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) params: Vec<Value>,
}

#[derive(Debug)]
pub(super) struct PostgresServer {
    pub(super) config: Config,
    /// Whether the identity of the server is verified, not only the connection encrypted.
    pub(super) verifies: bool,
    pub(super) schema: Option<String>,
}

impl Order {
    pub(super) async fn read(config: &Map<String, Value>, cx: &ToolContext) -> Result<Order, Box<Failure>> {
        let fields = Fields::of(Tool::Postgres, config)?;
        let auth = fields.one_of(&["auth", "credential"])?;
        let auth = match auth {
            Some((_, auth)) => Some(Auth::read(auth, cx).await?),
            None => None,
        };
        Ok(Order {
            place: place(config, auth)?,
            statements: statements(fields, cx).await?,
            result_max: result_max(fields)?,
        })
    }
}

async fn statements(fields: Fields<'_>, cx: &ToolContext) -> Result<Vec<Statement>, Box<Failure>> {
    let params = params(fields.given("params"))?;
    let Some((key, given)) = fields.one_of(&["command", "query", "commands", "script"])? else {
        return Err(invalid(
            "postgres needs `command`, a text, `commands`, a list of them, or `script`, a file",
        ));
    };
    let mut found = Vec::new();
    match given {
        script if key == "script" => found.extend(taken_apart(&script_text(script, cx).await?, params)?),
        Value::String(text) => found.extend(taken_apart(text, params)?),
        Value::Array(items) if key == "commands" => {
            if !params.is_empty() {
                return Err(invalid("`params` of postgres belong to one of `commands`: {command, params}"));
            }
            for item in items {
                found.extend(listed(fields, item)?);
            }
        }
        other => return Err(fields.is_not(key, "a text", other)),
    }
    if found.is_empty() {
        return Err(invalid(format!("`{key}` of postgres has no statement in it")));
    }
    Ok(found)
}

/// Loads statements from a file below the directory of the worker. The path may be a value, so it cannot leave that
/// directory, and only definitions that may run programs read files.
async fn script_text(script: &Value, cx: &ToolContext) -> Result<String, Box<Failure>> {
    let kind = Tool::Postgres.kind();
    let source = Source::read(kind, script, None)?;
    if let Source::File(path) = &source {
        cx.may_run_programs(kind).await?;
        if !path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            let path = shown(&path.display().to_string());
            let message = format!("`script` of postgres is a relative path without `..`, not `{path}`");
            return Err(invalid(message));
        }
    }
    source.text(kind).await
}

fn listed(fields: Fields<'_>, item: &Value) -> Result<Vec<Statement>, Box<Failure>> {
    let text = item.as_str().or_else(|| item.get("command").or_else(|| item.get("query"))?.as_str());
    let Some(text) = text else {
        return Err(fields.is_not("commands", "a list of texts or {command, params}", item));
    };
    taken_apart(text, params(item.get("params").filter(|params| !params.is_null()))?)
}

fn taken_apart(text: &str, params: Vec<Value>) -> Result<Vec<Statement>, Box<Failure>> {
    let texts = split(text);
    if texts.len() > 1 && !params.is_empty() {
        return Err(invalid(
            "`params` of postgres are for one statement, and there are several; use `commands`",
        ));
    }
    Ok(texts.into_iter().map(|text| Statement { text: text.to_owned(), params: params.clone() }).collect())
}

fn params(given: Option<&Value>) -> Result<Vec<Value>, Box<Failure>> {
    match given {
        None => Ok(Vec::new()),
        Some(Value::Array(params)) => Ok(params.clone()),
        Some(_) => Err(invalid("`params` of postgres is a list, for $1, $2, …")),
    }
}

fn result_max(fields: Fields<'_>) -> Result<usize, Box<Failure>> {
    let Some(given) = fields.given("max_result_bytes") else { return Ok(RESULT_MAX) };
    let number = given.as_u64().or_else(|| given.as_str()?.trim().parse().ok());
    let number = number.and_then(|number| usize::try_from(number).ok());
    number.ok_or_else(|| fields.is_not("max_result_bytes", "a number of bytes", given))
}

/// Reads the server. The task's own fields override those of the secret.
fn place(config: &Map<String, Value>, auth: Option<Auth>) -> Result<PostgresServer, Box<Failure>> {
    let mut all = match auth {
        None => Map::new(),
        Some(Auth::Fields(fields)) => fields,
        Some(Auth::Text(text)) => Map::from_iter([("dsn".to_owned(), Value::String(text))]),
    };
    all.extend(
        config.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| (key.clone(), value.clone())),
    );
    let all = Auth::Fields(all);
    let (mut found, mut verifies) = dsn(all.field(&["dsn", "connection_string", "url"]))?;
    if let Some(host) = all.field(&["host", "db_host", "hostname"]) {
        found.host(host);
    }
    if found.get_hosts().is_empty() && found.get_hostaddrs().is_empty() {
        return Err(invalid("postgres needs `host`, or `auth` with one in it"));
    }
    if let Some(port) = all.field(&["port", "db_port"]) {
        let number = port
            .trim()
            .parse()
            .map_err(|_| invalid(format!("`port` of postgres is a port, not `{}`", shown(&port))))?;
        found.port(number);
    }
    if let Some(user) = all.field(&["user", "username", "db_user"]) {
        found.user(user);
    }
    if let Some(password) = all.field(&["password", "db_password"]) {
        found.password(password);
    }
    if let Some(database) = all.field(&["database", "dbname", "db_name"]) {
        found.dbname(database);
    }
    if let Some(mode) = all.field(&["sslmode", "ssl_mode"]) {
        verifies = put_ssl_mode(&mode, &mut found)?;
    }
    if found.get_connect_timeout().is_none() {
        found.connect_timeout(CONNECT_TIMEOUT);
    }
    if found.get_application_name().is_none() {
        found.application_name("windlass");
    }
    Ok(PostgresServer { config: found, verifies, schema: all.field(&["schema", "db_schema"]) })
}

/// Parses a connection string. The library does not support `verify-full`.
fn dsn(text: Option<String>) -> Result<(Config, bool), Box<Failure>> {
    let Some(text) = text else { return Ok((Config::new(), false)) };
    let verifies = text.contains("sslmode=verify-full");
    let known = text.replace("sslmode=verify-full", "sslmode=require");
    let parsed = known.parse().map_err(|error: tokio_postgres::Error| {
        let cause =
            std::error::Error::source(&error).map(ToString::to_string).unwrap_or_else(|| error.to_string());
        invalid(format!("`connection_string` of postgres cannot be read: {}", shown(&cause)))
    });
    Ok((parsed?, verifies))
}

fn put_ssl_mode(mode: &str, config: &mut Config) -> Result<bool, Box<Failure>> {
    let (ssl, verifies) = match mode {
        "disable" => (SslMode::Disable, false),
        "allow" | "prefer" => (SslMode::Prefer, false),
        "require" => (SslMode::Require, false),
        "verify-full" => (SslMode::Require, true),
        other => {
            let other = shown(other);
            return Err(invalid(format!(
                "`sslmode` of postgres is disable, prefer, require or verify-full, not `{other}`"
            )));
        }
    };
    config.ssl_mode(ssl);
    Ok(verifies)
}
