//! `windlass executions`: shows executions and controls them.

mod approve;
mod artifacts;
mod change;
mod events;
mod get;
mod list;
mod logs;
mod output;
mod retry;
mod retry_preview;
mod watch;

use crate::api::{ApiTarget, Client, Need};
use clap::Subcommand;
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass executions";

/// Show executions and control them
///
/// An ID may be written with or without `exec_`; 8 digits of its beginning or end are enough if they fit only one
/// execution.
#[derive(Debug, clap::Args)]
pub struct Executions {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Get(get::Get),
    Output(output::Output),
    Artifacts(artifacts::Artifacts),
    Events(events::Events),
    Logs(logs::Logs),
    Watch(watch::Watch),
    Cancel(change::Cancel),
    Pause(change::Pause),
    Resume(change::Resume),
    Patch(change::Patch),
    Approve(approve::Approve),
    Reject(approve::Reject),
    Signal(approve::Signal),
    Retry(retry::Retry),
}

impl Executions {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        self.target.check_exists()?;
        let changed = match &self.command {
            Command::Retry(retry) => retry.read_changed(&self.target)?,
            _ => None,
        };
        self.target.with((COMMAND, self.need()), |client| self.run_with(client, changed.as_ref()))
    }

    fn need(&self) -> Need {
        match &self.command {
            Command::List(_)
            | Command::Get(_)
            | Command::Output(_)
            | Command::Artifacts(_)
            | Command::Events(_)
            | Command::Logs(_)
            | Command::Watch(_) => Need::Read,
            Command::Cancel(_)
            | Command::Pause(_)
            | Command::Resume(_)
            | Command::Patch(_)
            | Command::Approve(_)
            | Command::Reject(_)
            | Command::Signal(_) => Need::Change,
            Command::Retry(_) => Need::Run { slots: None, adapters: None, keeps_workdirs: false },
        }
    }

    fn run_with(&self, client: &Rc<Client>, changed: Option<&retry::Changed>) -> anyhow::Result<ExitCode> {
        match &self.command {
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Output(output) => output.run(client),
            Command::Artifacts(artifacts) => artifacts.run(client),
            Command::Events(events) => events.run(client),
            Command::Logs(logs) => logs.run(client),
            Command::Watch(watch) => watch.run(client),
            Command::Cancel(cancel) => cancel.run(client),
            Command::Pause(pause) => pause.run(client),
            Command::Resume(resume) => resume.run(client),
            Command::Patch(patch) => patch.run(client),
            Command::Approve(approve) => approve.run(client),
            Command::Reject(reject) => reject.run(client),
            Command::Signal(signal) => signal.run(client),
            Command::Retry(retry) => retry.run(client, changed),
        }
    }
}
