//! Attacks on `windlass serve` from outside: over HTTP, with the token of one tenant or with none. Each test is an attack
//! that succeeded once.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod answers;
mod approvals;
mod artifacts;
mod audit;
mod definitions;
mod files;
mod hooks;
mod identity;
mod leftovers;
mod names;
mod origin;
mod poison;
mod quotas;
mod readers;
mod redaction;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod schemas;
mod sessions;
mod shares;
mod sql;
mod stage;
mod storage;
mod strangers;
mod values;
mod viewers;
