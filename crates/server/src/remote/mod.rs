//! Workers outside of this process: their claims and reports, and the calls that are rendered for them.
//!
//! The engine is the authority on sessions and leases. The data here is a cache: a call that is not in memory, after a
//! restart or when there are too many, is rendered again when its result is reported.

mod budget;
mod calls;
mod groups;
mod handles;
mod limits;
mod runners;
mod threads;

pub(crate) use groups::{GROUPS_MAX, Groups};
pub(crate) use handles::SessionHandle;
pub(crate) use runners::{NewRunner, RelayAnswer, RelayedCall};

use crate::app::unexpected_answer;
use crate::cache::lock;
use crate::host::{now, remote_config};
use crate::problem::{Problem, ProblemCode};
use budget::CallBytes;
use calls::Calls;
use limits::CallLimits;
use runners::Mailboxes;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threads::RenderThreads;
use tokio::sync::oneshot;
use windlass_engine::{EngineAnswer, GroupCall, GroupLoad, GroupReply, Handle, Request, SessionKey};
use windlass_protocol::{Call, Failure, Outcome, Reply, Report, SessionId, Unit, Verdict, Work, WorkerRules};
use windlass_store::{RunnerGroup, Session, Tenant, WorkerSession};
use windlass_worker::{CallPreparer, Port, Prepared, RemoteConfig, RemoteUnit};

/// Maximum time for which a request waits, whatever the duration of a lease: proxies and clients give up longer ones.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct RemoteWorkers {
    preparer: Arc<CallPreparer>,
    threads: RenderThreads,
    engine: Handle,
    ttl_ms: u64,
    pub(crate) groups: Groups,
    calls: Mutex<Calls<Box<RemoteUnit>>>,
    limits: CallLimits,
    /// Bytes of calls of `windlass worker` processes.
    pub(crate) call_bytes: CallBytes,
    mailboxes: Mailboxes,
    rules: Arc<WorkerRules>,
}

/// A claim of a worker.
#[derive(Debug)]
pub(crate) struct ClaimRequest {
    pub(crate) slots: u32,
    pub(crate) kinds: Option<BTreeSet<String>>,
    pub(crate) wait: Duration,
    /// Whether the session was opened for this claim. Without a response, the session is not known to any worker.
    pub(crate) opens: bool,
}

/// Units of a session in the response to a heartbeat.
#[derive(Debug)]
pub(crate) struct HeldUnits {
    pub(crate) lost: Vec<Unit>,
    pub(crate) stop: Vec<Unit>,
}

impl RemoteWorkers {
    pub(crate) fn new(
        engine: Handle,
        config: RemoteConfig,
        ttl_ms: u64,
        groups: Vec<RunnerGroup>,
    ) -> RemoteWorkers {
        let sender = engine.clone();
        let port: Port = Arc::new(move |call, reply| sender.send(call, reply));
        let rules = Arc::clone(&config.rules);
        // Restrictions must apply before the first worker gets work.
        for group in groups.iter().filter(|group| group.cluster.is_some()) {
            engine.ask(Request::Group(restriction(group)), |_| {});
        }
        RemoteWorkers {
            preparer: Arc::new(CallPreparer::new(config, port)),
            threads: RenderThreads::default(),
            engine,
            ttl_ms,
            groups: Groups::new(groups),
            calls: Mutex::default(),
            limits: CallLimits::default(),
            call_bytes: CallBytes::default(),
            mailboxes: Mailboxes::default(),
            rules,
        }
    }

    /// Creates the state of remote workers without an engine, for a process that only reads.
    pub(crate) fn closed() -> anyhow::Result<RemoteWorkers> {
        Ok(RemoteWorkers::new(Handle::closed(), remote_config(Arc::default())?, 0, Vec::new()))
    }

    /// Rules for the work of every session.
    pub(crate) fn rules(&self) -> Arc<WorkerRules> {
        Arc::clone(&self.rules)
    }

