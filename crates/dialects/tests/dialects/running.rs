//! Lowered playbooks, run through the kernel.

use crate::compiled::{net, playbook};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::net::Work;
use windlass_kernel::*;

pub struct Run {
    net: Net,
    state: Execution<'static>,
    journal: Vec<Record>,
}

impl Run {
    pub fn start(text: &str, inputs: Value) -> (Run, String) {
        let mut run = Run { net: net(text), state: Execution::default(), journal: Vec::new() };
        let trace = run.send(&Input::Create(Box::new(Create::new(ExecutionId(7), inputs))));
        (run, trace)
    }

    /// Returns the steps that are offered and the status of the execution.
    fn send(&mut self, input: &Input) -> String {
        let mut values = Values::default();
        let decision = loop {
            let given = Given { now: Millis(0), random: 0, values: &values };
            match decide(&self.state, &self.net, input, &given) {
                Err(Rejected::Needs(needs)) => values.load(&self.journal, &needs),
                other => break other.expect("the input is accepted"),
            }
        };
        let mut trace = Vec::new();
        for record in decision.records {
            evolve(&mut self.state, &self.net, &record).expect("what was decided can be folded");
            if let Event::Offered { run, .. } = &record.event {
                trace.push(self.name(*run).to_owned());
            }
            self.journal.push(record);
        }
        trace.push(format!("{:?}", self.state.phase()));
        trace.join(" ")
    }

    fn name(&self, run: RunId) -> &str {
        &self.net.step(self.state.run(run).expect("a live step-run").step).name
    }

    fn report(&mut self, step: &str, result: WorkResult, patch: Patch) -> String {
        let (run, fence) = self.offered(step).expect("the step is offered");
        self.send(&Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch,
            times: None,
            metadata: None,
            cursor: None,
        })))
    }

    /// Returns the arguments of the step's live firing.
    pub fn args(&self, step: &str) -> Value {
        let (run, _) = self.offered(step).expect("the step is offered");
        self.state.run(run).and_then(|run| run.args.as_deref().cloned()).unwrap_or_default()
    }

    pub fn ctx(&self, key: &str) -> Value {
        self.state.head.ctx.get(key).map(|value| (**value).clone()).unwrap_or_default()
    }

    fn offered(&self, step: &str) -> Option<(RunId, Fence)> {
        let mut runs = self.state.runs.iter().filter_map(|(run, state)| Some((*run, state.fence?)));
        runs.find(|(run, _)| self.name(*run) == step)
    }

    pub fn done(&mut self, step: &str, output: Value) -> String {
        self.report(step, WorkResult::Done { output: Arc::new(output) }, Patch::new())
    }

    pub fn fail(&mut self, step: &str) -> String {
        self.report(step, WorkResult::Failed(Failure::of_code("X", "no")), Patch::new())
    }
}

const SHELL: &str = "tool: {kind: shell, command: ls}";

#[test]
fn pbk_04_pbk_09_one_token_takes_the_first_arc_that_matches() {
    let text = playbook(&format!(
        "- {{step: a, {SHELL}, next: [{{step: b, when: '{{{{ event.result.n > 5 }}}}'}}, {{step: c, when: '{{{{ event.result.n > 1 }}}}'}}, d]}}\n- {{step: b, {SHELL}}}\n- {{step: c, {SHELL}}}\n- {{step: d, {SHELL}}}"
    ));
    for (n, expected) in [(9, "b Running"), (3, "c Running"), (0, "d Running")] {
        let (mut run, trace) = Run::start(&text, json!({}));
        assert_eq!(trace, "a Running");
        assert_eq!(run.done("a", json!({ "n": n })), expected);
    }
}

#[test]
fn pbk_07_a_failure_is_routed_by_its_older_event_name() {
    let text = playbook(&format!(
        "- {{step: a, {SHELL}, next: [{{step: b, when: \"{{{{ event.name == 'call.error' }}}}\"}}, {{step: c, when: \"{{{{ event.name == 'call.done' }}}}\"}}]}}\n- {{step: b, {SHELL}}}\n- {{step: c, {SHELL}}}"
    ));
    let (mut run, _) = Run::start(&text, json!({}));
    assert_eq!(run.fail("a"), "b Running");
    assert_eq!(run.done("b", json!({})), "Ended(Completed)", "the failure was handled");
}

#[test]
fn pbk_10_pbk_11_pbk_20_a_noop_fans_out_with_arguments_without_a_worker() {
    let text = playbook(&format!(
        "- step: a\n  tool: {{kind: noop}}\n  set_ctx: {{n: '{{{{ workload.n + 1 }}}}'}}\n  next: {{spec: {{mode: inclusive}}, arcs: [{{step: b, args: {{k: '{{{{ ctx.n }}}}'}}}}, {{step: b, when: '{{{{ ctx.n == 4 }}}}'}}]}}\n- {{step: b, {SHELL}}}"
    ));
    let (run, trace) = Run::start(&text, json!({ "n": 3 }));
    assert_eq!(trace, "b b Running");
    let args: Vec<Option<Value>> =
        run.state.runs.values().map(|run| run.args.as_ref().map(|args| (**args).clone())).collect();
    assert!(args.contains(&Some(json!({ "k": 4 }))), "{args:?}");
}

