//! Nodes as clients of a server see them: order, state, debugging, agents.

use crate::executions::{finish, get, start, until, until_node};
use crate::model::model;
use crate::rig::{Place, Server, read_answer};
use serde_json::{Value, json};

fn edge(source: &str, target: &str) -> Value {
    json!({ "source": source, "target": target })
}

fn python(id: &str, code: &str) -> Value {
    json!({ "id": id, "type": "code", "config": { "language": "python", "code": code, "retryPolicy": { "maxRetries": 0 } } })
}

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

#[test]
fn wfl_02_wfl_14_urgent_executions_run_first_when_slots_are_few() {
    let place = Place::new().with(&["--slots", "1"]);
    let server = place.serve();
    let (go, order) = (place.data().join("go"), place.data().join("order"));
    let shell =
        |id: &str, command: String| json!([{ "id": id, "type": "shell", "config": { "command": command } }]);
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", go.display());
    let blocker = define(&server, "blocker", shell("x", wait), json!([]));
    let write = format!("echo {{{{ inputs.name }}}} >> {}", order.display());
    let writer = define(&server, "writer", shell("x", write), json!([]));
    let blocking = start(&server, &blocker, json!({}));
    until_node(&server, &blocking, "x", "running");
    let mut started = Vec::new();
    for name in ["low", "unsaid", "normal", "high", "critical"] {
        let options = if name == "unsaid" { json!({}) } else { json!({ "priority": name }) };
        let body = json!({ "inputs": { "name": name }, "options": options });
        let (status, answer) = server.post(&format!("/api/v1/workflows/{writer}/execute"), &body);
        assert_eq!(status, 202, "{answer}");
        started.push(answer["executionId"].as_str().unwrap().to_owned());
    }
    for id in &started {
        assert_eq!(entry(&get(&server, id, ""), "x")["status"], "pending", "there is one slot");
    }
    std::fs::write(&go, "").unwrap();
    for id in started {
        until(&server, &id, "completed");
    }
    let order = std::fs::read_to_string(order).unwrap();
    assert_eq!(order.lines().collect::<Vec<_>>(), ["critical", "high", "unsaid", "normal", "low"]);
}

/// A caller who may only execute sets inputs, and they never become part of a program.
#[test]
fn wfl_31_a_member_runs_no_command_of_his_own_through_an_input() {
    let place = Place::new();
    let server = place.serve();
    let page = include_str!("../../../../docs/workflows.md");
    let text = page.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    let manual = server.define(text);
    let words = json!({ "command": "printf '%s|' {{ inputs.name }} x{{ inputs.name }}y" });
    let own =
        define(&server, "words", json!([{ "id": "greet", "type": "shell", "config": words }]), json!([]));
    let member = server.post("/api/v1/tokens", &json!({ "name": "m", "role": "member" })).1["token"].clone();
    let marker = place.data().join("ran");
    let run = |workflow: &str, name: &str| {
        let request = server.bare(reqwest::Method::POST, &format!("/api/v1/workflows/{workflow}/execute"));
        let body = json!({ "inputs": { "name": name }, "options": { "async": false } });
        let (_, ended) =
            read_answer(request.bearer_auth(member.as_str().unwrap()).json(&body).send().unwrap());
        ended["nodeResults"]["greet"]["output"]["stdout"]
            .as_str()
            .unwrap_or_else(|| panic!("{ended}"))
            .to_owned()
    };
    let quoted = text.replace("echo \"Hello, $NAME!\"", "echo \"Hello, {{ inputs.name }}!\"");
    assert_ne!(quoted, text);
    let quoted = server.define(&quoted);
    let touch = format!("touch {}", marker.display());
    for name in [
        format!("x'; {touch}; echo '"),
        format!("\"; {touch}; \""),
        format!("$({touch})"),
        format!("`{touch}`"),
        format!("a\n{touch}\n"),
        "two words * -n \\ ${HOME}".to_owned(),
    ] {
        assert_eq!(run(&manual, &name), format!("Hello, {name}!\n"));
        assert_eq!(run(&quoted, &name), format!("Hello, {name}!\n"));
        assert_eq!(run(&own, &name), format!("{name}|x{name}y|"));
    }
    assert!(!marker.exists(), "something ran");
    let run = text.replace("echo \"Hello, $NAME!\"", "eval \"echo {{ inputs.name }}\"");
    let request = server.request(reqwest::Method::POST, "/api/v1/workflows");
    let (status, refused) =
        read_answer(request.header("Content-Type", "application/yaml").body(run).send().unwrap());
    assert_eq!(status.as_u16(), 400, "{refused}");
    assert!(refused.to_string().contains("E0151"), "{refused}");
}

#[test]
fn wfl_17_wfl_30_only_debug_mode_reports_where_an_error_arose_and_keeps_debug_lines() {
    let place = Place::new();
    let server = place.serve();
    let code = "ctx.logger.debug('a detail')\nctx.logger.info('a fact')\nraise ValueError('broken')";
    let id = define(&server, "debugged", json!([python("x", code)]), json!([]));
    for debug in [false, true] {
        let execution = start(&server, &id, json!({ "debugMode": debug }));
        let failed = until(&server, &execution, "failed");
        let error = &failed["errors"][0];
        assert_eq!(
            error["stack"].as_str().is_some_and(|stack| stack.contains("ValueError")),
            debug,
            "{failed}"
        );
        assert_eq!(entry(&failed, "x")["error"]["stack"].is_string(), debug, "{failed}");
        assert!(error["details"]["stack"].is_null(), "{failed}");
        let (_, logs) = read_answer(server.get(&format!("/api/v1/executions/{execution}/logs")));
        let said = |text: &str| logs["logs"].as_array().unwrap().iter().any(|line| line["message"] == text);
        assert_eq!((said("a detail"), said("a fact")), (debug, true), "{logs}");
    }
}