    pub(crate) fn lease_ttl_ms(&self) -> u64 {
        self.ttl_ms
    }

    /// Returns the maximum wait: half of a lease, so that a worker that only polls renews its session in time, and within
    /// the time after which clients give up a request.
    pub(crate) fn longest_wait(&self) -> Duration {
        Duration::from_millis(self.ttl_ms / 2).min(LONGEST_WAIT)
    }

    async fn ask(&self, call: GroupCall) -> Result<GroupReply, Problem> {
        let (sender, answer) = oneshot::channel();
        if !self.engine.try_ask(Request::Group(call), move |answer| drop(sender.send(answer))) {
            return Err(overloaded());
        }
        read_reply(answer.await.ok())
    }

    /// Opens a session, which is on disk when this returns.
    pub(crate) async fn open(
        &self,
        tenant: &Tenant,
        group: &str,
        cluster: Option<String>,
    ) -> Result<SessionHandle, Problem> {
        let handle = SessionHandle::random()?;
        let opened_at = now();
        let session = WorkerSession {
            id: Session(handle.id().0),
            digest: handle.digest(),
            tenant: tenant.clone(),
            group: group.to_owned(),
            cluster,
            slots: 0,
            worker: String::new(),
            opened_at,
            expires_at: opened_at.plus(self.ttl_ms),
        };
        match self.ask(GroupCall::Open(Box::new(session))).await? {
            GroupReply::Opened => Ok(handle),
            GroupReply::TooManySessions { max } => {
                let message = format!("the tenant has {max} workers, which is the maximum; stop some first");
                Err(Problem::new(ProblemCode::LimitExceeded, message))
            }
            other => Err(unexpected_reply(other)),
        }
    }

    /// Restricts the work of the group to its cluster from now on.
    pub(crate) async fn restrict(&self, group: &RunnerGroup) -> Result<(), Problem> {
        self.ask(restriction(group)).await.map(drop)
    }

    /// Closes a session.
    fn leave(&self, key: SessionKey) {
        let call = Box::new(Call::Leave(key.id));
        self.engine.ask(Request::Group(GroupCall::Relay { session: key, call, audit: None }), |_| {});
    }

