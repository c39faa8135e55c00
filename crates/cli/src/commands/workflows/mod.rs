//! `windlass workflows`: definitions that are kept under an id, in versions. In a folder that nobody holds the commands
//! ask the same routes as at a server.

mod change;
mod found;
mod look;
mod run;

use crate::embedded::Workers;
use crate::place::{At, Client, Place};
use clap::Subcommand;
use std::process::ExitCode;

/// Keep definitions, in versions, and run them by name
///
/// A workflow is named by its id, or by its name if only one is called so. Every version stays as it was registered,
/// and an execution stays with the version it began with.
#[derive(Debug, clap::Args)]
pub struct Workflows {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    at: At,
}

#[derive(Debug, Subcommand)]
enum Command {
    List(look::List),
    Get(look::Get),
    Versions(look::Versions),
    Create(change::Create),
    Update(change::Update),
    Status(change::Status),
    Duplicate(change::Duplicate),
    Delete(change::Delete),
    Run(run::Run),
}

impl Workflows {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let place = self.at.place()?;
        // Only what makes a workflow makes the folder.
        if let (Place::Folder(data), false) = (&place, matches!(self.command, Command::Create(_))) {
            data.read()?;
        }
        if let Command::Run(run) = &self.command {
            return run.run(&place);
        }
        let api = place.api(Workers::None)?;
        let done = self.ask(&api);
        Client::stop(api)?;
        done.map(|()| ExitCode::SUCCESS)
    }

    fn ask(&self, api: &Client) -> anyhow::Result<()> {
        match &self.command {
            Command::List(list) => list.run(api),
            Command::Get(get) => get.run(api),
            Command::Versions(versions) => versions.run(api),
            Command::Create(create) => create.run(api),
            Command::Update(update) => update.run(api),
            Command::Status(status) => status.run(api),
            Command::Duplicate(duplicate) => duplicate.run(api),
            Command::Delete(delete) => delete.run(api),
            Command::Run(_) => Ok(()),
        }
    }
}
