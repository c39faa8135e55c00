//! Workflows of nodes and edges, through the program.

use crate::rig::{Place, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread;

/// Nodes `[id, type, config]` and edges `"a -> b"`, `"a.handle -> b"`.
fn workflow(nodes: Value, edges: &[&str], settings: Value) -> String {
    let node = |node: &Value| json!({ "id": node[0], "type": node[1], "config": node[2] });
    let edge = |edge: &&str| {
        let (from, to) = edge.split_once(" -> ").expect("an arrow");
        let (from, handle) = from.split_once('.').map_or((from, None), |(from, handle)| (from, Some(handle)));
        json!({ "source": from, "target": to, "sourceHandle": handle })
    };
    let nodes: Vec<Value> = nodes.as_array().expect("nodes").iter().map(node).collect();
    let edges: Vec<Value> = edges.iter().map(edge).collect();
    json!({ "name": "tested", "nodes": nodes, "edges": edges, "settings": settings }).to_string()
}

fn place(nodes: Value, edges: &[&str]) -> Place {
    with(nodes, edges, json!({}))
}

/// Commands work in the folder of the test, not in the one that each node gets.
fn with(mut nodes: Value, edges: &[&str], settings: Value) -> Place {
    let place = Place::playing("workflow:\n- {step: unused}\n");
    for node in nodes.as_array_mut().expect("nodes").iter_mut().filter(|node| node[1] == "shell") {
        node[2]["cwd"] = json!(place.path(""));
    }
    place.write("flow.json", &workflow(nodes, edges, settings));
    place
}

#[track_caller]
fn run(place: &Place, args: &[&str], code: i32) -> Value {
    place.windlass(&[&["run", "flow.json", "--json"], args].concat()).expect(code).json()
}

/// `node status`, a line for each entry.
fn nodes(output: &Value) -> Vec<String> {
    let entry = |entry: &Value| {
        let path = entry.get("path").map(|path| path.to_string()).unwrap_or_default();
        format!(
            "{}{path} {}",
            entry["nodeId"].as_str().expect("an id"),
            entry["status"].as_str().expect("a status")
        )
    };
    output["nodeExecutions"].as_array().expect("entries").iter().map(entry).collect()
}

fn id(output: &Value) -> String {
    output["executionId"].as_str().expect("an id").to_owned()
}

fn note(word: &str) -> Value {
    json!({ "command": format!("echo {word} >> notes") })
}

#[test]
fn wfl_02_wfl_07_nodes_are_reported_by_name_and_type_with_their_states() {
    let place = Place::playing("workflow:\n- {step: unused}\n");
    place.write(
        "flow.json",
        &json!({
            "name": "Drawn",
            "nodes": [
                { "id": "n1", "type": "x", "position": { "x": 0, "y": 0 }, "data": { "label": "Start", "nodeType": "trigger", "config": {} } },
                { "id": "n2", "type": "x", "position": { "x": 0, "y": 0 }, "data": { "label": "Is it much?", "nodeType": "conditional",
                  "config": { "conditions": [{ "id": "much", "variable": "{{ inputs.n }}", "operator": "gte", "value": 10 }], "defaultBranch": "little" } } },
                { "id": "n3", "type": "x", "position": { "x": 0, "y": 0 }, "data": { "label": "Much", "nodeType": "shell", "config": { "command": "echo much" } } },
                { "id": "n4", "type": "x", "position": { "x": 0, "y": 0 }, "data": { "label": "Little", "nodeType": "shell", "config": { "command": "printf '%s' {{ nodes['n1'].output.n }}" } } },
                { "id": "n5", "type": "x", "position": { "x": 0, "y": 0 }, "data": { "label": "End", "nodeType": "delay", "config": { "duration": 1, "unit": "ms" } } }
            ],
            "edges": [
                { "id": "a", "source": "n1", "target": "n2" }, { "id": "b", "source": "n2", "target": "n3", "sourceHandle": "much" },
                { "id": "c", "source": "n2", "target": "n4", "sourceHandle": "little" }, { "id": "d", "source": "n3", "target": "n5" },
                { "id": "e", "source": "n4", "target": "n5" }
            ]
        })
        .to_string(),
    );
    let output = run(&place, &["--input", "n=3"], 0);
    assert_eq!((&output["dialect"], &output["workflowName"]), (&json!("workflow"), &json!("Drawn")));
    let shown: Vec<String> = output["nodeExecutions"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| format!("{} {} {}", entry["nodeName"], entry["nodeType"], entry["status"]))
        .collect();
    assert_eq!(
        shown,
        [
            r#""Start" "trigger" "completed""#,
            r#""Is it much?" "conditional" "completed""#,
            r#""Much" "shell" "skipped""#,
            r#""Little" "shell" "completed""#,
            r#""End" "delay" "completed""#,
        ]
    );
    assert_eq!(output["nodeExecutions"][3]["output"]["stdout"], "3");
    assert_eq!(output["progress"], json!({ "percentage": 100, "completedNodes": 4, "totalNodes": 5 }));
    assert_eq!(
        (&output["view"]["status"], &output["view"]["failureMode"]),
        (&json!("completed"), &json!("fail_fast"))
    );
    let graph = place.windlass(&["graph", "flow.json"]).expect(0).out;
    assert!(graph.contains("n1") && graph.contains("conditional"), "{graph}");
    let id = output["executionId"].as_str().expect("an id");
    let graph = place.windlass(&["executions", "get", id, "--graph", "--format", "svg"]).expect(0).out;
    for (class, count) in [("e t", 3), ("e u", 2)] {
        let found = graph.matches(&format!("<path class=\"{class}\" marker-end")).count();
        assert_eq!(found, count, "edges of class {class} in {graph}");
    }
    assert!(graph.contains(">little</text>") && graph.contains(">completed · "), "{graph}");
}

#[test]
fn inputs_that_do_not_fit_are_refused_before_anything_is_written() {
    let schema = json!({ "type": "object", "required": ["city"], "properties": { "city": { "type": "string" }, "days": { "type": "integer", "default": 2 } } });
    let place = place(json!([["start", "trigger", { "manualConfig": { "inputPayload": schema } }]]), &[]);
    let output = place.windlass(&["run", "flow.json", "--input", "days=x"]).expect(2);
    let output = output.says("inputs.days: \"x\" is not of type \"integer\"");
    output.says("\"city\" is a required property");
    assert!(!place.path("data").exists(), "nothing was begun");
    assert_eq!(run(&place, &["--input", "city=Ulm"], 0)["outputs"], json!({ "city": "Ulm", "days": 2 }));
}

#[test]
fn a_loop_runs_its_body_for_every_item_and_collects_the_outputs() {
    let place = place(
        json!([
            ["each", "loop", { "loopType": "for_each", "dataSource": "inputs.words", "iteratorVariable": "word", "continueCondition": "word == 'skip'", "parallelExecution": true }],
            ["size", "shell", { "command": "printf '%s' {{ word }} | wc -c" }],
            ["pair", "shell", { "command": "printf '%s' {{ word }}={{ size.stdout | trim }}@{{ iter.index }}" }],
            ["long", "filter", { "dataSource": "nodes['each'].output.results", "condition": "item.stdout and inputs.least in item.stdout" }],
            ["turns", "loop", { "loopType": "do_while", "condition": "iter.index < 3" }],
            ["turn", "delay", { "duration": 1, "unit": "ms" }],
        ]),
        &[
            "each.body -> size",
            "size -> pair",
            "pair -> each",
            "each.done -> long",
            "long -> turns",
            "turns.loop -> turn",
        ],
    );
    let output = run(&place, &["--inputs", r#"{"words": ["bow", "skip", "stern"], "least": "=5"}"#], 0);
    let of = |node: &str| {
        output["nodeExecutions"]
            .as_array()
            .expect("entries")
            .iter()
            .find(|entry| entry["nodeId"] == node)
            .expect("an entry")
            .clone()
    };
    let results: Vec<Value> = of("each")["output"]["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| result["stdout"].clone())
        .collect();
    assert_eq!(results, [json!("bow=3@0"), Value::Null, json!("stern=5@2")]);
    assert_eq!(of("long")["output"]["count"], 1);
    assert_eq!(of("turns")["output"]["iterations"], 3);
    assert_eq!(
        nodes(&output).iter().filter(|entry| entry.ends_with("skipped")).count(),
        2,
        "{:?}",
        nodes(&output)
    );
}

#[test]
fn a_filter_or_a_loop_over_something_that_is_no_list_fails_and_says_so() {
    for (kind, config) in [
        ("filter", json!({ "dataSource": "inputs.none", "condition": "item" })),
        ("loop", json!({ "loopType": "for_each", "dataSource": "inputs.none" })),
    ] {
        let edges: &[&str] = if kind == "loop" { &["a.body -> b"] } else { &["a -> b"] };
        let place = place(json!([["a", kind, config], ["b", "delay", { "duration": 1 }]]), edges);
        let output = run(&place, &[], 1);
        let error = &output["nodeExecutions"][0]["error"];
        assert!(error["message"].as_str().expect("a text").contains("a list"), "{error}");
        assert_eq!(error["retryable"], false, "another try changes nothing");
    }
}

#[test]
fn wfl_25_failure_modes_decide_what_follows_an_error() {
    let mode = |mode: &str, other_ms: u32, code: i32, expected: &[&str]| {
        let place = with(
            json!([["start", "trigger", {}], ["bad", "shell", { "command": "exit 3" }], ["after", "shell", { "command": "echo {{ args.error.code }}" }], ["other", "delay", { "duration": other_ms, "unit": "ms" }]]),
            &["start -> bad", "bad -> after", "start -> other"],
            json!({ "failureMode": mode }),
        );
        let output = run(&place, &[], code);
        let mut seen = nodes(&output);
        seen.sort();
        assert_eq!(seen, expected, "{mode}");
        let codes: Vec<&Value> =
            output["errors"].as_array().expect("errors").iter().map(|error| &error["code"]).collect();
        assert_eq!(codes, [&json!("SHELL_EXIT")], "{mode}");
        assert_eq!(output["errors"][0]["details"]["category"], "system");
    };
    // Where the first failure ends it, `other` would go on for much longer.
    mode("fail_fast", 3_600_000, 1, &["after skipped", "bad failed", "other skipped", "start completed"]);
    mode("continue_on_error", 1, 4, &["after skipped", "bad failed", "other completed", "start completed"]);
    mode("collect_errors", 1, 4, &["after completed", "bad failed", "other completed", "start completed"]);
}

#[test]
fn an_error_handle_takes_the_failure_on() {
    let place = place(
        json!([["bad", "shell", { "command": "exit 3" }], ["rescue", "shell", { "command": "printf '%s' {{ args.error.code }}" }], ["good", "delay", { "duration": 1 }]]),
        &["bad.error -> rescue", "bad -> good"],
    );
    let output = run(&place, &[], 0);
    assert_eq!((&output["outputs"]["stdout"], &output["errors"]), (&json!("SHELL_EXIT"), &json!([])));
}

/// Answers with these status lines, one connection each, and returns the requests.
fn server(answers: &'static [&'static str]) -> (String, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let served = thread::spawn(move || {
        let mut asked = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
            let lines = reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty());
            let head = lines.collect::<Vec<_>>().join("\n");
            let length = head
                .to_lowercase()
                .split_once("content-length: ")
                .map_or(0, |(_, rest)| rest.lines().next().expect("a line").parse().expect("a number"));
            let mut body = vec![0; length];
            reader.read_exact(&mut body).expect("a body");
            asked.push(format!("{head}\n\n{}", String::from_utf8(body).expect("a text")));
            let body = r#"{"items": [1, 2]}"#;
            write!(stream, "HTTP/1.1 {answer}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len()).expect("it is sent");
        }
        asked
    });
    (address, served)
}

#[test]
fn wfl_15_wfl_24_codes_decide_what_is_tried_again() {
    let policy = json!({ "maxRetries": 3, "initialDelayMs": 1, "jitterFactor": 0 });
    let ask = |address: &str, extra: Value| {
        let mut config = json!({ "url": "{{ inputs.url }}/orders", "headers": [{ "key": "X-Who", "value": "me" }], "retryPolicy": policy });
        config.as_object_mut().expect("a map").extend(extra.as_object().cloned().unwrap_or_default());
        let place = place(json!([["ask", "http_api", config]]), &[]);
        place.windlass(&["run", "flow.json", "--json", "--input", &format!("url={address}")])
    };
    let (address, served) = server(&["503 Service Unavailable", "429 Too Many Requests", "200 OK"]);
    let output = ask(&address, json!({})).expect(0).json();
    let entry = &output["nodeExecutions"][0];
    assert_eq!((&entry["retryCount"], &entry["output"]["data"]["items"]), (&json!(2), &json!([1, 2])));
    assert!(served.join().expect("it ends").iter().all(|asked| asked.to_lowercase().contains("x-who: me")));

    let (address, served) = server(&["404 Not Found"]);
    let output = ask(&address, json!({})).expect(1).json();
    let error = &output["nodeExecutions"][0]["error"];
    assert_eq!(
        (&error["code"], &error["retryable"], &error["details"]["category"]),
        (&json!("RESOURCE_NOT_FOUND"), &json!(false), &json!("resource"))
    );
    assert_eq!(served.join().expect("it ends").len(), 1, "it is not asked again");

    let (address, served) = server(&["503 Service Unavailable"]);
    let output = ask(&address, json!({ "errorHandling": "continue" })).expect(0).json();
    assert_eq!(output["nodeExecutions"][0]["output"]["error"]["code"], "SERVICE_UNAVAILABLE", "{output}");
    served.join().expect("it ends");
}

#[test]
fn a_value_leaves_neither_its_place_in_a_url_nor_its_string_in_json() {
    let (address, served) = server(&["200 OK"]);
    let config = json!({ "url": "{{ inputs.url }}/a/{{ inputs.n }}?x={{ inputs.n }}", "method": "POST", "bodyType": "json",
        "body": "{\"name\": \"{{inputs.n}}\", \"said\": \"it is {{inputs.n}}\", \"list\": \"{{ inputs.list }}\"}" });
    let place = place(json!([["ask", "http_api", config]]), &[]);
    let inputs = json!({ "url": address, "n": "a\"b/../c&d=é?#", "list": [1, { "k": true }] });
    run(&place, &["--inputs", &inputs.to_string()], 0);
    let asked = served.join().expect("it ends").remove(0);
    let encoded = "a%22b%2F..%2Fc%26d%3D%C3%A9%3F%23";
    assert!(asked.starts_with(&format!("POST /a/{encoded}?x={encoded} HTTP/1.1\n")), "{asked}");
    let body: Value = serde_json::from_str(asked.split_once("\n\n").expect("a body").1).expect("JSON");
    assert_eq!(
        body,
        json!({ "name": inputs["n"], "said": "it is a\"b/../c&d=é?#", "list": [1, { "k": true }] })
    );
    assert!(asked.to_lowercase().contains("content-type: application/json"), "{asked}");
}

#[test]
fn loops_run_as_often_as_they_say() {
    let turns = |config: Value, inputs: &str| {
        let place = place(
            json!([["l", "loop", config], ["a", "delay", { "duration": 1, "unit": "ms" }]]),
            &["l.body -> a"],
        );
        run(&place, &["--inputs", inputs], 0)["nodeExecutions"][0]["output"]["iterations"].clone()
    };
    assert_eq!(turns(json!({ "loopType": "while", "condition": "iter.index < 3" }), "{}"), 3);
    assert_eq!(turns(json!({ "loopType": "while", "condition": "item < 3" }), "{}"), 3);
    assert_eq!(turns(json!({ "loopType": "do_while", "condition": "iter.index < 0" }), "{}"), 1);
    assert_eq!(turns(json!({ "loopType": "while", "breakCondition": "iter.index == 1" }), "{}"), 2);
    let count = |data: Value| json!({ "loopType": "count", "dataSource": data, "maxIterations": 3 });
    assert_eq!(turns(count(json!(5)), "{}"), 3);
    assert_eq!(turns(count(json!("inputs.n")), r#"{"n": 5}"#), 3);
    assert_eq!(turns(count(json!("inputs.n")), r#"{"n": 2}"#), 2);
}

#[test]
fn wfl_25_a_loop_whose_body_fails_has_failed_and_was_not_cancelled() {
    let place = place(
        json!([["outer", "loop", { "loopType": "count", "maxIterations": 2 }], ["l", "loop", { "loopType": "count", "maxIterations": 2 }], ["a", "shell", { "command": "exit 3" }]]),
        &["outer.body -> l", "l.body -> a"],
    );
    let output = run(&place, &[], 1);
    let codes: Vec<String> = output["nodeExecutions"]
        .as_array()
        .expect("entries")
        .iter()
        .map(|entry| {
            format!(
                "{} {} {}",
                entry["nodeId"].as_str().expect("an id"),
                entry["status"].as_str().expect("a status"),
                entry["error"]["code"].as_str().unwrap_or("-")
            )
        })
        .collect();
    assert_eq!(
        codes,
        ["outer failed ITERATION_FAILED", "l failed ITERATION_FAILED", "a failed SHELL_EXIT"],
        "{output}"
    );
}

#[test]
fn wfl_10_wfl_26_a_retry_keeps_completed_nodes_and_continues() {
    // `after` begins when `other` is recorded as completed, and `b` fails only then.
    let b = json!({ "command": "echo b >> notes; until test -e begun; do sleep 0.02; done; test -e go" });
    let place = place(
        json!([["a", "shell", note("a")], ["b", "shell", b], ["c", "shell", note("c")], ["other", "shell", note("other")],
            ["after", "shell", { "command": "touch begun" }]]),
        &["a -> b", "b -> c", "a -> other", "other -> after"],
    );
    let failed = id(&run(&place, &[], 1));
    place.write("go", "");
    let output = place.windlass(&["executions", "retry", &failed, "--json"]).expect(0).json();
    assert_eq!(
        (&output["status"], &output["metadata"]["parentExecutionId"]),
        (&json!("completed"), &json!(failed))
    );
    assert_ne!(output["executionId"], failed);
    let count = |word: &str| place.lines("notes").iter().filter(|line| *line == word).count();
    let counts = ["a", "b", "c", "other"].map(count);
    assert_eq!(counts, [1, 2, 1, 1], "{:?}", place.lines("notes"));
    let again = place.windlass(&["executions", "get", &failed, "--json"]).expect(0).json();
    assert_eq!(again["status"], "failed", "the failed one stays so");
    // From a node on: it and what follows it, and nothing else that completed.
    let before = place.lines("notes").len();
    place.windlass(&["executions", "retry", &failed, "--from", "b"]).expect(0);
    assert_eq!(place.lines("notes")[before..], ["b", "c"]);
}

#[test]
fn wfl_27_an_approval_waits_for_a_person_who_approves_or_rejects() {
    let flow = || {
        place(
            json!([["ask", "approval", { "message": "Go?" }], ["yes", "shell", note("yes")], ["no", "shell", note("no")]]),
            &["ask.approved -> yes", "ask.rejected -> no"],
        )
    };
    for (word, expected) in [("approve", "yes"), ("reject", "no")] {
        let place = flow();
        let waiting = place.windlass(&["run", "flow.json"]).expect(5).says("windlass executions approve");
        let paused = place.windlass(&["executions", "list", "--json"]).expect(0).json();
        let paused = &paused["executions"][0];
        assert_eq!(paused["status"], "paused", "{}", waiting.err);
        let id = id(paused);
        place.windlass(&["executions", word, &id, "nothing"]).expect(2).says("these do: ask");
        place.windlass(&["executions", word, &id, "ask", "--note", "because"]).expect(0);
        let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(0).json();
        assert_eq!(
            (&output["status"], place.lines("notes")),
            (&json!("completed"), vec![expected.to_owned()])
        );
        place
            .windlass(&["executions", word, &id])
            .expect(2)
            .says("no step of the execution waits for a person");
    }
    let place = place(json!([["ask", "approval", { "timeout": "50ms" }]]), &[]);
    // It waits, or its time is over already.
    place.windlass(&["run", "flow.json"]);
    let output = until("its time is over", || {
        place.windlass(&["run", "--resume"]);
        let listed = place.windlass(&["executions", "list", "--json"]).expect(0).json();
        Some(listed["executions"][0].clone()).filter(|one| one["status"] != "paused")
    });
    assert_eq!(output["status"], "failed", "{output}");
}

#[test]
fn approvals_inside_of_a_loop_are_answered_one_by_one() {
    let place = place(
        json!([["each", "loop", { "loopType": "count", "maxIterations": 2, "parallelExecution": true }], ["ask", "approval", {}], ["go", "shell", { "command": "echo {{ iter.index }} >> notes" }]]),
        &["each.body -> ask", "ask -> go"],
    );
    let id = id(&run(&place, &[], 5));
    place.windlass(&["executions", "approve", &id]).expect(2).says("name one: ask[0], ask[1]");
    place.windlass(&["executions", "approve", &id, "ask[1]"]).expect(0);
    place.windlass(&["run", "--resume", &id]).expect(5);
    assert_eq!(place.lines("notes"), ["1"]);
    place.windlass(&["executions", "approve", &id]).expect(0);
    place.windlass(&["run", "--resume", &id]).expect(0);
    assert_eq!(place.lines("notes"), ["1", "0"]);
}

#[test]
fn a_workflow_starts_another_by_its_name_and_gets_its_outputs() {
    let place = place(
        json!([["start", "trigger", {}], ["sub", "workflow", { "workflowName": "Double", "inputs": { "n": "{{ inputs.n }}" } }], ["end", "shell", { "command": "printf '%s' {{ sub.stdout }}" }]]),
        &["start -> sub", "sub -> end"],
    );
    place.windlass(&["run", "flow.json"]).expect(2).says("there is no workflow `Double`");
    let child = json!({ "name": "Double", "nodes": [{ "id": "d", "type": "shell", "config": { "command": "printf '%s' {{ inputs.n * 2 }}" } }] });
    place.write("some.json", &child.to_string());
    assert_eq!(run(&place, &["--input", "n=21"], 0)["outputs"]["stdout"], "42");
}

#[test]
fn a_secret_is_read_by_its_name_and_nowhere_to_be_seen() {
    let (address, served) = server(&["200 OK"]);
    let place = place(
        json!([["ask", "http_api", { "url": "{{ inputs.url }}", "headers": { "X-Key": "key {{ SHOP_KEY }}" } }]]),
        &[],
    );
    place.given(&["secrets", "set", "SHOP_KEY"], "open-sesame").expect(0);
    let output = run(&place, &["--input", &format!("url={address}")], 0);
    assert!(!output.to_string().contains("open-sesame"), "{output}");
    let asked = served.join().expect("it ends").remove(0);
    assert!(asked.to_lowercase().contains("x-key: key open-sesame"), "{asked}");
}

/// A loop of five iterations that write down what they do; each waits while there is a file `hold`.
fn slow_loop() -> Place {
    let place = place(
        json!([
            ["each", "loop", { "loopType": "count", "maxIterations": 5 }],
            ["work", "shell", { "command": "echo begin {{ iter.index }} >> notes; if [ {{ iter.index }} = 2 ]; then while [ -e hold ]; do sleep 0.02; done; fi; echo end {{ iter.index }} >> notes" }],
            ["after", "shell", note("after")],
        ]),
        &["each.body -> work", "each.done -> after"],
    );
    place.write("hold", "");
    place
}

fn reached(place: &Place) {
    until("the third iteration begins", || {
        place.lines("notes").contains(&"begin 2".to_owned()).then_some(())
    });
}

fn only(place: &Place) -> String {
    id(&place.windlass(&["executions", "list", "--json"]).expect(0).json()["executions"][0])
}

fn let_go(place: &Place) {
    std::fs::remove_file(place.path("hold")).expect("it was there");
}

#[test]
fn a_killed_execution_continues_in_the_middle_of_a_loop() {
    let place = slow_loop();
    let running = place.start(&["run", "flow.json"]);
    reached(&place);
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
    let_go(&place);
    place.windlass(&["run", "--resume", &only(&place)]).expect(0);
    let ends =
        |index: u32| place.lines("notes").iter().filter(|line| **line == format!("end {index}")).count();
    assert_eq!([ends(0), ends(1), ends(3), ends(4)], [1; 4], "{:?}", place.lines("notes"));
    assert!(ends(2) >= 1);
    assert_eq!(place.lines("notes").iter().filter(|line| **line == "after").count(), 1);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_loop_is_held_released_and_cancelled_between_its_iterations() {
    let place = slow_loop();
    let running = place.start(&["run", "flow.json", "--json"]);
    reached(&place);
    let id = only(&place);
    place.windlass(&["executions", "pause", &id]).expect(0);
    let_go(&place);
    let has = |line: &str| place.lines("notes").contains(&line.to_owned());
    until("what ran ends", || has("end 2").then_some(()));
    until("it rests", || {
        let output = place.windlass(&["executions", "get", &id, "--json"]).expect(0).json();
        (output["status"] == "paused" && output["nodeExecutions"][3]["status"] == "completed").then_some(())
    });
    assert!(!has("begin 3"), "{:?}", place.lines("notes"));
    place.windlass(&["executions", "resume", &id]).expect(0);
    assert_eq!(running.end().0, Some(0));
    assert_eq!(place.lines("notes").len(), 11);

    let place = slow_loop();
    let running = place.start(&["run", "flow.json", "--json"]);
    reached(&place);
    let id = only(&place);
    place.windlass(&["executions", "cancel", &id, "--reason", "enough"]).expect(0);
    let (code, out, _) = running.end();
    let output: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((code, &output["status"]), (Some(3), &json!("cancelled")));
    assert!(nodes(&output).contains(&"after skipped".to_owned()), "{:?}", nodes(&output));
    let_go(&place);
    let output = place.windlass(&["executions", "retry", &id, "--json"]).expect(0).json();
    assert_eq!(output["status"], "completed");
}
