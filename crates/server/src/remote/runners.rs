//! Sessions of `windlass worker` processes, which have slots and get orders. The engine holds sessions and leases;
//! this module holds orders that a worker has not fetched yet, which the engine sends again if they are lost.

use super::{RemoteWorkers, SessionHandle, is_same, lock, no_session, overloaded};
use crate::app::unexpected_answer;
use crate::problem::{Problem, ProblemCode};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;
use windlass_engine::{EngineAnswer, GroupCall, GroupReply, Request, SessionKey};
use windlass_protocol::{Call, Order, Reply, SessionId};
use windlass_store::{Audit, Session, Tenant, WorkerSession};

/// Maximum number of orders that wait for one worker. Orders beyond the units that it holds repeat earlier ones.
const ORDERS_MAX: usize = 10_000;

/// Orders for workers, by session.
#[derive(Debug, Default)]
pub(super) struct Mailboxes(Mutex<HashMap<SessionId, Arc<Mailbox>>>);

#[derive(Debug)]
struct Mailbox {
    key: SessionKey,
    state: Mutex<MailboxState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct MailboxState {
    orders: VecDeque<Order>,
    /// Whether the session is over.
    is_closed: bool,
    /// Number of requests that wait for orders.
    waiting: usize,
    /// Whether the last of them ended because its caller disconnected.
    is_deserted: bool,
}

/// A request that waits for orders. If it is dropped before it has an answer, the worker has disconnected: its process
/// was killed, or its connection broke. That worker gets no new work until it requests orders again.
struct Waiting<'w> {
    workers: &'w RemoteWorkers,
    mailbox: &'w Mailbox,
    is_answered: bool,
}

impl<'w> Waiting<'w> {
    fn begin(workers: &'w RemoteWorkers, mailbox: &'w Mailbox) -> Waiting<'w> {
        let mut state = lock(&mailbox.state);
        state.waiting += 1;
        // The engine is notified of both in the order in which they happen.
        state.is_deserted = state.is_deserted && !workers.listen(&mailbox.key, true);
        Waiting { workers, mailbox, is_answered: false }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.mailbox.state);
        state.waiting -= 1;
        if !self.is_answered && state.waiting == 0 && !state.is_closed {
            state.is_deserted = self.workers.listen(&self.mailbox.key, false);
        }
    }
}

/// Closes the mailbox when the engine drops its callback: the session is over.
struct Closer(Arc<Mailbox>);

impl Drop for Closer {
    fn drop(&mut self) {
        lock(&self.0.state).is_closed = true;
        self.0.changed.notify_waiters();
        self.0.changed.notify_one();
    }
}

