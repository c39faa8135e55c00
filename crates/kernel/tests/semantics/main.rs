//! Tests of the kernel through its public API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod actions;
mod bad_input;
mod crossing;
mod crossings;
mod delegated;
mod drive;
mod illegal;
mod join_steps;
mod large;
mod outputs;
mod plans;
mod playbooks;
mod retries;
mod reviewed;
mod workflows;
