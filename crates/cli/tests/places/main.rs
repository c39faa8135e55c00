//! The command line against a server: every command tells the same there as in a folder, and what goes wrong on the
//! way is told.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod discovery;
mod normal;
mod rig;
mod same;
mod trouble;
