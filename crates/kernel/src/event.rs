//! Events in the past tense. An event carries every choice that was made (chosen arcs, bound arguments, instants,
//! merged context keys), so that `evolve` evaluates nothing (R3).
//!
//! Readers that follow one aspect of a journal do not match on events but on their facets. A new event gets its facets
//! here, once; only `evolve` and the timeline of crate `views` need every event.

mod fields;

pub use fields::*;

use crate::aside::{ReferenceFields, source_of};
use crate::ids::{ExecutionId, Fence, Millis, Path, RunId, StepId, TokenId};
use crate::input::{Answer, WorkResult};
use crate::phase::Outcome;
use crate::step_run::{Args, Patch, Role};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_artifact::Source;
use windlass_failure::{Failure, codes};

/// An event and its time. Times never decrease within an execution (K12).
#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
pub struct Record {
    pub at: Millis,
    pub event: Event,
}

/// Pattern that matches the named variants with any fields: `any_of![Event: Held Released]`. A match that ends in this
/// pattern instead of `_` does not compile until a new variant is named in it.
#[macro_export]
macro_rules! any_of {
    ($of:ident: $($name:ident)+) => { $($of::$name { .. })|+ };
}

#[derive(Debug, Clone, PartialEq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    Created(Box<Created>),
    /// A worker took the execution. After a restart the deadline runs again from here.
    Assigned {
        worker: String,
        deadline: Option<Millis>,
    },
    /// The scheduled start time has come; with one worker per execution, a worker can be assigned now.
    TimeCame,
    /// The entries have their tokens.
    Started {
        deadline: Option<Millis>,
    },
    Held {
        by: String,
        reason: String,
    },
    Released {
        by: String,
    },
    Paused {
        reason: PauseReason,
        remaining_ms: Option<u64>,
    },
    Resumed {
        deadline: Option<Millis>,
    },
    /// The outcome is decided by this event, and only by it (R6).
    Draining {
        outcome: Outcome,
        cause: Cause,
        failure: Option<Box<Failure>>,
        compensate: bool,
    },
    /// All tokens and all waiting step-runs were removed.
    Cleared(Box<Cleared>),
    /// Work has to stop. The obligation remains until the worker acknowledges it or the lease ends (R7).
    StopAsked {
        leases: Vec<(RunId, Fence)>,
        children: Vec<ExecutionId>,
    },
    Compensating,
    Finalizing,
    Ended {
        outcome: Outcome,
        failure: Option<Box<Failure>>,
    },
    /// Everything begins again because a worker was lost. `started` is false if the loss is not counted: the worker gave the
    /// work back, or never received it.
    Restarted {
        generation: u32,
        remaining_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        started: bool,
    },
    /// A decision reached its limit of firings; the next input continues the work.
    Continued,

    /// Tokens that an ended step-run sent along its arcs.
    Routed {
        run: RunId,
        step: StepId,
        path: Path,
        emitted: Vec<Emission>,
        end: BranchEnd,
    },
    Denied {
        token: TokenId,
        deadline: Option<Millis>,
    },
    /// A changed context opened these gates.
    Admitted {
        tokens: Vec<(StepId, TokenId)>,
    },
    Discarded {
        token: TokenId,
    },
    /// No other branch can reach a join step: one token replaces those that wait there.
    Joined {
        step: StepId,
        tokens: Vec<TokenId>,
        token: TokenId,
        args: Args,
    },

    Fired {
        run: RunId,
        step: StepId,
        path: Path,
        token: Option<TokenId>,
        role: Role,
        args: Args,
    },
    /// The tokens or the condition excluded the step; every arc passes that on.
    Skipped {
        run: RunId,
        token: TokenId,
        step: StepId,
        path: Path,
        reason: SkipReason,
    },
    Waiting {
        run: RunId,
        target: Arc<Value>,
        until: Millis,
    },
    /// The step-run no longer waits: its route is ready, or the time of its next attempt has come.
    Woken {
        run: RunId,
    },
    Delayed {
        run: RunId,
        until: Millis,
    },
    /// A worker may take the step-run. `reads` names the firings whose outputs its templates read.
    Offered {
        run: RunId,
        fence: Fence,
        attempt: u32,
        reads: Vec<(StepId, RunId)>,
    },
    Lost {
        run: RunId,
        fence: Fence,
        started: bool,
        cursor: Option<Arc<Value>>,
    },
    /// An attempt failed and another one follows. `reported` is false if the attempt timed out or lost its lease; the
    /// next attempt resumes at `cursor`.
    RetryScheduled {
        run: RunId,
        fence: Option<Fence>,
        until: Millis,
        failure: Box<Failure>,
        reported: bool,
        patch: Patch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<Arc<Value>>,
    },
    /// A pipeline released its slot and resumes at `until`; no attempt is used.
    Yielded {
        run: RunId,
        fence: Fence,
        until: Millis,
        cursor: Option<Arc<Value>>,
        patch: Patch,
    },
    AwaitingManual {
        run: RunId,
        /// Fence that the person's completion token is valid for.
        fence: Fence,
        /// Fence of the offer under which the work was reported.
        answered: Option<Fence>,
        output: Arc<Value>,
        patch: Patch,
        deadline: Option<Millis>,
        times: Option<Times>,
    },
    /// A person answered. The step-run ends with the next record, if the note ends it.
    CompletedManually {
        run: RunId,
        fence: Fence,
        by: Box<ManualNote>,
    },
    Done {
        run: RunId,
        fence: Option<Fence>,
        output: Arc<Value>,
        patch: Patch,
        times: Option<Times>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Arc<Value>>,
    },
    /// `output` is present if the work succeeded and a later part of the step failed, or if a part of it succeeded:
    /// then `partial` is true, and expressions read it under the name of the step. `deferred` means that the loop
    /// around it, or the agent that called it, decides whether the failure is handled.
    Failed {
        run: RunId,
        fence: Option<Fence>,
        failure: Box<Failure>,
        handled: bool,
        reported: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "deserialize_present")]
        output: Option<Arc<Value>>,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        partial: bool,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        deferred: bool,
        patch: Patch,
        times: Option<Times>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        metadata: Option<Arc<Value>>,
    },
    /// Work in flight ended after routing had stopped; `reported` is the worker's result.
    Dropped {
        run: RunId,
        fence: Option<Fence>,
        how: Gone,
        reported: Option<Box<WorkResult>>,
    },

    LoopStarted {
        run: RunId,
        total: Option<u32>,
        items: Option<Arc<Value>>,
    },
    /// An iteration of a body with several steps has begun.
    IterationStarted {
        run: RunId,
        index: u32,
    },
    /// `output` is the result of a body with several steps, present if the loop collects results.
    IterationEnded {
        run: RunId,
        index: u32,
        failed: bool,
        stop: bool,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Arc<Value>>,
    },

    Patched {
        patch: Patch,
        by: String,
    },
    ChildStarted {
        run: RunId,
        fence: Fence,
        attempt: u32,
        child: ExecutionId,
        definition: Arc<Value>,
        inputs: Arc<Value>,
        until: Option<Millis>,
        /// The offer that started the child; its pipeline resumes when the child has ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        delegated: Option<Box<Delegated>>,
        /// The ended child that the new child takes over from; its definition and inputs are used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        continues: Option<ExecutionId>,
    },
    /// Only people can continue the child, or it continues.
    ChildPaused {
        run: RunId,
        paused: bool,
    },
    /// The child of a pipeline has ended, and the pipeline resumes; no attempt is used.
    Returned {
        run: RunId,
        fence: Fence,
        cursor: Arc<Value>,
    },
    NotCompensated {
        runs: Vec<RunId>,
    },
    AgentDecided {
        run: RunId,
        call: String,
        decision: AgentDecision,
    },
    /// A new execution took over the history up to here (R12); open work is offered again.
    Forked(Box<Fork>),
}

