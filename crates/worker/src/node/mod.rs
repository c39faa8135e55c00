//! The context of a workflow node: its identity, its inputs, and the requests that it may send while it runs.
//!
//! | file | content |
//! |---|---|
//! | `meter.rs` | counters of a node |
//! | `output.rs` | the node contract: outputs of programs, as results or failures |
//! | `workspace.rs` | the folder of one attempt: `context/`, `outputs/`, the clients of the languages |
//! | `socket.rs` | requests of programs through the folder's socket |
//! | `helper.rs` | the client of shell scripts for these requests |

pub mod helper;
pub(crate) mod meter;
pub(crate) mod output;
mod socket;
mod workspace;

pub(crate) use meter::Meter;
pub(crate) use workspace::{Outputs, Workspace};

use crate::claim::Claim;
use crate::failure::{self, failure, invalid};
use crate::halt::Halt;
use crate::keychain;
use crate::pipeline::execution_id;
use crate::tools::Kit;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;
use windlass_protocol::{
    AgentAnswer, AgentAsk, AgentCall, Call, Failure, Node, Reply, TOO_DEEP, Work, codes, is_too_deep,
};

/// Prefix of a key of the state, in the context of the execution.
pub(crate) const STATE: &str = "state.";

/// Maximum size of the state of one key. State is read whole; larger values belong in an output or a database.
const STATE_MAX: usize = 256 * 1024;
const STATE_KEY_MAX: usize = 128;

/// Pause before a lost call is repeated.
const ASK_AGAIN: Duration = Duration::from_secs(1);

/// Request of running work to its unit.
#[derive(Debug)]
pub(crate) enum Ask {
    /// Stores a state value. Answered when it is on disk.
    SetState {
        key: String,
        value: Value,
        kept: oneshot::Sender<()>,
    },
    /// Stores the state of a call, from which another worker can continue. Answered when it is on disk.
    Remember {
        memo: Value,
        kept: oneshot::Sender<()>,
    },
    Progress {
        step: String,
        percentage: u8,
    },
}

pub(crate) struct NodeContext {
    pub(crate) node: Node,
    work: Work,
    pub(crate) meter: Meter,
    state: Mutex<Map<String, Value>>,
    asks: mpsc::Sender<Ask>,
    claim: Claim,
}

impl fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeContext").field("node", &self.node.id).finish_non_exhaustive()
    }
}

impl NodeContext {
    /// Creates the context of a node. `ctx` is the context of the attempt.
    pub(crate) fn new(
        node: Node,
        work: Work,
        ctx: Map<String, Value>,
        asks: mpsc::Sender<Ask>,
        claim: Claim,
    ) -> NodeContext {
        let of_state = |(key, value): (String, Value)| Some((key.strip_prefix(STATE)?.to_owned(), value));
        let state = Mutex::new(ctx.into_iter().filter_map(of_state).collect());
        NodeContext { node, work, meter: Meter::default(), state, asks, claim }
    }

    pub(crate) fn work(&self) -> &Work {
        &self.work
    }

    /// Returns the identity of the node, as programs and agents see it.
    pub(crate) fn identity(&self) -> Map<String, Value> {
        let Node { id, name, kind, .. } = &self.node;
        let identity = json!({
            "executionId": format!("exec_{}", execution_id(&self.work)),
            "workflowId": self.work.workflow.as_ref().map(|id| format!("wf_{id}")),
            "tenantId": self.work.tenant,
            "nodeId": id,
            "nodeName": name,
            "nodeType": kind,
            "attempt": self.work.attempt,
            "path": self.work.path,
            "debug": self.work.debug,
        });
        identity.as_object().cloned().unwrap_or_default()
    }

    /// Returns the inputs of a program: those of the execution, over them the fields of the output of the only node
    /// before it, and over these the named inputs. The name of a node without output has no value, even if a caller
    /// sends one.
    pub(crate) async fn inputs(&self, kit: &Kit, own: &Value) -> Result<Map<String, Value>, Box<Failure>> {
        let mut inputs = self.workload(kit).await?.as_object().cloned().unwrap_or_default();
        let given = self.given(kit, own).await?;
        if let [only] = &self.node.before[..] {
            inputs.extend(given.get(only).and_then(Value::as_object).cloned().unwrap_or_default());
        }
        inputs.retain(|name, _| !self.work.scope.absent.contains(name));
        inputs.extend(given);
        Ok(inputs)
    }

