//! `windlass executions`: look at them and steer them, beside a running engine, without one, or at a server.

mod approve;
mod change;
mod events;
mod get;
mod list;
mod logs;
mod retry;
mod watch;

use crate::place::At;
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
    at: At,
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
    Signal(approve::Signal),
    Retry(retry::Retry),
}

impl Executions {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let place = &self.at.place()?;
        match &self.command {
            Command::List(list) => list.run(place),
            Command::Get(get) => get.run(place),
            Command::Events(events) => events.run(place),
            Command::Logs(logs) => logs.run(place),
            Command::Watch(watch) => watch.run(place),
            Command::Cancel(cancel) => cancel.run(place),
            Command::Pause(pause) => pause.run(place),
            Command::Resume(resume) => resume.run(place),
            Command::Patch(patch) => patch.run(place),
            Command::Approve(approve) => approve.run(place),
            Command::Reject(reject) => reject.run(place),
            Command::Signal(signal) => signal.run(place),
            Command::Retry(retry) => retry.run(place),
        }
    }
}
