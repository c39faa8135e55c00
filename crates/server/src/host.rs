//! An engine in this process: the data folder, its store, the engine and an optional pool of workers.

use crate::database::Database;
use crate::descriptors;
use crate::engine_secrets::{EngineSecrets, deny_inspection};
use crate::hooks;
use crate::hub::Hub;
use crate::huge_pages;
use crate::objects::BucketCopies;
pub use crate::objects::{Bucket, BucketError};
use crate::remote::RemoteWorkers;
use crate::resources::FolderResources;
use crate::rights::{TenantRights, Variables};
use crate::storage::{Storage, StorageLimits};
use crate::vault::{LocalVault, SharedVault};
pub use crate::versions::ProcessNets;
use crate::versions::{Versions, recompile_stored};
use crate::watchdog::{self, Pulse, Vitals, Watchdog};
use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, bounded, select};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use windlass_engine::{
    ChildCheck, Config, Engine, EngineAnswer, Fatal, Folder, Handle, Limits, OpenLimits, Request, Share,
    SlotLimits, Watch, make_private, new_execution_id,
};
use windlass_kernel::{ExecutionId, Millis};
use windlass_protocol::WorkerRules;
use windlass_store::{Access as _, Artifacts, AuditSeal, Store as _, StoredTenant, Workers as _, WorkflowId};
use windlass_worker::egress::Egress;
use windlass_worker::sandbox::DatabaseQuota;
use windlass_worker::{Inherited, OwnCommand, Pool, PoolConfig, Port, RemoteConfig};

/// Subcommand that starts a supervisor of programs.
pub const SUPERVISE: &str = "supervise";
/// Subcommand that starts a sandbox process.
pub const SANDBOX: &str = "sandbox";

#[derive(Debug)]
pub struct Embedded {
    pool: Option<Pool>,
    engine: Engine,
    /// Locked while the engine runs.
    folder: Folder,
    vault: Arc<SharedVault>,
    rights: Arc<TenantRights>,
    storage: Arc<Storage>,
    artifacts: Artifacts,
    versions: Arc<Versions>,
    seal: Option<Arc<AuditSeal>>,
    warnings: Vec<String>,
    vitals: Arc<Vitals>,
    watchdog: Watchdog,
    remote: Arc<RemoteWorkers>,
}

/// The workers of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    Pool,
    /// A pool with this number of slots.
    Slots(u32),
    /// No worker: steps stay queued.
    None,
}

/// Options of an embedded engine.
#[derive(Debug)]
pub struct Setup {
    pub workers: Workers,
    /// Addresses that requests of definitions may reach.
    pub egress: Egress,
    pub secrets: EngineSecrets,
    /// Notified of changed executions.
    pub hub: Option<Arc<Hub>>,
    /// Limits of tenants that have none of their own.
    pub shares: Shares,
    /// Maximum sizes of SQLite databases of steps.
    pub database_quota: DatabaseQuota,
    /// Environment variables that definitions may read.
    pub variables: Variables,
    pub storage: StorageLimits,
    /// Whether a key for the audit log is created if there is none.
    pub seals_audit: bool,
    /// Time after which a stalled thread ends the process; None: never.
    pub stall_timeout: Option<Duration>,
    /// Changes that this process makes to the Nets of definitions.
    pub nets: ProcessNets,
    /// Time after which a lease that is not renewed is lost.
    pub lease_ttl: Duration,
    /// Whether work dirs of plans are kept.
    pub keeps_workdirs: bool,
    /// Bucket to which artifacts are copied. The caller runs on the runtime that copies them.
    pub bucket: Option<Arc<Bucket>>,
}

impl Embedded {
    /// Locks the folder and starts the engine, which recovers the work of an earlier process. Fails if another process holds
    /// the folder.
    pub fn start(data: &Path, what: &str, setup: Setup) -> anyhow::Result<Embedded> {
        Embedded::in_folder(Folder::hold(data, what)?, setup)
    }

