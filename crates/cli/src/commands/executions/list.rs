//! `windlass executions list`

use crate::api::{Client, list_executions};
use crate::commands::report::print_json;
use crate::format::{plain, since};
use clap::builder::PossibleValuesParser;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use windlass_server::ExecutionFilter;

/// List executions, the newest first
#[derive(Debug, clap::Args)]
pub struct List {
    /// Only those with this status; `open` are all that have not ended
    #[arg(long, value_parser = PossibleValuesParser::new(ExecutionFilter::names()))]
    status: Option<String>,
    /// Maximum number of executions
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl List {
    pub fn run(&self, client: &Client) -> anyhow::Result<ExitCode> {
        let (found, more) = list_executions(client, self.status.as_deref(), self.limit)?;
        if self.json {
            print_json(&json!({ "executions": found, "pagination": { "hasMore": more } }))?;
        } else {
            print(&found)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Fits 80 columns; exact times are in --json.
fn print(rows: &[Value]) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or("-").to_owned();
    let mark = |row: &Value| match row {
        row if row["quarantined"].is_object() => " (quarantined)",
        row if row["held"] == true => " (held)",
        _ => "",
    };
    let shown = |row: &Value| format!("{}{}", text(row, "status"), mark(row));
    let width = rows.iter().map(|row| shown(row).len()).max().unwrap_or(0);
    for row in rows {
        let (id, age) = (text(row, "executionId"), since(&text(row, "createdAt")));
        let name = plain(&text(row, "workflowName"));
        writeln!(out, "{id}  {:width$}  {age:>6} ago  {name}", shown(row))?;
    }
    Ok(())
}
