//! The in-process pool: the session and the pipelines over threads, processes and the clock.
//!
//! One thread with one loop. Everything that can happen arrives as an [`Input`]; units are tasks next to the loop that
//! send the same inputs.

mod log;
mod unit;
pub(crate) mod whole;

pub use log::CHUNK_MAX;
pub(crate) use log::{Lines, log};
pub(crate) use unit::{RunNeed, advance_run, begin, bound_depth};

use crate::activity::{Activity, Unwatched, note_polls};
use crate::claim::{Claim, first_reply};
use crate::command::OwnCommand;
use crate::egress::Egress;
use crate::failure::failure;
use crate::folder::make_folder;
use crate::halt::{HaltSender, halt};
use crate::keeper;
use crate::kits::Kits;
use crate::session::{Input, LAST_ANSWERS_MS, Output, Session};
use crate::tools::{Clients, GRACE_MS, Kit};
use serde_json::Map;
use std::collections::BTreeMap;
use std::env::temp_dir;
use std::io;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle, available_parallelism};
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use unit::UnitChannels;
use windlass_protocol::{
    Call, Failure, Outcome, PROTOCOL_VERSION, Register, Reply, ReplyTo, Report, Unit, Work, codes,
};

/// Connection to the engine: sends a call and returns at once. See [`Call`] for the order of calls and the meaning of
/// their replies.
pub type Port = Arc<dyn Fn(Call, ReplyTo) + Send + Sync>;

/// Default number of slots per core. Steps mostly wait: for servers, for other processes, for disks. Four per core
/// keep the cores busy, and are few enough for steps that compute to share them well.
const SLOTS_PER_CORE: u32 = 4;

/// Maximum number of pings that wait for the pool's thread.
const PINGS: usize = 16;

#[derive(Debug, Clone)]
pub struct PoolConfig {
    /// Name of the worker, for people.
    pub worker: String,
    /// Maximum number of units at a time.
    pub slots: u32,
    /// Time between TERM and KILL when an attempt times out and when the pool is shut down.
    pub grace_ms: u64,
    /// Command that calls [`crate::supervisor::run`].
    pub supervisor: OwnCommand,
    /// Command that calls [`crate::sandbox::run`].
    pub sandbox: OwnCommand,
    /// Client program for scripts of nodes, called with `node`: see [`crate::node::helper`].
    pub helper: Option<PathBuf>,
    /// Parent of the folders of nodes, which contain values of secrets. It is for this pool only: files of an earlier
    /// process that was killed are removed at the start. None: the default folder of the system.
    pub folders: Option<PathBuf>,
    /// Whether folders of executions that a worker holds as a whole are kept, without values of secrets.
    pub keeps_workdirs: bool,
    /// Parent of the SQLite databases of nodes, in a folder for each tenant; None: databases are not available.
    pub databases: Option<PathBuf>,
    /// Folder of caches, such as environments of python packages.
    pub cache: PathBuf,
    /// Reporter of the current unit of the pool's thread.
    pub activity: Arc<dyn Activity>,
}

/// Returns the default number of units that a pool runs at a time.
#[must_use]
pub fn default_slots() -> u32 {
    let cores = available_parallelism().map_or(1, NonZero::get);
    u32::try_from(cores).unwrap_or(u32::MAX).saturating_mul(SLOTS_PER_CORE)
}

