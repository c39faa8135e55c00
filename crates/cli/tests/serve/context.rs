//! Inputs and outputs of a node at a server: its context, its contract, its progress, its end.

use crate::executions::{finish, get, start, until, until_node};
use crate::rig::{self, Place, Server};
use reqwest::Method;
use serde_json::{Value, json};

fn define(server: &Server, name: &str, nodes: Value, edges: Value) -> String {
    server.define(&json!({ "name": name, "nodes": nodes, "edges": edges }).to_string())
}

fn entry(execution: &Value, node: &str) -> Value {
    let entries = execution["nodeExecutions"].as_array().unwrap();
    entries
        .iter()
        .find(|entry| entry["nodeId"] == node)
        .unwrap_or_else(|| panic!("{node}: {execution}"))
        .clone()
}

fn code(id: &str, language: &str, text: &str) -> Value {
    let config = json!({ "language": language, "code": text, "credentials": { "KEY": "shop/key" }, "env": { "MODE": "test" },
        "retryPolicy": { "maxRetries": 0 } });
    json!({ "id": id, "name": format!("The {id}"), "type": "code", "config": config })
}

const PYTHON: &str = r#"
import os
ctx.logger.debug("debugged")
ctx.logger.info("informed", {"rows": 2, "key": ctx.credentials["KEY"]})
ctx.logger.warn("warned")
ctx.logger.error("erred")
ctx.metrics.count("rows", 2)
ctx.metrics.count("rows")
ctx.set_state("seen", ["python"])
result = {
    "execution": ctx.execution_id, "workflow": ctx.workflow_id, "tenant": ctx.tenant_id, "node": ctx.node_id,
    "name": ctx.node_name, "type": ctx.node_type, "attempt": ctx.attempt, "inputs": ctx.inputs, "workload": ctx.workflow_inputs,
    "language": ctx.config["language"], "env": [ctx.env["MODE"], os.environ["MODE"]], "key": len(ctx.credentials["KEY"]),
    "seen": ctx.get_state("seen"), "other": ctx.get_state("other"), "aborted": ctx.signal.aborted,
}
"#;

const JAVASCRIPT: &str = r#"
ctx.logger.debug('debugged');
ctx.logger.info('informed', { rows: 2, key: ctx.credentials.KEY });
ctx.logger.warn('warned');
ctx.logger.error('erred');
ctx.metrics.count('rows', 2);
ctx.metrics.count('rows');
await ctx.setState('seen', ['javascript']);
return {
  execution: ctx.executionId, workflow: ctx.workflowId, tenant: ctx.tenantId, node: ctx.nodeId,
  name: ctx.nodeName, type: ctx.nodeType, attempt: ctx.attempt, inputs: ctx.inputs, workload: ctx.workflowInputs,
  language: ctx.config.language, env: [ctx.env.MODE, process.env.MODE], key: ctx.credentials.KEY.length,
  seen: await ctx.getState('seen'), other: await ctx.getState('other'), aborted: ctx.signal.aborted,
};
"#;

