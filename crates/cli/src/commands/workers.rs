//! `windlass workers`: groups of workers outside of the server, and the calls that wait for them.

use super::report::print_json;
use crate::api::{ApiTarget, Client, Need};
use crate::format::plain;
use crate::progress::say;
use clap::Subcommand;
use serde_json::Value;
use std::io::{Write, stdout};
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass workers";

/// List the groups of workers that claim steps over HTTP
#[derive(Debug, clap::Args)]
pub struct Workers {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(List),
}

/// List the groups, their workers, and the calls that wait for them
#[derive(Debug, clap::Args)]
struct List {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Workers {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let Command::List(list) = &self.command;
        self.target.with((COMMAND, Need::Change), |client| list.run(client))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl List {
    fn run(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        let listed = client.get(&["runner-groups"], &[])?;
        if self.json {
            return print_json(&listed);
        }
        let groups = listed["groups"].as_array().map(Vec::as_slice).unwrap_or_default();
        if groups.is_empty() {
            say("no worker has claimed work yet");
        }
        let name = |group: &Value| plain(group["name"].as_str().unwrap_or("-"));
        let width = groups.iter().map(|group| name(group).chars().count()).max().unwrap_or(0);
        let mut out = stdout().lock();
        for group in groups {
            let count = |key: &str| group[key].as_u64().unwrap_or_default();
            let cluster = group["cluster"].as_str().map(|cluster| format!(", cluster {}", plain(cluster)));
            let (workers, claimed, waiting) = (count("workers"), count("claimed"), count("waiting"));
            let cluster = cluster.unwrap_or_default();
            let name = name(group);
            writeln!(out, "{name:width$}  {workers} workers, {claimed} claimed, {waiting} waiting{cluster}")?;
        }
        Ok(())
    }
}