    pub fn in_folder(folder: Folder, setup: Setup) -> anyhow::Result<Embedded> {
        // Steps run as the same user, and this process decrypts the secrets of all of them.
        deny_inspection()?;
        let mut store = Database::open(&Folder::store(folder.path()))?;
        recompile_stored(&mut store)?;
        let lost_hooks = hooks::claim_stored(&mut store)?;
        let tenants = store.reader()?.tenants()?;
        let (usages, data) = (store.usages(), folder.path().to_owned());
        let storage = Arc::new(Storage::new(usages.clone(), setup.storage, data, &tenants));
        let limits = limits(setup.shares, &tenants);
        let rights = Arc::new(TenantRights::new(setup.variables, &tenants));
        let watch = setup.hub.map(|hub| -> Watch { Box::new(move |ids| hub.changed(ids)) });
        let versions = Arc::new(Versions::new(setup.nets));
        let of_children = versions.clone();
        let check_child =
            ChildCheck::new(move |definition, net, inputs| of_children.check_child(definition, net, inputs));
        let (vault, mut warnings) = vault(folder.path(), setup.secrets)?;
        let seal = seal(&vault, setup.seals_audit).unwrap_or_else(|error| {
            warnings.push(format!("entries of the audit log are not sealed: {error:#}"));
            None
        });
        seal.iter().for_each(|seal| store.seal_audit(seal.clone()));
        let (vitals, last) = Vitals::open(folder.path())?;
        let quarantined = watchdog::judge(&mut store, &last)?;
        store.artifacts().clear_uploads()?;
        let uploads_artifacts = setup.bucket.is_some();
        if let Some(bucket) = setup.bucket {
            let rows = Database::read_only(&Folder::store(folder.path()))?;
            store.copy_artifacts(Arc::new(BucketCopies::new(bucket, rows)));
        }
        let artifacts = store.artifacts();
        let resources = FolderResources {
            vault: vault.clone(),
            rights: rights.clone(),
            storage: storage.clone(),
            artifacts: artifacts.clone(),
            usages,
            rows: Mutex::new(Database::read_only(&Folder::store(folder.path()))?),
        };
        let lease_ttl_ms = u64::try_from(setup.lease_ttl.as_millis()).unwrap_or(u64::MAX);
        let rules = Arc::new(WorkerRules {
            egress: setup.egress.rules(),
            databases: setup.database_quota,
            lease_ttl_ms: Some(lease_ttl_ms),
        });
        let (sessions, groups) = (store.reader()?.worker_sessions()?, store.reader()?.runner_groups()?);
        let config = Config {
            seed: seed(),
            lease_ttl_ms,
            sessions,
            has_groups: !groups.is_empty(),
            resources: Arc::new(resources),
            rules: rules.clone(),
            check_child,
            activities: vitals.of_engine(),
            quarantined,
            uploads_artifacts,
            ..Config::default()
        };
        let watchdog = Watchdog::start(vitals.clone(), setup.stall_timeout)?;
        let engine = Engine::start_with(store, config, watch)?;
        let remote =
            Arc::new(RemoteWorkers::new(engine.handle(), remote_config(rules)?, lease_ttl_ms, groups));
        // The limits must apply before the first slot is offered.
        engine.handle().ask(Request::Limit(limits), |_| {});
        warnings.extend(lost_hooks);
        let mut embedded = Embedded {
            pool: None,
            engine,
            folder,
            vault,
            rights,
            storage,
            artifacts,
            versions,
            seal,
            warnings,
            vitals,
            watchdog,
            remote,
        };
        match setup.workers {
            Workers::Pool => embedded.work(None, setup.keeps_workdirs)?,
            Workers::Slots(slots) => embedded.work(Some(slots), setup.keeps_workdirs)?,
            Workers::None => {}
        }
        Ok(embedded)
    }

