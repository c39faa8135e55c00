//! Definitions of the users of a simulated system: nets of every shape that the engine can run by itself, whose tasks
//! are
//! pipelines.

use crate::generate;
use crate::lower::{flag_name, lower};
use crate::rng::Rng;
use crate::scenario::Dialect;
use crate::system::workers::AGENT;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_expr::Template;
use windlass_kernel::net::{
    Affinity, Backoff, Body, FailureMode, Finish, Join, JoinArc, Limits, LoopKind, LoopSpec, Policy, Retry,
    Step, Work,
};
use windlass_kernel::{Millis, Net, NetSpec, StepId};
use windlass_store::{Definition, StoredManifest, Target, Tenant, WorkflowId};

/// A name that children are started by and that is not registered.
pub(super) const NOWHERE: &str = "nowhere";

/// The dialect of definitions that are judged as sagas.
pub(super) const SAGA: &str = "actions";

/// Length above which a value is large in some definitions.
const INLINE_BYTES: usize = 4;

#[must_use]
pub fn name(number: usize) -> String {
    format!("d{number}")
}

/// Definitions that start only later ones as children, so that nesting ends.
pub(super) fn draw(count: usize, at: Millis, rng: &mut Rng) -> Vec<Definition> {
    (0..count)
        .map(|number| {
            let (net, dialect) = net(number, count, rng);
            let source = format!("definition {number}");
            let (dialect, workload) = (dialect.to_owned(), json!({}));
            let (tenant, target) = (Tenant::default(), Target::Named(WorkflowId(number as u128 + 1)));
            Definition {
                tenant,
                target,
                name: name(number),
                dialect,
                source,
                workload,
                manifest: StoredManifest::default(),
                net,
                hooks: Vec::new(),
                schedules: Vec::new(),
                at,
                status: None,
                author: None,
            }
        })
        .collect()
}

/// Returns a net and its dialect.
fn net(number: usize, count: usize, rng: &mut Rng) -> (Arc<Net>, &'static str) {
    let (mut spec, dialect) = match rng.below(10) {
        0..=5 => scenario(rng),
        6..=7 => (chain(rng), "simulated"),
        _ => (fan(rng), "simulated"),
    };
    for step in &mut spec.steps {
        equip(step, number, count, rng);
    }
    agents(&mut spec, rng);
    if number % 2 == 1 {
        lighten(&mut spec);
        for step in &mut spec.steps {
            step.collect = step.repeat.as_ref().is_some_and(|repeat| repeat.body == Body::Own);
        }
    }
    // An execution that a worker holds as a whole keeps its slot, so a child of it might never get one.
    if number.is_multiple_of(3) && number + 1 < count && spec.policy.affinity == Affinity::AnyWorker {
        delegate(&mut spec, number + 1);
    }
    reads(&mut spec, rng);
    match Net::new(spec) {
        Ok(net) => (Arc::new(net), dialect),
        Err(error) => panic!("the simulator made a net that cannot run: {error}"),
    }
}

/// Some tasks of a net that has tools ask for them.
fn agents(spec: &mut NetSpec, rng: &mut Rng) {
    let places = (0..).zip(&spec.steps);
    let tools: Vec<u32> = places.filter(|(_, step)| step.on_demand).map(|(place, _)| place).collect();
    if tools.is_empty() {
        return;
    }
    for step in spec.steps.iter_mut().filter(|step| !step.on_demand && step.repeat.is_none()) {
        if let Work::Task { spec } = &mut step.work
            && rng.percent(60)
        {
            let task = json!({ "label": "agent", "kind": AGENT, "config": { "tools": tools } });
            *spec = Arc::new(json!({ "tasks": [task] }));
            step.retry.resumes = true;
        }
    }
}

