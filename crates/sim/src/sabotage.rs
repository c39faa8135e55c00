//! Sabotages: ways to break the kernel from outside, by altering nets, inputs and records on their way. None
//! has a switch in the kernel. Each must be caught, or the simulator is worth nothing.

use windlass_kernel::net::{Finish, Join, NetSpec, Work};
use windlass_kernel::*;

macro_rules! sabotages {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Sabotage { $($(#[$doc])* $name),* }
        impl Sabotage {
            pub const ALL: &'static [Sabotage] = &[$(Sabotage::$name),*];
        }
    };
}

sabotages! {
    JoinFiresTwice,
    FenceNotCompared,
    DeadTokenLost,
    PoisonLost,
    CompensationForward,
    CompensationForgotten,
    RetryWithoutDelay,
    RetryForgotten,
    OutcomeDecidedTwice,
    OutcomeChanged,
    PatchWakesNothing,
    /// `set_ctx` of a report is lost.
    ContextWriteLost,
    ParallelCapOffByOne,
    LoopCapOffByOne,
    LateReportRouted,
    /// An attempt's timer rings for a later attempt.
    TimerAfterItsAttempt,
    TokenEmittedTwice,
    WrongArcTaken,
    ArgsLost,
    HoldIgnored,
    StopNotAsked,
    FinalStepSkipped,
    LoopStopsEarly,
    LossUsesAttempt,
    DeadlineRunsWhilePaused,
    DispatchOutOfOrder,
    AnyTokenCompletes,
    FailureCalledHandled,
    OneAttemptTooMany,
    JoinOfAnotherDialect,
    GateAlwaysOpen,
    FailFastIgnored,
    /// An agent that asks again is not recognised.
    AgentCallNotCompared,
    /// A join step fires for each token that reaches it.
    JoinStepsIgnored,
    /// A join step fires while another branch can still reach it.
    JoinTooEarly,
    /// A retry runs more again than its preview said.
    RetryRepeatsCompleted,
    /// A result that a retry takes over is another one afterwards.
    RetryLosesResult,
    /// A completed action that cannot be undone is not listed.
    NonCompensableForgotten,
    /// The hooks after a failed one do not run.
    FailedHookEndsCompensation,
    /// Hooks do not wait for actions in flight.
    CompensationTooEarly,
    /// Retries that wait when the outcome is decided begin all the same.
    FailFastKeepsRetries,
}

impl Sabotage {
    /// Returns whether it breaks retries; all others break the execution itself.
    pub fn is_of_retries(self) -> bool {
        matches!(self, Sabotage::RetryRepeatsCompleted | Sabotage::RetryLosesResult)
    }

    pub fn on_net(self, spec: &mut NetSpec) {
        match self {
            Sabotage::ParallelCapOffByOne => {
                spec.policy.max_parallel = spec.policy.max_parallel.map(|cap| cap + 1);
            }
            Sabotage::LoopCapOffByOne => {
                spec.steps.iter_mut().filter_map(|step| step.repeat.as_mut()).for_each(|repeat| {
                    if !matches!(repeat.kind, net::LoopKind::While { .. }) {
                        repeat.cap += 1;
                    }
                });
            }
            Sabotage::OneAttemptTooMany => {
                spec.steps.iter_mut().for_each(|step| step.retry.attempts_max += 1)
            }
            Sabotage::JoinOfAnotherDialect => {
                spec.policy.join = match spec.policy.join {
                    Join::All => Join::AnyLive,
                    Join::AnyLive => Join::All,
                    Join::Each => Join::Each,
                };
            }
            Sabotage::JoinStepsIgnored => spec.steps.iter_mut().for_each(|step| step.join_all = false),
            Sabotage::GateAlwaysOpen => spec.steps.iter_mut().for_each(|step| step.admit = None),
            Sabotage::FailFastIgnored => spec.policy.failure = net::FailureMode::Continue,
            Sabotage::NonCompensableForgotten => {
                spec.steps.iter_mut().for_each(|step| step.side_effecting = false);
            }
            _ => {}
        }
    }

    pub fn on_input(self, input: &mut Input, state: &Execution<'_>) {
        let open = |run: RunId| state.run(run).and_then(|run| run.fence);
        match (self, input) {
            (Sabotage::FenceNotCompared, Input::Report(report)) => {
                report.fence = open(report.run).unwrap_or(report.fence);
            }
            (Sabotage::TimerAfterItsAttempt, Input::TimerDue(Timer::Attempt { run, fence })) => {
                *fence = open(*run).unwrap_or(*fence);
            }
            (Sabotage::AgentCallNotCompared, Input::Agent { call, .. }) => {
                call.push_str(&state.head.version.to_string());
            }
            (Sabotage::AnyTokenCompletes, Input::Complete { run, fence, .. }) => {
                *fence = open(*run).unwrap_or(*fence);
            }
            _ => {}
        }
    }

    pub fn on_records(self, records: &mut Vec<Record>, state: &Execution<'static>, net: &Net) {
        match self {
            Sabotage::JoinFiresTwice => fire_twice(records, state, net),
            Sabotage::JoinTooEarly => join_early(records, state, net),
            Sabotage::DeadTokenLost => lose_tokens(records, &TokenValue::Dead),
            Sabotage::PoisonLost => lose_tokens(records, &TokenValue::Poisoned),
            Sabotage::CompensationForward => undo_oldest(records, state),
            Sabotage::CompensationForgotten => {
                cut_and_end(records, |event| matches!(event, Event::Compensating))
            }
            Sabotage::FinalStepSkipped => {
                if matches!(net.policy().finish, Finish::Step(_)) {
                    cut_and_end(records, |event| matches!(event, Event::Finalizing));
                }
            }
            Sabotage::RetryForgotten => cut(records, |event| matches!(event, Event::RetryScheduled { .. })),
            Sabotage::PatchWakesNothing => cut(records, |event| matches!(event, Event::Admitted { .. })),
            Sabotage::LoopStopsEarly => stop_loop(records),
            Sabotage::OutcomeDecidedTwice => decide_twice(records),
            Sabotage::LateReportRouted => route_late(records, state, net),
            Sabotage::HoldIgnored => records.retain(|record| {
                !matches!(record.event, Event::Held { .. } | Event::Paused { reason: PauseReason::Held, .. })
            }),
            Sabotage::StopNotAsked => {
                records.retain(|record| !matches!(record.event, Event::StopAsked { .. }))
            }
            Sabotage::LossUsesAttempt => use_attempt(records),
            Sabotage::DispatchOutOfOrder => reorder(records, state),
            Sabotage::FailedHookEndsCompensation => end_after_failed_hook(records, state),
            Sabotage::CompensationTooEarly => undo_early(records, state, net),
            Sabotage::FailFastKeepsRetries => keep_retries(records, state),
            _ => records.iter_mut().for_each(|record| self.on_record(record, net)),
        }
    }

    fn on_record(self, record: &mut Record, net: &Net) {
        let at = record.at;
        match (self, &mut record.event) {
            (Sabotage::RetryWithoutDelay, Event::RetryScheduled { until, .. }) => *until = at,
            (Sabotage::OutcomeChanged, Event::Ended { outcome, .. }) => {
                *outcome = if *outcome == Outcome::Completed { Outcome::Failed } else { Outcome::Completed };
            }
            (Sabotage::ContextWriteLost, Event::Done { patch, .. }) => patch.clear(),
            (Sabotage::TokenEmittedTwice, Event::Routed { emitted, .. }) => {
                emitted.extend(emitted.first().cloned());
            }
            (Sabotage::WrongArcTaken, Event::Routed { emitted, step, .. }) => {
                let arcs = net.step(*step).router.arcs.len();
                if let [only] = emitted.as_mut_slice()
                    && arcs > 1
                {
                    only.arc = (only.arc + 1) % u32::try_from(arcs).unwrap_or(1);
                }
            }
            (Sabotage::ArgsLost, Event::Fired { args, role: Role::Routed, .. }) => *args = None,
            (Sabotage::FailureCalledHandled, Event::Failed { handled, .. }) => *handled = true,
            (Sabotage::DeadlineRunsWhilePaused, Event::Paused { remaining_ms: Some(left), .. }) => *left /= 2,
            _ => {}
        }
    }
}

/// The state after the records, if they are legal.
fn after(records: &[Record], state: &Execution<'static>, net: &Net) -> Option<Execution<'static>> {
    let mut state = state.clone();
    records.iter().try_for_each(|record| evolve(&mut state, net, record)).ok()?;
    Some(state)
}

fn cut(records: &mut Vec<Record>, at: impl Fn(&Event) -> bool) {
    if let Some(position) = records.iter().position(|record| at(&record.event)) {
        records.truncate(position);
    }
}

/// Ends the execution where it should have gone on.
fn cut_and_end(records: &mut Vec<Record>, at: impl Fn(&Event) -> bool) {
    if let Some(position) = records.iter().position(|record| at(&record.event)) {
        let at = records[position].at;
        records.truncate(position);
        records.push(Record { at, event: Event::Ended { outcome: Outcome::Failed, failure: None } });
    }
}

fn fire_twice(records: &mut Vec<Record>, state: &Execution<'static>, net: &Net) {
    let joined = records.iter().rev().find_map(|record| match &record.event {
        Event::Fired { step, path, token: Some(_), role: Role::Routed, .. } if net.arcs_in(*step) > 1 => {
            Some((*step, path.clone(), record.at))
        }
        _ => None,
    });
    let (Some((step, path, at)), Some(end)) = (joined, after(records, state, net)) else { return };
    if end.phase() != Phase::Running || !matches!(net.step(step).work, Work::Task { .. }) {
        return;
    }
    let (run, fence) = (end.head.next_run, end.head.next_fence);
    records.push(Record {
        at,
        event: Event::Fired { run, step, path, token: None, role: Role::Routed, args: None },
    });
    records.push(Record { at, event: Event::Offered { run, fence, attempt: 1, reads: Vec::new() } });
}

/// Fires a join step with the tokens that wait there, although more can come.
fn join_early(records: &mut Vec<Record>, state: &Execution<'static>, net: &Net) {
    let (Some(end), Some(at)) = (after(records, state, net), records.last().map(|record| record.at)) else {
        return;
    };
    let fires =
        |step: StepId| matches!(net.step(step).work, Work::Task { .. }) && net.step(step).repeat.is_none();
    let mut joins = net.join_steps().iter().zip(&end.head.branches);
    let found = joins.find(|(step, branches)| branches.waiting > 0 && branches.coming > 0 && fires(**step));
    let Some((step, _)) = found.filter(|_| end.phase() == Phase::Running) else { return };
    let tokens =
        end.joining.keys().filter(|(waits_at, _)| waits_at == step).map(|(_, token)| *token).collect();
    let (token, run, fence) = (end.head.next_token, end.head.next_run, end.head.next_fence);
    let (step, path, args) = (*step, Path::default(), None);
    let events = [
        Event::Joined { step, tokens, token, args: None },
        Event::Fired { run, step, path, token: Some(token), role: Role::Routed, args },
        Event::Offered { run, fence, attempt: 1, reads: Vec::new() },
    ];
    records.extend(events.map(|event| Record { at, event }));
}

fn lose_tokens(records: &mut [Record], lost: &TokenValue) {
    for record in records {
        if let Event::Routed { emitted, .. } = &mut record.event {
            emitted.retain(|emission| emission.token != *lost);
        }
    }
}

fn undo_oldest(records: &mut [Record], state: &Execution<'static>) {
    let oldest = state.owed.values().last().copied();
    for record in records {
        if let (Event::Fired { role: Role::Hook { of }, step, .. }, Some((run, of_step))) =
            (&mut record.event, oldest)
        {
            (*of, *step) = (run, of_step);
        }
    }
}

fn end_after_failed_hook(records: &mut Vec<Record>, state: &Execution<'static>) {
    let is_hook = |run: RunId| state.run(run).is_some_and(|run| matches!(run.role, Role::Hook { .. }));
    if records.iter().any(|record| matches!(record.event, Event::Failed { run, .. } if is_hook(run))) {
        cut_and_end(records, |event| matches!(event, Event::Fired { role: Role::Hook { .. }, .. }));
    }
}

fn undo_early(records: &mut Vec<Record>, state: &Execution<'static>, net: &Net) {
    let Some(end) = after(records, state, net) else { return };
    let is_early = state.phase() == Phase::Running && end.phase() == Phase::Draining && !end.runs.is_empty();
    let Some((of, step)) = end.owed.values().next().copied().filter(|_| is_early) else { return };
    let (run, fence, at) = (end.head.next_run, end.head.next_fence, end.head.at);
    let fired =
        Event::Fired { run, step, path: Path::default(), token: None, role: Role::Hook { of }, args: None };
    let offered = Event::Offered { run, fence, attempt: 1, reads: Vec::new() };
    records.extend([Event::Compensating, fired, offered].map(|event| Record { at, event }));
}

fn keep_retries(records: &mut [Record], state: &Execution<'static>) {
    let waits = |run: RunId| state.run(run).is_some_and(|run| run.state.kind() == Kind::Backoff);
    for record in records {
        if let Event::Cleared(cleared) = &mut record.event {
            cleared.dropped.retain(|(run, _, _)| !waits(*run));
        }
    }
}

fn stop_loop(records: &mut Vec<Record>) {
    let position =
        records.iter().position(|record| matches!(record.event, Event::IterationEnded { stop: false, .. }));
    if let Some(position) = position {
        records.truncate(position + 1);
        if let Event::IterationEnded { stop, .. } = &mut records[position].event {
            *stop = true;
        }
    }
}

fn decide_twice(records: &mut Vec<Record>) {
    let position = records.iter().position(|record| matches!(record.event, Event::Draining { .. }));
    if let Some(position) = position {
        let mut again = records[position].clone();
        if let Event::Draining { outcome, .. } = &mut again.event {
            *outcome = Outcome::Completed;
        }
        records.insert(position + 1, again);
    }
}

/// While draining, the report of a step-run sends its tokens on.
fn route_late(records: &mut Vec<Record>, state: &Execution<'static>, net: &Net) {
    if state.phase() != Phase::Draining {
        return;
    }
    let Some((position, run)) =
        records.iter().enumerate().find_map(|(position, record)| match record.event {
            Event::Done { run, .. } => Some((position, run)),
            _ => None,
        })
    else {
        return;
    };
    let Some(found) = state.run(run) else { return };
    let arcs = u32::try_from(net.step(found.step).router.arcs.len()).unwrap_or(0);
    let emitted = (0..arcs).map(|arc| Emission { arc, token: TokenValue::Live(None) }).collect();
    let (step, path) = (found.step, found.path.clone());
    let event = Event::Routed { run, step, path, emitted, end: BranchEnd::GoesOn };
    records.insert(position + 1, Record { at: records[position].at, event });
}

fn use_attempt(records: &mut Vec<Record>) {
    let position = records.iter().position(|record| matches!(record.event, Event::Lost { .. }));
    let Some(position) = position else { return };
    let at = records[position].at;
    if let Event::Lost { run, fence, .. } = records[position].event {
        let failure = Box::new(Failure::new(codes::WORKER_LOST, "lost"));
        records.truncate(position);
        let event = Event::RetryScheduled {
            run,
            fence: Some(fence),
            until: at,
            failure,
            reported: true,
            patch: Patch::new(),
            cursor: None,
        };
        records.push(Record { at, event });
    }
}

/// Offers the last ready step-run instead of the first.
fn reorder(records: &mut [Record], state: &Execution<'static>) {
    let last = state.ready.keys().last().map(|(_, _, run)| *run);
    let offers = records.iter().filter(|record| matches!(record.event, Event::Offered { .. })).count();
    for record in records {
        if let (Event::Offered { run, .. }, Some(last), 1) = (&mut record.event, last, offers) {
            *run = last;
        }
    }
}
