//! Dispatch of offers to workers, and the work that a worker gets.

use super::Lane;
use super::batch::WriteFollowUp;
use super::deciding::{Pending, PendingKind};
use super::live::Live;
use super::queue::{Queued, QueuedWork};
use serde_json::Value;
use std::sync::Arc;
use windlass_kernel::net::{LoopKind, Work};
use windlass_kernel::{
    Cause, Decided, Execution, ExecutionId, Fence, Loss, Need, Phase, RunId, RunState, StepRun, Timer, any_of,
};
use windlass_protocol as protocol;
use windlass_store::{DueTimer, Lease, Session, Tenant, WHOLE, Write};

/// Time after the timeout of an attempt at which the engine stops waiting for the worker. Normally the worker reports the
/// timeout itself, with the output of the program, also if it has to kill a program that ignores TERM.
const ATTEMPT_GRACE_MS: u64 = protocol::STOP_GRACE_MS + 2_000;

pub(super) fn unit(execution: ExecutionId, run: RunId, fence: Fence) -> protocol::Unit {
    protocol::Unit { execution: execution.0, run: run.0, fence: fence.0 }
}

impl<R> Lane<R> {
    /// Fills free slots with the next offers.
    pub(super) fn dispatch(&mut self) {
        self.dispatch_groups();
        self.dispatch_runners();
        self.queue.slots = self.sessions.slots();
        while !self.stopping && self.sessions.free() > self.queue.leaving() {
            let held = |tenant: &Tenant| self.sessions.held_by(tenant);
            let Some((tenant, Queued { execution, work })) = self.queue.pop(&held) else { return };
            let what = match work {
                QueuedWork::Offer(run, fence) => PendingKind::Dispatch { run, fence, tenant },
                QueuedWork::Start => PendingKind::Begin { tenant },
                QueuedWork::Whole => PendingKind::Assign { tenant },
            };
            self.enqueue_input(execution, Pending { what, reply: None, mail: None, audit: None });
        }
    }

    /// Leases a new offer to a free slot in its own commit, if no other waits longer and its values are in memory.
    pub(super) fn offered(&mut self, id: ExecutionId, run: RunId, fence: Fence) {
        if self.takes_whole(id) {
            return self.offer_inside(id, run, fence);
        }
        if let Some(route) = self.route(id, run) {
            return self.offer_to_group(id, run, fence, &route);
        }
        if let Some(key) = self.runner_of(id) {
            return self.offer_to_runner(id, run, fence, &key);
        }
        let Some(tenant) = self.executions.get(id).map(|live| live.origin.tenant.clone()) else { return };
        self.queue.slots = self.sessions.slots();
        let is_kept_free = self.starts.take_slot_of(id) && self.sessions.free() > 0 && !self.stopping;
        let straight = is_kept_free || self.has_slot(&tenant);
        let work = if straight { self.work(id, run, fence) } else { None };
        let session = work.as_ref().and_then(|_| self.sessions.take_slot());
        self.lease_new((id, run, fence), work, session.map(|session| (session, tenant)));
    }

    /// Leases a new offer to a session in the commit of the offer, and returns the session. Without a session, or while
    /// the values of its work are not in memory, the offer is queued.
    pub(super) fn lease_new(
        &mut self,
        (id, run, fence): (ExecutionId, RunId, Fence),
        work: Option<Result<protocol::Work, Vec<Need>>>,
        to: Option<(protocol::SessionId, Tenant)>,
    ) -> Option<protocol::SessionId> {
        let now = self.now.wall;
        let building = self.open.commit(id)?;
        let (Some(Ok(work)), Some((session, tenant))) = (work, to) else {
            building.queued.push((run, fence));
            return None;
        };
        building.leases.push(lease(id, run, fence, session, now));
        building.timers.extend(attempt_timer(id, run, fence, work.timeout_ms, now));
        building.orders.push((session, protocol::Order::Run(Box::new(work))));
        self.sessions.hold(session, unit(id, run, fence), tenant, now);
        Some(session)
    }