/// The first task of some definitions ends with another execution, whose failure its rules may pass over.
fn delegate(spec: &mut NetSpec, to: usize) {
    let others = spec.steps.iter_mut().filter(|step| !step.retry.resumes);
    let tasks = others.filter_map(|step| match &mut step.work {
        Work::Task { spec } => Some(spec),
        _ => None,
    });
    for spec in tasks.take(1) {
        let mut pipeline = (**spec).clone();
        let rule = json!({ "when": "outcome.error.code == 'ODD'", "action": { "do": "continue" } });
        let call =
            json!({ "label": "other", "kind": "playbook", "config": { "path": name(to) }, "rules": [rule] });
        pipeline["tasks"].as_array_mut().into_iter().for_each(|tasks| tasks.push(call.clone()));
        *spec = Arc::new(pipeline);
    }
}

/// Everything but the smallest values is kept as artifacts, by the kernel and by the workers.
fn lighten(spec: &mut NetSpec) {
    spec.policy.limits.inline_bytes = INLINE_BYTES;
    for step in &mut spec.steps {
        let hook = step.compensation.as_mut().map(|hook| &mut hook.work);
        for work in [Some(&mut step.work), hook].into_iter().flatten() {
            let Work::Task { spec } = work else { continue };
            let mut pipeline = (**spec).clone();
            pipeline["inline_bytes"] = json!(INLINE_BYTES);
            *spec = Arc::new(pipeline);
        }
    }
}

/// Returns the net of a small scenario, and its dialect.
fn scenario(rng: &mut Rng) -> (NetSpec, &'static str) {
    let scenario = generate::scenario(rng);
    let firings_per_decide = *rng.pick(&[1, 3, 20, 1_000]);
    let dialect = if scenario.dialect == Dialect::Actions { SAGA } else { "simulated" };
    (lower(&scenario, firings_per_decide), dialect)
}

/// Tasks one after the other: the shape that most commits come from.
fn chain(rng: &mut Rng) -> NetSpec {
    let count = rng.between(2, 6) as u32;
    let mut steps: Vec<Step> = (0..count).map(|number| task(format!("s{number}"), rng)).collect();
    for (number, step) in (1..count).zip(&mut steps) {
        step.router.arcs.push(JoinArc::to(StepId(number)));
    }
    let finish = if rng.percent(30) {
        Finish::Step(StepId(rng.below(u64::from(count)) as u32))
    } else {
        Finish::Nothing
    };
    let failure = *rng.pick(&[FailureMode::FailFast, FailureMode::Continue]);
    let final_reads_firings = finish != Finish::Nothing;
    NetSpec {
        steps,
        policy: Policy { join: Join::Each, finish, final_reads_firings, failure, ..policy(rng) },
    }
}

/// One step, many at once, one that waits for all; sometimes a loop in the middle.
fn fan(rng: &mut Rng) -> NetSpec {
    let width = rng.between(2, 5) as u32;
    let mut steps = vec![task("first".into(), rng)];
    for number in 0..width {
        let mut middle = task(format!("m{number}"), rng);
        middle.repeat = rng.percent(30).then(|| repeat(rng));
        middle.router.arcs.push(JoinArc::to(StepId(width + 1)));
        steps[0].router.arcs.push(JoinArc::to(StepId(number + 1)));
        steps.push(middle);
    }
    steps.push(task("last".into(), rng));
    if rng.percent(40) {
        let tools = rng.between(1, 2);
        steps.extend((0..tools).map(|number| tool(format!("tool{number}"), rng)));
    }
    let failure = *rng.pick(&[FailureMode::FailFast, FailureMode::Continue, FailureMode::Collect]);
    let max_parallel = rng.percent(40).then(|| rng.between(1, 3) as u32);
    NetSpec { steps, policy: Policy { join: Join::AnyLive, failure, max_parallel, ..policy(rng) } }
}

fn policy(rng: &mut Rng) -> Policy {
    let firings_per_decide = *rng.pick(&[2, 1_000]);
    Policy { limits: Limits { firings_per_decide, ..Limits::default() }, ..Policy::default() }
}

