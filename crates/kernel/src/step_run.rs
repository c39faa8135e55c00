//! One firing of a step: the data of each state, and the table of transitions.

use crate::any_of;
use crate::context::Context;
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId};
use crate::net::{Hook, Step};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bound arguments of a firing, if it has any.
pub type Args = Option<Arc<Value>>;
/// The context, shared by all step-runs that were dispatched under the same version of it (R13).
pub type Ctx = Arc<Context>;
/// Values to set in the context, by key.
pub type Patch = BTreeMap<String, Arc<Value>>;

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct StepRun {
    pub step: StepId,
    pub path: Path,
    pub role: Role,
    pub args: Args,
    /// The context as of the dispatch, set only once the context has changed since. All attempts see the same one
    /// (R13).
    pub ctx: Option<Ctx>,
    /// Number of attempts used.
    pub attempts: u32,
    /// Number of leases lost after the work had started.
    pub losses: u32,
    /// The fence of the newest offer.
    pub fence: Option<Fence>,
    /// Firings whose outputs the work of the newest offer reads.
    pub reads: Vec<(StepId, RunId)>,
    /// Newest checkpoint that the worker reported for the pipeline (R14).
    pub cursor: Option<Arc<Value>>,
    /// Calls that an agent made from this step-run, by name, so that none is made twice.
    pub calls: BTreeMap<String, RunId>,
    pub state: RunState,
    /// The attempt that is offered and the time at which it was decided, if the work reads it. Rows hold fields by their
    /// position, so only the last one may be left out.
    #[serde(default)]
    pub decided: Option<(u32, Millis)>,
    /// The ended child that the next child of this step-run takes over from. It is last because rows of older releases
    /// end before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<ExecutionId>,
}

impl StepRun {
    /// Creates a step-run that has fired but not begun.
    #[must_use]
    pub fn new(step: StepId, path: Path, role: Role, args: Args) -> StepRun {
        let state = RunState::Ready { waited: false };
        let (attempts, losses, reads, calls) = (0, 0, Vec::new(), BTreeMap::new());
        let (ctx, fence, cursor, decided, continues) = (None, None, None, None, None);
        StepRun {
            step,
            path,
            role,
            args,
            ctx,
            attempts,
            losses,
            fence,
            reads,
            cursor,
            calls,
            state,
            decided,
            continues,
        }
    }

    /// Returns the compensation hook that the step-run performs, if it performs one.
    pub(crate) fn hook<'s>(&self, step: &'s Step) -> Option<&'s Hook> {
        step.compensation.as_ref().filter(|_| matches!(self.role, Role::Hook { .. }))
    }
}

/// Reason why a step-run exists. The reason decides what its end means.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Fired by a token; its end is routed.
    Routed,
    Iteration {
        of: RunId,
        index: u32,
    },
    Final,
    Hook {
        of: RunId,
    },
    /// Called by an agent; its end is the answer to the agent.
    Tool {
        agent: RunId,
        call: String,
    },
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub enum RunState {
    /// Fired but not begun, because of a hold or the limit on parallel work.
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
        /// Only people can continue the child.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        paused: bool,
    },
    Looping(LoopState),
}

/// Progress of a loop. It holds counters and no lists, so its size does not grow with the iterations (R18).
#[derive(Debug, Clone, PartialEq, Hash, Default, Serialize, Deserialize)]
pub struct LoopState {
    pub total: Option<u32>,
    pub next: u32,
    pub open: u32,
    pub succeeded: u32,
    pub failed: u32,
    pub stopped: bool,
    /// Context values that parallel iterations wrote. A second write of a different value is a conflict.
    pub writes: Patch,
    /// Number of iterations of an ended execution that are run again and wait for room. It is last because rows of older
    /// releases end before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parked: u32,
}

impl LoopState {
    #[must_use]
    pub fn has_more(&self) -> bool {
        self.parked > 0 || !self.stopped && self.total.is_none_or(|total| self.next < total)
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Kind of a state without its data, for counting and for the transition table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Ready,
    Waiting,
    Delayed,
    Offered,
    Backoff,
    Manual,
    Child,
    PausedChild,
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
    PauseChild,
    ResumeChild,
    Loop,
    End,
    Drop,
}

impl RunState {
    pub(crate) fn as_loop(&self) -> Option<&LoopState> {
        if let RunState::Looping(repeat) = self { Some(repeat) } else { None }
    }

    /// Returns the child that the step-run waits for, with its fence.
    #[must_use]
    pub fn child(&self) -> Option<(Fence, ExecutionId)> {
        if let RunState::Child { fence, child, .. } = self { Some((*fence, *child)) } else { None }
    }

    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            RunState::Ready { .. } => Kind::Ready,
            RunState::Waiting { .. } => Kind::Waiting,
            RunState::Delayed { .. } => Kind::Delayed,
            RunState::Offered { .. } => Kind::Offered,
            RunState::Backoff { .. } => Kind::Backoff,
            RunState::Manual { .. } => Kind::Manual,
            RunState::Child { paused: false, .. } => Kind::Child,
            RunState::Child { paused: true, .. } => Kind::PausedChild,
            RunState::Looping(_) => Kind::Looping,
        }
    }
}

impl Kind {
    /// Returns whether a worker or another execution works on the step-run now.
    #[must_use]
    pub fn in_flight(self) -> bool {
        matches!(self, Kind::Offered | Kind::Child | Kind::PausedChild)
    }

    /// Returns the state after a signal, where `Some(None)` means that the step-run has ended; `None` if the signal
    /// is illegal.
    pub fn after(self, signal: Signal) -> Option<Option<Kind>> {
        use Kind::{Backoff, Child, Delayed, Looping, Manual, Offered, PausedChild, Ready, Waiting};
        Some(match (self, signal) {
            (Ready, Signal::Wait) => Some(Waiting),
            (Waiting | Backoff, Signal::Wake) => Some(Ready),
            (Ready, Signal::Delay) => Some(Delayed),
            (Ready, Signal::Offer) => Some(Offered),
            (Offered, Signal::Lose)
            | (Child | PausedChild, Signal::Return)
            | (Offered | Child | PausedChild, Signal::Reopen) => Some(Ready),
            (Offered | Child | PausedChild, Signal::Retry) => Some(Backoff),
            (Ready | Offered | Delayed | Child | PausedChild, Signal::AwaitManual) => Some(Manual),
            (Ready | Offered, Signal::Spawn) => Some(Child),
            (Child, Signal::PauseChild) => Some(PausedChild),
            (PausedChild, Signal::ResumeChild) => Some(Child),
            (Ready, Signal::Loop) => Some(Looping),
            // A ready step-run ends if its work is pure, or if an expression of it cannot be evaluated.
            (
                Ready | Offered | Manual | Child | PausedChild | Delayed | Waiting | Looping | Backoff,
                Signal::End | Signal::Drop,
            ) => None,
            (
                Ready | Waiting | Delayed | Offered | Backoff | Manual | Child | PausedChild | Looping,
                any_of![Signal: Wait Wake Delay Offer Lose Reopen Return Retry AwaitManual Spawn PauseChild
                    ResumeChild Loop],
            ) => return None,
        })
    }
}
