//! The report of a compensation: the actions that were undone, those that were not, and the commands for them.

use super::counted;
use crate::text::plain;
use serde_json::Value;
use std::fmt::Write as _;

/// Formats the compensation of an execution; empty if nothing had to be undone. `flag` makes a command reach the same API.
pub fn format_compensation(execution: &Value, flag: &str) -> String {
    let summary = &execution["view"]["compensation"];
    let entries = summary["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
    if entries.is_empty() {
        return String::new();
    }
    let mut out = format!("compensation: {}\n", headline(summary, entries.len()));
    let width = entries.iter().map(|entry| text(entry, "actionId").chars().count()).max().unwrap_or(0);
    for entry in entries {
        let _ = writeln!(out, "  {:width$}  {}", text(entry, "actionId"), describe(entry));
    }
    let id = execution["executionId"].as_str().unwrap_or_default();
    for entry in entries.iter().filter(|entry| entry["outcome"] == "Failed") {
        let _ = writeln!(out, "  logs:  windlass executions logs {id} {}{flag}", text(entry, "actionId"));
    }
    if entries.iter().any(is_left) {
        let _ = writeln!(out, "  undo the rest by hand; every attempt: windlass evidence {id}{flag}");
    }
    out.trim_end().to_owned()
}

fn headline(summary: &Value, total: usize) -> String {
    let count = |key: &str| summary[key].as_u64().unwrap_or_default();
    let mut parts = vec![format!("{} of {} undone", count("succeeded"), counted(total, "action"))];
    for (number, words) in [(count("failed"), "failed"), (count("nonCompensable"), "without compensation")] {
        if number > 0 {
            parts.push(format!("{number} {words}"));
        }
    }
    parts.join(", ")
}

fn describe(entry: &Value) -> String {
    let operation =
        entry["operation"].as_str().map(|name| format!(" by {}", plain(name))).unwrap_or_default();
    let attempts = counted(entry["attempts"].as_u64().unwrap_or_default(), "attempt");
    match entry["outcome"].as_str().unwrap_or_default() {
        "Succeeded" => format!("undone{operation}"),
        "Failed" => {
            let (error, operation) = (&entry["error"], text(entry, "operation"));
            let why = format!("{} ({})", text(error, "message"), text(error, "code"));
            format!("not undone: {operation} failed after {attempts}: {why}")
        }
        "Cancelled" => format!("unknown: a forced cancel stopped it{operation}"),
        "NotRun" => "not undone: a forced cancel came first".to_owned(),
        "NonCompensable" => "not undone: it has no compensation".to_owned(),
        "Running" => format!("being undone{operation}"),
        _ => "will be undone".to_owned(),
    }
}

/// Returns whether the effects of an action are or may be still in place.
fn is_left(entry: &Value) -> bool {
    matches!(entry["outcome"].as_str(), Some("Failed" | "Cancelled" | "NotRun" | "NonCompensable"))
}

fn text(value: &Value, key: &str) -> String {
    plain(value[key].as_str().unwrap_or("-"))
}