    /// Claims work, and waits until there is some. If the caller disconnects, the claimed work is offered to others.
    pub(crate) async fn claim(
        self: &Arc<Self>,
        key: SessionKey,
        request: ClaimRequest,
        stopped: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Vec<ClaimedUnit>, Problem> {
        let (mut sender, claimed) = oneshot::channel();
        let workers = Arc::clone(self);
        let opens = request.opens;
        tokio::spawn(async move {
            let ended = async {
                tokio::select! {
                    () = stopped => {}
                    () = sender.closed() => {}
                }
            };
            let units = match workers.wait_for_work(&key, request, ended).await {
                Ok(works) => Ok(workers.prepare_all(&key, works).await),
                Err(problem) => Err(problem),
            };
            let is_refused = units.is_err();
            let unheard = sender.send(units).err();
            if let Some(Ok(units)) = &unheard {
                workers.give_back(key.clone(), units).await;
            }
            if opens && (is_refused || unheard.is_some()) {
                workers.leave(key);
            }
        });
        claimed.await.map_err(|_| Problem::unavailable("the server is being stopped; retry later"))?
    }

    async fn wait_for_work(
        &self,
        key: &SessionKey,
        request: ClaimRequest,
        stopped: impl Future<Output = ()>,
    ) -> Result<Vec<Work>, Problem> {
        let ClaimRequest { slots, kinds, wait, opens: _ } = request;
        let (sender, mut answer) = oneshot::channel();
        let claim = Request::Group(GroupCall::Claim { session: key.clone(), slots, kinds });
        if !self.engine.try_ask(claim, move |answer| drop(sender.send(answer))) {
            return Err(overloaded());
        }
        let answered = tokio::select! {
            answered = &mut answer => answered,
            () = until(wait, stopped) => {
                let end = GroupCall::EndClaim { session: key.clone() };
                self.engine.ask(Request::Group(end), |_| {});
                answer.await
            }
        };
        match read_reply(answered.ok())? {
            GroupReply::Claimed(works) => Ok(works),
            GroupReply::NoSession => Err(no_session()),
            other => Err(unexpected_reply(other)),
        }
    }

    async fn prepare_all(&self, key: &SessionKey, works: Vec<Work>) -> Vec<ClaimedUnit> {
        let mut units = Vec::with_capacity(works.len());
        for work in works {
            if let Ok(Some(rendered)) = self.render(key, work).await {
                units.push(self.hand_out(key, rendered));
            }
        }
        units
    }

    /// Renders a call. Returns None if it ended before it could be made, which is reported.
    async fn render(&self, key: &SessionKey, work: Work) -> Result<Option<RenderedCall>, Problem> {
        let preparer = Arc::clone(&self.preparer);
        let rendering = async move {
            match preparer.prepare(work).await {
                Prepared::Call(call) => Ok(RenderedCall { memory: call.memory(), call }),
                Prepared::Ended(report) => Err(report),
            }
        };
        match self.threads.run(&key.tenant, rendering).await {
            Some(Ok(rendered)) => Ok(Some(rendered)),
            Some(Err(report)) => {
                self.send(report).await?;
                Ok(None)
            }
            None => Err(panicked()),
        }
    }

    fn hand_out(&self, key: &SessionKey, rendered: RenderedCall) -> ClaimedUnit {
        let RenderedCall { call, memory } = rendered;
        let claimed = ClaimedUnit::of(&call);
        lock(&self.calls).put(claimed.unit, key.clone(), call, memory);
        claimed
    }

    async fn give_back(&self, session: SessionKey, units: &[ClaimedUnit]) {
        let units: Vec<Unit> = units.iter().map(|claimed| claimed.unit).collect();
        units.iter().for_each(|unit| self.limits.remove(&session, *unit));
        if !units.is_empty() {
            let _ = self.ask(GroupCall::Return { session, units }).await;
        }
    }

    pub(crate) async fn beat(&self, key: SessionKey, held: Vec<Unit>) -> Result<HeldUnits, Problem> {
        let session = key.clone();
        match self.ask(GroupCall::Beat { session: key, held }).await? {
            GroupReply::Held { lost, stop } => {
                lost.iter().for_each(|unit| self.limits.remove(&session, *unit));
                let mut calls = lock(&self.calls);
                lost.iter().for_each(|unit| drop(calls.remove(&session.tenant, unit)));
                Ok(HeldUnits { lost, stop })
            }
            GroupReply::NoSession => Err(no_session()),
            other => Err(unexpected_reply(other)),
        }
    }

    /// Reports the result of a unit. `Err` with 409: the session does not hold the unit any more, and nothing changed.
    pub(crate) async fn report(
        &self,
        key: &SessionKey,
        unit: Unit,
        result: ReportedResult,
    ) -> Result<CallVerdict, Problem> {
        let verdict = self.report_call(key, unit, result).await?;
        self.limits.remove(key, unit);
        Ok(verdict)
    }

    async fn report_call(
        &self,
        key: &SessionKey,
        unit: Unit,
        result: ReportedResult,
    ) -> Result<CallVerdict, Problem> {
        let ReportedResult { outcome, receipt } = result;
        let Some(call) = self.take_call(key, unit).await? else {
            return self.report_again(key, unit, outcome).await;
        };
        let report = self.threads.run(&key.tenant, call.finish(outcome)).await.ok_or_else(panicked)?;
        let reported = GroupCall::Report { session: key.clone(), report, receipt };
        match self.ask_verdict(reported).await? {
            Verdict::Accepted => Ok(CallVerdict::Accepted),
            Verdict::Stale | Verdict::Conflict => Ok(CallVerdict::Stale),
        }
    }

    /// Returns the call of a unit that the session holds, from memory or rendered again.
    async fn take_call(&self, key: &SessionKey, unit: Unit) -> Result<Option<Box<RemoteUnit>>, Problem> {
        let known = lock(&self.calls).take(&unit, key);
        if let Some(call) = known {
            return Ok(Some(call));
        }
        Ok(self.render_again(key, unit).await?.map(|rendered| rendered.call))
    }

    /// Renders the call of a unit again; returns None if the session does not hold the unit.
    async fn render_again(&self, key: &SessionKey, unit: Unit) -> Result<Option<RenderedCall>, Problem> {
        if !self.engine.is_recovered() {
            return Err(Problem::unavailable("the server is starting; retry after the time in Retry-After"));
        }
        match self.ask(GroupCall::Fetch { session: key.clone(), unit }).await? {
            GroupReply::Claimed(works) => match works.into_iter().next() {
                Some(work) => self.render(key, work).await,
                None => Ok(None),
            },
            GroupReply::NotHeld => Ok(None),
            GroupReply::NoSession => Err(no_session()),
            other => Err(unexpected_reply(other)),
        }
    }

    /// Compares a report with the one that was accepted under its fence (R16).
    async fn report_again(
        &self,
        key: &SessionKey,
        unit: Unit,
        outcome: Result<Value, Box<Failure>>,
    ) -> Result<CallVerdict, Problem> {
        let outcome = match outcome {
            Ok(output) => Outcome::Done { output },
            Err(failure) => Outcome::Failed(*failure),
        };
        let report =
            Box::new(Report { unit, outcome, patch: Default::default(), metadata: Default::default() });
        let repeated = GroupCall::Repeat { session: key.clone(), report };
        Ok(match self.ask_verdict(repeated).await? {
            Verdict::Accepted => CallVerdict::Accepted,
            // Rules, retries and redaction change the report before it is stored in the journal.
            Verdict::Conflict => CallVerdict::IfReceipted,
            Verdict::Stale => CallVerdict::Stale,
        })
    }

    async fn ask_verdict(&self, call: GroupCall) -> Result<Verdict, Problem> {
        let (sender, answer) = oneshot::channel();
        if !self.engine.try_ask(Request::Group(call), move |answer| drop(sender.send(answer))) {
            return Err(overloaded());
        }
        match answer.await {
            Ok(EngineAnswer::Reply(Reply::Verdict(verdict))) => Ok(verdict),
            Ok(EngineAnswer::Group(GroupReply::NoSession)) => Err(no_session()),
            Ok(EngineAnswer::Stopping) | Err(_) => {
                Err(Problem::unavailable("the server is being stopped; retry later"))
            }
            Ok(_) => Ok(Verdict::Stale),
        }
    }

    /// Sends a report to the engine; the verdict comes when it is on disk.
    async fn send(&self, report: Box<Report>) -> Result<Verdict, Problem> {
        let (sender, verdict) = oneshot::channel();
        let mut sender = Some(sender);
        let reply = move |reply| drop(sender.take().map(|sender| sender.send(reply)));
        self.engine.send(Call::Report(report), Box::new(reply));
        match verdict.await {
            Ok(Reply::Verdict(verdict)) => Ok(verdict),
            Ok(other) => {
                Err(Problem::internal(format!("the engine returned an unexpected reply: {other:?}")))
            }
            Err(_) => Err(Problem::unavailable("the server is being stopped; retry later")),
        }
    }

    /// Counts work and workers of groups: of one tenant, or of all.
    pub(crate) async fn loads(&self, tenant: Option<Tenant>) -> Result<Vec<GroupLoad>, Problem> {
        match self.ask(GroupCall::List { tenant }).await? {
            GroupReply::Groups(loads) => Ok(loads),
            other => Err(unexpected_reply(other)),
        }
    }
}

/// Result that a worker reports for a unit.
#[derive(Debug)]
pub(crate) struct ReportedResult {
    pub(crate) outcome: Result<Value, Box<Failure>>,
    /// Proof that it was reported.
    pub(crate) receipt: [u8; 32],
}

/// Verdict on a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallVerdict {
    Accepted,
    /// Another report was accepted under the fence. It may follow from this report, which the receipt proves.
    IfReceipted,
    /// The session does not hold the unit, and nothing changed.
    Stale,
}

