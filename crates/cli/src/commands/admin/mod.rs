//! `windlass admin`: maintenance of a data folder.

mod backup;
mod check;
mod prune;
mod quarantine;

use crate::data::Data;
use clap::Subcommand;
use std::process::ExitCode;

/// Maintain a data folder
#[derive(Debug, clap::Args)]
pub struct Admin {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    data: Data,
}

#[derive(Debug, Subcommand)]
enum Command {
    Check(check::Check),
    Backup(backup::Backup),
    Restore(backup::Restore),
    Prune(prune::Prune),
    #[command(subcommand)]
    Quarantine(quarantine::Quarantine),
}

impl Admin {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match &self.command {
            Command::Check(check) => check.run(&self.data),
            Command::Backup(backup) => backup.run(&self.data),
            Command::Restore(restore) => restore.run(&self.data),
            Command::Prune(prune) => prune.run(&self.data),
            Command::Quarantine(quarantine) => quarantine.run(&self.data),
        }
    }
}
