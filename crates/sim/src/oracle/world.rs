//! One reading of the documents followed through a trace: the facts that follow from it.

use super::choices::Choices;
use super::net::{Begin, Net};
use super::routing::Joins;
use super::run::{Kind, Run, RunId, State};
use super::{Checked, Violation};
use crate::seen::{Ask, Bell, Firing, Reply, Seen, Status, Verdict, What};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc as Shared;

/// Report of a worker: its result and the flag that it sets.
pub(super) type Answer = (Reply, Option<(usize, bool)>);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct World {
    pub(super) net: Shared<Net>,
    pub(super) choices: Choices,
    /// A chain of instant steps did not end; nothing can be said any more.
    pub(super) boundless: bool,

    pub(super) now: i64,
    pub(super) status: Option<Status>,
    /// Milliseconds in starting and running: the execution's own clock.
    pub(super) elapsed: i64,
    pub(super) phase: Phase,
    pub(super) held: bool,
    pub(super) generation: u32,
    pub(super) losses: u32,

    pub(super) flags: BTreeSet<usize>,
    pub(super) runs: Vec<Run>,
    pub(super) joins: Joins,
    /// Tokens at the join steps of a playbook, with the step that each came from.
    pub(super) gathered: BTreeMap<usize, Vec<(usize, Option<i64>)>>,
    /// Step-runs that ended well, in order.
    pub(super) completed: Vec<RunId>,
    pub(super) failures: u32,
    pub(super) well: bool,
    /// Deadlines of gates whose token is gone. Their timers may still fire.
    pub(super) gone_gates: Vec<(usize, i64)>,

    pub(super) end: Option<Decided>,
    pub(super) uploads_owed: bool,

    pub(super) fence_max: u64,
    pub(super) firing_max: Firing,
    pub(super) used: BTreeSet<Firing>,
    pub(super) answered: BTreeMap<(Firing, u64), Answer>,
    pub(super) verdicts: BTreeMap<Firing, Verdict>,
    pub(super) stopped: BTreeSet<Firing>,
    /// Calls of agents that were accepted.
    pub(super) calls: BTreeSet<(Firing, u32)>,
    /// Tools an agent ruled out.
    pub(super) ruled_out: BTreeSet<usize>,
    pub(super) input: Input,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Starting,
    Live,
    Draining,
    Compensating,
    Finalizing,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Completed,
    Partial,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Quiet,
    Failure,
    Timeout,
    Cancel,
}

/// The outcome, decided once, and what follows from how it was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decided {
    pub(super) outcome: Outcome,
    pub(super) cause: Cause,
    pub(super) compensate: bool,
    pub(super) hooks_ran: bool,
}

/// Consequences of the last input from outside, until `Settled`.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Input {
    /// Begun in a slot.
    pub(super) began: Vec<RunId>,
    /// Could have been opened just before the outcome was decided in the same input.
    pub(super) passing: Vec<RunId>,
    pub(super) stops_owed: BTreeSet<Firing>,
    pub(super) stops_allowed: BTreeSet<Firing>,
    pub(super) stops_seen: BTreeSet<Firing>,
    pub(super) restart_owed: Option<u32>,
    /// Steps without a worker are running.
    pub(super) instant: bool,
    /// Steps without a worker ran before in this input.
    pub(super) chained: bool,
    pub(super) restarted: bool,
}

impl World {
    pub(super) fn new(net: Shared<Net>, tape: Vec<u8>) -> World {
        World {
            net,
            choices: Choices::along(tape),
            boundless: false,
            now: i64::MIN,
            status: None,
            elapsed: 0,
            phase: Phase::Queued,
            held: false,
            generation: 1,
            losses: 0,
            flags: BTreeSet::new(),
            runs: Vec::new(),
            joins: Joins::new(),
            gathered: BTreeMap::new(),
            completed: Vec::new(),
            failures: 0,
            well: false,
            gone_gates: Vec::new(),
            end: None,
            uploads_owed: false,
            fence_max: 0,
            firing_max: 0,
            used: BTreeSet::new(),
            answered: BTreeMap::new(),
            verdicts: BTreeMap::new(),
            stopped: BTreeSet::new(),
            calls: BTreeSet::new(),
            ruled_out: BTreeSet::new(),
            input: Input::default(),
        }
    }

    pub(super) fn see(&mut self, seen: &Seen) -> Checked {
        self.tick(seen.at)?;
        match &seen.what {
            What::Created => self.created(),
            What::Assigned { accepted } => self.assigned(*accepted),
            What::Begun { accepted } => self.begun(*accepted),
            What::Asked { ask, accepted } => self.asked(ask, *accepted),
            What::Reported { firing, fence, result, sets, accepted } => {
                self.reported(*firing, *fence, (*result, *sets), *accepted)
            }
            What::Lost { firing, fence, started, accepted } => {
                self.lost(*firing, *fence, *started, *accepted)
            }
            What::LostWhole { generation, accepted } => self.lost_whole(*generation, *accepted),
            What::AttemptTimedOut { firing, fence, accepted } => self.timed_out(*firing, *fence, *accepted),
            What::ChildEnded { firing, result, accepted } => self.child_ended(*firing, *result, *accepted),
            What::Rang { timer, accepted } => self.rang(*timer, *accepted),
            What::Uploaded { failed, accepted } => self.uploaded(*failed, *accepted),
            What::Dispatched { .. } | What::Opened { .. } => self.begins(&seen.what),
            What::StopAsked { firings } => self.stop_asked(firings),
            What::Restarted { generation } => self.restarted(*generation),
            What::Status(status) => self.turned(*status),
            What::Settled => self.settled(),
            What::Over => self.over(),
        }
    }