/// Meaning of an event for a reader that follows one aspect of an execution.
#[derive(Debug, Clone, Copy)]
pub enum Facet<'e> {
    Life(LifeChange<'e>),
    Run(RunId, RunChange<'e>),
    Discarded(TokenId),
    /// One token replaced those that waited at a join step.
    Joined(StepId, &'e [TokenId], TokenId, &'e Args),
    /// The event matters to the state only, and a retry does not take it over.
    Internal,
}

/// A change in the life of the whole execution.
#[derive(Debug, Clone, Copy)]
pub enum LifeChange<'e> {
    /// The execution begins, possibly with results of an earlier execution.
    Created(&'e Created),
    Forked(&'e Fork),
    /// A hold or a pause began, or a pause ended.
    PauseChanged,
    Released,
    Patched,
    OutcomeDecided,
    Cleared(&'e Cleared),
    /// Leases and children that have to stop.
    StopAsked(&'e [(RunId, Fence)], &'e [ExecutionId]),
    Ended(Outcome),
    /// The execution starts again, with this generation.
    Restarted(u32),
}

/// A change of a step-run.
#[derive(Debug, Clone, Copy)]
pub enum RunChange<'e> {
    Fired {
        step: StepId,
        path: &'e Path,
        token: Option<TokenId>,
        role: &'e Role,
        args: &'e Args,
    },
    Skipped(StepId, &'e Path, TokenId, SkipReason),
    /// A loop began, with its items.
    LoopStarted(Option<&'e Arc<Value>>),
    /// An iteration of a body with several steps ended, with its collected output.
    IterationEnded {
        index: u32,
        failed: bool,
        output: Option<&'e Arc<Value>>,
    },
    Delayed,
    /// A worker may take the attempt of this number, which reads these firings.
    Offered(Fence, u32, &'e [(StepId, RunId)]),
    AwaitingManual(Fence),
    ChildStarted {
        fence: Fence,
        attempt: u32,
        child: ExecutionId,
        definition: &'e Arc<Value>,
        inputs: &'e Arc<Value>,
        /// The ended child that the new one takes over from.
        continues: Option<ExecutionId>,
    },
    /// The child of a pipeline ended, with its result.
    Returned(&'e Value),
    Lost,
    Retried,
    Done(&'e Arc<Value>),
    Failed {
        failure: &'e Failure,
        handled: bool,
        deferred: bool,
        output: Option<&'e Arc<Value>>,
        /// The output, if expressions read it under the name of the step.
        partial: Option<&'e Arc<Value>>,
    },
    Dropped(Gone),
    Routed(StepId, &'e Path, &'e [Emission], BranchEnd),
    AgentDecided(&'e str, &'e AgentDecision),
    /// The change matters to the state of the step-run only, and names no step and no token. A retry that continues the
    /// step-run takes it over.
    Internal,
}

impl Event {
    #[inline]
    #[must_use]
    pub fn facet(&self) -> Facet<'_> {
        match self {
            Event::Created(created) => Facet::Life(LifeChange::Created(created)),
            Event::Forked(fork) => Facet::Life(LifeChange::Forked(fork)),
            any_of![Event: Held Paused Resumed] => Facet::Life(LifeChange::PauseChanged),
            Event::Released { .. } => Facet::Life(LifeChange::Released),
            Event::Patched { .. } => Facet::Life(LifeChange::Patched),
            Event::Draining { .. } => Facet::Life(LifeChange::OutcomeDecided),
            Event::Cleared(cleared) => Facet::Life(LifeChange::Cleared(cleared)),
            Event::StopAsked { leases, children } => Facet::Life(LifeChange::StopAsked(leases, children)),
            Event::Ended { outcome, .. } => Facet::Life(LifeChange::Ended(*outcome)),
            Event::Restarted { generation, .. } => Facet::Life(LifeChange::Restarted(*generation)),
            Event::Discarded { token } => Facet::Discarded(*token),
            Event::Joined { step, tokens, token, args } => Facet::Joined(*step, tokens, *token, args),
            any_of![Event: Assigned TimeCame Started Compensating Finalizing Continued Denied Admitted
                NotCompensated] => Facet::Internal,
            &Event::Fired { run, step, ref path, token, ref role, ref args } => {
                Facet::Run(run, RunChange::Fired { step, path, token, role, args })
            }
            Event::Skipped { run, step, path, token, reason } => {
                Facet::Run(*run, RunChange::Skipped(*step, path, *token, *reason))
            }
            Event::LoopStarted { run, items, .. } => Facet::Run(*run, RunChange::LoopStarted(items.as_ref())),
            &Event::IterationEnded { run, index, failed, ref output, .. } => {
                Facet::Run(run, RunChange::IterationEnded { index, failed, output: output.as_ref() })
            }
            Event::Delayed { run, .. } => Facet::Run(*run, RunChange::Delayed),
            Event::Offered { run, fence, attempt, reads } => {
                Facet::Run(*run, RunChange::Offered(*fence, *attempt, reads))
            }
            Event::AwaitingManual { run, fence, .. } => Facet::Run(*run, RunChange::AwaitingManual(*fence)),
            &Event::ChildStarted {
                run,
                fence,
                attempt,
                child,
                ref definition,
                ref inputs,
                continues,
                ..
            } => {
                let change = RunChange::ChildStarted { fence, attempt, child, definition, inputs, continues };
                Facet::Run(run, change)
            }
            Event::Returned { run, cursor, .. } => Facet::Run(*run, RunChange::Returned(cursor)),
            Event::Lost { run, .. } => Facet::Run(*run, RunChange::Lost),
            Event::RetryScheduled { run, .. } => Facet::Run(*run, RunChange::Retried),
            Event::Done { run, output, .. } => Facet::Run(*run, RunChange::Done(output)),
            &Event::Failed { run, ref failure, handled, deferred, ref output, partial, .. } => {
                let output = output.as_ref();
                let partial = output.filter(|_| partial);
                Facet::Run(run, RunChange::Failed { failure, handled, deferred, output, partial })
            }
            Event::Dropped { run, how, .. } => Facet::Run(*run, RunChange::Dropped(*how)),
            Event::Routed { run, step, path, emitted, end } => {
                Facet::Run(*run, RunChange::Routed(*step, path, emitted, *end))
            }
            Event::AgentDecided { run, call, decision } => {
                Facet::Run(*run, RunChange::AgentDecided(call, decision))
            }
            Event::Waiting { run, .. }
            | Event::Woken { run }
            | Event::Yielded { run, .. }
            | Event::CompletedManually { run, .. }
            | Event::IterationStarted { run, .. }
            | Event::ChildPaused { run, .. } => Facet::Run(*run, RunChange::Internal),
        }
    }

    #[inline]
    #[must_use]
    pub fn run_change(&self) -> Option<(RunId, RunChange<'_>)> {
        if let Facet::Run(run, change) = self.facet() { Some((run, change)) } else { None }
    }

    /// Returns the fields that can hold a reference, and whether an existing reference there can be trusted.
    pub(crate) fn values_mut(&mut self) -> Vec<(&mut Arc<Value>, Source)> {
        let mut fields = ReferenceFields::default();
        match self {
            // The journals of a parent and of an earlier execution hold the values that they pass on.
            Event::Created(created) => {
                let create = &mut created.create;
                fields.add_value(&mut create.inputs, source_of(create.parent.is_some()));
                for import in &mut create.imports {
                    fields.add_value(&mut import.output, Source::Own);
                }
            }
            Event::Routed { emitted, .. } => {
                for emission in emitted {
                    if let TokenValue::Live(args) = &mut emission.token {
                        fields.add_optional(args, Source::Outside);
                    }
                }
            }
            Event::Joined { args, .. } => fields.add_optional(args, Source::Outside),
            Event::Fired { role, args, .. } => {
                fields.add_optional(args, source_of(!matches!(role, Role::Tool { .. })))
            }
            Event::Done { fence, output, patch, .. }
            | Event::AwaitingManual { answered: fence, output, patch, .. } => {
                fields.add_value(output, source_of(fence.is_some()));
                fields.add_patch(patch, source_of(fence.is_some()));
            }
            Event::Failed { reported, output, patch, .. } => {
                fields.add_optional(output, source_of(*reported));
                fields.add_patch(patch, source_of(*reported));
            }
            Event::RetryScheduled { patch, .. } | Event::Yielded { patch, .. } => {
                fields.add_patch(patch, Source::Own)
            }
            Event::Dropped { reported: Some(result), .. } => fields.add_result(result),
            Event::LoopStarted { items, .. } => fields.add_optional(items, Source::Outside),
            Event::IterationEnded { output, .. } => fields.add_optional(output, Source::Own),
            Event::Patched { patch, .. } => fields.add_patch(patch, Source::Outside),
            Event::ChildStarted { inputs, delegated, .. } => {
                fields.add_value(inputs, Source::Outside);
                if let Some(delegated) = delegated {
                    fields.add_patch(&mut delegated.patch, Source::Own);
                }
            }
            Event::Forked(fork) => fields.add_optional(&mut fork.inputs, Source::Outside),
            Event::AgentDecided { decision: AgentDecision::Execute { args, .. }, .. } => {
                fields.add_optional(args, Source::Outside);
            }
            any_of![Event: Assigned TimeCame Started Held Released Paused Resumed Draining Cleared StopAsked
                Compensating Finalizing Ended Restarted Continued Denied Admitted Discarded Skipped Waiting Woken
                Delayed Offered Lost CompletedManually Dropped IterationStarted ChildPaused Returned NotCompensated
                AgentDecided] => {}
        }
        fields.0
    }
}

impl<'e> RunChange<'e> {
    /// Returns the output that expressions read under the name of the step.
    #[inline]
    #[must_use]
    pub fn output(self) -> Option<&'e Arc<Value>> {
        match self {
            RunChange::Done(output) => Some(output),
            RunChange::Failed { partial, .. } => partial,
            any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual ChildStarted
                Returned Lost Retried Dropped Routed AgentDecided Internal] => None,
        }
    }

    /// Returns the items of a loop that begins.
    #[inline]
    #[must_use]
    pub fn items(self) -> Option<&'e Arc<Value>> {
        if let RunChange::LoopStarted(items) = self { items } else { None }
    }
}

impl Record {
    /// Returns the answer that this record accepted, and the fence it was reported under.
    #[must_use]
    pub fn answer(&self) -> Option<((RunId, Fence), Answer)> {
        let report = |result, patch: &Patch| Answer::Report { result, patch: Some(patch.clone()) };
        let (run, fence, answer) = match &self.event {
            Event::Done { run, fence: Some(fence), output, patch, .. }
            | Event::AwaitingManual { run, answered: Some(fence), output, patch, .. } => {
                (run, fence, report(WorkResult::Done { output: output.clone() }, patch))
            }
            Event::Failed { run, fence: Some(fence), failure, output, patch, reported: true, .. } => {
                let failed = || WorkResult::Failed((**failure).clone());
                let result = output.clone().map_or_else(failed, |output| WorkResult::Done { output });
                // A write that conflicted or was too large was not stored.
                let is_kept =
                    !failure.has_code(codes::CONTEXT_CONFLICT) && !failure.has_code(codes::CONTEXT_TOO_LARGE);
                (run, fence, Answer::Report { result, patch: is_kept.then(|| patch.clone()) })
            }
            Event::RetryScheduled { run, fence: Some(fence), failure, patch, reported: true, .. } => {
                (run, fence, report(WorkResult::Failed((**failure).clone()), patch))
            }
            Event::Yielded { run, fence, until, cursor, patch } => {
                let result = WorkResult::Later { delay_ms: until.since(self.at), cursor: cursor.clone() };
                (run, fence, report(result, patch))
            }
            Event::ChildStarted { run, definition, inputs, delegated: Some(delegated), .. } => {
                let (definition, inputs) = (definition.clone(), inputs.clone());
                let result = WorkResult::Child { definition, inputs, cursor: delegated.cursor.clone() };
                (run, &delegated.fence, report(result, &delegated.patch))
            }
            Event::Dropped { run, fence: Some(fence), reported: Some(result), .. } => {
                (run, fence, Answer::Report { result: (**result).clone(), patch: None })
            }
            Event::Returned { run, fence, .. } => (run, fence, Answer::Child),
            Event::CompletedManually { run, fence, by } if by.effect.is_end() => {
                (run, fence, Answer::Manual((**by).clone()))
            }
            any_of![Event: Created Assigned TimeCame Started Held Released Paused Resumed Draining Cleared
                StopAsked Compensating Finalizing Ended Restarted Continued Routed Denied Admitted Discarded Joined
                Fired Skipped Waiting Woken Delayed Offered Lost RetryScheduled AwaitingManual CompletedManually Done
                Failed Dropped LoopStarted IterationStarted IterationEnded Patched ChildStarted ChildPaused NotCompensated
                AgentDecided Forked] => return None,
        };
        Some(((*run, *fence), answer))
    }
}

/// Reads a field that is present, so that a result of null stays distinct from no result.
fn deserialize_present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<Value>>, D::Error> {
    Arc::deserialize(deserializer).map(Some)
}

/// A decision moves its records several times, so a variant with more data than this boxes the part that is rare.
const _: () = assert!(size_of::<Event>() <= 112);
