//! Sends every control in every situation of a playbook or a workflow, to the real program with real processes, in a folder and
//! at a server. docs/semantics.md defines the behaviour of the kernel; these tests show that it reaches the user.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod cap;
mod controls;
#[expect(dead_code, reason = "other tests use more of it")]
#[path = "../serve/model.rs"]
mod model;
mod patch;
mod pipeline;
mod playbooks;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod situations;
mod timeouts;
mod workflows;
