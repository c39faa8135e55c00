//! `windlass admin prune`.

use crate::commands::counted;
use crate::commands::report::print_json;
use crate::data::Data;
use crate::embedded::{self, Workers, now};
use crate::exit::Usage;
use crate::progress::say;
use anyhow::Context;
use serde_json::json;
use std::io::{IsTerminal, Write, stderr, stdin};
use std::process::ExitCode;
use std::time::Duration;
use windlass_kernel::Millis;
use windlass_server::retention::{Pruned, Pruner, ended_before};
use windlass_server::settings::{Retention, retention};
use windlass_store::Retention as _;
use windlass_views::{execution_id, status, time};

/// Number of executions that a preview names.
const SHOWN: usize = 20;

/// Delete executions that ended long ago
///
/// A server does this by itself (`--keep`). With --dry-run nothing is changed, and a server may be running.
#[derive(Debug, clap::Args)]
pub struct Prune {
    /// Time for which executions are kept after they ended, as in 30d, or `forever`. 0d keeps none that have ended
    #[arg(long, default_value = "30d", value_name = "TIME", value_parser = retention)]
    keep: Retention,
    /// Delete all executions that have ended without asking
    #[arg(long, short)]
    yes: bool,
    /// Only list the executions that would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Asks for confirmation before all executions that have ended are deleted. Without a terminal nothing is deleted.
fn confirm(executions: u64) -> anyhow::Result<()> {
    let question = format!("delete every execution that has ended, {}?", counted(executions, "execution"));
    if !stdin().is_terminal() || !stderr().is_terminal() {
        return Err(Usage::new(question).hint("add --yes, or keep some with --keep 7d").into());
    }
    let _ = write!(stderr(), "{question} [y/N] ");
    let mut answer = String::new();
    stdin().read_line(&mut answer).context("cannot read the answer")?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Usage::new("nothing was deleted").into()),
    }
}

impl Prune {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let before = match self.keep {
            Retention::For(time) => ended_before(now(), time),
            Retention::Forever => Millis(i64::MIN),
        };
        if self.dry_run {
            return self.preview(data, before);
        }
        if self.keep == Retention::For(Duration::ZERO) && !self.yes {
            data.check_exists()?;
            confirm(data.read()?.count_forgettable(before)?)?;
        }
        let embedded = embedded::start(data.folder(), "windlass admin prune", Workers::None)?;
        let pruned = Pruner::of(data.folder(), embedded.handle()).and_then(|mut pruning| pruning.run(before));
        embedded.stop()?;
        let Pruned { executions, artifacts, artifact_bytes } = pruned?;
        if self.json {
            print_json(&json!({
                "executions": executions, "artifacts": artifacts, "artifactBytes": artifact_bytes,
            }))?;
        } else {
            let (executions, artifacts) = (counted(executions, "execution"), counted(artifacts, "artifact"));
            say(&format!("deleted {executions} and {artifacts} ({artifact_bytes} bytes)"));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn preview(&self, data: &Data, before: Millis) -> anyhow::Result<ExitCode> {
        let mut reader = data.read()?;
        let count = reader.count_forgettable(before)?;
        let oldest = reader.forgettable(before, SHOWN)?;
        if self.json {
            let oldest: Vec<_> = oldest
                .iter()
                .map(|one| {
                    json!({
                        "executionId": execution_id(one.execution), "workflowName": one.name,
                        "status": status(one.phase), "completedAt": time(one.ended_at),
                    })
                })
                .collect();
            let ended_before = self.keep.limit().map(|_| time(before));
            print_json(&json!({ "executions": count, "endedBefore": ended_before, "oldest": oldest }))?;
            return Ok(ExitCode::SUCCESS);
        }
        for one in &oldest {
            let name = one.name.as_deref().unwrap_or("-");
            println!(
                "{}  {}  {}  {name}",
                execution_id(one.execution),
                time(one.ended_at),
                status(one.phase)
            );
        }
        let executions = counted(count, "execution");
        match self.keep {
            Retention::For(_) => {
                say(&format!("{executions} ended before {} and would be deleted", time(before)))
            }
            Retention::Forever => say("no execution would be deleted: executions are kept forever"),
        }
        Ok(ExitCode::SUCCESS)
    }
}
