//! Requests to the API.

use super::connection::{ApiRequest, Connection, Need};
use super::error::{ApiError, Refusal};
use crate::data::Data;
use crate::exit::Usage;
use crate::progress::say;
use futures_util::future::join_all;
use reqwest::{Method, Url};
use serde_json::Value;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use windlass_engine::Folder;
use windlass_kernel::ExecutionId;
use windlass_secrets::Zeroizing;
use windlass_server::find_server_url;
use windlass_views::execution_id;

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";
/// The host in requests that leave no machine.
const LOCAL_URL: &str = "http://localhost";
/// Maximum number of requests in flight.
const CONCURRENT_MAX: usize = 64;
/// Time for which a request to a folder is repeated while its holders end one after the other.
const REOPEN_WITHIN: Duration = Duration::from_secs(15);
const REOPEN_AFTER: Duration = Duration::from_millis(10);

pub struct Client {
    connection: RefCell<Rc<Connection>>,
    /// Dropped after the connection, whose tasks it runs.
    runtime: Runtime,
    base: Url,
    /// Flag with which another command reaches the same API.
    flag: String,
    /// None at a server's URL.
    folder: Option<FolderAccess>,
}

struct FolderAccess {
    data: Data,
    token: Option<Zeroizing<String>>,
    command: String,
    need: Need,
}

impl ApiRequest {
    #[must_use]
    pub fn with(mut self, name: &'static str, value: String) -> ApiRequest {
        self.headers.push((name, value));
        self
    }

    #[must_use]
    pub fn query(mut self, pairs: &[(&str, &str)]) -> ApiRequest {
        if !pairs.is_empty() {
            self.url.query_pairs_mut().extend_pairs(pairs);
        }
        self
    }

    #[must_use]
    pub fn json(mut self, body: &Value) -> ApiRequest {
        self.body = body.to_string().into_bytes();
        self.with("content-type", JSON.to_owned())
    }

    /// Sends a definition as it was written; JSON is YAML, too.
    #[must_use]
    pub fn definition(mut self, text: &str) -> ApiRequest {
        self.body = text.as_bytes().to_vec();
        self.with("content-type", YAML.to_owned())
    }
}

impl Client {
    pub fn connect_server(
        url: &str,
        token: Option<Zeroizing<String>>,
        flag: String,
    ) -> anyhow::Result<Client> {
        let base = parse_url(url.trim_end_matches('/'))?;
        let connection = Connection::to_server(token)?;
        Ok(Client::with(connection, runtime()?, base, flag, None))
    }

    pub fn connect_folder(
        data: &Data,
        token: Option<Zeroizing<String>>,
        command: &str,
        need: Need,
    ) -> anyhow::Result<Client> {
        let runtime = runtime()?;
        let connection = Connection::to_folder(data, token.as_ref(), command, &need, runtime.handle())?;
        let folder = FolderAccess { data: data.clone(), token, command: command.to_owned(), need };
        Ok(Client::with(connection, runtime, parse_url(LOCAL_URL)?, data.flag(), Some(folder)))
    }

    fn with(
        connection: Connection,
        runtime: Runtime,
        base: Url,
        flag: String,
        folder: Option<FolderAccess>,
    ) -> Client {
        Client { connection: RefCell::new(Rc::new(connection)), runtime, base, flag, folder }
    }

    /// Ends the engine that this process started, if it did.
    pub fn stop(self) -> anyhow::Result<()> {
        match Rc::into_inner(self.connection.into_inner()) {
            Some(Connection::InProcess(local)) => self.runtime.block_on(local.stop()),
            Some(Connection::Http { .. }) | None => Ok(()),
        }
    }

    /// Starts the work of schedules in this process, until the client is stopped. False if another process does.
    pub fn start_schedules(&self) -> bool {
        let _context = self.runtime.enter();
        match &**self.connection.borrow() {
            Connection::InProcess(local) => {
                local.start_schedules();
                true
            }
            Connection::Http { .. } => false,
        }
    }

