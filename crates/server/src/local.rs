//! The API inside the process of a command: in a folder that no other process holds, a command sends the same requests as to
//! a server.

use crate::app::{App, Parts};
use crate::auth::{Directory, FolderOwner};
use crate::database::Database;
use crate::engine_secrets::EngineSecrets;
use crate::first::default_tenant;
use crate::host::{Embedded, Setup, ended};
use crate::hub::Hub;
use crate::readers::Readers;
use crate::remote::RemoteWorkers;
use crate::rights::{TenantRights, Variables};
use crate::routes;
use crate::routing;
use crate::scheduler;
use crate::settings::{DATA, Settings};
use crate::socket::FolderSocket;
use crate::storage::{Storage, StorageLimits};
use crate::vault::{LocalVault, SharedVault};
use crate::watchdog::{Pulse, Vitals};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request};
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tower::ServiceExt as _;
use windlass_engine::{Folder, Handle};
use windlass_store::{Tenant, Usages};

/// Maximum size of a request body. A command's own inputs need a bound against mistakes only.
const BODY_MAX: usize = 256 << 20;
/// Time for clients of the folder's socket to read their last responses.
const FINISH_MAX: Duration = Duration::from_secs(2);

pub struct Local {
    app: Arc<App>,
    router: Router,
    /// None if the folder is only read.
    embedded: Option<Embedded>,
    socket: Option<FolderSocket>,
    scheduler: Mutex<Option<JoinHandle<()>>>,
}

impl Local {
    /// Starts an engine in a folder that this process holds.
    pub fn start(folder: Folder, setup: Setup) -> anyhow::Result<Local> {
        let hub = Arc::new(Hub::default());
        let embedded = Embedded::in_folder(folder, Setup { hub: Some(hub.clone()), ..setup })?;
        let store = Folder::store(embedded.folder());
        let directory = Directory::load(&mut Database::read_only(&store)?)?;
        if !directory.has(&Tenant::default()) {
            directory.put_tenant(default_tenant());
        }
        let app = App::new(Parts {
            engine: embedded.handle(),
            readers: Readers::start_one(&store)?,
            settings: settings(embedded.folder())?,
            directory,
            jwt: None,
            secrets: embedded.vault(),
            rights: embedded.rights(),
            storage: embedded.storage(),
            versions: embedded.versions(),
            seal: embedded.seal(),
            hub,
            traces: None,
            pulse: embedded.pulse(),
            reads_only: false,
            remote: embedded.remote(),
            artifacts: embedded.artifacts(),
            bucket: None,
        });
        Ok(Local::with(app, Some(embedded)))
    }

    /// Reads a folder, whether a process holds it or not. Every change is refused.
    pub fn read(folder: &Path, secrets: EngineSecrets) -> anyhow::Result<Local> {
        let store = Folder::store(folder);
        let directory = Directory::load(&mut Database::read_only(&store)?)?;
        if !directory.has(&Tenant::default()) {
            directory.put_tenant(default_tenant());
        }
        let tenants = directory.tenants();
        let (usages, limits) = (Arc::new(Usages::default()), StorageLimits::default());
        let app = App::new(Parts {
            engine: Handle::closed(),
            readers: Readers::start_one(&store)?,
            settings: settings(folder)?,
            directory,
            jwt: None,
            secrets: Arc::new(SharedVault::new(LocalVault::of(folder, secrets)?)),
            rights: Arc::new(TenantRights::new(Variables::All, &tenants)),
            storage: Arc::new(Storage::new(usages, limits, folder.to_owned(), &tenants)),
            versions: Arc::default(),
            seal: None,
            hub: Arc::new(Hub::default()),
            traces: None,
            pulse: Pulse { vitals: Vitals::unused(), pool: None },
            reads_only: true,
            remote: Arc::new(RemoteWorkers::closed()?),
            artifacts: Database::artifacts_of_store(&store),
            bucket: None,
        });
        Ok(Local::with(app, None))
    }

    fn with(app: App, embedded: Option<Embedded>) -> Local {
        let app = Arc::new(app);
        Local {
            router: routes::router(app.clone()),
            app,
            embedded,
            socket: None,
            scheduler: Mutex::default(),
        }
    }

    /// Lets other commands in the folder use this engine, and starts steps whose route is ready. Must be called in a runtime.
    pub fn serve_folder(&mut self) -> anyhow::Result<()> {
        if let Some(embedded) = &self.embedded {
            self.socket = Some(FolderSocket::serve(embedded.folder(), self.app.clone())?);
            tokio::spawn(routing::run(self.app.clone()));
        }
        Ok(())
    }

    /// Starts the work of schedules until the engine is stopped. Must be called in a runtime.
    pub fn start_schedules(&self) {
        let mut scheduler = self.scheduler.lock().unwrap_or_else(PoisonError::into_inner);
        scheduler.get_or_insert_with(|| tokio::spawn(scheduler::run(self.app.clone())));
    }

    /// Problems of the folder that do not keep the engine from running.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        self.embedded.as_ref().map_or(&[], Embedded::warnings)
    }

    /// Returns the status and the body of the answer. Fails when the engine has ended by itself.
    pub async fn answer(
        &self,
        method: Method,
        url: &str,
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> anyhow::Result<(u16, Vec<u8>)> {
        if let Some(embedded) = &self.embedded
            && let Ok(fatal) = embedded.ended().try_recv()
        {
            return Err(ended(fatal));
        }
        let mut request = Request::builder().method(method).uri(url).extension(FolderOwner);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let response = self.router.clone().oneshot(request.body(Body::from(body))?).await?;
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await?;
        Ok((parts.status.as_u16(), bytes.into()))
    }

    /// Ends the socket, the pool and the engine. All decisions are on disk.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        self.app.stops();
        if let Some(socket) = self.socket.take() {
            socket.finish(FINISH_MAX).await;
        }
        let scheduler = self.scheduler.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(scheduler) = scheduler {
            // Its programs are cancelled with it, as at the stop of a server.
            scheduler.await?;
        }
        match self.embedded {
            Some(embedded) => tokio::task::spawn_blocking(move || embedded.stop()).await?,
            None => Ok(()),
        }
    }
}

/// Limits of a command's own engine: none that protect others.
fn settings(folder: &Path) -> anyhow::Result<Settings> {
    let data = folder.display().to_string();
    let settings = Settings::load(&BTreeMap::from([(DATA, data)]), |_| None)?;
    Ok(Settings { body_limit: BODY_MAX, ..settings })
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("embedded", &self.embedded).finish_non_exhaustive()
    }
}
