//! The route that retries an execution: previews, versions, single nodes, refusals, tenants.

use crate::executions::{TWO, finish, get, until};
use crate::rig::{Place, Server, read_answer};
use reqwest::Method;
use serde_json::{Value, json};

/// Three steps; the second fails until its file is there. `names` are the names of the first and the last step.
fn play(place: &Place, [first, last]: [&str; 2], command: &str) -> String {
    let (go, ran) = (place.path("go"), place.path("ran"));
    format!(
        "metadata: {{name: changing}}
workflow:
- {{step: {first}, tool: {{kind: shell, command: 'echo first >> {ran}'}}, next: work}}
- step: work
  tool: {{kind: shell, command: 'echo {command} >> {ran}; test -e {go}'}}
  next: {{arcs: [{{step: {last}, when: \"{{{{ event.name == 'step.done' }}}}\"}}]}}
- {{step: {last}, tool: {{kind: shell, command: 'echo last >> {ran}'}}}}
",
        ran = ran.display(),
        go = go.display(),
    )
}

struct Failed {
    place: Place,
    server: Server,
    workflow: String,
    id: String,
}

/// A server with an execution that failed in its second step.
fn failed() -> Failed {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&play(&place, ["first", "last"], "old"));
    let ended = finish(&server, &workflow, json!({}));
    assert_eq!(
        (&ended["status"], place.lines("ran")),
        (&json!("failed"), vec!["first".into(), "old".into()])
    );
    let id = ended["executionId"].as_str().unwrap().to_owned();
    Failed { place, server, workflow, id }
}

impl Failed {
    fn retry(&self, body: Value) -> (u16, Value) {
        retry(&self.server, &self.id, &body)
    }

    /// Stores another version of the workflow.
    fn change(&self, text: &str) -> Value {
        let path = format!("/api/v1/workflows/{}", self.workflow);
        let request = self.server.request(Method::PUT, &path).header("Content-Type", "text/yaml");
        let (status, answer) = read_answer(request.body(text.to_owned()).send().unwrap());
        assert_eq!(status.as_u16(), 200, "{answer}");
        answer
    }
}

fn retry(server: &Server, id: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/retry"), body);
    (status.as_u16(), answer)
}

fn ids(entries: &Value) -> Vec<&str> {
    entries.as_array().unwrap().iter().map(|entry| entry["nodeId"].as_str().unwrap()).collect()
}

#[test]
fn wfl_10_a_dry_run_lists_what_would_happen_and_starts_nothing() {
    let failed = failed();
    let count =
        || read_answer(failed.server.get("/api/v1/executions")).1["executions"].as_array().unwrap().len();
    let (status, plan) = failed.retry(json!({ "dryRun": true }));
    assert_eq!(status, 200, "{plan}");
    assert_eq!(plan["imports"], json!([{ "nodeId": "first", "firing": 1, "path": [], "changed": false }]));
    let again = json!({ "nodeId": "work", "firing": 1, "path": [], "reason": "failed", "sideEffects": true });
    assert_eq!((&plan["runs"], &plan["refused"]), (&json!([again]), &json!([])));
    assert_eq!((&plan["importCount"], &plan["runCount"]), (&json!(1), &json!(1)));
    let (status, plan) = failed.retry(json!({ "dryRun": true, "fromNode": "first" }));
    assert_eq!((status, ids(&plan["imports"]), ids(&plan["runs"])), (200, vec![], vec!["first", "work"]));
    let reasons: Vec<&Value> = plan["runs"].as_array().unwrap().iter().map(|run| &run["reason"]).collect();
    assert_eq!(
        (reasons[0], reasons[1], &plan["runs"][1]["follows"]),
        (&json!("requested"), &json!("follows"), &json!("first"))
    );
    assert_eq!((count(), failed.place.lines("ran").len()), (1, 2), "a dry run starts nothing");
}

#[test]
fn wfl_10_a_retry_runs_under_a_version_by_number_or_the_latest() {
    let failed = failed();
    failed.place.write("go", "");
    failed.change(&play(&failed.place, ["first", "last"], "new"));
    let (status, plan) = failed.retry(json!({ "dryRun": true, "version": "latest" }));
    assert_eq!(
        (status, ids(&plan["imports"]), ids(&plan["runs"])),
        (200, vec!["first"], vec!["work"]),
        "{plan}"
    );
    let mut ran = failed.place.lines("ran").len();
    for (version, word) in
        [(json!("latest"), "new"), (json!(2), "new"), (json!(1), "old"), (Value::Null, "old")]
    {
        let body = if version.is_null() { json!({}) } else { json!({ "version": version }) };
        let (status, answer) = failed.retry(body);
        assert_eq!(status, 202, "{answer}");
        assert_eq!(answer["parentExecutionId"], json!(failed.id), "{answer}");
        let new = until(&failed.server, answer["executionId"].as_str().unwrap(), "completed");
        assert_eq!(new["workflowVersion"], json!(if word == "new" { 2 } else { 1 }), "{new}");
        let lines = failed.place.lines("ran");
        assert_eq!(lines[ran..], [word.to_owned(), "last".to_owned()], "version {version}");
        ran = lines.len();
    }
}

#[test]
fn a_version_without_a_completed_step_is_refused_with_its_name() {
    let failed = failed();
    failed.change(&play(&failed.place, ["begin", "last"], "new"));
    let (status, plan) = failed.retry(json!({ "dryRun": true, "version": 2 }));
    assert_eq!(
        (status, &plan["refused"][0]["nodeId"], &plan["refused"][0]["reason"]),
        (200, &json!("first"), &json!("removed")),
        "{plan}"
    );
    let (status, refused) = failed.retry(json!({ "version": 2 }));
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("CONFLICT")), "{refused}");
    let detail = &refused["error"]["details"][0];
    assert_eq!(detail["path"], json!("first"), "{refused}");
    assert!(detail["message"].as_str().unwrap().contains("does not have it"), "{refused}");
    assert_eq!(failed.place.lines("ran").len(), 2, "nothing started");
    // From the renamed step's successor on, the old step has no part in it.
    let (status, answer) = failed.retry(json!({ "version": 7 }));
    assert_eq!((status, &answer["error"]["details"][0]["path"]), (400, &json!("version")), "{answer}");
    for bad in [json!("newest"), json!(0), json!(-1), json!(1.5), json!([1]), json!(true)] {
        let (status, answer) = failed.retry(json!({ "version": bad }));
        assert_eq!(
            (status, &answer["error"]["details"][0]["path"]),
            (400, &json!("version")),
            "{bad}: {answer}"
        );
    }
    for (body, path) in [
        (json!({ "firing": 1 }), "firing"),
        (json!({ "workflowId": failed.workflow }), "workflowId"),
        (json!({ "definition": TWO }), "definition"),
        (json!({ "dryrun": true }), "dryrun"),
    ] {
        let (status, answer) = failed.retry(body.clone());
        assert_eq!((status, &answer["error"]["details"][0]["path"]), (400, &json!(path)), "{body}: {answer}");
    }
}

#[test]
fn wfl_10_a_retry_from_a_node_runs_it_and_what_follows() {
    let failed = failed();
    failed.place.write("go", "");
    let (status, answer) = failed.retry(json!({ "fromNode": "first" }));
    assert_eq!((status, &answer["retryFromNode"]), (202, &json!("first")), "{answer}");
    let new = answer["executionId"].as_str().unwrap().to_owned();
    until(&failed.server, &new, "completed");
    assert_eq!(failed.place.lines("ran")[2..], ["first", "old", "last"]);
    let (status, answer) = failed.retry(json!({ "fromNode": "nowhere" }));
    assert_eq!((status, &answer["error"]["details"][0]["path"]), (400, &json!("fromNode")), "{answer}");
    // A completed execution needs a node.
    let (status, answer) = retry(&failed.server, &new, &json!({}));
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("CONFLICT")), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("name a step"), "{answer}");
    let (status, answer) = retry(&failed.server, &new, &json!({ "fromNode": "last" }));
    assert_eq!(status, 202, "{answer}");
    let last = until(&failed.server, answer["executionId"].as_str().unwrap(), "completed");
    assert_eq!(last["metadata"]["parentExecutionId"], json!(new));
    assert_eq!(failed.place.lines("ran")[5..], ["last"]);
}

