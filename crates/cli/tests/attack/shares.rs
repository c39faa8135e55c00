//! One tenant that takes everything there is: slots, places for executions, depth of values.

use crate::rig::{Place, playbook, read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

const ENDLESS: &str = "workflow:\n- step: endless\n  tool: {kind: shell, command: 'sleep 3600'}\n";
const QUICK: &str = "workflow:\n- step: quick\n  tool: {kind: noop}\n";

fn define(stage: &Stage, token: &str, text: &str) -> String {
    let (status, made) = stage.upload(token, text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

fn execute(stage: &Stage, token: &str, workflow: &str) -> (StatusCode, Value) {
    stage.send(token, Method::POST, &format!("/api/v1/workflows/{workflow}/execute"), &json!({}))
}

#[test]
fn endless_steps_of_one_tenant_leave_slots_to_the_others() {
    let stage = Stage::at(Place::new().with(&["--slots", "4"]));
    let allowed = stage.server.request(Method::PATCH, &format!("/api/v1/tenants/{}", stage.tenant));
    assert_eq!(allowed.json(&json!({ "programs": "allowed" })).send().unwrap().status(), StatusCode::OK);
    let attacker = stage.token("developer");
    let endless = define(&stage, &attacker, &playbook("endless", ENDLESS));
    for _ in 0..8 {
        assert_eq!(execute(&stage, &attacker, &endless).0, StatusCode::ACCEPTED);
    }
    until("its share is taken", || {
        let metrics = stage.server.get("/metrics").text().unwrap();
        metrics.contains("windlass_steps_in_flight 3").then_some(())
    });
    let quick = stage.server.define(&playbook("quick", QUICK));
    let path = format!("/api/v1/workflows/{quick}/execute");
    let (status, ended) = stage.server.post(&path, &json!({ "options": { "async": false } }));
    assert_eq!((status, &ended["status"]), (StatusCode::OK, &json!("completed")), "{ended}");
}

#[test]
fn sub_workflows_count_among_the_open_executions_of_their_tenant() {
    let stage = Stage::at(Place::new().with(&["--slots", "2"]));
    let limited = stage.server.request(Method::PATCH, &format!("/api/v1/tenants/{}", stage.tenant));
    let change = json!({ "openExecutions": 5, "programs": "allowed" });
    assert_eq!(limited.json(&change).send().unwrap().status(), StatusCode::OK);
    let attacker = stage.token("developer");
    define(&stage, &attacker, &playbook("child", ENDLESS));
    let parent = playbook(
        "parent",
        "workflow:\n- step: many\n  loop: {in: '{{ range(0, 40) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 40}}\n  tool: {kind: playbook, path: child}\n",
    );
    let parent = define(&stage, &attacker, &parent);
    let (status, begun) = execute(&stage, &attacker, &parent);
    assert_eq!(status, StatusCode::ACCEPTED, "{begun}");
    let id = begun["executionId"].as_str().unwrap().to_owned();
    let open = || {
        let (_, all) =
            stage.send(&attacker, Method::GET, "/api/v1/executions?status=open&limit=100", &Value::Null);
        all["executions"].as_array().unwrap().len()
    };
    let view = until("a child is refused", || {
        assert!(open() <= 5);
        let (_, view) = stage.send(&attacker, Method::GET, &format!("/api/v1/executions/{id}"), &Value::Null);
        view.to_string().contains("LIMIT_EXCEEDED").then_some(view)
    });
    assert!(view.to_string().contains("5 executions that have not ended"), "{view}");
    assert!(open() <= 5);
}

/// Every depth of an answer works from one end to the other, or is refused with a word about it.
#[test]
fn deep_answers_never_make_a_journal_unreadable() {
    let place = Place::new();
    let mut server = place.serve();
    let steps = "workload: {depth: 1}\nworkflow:\n- step: deep\n  tool:\n    kind: python\n    args: {depth: '{{ workload.depth }}'}\n    code: |\n      result = 1\n      for _ in range(int(depth)):\n          result = [result]\n";
    let workflow = server.define(&playbook("deep", steps));
    let mut ended = Vec::new();
    for depth in [90, 99, 100, 101, 110, 118, 122, 123, 124, 125, 126, 127, 128, 129, 130, 500] {
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let body = json!({ "inputs": { "depth": depth }, "options": { "async": false } });
        let (status, view) = server.post(&path, &body);
        assert_eq!(status, StatusCode::OK, "{depth}: {view}");
        let id = view["executionId"].as_str().unwrap().to_owned();
        let is_refused = view["status"] == "failed";
        assert!(is_refused || (depth <= 100 && view["status"] == "completed"), "{depth}: {view}");
        if is_refused {
            let why = read_answer(server.get(&format!("/api/v1/executions/{id}"))).1["errors"].to_string();
            assert!(why.contains("VALUE_TOO_DEEP") || why.contains("RESULT_NOT_JSON"), "{depth}: {why}");
        }
        ended.push((id, is_refused));
    }
    for round in 0..2 {
        for (id, is_refused) in &ended {
            for part in ["", "/events", "/evidence", "/logs", "/status"] {
                let answer = server.get(&format!("/api/v1/executions/{id}{part}"));
                assert_eq!(answer.status(), StatusCode::OK, "{id}{part}, round {round}");
            }
            if *is_refused && round == 1 {
                let (status, again) = server.post(&format!("/api/v1/executions/{id}/retry"), &json!({}));
                assert_eq!(status, StatusCode::ACCEPTED, "{again}");
            }
        }
        if round == 0 {
            server.stop();
            server = place.serve();
        }
    }
    server.stop();
    place.windlass(&["admin", "check"]).expect(0);
    let list = place.windlass(&["admin", "quarantine", "list", "--json"]).expect(0).json();
    assert_eq!(list, json!({ "executions": [] }));
}
