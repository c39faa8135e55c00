//! Setup of every benchmark: the engine over the SQLite store in a fresh folder, and a worker.

use super::trace::Trace;
use super::watched::{Tally, Watched};
use super::worker::{Habits, Notes, Worker};
use crate::embedded::new_workflow_id;
use anyhow::{Context, anyhow, bail};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use windlass_engine::{Engine, EngineAnswer, Folder, Handle, Request};
use windlass_kernel::{Millis, Net};
use windlass_store::sqlite::Sqlite;
use windlass_store::{Definition, DefinitionId, StoredManifest, Target, Tenant};

#[derive(Debug)]
pub struct Rig {
    engine: Engine,
    worker: Worker,
    tally: Arc<Tally>,
    /// Locked as long as the engine runs.
    folder: Folder,
}

/// Options of a rig.
#[derive(Debug, Clone)]
pub struct Setup {
    pub output: Value,
    pub keeps_moments: bool,
    pub trace: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Setup { output: json!({ "ok": true }), keeps_moments: false, trace: false }
    }
}

impl Rig {
    pub fn open(folder: &Path, setup: Setup) -> anyhow::Result<Rig> {
        let held = Folder::hold(folder, "windlass bench")?;
        let store = Sqlite::open(&Folder::store(folder))?;
        let trace = match setup.trace {
            true => Some(Trace::new(&trace_log(folder)).context("cannot write the trace")?),
            false => None,
        };
        let tally = Arc::new(Tally::new(trace));
        let engine = Engine::start(Watched::new(store, tally.clone()), seed())?;
        let habits = Habits { output: setup.output, keeps_moments: setup.keeps_moments };
        let worker = Worker::start(&engine.handle(), habits, tally.clone())?;
        Ok(Rig { engine, worker, tally, folder: held })
    }

    pub fn handle(&self) -> Handle {
        self.engine.handle()
    }

    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    pub fn tally(&self) -> &Arc<Tally> {
        &self.tally
    }

    pub fn notes(&self) -> &Notes {
        self.worker.notes()
    }

    pub fn define(&self, name: &str, net: Net) -> anyhow::Result<DefinitionId> {
        let definition = Definition {
            tenant: Tenant::default(),
            target: Target::Named(new_workflow_id()),
            name: format!("bench/{name}"),
            dialect: "bench".into(),
            source: name.to_owned(),
            workload: json!({}),
            manifest: StoredManifest::default(),
            net: Arc::new(net),
            hooks: Vec::new(),
            schedules: Vec::new(),
            at: now(),
            status: None,
            author: None,
        };
        match self.handle().call(Request::Define(Box::new(definition))) {
            Some(EngineAnswer::Defined { id, .. }) => Ok(id),
            other => bail!("the engine did not take the definition: {other:?}"),
        }
    }

    /// Ends engine and worker. Everything is on disk then, and the folder is released.
    pub fn close(self) -> anyhow::Result<()> {
        let refused = self.worker.notes().refused();
        self.worker.stop();
        let fatal = self.engine.stop();
        drop(self.folder);
        match (fatal, refused) {
            (Some(fatal), _) => Err(anyhow!(fatal).context("the engine ended")),
            (None, 0) => Ok(()),
            (None, refused) => bail!("{refused} reports of the worker were not accepted"),
        }
    }
}

/// Returns the path of the log of a traced run.
pub fn trace_log(folder: &Path) -> PathBuf {
    folder.join("trace.log")
}

pub fn now() -> Millis {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Millis(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX))
}

/// Ids must differ from those of an earlier run in the same folder.
fn seed() -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(wall.as_nanos() & u128::from(u64::MAX)).unwrap_or(0) ^ u64::from(std::process::id())
}
