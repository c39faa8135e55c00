//! The connection of a worker process to its server: calls of the protocol over HTTP, and orders by long poll.
//!
//! Calls whose order matters are sent one batch at a time: calls that are made during a request are the next batch.
//! Calls for resources and of agents are sent on their own; artifacts are streams (`artifacts.rs`). While a server
//! restarts, calls are repeated; the session of the worker decides how long work may continue meanwhile.

mod artifacts;
mod batch;

use crate::failure::failure;
use crate::pool::Port;
use batch::CallQueue;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use windlass_protocol::{
    AgentAnswer, CALLS_BYTES_MAX, Call, CallBatch, NewSession, OpenedSession, Order, OrderList,
    OrdersRequest, PROTOCOL_HEADER, PROTOCOL_VERSION, Register, Reply, ReplyBatch, ReplyTo, ResourceReply,
    SESSION_HEADER, Verdict, codes,
};
use windlass_secrets::Zeroizing;

/// Pause between two tries to reach a server that does not respond: the first and the longest one.
const AGAIN: Duration = Duration::from_millis(100);
const AGAIN_MAX: Duration = Duration::from_secs(2);

/// Time after which a connection attempt is repeated.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which a response counts as lost: longer than any wait of a server.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of tries of a call with a reply. Together they take longer than a lease, after which the work is
/// given up anyway.
const TRIES_MAX: u32 = 60;

/// Server, credentials and group of a worker process.
#[derive(Debug, Clone)]
pub struct LinkConfig {
    /// URL of the server, without a path.
    pub server: String,
    pub token: Zeroizing<String>,
    pub group: String,
    pub cluster: Option<String>,
    /// Version of this program, for messages.
    pub release: String,
    /// Folder for artifacts that are being fetched. It belongs to this worker, and is emptied.
    pub downloads: PathBuf,
}

/// Event that the worker process is notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkNews {
    Registered,
    /// The server refuses the worker; another try would be refused, too.
    Refused(String),
    /// The server does not answer, for this reason.
    Unreachable(String),
}

/// Callback for events of the link. It must not wait.
pub type LinkWatch = Arc<dyn Fn(LinkNews) + Send + Sync>;

#[derive(Clone)]
struct Link {
    client: reqwest::Client,
    config: Arc<LinkConfig>,
    /// The session that calls are made under.
    session: Arc<Mutex<Option<String>>>,
    /// Number of the newest registration. The answer to an earlier one, which was repeated because it was late, opens a
    /// session that must take no work: its orders would not be followed.
    registrations: Arc<AtomicU64>,
    watch: LinkWatch,
}

/// Reason why a request had no answer.
enum RequestError {
    /// No working server was reached: the request can be repeated.
    Unreachable(String),
    /// The server does not know the session.
    NoSession,
    /// The request is larger than the server, or a proxy in front of it, accepts.
    TooLarge(String),
    Refused(String),
}

/// Returns the port of a worker to a server. Its tasks run on the runtime that calls this.
pub fn connect(config: LinkConfig, watch: LinkWatch) -> io::Result<Port> {
    artifacts::prepare_folder(&config.downloads)?;
    let client =
        reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).build().map_err(io::Error::other)?;
    let link = Link {
        client,
        config: Arc::new(config),
        session: Arc::default(),
        registrations: Arc::default(),
        watch,
    };
    // Unbounded, because the worker's thread must not wait. Each unit of a worker has few calls on their way.
    let (calls, received) = mpsc::unbounded_channel::<(Call, ReplyTo)>();
    tokio::spawn(link.clone().send_in_order(CallQueue::new(received)));
    let runtime = tokio::runtime::Handle::current();
    Ok(Arc::new(move |call, reply| match call {
        Call::Register(register) => drop(runtime.spawn(link.clone().register(register, reply))),
        Call::Agent(_) | Call::Resource(_) => drop(runtime.spawn(link.clone().send_alone(call, reply))),
        Call::Beat(_)
        | Call::Leave(_)
        | Call::Report(_)
        | Call::Checkpoint(_)
        | Call::Progress(_)
        | Call::Log(_) => drop(calls.send((call, reply))),
    }))
}

impl Link {
    fn session(&self) -> Option<String> {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_session(&self, session: Option<String>) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session;
    }

    async fn post<T: DeserializeOwned>(&self, route: &str, body: &impl Serialize) -> Result<T, RequestError> {
        let request = self.request(Method::POST, route).timeout(ANSWER_TIMEOUT).json(body);
        self.send(request).await?.json().await.map_err(unreachable)
    }

