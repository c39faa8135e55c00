//! Agents: requests that workers make while they work. A call is answered when the step or the hold that it began has
//! ended. Meanwhile the slot of the waiting agent is lent to others, because the step it waits for may need it.

use super::Lane;
use super::deciding::{Pending, PendingKind};
use super::dispatch::{parts, unit};
use super::reading::LookupReason;
use crate::wake::{EngineAnswer, Lookup};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{
    AgentAsk, Event, ExecutionId, Facet, Input, LifeChange, Record, Rejected, RunChange, RunId, StepId,
    any_of,
};
use windlass_protocol as protocol;
use windlass_protocol::AgentAnswer;

/// Waiting calls. They are not on disk: a worker that takes over repeats them.
#[derive(Debug)]
pub(super) struct Agents<R> {
    waiting: BTreeMap<ExecutionId, Vec<Waiting<R>>>,
}

#[derive(Debug)]
struct Waiting<R> {
    agent: protocol::Unit,
    awaits: Awaits,
    reply: R,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaits {
    End(RunId),
    /// The end of the hold that the agent requested.
    HoldEnd,
}

impl<R> Default for Agents<R> {
    fn default() -> Self {
        Agents { waiting: BTreeMap::new() }
    }
}

impl<R> Agents<R> {
    pub fn take_all(&mut self) -> Vec<R> {
        std::mem::take(&mut self.waiting).into_values().flatten().map(|waiting| waiting.reply).collect()
    }

    fn take(&mut self, id: ExecutionId, wanted: impl Fn(Awaits) -> bool) -> Vec<Waiting<R>> {
        let Some(waiting) = self.waiting.get_mut(&id) else { return Vec::new() };
        let taken = waiting.extract_if(.., |waiting| wanted(waiting.awaits)).collect();
        if waiting.is_empty() {
            self.waiting.remove(&id);
        }
        taken
    }

    fn waits(&self, agent: protocol::Unit) -> bool {
        let (id, ..) = parts(agent);
        self.waiting.get(&id).is_some_and(|waiting| waiting.iter().any(|one| one.agent == agent))
    }
}

impl<R> Lane<R> {
    pub(super) fn agent(&mut self, call: protocol::AgentCall, reply: R) {
        let (execution, run, fence) = parts(call.unit);
        let input = Input::Agent { run, fence, call: call.call, ask: ask(call.ask) };
        let what = PendingKind::Agent(Box::new(input));
        self.enqueue_input(execution, Pending { what, reply: Some(reply), mail: None, audit: None });
    }

    /// Handles a decision that is on disk, now or since an earlier call. The caller waits for the end of what it
    /// began.
    pub(super) fn agent_noted(&mut self, id: ExecutionId, input: &Input, reply: R) {
        let Input::Agent { run, fence, call, ask } = input else { return };
        let agent = unit(id, *run, *fence);
        let live = self.executions.get(id);
        let began = live.and_then(|live| live.state.run(*run)?.calls.get(call).copied());
        match began {
            Some(tool) if tool != *run => self.await_end(agent, tool, reply),
            Some(_) if matches!(ask, AgentAsk::Pause { .. }) && self.is_held_on_disk(id) => {
                self.wait(agent, Awaits::HoldEnd, reply);
            }
            Some(_) => self.answer(reply, EngineAnswer::agent(AgentAnswer::Noted)),
            // An agent that failed the execution has ended with it.
            None if matches!(ask, AgentAsk::Fail { .. }) => {
                self.answer(reply, EngineAnswer::agent(AgentAnswer::Noted))
            }
            None => {
                let what = PendingKind::Agent(Box::new(input.clone()));
                let pending = Pending { what, reply: Some(reply), mail: None, audit: None };
                match live {
                    // The event that ended the agent meanwhile may not be on disk yet.
                    Some(_) => self.answer_when_written(id, pending, EngineAnswer::agent(AgentAnswer::Stale)),
                    // The execution has left memory, which does not mean that the agent has ended.
                    None => self.enqueue_input(id, pending),
                }
            }
        }
    }

    fn await_end(&mut self, agent: protocol::Unit, tool: RunId, reply: R) {
        let (id, ..) = parts(agent);
        let lives = self.executions.get(id).is_some_and(|live| live.state.run(tool).is_some());
        let ends_soon = self.unwritten_records(id).any(|records| end_of(records, tool).is_some());
        if lives || ends_soon {
            self.wait(agent, Awaits::End(tool), reply);
        } else {
            self.read(Lookup::End(id, tool, 0), LookupReason::ToolEnd(agent, tool, reply));
        }
    }

    /// Returns whether the execution is held according to the disk. An end of the hold that is not on disk yet does not
    /// count: the agent is answered when it is.
    fn is_held_on_disk(&self, id: ExecutionId) -> bool {
        let held = self.executions.get(id).is_some_and(|live| live.state.head.held);
        held || self.unwritten_records(id).any(|records| records.iter().any(|one| ends_hold(&one.event)))
    }

    /// Returns records of commits that are not on disk yet.
    fn unwritten_records(&self, id: ExecutionId) -> impl Iterator<Item = &[Record]> {
        let syncing = self.syncing.as_ref().and_then(|batch| batch.records_of(id));
        [self.open.records_of(id), syncing].into_iter().flatten().map(|records| records.as_slice())
    }

