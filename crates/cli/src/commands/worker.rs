//! `windlass worker`: a process that runs steps for a server, also on another machine.

use crate::exit::Usage;
use crate::progress::say;
use anyhow::{Context, anyhow};
use crossbeam_channel::{Receiver, Sender, bounded, select, tick, unbounded};
use rustix::fs::{FlockOperation, flock};
use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::host::worker_pool;
use windlass_worker::{LinkConfig, LinkNews, Pool, connect, host_name, remove_folder};

/// Maximum number of worker processes that share one folder.
const WORKERS_MAX: u32 = 1_000;
/// Folder of large values on their way to a step.
const DOWNLOADS: &str = "downloads";
/// Interval at which a draining worker checks whether it is done.
const LOOK: Duration = Duration::from_millis(100);

/// Run steps for a server, in a group of workers
///
/// Takes executions and steps that are bound to the group, runs them here, and reports to the server. The token comes
/// from WINDLASS_TOKEN. On Ctrl-C or SIGTERM it finishes its work and takes no more; a second signal returns the rest
/// to the server.
#[derive(Debug, clap::Args)]
pub struct Worker {
    /// URL of the server
    #[arg(long, value_name = "URL", env = "WINDLASS_URL")]
    server: String,
    /// Group of workers that this one belongs to
    #[arg(long, value_name = "NAME")]
    group: String,
    /// Cluster that this worker is in
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Maximum number of executions and steps at a time; an execution of a plan takes one slot for all its steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    slots: Option<u32>,
    /// Folder for work dirs and caches
    #[arg(long, value_name = "DIR", default_value = ".windlass-worker")]
    data: PathBuf,
    /// Leave work dirs of ended executions of plans, without values of secrets, until a worker starts in the folder
    #[arg(long)]
    keep_workdirs: bool,
    /// Maximum time to finish its work after the first signal, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    drain_seconds: u64,
}

impl Worker {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let secrets = EngineSecrets::take_from_environment(&[])?;
        let token = secrets.get("WINDLASS_TOKEN").filter(|token| !token.is_empty());
        let token = token.ok_or_else(|| {
            Usage::new(
                "WINDLASS_TOKEN is not set; create a token with `windlass tokens create NAME --role worker`",
            )
        })?;
        let place = WorkerFolder::take(&self.data)?;
        let signals = listen()?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let config = LinkConfig {
            server: self.server.clone(),
            token: token.to_owned().into(),
            group: self.group.clone(),
            cluster: self.cluster.clone(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            downloads: place.folder.join(DOWNLOADS),
        };
        let (sender, news) = unbounded();
        // The pool drops its port when it has ended.
        let _news_stay_open = sender.clone();
        let port = {
            let _inside = runtime.enter();
            connect(config, Arc::new(move |notice| drop(sender.send(notice))))?
        };
        // Several worker processes can run on one machine.
        let name = format!("{}:{}", host_name(), std::process::id());
        let pool = worker_pool(name, self.slots, &place.folder, self.keep_workdirs, port)?;
        let ended = self.watch(pool, &signals, &news);
        runtime.shutdown_background();
        ended
    }

    /// Runs until it is drained, stopped or refused.
    fn watch(
        &self,
        pool: Pool,
        signals: &Receiver<()>,
        news: &Receiver<LinkNews>,
    ) -> anyhow::Result<ExitCode> {
        let looks = tick(LOOK);
        let mut draining: Option<Instant> = None;
        let mut was_reachable = true;
        loop {
            select! {
                recv(signals) -> _ => match draining {
                    None => {
                        say("finishing running work; a second signal returns it to the server");
                        draining = Some(Instant::now() + Duration::from_secs(self.drain_seconds));
                        pool.drain();
                    }
                    Some(_) => return Ok(give_back(pool)),
                },
                recv(news) -> notice => match notice {
                    Ok(LinkNews::Registered) => {
                        was_reachable = true;
                        say(&format!("working for the group `{}` at {}", self.group, self.server));
                    }
                    Ok(LinkNews::Unreachable(why)) => {
                        if std::mem::replace(&mut was_reachable, false) {
                            say(&format!("the server does not answer, trying again: {why}"));
                        }
                    }
                    Ok(LinkNews::Refused(why)) => {
                        pool.shutdown();
                        return Err(anyhow!("the server refuses this worker: {why}"));
                    }
                    Err(_) => return Err(anyhow!("the connection to the server ended")),
                },
                recv(looks) -> _ => {
                    if pool.is_over() {
                        pool.shutdown();
                        say("all work is finished");
                        return Ok(ExitCode::SUCCESS);
                    }
                    if draining.is_some_and(|until| Instant::now() >= until) {
                        return Ok(give_back(pool));
                    }
                }
            }
        }
    }
}

fn give_back(pool: Pool) -> ExitCode {
    say("returning running work to the server");
    pool.shutdown();
    ExitCode::SUCCESS
}

/// The folder of one worker process among those that share a folder. Files of a process that was killed are removed by
/// the next process that uses its folder.
#[derive(Debug)]
struct WorkerFolder {
    folder: PathBuf,
    /// Locked as long as the process runs.
    _lock: File,
}

impl WorkerFolder {
    fn take(data: &Path) -> anyhow::Result<WorkerFolder> {
        DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(data)
            .with_context(|| format!("cannot create {}", data.display()))?;
        for number in 1..=WORKERS_MAX {
            let file = lock_file(data, number);
            let lock = File::options().create(true).append(true).open(&file);
            let lock = lock.with_context(|| format!("cannot open {}", file.display()))?;
            if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
                remove_leftovers(data, number);
                let folder = data.join(number.to_string());
                remove_work(&folder);
                return Ok(WorkerFolder { folder, _lock: lock });
            }
        }
        Err(anyhow!("{WORKERS_MAX} workers use {}; use another folder with --data", data.display()))
    }
}

fn lock_file(data: &Path, number: u32) -> PathBuf {
    data.join(format!("{number}.lock"))
}

/// Removes the work of killed processes from the folders after this one, which no process may take again.
fn remove_leftovers(data: &Path, own: u32) {
    for number in own + 1..=WORKERS_MAX {
        // Folders are taken in order: without a lock file, no process has used the folder.
        let Ok(lock) = File::options().append(true).open(lock_file(data, number)) else { return };
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove_work(&data.join(number.to_string()));
        }
    }
}

/// Removes inputs and outputs of steps, which may hold values of secrets. Caches and databases stay.
fn remove_work(folder: &Path) {
    for part in ["work", DOWNLOADS] {
        let part = folder.join(part);
        if let Err(error) = remove_folder(&part) {
            say(&format!("warning: {} of a killed worker is not removed: {error}", part.display()));
        }
    }
}

/// Sends every signal that requests an end to the channel.
fn listen() -> anyhow::Result<Receiver<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let (mut interrupts, mut terms) = runtime.block_on(async {
        Ok::<_, std::io::Error>((signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    })?;
    let (heard, signals): (Sender<()>, _) = bounded(4);
    let listening = async move {
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = terms.recv() => {}
            }
            if heard.send(()).is_err() {
                return;
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || runtime.block_on(listening))?;
    Ok(signals)
}
