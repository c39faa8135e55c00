//! `windlass executions`: look at them and steer them, beside a running engine or without one.

mod approve;
mod change;
mod events;
mod get;
mod list;
mod logs;
mod retry;
mod watch;

use crate::data::Data;
use clap::Subcommand;
use std::process::ExitCode;

/// Look at executions and steer them
///
/// An ID may be written with or without `exec_`; 8 digits of its beginning or end are enough if only one fits.
#[derive(Debug, clap::Args)]
pub struct Executions {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    data: Data,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(list::List),
    Get(get::Get),
    Events(events::Events),
    Logs(logs::Logs),
    Watch(watch::Watch),
    Cancel(change::Cancel),
    Pause(change::Pause),
    Resume(change::Resume),
    Patch(change::Patch),
    Approve(approve::Approve),
    Reject(approve::Reject),
    Retry(retry::Retry),
}

impl Executions {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let data = &self.data;
        match &self.command {
            Command::List(list) => list.run(data),
            Command::Get(get) => get.run(data),
            Command::Events(events) => events.run(data),
            Command::Logs(logs) => logs.run(data),
            Command::Watch(watch) => watch.run(data),
            Command::Cancel(cancel) => cancel.run(data),
            Command::Pause(pause) => pause.run(data),
            Command::Resume(resume) => resume.run(data),
            Command::Patch(patch) => patch.run(data),
            Command::Approve(approve) => approve.run(data),
            Command::Reject(reject) => reject.run(data),
            Command::Retry(retry) => retry.run(data),
        }
    }
}
