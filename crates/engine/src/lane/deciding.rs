//! Inputs for the kernel: they wait for their execution, are decided, or are refused.

use super::Lane;
use super::asking::CheckedCall;
use super::batch::{Building, WriteFollowUp};
use super::depth;
use super::dispatch::{Cursor, unit};
use super::live::{Live, Residency};
use super::reading::LookupReason;
use super::retry::Forking;
use super::sessions::{given_back, grace_ms};
use super::whole::is_taken_whole;
use crate::wake::{Defaults, EngineAnswer, InputsLookup, Lookup, PreparedStart, Refusal, Start};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_artifact::Artifact;
use windlass_kernel::{
    Create, Decision, Event, Execution, ExecutionId, Fence, Given, Input, LeaseLost, LeaseUnit, Loss, Millis,
    Need, Net, Phase, Rejected, RunId, Timer, Values, any_of, decide, has_templates, overlay,
};
use windlass_protocol as protocol;
use windlass_store::{Audit, Creation, Definition, Entry, MailId, Origin, Tenant, WHOLE, WorkflowId, Write};

/// An input that waits for its execution or is being decided.
#[derive(Debug)]
pub(super) struct Pending<R> {
    pub what: PendingKind,
    pub reply: Option<R>,
    /// The inbox row of the input.
    pub mail: Option<MailId>,
    /// Audit entry that is written with the commit of the change; a request that changes nothing is not audited.
    pub audit: Option<Box<Audit>>,
}

/// Caller that requests a new execution.
#[derive(Debug)]
pub(super) struct StartRequester<R> {
    pub reply: Option<R>,
    pub mail: Option<MailId>,
    pub audit: Option<Box<Audit>>,
}

/// State of an execution that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AwaitedState {
    /// Ended, or waiting for people. A held execution waits for its release.
    ForPeople,
    /// Ended, or paused for any reason.
    Paused,
}

#[derive(Debug)]
pub(super) enum PendingKind {
    Input(Box<Input>),
    /// A call of a worker, answered with a verdict.
    Report(Box<Input>),
    /// A call of a worker on behalf of an agent, answered when what it begins has ended.
    Agent(Box<Input>),
    Create(Box<Input>, Creation),
    Fork(Box<Forking>),
    Await(AwaitedState),
    /// A queued offer has a slot.
    Dispatch {
        run: RunId,
        fence: Fence,
        tenant: Tenant,
    },
    /// The start time has come.
    StartDue,
    /// A queued start has a slot.
    Begin {
        tenant: Tenant,
    },
    /// An execution that waits for its worker has a slot.
    Assign {
        tenant: Tenant,
    },
    /// A slot of a worker outside of this process is reserved for the execution or for one of its offers.
    Taken {
        run: RunId,
        fence: Fence,
        session: protocol::SessionId,
    },
    /// Passes an offer to the worker that holds its execution.
    Inside {
        run: RunId,
        fence: Fence,
    },
    /// The worker that took an execution is ready for its steps: answered with a verdict.
    WholeReady {
        fence: Fence,
    },
    /// The worker that took an execution no longer has it: answered with a verdict.
    WholeEnded {
        fence: Fence,
        loss: Loss,
        failure: Option<Box<protocol::Failure>>,
    },
    /// The worker of an offer does not list it: it may not have received it.
    Again {
        run: RunId,
        fence: Fence,
    },
    /// A queued offer has a claim of its group.
    Claimed {
        run: RunId,
        fence: Fence,
        session: protocol::SessionId,
    },
    /// A worker outside of this process reads its work again.
    Fetch {
        run: RunId,
        fence: Fence,
    },
    /// A worker needs a resource that depends on the definition of its unit.
    Asked {
        call: Box<protocol::ResourceCall>,
        is_remote: bool,
    },
    /// A worker outside of this process makes a call that the definition of its unit decides on.
    Relayed(Box<CheckedCall>),
    /// A worker outside of this process repeats a report.
    Repeat {
        input: Box<Input>,
        run: RunId,
        fence: Fence,
        tenant: Tenant,
    },
    /// An offer from before the start is queued again.
    Sort {
        run: RunId,
        fence: Fence,
    },
    /// A worker outside of this process still holds an offer of the last process.
    Kept {
        run: RunId,
        fence: Fence,
        claimed_at: Millis,
    },
}

