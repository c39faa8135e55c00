//! One firing of a step: its data per state, and the table of its moves.

use crate::any_of;
use crate::context::Context;
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bound arguments of a firing; None when there are none.
pub type Args = Option<Arc<Value>>;
/// The context: shared by every step-run that was dispatched while it stood so (R13).
pub type Ctx = Arc<Context>;
/// Context keys to set.
pub type Patch = BTreeMap<String, Arc<Value>>;

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct StepRun {
    pub step: StepId,
    pub path: Path,
    pub role: Role,
    pub args: Args,
    /// The context as of the dispatch, once it has changed since; all attempts see the same (R13).
    pub ctx: Option<Ctx>,
    /// Attempts used up.
    pub attempts: u32,
    /// Leases lost while the work had started.
    pub losses: u32,
    /// The fence of the newest offer.
    pub fence: Option<Fence>,
    /// The firings whose outputs the newest offer's work reads.
    pub reads: Vec<(StepId, RunId)>,
    /// Where the pipeline stands, as its worker last said (R14).
    pub cursor: Option<Arc<Value>>,
    /// Calls an agent made from this step-run, so that none is made twice.
    pub calls: BTreeMap<String, RunId>,
    pub state: RunState,
}

impl StepRun {
    /// Fired and not begun.
    #[must_use]
    pub fn new(step: StepId, path: Path, role: Role, args: Args) -> StepRun {
        let state = RunState::Ready { waited: false };
        let (attempts, losses, reads, calls) = (0, 0, Vec::new(), BTreeMap::new());
        let (ctx, fence, cursor) = (None, None, None);
        StepRun { step, path, role, args, ctx, attempts, losses, fence, reads, cursor, calls, state }
    }
}

/// Why a step-run exists; it decides what its end means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A token fired it; its end is routed.
    Routed,
    Iteration {
        of: RunId,
        index: u32,
    },
    Final,
    Hook {
        of: RunId,
    },
    /// An agent called it; its end is the agent's answer.
    Tool {
        agent: RunId,
        call: String,
    },
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub enum RunState {
    /// Fired, not yet begun: a hold or the parallel cap is in the way.
    Ready {
        waited: bool,
    },
    Waiting {
        target: Arc<Value>,
        until: Millis,
    },
    Delayed {
        until: Millis,
    },
    Offered {
        fence: Fence,
    },
    Backoff {
        until: Millis,
    },
    Manual {
        fence: Fence,
        output: Arc<Value>,
        deadline: Option<Millis>,
    },
    Child {
        fence: Fence,
        child: ExecutionId,
        until: Option<Millis>,
    },
    Looping(LoopState),
}

/// Counters, not lists (R18).
#[derive(Debug, Clone, PartialEq, Hash, Default, Serialize, Deserialize)]
pub struct LoopState {
    pub total: Option<u32>,
    pub next: u32,
    pub open: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub stopped: bool,
    /// What parallel iterations wrote to the context: a second, different write is a conflict.
    pub writes: Patch,
}

impl LoopState {
    #[must_use]
    pub fn has_more(&self) -> bool {
        !self.stopped && self.total.is_none_or(|total| self.next < total)
    }
}

/// The kind of a state, for counting and for the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Ready,
    Waiting,
    Delayed,
    Offered,
    Backoff,
    Manual,
    Child,
    Looping,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    Wait,
    Wake,
    Delay,
    Offer,
    Lose,
    Reopen,
    Return,
    Retry,
    AwaitManual,
    Spawn,
    Loop,
    End,
    Drop,
}

impl RunState {
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            RunState::Ready { .. } => Kind::Ready,
            RunState::Waiting { .. } => Kind::Waiting,
            RunState::Delayed { .. } => Kind::Delayed,
            RunState::Offered { .. } => Kind::Offered,
            RunState::Backoff { .. } => Kind::Backoff,
            RunState::Manual { .. } => Kind::Manual,
            RunState::Child { .. } => Kind::Child,
            RunState::Looping(_) => Kind::Looping,
        }
    }
}

impl Kind {
    /// Something outside works on it right now.
    #[must_use]
    pub fn in_flight(self) -> bool {
        matches!(self, Kind::Offered | Kind::Child)
    }

    /// The whole machine. `Ok(None)`: the step-run has ended.
    pub fn after(self, signal: Signal) -> Option<Option<Kind>> {
        use Kind::{Backoff, Child, Delayed, Looping, Manual, Offered, Ready, Waiting};
        Some(match (self, signal) {
            (Ready, Signal::Wait) => Some(Waiting),
            (Waiting | Backoff, Signal::Wake) => Some(Ready),
            (Ready, Signal::Delay) => Some(Delayed),
            (Ready, Signal::Offer) => Some(Offered),
            (Offered, Signal::Lose) | (Child, Signal::Return) | (Offered | Child, Signal::Reopen) => {
                Some(Ready)
            }
            (Offered | Child, Signal::Retry) => Some(Backoff),
            (Ready | Offered | Delayed | Child, Signal::AwaitManual) => Some(Manual),
            (Ready | Offered, Signal::Spawn) => Some(Child),
            (Ready, Signal::Loop) => Some(Looping),
            // Ready: pure work, or an expression that cannot be evaluated.
            (Ready | Offered | Manual | Child | Delayed | Waiting | Looping | Backoff, Signal::End) => None,
            (Ready | Waiting | Delayed | Offered | Backoff | Manual | Child | Looping, Signal::Drop) => None,
            (
                Ready | Waiting | Delayed | Offered | Backoff | Manual | Child | Looping,
                any_of![Signal: Wait Wake Delay Offer Lose Reopen Return Retry AwaitManual Spawn Loop],
            ) => return None,
        })
    }
}
