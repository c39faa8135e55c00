//! Commands that change an execution.

use crate::commands::run::inputs::pair;
use crate::commands::told::{moving_on, print_json};
use crate::exit::Usage;
use crate::ids;
use crate::place::{Place, Taken, Wish};
use crate::progress::say;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

/// Cancel an execution
#[derive(Debug, clap::Args)]
pub struct Cancel {
    #[command(flatten)]
    change: Change,
    /// Why, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
    /// Give up compensation too
    #[arg(long)]
    force: bool,
    /// Undo what was done, where the definition says how
    #[arg(long, conflicts_with = "force")]
    compensate: bool,
}

/// Hold an execution: what runs ends, nothing new begins
#[derive(Debug, clap::Args)]
pub struct Pause {
    #[command(flatten)]
    change: Change,
    /// Why, for the record
    #[arg(long, default_value = "", hide_default_value = true)]
    reason: String,
}

/// Release an execution that is held
#[derive(Debug, clap::Args)]
pub struct Resume {
    #[command(flatten)]
    change: Change,
}

/// Set keys of an execution's context; gates that look at them are asked again
#[derive(Debug, clap::Args)]
pub struct Patch {
    #[command(flatten)]
    change: Change,
    /// VALUE is JSON, or else a text
    #[arg(value_name = "KEY=VALUE", required = true)]
    keys: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub struct Change {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Cancel {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let (reason, force, compensate) = (self.reason.clone(), self.force, self.compensate);
        self.change.ask(place, &Wish::Cancel { reason, force, compensate })
    }
}

impl Pause {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        self.change.ask(place, &Wish::Pause { reason: self.reason.clone() })
    }
}

impl Resume {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        self.change.ask(place, &Wish::Resume)
    }
}

impl Patch {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let pairs: Result<_, Usage> = self.keys.iter().map(|text| pair("patch", text)).collect();
        self.change.ask(place, &Wish::Patch(pairs?))
    }
}

impl Change {
    pub(super) fn ask(&self, place: &Place, wish: &Wish) -> anyhow::Result<ExitCode> {
        let id = ids::find(place, &self.id)?;
        let (status, taken) = place.ask(id, wish)?;
        if self.json {
            print_json(&json!({ "executionId": execution_id(id), "status": status }))?;
        } else {
            writeln!(std::io::stdout(), "{} {status}", execution_id(id))?;
        }
        tell_who_goes_on(place, id, &status, taken)?;
        Ok(ExitCode::SUCCESS)
    }
}

/// An engine that was there for the moment only leaves the rest to somebody else.
pub(super) fn tell_who_goes_on(
    place: &Place,
    id: ExecutionId,
    status: &str,
    taken: Taken,
) -> anyhow::Result<()> {
    match (taken, status) {
        (Taken::ByHolder, _) | (_, "completed" | "failed" | "partial_success" | "cancelled") => {}
        (Taken::Here, "paused") => say(&moving_on(place, id)?),
        (Taken::Here, _) => {
            say(&format!("nobody works on it at the moment; carry on with:\n  {}", place.resume(id)));
        }
    }
    Ok(())
}
