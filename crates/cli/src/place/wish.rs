//! What may be asked of an execution: an input of the engine in a folder, a request to a server.

use super::inbox::{Taken, give};
use super::{Client, Place};
use crate::exit::Usage;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_kernel::{Cancel, ExecutionId, Fence, Input, ManualNote, ManualOutcome, RunId};
use windlass_store::Reader;
use windlass_views::{execution_id, status};

/// Who does it, as the journal tells it. Whoever can write to the data folder is its owner.
const BY: &str = "owner";

#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    Cancel {
        reason: String,
        force: bool,
        compensate: bool,
    },
    Pause {
        reason: String,
    },
    Resume,
    Patch(Map<String, Value>),
    /// What it is called, and what answers for it.
    Complete {
        node: String,
        run: RunId,
        fence: Fence,
        note: ManualNote,
    },
}

impl Place {
    /// The status that it has then, and who took the wish.
    pub fn ask(&self, id: ExecutionId, wish: &Wish) -> anyhow::Result<(String, Taken)> {
        match self {
            Place::Folder(data) => {
                let taken = give(data, id, wish.input())?;
                let gone = || Usage::new(format!("there is no execution {}", execution_id(id)));
                let stored = data.read()?.load(id)?.ok_or_else(gone)?;
                Ok((status(stored.state.phase()).to_owned(), taken))
            }
            Place::Server(server) => {
                let told = wish.send(server, &execution_id(id))?;
                Ok((told["status"].as_str().unwrap_or_default().to_owned(), Taken::ByHolder))
            }
        }
    }
}

impl Wish {
    fn input(&self) -> Input {
        let by = BY.to_owned();
        match self.clone() {
            Wish::Cancel { reason, force, compensate } => {
                Input::Cancel(Cancel { by, reason, force, compensate })
            }
            Wish::Pause { reason } => Input::Hold { by, reason },
            Wish::Resume => Input::Resume { by },
            Wish::Patch(keys) => {
                let patch = keys.into_iter().map(|(key, value)| (key, Arc::new(value))).collect();
                Input::Patch { patch, by }
            }
            Wish::Complete { run, fence, note, .. } => {
                Input::Complete { run, fence, note: Box::new(ManualNote { actor: by, ..note }) }
            }
        }
    }

    fn send(&self, server: &Client, id: &str) -> anyhow::Result<Value> {
        let (method, path, body) = match self {
            Wish::Cancel { reason, force, compensate } => {
                let body = json!({ "reason": reason, "force": force, "compensate": compensate });
                (Method::POST, vec!["cancel"], body)
            }
            Wish::Pause { reason } => (Method::POST, vec!["pause"], json!({ "reason": reason })),
            Wish::Resume => (Method::POST, vec!["resume"], json!({})),
            Wish::Patch(keys) => (Method::PATCH, vec!["context"], Value::Object(keys.clone())),
            Wish::Complete { node, note: ManualNote { outcome, notes, evidence, .. }, .. } => {
                let outcome = match outcome {
                    ManualOutcome::Succeeded => "Succeeded",
                    ManualOutcome::Failed => "Failed",
                    ManualOutcome::Cancelled => "Cancelled",
                };
                let body = json!({ "outcome": outcome, "notes": notes, "evidence": evidence });
                (Method::POST, vec!["actions", node.as_str(), "complete"], body)
            }
        };
        let path = [&["executions", id], &path[..]].concat();
        Ok(server.send(method, &path, &body)?)
    }
}
