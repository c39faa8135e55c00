//! `windlass executions list`

use crate::api::{Client, list_executions, list_executions_of};
use crate::commands::report::{is_interrupted, print_json, shown_status};
use crate::commands::workflows::find;
use crate::format::{plain, since};
use crate::progress::say;
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use windlass_server::ExecutionFilter;

/// List executions, the newest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only executions with this status; `open` selects all that have not ended
    #[arg(long, value_parser = PossibleValuesParser::new(ExecutionFilter::names()))]
    status: Option<String>,
    /// Only executions of this workflow: its id or its name
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Maximum number of executions
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, client: &Client) -> anyhow::Result<ExitCode> {
        let filter: Vec<(&str, &str)> =
            self.status.iter().map(|status| ("status", status.as_str())).collect();
        let (found, more) = match &self.workflow {
            Some(workflow) => list_executions_of(client, &find(client, workflow)?, &filter, self.limit)?,
            None => list_executions(client, &filter, self.limit)?,
        };
        if self.json {
            print_json(&json!({ "executions": found, "pagination": { "hasMore": more } }))?;
        } else {
            let is_idle = client.is_idle();
            print(&found, is_idle)?;
            report_interrupted(client, found.iter().filter(|row| is_interrupted(row, is_idle)));
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Reports the command that continues executions that no process runs.
fn report_interrupted<'v>(client: &Client, mut rows: impl Iterator<Item = &'v Value>) {
    let Some(first) = rows.next() else { return };
    let flag = client.flag();
    match (rows.next(), first["executionId"].as_str()) {
        (None, Some(id)) => say(&format!("continue it with:\n  windlass run --resume {id}{flag}")),
        _ => say(&format!("continue them with:\n  windlass run --resume{flag}")),
    }
}

/// Prints the list within 80 columns; exact times are in --json.
fn print(rows: &[Value], is_idle: bool) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let mark = |row: &Value| match row {
        row if row["quarantined"].is_object() => " (quarantined)",
        row if row["held"] == true => " (held)",
        _ => "",
    };
    let shown = |row: &Value| format!("{}{}", shown_status(row, is_idle), mark(row));
    let width = rows.iter().map(|row| shown(row).len()).max().unwrap_or(0);
    for row in rows {
        let (id, age) = (text(row, "executionId"), since(&text(row, "createdAt")));
        let name = plain(&text(row, "workflowName"));
        writeln!(out, "{id}  {:width$}  {age:>6} ago  {name}", shown(row))?;
    }
    Ok(())
}