#[test]
fn wfl_22_wfl_34_a_node_gets_its_whole_context() {
    let place = Place::new();
    let server = place.serve();
    let value = "a-key-that-nobody-else-has";
    let secret = server.request(Method::PUT, "/api/v1/secrets/shop%2Fkey").json(&json!({ "value": value }));
    assert!(secret.send().unwrap().status().is_success());
    for (language, text) in [("python", PYTHON), ("javascript", JAVASCRIPT)] {
        let nodes = json!([{ "id": "t", "type": "trigger" }, code("x", language, text)]);
        let workflow = define(&server, language, nodes, json!([{ "source": "t", "target": "x" }]));
        let answer = finish(&server, &workflow, json!({ "n": 4 }));
        let id = answer["executionId"].as_str().unwrap();
        let expected = json!({
            "execution": id, "workflow": workflow, "tenant": "default", "node": "x", "name": "The x", "type": "code",
            "attempt": 1, "inputs": { "n": 4, "t": { "n": 4 } }, "workload": { "n": 4 }, "language": language,
            "env": ["test", "test"], "key": value.len(), "seen": [language], "other": null, "aborted": false,
        });
        assert_eq!(answer["nodeResults"]["x"]["output"], expected, "{answer}");
        let whole = get(&server, id, "");
        assert_eq!(entry(&whole, "x")["metadata"]["metrics"], json!({ "rows": 3 }));
        let mut logs = get(&server, id, "/logs")["logs"].clone();
        let lines = logs.as_array_mut().unwrap();
        // Data of the execution itself is not in the node's data.
        let of_execution = |line: &Value| {
            let message = line["message"].as_str().unwrap();
            message.starts_with("Node ") || message.starts_with("Workflow ")
        };
        lines.retain(|line| !of_execution(line));
        let said: Vec<(&str, &str)> = lines
            .iter()
            .map(|line| (line["level"].as_str().unwrap(), line["message"].as_str().unwrap()))
            .collect();
        assert_eq!(
            said,
            [("info", "informed"), ("warn", "warned"), ("error", "erred")],
            "debug lines are for debugMode"
        );
        assert_eq!((&logs[0]["data"]["rows"], &logs[0]["data"]["key"]), (&json!(2), &json!("[redacted]")));
        assert!(!whole.to_string().contains(value) && !logs.to_string().contains(value));
    }
}

#[test]
fn wfl_22_a_cancel_reaches_the_signal_of_a_node() {
    let place = Place::new();
    let server = place.serve();
    let heard = place.path("heard");
    let text = format!(
        "import os, time\nsignal = ctx.signal\nctx.progress('ready', 1)\nwhile not signal.aborted: time.sleep(0.01)\n\
         open('{}', 'w').write(str(os.path.exists(os.environ['WINDLASS_ABORT'])))",
        heard.display()
    );
    let node = json!({ "id": "x", "type": "code", "config": { "language": "python", "code": text } });
    let workflow = define(&server, "stops", json!([node]), json!([]));
    let id = start(&server, &workflow, json!({}));
    rig::until("the node waits for its signal", || {
        (entry(&get(&server, &id, ""), "x")["progress"]["step"] == "ready").then_some(())
    });
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    assert_eq!((status.as_u16(), &answer["status"]), (200, &json!("cancelled")));
    let answer = rig::until("the node hears it", || {
        std::fs::read_to_string(&heard).ok().filter(|answer| !answer.is_empty())
    });
    assert_eq!(answer, "True", "the mark is in its folder, too");
}

#[test]
fn wfl_23_a_node_returns_data_or_an_error_with_its_metadata() {
    let place = Place::new();
    let server = place.serve();
    let node_returning = |id: &str, result: Value| {
        let command = format!("echo '{result}' > $WINDLASS_OUTPUTS/result.json");
        json!({ "id": id, "type": "shell", "config": { "command": command, "retryPolicy": { "maxRetries": 0 } } })
    };
    let used = json!({ "duration": 1_000_000, "tokensUsed": 120, "apiCalls": 2 });
    let error = json!({ "code": "MY_OWN", "message": "no luck", "retryable": true });
    let nodes = json!([
        node_returning("good", json!({ "success": true, "data": { "n": 1 }, "metadata": used })),
        node_returning("bad", json!({ "success": false, "error": error, "metadata": used })),
        node_returning("plain", json!({ "n": 2 })),
        node_returning(
            "long",
            json!({ "success": false, "error": { "code": "X".repeat(60), "message": "too much" } })
        ),
    ]);
    let id = start(
        &server,
        &define(&server, "returns", nodes, json!([])),
        json!({ "failureMode": "collect_errors" }),
    );
    let whole = until(&server, &id, "partial_success");
    let (good, bad, plain) = (entry(&whole, "good"), entry(&whole, "bad"), entry(&whole, "plain"));
    assert_eq!((&good["status"], &good["output"]), (&json!("completed"), &json!({ "n": 1 })));
    assert_eq!((&plain["status"], &plain["output"]), (&json!("completed"), &json!({ "n": 2 })));
    assert_eq!((&bad["status"], &bad["output"]), (&json!("failed"), &Value::Null));
    for (field, value) in
        [("code", json!("MY_OWN")), ("message", json!("no luck")), ("retryable", json!(true))]
    {
        assert_eq!(bad["error"][field], value, "{bad}");
    }
    let long = &entry(&whole, "long")["error"]["code"];
    assert_eq!(*long, "X".repeat(50), "as much as stores have a column for");
    for answer in [&good, &bad] {
        let metadata = &answer["metadata"];
        assert_eq!((&metadata["tokensUsed"], &metadata["apiCalls"]), (&json!(120), &json!(2)), "{answer}");
        assert_eq!(metadata["duration"], answer["duration"], "how long it took is measured, not believed");
        assert!(answer["duration"].is_u64(), "{answer}");
    }
}

