//! Reports about executions that several commands print.

use super::compensation::format_compensation;
use super::counted;
use super::failure::FailureReport;
use crate::api::{Client, get_status};
use crate::exit::Usage;
use crate::format::Question;
use crate::ids;
use crate::progress::{say, terminal_rows};
use serde_json::Value;
use std::io::{IsTerminal, Write, stdout};
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::{ProgressStep, execution_id, label};

/// Rows of a terminal that are reserved for the hint and the prompt.
const ROWS_LEFT: usize = 3;

/// Prints a JSON value on one line of stdout.
pub fn print_json(value: &Value) -> anyhow::Result<()> {
    Ok(writeln!(stdout(), "{value}")?)
}

/// Prints a JSON value on stdout: on one line with `--json`, else indented.
pub fn print_pretty(json: bool, value: &Value) -> anyhow::Result<()> {
    match json {
        true => print_json(value),
        false => Ok(writeln!(stdout(), "{}", serde_json::to_string_pretty(value)?)?),
    }
}

/// Returns a field of an answer that is a string; `-` if there is none.
pub fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or("-")
}

pub fn known_step(steps: &[ProgressStep], name: &str) -> Result<(), Usage> {
    if steps.iter().any(|step| step.name == name) {
        return Ok(());
    }
    let known: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    let hint = format!("its steps are {}", known.join(", "));
    Err(Usage::new(format!("the definition has no step `{name}`")).hint(hint))
}

/// Returns whether an execution would continue if a process executed it: `is_idle` means that none does. The status of
/// the API is then still `running`.
pub fn is_interrupted(execution: &Value, is_idle: bool) -> bool {
    is_idle && matches!(execution["status"].as_str(), Some("running" | "initializing" | "queued"))
}

/// Returns the status of an execution for people.
pub fn shown_status(execution: &Value, is_idle: bool) -> &str {
    match is_interrupted(execution, is_idle) {
        true => "interrupted",
        false => execution["status"].as_str().unwrap_or("-"),
    }
}

/// Formats the headline of an execution.
pub fn title(execution: &Value) -> String {
    let id = execution["executionId"].as_str().unwrap_or_default();
    match execution["workflowName"].as_str() {
        Some(name) => format!("{id}: {name}, version {}", execution["workflowVersion"]),
        None => id.to_owned(),
    }
}

/// Prints the outputs of an execution that has ended and its failures, or the commands that carry a paused one on.
pub fn report_end(failure: FailureReport<'_>, client: &Rc<Client>, execution: &Value) -> anyhow::Result<()> {
    let status = execution["status"].as_str().unwrap_or_default();
    match status {
        "completed" | "partial_success" => print_outputs(client, execution)?,
        "paused" => say(&next_commands(client, ids::of_answer(execution)?)?),
        _ => {}
    }
    report_failures(failure, execution);
    let compensation = format_compensation(execution, client.flag());
    if !compensation.is_empty() {
        say(&compensation);
    }
    Ok(())
}

/// Reports the failures of an execution that ended with some.
pub fn report_failures(failure: FailureReport<'_>, execution: &Value) {
    let report = failure.format(execution);
    if matches!(execution["status"].as_str(), Some("failed" | "partial_success")) && !report.is_empty() {
        say(&report);
    }
}

/// Prints the outputs; on a terminal, as many lines as fit.
fn print_outputs(client: &Client, execution: &Value) -> anyhow::Result<()> {
    let (text, rest) = format_outputs(client, execution)?;
    writeln!(stdout(), "{text}")?;
    rest.iter().for_each(|rest| say(rest));
    Ok(())
}

/// Formats the outputs; on a terminal, as many lines as fit, and the command that prints the rest.
pub fn format_outputs(client: &Client, execution: &Value) -> anyhow::Result<(String, Option<String>)> {
    let text = serde_json::to_string_pretty(&execution["outputs"])?;
    let room = if stdout().is_terminal() { terminal_rows().saturating_sub(ROWS_LEFT) } else { usize::MAX };
    let lines = text.lines().count();
    if lines <= room.max(1) {
        return Ok((text, None));
    }
    let shown: Vec<&str> = text.lines().take(room.max(1)).collect();
    let (more, id) = (counted(lines - shown.len(), "more line"), execution["executionId"].as_str());
    let rest = format!("… {more}: windlass executions output {}{}", id.unwrap_or_default(), client.flag());
    Ok((shown.join("\n"), Some(rest)))
}

/// Formats the tasks that a paused execution waits for, with the commands that continue it.
pub fn next_commands(client: &Client, id: ExecutionId) -> anyhow::Result<String> {
    let status = get_status(client, id)?;
    let waiting = status["waitingFor"].as_array().map(Vec::as_slice).unwrap_or_default();
    let (own, flag) = (execution_id(id), client.flag());
    let mut lines: Vec<String> = Vec::new();
    for entry in waiting {
        let line = format_waiting(entry, &own, flag);
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let is_held = waiting.iter().any(|entry| entry["kind"] == "pause" && entry["childId"].is_null());
    if !is_held {
        lines.push(format!("then continue it with:\n  {}", client.resume_command(id)));
    }
    Ok(lines.join("\n"))
}

/// Formats one entry of `waitingFor` with the commands that answer it. A sub-execution is answered under its own id.
fn format_waiting(entry: &Value, own: &str, flag: &str) -> String {
    let child = entry["childId"].as_str();
    let id = child.unwrap_or(own);
    let step = entry["nodeId"].as_str().unwrap_or_default();
    let of = child.map(|child| format!(" of {child}")).unwrap_or_default();
    let deadline = entry["deadline"].as_str().map(str::to_owned);
    match entry["kind"].as_str() {
        Some("pause") => {
            let it = child.unwrap_or("it");
            format!("{it} is held; release it with:\n  windlass executions resume {id}{flag}")
        }
        Some("gate") => {
            let reads = entry["reads"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let keys: Vec<String> = reads.map(|key| format!("{key}=…")).collect();
            let keys = if keys.is_empty() { "KEY=VALUE".to_owned() } else { keys.join(" ") };
            let until = deadline.map(|until| format!(" until {until}")).unwrap_or_default();
            format!(
                "step {step}{of} waits at its gate{until}; open it with:\n  windlass executions patch {id} {keys}{flag}"
            )
        }
        _ => {
            let path = entry["path"].as_array().into_iter().flatten();
            let path: Vec<u32> = path.filter_map(|index| u32::try_from(index.as_u64()?).ok()).collect();
            let node = label(step, &path);
            let names = entry["approvers"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let approvers: Vec<String> =
                names.chain(entry["approvers"].as_str()).map(str::to_owned).collect();
            let question = Question { message: entry["message"].as_str(), approvers: &approvers, deadline };
            format!(
                "step {node}{of} waits for a person{question}; answer with:\n  windlass executions approve {id} {node}{flag}\n  windlass executions reject {id} {node}{flag}"
            )
        }
    }
}
