//! `windlass runs`: attempts at the occurrences of schedules.

use super::report::{print_json, print_pretty, text};
use super::schedules::{SNAKE_CASE, read_pages};
use crate::api::{ApiTarget, Client, Need};
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass runs";

/// Show and cancel the runs of schedules
#[derive(Debug, clap::Args)]
pub struct Runs {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
    Get(Get),
    Cancel(Cancel),
}

/// List runs, the newest first
#[derive(Debug, clap::Args)]
struct List {
    /// Only runs of the schedule with this id
    #[arg(long, value_name = "ID")]
    schedule_id: Option<String>,
    /// Only runs with this status
    #[arg(long)]
    status: Option<String>,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show a run with its receipts
#[derive(Debug, clap::Args)]
struct Get {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Cancel a run; no retry follows
#[derive(Debug, clap::Args)]
struct Cancel {
    /// Id of the run
    #[arg(value_name = "RUN")]
    run: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Runs {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let need = if matches!(self.command, Command::Cancel(_)) { Need::Change } else { Need::Read };
        self.target.with((COMMAND, need), |client| match &self.command {
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Cancel(cancel) => cancel.run(client),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let mut filter = Vec::new();
        filter.extend(self.schedule_id.as_deref().map(|id| ("schedule_id", id)));
        filter.extend(self.status.as_deref().map(|status| ("status", status)));
        let found = read_pages(client, &["runs"], &filter, (SNAKE_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let mut out = stdout().lock();
        for run in found["items"].as_array().into_iter().flatten() {
            let (id, status, key) = (text(run, "id"), text(run, "status"), text(run, "occurrence_key"));
            writeln!(out, "{id}  {status:15}  attempt {}  {}", run["attempt"], plain(key))?;
        }
        Ok(())
    }
}

impl Get {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let run = client.get(&["runs", &self.run], &[])?;
        print_pretty(self.json, &run)
    }
}

impl Cancel {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let run = client.send(Method::POST, &["runs", &self.run, "cancel"], &json!({}))?;
        if self.json {
            return print_json(&run);
        }
        say(&format!("run {} is {}", plain(&self.run), text(&run, "status")));
        Ok(())
    }
}
