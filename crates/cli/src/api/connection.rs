//! The three ways to the API.

use super::error::{ApiError, Refusal, Unreachable};
use crate::data::Data;
use crate::embedded;
use crate::progress::say;
use reqwest::{Method, Url};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use windlass_dialects::Adapters;
use windlass_engine::{Folder, FolderError};
use windlass_secrets::Zeroizing;
use windlass_server::engine_secrets::EngineSecrets;
use windlass_server::host::{Setup, Workers};
use windlass_server::{Local, SocketPath};

/// Time within which a server must accept a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);
/// Maximum time for an answer. It is longer than any wait that a command requests.
const ANSWER_MAX: Duration = Duration::from_secs(60);
/// Time that a command waits for a process that holds the folder and serves no socket: one that starts, ends, or checks
/// the folder.
const HOLD_WAIT_MAX: Duration = Duration::from_secs(10);
const HOLD_RETRY: Duration = Duration::from_millis(20);
/// Time after which a wait is reported.
const WAIT_REPORTED_AFTER: Duration = Duration::from_millis(500);

/// Kind of access that a command needs to a data folder.
#[derive(Debug, Clone)]
pub enum Need {
    /// The command reads; the folder is neither held nor changed.
    Read,
    /// The command changes executions or definitions, and leaves the work to another process.
    Change,
    /// The command runs executions, in this process if no other one holds the folder.
    Run {
        slots: Option<u32>,
        /// Bindings of an engine in this process; None: those of the environment.
        adapters: Option<Arc<Adapters>>,
        /// Whether the work dirs of plans are kept.
        keeps_workdirs: bool,
    },
}

/// One request, not yet sent.
#[derive(Debug, Clone)]
pub struct ApiRequest {
    pub method: Method,
    pub url: Url,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

pub enum Connection {
    Http {
        http: reqwest::Client,
        token: Option<Zeroizing<String>>,
        /// Keeps the path of a folder's socket valid; None at a server's URL.
        socket: Option<SocketPath>,
    },
    InProcess(Box<Local>),
}

impl Connection {
    pub fn to_server(token: Option<Zeroizing<String>>) -> anyhow::Result<Connection> {
        Ok(Connection::Http { http: http_client().build()?, token, socket: None })
    }

    /// Connects to the process that holds the folder, or opens the folder in this process.
    pub fn to_folder(
        data: &Data,
        token: Option<&Zeroizing<String>>,
        command: &str,
        need: &Need,
        runtime: &Handle,
    ) -> anyhow::Result<Connection> {
        let started = Instant::now();
        let mut is_reported = false;
        loop {
            if let Some(connection) = to_socket(data.folder(), token)? {
                return Ok(connection);
            }
            let (workers, adapters, keeps_workdirs) = match need {
                Need::Read => return read_folder(data.folder()),
                Need::Change => (Workers::None, None, false),
                Need::Run { slots, adapters, keeps_workdirs } => {
                    (slots.map_or(Workers::Pool, Workers::Slots), adapters.clone(), *keeps_workdirs)
                }
            };
            match Folder::hold(data.folder(), command) {
                Ok(folder) => {
                    let setup = Setup { keeps_workdirs, ..embedded::setup(workers, adapters)? };
                    return start_engine(folder, setup, runtime);
                }
                Err(FolderError::InUse { holder, .. }) if started.elapsed() < HOLD_WAIT_MAX => {
                    if started.elapsed() >= WAIT_REPORTED_AFTER && !std::mem::replace(&mut is_reported, true)
                    {
                        say(&format!("waiting for {holder} to release the data folder"));
                    }
                    thread::sleep(HOLD_RETRY);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns the status and the body of the answer, which is text.
    pub async fn send(&self, request: ApiRequest) -> Result<(u16, String), ApiError> {
        let (status, bytes) = self.send_bytes(request).await?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Returns the status and the body of the answer.
    pub async fn send_bytes(&self, request: ApiRequest) -> Result<(u16, Vec<u8>), ApiError> {
        let ApiRequest { method, url, headers, body } = request;
        match self {
            Connection::Http { http, token, socket } => {
                let mut sent = http.request(method, url.clone()).body(body);
                for (name, value) in headers {
                    sent = sent.header(name, value);
                }
                if let Some(token) = token {
                    sent = sent.bearer_auth(token.as_str());
                }
                let answer = async {
                    let response = sent.send().await?;
                    Ok((response.status().as_u16(), response.bytes().await?.to_vec()))
                };
                let server = socket.is_none().then_some(&url);
                answer.await.map_err(|error| ApiError::Unreachable(Unreachable::new(server, &error)))
            }
            Connection::InProcess(local) => {
                let answer = local.answer(method, url.as_str(), &headers, body).await;
                answer.map_err(|error| ApiError::Refused(Refusal::internal(&error)))
            }
        }
    }
}

fn http_client() -> reqwest::ClientBuilder {
    // A redirect would take the token elsewhere.
    reqwest::Client::builder()
        .connect_timeout(CONNECT_MAX)
        .timeout(ANSWER_MAX)
        .redirect(reqwest::redirect::Policy::none())
}

/// Connects to the socket of a folder; returns None when no process listens there.
fn to_socket(folder: &Path, token: Option<&Zeroizing<String>>) -> anyhow::Result<Option<Connection>> {
    let Ok(socket) = SocketPath::in_folder(folder) else { return Ok(None) };
    if !socket.is_open() {
        return Ok(None);
    }
    let http = http_client().unix_socket(socket.path()).build()?;
    Ok(Some(Connection::Http { http, token: token.cloned(), socket: Some(socket) }))
}

fn read_folder(folder: &Path) -> anyhow::Result<Connection> {
    let local = Local::read(folder, EngineSecrets::from_environment())?;
    Ok(Connection::InProcess(Box::new(local)))
}

fn start_engine(folder: Folder, setup: Setup, runtime: &Handle) -> anyhow::Result<Connection> {
    let workers = setup.workers;
    let mut local = Local::start(folder, setup)?;
    for warning in local.warnings() {
        say(&format!("warning: {warning}"));
    }
    // A process that only makes a change ends before others could use it.
    if workers != Workers::None {
        let _context = runtime.enter();
        if let Err(error) = local.serve_folder() {
            say(&format!("warning: other commands in the folder cannot reach this process: {error:#}"));
        }
    }
    Ok(Connection::InProcess(Box::new(local)))
}
