//! Starts executions through the API.

use crate::api::Client;
use crate::ids;
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use windlass_kernel::ExecutionId;
use windlass_server::ids::fresh;

/// Registers definitions under their names, so that others can start them.
pub fn register_all<'d>(
    client: &Client,
    definitions: impl Iterator<Item = (&'d str, &'d str)>,
) -> anyhow::Result<()> {
    for (name, text) in definitions {
        register(client, name, text)?;
    }
    Ok(())
}

/// Makes the text the newest version of the workflow of that name, unless it already is, and returns the workflow's id.
pub fn register(client: &Client, name: &str, text: &str) -> anyhow::Result<String> {
    let request = client.request(Method::PUT, &["workflows"]).query(&[("name", name)]);
    let registered = client.json(request.definition(text))?;
    registered["id"].as_str().map(str::to_owned).context("the answer has no workflow id")
}

/// Options of a start besides its inputs.
#[derive(Debug, Clone, Copy)]
pub struct StartOptions {
    /// Number of executions.
    pub times: u32,
    /// Whether they record stacks and debug lines.
    pub debug: bool,
}

impl Default for StartOptions {
    fn default() -> StartOptions {
        StartOptions { times: 1, debug: false }
    }
}

/// Starts executions, each under its own key, so that a repeated request starts nothing a second time.
pub fn start_executions(
    client: &Client,
    workflow: &str,
    inputs: &Value,
    options: &StartOptions,
) -> anyhow::Result<Vec<ExecutionId>> {
    let mut body = json!({ "inputs": inputs });
    if options.debug {
        body["options"] = json!({ "debugMode": true });
    }
    let requests = (0..options.times).map(|_| {
        let request = client.request(Method::POST, &["workflows", workflow, "execute"]);
        Ok(request.with("x-idempotency-key", fresh("run_")?).json(&body))
    });
    let started = client.json_all(requests.collect::<anyhow::Result<_>>()?)?;
    started.iter().map(ids::of_answer).collect()
}
