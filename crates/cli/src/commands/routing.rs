//! `windlass clusters`, `windlass sandboxes`, `windlass route-groups`: locations for steps of plans, and conditions of
//! their start.

use super::report::{print_json, print_pretty};
use super::schedules::{CAMEL_CASE, read_pages};
use crate::api::{ApiTarget, Client, Need};
use crate::exit::Usage;
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

/// Register the clusters that workers of plans belong to
///
/// Every tenant has the cluster `local`.
#[derive(Debug, clap::Args)]
pub struct Clusters {
    #[command(subcommand)]
    command: Command<ClusterState>,
    #[command(flatten)]
    target: ApiTarget,
}

/// Register sandboxes, and report whether they are ready
///
/// A step of a plan whose routing context names a sandbox starts when it is ready.
#[derive(Debug, clap::Args)]
pub struct Sandboxes {
    #[command(subcommand)]
    command: Command<TargetState>,
    #[command(flatten)]
    target: ApiTarget,
}

/// Register route groups, and report whether they are ready
///
/// A step of a plan whose routing context names a route group starts when it is ready.
#[derive(Debug, clap::Args)]
pub struct RouteGroups {
    #[command(subcommand)]
    command: Command<TargetState>,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command<S: clap::Args> {
    Put(Put<S>),
    List(List),
    Get(Get),
    Delete(Delete),
}

/// Register it, or change its state
#[derive(Debug, clap::Args)]
struct Put<S: clap::Args> {
    name: String,
    #[command(flatten)]
    state: S,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ClusterState {
    /// Whether a plan whose affinity is a pattern may choose it
    #[arg(long, value_name = "BOOL", default_value_t = true, action = clap::ArgAction::Set)]
    ready: bool,
}

#[derive(Debug, clap::Args)]
struct TargetState {
    /// Whether steps may start
    #[arg(long, value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1, action = clap::ArgAction::Set)]
    ready: bool,
    /// Cluster of the target, from which an execution can derive its own
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// The value that steps send with their requests; by default, the server chooses it
    #[arg(long, value_name = "KEY")]
    routing_key: Option<String>,
    /// A URL that is polled while steps wait
    #[arg(long, value_name = "URL")]
    ready_url: Option<String>,
}

/// List them by name
#[derive(Debug, clap::Args)]
struct List {
    /// Maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show one
#[derive(Debug, clap::Args)]
struct Get {
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete one
#[derive(Debug, clap::Args)]
struct Delete {
    name: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The state as the API takes it.
trait State {
    fn body(&self) -> Value;
}

impl State for ClusterState {
    fn body(&self) -> Value {
        json!({ "ready": self.ready })
    }
}

impl State for TargetState {
    fn body(&self) -> Value {
        let mut body = Map::from_iter([("ready".to_owned(), self.ready.into())]);
        let given =
            [("cluster", &self.cluster), ("routingKey", &self.routing_key), ("readyUrl", &self.ready_url)];
        for (field, value) in given {
            body.extend(value.iter().map(|value| (field.to_owned(), Value::from(value.as_str()))));
        }
        Value::Object(body)
    }
}

impl Clusters {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        run(&self.command, &self.target, Noun { path: "clusters", one: "cluster" })
    }
}

impl Sandboxes {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        run(&self.command, &self.target, Noun { path: "sandboxes", one: "sandbox" })
    }
}

impl RouteGroups {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        run(&self.command, &self.target, Noun { path: "route-groups", one: "route group" })
    }
}

#[derive(Debug, Clone, Copy)]
struct Noun {
    path: &'static str,
    one: &'static str,
}

fn run<S: clap::Args + State>(
    command: &Command<S>,
    target: &ApiTarget,
    noun: Noun,
) -> anyhow::Result<ExitCode> {
    // Only a registration creates the folder.
    if !matches!(command, Command::Put(_)) {
        target.check_exists()?;
    }
    let need = match command {
        Command::List(_) | Command::Get(_) => Need::Read,
        Command::Put(_) | Command::Delete(_) => Need::Change,
    };
    let name = format!("windlass {}", noun.path);
    target.with((&name, need), |client: &Rc<Client>| match command {
        Command::Put(put) => put.run(client, noun),
        Command::List(list) => list.run(client, noun),
        Command::Get(get) => get.run(client, noun),
        Command::Delete(delete) => delete.run(client, noun),
    })?;
    Ok(ExitCode::SUCCESS)
}

impl<S: clap::Args + State> Put<S> {
    fn run(&self, client: &Client, noun: Noun) -> anyhow::Result<()> {
        let stored = client.send(Method::PUT, &[noun.path, &self.name], &self.state.body())?;
        if self.json {
            return print_json(&stored);
        }
        let state = if stored["ready"] == json!(true) { "ready" } else { "not ready" };
        say(&format!("{} `{}` is {state}", noun.one, plain(&self.name)));
        Ok(())
    }
}

impl List {
    fn run(&self, client: &Client, noun: Noun) -> anyhow::Result<()> {
        let found = read_pages(client, &[noun.path], &[], (CAMEL_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let items = found["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |item: &Value, key: &str| plain(item[key].as_str().unwrap_or("-"));
        let width = items.iter().map(|item| text(item, "name").chars().count()).max().unwrap_or(0);
        let mut out = stdout().lock();
        for item in items {
            let state = if item["ready"] == json!(true) { "ready" } else { "not ready" };
            let of_target = |label: &str, key: &str| match item[key].as_str() {
                Some(value) => format!("  {label} {}", plain(value)),
                None => String::new(),
            };
            let details = [("cluster", "cluster"), ("key", "routingKey"), ("because", "reason")];
            let details: String = details.iter().map(|(label, key)| of_target(label, key)).collect();
            writeln!(out, "{:width$}  {state:9}{details}", text(item, "name"))?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self, client: &Client, noun: Noun) -> anyhow::Result<()> {
        let found = client
            .get(&[noun.path, &self.name], &[])
            .map_err(|error| missing(error, client, noun, &self.name))?;
        print_pretty(self.json, &found)
    }
}

impl Delete {
    fn run(&self, client: &Client, noun: Noun) -> anyhow::Result<()> {
        let request = client.request(Method::DELETE, &[noun.path, &self.name]);
        client.text(request).map_err(|error| missing(error, client, noun, &self.name))?;
        match self.json {
            true => print_json(&json!({ "name": self.name, "deleted": true })),
            false => {
                say(&format!("{} `{}` is deleted", noun.one, plain(&self.name)));
                Ok(())
            }
        }
    }
}

/// Adds to the error of an unknown name how to find the known ones.
fn missing(error: crate::api::ApiError, client: &Client, noun: Noun, name: &str) -> anyhow::Error {
    if !error.is_missing() {
        return error.into();
    }
    let hint = format!("`windlass {} list{}` shows them", noun.path, client.flag());
    Usage::new(format!("there is no {} `{}`", noun.one, plain(name))).hint(hint).into()
}
