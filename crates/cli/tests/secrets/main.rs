//! Secrets through the binary: set, listed, rotated, used; and never seen again (K9).

mod attack;
#[path = "../run/binary.rs"]
#[expect(dead_code, reason = "shared with the tests of `run`")]
mod binary;
mod commands;
mod keychain;
mod place;
mod used;
