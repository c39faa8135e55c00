//! The state that all requests share.

use crate::answers::Answers;
use crate::audit::RefusedRequests;
use crate::auth::{Directory, Jwt};
use crate::compiling::Compiling;
use crate::completion::CompletionTokens;
use crate::definitions::Definitions;
use crate::histories::Histories;
use crate::hub::Hub;
use crate::limits::RateLimits;
use crate::objects::Bucket;
use crate::outbound::Outbound;
use crate::page::SignInCodes;
use crate::plans::Plans;
use crate::problem::{Problem, ProblemCode};
use crate::readers::Readers;
use crate::remote::RemoteWorkers;
use crate::rights::TenantRights;
use crate::routes::Estimates;
use crate::settings::Settings;
use crate::storage::Storage;
use crate::streams::{StreamSlot, Streams};
use crate::traces::Traces;
use crate::vault::SharedVault;
use crate::versions::Versions;
use crate::watchdog::Pulse;
use crate::webhook_secrets::WebhookSecrets;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};
use windlass_engine::{EngineAnswer, Handle, Request};
use windlass_store::{Applied, Artifacts, AuditSeal, Entry, ScheduleWrite, Tenant};

/// Time that `/readyz` waits for the engine: longer than a slow disk takes for a batch, shorter than usual probe timeouts.
const READY_WITHIN: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct App {
    pub engine: Handle,
    /// Readers of the store for requests.
    pub readers: Readers,
    /// Readers of the store for subscribers: streams, webhooks, traces.
    pub followers: Readers,
    pub settings: Settings,
    pub directory: Directory,
    pub jwt: Option<Jwt>,
    /// Bytes that wait for clients.
    pub answers: Arc<Answers>,
    pub rates: RateLimits,
    pub definitions: Definitions,
    pub secrets: Arc<SharedVault>,
    pub rights: Arc<TenantRights>,
    pub storage: Arc<Storage>,
    /// The key of the audit log and of anchors; None while the folder has none.
    pub seal: Option<Arc<AuditSeal>>,
    pub refusals: RefusedRequests,
    /// Refused calls of workers, which do not hide refused requests.
    pub refused_calls: RefusedRequests,
    pub webhook_secrets: WebhookSecrets,
    pub(crate) outbound: Outbound,
    pub completion: CompletionTokens,
    pub hub: Arc<Hub>,
    pub histories: Arc<Histories>,
    pub compiling: Compiling,
    pub versions: Arc<Versions>,
    pub estimates: Estimates,
    pub plans: Plans,
    pub(crate) sign_in_codes: SignInCodes,
    /// Notified when schedules or their runs have changed.
    pub schedule_bell: Notify,
    /// Wakes requests that wait for changes of schedules and runs. They compare what they read, so extra wake-ups
    /// change nothing.
    pub run_bell: Notify,
    /// Notified when a routing target has changed.
    pub routing_bell: Notify,
    /// Notified when a dead letter may have been written.
    pub notice_bell: Notify,
    pub pulse: Pulse,
    /// Workers outside of this process.
    pub remote: Arc<RemoteWorkers>,
    /// Large values of all tenants.
    pub artifacts: Artifacts,
    /// Place to which artifacts are copied; None: they are in the data folder only.
    pub bucket: Option<Arc<Bucket>>,
    /// The exporter of traces, if a collector is set.
    pub traces: Option<Arc<Traces>>,
    streams: Streams,
    stopping: watch::Sender<bool>,
}

/// The parts that an [`App`] is built from.
#[derive(Debug)]
pub struct Parts {
    pub engine: Handle,
    pub readers: Readers,
    pub settings: Settings,
    pub directory: Directory,
    pub jwt: Option<Jwt>,
    pub secrets: Arc<SharedVault>,
    pub rights: Arc<TenantRights>,
    pub storage: Arc<Storage>,
    pub versions: Arc<Versions>,
    pub seal: Option<Arc<AuditSeal>>,
    pub hub: Arc<Hub>,
    pub traces: Option<Arc<Traces>>,
    pub pulse: Pulse,
    /// Whether the process may only read the folder.
    pub reads_only: bool,
    pub remote: Arc<RemoteWorkers>,
    pub artifacts: Artifacts,
    pub bucket: Option<Arc<Bucket>>,
}

