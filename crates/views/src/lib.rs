//! Executions as users see them. Every view is a function of the net and the journal, built from one fold of the journal,
//! and the same for every dialect; one part of the execution view is in the dialect's own words.

#![warn(clippy::wildcard_enum_match_arm)]

mod canonical;
mod compensation;
mod entry;
mod event_data;
mod evidence;
mod expression;
mod firing;
mod graph;
mod history;
mod kept;
mod large;
mod lifecycle;
mod place;
mod progress;
mod projection;
mod response;
mod shapes;
mod stream;
mod timeline;
mod waiting;
mod wire;

pub use canonical::canonical;
pub use compensation::{
    Compensation, CompensationEntry, CompensationFold, CompensationOutcome, hook_operation,
};
pub use entry::{NodeLabel, category, error, node_status, unreached_status};
pub use evidence::{
    Actor, BadRecord, Category, Classified, Evidence, EvidenceChain, EvidenceOutcome, EvidenceProjection,
    UniqueKeys,
};
pub use expression::{bare, shortened, shown_expression};
pub use firing::{End, Firing};
pub use graph::{Graph, GraphEdge, GraphIterations, GraphNode, GraphState};
pub use history::{
    ExecutionHold, FIRINGS_BYTES_MAX, History, ManualEnd, VALUES_BYTES_MAX, WaitingGate, newest_hold,
};
pub use kept::{HeldValue, ResultPlace, ValueAddress, ValuePlace};
pub use large::{
    AnswerBudget, ArtifactCopy, FindCopy, LoggedOutput, Open, ReadLog, ReadValue, SHOWN_BYTES_MAX, Sources,
    ValueBudget, reference, shared,
};
pub use lifecycle::{LifecycleLine, LogProjection};
pub use place::{CodeLocation, CodePlace, ErrorPlace, FAILED_ITERATIONS_MAX};
pub use progress::{
    FiringRole, JoinProgress, LogLevel, LogStream, OfferedStep, ProgressChange, ProgressEntry,
    ProgressFailure, ProgressFiring, ProgressFiringChange, ProgressLine, ProgressLog, ProgressPage,
    ProgressProjection, ProgressState, ProgressStep, ProgressTimes,
};
pub use projection::{EventProjection, Projection, PublicEvent};
pub use response::{
    DialectView, Facts, LeaseInfo, Leases, ViewInput, Workflow, execution_status, progress, response,
    show_outputs, status,
};
pub use shapes::{
    ExecutionError, ExecutionStatus, ExecutionView, FiringResult, Iteration, Metadata, NodeExecution,
    NodeMetadata, NodeProgress, NodeStatus, NodeWait, NodeWaitReason, Progress, Quarantined, Shortened,
    TaskRef, TriggerType, Waiting, WaitingKind,
};
pub use stream::{Message, MessageBody, MessageBuilder, position_before};
pub use timeline::{
    Attempt, ExecutionChange, FiringChange, FiringRef, Occurrence, PublicName, Timeline, TimelineEntry,
    TokenChange, TokenRef, label,
};
pub use waiting::{
    WaitingJoin, gate_keys, seen_by_parent, waiting_at_gate, waiting_for, waiting_for_release, waiting_joins,
    waiting_of_child,
};
pub use wire::{duration, execution_id, time, workflow_id};
