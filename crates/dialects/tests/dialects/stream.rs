//! Playbooks driven through the kernel by hand, and the messages that a subscriber gets.

use serde_json::{Value, json};
use std::sync::Arc;
use windlass_dialects::compile;
use windlass_kernel::*;
use windlass_retry::{carry_over, plan_retry};
use windlass_views::{LeaseInfo, Leases, Message, MessageBuilder};

const SHELL: &str = "tool: {kind: shell, command: ls}";

/// A row of the journal, with its position among all rows of the store.
struct Row {
    position: i64,
    records: Vec<Record>,
}

struct Driven {
    net: Arc<Net>,
    state: Execution<'static>,
    rows: Vec<Row>,
    now: i64,
}

impl Driven {
    fn start(steps: &str, inputs: Value) -> Driven {
        Driven::with(&format!("metadata: {{name: shown}}\nworkflow:\n{steps}"), inputs)
    }

    fn with(text: &str, inputs: Value) -> Driven {
        let net = Arc::new(compile(text).net.expect("the playbook compiles"));
        let mut driven = Driven { net, state: Execution::default(), rows: Vec::new(), now: 0 };
        driven.send(&Input::Create(Box::new(Create::new(ExecutionId(7), inputs))));
        driven
    }

    /// Every input is a row of its own, a second later than the one before.
    fn send(&mut self, input: &Input) {
        self.now += 1_000;
        let journal: Vec<Record> = self.rows.iter().flat_map(|row| row.records.clone()).collect();
        let mut values = Values::default();
        let decision = loop {
            let given = Given { now: Millis(self.now), random: 0, values: &values };
            match decide(&self.state, &self.net, input, &given) {
                Err(Rejected::Needs(needs)) => values.load(&journal, &needs),
                other => break other.expect("the input is accepted"),
            }
        };
        for record in &decision.records {
            evolve(&mut self.state, &self.net, record).expect("what was decided can be folded");
        }
        let position = self.rows.len() as i64 + 1;
        self.rows.push(Row { position, records: decision.records });
    }

    fn offered(&self) -> (RunId, Fence) {
        let mut open = self.state.runs.iter().filter_map(|(run, live)| match live.state {
            RunState::Offered { fence } => Some((*run, fence)),
            _ => None,
        });
        open.next().expect("something is offered")
    }

    /// The oldest open offer is answered; its worker had it for the last 400 ms.
    fn report(mut self, result: WorkResult) -> Driven {
        let (run, fence) = self.offered();
        let began = Millis(self.now + 600);
        let times = Some(Times { claimed_at: began, started_at: began });
        let report = Report { run, fence, result, patch: Patch::new(), times, metadata: None, cursor: None };
        self.send(&Input::Report(Box::new(report)));
        self
    }

    fn done(self, output: Value) -> Driven {
        self.report(WorkResult::Done { output: Arc::new(output) })
    }

    fn failed(self, code: &str) -> Driven {
        self.report(WorkResult::Failed(Failure::of_code(code, "no luck")))
    }

    fn cancelled(mut self) -> Driven {
        self.send(&Input::Cancel(Cancel { by: "me".into(), reason: "enough".into(), ..Cancel::default() }));
        self
    }

    /// The messages of a subscriber from the beginning; a later one gets the same.
    fn messages(&self) -> Vec<Message> {
        build(&mut MessageBuilder::new(self.net.clone(), [].into()), &self.rows)
    }

    fn streamed(&self) -> Vec<String> {
        self.messages().iter().map(brief).collect()
    }
}

fn build(builder: &mut MessageBuilder, rows: &[Row]) -> Vec<Message> {
    rows.iter().flat_map(|row| builder.row(row.position, &row.records).expect("whole")).collect()
}

/// Type, node and status of a message.
fn brief(message: &Message) -> String {
    let messages = message.on_stream(ExecutionId(7));
    let (data, kind) = (&messages["data"], messages["type"].as_str().expect("a type"));
    let about = [&data["nodeId"], &data["status"], &data["progress"]["percentage"]];
    let about = about.iter().filter(|about| !about.is_null());
    let about: Vec<String> = about.map(|about| about.to_string().replace('"', "")).collect();
    format!("{kind} {}", about.join(" ")).trim_end().to_owned()
}

