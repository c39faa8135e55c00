//! The place of a failure, wherever errors are sent or kept: the same step, iteration, task, line and child in the API,
//! in streams, in webhooks and in the evidence.

use crate::executions::{finish, get, start, until};
use crate::receiver::{Received, Receiver};
use crate::rig::{Place, Server};
use serde_json::{Value, json};

/// Fails in the second task of a step, in line 9 of the text.
const CODE: &str = "metadata: {name: code}
workflow:
- step: work
  tool:
  - {name: first, kind: noop}
  - name: second
    kind: python
    code: |
      raise ValueError('no')
";

/// Fails in the third iteration of a loop in a child, in line 7 of the child's text.
const CHILD: &str = "metadata: {name: inner, path: inner}
workflow:
- step: each
  loop: {in: [3, 2, 0], iterator: n}
  tool:
    kind: python
    args: {n: '{{ iter.n }}'}
    code: |
      result = 6 // n
";
const PARENT: &str = "metadata: {name: outer}
workflow:
- {step: call, tool: {kind: playbook, path: inner}}
";

/// Returns the data of all events of a stream.
fn stream(server: &Server, id: &str) -> Vec<Value> {
    let text = server.get(&format!("/api/v1/executions/{id}/stream")).text().unwrap();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter_map(|data| serde_json::from_str(data).ok()).collect()
}

fn message(stream: &[Value], kind: &str) -> Value {
    let found = stream.iter().find(|message| message["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {stream:#?}"))["data"].clone()
}

fn webhook(received: &[Received], event: &str) -> Value {
    let found = received.iter().find(|one| one.event() == event);
    found.unwrap_or_else(|| panic!("no {event}")).json()["data"].clone()
}

/// Runs a definition; returns its view, its stream, and what a webhook receiver got.
fn run(server: &Server, receiver: &Receiver, text: &str) -> (Value, Vec<Value>, Vec<Received>) {
    let events = json!(["node.failed", "execution.failed"]);
    let id =
        start(server, &server.define(text), json!({ "webhookUrl": receiver.url, "webhookEvents": events }));
    let view = until(server, &id, "failed");
    let received = receiver.until(|all| all.iter().any(|one| one.event() == "execution.failed"));
    (view, stream(server, &id), received)
}

/// Runs a definition; returns its view.
fn run_to_end(server: &Server, text: &str) -> Value {
    let ended = finish(server, &server.define(text), json!({}));
    get(server, ended["executionId"].as_str().unwrap(), "")
}

/// The part of an error that says where it was.
fn place_of(error: &Value) -> Value {
    let keys = ["nodeId", "nodeName", "path", "task", "location", "childExecutionId", "failedIterations"];
    let known = keys.iter().filter_map(|key| Some(((*key).to_owned(), error.get(key)?.clone())));
    Value::Object(known.collect())
}

#[test]
fn wfl_16_wfl_19_streams_and_webhooks_name_the_line_of_the_definition_that_failed() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let (server, receiver) = (place.serve(), Receiver::new());
    let (view, stream, received) = run(&server, &receiver, CODE);
    let location = json!({ "line": 9, "codeLine": 1 });
    let expected = json!({ "nodeId": "work", "nodeName": "work", "task": "second", "location": location });
    assert_eq!(place_of(&view["errors"][0]), expected, "{view}");
    assert_eq!(place_of(&message(&stream, "node_failed")["error"]), expected);
    assert_eq!(place_of(&webhook(&received, "node.failed")["error"]), expected);
    assert_eq!(place_of(&webhook(&received, "execution.failed")["error"]), expected);
    let id = view["executionId"].as_str().unwrap();
    let events = get(&server, id, "/events?limit=1000");
    let failed =
        events["events"].as_array().unwrap().iter().find(|event| event["event"] == "step.failed").unwrap();
    assert_eq!(failed["data"]["error"]["task"], json!("second"), "{failed}");
    assert_eq!(failed["data"]["error"]["location"]["codeLine"], json!(1), "{failed}");
    // The evidence follows from the journal alone, which has no lines of definitions.
    let evidence = get(&server, id, "/evidence");
    let failed =
        evidence["evidence"].as_array().unwrap().iter().find(|entry| entry["actionId"] == "work").unwrap();
    assert_eq!(failed["error"]["task"], json!("second"), "{failed}");
    assert_eq!(failed["error"]["location"], json!({ "codeLine": 1 }), "{failed}");
}

#[test]
fn a_failed_loop_and_a_failed_child_are_named_in_streams_webhooks_and_evidence() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let (server, receiver) = (place.serve(), Receiver::new());
    let inner = server.define(CHILD);
    let (view, stream, received) = run(&server, &receiver, PARENT);
    let child = view["errors"][0]["childExecutionId"].as_str().expect("a child").to_owned();
    for error in [
        message(&stream, "node_failed")["error"].clone(),
        webhook(&received, "node.failed")["error"].clone(),
        webhook(&received, "execution.failed")["error"].clone(),
    ] {
        assert_eq!(
            (&error["nodeId"], &error["childExecutionId"]),
            (&json!("call"), &json!(child)),
            "{error}"
        );
        assert_eq!(error.get("location"), None, "the line is in another definition: {error}");
    }
    let evidence = get(&server, view["executionId"].as_str().unwrap(), "/evidence");
    let failed =
        evidence["evidence"].as_array().unwrap().iter().find(|entry| entry["actionId"] == "call").unwrap();
    assert_eq!(failed["error"]["childExecutionId"], json!(child), "{failed}");
    let whole = finish(&server, &inner, json!({}));
    let messages = self::stream(&server, whole["executionId"].as_str().unwrap());
    let error = message(&messages, "node_failed")["error"].clone();
    assert_eq!((&error["nodeId"], &error["failedIterations"]), (&json!("each"), &json!([2])), "{error}");
    let evidence = get(&server, whole["executionId"].as_str().unwrap(), "/evidence");
    let entries = evidence["evidence"].as_array().unwrap();
    let iteration = entries.iter().find(|entry| entry["path"] == json!([2])).expect("the iteration");
    assert_eq!(iteration["error"]["location"]["codeLine"], json!(1), "{iteration}");
}

#[test]
fn a_shell_that_names_a_line_is_located_in_the_definition() {
    let place = Place::new();
    let server = place.serve();
    let text = "metadata: {name: lines}
workflow:
- step: work
  tool:
    kind: shell
    command: |
      echo one
      echo two
      frobnicate --now
";
    let failed = run_to_end(&server, text);
    let error = &failed["errors"][0];
    assert_eq!(
        (&error["location"]["line"], &error["location"]["codeLine"]),
        (&json!(9), &json!(3)),
        "{error}"
    );
    // A list of commands has other lines, and other programs name lines of their own files.
    for tool in [
        "{kind: shell, cmds: ['echo one', 'frobnicate']}",
        "{kind: shell, command: 'echo make: 3: no >&2; exit 2'}",
    ] {
        let text = format!("metadata: {{name: lines}}\nworkflow:\n- {{step: work, tool: {tool}}}\n");
        let failed = run_to_end(&server, &text);
        assert_eq!(failed["errors"][0].get("location"), None, "{failed}");
    }
}
