//! Names of a definition as keys that callers choose: an input, a patch, a retry, a parent or a hook's body must not
//! replace the result of a step or a stored secret.

use crate::rig::{read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const SECRET: &str = "generated-9f3a71c0d2";

/// Keys that an attacker sends: every name of the definitions below, and parts of the event.
fn forged() -> Value {
    let names = ["check", "later", "error", "result", "response", "loop"];
    let mut forged: Value =
        names.iter().map(|name| ((*name).to_owned(), json!({ "ok": true, "code": "FORGED" }))).collect();
    forged["signed"] = json!(true);
    forged["KEY"] = json!("x");
    forged
}

fn path_of(execution: &Value, rest: &str) -> String {
    format!("/api/v1/executions/{}/{rest}", execution["executionId"].as_str().unwrap())
}

/// Starts a workflow under a token and waits until it rests.
#[track_caller]
fn run(stage: &Stage, token: &str, workflow: &str, inputs: &Value) -> Value {
    let body = json!({ "inputs": inputs, "options": { "async": false } });
    let path = format!("/api/v1/workflows/{workflow}/execute");
    let (status, ended) = stage.send(token, Method::POST, &path, &body);
    assert_eq!(status, StatusCode::OK, "{ended}");
    ended
}

fn status<'e>(ended: &'e Value, node: &str) -> &'e str {
    ended["nodeResults"][node]["status"].as_str().unwrap_or("none")
}

fn define(stage: &Stage, definition: &Value) -> String {
    let (status, made) = stage.upload(stage.server.token(), &definition.to_string());
    assert!(status.is_success(), "{made}");
    made["id"].as_str().unwrap().to_owned()
}

fn member(stage: &Stage) -> String {
    let (_, made) = stage.server.post("/api/v1/tokens", &json!({ "name": "m", "role": "member" }));
    made["token"].as_str().unwrap().to_owned()
}

fn set_secret(stage: &Stage, name: &str) {
    let path = format!("/api/v1/secrets/{name}");
    let (status, made) = read_answer(
        stage.server.request(Method::PUT, &path).json(&json!({ "value": SECRET })).send().unwrap(),
    );
    assert!(status.is_success(), "{made}");
}

/// The execution when it has ended like that, with its nodes by their ids as a start returns them.
#[track_caller]
fn when(stage: &Stage, execution: &Value, is: &str) -> Value {
    until("the execution gets there", || {
        let (_, mut seen) = read_answer(stage.server.get(path_of(execution, "").trim_end_matches('/')));
        let nodes = seen["nodeExecutions"].as_array().cloned().unwrap_or_default();
        seen["nodeResults"] =
            nodes.into_iter().map(|node| (node["nodeId"].as_str().unwrap().to_owned(), node)).collect();
        let has_ended = !seen["completedAt"].is_null();
        assert!(!has_ended || seen["status"] == is, "{seen}");
        has_ended.then_some(seen)
    })
}

/// Pays only if `check` said yes. `check` says no, and `later` comes after the decision.
fn payment(name: &str) -> Value {
    let condition = |id: &str, variable: &str| json!({ "id": id, "variable": variable, "operator": "equals", "value": true });
    json!({
        "name": name,
        "nodes": [
            { "id": "start", "type": "trigger" },
            { "id": "ask", "type": "approval", "config": { "message": "Go on?" } },
            { "id": "check", "type": "code", "config": { "language": "python", "code": "result = {'ok': False}" } },
            { "id": "decide", "type": "conditional", "config": { "conditions": [
                condition("paid", "check.ok"), condition("late", "{{ later.ok }}"), condition("own", "{{ decide.ok }}"),
            ] } },
            { "id": "pay", "type": "shell", "config": { "command": "echo paid" } },
            { "id": "later", "type": "shell", "config": {
                "command": "test {{ check.ok }} = false && printf %s \"$KEY\" | wc -c", "env": { "KEY": "{{ KEY }}" },
            } },
        ],
        "edges": [
            { "source": "start", "target": "ask" },
            { "source": "ask", "target": "check" },
            { "source": "check", "target": "decide" },
            { "source": "decide", "target": "pay", "sourceHandle": "paid" },
            { "source": "decide", "target": "pay", "sourceHandle": "late" },
            { "source": "decide", "target": "pay", "sourceHandle": "own" },
            { "source": "decide", "target": "later", "sourceHandle": "false" },
        ],
    })
}

