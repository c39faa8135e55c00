//! `windlass admin prune`.

use crate::commands::counted;
use crate::commands::report::print_json;
use crate::data::Data;
use crate::embedded::{self, Workers, now};
use crate::progress::say;
use serde_json::json;
use std::process::ExitCode;
use std::time::Duration;
use windlass_kernel::Millis;
use windlass_server::retention::{Pruned, Pruner, ended_before};
use windlass_server::settings::duration;
use windlass_store::Retention as _;
use windlass_views::{execution_id, status, time};

/// Executions named in a preview.
const SHOWN: usize = 20;

/// Forget executions that ended long ago
///
/// A server does this by itself (`--keep`). With --dry-run nothing is changed, and it may run beside a server.
#[derive(Debug, clap::Args)]
pub struct Prune {
    /// How long executions are kept after they ended
    #[arg(long, default_value = "30d", value_name = "TIME", value_parser = duration)]
    keep: Duration,
    /// Only list what would be deleted
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Prune {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        let before = ended_before(now(), self.keep);
        if self.dry_run {
            return self.preview(data, before);
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
            say(&format!("forgotten: {executions}, {artifacts} ({artifact_bytes} bytes)"));
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
            print_json(&json!({ "executions": count, "endedBefore": time(before), "oldest": oldest }))?;
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
        say(&format!("{executions} ended before {} and would be forgotten", time(before)));
        Ok(ExitCode::SUCCESS)
    }
}
