//! The server process: the engine, its routes and its connections, from the start to the graceful stop.

use crate::app::{App, Parts};
use crate::auth::{Caller, Directory, Jwt};
use crate::connections::{Connections, accept};
use crate::database::Database;
use crate::descriptors;
use crate::engine_secrets::EngineSecrets;
use crate::first;
use crate::host::{self, Embedded, ProcessNets, Setup, Workers};
use crate::hub::Hub;
use crate::logging;
use crate::metrics;
use crate::objects::{self, Bucket, BucketError};
use crate::readers::Readers;
use crate::retention;
use crate::rights::Variables;
use crate::routes;
use crate::routing;
use crate::scheduler;
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
use windlass_store::{Entry, Objects as _};

/// Description of the process in the lock file of the data folder.
const WHAT: &str = "windlass serve";
/// The meaning of the value was different in earlier versions.
const KEEPS_NOTHING: &str =
    "`--keep 0d` deletes executions as soon as they have ended; `--keep forever` keeps all of them";

/// Time between two writes of the last uses of tokens.
const USES_EVERY: Duration = Duration::from_secs(60);

/// A server that listens and does not accept connections yet.
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
    /// Locks the data folder and binds the address. No request is answered before `run`.
    pub async fn start(settings: Settings, secrets: EngineSecrets) -> anyhow::Result<Server> {
        let jwt = Jwt::of(&settings.jwt).await?;
        let listener = TcpListener::bind(&settings.listen[..])
            .await
            .with_context(|| format!("cannot listen on {}", settings.listen[0]))?;
        let slots = settings.slots.unwrap_or_else(windlass_worker::default_slots);
        let (max_connections, few_files) =
            descriptors::connections(&settings, descriptors::raise().now, slots)?;
        let connections = Connections::new(&settings, max_connections)?;
        tracing::info!(max_connections, "maximum number of connections");
        let url = url_of(&settings, listener.local_addr()?);
        let (bucket, unreachable) = open_bucket(&settings).await?;
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
            nets: ProcessNets {
                adapters: settings.adapters.adapters.clone(),
                inline_bytes: settings.inline_limit,
                awaits_uploads: bucket.is_some(),
                routing_timeout: settings.routing_timeout,
            },
            lease_ttl: settings.lease_ttl,
            keeps_workdirs: false,
            bucket: bucket.clone(),
        };
        let embedded = Embedded::in_folder(folder, setup)?;
        let store = Folder::store(embedded.folder());
        let directory = Directory::load(&mut Database::read_only(&store)?)?;
        let readers = Readers::start(&store, &embedded.artifacts(), settings.readers)?;
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
            reads_only: false,
            remote: embedded.remote(),
            artifacts: embedded.artifacts(),
            bucket,
        };
        let app = Arc::new(App::new(parts));
        let owner = first::create_defaults(&app, embedded.folder()).await?;
        let keeps_nothing = app.settings.keep.filter(Duration::is_zero).map(|_| KEEPS_NOTHING.to_owned());
        let warnings = few_files.into_iter().chain(keeps_nothing).chain(unreachable);
        let of_adapters = app.settings.adapters.warnings.iter().cloned();
        let warnings = warnings.chain(of_adapters).chain(embedded.warnings().iter().cloned()).collect();
        Ok(Server { app, embedded, listener, connections, owner, warnings })
    }

    /// Returns the address of the listener, with the actual port.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Returns the URL for clients on this host.
    pub fn url(&self) -> std::io::Result<String> {
        Ok(url_of(&self.app.settings, self.address()?))
    }

    /// Returns a link that signs a browser in as the owner, once.
    pub fn sign_in_url(&self) -> anyhow::Result<String> {
        let path = routes::sign_in_path(&self.app, Caller::folder_owner())?;
        Ok(format!("{}{path}", self.url()?))
    }

    /// Returns the path of the owner's token, if the file exists.
    #[must_use]
    pub fn owner_file(&self) -> Option<&Path> {
        self.owner.as_deref()
    }

    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Serves until `stop` completes or the engine ends by itself. Open requests are finished; executions continue
    /// after the next start.
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
        let scheduler = tokio::spawn(scheduler::run(app.clone()));
        let router_of_steps = tokio::spawn(routing::run(app.clone()));
        let limits = tokio::spawn(app.remote.clone().resume_limits());
        let late_calls = tokio::spawn(app.remote.clone().end_late_calls());
        let uploader = app.bucket.clone().map(|bucket| tokio::spawn(objects::run(app.clone(), bucket)));
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
        limits.abort();
        late_calls.abort();
        if failed.is_none() {
            store_token_uses(&app).await;
        }
        // It ends because the app stops; an interrupted delivery is repeated after the next start.
        let _ = courier.await;
        // It cancels the runs that have a lease, and returns those that have not begun.
        let _ = scheduler.await;
        let _ = router_of_steps.await;
        if let Some(uploader) = uploader {
            // Its attempts are aborted, and begun again after the next start.
            let _ = uploader.await;
        }
        let traces = app.traces.clone();
        drop(app);
        end(embedded, failed, traces).await
    }
}