#[track_caller]
fn unpaid(ended: &Value) {
    assert_eq!((status(ended, "pay"), status(ended, "later")), ("skipped", "completed"), "{ended}");
    let length = ended["nodeResults"]["later"]["output"]["stdout"].as_str().unwrap().trim();
    assert_eq!(length, SECRET.len().to_string(), "the secret was replaced: {ended}");
}

#[test]
fn neither_inputs_nor_patches_nor_a_retry_replace_results_and_secrets_of_a_workflow() {
    let stage = Stage::new();
    let member = member(&stage);
    set_secret(&stage, "KEY");
    let mut payment = payment("payment");
    // Only what failed can be retried.
    payment["nodes"]
        .as_array_mut()
        .unwrap()
        .push(json!({ "id": "end", "type": "shell", "config": { "command": "false" } }));
    payment["edges"].as_array_mut().unwrap().push(json!({ "source": "later", "target": "end" }));
    let workflow = define(&stage, &payment);
    for (inputs, patch) in [(forged(), json!({ "any": 1 })), (json!({}), forged())] {
        let begun = run(&stage, &member, &workflow, &inputs);
        assert_eq!(begun["status"], "paused", "{begun}");
        let (status, patched) = stage.send(&member, Method::PATCH, &path_of(&begun, "context"), &patch);
        assert_eq!(status, StatusCode::OK, "{patched}");
        let (status, approved) =
            stage.server.post(&path_of(&begun, "actions/ask/complete"), &json!({ "outcome": "Succeeded" }));
        assert_eq!(status, StatusCode::OK, "{approved}");
        unpaid(&when(&stage, &begun, "failed"));
        // An approval keeps members from changing inputs of a retry; an editor may.
        let again = json!({ "fromNode": "decide", "inputs": forged() });
        let (status, again) = stage.server.post(&path_of(&begun, "retry"), &again);
        assert_eq!(status, StatusCode::ACCEPTED, "{again}");
        unpaid(&when(&stage, &again, "failed"));
    }
}

#[test]
fn a_failed_check_is_not_replaced_by_an_input() {
    let stage = Stage::new();
    let member = member(&stage);
    let condition = json!({ "id": "yes", "variable": "check.ok", "operator": "equals", "value": true });
    let workflow = json!({
        "name": "handled",
        "nodes": [
            { "id": "check", "type": "code", "config": { "language": "python", "code": "raise ValueError('no')" } },
            { "id": "decide", "type": "conditional", "config": { "conditions": [condition] } },
            { "id": "pay", "type": "code", "config": { "language": "python", "code": "result = 1" } },
            { "id": "log", "type": "code", "config": { "language": "python", "code": "result = inputs.get('check', 'nothing')",
                "inputVariables": { "seen": "{{ check }}" } } },
        ],
        "edges": [
            { "source": "check", "target": "decide", "sourceHandle": "error" },
            { "source": "decide", "target": "pay", "sourceHandle": "yes" },
            { "source": "decide", "target": "log", "sourceHandle": "false" },
        ],
    });
    let ended = run(&stage, &member, &define(&stage, &workflow), &forged());
    assert_eq!((status(&ended, "pay"), status(&ended, "log")), ("skipped", "completed"), "{ended}");
    assert_eq!(ended["nodeResults"]["log"]["output"], "nothing", "{ended}");
}

#[test]
fn a_program_takes_no_input_for_the_result_of_a_node_further_up() {
    let stage = Stage::new();
    let code = |id: &str, code: &str| json!({ "id": id, "type": "code", "config": { "language": "python", "code": code } });
    let workflow = json!({
        "name": "further",
        "nodes": [code("check", "result = 1"), code("mid", "result = 2"),
            code("pay", "result = {'check': inputs.get('check', 'nothing'), 'large': len(inputs.get('large', ''))}")],
        "edges": [{ "source": "check", "target": "mid" }, { "source": "mid", "target": "pay" }],
    });
    let (workflow, member) = (define(&stage, &workflow), member(&stage));
    for length in [10, 100_000] {
        let inputs = json!({ "check": "FORGED", "large": "x".repeat(length) });
        let ended = run(&stage, &member, &workflow, &inputs);
        let seen = &ended["nodeResults"]["pay"]["output"];
        assert_eq!(*seen, json!({ "check": "nothing", "large": length }), "{}", ended["status"]);
    }
}

