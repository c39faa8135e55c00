//! Registering, changing and deleting workflows.

use super::find;
use crate::api::Client;
use crate::commands::report::print_json;
use crate::commands::source::Source;
use crate::progress::say;
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

/// Register a definition as a new workflow
#[derive(Debug, clap::Args)]
pub struct Create {
    /// The definition, YAML or JSON; `-` reads standard input
    file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Register a definition as the next version of a workflow
#[derive(Debug, clap::Args)]
pub struct Update {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// The definition, YAML or JSON; `-` reads standard input
    file: PathBuf,
    /// Fails unless this is still the newest version of the workflow
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    after: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Set the status of a workflow: only an active one can be started
#[derive(Debug, clap::Args)]
pub struct Status {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    #[arg(value_enum)]
    status: Wanted,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Wanted {
    Draft,
    Active,
    Paused,
    Archived,
}

impl Wanted {
    pub fn name(self) -> &'static str {
        match self {
            Wanted::Draft => "draft",
            Wanted::Active => "active",
            Wanted::Paused => "paused",
            Wanted::Archived => "archived",
        }
    }
}

/// Register the newest version of a workflow as a new workflow
#[derive(Debug, clap::Args)]
pub struct Duplicate {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// The name of the copy
    #[arg(long)]
    name: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete a workflow; its executions stay
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Create {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let source = Source::read(&self.file)?;
        let workflow = client.json(client.request(Method::POST, &["workflows"]).definition(&source.text))?;
        print_registered(&workflow, self.json)
    }
}

impl Update {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let source = Source::read(&self.file)?;
        let id = find(client, &self.workflow)?;
        let mut asked = client.request(Method::PUT, &["workflows", &id]).definition(&source.text);
        if let Some(version) = self.after {
            asked = asked.with("if-match", format!("\"{version}\""));
        }
        print_registered(&client.json(asked)?, self.json)
    }
}

impl Status {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.workflow)?;
        let workflow =
            client.send(Method::PATCH, &["workflows", &id], &json!({ "status": self.status.name() }))?;
        match self.json {
            true => print_json(&workflow),
            false => Ok(writeln!(std::io::stdout(), "{id} {}", self.status.name())?),
        }
    }
}

impl Duplicate {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.workflow)?;
        let asked = self.name.as_ref().map_or(json!({}), |name| json!({ "name": name }));
        print_registered(&client.send(Method::POST, &["workflows", &id, "duplicate"], &asked)?, self.json)
    }
}

impl Delete {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.workflow)?;
        client.text(client.request(Method::DELETE, &["workflows", &id]))?;
        match self.json {
            true => print_json(&json!({ "id": id, "deleted": true })),
            false => {
                say(&format!("workflow {id} is deleted; its executions stay"));
                Ok(())
            }
        }
    }
}

fn print_registered(workflow: &Value, as_json: bool) -> anyhow::Result<()> {
    let text = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
    if as_json {
        return print_json(workflow);
    }
    for warning in workflow["warnings"].as_array().into_iter().flatten() {
        let at = warning["line"].as_u64().map(|line| format!("line {line}: ")).unwrap_or_default();
        say(&format!("warning: {at}{}", text(warning, "message")));
    }
    let (id, name, version) = (text(workflow, "id"), text(workflow, "name"), &workflow["version"]);
    Ok(writeln!(std::io::stdout(), "{id}  version {version}  {name}")?)
}
