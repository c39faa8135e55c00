//! The nets that are measured. Every step is a task: it is sent to a worker and reported, none is fused with another.

use serde_json::{Value, json};
use windlass_expr::Template;
use windlass_kernel::net::{
    Admit, Body, Join, JoinArc, LoopKind, LoopSpec, NetSpec, Policy, RouterMode, Step, Work,
};
use windlass_kernel::{Net, StepId};

/// Steps one after another.
pub fn chain(length: u32) -> anyhow::Result<Net> {
    let step = |number: u32| task(number, (number + 1 < length).then_some(number + 1));
    net((0..length).map(step).collect(), Join::All)
}

/// Builds parallel steps, and one that waits for all of them.
pub fn fan(width: u32) -> anyhow::Result<Net> {
    let parallel = (0..width).map(|number| task(number, Some(width)));
    net(parallel.chain([task(width, None)]).collect(), Join::All)
}

/// Builds one step that is repeated many times, one iteration after the other.
pub fn looped(times: u32) -> anyhow::Result<Net> {
    let mut step = task(0, None);
    let kind = LoopKind::Count { times: template(&json!(times))? };
    let iterator = "iteration".to_owned();
    step.repeat = Some(LoopSpec { kind, iterator, cap: 1, body: Body::Own, break_when: None });
    net(vec![step], Join::Each)
}

/// A chain in an execution whose first steps put tokens at a gate that never opens. The execution can still end.
pub fn chain_with_gate(waiting: u32, length: u32) -> anyhow::Result<Net> {
    let (fills, chain) = (waiting / TOKENS_PER_STEP, waiting / TOKENS_PER_STEP + 1);
    let mut steps = Vec::new();
    for number in 0..fills {
        let mut fill = Step::new(format!("fill{number}"), Work::noop());
        fill.router.mode = RouterMode::Inclusive;
        let gate = JoinArc::to(StepId(fills));
        let on = if number + 1 < fills { number + 1 } else { chain };
        fill.router.arcs = vec![gate; TOKENS_PER_STEP as usize];
        fill.router.arcs.push(JoinArc::to(StepId(on)));
        steps.push(fill);
    }
    let mut gate = task(fills, None);
    gate.admit = Some(closed()?);
    steps.push(gate);
    steps.extend(
        (0..length).map(|number| task(chain + number, (number + 1 < length).then_some(chain + number + 1))),
    );
    let entry = Some(StepId(if fills > 0 { 0 } else { chain }));
    let policy = Policy { join: Join::Each, entry, complete_with_pending_gates: true, ..Policy::default() };
    Ok(Net::new(NetSpec { steps, policy })?)
}

/// Arcs of one step that lead to the gate.
const TOKENS_PER_STEP: u32 = 100;

fn closed() -> anyhow::Result<Admit> {
    Ok(serde_json::from_value(json!({ "rules": [{ "when": "ctx.open", "allow": true }] }))?)
}

/// Builds a wait on a timer.
pub fn nap(ms: u64) -> anyhow::Result<Net> {
    net(vec![Step::new("nap", Work::Delay { ms: template(&json!(ms))? })], Join::All)
}

fn task(number: u32, to: Option<u32>) -> Step {
    let mut step = Step::new(format!("s{number}"), Work::task(json!({ "kind": "bench" })));
    step.router.arcs = to.map(|to| JoinArc::to(StepId(to))).into_iter().collect();
    step
}

fn template(value: &Value) -> anyhow::Result<Template> {
    Ok(Template::compile(value)?)
}

fn net(steps: Vec<Step>, join: Join) -> anyhow::Result<Net> {
    Ok(Net::new(NetSpec { steps, policy: Policy { join, ..Policy::default() } })?)
}
