//! `windlass run`: an engine in this process, one definition, and the wait for its end.

pub mod afar;
pub mod ending;
pub mod inputs;

mod wait;

use super::family::Family;
use super::source::Source;
use crate::data::Data;
use crate::embedded::{self, Embedded, Workers, new_workflow_id, now};
use crate::exit::{self, Usage};
use crate::place::{At, Place};
use crate::progress::say;
use crate::{ids, signals};
use anyhow::{Context, anyhow};
use crossbeam_channel::unbounded;
use ending::{Ending, Runs};
use inputs::Inputs;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use windlass_dialects::workflow::InputsSchema;
use windlass_dialects::{Compiled, Literal, compile};
use windlass_engine::{Answer, Refusal, Request, Start};
use windlass_kernel::{ExecutionId, overlay};
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::hooks::claims_of;
use windlass_server::vault::LocalVault;
use windlass_store::{Definition, DefinitionId, Target, Tenant};

/// Run a definition and wait for its end
///
/// In a data folder this process does the work; with --url the server does, and goes on when nobody waits.
///
/// Exit codes: 0 completed, 1 failed, 2 bad definition or usage, 3 cancelled, 4 partly successful, 5 paused until a
/// person moves it on, 130 interrupted.
#[derive(Debug, clap::Args)]
pub struct Run {
    /// The definition, YAML or JSON; `-` reads standard input
    #[arg(required_unless_present = "resume")]
    file: Option<PathBuf>,
    #[command(flatten)]
    inputs: Inputs,
    /// Carry on what was interrupted: one execution, or all that have not ended
    #[arg(long, value_name = "ID", num_args = 0..=1, conflicts_with_all = ["file", "single", "object", "times"])]
    resume: Option<Option<String>>,
    /// Start so many executions of the definition
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    times: u32,
    /// Pieces of work at a time; four to a core if nothing is given
    #[arg(long, env = "WINDLASS_SLOTS", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    slots: Option<u32>,
    #[command(flatten)]
    at: At,
    /// Print each execution as one JSON object on a line
    #[arg(long)]
    json: bool,
}

impl Run {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        match (&self.resume, &self.file) {
            (Some(id), _) => self.resume(id.as_deref()),
            (None, Some(file)) => self.start(&Source::read(file)?),
            (None, None) => Err(Usage::new("name a FILE to run, or --resume").into()),
        }
    }

    /// Nothing is written before the definition and the inputs are known to be good.
    fn start(&self, source: &Source) -> anyhow::Result<ExitCode> {
        let mut compiled = compile(&source.text);
        for diagnostic in &compiled.diagnostics {
            say(&diagnostic.render(&compiled.shown, &source.shown));
        }
        let place = self.at.place()?;
        let family = Family::of(&compiled, source, &place)?;
        family.tell();
        let Some(definition) = definition(&mut compiled, source).filter(|_| family.is_whole()) else {
            say(&format!("{}: {}; nothing was run", source.shown, family.problems(&compiled)));
            return Ok(ExitCode::from(exit::USAGE));
        };
        let inputs = (self.inputs.given()?, std::mem::take(&mut compiled.workload));
        let mut whole = inputs.1.clone();
        overlay(&mut whole, inputs.0.clone());
        let schema = compiled.inputs_schema.as_ref().map(InputsSchema::new).transpose();
        fitting(schema.map_err(unusable)?.as_ref(), &whole)?;
        let signals = signals::listen().context("cannot listen to signals")?;
        let (runs, ids) = match &place {
            Place::Folder(data) => {
                let embedded = self.embedded(data, &format!("windlass run {}", source.shown))?;
                keep_literals(&embedded, compiled.literals.iter().chain(family.literals()))?;
                define_all(&embedded, family.definitions())?;
                let ids = begin(&embedded, definition, &inputs, self.times)?;
                (Runs::Here(Box::new(embedded)), ids)
            }
            Place::Server(server) => {
                let ids = afar::begin(server, &family, (&definition.name, source), &inputs.0, self.times)?;
                (Runs::There, ids)
            }
        };
        Ending { place: &place, json: self.json }.until_rest(runs, &ids, &signals)
    }

    fn embedded(&self, data: &Data, what: &str) -> anyhow::Result<Embedded> {
        embedded::start(data.folder(), what, self.slots.map_or(Workers::Pool, Workers::Slots))
    }

    /// What a server has goes on by itself: there it is only waited for.
    fn resume(&self, id: Option<&str>) -> anyhow::Result<ExitCode> {
        let place = self.at.place()?;
        let ids = match id {
            Some(text) => vec![ids::find(&place, text)?],
            None => {
                let mut open = place.list(Some("open"), usize::MAX)?.0;
                open.reverse();
                open.iter().map(ids::of_answer).collect::<Result<_, _>>()?
            }
        };
        if ids.is_empty() {
            say(&format!("nothing to resume: every execution {} has ended", place.shown()));
            return Ok(ExitCode::SUCCESS);
        }
        let signals = signals::listen().context("cannot listen to signals")?;
        let runs = match &place {
            Place::Folder(data) => Runs::Here(Box::new(self.embedded(data, "windlass run --resume")?)),
            Place::Server(_) => Runs::There,
        };
        Ending { place: &place, json: self.json }.until_rest(runs, &ids, &signals)
    }
}

