//! One file per noun of the command line.

pub mod admin;
pub mod bench;
pub mod evidence;
pub mod executions;
mod family;
pub mod graph;
pub mod internal;
mod report;
pub mod run;
pub mod schema;
pub mod secrets;
pub mod serve;
pub mod sim;
mod source;
pub mod validate;
pub mod workflows;

use std::fmt::Display;

/// `1 step`, `2 steps`.
fn counted<N: Display + PartialEq + From<u8>>(count: N, noun: &str) -> String {
    format!("{count} {noun}{}", if count == N::from(1) { "" } else { "s" })
}