#[test]
fn an_input_called_input_is_no_argument_of_a_playbook() {
    let stage = Stage::new();
    let playbook = json!({
        "metadata": { "name": "arguments" },
        "workflow": [
            { "step": "check", "tool": { "kind": "noop", "result": { "ok": false } }, "next": { "arcs": [
                { "step": "pay", "when": "{{ check.ok }}", "args": { "verified": true } },
                { "step": "paid", "when": "{{ input.verified }}" }, { "step": "pay" },
            ] } },
            { "step": "pay", "tool": { "kind": "noop", "result": { "seen": "{{ input.verified | default('nothing') }}" } } },
            { "step": "paid", "tool": { "kind": "noop" } },
        ],
    });
    let ended =
        run(&stage, &member(&stage), &define(&stage, &playbook), &json!({ "input": { "verified": true } }));
    let seen = &ended["nodeResults"]["pay"]["output"]["seen"];
    assert_eq!((status(&ended, "paid"), seen), ("none", &json!("nothing")), "{ended}");
}

#[test]
fn neither_inputs_nor_patches_replace_results_of_a_playbook() {
    let stage = Stage::new();
    let member = member(&stage);
    let guard = |name: &str| json!({ "step": "pay", "when": format!("{{{{ {name}.ok }}}}") });
    let playbook = json!({
        "metadata": { "name": "payment" },
        "workflow": [
            { "step": "gate", "tool": { "kind": "noop" }, "next": "check",
                "spec": { "policy": { "admit": { "rules": [{ "when": "{{ ctx.go }}", "then": { "allow": true } }] } } } },
            { "step": "check", "tool": { "kind": "noop", "result": { "ok": false } }, "next": { "arcs": [
                guard("check"), guard("later"), guard("loop"), guard("result"), guard("response"),
                { "step": "pay", "when": "{{ error.code == 'FORGED' }}" }, { "step": "each" },
            ] } },
            { "step": "each", "loop": { "in": [{ "ok": false }], "iterator": "check" }, "next": "later",
                "tool": { "kind": "noop", "result": { "ok": "{{ check.ok }}" } } },
            { "step": "later", "next": { "arcs": [{ "step": "pay", "when": "{{ later.ok }}" }, { "step": "end" }] }, "tool": [
                { "name": "first", "kind": "noop", "result": { "seen": ["{{ second.ok }}", "{{ later.ok }}", "{{ pay.ok }}"] } },
                { "name": "second", "kind": "noop", "result": { "seen": ["{{ second.ok }}", "{{ check.ok }}"] } },
            ] },
            { "step": "pay", "tool": { "kind": "noop" } },
            // Only what failed can be retried.
            { "step": "end", "tool": { "kind": "shell", "command": "false" } },
        ],
    });
    let workflow = define(&stage, &playbook);
    let mut names = forged();
    names["pay"] = json!({ "ok": true });
    names["second"] = json!({ "ok": true });
    let none = json!({});
    for (inputs, patch) in [(&names, &none), (&none, &names)] {
        let begun = run(&stage, &member, &workflow, inputs);
        assert_eq!(begun["status"], "paused", "{begun}");
        let mut patch = patch.clone();
        patch["go"] = json!(true);
        let (code, patched) = stage.send(&member, Method::PATCH, &path_of(&begun, "context"), &patch);
        assert_eq!(code, StatusCode::OK, "{patched}");
        let ended = when(&stage, &begun, "failed");
        assert_eq!((status(&ended, "pay"), status(&ended, "later")), ("none", "completed"), "{ended}");
        let later = &ended["nodeResults"]["later"]["output"];
        assert_eq!(later["results"]["first"]["seen"], json!([null, null, null]), "{ended}");
        assert_eq!(later["results"]["second"]["seen"], json!([null, false]), "{ended}");
        let again = json!({ "fromNode": "check", "inputs": names });
        let (code, again) = stage.send(&member, Method::POST, &path_of(&begun, "retry"), &again);
        assert_eq!(code, StatusCode::ACCEPTED, "{again}");
        let ended = when(&stage, &again, "failed");
        assert_eq!(status(&ended, "pay"), "none", "{ended}");
    }
}

