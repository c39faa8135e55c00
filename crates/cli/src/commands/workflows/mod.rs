//! `windlass workflows`: definitions that are stored under an id, in versions.

mod change;
mod look;
mod run;

use crate::api::{ApiTarget, Client, Need, workflow_ids};
use crate::exit::Usage;
use clap::Subcommand;
use std::process::ExitCode;
use std::rc::Rc;

/// The name of this process for others while it holds the folder.
const COMMAND: &str = "windlass workflows";

/// Store definitions, in versions, and run them by name
///
/// A workflow is named by its id, or by its name if no other has that name. Every version stays unchanged, and an
/// execution keeps the version that it began with.
#[derive(Debug, clap::Args)]
pub struct Workflows {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    target: ApiTarget,
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
        // Only the creation of a workflow creates the folder.
        if !matches!(self.command, Command::Create(_)) {
            self.target.check_exists()?;
        }
        self.target.with((COMMAND, self.need()), |client| self.run_with(client))
    }

    fn need(&self) -> Need {
        match &self.command {
            Command::List(_) | Command::Get(_) | Command::Versions(_) => Need::Read,
            Command::Create(_)
            | Command::Update(_)
            | Command::Status(_)
            | Command::Duplicate(_)
            | Command::Delete(_) => Need::Change,
            Command::Run(_) => Need::Run { slots: None, adapters: None, keeps_workdirs: false },
        }
    }

    fn run_with(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let done = match &self.command {
            Command::List(list) => list.run(client),
            Command::Get(get) => get.run(client),
            Command::Versions(versions) => versions.run(client),
            Command::Create(create) => create.run(client),
            Command::Update(update) => update.run(client),
            Command::Status(status) => status.run(client),
            Command::Duplicate(duplicate) => duplicate.run(client),
            Command::Delete(delete) => delete.run(client),
            Command::Run(run) => return run.run(client),
        };
        done.map(|()| ExitCode::SUCCESS)
    }
}

/// Maximum number of workflows that are listed if several have the same name.
const NAMED_MAX: usize = 3;

/// Returns the id of the one workflow that a text names.
pub(super) fn find(client: &Client, text: &str) -> anyhow::Result<String> {
    let found = workflow_ids(client, text)?;
    match &found[..] {
        [id] => Ok(id.clone()),
        [] => {
            let hint = format!("`windlass workflows list{}` shows them", client.flag());
            Err(Usage::new(format!("there is no workflow `{text}`")).hint(hint).into())
        }
        several => {
            let named = several.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if several.len() > NAMED_MAX { ", …" } else { "" };
            let what = format!("{} workflows have the name `{text}`: {named}{more}", several.len());
            Err(Usage::new(what).hint("use the id of one of them").into())
        }
    }
}
