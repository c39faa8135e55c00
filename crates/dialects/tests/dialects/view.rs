//! Playbooks driven through the kernel by hand, and how they are view.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_dialects::{Dialect, compile};
use windlass_kernel::*;
use windlass_views::{
    ArtifactCopy, Facts, History, LeaseInfo, Leases, Metadata, Sources, ValuePlace, Workflow,
    execution_status, progress, response, status,
};

struct Driven {
    net: Net,
    state: Execution<'static>,
    journal: Vec<Record>,
    now: i64,
}

impl Driven {
    fn start(steps: &str, inputs: Value) -> Driven {
        let text = format!("metadata: {{name: shown}}\nworkflow:\n{steps}");
        let net = compile(&text).net.expect("the playbook compiles");
        let mut driven = Driven { net, state: Execution::default(), journal: Vec::new(), now: 0 };
        driven.send(&Input::Create(Box::new(Create::new(ExecutionId(7), inputs))));
        driven
    }

    /// Every input is a second later than the one before.
    fn send(&mut self, input: &Input) {
        self.now += 1_000;
        let mut values = Values::default();
        let decision = loop {
            let given = Given { now: Millis(self.now), random: 0, values: &values };
            match decide(&self.state, &self.net, input, &given) {
                Err(Rejected::Needs(needs)) => values.load(&self.journal, &needs),
                other => break other.expect("the input is accepted"),
            }
        };
        for record in decision.records {
            evolve(&mut self.state, &self.net, &record).expect("what was decided can be folded");
            self.journal.push(record);
        }
    }

    fn offered(&self) -> (RunId, Fence) {
        let mut open = self.state.runs.iter().filter_map(|(run, live)| match live.state {
            RunState::Offered { fence } => Some((*run, fence)),
            _ => None,
        });
        open.next().expect("something is offered")
    }

    /// The oldest open offer is answered; its worker had it for the last 400 ms.
    fn report(self, result: WorkResult) -> Driven {
        self.report_counted(result, None)
    }

    fn report_counted(mut self, result: WorkResult, metadata: Option<Value>) -> Driven {
        let (run, fence) = self.offered();
        let began = Millis(self.now + 600);
        let times = Some(Times { claimed_at: began, started_at: began });
        self.send(&Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times,
            metadata: metadata.map(Arc::new),
            cursor: None,
        })));
        self
    }

    fn done(self, output: Value) -> Driven {
        self.report(WorkResult::Done { output: Arc::new(output) })
    }

    fn failed(self, message: &str) -> Driven {
        self.report(WorkResult::Failed(Failure::of_code("SERVICE_UNAVAILABLE", message)))
    }

    fn view_with(&self, leases: Leases) -> Value {
        let workflow = Workflow {
            id: 5,
            name: "shown".into(),
            version: 2,
            dialect: Dialect::of_name("playbook").map(Dialect::view),
            code: Vec::new(),
            inputs_schema: None,
        };
        let metadata =
            Metadata { triggered_by: "owner".into(), trigger_type: "manual".into(), ..Metadata::default() };
        let (execution, workflow) = (ExecutionId(7), Some(workflow));
        let facts = Facts {
            execution,
            workflow,
            metadata,
            debug: false,
            leases,
            quarantined: None,
            children: Vec::new(),
        };
        let history = History::of(&self.net, &self.journal).expect("the journal is whole");
        let read = |place: &ValuePlace| {
            place
                .address()
                .value_in(&self.journal[usize::try_from(place.version).expect("a small number")].event)
        };
        json!(response(
            &facts,
            &self.net,
            &history,
            Sources { open: &|_| None, read: &read, copy: &|_| ArtifactCopy::Ready, log: &|_| None }
        ))
    }

    fn view(&self) -> Value {
        self.view_with(Leases::new())
    }
}

const SHELL: &str = "tool: {kind: shell, command: ls}";

fn two_steps() -> String {
    format!("- {{step: a, {SHELL}, next: b}}\n- {{step: b, {SHELL}}}\n")
}

