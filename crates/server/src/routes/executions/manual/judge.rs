//! The checks of a signal against the execution as it was read: existence, replay, state, token, actor, approvers, policy.

use super::Approvals;
use super::signal::Signal;
use crate::app::App;
use crate::auth::Caller;
use crate::loaded::LoadedExecution;
use crate::people::approvers_of;
use crate::problem::Problem;
use serde_json::Value;
use std::sync::Arc;
use windlass_duties::{
    Approval, PerformedDuty, SodConstraint, Verdict, Violation, check, needed_approvers, relevant_roles,
};
use windlass_kernel::net::Completion;
use windlass_kernel::{Execution, ManualNote, ManualOutcome, Net, NoteEffect, RunState, StepId};
use windlass_views::{ManualEnd, TaskRef, label};

/// Maximum number of violations that are recorded for one task. Further ones are refused and audited only.
const VIOLATIONS_MAX: usize = 100;

/// Result of a signal.
pub(super) enum Judged {
    /// It was accepted before.
    Repeated(Option<Approvals>),
    Accept(Box<Acceptance>),
    /// A violation of the policy that is recorded already.
    Refused(Problem),
}

/// An answer to be committed.
pub(super) struct Acceptance {
    pub task: TaskRef,
    pub note: ManualNote,
    /// The version that the policy was checked against.
    pub seen: Option<u64>,
    pub approvals: Option<Approvals>,
}

/// A task that waits for a person.
struct OpenTask {
    step: StepId,
    task: TaskRef,
    question: Arc<Value>,
}

pub(super) fn judge(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    action: &str,
    signal: &Signal,
) -> Result<Judged, Problem> {
    let (step, open) = find(loaded, action)?;
    if let Some(repeated) = find_repeated(app, caller, loaded, step, open.as_ref(), signal)? {
        return Ok(repeated);
    }
    let asked = open.as_ref().map_or(step, |open| open.step);
    // Approvals need no token.
    if signal.whole.is_none() && matches!(loaded.net.step(asked).completion, Completion::Manual { .. }) {
        return Err(Signal::incomplete());
    }
    let Some(open) = open else {
        return Err(Problem::conflict(format!(
            "`{action}` does not wait for a person; see `waitingFor` of the execution"
        )));
    };
    if !has_token(app, caller, open.task, signal)? {
        let message = "the completion token is not that of this task; read `waitingFor` of the execution";
        return Err(Problem::forbidden(message));
    }
    if let Some(repeated) = find_counted(app, caller, loaded, &open, signal)? {
        return Ok(repeated);
    }
    check_actor(caller, signal)?;
    caller.may_answer(&approvers_of(loaded, loaded.net.step(open.step), &open.question)?)?;
    judge_policy(app, caller, loaded, &open, signal)
}

/// Refuses a signal in the name of another user, even if it repeats one that was accepted.
fn check_actor(caller: &Caller, signal: &Signal) -> Result<(), Problem> {
    match signal.actor.as_ref().is_some_and(|actor| *actor != caller.id) {
        true => Err(Problem::forbidden("actorUserId is not the id of the caller; send your own id")),
        false => Ok(()),
    }
}

/// Returns the step of an action, and its task if one waits: `NODE`, or `NODE[0]` in an iteration of a loop. The approval
/// before an action is answered by the name of the action.
fn find(loaded: &LoadedExecution<'_>, name: &str) -> Result<(StepId, Option<OpenTask>), Problem> {
    let bare = name.split_once('[').map_or(name, |(bare, _)| bare);
    let Some(step) = loaded.net.find(name).or_else(|| loaded.net.find(bare)) else {
        return Err(Problem::not_found("action", name));
    };
    let state = loaded.history.state();
    let mut open = open_tasks(state, loaded.net, step);
    let is_whole_step = loaded.net.find(name).is_some();
    let labels: Vec<String> = open.iter().map(|(label, _)| label.clone()).collect();
    open.retain(|(label, _)| is_whole_step || label == name);
    if open.len() > 1 {
        let names = labels.join(", ");
        return Err(Problem::conflict(format!("several step-runs wait for a person; name one of {names}")));
    }
    Ok((step, open.pop().map(|(_, task)| task)))
}

fn open_tasks(state: &Execution<'_>, net: &Net, step: StepId) -> Vec<(String, OpenTask)> {
    let runs = state.runs.iter().filter(|(_, run)| net.shown_as(run.step) == step);
    let open = runs.filter_map(|(id, run)| match &run.state {
        RunState::Manual { fence, output, .. } => {
            let task = TaskRef { execution: state.head.id, run: *id, fence: *fence };
            let open = OpenTask { step: run.step, task, question: output.clone() };
            Some((label(&net.step(step).name, &run.path.0), open))
        }
        _ => None,
    });
    open.collect()
}

/// Returns the result of a signal that repeats the one which ended the action, or the approval before it. A signal without a
/// token cannot repeat anything while a task waits.
fn find_repeated(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    step: StepId,
    open: Option<&OpenTask>,
    signal: &Signal,
) -> Result<Option<Judged>, Problem> {
    if signal.whole.is_none() && open.is_some() {
        return Ok(None);
    }
    let steps = loaded.net.steps().map(|(id, _)| id).filter(|id| loaded.net.shown_as(*id) == step);
    for ManualEnd { run, fence, note, .. } in steps.filter_map(|id| loaded.history.last_manual_end(id)) {
        let task = TaskRef { execution: loaded.facts.execution, run: *run, fence: *fence };
        if !has_token(app, caller, task, signal)? {
            continue;
        }
        check_actor(caller, signal)?;
        return match note.outcome == signal.outcome {
            true => Ok(Some(Judged::Repeated(None))),
            false => {
                Err(Problem::conflict("a different answer was already accepted; an answer cannot be changed"))
            }
        };
    }
    Ok(None)
}

