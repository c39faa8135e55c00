//! The kernel: one pure state machine for all dialects.
//!
//! A [`Net`] describes what a definition means, and an [`Execution`] is the live state of one run of it. [`decide`]
//! turns an [`Input`] into [`Record`]s or rejects it, [`evolve`] folds a record into the state, and [`replay`] folds
//! a whole journal. The kernel has no IO, clock, randomness or threads: time, random bits and loaded values are
//! passed in with the input, so the same inputs always produce the same journal (K6).

#![warn(clippy::wildcard_enum_match_arm)]

mod answers;
mod aside;
mod carry;
mod changes;
mod context;
mod decide;
mod event;
mod evolve;
mod execution;
mod firings;
mod ids;
mod input;
pub mod net;
mod outputs;
mod phase;
mod step_run;
mod table;

pub use aside::references;
pub use carry::{NewExecution, TakenOver, carry_over};
pub use changes::{Change, Changes, Delta};
pub use context::{CONTEXT_BYTES_MAX, Context};
pub use decide::{Decision, decide};
pub use event::{
    AgentDecision, BranchEnd, Cause, Cleared, Created, Delegated, Emission, Event, Facet, Fork, Gone, Import,
    LifeChange, ManualNote, ManualOutcome, NoteEffect, Parent, PauseReason, Record, RunChange, SkipReason,
    StartWhen, Times, TokenValue,
};
pub use evolve::{evolve, replay};
pub use execution::{
    Census, Clock, Counts, Decided, Execution, Finale, Gate, Head, JoinState, ParkedIteration, Scope, Token,
};
pub use firings::Firings;
pub use ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
pub use input::{
    AgentAsk, Answer, Cancel, ChildResult, Create, Given, Illegal, Input, IterationEnds, IterationFailure,
    LeaseLost, LeaseUnit, Loss, Need, Rejected, Report, Timer, Values, WorkResult,
};
pub use net::{Net, NetDigest, NetError, NetSpec};
pub use outputs::{Outputs, outputs};
pub use phase::{Move, Outcome, Phase};
pub use step_run::{Args, Ctx, Kind, LoopState, Patch, Role, RunState, Signal, StepRun};
pub use table::Table;
pub use windlass_expr::{has_templates, overlay, with_defaults};
pub use windlass_failure::{ErrorClass, Failure, FailureCode, FailureFacts, FailureSite, codes};