    /// Dispatches the next queued offer.
    pub(super) fn hand_out(&mut self, id: ExecutionId, run: RunId, fence: Fence, tenant: Tenant) {
        let work = match self.work(id, run, fence) {
            Some(Err(needs)) => {
                let what = PendingKind::Dispatch { run, fence, tenant };
                return self.need(id, Pending { what, reply: None, mail: None, audit: None }, needs);
            }
            Some(Ok(work)) => Some(work),
            None => None,
        };
        self.queue.left(&tenant);
        // The offer was queued twice: by recovery and by this process.
        let work = work.filter(|work| !self.sessions.is_held(work.unit));
        let Some(work) = work else { return };
        if self.route(id, run).is_some() || self.takes_whole(id) || self.runner_of(id).is_some() {
            return self.enqueue(id, run, fence);
        }
        if self.executions.get(id).is_some_and(|live| has_asked_to_stop(&live.state)) {
            return self.enqueue_input(id, Pending::lost_lease((run, fence), Loss::NotStarted, None));
        }
        let Some(session) = self.sessions.take_slot() else {
            let Some(live) = self.executions.get(id) else { return };
            let offer = Queued { execution: id, work: QueuedWork::Offer(run, fence) };
            return self.queue.put_back(&tenant, live.origin.options.priority, offer);
        };
        let now = self.now.wall;
        self.sessions.hold(session, unit(id, run, fence), tenant, now);
        if let Some(timer) = attempt_timer(id, run, fence, work.timeout_ms, now) {
            self.timers.arm(timer);
        }
        let write = Write::Lease(lease(id, run, fence, session, now));
        self.open.write(write, WriteFollowUp::Deliver(session, Box::new(work)));
    }

    /// Returns the work for the worker; None when the offer is no longer open, `Err` when values have to be read first.
    pub(super) fn work(
        &self,
        id: ExecutionId,
        run: RunId,
        fence: Fence,
    ) -> Option<Result<protocol::Work, Vec<Need>>> {
        if run == WHOLE {
            return self.whole_work(id, fence).map(Ok);
        }
        let live = self.executions.get(id)?;
        let step_run = live.state.run(run)?;
        let is_open = matches!(step_run.state, RunState::Offered { fence: open } if open == fence);
        let Work::Task { spec } = Execution::work_of(&live.net, step_run) else { return None };
        is_open.then(|| {
            let step = live.net.step(step_run.step);
            Ok(protocol::Work {
                unit: unit(id, run, fence),
                step: step.name.clone(),
                path: step_run.path.0.clone(),
                attempt: step_run.attempts + 1,
                // A restarted execution has new step-runs.
                losses: step_run.losses + live.state.head.restarts,
                spec: spec.clone(),
                scope: scope(live, step_run, spec)?,
                cursor: step_run.cursor.clone(),
                timeout_ms: Execution::timeout_of(&live.net, step_run),
                tenant: live.origin.tenant.to_string(),
                workflow: live.origin.workflow.map(|workflow| workflow.to_string()),
                debug: live.origin.options.debug,
                decided_ms: step_run.decided.map(|(_, at)| at.0),
                no_room: self.config.resources.no_room(&live.origin.tenant),
            })
        })
    }
}

/// Returns whether the execution has asked all its open work to stop. An offer that is still queued then has no worker
/// that could answer, neither in this process nor after a crash.
pub(super) fn has_asked_to_stop(state: &Execution<'_>) -> bool {
    let stops = |decided: Decided| matches!(decided.cause, Cause::Timeout | Cause::Cancel);
    state.phase() == Phase::Draining && state.head.decided.is_some_and(stops)
}

pub(super) fn lease(
    id: ExecutionId,
    run: RunId,
    fence: Fence,
    session: protocol::SessionId,
    now: windlass_kernel::Millis,
) -> Lease {
    let session = Session(session.0);
    Lease { execution: id, run, fence, session, claimed_at: now, started_at: Some(now) }
}

/// Returns the timer of an attempt that was claimed at a time.
pub(super) fn attempt_timer(
    execution: ExecutionId,
    run: RunId,
    fence: Fence,
    timeout_ms: Option<u64>,
    claimed_at: windlass_kernel::Millis,
) -> Option<DueTimer> {
    let at = claimed_at.plus(timeout_ms?.saturating_add(ATTEMPT_GRACE_MS));
    Some(DueTimer { at, execution, timer: Timer::Attempt { run, fence } })
}