fn two_steps() -> String {
    format!("- {{step: a, {SHELL}, next: b}}\n- {{step: b, {SHELL}}}\n")
}

#[test]
fn wfl_01_wfl_19_wfl_33_a_stream_covers_an_execution_from_queued_to_its_end() {
    let driven = Driven::start(&two_steps(), json!({})).done(json!({ "x": 1 })).done(json!("end"));
    let expected = [
        "status_update queued 0",
        "status_update initializing 0",
        "status_update running 0",
        "node_started a",
        "node_completed a",
        "status_update running 50",
        "node_started b",
        "node_completed b",
        "status_update completed 100",
        "execution_completed completed",
    ];
    assert_eq!(driven.streamed(), expected);
}

#[test]
fn wfl_19_messages_have_the_fields_of_the_document() {
    let driven = Driven::start(&two_steps(), json!({})).done(json!({ "x": 1 })).done(json!("end"));
    let messages: Vec<Value> =
        driven.messages().iter().map(|message| message.on_stream(ExecutionId(7))).collect();
    let id = "exec_00000000000000000000000000000007";
    let started = json!({
        "type": "node_started", "timestamp": "1970-01-01T00:00:01.600Z", "sequence": messages[3]["sequence"],
        "data": { "executionId": id, "nodeId": "a", "nodeName": "a", "nodeType": "shell" },
    });
    let completed = json!({
        "type": "node_completed", "timestamp": "1970-01-01T00:00:02.000Z", "sequence": messages[4]["sequence"],
        "data": { "executionId": id, "nodeId": "a", "nodeName": "a", "duration": 400, "output": { "x": 1 } },
    });
    let status = json!({
        "type": "status_update", "timestamp": "1970-01-01T00:00:02.000Z", "sequence": messages[5]["sequence"],
        "data": { "executionId": id, "status": "running",
            "progress": { "percentage": 50, "completedNodes": 1, "totalNodes": 2, "currentNode": "b" } },
    });
    let ended = json!({
        "type": "execution_completed", "timestamp": "1970-01-01T00:00:03.000Z", "sequence": messages[9]["sequence"],
        "data": { "executionId": id, "status": "completed", "duration": 2000, "outputs": null },
    });
    assert_eq!(
        [&messages[3], &messages[4], &messages[5], &messages[9]],
        [&started, &completed, &status, &ended]
    );
}

/// Sequences are distinct and rise but for starts, and a subscriber that reconnects after any of them gets all later ones.
#[track_caller]
fn nothing_is_missed(all: &[Message]) {
    let mut numbers: Vec<u64> = all.iter().map(|message| message.sequence).collect();
    numbers.sort_unstable();
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
    let rising: Vec<u64> =
        all.iter().filter(|m| !brief(m).contains("_started")).map(|m| m.sequence).collect();
    assert!(rising.is_sorted_by(|left, right| left < right), "{rising:?}");
    for (index, last) in all.iter().enumerate() {
        let again: Vec<&Message> = all.iter().filter(|message| message.newer_than >= last.sequence).collect();
        let missed = all[index + 1..].iter().find(|message| !again.contains(message));
        assert_eq!(missed, None, "after {}", brief(last));
    }
}

#[test]
fn wfl_20_sequences_rise_but_for_starts_and_a_reconnecting_client_misses_nothing() {
    nothing_is_missed(&Driven::start(&two_steps(), json!({})).done(json!(1)).done(json!(2)).messages());
}

/// A playbook whose step `turn` fires so often before `last` is offered.
fn turning(times: u32) -> Driven {
    let steps = format!(
        "- step: turn\n  tool: {{kind: noop}}\n  next: {{arcs: [{{step: turn, \
         when: '{{{{ (args.n | default(1)) < {times} }}}}', args: {{n: '{{{{ (args.n | default(1)) + 1 }}}}'}}}}, \
         {{step: last}}]}}\n- {{step: last, {SHELL}}}\n"
    );
    let mut driven = Driven::start(&steps, json!({}));
    let goes_on = |driven: &Driven| {
        let last = driven.rows.last().and_then(|row| row.records.last());
        last.is_some_and(|record| matches!(record.event, Event::Continued))
    };
    while goes_on(&driven) {
        driven.send(&Input::Continue);
    }
    driven
}

