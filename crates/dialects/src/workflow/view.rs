//! A workflow's execution in the workflow's words: every node with what became of it. Results are not repeated here,
//! they are with the firings in `nodeExecutions`.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_kernel::net::FailureMode;
use windlass_kernel::{Net, StepId};
use windlass_views::{AnswerBudget, DialectView, Firing, ViewInput, node_status, status, unreached_status};

pub(crate) const VIEW: DialectView =
    DialectView { name: "workflow", lists_unreached: true, reads_inputs_schema: false, build: build_view };

fn build_view(input: &ViewInput<'_>, budget: &mut AnswerBudget<'_>) -> Value {
    let ViewInput { net, history, leases, .. } = *input;
    let newest: BTreeMap<StepId, &Firing> = history.whole().map(|firing| (firing.step, firing)).collect();
    let nodes = net.steps().map(|(id, step)| {
        let entry = match newest.get(&id) {
            Some(firing) => {
                json!({ "status": node_status(history, leases, firing), "firings": history.fired(id) })
            }
            None => json!({ "status": unreached_status(history), "firings": 0 }),
        };
        (step.name.clone(), entry)
    });
    json!({
        "status": status(history.state().phase()),
        "failureMode": failure_mode(net),
        "nodes": nodes.collect::<Map<_, _>>(),
        "ctx": budget.show_context(&history.state().head.ctx),
    })
}

fn failure_mode(net: &Net) -> &'static str {
    match net.policy().failure {
        FailureMode::FailFast => "fail_fast",
        FailureMode::Continue => "continue_on_error",
        FailureMode::Collect => "collect_errors",
    }
}
