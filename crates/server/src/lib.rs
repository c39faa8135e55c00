//! HTTP, WebSocket and webhooks over one engine, with tenants.
