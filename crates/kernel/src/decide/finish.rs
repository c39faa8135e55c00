//! The end of an execution: compensation, the final step, uploads, the last event.

use super::scope::{NoValue, View};
use super::{Accepted, Draft};
use crate::event::Event;
use crate::execution::{FailureNote, Finale};
use crate::firings::Firings;
use crate::ids::{Path, RunId, StepId};
use crate::input::{Need, Rejected};
use crate::net::{DeclaredOutput, FinalFailure, Finish, Join};
use crate::phase::{Outcome, Phase};
use crate::step_run::{Args, Role};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_failure::{Failure, codes};

/// Returns whether a completed step has to be undone after this outcome.
pub(super) fn owes_compensation(d: &Draft<'_>) -> bool {
    let Some(decided) = d.head().decided else { return false };
    let wanted = match decided.outcome {
        Outcome::Failed | Outcome::Cancelled => decided.compensate,
        Outcome::Completed | Outcome::Partial => false,
    };
    wanted && d.net.policy().compensate && !d.state.owed.is_empty()
}

/// Proceeds after the last work in flight has ended.
pub(super) fn finish_drain(d: &mut Draft<'_>) -> Accepted {
    if owes_compensation(d) { d.emit(Event::Compensating) } else { finalize(d) }
}

/// Fires the hook of the step that completed last, or proceeds after all hooks.
pub(super) fn fire_next_hook(d: &mut Draft<'_>) -> Accepted {
    let Some((of, step)) = d.state.owed.values().next().copied() else { return finalize(d) };
    let args = build_hook_args(d, of, step);
    let role = Role::Hook { of };
    d.emit(Event::Fired { run: d.next_run(), step, path: Path::default(), token: None, role, args })
}

/// Maximum length of the failure's message among the arguments of a hook, which the journal holds once per hook.
const HOOK_MESSAGE_CHARS_MAX: usize = 1_000;

/// Returns the arguments of a hook: its idempotency key and the failure that it undoes the effects of. The key is the
/// same on every attempt; it contains the firing if the step can fire more than once.
fn build_hook_args(d: &Draft<'_>, of: RunId, step: StepId) -> Args {
    let spec = d.net.step(step);
    let once = d.net.policy().join != Join::Each && spec.region.is_none();
    let firing = if once { String::new() } else { format!("#{}", of.0) };
    let key = format!("exec_{}:{}{firing}:compensate", d.head().id, spec.name);
    let failure = find_cause(d).map(|failure| {
        let message: String = failure.message.chars().take(HOOK_MESSAGE_CHARS_MAX).collect();
        json!({ "code": failure.code, "class": failure.class.name(), "message": message, "nodeId": failure.facts.step })
    });
    Some(Arc::new(json!({ "idempotencyKey": key, "failure": failure })))
}

fn finalize(d: &mut Draft<'_>) -> Accepted {
    let policy = d.net.policy();
    let cancelled = d.head().decided.is_some_and(|decided| decided.outcome == Outcome::Cancelled);
    match policy.finish {
        Finish::Step(step)
            if d.head().finale == Finale::NotRun && (!cancelled || policy.final_step_on_cancel) =>
        {
            d.emit(Event::Finalizing)?;
            let args = Some(Arc::new(build_summary(d, step)?));
            let run = d.next_run();
            d.emit(Event::Fired { run, step, path: Path::default(), token: None, role: Role::Final, args })
        }
        Finish::Uploads if !cancelled => d.emit(Event::Finalizing),
        Finish::Step(_) | Finish::Uploads | Finish::Nothing => end_with_outputs(d),
    }
}

fn end_with_outputs(d: &mut Draft<'_>) -> Accepted {
    match find_lost_output(d)? {
        Some(failure) => d.emit(Event::Ended { outcome: Outcome::Failed, failure: Some(Box::new(failure)) }),
        None => end_execution(d),
    }
}