impl Mailbox {
    fn put(&self, reply: Reply) {
        let Reply::Order(order) = reply else { return };
        let mut state = lock(&self.state);
        match order {
            Order::Unknown => state.is_closed = true,
            Order::Run(_) | Order::Stop { .. } if state.orders.len() < ORDERS_MAX => {
                state.orders.push_back(order)
            }
            Order::Run(_) | Order::Stop { .. } => {}
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Returns the waiting orders; None if there are none and the session is open.
    fn take(&self) -> Option<Result<Vec<Order>, Problem>> {
        let mut state = lock(&self.state);
        match (state.orders.is_empty(), state.is_closed) {
            (false, _) => Some(Ok(state.orders.drain(..).collect())),
            (true, true) => Some(Err(no_session())),
            (true, false) => None,
        }
    }
}

/// A call of a worker for the engine.
#[derive(Debug)]
pub(crate) struct RelayedCall {
    pub(crate) call: Call,
    /// Entry that is written if the call starts an execution that its step does not name.
    pub(crate) audit: Option<Box<Audit>>,
}

/// Answer to a call of a worker.
#[derive(Debug)]
pub(crate) struct RelayAnswer {
    /// None: the reply takes longer than a request may; the same call made again gets the same reply.
    pub(crate) reply: Option<Reply>,
    /// Whether the unit has no right to such a call.
    pub(crate) is_denied: bool,
}

/// A worker that registers.
#[derive(Debug)]
pub(crate) struct NewRunner {
    pub(crate) tenant: Tenant,
    pub(crate) group: String,
    pub(crate) cluster: Option<String>,
    pub(crate) slots: u32,
    pub(crate) worker: String,
}

impl RemoteWorkers {
    /// Opens a session with slots, which is on disk when this returns.
    pub(crate) async fn register(&self, new: NewRunner) -> Result<SessionHandle, Problem> {
        let handle = SessionHandle::random()?;
        let opened_at = crate::host::now();
        let NewRunner { tenant, group, cluster, slots, worker } = new;
        let session = WorkerSession {
            id: Session(handle.id().0),
            digest: handle.digest(),
            tenant,
            group,
            cluster,
            slots,
            worker,
            opened_at,
            expires_at: opened_at.plus(self.ttl_ms),
        };
        match self.ask(GroupCall::Open(Box::new(session))).await? {
            GroupReply::Opened => Ok(handle),
            GroupReply::TooManySessions { max } => {
                let message = format!("the tenant has {max} workers, which is the maximum; stop some first");
                Err(Problem::new(ProblemCode::LimitExceeded, message))
            }
            other => Err(super::unexpected_reply(other)),
        }
    }

    /// Waits for orders of a session, at most half of a lease.
    pub(crate) async fn orders(
        &self,
        key: SessionKey,
        stopped: impl Future<Output = ()>,
    ) -> Result<Vec<Order>, Problem> {
        let mailbox = self.mailbox(key)?;
        let mut request = Waiting::begin(self, &mailbox);
        let waiting = async {
            loop {
                let changed = mailbox.changed.notified();
                if let Some(taken) = mailbox.take() {
                    return taken;
                }
                changed.await;
            }
        };
        let taken = tokio::select! {
            taken = timeout(self.longest_wait(), waiting) => taken.unwrap_or(Ok(Vec::new())),
            () = stopped => Ok(Vec::new()),
        };
        request.is_answered = true;
        if taken.is_err() {
            lock(&self.mailboxes.0).remove(&mailbox.key.id);
        }
        taken
    }

    /// Notifies the engine whether a worker waits for orders, without blocking; returns false if too many requests
    /// wait.
    fn listen(&self, key: &SessionKey, listens: bool) -> bool {
        let call = GroupCall::Listen { session: key.clone(), listens };
        self.engine.try_ask(Request::Group(call), |_| {})
    }

    /// Returns the mailbox of a session. After a restart of the server, the engine is notified where its orders go.
    fn mailbox(&self, key: SessionKey) -> Result<Arc<Mailbox>, Problem> {
        let mut mailboxes = lock(&self.mailboxes.0);
        if let Some(known) = mailboxes.get(&key.id) {
            return if is_same(&known.key, &key) { Ok(Arc::clone(known)) } else { Err(no_session()) };
        }
        let mailbox = Arc::new(Mailbox { key: key.clone(), state: Mutex::default(), changed: Notify::new() });
        let closer = Closer(Arc::clone(&mailbox));
        if !self.engine.attach(key.clone(), Box::new(move |reply| closer.0.put(reply))) {
            return Err(overloaded());
        }
        mailboxes.retain(|_, mailbox| !lock(&mailbox.state).is_closed);
        mailboxes.insert(key.id, Arc::clone(&mailbox));
        Ok(mailbox)
    }

    /// Refuses a session that does not exist, or that claims calls of its group.
    pub(crate) async fn check_session(&self, key: &SessionKey) -> Result<(), Problem> {
        match self.ask(GroupCall::Check { session: key.clone() }).await? {
            GroupReply::Returned => Ok(()),
            GroupReply::NoSession => Err(no_session()),
            GroupReply::ClaimsOnly => Err(claims_only()),
            other => Err(super::unexpected_reply(other)),
        }
    }

    /// Makes the calls of a worker in their order, and returns their replies.
    pub(crate) async fn relay(
        &self,
        key: &SessionKey,
        calls: Vec<RelayedCall>,
    ) -> Result<Vec<RelayAnswer>, Problem> {
        if !self.engine.is_recovered() {
            return Err(Problem::unavailable("the server is starting; retry after the time in Retry-After"));
        }
        let mut waiting = Vec::with_capacity(calls.len());
        for RelayedCall { call, audit } in calls {
            let (sender, answer) = oneshot::channel();
            let relay = GroupCall::Relay { session: key.clone(), call: Box::new(call), audit };
            if !self.engine.try_ask(Request::Group(relay), move |answer| drop(sender.send(answer))) {
                return Err(overloaded());
            }
            waiting.push(answer);
        }
        let mut replies = Vec::with_capacity(waiting.len());
        for answer in waiting {
            replies.push(read_answer(answer, self.longest_wait()).await?);
        }
        Ok(replies)
    }
}

async fn read_answer(
    answer: oneshot::Receiver<EngineAnswer>,
    wait: Duration,
) -> Result<RelayAnswer, Problem> {
    match timeout(wait, answer).await {
        Err(_) => Ok(RelayAnswer { reply: None, is_denied: false }),
        Ok(Ok(EngineAnswer::Reply(reply))) => Ok(RelayAnswer { reply: Some(reply), is_denied: false }),
        Ok(Ok(EngineAnswer::Group(GroupReply::Denied(reply)))) => {
            Ok(RelayAnswer { reply: Some(*reply), is_denied: true })
        }
        Ok(Ok(EngineAnswer::Group(GroupReply::NoSession))) => Err(no_session()),
        Ok(Ok(EngineAnswer::Group(GroupReply::ClaimsOnly))) => Err(claims_only()),
        Ok(Ok(EngineAnswer::Stopping) | Err(_)) => {
            Err(Problem::unavailable("the server is being stopped; retry later"))
        }
        Ok(Ok(other)) => Err(unexpected_answer(&other)),
    }
}

fn claims_only() -> Problem {
    Problem::forbidden(
        "the session claims calls of its group; only sessions of `windlass worker` make calls of the protocol",
    )
}
