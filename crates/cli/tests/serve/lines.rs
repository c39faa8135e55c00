//! The log of an execution: what became of it and of its nodes, and the requests that they made.

use crate::executions::{FAILS, TWO, finish, get, start, until, waits_for};
use crate::receiver::Receiver;
use crate::rig::{Place, Server, read_answer};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn place() -> Place {
    Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1")
}

/// Asks once more after an answer that is no 2xx.
fn asking(server: &Server, url: &str) -> String {
    let config = json!({ "url": format!("{url}?key=hidden"), "method": "GET" });
    let nodes = json!([
        { "id": "t", "type": "trigger", "name": "Trigger", "config": {} },
        { "id": "ask", "type": "http_api", "name": "HTTP Request", "config": config,
          "retryPolicy": { "maxRetries": 1, "initialDelayMs": 1, "jitterFactor": 0 } },
    ]);
    let edges = json!([{ "source": "t", "target": "ask" }]);
    server.define(&json!({ "name": "asks", "nodes": nodes, "edges": edges }).to_string())
}

fn logs(server: &Server, id: &str, query: &str) -> Vec<Value> {
    get(server, id, &format!("/logs?{query}"))["logs"].as_array().unwrap().clone()
}

#[track_caller]
fn line<'l>(logs: &'l [Value], message: &str) -> &'l Value {
    let found = logs.iter().find(|line| line["message"].as_str().unwrap().starts_with(message));
    found.unwrap_or_else(|| panic!("no `{message}`: {logs:?}"))
}

#[test]
fn wfl_08_the_log_has_the_lines_of_the_document() {
    let place = place();
    let server = place.serve();
    let busy = Receiver::answering(|before, _| match before {
        0 => "503 Service Unavailable".to_owned(),
        _ => "200 OK".to_owned(),
    });
    let workflow = asking(&server, &busy.url);
    let body = json!({ "inputs": { "n": 1 }, "options": { "async": false, "debugMode": true } });
    let (_, ended) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
    assert_eq!(ended["status"], "completed", "{ended}");
    let id = ended["executionId"].as_str().unwrap();
    let all = logs(&server, id, "");
    let began = &all[0];
    assert_eq!(
        (&began["message"], &began["level"], &began["nodeId"], &began["nodeName"], &began["data"]),
        (
            &json!("Workflow execution started"),
            &json!("info"),
            &json!("t"),
            &json!("Trigger"),
            &json!({ "inputs": { "n": 1 } })
        )
    );
    let sent = line(&all, "Sending request");
    assert_eq!((&sent["level"], &sent["nodeName"]), (&json!("debug"), &json!("HTTP Request")));
    assert_eq!((&sent["data"]["method"], &sent["data"]["url"]), (&json!("GET"), &json!(busy.url)));
    let failed = line(&all, "Request failed with status 503");
    assert_eq!((&failed["level"], &failed["nodeId"]), (&json!("error"), &json!("ask")));
    assert_eq!((&failed["data"]["statusCode"], &failed["data"]["retryAttempt"]), (&json!(503), &json!(1)));
    assert!(failed["data"]["durationMs"].is_u64(), "{failed}");
    let attempt = line(&all, "Attempt 1 failed");
    assert_eq!(
        (&attempt["data"]["code"], &attempt["data"]["attempt"]),
        (&json!("SERVICE_UNAVAILABLE"), &json!(1))
    );
    let answered = line(&all, "Request answered with status 200");
    assert_eq!((&answered["level"], &answered["data"]["retryAttempt"]), (&json!("info"), &json!(2)));
    assert_eq!(all.last().unwrap()["message"], "Workflow execution completed");
    assert!(!json!(all).to_string().contains("hidden"), "queries may be secret");
    let of_node = logs(&server, id, "nodeId=ask&level=error");
    assert_eq!(of_node, [failed.clone(), attempt.clone()]);
}