impl PendingKind {
    /// Returns the answer to an input that no execution decides: the work of a worker is stale.
    pub(super) fn refuse(&self, refusal: Refusal) -> EngineAnswer {
        match self {
            PendingKind::Report(_)
            | PendingKind::Repeat { .. }
            | PendingKind::WholeReady { .. }
            | PendingKind::WholeEnded { .. } => EngineAnswer::verdict(protocol::Verdict::Stale),
            PendingKind::Agent(_) => EngineAnswer::agent(protocol::AgentAnswer::Stale),
            PendingKind::Asked { .. } => EngineAnswer::resource(protocol::ResourceReply::Stale),
            PendingKind::Relayed(call) => call.stale(),
            any_of![PendingKind: Input Create Fork Await Dispatch StartDue Begin Assign Taken Inside Again Claimed Fetch Sort Kept] => {
                EngineAnswer::Refused(refusal)
            }
        }
    }
}

/// A start whose whole inputs are being rendered.
#[derive(Debug)]
pub(super) struct Starting {
    id: ExecutionId,
    net: Arc<Net>,
    /// The start, without inputs and defaults.
    pub start: Start,
}

impl<R> StartRequester<R> {
    pub fn pending(self, what: PendingKind) -> Pending<R> {
        let StartRequester { reply, mail, audit } = self;
        Pending { what, reply, mail, audit }
    }
}

impl<R> Pending<R> {
    pub fn input(input: Input) -> Pending<R> {
        Pending { what: PendingKind::Input(Box::new(input)), reply: None, mail: None, audit: None }
    }

    /// Creates the input for a lease that ended without a report of its worker.
    pub fn lost_lease((run, fence): (RunId, Fence), loss: Loss, cursor: Cursor) -> Pending<R> {
        if run == WHOLE {
            let what = PendingKind::WholeEnded { fence, loss, failure: None };
            return Pending { what, reply: None, mail: None, audit: None };
        }
        let unit = LeaseUnit::Run { run, fence };
        Pending::input(Input::LeaseLost(LeaseLost { unit, loss, cursor }))
    }
}

impl<R> Lane<R> {
    /// Continues a start for which the tenant has room.
    pub(super) fn start(&mut self, start: Start, reply: R) {
        let Some(definition) = start.origin.definition else {
            return self.answer(reply, EngineAnswer::Refused(Refusal::NoDefinition));
        };
        match self.executions.definition(definition) {
            Some((net, workflow)) => self.start_of(&net, workflow, start, reply),
            None => self.read(Lookup::Definition(definition), LookupReason::Start(Box::new(start), reply)),
        }
    }

    pub(super) fn start_of(&mut self, net: &Arc<Net>, workflow: WorkflowId, mut start: Start, reply: R) {
        Arc::make_mut(&mut start.origin).workflow = Some(workflow);
        let net = match &start.net {
            Some(own) => {
                self.keep_other_net(own);
                own.clone()
            }
            None => net.clone(),
        };
        let id = self.new_execution_id();
        let (given, defaults) = (start.inputs.take(), start.defaults.take());
        if has_templates(&defaults) {
            let (tenant, given) = (start.origin.tenant.clone(), Arc::new(given));
            let lookup = InputsLookup { execution: id, tenant, given, defaults: Defaults::Of(defaults) };
            let starting = Box::new(Starting { id, net, start });
            return self.read(Lookup::Inputs(Box::new(lookup)), LookupReason::Inputs(starting, reply));
        }
        let mut inputs = defaults;
        overlay(&mut inputs, given);
        self.inputs_found(Starting { id, net, start }, Ok(PreparedStart { inputs, net: None }), reply);
    }

