//! `windlass executions get`

use crate::commands::graph::{Drawn, put};
use crate::commands::told::{moving_on, print_json};
use crate::ids;
use crate::place::Place;
use crate::words::{duration, plain};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show one execution: its steps, inputs, outputs and errors
#[derive(Debug, clap::Args)]
pub struct Get {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Draw its definition, coloured by what became of each step
    #[arg(long, conflicts_with = "json")]
    graph: bool,
    #[arg(long, value_enum, default_value_t = Drawn::Mermaid, requires = "graph")]
    format: Drawn,
    /// Write the picture to this file instead of standard output
    #[arg(short, long, value_name = "FILE", requires = "graph")]
    output: Option<PathBuf>,
}

impl Get {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let id = ids::find(place, &self.id)?;
        if self.graph {
            put(&place.picture(id, self.format)?, self.output.as_deref())?;
            return Ok(ExitCode::SUCCESS);
        }
        let told = place.told(id)?;
        if self.json {
            print_json(&told)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut text = page(&told)?;
        let is_paused = told["status"] == "paused";
        if is_paused {
            writeln!(text, "\n{}", moving_on(place, id)?)?;
        }
        std::io::stdout().write_all(text.as_bytes())?;
        if told["completedAt"].is_null() && !is_paused {
            place.nobody_works(id);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The same object for reading.
fn page(told: &Value) -> anyhow::Result<String> {
    let mut out = String::new();
    let text = |key: &str| told[key].as_str().unwrap_or("-");
    writeln!(out, "{}", text("executionId"))?;
    writeln!(out, "  definition  {}, version {}", text("workflowName"), told["workflowVersion"])?;
    writeln!(out, "  status      {}{}", text("status"), took(told))?;
    if let Some(reason) = told["quarantined"]["reason"].as_str() {
        writeln!(
            out,
            "  quarantined {}: {}",
            told["quarantined"]["since"].as_str().unwrap_or("-"),
            plain(reason)
        )?;
        writeln!(out, "              `windlass admin quarantine` releases or cancels it")?;
    }
    let metadata = &told["metadata"];
    match (metadata["retryOf"].as_str(), metadata["parentExecutionId"].as_str()) {
        (Some(old), _) => writeln!(out, "  retry of    {old}")?,
        (None, Some(parent)) => writeln!(out, "  started by  {parent}")?,
        (None, None) => {}
    }
    writeln!(out, "  created     {}", text("createdAt"))?;
    if told["completedAt"].is_string() {
        writeln!(out, "  ended       {}", text("completedAt"))?;
    }
    writeln!(out, "  inputs      {}", told["inputs"])?;
    let entries = told["nodeExecutions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let width = entries.iter().filter_map(|entry| entry["nodeId"].as_str()).map(str::len).max().unwrap_or(0);
    writeln!(out, "steps")?;
    for entry in entries {
        step(&mut out, entry, width)?;
    }
    for error in told["errors"].as_array().into_iter().flatten() {
        let message = error["message"].as_str().unwrap_or_default();
        let at = error["nodeId"].as_str().map(|node| format!("step {node}: ")).unwrap_or_default();
        writeln!(out, "error  {at}{} ({})", plain(message), error["code"].as_str().unwrap_or_default())?;
    }
    if told["outputs"].is_object() {
        writeln!(out, "outputs\n{}", serde_json::to_string_pretty(&told["outputs"])?)?;
    }
    Ok(out)
}

fn took(told: &Value) -> String {
    told["duration"].as_u64().map(|ms| format!(" in {}", duration(ms))).unwrap_or_default()
}

fn step(out: &mut String, entry: &Value, width: usize) -> std::fmt::Result {
    let (name, status) = (entry["nodeId"].as_str().unwrap_or("-"), entry["status"].as_str().unwrap_or("-"));
    let firing = match entry["firing"].as_u64() {
        Some(number @ 2..) => format!(", firing {number}"),
        _ => String::new(),
    };
    let iterations = entry["iterations"].as_array().map(|all| format!(", {} iterations", all.len()));
    let retries = match entry["retryCount"].as_u64() {
        Some(count @ 1..) => format!(", {count} retries"),
        _ => String::new(),
    };
    let (took, iterations) = (took(entry), iterations.unwrap_or_default());
    writeln!(out, "  {name:width$}  {status}{took}{firing}{iterations}{retries}")
}