#[test]
fn wfl_20_a_retry_is_numbered_without_what_it_took_over_however_much_that_is() {
    let failed = turning(22_500).failed("VALIDATION_ERROR");
    let journal: Vec<Record> = failed.rows.iter().flat_map(|row| row.records.clone()).collect();
    let taken_over = failed.messages().len();
    assert!(taken_over > 1 << 15, "{taken_over}");
    let (now, values) = (Millis(failed.now), Values::default());
    let given = Given { now, random: 0, values: &values };
    let plan = plan_retry(&failed.net, &journal, &failed.net, None).expect("it can be retried");
    let new = NewExecution { id: ExecutionId(8), ..NewExecution::default() };
    let decision = carry_over(&plan, &failed.net, &new, &given).expect("it begins");
    let records: Vec<Record> = plan.into_records().into_iter().chain(decision.records).collect();
    let state = replay(&failed.net, &records).expect("it is whole");
    let row = Row { position: 1, records };
    let again = Driven { net: failed.net, state, rows: vec![row], now: failed.now };
    let leases = Leases::from([(again.offered().0, LeaseInfo { since: Millis(again.now), progress: None })]);
    let mut builder = MessageBuilder::new(again.net.clone(), [].into());
    build(&mut builder, &again.rows);
    let begun = builder.leased(&leases);
    let again = again.done(json!(1));
    let all = again.messages();
    nothing_is_missed(&all);
    let started = all.iter().find(|message| brief(message) == "node_started last");
    assert_eq!(started.map(|message| message.sequence), begun.first().map(|message| message.sequence));
    let last: Vec<String> = all.iter().rev().map(brief).take(4).collect();
    let expected = [
        "execution_completed completed",
        "status_update completed 100",
        "node_completed last",
        "node_started last",
    ];
    assert_eq!(last, expected);
    assert!(all.iter().all(|message| message.sequence < 3 << 16), "{:?}", again.streamed());
}

/// The engine relies on this bound when it fills a commit.
#[test]
fn a_record_takes_two_numbers_at_most() {
    let driven = turning(3_000).done(json!(1));
    let mut builder = MessageBuilder::new(driven.net.clone(), [].into());
    for row in &driven.rows {
        let messages = builder.row(row.position, &row.records).expect("whole");
        // Starts are numbered by the row that gave them out.
        let own = |number: u64| number.checked_sub(row.position.cast_unsigned() << 16);
        let highest = messages.iter().filter_map(|message| own(message.sequence)).max().unwrap_or_default();
        let statuses = messages.iter().filter(|message| brief(message).contains("status_update")).count();
        let bound = 2 * row.records.len() + statuses + 1;
        assert!(highest <= bound as u64, "{highest} of {} records", row.records.len());
        assert!(row.records.len() <= 5_000, "a decision of {} records", row.records.len());
    }
}

#[test]
fn a_start_is_streamed_once_when_a_worker_has_the_work() {
    let driven = Driven::start(&two_steps(), json!({}));
    let mut builder = MessageBuilder::new(driven.net.clone(), [].into());
    let messages = build(&mut builder, &driven.rows);
    assert_eq!(messages.last().map(brief), Some("status_update running 0".to_owned()));
    let leases = Leases::from([(driven.offered().0, LeaseInfo { since: Millis(1_250), progress: None })]);
    let begun = builder.leased(&leases);
    assert_eq!(begun.iter().map(brief).collect::<Vec<_>>(), ["node_started a"]);
    assert_eq!(begun[0].at, Millis(1_250));
    assert_eq!(builder.leased(&leases), []);
    let done = driven.done(json!(1));
    let after = build(&mut builder, &done.rows[1..]);
    let briefly: Vec<String> = after.iter().map(brief).collect();
    assert_eq!(briefly, ["node_completed a", "status_update running 50"]);
    // A late subscriber gets the same messages, under the same numbers.
    let whole = done.messages();
    let numbers =
        |messages: &[Message]| -> Vec<u64> { messages.iter().map(|message| message.sequence).collect() };
    assert_eq!(numbers(&whole[whole.len() - 2..]), numbers(&after));
    let late = whole.into_iter().find(|message| brief(message) == "node_started a");
    assert_eq!(late.map(|message| message.sequence), Some(begun[0].sequence));
}