#[test]
fn pbk_23_a_loop_keeps_its_cap_and_routes_once() {
    let text = playbook(&format!(
        "- {{step: a, {SHELL}, loop: {{in: '{{{{ workload.xs }}}}', iterator: x, spec: {{mode: parallel, max_in_flight: 2}}}}, next: {{step: b, when: \"{{{{ event.name == 'loop.done' }}}}\"}}}}\n- {{step: b, {SHELL}}}"
    ));
    let (mut run, trace) = Run::start(&text, json!({ "xs": [1, 2, 3] }));
    assert_eq!(trace, "a a Running");
    assert_eq!(run.done("a", json!({})), "a Running");
    assert_eq!(run.done("a", json!({})), "Running");
    assert_eq!(run.done("a", json!({})), "b Running");
    assert_eq!(run.done("b", json!({})), "Ended(Completed)");
}

#[test]
fn pbk_06_a_gate_waits_for_the_context() {
    let text = playbook(&format!(
        "- step: a\n  {SHELL}\n  spec: {{policy: {{admit: {{rules: [{{when: '{{{{ ctx.ok }}}}', then: {{allow: true}}}}]}}}}}}"
    ));
    let (mut run, trace) = Run::start(&text, json!({}));
    assert_eq!(trace, "Paused");
    let patch = Patch::from([("ok".to_owned(), Arc::new(json!(true)))]);
    assert_eq!(run.send(&Input::Patch { patch, by: "me".into() }), "a Running");
}

#[test]
fn pbk_17_the_final_step_runs_after_everything() {
    let text = format!(
        "metadata: {{name: t}}\nexecutor: {{spec: {{final_step: z, failure: partial}}}}\nworkflow:\n- {{step: a, {SHELL}}}\n- {{step: z, {SHELL}}}"
    );
    let (mut run, _) = Run::start(&text, json!({}));
    assert_eq!(run.done("a", json!({})), "z Finalizing");
    assert_eq!(run.done("z", json!({})), "Ended(Completed)");
}

/// Work for a worker has no information about routing, and a repeated report is ignored.
#[test]
fn pbk_22_the_worker_reports_outcomes_and_routing_is_decided_elsewhere() {
    let text = playbook(&format!(
        "- {{step: a, {SHELL}, next: {{spec: {{mode: inclusive}}, arcs: [{{step: onward, when: '{{{{ event.result.ok }}}}'}}, {{step: also}}]}}}}\n- {{step: onward, {SHELL}}}\n- {{step: also, {SHELL}}}"
    ));
    let (mut run, _) = Run::start(&text, json!({}));
    let (id, fence) = run.offered("a").expect("the step is offered");
    let Work::Task { spec } = &run.net.step(StepId(0)).work else { panic!("the step is work") };
    assert!(!spec.to_string().contains("onward") && !spec.to_string().contains("also"), "{spec}");
    let report = |ok: bool| {
        let result = WorkResult::Done { output: Arc::new(json!({ "ok": ok })) };
        Input::Report(Box::new(Report {
            run: id,
            fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        }))
    };
    assert_eq!(run.send(&report(true)), "onward also Running");
    let journal = run.journal.len();
    assert_eq!(run.send(&report(true)), "Running", "the same report again is accepted");
    assert_eq!(run.journal.len(), journal, "and changes nothing");
    let mut values = Values::default();
    let refused = loop {
        let given = Given { now: Millis(0), random: 0, values: &values };
        match decide(&run.state, &run.net, &report(false), &given) {
            Err(Rejected::Needs(needs)) => values.load(&run.journal, &needs),
            other => break other.map(|decision| decision.records),
        }
    };
    assert!(matches!(refused, Err(Rejected::OtherAnswer { .. })), "{refused:?}");
    assert_eq!(run.state.runs.len(), 2, "each arc sent one token");
}

#[test]
fn the_examples_can_be_started() {
    for (text, expected) in [
        (include_str!("../../../../examples/hello.yaml"), "greet Running"),
        (include_str!("../../../../examples/fanout.yaml"), "disk files kernel Running"),
        (include_str!("../../../../examples/loop.yaml"), "measure measure Running"),
        (include_str!("../../../../examples/approval.yaml"), "prepare Running"),
    ] {
        let compiled = windlass_dialects::compile(text);
        assert!(compiled.diagnostics.is_empty(), "{:?}", compiled.diagnostics);
        assert_eq!(Run::start(text, compiled.workload).1, expected);
    }
}