impl App {
    #[must_use]
    pub fn new(parts: Parts) -> App {
        let Parts {
            engine,
            readers,
            settings,
            directory,
            jwt,
            secrets,
            rights,
            storage,
            versions,
            seal,
            hub,
            traces,
            pulse,
            reads_only,
            remote,
            artifacts,
            bucket,
        } = parts;
        let streams = Streams::new(settings.max_streams);
        let answers = Arc::new(Answers::new(settings.tenant_answers));
        App {
            engine,
            followers: readers.patient(),
            outbound: Outbound::new(settings.egress.clone()),
            readers,
            settings,
            directory,
            jwt,
            answers,
            rates: RateLimits::default(),
            definitions: Definitions::default(),
            webhook_secrets: WebhookSecrets::new(secrets.clone()),
            completion: CompletionTokens::new(secrets.clone(), !reads_only),
            secrets,
            rights,
            storage,
            seal,
            refusals: RefusedRequests::default(),
            refused_calls: RefusedRequests::default(),
            hub,
            histories: Arc::new(Histories::new(bucket.is_some())),
            compiling: Compiling::default(),
            versions,
            estimates: Estimates::default(),
            plans: Plans::default(),
            sign_in_codes: SignInCodes::default(),
            schedule_bell: Notify::new(),
            run_bell: Notify::new(),
            routing_bell: Notify::new(),
            notice_bell: Notify::new(),
            pulse,
            remote,
            artifacts,
            bucket,
            traces,
            streams,
            stopping: watch::channel(false).0,
        }
    }

    /// Sends a request to the engine. The answer arrives after everything that it reports is on disk.
    pub async fn ask(&self, request: Request) -> Result<EngineAnswer, Problem> {
        let (sender, answer) = oneshot::channel();
        if !self.engine.try_ask(request, move |answer| drop(sender.send(answer))) {
            return Err(Problem::unavailable(
                "the engine is overloaded; retry after the time in Retry-After",
            ));
        }
        match answer.await {
            Ok(EngineAnswer::Stopping) | Err(_) => {
                Err(Problem::unavailable("the server is being stopped; retry later"))
            }
            Ok(answer) => Ok(answer),
        }
    }

    /// Stores rows other than journals, all of them or none, and returns the result of each.
    pub async fn store_entries(&self, entries: Vec<Entry>) -> Result<Vec<Applied>, Problem> {
        let changes_runs = entries.iter().any(changes_runs);
        let answer = self.ask(Request::Keep(entries)).await;
        // Also after an error: the rows may be written.
        if changes_runs {
            self.run_bell.notify_waiters();
        }
        match answer? {
            EngineAnswer::Kept(applied) => Ok(applied),
            other => Err(unexpected_answer(&other)),
        }
    }

    /// Runs work that blocks on a thread for blocking work.
    pub async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
    }

    /// Checks that recovery is complete, that the engine and the pool respond, and that the disk has free space.
    pub async fn is_ready(&self) -> Result<(), Problem> {
        if *self.stopping.borrow() {
            return Err(Problem::unavailable("the server is being stopped; retry later"));
        }
        if !self.engine.is_recovered() {
            return Err(Problem::unavailable("the server is starting; retry later"));
        }
        if let Some(stall) = self.pulse.vitals.stall() {
            return Err(Problem::unavailable(format!("{stall}; see the log of the server")));
        }
        if self.storage.is_disk_full() {
            let message = "the disk has less free space than its reserve; free some, or prune executions";
            return Err(Problem::new(ProblemCode::DiskFull, message));
        }
        let answers = async {
            self.ask(Request::Load).await?;
            match &self.pulse.pool {
                Some(pool) if !pool.ping().await => {
                    Err(Problem::unavailable("the worker pool does not respond; see the log of the server"))
                }
                _ => Ok(()),
            }
        };
        let late = |_| {
            let seconds = READY_WITHIN.as_secs();
            Problem::unavailable(format!(
                "the engine did not respond within {seconds} s; see the log of the server"
            ))
        };
        tokio::time::timeout(READY_WITHIN, answers).await.map_err(late)?
    }

    /// Takes a slot for a stream of a tenant. Dropping the slot frees it.
    pub fn take_stream_slot(&self, tenant: &Tenant) -> Result<StreamSlot, Problem> {
        self.streams.take(tenant, self.directory.streams(tenant, &self.settings))
    }

    /// Begins the stop: `/readyz` reports 503, and streams end.
    pub fn stops(&self) {
        self.stopping.send_replace(true);
    }

    #[must_use]
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Completes when the server is being stopped.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`, so the receiver never fails.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

fn changes_runs(entry: &Entry) -> bool {
    match entry {
        Entry::Audited { entry, .. } => changes_runs(entry),
        Entry::Schedule(write) => !matches!(**write, ScheduleWrite::Renew { .. } | ScheduleWrite::Notice(_)),
        _ => false,
    }
}

/// Returns the error for an answer of the wrong kind, which is a defect of the engine.
pub(crate) fn unexpected_answer(answer: &EngineAnswer) -> Problem {
    Problem::internal(format!("the engine returned an unexpected answer: {answer:?}"))
}

/// The store answers each kind of write with some of the variants. Another one is a defect.
pub(crate) fn unexpected_applied(applied: Applied) -> Problem {
    Problem::internal(format!("the store returned an unexpected answer to a write: {applied:?}"))
}