    pub(super) fn inputs_found(
        &mut self,
        starting: Starting,
        prepared: Result<PreparedStart, String>,
        reply: R,
    ) {
        let Starting { id, net, start } = starting;
        let inputs = match prepared {
            Ok(prepared) => prepared.inputs,
            Err(why) => return self.answer(reply, EngineAnswer::Refused(Refusal::BadInputs(why))),
        };
        let create = Create { timeout_ms: start.timeout_ms, start: start.when, ..Create::new(id, inputs) };
        let requester = StartRequester { reply: Some(reply), mail: None, audit: None };
        self.create(&net, create, start.origin, requester);
    }

    /// Stores a Net that is not the one of its definition, unless it is known.
    pub(super) fn keep_other_net(&mut self, net: &Arc<Net>) {
        if self.executions.net(net.digest()).is_none() {
            self.open.write(Write::Net(net.clone()), WriteFollowUp::Nothing);
        }
    }

    pub(super) fn define(&mut self, definition: Box<Definition>, reply: R) {
        let net = definition.net.clone();
        self.open.write(Write::Define(definition), WriteFollowUp::Defined(reply, net));
    }

    /// Creates an execution; the store refuses an id that exists.
    pub(super) fn create(
        &mut self,
        net: &Arc<Net>,
        mut create: Create,
        origin: Arc<Origin>,
        requester: StartRequester<R>,
    ) {
        self.delay_start(net, &mut create, &origin);
        let (id, inputs) = (create.id, create.inputs.clone());
        let creation = Creation { origin: origin.clone(), net: net.digest(), inputs, at: self.now.wall };
        let what = PendingKind::Create(Box::new(Input::Create(Box::new(create))), creation);
        self.insert_new(id, net, origin, requester.pending(what));
    }

    /// Creates an execution that is not on disk yet. Inputs that arrived before its creation follow it.
    pub(super) fn insert_new(
        &mut self,
        id: ExecutionId,
        net: &Arc<Net>,
        origin: Arc<Origin>,
        beginning: Pending<R>,
    ) {
        self.executions.keep_net(net);
        let mut live = Live::new(Execution::default(), net.clone(), origin);
        live.waiting.push_back(beginning);
        if let Some(Residency::Loading(waiting)) = self.executions.take(id) {
            live.waiting.extend(waiting);
        }
        self.executions.put(id, Residency::Live(Box::new(live)));
        self.resume(id);
    }

    /// Decides inputs in order, as soon as the execution is in memory and not blocked.
    pub(super) fn enqueue_input(&mut self, id: ExecutionId, pending: Pending<R>) {
        if self.quarantined.holds(id) {
            return self.answer_quarantined(id, pending);
        }
        match self.executions.place(id) {
            Some(Residency::Loading(waiting)) => waiting.push_back(pending),
            Some(Residency::Live(live)) if live.blocked || !live.waiting.is_empty() => {
                live.waiting.push_back(pending)
            }
            Some(Residency::Live(_)) => self.handle(id, pending),
            None => {
                self.executions.put(id, Residency::Loading(VecDeque::from([pending])));
                self.read(Lookup::Execution(id), LookupReason::Load(id));
            }
        }
    }

    /// Continues with waiting inputs, until one is blocked again.
    pub(super) fn resume(&mut self, id: ExecutionId) {
        while let Some(live) = self.executions.get_mut(id)
            && !live.blocked
            && !self.open.is_closed_for(id)
            && let Some(pending) = live.waiting.pop_front()
        {
            self.handle(id, pending);
        }
        if self.open.is_closed_for(id) && self.executions.get(id).is_some_and(|live| !live.waiting.is_empty())
        {
            self.open.deferred.push(id);
        }
        self.rest(id);
    }

    pub(super) fn go_on(&mut self, id: ExecutionId) {
        let goes_on = Pending::input(Input::Continue);
        if let Some(live) = self.executions.get_mut(id) {
            live.waiting.push_front(goes_on);
            self.resume(id);
        } else {
            self.enqueue_input(id, goes_on);
        }
    }

