//! An execution answer whole: the same in every answer, with every field of the document.

use crate::executions::{FAILS, finish, get, start, until, until_node, waits_for};
use crate::rig::{Place, Server};
use serde_json::{Map, Value, json};

fn id(answer: &Value) -> String {
    answer["executionId"].as_str().unwrap().to_owned()
}

fn millis(time: &Value) -> i64 {
    let text = time.as_str().unwrap_or_else(|| panic!("{time} is a time"));
    assert_eq!((text.len(), &text[23..]), (24, "Z"), "milliseconds, in UTC");
    text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
}

/// A trigger, and a node whose name is not its id.
fn greeting(server: &Server) -> String {
    let text = json!({ "name": "greeting",
        "nodes": [
            { "id": "t", "name": "Begin", "type": "trigger" },
            { "id": "greet", "name": "Greet them", "type": "shell", "config": { "command": "echo hi" } },
        ],
        "edges": [{ "source": "t", "target": "greet" }] });
    server.define(&text.to_string())
}

#[test]
fn wfl_04_wfl_07_a_synchronous_answer_and_the_execution_report_the_same() {
    let place = Place::new();
    let server = place.serve();
    for (workflow, status) in [(greeting(&server), "completed"), (server.define(FAILS), "failed")] {
        let answer = finish(&server, &workflow, json!({ "n": 1 }));
        let whole = get(&server, &id(&answer), "");
        assert_eq!(answer["status"], status);
        for field in
            ["executionId", "workflowId", "status", "createdAt", "completedAt", "duration", "outputs"]
        {
            assert_eq!(answer[field], whole[field], "{field}");
            assert!(!answer[field].is_null(), "{field}: {answer}");
        }
        let entries = whole["nodeExecutions"].as_array().unwrap();
        let results: Map<String, Value> = entries
            .iter()
            .map(|entry| {
                let fields = ["status", "output", "error"];
                let known = fields
                    .into_iter()
                    .filter_map(|field| Some((field.to_owned(), entry.get(field)?.clone())));
                (entry["nodeId"].as_str().unwrap().to_owned(), known.collect())
            })
            .collect();
        assert_eq!(answer["nodeResults"], Value::Object(results));
        assert_eq!(whole["duration"], millis(&whole["completedAt"]) - millis(&whole["startedAt"]));
    }
}

#[test]
fn wfl_07_every_field_of_an_execution_and_its_nodes_is_reported() {
    let place = Place::new();
    let server = place.serve();
    let workflow = greeting(&server);
    let whole = get(&server, &id(&finish(&server, &workflow, json!({ "n": 1 }))), "");
    assert_eq!(whole["outputs"], whole["nodeExecutions"][1]["output"]);
    assert_eq!(whole["errors"], json!([]));
    let node = &whole["nodeExecutions"][1];
    for (field, value) in [
        ("nodeId", json!("greet")),
        ("nodeName", json!("Greet them")),
        ("nodeType", json!("shell")),
        ("status", json!("completed")),
        ("retryCount", json!(0)),
        ("duration", json!(millis(&node["completedAt"]) - millis(&node["startedAt"]))),
    ] {
        assert_eq!(node[field], value, "{field}: {node}");
    }
    assert_eq!(node["output"]["stdout"], "hi\n");
    let begin = &whole["nodeExecutions"][0];
    assert_eq!(
        (&begin["nodeName"], &begin["nodeType"], &begin["output"]),
        (&json!("Begin"), &json!("trigger"), &json!({ "n": 1 }))
    );
    for (link, rest) in [("self", ""), ("status", "/status"), ("logs", "/logs"), ("cancel", "/cancel")] {
        let path = format!("/api/v1/executions/{}{rest}", id(&whole));
        assert_eq!(whole["links"][link], path);
    }
    assert!(whole["links"]["websocket"].as_str().unwrap().starts_with("ws://"));
}

#[test]
fn wfl_03_wfl_07_its_end_is_estimated_from_its_start_while_it_runs() {
    let place = Place::new();
    let server = place.serve();
    let go = place.path("go");
    let workflow = server.define(&waits_for(&go));
    std::fs::write(&go, "").unwrap();
    let took = finish(&server, &workflow, json!({}))["duration"].as_i64().unwrap();
    std::fs::remove_file(&go).unwrap();
    drop(server);
    // What is known is looked up seldom, and by a server that has just started.
    let server = place.serve();
    let (_, answer) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({}));
    assert_eq!(answer["estimatedDuration"], took);
    let running = until_node(&server, &id(&answer), "wait", "running");
    assert_eq!(millis(&running["estimatedCompletion"]), millis(&running["startedAt"]) + took);
    std::fs::write(&go, "").unwrap();
    let ended = until(&server, &id(&answer), "completed");
    assert!(ended.get("estimatedCompletion").is_none(), "it has ended");
}

