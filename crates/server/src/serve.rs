//! The process as a service: the engine, its routes and its connections, from the start to an orderly end.

use crate::app::{App, Parts};
use crate::auth::{Directory, Jwt};
use crate::connections::{Connections, accept};
use crate::descriptors;
use crate::engine_secrets::EngineSecrets;
use crate::first;
use crate::host::{self, Embedded, Setup, Workers};
use crate::hub::Hub;
use crate::logging;
use crate::metrics;
use crate::readers::Readers;
use crate::retention;
use crate::rights::Variables;
use crate::routes;
use crate::settings::Settings;
use crate::socket::FolderSocket;
use crate::storage::StorageLimits;
use crate::traces::Traces;
use crate::webhooks;
use anyhow::Context;
use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use windlass_engine::Folder;
use windlass_store::Entry;
use windlass_store::sqlite::Sqlite;

/// What others are told about whoever has the data folder.
const WHAT: &str = "windlass serve";

const USES_EVERY: Duration = Duration::from_secs(60);

/// A server that listens and has not been asked to go on yet.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    embedded: Embedded,
    listener: TcpListener,
    connections: Connections,
    owner: Option<PathBuf>,
    warnings: Vec<String>,
}

impl Server {
    /// Takes the data folder and the address. Nobody is answered before `run`.
    pub async fn start(settings: Settings, secrets: EngineSecrets) -> anyhow::Result<Server> {
        let jwt = Jwt::of(&settings.jwt).await?;
        let listener = TcpListener::bind(&settings.listen[..])
            .await
            .with_context(|| format!("cannot listen on {}", settings.listen[0]))?;
        let slots = settings.slots.unwrap_or_else(windlass_worker::default_slots);
        let (max_connections, few_files) =
            descriptors::connections(&settings, descriptors::raise().now, slots)?;
        let connections = Connections::new(&settings, max_connections)?;
        tracing::info!(max_connections, "connections that are taken at a time");
        let url = url_of(&settings, listener.local_addr()?);
        let folder = Folder::hold(&settings.data, &format!("{WHAT} at {url}"))?;
        let hub = Arc::new(Hub::default());
        let workers = settings.slots.map_or(Workers::Pool, Workers::Slots);
        let (egress, shares) = (settings.egress.clone(), settings.shares());
        let variables = Variables::Listed(settings.env_secrets.clone());
        let (database_quota, stall_timeout) = (settings.database_quota, settings.stall_timeout);
        let storage = StorageLimits {
            tenant: Some(settings.tenant_storage).filter(|bytes| *bytes > 0),
            disk_reserve: settings.disk_reserve,
        };
        let setup = Setup {
            workers,
            egress,
            secrets,
            hub: Some(hub.clone()),
            shares,
            database_quota,
            variables,
            storage,
            seals_audit: true,
            stall_timeout,
        };
        let embedded = Embedded::in_folder(folder, setup)?;
        let store = Folder::store(embedded.folder());
        let directory = Directory::load(&mut Sqlite::read_only(&store)?)?;
        let readers = Readers::start(&store, settings.readers)?;
        let (engine, secrets) = (embedded.handle(), embedded.vault());
        let collector = settings.otlp_endpoint.as_deref();
        let traces = collector.map(Traces::to).transpose()?.map(Arc::new);
        let (rights, storage) = (embedded.rights(), embedded.storage());
        let parts = Parts {
            engine,
            readers,
            settings,
            directory,
            jwt,
            secrets,
            rights,
            storage,
            versions: embedded.versions(),
            seal: embedded.seal(),
            hub,
            traces,
            pulse: embedded.pulse(),
        };
        let app = Arc::new(App::new(parts));
        let owner = first::create_defaults(&app, embedded.folder()).await?;
        let warnings = few_files.into_iter().chain(embedded.warnings().iter().cloned()).collect();
        Ok(Server { app, embedded, listener, connections, owner, warnings })
    }

