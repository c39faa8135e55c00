//! The connections of a worker, shared by its tasks.

use crate::egress::{Egress, Refused, Resolver};
use reqwest::Client;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::spawn_blocking;

/// Each way to connect keeps its own connections. Who has more ways than this gets connections of their own.
const KEPT_MAX: usize = 16;

#[derive(Debug)]
pub(crate) struct Clients {
    pub(super) egress: Arc<Egress>,
    resolver: Resolver,
    /// By their limit on connecting, which a client has once and for all.
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

    /// Whether requests of definitions may go to a host.
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

/// Redirects are followed by hand, hop by hop.
fn build(resolver: Resolver, connect: Option<Duration>) -> reqwest::Result<Client> {
    let builder = crate::egress::builder(resolver);
    match connect {
        Some(limit) => builder.connect_timeout(limit),
        None => builder,
    }
    .build()
}
