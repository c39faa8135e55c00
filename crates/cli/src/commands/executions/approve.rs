//! Answers of people: what waits for one is named by its node, and inside of a loop by the iteration too.

use super::change::{BY, Change};
use crate::commands::told::{net_of, stored};
use crate::data::Data;
use crate::exit::Usage;
use crate::ids;
use std::process::ExitCode;
use windlass_kernel::{Execution, Fence, Input, ManualNote, ManualOutcome, Net, RunId, RunState, StepRun};

/// Approve what waits for a person
#[derive(Debug, clap::Args)]
pub struct Approve {
    #[command(flatten)]
    answer: Answer,
}

/// Reject what waits for a person: it has failed then
#[derive(Debug, clap::Args)]
pub struct Reject {
    #[command(flatten)]
    answer: Answer,
}

#[derive(Debug, clap::Args)]
struct Answer {
    #[command(flatten)]
    change: Change,
    /// What waits; in an iteration of a loop `NODE[0]`. Not needed when only one thing waits
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Why, for the record
    #[arg(long)]
    note: Option<String>,
}

impl Approve {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        self.answer.give(data, ManualOutcome::Succeeded)
    }
}

impl Reject {
    pub fn run(&self, data: &Data) -> anyhow::Result<ExitCode> {
        self.answer.give(data, ManualOutcome::Failed)
    }
}

impl Answer {
    fn give(&self, data: &Data, outcome: ManualOutcome) -> anyhow::Result<ExitCode> {
        let mut reader = data.read()?;
        let id = ids::find(&mut reader, &self.change.id)?;
        let state = stored(&mut reader, id)?.state;
        let net = net_of(&mut reader, &state)?;
        drop(reader);
        let (run, fence) = self.waiting(&net, &state)?;
        let note =
            ManualNote { outcome, actor: BY.to_owned(), notes: self.note.clone(), evidence: Vec::new() };
        self.change.give(data, Input::Complete { run, fence, note: Box::new(note) })
    }

    fn waiting(&self, net: &Net, state: &Execution<'_>) -> Result<(RunId, Fence), Usage> {
        let all = waits(net, state);
        let named = |(name, step, ..): &&Waiting| {
            self.node.as_ref().is_none_or(|wanted| wanted == name || wanted == step)
        };
        let found: Vec<&Waiting> = all.iter().filter(named).collect();
        let names =
            |found: &[&Waiting]| found.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ");
        match (&found[..], &self.node) {
            ([(_, _, run, fence)], _) => Ok((*run, *fence)),
            ([], _) if all.is_empty() => Err(Usage::new("nothing of it waits for a person")),
            ([], Some(node)) => {
                let all: Vec<&Waiting> = all.iter().collect();
                Err(Usage::new(format!("`{node}` does not wait for a person"))
                    .hint(format!("these do: {}", names(&all))))
            }
            (several, _) => {
                Err(Usage::new("several things wait for a person")
                    .hint(format!("name one: {}", names(several))))
            }
        }
    }
}

/// What it is called, its step, and what answers for it.
type Waiting = (String, String, RunId, Fence);

fn waits(net: &Net, state: &Execution<'_>) -> Vec<Waiting> {
    let waits = |run: &StepRun| match run.state {
        RunState::Manual { fence, .. } => Some(fence),
        _ => None,
    };
    let told = |id: RunId, run: &StepRun| {
        let step = net.step(run.step).name.clone();
        let path: Vec<String> = run.path.0.iter().map(u32::to_string).collect();
        let name = if path.is_empty() { step.clone() } else { format!("{step}[{}]", path.join(",")) };
        Some((name, step, id, waits(run)?))
    };
    state.runs.iter().filter_map(|(id, run)| told(*id, run)).collect()
}
