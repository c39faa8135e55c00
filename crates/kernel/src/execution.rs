//! The live state of one execution: tokens, live step-runs, counters. Ended step-runs are only in the journal, so
//! neither memory nor cost grows with history (R4).

use crate::event::{Cause, Parent, StartWhen, TokenValue};
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::input::Timer;
use crate::net::{Net, NetDigest, Work};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Ctx, Kind, Role, RunState, StepRun};
use crate::table::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;
use windlass_failure::Failure;

/// Live state. `'b` is the lifetime of the state below a draft; a state that is no draft is `Execution<'static>`.
#[derive(Debug, Clone, PartialEq, Hash, Default)]
pub struct Execution<'b> {
    pub head: Head,
    /// Enabled tokens that have not been evaluated yet.
    pub arrived: Table<'b, TokenId, Token>,
    /// Tokens that admission denied.
    pub gated: Table<'b, (StepId, TokenId), Box<Gate>>,
    pub joins: Table<'b, (StepId, Path), Box<JoinState>>,
    /// Tokens at join steps, which wait until no other branch can reach the step.
    pub joining: Table<'b, (StepId, TokenId), Token>,
    pub runs: Table<'b, RunId, Box<StepRun>>,
    /// Step-runs that have fired but not begun: those that need no slot first, then by (order, id).
    pub ready: Table<'b, (bool, u32, RunId), ()>,
    /// Loops that may open another iteration.
    pub hungry: Table<'b, RunId, ()>,
    /// Open iterations of bodies with several steps.
    pub scopes: Table<'b, (RunId, u32), Scope>,
    /// Iterations that a retry runs again, until their loop has room for them.
    pub parked: Table<'b, (RunId, u32), Box<ParkedIteration>>,
    /// The open loop run around a body.
    pub regions: Table<'b, (StepId, Path), RunId>,
    /// Newest completed firing of each step whose output is read.
    pub latest: Table<'b, (StepId, Path), RunId>,
    /// Compensation that is owed, newest completion first.
    pub owed: Table<'b, Reverse<u64>, (RunId, StepId)>,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// Stored once with the execution, not with every commit.
    #[serde(skip)]
    pub id: ExecutionId,
    /// Stored once with the execution.
    #[serde(skip)]
    pub net: NetDigest,
    /// Number of events so far.
    pub version: u64,
    /// Time of the newest event.
    pub at: Millis,
    pub phase: Phase,
    pub held: bool,
    pub generation: u32,
    pub next_run: RunId,
    pub next_fence: Fence,
    pub next_token: TokenId,
    /// Stored once with the execution.
    #[serde(skip)]
    pub inputs: Arc<Value>,
    /// Stored when it changes.
    #[serde(skip)]
    pub ctx: Ctx,
    pub start: StartWhen,
    pub timeout_ms: Option<u64>,
    pub clock: Clock,
    pub parent: Option<Arc<Parent>>,
    pub depth: u32,
    pub restarts: u32,
    pub census: Census,
    pub counts: Counts,
    pub decided: Option<Decided>,
    /// Failure that drained the execution; `None` if it drained because nothing was left to do.
    pub drained_by: Option<Arc<Failure>>,
    pub finale: Finale,
    pub imported: Arc<BTreeSet<StepId>>,
    /// Steps that an agent ruled out.
    pub ruled_out: Arc<BTreeSet<StepId>>,
    pub failures: Arc<Vec<FailureNote>>,
    /// The step-run that failed last, so that its tokens carry their origin.
    pub last_failed: Option<RunId>,
    /// Branches of each join step, by the step's number. It is empty in nets without join steps, and after a clearing. The
    /// fields from here on are last because rows of older releases end before them.
    #[serde(default)]
    pub branches: Vec<Branches>,
    /// Number of losses of its worker that count.
    #[serde(default)]
    pub losses: u32,
}

/// Branches of a join step. Counting them here spares every decision a search through tokens and step-runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Branches {
    /// Number of tokens and step-runs that can still reach the step, and of other join steps with waiting tokens that can.
    pub coming: u32,
    /// Number of tokens that wait at the step.
    pub waiting: u32,
}

/// Deadline of the execution, which does not run while it is paused (R10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Clock {
    #[default]
    None,
    Until(Millis),
    Left(u64),
}