/// nodeId, firing, status of every entry.
fn entries(view: &Value) -> Vec<String> {
    let entries = view["nodeExecutions"].as_array().expect("a list");
    entries
        .iter()
        .map(|e| format!("{} {} {}", e["nodeId"], e["firing"], e["status"]).replace('"', ""))
        .collect()
}

#[test]
fn wfl_23_a_node_shows_its_metrics_and_its_real_duration() {
    let counted = || Some(json!({ "duration": 1, "tokensUsed": 120, "apiCalls": 2 }));
    let done = WorkResult::Done { output: Arc::new(json!({})) };
    let failed = WorkResult::Failed(Failure::of_code("VALIDATION_ERROR", "no"));
    let driven = Driven::start(&two_steps(), json!({}));
    let view = driven.report_counted(done, counted()).report_counted(failed, counted()).view();
    for entry in view["nodeExecutions"].as_array().unwrap() {
        assert_eq!(entry["metadata"], json!({ "duration": 400, "tokensUsed": 120, "apiCalls": 2 }));
    }
}

#[test]
fn a_completed_execution_has_every_field() {
    let driven = Driven::start(&two_steps(), json!({ "n": 1 })).done(json!({ "x": 1 })).done(json!("end"));
    let view = driven.view();
    let expected = json!({
        "executionId": "exec_00000000000000000000000000000007",
        "workflowId": "wf_00000000000000000000000000000005",
        "workflowName": "shown",
        "workflowVersion": 2,
        "status": "completed",
        "createdAt": "1970-01-01T00:00:01.000Z",
        "startedAt": "1970-01-01T00:00:01.000Z",
        "completedAt": "1970-01-01T00:00:03.000Z",
        "duration": 2000,
        "progress": { "percentage": 100, "completedNodes": 2, "totalNodes": 2 },
        "inputs": { "n": 1 },
        "outputs": { "b": "end" },
        "nodeExecutions": [
            {
                "nodeId": "a", "nodeName": "a", "nodeType": "shell", "firing": 1, "status": "completed",
                "startedAt": "1970-01-01T00:00:01.600Z", "completedAt": "1970-01-01T00:00:02.000Z", "duration": 400,
                "retryCount": 0, "output": { "x": 1 },
            },
            {
                "nodeId": "b", "nodeName": "b", "nodeType": "shell", "firing": 1, "status": "completed",
                "startedAt": "1970-01-01T00:00:02.600Z", "completedAt": "1970-01-01T00:00:03.000Z", "duration": 400,
                "retryCount": 0, "output": "end",
            },
        ],
        "errors": [],
        "metadata": { "triggeredBy": "owner", "triggerType": "manual", "tags": [] },
        "dialect": "playbook",
        "view": {
            "status": "success",
            "ctx": {},
            "steps": [
                { "step": "a", "firing": 1, "status": "done", "event": "step.done" },
                { "step": "b", "firing": 1, "status": "done", "event": "step.done" },
            ],
            "gates": [],
            "branches": { "well": 1, "failed": 0 },
        },
    });
    assert_eq!(view, expected);
}

#[test]
fn an_offer_is_pending_until_a_worker_has_it() {
    let driven = Driven::start(&two_steps(), json!({}));
    assert_eq!(entries(&driven.view()), ["a 1 pending"]);
    let (run, _) = driven.offered();
    let view = driven.view_with(Leases::from([(run, LeaseInfo { since: Millis(1_250), progress: None })]));
    assert_eq!(entries(&view), ["a 1 running"]);
    assert_eq!(view["nodeExecutions"][0]["startedAt"], "1970-01-01T00:00:01.250Z");
    let progress = json!({ "percentage": 0, "completedNodes": 0, "totalNodes": 2, "currentNode": "a" });
    assert_eq!(
        (&view["status"], &view["progress"], &view["outputs"]),
        (&json!("running"), &progress, &Value::Null)
    );
}

