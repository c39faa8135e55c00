//! `windlass schedules backfill`.

use super::find;
use crate::api::Client;
use crate::commands::counted;
use crate::commands::report::print_json;
use crate::progress::say;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};

/// Run the occurrences of a past time
///
/// Occurrences that ran, run or wait are left out; skipped ones run.
#[derive(Debug, clap::Args)]
pub struct Backfill {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// The first nominal time, as in 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: String,
    /// The last nominal time
    #[arg(long, value_name = "TIME")]
    to: String,
    /// Print the runs without creating them
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Backfill {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let request = json!({ "from": self.from, "to": self.to, "dry_run": self.dry_run });
        let done = client.send(Method::POST, &["schedules", &id, "backfill"], &request)?;
        if self.json {
            return print_json(&done);
        }
        let occurrences: Vec<&str> =
            done["occurrences"].as_array().into_iter().flatten().filter_map(|one| one.as_str()).collect();
        let mut out = stdout().lock();
        occurrences.iter().try_for_each(|nominal| writeln!(out, "{nominal}"))?;
        let count = counted(occurrences.len() as u64, "occurrence");
        match (self.dry_run, occurrences.is_empty()) {
            (_, true) => say("every occurrence of that time already has a run"),
            (true, false) => say(&format!("{count} would run; nothing is created")),
            (false, false) => say(&format!("{count} will run")),
        }
        Ok(())
    }
}