#[test]
fn the_executions_and_versions_of_another_tenant_do_not_exist_for_a_retry() {
    let failed = failed();
    let server = &failed.server;
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "Acme" }));
    let body = json!({ "name": "ann", "role": "owner", "tenantId": tenant["id"] });
    let (_, token) = server.post("/api/v1/tokens", &body);
    let send = |path: &str, body: &Value| {
        let request = server.bare(Method::POST, path).bearer_auth(token["token"].as_str().unwrap());
        let (status, answer) = read_answer(request.json(body).send().unwrap());
        (status.as_u16(), answer)
    };
    for body in [json!({}), json!({ "dryRun": true }), json!({ "version": "latest" }), json!({ "firing": 1 })]
    {
        let (status, answer) = send(&format!("/api/v1/executions/{}/retry", failed.id), &body);
        assert_eq!(status, 404, "{body}: {answer}");
    }
    let request =
        server.bare(Method::POST, "/api/v1/workflows").bearer_auth(token["token"].as_str().unwrap());
    let own = "metadata: {name: theirs}\nworkflow:\n- {step: a, tool: {kind: noop, result: '{{ 1 / 0 }}'}}\n";
    let made = read_answer(request.header("Content-Type", "text/yaml").body(own).send().unwrap()).1;
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let ended = send(&path, &json!({ "options": { "async": false } })).1;
    let path = format!("/api/v1/executions/{}/retry", ended["executionId"].as_str().unwrap());
    let (status, answer) = send(&path, &json!({ "workflowId": failed.workflow, "version": "latest" }));
    assert_eq!(status, 404, "the workflow of another tenant: {answer}");
    assert_eq!(failed.place.lines("ran").len(), 2);
}