    /// Returns the flag with which another command reaches the same API.
    pub fn flag(&self) -> &str {
        &self.flag
    }

    /// Describes the location of the API for messages.
    pub fn place(&self) -> String {
        match self.folder {
            Some(_) => "in this data folder".to_owned(),
            None => format!("at {}", self.base.as_str().trim_end_matches('/')),
        }
    }

    /// Returns whether executions continue when this command ends: at a server, also one that holds the folder.
    pub fn is_server(&self) -> bool {
        self.folder.as_ref().is_none_or(|folder| find_server_url(folder.data.folder()).is_some())
    }

    /// Returns whether requests leave this machine.
    pub fn is_remote(&self) -> bool {
        self.folder.is_none()
    }

    /// Returns whether this process has opened the folder itself.
    pub fn is_in_process(&self) -> bool {
        matches!(**self.connection.borrow(), Connection::InProcess(_))
    }

    /// Reports that another process runs the steps, unless it is a server: they run in its directory, with its
    /// environment and its slots.
    pub fn report_holder(&self) {
        if let Some(folder) = &self.folder
            && !self.is_in_process()
            && !self.is_server()
            && let Ok(Some(holder)) = Folder::holder(folder.data.folder())
        {
            say(&format!(
                "{holder} holds the data folder and runs the steps, in its directory and environment\n  hint: `windlass \
                 serve` shares one folder among many runs"
            ));
        }
    }

    /// Returns the command that continues an execution, or follows it if it continues by itself.
    pub fn resume_command(&self, id: ExecutionId) -> String {
        let (id, flag) = (execution_id(id), &self.flag);
        match self.is_server() {
            true => format!("windlass executions watch {id}{flag}"),
            false => format!("windlass run --resume {id}{flag}"),
        }
    }

    /// Returns whether the executions of the folder wait for a process that executes them.
    pub fn is_idle(&self) -> bool {
        let holder = self.folder.as_ref().map(|folder| Folder::holder(folder.data.folder()));
        matches!(holder, Some(Ok(None)))
    }

    /// Reports that no process works on an execution that is waited for.
    pub fn report_idle(&self, id: ExecutionId) {
        if self.is_idle() {
            say(&format!(
                "no process runs it at the moment; continue it with:\n  {}",
                self.resume_command(id)
            ));
        }
    }

    pub fn get(&self, path: &[&str], query: &[(&str, &str)]) -> Result<Value, ApiError> {
        self.json(self.request(Method::GET, path).query(query))
    }

    pub fn send(&self, method: Method, path: &[&str], body: &Value) -> Result<Value, ApiError> {
        self.json(self.request(method, path).json(body))
    }

