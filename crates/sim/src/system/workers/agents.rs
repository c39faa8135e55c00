//! Agents on a bench: a model that thinks, and asks for tools one after the other. As production agents do, it keeps every
//! decision before it asks for it, and what came of it before it thinks again.

use super::super::sabotage::Sabotage;
use super::super::world::{Happening, World};
use super::tools::Waits;
use super::{Caller, SentMessage};
use crate::invariants::Broken;
use serde_json::{Value, json};
use windlass_protocol::{AgentAnswer, AgentAsk, AgentCall, Call, Failure, Unit, codes};
use windlass_worker::Call as ToolCall;
use windlass_worker::session::Input;

/// The kind of a task that is an agent.
pub(in crate::system) const KIND: &str = "agent";
/// An answer that does not come is asked for again.
const ASK_AGAIN_MS: u64 = 4_000;
/// Decisions of one agent, at most.
const ROUNDS_MAX: u64 = 3;

#[derive(Debug)]
pub(super) struct Agent {
    tools: Vec<u32>,
    /// The attempt that it began in, which its calls are named by.
    began: u64,
    round: u64,
    rounds: u64,
    /// Number of checkpoints.
    kept: u64,
    /// Decisions that it has no answer to.
    open: Option<AgentAsk>,
}

impl Agent {
    /// Begins at the state of an earlier worker or attempt, or at the beginning.
    fn of(call: &ToolCall, attempt: u32, rounds: u64) -> Agent {
        let tools = call.config.get("tools").and_then(Value::as_array).into_iter().flatten();
        let memo = call.memo.clone().unwrap_or_default();
        let number = |key: &str, usual: u64| memo[key].as_u64().unwrap_or(usual);
        Agent {
            tools: tools.filter_map(Value::as_u64).map(|step| step as u32).collect(),
            began: number("began", attempt.into()),
            round: number("round", 0),
            rounds: number("rounds", rounds),
            kept: number("kept", 0),
            open: serde_json::from_value(memo["open"].clone()).unwrap_or_default(),
        }
    }

    fn memo(&self) -> Value {
        json!({ "began": self.began, "round": self.round, "rounds": self.rounds, "kept": self.kept, "open": self.open })
    }

    fn name(&self) -> String {
        format!("{}.{}", self.began, self.round)
    }
}

impl World {
    pub(super) fn agent_begins(&mut self, worker: usize, unit: Unit, call: &ToolCall) -> Result<(), Broken> {
        let rounds = self.rng.between(0, ROUNDS_MAX);
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        bench.agent = Some(Agent::of(call, bench.run.work().attempt, rounds));
        self.continue_agent(worker, unit)
    }

    /// Continues an agent: it requests what it has decided, thinks, or is done.
    pub(super) fn continue_agent(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        let (result, takes_ms) = self.call();
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        let Some(agent) = &bench.agent else { return Ok(()) };
        if agent.open.is_some() {
            bench.waits = Waits::Answer(agent.name());
            return self.agent_asks(worker, unit);
        }
        let thinks = agent.round < agent.rounds && result.outcome.is_ok();
        let waits = if thinks { Waits::Thought } else { Waits::Call(Box::new(result)) };
        self.wait_for(worker, unit, waits, takes_ms);
        Ok(())
    }

    /// The model has answered: what it decided is kept before anything else.
    pub(super) fn agent_decides(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        let (which, chance) = (self.rng.bits(), self.rng.below(100));
        let Some(agent) = self.bench(worker, unit).and_then(|bench| bench.agent.as_mut()) else {
            return Ok(());
        };
        let step = agent.tools[which as usize % agent.tools.len()];
        agent.round += 1;
        agent.open = Some(match chance {
            0..=84 => AgentAsk::Execute { step, args: json!({ "a": agent.round }) },
            85..=91 => AgentAsk::Skip { step, reason: "it is not needed".into() },
            92..=97 => AgentAsk::Pause { reason: "is that right?".into() },
            _ => AgentAsk::Fail { failure: Failure::of_code("GAVE_UP", "the agent failed the execution") },
        });
        self.agent_keeps(worker, unit)
    }

    fn agent_keeps(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        let Some(agent) = &mut bench.agent else { return Ok(()) };
        agent.kept += 1;
        bench.run.remember(agent.memo());
        bench.waits = Waits::Kept;
        let cursor = bench.run.cursor().into();
        self.feed(worker, Input::Reached { unit, cursor })
    }

    fn agent_asks(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        let life = self.workers[worker].life;
        let Some(agent) = self.bench(worker, unit).and_then(|bench| bench.agent.as_ref()) else {
            return Ok(());
        };
        let (Some(ask), call) = (agent.open.clone(), agent.name()) else { return Ok(()) };
        self.send(worker, sent(AgentCall { unit, call: call.clone(), ask }));
        if self.sabotage != Some(Sabotage::AgentAnswerLost) {
            let at = self.now + ASK_AGAIN_MS;
            self.agenda.plan(at, Happening::AsksAgain { worker, life, unit, call });
        }
        Ok(())
    }

    pub(in crate::system) fn asks_again(
        &mut self,
        worker: usize,
        life: u32,
        unit: Unit,
        call: &str,
    ) -> Result<(), Broken> {
        if self.process(worker, life).is_none() {
            return Ok(());
        }
        let renamed = self.sabotage == Some(Sabotage::AgentCallRenamed);
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        if bench.halted
            || bench.over.is_some()
            || !matches!(&bench.waits, Waits::Answer(open) if open == call)
        {
            return Ok(());
        }
        match &bench.agent {
            Some(Agent { open: Some(ask), .. }) if renamed => {
                let call = AgentCall { unit, call: format!("{call}'"), ask: ask.clone() };
                self.send(worker, sent(call));
                Ok(())
            }
            _ => self.agent_asks(worker, unit),
        }
    }

    /// Handles the result of a call. An answer to one that was answered before changes nothing.
    pub(super) fn agent_hears(
        &mut self,
        worker: usize,
        unit: Unit,
        call: &str,
        answer: &AgentAnswer,
    ) -> Result<(), Broken> {
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        let waits = matches!(&bench.waits, Waits::Answer(open) if open == call.trim_end_matches('\''));
        if !waits || bench.halted || bench.over.is_some() {
            return Ok(());
        }
        let Some(agent) = &mut bench.agent else { return Ok(()) };
        let gives_up = match agent.open.take() {
            Some(AgentAsk::Fail { failure }) if *answer == AgentAnswer::Noted => Some(failure),
            _ if *answer == AgentAnswer::Stale => Some(Failure::new(codes::STOPPED, "its work is over")),
            _ => None,
        };
        match gives_up {
            Some(failure) => {
                bench.agent = None;
                bench.waits = Waits::Nothing;
                bench.run.answer(Err(Box::new(failure)).into());
                self.advance(worker, unit)?;
                self.hand_in(worker)
            }
            None => self.agent_keeps(worker, unit),
        }
    }
}

fn sent(call: AgentCall) -> SentMessage {
    let caller = Caller::Agent { unit: call.unit, call: call.call.clone() };
    SentMessage { caller, call: Call::Agent(Box::new(call)) }
}