/// Returns a failure if a declared output of a completed execution leads nowhere.
fn find_lost_output(d: &Draft<'_>) -> Result<Option<Failure>, Rejected> {
    let outputs = &d.net.policy().outputs;
    let is_completed = d.head().decided.is_some_and(|decided| decided.outcome == Outcome::Completed);
    let drilled: BTreeSet<StepId> =
        outputs.iter().filter(|output| !output.drill.is_empty()).map(|output| output.step).collect();
    if !is_completed || drilled.is_empty() {
        return Ok(None);
    }
    let view = View::new(d, &Path::default(), &None);
    let loaded = view.latest(drilled.into_iter()).and_then(|stored| {
        let values = view.resolve_all(stored.iter().map(|(_, value)| value))?;
        Ok(stored.into_iter().map(|(name, _)| name).zip(values).collect::<BTreeMap<String, Value>>())
    });
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(NoValue::Rejected(rejected)) => return Err(rejected),
        Err(NoValue::Failed(failure)) => return Ok(Some(*failure)),
    };
    let is_lost = |output: &&DeclaredOutput| {
        let value = loaded.get(&d.net.step(output.step).name).and_then(|value| output.find(value));
        value.is_some_and(|found| found.is_none())
    };
    let lost = outputs.iter().find(is_lost);
    Ok(lost.map(|output| {
        let (name, step) = (&output.name, &d.net.step(output.step).name);
        let path = output.drill.join(".");
        let message = format!("output `{name}`: `{}` of step `{step}` has no `{path}`", output.key);
        Failure::new(codes::REFERENCE_NOT_AVAILABLE, message)
    }))
}

/// Returns the arguments of the final step: counts, and the results and failures of other steps if it reads them
/// (PBK-18).
fn build_summary(d: &Draft<'_>, step: StepId) -> Result<Value, Rejected> {
    let counts = &d.head().counts;
    let mut summary = json!({
        "execution_id": d.head().id.to_string(),
        "status": d.head().decided.map(|decided| decided.outcome),
        "steps": { "completed": counts.completed, "failed": counts.failed, "skipped": counts.skipped },
        "branches": { "well": counts.branches_well, "failed": counts.branches_failed },
    });
    if let Value::Object(fields) = &mut summary {
        match d.net.policy().final_reads_firings {
            true => load_firings(d)?.describe(d.net, step, fields),
            false => drop(fields.insert("failures".into(), list_noted(d))),
        }
    }
    Ok(summary)
}

/// Returns the ended firings: those in the journal, and those of this decision.
fn load_firings(d: &Draft<'_>) -> Result<Firings, Rejected> {
    let Some(earlier) = &d.given.values.firings else { return Err(Rejected::Needs(vec![Need::Firings])) };
    let mut firings = (**earlier).clone();
    d.records.iter().for_each(|record| firings.note(record));
    Ok(firings)
}

/// Returns the first failures as far as the state holds them.
fn list_noted(d: &Draft<'_>) -> Value {
    let describe = |note: &FailureNote| json!({ "step": d.net.step(note.step).name, "code": note.failure.code, "message": note.failure.message });
    d.head().failures.iter().map(describe).collect()
}

pub(super) fn awaits_uploads(d: &Draft<'_>) -> bool {
    d.net.policy().finish == Finish::Uploads
}

pub(super) fn finish_uploads(d: &mut Draft<'_>, failure: Option<&Failure>) -> Accepted {
    if d.phase() != Phase::Finalizing || !awaits_uploads(d) {
        return Err(d.conflict("the execution does not wait for uploads"));
    }
    match failure {
        None => end_with_outputs(d),
        Some(failure) => {
            let failure = Failure {
                message: format!("an upload failed: {}", failure.message),
                ..Failure::new(codes::UPLOAD_FAILED, "")
            };
            d.emit(Event::Ended { outcome: Outcome::Failed, failure: Some(Box::new(failure)) })
        }
    }
}

/// Ends the execution with the decided outcome, or a worse one if the final step failed (R6).
pub(super) fn end_execution(d: &mut Draft<'_>) -> Accepted {
    let Some(decided) = d.head().decided else { return Err(d.conflict("no outcome has been decided")) };
    let outcome = match (d.head().finale, d.net.policy().final_failure) {
        (Finale::Failed, FinalFailure::Fail) => decided.outcome.max(Outcome::Failed),
        (Finale::Failed, FinalFailure::Partial) => decided.outcome.max(Outcome::Partial),
        (Finale::Ran | Finale::NotRun, _) => decided.outcome,
    };
    let failure = match outcome {
        Outcome::Completed => None,
        Outcome::Partial | Outcome::Failed | Outcome::Cancelled => find_cause(d),
    };
    d.emit(Event::Ended { outcome, failure: failure.map(Box::new) })
}

/// Returns the failure that drained the execution, or the first unhandled failure if it drained by itself.
fn find_cause(d: &Draft<'_>) -> Option<Failure> {
    let drained_by = d.head().drained_by.as_deref().cloned();
    let unhandled = || {
        let note = d.head().failures.iter().find(|note| !note.handled)?;
        Some(note.failure.clone().of_step(&d.net.step(note.step).name, 1))
    };
    let dead_end = || {
        let message = "a branch ended without a matching arc";
        (d.head().counts.unhandled > 0).then(|| Failure::new(codes::NO_NEXT, message))
    };
    drained_by.or_else(unhandled).or_else(dead_end)
}