#[test]
fn wfl_08_wfl_17_debug_lines_are_for_executions_that_are_looked_at_closely() {
    let place = place();
    let server = place.serve();
    let receiver = Receiver::new();
    let ended = finish(&server, &asking(&server, &receiver.url), json!({}));
    let all = logs(&server, ended["executionId"].as_str().unwrap(), "");
    assert!(all.iter().all(|line| line["level"] != "debug"), "{all:?}");
    line(&all, "Request answered with status 200");
}

#[test]
fn wfl_08_a_failure_of_every_node_type_is_in_the_log_with_its_code() {
    let place = Place::new();
    let server = place.serve();
    let ended = finish(&server, &server.define(FAILS), json!({}));
    let errors = logs(&server, ended["executionId"].as_str().unwrap(), "level=error");
    let failed = line(&errors, "Node failed: ");
    assert_eq!(failed["nodeId"], "b");
    assert!(failed["data"]["code"].is_string() && failed["data"]["attempt"] == 1, "{failed}");
    assert!(line(&errors, "Workflow execution failed").get("nodeId").is_none());
}

#[test]
fn wfl_08_pages_of_one_line_report_what_one_page_reports() {
    let place = Place::new();
    let server = place.serve();
    let ended = finish(&server, &server.define(TWO), json!({}));
    let id = ended["executionId"].as_str().unwrap();
    for filter in ["", "level=info&", "nodeId=b&"] {
        let (mut walked, mut query) = (Vec::new(), format!("{filter}limit=1"));
        loop {
            let page = get(&server, id, &format!("/logs?{query}"));
            walked.extend(page["logs"].as_array().unwrap().clone());
            let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
            query = format!("{filter}limit=1&cursor={cursor}");
        }
        assert_eq!(walked, logs(&server, id, filter.trim_end_matches('&')), "{filter}");
    }
}

/// Walks the log from its end to its beginning with pages of `limit` lines.
fn walk_back(server: &Server, id: &str, filter: &str, limit: usize) -> Vec<Value> {
    let (mut walked, first) = (Vec::new(), format!("{filter}order=desc&limit={limit}"));
    let mut query = first.clone();
    loop {
        let page = get(server, id, &format!("/logs?{query}"));
        walked.extend(page["logs"].as_array().unwrap().clone());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("{first}&cursor={cursor}");
    }
    walked
}

#[test]
fn the_log_is_read_from_its_end_and_from_each_position_in_both_directions() {
    let place = Place::new();
    let server = place.serve();
    let text = r#"{"apiVersion": "noetl.io/v2", "kind": "Playbook", "metadata": {"name": "many"}, "workflow": [
        {"step": "each", "loop": {"in": "{{ range(300) | list }}", "iterator": "n"}, "tool": {"kind": "noop"},
         "next": {"arcs": [{"step": "talk"}]}},
        {"step": "talk", "tool": {"kind": "shell", "command": "seq 1 40; echo out >&2; seq 41 80"}}]}"#;
    let ended = finish(&server, &server.define(text), json!({}));
    let id = ended["executionId"].as_str().unwrap();
    for filter in ["", "level=info&", "nodeId=each&", "nodeId=talk&"] {
        let mut all = logs(&server, id, &format!("{filter}limit=1000"));
        assert!(!all.is_empty(), "{filter}");
        let from_end = [1, 7, 1000].map(|limit| walk_back(&server, id, filter, limit));
        all.reverse();
        from_end.iter().for_each(|walked| assert_eq!(*walked, all, "{filter}"));
    }
    // Each page leads to the lines before and after it.
    let all = logs(&server, id, "limit=1000");
    let first = get(&server, id, "/logs?order=desc&limit=30");
    let cursor = |page: &Value, name: &str| page[name].as_str().unwrap().to_owned();
    assert_eq!(logs(&server, id, &format!("cursor={}", cursor(&first, "newer"))), Vec::<Value>::new());
    let rest = logs(&server, id, &format!("limit=1000&cursor={}", cursor(&first, "older")));
    assert_eq!(rest, all[all.len() - 30..]);
    let begin = get(&server, id, "/logs?limit=30");
    let (older, newer) = (cursor(&begin, "older"), cursor(&begin, "newer"));
    assert_eq!(logs(&server, id, &format!("order=desc&cursor={older}")), Vec::<Value>::new());
    let back: Vec<Value> = all[..30].iter().rev().cloned().collect();
    assert_eq!(logs(&server, id, &format!("order=desc&cursor={newer}")), back);
}