    fn work(&mut self, slots: Option<u32>, keeps_workdirs: bool) -> anyhow::Result<()> {
        inherited().keep();
        let (program, supervisor, sandbox) = own_commands()?;
        let worker = windlass_worker::host_name();
        let mut config = PoolConfig::new(worker, supervisor, sandbox);
        config.helper = Some(program);
        config.cache = self.folder.path().join("cache");
        config.folders = Some(self.folder.path().join("work"));
        // A sandbox process works in another folder.
        config.databases = Some(std::path::absolute(self.folder.path().join("databases"))?);
        config.slots = slots.unwrap_or(config.slots);
        config.keeps_workdirs = keeps_workdirs;
        config.activity = self.vitals.of_pool();
        let engine = self.engine.handle();
        self.pool = Some(Pool::start(config, Arc::new(move |call, reply| engine.send(call, reply)))?);
        Ok(())
    }

    /// Returns the state of workers outside of this process.
    pub(crate) fn remote(&self) -> Arc<RemoteWorkers> {
        self.remote.clone()
    }

    /// Returns the secrets of the folder.
    pub fn vault(&self) -> Arc<SharedVault> {
        self.vault.clone()
    }

    /// Returns the rights of definitions.
    pub fn rights(&self) -> Arc<TenantRights> {
        self.rights.clone()
    }

    /// Returns the storage limits and usage.
    pub fn storage(&self) -> Arc<Storage> {
        self.storage.clone()
    }

    /// Returns the large values of all tenants.
    pub fn artifacts(&self) -> Artifacts {
        self.artifacts.clone()
    }

    /// Returns the cache of versions of definitions.
    pub fn versions(&self) -> Arc<Versions> {
        self.versions.clone()
    }

    /// Returns the key that seals audit rows; None while the folder has none.
    pub fn seal(&self) -> Option<Arc<AuditSeal>> {
        self.seal.clone()
    }

    /// Returns problems that do not keep the engine from running.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns the health probe of the threads of this engine.
    pub(crate) fn pulse(&self) -> Pulse {
        Pulse { vitals: self.vitals.clone(), pool: self.pool.as_ref().map(Pool::pinger) }
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn handle(&self) -> Handle {
        self.engine.handle()
    }

    /// Receives the reason when the engine ends by itself, because it must not continue.
    pub fn ended(&self) -> &Receiver<Option<Fatal>> {
        self.engine.ended()
    }

    /// Sends a request to the engine, and waits for the answer.
    pub fn ask(&self, request: Request) -> anyhow::Result<EngineAnswer> {
        let (sender, answers) = bounded(1);
        self.handle().ask(request, move |answer| drop(sender.send(answer)));
        self.wait_for(&answers)
    }

    /// Waits for the next answer. If the engine ends before it, the error is the reason of the end.
    pub fn wait_for<T>(&self, answers: &Receiver<T>) -> anyhow::Result<T> {
        select! {
            recv(answers) -> answer => match answer {
                Ok(answer) => Ok(answer),
                Err(_) => Err(ended(self.ended().recv().ok().flatten())),
            },
            recv(self.ended()) -> fatal => Err(ended(fatal.ok().flatten())),
        }
    }

    /// Stops the pool, which returns its work to the engine, then the engine. All decisions are on disk afterwards.
    pub fn stop(self) -> anyhow::Result<()> {
        drop(self.pool);
        let fatal = self.engine.stop();
        drop(self.watchdog);
        match &fatal {
            None => self.vitals.end_in_order(),
            Some(_) => self.vitals.end_in_trouble(),
        }
        drop(self.folder);
        fatal.map_or(Ok(()), |fatal| Err(fatal.into()))
    }
}

/// Sets the attributes of this process, and returns those that programs of steps get.
fn inherited() -> Inherited {
    Inherited {
        umask: make_private(),
        open_files: descriptors::raise().before,
        huge_pages: huge_pages::avoid(),
    }
}

/// Returns the path of this program, and how it is called as a supervisor and as a sandbox.
fn own_commands() -> anyhow::Result<(PathBuf, OwnCommand, OwnCommand)> {
    let program = std::env::current_exe().context("cannot find the path of this program")?;
    let own = |name: &str| OwnCommand { program: program.clone(), args: vec![name.into()] };
    Ok((program.clone(), own(SUPERVISE), own(SANDBOX)))
}

/// Starts the workers of a process that has no engine of its own, with a port to the engine of a server.
pub fn worker_pool(
    worker: String,
    slots: Option<u32>,
    folder: &Path,
    keeps_workdirs: bool,
    port: Port,
) -> anyhow::Result<Pool> {
    inherited().keep();
    let (program, supervisor, sandbox) = own_commands()?;
    let mut config = PoolConfig::new(worker, supervisor, sandbox);
    config.helper = Some(program);
    config.cache = folder.join("cache");
    config.folders = Some(folder.join("work"));
    config.keeps_workdirs = keeps_workdirs;
    config.databases = Some(std::path::absolute(folder.join("databases"))?);
    config.slots = slots.unwrap_or(config.slots);
    Ok(Pool::start(config, port)?)
}

pub(crate) fn remote_config(rules: Arc<WorkerRules>) -> anyhow::Result<RemoteConfig> {
    let (_, supervisor, sandbox) = own_commands()?;
    Ok(RemoteConfig { supervisor, sandbox, rules })
}

/// Limits of a tenant that has none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shares {
    pub slots: Share,
    /// Executions that have not ended; None: no limit.
    pub open_executions: Option<u32>,
}

