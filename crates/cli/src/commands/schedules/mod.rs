//! `windlass schedules`: times at which executions start by themselves.

mod apply;
mod backfill;
mod change;
mod create;
mod foreground;
mod look;
mod next;

pub use look::{CAMEL_CASE, SNAKE_CASE, read_pages};

use crate::api::{ApiTarget, Client, Need};
use crate::exit::Usage;
use crate::format::plain;
use clap::Subcommand;
use serde_json::Value;
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass schedules";

/// Start work at set times
///
/// A schedule is named by its id, or by its name. A server starts the schedules of its folder, and so does `schedules
/// run` in a folder without a server.
#[derive(Debug, clap::Args)]
pub struct Schedules {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    Create(create::Create),
    Apply(apply::Apply),
    List(look::List),
    Get(look::Get),
    Explain(look::Explain),
    Pause(change::Pause),
    Resume(change::Resume),
    Trigger(change::Trigger),
    Backfill(backfill::Backfill),
    Delete(change::Delete),
    Next(next::Next),
    Run(foreground::Foreground),
}

impl Schedules {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        if let Command::Next(next) = &self.command {
            next.run()?;
            return Ok(ExitCode::SUCCESS);
        }
        // Only the creation of a schedule creates the folder.
        if !matches!(self.command, Command::Create(_) | Command::Apply(_)) {
            self.target.check_exists()?;
        }
        if matches!(self.command, Command::Run(_)) {
            self.target.data()?;
        }
        let reads = matches!(self.command, Command::List(_) | Command::Get(_) | Command::Explain(_));
        let need = match &self.command {
            Command::Run(run) => Need::Run { slots: run.slots, adapters: None, keeps_workdirs: false },
            _ if reads => Need::Read,
            _ => Need::Change,
        };
        self.target.with((COMMAND, need), |client| self.run_with(client))?;
        Ok(ExitCode::SUCCESS)
    }

    fn run_with(&self, client: &Rc<Client>) -> anyhow::Result<()> {
        match &self.command {
            Command::Create(create) => create.run(client),
            Command::Apply(apply) => apply.run(client),
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Explain(explain) => explain.run(client),
            Command::Pause(pause) => pause.run(client),
            Command::Resume(resume) => resume.run(client),
            Command::Trigger(trigger) => trigger.run(client),
            Command::Delete(delete) => delete.run(client),
            Command::Backfill(backfill) => backfill.run(client),
            Command::Run(run) => run.run(client),
            Command::Next(next) => next.run(),
        }
    }
}

/// Returns the id of the schedule that a text names.
fn find(client: &Client, text: &str) -> anyhow::Result<String> {
    if text.starts_with("sch_") {
        return Ok(text.to_owned());
    }
    match find_named(client, text)? {
        Some(found) => Ok(found["id"].as_str().unwrap_or_default().to_owned()),
        None => {
            let hint = format!("`windlass schedules list{}` shows them", client.flag());
            Err(Usage::new(format!("there is no schedule `{}`", plain(text))).hint(hint).into())
        }
    }
}

fn find_named(client: &Client, name: &str) -> anyhow::Result<Option<Value>> {
    let listed = client.get(&["schedules"], &[("name", name), ("limit", "1")])?;
    Ok(listed["items"].get(0).cloned())
}