    /// Begins a request to a route under `/api/v1`; segments of the path are escaped.
    pub fn request(&self, method: Method, path: &[&str]) -> ApiRequest {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(["api", "v1"]).extend(path);
        }
        ApiRequest { method, url, headers: Vec::new(), body: Vec::new() }
    }

    pub fn json(&self, request: ApiRequest) -> Result<Value, ApiError> {
        parse_json(&self.text(request)?)
    }

    /// Sends a request whose answer may take long. Returns None if `given_up` completes first.
    pub fn json_unless(&self, request: ApiRequest, given_up: impl Future) -> Result<Option<Value>, ApiError> {
        let connection = self.connection.borrow().clone();
        let answer = self.runtime.block_on(async {
            tokio::select! {
                answer = connection.send(request) => Some(answer),
                _ = given_up => None,
            }
        });
        answer.map(|answer| parse_json(&accept_text(answer?)?)).transpose()
    }

    /// Sends many requests, several at a time, and returns the answers in their order. The requests must be safe to
    /// repeat: a request without an answer is sent again.
    pub fn json_all(&self, requests: Vec<ApiRequest>) -> Result<Vec<Value>, ApiError> {
        let mut answers = Vec::with_capacity(requests.len());
        for some in requests.chunks(CONCURRENT_MAX) {
            let connection = self.connection.borrow().clone();
            let sent = some.iter().map(|request| connection.send(request.clone()));
            for (request, answer) in some.iter().zip(self.runtime.block_on(join_all(sent))) {
                let text = match answer {
                    // Another process may hold the folder now.
                    Err(ApiError::Unreachable(_)) => self.text(request.clone())?,
                    answer => accept_text(answer?)?,
                };
                answers.push(parse_json(&text)?);
            }
        }
        Ok(answers)
    }

    /// Sends a request. If the holder of the folder ends meanwhile, the request is sent to the next holder, or to an
    /// engine in this process.
    pub fn text(&self, request: ApiRequest) -> Result<String, ApiError> {
        let bytes = self.bytes(request)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Sends a request whose answer is not text.
    pub fn bytes(&self, request: ApiRequest) -> Result<Vec<u8>, ApiError> {
        let is_idempotent = [Method::GET, Method::PUT, Method::DELETE].contains(&request.method);
        let may_repeat = is_idempotent || request.has_key();
        let until = Instant::now() + REOPEN_WITHIN;
        loop {
            let connection = self.connection.borrow().clone();
            match self.runtime.block_on(connection.send_bytes(request.clone())) {
                Err(ApiError::Unreachable(why)) if why.is_unsent || may_repeat => {
                    drop(connection);
                    if Instant::now() >= until || !self.reopen()? {
                        return Err(ApiError::Unreachable(why));
                    }
                    thread::sleep(REOPEN_AFTER);
                }
                answer => return accept(answer?),
            }
        }
    }

    /// Opens the folder again. Returns false at a server, which has to restart by itself.
    fn reopen(&self) -> Result<bool, ApiError> {
        let Some(FolderAccess { data, token, command, need }) = &self.folder else { return Ok(false) };
        let opened = Connection::to_folder(data, token.as_ref(), command, need, self.runtime.handle());
        let opened = opened.map_err(|error| ApiError::Refused(Refusal::internal(&error)))?;
        if let (Connection::InProcess(_), Need::Run { .. }) = (&opened, need) {
            say("the process that ran it has ended; this process continues it");
        }
        *self.connection.borrow_mut() = Rc::new(opened);
        Ok(true)
    }
}

impl ApiRequest {
    /// Returns whether repeating the request starts nothing a second time.
    fn has_key(&self) -> bool {
        self.headers.iter().any(|(name, _)| *name == "x-idempotency-key")
    }
}

fn accept((status, bytes): (u16, Vec<u8>)) -> Result<Vec<u8>, ApiError> {
    match (200..300).contains(&status) {
        true => Ok(bytes),
        false => Err(ApiError::Refused(Refusal::of(status, &String::from_utf8_lossy(&bytes)))),
    }
}

fn accept_text((status, text): (u16, String)) -> Result<String, ApiError> {
    accept((status, text.into_bytes())).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn parse_json(text: &str) -> Result<Value, ApiError> {
    serde_json::from_str(text).map_err(|_| ApiError::Refused(Refusal::of(200, text)))
}

/// Creates the runtime. One thread is enough to serve the folder's socket while the command waits.
fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()
}

fn parse_url(url: &str) -> Result<Url, Usage> {
    let wrong = |why: &str| {
        Usage::new(format!("`{url}` is not the URL of a server: {why}"))
            .hint("use the scheme and the address, as in http://127.0.0.1:7070")
    };
    let base = Url::parse(url).map_err(|error| wrong(&error.to_string()))?;
    match base.scheme() {
        "http" | "https" if base.has_host() => Ok(base),
        _ => Err(wrong("http:// or https:// is expected")),
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.base.as_str()).finish_non_exhaustive()
    }
}
