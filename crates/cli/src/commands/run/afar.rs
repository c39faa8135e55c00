//! Begins executions at a server: the definition and what it starts are registered there first, under their names.

use crate::commands::family::Family;
use crate::commands::source::Source;
use crate::ids;
use crate::place::{Client, ServerError};
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use windlass_kernel::ExecutionId;
use windlass_server::ids::fresh;

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

/// Sent once more when no answer came: under its key it starts nothing a second time.
pub fn execute(server: &Client, workflow: &str, inputs: &Value) -> anyhow::Result<ExecutionId> {
    let (key, body) = (fresh("run_")?, json!({ "inputs": inputs }));
    let start = || {
        let asked = server.asked(Method::POST, &["workflows", workflow, "execute"]);
        server.json(asked.with("x-idempotency-key", key.clone()).json(&body))
    };
    let told = match start() {
        Err(ServerError::Unreachable(_)) => start(),
        answered => answered,
    };
    ids::of_answer(&told?)
}