    async fn post_calls(&self, batch: &CallBatch) -> Result<ReplyBatch, RequestError> {
        let body = serde_json::to_vec(batch).map_err(|error| RequestError::Refused(error.to_string()))?;
        let length = body.len();
        // The server closes the connection while a larger body is sent, so its answer might not arrive.
        if length > CALLS_BYTES_MAX {
            let why =
                format!("the request has {length} bytes, more than the limit of {CALLS_BYTES_MAX} bytes");
            return Err(RequestError::TooLarge(why));
        }
        let request = self.request(Method::POST, "calls").header(SESSION_HEADER, &batch.session);
        let request = request.timeout(ANSWER_TIMEOUT).header(CONTENT_TYPE, "application/json").body(body);
        match self.send(request).await {
            Ok(response) => response.json().await.map_err(unreachable),
            Err(RequestError::TooLarge(why)) => {
                Err(RequestError::TooLarge(format!("the request has {length} bytes, and {why}")))
            }
            Err(error) => Err(error),
        }
    }

    fn request(&self, method: Method, route: &str) -> RequestBuilder {
        let url = format!("{}/api/v1/workers/{route}", self.config.server.trim_end_matches('/'));
        let request = self.client.request(method, url).bearer_auth(self.config.token.as_str());
        request.header(PROTOCOL_HEADER, PROTOCOL_VERSION)
    }

    /// Returns the response if it is a success.
    async fn send(&self, request: RequestBuilder) -> Result<Response, RequestError> {
        let response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let text = response.text().await.unwrap_or_default();
        let message = serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|body| body["error"]["message"].as_str().map(str::to_owned))
            .unwrap_or_else(|| format!("the server answered with status {status}"));
        Err(match status.as_u16() {
            404 if message.contains("session") => RequestError::NoSession,
            408 | 425 | 429 | 500.. => RequestError::Unreachable(message),
            413 => RequestError::TooLarge(message),
            _ => RequestError::Refused(message),
        })
    }

    /// Opens a session and passes its orders on until it ends.
    async fn register(self, register: Register, mut reply: ReplyTo) {
        let LinkConfig { group, cluster, release, .. } = (*self.config).clone();
        let Register { worker, slots, .. } = register;
        let new = NewSession { protocol: PROTOCOL_VERSION, release, worker, group, cluster, slots };
        let number = self.registrations.fetch_add(1, Ordering::SeqCst) + 1;
        match self.post::<OpenedSession>("register", &new).await {
            Ok(OpenedSession { session, registered }) => {
                let leave = CallBatch { session, calls: vec![Call::Leave(registered.session)] };
                if self.registrations.load(Ordering::SeqCst) == number {
                    let session = leave.session.clone();
                    self.set_session(Some(session.clone()));
                    (self.watch)(LinkNews::Registered);
                    reply(Reply::Registered(registered));
                    self.pass_orders(session, number, reply).await;
                }
                if self.registrations.load(Ordering::SeqCst) != number {
                    // If the server does not answer, the lease of the session ends by itself.
                    let _ = self.post_calls(&leave).await;
                }
            }
            // The worker registers again by itself.
            Err(RequestError::Unreachable(why)) => (self.watch)(LinkNews::Unreachable(why)),
            Err(RequestError::NoSession) => {}
            Err(RequestError::TooLarge(why) | RequestError::Refused(why)) => {
                let refused = failure(codes::WORKER_REFUSED, why.clone());
                reply(Reply::Refused(refused));
                (self.watch)(LinkNews::Refused(why));
            }
        }
    }

    /// Passes orders on until another registration begins.
    async fn pass_orders(&self, session: String, number: u64, mut reply: ReplyTo) {
        let request = OrdersRequest { session };
        let mut again = AGAIN;
        while self.registrations.load(Ordering::SeqCst) == number {
            match self.post::<OrderList>("orders", &request).await {
                Ok(OrderList { orders }) => {
                    again = AGAIN;
                    orders.into_iter().for_each(|order| reply(Reply::Order(order)));
                }
                Err(RequestError::NoSession) => {
                    self.set_session(None);
                    return reply(Reply::Order(Order::Unknown));
                }
                Err(RequestError::TooLarge(why) | RequestError::Refused(why)) => {
                    (self.watch)(LinkNews::Refused(why));
                    sleep(AGAIN_MAX).await;
                }
                Err(RequestError::Unreachable(why)) => {
                    (self.watch)(LinkNews::Unreachable(why));
                    sleep(again).await;
                    again = (again * 2).min(AGAIN_MAX);
                }
            }
        }
    }

    async fn send_in_order(self, mut queue: CallQueue) {
        while let Some((calls, replies)) = queue.next_batch().await {
            self.make(calls, replies).await;
        }
    }

    async fn send_alone(self, call: Call, mut reply: ReplyTo) {
        match call {
            Call::Resource(resource) => match artifacts::Transfer::of(*resource) {
                Ok(transfer) => {
                    if let Some(answer) = self.transfer(transfer).await {
                        reply(Reply::Resource(Box::new(answer)));
                    }
                }
                Err(resource) => self.make(vec![Call::Resource(resource)], vec![reply]).await,
            },
            call => self.make(vec![call], vec![reply]).await,
        }
    }

    /// Makes calls until they are answered. After the last try the replies are dropped, so the calls count as lost.
    async fn make(&self, calls: Vec<Call>, mut replies: Vec<ReplyTo>) {
        let mut again = AGAIN;
        let Some(session) = self.session() else { return lose(&calls, &mut replies) };
        let mut batch = CallBatch { session, calls };
        for _ in 0..TRIES_MAX {
            match self.post_calls(&batch).await {
                Ok(answered) => {
                    let mut calls = Vec::new();
                    let mut waiting = Vec::new();
                    for ((call, mut reply), sent) in
                        batch.calls.drain(..).zip(replies.drain(..)).zip(answered.replies)
                    {
                        match sent {
                            Some(sent) => reply(sent),
                            None => {
                                calls.push(call);
                                waiting.push(reply);
                            }
                        }
                    }
                    if calls.is_empty() {
                        return;
                    }
                    (batch.calls, replies) = (calls, waiting);
                }
                Err(RequestError::NoSession) => return lose(&batch.calls, &mut replies),
                Err(RequestError::TooLarge(why)) => return self.make_parts(batch.calls, replies, &why).await,
                Err(RequestError::Refused(why)) => return refuse(&batch.calls, &mut replies, &why),
                Err(RequestError::Unreachable(why)) => {
                    (self.watch)(LinkNews::Unreachable(why));
                    sleep(again).await;
                    again = (again * 2).min(AGAIN_MAX);
                }
            }
        }
    }

    /// Makes calls that were too large for one request, in two halves. A single one is refused.
    async fn make_parts(&self, mut calls: Vec<Call>, mut replies: Vec<ReplyTo>, why: &str) {
        if let ([call], [reply]) = (&*calls, &mut *replies) {
            return refuse_large(call, reply, why);
        }
        let half = calls.len() / 2;
        let (later, later_replies) = (calls.split_off(half), replies.split_off(half));
        Box::pin(self.make(calls, replies)).await;
        Box::pin(self.make(later, later_replies)).await;
    }
}

