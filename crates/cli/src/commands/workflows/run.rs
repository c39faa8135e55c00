//! `windlass workflows run`

use super::found::find;
use crate::commands::run::afar::execute;
use crate::commands::run::ending::{Ending, Runs};
use crate::commands::run::inputs::Inputs;
use crate::embedded::Workers;
use crate::place::{Client, Place};
use crate::signals;
use anyhow::Context;
use std::process::ExitCode;

/// Run the newest version of a workflow and wait for its end, with the exit codes of `run`
#[derive(Debug, clap::Args)]
pub struct Run {
    /// Its id or its name
    #[arg(value_name = "WORKFLOW")]
    workflow: String,
    #[command(flatten)]
    inputs: Inputs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Run {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let inputs = self.inputs.given()?;
        let signals = signals::listen().context("cannot listen to signals")?;
        let api = place.api(Workers::Pool)?;
        let begun = find(&api, &self.workflow).and_then(|workflow| execute(&api, &workflow, &inputs));
        let id = match begun {
            Ok(id) => id,
            Err(error) => return Client::stop(api).and(Err(error)),
        };
        let runs = Client::into_embedded(api).map_or(Runs::There, |embedded| Runs::Here(Box::new(embedded)));
        Ending { place, json: self.json }.until_rest(runs, &[id], &signals)
    }
}