#[derive(Debug)]
struct RenderedCall {
    call: Box<RemoteUnit>,
    memory: u64,
}

/// A call as its worker gets it.
#[derive(Debug)]
pub(crate) struct ClaimedUnit {
    pub(crate) unit: Unit,
    pub(crate) step: String,
    pub(crate) kind: String,
    pub(crate) input: Value,
    pub(crate) idempotency_key: String,
    pub(crate) attempt: u32,
    /// Time limit of the attempt or of the call, whichever is shorter.
    pub(crate) limit_ms: Option<u64>,
    /// Time limit of the call.
    pub(crate) call_ms: Option<u64>,
}

impl ClaimedUnit {
    fn of(unit: &RemoteUnit) -> ClaimedUnit {
        let call = unit.call();
        ClaimedUnit {
            unit: unit.unit(),
            step: call.step.to_owned(),
            kind: call.operation.to_owned(),
            input: call.input.clone(),
            idempotency_key: call.idempotency_key.to_owned(),
            attempt: call.attempt,
            limit_ms: call.attempt_ms.into_iter().chain(call.call_ms).min(),
            call_ms: call.call_ms,
        }
    }
}

/// Completes when the time is over or when `ended` completes.
async fn until(wait: Duration, ended: impl Future<Output = ()>) {
    // In both cases the claim ends.
    let _ = tokio::time::timeout(wait, ended).await;
}

