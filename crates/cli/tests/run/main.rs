//! `windlass run`, `executions` and `admin` from outside: the real program on real folders.

mod actions;
mod actions_retry;
mod admin;
mod bindings;
mod care;
mod changes;
mod children;
mod documented;
mod ends;
mod failures;
mod handling;
mod interrupted;
mod joins;
mod large;
mod looking;
mod loops;
mod nodes;
mod other_engines;
mod plan_dispatch;
mod plan_inputs;
mod plan_outputs;
mod plan_steps;
mod plans;
mod reach;
#[expect(dead_code, clippy::unwrap_used, reason = "tests of servers use more of it, and fail by panicking")]
#[path = "../serve/receiver.rs"]
mod receiver;
mod retry;
mod retry_partial;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;
mod sagas;
mod schedules;
mod second_process;
mod slips;
mod summary;
mod terminal;
mod waiting;
mod workflows;