/// Reports whether a signal may answer a task by its token. The short form has none.
fn has_token(app: &App, caller: &Caller, task: TaskRef, signal: &Signal) -> Result<bool, Problem> {
    match &signal.whole {
        Some(whole) => app.completion.is_of(&caller.tenant, task, &whole.token),
        None => Ok(true),
    }
}

/// Returns the result of an approval of the caller that was counted before, under this or another identity.
fn find_counted(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    open: &OpenTask,
    signal: &Signal,
) -> Result<Option<Judged>, Problem> {
    let notes = loaded.history.notes(open.task.run);
    let person = app.directory.person(&caller.id);
    let counted = || notes.iter().filter(|note| note.effect == NoteEffect::Counts);
    let own = counted().find(|note| app.directory.person(&note.actor) == person);
    let Some(own) = own else { return Ok(None) };
    if own.outcome != signal.outcome {
        return Err(Problem::conflict("you have already approved this step; an approval cannot be changed"));
    }
    let given = counted().count();
    let needed = needed_approvers(constraints_of(loaded)?);
    let given = u32::try_from(given).unwrap_or(u32::MAX);
    Ok(Some(Judged::Repeated(Some(Approvals { given, needed }))))
}

fn constraints_of<'l>(loaded: &'l LoadedExecution<'_>) -> Result<&'l [SodConstraint], Problem> {
    loaded.constraints.as_deref().map_err(Problem::clone)
}

/// Returns the duty that a person performs by answering for a step: the operation of an action.
fn duty_of(net: &Net, step: StepId) -> Option<&str> {
    net.step(net.shown_as(step)).shown.as_ref().map(|shown| shown.kind.as_str())
}

fn judge_policy(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    open: &OpenTask,
    signal: &Signal,
) -> Result<Judged, Problem> {
    let (task, note) = (open.task, signal.note(caller));
    let constraints = constraints_of(loaded)?;
    if constraints.is_empty() {
        return Ok(Judged::Accept(Box::new(Acceptance { task, note, seen: None, approvals: None })));
    }
    let roles = relevant_roles(constraints, &caller.all_roles());
    let verdict = evaluate(app, caller, loaded, open, signal, &roles)?;
    let (effect, approvals) = match verdict {
        Ok(Verdict::Ends) => (NoteEffect::Ends, None),
        Ok(Verdict::Counts { given, needed }) => (NoteEffect::Counts, Some(Approvals { given, needed })),
        Err(violation) => {
            let effect = NoteEffect::Refused {
                constraint: violation.constraint.to_owned(),
                message: violation.message.clone(),
            };
            if is_recorded(loaded.history.notes(task.run), caller, &effect) {
                let problem = Problem::policy_violation(violation.constraint, &violation.message);
                return Ok(Judged::Refused(problem));
            }
            (effect, None)
        }
    };
    let (note, seen) = (ManualNote { roles, effect, ..note }, Some(loaded.history.version()));
    Ok(Judged::Accept(Box::new(Acceptance { task, note, seen, approvals })))
}

/// Evaluates the constraints over persons, each of whom may have several ids.
fn evaluate(
    app: &App,
    caller: &Caller,
    loaded: &LoadedExecution<'_>,
    open: &OpenTask,
    signal: &Signal,
    roles: &[String],
) -> Result<Result<Verdict, Violation>, Problem> {
    let person = |id: &str| app.directory.person(id);
    let options = &loaded.stored.origin.options;
    let initiators: Vec<String> =
        std::iter::once(&options.by).chain(&options.makers).map(|id| person(id)).collect();
    let performed: Vec<(String, &str)> = loaded
        .history
        .performed_duties()
        .filter_map(|(user, step)| Some((person(user), duty_of(loaded.net, step)?)))
        .collect();
    let counted = loaded.history.notes(open.task.run).iter().filter(|note| note.effect == NoteEffect::Counts);
    let approvals: Vec<(String, &[String])> =
        counted.map(|note| (person(&note.actor), &note.roles[..])).collect();
    let facts = windlass_duties::Signal {
        actor: &person(&caller.id),
        roles,
        consents: signal.outcome == ManualOutcome::Succeeded,
        duty: duty_of(loaded.net, open.step),
        initiators: &initiators.iter().map(String::as_str).collect::<Vec<_>>(),
        performed: &performed.iter().map(|(user, duty)| PerformedDuty { user, duty }).collect::<Vec<_>>(),
        approvals: &approvals.iter().map(|(user, roles)| Approval { user, roles }).collect::<Vec<_>>(),
    };
    Ok(check(constraints_of(loaded)?, &facts))
}

/// Reports whether a violation need not be recorded: the same one of the caller is, or too many are.
fn is_recorded(notes: &[ManualNote], caller: &Caller, effect: &NoteEffect) -> bool {
    let refused = || notes.iter().filter(|note| matches!(note.effect, NoteEffect::Refused { .. }));
    refused().count() >= VIOLATIONS_MAX
        || refused().any(|note| note.actor == caller.id && note.effect == *effect)
}