/// Returns the key by which the engine finds a session.
pub(crate) fn session_key(handle: &SessionHandle, tenant: &Tenant, group: Option<&str>) -> SessionKey {
    SessionKey {
        id: SessionId(handle.id().0),
        digest: handle.digest(),
        tenant: tenant.clone(),
        group: group.map(str::to_owned),
    }
}

/// Returns whether the caller has the session that claimed a unit, and may work for its group.
fn is_same(claimed: &SessionKey, caller: &SessionKey) -> bool {
    (claimed.id, &claimed.digest, &claimed.tenant) == (caller.id, &caller.digest, &caller.tenant)
        && (caller.group.is_none() || claimed.group.is_none() || caller.group == claimed.group)
}

fn read_reply(answer: Option<EngineAnswer>) -> Result<GroupReply, Problem> {
    match answer {
        Some(EngineAnswer::Group(reply)) => Ok(reply),
        Some(EngineAnswer::Refused(_)) => Ok(GroupReply::NotHeld),
        Some(EngineAnswer::Stopping) | None => {
            Err(Problem::unavailable("the server is being stopped; retry later"))
        }
        Some(other) => Err(unexpected_answer(&other)),
    }
}

fn unexpected_reply(reply: GroupReply) -> Problem {
    unexpected_answer(&EngineAnswer::Group(reply))
}

fn restriction(group: &RunnerGroup) -> GroupCall {
    let RunnerGroup { tenant, name, cluster, .. } = group.clone();
    GroupCall::Restrict { tenant, group: name, cluster }
}

fn panicked() -> Problem {
    Problem::internal("rendering the call of a worker panicked")
}

fn overloaded() -> Problem {
    Problem::unavailable("the engine is overloaded; retry after the time in Retry-After")
}

pub(crate) fn no_session() -> Problem {
    let message =
        "the session is unknown or has expired, and its work is offered to others; claim without `session`";
    Problem::new(ProblemCode::NotFound, message)
}

pub(crate) fn stale() -> Problem {
    Problem::conflict(
        "the session does not hold this unit, or reported another result for it; drop the result",
    )
}
