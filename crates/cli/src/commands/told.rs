//! Executions as commands print them.

use super::graph::Drawn;
use crate::data::Data;
use crate::exit::Usage;
use crate::progress::say;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::Write;
use windlass_dialects::graph::{draw, marks};
use windlass_dialects::view::{execution_id, gate_keys};
use windlass_engine::journal;
use windlass_kernel::{Execution, ExecutionId, Net, Outcome, Phase, RunState, StepId, outputs};
use windlass_server::told::{Told, facts};
use windlass_store::{Reader, Stored};

/// One JSON value on a line of stdout.
pub fn print_json(value: &Value) -> anyhow::Result<()> {
    Ok(writeln!(std::io::stdout(), "{value}")?)
}

pub fn stored(reader: &mut impl Reader, id: ExecutionId) -> anyhow::Result<Stored> {
    let gone = || Usage::new(format!("there is no execution {}", execution_id(id)));
    Ok(reader.load(id)?.ok_or_else(gone)?)
}

pub fn net_of(reader: &mut impl Reader, state: &Execution<'_>) -> anyhow::Result<Net> {
    reader.net(state.head.net)?.with_context(|| {
        format!(
            "the definition of {} is not in the store: the data folder is damaged",
            execution_id(state.head.id)
        )
    })
}

pub fn known_step(net: &Net, name: &str) -> Result<(), Usage> {
    if net.find(name).is_some() {
        return Ok(());
    }
    let known: Vec<&str> = net.steps().map(|(_, step)| step.name.as_str()).collect();
    let hint = format!("its steps are {}", known.join(", "));
    Err(Usage::new(format!("the definition has no step `{name}`")).hint(hint))
}

/// The object that stands for an execution everywhere.
pub fn response_of(reader: &mut impl Reader, id: ExecutionId) -> anyhow::Result<Value> {
    let stored = stored(reader, id)?;
    Ok(Told::of(reader, stored)?.response()?)
}

/// The execution's net, coloured by its journal.
pub fn picture(reader: &mut impl Reader, id: ExecutionId, format: Drawn) -> anyhow::Result<String> {
    let stored = stored(reader, id)?;
    let told = Told::of(reader, stored)?;
    let marks = marks(&told.net, &told.journal, &told.facts.leases)
        .with_context(|| format!("the journal of {} is broken", execution_id(id)))?;
    Ok(draw(&told.net, Some(&marks), format.into()))
}

/// The line that stands over everything told of an execution.
pub fn title(reader: &mut impl Reader, id: ExecutionId) -> anyhow::Result<String> {
    let stored = stored(reader, id)?;
    let workflow = facts(reader, &stored)?.workflow;
    let named = workflow.map(|workflow| format!(": {}, version {}", workflow.name, workflow.version));
    Ok(format!("{}{}", execution_id(id), named.unwrap_or_default()))
}

/// After the wait for one execution: what it gave, or how it goes on.
pub fn tell_end(reader: &mut impl Reader, data: &Data, id: ExecutionId) -> anyhow::Result<()> {
    let state = stored(reader, id)?.state;
    let net = net_of(reader, &state)?;
    match state.phase() {
        Phase::Ended(Outcome::Completed | Outcome::Partial) => {
            let given = outputs(&net, &journal(reader, id)?);
            writeln!(std::io::stdout(), "{}", serde_json::to_string_pretty(&given)?)?;
        }
        Phase::Paused => say(&how_to_move_on(&net, &state, data)),
        _ => {}
    }
    Ok(())
}

/// What a paused execution waits for, with the commands that move it on.
pub fn how_to_move_on(net: &Net, state: &Execution<'_>, data: &Data) -> String {
    let (id, flag) = (execution_id(state.head.id), data.flag());
    if state.head.held {
        return format!("it is held; release it with:\n  windlass executions resume {id}{flag}");
    }
    let mut told = Vec::new();
    let gates: BTreeSet<StepId> = state.gated.keys().map(|(step, _)| *step).collect();
    for step in &gates {
        let keys: Vec<String> = gate_keys(net, *step).iter().map(|key| format!("{key}=…")).collect();
        let keys = if keys.is_empty() { "KEY=VALUE".to_owned() } else { keys.join(" ") };
        let name = &net.step(*step).name;
        told.push(format!("step {name} waits at its gate; open it with:"));
        told.push(format!("  windlass executions patch {id} {keys}{flag}"));
    }
    let manual = state.runs.values().filter(|run| matches!(run.state, RunState::Manual { .. }));
    let manual: BTreeSet<StepId> = manual.map(|run| run.step).collect();
    for step in &manual {
        let name = &net.step(*step).name;
        told.push(format!("step {name} waits for a person; answer with:"));
        told.push(format!(
            "  windlass executions approve {id} {name}{flag}\n  windlass executions reject {id} {name}{flag}"
        ));
    }
    told.push(format!("then carry on with:\n  {}", data.resume(state.head.id)));
    told.join("\n")
}