#[test]
fn a_parents_inputs_do_not_replace_results_of_its_child() {
    let stage = Stage::new();
    let member = member(&stage);
    set_secret(&stage, "KEY");
    let mut child = payment("child");
    child["nodes"].as_array_mut().unwrap().retain(|node| node["id"] != "ask");
    child["edges"].as_array_mut().unwrap().retain(|edge| edge["source"] != "ask" && edge["target"] != "ask");
    child["edges"].as_array_mut().unwrap().push(json!({ "source": "start", "target": "check" }));
    define(&stage, &child);
    let handed_on: Value = forged()
        .as_object()
        .unwrap()
        .keys()
        .map(|name| (name.clone(), json!(format!("{{{{ inputs.{name} }}}}"))))
        .collect();
    let call = json!({ "workflowName": "child", "inputs": handed_on });
    let parent = json!({ "name": "parent", "nodes": [{ "id": "call", "type": "workflow", "config": call }], "edges": [] });
    let begun = run(&stage, &member, &define(&stage, &parent), &forged());
    assert_eq!(begun["status"], "completed", "{begun}");
    let (_, children) = read_answer(
        stage
            .server
            .get(&format!("/api/v1/executions?parentExecutionId={}", begun["executionId"].as_str().unwrap())),
    );
    unpaid(&when(&stage, &children["executions"][0], "completed"));
}

/// Builds only what is signed by the sender.
fn pushes(name: &str) -> Value {
    let hook = json!({ "triggerMode": "webhook", "webhookConfig": { "path": name, "requireAuth": false } });
    let condition = json!({ "id": "real", "variable": "signed", "operator": "equals", "value": true });
    json!({
        "name": name,
        "nodes": [
            { "id": "in", "type": "trigger", "config": hook },
            { "id": "signed", "type": "code", "config": {
                "language": "python", "code": "result = bool(signature) and signature == key",
                "inputVariables": { "key": "{{ KEY }}", "signature": "{{ hook.headers['x-hub-signature-256'] }}" },
            } },
            { "id": "ours", "type": "conditional", "config": { "conditions": [condition] } },
            { "id": "build", "type": "code", "config": { "language": "python", "code": "result = 1" } },
            // Only what failed can be retried.
            { "id": "refuse", "type": "code", "config": { "language": "python", "code": "raise ValueError('not ours')" } },
        ],
        "edges": [
            { "source": "in", "target": "signed" },
            { "source": "signed", "target": "ours" },
            { "source": "ours", "target": "build", "sourceHandle": "real" },
            { "source": "ours", "target": "refuse", "sourceHandle": "false" },
        ],
    })
}

#[test]
fn a_forged_body_passes_no_signature_check() {
    let stage = Stage::new();
    set_secret(&stage, "KEY");
    define(&stage, &pushes("pushes"));
    let deliver = |signature: &str, body: &Value, is: &str| {
        let request =
            stage.server.bare(Method::POST, "/hooks/pushes").header("X-Hub-Signature-256", signature);
        let (code, started) = read_answer(request.json(body).send().unwrap());
        assert_eq!(code, StatusCode::ACCEPTED, "{started}");
        when(&stage, &started, is)
    };
    let mut body = forged();
    body["hook"] = json!({ "headers": { "x-hub-signature-256": SECRET } });
    for signature in ["", "x"] {
        let ended = deliver(signature, &body, "failed");
        assert_eq!((status(&ended, "signed"), status(&ended, "build")), ("completed", "skipped"), "{ended}");
    }
    let ended = deliver(SECRET, &body, "completed");
    assert_eq!(status(&ended, "build"), "completed", "{ended}");
}

