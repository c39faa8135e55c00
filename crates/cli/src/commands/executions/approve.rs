//! Answers of people. A waiting step is named by its node, and in a loop by the iteration, too.

use super::change::Change;
use crate::api::Client;
use crate::exit::Usage;
use crate::ids;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_views::{execution_id, label};

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
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.answer.send(client, "Succeeded", &[])
    }
}

impl Reject {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.answer.send(client, "Failed", &[])
    }
}

impl Signal {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let outcome = match self.outcome {
            Outcome::Succeeded => "Succeeded",
            Outcome::Failed => "Failed",
            Outcome::Cancelled => "Cancelled",
        };
        self.answer.send(client, outcome, &self.evidence)
    }
}

impl Answer {
    fn send(&self, client: &Rc<Client>, outcome: &str, evidence: &[String]) -> anyhow::Result<ExitCode> {
        let id = execution_id(ids::find(client, &self.change.id)?);
        let status = client.get(&["executions", &id, "status"], &[])?;
        let node = self.choose_node(&waiting_nodes(&status))?;
        let body = json!({ "outcome": outcome, "notes": self.note, "evidence": evidence });
        self.change.send(client, (Method::POST, &["actions", &node, "complete"]), &body)
    }

    fn choose_node(&self, waiting: &[WaitingNode]) -> Result<String, Usage> {
        let is_meant = |node: &&WaitingNode| {
            self.node.as_ref().is_none_or(|wanted| *wanted == node.label || *wanted == node.step)
        };
        let found: Vec<&WaitingNode> = waiting.iter().filter(is_meant).collect();
        let labels = |nodes: &[&WaitingNode]| {
            nodes.iter().map(|node| node.label.as_str()).collect::<Vec<_>>().join(", ")
        };
        match (&found[..], &self.node) {
            ([node], _) => Ok(node.label.clone()),
            ([], _) if waiting.is_empty() => Err(Usage::new("nothing of it waits for a person")),
            ([], Some(node)) => {
                let all: Vec<&WaitingNode> = waiting.iter().collect();
                Err(Usage::new(format!("`{node}` does not wait for a person"))
                    .hint(format!("these do: {}", labels(&all))))
            }
            (several, _) => {
                Err(Usage::new("several things wait for a person")
                    .hint(format!("name one: {}", labels(several))))
            }
        }
    }
}

/// A node that waits for a person.
struct WaitingNode {
    step: String,
    /// The step, with the iteration in a loop: `ask[0]`.
    label: String,
}

fn waiting_nodes(status: &Value) -> Vec<WaitingNode> {
    let waiting = status["waitingFor"].as_array().into_iter().flatten();
    let manual = waiting.filter(|entry| entry["kind"] == "approval" || entry["kind"] == "manual");
    let node = |entry: &Value| {
        let step = entry["nodeId"].as_str()?.to_owned();
        let path = entry["path"].as_array().into_iter().flatten();
        let path: Vec<u32> = path.filter_map(|index| u32::try_from(index.as_u64()?).ok()).collect();
        Some(WaitingNode { label: label(&step, &path), step })
    };
    manual.filter_map(node).collect()
}
