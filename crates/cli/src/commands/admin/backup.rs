//! `windlass admin backup` and `restore`.

use crate::commands::counted;
use crate::commands::report::print_json;
use crate::data::Data;
use crate::progress::say;
use std::path::PathBuf;
use std::process::ExitCode;
use windlass_server::backup::{BackupManifest, backup, restore};

/// Copy the data folder, also while it is in use
///
/// The copy has the store as of one moment, and the artifacts that it refers to. It does not have the master key of
/// secrets: keep that key in another place.
#[derive(Debug, clap::Args)]
pub struct Backup {
    /// The folder to create
    into: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Restore a backup into a data folder without data
#[derive(Debug, clap::Args)]
pub struct Restore {
    /// The folder that `windlass admin backup` created
    from: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Backup {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        report(&backup(data.folder(), &self.into)?, self.json, &format!("is in {}", self.into.display()))
    }
}

impl Restore {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let reported = report(
            &restore(&self.from, data.folder())?,
            self.json,
            &format!("is in {}", data.folder().display()),
        );
        say("the master key is not part of a backup: without the old one, stored secrets cannot be opened");
        reported
    }
}

fn report(note: &BackupManifest, json: bool, place: &str) -> anyhow::Result<ExitCode> {
    if json {
        print_json(&serde_json::to_value(note)?)?;
    } else {
        let artifacts = counted(note.artifacts, "artifact");
        let bytes = note.store_bytes + note.artifact_bytes;
        say(&format!("the store of {} with {artifacts} ({bytes} bytes) {place}", note.made_at));
    }
    Ok(ExitCode::SUCCESS)
}
