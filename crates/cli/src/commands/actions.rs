//! `windlass actions`: programs for the steps of plans.

use super::report::{print_json, print_pretty, text};
use super::schedules::{CAMEL_CASE, read_pages};
use super::source::Source;
use crate::api::{ApiError, ApiTarget, Client, Need};
use crate::exit::Usage;
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_dialects::plan::parse_action;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass actions";

/// Store programs for the steps of plans
///
/// A plan keeps a copy of the revisions that were newest when it was created.
#[derive(Debug, clap::Args)]
pub struct Actions {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    Put(Put),
    List(List),
    Get(Get),
    Revisions(Revisions),
    Enable(Enable),
    Disable(Disable),
    Delete(Delete),
}

/// Store a revision of an action, unless the newest one is the same
#[derive(Debug, clap::Args)]
struct Put {
    /// The document of the action, YAML or JSON; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Name of the action, if the document has none
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List actions by name
#[derive(Debug, clap::Args)]
struct List {
    /// Maximum number of actions
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show an action
#[derive(Debug, clap::Args)]
struct Get {
    /// Name or id of the action
    name: String,
    /// One of its revisions; the newest by default
    #[arg(long, value_name = "N")]
    revision: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List the revisions of an action, the newest first
#[derive(Debug, clap::Args)]
struct Revisions {
    /// Name or id of the action
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Let new plans use an action
#[derive(Debug, clap::Args)]
struct Enable {
    /// Name or id of the action
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Refuse an action in new plans
#[derive(Debug, clap::Args)]
struct Disable {
    /// Name or id of the action
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete an action with its revisions; plans keep their copies
#[derive(Debug, clap::Args)]
struct Delete {
    /// Name or id of the action
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Actions {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        // Only a stored action creates the folder.
        if !matches!(self.command, Command::Put(_)) {
            self.target.check_exists()?;
        }
        let reads = matches!(self.command, Command::List(_) | Command::Get(_) | Command::Revisions(_));
        let need = if reads { Need::Read } else { Need::Change };
        self.target.with((COMMAND, need), |client| self.run_with(client))?;
        Ok(ExitCode::SUCCESS)
    }

    fn run_with(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        match &self.command {
            Command::Put(put) => put.run(client),
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Revisions(revisions) => revisions.run(client),
            Command::Enable(enable) => set_enabled(client, &enable.name, true, enable.json),
            Command::Disable(disable) => set_enabled(client, &disable.name, false, disable.json),
            Command::Delete(delete) => delete.run(client),
        }
    }
}

/// Adds the command that lists known names to the error of an unknown name.
fn missing(error: ApiError, client: &Client, name: &str) -> anyhow::Error {
    if !error.is_missing() {
        return error.into();
    }
    let hint = format!("`windlass actions list{}` shows them", client.flag());
    Usage::new(format!("there is no action `{}`, or no such revision", plain(name))).hint(hint).into()
}

impl Put {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let source = Source::read(&self.file)?;
        let in_document = parse_action(&source.text).ok().and_then(|document| document.name);
        let name = self.name.clone().or(in_document).ok_or_else(|| {
            Usage::new("the name of the action is missing, or its document cannot be read")
                .hint("write `name: NAME` in the document, or use `--name NAME`")
        });
        // A document with errors is still sent if its name is given: the server's errors have positions.
        let name = name?;
        let request = client.request(Method::PUT, &["actions", &name]).definition(&source.text);
        let stored = client.json(request)?;
        if self.json {
            return print_json(&stored);
        }
        say(&format!(
            "action `{}` has revision {} ({})",
            plain(&name),
            stored["revision"],
            text(&stored, "id")
        ));
        Ok(())
    }
}

impl List {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let found = read_pages(client, &["actions"], &[], (CAMEL_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let width = items.iter().map(|item| plain(text(item, "name")).chars().count()).max().unwrap_or(0);
        let mut out = stdout().lock();
        for item in items {
            let state = if item["enabled"] == json!(true) { "" } else { "  disabled" };
            let (name, revision) = (plain(text(item, "name")), &item["revision"]);
            let about = item["description"].as_str().map(|about| format!("  {}", plain(about)));
            writeln!(out, "{name:width$}  revision {revision}{state}{}", about.unwrap_or_default())?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let revision = self.revision.map(|revision| revision.to_string());
        let query: Vec<(&str, &str)> = revision.iter().map(|text| ("revision", text.as_str())).collect();
        let found = client
            .get(&["actions", &self.name], &query)
            .map_err(|error| missing(error, client, &self.name))?;
        print_pretty(self.json, &found)
    }
}

impl Revisions {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let path = ["actions", self.name.as_str(), "revisions"];
        let found = client.get(&path, &[]).map_err(|error| missing(error, client, &self.name))?;
        if self.json {
            return print_json(&found);
        }
        let mut out = stdout().lock();
        for item in found["items"].as_array().into_iter().flatten() {
            let (at, by) = (text(item, "createdAt"), plain(text(item, "createdBy")));
            writeln!(out, "{:>6}  {at}  {by}", item["revision"])?;
        }
        Ok(())
    }
}

fn set_enabled(client: &Client, name: &str, enabled: bool, as_json: bool) -> anyhow::Result<()> {
    let change = json!({ "enabled": enabled });
    let changed = client
        .send(Method::PATCH, &["actions", name], &change)
        .map_err(|error| missing(error, client, name))?;
    if as_json {
        return print_json(&changed);
    }
    let state = if enabled { "enabled" } else { "disabled" };
    say(&format!("action `{}` is {state}", plain(name)));
    Ok(())
}

impl Delete {
    fn run(&self, client: &Client) -> anyhow::Result<()> {
        let request = client.request(Method::DELETE, &["actions", &self.name]);
        client.text(request).map_err(|error| missing(error, client, &self.name))?;
        match self.json {
            true => print_json(&json!({ "name": self.name, "deleted": true })),
            false => {
                say(&format!("action `{}` is deleted", plain(&self.name)));
                Ok(())
            }
        }
    }
}
