//! Controlling and deleting schedules.

use super::find;
use crate::api::Client;
use crate::commands::report::{print_json, text};
use crate::progress::say;
use reqwest::Method;
use serde_json::json;
use std::io::{Write, stdout};

/// Stop planning occurrences until the schedule is resumed
#[derive(Debug, clap::Args)]
pub struct Pause {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Resume a schedule; its misfire policy applies to the occurrences of the pause
#[derive(Debug, clap::Args)]
pub struct Resume {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Start a run now
#[derive(Debug, clap::Args)]
pub struct Trigger {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Reason, for the run and the audit log
    #[arg(long, value_name = "TEXT", default_value = "manual operator trigger")]
    reason: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Delete a schedule with its runs
#[derive(Debug, clap::Args)]
pub struct Delete {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Pause {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let paused = client.send(Method::POST, &["schedules", &id, "pause"], &json!({}))?;
        if self.json {
            return print_json(&paused);
        }
        say(&format!("schedule {id} is paused"));
        Ok(())
    }
}

impl Resume {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let resumed = client.send(Method::POST, &["schedules", &id, "resume"], &json!({}))?;
        if self.json {
            return print_json(&resumed);
        }
        say(&format!("schedule {id} is resumed; its next run is at {}", text(&resumed, "next_run_at")));
        Ok(())
    }
}

impl Trigger {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let reason = json!({ "reason": self.reason });
        let run = client.send(Method::POST, &["schedules", &id, "trigger"], &reason)?;
        match self.json {
            true => print_json(&run),
            false => Ok(writeln!(stdout(), "{}", text(&run, "run_id"))?),
        }
    }
}

impl Delete {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let deleted = client.json(client.request(Method::DELETE, &["schedules", &id]))?;
        if self.json {
            return print_json(&deleted);
        }
        say(&format!("schedule {id} is deleted"));
        Ok(())
    }
}