    fn handle(&mut self, id: ExecutionId, mut pending: Pending<R>) {
        self.config.activities.lane.begin_execution(id);
        match pending.what {
            PendingKind::Await(rest) => self.await_rest(id, rest, pending),
            PendingKind::Dispatch { run, fence, tenant } => self.hand_out(id, run, fence, tenant),
            PendingKind::StartDue => self.start_due(id),
            PendingKind::Begin { tenant } => self.begin_queued(id, &tenant),
            PendingKind::Assign { tenant } => self.assign(id, tenant),
            PendingKind::Taken { run, fence, session } => self.give_to_runner(id, run, fence, session),
            PendingKind::Inside { run, fence } => self.hand_inside(id, run, fence),
            PendingKind::WholeReady { fence } => self.whole_ready(id, fence, pending),
            PendingKind::WholeEnded { fence, loss, ref mut failure } => {
                let failure = failure.take();
                self.whole_ended(id, fence, (loss, failure), pending);
            }
            PendingKind::Again { run, fence } => self.send_again(unit(id, run, fence)),
            PendingKind::Claimed { run, fence, session } => self.hand_to_claim(id, run, fence, session),
            PendingKind::Fetch { run, fence } => self.fetch(unit(id, run, fence), pending),
            PendingKind::Asked { call, is_remote } => {
                if let Some(reply) = pending.reply {
                    self.serve_held(*call, is_remote, reply);
                }
                self.rest(id);
            }
            PendingKind::Relayed(call) => {
                if let Some(reply) = pending.reply {
                    self.make_held(*call, pending.audit, reply);
                }
                self.rest(id);
            }
            PendingKind::Repeat { .. } => self.repeat(id, pending),
            PendingKind::Sort { run, fence } => {
                self.enqueue(id, run, fence);
                self.rest(id);
            }
            PendingKind::Kept { run, fence, claimed_at } => self.rearm(id, run, fence, claimed_at),
            PendingKind::Fork(_) => self.fork(id, pending),
            PendingKind::Input(_)
            | PendingKind::Report(_)
            | PendingKind::Agent(_)
            | PendingKind::Create(..) => self.decide(id, pending),
        }
    }

    pub(super) fn wait_for(&mut self, id: ExecutionId, rest: AwaitedState, reply: R) {
        self.enqueue_input(
            id,
            Pending { what: PendingKind::Await(rest), reply: Some(reply), mail: None, audit: None },
        );
    }

    fn await_rest(&mut self, id: ExecutionId, rest: AwaitedState, pending: Pending<R>) {
        let (Some(live), Some(reply)) = (self.executions.get_mut(id), pending.reply) else { return };
        if live.unwritten == 0 && live.rests(rest) {
            let phase = live.state.phase();
            self.answer(reply, EngineAnswer::Rested(phase));
        } else {
            live.waiters.push((rest, reply));
        }
    }

    pub(super) fn decide(&mut self, id: ExecutionId, mut pending: Pending<R>) {
        if self.open.is_closed_for(id) {
            self.open.deferred.push(id);
            if let Some(live) = self.executions.get_mut(id) {
                live.waiting.push_front(pending);
            }
            return;
        }
        if let Err(rejected) = bound_depth(&mut pending.what) {
            return self.refused(id, pending, rejected);
        }
        let random = self.random_bits();
        let checkpoint = self.checkpoint_of(id, &pending);
        let Some(live) = self.executions.get_mut(id) else { return };
        live.values.checkpoints = checkpoint.into_iter().collect();
        let (PendingKind::Input(input)
        | PendingKind::Report(input)
        | PendingKind::Agent(input)
        | PendingKind::Create(input, _)) = &pending.what
        else {
            return;
        };
        let given = Given { now: self.now.wall, random, values: &live.values };
        let decided = decide(&live.state, &live.net, input, &given);
        match decided {
            Ok(decision) => self.decided(id, pending, decision),
            Err(Rejected::Needs(needs)) => self.need(id, pending, needs),
            Err(Rejected::Broken(illegal)) if !matches!(pending.what, PendingKind::Create(..)) => {
                self.quarantine(id, format!("a decision violates an invariant: {illegal}"));
                self.answer_quarantined(id, pending);
            }
            Err(rejected) => match given_back(&pending.what, &rejected) {
                Some(lost) => self.decide(id, Pending { what: lost, ..pending }),
                None => self.refused(id, pending, rejected),
            },
        }
    }