/// A loop with a handled failure is a completed part of its execution; only what failed after it runs again.
#[test]
fn a_loop_whose_failure_was_handled_is_taken_over_by_a_retry() {
    let place = Place::new();
    let server = place.serve();
    let (go, ran) = (place.path("go"), place.path("ran"));
    let text = format!(
        "metadata: {{name: handled}}
workflow:
- step: each
  loop: {{in: [1, 0, 2], iterator: n}}
  tool: {{kind: shell, command: 'echo {{{{ iter.n }}}} >> {ran}; test {{{{ iter.n }}}} -gt 0'}}
  next: {{arcs: [{{step: repair, when: \"{{{{ event.error }}}}\"}}]}}
- step: repair
  tool: {{kind: shell, command: 'echo repair {{{{ each.failed }}}} >> {ran}; test -e {go}'}}
",
        ran = ran.display(),
        go = go.display(),
    );
    let ended = finish(&server, &server.define(&text), json!({}));
    assert_eq!((&ended["status"], place.lines("ran").len()), (&json!("failed"), 4), "{ended}");
    let id = ended["executionId"].as_str().unwrap().to_owned();
    let (id, ended) = (&*id, get(&server, &id, ""));
    let errors: Vec<&Value> =
        ended["errors"].as_array().unwrap().iter().map(|error| &error["nodeId"]).collect();
    assert_eq!(errors, [&json!("repair")], "{ended}");
    let (_, plan) = retry(&server, id, &json!({ "dryRun": true }));
    assert_eq!((ids(&plan["imports"]), ids(&plan["runs"])), (vec!["each"], vec!["repair"]), "{plan}");
    place.write("go", "");
    let (_, answer) = retry(&server, id, &json!({}));
    let new = until(&server, answer["executionId"].as_str().unwrap(), "completed");
    assert_eq!(place.lines("ran")[4..], ["repair 1"], "{new}");
    let looped = get(&server, answer["executionId"].as_str().unwrap(), "");
    assert_eq!(looped["nodeExecutions"][0]["output"]["failed"], json!(1), "{looped}");
}

#[test]
fn lists_name_the_newest_retry_of_an_execution_and_filter_by_it() {
    let failed = failed();
    let listed = |query: &str| {
        let (status, page) =
            read_answer(failed.server.get(&format!("/api/v1/executions?status=failed{query}")));
        assert_eq!(status.as_u16(), 200, "{page}");
        let rows = page["executions"].as_array().unwrap().iter();
        rows.map(|row| (row["executionId"].clone(), row["retriedBy"].clone())).collect::<Vec<_>>()
    };
    let id = json!(failed.id);
    assert_eq!(listed("&retried=false"), [(id.clone(), Value::Null)]);
    let retry = |id: &Value| {
        let (status, answer) = retry(&failed.server, id.as_str().unwrap(), &json!({}));
        assert_eq!(status, 202, "{answer}");
        let new = answer["executionId"].clone();
        until(&failed.server, new.as_str().unwrap(), "failed");
        new
    };
    let first = retry(&id);
    let second = retry(&id);
    let third = retry(&second);
    assert_eq!(
        listed(""),
        [
            (third.clone(), Value::Null),
            (second.clone(), third.clone()),
            (first.clone(), Value::Null),
            (id.clone(), second.clone())
        ]
    );
    assert_eq!(listed("&retried=false"), [(third.clone(), Value::Null), (first, Value::Null)]);
    assert_eq!(listed("&retried=true"), [(second.clone(), third), (id, second)]);
}