fn scope<R>(live: &Live<R>, run: &StepRun, spec: &Value) -> Result<protocol::Scope, Vec<Need>> {
    let mut needs = Vec::new();
    let mut steps = Vec::with_capacity(run.reads.len());
    for (step, firing) in &run.reads {
        match live.values.outputs.get(firing) {
            Some(output) => steps.push((live.net.step(*step).name.clone(), output.clone())),
            None => needs.push(Need::Output(*firing)),
        }
    }
    let absent =
        live.net.step(run.step).reads.iter().filter(|read| run.reads.iter().all(|(of, _)| of != *read));
    let mut absent: Vec<String> = absent.map(|step| live.net.step(*step).name.clone()).collect();
    if spec.get("node").is_some() {
        absent.extend(inputs_named_like_steps(live, &steps, &mut needs));
    }
    let iteration = live.state.iteration_of(&live.net, run);
    let iter = iteration.and_then(|lap| describe_iteration(live, lap, &mut needs));
    let around = around(live, run, &mut needs);
    if !needs.is_empty() {
        return Err(needs);
    }
    let ctx = run.ctx.as_ref().unwrap_or(&live.state.head.ctx);
    Ok(protocol::Scope {
        workload: live.state.head.inputs.clone(),
        ctx: ctx.iter().map(|(key, value)| (key.clone(), (**value).clone())).collect(),
        args: run.args.clone(),
        summary: live.state.reads_summary(&live.net, run),
        iter,
        around,
        steps,
        absent,
    })
}

/// Programs of nodes see all inputs by name. An input with the name of a node is not a result of that node.
fn inputs_named_like_steps<R>(
    live: &Live<R>,
    given: &[(String, Arc<Value>)],
    needs: &mut Vec<Need>,
) -> Vec<String> {
    let whole = resolve(live, &live.state.head.inputs, needs);
    let names = whole.and_then(Value::as_object).into_iter().flat_map(|fields| fields.keys());
    let is_given = |name: &str| given.iter().any(|(step, _)| step == name);
    names.filter(|name| live.net.find(name).is_some() && !is_given(name)).cloned().collect()
}

/// Returns the value, or the large value that it refers to; None while that value is being read, or if it is lost.
fn resolve<'l, R>(live: &'l Live<R>, value: &'l Value, needs: &mut Vec<Need>) -> Option<&'l Value> {
    let Some(key) = windlass_artifact::key(value) else { return Some(value) };
    match live.values.artifacts.get(key) {
        Some(loaded) => loaded.as_deref(),
        None => {
            needs.push(Need::Artifact(key.to_owned()));
            None
        }
    }
}

/// Returns the enclosing loops that the work reads: they have no output while they run.
fn around<R>(live: &Live<R>, run: &StepRun, needs: &mut Vec<Need>) -> Vec<(String, protocol::Iter)> {
    let reads = &live.net.step(run.step).reads;
    let outwards = |(of, _): &(RunId, u32)| live.state.iteration_of(&live.net, live.state.run(*of)?);
    let mut around = Vec::new();
    for lap in std::iter::successors(live.state.iteration_of(&live.net, run), outwards) {
        let Some(looping) = live.state.run(lap.0).filter(|looping| reads.contains(&looping.step)) else {
            continue;
        };
        let name = live.net.step(looping.step).name.clone();
        around.extend(describe_iteration(live, lap, needs).map(|iter| (name, iter)));
    }
    around
}

fn describe_iteration<R>(
    live: &Live<R>,
    (of, index): (RunId, u32),
    needs: &mut Vec<Need>,
) -> Option<protocol::Iter> {
    let looping = live.state.run(of)?;
    let spec = live.net.step(looping.step).repeat.as_ref()?;
    let total = match &looping.state {
        RunState::Looping(state) => state.total,
        any_of![RunState: Ready Waiting Delayed Offered Backoff Manual Child] => None,
    };
    let item = match &spec.kind {
        LoopKind::ForEach { .. } => match live.values.items.get(&of) {
            Some(items) => {
                let items = resolve(live, items, needs);
                items.and_then(|items| items.get(index as usize)).cloned().unwrap_or_default()
            }
            None => {
                needs.push(Need::Items(of));
                return None;
            }
        },
        LoopKind::Count { .. } | LoopKind::While { .. } => index.into(),
    };
    Some(protocol::Iter { name: spec.iterator.clone(), item, index, total })
}

/// Returns the parts of a unit as the kernel names them.
pub(super) fn parts(unit: protocol::Unit) -> (ExecutionId, RunId, Fence) {
    (ExecutionId(unit.execution), RunId(unit.run), Fence(unit.fence))
}

pub(super) type Cursor = Option<Arc<Value>>;