    pub(super) fn tool_end_found(
        &mut self,
        agent: protocol::Unit,
        tool: RunId,
        end: Option<AgentAnswer>,
        reply: R,
    ) {
        match end {
            Some(answer) => self.answer(reply, EngineAnswer::agent(answer)),
            None => {
                let (execution, ..) = parts(agent);
                let what = format!("step-run {tool} is not alive, and no record ends it");
                self.answer(reply, EngineAnswer::agent(AgentAnswer::Stale));
                self.quarantine(execution, what);
            }
        }
    }

    fn wait(&mut self, agent: protocol::Unit, awaits: Awaits, reply: R) {
        let (id, ..) = parts(agent);
        self.agents.waiting.entry(id).or_default().push(Waiting { agent, awaits, reply });
        self.sessions.lend(agent);
    }

    /// Handles records that are on disk.
    pub(super) fn answer_agents(&mut self, id: ExecutionId, records: &[Record]) {
        if !self.agents.waiting.contains_key(&id) {
            return;
        }
        for record in records {
            match record.event.facet() {
                Facet::Life(LifeChange::Released | LifeChange::OutcomeDecided) => {
                    self.answer_waiting(id, &AgentAnswer::Noted, |awaits| awaits == Awaits::HoldEnd);
                }
                Facet::Life(LifeChange::Ended(_) | LifeChange::Restarted(_)) => {
                    self.answer_waiting(id, &AgentAnswer::Stale, |_| true)
                }
                facet @ (Facet::Life(
                    any_of![LifeChange: Created Forked PauseChanged Patched Cleared StopAsked],
                )
                | any_of![Facet: Run Discarded Joined Internal]) => {
                    for (run, answer) in ends(facet) {
                        self.answer_waiting(id, &answer, |awaits| awaits == Awaits::End(run));
                    }
                }
            }
        }
    }

    fn answer_waiting(&mut self, id: ExecutionId, answer: &AgentAnswer, wanted: impl Fn(Awaits) -> bool) {
        for waiting in self.agents.take(id, wanted) {
            if !self.agents.waits(waiting.agent) {
                self.sessions.take_back(waiting.agent);
            }
            self.answer(waiting.reply, EngineAnswer::agent(answer.clone()));
        }
    }
}

/// Returns whether an event ends a hold: the execution was released, or its outcome is decided and work in flight runs
/// to its end.
fn ends_hold(event: &Event) -> bool {
    matches!(event.facet(), Facet::Life(LifeChange::Released | LifeChange::OutcomeDecided))
}

/// Returns the end of a step-run, if it is in these records.
pub(crate) fn end_of(records: &[Record], wanted: RunId) -> Option<AgentAnswer> {
    let mut all = records.iter().flat_map(|record| ends(record.event.facet()));
    all.find(|(run, _)| *run == wanted).map(|(_, answer)| answer)
}

fn ends(facet: Facet<'_>) -> Vec<(RunId, AgentAnswer)> {
    match facet {
        Facet::Run(run, RunChange::Done(output)) => {
            vec![(run, AgentAnswer::Done { output: Arc::clone(output) })]
        }
        Facet::Run(run, RunChange::Failed { failure, .. }) => {
            vec![(run, AgentAnswer::Failed(failure.clone()))]
        }
        Facet::Run(run, RunChange::Dropped(_)) => vec![(run, AgentAnswer::Cancelled)],
        Facet::Life(LifeChange::Cleared(cleared)) => {
            cleared.dropped.iter().map(|(run, ..)| (*run, AgentAnswer::Cancelled)).collect()
        }
        Facet::Run(
            _,
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual
            ChildStarted Returned Lost Retried Routed AgentDecided Internal],
        )
        | Facet::Life(
            any_of![LifeChange: Created Forked PauseChanged Released Patched OutcomeDecided StopAsked Ended
            Restarted],
        )
        | any_of![Facet: Discarded Joined Internal] => Vec::new(),
    }
}

/// Returns the refusal of a call as the agent gets it.
pub(super) fn refusal(rejected: &Rejected) -> EngineAnswer {
    EngineAnswer::agent(match rejected {
        Rejected::Malformed(_) | Rejected::UnknownStep(_) | Rejected::Conflict { .. } => {
            AgentAnswer::Refused { why: rejected.to_string() }
        }
        any_of![Rejected: Needs Ended NotCreated Exists UnknownRun UnknownToken WrongGeneration StaleFence
            OtherAnswer NotWaiting NotDue ContextTooLarge WrongNet Broken] => AgentAnswer::Stale,
    })
}

fn ask(ask: protocol::AgentAsk) -> AgentAsk {
    match ask {
        protocol::AgentAsk::Execute { step, args } => {
            AgentAsk::Execute { step: StepId(step), args: Some(Arc::new(args)) }
        }
        protocol::AgentAsk::Skip { step, reason } => AgentAsk::Skip { step: StepId(step), reason },
        protocol::AgentAsk::Pause { reason } => AgentAsk::Pause { reason },
        protocol::AgentAsk::Fail { failure } => AgentAsk::Fail { failure },
    }
}
