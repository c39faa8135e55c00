//! The fold of a journal. In this crate, only this file and `event_data.rs` match on the kernel's events: [`Timeline::advance`]
//! applies a record to the state and returns what happened as a [`TimelineEntry`], with the firing or token that it is about. Every
//! view of a journal matches on [`Occurrence`] without a wildcard, so that a new event does not compile until each has placed it.

use crate::event_data::event_names;
use crate::place::FAILED_ITERATIONS_MAX;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::{
    Args, Cleared, Event, Execution, ExecutionId, Failure, Fence, Gone, Illegal, ManualNote, Millis, Net,
    Outcome, Patch, Path, PauseReason, Record, Role, RunId, SkipReason, StepId, Times, TokenId, TokenValue,
    any_of, evolve,
};

/// Bytes of one live firing or token in memory, roughly.
const LIVE_BYTES: usize = 512;

/// The state of an execution after the records that were read so far.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    state: Execution<'static>,
    /// Times, children and failed iterations of the live firings, which the kernel's state does not have.
    times: BTreeMap<RunId, FiringTimes>,
}

#[derive(Debug, Clone)]
struct FiringTimes {
    began_at: Option<Millis>,
    attempt: Attempt,
    child: Option<ExecutionId>,
    failed_iterations: Vec<u32>,
}

/// The newest attempt of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Number, from 1.
    pub number: u32,
    /// Time at which it was fired, offered or handed to another execution.
    pub began_at: Millis,
}

/// One record of a journal.
#[derive(Debug)]
pub struct TimelineEntry {
    /// The number of records before it.
    pub version: u64,
    pub at: Millis,
    pub occurrence: Occurrence,
    /// Names of its public events.
    names: Vec<&'static str>,
}

/// A firing of a step at the time of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct FiringRef {
    pub run: RunId,
    pub step: StepId,
    pub path: Path,
    pub role: Role,
    /// Time at which it was first offered, or began without a worker.
    pub began_at: Option<Millis>,
    /// None for a firing that was skipped or routed.
    pub attempt: Option<Attempt>,
    /// The newest execution that it started.
    pub child: Option<ExecutionId>,
    /// The first failed iterations of a loop so far.
    pub failed_iterations: Vec<u32>,
}

/// A token in front of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRef {
    pub step: StepId,
    pub path: Path,
}

/// Content of a record.
#[derive(Debug)]
pub enum Occurrence {
    Execution(ExecutionChange),
    Firing(FiringRef, FiringChange),
    Token(TokenChange),
    /// Tokens and firings that were removed when the outcome was decided.
    Cleared {
        tokens: Vec<Option<TokenRef>>,
        dropped: Vec<(FiringRef, Gone)>,
    },
}

/// A change of the whole execution.
#[derive(Debug)]
pub enum ExecutionChange {
    Created {
        id: ExecutionId,
        inputs: Arc<Value>,
        retry_of: Option<ExecutionId>,
        /// Results of steps that were taken over from an earlier execution.
        imports: Vec<(StepId, Arc<Value>)>,
    },
    /// The records so far belong to `parent`, which this execution continues.
    Forked {
        id: ExecutionId,
        parent: ExecutionId,
        inputs: Option<Arc<Value>>,
    },
    Started,
    Held {
        by: String,
        reason: String,
    },
    Released {
        by: String,
    },
    Paused(PauseReason),
    Resumed,
    Draining {
        outcome: Outcome,
        failure: Option<Box<Failure>>,
        /// Completed steps are undone.
        compensate: bool,
    },
    Compensating,
    Finalizing,
    /// Firings whose compensation was given up.
    NotCompensated {
        runs: Vec<RunId>,
    },
    Ended {
        outcome: Outcome,
        failure: Option<Box<Failure>>,
    },
    Restarted {
        generation: u32,
    },
    Patched {
        patch: Patch,
        by: String,
    },
    /// A change that only the engine needs: an assignment, a due start, a stop request, a continued decision.
    Bookkeeping,
}

