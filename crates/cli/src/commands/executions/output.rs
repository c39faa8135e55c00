//! `windlass executions output`

use crate::api::{Client, get_execution, get_value};
use crate::commands::graph::put;
use crate::exit::Usage;
use crate::ids;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

/// Print the outputs of an execution or the result of a step, large values included
///
/// A text is printed as it is, anything else as JSON.
#[derive(Debug, clap::Args)]
pub struct Output {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// The step; without it, the outputs of the execution
    #[arg(value_name = "STEP")]
    step: Option<String>,
    /// Number of the run of the step, from 1; the last one by default
    #[arg(long, value_name = "N", requires = "step", value_parser = clap::value_parser!(u64).range(1..))]
    firing: Option<u64>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Output {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let mut execution = get_execution(client, ids::find(client, &self.id)?)?;
        let shown = match &self.step {
            Some(step) => self.result(&mut execution, step)?,
            None => outputs(&mut execution)?,
        };
        let value = whole(client, shown)?;
        let text = match &value {
            Value::String(text) => text.clone(),
            other => format!("{}\n", serde_json::to_string_pretty(other)?),
        };
        put(&text, self.output.as_deref())?;
        Ok(ExitCode::SUCCESS)
    }

    fn result(&self, execution: &mut Value, step: &str) -> Result<Value, Usage> {
        let nodes = execution["nodeExecutions"].as_array_mut().map(std::mem::take).unwrap_or_default();
        let mut firings: Vec<Value> = nodes.into_iter().filter(|node| node["nodeId"] == step).collect();
        if let Some(firing) = self.firing {
            firings.retain(|node| node["firing"] == firing);
        }
        let Some(mut node) = firings.pop() else {
            let hint = "`windlass executions get ID` lists its steps";
            return Err(Usage::new(format!("the execution has no result of step `{step}`")).hint(hint));
        };
        match node["output"].take() {
            Value::Null if node["status"] != "completed" => {
                let status = node["status"].as_str().unwrap_or("not done").to_owned();
                Err(Usage::new(format!("step `{step}` has no result: it is {status}")))
            }
            output => Ok(output),
        }
    }
}

fn outputs(execution: &mut Value) -> Result<Value, Usage> {
    match execution["outputs"].take() {
        Value::Null => {
            let status = execution["status"].as_str().unwrap_or("not done");
            Err(Usage::new(format!("the execution has no outputs: it is {status}"))
                .hint("name a step to print its result"))
        }
        outputs => Ok(outputs),
    }
}

/// Replaces a reference, or references among the fields of a map, by their values.
fn whole(client: &Client, shown: Value) -> anyhow::Result<Value> {
    if let Some(value) = get_value(client, &shown)? {
        return Ok(value);
    }
    match shown {
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, field)| {
                let value = get_value(client, &field)?;
                Ok((name, value.unwrap_or(field)))
            });
            Ok(Value::Object(fields.collect::<anyhow::Result<_>>()?))
        }
        other => Ok(other),
    }
}
