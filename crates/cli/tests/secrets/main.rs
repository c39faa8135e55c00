//! Secrets through the binary: set, listed, rotated, used; and never seen again (K9).

mod attack;
mod commands;
mod keychain;
mod place;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod used;