/// A change of one firing.
#[derive(Debug)]
pub enum FiringChange {
    Fired {
        args: Args,
    },
    Skipped(SkipReason),
    Waiting {
        until: Millis,
    },
    Woken,
    Delayed {
        until: Millis,
    },
    Offered {
        attempt: u32,
    },
    Lost,
    RetryScheduled {
        until: Millis,
        failure: Box<Failure>,
    },
    Yielded {
        until: Millis,
    },
    /// `question` of an approval has its message and approvers.
    AwaitingManual {
        question: Arc<Value>,
        deadline: Option<Millis>,
        times: Option<Times>,
    },
    CompletedManually {
        fence: Fence,
        note: Box<ManualNote>,
    },
    /// A person answered, and the firing still waits: the answer was counted, or a policy refused it.
    Noted {
        note: Box<ManualNote>,
    },
    Done {
        output: Arc<Value>,
        times: Option<Times>,
        metadata: Option<Arc<Value>>,
    },
    Failed {
        failure: Box<Failure>,
        handled: bool,
        /// The loop around it, or the agent that called it, decides whether the failure is handled.
        deferred: bool,
        output: Option<Arc<Value>>,
        times: Option<Times>,
        metadata: Option<Arc<Value>>,
    },
    Dropped(Gone),
    LoopStarted {
        total: Option<u32>,
    },
    IterationStarted,
    IterationEnded,
    ChildStarted {
        attempt: u32,
        child: ExecutionId,
    },
    /// Only people can continue the child, or it continues.
    ChildPaused {
        child: Option<ExecutionId>,
        paused: bool,
    },
    ChildReturned,
    AgentDecided,
    /// The end of the step-run was routed; `targets` are the arcs that were taken, and the steps that get a token.
    Routed {
        targets: Vec<(u32, Option<TokenRef>)>,
    },
}

/// A change of a token in front of a step.
#[derive(Debug)]
pub enum TokenChange {
    Denied {
        token: TokenId,
        at: Option<TokenRef>,
        deadline: Option<Millis>,
    },
    Discarded(Option<TokenRef>),
    Admitted(Vec<TokenRef>),
    /// One token replaced those that waited at a join step.
    Joined {
        at: TokenRef,
        arrived: usize,
    },
}

