//! `windlass evidence`

use crate::commands::told::print_json;
use crate::ids;
use crate::place::At;
use crate::words::plain;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;

/// How much of a hash is shown to people; --json has all of it.
const HASH_SHOWN: usize = 12;

/// Show how every attempt, step and the whole execution came out, and what people did to it
///
/// Each entry holds the hash of the one before it: who keeps the last hash elsewhere can see later that nothing before it
/// was changed.
#[derive(Debug, clap::Args)]
pub struct Evidence {
    /// The execution's id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Print each entry as one JSON object on a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: At,
}

impl Evidence {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let place = self.at.place()?;
        for entry in place.evidence(ids::find(&place, &self.id)?)? {
            if self.json {
                print_json(&entry)?;
            } else {
                writeln!(std::io::stdout(), "{}", line(&entry))?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn line(entry: &Value) -> String {
    let text = |value: &Value| plain(value.as_str().unwrap_or_default());
    let hash: String = text(&entry["hashSha256"]).chars().take(HASH_SHOWN).collect();
    let by = entry["actor"]["userId"].as_str().map(|by| format!(", by {}", plain(by))).unwrap_or_default();
    let notes = entry["notes"].as_str().map(|notes| format!(": {}", plain(notes))).unwrap_or_default();
    format!("{}  {hash}  {}{by}{notes}", text(&entry["endedAtIso"]), text(&entry["summary"]))
}