#[test]
fn wfl_19_every_failed_attempt_is_streamed_with_its_number() {
    let driven = Driven::start(&format!("- {{step: a, {SHELL}}}\n"), json!({}));
    let mut net = driven.net.spec().clone();
    net.steps[0].retry = net::Retry { attempts_max: 3, ..net::Retry::default() };
    let net = Arc::new(Net::new(net).expect("a good net"));
    let mut driven = Driven { net, state: Execution::default(), rows: Vec::new(), now: 0 };
    driven.send(&Input::Create(Box::new(Create::new(ExecutionId(7), json!({})))));
    let mut driven = driven.failed("SERVICE_UNAVAILABLE");
    let (run, _) = driven.state.runs.iter().next().map(|(run, live)| (*run, live.clone())).expect("it lives");
    driven.now += 10_000;
    driven.send(&Input::TimerDue(Timer::Backoff { run }));
    let driven = driven.failed("VALIDATION_ERROR");
    let messages = driven.messages();
    let errors: Vec<Value> = messages
        .iter()
        .filter(|message| brief(message).starts_with("node_failed"))
        .map(|message| message.on_stream(ExecutionId(7))["data"]["error"].clone())
        .collect();
    let first = json!({ "code": "SERVICE_UNAVAILABLE", "class": "transient_5xx", "kind": "transient_5xx",
        "message": "no luck", "nodeId": "a", "nodeName": "a", "timestamp": "1970-01-01T00:00:02.000Z",
        "retryable": true, "attempt": 1, "details": { "category": "transient" }, "retryCount": 0, "maxRetries": 2 });
    let second = json!({ "code": "VALIDATION_ERROR", "class": "validation", "kind": "validation",
        "message": "no luck", "nodeId": "a", "nodeName": "a", "timestamp": "1970-01-01T00:00:14.000Z",
        "retryable": false, "attempt": 2, "details": { "category": "validation" }, "retryCount": 1, "maxRetries": 2 });
    assert_eq!(errors, [first, second]);
    let starts = messages.iter().filter(|message| brief(message) == "node_started a").count();
    assert_eq!(starts, 2, "{:?}", driven.streamed());
}

#[test]
fn wfl_36_failed_and_cancelled_end_with_execution_completed_and_what_was_cancelled_has_not_failed() {
    let failed =
        Driven::start(&format!("- {{step: a, {SHELL}}}\n"), json!({})).failed("VALIDATION_ERROR").streamed();
    assert_eq!(
        failed[failed.len() - 3..],
        ["node_failed a", "status_update failed 0", "execution_completed failed"]
    );
    let cancelled = Driven::start(&two_steps(), json!({})).cancelled().streamed();
    assert_eq!(cancelled[3..], ["status_update cancelled 0", "execution_completed cancelled"]);
}

#[test]
fn wfl_36_a_partial_success_ends_so() {
    let text = format!(
        "metadata: {{name: shown}}\nexecutor: {{spec: {{failure: partial}}}}\nworkflow:\n\
         - step: s\n  next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}]}}\n\
         - {{step: a, {SHELL}}}\n- {{step: b, {SHELL}}}\n"
    );
    let messages = Driven::with(&text, json!({})).done(json!(1)).failed("VALIDATION_ERROR").streamed();
    assert_eq!(messages.last().map(String::as_str), Some("execution_completed partial_success"));
}

