//! Reports about executions that several commands print.

use crate::api::{Client, follow, get_execution};
use crate::exit::Usage;
use crate::progress::say;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use std::rc::Rc;
use windlass_kernel::{Execution, ExecutionId, Net, RunState, StepId};
use windlass_views::{execution_id, gate_keys};

/// Prints a JSON value on one line of stdout.
pub fn print_json(value: &Value) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{value}")?)
}

pub fn known_step(net: &Net, name: &str) -> Result<(), Usage> {
    if net.find(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = net.steps().map(|(_, step)| step.name.as_str()).collect();
    let hint = format!("its steps are {}", known.join(", "));
    Err(Usage::new(format!("the definition has no step `{name}`")).hint(hint))
}

/// Formats the headline of an execution.
pub fn title(execution: &Value) -> String {
    let id = execution["executionId"].as_str().unwrap_or_default();
    match execution["workflowName"].as_str() {
        Some(name) => format!("{id}: {name}, version {}", execution["workflowVersion"]),
        None => id.to_owned(),
    }
}

/// Prints the outputs of an execution that has ended, or the commands that carry a paused one on.
pub fn report_end(client: &Rc<Client>, id: ExecutionId, status: &str) -> anyhow::Result<()> {
    match status {
        "completed" | "partial_success" => {
            let outputs = &get_execution(client, id)?["outputs"];
            writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(outputs)?)?;
        }
        "paused" => say(&next_commands(client, id)?),
        _ => {}
    }
    Ok(())
}

/// Formats what a paused execution waits for, with the commands that carry it on.
pub fn next_commands(client: &Rc<Client>, id: ExecutionId) -> anyhow::Result<String> {
    let mut follower = follow(client, id)?;
    follower.poll()?;
    Ok(format_next_commands(follower.net(), follower.state(), client))
}

fn format_next_commands(net: &Net, state: &Execution<'_>, client: &Client) -> String {
    let (id, flag) = (execution_id(state.head.id), client.flag());
    if state.head.held {
        return format!("it is held; release it with:\n  windlass executions resume {id}{flag}");
    }
    let mut lines = Vec::new();
    let gates: BTreeSet<StepId> = state.gated.keys().map(|(step, _)| *step).collect();
    for step in &gates {
        let keys: Vec<String> = gate_keys(net, *step).iter().map(|key| format!("{key}=…")).collect();
        let keys = if keys.is_empty() { "KEY=VALUE".to_owned() } else { keys.join(" ") };
        let name = &net.step(*step).name;
        lines.push(format!("step {name} waits at its gate; open it with:"));
        lines.push(format!("  windlass executions patch {id} {keys}{flag}"));
    }
    let manual = state.runs.values().filter(|run| matches!(run.state, RunState::Manual { .. }));
    let manual: BTreeSet<StepId> = manual.map(|run| run.step).collect();
    for step in &manual {
        let name = &net.step(*step).name;
        lines.push(format!("step {name} waits for a person; answer with:"));
        lines.push(format!(
            "  windlass executions approve {id} {name}{flag}\n  windlass executions reject {id} {name}{flag}"
        ));
    }
    lines.push(format!("then carry on with:\n  {}", client.resume_command(state.head.id)));
    lines.join("\n")
}
