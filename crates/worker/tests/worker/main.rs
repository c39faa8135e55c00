//! The worker from outside: its machines driven by hand, its pool with real processes.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod chaos;
mod cluster;
mod engine;
mod http;
mod large;
mod link;
mod model;
mod names;
mod node;
mod pipeline;
mod pool;
mod postgres;
mod python;
mod resume;
mod sandbox;
mod server;
mod session;
mod shell;
mod supervisor;