    /// Returns the outputs of the nodes before it by their ids, and over them the values of an agent or of the node's
    /// own variables.
    pub(crate) async fn given(&self, kit: &Kit, own: &Value) -> Result<Map<String, Value>, Box<Failure>> {
        let mut inputs = Map::new();
        for (name, output) in &self.work.scope.steps {
            inputs.insert(name.clone(), whole(kit, output).await?);
        }
        let args = match self.work.scope.args.as_deref() {
            Some(args) => whole(kit, args).await?,
            None => Value::Null,
        };
        for given in [&args, own] {
            inputs.extend(given.as_object().cloned().unwrap_or_default());
        }
        Ok(inputs)
    }

    /// Returns the inputs of the execution.
    pub(crate) async fn workload(&self, kit: &Kit) -> Result<Value, Box<Failure>> {
        whole(kit, &self.work.scope.workload).await
    }

    /// Returns the values of the node's secrets by their names in the node. The keeper has them from here on, and
    /// redacts them.
    pub(crate) async fn credentials(&self, kit: &Kit) -> Result<BTreeMap<String, Value>, Box<Failure>> {
        let mut opened = BTreeMap::new();
        for (name, secret) in &self.node.credentials {
            opened.insert(name.clone(), keychain::stored(&kit.keeper.open(secret).await?));
        }
        Ok(opened)
    }

    pub(crate) async fn get_state(&self, kit: &Kit, key: &str) -> Result<Value, Box<Failure>> {
        let found = self.lock().get(key).cloned().unwrap_or_default();
        whole(kit, &found).await
    }

    /// Stores a state value. When this returns, it is on disk and visible to every later node of this execution, also
    /// after a crash.
    pub(crate) async fn set_state(&self, key: &str, value: Value) -> Result<(), Box<Failure>> {
        if key.is_empty() || key.len() > STATE_KEY_MAX {
            return Err(invalid(format!("a key of the state has 1 to {STATE_KEY_MAX} characters")));
        }
        if is_too_deep(&value) {
            return Err(invalid(TOO_DEEP));
        }
        let size = value.to_string().len();
        if size > STATE_MAX {
            return Err(invalid(format!(
                "the state `{key}` has {size} bytes, more than the maximum of {STATE_MAX}; store large values in outputs"
            )));
        }
        let (kept, heard) = oneshot::channel();
        self.ask(Ask::SetState { key: key.to_owned(), value: value.clone(), kept }, heard).await?;
        self.lock().insert(key.to_owned(), value);
        Ok(())
    }

    /// Stores the state of a call. When this returns, it is on disk.
    pub(crate) async fn remember(&self, memo: Value) -> Result<(), Box<Failure>> {
        let (kept, heard) = oneshot::channel();
        self.ask(Ask::Remember { memo, kept }, heard).await
    }

    /// Sends a decision of an agent and waits for its result. It is repeated until there is an answer: the same call is
    /// one decision.
    pub(crate) async fn call(
        &self,
        call: String,
        ask: AgentAsk,
        mut halt: Halt,
    ) -> Result<AgentAnswer, Box<Failure>> {
        loop {
            let call = AgentCall { unit: self.work.unit, call: call.clone(), ask: ask.clone() };
            tokio::select! {
                reply = self.claim.call(Call::Agent(Box::new(call))) => match reply {
                    Some(Reply::Agent(answer)) => return Ok(*answer),
                    Some(
                        Reply::Registered(_)
                        | Reply::Order(_)
                        | Reply::Verdict(_)
                        | Reply::Resource(_)
                        | Reply::Refused(_),
                    )
                    | None => sleep(ASK_AGAIN).await,
                },
                _ = halt.requested() => return Err(failure::stopped("the agent")),
            }
        }
    }

    pub(crate) async fn progress(&self, step: String, percentage: u8) {
        // A unit that has ended receives no more progress.
        let _ = self.asks.send(Ask::Progress { step, percentage }).await;
    }

    async fn ask(&self, ask: Ask, heard: oneshot::Receiver<()>) -> Result<(), Box<Failure>> {
        let stopped = || failure(codes::STOPPED, "the work was stopped, so its state is not stored");
        self.asks.send(ask).await.map_err(|_| stopped())?;
        heard.await.map_err(|_| stopped())
    }

    fn lock(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the value, or the value that it refers to.
pub(crate) async fn whole(kit: &Kit, value: &Value) -> Result<Value, Box<Failure>> {
    let Some(key) = windlass_artifact::key(value) else { return Ok(value.clone()) };
    let loaded = kit.claim.load(vec![key.to_owned()]).await?;
    let bytes = loaded.into_iter().find_map(|(_, bytes)| bytes);
    let value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    value.ok_or_else(|| crate::pipeline::not_available(key))
}
