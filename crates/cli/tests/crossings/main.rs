//! Where a control meets what a playbook is doing at that moment, through the real program with real processes. What
//! the kernel does there is in docs/semantics.md; this shows that it reaches the user.

#[expect(dead_code, reason = "the tests of the commands use more of it")]
#[path = "../run/binary.rs"]
mod binary;

mod cap;
mod controls;
mod patch;
mod pipeline;
mod situations;
mod timeouts;