impl Timeline {
    #[must_use]
    pub fn state(&self) -> &Execution<'static> {
        &self.state
    }

    /// Returns the number of records that were read.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.state.head.version
    }

    /// Bytes that it holds, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        let state = &self.state;
        let live = state.runs.len()
            + state.arrived.len()
            + state.gated.len()
            + state.joins.len()
            + state.joining.len();
        LIVE_BYTES * (live + state.latest.len() + 1)
    }

    /// Applies the next record of the journal. After an error the timeline must be dropped.
    pub fn advance(&mut self, net: &Net, record: &Record) -> Result<TimelineEntry, Illegal> {
        let occurrence = self.interpret(net, &record.event)?;
        let (version, at) = (self.version(), record.at);
        let names = event_names(&record.event, &self.state);
        self.note_times(&occurrence, at);
        evolve(&mut self.state, net, record)?;
        Ok(TimelineEntry { version, at, occurrence, names })
    }

    /// Interprets an event. This is a table of all events, so it is long.
    fn interpret(&self, net: &Net, event: &Event) -> Result<Occurrence, Illegal> {
        let of = |run: &RunId, change| Ok(Occurrence::Firing(self.firing(*run)?, change));
        let all = |change| Ok(Occurrence::Execution(change));
        match event {
            Event::Created(created) => all(ExecutionChange::Created {
                id: created.create.id,
                inputs: created.create.inputs.clone(),
                retry_of: created.create.retry_of,
                imports: created.create.imports.iter().map(|i| (i.step, i.output.clone())).collect(),
            }),
            Event::Forked(fork) => {
                all(ExecutionChange::Forked { id: fork.id, parent: fork.parent, inputs: fork.inputs.clone() })
            }
            Event::Assigned { .. } | Event::TimeCame | Event::Continued | Event::StopAsked { .. } => {
                all(ExecutionChange::Bookkeeping)
            }
            Event::Started { .. } => all(ExecutionChange::Started),
            Event::Held { by, reason } => {
                all(ExecutionChange::Held { by: by.clone(), reason: reason.clone() })
            }
            Event::Released { by } => all(ExecutionChange::Released { by: by.clone() }),
            Event::Paused { reason, .. } => all(ExecutionChange::Paused(*reason)),
            Event::Resumed { .. } => all(ExecutionChange::Resumed),
            Event::Draining { outcome, failure, compensate, .. } => all(ExecutionChange::Draining {
                outcome: *outcome,
                failure: failure.clone(),
                compensate: *compensate,
            }),
            Event::Cleared(cleared) => self.cleared(cleared),
            Event::Compensating => all(ExecutionChange::Compensating),
            Event::Finalizing => all(ExecutionChange::Finalizing),
            Event::NotCompensated { runs } => all(ExecutionChange::NotCompensated { runs: runs.clone() }),
            Event::Ended { outcome, failure } => {
                all(ExecutionChange::Ended { outcome: *outcome, failure: failure.clone() })
            }
            Event::Restarted { generation, .. } => {
                all(ExecutionChange::Restarted { generation: *generation })
            }
            Event::Patched { patch, by } => {
                all(ExecutionChange::Patched { patch: patch.clone(), by: by.clone() })
            }

            Event::Denied { token, deadline } => {
                let (at, deadline) = (self.token(*token), *deadline);
                Ok(Occurrence::Token(TokenChange::Denied { token: *token, at, deadline }))
            }
            Event::Discarded { token } => Ok(Occurrence::Token(TokenChange::Discarded(self.token(*token)))),
            Event::Admitted { tokens } => {
                let admitted = tokens.iter().filter_map(|(_, token)| self.token(*token));
                Ok(Occurrence::Token(TokenChange::Admitted(admitted.collect())))
            }

            Event::Joined { step, tokens, .. } => {
                let at = TokenRef { step: *step, path: Path::default() };
                Ok(Occurrence::Token(TokenChange::Joined { at, arrived: tokens.len() }))
            }
            Event::Fired { run, step, path, role, args, .. } => {
                let firing = FiringRef { role: role.clone(), ..FiringRef::new(*run, *step, path) };
                Ok(Occurrence::Firing(firing, FiringChange::Fired { args: args.clone() }))
            }
            Event::Skipped { run, step, path, reason, .. } => {
                Ok(Occurrence::Firing(FiringRef::new(*run, *step, path), FiringChange::Skipped(*reason)))
            }
            Event::Routed { run, step, path, emitted, .. } => {
                let live = emitted.iter().filter(|emission| matches!(emission.token, TokenValue::Live(_)));
                let arcs = &net.step(*step).router.arcs;
                let target = |arc: u32| {
                    let step = arcs.get(arc as usize)?.to;
                    Some(TokenRef { step, path: path.truncated(net.depth(step)) })
                };
                let targets = live.map(|emission| (emission.arc, target(emission.arc))).collect();
                Ok(Occurrence::Firing(FiringRef::new(*run, *step, path), FiringChange::Routed { targets }))
            }
            Event::Waiting { run, until, .. } => of(run, FiringChange::Waiting { until: *until }),
            Event::Woken { run } => of(run, FiringChange::Woken),
            Event::Delayed { run, until } => of(run, FiringChange::Delayed { until: *until }),
            Event::Offered { run, attempt, .. } => of(run, FiringChange::Offered { attempt: *attempt }),
            Event::Lost { run, .. } => of(run, FiringChange::Lost),
            Event::RetryScheduled { run, until, failure, .. } => {
                of(run, FiringChange::RetryScheduled { until: *until, failure: failure.clone() })
            }
            Event::Yielded { run, until, .. } => of(run, FiringChange::Yielded { until: *until }),
            Event::AwaitingManual { run, output, deadline, times, .. } => {
                let (question, deadline) = (output.clone(), *deadline);
                of(run, FiringChange::AwaitingManual { question, deadline, times: *times })
            }
            Event::CompletedManually { run, fence, by } if by.effect.is_end() => {
                of(run, FiringChange::CompletedManually { fence: *fence, note: by.clone() })
            }
            Event::CompletedManually { run, by, .. } => of(run, FiringChange::Noted { note: by.clone() }),
            Event::Done { run, output, times, metadata, .. } => {
                let (output, metadata) = (output.clone(), metadata.clone());
                of(run, FiringChange::Done { output, times: *times, metadata })
            }
            Event::Failed { run, failure, handled, deferred, output, times, metadata, .. } => {
                let (failure, output, metadata) = (failure.clone(), output.clone(), metadata.clone());
                let (handled, deferred, times) = (*handled, *deferred, *times);
                of(run, FiringChange::Failed { failure, handled, deferred, output, times, metadata })
            }
            Event::Dropped { run, how, .. } => of(run, FiringChange::Dropped(*how)),
            Event::LoopStarted { run, total, .. } => of(run, FiringChange::LoopStarted { total: *total }),
            Event::IterationStarted { run, index } => {
                self.iteration(*run, *index, FiringChange::IterationStarted)
            }
            Event::IterationEnded { run, index, .. } => {
                self.iteration(*run, *index, FiringChange::IterationEnded)
            }
            Event::ChildStarted { run, attempt, child, .. } => {
                of(run, FiringChange::ChildStarted { attempt: *attempt, child: *child })
            }
            Event::ChildPaused { run, paused } => {
                let child = self.state.run(*run).and_then(|run| run.state.child()).map(|(_, child)| child);
                of(run, FiringChange::ChildPaused { child, paused: *paused })
            }
            Event::Returned { run, .. } => of(run, FiringChange::ChildReturned),
            Event::AgentDecided { run, .. } => of(run, FiringChange::AgentDecided),
        }
    }

    fn cleared(&self, cleared: &Cleared) -> Result<Occurrence, Illegal> {
        let tokens = cleared.tokens.iter().map(|token| self.token(*token)).collect();
        let dropped = cleared.dropped.iter().map(|(run, _, how)| Ok((self.firing(*run)?, *how)));
        Ok(Occurrence::Cleared { tokens, dropped: dropped.collect::<Result<_, Illegal>>()? })
    }

    /// Returns the change of one iteration of a body of several steps, named by the path inside the loop.
    fn iteration(&self, run: RunId, index: u32, change: FiringChange) -> Result<Occurrence, Illegal> {
        let firing = self.firing(run)?;
        let path = firing.path.child(index);
        Ok(Occurrence::Firing(FiringRef { path, ..firing }, change))
    }

    fn firing(&self, run: RunId) -> Result<FiringRef, Illegal> {
        let dead = || Illegal { version: self.version(), what: format!("step-run {run} is not live") };
        let live = self.state.run(run).ok_or_else(dead)?;
        let times = self.times.get(&run);
        Ok(FiringRef {
            role: live.role.clone(),
            began_at: times.and_then(|times| times.began_at),
            attempt: times.map(|times| times.attempt),
            child: times.and_then(|times| times.child),
            failed_iterations: times.map(|times| times.failed_iterations.clone()).unwrap_or_default(),
            ..FiringRef::new(run, live.step, &live.path)
        })
    }

    fn token(&self, id: TokenId) -> Option<TokenRef> {
        let is_at_gate = |((_, token), _): &(&(StepId, TokenId), _)| *token == id;
        let gated = || self.state.gated.iter().find(is_at_gate).map(|(_, gate)| &gate.token);
        let joining = || self.state.joining.iter().find(|(key, _)| key.1 == id).map(|(_, token)| token);
        let token = self.state.arrived.get(&id).or_else(gated).or_else(joining)?;
        Some(TokenRef { step: token.step, path: token.path.clone() })
    }

    fn note_times(&mut self, occurrence: &Occurrence, at: Millis) {
        match occurrence {
            Occurrence::Firing(firing, change) => {
                self.note_failed_iteration(firing, change);
                self.note_firing_times(firing.run, change, at);
            }
            Occurrence::Cleared { dropped, .. } => {
                for (firing, _) in dropped {
                    self.times.remove(&firing.run);
                }
            }
            Occurrence::Execution(ExecutionChange::Restarted { .. }) => self.times.clear(),
            Occurrence::Execution(_) | Occurrence::Token(_) => {}
        }
    }

    fn note_failed_iteration(&mut self, firing: &FiringRef, change: &FiringChange) {
        if let (FiringChange::Failed { .. }, Role::Iteration { of, index }) = (change, &firing.role)
            && let Some(around) = self.times.get_mut(of)
            && around.failed_iterations.len() < FAILED_ITERATIONS_MAX
        {
            around.failed_iterations.push(*index);
        }
    }

    fn note_firing_times(&mut self, run: RunId, change: &FiringChange, at: Millis) {
        match change {
            FiringChange::Fired { .. } => {
                let attempt = Attempt { number: 1, began_at: at };
                let (began_at, child, failed_iterations) = (None, None, Vec::new());
                self.times.insert(run, FiringTimes { began_at, attempt, child, failed_iterations });
            }
            FiringChange::Offered { attempt } | FiringChange::ChildStarted { attempt, .. } => {
                if let Some(times) = self.times.get_mut(&run) {
                    times.began_at.get_or_insert(at);
                    times.attempt = Attempt { number: *attempt, began_at: at };
                    if let FiringChange::ChildStarted { child, .. } = change {
                        times.child = Some(*child);
                    }
                }
            }
            FiringChange::LoopStarted { .. }
            | FiringChange::Delayed { .. }
            | FiringChange::AwaitingManual { .. } => {
                if let Some(times) = self.times.get_mut(&run) {
                    times.began_at.get_or_insert(at);
                }
            }
            FiringChange::Done { .. } | FiringChange::Failed { .. } | FiringChange::Dropped(_) => {
                self.times.remove(&run);
            }
            any_of![FiringChange: Skipped Waiting Woken Lost RetryScheduled Yielded CompletedManually Noted
                IterationStarted IterationEnded ChildPaused ChildReturned AgentDecided Routed] => {}
        }
    }
}