    /// Returns the cursor of an attempt that timed out.
    fn checkpoint_of(&self, id: ExecutionId, pending: &Pending<R>) -> Option<((RunId, Fence), Arc<Value>)> {
        let PendingKind::Input(input) = &pending.what else { return None };
        let Input::TimerDue(Timer::Attempt { run, fence }) = **input else { return None };
        Some(((run, fence), self.sessions.cursor(unit(id, run, fence))?))
    }

    pub(super) fn decided(&mut self, id: ExecutionId, mut pending: Pending<R>, decision: Decision) {
        let answer = match &pending.what {
            PendingKind::Create(..) | PendingKind::Fork(_) => EngineAnswer::Started(id),
            PendingKind::Report(_) => EngineAnswer::verdict(protocol::Verdict::Accepted),
            PendingKind::Agent(_) => EngineAnswer::agent(protocol::AgentAnswer::Noted),
            any_of![PendingKind: Input Await Dispatch StartDue Begin Assign Taken Inside WholeReady WholeEnded Again Claimed Fetch
                Asked Relayed Repeat Sort Kept] => EngineAnswer::Accepted,
        };
        let Some(live) = self.executions.get_mut(id) else { return };
        live.values.answers.clear();
        if decision.records.is_empty() {
            self.settle_mail(pending.mail, None);
            return self.answer_when_written(id, pending, answer);
        }
        remember(live, &decision);
        if self.open.commit(id).is_none() {
            live.unwritten += 1;
            self.open.begin(Building::new(id, live.state.head.version, live.net.clone()));
        }
        let answers = live.answered_by(&pending.what);
        live.state.apply(&decision.changes);
        let inputs = live.state.head.inputs.clone();
        let Some(building) = self.open.commit(id) else { return };
        building.consumed.extend(pending.mail);
        let takes_over = if let PendingKind::Fork(forking) = &pending.what { Some(forking.of) } else { None };
        match &mut pending.what {
            PendingKind::Create(_, creation) => {
                building.creation = Some(Creation { inputs, ..creation.clone() })
            }
            PendingKind::Fork(forking) => {
                building.creation = Some(Creation { inputs, ..forking.creation.clone() });
                building.records = Arc::new(forking.take_records());
            }
            any_of![PendingKind: Input Report Agent Await Dispatch StartDue Begin Assign Taken Inside WholeReady WholeEnded Again
                Claimed Fetch Asked Relayed Repeat Sort Kept] => {}
        }
        building.answered.extend(answers);
        let grace_ms = grace_ms(&pending.what);
        building.decided.push((pending, answer));
        self.follow(id, &decision, grace_ms);
        let awaits_worker = self
            .executions
            .get(id)
            .is_some_and(|live| live.state.phase() == Phase::Queued && is_taken_whole(&live.net));
        let Some(building) = self.open.commit(id) else { return };
        building.awaits_worker = awaits_worker;
        building.goes_on =
            matches!(decision.records.last().map(|record| &record.event), Some(Event::Continued));
        building.changes.push(decision.changes);
        let owned: Vec<String> = decision.artifacts.iter().map(|artifact| artifact.key.clone()).collect();
        building.artifacts.extend(decision.artifacts);
        Arc::make_mut(&mut building.records).extend(decision.records);
        for (run, fence) in std::mem::take(&mut building.withdrawn) {
            self.enqueue_input(id, Pending::lost_lease((run, fence), Loss::NotStarted, None));
        }
        self.note_owned(id, takes_over, owned);
    }

