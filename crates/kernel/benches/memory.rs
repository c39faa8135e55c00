//! Memory per idle execution: creates many executions that wait, and prints by how much the process grew, one line per
//! kind. Nothing is asserted.

use serde_json::json;
use std::sync::Arc;
use windlass_expr::{Expr, Template};
use windlass_kernel::net::{Admit, AdmitRule, Join, JoinArc, NetSpec, OnDeny, Policy, Retry, Step, Work};
use windlass_kernel::*;

const COUNT: u128 = 100_000;

fn main() {
    println!(
        "an empty execution: {} bytes, a step-run: {} bytes",
        size_of::<Execution<'_>>(),
        size_of::<StepRun>()
    );
    let mut retried = Step::new("a", Work::task(json!({})));
    retried.retry = Retry { attempts_max: 2, ..Retry::default() };
    retried.router.arcs = vec![JoinArc::to(StepId(1))];
    let mut gate = Step::new("a", Work::task(json!({})));
    let when = Expr::compile("ctx.open").expect("an expression");
    gate.admit = Some(Admit {
        rules: vec![AdmitRule { when: Some(when), allow: true }],
        on_deny: OnDeny::Wait,
        deadline_ms: None,
    });
    let nap = Step::new("a", Work::Delay { ms: Template::compile(&json!(1_000)).expect("a number") });
    let after = || Step::new("b", Work::task(json!({})));
    measure("waiting on a timer", &net(vec![nap], Join::All), false);
    measure("offered to a worker", &net(vec![retried.clone(), after()], Join::All), false);
    measure("in backoff", &net(vec![retried, after()], Join::All), true);
    measure("at a gate", &net(vec![gate], Join::Each), false);
}

fn net(steps: Vec<Step>, join: Join) -> Net {
    Net::new(NetSpec { steps, policy: Policy { join, ..Policy::default() } }).expect("a sound net")
}

fn measure(what: &str, net: &Net, fail: bool) {
    let before = resident();
    let idle: Vec<Execution<'static>> = (0..COUNT).map(|id| make(net, ExecutionId(id), fail)).collect();
    let bytes = (resident() - before) as u128 / COUNT;
    println!("{what}: {bytes} bytes per execution ({COUNT} executions, {:?})", idle[0].phase());
    // The next kind would reuse freed memory and appear too small.
    std::mem::forget(idle);
}

fn make(net: &Net, id: ExecutionId, fail: bool) -> Execution<'static> {
    let mut state = Execution::default();
    let create = Create::new(id, json!({ "order": 17, "customer": "c-1" }));
    let records = send(&mut state, net, &Input::Create(Box::new(create)));
    if let (true, Some(Event::Offered { run, fence, .. })) =
        (fail, records.last().map(|record| &record.event))
    {
        let failure = Failure::of_code("SERVICE_UNAVAILABLE", "down");
        let result = WorkResult::Failed(failure);
        let report = Report {
            run: *run,
            fence: *fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        };
        send(&mut state, net, &Input::Report(Box::new(report)));
    }
    state
}

fn send(state: &mut Execution<'static>, net: &Net, input: &Input) -> Arc<Vec<Record>> {
    let values = Values::default();
    let given = Given { now: Millis(0), random: 0, values: &values };
    let decision = decide(state, net, input, &given).expect("an accepted input");
    state.apply(&decision.changes);
    Arc::new(decision.records)
}

/// Returns the resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: usize = text.split_whitespace().nth(1).and_then(|pages| pages.parse().ok()).expect("a number");
    pages * 4096
}
