//! `evolve` folds one event into the state. It decides nothing: it refuses an event that cannot follow the events
//! before it.

mod branches;
mod ends;
mod life;
mod runs;
mod takeover;
mod tokens;

use crate::event::{Event, Record};
use crate::execution::Execution;
use crate::input::Illegal;
use crate::net::Net;
use crate::phase::Move;

type Applied = Result<(), String>;

/// Applies one record. After an error the state must be discarded, because the journal or the caller is broken.
pub fn evolve(execution: &mut Execution<'_>, net: &Net, record: &Record) -> Result<(), Illegal> {
    let version = execution.head.version;
    apply(execution, net, record).map_err(|what| Illegal { version, what })?;
    execution.head.version += 1;
    execution.head.at = record.at;
    Ok(())
}

/// Returns the state after a whole journal.
pub fn replay<'r>(
    net: &Net,
    journal: impl IntoIterator<Item = &'r Record>,
) -> Result<Execution<'static>, Illegal> {
    let mut execution = Execution::default();
    for record in journal {
        evolve(&mut execution, net, record)?;
    }
    Ok(execution)
}

fn apply(state: &mut Execution<'_>, net: &Net, record: &Record) -> Applied {
    if record.at < state.head.at {
        return Err(format!("time decreases from {} to {} (K12)", state.head.at.0, record.at.0));
    }
    if state.head.phase.is_ended() {
        return Err("the execution has ended (K2)".into());
    }
    match &record.event {
        Event::Created(created) => life::created(state, net, created),
        Event::Assigned { deadline, .. } => life::assigned(state, *deadline),
        Event::TimeCame => life::time_came(state),
        Event::Started { deadline } => life::started(state, net, *deadline),
        Event::Held { .. } => life::set_held(state, true),
        Event::Released { .. } => life::set_held(state, false),
        Event::Paused { remaining_ms, .. } => life::paused(state, *remaining_ms),
        Event::Resumed { deadline } => life::resumed(state, *deadline),
        Event::Draining { outcome, cause, failure, compensate } => {
            life::draining(state, *outcome, *cause, failure.as_deref(), *compensate)
        }
        Event::Cleared(cleared) => life::cleared(state, net, cleared),
        Event::Compensating => life::move_phase(state, Move::Compensate),
        Event::Finalizing => life::move_phase(state, Move::Finalize),
        Event::Ended { outcome, .. } => life::ended(state, *outcome),
        Event::Restarted { generation, remaining_ms, started } => {
            life::restarted(state, net, *generation, *remaining_ms, *started)
        }
        Event::Forked(fork) => life::forked(state, net, fork),
        Event::Continued | Event::StopAsked { .. } => Ok(()),
        Event::NotCompensated { runs } => life::not_compensated(state, runs),

        Event::Routed { step, path, emitted, end, run } => {
            tokens::routed(state, net, *run, *step, path, emitted, *end)
        }
        Event::Denied { token, deadline } => tokens::denied(state, *token, *deadline),
        Event::Admitted { tokens } => tokens::admitted(state, tokens),
        Event::Discarded { token } => tokens::discarded(state, net, *token),
        Event::Joined { step, tokens, token, args } => {
            branches::joined(state, net, *step, tokens, *token, args)
        }
        Event::Skipped { run, token, step, path, reason } => {
            tokens::skipped(state, net, *run, *token, *step, path, *reason)
        }
        Event::Patched { patch, .. } => {
            tokens::merge_patch(state, patch);
            Ok(())
        }

        Event::Fired { run, step, path, token, role, args } => {
            runs::fired(state, net, *run, *step, path, *token, role, args)
        }
        Event::Waiting { run, target, until } => runs::waiting(state, net, *run, target, *until),
        Event::Woken { run } => runs::woken(state, net, *run),
        Event::Delayed { run, until } => runs::delayed(state, net, *run, *until),
        Event::Offered { run, fence, attempt, reads } => {
            runs::offered(state, net, *run, *fence, *attempt, reads, record.at)
        }
        Event::Lost { run, fence, started, cursor } => runs::lost(state, net, *run, *fence, *started, cursor),
        Event::RetryScheduled { run, fence, until, patch, cursor, .. } => {
            runs::retry_scheduled(state, net, *run, *fence, *until, patch, cursor)
        }
        Event::Yielded { run, fence, until, cursor, patch } => {
            runs::yielded(state, net, *run, *fence, *until, cursor, patch)
        }
        Event::AwaitingManual { run, fence, answered, output, patch, deadline, .. } => {
            runs::awaiting_manual(state, net, *run, (*fence, *answered), output, patch, *deadline)
        }
        Event::CompletedManually { run, fence, .. } => runs::completed_manually(state, *run, *fence),
        Event::LoopStarted { run, total, .. } => runs::loop_started(state, net, *run, *total),
        Event::IterationStarted { run, index } => runs::iteration_started(state, net, *run, *index),
        Event::IterationEnded { run, index, failed, stop, .. } => {
            runs::iteration_ended(state, net, *run, *index, *failed, *stop)
        }
        Event::ChildStarted { run, fence, attempt, child, until, delegated, .. } => {
            runs::child_started(state, net, *run, *fence, *attempt, *child, *until, delegated.as_deref())
        }
        Event::ChildPaused { run, paused } => runs::child_paused(state, net, *run, *paused),
        Event::Returned { run, fence, cursor } => runs::returned(state, net, *run, *fence, cursor),
        Event::AgentDecided { run, call, decision } => runs::agent_decided(state, *run, call, decision),

        Event::Done { run, fence, patch, .. } => ends::done(state, net, *run, *fence, patch),
        Event::Failed { run, fence, failure, handled, partial, deferred, patch, .. } => {
            let end = ends::FailedEnd { failure, handled: *handled, partial: *partial, deferred: *deferred };
            ends::failed(state, net, *run, *fence, end, patch)
        }
        Event::Dropped { run, fence, how, .. } => ends::dropped(state, net, *run, *fence, *how),
    }
}
