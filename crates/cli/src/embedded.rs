//! An engine in this process, with the access of the user who runs a file.

use crate::adapters::adapters_of_environment;
use crate::exit::Usage;
use crate::progress::say;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use windlass_dialects::Adapters;
use windlass_dialects::plan::ROUTING_TIMEOUT;
use windlass_engine::Folder;
use windlass_protocol::LEASE_TTL_MS;
use windlass_server::StorageLimits;
use windlass_server::Variables;
use windlass_server::engine_secrets::EngineSecrets;
pub use windlass_server::host::{Embedded, SANDBOX, SUPERVISE, Workers, new_workflow_id, now};
use windlass_server::host::{ProcessNets, Setup, Shares};
use windlass_worker::egress::Egress;
use windlass_worker::sandbox::DatabaseQuota;

/// Locks the folder and starts an engine in it. Fails if another process holds the folder.
pub fn start(data: &Path, what: &str, workers: Workers) -> anyhow::Result<Embedded> {
    in_folder(Folder::hold(data, what)?, workers)
}

pub fn in_folder(folder: Folder, workers: Workers) -> anyhow::Result<Embedded> {
    let embedded = Embedded::in_folder(folder, setup(workers, None)?)?;
    for warning in embedded.warnings() {
        say(&format!("warning: {warning}"));
    }
    Ok(embedded)
}

/// Settings of an engine in this process. Without `adapters`, the bindings are those of the environment.
pub fn setup(workers: Workers, adapters: Option<Arc<Adapters>>) -> anyhow::Result<Setup> {
    let egress = if workers == Workers::None { Egress::default() } else { egress()? };
    let (secrets, variables) = (EngineSecrets::from_environment(), Variables::All);
    // The user who runs a file may fill the disk of this machine, and can end a run that hangs.
    let database_quota = DatabaseQuota::default();
    Ok(Setup {
        workers,
        egress,
        secrets,
        hub: None,
        shares: Shares::default(),
        database_quota,
        variables,
        storage: StorageLimits::default(),
        seals_audit: false,
        stall_timeout: None,
        nets: ProcessNets {
            adapters: adapters.map_or_else(adapters_of_environment, Ok)?,
            routing_timeout: routing_timeout()?,
            ..ProcessNets::default()
        },
        lease_ttl: Duration::from_millis(LEASE_TTL_MS),
        bucket: None,
        keeps_workdirs: false,
    })
}

/// Returns the time for routes of plans to become ready, from the same environment variable as for a server.
fn routing_timeout() -> anyhow::Result<Duration> {
    let Ok(text) = std::env::var("WINDLASS_ROUTING_TIMEOUT_SECONDS") else { return Ok(ROUTING_TIMEOUT) };
    let seconds = text.trim().parse::<u32>().ok().filter(|seconds| *seconds > 0);
    let wrong = || {
        Usage::new(format!("WINDLASS_ROUTING_TIMEOUT_SECONDS: `{text}` is not a number of seconds above 0"))
    };
    Ok(Duration::from_secs(seconds.ok_or_else(wrong)?.into()))
}

/// Returns the rules for addresses. A definition that runs here may reach the networks of this machine, except
/// addresses that are closed to every definition.
fn egress() -> anyhow::Result<Egress> {
    let list = std::env::var("WINDLASS_EGRESS_ALLOW").unwrap_or_default();
    let local = Egress { allow_private: true, allow: Vec::new() };
    local.allowing(&list).map_err(|bad| Usage::new(format!("WINDLASS_EGRESS_ALLOW: {bad}")).into())
}