    /// Notes which artifacts workers outside of this process may fetch for an execution that is bound to them: those that the
    /// engine made of its values, and those of an execution whose records it takes over.
    fn note_owned(&mut self, id: ExecutionId, takes_over: Option<ExecutionId>, owned: Vec<String>) {
        if self.runner_of(id).is_none() {
            return;
        }
        if let Some(from) = takes_over {
            let taken = Entry::ArtifactsTakenOver { from, to: id };
            self.open.write(Write::Entry(Box::new(taken)), WriteFollowUp::Nothing);
        }
        if !owned.is_empty() {
            self.own_artifacts(id, owned, WriteFollowUp::Nothing);
        }
    }

    /// Returns values that a decision needs: from commits that are not on disk yet, else from the disk.
    pub(super) fn need(&mut self, id: ExecutionId, pending: Pending<R>, needs: Vec<Need>) {
        let mut found = Values::default();
        let syncing = self.syncing.as_ref().and_then(|batch| batch.records_of(id));
        for records in [self.open.records_of(id), syncing].into_iter().flatten() {
            let mut part = Values::default();
            let is_here = |need: &&Need| !spans_commits(need);
            part.load(records, &needs.iter().filter(is_here).cloned().collect::<Vec<_>>());
            // If one of them has no answer, the other may still have one.
            part.answers.retain(|_, answer| answer.is_some());
            take_over(&mut found, part);
        }
        let Some(live) = self.executions.get_mut(id) else { return };
        live.waiting.push_front(pending);
        let missing: Vec<Need> = needs.into_iter().filter(|need| !holds(&found, need)).collect();
        take_over(&mut live.values, found);
        if missing.is_empty() {
            return self.resume(id);
        }
        live.blocked = true;
        live.missing = missing;
        self.read_missing(id);
    }

    /// Reads the values that a blocked execution waits for. Those of many commits are read when all of them are on
    /// disk.
    pub(super) fn read_missing(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get_mut(id) else { return };
        if live.missing.is_empty() || (live.unwritten > 0 && live.missing.iter().any(spans_commits)) {
            return;
        }
        let missing = std::mem::take(&mut live.missing);
        self.read(Lookup::Values(id, missing.clone()), LookupReason::Values(id, missing));
    }

    pub(super) fn values_found(&mut self, id: ExecutionId, needs: &[Need], mut found: Values) {
        for need in needs {
            match need {
                // No answer exists under that fence, or its value is no longer stored.
                Need::Answer(run, fence) => drop(found.answers.entry((*run, *fence)).or_default()),
                Need::Artifact(key) => drop(found.artifacts.entry(key.clone()).or_default()),
                Need::Output(run) | Need::Items(run) if !holds(&found, need) => {
                    let what = format!("a value of step-run {run} is in no journal row");
                    return self.quarantine(id, what);
                }
                // An execution that is being created has no rows: nothing has ended before this decision.
                Need::Results(_) | Need::Firings => found.load(&[], std::slice::from_ref(need)),
                Need::Output(_) | Need::Items(_) => {}
            }
        }
        let Some(live) = self.executions.get_mut(id) else { return };
        take_over(&mut live.values, found);
        live.blocked = false;
        self.resume(id);
    }

    pub(super) fn refused(&mut self, id: ExecutionId, pending: Pending<R>, rejected: Rejected) {
        if let Some(live) = self.executions.get_mut(id) {
            live.values.answers.clear();
        }
        if let PendingKind::Create(..) | PendingKind::Fork(_) = &pending.what {
            self.drop_missing_execution(id);
        }
        if let (PendingKind::Input(input), Rejected::NotDue { until }) = (&pending.what, &rejected)
            && let Input::TimerDue(timer) = **input
        {
            self.timers.arm(windlass_store::DueTimer { at: *until, execution: id, timer });
        }
        let answer = match &pending.what {
            PendingKind::Report(_) => EngineAnswer::verdict(verdict(&rejected)),
            PendingKind::Agent(_) => super::agents::refusal(&rejected),
            other => other.refuse(Refusal::Rejected(rejected.clone())),
        };
        self.mail_refused(&pending, &rejected);
        self.answer_when_written(id, pending, answer);
        self.rest(id);
    }

