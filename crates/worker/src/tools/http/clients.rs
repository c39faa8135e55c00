//! The connections of a worker, shared by its tasks.

use crate::egress::{Egress, Refused, Resolver};
use reqwest::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Maximum number of shared clients. Each set of connection options has its own; further ones get clients that are not
/// shared.
const KEPT_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Clients {
    pub(super) egress: Arc<Egress>,
    resolver: Resolver,
    /// Clients by their connection timeout, which is fixed for a client.
    kept: Mutex<BTreeMap<Option<Duration>, Client>>,
}

impl Clients {
    pub(crate) fn new(egress: Egress) -> Clients {
        let egress = Arc::new(egress);
        Clients::resolved_by(Resolver::of_system(Arc::clone(&egress)), egress)
    }

    pub(super) fn resolved_by(resolver: Resolver, egress: Arc<Egress>) -> Clients {
        Clients { egress, resolver, kept: Mutex::new(BTreeMap::new()) }
    }

    pub(in crate::tools) fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Returns whether requests of definitions may reach a host.
    pub(in crate::tools) fn check_host(&self, host: &str) -> Result<(), Refused> {
        self.egress.check_host(host)
    }

    pub(in crate::tools) async fn with(&self, connect: Option<Duration>) -> Result<Client, String> {
        let found = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&connect).cloned();
        if let Some(client) = found {
            return Ok(client);
        }
        let resolver = self.resolver.clone();
        // The system's certificates are read here, and the pool has one thread.
        let built = spawn_blocking(move || build(resolver, connect)).await;
        let client = built.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT_MAX {
            kept.insert(connect, client.clone());
        }
        Ok(client)
    }
}

/// Builds a client. It follows no redirects: the caller follows them one by one.
fn build(resolver: Resolver, connect: Option<Duration>) -> reqwest::Result<Client> {
    let builder = crate::egress::builder(resolver);
    match connect {
        Some(limit) => builder.connect_timeout(limit),
        None => builder,
    }
    .build()
}
