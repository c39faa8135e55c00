//! `windlass executions get`

use crate::api::{Client, get_execution, get_picture};
use crate::commands::compensation::format_compensation;
use crate::commands::counted;
use crate::commands::failure::{FailureReport, Files};
use crate::commands::graph::{Drawn, put};
use crate::commands::report::{format_outputs, next_commands, print_json, shown_status};
use crate::format::{duration, plain};
use crate::ids;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Show one execution: its steps, inputs, outputs and errors
#[derive(Debug, clap::Args)]
pub struct Get {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw its definition, coloured by the state of each step
    #[arg(long, conflicts_with = "json")]
    graph: bool,
    #[arg(long, value_enum, default_value_t = Drawn::Mermaid, requires = "graph")]
    format: Drawn,
    /// Write the picture to this file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "graph")]
    output: Option<PathBuf>,
}

impl Get {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let id = ids::find(client, &self.id)?;
        if self.graph {
            put(&get_picture(client, id, self.format)?, self.output.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        let execution = get_execution(client, id)?;
        if self.json {
            print_json(&execution)?;
            return Ok(ExitCode::SUCCESS);
        }
        let (files, debug) = (&Files::new(), false);
        let failures = FailureReport { client, files, debug }.format(&execution);
        let mut text = page(client, &execution, &failures)?;
        let is_paused = execution["status"] == "paused";
        if is_paused {
            writeln!(text, "\n{}", next_commands(client, id)?)?;
        }
        std::io::stdout().write_all(text.as_bytes())?;
        if execution["completedAt"].is_null() && !is_paused {
            client.report_idle(id);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Formats an execution for people.
fn page(client: &Client, execution: &Value, failures: &str) -> anyhow::Result<String> {
    let mut out = String::new();
    let text = |key: &str| execution[key].as_str().unwrap_or("-");
    writeln!(out, "{}", text("executionId"))?;
    writeln!(out, "  definition  {}, version {}", text("workflowName"), execution["workflowVersion"])?;
    writeln!(out, "  status      {}{}", shown_status(execution, client.is_idle()), took(execution))?;
    if let Some(reason) = execution["quarantined"]["reason"].as_str() {
        writeln!(
            out,
            "  quarantined {}: {}",
            execution["quarantined"]["since"].as_str().unwrap_or("-"),
            plain(reason)
        )?;
        writeln!(out, "              `windlass admin quarantine` releases or cancels it")?;
    }
    let metadata = &execution["metadata"];
    match (metadata["retryOf"].as_str(), metadata["parentExecutionId"].as_str()) {
        (Some(old), _) => writeln!(out, "  retry of    {old}")?,
        (None, Some(parent)) => writeln!(out, "  started by  {parent}")?,
        (None, None) => {}
    }
    writeln!(out, "  created     {}", text("createdAt"))?;
    if execution["completedAt"].is_string() {
        writeln!(out, "  ended       {}", text("completedAt"))?;
    }
    writeln!(out, "  inputs      {}", execution["inputs"])?;
    let entries = execution["nodeExecutions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let width = entries.iter().filter_map(|entry| entry["nodeId"].as_str()).map(str::len).max().unwrap_or(0);
    writeln!(out, "steps")?;
    for entry in entries {
        step(&mut out, entry, width)?;
    }
    for join in execution["view"]["joins"].as_array().into_iter().flatten() {
        let name = join["step"].as_str().unwrap_or("-");
        let awaited = join["waitsFor"].as_array().into_iter().flatten().filter_map(Value::as_str);
        writeln!(out, "  {name:width$}  waits for {}", awaited.collect::<Vec<_>>().join(", "))?;
    }
    if !failures.is_empty() {
        writeln!(out, "{failures}")?;
    }
    let compensation = format_compensation(execution, client.flag());
    if !compensation.is_empty() {
        writeln!(out, "{compensation}")?;
    }
    if execution["outputs"].is_object() {
        let (outputs, rest) = format_outputs(client, execution)?;
        writeln!(out, "outputs\n{outputs}")?;
        rest.iter().try_for_each(|rest| writeln!(out, "{rest}"))?;
    }
    Ok(out)
}

fn took(execution: &Value) -> String {
    execution["duration"].as_u64().map(|ms| format!(" in {}", duration(ms))).unwrap_or_default()
}

fn step(out: &mut String, entry: &Value, width: usize) -> std::fmt::Result {
    let (name, status) = (entry["nodeId"].as_str().unwrap_or("-"), entry["status"].as_str().unwrap_or("-"));
    let firing = match entry["firing"].as_u64() {
        Some(number @ 2..) => format!(", firing {number}"),
        _ => String::new(),
    };
    let retries = match entry["retryCount"].as_u64() {
        Some(count @ 1..) => format!(", {}", counted(count, "retry")),
        _ => String::new(),
    };
    let (took, iterations) = (took(entry), iterations(entry).unwrap_or_default());
    writeln!(out, "  {name:width$}  {status}{took}{firing}{iterations}{retries}")
}

/// Formats the number of iterations, and the number of failed ones so far.
fn iterations(entry: &Value) -> Option<String> {
    let listed = entry["iterations"].as_array()?;
    let details = &entry["error"]["details"];
    let total = details["iterations"].as_u64().unwrap_or(listed.len() as u64);
    let failed = listed.iter().filter(|iteration| iteration["status"] == "failed").count() as u64;
    Some(match details["failed"].as_u64().unwrap_or(failed) {
        0 => format!(", {}", counted(total, "iteration")),
        failed => format!(", {failed} of {} failed", counted(total, "iteration")),
    })
}
