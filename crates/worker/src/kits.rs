//! Resources that the units of one process share, and the kit of each unit.

use crate::claim::Claim;
use crate::command::OwnCommand;
use crate::egress::Egress;
use crate::keeper::Keeper;
use crate::keychain::Tokens;
use crate::sandbox::Sandbox;
use crate::tools::{Clients, Kit, TenantBounds};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use windlass_protocol::WorkerRules;

/// Shared resources of units. Each unit has its own secrets; tokens that were fetched with them are shared within a
/// tenant only.
#[derive(Debug)]
pub(crate) struct Kits {
    pub(crate) supervisor: OwnCommand,
    pub(crate) sandbox: OwnCommand,
    pub(crate) clients: Arc<Clients>,
    pub(crate) helper: Option<PathBuf>,
    pub(crate) folders: PathBuf,
    pub(crate) keeps_workdirs: bool,
    pub(crate) databases: Option<PathBuf>,
    pub(crate) rules: Arc<WorkerRules>,
    pub(crate) cache: PathBuf,
    pub(crate) venvs: Arc<tokio::sync::Mutex<()>>,
    /// Tokens by tenant, for tenants with tokens in use.
    pub(crate) tokens: BTreeMap<String, Arc<Tokens>>,
    /// Memory by tenant, for tenants with work.
    pub(crate) bounds: BTreeMap<String, Arc<TenantBounds>>,
}

impl Kits {
    /// Applies the rules of the engine to work that begins from now on.
    pub(crate) fn follow(&mut self, rules: &Arc<WorkerRules>) {
        if self.rules != *rules {
            self.clients = Arc::new(Clients::new(Egress::of(&rules.egress)));
            self.rules = Arc::clone(rules);
        }
    }

    /// Returns the kit of a unit. `whole` is the keeper of the execution that it is a part of, if this worker holds
    /// that as a whole.
    pub(crate) fn for_unit(&mut self, tenant: &str, claim: Claim, whole: Option<Arc<Keeper>>) -> Arc<Kit> {
        self.tokens.retain(|_, tokens| Arc::strong_count(tokens) > 1 || !tokens.is_empty());
        self.bounds.retain(|_, bounds| Arc::strong_count(bounds) > 1);
        let tokens = Arc::clone(self.tokens.entry(tenant.to_owned()).or_default());
        let bounds = Arc::clone(self.bounds.entry(tenant.to_owned()).or_default());
        Arc::new(Kit {
            supervisor: self.supervisor.clone(),
            sandbox: Sandbox::new(self.sandbox.clone()),
            bounds,
            clients: Arc::clone(&self.clients),
            keeper: Arc::new(Keeper::new(claim.clone(), whole)),
            claim,
            tokens,
            helper: self.helper.clone(),
            folders: self.folders.clone(),
            keeps_workdirs: self.keeps_workdirs,
            databases: self.databases.clone(),
            database_quota: self.rules.databases,
            cache: self.cache.clone(),
            venvs: Arc::clone(&self.venvs),
        })
    }
}