/// Answers a call that is larger than the server accepts, so that it is not repeated: it fails its step.
fn refuse_large(call: &Call, reply: &mut ReplyTo, why: &str) {
    let (what, repair) = match call {
        Call::Report(_) => ("the report", "return less, or write large results to files or artifacts"),
        Call::Checkpoint(_) => ("the stored progress", "keep less in results and in the context"),
        Call::Register(_)
        | Call::Beat(_)
        | Call::Leave(_)
        | Call::Agent(_)
        | Call::Progress(_)
        | Call::Log(_)
        | Call::Resource(_) => ("a message", "pass smaller values"),
    };
    let message = format!(
        "{what} of the step is too large for the server: {why}; {repair}, or raise the limit if it is that of a proxy"
    );
    let refused = failure(codes::RESULT_TOO_LARGE, message);
    reply(match call {
        Call::Resource(_) => Reply::Resource(Box::new(ResourceReply::Failed(*refused))),
        Call::Agent(_) => Reply::Agent(Box::new(AgentAnswer::Refused { why: refused.message })),
        Call::Register(_)
        | Call::Beat(_)
        | Call::Leave(_)
        | Call::Report(_)
        | Call::Checkpoint(_)
        | Call::Progress(_)
        | Call::Log(_) => Reply::Refused(refused),
    });
}

/// Answers calls of a session that the server does not know: the worker does not hold its units any more.
fn lose(calls: &[Call], replies: &mut [ReplyTo]) {
    for (call, reply) in calls.iter().zip(replies) {
        reply(match call {
            Call::Resource(_) => Reply::Resource(Box::new(ResourceReply::Stale)),
            Call::Agent(_) => Reply::Agent(Box::new(AgentAnswer::Stale)),
            Call::Register(_)
            | Call::Beat(_)
            | Call::Leave(_)
            | Call::Report(_)
            | Call::Checkpoint(_)
            | Call::Progress(_)
            | Call::Log(_) => Reply::Verdict(Verdict::Stale),
        });
    }
}

/// Answers calls that the server will never accept. Those that a step waits for fail the step with the reason.
fn refuse(calls: &[Call], replies: &mut [ReplyTo], why: &str) {
    for (call, reply) in calls.iter().zip(replies) {
        let refused = || failure(codes::WORKER_REFUSED, format!("the server refused it: {why}"));
        match call {
            Call::Resource(_) => reply(Reply::Resource(Box::new(ResourceReply::Failed(*refused())))),
            Call::Log(_) | Call::Progress(_) => reply(Reply::Refused(refused())),
            Call::Register(_)
            | Call::Beat(_)
            | Call::Leave(_)
            | Call::Report(_)
            | Call::Checkpoint(_)
            | Call::Agent(_) => {}
        }
    }
}

fn unreachable(error: reqwest::Error) -> RequestError {
    RequestError::Unreachable(describe(&error))
}

fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
