//! `windlass serve` as its users meet it: a real process, real connections.

#![expect(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod access;
mod agents;
mod attack;
mod audited;
mod bad_input;
mod bindings;
mod bucket;
mod call_sizes;
mod context;
mod controls;
mod evidence;
mod executions;
mod hooks;
mod large;
mod lines;
mod literals;
mod llm;
mod locations;
mod loops;
mod model;
mod nodes;
mod objects;
mod operations;
mod options;
mod orchestration;
mod people;
mod plan_executions;
mod plan_large;
mod plan_losses;
mod plan_restarts;
mod plan_secrets;
mod plan_storm;
mod plans;
mod reading;
mod receiver;
mod refusals;
mod registry;
mod repeats;
mod retries;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod rights;
mod rows;
mod runners;
mod sagas;
mod schedule_operations;
mod schedules;
mod secure;
mod starting;
mod streams;
mod tasks;
mod tries;
mod waiting;
mod webhooks;
mod whole;
mod worker_care;
mod worker_rights;
mod workers;
mod workflows;