/// Opens the bucket of the settings, and checks that objects can be written, read and deleted. A bucket that this folder has used
/// before may be out of reach: the result then has a warning, and artifacts wait.
async fn open_bucket(settings: &Settings) -> anyhow::Result<(Option<Arc<Bucket>>, Option<String>)> {
    let Some(named) = &settings.bucket else { return Ok((None, None)) };
    let bucket = Bucket::new(named).context("artifacts: the settings of the bucket are not valid")?;
    let Err(error) = bucket.check().await else { return Ok((Some(Arc::new(bucket)), None)) };
    let hint = match error {
        BucketError::NoBucket => "create the bucket, or correct --artifacts",
        BucketError::Denied => {
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY must be allowed to put, get and delete objects"
        }
        _ => "check AWS_ENDPOINT_URL, AWS_REGION and the network; the log has the details",
    };
    let problem = format!("{}: {error}", bucket.place());
    let store = Folder::store(&settings.data);
    let known = Database::read_only(&store).and_then(|mut reader| reader.object_place()).ok().flatten();
    if error.is_passing() && known.as_deref() == Some(bucket.place()) {
        let warning = format!("{problem}; artifacts wait for it\n  hint: {hint}");
        return Ok((Some(Arc::new(bucket)), Some(warning)));
    }
    anyhow::bail!("{problem}\n  hint: {hint}")
}

/// Stores the last uses of tokens periodically, and deletes sessions that have ended.
async fn run_token_uses(app: Arc<App>) {
    loop {
        tokio::time::sleep(USES_EVERY).await;
        store_token_uses(&app).await;
        routes::delete_ended_sessions(&app).await;
        crate::audit::write_counted(&app);
    }
}

async fn store_token_uses(app: &App) {
    let uses = app.directory.take_unstored_uses().into_iter();
    let entries: Vec<Entry> = uses.map(|(id, at)| Entry::TokenUsed { id, at }).collect();
    if !entries.is_empty()
        && let Err(problem) = app.store_entries(entries).await
    {
        tracing::warn!(%problem, "cannot store the last uses of tokens");
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

/// Returns the URL of the server that holds a data folder; None if no server holds it.
#[must_use]
pub fn find_server_url(folder: &Path) -> Option<String> {
    let holder = Folder::holder(folder).ok().flatten()?;
    let (_, url) = holder.split_once(&format!("({WHAT} at "))?;
    url.strip_suffix(')').map(str::to_owned)
}

/// Stops the pool and the engine on a thread for blocking work.
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
    stopped.context("cannot stop the engine")?
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

/// Completes at the first signal, for a graceful stop. The second signal ends the process at once.
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
        // Without a receiver, the process is about to end.
        let _ = heard.send(());
        std::process::exit(128 + next().await);
    });
    Ok(async move { drop(first.await) })
}
