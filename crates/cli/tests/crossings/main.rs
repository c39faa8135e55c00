//! Sends every control in every situation of a playbook, to the real program with real processes. docs/semantics.md defines
//! the behaviour of the kernel; these tests show that it reaches the user.

mod cap;
mod controls;
mod patch;
mod pipeline;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod situations;
mod timeouts;