/// What the definition says of its inputs holds for those that are given.
pub fn fitting(schema: Option<&InputsSchema>, inputs: &Value) -> Result<(), Usage> {
    let Some(schema) = schema else { return Ok(()) };
    let problems: Vec<String> = schema
        .check(inputs)
        .into_iter()
        .map(|problem| format!("  {}: {}", problem.path, problem.message))
        .collect();
    match problems.is_empty() {
        true => Ok(()),
        false => Err(Usage::new(format!("the inputs do not fit the definition:\n{}", problems.join("\n")))
            .hint("give inputs with --input KEY=VALUE or --inputs JSON")),
    }
}

pub fn unusable(problem: impl std::fmt::Display) -> Usage {
    Usage::new(format!("the schema of the inputs cannot be used: {problem}"))
}

/// None when the definition has errors.
pub fn definition(compiled: &mut Compiled, source: &Source) -> Option<Definition> {
    let (net, dialect) = (compiled.net.take()?, compiled.dialect?);
    Some(Definition {
        tenant: Tenant::default(),
        target: Target::Named(new_workflow_id()),
        name: compiled.name.clone().unwrap_or_else(|| source.shown.clone()),
        dialect: dialect.name().to_owned(),
        source: compiled.source.clone(),
        workload: compiled.workload.clone(),
        net: Arc::new(net),
        hooks: claims_of(dialect, &compiled.source),
        at: now(),
        status: None,
        author: None,
    })
}

/// Secrets that stood in the definitions are in the vault before the definitions are in the store.
fn keep_literals<'l>(embedded: &Embedded, literals: impl Iterator<Item = &'l Literal>) -> anyhow::Result<()> {
    let mut literals = literals.peekable();
    if literals.peek().is_none() {
        return Ok(());
    }
    let mut vault = LocalVault::of(embedded.folder(), EngineSecrets::from_environment())?;
    literals.try_for_each(|literal| vault.keep(&Tenant::default(), &literal.secret, &literal.value, None))
}

/// What the definition starts is there before it begins.
fn define_all(embedded: &Embedded, definitions: Vec<Definition>) -> anyhow::Result<()> {
    for definition in definitions {
        define(embedded, definition)?;
    }
    Ok(())
}

fn define(embedded: &Embedded, definition: Definition) -> anyhow::Result<DefinitionId> {
    match embedded.ask(Request::Define(Box::new(definition)))? {
        Answer::Defined { id, .. } => Ok(id),
        other => Err(refused(other)),
    }
}

fn begin(
    embedded: &Embedded,
    definition: Definition,
    inputs: &(Value, Value),
    times: u32,
) -> anyhow::Result<Vec<ExecutionId>> {
    let handle = embedded.handle();
    let definition = define(embedded, definition)?;
    let (sender, answers) = unbounded();
    for _ in 0..times {
        let sender = sender.clone();
        handle.ask(start_of(definition, inputs.clone()), move |answer| drop(sender.send(answer)));
    }
    let started = (0..times).map(|_| match embedded.wait_for(&answers)? {
        Answer::Started(id) => Ok(id),
        other => Err(refused(other)),
    });
    started.collect()
}

fn start_of(definition: DefinitionId, (inputs, defaults): (Value, Value)) -> Request {
    Request::Start(Box::new(Start::by_hand(definition, inputs, defaults)))
}

pub fn refused(answer: Answer) -> anyhow::Error {
    match answer {
        Answer::Refused(Refusal::BadInputs(why)) => Usage::new(why).into(),
        Answer::Refused(refusal) => refusal.into(),
        other => anyhow!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}