impl TimelineEntry {
    /// Returns the one firing that this record ends.
    #[must_use]
    pub fn ended_run(&self) -> Option<RunId> {
        match &self.occurrence {
            Occurrence::Firing(
                firing,
                FiringChange::Done { .. } | FiringChange::Failed { .. } | FiringChange::Dropped(_),
            ) => Some(firing.run),
            Occurrence::Firing(..)
            | Occurrence::Execution(_)
            | Occurrence::Token(_)
            | Occurrence::Cleared { .. } => None,
        }
    }

    /// Returns the public events of the record, each with the step that it is about.
    #[must_use]
    pub fn public_events(&self) -> Vec<PublicName<'_>> {
        fn token(token: &TokenRef) -> (StepId, &[u32]) {
            (token.step, &token.path.0)
        }
        fn firing(firing: &FiringRef) -> (StepId, &[u32]) {
            (firing.step, &firing.path.0)
        }
        let about: Vec<Option<(StepId, &[u32])>> = match &self.occurrence {
            Occurrence::Execution(_) | Occurrence::Firing(_, FiringChange::ChildReturned) => Vec::new(),
            Occurrence::Firing(own, FiringChange::Routed { targets }) => {
                let targets = targets.iter().map(|(_, target)| target.as_ref().map(token));
                std::iter::once(Some(firing(own))).chain(targets).collect()
            }
            Occurrence::Firing(own, _) => vec![Some(firing(own)); self.names.len()],
            Occurrence::Token(TokenChange::Denied { at, .. } | TokenChange::Discarded(at)) => {
                vec![at.as_ref().map(token)]
            }
            Occurrence::Token(TokenChange::Joined { at, .. }) => vec![Some(token(at))],
            Occurrence::Token(TokenChange::Admitted(_)) => Vec::new(),
            Occurrence::Cleared { tokens, dropped } => {
                let tokens = tokens.iter().map(|at| at.as_ref().map(token));
                tokens.chain(dropped.iter().map(|(own, _)| Some(firing(own)))).collect()
            }
        };
        let about = about.into_iter().chain(std::iter::repeat(None));
        self.names.iter().zip(about).map(|(name, about)| PublicName { name, about }).collect()
    }
}

/// A public event: `step.done`, `execution.completed`, …
#[derive(Debug, Clone, Copy)]
pub struct PublicName<'e> {
    pub name: &'static str,
    /// The step, and the iteration numbers of the loops around it.
    pub about: Option<(StepId, &'e [u32])>,
}

impl FiringRef {
    fn new(run: RunId, step: StepId, path: &Path) -> FiringRef {
        let (path, failed_iterations) = (path.clone(), Vec::new());
        let (began_at, attempt, child) = (None, None, None);
        FiringRef { run, step, path, role: Role::Routed, began_at, attempt, child, failed_iterations }
    }

    /// Returns whether it is a firing of its own; an iteration of a step's own loop and a hook are parts of another
    /// firing.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        is_whole(&self.role)
    }
}

pub(crate) fn is_whole(role: &Role) -> bool {
    match role {
        Role::Routed | Role::Final | Role::Tool { .. } => true,
        Role::Iteration { .. } | Role::Hook { .. } => false,
    }
}

/// Names a firing for people: `measure`, or `measure[2]` for an iteration.
#[must_use]
pub fn label(step: &str, path: &[u32]) -> String {
    let indexes: String = path.iter().map(|index| format!("[{index}]")).collect();
    format!("{step}{indexes}")
}
