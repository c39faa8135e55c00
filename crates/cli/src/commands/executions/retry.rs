//! `windlass executions retry`

use crate::api::{Client, follow, get_execution};
use crate::commands::report::known_step;
use crate::commands::run::ending::{Ending, Shows};
use crate::commands::run::inputs::Inputs;
use crate::{ids, signals};
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

/// Do an execution again that failed or was cancelled, as a new one
///
/// What had completed before the step is kept with its results. Without --from it goes on where the first failure was
/// that nothing handled, or where it was cancelled. Waits for the end like `run`, with its exit codes.
#[derive(Debug, clap::Args)]
pub struct Retry {
    /// Its id, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Begin at this step
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Which time the step ran, from 1; else where it failed, or the last time
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    firing: Option<u32>,
    #[command(flatten)]
    inputs: Inputs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Retry {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let of = ids::find(client, &self.id)?;
        let signals = signals::listen().context("cannot listen to signals")?;
        let path = ["executions", &execution_id(of), "retry"];
        let retried = client.send(Method::POST, &path, &self.body(client, of)?)?;
        Ending { client, json: self.json, shows: Shows::default() }
            .until_rest(&[ids::of_answer(&retried)?], &signals)
    }

    fn body(&self, client: &Rc<Client>, of: ExecutionId) -> anyhow::Result<Value> {
        let mut body = json!({});
        if let Some(step) = &self.from {
            known_step(follow(client, of)?.net(), step)?;
            body = json!({ "fromNode": step, "firing": self.firing });
        }
        if self.inputs.is_given() {
            body["inputs"] = self.inputs.over(get_execution(client, of)?["inputs"].take())?;
        }
        Ok(body)
    }
}