impl PoolConfig {
    #[must_use]
    pub fn new(worker: impl Into<String>, supervisor: OwnCommand, sandbox: OwnCommand) -> PoolConfig {
        let cache = temp_dir().join(format!("windlass-cache-{}", rustix::process::getuid().as_raw()));
        PoolConfig {
            worker: worker.into(),
            slots: default_slots(),
            grace_ms: GRACE_MS,
            supervisor,
            sandbox,
            helper: None,
            folders: None,
            keeps_workdirs: false,
            databases: None,
            cache,
            activity: Arc::new(Unwatched),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    #[error("the thread of the worker pool cannot be started: {0}; raise the limits of threads and memory")]
    Thread(#[from] io::Error),
}

/// A running pool. Dropping it shuts it down.
#[derive(Debug)]
pub struct Pool {
    inputs: mpsc::UnboundedSender<Input>,
    grace_ms: u64,
    thread: Option<JoinHandle<()>>,
    pinger: Pinger,
}

/// Checks whether the pool's thread responds.
#[derive(Debug, Clone)]
pub struct Pinger(mpsc::Sender<oneshot::Sender<()>>);

impl Pinger {
    /// Sends a ping, which the pool's thread answers. Returns false if the thread has ended, or many pings wait for it.
    pub async fn ping(&self) -> bool {
        let (answered, answer) = oneshot::channel();
        self.0.try_send(answered).is_ok() && answer.await.is_ok()
    }
}

impl Pool {
    /// Registers with the engine and runs its orders, until it is shut down.
    pub fn start(config: PoolConfig, port: Port) -> Result<Pool, PoolError> {
        let kits = Kits {
            supervisor: config.supervisor,
            sandbox: config.sandbox,
            clients: Arc::new(Clients::new(Egress::default())),
            rules: Arc::default(),
            helper: config.helper,
            folders: emptied(config.folders)?,
            keeps_workdirs: config.keeps_workdirs,
            databases: config.databases,
            cache: std::path::absolute(config.cache)?,
            venvs: Arc::default(),
            tokens: BTreeMap::new(),
            bounds: BTreeMap::new(),
        };
        let (parking, unparking) = (config.activity.clone(), config.activity.clone());
        let runtime = Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || parking.begin_wait())
            .on_thread_unpark(move || unparking.begin_work())
            .build()?;
        let (pings, pinged) = mpsc::channel(PINGS);
        // Unbounded, because the engine's thread must not wait. It stays short: there are `slots` units at most, and
        // each has one message in the channel.
        let (inputs, received) = mpsc::unbounded_channel();
        let register = Register { protocol: PROTOCOL_VERSION, worker: config.worker, slots: config.slots };
        let floor = PoolThread {
            session: Session::new(register),
            port,
            kits,
            grace_ms: config.grace_ms,
            inputs: inputs.clone(),
            units: BTreeMap::new(),
            tasks: JoinSet::new(),
            ids: BTreeMap::new(),
            began: std::time::Instant::now(),
            activity: config.activity,
            pinged,
        };
        let run = move || runtime.block_on(floor.run(received));
        let thread = thread::Builder::new().name("windlass-pool".to_owned()).spawn(run)?;
        Ok(Pool { inputs, grace_ms: config.grace_ms, thread: Some(thread), pinger: Pinger(pings) })
    }

    #[must_use]
    pub fn pinger(&self) -> Pinger {
        self.pinger.clone()
    }

    /// Finishes running units and takes no new ones; then the pool ends.
    pub fn drain(&self) {
        let _ = self.inputs.send(Input::Drain);
    }

    /// Returns whether the pool has ended after a drain.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Kills running units without reporting them, and waits until their processes have ended.
    pub fn shutdown(mut self) {
        self.end();
    }

    fn end(&mut self) {
        let _ = self.inputs.send(Input::Shutdown { grace_ms: self.grace_ms });
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.end();
    }
}

/// The thread of the pool.
struct PoolThread {
    session: Session,
    port: Port,
    kits: Kits,
    grace_ms: u64,
    inputs: mpsc::UnboundedSender<Input>,
    units: BTreeMap<Unit, Local>,
    tasks: JoinSet<unit::Result>,
    ids: BTreeMap<Id, Unit>,
    began: std::time::Instant,
    activity: Arc<dyn Activity>,
    pinged: mpsc::Receiver<oneshot::Sender<()>>,
}

/// Channels from the pool to a unit.
struct Local {
    halt: HaltSender,
    proceed: mpsc::Sender<()>,
    kit: Arc<Kit>,
    /// The grace of a stop that waits for the steps of this execution.
    stop_after_steps: Option<u64>,
}

impl PoolThread {
    async fn run(mut self, mut received: mpsc::UnboundedReceiver<Input>) {
        let mut input = Input::Tick;
        while !self.session.is_closed() {
            if let Input::Replied { reply: Reply::Registered(registered), .. } = &input {
                self.kits.follow(&registered.rules);
            }
            let now = self.now();
            for output in self.session.handle(now, input) {
                self.carry_out(output);
            }
            input = if self.session.is_closed() { Input::Tick } else { self.happening(&mut received).await };
        }
        self.leave().await;
    }

    /// Ends the session. If the engine does not answer, it detects the end of the session by itself.
    async fn leave(&self) {
        let Some(session) = self.session.id() else { return };
        let (reply_to, answer) = first_reply();
        (self.port)(Call::Leave(session), reply_to);
        let _ = timeout(Duration::from_millis(LAST_ANSWERS_MS), answer).await;
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn happening(&mut self, received: &mut mpsc::UnboundedReceiver<Input>) -> Input {
        let wake_at = self.session.wake_at();
        let wake = Instant::from_std(self.began) + Duration::from_millis(wake_at.unwrap_or_default());
        tokio::select! {
            input = received.recv() => input.unwrap_or(Input::Shutdown { grace_ms: self.grace_ms }),
            Some(ended) = self.tasks.join_next_with_id() => self.ended(ended),
            Some(answered) = self.pinged.recv() => {
                // The caller may have stopped waiting.
                let _ = answered.send(());
                Input::Tick
            }
            () = sleep_until(wake), if wake_at.is_some() => Input::Tick,
        }
    }

    fn ended(&mut self, ended: Result<(Id, unit::Result), JoinError>) -> Input {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let unit = self.ids.remove(&id).expect("a task is listed when it is spawned");
        let local = self.units.remove(&unit).expect("a unit is listed as long as its task");
        // The report may be large, and is redacted here.
        self.activity.begin_unit(unit);
        let mut report = match ended {
            Ok((_, report)) => report,
            Err(error) => {
                let outcome = Outcome::Failed(*broken(&error));
                Some(Box::new(Report { unit, outcome, patch: Map::new(), metadata: Map::new() }))
            }
        };
        // Every report passes through here, so that no value of a secret leaves with it.
        if let Some(report) = &mut report {
            keeper::redact_report(&local.kit.keeper, report);
        }
        self.activity.begin_work();
        if let Some(whole) = self.whole_of(unit)
            && let Some(grace_ms) = self.units[&whole].stop_after_steps
        {
            self.stop(whole, grace_ms);
        }
        Input::Ended { unit, report }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Call { id: to, call } => {
                let inputs = self.inputs.clone();
                let reply = move |reply| drop(inputs.send(Input::Replied { to, reply }));
                (self.port)(call, Box::new(reply));
            }
            Output::Start(work) => self.start(*work),
            Output::Proceed(unit) => {
                if let Some(local) = self.units.get(&unit) {
                    // The channel has room for the one reply that the unit waits for; a unit that ended waits for none.
                    let _ = local.proceed.try_send(());
                }
            }
            Output::Stop { unit, grace_ms } => self.stop(unit, grace_ms),
        }
    }

    /// Stops a unit. An execution that is held as a whole stops when its steps have ended: its folder is removed then,
    /// and a program that still runs could write to it again.
    fn stop(&mut self, unit: Unit, grace_ms: u64) {
        let has_steps = self.has_steps(unit);
        let Some(local) = self.units.get_mut(&unit) else { return };
        if has_steps {
            local.stop_after_steps = Some(grace_ms);
        } else {
            local.halt.request(grace_ms);
        }
    }

    fn has_steps(&self, whole: Unit) -> bool {
        self.units.keys().any(|unit| whole.is_whole_of(*unit))
    }

    /// Returns the execution that a step belongs to, if this worker holds it as a whole.
    fn whole_of(&self, step: Unit) -> Option<Unit> {
        self.units.keys().find(|unit| unit.is_whole_of(step)).copied()
    }

    fn start(&mut self, work: Work) {
        let unit = work.unit;
        let claim = Claim { unit, port: Arc::clone(&self.port) };
        let whole = self.whole_of(unit).map(|whole| Arc::clone(&self.units[&whole].kit.keeper));
        let kit = self.kits.for_unit(&work.tenant, claim, whole);
        let (halt_sender, halt) = halt();
        let (proceed, kept) = mpsc::channel(1);
        let channels = UnitChannels {
            inputs: self.inputs.clone(),
            proceed: kept,
            kit: Arc::clone(&kit),
            grace_ms: self.grace_ms,
        };
        let activity = Arc::clone(&self.activity);
        let task = if unit.is_whole() {
            self.tasks.spawn(note_polls(activity, unit, whole::run(work, channels, halt)))
        } else {
            self.tasks.spawn(note_polls(activity, unit, unit::run(work, channels, halt)))
        };
        self.ids.insert(task.id(), unit);
        self.units.insert(unit, Local { halt: halt_sender, proceed, kit, stop_after_steps: None });
    }
}

/// Removes files of a process that was killed.
fn emptied(folders: Option<PathBuf>) -> io::Result<PathBuf> {
    let Some(folders) = folders else { return Ok(temp_dir()) };
    // Programs get the path and start in another directory, so it must be absolute.
    let folders = std::path::absolute(folders)?;
    make_folder(&folders)?;
    Ok(folders)
}

/// Returns the failure of a defect of the worker, which ends only this unit.
fn broken(error: &JoinError) -> Box<Failure> {
    failure(codes::WORKER_DEFECT, format!("the worker failed because of a defect: {error}"))
}
