//! `windlass tasks`: approvals, manual steps, gates and held executions that wait for people.

use super::report::print_json;
use crate::api::{ApiTarget, Client, Need};
use crate::format::{plain, shorten, since};
use crate::progress::say;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass tasks";
/// Entries of one request.
const PAGE: usize = 100;
/// Maximum length of a message in a line, in characters.
const MESSAGE_MAX: usize = 60;

/// List approvals and manual steps that wait for people, those of the oldest executions first
#[derive(Debug, clap::Args)]
pub struct Tasks {
    /// Only tasks that name you, one of your roles, or no one
    #[arg(long)]
    mine: bool,
    /// Only tasks of this kind; without one, approvals and manual steps
    #[arg(long, value_parser = ["approval", "manual", "gate", "pause"])]
    kind: Option<String>,
    /// Maximum number of tasks
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: ApiTarget,
}

impl Tasks {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        self.target.with((COMMAND, Need::Read), |client| self.list(client))?;
        Ok(ExitCode::SUCCESS)
    }

    fn list(&self, client: &Client) -> anyhow::Result<()> {
        let (tasks, has_more) = self.find(client)?;
        if self.json {
            return print_json(&json!({ "tasks": tasks, "pagination": { "hasMore": has_more } }));
        }
        print(client, &tasks)?;
        if tasks.is_empty() {
            say("nothing waits for a person");
        } else if has_more {
            say("there are more; use --limit");
        }
        Ok(())
    }

    /// Follows the pages until there are enough tasks. Reports whether more follow.
    fn find(&self, client: &Client) -> anyhow::Result<(Vec<Value>, bool)> {
        let (mut tasks, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let limit = self.limit.saturating_sub(tasks.len()).clamp(1, PAGE).to_string();
            let mut query = vec![("limit", limit.as_str())];
            query.extend(self.mine.then_some(("mine", "true")));
            query.extend(self.kind.as_deref().map(|kind| ("kind", kind)));
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            let page = client.get(&["tasks"], &query)?;
            tasks.extend(page["tasks"].as_array().cloned().unwrap_or_default());
            let next = page["pagination"]["cursor"].as_str().map(str::to_owned);
            if next.is_none() || tasks.len() >= self.limit {
                tasks.truncate(self.limit);
                return Ok((tasks, next.is_some()));
            }
            cursor = next;
        }
    }
}

/// Prints two lines for each task: its description, and the command that answers it.
fn print(client: &Client, tasks: &[Value]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    for task in tasks {
        let text = |key: &str| plain(task[key].as_str().unwrap_or("-"));
        let age = task["since"].as_str().map(|at| format!("  {} ago", since(at))).unwrap_or_default();
        let deadline = task["deadline"].as_str().map(|at| format!("  until {at}")).unwrap_or_default();
        let message = match &task["message"] {
            Value::String(message) => format!("  {}", shorten(&plain(message), MESSAGE_MAX)),
            _ => String::new(),
        };
        writeln!(
            out,
            "{}  {}  {}{age}{deadline}{message}",
            text("kind"),
            text("actionId"),
            text("workflowName")
        )?;
        writeln!(out, "  {}{}", text("command"), client.flag())?;
    }
    Ok(())
}
