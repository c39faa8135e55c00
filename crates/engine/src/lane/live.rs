//! Executions in memory: those with current inputs, and some that wait. All others are on disk only.

use super::deciding::{AwaitedState, Pending, PendingKind};
use crate::ids::IdMap;
use std::collections::VecDeque;
use std::sync::Arc;
use windlass_kernel::{
    Execution, ExecutionId, Fence, Input, Need, Net, NetDigest, Phase, RunId, RunState, Values,
};
use windlass_store::{DefinitionId, Origin, WorkflowId};

/// Maximum outputs and loop lists of one execution that are kept for its next decisions; others are read again.
const VALUES_MAX: usize = 256;
/// Maximum large values of one execution that are kept for its next decisions: a loop reads its list step by step.
const ARTIFACTS_MAX: usize = 4;
/// Maximum number of compiled nets; others are read and checked again.
const NETS_MAX: usize = 512;
/// Bytes of their specs: 512 of usual size. A net has about ten times as much in memory.
const NETS_BYTES_MAX: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct Live<R> {
    pub state: Execution<'static>,
    pub net: Arc<Net>,
    pub origin: Arc<Origin>,
    pub values: Values,
    /// Commits that are not on disk yet.
    pub unwritten: u32,
    /// Inputs that wait, in order: for values, or for the next batch.
    pub waiting: VecDeque<Pending<R>>,
    /// Whether values are being read. Nothing is decided until they arrive.
    pub blocked: bool,
    /// Values that have to be read and are not being read yet.
    pub missing: Vec<Need>,
    /// Callers that are answered when the execution rests.
    pub waiters: Vec<(AwaitedState, R)>,
}

impl<R> Live<R> {
    pub fn new(state: Execution<'static>, net: Arc<Net>, origin: Arc<Origin>) -> Live<R> {
        Live {
            state,
            net,
            origin,
            values: Values::default(),
            unwritten: 0,
            waiting: VecDeque::new(),
            blocked: false,
            missing: Vec::new(),
            waiters: Vec::new(),
        }
    }

    pub fn rests(&self, rest: AwaitedState) -> bool {
        match self.state.phase() {
            Phase::Ended(_) => true,
            Phase::Paused => rest == AwaitedState::Paused || !self.state.head.held,
            Phase::Blank
            | Phase::Queued
            | Phase::Starting
            | Phase::Running
            | Phase::Draining
            | Phase::Compensating
            | Phase::Finalizing => false,
        }
    }

    /// Returns the open offer that a report answers. A repeated report answers none, even if the execution continues with the
    /// rest of its work.
    pub fn answered_by(&self, what: &PendingKind) -> Option<(RunId, Fence)> {
        let PendingKind::Report(input) = what else { return None };
        let Input::Report(report) = &**input else { return None };
        let state = &self.state.run(report.run)?.state;
        let open = matches!(state, RunState::Offered { fence } if *fence == report.fence);
        open.then_some((report.run, report.fence))
    }

    /// Returns whether the whole execution is on disk and no caller waits. A worker may have a part of it.
    fn is_idle(&self) -> bool {
        self.unwritten == 0 && self.waiting.is_empty() && !self.blocked && self.waiters.is_empty()
    }

    /// Returns whether it has offers, some of which workers may hold.
    fn has_offers(&self) -> bool {
        self.state.head.census.offered > 0 && !self.state.phase().is_ended()
    }

    /// Removes old values. Those of commits that are not on disk could not be read again, and those that are being read
    /// may have been searched for before they were there.
    pub fn trim_values(&mut self) {
        if self.unwritten > 0 || self.blocked {
            return;
        }
        self.values.results.clear();
        self.values.firings = None;
        if self.values.outputs.len() > VALUES_MAX {
            self.values.outputs.clear();
        }
        if self.values.items.len() > VALUES_MAX {
            self.values.items.clear();
        }
        if self.values.artifacts.len() > ARTIFACTS_MAX {
            self.values.artifacts.clear();
        }
    }
}

#[derive(Debug)]
pub(super) enum Residency<R> {
    /// The execution is being read; inputs wait in order.
    Loading(VecDeque<Pending<R>>),
    Live(Box<Live<R>>),
}

