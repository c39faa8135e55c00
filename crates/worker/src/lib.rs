//! Runs the work of step-runs: pipelines of tool calls, in sessions with an engine.
//!
//! | part | content |
//! |---|---|
//! | [`Run`] | the pipeline runner: the next call, the meaning of an outcome, the continuation after a crash; no IO |
//! | [`session`] | the worker's side of the protocol: leases, resent reports, checkpoints; no IO |
//! | [`Pool`] | both of them over threads, processes and the clock, with an engine behind a [`Port`] |
//! | [`connect`] | the connection of a worker process to a server, over HTTP |
//! | [`CallPreparer`] | the part of a pipeline around a call that a worker outside of this process makes |
//! | [`egress`] | the addresses that requests of definitions may reach |
//! | [`supervisor`] | the process that ends all processes that a program of a step started |
//! | [`sandbox`] | processes for statements and paths of tenants |

mod activity;
mod claim;
mod command;
pub mod egress;
mod excerpt;
mod failure;
mod folder;
mod footprint;
mod halt;
mod inherited;
mod keeper;
mod keychain;
mod kits;
mod link;
pub mod node;
mod pipeline;
mod pool;
mod process;
mod remote;
pub mod sandbox;
pub mod session;
mod stream;
pub mod supervisor;
mod tools;

pub use activity::Activity;
pub use command::{OwnCommand, host_name};
pub use folder::remove_folder;
pub use inherited::Inherited;
pub use link::{LinkConfig, LinkNews, LinkWatch, connect};
pub use pipeline::{CALLS_MAX, Call, CallResult, DELAY_MAX_MS, Next, PAUSE_MAX_MS, Run};
pub use pool::{CHUNK_MAX, Pinger, Pool, PoolConfig, PoolError, Port, default_slots};
pub use remote::{CallPreparer, Prepared, RemoteCall, RemoteConfig, RemoteUnit};
pub use stream::{LINE_MAX, TAIL_MAX};
pub use tools::GRACE_MS;
