//! Answers of people: what waits for one is named by its node, and inside of a loop by the iteration too.

use super::change::Change;
use crate::exit::Usage;
use crate::ids;
use crate::place::{Place, Wish};
use std::process::ExitCode;
use windlass_kernel::{Execution, Fence, ManualNote, ManualOutcome, Net, RunId, RunState, StepRun};
use windlass_server::follow::label;

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

/// Say how something came out that waits for a person, with what shows it
#[derive(Debug, clap::Args)]
pub struct Signal {
    #[command(flatten)]
    answer: Answer,
    #[arg(long, value_enum)]
    outcome: Outcome,
    /// The id of something that shows it; may be given several times
    #[arg(long, value_name = "ID")]
    evidence: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Outcome {
    Succeeded,
    Failed,
    Cancelled,
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
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        self.answer.give(place, ManualOutcome::Succeeded, &[])
    }
}

impl Reject {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        self.answer.give(place, ManualOutcome::Failed, &[])
    }
}

impl Signal {
    pub fn run(&self, place: &Place) -> anyhow::Result<ExitCode> {
        let outcome = match self.outcome {
            Outcome::Succeeded => ManualOutcome::Succeeded,
            Outcome::Failed => ManualOutcome::Failed,
            Outcome::Cancelled => ManualOutcome::Cancelled,
        };
        self.answer.give(place, outcome, &self.evidence)
    }
}

impl Answer {
    fn give(&self, place: &Place, outcome: ManualOutcome, evidence: &[String]) -> anyhow::Result<ExitCode> {
        let mut follower = place.follow(ids::find(place, &self.change.id)?)?;
        follower.poll()?;
        let (node, run, fence) = self.waiting(follower.net(), follower.state())?;
        let (notes, evidence) = (self.note.clone(), evidence.to_vec());
        // Who it was is told by whoever takes it.
        let note = ManualNote { outcome, actor: String::new(), notes, evidence };
        self.change.ask(place, &Wish::Complete { node, run, fence, note })
    }

    fn waiting(&self, net: &Net, state: &Execution<'_>) -> Result<(String, RunId, Fence), Usage> {
        let all = waits(net, state);
        let named = |(name, step, ..): &&Waiting| {
            self.node.as_ref().is_none_or(|wanted| wanted == name || wanted == step)
        };
        let found: Vec<&Waiting> = all.iter().filter(named).collect();
        let names =
            |found: &[&Waiting]| found.iter().map(|(name, ..)| name.as_str()).collect::<Vec<_>>().join(", ");
        match (&found[..], &self.node) {
            ([(name, _, run, fence)], _) => Ok((name.clone(), *run, *fence)),
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
        let name = label(&step, &run.path.0);
        Some((name, step, id, waits(run)?))
    };
    state.runs.iter().filter_map(|(id, run)| told(*id, run)).collect()
}