    fn tick(&mut self, at: i64) -> Checked {
        let passed = at.saturating_sub(self.now);
        match (passed < 0, self.status) {
            (true, _) => return self.broken("time", format!("time falls to {at}")),
            (false, Some(Status::Starting | Status::Running)) => self.elapsed += passed,
            (false, _) => {}
        }
        self.now = at;
        Ok(())
    }

    fn asked(&mut self, ask: &Ask, accepted: bool) -> Checked {
        match ask {
            Ask::Hold => self.hold(accepted),
            Ask::Resume => self.resume(accepted),
            Ask::Cancel { force, compensate } => self.cancel(*force, *compensate, accepted),
            Ask::Patch { flag, value } => self.patch(*flag, *value, accepted),
            Ask::Complete { firing, outcome, open, repeated } => {
                self.complete(*firing, *outcome, *open, *repeated, accepted)
            }
            Ask::RouteReady { firing } => self.route_ready(*firing, accepted),
            Ask::Agent { firing, fence, call, wish } => {
                self.agent_asks((*firing, *fence), *call, *wish, accepted)
            }
        }
    }

    fn rang(&mut self, timer: Bell, accepted: bool) -> Checked {
        match timer {
            Bell::Deadline => self.deadline_rang(accepted),
            Bell::Gate { step } => self.gate_rang(step, accepted),
            Bell::Backoff { firing }
            | Bell::Delay { firing }
            | Bell::Route { firing }
            | Bell::Person { firing }
            | Bell::Child { firing } => self.bell_rang(firing, timer, accepted),
        }
    }

    pub(super) fn broken<T>(&self, rule: &'static str, what: impl std::fmt::Display) -> Checked<T> {
        Err(Violation { rule, what: format!("{what}, at {} ms in {:?}", self.now, self.phase) })
    }

    /// The engine's answer must be the one the documents give.
    pub(super) fn agree(&self, rule: &'static str, due: bool, accepted: bool, what: &str) -> Checked {
        match (due, accepted) {
            (true, true) | (false, false) => Ok(()),
            (true, false) => self.broken(rule, format!("{what} was refused")),
            (false, true) => self.broken(rule, format!("{what} was accepted")),
        }
    }

    /// Everything that follows inside the engine from what was just accepted.
    pub(super) fn carry_on(&mut self) {
        loop {
            self.run_instants();
            if self.boundless || !self.turn_phase() {
                return;
            }
        }
    }

    pub(super) fn choose(&mut self, among: u8) -> u8 {
        self.choices.choose(among)
    }

    /// Follows both readings.
    pub(super) fn either(&mut self) -> bool {
        self.choose(2) == 1
    }

    pub(super) fn decided(&self) -> bool {
        self.end.is_some()
    }

    pub(super) fn live_run(&self, firing: Firing) -> Option<RunId> {
        self.runs.iter().position(|run| run.firing == Some(firing) && run.lives())
    }

    /// Work of the net proper while the outcome is decided: it is awaited and recorded, never routed.
    pub(super) fn drains(&self, id: RunId) -> bool {
        self.decided()
            && matches!(self.runs[id].of, Kind::Step | Kind::Iteration { .. } | Kind::Tool { .. })
            && !self.of_final(id)
    }

    /// Iterations of a final step that is a loop are the final step's own.
    fn of_final(&self, id: RunId) -> bool {
        match self.runs[id].of {
            Kind::Iteration { of } => self.runs[of].of == Kind::Final,
            Kind::Step | Kind::Final | Kind::Hook { .. } | Kind::Tool { .. } => false,
        }
    }

    /// Counts the taken slots. A step that waits for a tool takes none, like one that waits for a person.
    pub(super) fn slots_taken(&self) -> usize {
        let live = self.runs.iter().filter(|run| run.lives());
        let waits: BTreeSet<RunId> = live
            .filter_map(|run| match run.of {
                Kind::Tool { of } => Some(of),
                Kind::Step | Kind::Iteration { .. } | Kind::Final | Kind::Hook { .. } => None,
            })
            .collect();
        let works = |(id, run): &(RunId, &Run)| run.in_flight() && !waits.contains(id);
        self.runs.iter().enumerate().filter(works).count()
    }

    pub(super) fn slot_is_free(&self) -> bool {
        let capped = !matches!(self.phase, Phase::Compensating | Phase::Finalizing);
        match (capped, self.net.scenario.max_parallel) {
            (true, Some(most)) => self.slots_taken() < most as usize,
            (true, None) | (false, _) => true,
        }
    }

    pub(super) fn order(&self, id: RunId) -> u32 {
        self.net.step(self.runs[id].step).order
    }

    pub(super) fn is_ready(&self, id: RunId) -> bool {
        self.runs[id].state == State::Ready
    }

    pub(super) fn wants_slot(&self, id: RunId) -> bool {
        self.net.begin(&self.runs[id]).needs_slot()
    }

    pub(super) fn begin(&self, id: RunId) -> Begin {
        self.net.begin(&self.runs[id])
    }
}
