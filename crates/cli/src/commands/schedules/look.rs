//! Listing and showing schedules.

use super::find;
use crate::api::Client;
use crate::commands::report::{print_json, print_pretty, text};
use crate::format::plain;
use serde_json::{Value, json};
use std::io::{Write, stdout};

/// List schedules, the newest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only schedules that are enabled, or with `false` those that are not
    #[arg(long, value_name = "BOOL")]
    enabled: Option<bool>,
    /// Maximum number of schedules
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Show a schedule
#[derive(Debug, clap::Args)]
pub struct Get {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Print the reasons for the next run times, and the results of past occurrences
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// Id or name of the schedule
    #[arg(value_name = "SCHEDULE")]
    schedule: String,
    /// Number of future occurrences
    #[arg(long, value_name = "N", default_value_t = 5)]
    next: u32,
    /// Number of past occurrences
    #[arg(long, value_name = "N", default_value_t = 20)]
    past: u32,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Field names of the cursor of a list.
#[derive(Debug, Clone, Copy)]
pub struct PageFields {
    pub size: &'static str,
    pub next: &'static str,
}

/// Fields of lists of schedules and their runs.
pub const SNAKE_CASE: PageFields = PageFields { size: "limit", next: "next_cursor" };
/// Fields of lists of actions and routing targets.
pub const CAMEL_CASE: PageFields = PageFields { size: "limit", next: "nextCursor" };

/// Reads a list page by page, up to a number of entries.
pub fn read_pages(
    client: &Client,
    path: &[&str],
    filter: &[(&str, &str)],
    (fields, limit): (PageFields, usize),
) -> anyhow::Result<Value> {
    let (mut items, mut cursor) = (Vec::new(), None::<String>);
    loop {
        let count = (limit - items.len()).min(200).to_string();
        let mut query = filter.to_vec();
        query.push((fields.size, &count));
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let mut page = client.get(path, &query)?;
        items.append(page["items"].as_array_mut().unwrap_or(&mut Vec::new()));
        cursor = page[fields.next].as_str().map(str::to_owned);
        if cursor.is_none() || items.len() >= limit {
            return Ok(json!({ "items": items, fields.next: cursor }));
        }
    }
}

impl List {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let enabled = self.enabled.map(|enabled| enabled.to_string());
        let filter: Vec<(&str, &str)> =
            enabled.as_deref().map(|enabled| ("enabled", enabled)).into_iter().collect();
        let found = read_pages(client, &["schedules"], &filter, (SNAKE_CASE, self.limit as usize))?;
        if self.json {
            return print_json(&found);
        }
        let mut out = stdout().lock();
        for schedule in found["items"].as_array().into_iter().flatten() {
            let next = match schedule["enabled"].as_bool() {
                Some(true) => text(schedule, "next_run_at"),
                _ => "disabled",
            };
            let (id, kind, name) =
                (text(schedule, "id"), text(schedule, "target_kind"), text(schedule, "name"));
            writeln!(out, "{id}  {kind:8}  {next:24}  {}", plain(name))?;
        }
        Ok(())
    }
}

impl Get {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let schedule = client.get(&["schedules", &id], &[])?;
        print_pretty(self.json, &schedule)
    }
}

impl Explain {
    pub fn run(&self, client: &Client) -> anyhow::Result<()> {
        let id = find(client, &self.schedule)?;
        let (next, past) = (self.next.to_string(), self.past.to_string());
        let explained = client.get(&["schedules", &id, "explain"], &[("next", &next), ("past", &past)])?;
        if self.json {
            return print_json(&explained);
        }
        let mut out = stdout().lock();
        for next in explained["next"].as_array().into_iter().flatten() {
            writeln!(out, "next  {}  {}", text(next, "nominal_time"), text(next, "reason"))?;
        }
        for past in explained["past"].as_array().into_iter().flatten() {
            let (at, status) = (text(past, "nominal_time"), text(past, "status"));
            writeln!(out, "past  {at}  {status:15}  {}", plain(text(past, "reason")))?;
        }
        Ok(())
    }
}
