//! Where a control meets what a playbook is doing at that moment, through the real program with real processes. What
//! the kernel does there is in docs/semantics.md; this shows that it reaches the user.

mod cap;
mod controls;
mod patch;
mod pipeline;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod situations;
mod timeouts;