#[test]
fn lines_that_are_written_later_follow_the_newest_position() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("go");
    let id = start(&server, &server.define(&waits_for(&file)), json!({}));
    let newest = get(&server, &id, "/logs?order=desc");
    std::fs::write(&file, "").unwrap();
    let (before, cursor) = (newest["logs"].as_array().unwrap().clone(), newest["newer"].as_str().unwrap());
    until(&server, &id, "completed");
    let mut found: Vec<Value> = before.into_iter().rev().collect();
    found.extend(logs(&server, &id, &format!("cursor={cursor}")));
    assert_eq!(found, logs(&server, &id, ""));
}

#[test]
fn a_minimum_level_has_the_lines_of_that_level_and_above() {
    let place = Place::new();
    let server = place.serve();
    let fails = r#"{"name": "loud", "nodes": [{"id": "a", "type": "shell",
        "config": {"command": "echo one; echo two >&2; exit 3"}}]}"#;
    let ended = finish(&server, &server.define(fails), json!({}));
    let id = ended["executionId"].as_str().unwrap();
    let levels = |query: &str| {
        let found: BTreeSet<String> =
            logs(&server, id, query).iter().map(|line| line["level"].as_str().unwrap().to_owned()).collect();
        found.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(levels("minLevel=info"), ["error", "info", "warn"]);
    assert_eq!(levels("minLevel=warn"), ["error", "warn"]);
    assert_eq!(levels("minLevel=error"), ["error"]);
    assert_eq!(levels("level=warn"), ["warn"]);
    for wrong in ["minLevel=loud", "level=warn&minLevel=warn", "order=random"] {
        let (status, body) = read_answer(server.get(&format!("/api/v1/executions/{id}/logs?{wrong}")));
        assert_eq!(status.as_u16(), 400, "{wrong}: {body}");
    }
}

