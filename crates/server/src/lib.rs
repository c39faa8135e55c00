//! HTTP, WebSocket and webhooks over one engine, with tenants.

pub mod app;
mod audit;
pub mod auth;
pub mod backup;
pub mod body;
mod connections;
pub mod cursor;
pub mod definitions;
pub mod engine_secrets;
pub mod feed;
mod first;
pub mod follow;
mod hooks;
pub mod host;
pub mod hub;
pub mod ids;
pub mod limits;
mod logging;
mod memories;
mod metrics;
pub mod open_executions;
pub mod problem;
pub mod readers;
pub mod retention;
mod routes;
mod serve;
pub mod settings;
mod stream;
pub mod told;
mod traces;
pub mod vault;
pub mod webhook_secrets;
pub mod webhooks;
mod wire;

pub use routes::openapi;
pub use serve::{Server, serve};