#[test]
fn wfl_22_wfl_34_state_outlives_the_server_and_no_other_execution_sees_it() {
    let place = Place::new();
    let server = place.serve();
    let nodes = json!([
        python("set", "assert ctx.get_state('seen') is None\nctx.set_state('seen', {'by': ctx.node_id})\nresult = 1"),
        { "id": "ask", "type": "approval", "config": {} },
        python("get", "result = {'seen': ctx.get_state('seen'), 'tenant': ctx.tenant_id, 'execution': ctx.execution_id}"),
    ]);
    let edges = json!([edge("set", "ask"), edge("ask", "get")]);
    let id = define(&server, "stateful", nodes, edges);
    let (first, second) = (start(&server, &id, json!({})), start(&server, &id, json!({})));
    until(&server, &first, "paused");
    until(&server, &second, "paused");
    // Killed, not asked to end.
    drop(server);
    let server = place.serve();
    for execution in [first, second] {
        let path = format!("/api/v1/executions/{execution}/actions/ask/complete");
        assert!(server.post(&path, &json!({ "outcome": "Succeeded" })).0.is_success());
        let ended = until(&server, &execution, "completed");
        let given = &entry(&ended, "get")["output"];
        assert_eq!(
            (&given["seen"], &given["tenant"]),
            (&json!({ "by": "set" }), &json!("default")),
            "{ended}"
        );
        assert_eq!(given["execution"], json!(execution));
    }
}

#[test]
fn wfl_21_wfl_23_an_agent_runs_its_node_and_its_decision_is_reported() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1");
    let server = place.serve();
    let nodes = json!([
        { "id": "t", "type": "trigger", "config": {} },
        { "id": "ai", "type": "ai_agent", "config": { "model": "m", "baseUrl": model(), "userPromptTemplate": "Look" } },
        { "id": "look", "type": "shell", "description": "Looks", "config": { "command": "echo seen" } },
    ]);
    let id = define(&server, "asking", nodes, json!([edge("t", "ai"), edge("ai", "look")]));
    let answer = finish(&server, &id, json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
    let execution = answer["executionId"].as_str().unwrap();
    let whole = get(&server, execution, "");
    let agent = entry(&whole, "ai");
    assert_eq!(agent["output"]["text"], "it is done", "{whole}");
    assert_eq!(
        (&agent["metadata"]["apiCalls"], &agent["metadata"]["tokensUsed"]),
        (&json!(2), &json!(10)),
        "{whole}"
    );
    assert_eq!(entry(&whole, "look")["status"], "completed", "{whole}");
    let events = get(&server, execution, "/events").to_string();
    assert_eq!(events.matches("agent.decided").count(), 1, "{events}");
}

#[test]
fn wfl_02_nodes_have_the_states_of_the_document() {
    let place = Place::new();
    let server = place.serve();
    let shell = |id: &str, config: Value| json!({ "id": id, "type": "shell", "config": config });
    let wait = format!("until [ -e {} ]; do sleep 0.02; done", place.data().join("go").display());
    let status = |id: &str, node: &str| entry(&get(&server, id, ""), node)["status"].clone();
    let never = json!({ "command": "exit 1", "retryPolicy": { "maxRetries": 3, "initialDelayMs": 600_000, "maxDelayMs": 600_000, "retryableErrors": ["SHELL_EXIT"] } });
    let retrying =
        start(&server, &define(&server, "backoff", json!([shell("x", never)]), json!([])), json!({}));
    until_node(&server, &retrying, "x", "retrying");
    let nodes = json!([
        { "id": "t", "type": "trigger" },
        shell("x", json!({ "command": wait })),
        shell("next", json!({ "command": "true" })),
    ]);
    let waits = define(&server, "waits", nodes, json!([edge("t", "x"), edge("x", "next")]));
    let waiting = start(&server, &waits, json!({}));
    until_node(&server, &waiting, "x", "running");
    assert_eq!((status(&waiting, "t"), status(&waiting, "next")), (json!("completed"), json!("pending")));
    let nodes = json!([
        shell("bad", json!({ "command": "exit 1", "retryPolicy": { "maxRetries": 0 } })),
        shell("after", json!({ "command": "true" })),
    ]);
    let skips = define(&server, "skips", nodes, json!([edge("bad", "after")]));
    let id = start(&server, &skips, json!({ "failureMode": "continue_on_error" }));
    until(&server, &id, "failed");
    assert_eq!((status(&id, "bad"), status(&id, "after")), (json!("failed"), json!("skipped")));
    for id in [&retrying, &waiting] {
        let (code, body) = server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
        assert!(code.is_success(), "{body}");
    }
    assert_eq!(status(&waiting, "next"), "skipped", "it never will");
}
