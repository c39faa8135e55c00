//! `windlass executions retry`

use super::change::tell_who_goes_on;
use crate::commands::run::ending::{Ending, Runs};
use crate::commands::run::inputs::Inputs;
use crate::commands::run::{fitting, unusable};
use crate::commands::told::{known_step, print_json};
use crate::data::Data;
use crate::embedded::{self, Embedded, Workers, new_id};
use crate::place::{Client, Place, Taken, WHAT, post, refused};
use crate::progress::say;
use crate::{ids, signals};
use anyhow::{Context, bail};
use reqwest::Method;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use windlass_dialects::workflow::InputsSchema;
use windlass_engine::{Answer, Folder, FolderError, Request};
use windlass_kernel::ExecutionId;
use windlass_store::{Letter, Reader as _, RetryFrom};
use windlass_views::execution_id;

/// Do an execution again that failed or was cancelled, as a new one
///
/// What had completed before the step is kept with its results. Without --from it goes on where the first failure was
/// that nothing handled, or where it was cancelled. Waits for the end like `run`, with its exit codes; beside a
/// running engine it is handed over to that, and the new id is told.
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

/// What the definition says of its inputs holds for those of a retry.
fn check_inputs(data: &Data, of: ExecutionId, inputs: &Value) -> anyhow::Result<()> {
    let mut reader = data.read()?;
    let definition = reader.load(of)?.and_then(|stored| stored.definition);
    let Some(definition) = definition.map(|id| reader.definition(id)).transpose()?.flatten() else {
        return Ok(());
    };
    match InputsSchema::of_source(&definition.source) {
        Ok(schema) => Ok(fitting(schema.as_ref(), inputs)?),
        Err(problem) => Err(unusable(problem).into()),
    }
}

impl Retry {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let retry = self.asked(place)?;
        let signals = signals::listen().context("cannot listen to signals")?;
        let ending = Ending { place, json: self.json };
        let data = match place {
            Place::Folder(data) => data,
            Place::Server(server) => {
                let id = begin_at(server, &retry)?;
                return ending.until_rest(Runs::There, &[id], &signals);
            }
        };
        match Folder::hold(data.folder(), WHAT) {
            Ok(folder) => {
                let embedded = embedded::in_folder(folder, Workers::Pool)?;
                let id = begin(&embedded, retry)?;
                ending.until_rest(Runs::Here(Box::new(embedded)), &[id], &signals)
            }
            Err(FolderError::InUse { .. }) => self.hand_over(place, data, retry),
            Err(error) => Err(error.into()),
        }
    }

    /// The step and the inputs are known to be good before anything is asked of an engine.
    fn asked(&self, place: &Place) -> anyhow::Result<windlass_store::Retry> {
        let of = ids::find(place, &self.id)?;
        if let Some(step) = &self.from {
            known_step(place.follow(of)?.net(), step)?;
        }
        let inputs = match self.inputs.is_given() {
            true => Some(Arc::new(self.inputs.over(place.told(of)?["inputs"].take())?)),
            false => None,
        };
        // A server asks it of everybody.
        if let (Place::Folder(data), Some(inputs)) = (place, &inputs) {
            check_inputs(data, of, inputs)?;
        }
        let from = self.from.clone().map(|step| RetryFrom { step, firing: self.firing });
        Ok(windlass_store::Retry {
            of,
            from,
            inputs,
            trigger: "manual".to_owned(),
            by: "owner".to_owned(),
            restricted: false,
        })
    }

    /// The id is chosen here, so that it is known whoever answers.
    fn hand_over(
        &self,
        place: &Place,
        data: &Data,
        retry: windlass_store::Retry,
    ) -> anyhow::Result<ExitCode> {
        let of = retry.of;
        let id = new_id();
        let taken = post(data, id, Letter::Retry(Box::new(retry)))?;
        let status = place.told(id)?["status"].as_str().unwrap_or_default().to_owned();
        self.tell(of, id, &status)?;
        match taken {
            Taken::ByHolder => say(&format!("the engine at work in {} runs it", data.folder().display())),
            Taken::Here => tell_who_goes_on(place, id, &status, taken)?,
        }
        Ok(ExitCode::SUCCESS)
    }

    fn tell(&self, of: ExecutionId, id: ExecutionId, status: &str) -> anyhow::Result<()> {
        if !self.json {
            return Ok(writeln!(std::io::stdout(), "{} {status}", execution_id(id))?);
        }
        let (id, of) = (execution_id(id), execution_id(of));
        let mut told = json!({ "executionId": id, "parentExecutionId": of, "status": status });
        if let Some(step) = &self.from {
            told["retryFromNode"] = Value::from(step.as_str());
        }
        print_json(&told)
    }
}

fn begin_at(server: &Client, retry: &windlass_store::Retry) -> anyhow::Result<ExecutionId> {
    let mut body = json!({});
    if let Some(RetryFrom { step, firing }) = &retry.from {
        body = json!({ "fromNode": step, "firing": firing });
    }
    if let Some(inputs) = &retry.inputs {
        body["inputs"] = (**inputs).clone();
    }
    let told = server.send(Method::POST, &["executions", &execution_id(retry.of), "retry"], &body)?;
    ids::of_answer(&told)
}

fn begin(embedded: &Embedded, retry: windlass_store::Retry) -> anyhow::Result<ExecutionId> {
    let of = retry.of;
    let id = new_id();
    match embedded.ask(Request::Retry { id, retry, audit: None })? {
        Answer::Started(id) => Ok(id),
        Answer::Refused(refusal) => Err(refused(of, refusal)),
        other => bail!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}