#[test]
fn wfl_17_a_dry_run_finds_what_would_fail() {
    let place = place();
    let server = place.serve();
    let nodes = json!([
        { "id": "t", "type": "trigger", "config": { "manualConfig": { "inputPayload": {
            "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } } } },
        { "id": "ask", "type": "http_api", "config": {
            "url": "http://127.0.0.1:9/", "headers": [{ "key": "X", "value": "{{ NOT_THERE }}" }] } },
        { "id": "sub", "type": "workflow", "config": { "workflowName": "nowhere" } },
    ]);
    let edges = json!([{ "source": "t", "target": "ask" }, { "source": "ask", "target": "sub" }]);
    let workflow = server.define(&json!({ "name": "w", "nodes": nodes, "edges": edges }).to_string());
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let checked = |inputs: Value| {
        let (status, checked) =
            server.post(&path, &json!({ "inputs": inputs, "options": { "dryRun": true } }));
        assert_eq!(status.as_u16(), 200, "{checked}");
        let errors = checked["errors"].as_array().unwrap().clone();
        assert_eq!(checked["valid"], errors.is_empty());
        errors
            .iter()
            .map(|error| error["message"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let errors = checked(json!({ "n": "one" }));
    for part in ["NOT_THERE", "nowhere"] {
        assert!(errors.contains(part), "{part}: {errors}");
    }
    assert_eq!(checked(json!({ "n": "one" })).split("; ").count(), 3, "{errors}");
    let secret = server
        .request(reqwest::Method::PUT, "/api/v1/secrets/NOT_THERE")
        .json(&json!({ "value": "now it is there" }));
    assert!(secret.send().unwrap().status().is_success());
    server.define("{\"name\": \"nowhere\", \"nodes\": [{\"id\": \"t\", \"type\": \"trigger\", \"config\": {}}], \"edges\": []}");
    assert_eq!(checked(json!({ "n": 1 })), "");
}

#[test]
fn answers_say_nothing_of_what_is_inside() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(TWO);
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (_, refused) = server.post(&path, &json!({ "options": { "timeout": -5 } }));
    let error = &refused["error"];
    assert_eq!(error["details"][0]["path"], "options.timeout");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("`options.timeout`") && message.contains("integer"), "{message}");
    assert!(!message.contains("u64") && !message.contains("line 1"), "{message}");

    let ask = json!([{ "id": "t", "type": "trigger", "config": {} }, { "id": "ask", "type": "approval", "config": {} }]);
    let edges = json!([{ "source": "t", "target": "ask" }]);
    let asking = server.define(&json!({ "name": "asks", "nodes": ask, "edges": edges }).to_string());
    let id = finish(&server, &asking, json!({}))["executionId"].as_str().unwrap().to_owned();
    let answer = |outcome: &str| {
        server.post(&format!("/api/v1/executions/{id}/actions/ask/complete"), &json!({ "outcome": outcome }))
    };
    assert_eq!(answer("Succeeded").0.as_u16(), 200);
    let (status, refused) = answer("Failed");
    assert_eq!(status.as_u16(), 409, "{refused}");
    assert!(!refused.to_string().contains("Fence"), "{refused}");

    let bad = json!({ "name": "w", "edges": [{ "source": "t", "target": "c" }], "nodes": [
        { "id": "t", "type": "trigger", "config": {} },
        { "id": "c", "type": "conditional", "config": { "conditions": [
            { "id": "x", "variable": "inputs.a", "operator": "regex_match", "value": "(" }] } }] });
    let (status, refused) = server.post("/api/v1/workflows", &bad);
    assert_eq!(status.as_u16(), 400, "{refused}");
    assert!(refused.to_string().contains("is not a regular expression"), "{refused}");
}

#[test]
fn an_expression_that_fails_is_reported_with_its_field() {
    let place = Place::new();
    let server = place.serve();
    let text = "metadata: {name: w}\nworkflow:\n- {step: a, tool: {kind: noop, result: {well: 1, ill: '{{ 1 / 0 }}'}}}\n";
    let ended = finish(&server, &server.define(text), json!({}));
    let message =
        get(&server, ended["executionId"].as_str().unwrap(), "")["errors"][0]["message"].to_string();
    assert!(message.contains("ill") && message.contains("1 / 0"), "{message}");
}

#[test]
fn the_openapi_document_has_every_route_and_closed_lists_of_words() {
    let place = Place::new();
    let server = place.serve();
    let document = read_answer(server.get("/api/openapi.json")).1;
    assert!(document["paths"]["/hooks/{path}"]["post"].is_object());
    assert!(document["paths"]["/api/v1/executions/{executionId}/artifacts/{digest}"]["get"].is_object());
    let schemas = &document["components"]["schemas"];
    let result = &schemas["FiringResult"]["properties"];
    assert!(
        result["metadata"].is_object() && schemas["NodeMetadata"]["properties"]["tokensUsed"].is_object()
    );
    assert!(schemas["Metadata"]["properties"]["retryOf"].is_object());
    assert_eq!(schemas["RetryPolicy"]["additionalProperties"], false);
    for (of, field) in [("Accepted", "status"), ("Finished", "status"), ("FiringResult", "status")] {
        let schema = &schemas[of]["properties"][field];
        let name = schema["$ref"].as_str().or(schema["allOf"][0]["$ref"].as_str());
        let name = name.unwrap_or_else(|| panic!("{of}.{field}: {schema}")).rsplit('/').next().unwrap();
        assert!(schemas[name]["enum"].is_array(), "{of}.{field}");
    }
}