#[test]
fn wfl_08_a_page_has_a_hundred_lines_with_name_level_and_data() {
    let place = Place::new();
    let server = place.serve();
    let code = "for n in range(150): print(n)\nctx.logger.debug('d', {'deep': 1})\nctx.logger.error('e', {'statusCode': 503})";
    let node = json!({ "id": "talk", "name": "Talker", "type": "code", "config": { "language": "python", "code": code } });
    let workflow = server.define(&json!({ "name": "talks", "nodes": [node] }).to_string());
    let id = start(&server, &workflow, json!({ "debugMode": true }));
    until(&server, &id, "completed");
    let first = get(&server, &id, "/logs");
    assert_eq!(first["logs"].as_array().unwrap().len(), 100);
    assert_eq!(first["pagination"]["hasMore"], true);
    let cursor = first["pagination"]["cursor"].as_str().unwrap();
    let rest = get(&server, &id, &format!("/logs?cursor={cursor}"));
    assert_eq!(rest["pagination"], json!({ "hasMore": false }));
    let both = [&first, &rest].into_iter().flat_map(|page| page["logs"].as_array().unwrap());
    let printed: Vec<u32> = both.filter_map(|line| line["message"].as_str()?.parse().ok()).collect();
    assert_eq!(printed, (0..150).collect::<Vec<u32>>());
    for (level, message, key, value) in [("debug", "d", "deep", 1), ("error", "e", "statusCode", 503)] {
        let found = get(&server, &id, &format!("/logs?level={level}"))["logs"].clone();
        assert_eq!(found.as_array().unwrap().len(), 1, "{found}");
        let line = &found[0];
        assert_eq!((&line["message"], &line["level"]), (&json!(message), &json!(level)));
        assert_eq!((&line["nodeId"], &line["nodeName"]), (&json!("talk"), &json!("Talker")));
        assert_eq!(line["data"][key], value);
    }
    let info = get(&server, &id, "/logs?level=info&limit=1000")["logs"].clone();
    let info: Vec<&str> =
        info.as_array().unwrap().iter().filter_map(|line| line["message"].as_str()).collect();
    assert_eq!(info.iter().filter(|message| message.parse::<u32>().is_ok()).count(), 150);
    assert!(info.iter().all(|message| !["d", "e"].contains(message)), "{info:?}");
    // Later than the first line and all others of its millisecond.
    let (from, all) = (&first["logs"][0]["timestamp"], get(&server, &id, "/logs?limit=1000"));
    let later = all["logs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|line| millis(&line["timestamp"]) > millis(from))
        .count();
    let since = get(&server, &id, &format!("/logs?limit=1000&since={}", from.as_str().unwrap()));
    assert_eq!(since["logs"].as_array().unwrap().len(), later);
}

#[test]
fn wfl_12_the_timeout_is_300000_ms_and_stops_while_queued_or_paused() {
    let place = Place::new();
    let server = place.serve();
    let asks = server.define(r#"{"name": "asks", "nodes": [{"id": "ask", "type": "approval"}]}"#);
    let limit = |id: &str| {
        let events = get(&server, id, "/events");
        let started =
            events["events"].as_array().unwrap().iter().find(|event| event["event"] == "execution.started");
        let started = started.unwrap();
        millis(&started["data"]["deadline"]) - millis(&started["timestamp"])
    };
    let usual = start(&server, &asks, json!({}));
    assert_eq!(limit(&usual), 300_000);
    // A second is over when an execution that began later has run out of its second.
    let paused = start(&server, &asks, json!({ "timeout": 1_000 }));
    until(&server, &paused, "paused");
    assert_eq!(limit(&paused), 1_000);
    let soon = jiff::Timestamp::now() + std::time::Duration::from_millis(1_500);
    let trigger = server.define(r#"{"name": "begins", "nodes": [{"id": "t", "type": "trigger"}]}"#);
    let queued = start(&server, &trigger, json!({ "timeout": 1_000, "scheduledAt": soon.to_string() }));
    let waits = server.define(&waits_for(&place.path("never")));
    let clock = start(&server, &waits, json!({ "timeout": 1_000 }));
    let failed = until(&server, &clock, "failed");
    assert_eq!(failed["errors"].as_array().unwrap().last().unwrap()["code"], "EXECUTION_TIMEOUT");
    assert_eq!(get(&server, &paused, "")["status"], "paused");
    let path = format!("/api/v1/executions/{paused}/actions/ask/complete");
    assert!(server.post(&path, &json!({ "outcome": "Succeeded" })).0.is_success());
    assert_eq!(until(&server, &paused, "completed")["errors"], json!([]));
    until(&server, &queued, "completed");
}

#[test]
fn wfl_30_an_error_has_every_field_and_only_who_debugs_sees_where_it_arose() {
    let place = Place::new();
    let server = place.serve();
    let node = json!({ "id": "bad", "name": "The bad one", "type": "shell",
        "config": { "command": "echo '{\"success\": false, \"error\": {\"code\": \"RATE_LIMIT_EXCEEDED\", \"message\": \"slow down\"}}' > $WINDLASS_OUTPUTS/result.json",
            "retryPolicy": { "maxRetries": 0 } } });
    let workflow = server.define(&json!({ "name": "errs", "nodes": [node] }).to_string());
    let answer = finish(&server, &workflow, json!({}));
    let whole = get(&server, &id(&answer), "");
    let error = &whole["errors"][0];
    let at = &error["timestamp"];
    let expected = json!({ "code": "RATE_LIMIT_EXCEEDED", "class": "rate_limit", "kind": "rate_limit", "message": "slow down",
        "nodeId": "bad", "nodeName": "The bad one", "timestamp": at, "retryable": true, "attempt": 1, "details": { "category": "transient", "task": "bad" } });
    assert_eq!(*error, expected);
    assert_eq!(*at, whole["nodeExecutions"][0]["completedAt"]);
    assert_eq!(
        (&whole["nodeExecutions"][0]["error"], &answer["nodeResults"]["bad"]["error"]),
        (error, error)
    );
    let plain = get(&server, &id(&finish(&server, &server.define(FAILS), json!({}))), "");
    assert_eq!(plain["errors"][0]["retryable"], false);
}
