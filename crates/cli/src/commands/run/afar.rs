//! Begins executions at a server: the definition and what it starts are registered there first, under their names.

use crate::commands::family::Family;
use crate::commands::source::Source;
use crate::ids;
use crate::place::{Client, ServerError};
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use windlass_kernel::ExecutionId;

pub fn begin(
    server: &Client,
    family: &Family,
    (name, source): (&str, &Source),
    inputs: &Value,
    times: u32,
) -> anyhow::Result<Vec<ExecutionId>> {
    for (name, text) in family.sources() {
        register(server, name, text)?;
    }
    let registered = register(server, name, &source.text)?;
    let workflow = registered["id"].as_str().context("the server did not tell the workflow's id")?;
    (0..times).map(|_| execute(server, workflow, inputs)).collect()
}

/// The newest version of the workflow of that name is this text then; if it is already, nothing is written.
fn register(server: &Client, name: &str, text: &str) -> Result<Value, ServerError> {
    let asked = server.asked(Method::PUT, &["workflows"]).query(&[("name", name)]);
    server.json(asked.definition(text))
}

pub fn execute(server: &Client, workflow: &str, inputs: &Value) -> anyhow::Result<ExecutionId> {
    let told =
        server.send(Method::POST, &["workflows", workflow, "execute"], &json!({ "inputs": inputs }))?;
    ids::of_answer(&told)
}
