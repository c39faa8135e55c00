//! The command line with a server: every command has the same output there as in a folder, and failures of the
//! connection are reported.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod discovery;
mod normal;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod same;
mod trouble;