#[test]
fn wfl_33_a_node_reports_how_far_it_has_come_and_the_execution_never_falls_back() {
    let place = Place::new();
    let server = place.serve();
    let go = place.path("go");
    let command = format!(
        "windlass-node progress 45 'Reading pages'; until [ -e {} ]; do sleep 0.02; done",
        go.display()
    );
    let nodes = json!([
        { "id": "t", "type": "trigger" },
        { "id": "x", "type": "shell", "config": { "command": command } },
        { "id": "bad", "type": "shell", "config": { "command": "exit 1" } },
    ]);
    let edges = json!([{ "source": "t", "target": "x" }, { "source": "x", "target": "bad" }]);
    let id = start(&server, &define(&server, "far", nodes, edges), json!({}));
    let running = rig::until("it is reported", || {
        Some(get(&server, &id, "")).filter(|now| entry(now, "x")["progress"].is_object())
    });
    assert_eq!(entry(&running, "x")["progress"], json!({ "step": "Reading pages", "percentage": 45 }));
    assert_eq!(
        running["progress"],
        json!({ "percentage": 33, "completedNodes": 1, "totalNodes": 3, "currentNode": "x" })
    );
    std::fs::write(&go, "").unwrap();
    let failed = until(&server, &id, "failed");
    assert_eq!(
        failed["progress"],
        json!({ "percentage": 66, "completedNodes": 2, "totalNodes": 3 }),
        "100 is for what completed"
    );
    assert!(entry(&failed, "x").get("progress").is_none(), "of a node that runs");
    let events = server.get(&format!("/api/v1/executions/{id}/stream")).text().unwrap();
    let answer: Vec<u64> = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
        .filter_map(|message| message["data"]["progress"]["percentage"].as_u64())
        .collect();
    assert!(answer.is_sorted() && answer.last() == Some(&66), "{answer:?}");
}

#[test]
fn wfl_33_only_what_completed_is_whole() {
    let place = Place::new();
    let server = place.serve();
    // All nodes are settled, and yet it has not completed.
    let nodes = json!([{ "id": "t", "type": "trigger" }, { "id": "ask", "type": "approval" }]);
    let edges = json!([{ "source": "t", "target": "ask" }]);
    let id = start(&server, &define(&server, "asks", nodes, edges), json!({}));
    until_node(&server, &id, "ask", "running");
    let (_, answer) = server.post(&format!("/api/v1/executions/{id}/pause"), &json!({}));
    assert_eq!(answer["status"], "paused");
    let path = format!("/api/v1/executions/{id}/actions/ask/complete");
    assert!(server.post(&path, &json!({ "outcome": "Succeeded" })).0.is_success());
    let held = get(&server, &id, "/status");
    assert_eq!((&held["status"], &held["progress"]["percentage"]), (&json!("paused"), &json!(99)), "{held}");
    assert!(server.post(&format!("/api/v1/executions/{id}/resume"), &json!({})).0.is_success());
    assert_eq!(until(&server, &id, "completed")["progress"]["percentage"], 100);
}
