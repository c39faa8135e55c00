//! Answers of people. A waiting step is named by its node and, in a loop, by the iteration.

use super::change::Change;
use crate::api::Client;
use crate::exit::Usage;
use crate::ids;
use reqwest::Method;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::rc::Rc;
use windlass_server::host::now;
use windlass_views::{execution_id, label, time};

/// Approve a step that waits for a person
#[derive(Debug, clap::Args)]
pub struct Approve {
    #[command(flatten)]
    answer: PersonAnswer,
}

/// Reject a step that waits for a person; the step fails
#[derive(Debug, clap::Args)]
pub struct Reject {
    #[command(flatten)]
    answer: PersonAnswer,
}

/// Send the completion signal of a manual action or an approval
#[derive(Debug, clap::Args)]
pub struct Signal {
    #[command(flatten)]
    answer: PersonAnswer,
    #[arg(long, value_enum, ignore_case = true)]
    outcome: CompletionOutcome,
    /// The completion token; by default the one that the execution shows you, if you may complete the action
    #[arg(long, value_name = "TOKEN", requires = "node")]
    token: Option<String>,
    /// The id of a document that proves the outcome; may be given several times
    #[arg(long, value_name = "ID")]
    evidence: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
enum CompletionOutcome {
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, clap::Args)]
struct PersonAnswer {
    #[command(flatten)]
    change: Change,
    /// The step that waits; in an iteration of a loop `NODE[0]`. Not needed if only one step waits
    #[arg(value_name = "NODE")]
    node: Option<String>,
    /// Notes for the evidence
    #[arg(long, visible_alias = "note")]
    notes: Option<String>,
}

impl Approve {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.answer.send(client, "Succeeded", &[], None)
    }
}

impl Reject {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        self.answer.send(client, "Failed", &[], None)
    }
}

impl Signal {
    pub fn run(&self, client: &Rc<Client>) -> anyhow::Result<ExitCode> {
        let outcome = match self.outcome {
            CompletionOutcome::Succeeded => "Succeeded",
            CompletionOutcome::Failed => "Failed",
            CompletionOutcome::Cancelled => "Cancelled",
        };
        self.answer.send(client, outcome, &self.evidence, self.token.as_deref())
    }
}

impl PersonAnswer {
    fn send(
        &self,
        client: &Rc<Client>,
        outcome: &str,
        evidence: &[String],
        token: Option<&str>,
    ) -> anyhow::Result<ExitCode> {
        let id = execution_id(ids::find(client, &self.change.id)?);
        let mut body = json!({ "outcome": outcome, "evidenceRefs": evidence });
        if let Some(notes) = &self.notes {
            body["notes"] = json!(notes);
        }
        let (node, token) = match (token, &self.node) {
            // The action may no longer wait: the signal may be repeated.
            (Some(token), Some(node)) => (node.clone(), Some(token.to_owned())),
            _ => {
                let status = client.get(&["executions", &id, "status"], &[])?;
                let waiting = waiting_nodes(&status);
                let chosen = self.choose_node(&waiting)?;
                (chosen.label.clone(), chosen.find_token()?)
            }
        };
        if let Some(token) = token {
            add_signal_fields(client, &mut body, (&id, &node, &token))?;
        }
        self.change.send(client, (Method::POST, &["actions", &node, "complete"]), &body)
    }

    fn choose_node<'w>(&self, waiting: &'w [WaitingNode]) -> Result<&'w WaitingNode, Usage> {
        let is_meant = |node: &&WaitingNode| {
            self.node.as_ref().is_none_or(|wanted| *wanted == node.label || *wanted == node.step)
        };
        let found: Vec<&WaitingNode> = waiting.iter().filter(is_meant).collect();
        let labels = |nodes: &[&WaitingNode]| {
            nodes.iter().map(|node| node.label.as_str()).collect::<Vec<_>>().join(", ")
        };
        match (&found[..], &self.node) {
            ([node], _) => Ok(node),
            ([], _) if waiting.is_empty() => Err(Usage::new("no step of the execution waits for a person")),
            ([], Some(node)) => {
                let all: Vec<&WaitingNode> = waiting.iter().collect();
                Err(Usage::new(format!("`{node}` does not wait for a person"))
                    .hint(format!("these do: {}", labels(&all))))
            }
            (several, _) => {
                Err(Usage::new("several steps wait for a person")
                    .hint(format!("name one: {}", labels(several))))
            }
        }
    }
}

/// Adds the fields that the signal of a manual action has in addition to its outcome.
fn add_signal_fields(
    client: &Client,
    body: &mut Value,
    (id, action, token): (&str, &str, &str),
) -> anyhow::Result<()> {
    let me = client.get(&["me"], &[])?;
    body["schemaVersion"] = json!(1);
    body["runId"] = json!(id);
    body["actionId"] = json!(action);
    body["completionToken"] = json!(token);
    body["actorUserId"] = me["id"].clone();
    body["completedAtIso"] = json!(time(now()));
    Ok(())
}

/// A node that waits for a person.
struct WaitingNode {
    step: String,
    /// The step, with the iteration in a loop: `ask[0]`.
    label: String,
    is_manual: bool,
    /// Present if the caller may complete it.
    token: Option<String>,
}

impl WaitingNode {
    /// Returns the token that a manual action requires. Approvals require none.
    fn find_token(&self) -> Result<Option<String>, Usage> {
        match (self.is_manual, &self.token) {
            (false, _) => Ok(None),
            (true, Some(token)) => Ok(Some(token.clone())),
            (true, None) => Err(Usage::new(format!("you may not complete `{}`", self.label)).hint(
                "its completion token is shown only to callers who may run executions; or pass --token",
            )),
        }
    }
}

fn waiting_nodes(status: &Value) -> Vec<WaitingNode> {
    let waiting = status["waitingFor"].as_array().into_iter().flatten();
    let manual = waiting.filter(|entry| entry["kind"] == "approval" || entry["kind"] == "manual");
    let node = |entry: &Value| {
        let step = entry["nodeId"].as_str()?.to_owned();
        let path = entry["path"].as_array().into_iter().flatten();
        let path: Vec<u32> = path.filter_map(|index| u32::try_from(index.as_u64()?).ok()).collect();
        let token = entry["completionToken"].as_str().map(str::to_owned);
        Some(WaitingNode { label: label(&step, &path), step, is_manual: entry["kind"] == "manual", token })
    };
    manual.filter_map(node).collect()
}
