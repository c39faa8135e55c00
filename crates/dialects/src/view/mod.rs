//! Executions as users see them: the journal told as one JSON object, the same for every dialect, with a part in the
//! dialect's own words. Everything here is a function of the net and the journal; nothing is looked up.

mod entry;
mod firing;
mod large;
mod playbook;
mod response;
mod shapes;
mod story;
#[cfg(test)]
mod tests;
mod waiting;
mod wire;
mod workflow;

pub(crate) use entry::node_status;
pub use entry::{NodeLabel, category, error};
pub use firing::{End, Firing};
pub use large::{Open, TOLD_BYTES_MAX, reference, shared};
pub use playbook::gate_keys;
pub use response::{Facts, Labels, Leases, Taken, Workflow, execution_status, progress, response, status};
pub use shapes::{
    Course, ExecutionError, ExecutionStatus, ExecutionView, Iteration, Metadata, NodeExecution, NodeMetadata,
    NodeProgress, NodeStatus, Progress, Quarantined, TriggerType, Waiting, WaitingKind,
};
pub use story::{GateStory, HoldStory, Story};
pub use waiting::waiting_for;
pub use wire::{execution_id, time, workflow_id};
