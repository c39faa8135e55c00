//! The process as a service: the engine, its routes and its connections, from the start to an orderly end.

use crate::app::App;
use crate::auth::{Directory, Jwt, Known, Role, owner_token};
use crate::connections::{Connections, accept};
use crate::engine_secrets::EngineSecrets;
use crate::host::{Embedded, Setup, Workers};
use crate::logging;
use crate::metrics;
use crate::readers::Readers;
use crate::retention;
use crate::routes;
use crate::settings::Settings;
use crate::tenant::Tenant;
use anyhow::Context;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use windlass_engine::{Fatal, Folder};

/// What others are told about whoever has the data folder.
const WHAT: &str = "windlass serve";

/// A server that listens and has not been asked to go on yet.
#[derive(Debug)]
pub struct Server {
    app: Arc<App>,
    embedded: Embedded,
    listener: TcpListener,
    connections: Connections,
    owner: PathBuf,
}

impl Server {
    /// Takes the data folder and the address. Nobody is answered before `run`.
    pub async fn start(settings: Settings, secrets: EngineSecrets) -> anyhow::Result<Server> {
        let jwt = Jwt::of(&settings.jwt).await?;
        let listener = TcpListener::bind(&settings.listen[..])
            .await
            .with_context(|| format!("cannot listen on {}", settings.listen[0]))?;
        let connections = Connections::new(&settings)?;
        let folder = Folder::hold(&settings.data, WHAT)?;
        let workers = settings.slots.map_or(Workers::Pool, Workers::Slots);
        let setup = Setup { workers, egress: settings.egress.clone(), secrets };
        let embedded = Embedded::in_folder(folder, setup)?;
        let readers = Readers::start(&Folder::store(embedded.folder()), settings.readers)?;
        let (token, owner) = owner_token(embedded.folder())?;
        let directory = Directory::default();
        directory.add(token.digest(), owner_known());
        let app = Arc::new(App::new(embedded.handle(), readers, settings, directory, jwt));
        Ok(Server { app, embedded, listener, connections, owner })
    }

    /// Where it listens, with the port that was found.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where clients on this machine find it.
    pub fn url(&self) -> std::io::Result<String> {
        let scheme = if self.app.settings.tls.is_some() { "https" } else { "http" };
        Ok(format!("{scheme}://{}", self.address()?))
    }

    /// The file with the owner's token.
    #[must_use]
    pub fn owner_file(&self) -> &std::path::Path {
        &self.owner
    }

    #[must_use]
    pub fn warnings(&self) -> &[String] {
        self.embedded.warnings()
    }

    /// Serves until `stop`, or until the engine must not go on. Open requests are finished; executions are left as they
    /// are, for the next start to carry on.
    pub async fn run(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let Server { app, embedded, listener, connections, .. } = self;
        let router = routes::router(app.clone());
        if let Some(keep) = app.settings.keep {
            tokio::spawn(retention::run(app.clone(), keep));
        }
        tokio::spawn(metrics::upkeep(app.clone()));
        let ended = embedded.ended().clone();
        let engine_ended = tokio::task::spawn_blocking(move || ended.recv().ok().flatten());
        let fatal = tokio::select! {
            () = accept(&listener, &connections, router) => None,
            () = stop => None,
            fatal = engine_ended => fatal.ok().flatten(),
        };
        app.stops();
        drop(listener);
        connections.finish(app.settings.stop_timeout).await;
        drop(app);
        end(embedded, fatal).await
    }
}

/// The pool and the engine are ended on a thread that may wait.
async fn end(embedded: Embedded, fatal: Option<Fatal>) -> anyhow::Result<()> {
    let stopped = tokio::task::spawn_blocking(move || embedded.stop()).await;
    if let Some(fatal) = fatal {
        return Err(fatal.into());
    }
    stopped.context("the engine could not be ended")?
}

fn owner_known() -> Known {
    let id = format!("user_{:032x}", 1);
    Known { id, tenant: Tenant::default(), role: Role::Owner, expires_at: None }
}

/// Serves until SIGINT or SIGTERM. `told` hears of the server when it listens.
pub fn serve(settings: Settings, secrets: EngineSecrets, told: impl FnOnce(&Server)) -> anyhow::Result<()> {
    logging::start(&settings)?;
    metrics::start()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = signalled()?;
        let server = Server::start(settings, secrets).await?;
        told(&server);
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
