//! `windlass executions retry`

use super::retry_preview::{print_whole, summarize};
use crate::api::{ApiTarget, Client, follow, get_execution};
use crate::commands::definition_set::DefinitionSet;
use crate::commands::report::{known_step, print_json};
use crate::commands::run::ending::{Ending, EndingOptions};
use crate::commands::run::inputs::Inputs;
use crate::commands::run::start;
use crate::commands::source::Source;
use crate::exit::Usage;
use crate::progress::say;
use crate::{ids, signals};
use anyhow::Context;
use reqwest::Method;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_dialects::{Compiled, Outside, Severity, compile_for};
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

/// Retry an execution that failed or was cancelled, as a new execution
///
/// Completed steps are taken over with their results; a loop runs only the iterations that failed, and a failed
/// sub-workflow continues where it failed. With --from, that step and everything after it run again, also for an
/// execution that completed. Waits for the end like `run`, with its exit codes.
#[derive(Debug, clap::Args)]
pub struct Retry {
    /// Id of the execution, or a part of it
    #[arg(value_name = "ID")]
    id: String,
    /// Run this step and everything after it again
    #[arg(long, value_name = "STEP")]
    from: Option<String>,
    /// Number of the run of the step, from 1; by default the one that failed, or the last one
    #[arg(long, value_name = "N", requires = "from", value_parser = clap::value_parser!(u32).range(1..))]
    firing: Option<u32>,
    /// Run under this changed definition; completed steps are matched by their names
    #[arg(long, value_name = "FILE", conflicts_with = "version")]
    with: Option<PathBuf>,
    /// Run under this version of its workflow: a number, or `latest`
    #[arg(long, value_name = "N", value_parser = parse_version)]
    version: Option<Value>,
    /// Print what would run again and what would be taken over, without starting anything
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    inputs: Inputs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

fn parse_version(text: &str) -> Result<Value, String> {
    match text.parse::<u32>() {
        Ok(number) if number > 0 => Ok(json!(number)),
        _ if text == "latest" => Ok(json!(text)),
        _ => Err("a version is a number from 1, or `latest`".to_owned()),
    }
}

/// A definition file, and the definitions that it starts.
pub struct Changed {
    source: Source,
    compiled: Compiled,
    definition_set: DefinitionSet,
}

impl Retry {
    pub fn run(&self, client: &Rc<Client>, changed: Option<&Changed>) -> anyhow::Result<ExitCode> {
        let of = ids::find(client, &self.id)?;
        let signals = signals::listen().context("cannot listen to signals")?;
        let path = ["executions", &execution_id(of), "retry"];
        let mut body = self.body(client, of, changed)?;
        let preview = client.send(Method::POST, &path, &with(&body, "dryRun", json!(true)))?;
        if self.dry_run {
            if self.json {
                print_json(&preview)?
            } else {
                print_whole(&preview)?
            }
            return Ok(ExitCode::SUCCESS);
        }
        if !self.json {
            say(&summarize(&preview));
        }
        if let Some(changed) = changed {
            // A retry that would be refused is refused before the definition is stored.
            check_refused(&preview)?;
            let name = changed.compiled.name.as_deref().unwrap_or(&changed.source.shown);
            start::register_all(client, changed.definition_set.sources())?;
            body["workflowId"] = start::register(client, name, &changed.source.text)?.into();
            body["version"] = json!("latest");
            body.as_object_mut().map(|body| body.remove("definition"));
        }
        let retried = client.send(Method::POST, &path, &body)?;
        Ending { client, json: self.json, shows: EndingOptions::default() }
            .until_rest(&[ids::of_answer(&retried)?], &signals)
    }

    /// Reads and checks the changed definition as `run` does.
    pub fn read_changed(&self, target: &ApiTarget) -> anyhow::Result<Option<Changed>> {
        let Some(file) = &self.with else { return Ok(None) };
        let source = Source::read(file)?;
        let compiled = compile_for(&source.text, Outside::Unknown);
        for diagnostic in &compiled.diagnostics {
            say(&diagnostic.render(&compiled.shown, &source.shown));
        }
        let definition_set =
            DefinitionSet::of(&compiled, &source, (target, Outside::Unknown), Severity::Error)?;
        definition_set.report();
        if !compiled.is_valid() || !definition_set.is_whole() {
            let message =
                format!("{}: {}; nothing was run", source.shown, definition_set.problems(&compiled));
            return Err(Usage::new(message).into());
        }
        Ok(Some(Changed { source, compiled, definition_set }))
    }

    fn body(&self, client: &Rc<Client>, of: ExecutionId, changed: Option<&Changed>) -> anyhow::Result<Value> {
        let mut body = json!({});
        if let Some(step) = &self.from {
            if self.with.is_none() && self.version.is_none() {
                known_step(follow(client, of)?.steps(), step)?;
            }
            body = json!({ "fromNode": step, "firing": self.firing });
        }
        if let Some(version) = &self.version {
            body["version"] = version.clone();
        }
        if let Some(changed) = changed {
            body["definition"] = changed.source.text.as_str().into();
        }
        if self.inputs.is_given() {
            body["inputs"] = self.inputs.over(get_execution(client, of)?["inputs"].take())?;
        }
        Ok(body)
    }
}

/// Fails with the steps whose completed work would be lost.
fn check_refused(preview: &Value) -> anyhow::Result<()> {
    let refused = preview["refused"].as_array().into_iter().flatten();
    let messages: Vec<&str> = refused.filter_map(|entry| entry["message"].as_str()).collect();
    match messages.is_empty() {
        true => Ok(()),
        false => anyhow::bail!("completed work would be lost, so nothing was run: {}", messages.join("; ")),
    }
}

fn with(body: &Value, field: &str, value: Value) -> Value {
    let mut body = body.clone();
    body[field] = value;
    body
}
