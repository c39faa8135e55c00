//! The nets that are measured. Every step is a task: it goes to a worker and comes back, nothing is fused.

use serde_json::{Value, json};
use windlass_expr::Template;
use windlass_kernel::net::{Body, Join, JoinArc, LoopKind, LoopSpec, NetSpec, Policy, Step, Work};
use windlass_kernel::{Net, StepId};

/// Steps one after another.
pub fn chain(length: u32) -> anyhow::Result<Net> {
    let step = |number: u32| task(number, (number + 1 < length).then_some(number + 1));
    net((0..length).map(step).collect(), Join::All)
}

/// Steps beside each other, and one that waits for all of them.
pub fn fan(width: u32) -> anyhow::Result<Net> {
    let parallel = (0..width).map(|number| task(number, Some(width)));
    net(parallel.chain([task(width, None)]).collect(), Join::All)
}

/// One step, many times, one iteration after the other.
pub fn looped(times: u32) -> anyhow::Result<Net> {
    let mut step = task(0, None);
    let kind = LoopKind::Count { times: template(&json!(times))? };
    let iterator = "iteration".to_owned();
    step.repeat = Some(LoopSpec { kind, iterator, cap: 1, body: Body::Own, break_when: None });
    net(vec![step], Join::Each)
}

/// A wait on a timer.
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