    /// Delays an answer that depends on a decision which is not on disk: a crash would make it untrue.
    pub(super) fn answer_when_written(&mut self, id: ExecutionId, pending: Pending<R>, answer: EngineAnswer) {
        if self.executions.get(id).is_some_and(|live| live.unwritten > 0) {
            self.open.answers.push((id, pending, answer));
        } else {
            self.reply_to(id, pending, answer);
        }
    }

    /// Removes mail that led to no commit from the inbox.
    pub(super) fn settle_mail(&mut self, mail: Option<MailId>, refused: Option<String>) {
        if let Some(mail) = mail {
            self.open.write(Write::Settle { mail, refused }, WriteFollowUp::Nothing);
        }
    }
}

fn bound_depth(what: &mut PendingKind) -> Result<(), Rejected> {
    match what {
        PendingKind::Input(input)
        | PendingKind::Report(input)
        | PendingKind::Agent(input)
        | PendingKind::Create(input, _) => depth::bound(input),
        any_of![PendingKind: Fork Await Dispatch StartDue Begin Assign Taken Inside WholeReady WholeEnded Again Claimed Fetch Asked Relayed
            Repeat Sort Kept] => Ok(()),
    }
}

fn verdict(rejected: &Rejected) -> protocol::Verdict {
    match rejected {
        Rejected::OtherAnswer { .. } | Rejected::Malformed(_) => protocol::Verdict::Conflict,
        any_of![Rejected: Needs Ended NotCreated Exists Conflict UnknownRun UnknownStep UnknownToken WrongGeneration
            StaleFence NotWaiting NotDue ContextTooLarge WrongNet Broken] => protocol::Verdict::Stale,
    }
}

/// Returns whether a value follows from the records of many commits: iterations and firings.
fn spans_commits(need: &Need) -> bool {
    match need {
        Need::Results(_) | Need::Firings => true,
        Need::Output(_) | Need::Items(_) | Need::Artifact(_) | Need::Answer(..) => false,
    }
}

fn holds(values: &Values, need: &Need) -> bool {
    match need {
        Need::Output(run) => values.outputs.contains_key(run),
        Need::Items(run) => values.items.contains_key(run),
        Need::Results(run) => values.results.contains_key(run),
        Need::Firings => values.firings.is_some(),
        Need::Artifact(key) => values.artifacts.contains_key(key),
        Need::Answer(run, fence) => values.answers.contains_key(&(*run, *fence)),
    }
}

fn take_over(values: &mut Values, found: Values) {
    values.outputs.extend(found.outputs);
    values.items.extend(found.items);
    values.results.extend(found.results);
    values.firings = found.firings.or(values.firings.take());
    values.artifacts.extend(found.artifacts);
    values.answers.extend(found.answers);
}

/// Keeps values that later decisions may need, at least until they are on disk. The state is that before the decision.
fn remember<R>(live: &mut Live<R>, decision: &Decision) {
    let Live { values, net, .. } = live;
    for Artifact { key, bytes } in &decision.artifacts {
        let value = serde_json::from_slice(bytes).map(Arc::new);
        values.artifacts.insert(key.clone(), value.ok());
    }
    // They were read for this decision, and the execution may have continued since.
    values.results.clear();
    values.firings = None;
    for record in &decision.records {
        let Some((run, change)) = record.event.run_change() else { continue };
        let output = change.output().filter(|_| net.reads_outputs());
        values.outputs.extend(output.map(|output| (run, output.clone())));
        values.items.extend(change.items().map(|items| (run, items.clone())));
    }
}