#[test]
fn wfl_01_a_pause_and_its_end_are_streamed() {
    let steps =
        "- step: g\n  spec: {policy: {admit: {rules: [{when: '{{ ctx.go }}', then: {allow: true}}]}}}\n";
    let mut driven = Driven::start(steps, json!({}));
    driven.send(&Input::Patch { patch: Patch::from([("go".into(), json!(true).into())]), by: "me".into() });
    let statuses: Vec<String> =
        driven.streamed().into_iter().filter(|message| message.contains("status_update")).collect();
    let words: Vec<&str> = statuses.iter().filter_map(|status| status.split(' ').nth(1)).collect();
    assert_eq!(words, ["queued", "initializing", "running", "paused", "running", "completed"]);
}

#[test]
fn iterations_of_a_loop_are_streamed_by_the_loop_alone() {
    let steps = format!("- {{step: a, {SHELL}, loop: {{in: '{{{{ workload.xs }}}}', iterator: x}}}}\n");
    let driven = Driven::start(&steps, json!({ "xs": [1, 2] })).done(json!(1)).done(json!(2));
    let nodes: Vec<String> =
        driven.streamed().into_iter().filter(|message| message.starts_with("node")).collect();
    assert_eq!(nodes, ["node_started a", "node_completed a"]);
}

#[test]
fn log_lines_are_streamed_with_their_level() {
    let lines = r#"[{"at":1000,"stream":"out","text":"hello"},{"at":1001,"stream":"err","text":"oh"}]"#;
    let messages = MessageBuilder::log(3, "a", serde_json::from_str(lines).expect("lines"));
    let messages: Vec<Value> = messages.iter().map(|message| message.on_stream(ExecutionId(7))).collect();
    assert_eq!(
        messages[0],
        json!({
            "type": "log", "timestamp": "1970-01-01T00:00:01.000Z", "sequence": 3 * 65_536 + 1,
            "data": { "level": "info", "nodeId": "a", "message": "hello" },
        })
    );
    assert_eq!(
        (&messages[1]["data"]["level"], &messages[1]["sequence"]),
        (&json!("warn"), &json!(3 * 65_536 + 2))
    );
}

/// A subscriber that continues at any row, with any message seen, gets the same as one that reads from the first row.
#[test]
fn wfl_20_a_subscriber_that_continues_at_a_checkpoint_gets_the_same_messages() {
    let steps = format!(
        "- step: s\n  next: {{spec: {{mode: inclusive}}, arcs: [{{step: a}}, {{step: b}}]}}\n\
         - {{step: a, {SHELL}, loop: {{in: '{{{{ workload.xs }}}}', iterator: x}}, next: c}}\n\
         - {{step: b, {SHELL}}}\n- {{step: c, {SHELL}}}\n"
    );
    let driven = Driven::start(&steps, json!({ "xs": [1, 2] }));
    let leases =
        Leases::from([(driven.offered().0, LeaseInfo { since: Millis(driven.now + 100), progress: None })]);
    let driven = (1..=4).fold(driven, |driven, output| driven.done(json!(output)));
    let whole = driven.messages();
    for place in 1..driven.rows.len() {
        let mut left = MessageBuilder::new(driven.net.clone(), [].into());
        build(&mut left, &driven.rows[..place]);
        left.leased(&leases);
        for last in whole.iter().map(|message| message.sequence).filter(|seen| *seen > left.newest()) {
            let mut again = MessageBuilder::new(driven.net.clone(), [].into());
            build(&mut again, &driven.rows[..place]);
            let mut other = left.for_another();
            assert_eq!(other.leased(&leases), again.leased(&leases));
            let (mut expected, mut found) =
                (build(&mut again, &driven.rows[place..]), build(&mut other, &driven.rows[place..]));
            assert_eq!(found, expected, "at row {place}");
            expected.retain(|message| message.newer_than >= last);
            found.retain(|message| message.newer_than >= last);
            let missed = whole.iter().filter(|message| message.newer_than >= last);
            let missed = missed.filter(|message| !brief(message).contains("_started"));
            assert!(
                missed.into_iter().all(|message| found.contains(message)),
                "at row {place}, after {last}"
            );
        }
    }
}