#[derive(Debug)]
pub(super) struct Executions<R> {
    places: IdMap<ExecutionId, Residency<R>>,
    nets: IdMap<NetDigest, Arc<Net>>,
    /// Bytes of the specs of `nets`.
    nets_bytes: usize,
    definitions: IdMap<DefinitionId, (Arc<Net>, WorkflowId)>,
    /// Idle executions, oldest first; an entry may be out of date.
    idle: VecDeque<ExecutionId>,
}

impl<R> Default for Executions<R> {
    fn default() -> Self {
        let (nets, definitions) = (IdMap::default(), IdMap::default());
        Executions { places: IdMap::default(), nets, nets_bytes: 0, definitions, idle: VecDeque::new() }
    }
}

impl<R> Executions<R> {
    pub fn get(&self, id: ExecutionId) -> Option<&Live<R>> {
        match self.places.get(&id) {
            Some(Residency::Live(live)) => Some(live),
            Some(Residency::Loading(_)) | None => None,
        }
    }

    pub fn get_mut(&mut self, id: ExecutionId) -> Option<&mut Live<R>> {
        match self.places.get_mut(&id) {
            Some(Residency::Live(live)) => Some(live),
            Some(Residency::Loading(_)) | None => None,
        }
    }

    pub fn place(&mut self, id: ExecutionId) -> Option<&mut Residency<R>> {
        self.places.get_mut(&id)
    }

    pub fn put(&mut self, id: ExecutionId, place: Residency<R>) {
        self.places.insert(id, place);
    }

    pub fn take(&mut self, id: ExecutionId) -> Option<Residency<R>> {
        self.places.remove(&id)
    }

    pub fn net(&self, digest: NetDigest) -> Option<Arc<Net>> {
        self.nets.get(&digest).cloned()
    }

    pub fn keep_net(&mut self, net: &Arc<Net>) {
        if self.nets.contains_key(&net.digest()) {
            return;
        }
        if self.nets.len() >= NETS_MAX || self.nets_bytes + net.bytes() > NETS_BYTES_MAX {
            self.nets.clear();
            self.definitions.clear();
            self.nets_bytes = 0;
        }
        self.nets_bytes += net.bytes();
        self.nets.insert(net.digest(), net.clone());
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn definition(&self, id: DefinitionId) -> Option<(Arc<Net>, WorkflowId)> {
        self.definitions.get(&id).cloned()
    }

    pub fn keep_definition(&mut self, id: DefinitionId, net: &Arc<Net>, workflow: WorkflowId) {
        self.keep_net(net);
        if self.definitions.len() >= NETS_MAX {
            self.definitions.clear();
        }
        self.definitions.insert(id, (net.clone(), workflow));
    }

    /// Lists all callers that wait for an execution to rest, in the order of the executions.
    pub fn take_waiters(&mut self) -> Vec<R> {
        let mut waited: Vec<_> = self.places.iter_mut().collect();
        waited.sort_by_key(|(id, _)| **id);
        let waiters = waited.into_iter().flat_map(|(_, place)| match place {
            Residency::Live(live) => {
                std::mem::take(&mut live.waiters).into_iter().map(|(_, reply)| reply).collect()
            }
            Residency::Loading(_) => Vec::new(),
        });
        waiters.collect()
    }

    /// Removes executions from memory: ended ones at once, waiting ones when there are too many. The oldest are removed
    /// first, but of those that wait for a slot the newest, because its turn comes last. Those that a worker has a part
    /// of stay.
    pub fn evict_idle(
        &mut self,
        id: ExecutionId,
        idle_max: usize,
        is_worked_on: &dyn Fn(ExecutionId) -> bool,
    ) {
        let Some(live) = self.get(id).filter(|live| live.is_idle()) else { return };
        let has_offers = live.has_offers();
        if has_offers && is_worked_on(id) {
            return;
        }
        if live.state.phase().is_ended() || (has_offers && self.places.len() > idle_max) {
            self.places.remove(&id);
            return;
        }
        self.idle.push_back(id);
        while self.idle.len() > idle_max {
            let Some(oldest) = self.idle.pop_front() else { break };
            let may_leave = |live: &Live<R>| live.is_idle() && !(live.has_offers() && is_worked_on(oldest));
            if self.places.len() > idle_max && self.get(oldest).is_some_and(may_leave) {
                self.places.remove(&oldest);
            }
        }
    }
}
