//! Executions as users see them: the journal told as one JSON object, the same for every dialect, with a part in the
//! dialect's own words. Everything here is a function of the net and the journal; nothing is looked up.

mod entry;
mod firing;
mod kept;
mod large;
mod response;
mod shapes;
mod story;
mod waiting;
mod wire;

pub use entry::{NodeLabel, category, error, node_status, unreached_status};
pub use firing::{End, Firing};
pub use kept::{Kept, ResultPlace, ValueAddress, ValuePlace};
pub use large::{Open, ReadValue, Room, Share, Sources, TOLD_BYTES_MAX, reference, shared};
pub use response::{
    DialectView, Facts, Labels, Leases, Taken, ViewInput, Workflow, execution_status, progress, response,
    status, told_outputs,
};
pub use shapes::{
    Course, ExecutionError, ExecutionStatus, ExecutionView, Iteration, Metadata, NodeExecution, NodeMetadata,
    NodeProgress, NodeStatus, Progress, Quarantined, Shortened, TriggerType, Waiting, WaitingKind,
};
pub use story::{FIRINGS_BYTES_MAX, GateStory, HoldStory, Story, VALUES_BYTES_MAX};
pub use waiting::{gate_keys, waiting_for};
pub use wire::{execution_id, time, workflow_id};
