//! `windlass schedules run`: the schedules of a folder in the foreground.

use crate::api::Client;
use crate::commands::report::print_json;
use crate::exit::Usage;
use crate::format::plain;
use crate::progress::say;
use crate::signals;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::time::Duration;

/// Time between two polls of the runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Number of runs that are read at a time. Changes between two polls are in the list of runs.
const SHOWN_MAX: &str = "100";

/// Start the work of this folder's schedules until Ctrl-C
///
/// Every change of a run is printed. A server starts schedules by itself; in a folder that a server holds, use
/// `windlass runs list`.
#[derive(Debug, clap::Args)]
pub struct Foreground {
    /// Maximum number of steps that run at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub slots: Option<u32>,
    /// Print one JSON object per change
    #[arg(long)]
    json: bool,
}

impl Foreground {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let signals = signals::listen()?;
        let mut seen = self.read(client)?;
        if !client.start_schedules() {
            return Err(Usage::new(format!("another process {} starts the schedules", client.place()))
                .hint("`windlass runs list` shows their runs")
                .into());
        }
        say("starting schedules; Ctrl-C stops");
        loop {
            let is_interrupted = signals.recv_timeout(LOOK_EVERY).is_ok();
            let runs = self.read(client)?;
            for (id, run) in &runs {
                if seen.get(id).is_none_or(|before| before["status"] != run["status"]) {
                    self.print(run)?;
                }
            }
            if is_interrupted {
                return Ok(());
            }
            seen = runs;
        }
    }

    /// Reads the newest runs by id, so that those of one moment are printed in their order.
    fn read(&self, client: &Client) -> anyhow::Result<BTreeMap<String, Value>> {
        let mut page = client.get(&["runs"], &[("limit", SHOWN_MAX)])?;
        let items = page["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Ok(items.into_iter().map(|run| (run["id"].as_str().unwrap_or_default().to_owned(), run)).collect())
    }

    fn print(&self, run: &Value) -> anyhow::Result<()> {
        if self.json {
            return print_json(&json!(run));
        }
        let text = |key: &str| run[key].as_str().unwrap_or("-");
        let (at, id, status, key) = (text("updated_at"), text("id"), text("status"), text("occurrence_key"));
        Ok(writeln!(stdout(), "{at}  {id}  {status:15}  attempt {}  {}", run["attempt"], plain(key))?)
    }
}