fn task(name: String, rng: &mut Rng) -> Step {
    let work = match rng.below(10) {
        0 => Work::Delay { ms: template(json!(delay_ms(rng))) },
        1 => Work::Child { definition: template(json!("child")), inputs: template(json!({})) },
        _ => Work::task(json!({})),
    };
    let attempts_max = rng.between(1, 3) as u32;
    let backoff = Backoff::Fixed;
    let initial_ms = rng.between(100, 9_000);
    let retry = Retry { attempts_max, backoff, initial_ms, ..Retry::default() };
    let timeout_ms = rng.percent(20).then(|| rng.between(500, 20_000));
    Step { retry, timeout_ms, ..Step::new(name, work) }
}

/// Returns a step that only agents run.
fn tool(name: String, rng: &mut Rng) -> Step {
    Step { on_demand: true, ..task(name, rng) }
}

/// Returns a delay, usually short; some end at about the time up to which the engine reads ahead.
fn delay_ms(rng: &mut Rng) -> u64 {
    if rng.percent(15) { rng.between(50_000, 75_000) } else { rng.between(1, 20_000) }
}

fn repeat(rng: &mut Rng) -> LoopSpec {
    let items = (0..rng.below(4)).map(Value::from).collect();
    LoopSpec {
        kind: LoopKind::ForEach { items: template(Value::Array(items)) },
        iterator: "item".into(),
        cap: rng.between(1, 3) as u32,
        body: Body::Own,
        break_when: None,
    }
}

/// Tasks and hooks get pipelines, children get a definition that exists, mostly.
fn equip(step: &mut Step, number: usize, count: usize, rng: &mut Rng) {
    match &mut step.work {
        Work::Task { spec } => *spec = Arc::new(pipeline(rng)),
        Work::Child { definition, inputs } => {
            let later = number + 1..count;
            if later.is_empty() {
                step.work = Work::task(pipeline(rng));
            } else {
                let chosen = name(number + 1 + rng.index(later.len()));
                let chosen = if rng.percent(6) { NOWHERE.to_owned() } else { chosen };
                *definition =
                    template(if rng.percent(50) { json!(chosen) } else { json!({ "path": chosen }) });
                *inputs = template(json!({ "text": "x" }));
            }
        }
        Work::Pure { .. } | Work::Approval { .. } | Work::Delay { .. } => {}
    }
    if let Some(hook) = &mut step.compensation {
        hook.work = Work::task(pipeline(rng));
    }
}

/// One to three tool calls; some are tried again in place, some wait long enough to give their slot back.
fn pipeline(rng: &mut Rng) -> Value {
    let count = *rng.pick(&[1, 1, 1, 2, 3]);
    let tasks: Vec<Value> = (0..count).map(|number| call(number, rng)).collect();
    let mut pipeline = json!({ "tasks": tasks });
    if rng.percent(15) {
        let flag = flag_name(rng.index(generate::FLAGS));
        pipeline["set_ctx"] = json!({ flag: rng.percent(70) });
    }
    pipeline
}

fn call(number: u32, rng: &mut Rng) -> Value {
    let mut task = json!({ "label": format!("t{number}"), "kind": "simulated" });
    if rng.percent(40) {
        let (attempts, delay_ms) = (rng.between(2, 3), *rng.pick(&[0, 200, 2_000, 7_000]));
        let action =
            json!({ "do": "retry", "attempts": attempts, "backoff": "constant", "delay_ms": delay_ms });
        task["rules"] = json!([{ "when": "outcome.status == 'error'", "action": action }]);
    }
    task
}

/// Makes some work read the outputs of earlier steps, so that these have to be loaded when it is handed out.
fn reads(spec: &mut NetSpec, rng: &mut Rng) {
    for number in 1..spec.steps.len() {
        let is_task = matches!(spec.steps[number].work, Work::Task { .. });
        if is_task && rng.percent(35) {
            let earlier = StepId(rng.below(number as u64) as u32);
            if !spec.steps[earlier.index()].on_demand {
                spec.steps[number].reads.push(earlier);
            }
        }
    }
}

fn template(source: Value) -> Template {
    Template::compile(&source).unwrap_or_else(|error| panic!("the simulator's own `{source}`: {error}"))
}
