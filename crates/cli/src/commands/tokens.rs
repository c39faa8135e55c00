//! `windlass tokens`: tokens for the users of a server.

use super::report::print_json;
use crate::api::{ApiTarget, Client, Need};
use crate::exit::Usage;
use crate::format::{plain, since};
use crate::progress::say;
use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_server::Role;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass tokens";

/// Create, list and revoke tokens for a server
#[derive(Debug, clap::Args)]
pub struct Tokens {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(Create),
    List(List),
    Delete(Delete),
}

/// Create a token; it is printed once and cannot be read again
#[derive(Debug, clap::Args)]
struct Create {
    /// The name of its user in lists and in the audit log
    name: String,
    #[arg(long, value_parser = PossibleValuesParser::new(Role::ALL.map(Role::name)))]
    role: String,
    /// Further roles, which approvers and policies of definitions name, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    roles: Vec<String>,
    /// For the role worker: the only group that it may claim work for; by default every group of the tenant
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
    /// The person who will hold it, if the person has another identity: the id of another token, or `jwt:` and the subject of
    /// a JWT; policies count both as one user
    #[arg(long, value_name = "ID")]
    person: Option<String>,
    /// The tenant; your own by default
    #[arg(long, value_name = "ID")]
    tenant: Option<String>,
    /// Time at which the token expires, as in 2030-01-31T00:00:00Z; never by default
    #[arg(long, value_name = "TIME")]
    expires_at: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List tokens, without their values
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Revoke a token; it is refused from then on
#[derive(Debug, clap::Args)]
struct Delete {
    /// Id of the token: `user_` and 32 hex digits
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Tokens {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let need = if matches!(self.command, Command::List(_)) { Need::Read } else { Need::Change };
        self.target.with((COMMAND, need), |client| match &self.command {
            Command::Create(create) => create.run(client),
            Command::List(list) => list.run(client),
            Command::Delete(delete) => delete.run(client),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Create {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let mut body = json!({ "name": self.name, "role": self.role });
        for (key, given) in [
            ("tenantId", &self.tenant),
            ("expiresAt", &self.expires_at),
            ("group", &self.group),
            ("person", &self.person),
        ] {
            if let Some(given) = given {
                body[key] = json!(given);
            }
        }
        if !self.roles.is_empty() {
            body["roles"] = json!(self.roles);
        }
        let made = client.send(Method::POST, &["tokens"], &body)?;
        if self.json {
            return print_json(&made);
        }
        let text = |key: &str| made[key].as_str().unwrap_or("-");
        writeln!(stdout(), "{}", text("token"))?;
        say(&format!("token {} of `{}` is shown once; store it now", text("id"), plain(&self.name)));
        Ok(())
    }
}

impl List {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let listed = client.get(&["tokens"], &[])?;
        if self.json {
            return print_json(&listed);
        }
        let tokens = listed["tokens"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |token: &Value, key: &str| plain(token[key].as_str().unwrap_or("-"));
        let width = tokens.iter().map(|token| text(token, "name").chars().count()).max().unwrap_or(0);
        let mut out = stdout().lock();
        for token in tokens {
            let used = match token["lastUsedAt"].as_str() {
                Some(at) => format!("used {} ago", since(at)),
                None => "never used".to_owned(),
            };
            let expires = token["expiresAt"].as_str().map(|at| format!(", expires {at}")).unwrap_or_default();
            let (id, name, role) = (text(token, "id"), text(token, "name"), text(token, "role"));
            writeln!(out, "{id}  {name:width$}  {role:9}  {used}{expires}")?;
        }
        Ok(())
    }
}

impl Delete {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        match client.text(client.request(Method::DELETE, &["tokens", &self.id])) {
            Ok(_) => {}
            Err(error) if error.is_missing() => {
                let hint = format!("`windlass tokens list{}` shows the ids", client.flag());
                return Err(Usage::new(format!("there is no token `{}`", plain(&self.id))).hint(hint).into());
            }
            Err(error) => return Err(error.into()),
        }
        match self.json {
            true => print_json(&json!({ "id": self.id, "deleted": true })),
            false => {
                say(&format!("token {} is revoked", plain(&self.id)));
                Ok(())
            }
        }
    }
}
