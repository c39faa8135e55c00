//! The command line against a server: every command tells the same there as in a folder, and what goes wrong on the
//! way is reported.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod discovery;
mod normal;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod same;
mod trouble;
