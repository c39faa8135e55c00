//! `windlass run`: starts a definition and waits for its end.

pub mod ending;
pub mod inputs;
pub mod start;

mod wait;

use super::definition_set::DefinitionSet;
use super::failure::Files;
use super::source::Source;
use crate::adapters::{AdaptersFlag, Bindings};
use crate::api::{ApiTarget, Client, Need, OPEN, list_executions};
use crate::exit::{self, Usage};
use crate::progress::say;
use crate::{ids, signals};
use anyhow::Context;
use ending::{Ending, EndingOptions};
use inputs::Declared;
pub use inputs::Inputs;
use serde_json::Value;
use start::StartOptions;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_dialects::{Compiled, InputsSchema, Severity, compile_for};
use windlass_kernel::{ExecutionId, overlay};

/// Run a definition and wait for its end
///
/// In a data folder this process does the work, or the one that holds the folder; with --url the server does, and
/// continues when this command ends.
///
/// Exit codes: 0 completed, 1 failed, 2 bad definition or usage, 3 cancelled, 4 partly successful, 5 paused until a
/// person answers, 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// The definition, YAML or JSON; `-` reads standard input
    #[arg(required_unless_present = "resume")]
    file: Option<PathBuf>,
    #[command(flatten)]
    inputs: Inputs,
    /// Continue interrupted executions: one execution, or all that have not ended
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["file", "single", "object", "times"])]
    resume: Option<Option<String>>,
    /// Number of executions to start
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    times: u32,
    /// Steps to run at a time; by default four per core
    #[arg(long, env = "WINDLASS_SLOTS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slots: Option<u32>,
    #[command(flatten)]
    target: ApiTarget,
    #[command(flatten)]
    adapters: AdaptersFlag,
    /// Print each execution as one JSON object on a line
    #[arg(long)]
    json: bool,
    /// Print no progress, only the result and failures
    #[arg(long, short)]
    quiet: bool,
    /// Record stacks of failed code and debug lines, and show the stack of a failure
    #[arg(long, conflicts_with = "resume")]
    debug: bool,
    /// Keep the work dirs of a plan's steps in the data folder until the next run
    #[arg(long)]
    keep_workdirs: bool,
}

impl Run {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match (&self.resume, &self.file) {
            (Some(id), _) => self.resume(id.as_deref()),
            (None, Some(file)) => self.start(&Source::read(file)?),
            (None, None) => Err(Usage::new("name a FILE to run, or --resume").into()),
        }
    }

    /// Starts executions. Nothing is started or written before the definition and the inputs are checked.
    fn start(&self, source: &Source) -> anyhow::Result<ExitCode> {
        let bindings = self.adapters.load(&self.target)?;
        let compiled = compile_for(&source.text, bindings.outside_of_run());
        for diagnostic in &compiled.diagnostics {
            say(&diagnostic.render(&compiled.shown, &source.shown));
        }
        let definition_set =
            DefinitionSet::of(&compiled, source, (&self.target, bindings.outside_of_run()), Severity::Error)?;
        definition_set.report();
        if !compiled.is_valid() || !definition_set.is_whole() {
            say(&format!("{}: {}; nothing was run", source.shown, definition_set.problems(&compiled)));
            return Ok(ExitCode::from(exit::USAGE));
        }
        let declared = Declared::of(&compiled);
        let inputs = self.inputs.given(&declared)?;
        self.inputs.warn_of_unknown(&inputs, &declared);
        check_inputs(&compiled, &inputs)?;
        let name = compiled.name.as_deref().unwrap_or(&source.shown);
        let signals = signals::listen().context("cannot listen to signals")?;
        let command = format!("windlass run {}", source.shown);
        self.target.with((&command, self.need(bindings)), |client| {
            client.report_holder();
            start::register_all(client, definition_set.sources())?;
            let workflow = start::register(client, name, &source.text)?;
            let options = StartOptions { times: self.times, debug: self.debug };
            let ids = start::start_executions(client, &workflow, &inputs, &options)?;
            let mut files = definition_set.files();
            files.insert(name.to_owned(), source.shown.clone());
            self.ending(client, files).until_rest(&ids, &signals)
        })
    }

    fn ending<'c>(&self, client: &'c Rc<Client>, files: Files) -> Ending<'c> {
        let shows = EndingOptions { files, is_quiet: self.quiet, debug: self.debug };
        Ending { client, json: self.json, shows }
    }

    fn need(&self, bindings: Bindings) -> Need {
        let (slots, keeps_workdirs) = (self.slots, self.keep_workdirs);
        Need::Run { slots, adapters: bindings.into_adapters(), keeps_workdirs }
    }

    /// Continues executions. Those at a server continue by themselves and are only waited for. They are listed before
    /// an engine of this process ends some of them.
    fn resume(&self, id: Option<&str>) -> anyhow::Result<ExitCode> {
        const COMMAND: &str = "windlass run --resume";
        self.target.check_exists()?;
        let ids = self.target.with((COMMAND, Need::Read), |client| match id {
            Some(text) => Ok(vec![ids::find(client, text)?]),
            None => open_executions(client),
        })?;
        if ids.is_empty() {
            say("nothing to resume: every execution has ended");
            return Ok(ExitCode::SUCCESS);
        }
        let bindings = self.adapters.load(&self.target)?;
        let signals = signals::listen().context("cannot listen to signals")?;
        self.target.with((COMMAND, self.need(bindings)), |client| {
            client.report_holder();
            self.ending(client, Files::new()).until_rest(&ids, &signals)
        })
    }
}

/// Returns the executions that have not ended, the oldest first.
fn open_executions(client: &Rc<Client>) -> anyhow::Result<Vec<ExecutionId>> {
    let (mut open, _) = list_executions(client, &OPEN, usize::MAX)?;
    open.reverse();
    open.iter().map(ids::of_answer).collect()
}

/// Checks the inputs, merged with the definition's defaults, against its schema.
fn check_inputs(compiled: &Compiled, inputs: &Value) -> Result<(), Usage> {
    let schema = compiled.manifest.inputs_schema.as_ref().map(InputsSchema::new).transpose();
    let unusable = |problem| Usage::new(format!("the schema of the inputs cannot be used: {problem}"));
    let Some(schema) = schema.map_err(unusable)? else { return Ok(()) };
    let mut whole = compiled.workload.clone();
    overlay(&mut whole, inputs.clone());
    let problems: Vec<String> = schema
        .check(&whole)
        .into_iter()
        .map(|problem| format!("  {}: {}", problem.path, problem.message))
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Usage::new(format!("the inputs do not fit the definition:\n{}", problems.join("\n")))
            .hint("set inputs with --input KEY=VALUE or --inputs JSON")),
    }
}
