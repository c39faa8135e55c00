//! Translation of a scenario to a Net. In the simulation it replaces the dialects.

use crate::scenario::{self as s, Dialect, Scenario, When};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use windlass_expr::{Expr, Template};
use windlass_kernel::StepId;
use windlass_kernel::net::*;

/// The inputs every simulated execution gets; `text` makes an expression that cannot be evaluated possible.
#[must_use]
pub fn inputs() -> Value {
    json!({ "text": "x" })
}

#[must_use]
pub fn lower(scenario: &Scenario, firings_per_decide: u32) -> NetSpec {
    let steps =
        scenario.steps.iter().enumerate().map(|(number, step)| lower_step(scenario, number, step)).collect();
    NetSpec { steps, policy: policy(scenario, firings_per_decide) }
}

fn policy(scenario: &Scenario, firings_per_decide: u32) -> Policy {
    let plan = scenario.dialect == Dialect::Plan;
    Policy {
        join: match scenario.dialect {
            Dialect::Playbook => Join::Each,
            Dialect::Workflow => Join::AnyLive,
            Dialect::Plan | Dialect::Actions => Join::All,
        },
        entry: (scenario.dialect == Dialect::Playbook).then_some(StepId(0)),
        finish: match (scenario.final_step, scenario.uploads) {
            (Some(step), _) => Finish::Step(id(step)),
            (None, true) => Finish::Uploads,
            (None, false) => Finish::Nothing,
        },
        final_failure: if scenario.final_partial { FinalFailure::Partial } else { FinalFailure::Fail },
        final_step_on_cancel: scenario.final_on_cancel,
        final_reads_firings: scenario.final_step.is_some(),
        failure: match scenario.failure {
            s::Failure::FailFast => FailureMode::FailFast,
            s::Failure::Continue => FailureMode::Continue,
            s::Failure::Collect => FailureMode::Collect,
        },
        end: if scenario.partial { EndPolicy::Partial } else { EndPolicy::FailOnAny },
        max_parallel: scenario.max_parallel,
        timeout_ms: scenario.timeout_ms,
        recovery: match scenario.recovery {
            s::Recovery::ResumeStep => Recovery::ResumeStep,
            s::Recovery::RestartExecution => Recovery::RestartExecution,
            s::Recovery::FailAttempt => Recovery::FailAttempt,
        },
        affinity: if plan { Affinity::OneWorker } else { Affinity::AnyWorker },
        compensate: scenario.dialect == Dialect::Actions,
        no_next_is_error: scenario.no_next_is_error,
        complete_with_pending_gates: scenario.gates_complete,
        limits: Limits { firings_per_decide, ..Limits::default() },
        names: BTreeMap::new(),
        outputs: Vec::new(),
        editors_only: false,
    }
}

fn id(number: usize) -> StepId {
    StepId(u32::try_from(number).unwrap_or(u32::MAX))
}

fn lower_step(scenario: &Scenario, number: usize, step: &s::Step) -> Step {
    Step {
        order: step.order,
        admit: step.gate.map(admit),
        condition: step.condition.map(|when| when_expr(when).unwrap_or_else(|| expr("true"))),
        wait_for: step.route_ms.map(|timeout_ms| WaitFor { target: template(json!("route")), timeout_ms }),
        repeat: step.repeat.map(repeat),
        retry: retry(scenario, &step.retry),
        timeout_ms: step.timeout_ms,
        completion: step
            .manual
            .map_or(Completion::Auto, |m| Completion::Manual { deadline_ms: m.deadline_ms }),
        compensation: step.hook.as_ref().map(|hook| Hook {
            work: Work::task(json!({ "undo": number })),
            retry: retry(scenario, hook),
            timeout_ms: None,
        }),
        side_effecting: scenario.dialect == Dialect::Actions,
        router: router(step),
        region: step.region.map(id),
        trigger: step.trigger,
        on_demand: step.tool,
        join_all: step.join,
        ..Step::new(format!("s{number}"), work(&step.work))
    }
}

