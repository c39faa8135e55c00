//! The scenarios of the tests.

use crate::scenario::{
    Arc, Backoff, Dialect, Failure, Gate, Loop, LoopKind, Manual, Recovery, Retry, Scenario, Step, When, Work,
};

pub(super) const ONCE: Retry =
    Retry { attempts: 1, backoff: Backoff::Fixed, initial_ms: 100, multiplier: 2.0, max_ms: 1_000 };

pub(super) const THRICE: Retry = Retry { attempts: 3, backoff: Backoff::Exponential, ..ONCE };

pub(super) fn scenario(dialect: Dialect, steps: Vec<Step>) -> Scenario {
    let failure = if dialect == Dialect::Actions { Failure::FailFast } else { Failure::Continue };
    Scenario {
        dialect,
        steps,
        failure,
        partial: false,
        final_step: None,
        final_partial: false,
        final_on_cancel: false,
        no_next_is_error: false,
        max_parallel: None,
        timeout_ms: None,
        recovery: Recovery::ResumeStep,
        uploads: false,
        gates_complete: false,
    }
}

pub(super) fn task() -> Step {
    Step {
        work: Work::Task,
        order: 0,
        arcs: Vec::new(),
        exclusive: false,
        conditional: false,
        gate: None,
        condition: None,
        route_ms: None,
        repeat: None,
        retry: ONCE,
        timeout_ms: None,
        manual: None,
        hook: None,
        region: None,
        trigger: false,
        agent: false,
        tool: false,
        join: false,
    }
}

pub(super) fn works(work: Work) -> Step {
    Step { work, ..task() }
}

pub(super) fn to(to: usize, when: When) -> Arc {
    Arc { to, when, args: None, on_error: false }
}

pub(super) fn leads(step: Step, arcs: Vec<Arc>) -> Step {
    Step { arcs, ..step }
}

/// Two entries that meet in a third step, with this much room.
pub(super) fn meeting(dialect: Dialect) -> Scenario {
    let entry = || leads(task(), vec![to(2, When::Always)]);
    scenario(dialect, vec![entry(), entry(), task()])
}

pub(super) fn chain(dialect: Dialect) -> Scenario {
    scenario(dialect, vec![leads(task(), vec![to(1, When::Always)]), task()])
}

pub(super) fn single(step: Step) -> Scenario {
    scenario(Dialect::Playbook, vec![step])
}

/// First matching arc: big, else after a failure, else nothing.
pub(super) fn choice() -> Scenario {
    let arcs = vec![Arc { args: Some(7), ..to(1, When::AtLeast(5)) }, to(2, When::Failed)];
    scenario(Dialect::Playbook, vec![Step { exclusive: true, ..leads(task(), arcs) }, task(), task()])
}

pub(super) fn gated(gate: Gate) -> Scenario {
    single(Step { gate: Some(gate), ..task() })
}

pub(super) const GATE: Gate = Gate { flag: 0, discard: false, deadline_ms: None };

pub(super) fn approval(deadline_ms: Option<u64>) -> Scenario {
    single(works(Work::Approval(Manual { deadline_ms })))
}

pub(super) fn looping(kind: LoopKind, cap: u32) -> Scenario {
    single(Step { repeat: Some(Loop { kind, cap, body: false }), ..task() })
}

/// A playbook whose two branches join.
pub(super) fn gathering() -> Scenario {
    let start = leads(works(Work::Noop { sets: None }), vec![to(1, When::Always), to(2, When::Always)]);
    let branch = || leads(task(), vec![to(3, When::Done)]);
    let merge = Step { join: true, ..task() };
    scenario(Dialect::Playbook, vec![start, branch(), branch(), merge])
}

/// A loop twice over a body of two steps in a row.
pub(super) fn bodied() -> Scenario {
    let repeat = Some(Loop { kind: LoopKind::Count(2), cap: 1, body: true });
    let first = Step { region: Some(0), ..leads(task(), vec![to(2, When::Always)]) };
    let second = Step { region: Some(0), ..task() };
    let around = Step { repeat, ..leads(task(), vec![to(3, When::Done)]) };
    scenario(Dialect::Workflow, vec![around, first, second, task()])
}

/// Two actions with hooks, then one without.
pub(super) fn saga() -> Scenario {
    let hooked = |next| Step { hook: Some(ONCE), ..leads(task(), vec![to(next, When::Always)]) };
    scenario(Dialect::Actions, vec![hooked(1), hooked(2), task()])
}

pub(super) fn entries(orders: &[u32], max_parallel: u32) -> Scenario {
    let steps = orders.iter().map(|&order| Step { order, ..task() }).collect();
    Scenario { max_parallel: Some(max_parallel), ..scenario(Dialect::Workflow, steps) }
}

pub(super) fn plan() -> Scenario {
    Scenario { recovery: Recovery::RestartExecution, ..chain(Dialect::Plan) }
}
