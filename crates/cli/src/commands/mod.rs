//! One file per noun of the command line.

pub mod actions;
pub mod admin;
pub mod bench;
mod compensation;
pub mod dead_letters;
mod definition_set;
pub mod evidence;
pub mod executions;
mod failure;
pub mod graph;
pub mod internal;
pub mod page;
pub mod plans;
mod report;
pub mod routing;
pub mod run;
pub mod runs;
pub mod schedules;
pub mod schema;
pub mod secrets;
pub mod serve;
pub mod sim;
mod source;
pub mod tasks;
pub mod tokens;
pub mod validate;
pub mod worker;
pub mod workers;
pub mod workflows;

use crate::format::counted;