fn work(work: &s::Work) -> Work {
    match work {
        s::Work::Task => Work::task(json!({})),
        s::Work::Noop { sets } => {
            let patch = sets
                .iter()
                .map(|(flag, value)| PatchEntry { key: flag_name(*flag), value: template(json!(value)) });
            Work::Pure { output: None, patch: patch.collect() }
        }
        s::Work::Approval(manual) => Work::Approval { deadline_ms: manual.deadline_ms, asks: None },
        s::Work::Delay { ms } => Work::Delay { ms: template(json!(ms)) },
        s::Work::Child => Work::Child { definition: template(json!("child")), inputs: template(json!({})) },
    }
}

fn router(step: &s::Step) -> Router {
    let arcs = step.arcs.iter().map(|arc| JoinArc {
        to: id(arc.to),
        guard: when_expr(arc.when),
        args: arc.args.map(|a| template(json!({ "a": a }))),
        on: if arc.on_error { On::Error } else { On::End },
    });
    Router {
        mode: if step.exclusive { RouterMode::Exclusive } else { RouterMode::Inclusive },
        conditional: step.conditional,
        arcs: arcs.collect(),
    }
}

fn admit(gate: s::Gate) -> Admit {
    Admit {
        rules: vec![AdmitRule { when: when_expr(When::Flag(gate.flag)), allow: true }],
        on_deny: if gate.discard { OnDeny::Discard } else { OnDeny::Wait },
        deadline_ms: gate.deadline_ms,
    }
}

fn repeat(repeat: s::Loop) -> LoopSpec {
    let kind = match repeat.kind {
        s::LoopKind::ForEach(count) => {
            LoopKind::ForEach { items: template(Value::Array((0..count).map(Value::from).collect())) }
        }
        s::LoopKind::Count(times) => LoopKind::Count { times: template(json!(times)) },
        s::LoopKind::Until { flag, max } => {
            let condition = expr(&format!("not ctx.{}", flag_name(flag)));
            LoopKind::While { condition, check_first: true, max }
        }
    };
    let body = if repeat.body { Body::Region } else { Body::Own };
    LoopSpec { kind, iterator: "item".into(), cap: repeat.cap, body, break_when: None }
}

fn retry(scenario: &Scenario, retry: &s::Retry) -> Retry {
    Retry {
        attempts_max: retry.attempts,
        backoff: match retry.backoff {
            s::Backoff::Fixed => Backoff::Fixed,
            s::Backoff::Linear => Backoff::Linear,
            s::Backoff::Exponential => Backoff::Exponential,
        },
        initial_ms: retry.initial_ms,
        multiplier: retry.multiplier,
        max_ms: retry.max_ms,
        unknown: if scenario.dialect == Dialect::Actions {
            UnknownErrors::Retry
        } else {
            UnknownErrors::AsFlagged
        },
        ..Retry::default()
    }
}

#[must_use]
pub fn flag_name(flag: usize) -> String {
    format!("k{flag}")
}

fn when_expr(when: When) -> Option<Expr> {
    Some(match when {
        When::Always => return None,
        When::Done => expr("not event.error"),
        When::Failed => expr("event.error"),
        When::Ended => expr("event.name in ['step.done', 'step.failed', 'loop.done']"),
        When::AtLeast(n) => expr(&format!("(event.result.n | default(-1)) >= {n}")),
        When::Flag(flag) => expr(&format!("ctx.{}", flag_name(flag))),
        When::ArgAtLeast(a) => expr(&format!("(args.a | default(-1)) >= {a}")),
        When::Never => expr("false"),
        When::Broken => expr("workload.text - 1"),
    })
}

fn expr(source: &str) -> Expr {
    Expr::compile(source).unwrap_or_else(|error| panic!("the simulator's own `{source}`: {error}"))
}

fn template(source: Value) -> Template {
    Template::compile(&source).unwrap_or_else(|error| panic!("the simulator's own `{source}`: {error}"))
}