#[test]
fn what_a_person_types_is_not_taken_for_a_delivery_of_a_hook() {
    let stage = Stage::new();
    let member = member(&stage);
    set_secret(&stage, "KEY");
    let workflow = define(&stage, &pushes("typed"));
    let typed = json!({ "hook": { "headers": { "x-hub-signature-256": SECRET } } });
    let refused = |method: Method, path: &str, body: &Value, field: &str| {
        for token in [&member, stage.server.token()] {
            let (code, refused) = stage.send(token, method.clone(), path, body);
            assert_eq!(code, StatusCode::BAD_REQUEST, "{path}: {refused}");
            let detail = &refused["error"]["details"][0];
            assert_eq!(detail["path"], field, "{refused}");
            assert!(
                detail["message"].as_str().unwrap().contains("send the request to the hook"),
                "{refused}"
            );
        }
    };
    let execute = format!("/api/v1/workflows/{workflow}/execute");
    refused(Method::POST, &execute, &json!({ "inputs": typed }), "inputs.hook");
    let dry = json!({ "inputs": typed, "options": { "dryRun": true } });
    let (_, checked) = stage.send(&member, Method::POST, &execute, &dry);
    assert_eq!(
        (&checked["valid"], &checked["errors"][0]["path"]),
        (&json!(false), &json!("inputs.hook")),
        "{checked}"
    );

    // What was delivered can be retried as it was, and not with another request.
    let (_, delivered) =
        read_answer(stage.server.bare(Method::POST, "/hooks/typed").json(&json!({})).send().unwrap());
    let ended = when(&stage, &delivered, "failed");
    assert_eq!(status(&ended, "build"), "skipped", "{ended}");
    let retry = path_of(&delivered, "retry");
    refused(Method::POST, &retry, &json!({ "fromNode": "signed", "inputs": typed }), "inputs.hook");
    let same = json!({ "fromNode": "signed", "inputs": { "hook": ended["inputs"]["hook"], "note": 1 } });
    let (code, again) = stage.send(&member, Method::POST, &retry, &same);
    assert_eq!(code, StatusCode::ACCEPTED, "{again}");
    assert_eq!(status(&when(&stage, &again, "failed"), "build"), "skipped");

    // Nor by a parent that hands its inputs on, nor into the context of one that runs.
    let call = json!({ "workflowName": "typed", "inputs": { "hook": "{{ inputs.hook }}" } });
    let parent = json!({ "name": "parent", "nodes": [{ "id": "call", "type": "workflow", "config": call }], "edges": [] });
    let ended = run(&stage, &member, &define(&stage, &parent), &typed);
    assert_eq!(ended["status"], "failed", "{ended}");
    let message = ended["nodeResults"]["call"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("inputs.hook: only a request"), "{message}");
    refused(Method::PATCH, &path_of(&delivered, "context"), &typed, "context.hook");
    // A workflow without a hook may have an input of that name.
    let plain = json!({ "name": "plain", "nodes": [{ "id": "in", "type": "trigger" }], "edges": [] });
    assert_eq!(run(&stage, &member, &define(&stage, &plain), &typed)["status"], "completed");
}

#[test]
fn a_retry_keeps_the_rules_of_a_start() {
    let stage = Stage::new();
    let member = member(&stage);
    let schema = json!({ "type": "object", "required": ["n"], "additionalProperties": false,
        "properties": { "n": { "type": "integer", "maximum": 10 } } });
    let definition = json!({ "name": "bounded", "nodes": [
        { "id": "in", "type": "trigger", "config": { "manualConfig": { "inputPayload": schema } } },
        { "id": "a", "type": "code", "config": { "language": "python", "code": "result = 1 / ctx.workflow_inputs['n']" } },
    ], "edges": [{ "source": "in", "target": "a" }] });
    let workflow = define(&stage, &definition);
    let failed = run(&stage, &member, &workflow, &json!({ "n": 0 }));
    assert_eq!(failed["status"], "failed", "{failed}");
    let retry = path_of(&failed, "retry");
    let send = |inputs: &Value| stage.send(&member, Method::POST, &retry, &json!({ "inputs": inputs }));
    for (inputs, field) in [
        (json!({ "n": "1; DROP TABLE" }), "inputs.n"),
        (json!({ "n": 11 }), "inputs.n"),
        (json!({ "n": null }), "inputs.n"),
        (json!({ "other": 1 }), "inputs"),
    ] {
        let (code, refused) = send(&inputs);
        assert_eq!(code, StatusCode::BAD_REQUEST, "{inputs}: {refused}");
        assert_eq!(refused["error"]["details"][0]["path"], field, "{refused}");
    }
    let (code, again) = send(&json!({ "n": 1 }));
    assert_eq!(code, StatusCode::ACCEPTED, "{again}");
    when(&stage, &again, "completed");
    let at = format!("/api/v1/workflows/{workflow}");
    for state in ["paused", "archived", "draft"] {
        let (code, changed) =
            stage.send(stage.server.token(), Method::PATCH, &at, &json!({ "status": state }));
        assert_eq!(code, StatusCode::OK, "{changed}");
        for body in [json!({}), json!({ "inputs": { "n": 1 } })] {
            let (code, refused) = stage.send(&member, Method::POST, &retry, &body);
            assert_eq!(
                (code, &refused["error"]["code"]),
                (StatusCode::CONFLICT, &json!("WORKFLOW_NOT_ACTIVE")),
                "{refused}"
            );
        }
    }
    let deleted = stage.server.request(Method::DELETE, &at).send().unwrap();
    assert!(deleted.status().is_success());
    let (code, refused) = stage.send(&member, Method::POST, &retry, &json!({}));
    assert_eq!(code, StatusCode::NOT_FOUND, "{refused}");
}