/// Returns the limits of all tenants. A single tenant may use all slots.
#[must_use]
pub fn limits(shares: Shares, tenants: &[StoredTenant]) -> Limits {
    let count = |limit: u32| Some(limit as usize).filter(|limit| *limit > 0);
    let own = |limit: fn(&StoredTenant) -> Option<u32>| {
        let own = tenants.iter().filter_map(move |tenant| Some((tenant.id.clone(), count(limit(tenant)?))));
        own.collect()
    };
    let each = if tenants.len() > 1 || shares.slots != Share::Fair { shares.slots } else { Share::All };
    Limits {
        slots: SlotLimits { each, own: own(|tenant| tenant.limits.slots) },
        open: OpenLimits {
            each: shares.open_executions.and_then(count),
            own: own(|tenant| tenant.limits.open_executions),
        },
    }
}

/// Opens the store of a folder without an engine. Audit rows are sealed as by an engine.
pub fn open_store(folder: &Folder, secrets: EngineSecrets) -> anyhow::Result<Database> {
    let mut store = Database::open(&Folder::store(folder.path()))?;
    let (vault, _) = vault(folder.path(), secrets)?;
    seal(&vault, false)?.into_iter().for_each(|seal| store.seal_audit(seal));
    Ok(store)
}

/// Returns the key of the audit log.
fn seal(vault: &SharedVault, creates: bool) -> anyhow::Result<Option<Arc<AuditSeal>>> {
    match creates {
        true => vault.lock().make_audit_seal().map(Some),
        false => vault.lock().audit_seal(),
    }
}

/// Opens the vault. Secrets that cannot be decrypted are a warning: other work continues.
fn vault(folder: &Path, secrets: EngineSecrets) -> anyhow::Result<(Arc<SharedVault>, Vec<String>)> {
    let mut vault = LocalVault::of(folder, secrets)?;
    let warning = vault.unreadable()?.map(|(count, error)| {
        format!("{count} secrets cannot be decrypted, and steps that use them fail: {error:#}")
    });
    Ok((Arc::new(SharedVault::new(vault)), warning.into_iter().collect()))
}

/// Returns the error of an engine that ended by itself.
pub fn ended(fatal: Option<Fatal>) -> anyhow::Error {
    fatal.map_or_else(|| anyhow!("the engine stopped without giving a reason"), Into::into)
}

pub fn now() -> Millis {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Returns an id for a new workflow.
#[must_use]
pub fn new_workflow_id() -> WorkflowId {
    WorkflowId(new_id().0)
}

fn new_id() -> ExecutionId {
    let random = u128::from(seed()) << 64 | u128::from(seed());
    new_execution_id(now(), random)
}

/// Returns a random number, from the source that seeds the standard library's hash maps.
pub fn seed() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