#[test]
fn a_failure_is_with_its_firing_and_among_the_errors_once() {
    let view = Driven::start(&two_steps(), json!({})).failed("busy").view();
    // An unguarded arc is also taken after a failure, so `b` is offered.
    assert_eq!(entries(&view), ["a 1 failed", "b 1 pending"]);
    let error = json!({
        "code": "SERVICE_UNAVAILABLE", "class": "transient_5xx", "kind": "transient_5xx", "message": "busy",
        "nodeId": "a", "nodeName": "a", "timestamp": "1970-01-01T00:00:02.000Z", "retryable": true, "attempt": 1,
        "details": { "category": "transient" },
    });
    assert_eq!(view["nodeExecutions"][0]["error"], error);
    let ended = Driven::start(&two_steps(), json!({})).failed("busy").done(json!(1)).view();
    assert_eq!((&ended["status"], &ended["errors"]), (&json!("failed"), &json!([error])));
}

#[test]
fn a_handled_failure_is_no_error_of_the_execution() {
    let steps = format!(
        "- {{step: a, {SHELL}, next: [{{step: b, when: \"{{{{ event.name == 'step.failed' }}}}\"}}]}}\n- {{step: b, {SHELL}}}\n"
    );
    let view = Driven::start(&steps, json!({})).failed("busy").done(json!(1)).view();
    assert_eq!((&view["status"], &view["errors"]), (&json!("completed"), &json!([])));
    assert_eq!(view["view"]["steps"][0]["handled"], true);
}

#[test]
fn a_step_that_fires_twice_has_two_entries() {
    let steps = format!(
        "- step: a\n  next: {{spec: {{mode: inclusive}}, arcs: [{{step: b, args: {{k: 1}}}}, {{step: b}}]}}\n- {{step: b, {SHELL}}}\n"
    );
    let view = Driven::start(&steps, json!({})).done(json!(1)).done(json!(2)).view();
    assert_eq!(entries(&view), ["a 1 completed", "b 1 completed", "b 2 completed"]);
    assert_eq!(view["nodeExecutions"][0]["nodeType"], "noop");
    assert_eq!(view["view"]["steps"][1]["args"], json!({ "k": 1 }));
}

#[test]
fn of_very_many_firings_the_newest_are_listed_and_the_others_counted() {
    let steps = format!(
        "- {{step: a, {SHELL}, next: [{{step: a, when: \"{{{{ event.name == 'step.failed' }}}}\"}}]}}\n"
    );
    let message = "x".repeat(100_000);
    let failing = |driven: Driven, _| driven.failed(&message);
    let view = (0..120).fold(Driven::start(&steps, json!({})), failing).done(json!(1)).view();
    let entries = entries(&view);
    assert_eq!(entries.last().unwrap(), "a 121 completed");
    assert!((50..100).contains(&entries.len()), "{}", entries.len());
    assert_eq!(view["shortened"]["nodeExecutions"], 121 - entries.len());
    assert_eq!(view["view"]["steps"].as_array().unwrap().len(), entries.len());
    assert_eq!((&view["progress"]["completedNodes"], &view["outputs"]), (&json!(1), &json!({ "a": 1 })));
}

#[test]
fn iterations_are_listed_inside_the_one_firing_of_their_loop() {
    let steps = format!("- {{step: a, {SHELL}, loop: {{in: '{{{{ workload.xs }}}}', iterator: x}}}}\n");
    let driven = Driven::start(&steps, json!({ "xs": ["p", "q"] })).done(json!(1));
    let view = driven.view();
    assert_eq!(entries(&view), ["a 1 running"]);
    let view = driven.failed("busy").view();
    assert_eq!(entries(&view), ["a 1 failed"]);
    assert_eq!(view["view"]["steps"][0]["event"], "loop.done", "as its arcs see it");
    let iterations = view["nodeExecutions"][0]["iterations"].as_array().expect("iterations");
    let brief: Vec<_> = iterations.iter().map(|i| (&i["index"], &i["status"], &i["output"])).collect();
    let (zero, one) = (json!(0), json!(1));
    assert_eq!(brief, [(&zero, &json!("completed"), &one), (&one, &json!("failed"), &Value::Null)]);
    assert_eq!(iterations[1]["error"]["message"], "busy");
}

