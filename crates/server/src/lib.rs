//! HTTP, WebSocket and webhooks over one engine, with tenants.

pub mod app;
pub mod auth;
pub mod backup;
pub mod body;
mod connections;
pub mod engine_secrets;
pub mod feed;
pub mod host;
pub mod limits;
mod logging;
mod metrics;
pub mod problem;
pub mod readers;
pub mod retention;
mod routes;
mod serve;
pub mod settings;
pub mod tenant;
pub mod vault;
pub mod webhooks;

pub use routes::openapi;
pub use serve::{Server, serve};