    /// Where it listens, with the port that was found.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where clients on this machine find it.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(url_of(&self.app.settings, self.address()?))
    }

    /// The file with the owner's token, if it is there.
    #[must_use]
    pub fn owner_file(&self) -> Option<&Path> {
        self.owner.as_deref()
    }

    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Serves until `stop`, or until the engine must not go on. Open requests are finished; executions are left as they
    /// are, for the next start to carry on.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let Server { app, embedded, listener, connections, .. } = self;
        let router = routes::router(app.clone());
        let socket = FolderSocket::serve(embedded.folder(), app.clone())
            .inspect_err(|error| {
                tracing::warn!("commands in the data folder cannot reach the server: {error:#}")
            })
            .ok();
        if let Some(keep) = app.settings.keep {
            tokio::spawn(retention::run(app.clone(), keep));
        }
        tokio::spawn(metrics::upkeep(app.clone()));
        let uses = tokio::spawn(run_token_uses(app.clone()));
        let beat = tokio::spawn(app.pulse.vitals.clone().beat());
        let courier = tokio::spawn(webhooks::courier::run(app.clone()));
        let ended = embedded.ended().clone();
        let engine_ended = tokio::task::spawn_blocking(move || ended.recv().ok().flatten());
        let failed = tokio::select! {
            () = accept(&listener, &connections, router) => None,
            () = stop => None,
            fatal = engine_ended => Some(host::ended(fatal.ok().flatten())),
        };
        app.stops();
        drop(listener);
        connections.finish(app.settings.stop_timeout).await;
        if let Some(socket) = socket {
            socket.finish(app.settings.stop_timeout).await;
        }
        uses.abort();
        beat.abort();
        if failed.is_none() {
            store_token_uses(&app).await;
        }
        // It has heard that the server stops; what it was sending is sent again after the next start.
        let _ = courier.await;
        let traces = app.traces.clone();
        drop(app);
        end(embedded, failed, traces).await
    }
}

/// When tokens were used last is written down now and then: it is for people.
async fn run_token_uses(app: Arc<App>) {
    loop {
        tokio::time::sleep(USES_EVERY).await;
        store_token_uses(&app).await;
        crate::audit::write_counted(&app);
    }
}

async fn store_token_uses(app: &App) {
    let uses = app.directory.take_unstored_uses().into_iter();
    let entries: Vec<Entry> = uses.map(|(id, at)| Entry::TokenUsed { id, at }).collect();
    if !entries.is_empty()
        && let Err(problem) = app.store_entries(entries).await
    {
        tracing::warn!(%problem, "when tokens were used last could not be kept");
    }
}

fn url_of(settings: &Settings, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        let here: IpAddr =
            if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        address.set_ip(here);
    }
    let scheme = if settings.tls.is_some() { "https" } else { "http" };
    format!("{scheme}://{address}")
}

/// The URL of the server that holds a data folder; none when nobody does, or somebody else.
#[must_use]
pub fn find_server_url(folder: &Path) -> Option<String> {
    let holder = Folder::holder(folder).ok().flatten()?;
    let (_, url) = holder.split_once(&format!("({WHAT} at "))?;
    url.strip_suffix(')').map(str::to_owned)
}

/// The pool and the engine are ended on a thread that may wait.
async fn end(
    embedded: Embedded,
    failed: Option<anyhow::Error>,
    traces: Option<Arc<Traces>>,
) -> anyhow::Result<()> {
    let stop = move || {
        if let Some(traces) = traces {
            traces.end();
        }
        embedded.stop()
    };
    let stopped = tokio::task::spawn_blocking(stop).await;
    if let Some(failed) = failed {
        return Err(failed);
    }
    stopped.context("the engine could not be ended")?
}

/// Serves until SIGINT or SIGTERM. `on_listening` is called when the server listens.
pub fn serve(
    settings: Settings,
    secrets: EngineSecrets,
    on_listening: impl FnOnce(&Server),
) -> anyhow::Result<()> {
    logging::start(&settings)?;
    metrics::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = signalled()?;
        let server = Server::start(settings, secrets).await?;
        on_listening(&server);
        server.run(stop).await
    })
}

/// The first signal asks for an orderly end, the second one ends the process at once.
fn signalled() -> anyhow::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut terms = signal(SignalKind::terminate())?;
    let (heard, first) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut next = async || {
            tokio::select! {
                _ = interrupts.recv() => SignalKind::interrupt().as_raw_value(),
                _ = terms.recv() => SignalKind::terminate().as_raw_value(),
            }
        };
        next().await;
        // Whoever does not listen any more is about to end.
        let _ = heard.send(());
        std::process::exit(128 + next().await);
    });
    Ok(async move { drop(first.await) })
}