#[test]
fn a_gate_is_listed_with_the_keys_that_may_open_it() {
    let steps = "- step: g\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.go and ctx.really }}', then: {allow: true}}]}}}\n";
    let mut driven = Driven::start(steps, json!({}));
    let view = driven.view();
    assert_eq!((&view["status"], &view["progress"]["currentNode"]), (&json!("paused"), &json!("g")));
    let gate = json!({ "step": "g", "reads": ["go", "really"], "since": "1970-01-01T00:00:01.000Z" });
    assert_eq!((&view["view"]["status"], &view["view"]["gates"]), (&json!("paused"), &json!([gate])));
    assert_eq!(view["waitingFor"][0]["when"], "ctx.go and ctx.really");
    let patch = Patch::from([("go".into(), json!(true).into()), ("really".into(), json!(1).into())]);
    driven.send(&Input::Patch { patch, by: "me".into() });
    let view = driven.view();
    assert_eq!((&view["status"], &view["view"]["gates"]), (&json!("completed"), &json!([])));
    assert_eq!(view["view"]["ctx"], json!({ "go": true, "really": 1 }));
}

#[test]
fn what_ran_when_it_was_cancelled_has_failed_so() {
    let mut driven = Driven::start(&two_steps(), json!({}));
    let cancel = Cancel { by: "me".into(), reason: "enough".into(), ..Cancel::default() };
    driven.send(&Input::Cancel(cancel));
    let view = driven.view();
    assert_eq!((&view["status"], entries(&view)), (&json!("cancelled"), vec!["a 1 failed".to_owned()]));
    assert_eq!(view["nodeExecutions"][0]["error"]["code"], "CANCELLED");
    let error = json!({
        "code": "CANCELLED", "class": "policy", "kind": "policy", "message": "enough",
        "timestamp": "1970-01-01T00:00:02.000Z", "retryable": false,
        "details": { "by": "me", "category": "system" },
    });
    assert_eq!(view["errors"], json!([error]));
}

#[test]
fn a_journal_of_another_net_is_refused() {
    let driven = Driven::start(&two_steps(), json!({}));
    let other = Driven::start(&format!("- {{step: z, {SHELL}}}\n"), json!({}));
    assert!(History::of(&other.net, &driven.journal).is_err());
}

#[test]
fn wfl_33_progress_does_not_fall_when_a_step_fires_again() {
    let steps = format!(
        "- {{step: a, {SHELL}, next: [{{step: b, when: '{{{{ workload.again }}}}'}}]}}\n- {{step: b, {SHELL}, next: a}}\n"
    );
    let mut driven = Driven::start(&steps, json!({ "again": true }));
    let mut before = 0;
    for _ in 0..6 {
        driven = driven.done(json!(1));
        let progress = &driven.view()["progress"];
        let percentage = progress["percentage"].as_u64().expect("a number");
        assert!(percentage >= before && percentage < 100, "{progress}");
        before = percentage;
    }
    assert_eq!(driven.view()["progress"]["completedNodes"], 2);
}

#[test]
fn progress_still_counts_firings_that_were_removed() {
    let driven = Driven::start(&two_steps(), json!({})).done(json!(1)).done(json!(2));
    let mut history = History::default();
    for record in &driven.journal {
        history.fold(&driven.net, record).expect("the journal is whole");
        let ended: Vec<RunId> =
            history.whole().filter(|firing| firing.end.is_some()).map(|firing| firing.run).collect();
        ended.into_iter().for_each(|run| history.forget(run));
    }
    assert_eq!(history.whole().count(), 0);
    let progress = progress(&driven.net, &history, &Leases::new());
    assert_eq!(json!(progress), json!({ "percentage": 100, "completedNodes": 2, "totalNodes": 2 }));
}

#[test]
fn a_status_is_the_same_word_everywhere() {
    let ended = [Outcome::Completed, Outcome::Partial, Outcome::Failed, Outcome::Cancelled].map(Phase::Ended);
    for phase in [Phase::Queued, Phase::Starting, Phase::Running, Phase::Paused].into_iter().chain(ended) {
        assert_eq!(json!(execution_status(phase)), status(phase));
    }
}
