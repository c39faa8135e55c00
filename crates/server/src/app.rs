//! What every request has at hand.

use crate::audit::RefusedRequests;
use crate::auth::{Directory, Jwt};
use crate::compiling::Compiling;
use crate::definitions::Definitions;
use crate::hub::Hub;
use crate::limits::RateLimits;
use crate::open_executions::OpenExecutions;
use crate::problem::Problem;
use crate::readers::Readers;
use crate::rights::TenantRights;
use crate::routes::{Estimates, Prepared};
use crate::settings::Settings;
use crate::storage::Storage;
use crate::stories::Stories;
use crate::streams::{StreamPlace, Streams};
use crate::traces::Traces;
use crate::vault::SharedVault;
use crate::webhook_secrets::WebhookSecrets;
use std::sync::Arc;
use tokio::sync::{oneshot, watch};
use windlass_engine::{Answer, Handle, Request};
use windlass_store::{Applied, AuditSeal, Entry, Tenant};

#[derive(Debug)]
pub struct App {
    pub engine: Handle,
    /// For requests.
    pub readers: Readers,
    /// For those who follow executions: streams, webhooks, traces.
    pub followers: Readers,
    pub settings: Settings,
    pub directory: Directory,
    pub jwt: Option<Jwt>,
    pub rates: RateLimits,
    pub open: OpenExecutions,
    pub definitions: Definitions,
    pub secrets: Arc<SharedVault>,
    pub rights: Arc<TenantRights>,
    pub storage: Arc<Storage>,
    /// The key of the audit log and of anchors; None while the folder has none.
    pub seal: Option<Arc<AuditSeal>>,
    pub refusals: RefusedRequests,
    pub webhook_secrets: WebhookSecrets,
    pub hub: Arc<Hub>,
    pub stories: Arc<Stories>,
    pub compiling: Compiling,
    pub prepared: Prepared,
    pub estimates: Estimates,
    /// Where executions are told as traces, if anywhere.
    pub traces: Option<Arc<Traces>>,
    /// Places for streams.
    streams: Streams,
    stopping: watch::Sender<bool>,
}

/// What an app is made of.
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
    pub seal: Option<Arc<AuditSeal>>,
    pub hub: Arc<Hub>,
    pub traces: Option<Arc<Traces>>,
}

impl App {
    #[must_use]
    pub fn new(parts: Parts) -> App {
        let Parts { engine, readers, settings, directory, jwt, secrets, rights, storage, seal, hub, traces } =
            parts;
        let streams = Streams::new(settings.max_streams);
        App {
            engine,
            followers: readers.patient(),
            readers,
            settings,
            directory,
            jwt,
            rates: RateLimits::default(),
            open: OpenExecutions::default(),
            definitions: Definitions::default(),
            webhook_secrets: WebhookSecrets::new(secrets.clone()),
            secrets,
            rights,
            storage,
            seal,
            refusals: RefusedRequests::default(),
            hub,
            stories: Arc::default(),
            compiling: Compiling::default(),
            prepared: Prepared::default(),
            estimates: Estimates::default(),
            traces,
            streams,
            stopping: watch::channel(false).0,
        }
    }

    /// Asks the engine. The answer comes after everything it says is on disk.
    pub async fn ask(&self, request: Request) -> Result<Answer, Problem> {
        self.ask_holding((), request).await
    }

    /// Asks the engine, and holds something until it has answered, also when nobody waits for the answer any more.
    pub async fn ask_holding<H: Send + 'static>(&self, held: H, request: Request) -> Result<Answer, Problem> {
        let (told, answer) = oneshot::channel();
        let answered = move |answer| {
            drop(held);
            drop(told.send(answer));
        };
        if !self.engine.try_ask(request, answered) {
            return Err(Problem::unavailable("the engine has more to do than it can take; ask again"));
        }
        match answer.await {
            Ok(Answer::Stopping) | Err(_) => {
                Err(Problem::unavailable("the server is being stopped; ask again"))
            }
            Ok(answer) => Ok(answer),
        }
    }

    /// Keeps rows beside executions, all of them or none, and says what became of each.
    pub async fn keep(&self, entries: Vec<Entry>) -> Result<Vec<Applied>, Problem> {
        match self.ask(Request::Keep(entries)).await? {
            Answer::Kept(applied) => Ok(applied),
            other => Err(misfit(&other)),
        }
    }

    /// Work that may wait for the disk or take long, on a thread that may.
    pub async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        tokio::task::spawn_blocking(work).await.map_err(Problem::internal)
    }

    /// Requests are taken, and what the last process left is known.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.engine.is_recovered() && !*self.stopping.borrow()
    }

    /// A place for a stream of a tenant, free again when it is dropped.
    pub fn stream_place(&self, tenant: &Tenant) -> Result<StreamPlace, Problem> {
        self.streams.take(tenant, self.directory.streams(tenant, &self.settings))
    }

    /// From now on load balancers are told to send nothing more, and streams end.
    pub fn stops(&self) {
        self.stopping.send_replace(true);
    }

    /// Comes when the server is being stopped: whoever would wait longer ends then.
    pub async fn stopped(&self) {
        // The sender lives as long as `self`, so there is no other answer.
        let _ = self.stopping.subscribe().wait_for(|stopping| *stopping).await;
    }
}

/// An answer that does not fit the question is a defect.
pub fn misfit(answer: &Answer) -> Problem {
    Problem::internal(format!("the engine gave an answer that does not fit the question: {answer:?}"))
}
