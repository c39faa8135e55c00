//! Listing and showing workflows.

use super::find;
use crate::api::{Client, list_workflows};
use crate::commands::report::{print_json, text};
use crate::format::{plain, since};
use serde_json::{Value, json};
use std::io::Write;

/// List workflows, the newest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only workflows with this status
    #[arg(long, value_enum)]
    status: Option<super::change::Wanted>,
    /// Only workflows with this text in their name
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Maximum number of workflows
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show a workflow and its newest version
#[derive(Debug, clap::Args)]
pub struct Get {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// A version; by default the newest
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    version: Option<u32>,
    /// Print the definition alone, as it was registered
    #[arg(long, conflicts_with = "json")]
    source: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// List the versions of a workflow, the newest first
#[derive(Debug, clap::Args)]
pub struct Versions {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let mut filter = Vec::new();
        filter.extend(self.status.map(|status| ("status", status.name())));
        filter.extend(self.search.as_deref().map(|search| ("search", search)));
        let (found, more) = list_workflows(client, &filter, self.limit as usize)?;
        if self.json {
            return print_json(&json!({ "workflows": found, "pagination": { "hasMore": more } }));
        }
        let mut out = std::io::stdout().lock();
        for workflow in &found {
            let (id, status) = (text(workflow, "id"), text(workflow, "status"));
            let (version, name) = (workflow["version"].to_string(), plain(text(workflow, "name")));
            let age = since(text(workflow, "updatedAt"));
            writeln!(out, "{id}  {status:8}  version {version:<4} {age:>6} ago  {name}")?;
        }
        Ok(())
    }
}

impl Get {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.workflow)?;
        let workflow = match self.version {
            None => client.get(&["workflows", &id], &[])?,
            Some(version) => client.get(&["workflows", &id, "versions", &version.to_string()], &[])?,
        };
        if self.json {
            return print_json(&workflow);
        }
        let mut out = std::io::stdout().lock();
        let source = text(&workflow, "source");
        if !self.source {
            writeln!(out, "{}", text(&workflow, "id"))?;
            for (label, key) in [("name", "name"), ("dialect", "dialect"), ("status", "status")] {
                if workflow[key].is_string() {
                    writeln!(out, "  {label:8} {}", plain(text(&workflow, key)))?;
                }
            }
            writeln!(out, "  {:8} {}", "version", workflow["version"])?;
            writeln!(out, "  {:8} {}\n", "net", text(&workflow, "netDigest"))?;
        }
        Ok(write!(out, "{source}{}", if source.ends_with('\n') { "" } else { "\n" })?)
    }
}

impl Versions {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.workflow)?;
        let mut versions: Vec<Value> = Vec::new();
        let mut cursor = None::<String>;
        loop {
            let query: Vec<(&str, &str)> =
                cursor.as_deref().map(|cursor| ("cursor", cursor)).into_iter().collect();
            let mut page = client.get(&["workflows", &id, "versions"], &query)?;
            if let Some(listed) = page["versions"].as_array_mut() {
                versions.append(listed);
            }
            cursor = page["pagination"]["cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        if self.json {
            return print_json(&json!({ "versions": versions }));
        }
        let mut out = std::io::stdout().lock();
        for version in &versions {
            let (number, age) = (version["version"].to_string(), since(text(version, "createdAt")));
            writeln!(out, "version {number:<4} {age:>6} ago  {}", plain(text(version, "name")))?;
        }
        Ok(())
    }
}
