//! Executions whose first work finds no slot: they stay queued, so their timeout does not run, until their turn in the
//! queue of offers. Such a start is stored as a start at a past time, so its row is found again after a crash (K8).

use super::Lane;
use super::deciding::Pending;
use super::outside::has_local_work;
use super::queue::{Queued, QueuedWork};
use crate::ids::IdSet;
use windlass_kernel::net::Affinity;
use windlass_kernel::{Create, ExecutionId, Input, Millis, Net, Phase, StartWhen, Timer};
use windlass_store::{Origin, Tenant};

#[derive(Debug, Default)]
pub(super) struct Starts {
    /// Starts in the queue, or taken out of it.
    waiting: IdSet<ExecutionId>,
    /// The execution that starts now: its first offer gets the slot that was free for it.
    beginning: Option<ExecutionId>,
}

impl Starts {
    pub fn is_waiting(&self, id: ExecutionId) -> bool {
        self.waiting.contains(&id)
    }

    /// Notes that the execution is in the queue; false if it was there before.
    pub fn wait(&mut self, id: ExecutionId) -> bool {
        self.waiting.insert(id)
    }

    /// Notes that the execution has left the queue.
    pub fn leave(&mut self, id: ExecutionId) {
        self.waiting.remove(&id);
    }

    /// Returns whether a slot was kept free for an offer of this execution.
    pub fn take_slot_of(&mut self, id: ExecutionId) -> bool {
        self.beginning.take_if(|beginning| *beginning == id).is_some()
    }
}

impl<R> Lane<R> {
    /// Delays a start that would find no slot.
    pub(super) fn delay_start(&self, net: &Net, create: &mut Create, origin: &Origin) {
        let starts_now = create.start == StartWhen::Now && create.imports.is_empty();
        if starts_now && !self.has_slot(&origin.tenant) && needs_slot(net, origin) {
            create.start = StartWhen::At(self.now.wall.plus(1));
        }
    }

    pub(super) fn has_slot(&self, tenant: &Tenant) -> bool {
        !self.stopping
            && self.sessions.free() > 0
            && self.queue.lets_pass(tenant, &|tenant| self.sessions.held_by(tenant))
    }

    /// Begins a start whose time has come, or queues it.
    pub(super) fn start_due(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get(id) else { return };
        let (tenant, priority) = (live.origin.tenant.clone(), live.origin.options.priority);
        let waits = is_due(&live.state.head, self.now.wall) && needs_slot(&live.net, &live.origin);
        if !waits || self.has_slot(&tenant) {
            return self.decide(id, Pending::input(Input::TimerDue(Timer::Start)));
        }
        if self.starts.waiting.insert(id) {
            self.queue.push(&tenant, priority, Queued { execution: id, work: QueuedWork::Start });
        }
    }

    /// Begins a queued start, for which a slot is free.
    pub(super) fn begin_queued(&mut self, id: ExecutionId, tenant: &Tenant) {
        self.drop_queued_start(id, tenant);
        let Some(live) = self.executions.get(id) else { return };
        let (priority, is_queued) = (live.origin.options.priority, live.state.phase() == Phase::Queued);
        if is_queued && self.sessions.free() == 0 {
            self.starts.waiting.insert(id);
            let start = Queued { execution: id, work: QueuedWork::Start };
            return self.queue.put_back(tenant, priority, start);
        }
        if is_queued {
            self.starts.beginning = Some(id);
            self.decide(id, Pending::input(Input::TimerDue(Timer::Start)));
            self.starts.beginning = None;
        }
    }

    /// Notes that a start has left the queue, because it began or because the execution is quarantined.
    pub(super) fn drop_queued_start(&mut self, id: ExecutionId, tenant: &Tenant) {
        self.queue.left(tenant);
        self.starts.waiting.remove(&id);
    }
}

fn is_due(head: &windlass_kernel::Head, now: Millis) -> bool {
    head.phase == Phase::Queued && matches!(head.start, StartWhen::At(at) if at <= now)
}

/// Returns whether the execution is scheduled for a later time.
pub(super) fn is_later(head: &windlass_kernel::Head, now: Millis) -> bool {
    matches!(head.start, StartWhen::At(at) if at > now)
}

/// Returns whether any step of the net needs a worker of this process. A worker that takes a whole execution is waited for by
/// the kernel, and work for workers outside of this process waits as an offer.
fn needs_slot(net: &Net, origin: &Origin) -> bool {
    net.policy().affinity == Affinity::AnyWorker && origin.options.runner.is_none() && has_local_work(net)
}
