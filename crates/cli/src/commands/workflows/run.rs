//! `windlass workflows run`

use super::find;
use crate::api::Client;
use crate::commands::run::ending::{Ending, EndingOptions};
use crate::commands::run::inputs::{Declared, Inputs};
use crate::commands::run::start::{StartOptions, start_executions};
use crate::signals;
use anyhow::Context;
use std::process::ExitCode;
use std::rc::Rc;
use windlass_dialects::{Outside, compile_for};

/// Run the newest version of a workflow and wait for its end, with the exit codes of `run`
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Id or name of the workflow
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    #[command(flatten)]
    inputs: Inputs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Show no progress, only the result and failures
    #[arg(long, short)]
    quiet: bool,
}

impl Run {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let workflow = find(client, &self.workflow)?;
        let stored = client.get(&["workflows", &workflow], &[])?;
        let compiled = compile_for(stored["source"].as_str().unwrap_or_default(), Outside::Unknown);
        let declared = Declared::of(&compiled);
        let inputs = self.inputs.given(&declared)?;
        self.inputs.warn_of_unknown(&inputs, &declared);
        let signals = signals::listen().context("cannot listen to signals")?;
        let ids = start_executions(client, &workflow, &inputs, &StartOptions::default())?;
        let shows = EndingOptions { is_quiet: self.quiet, ..EndingOptions::default() };
        Ending { client, json: self.json, shows }.until_rest(&ids, &signals)
    }
}