/// Number of live step-runs by kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Census {
    pub ready: u32,
    pub waiting: u32,
    pub delayed: u32,
    pub offered: u32,
    pub backoff: u32,
    pub manual: u32,
    pub children: u32,
    pub looping: u32,
    /// Sub-executions that only people can continue; they are not among `children`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub paused_children: u32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// Sums over the whole history, for the outcome and for the final step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Counts {
    pub firings: u64,
    pub completed: u64,
    pub completed_without_triggers: u64,
    pub failed: u64,
    pub skipped: u64,
    /// Failures that no arc handled.
    pub unhandled: u64,
    pub branches_well: u64,
    pub branches_failed: u64,
    pub compensated: u32,
    pub compensation_failed: u32,
    pub compensation_not_run: u32,
    pub non_compensable: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Decided {
    pub outcome: Outcome,
    pub cause: Cause,
    pub compensate: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum Finale {
    #[default]
    NotRun,
    Ran,
    Failed,
}

/// Maximum number of failures in the summary for the final step; further ones are only counted.
pub const FAILURE_NOTES_MAX: usize = 16;

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct FailureNote {
    pub step: StepId,
    pub handled: bool,
    pub failure: Failure,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Token {
    pub step: StepId,
    pub path: Path,
    pub value: TokenValue,
    /// True once admission has been passed.
    pub admitted: bool,
    /// The step that emitted the token last, and whether that step failed.
    pub from: Option<(StepId, bool)>,
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Gate {
    pub token: Token,
    pub deadline: Option<Millis>,
}

#[derive(Debug, Clone, PartialEq, Hash, Default, Serialize, Deserialize)]
pub struct JoinState {
    pub arrived: u32,
    /// One bit per arc into the step, so that an arc delivers at most one token.
    pub slots: Vec<u64>,
    pub live: bool,
    pub dead: bool,
    pub poisoned: bool,
    pub args: Vec<(u32, Arc<Value>)>,
    /// The step was taken over from an ended execution and takes no more tokens.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub taken: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Scope {
    pub open: u32,
    pub failed: bool,
}

/// The runnable work of an iteration that a retry resumes. It is empty if the iteration has to begin anew.
#[derive(Debug, Clone, PartialEq, Hash, Default, Serialize, Deserialize)]
pub struct ParkedIteration {
    pub tokens: Vec<Token>,
    pub ready: Vec<RunId>,
    /// Loops inside the iteration that may open iterations of their own.
    pub loops: Vec<RunId>,
}

impl Default for Head {
    fn default() -> Self {
        Head {
            id: ExecutionId(0),
            net: NetDigest([0; 32]),
            version: 0,
            at: Millis(i64::MIN),
            phase: Phase::Blank,
            held: false,
            generation: 1,
            next_run: RunId::first(1),
            next_fence: Fence::first(1),
            next_token: TokenId::first(1),
            inputs: Arc::new(Value::Null),
            ctx: Ctx::default(),
            start: StartWhen::Now,
            timeout_ms: None,
            clock: Clock::None,
            parent: None,
            depth: 0,
            restarts: 0,
            census: Census::default(),
            counts: Counts::default(),
            decided: None,
            drained_by: None,
            finale: Finale::NotRun,
            imported: Arc::default(),
            ruled_out: Arc::default(),
            failures: Arc::default(),
            last_failed: None,
            branches: Vec::new(),
            losses: 0,
        }
    }
}

impl Head {
    /// Returns the timer of the execution itself.
    #[must_use]
    pub fn timer(&self) -> Option<(Timer, Millis)> {
        match (self.phase, self.start, self.clock) {
            (Phase::Queued, StartWhen::At(at), _) => Some((Timer::Start, at)),
            (Phase::Starting | Phase::Running, _, Clock::Until(until)) => Some((Timer::Deadline, until)),
            _ => None,
        }
    }
}

impl Census {
    pub(crate) fn count_mut(&mut self, kind: Kind) -> &mut u32 {
        match kind {
            Kind::Ready => &mut self.ready,
            Kind::Waiting => &mut self.waiting,
            Kind::Delayed => &mut self.delayed,
            Kind::Offered => &mut self.offered,
            Kind::Backoff => &mut self.backoff,
            Kind::Manual => &mut self.manual,
            Kind::Child => &mut self.children,
            Kind::PausedChild => &mut self.paused_children,
            Kind::Looping => &mut self.looping,
        }
    }

    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.offered + self.children + self.paused_children
    }

    /// Returns the number of step-runs that proceed without a person.
    #[must_use]
    pub fn moving(&self) -> u32 {
        self.ready + self.waiting + self.delayed + self.offered + self.backoff + self.children
    }
}

impl<'b> Execution<'b> {
    /// Returns a draft over this state, which does not change this state.
    #[must_use]
    pub fn draft(&self) -> Execution<'_> {
        Execution {
            head: self.head.clone(),
            arrived: Table::over(&self.arrived),
            gated: Table::over(&self.gated),
            joins: Table::over(&self.joins),
            joining: Table::over(&self.joining),
            runs: Table::over(&self.runs),
            ready: Table::over(&self.ready),
            hungry: Table::over(&self.hungry),
            scopes: Table::over(&self.scopes),
            parked: Table::over(&self.parked),
            regions: Table::over(&self.regions),
            latest: Table::over(&self.latest),
            owed: Table::over(&self.owed),
        }
    }

    #[must_use]
    pub fn phase(&self) -> Phase {
        self.head.phase
    }

    #[must_use]
    pub fn run(&self, id: RunId) -> Option<&StepRun> {
        self.runs.get(&id).map(|run| &**run)
    }

    /// Returns whether nothing runs or waits, except at join steps. An open loop has an open iteration, so loops need no
    /// check.
    #[must_use]
    pub fn is_quiet(&self, net: &Net) -> bool {
        let gates = if net.policy().complete_with_pending_gates { 0 } else { self.gated.len() };
        let census = &self.head.census;
        self.arrived.is_empty()
            && self.hungry.is_empty()
            && gates == 0
            && census.moving() == 0
            && census.manual + census.paused_children == 0
    }

    /// Returns whether only a person can continue a settled execution that is not quiet (R10). Ready step-runs wait
    /// then, too: paused children fill the limit on parallel work.
    #[must_use]
    pub fn waits_for_people(&self) -> bool {
        let census = &self.head.census;
        let ready = if census.paused_children > 0 { census.ready } else { 0 };
        self.arrived.is_empty() && self.hungry.is_empty() && census.moving() == ready
    }

    /// Returns the firing of `step` whose output is visible at `path`.
    #[must_use]
    pub fn latest_run(&self, net: &Net, step: StepId, path: &Path) -> Option<RunId> {
        self.latest.get(&(step, path.truncated(net.depth(step)))).copied()
    }

    /// Returns the iteration that a step-run belongs to: its loop's run and its index.
    #[must_use]
    pub fn iteration_of(&self, net: &Net, run: &StepRun) -> Option<(RunId, u32)> {
        match &run.role {
            Role::Iteration { of, index } => Some((*of, *index)),
            Role::Routed | Role::Final | Role::Hook { .. } | Role::Tool { .. } => {
                self.enclosing_iteration(net, run.step, &run.path)
            }
        }
    }

    /// Returns whether the arguments of a step-run are the summary for the final step.
    #[must_use]
    pub fn reads_summary(&self, net: &Net, run: &StepRun) -> bool {
        net.policy().final_reads_firings
            && match &run.role {
                Role::Final => true,
                Role::Iteration { of, .. } => self.run(*of).is_some_and(|of| of.role == Role::Final),
                Role::Routed | Role::Hook { .. } | Role::Tool { .. } => false,
            }
    }

    pub(crate) fn enclosing_iteration(&self, net: &Net, step: StepId, path: &Path) -> Option<(RunId, u32)> {
        let region = net.step(step).region?;
        let run = self.regions.get(&(region, path.parent()))?;
        Some((*run, path.index()?))
    }

    /// Returns every running timer except those of attempts, which are stored with the lease. A hold keeps timers
    /// due.
    #[must_use]
    pub fn timers(&self) -> Vec<(Timer, Millis)> {
        let mut timers: Vec<_> = self.head.timer().into_iter().collect();
        if self.head.held || self.head.phase.is_ended() {
            return timers;
        }
        timers.extend(self.runs.iter().filter_map(|(id, run)| Self::timer_of(*id, run)));
        let gates = self.gated.iter().filter_map(|((step, token), gate)| {
            gate.deadline.map(|until| (Timer::Gate { step: *step, token: *token }, until))
        });
        timers.extend(gates);
        timers
    }

    /// Returns the timer of one step-run.
    #[must_use]
    pub fn timer_of(id: RunId, run: &StepRun) -> Option<(Timer, Millis)> {
        match &run.state {
            RunState::Waiting { until, .. } => Some((Timer::Routing { run: id }, *until)),
            RunState::Delayed { until } => Some((Timer::Delay { run: id }, *until)),
            RunState::Backoff { until } => Some((Timer::Backoff { run: id }, *until)),
            RunState::Manual { deadline, .. } => deadline.map(|until| (Timer::Manual { run: id }, until)),
            RunState::Child { fence, until, .. } => {
                until.map(|until| (Timer::Attempt { run: id, fence: *fence }, until))
            }
            RunState::Ready { .. } | RunState::Offered { .. } | RunState::Looping(_) => None,
        }
    }

    /// Returns the time limit of an attempt: that of the step, or that of the compensation hook.
    #[must_use]
    pub fn timeout_of(net: &Net, run: &StepRun) -> Option<u64> {
        let step = net.step(run.step);
        run.hook(step).map_or(step.timeout_ms, |hook| hook.timeout_ms)
    }

    /// Returns the work of a step-run: that of its step, or that of the compensation hook.
    #[must_use]
    pub fn work_of<'n>(net: &'n Net, run: &StepRun) -> &'n Work {
        let step = net.step(run.step);
        run.hook(step).map_or(&step.work, |hook| &hook.work)
    }
}
