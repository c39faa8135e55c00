//! Actions, plans and what is checked before an execution of a plan is created.

use crate::rig::{Place, Server, read_answer};
use reqwest::Method;
use serde_json::{Value, json};

const GREET: &str = "name: greet
description: Says hello
params: [{name: who, required: true}]
outputs: [{name: text}]
script: printf 'hi %s' \"$(cat context/who)\" > outputs/text
";

pub(crate) fn send(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = read_answer(server.request(method, path).json(body).send().unwrap());
    (status.as_u16(), answer)
}

pub(crate) fn get(server: &Server, path: &str) -> (u16, Value) {
    let (status, answer) = read_answer(server.get(path));
    (status.as_u16(), answer)
}

fn put_action(server: &Server, name: &str, document: &str) -> (u16, Value) {
    let request = server.request(Method::PUT, &format!("/api/v1/actions/{name}"));
    let sent = request.header("Content-Type", "application/yaml").body(document.to_owned()).send();
    let (status, answer) = read_answer(sent.unwrap());
    (status.as_u16(), answer)
}

/// The wrong fields of a refused request.
fn paths(refused: &Value) -> Vec<&str> {
    let details = refused["error"]["details"].as_array().unwrap();
    details.iter().map(|detail| detail["path"].as_str().unwrap()).collect()
}

/// A plan of one step that greets.
pub(crate) fn greeting(action: &Value) -> Value {
    json!({
        "params": [{ "name": "who", "required": true }, { "name": "times", "schema": { "type": "integer" }, "default": 1 }],
        "steps": [{ "id": "hello", "action": action, "args": { "refs": { "who": "params.who" } } }],
        "output": { "greeting": "steps.hello.outputs.text" },
    })
}

pub(crate) fn inline() -> Value {
    json!({
        "script": "printf 'hi %s' \"$(cat context/who)\" > outputs/text",
        "params": [{ "name": "who", "required": true }],
        "outputs": [{ "name": "text" }],
    })
}

#[track_caller]
pub(crate) fn create(server: &Server, spec: &Value) -> Value {
    let (status, plan) = server.post("/api/v1/plans", &json!({ "spec": spec }));
    assert_eq!(status, 201, "{plan}");
    plan
}

#[test]
fn revisions_of_an_action_are_kept_and_the_same_document_makes_none() {
    let place = Place::new();
    let server = place.serve();
    let (status, first) = put_action(&server, "greet", GREET);
    assert_eq!((status, &first["revision"], &first["enabled"]), (200, &json!(1), &json!(true)), "{first}");
    assert!(first["id"].as_str().unwrap().starts_with("act_"), "{first}");
    assert_eq!((&first["description"], &first["outputs"][0]["name"]), (&json!("Says hello"), &json!("text")));
    assert_eq!(put_action(&server, "greet", GREET).1["revision"], 1, "the same document");
    let other = GREET.replace("hi", "good morning");
    assert_eq!(put_action(&server, "greet", &other).1["revision"], 2);
    let script = |query: &str| get(&server, &format!("/api/v1/actions/greet{query}")).1["script"].to_string();
    assert!(script("").contains("good morning") && script("?revision=1").contains("hi %s"));
    let (_, by_id) = get(&server, &format!("/api/v1/actions/{}?revision=1", first["id"].as_str().unwrap()));
    assert_eq!((&by_id["revision"], &by_id["newestRevision"]), (&json!(1), &json!(2)));
    assert_eq!(get(&server, "/api/v1/actions/greet?revision=3").0, 404);
    let (_, revisions) = get(&server, "/api/v1/actions/greet/revisions");
    let numbers: Vec<u64> = revisions["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["revision"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, [2, 1]);
    let (_, listed) = get(&server, "/api/v1/actions");
    assert_eq!(
        (&listed["items"][0]["name"], listed["items"].as_array().unwrap().len()),
        (&json!("greet"), 1)
    );
    let deleted = server.request(Method::DELETE, "/api/v1/actions/greet").send().unwrap();
    assert_eq!(deleted.status().as_u16(), 204);
    assert_eq!(get(&server, "/api/v1/actions/greet").0, 404);
    assert_eq!(get(&server, "/api/v1/actions/greet/revisions").0, 404);
}

#[test]
fn wrong_documents_of_actions_are_refused_with_their_place() {
    let place = Place::new();
    let server = place.serve();
    let (status, refused) = put_action(&server, "greet", "script: 1\nparms: []\nparams: [{}]\n");
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("INVALID_DEFINITION")), "{refused}");
    assert!(refused["error"]["details"].as_array().unwrap().len() >= 2, "all problems at once: {refused}");
    assert!(refused["error"]["details"][0]["line"].is_u64(), "{refused}");
    let (status, refused) = put_action(&server, "hello", GREET);
    assert_eq!((status, paths(&refused)), (400, vec!["name"]), "{refused}");
    assert_eq!(put_action(&server, "shell", GREET).0, 409, "it is built in");
    assert_eq!(put_action(&server, "act_x", GREET).0, 400);
    assert_eq!(put_action(&server, "a%20b", GREET).0, 400);
    let long = format!("{GREET}env: {{X: {}}}\n", "x".repeat(300_000));
    assert_eq!(put_action(&server, "greet", &long).0, 413);
    assert_eq!(get(&server, "/api/v1/actions").1["items"], json!([]), "nothing was stored");
}

#[test]
fn pln_02_a_plan_has_the_id_of_its_content_and_never_changes() {
    let place = Place::new();
    let server = place.serve();
    let plan = create(&server, &greeting(&inline()));
    let id = plan["id"].as_str().unwrap();
    assert!(id.starts_with("pl_"), "{plan}");
    let status = &plan["status"];
    assert_eq!(status["stepDependencies"], json!({ "hello": [] }));
    assert_eq!((&status["executions"], status["createdBy"].is_string()), (&json!(0), true), "{status}");
    // Another order of keys is the same plan.
    let again = format!("spec: {}", greeting(&inline()));
    let sent =
        server.request(Method::POST, "/api/v1/plans").header("Content-Type", "application/yaml").body(again);
    let (status, same) = read_answer(sent.send().unwrap());
    assert_eq!((status.as_u16(), &same), (200, &plan));
    assert_eq!(get(&server, &format!("/api/v1/plans/{id}")), (200, plan.clone()));
    let changed = greeting(
        &json!({ "script": "true", "params": [{ "name": "who" }], "outputs": [{ "name": "text" }] }),
    );
    assert_ne!(create(&server, &changed)["id"], plan["id"]);
    let (_, listed) = get(&server, "/api/v1/plans?limit=1");
    assert_ne!(listed["items"][0]["id"], plan["id"], "newest first");
    let (_, rest) = get(&server, &format!("/api/v1/plans?cursor={}", listed["nextCursor"].as_str().unwrap()));
    assert_eq!((&rest["items"][0]["id"], &rest["nextCursor"]), (&plan["id"], &Value::Null));
    for prefix in ["pl_", "wf_"] {
        let path = format!("/api/v1/workflows/{}", id.replace("pl_", prefix));
        let put = server.request(Method::PUT, &path).json(&json!({ "spec": changed })).send().unwrap();
        assert_eq!(put.status().as_u16(), 409, "{path}");
        assert_eq!(send(&server, Method::PATCH, &path, &json!({ "status": "paused" })).0, 409);
        assert_eq!(get(&server, &path).1["dialect"], "plan");
    }
    assert_eq!(get(&server, &format!("/api/v1/plans/{id}")).1, plan);
}

#[test]
fn a_plan_keeps_the_revision_of_an_action_that_it_was_created_with() {
    let place = Place::new();
    let server = place.serve();
    let (_, action) = put_action(&server, "greet", GREET);
    let first = create(&server, &greeting(&json!("greet")));
    let frozen = &first["spec"]["steps"][0]["action"];
    assert_eq!((&frozen["actionID"], &frozen["revision"]), (&action["id"], &json!(1)), "{first}");
    put_action(&server, "greet", &GREET.replace("hi", "hello"));
    let second = create(&server, &greeting(&json!({ "actionID": action["id"] })));
    assert_ne!(first["id"], second["id"], "an action that changed makes another plan");
    assert_eq!(second["spec"]["steps"][0]["action"]["revision"], 2);
    let pinned = json!({ "spec": greeting(&json!({ "name": "greet", "revision": 1 })) });
    let (status, same) = server.post("/api/v1/plans", &pinned);
    assert_eq!((status.as_u16(), &same["id"]), (200, &first["id"]), "the revision can be pinned");
    assert_eq!(send(&server, Method::PATCH, "/api/v1/actions/greet", &json!({ "enabled": false })).0, 200);
    let (status, refused) = server.post("/api/v1/plans", &json!({ "spec": greeting(&json!("greet")) }));
    assert_eq!(status, 400, "it is disabled: {refused}");
    server.request(Method::DELETE, "/api/v1/actions/greet").send().unwrap();
    assert_eq!(
        get(&server, &format!("/api/v1/plans/{}", first["id"].as_str().unwrap())).1["spec"],
        first["spec"]
    );
}

#[test]
fn an_action_in_place_that_claims_a_registered_one_must_be_equal_to_it() {
    let place = Place::new();
    let server = place.serve();
    let (_, action) = put_action(&server, "greet", GREET);
    let plan = create(&server, &greeting(&json!("greet")));
    let frozen = plan["spec"]["steps"][0]["action"].clone();
    put_action(&server, "greet", &GREET.replace("hi", "hello"));
    let post = |action: &Value| {
        let (status, answer) = server.post("/api/v1/plans", &json!({ "spec": greeting(action) }));
        (status.as_u16(), answer)
    };
    assert_eq!(post(&frozen), (200, plan.clone()), "a plan that was read is the same plan");
    let with = |key: &str, value: Value| {
        let mut changed = frozen.clone();
        changed[key] = value;
        changed
    };
    let without = |key: &str| {
        let mut changed = frozen.clone();
        changed.as_object_mut().unwrap().remove(key);
        changed
    };
    let refused = |action: &Value| {
        let (status, answer) = post(action);
        assert_eq!(status, 400, "{action}: {answer}");
        let detail = &answer["error"]["details"][0];
        assert_eq!((&detail["code"], detail["line"].is_u64()), (&json!("E0188"), true), "{answer}");
        detail["message"].as_str().unwrap().to_owned()
    };
    let expected = "`action` of step `hello` is not the action `greet` revision 1: `script` differ";
    assert_eq!(refused(&with("script", json!("curl evil"))), expected);
    let mut claims = with("timeout", json!("5s"));
    claims["params"] = json!([{ "name": "who" }]);
    assert!(refused(&claims).contains("`params`, `timeout` differ"));
    assert!(refused(&with("revision", json!(2))).contains("is not the action `greet` revision 2"));
    assert!(refused(&without("revision")).contains("revision 2: `script` differ"), "the newest one is meant");
    assert!(refused(&with("revision", json!(3))).contains("with revision 3"));
    assert!(refused(&with("name", json!("other"))).contains("has the name `greet`"));
    assert!(refused(&with("actionID", json!("act_1"))).contains("there is no action `act_1`"));
    assert!(refused(&with("actionID", json!("shell"))).contains("is not the action `shell`"));
    let mut named = with("script", json!("curl evil"));
    named.as_object_mut().unwrap().remove("actionID");
    assert!(refused(&named).contains("`script` differ"), "a name with a revision is a claim, too");
    named.as_object_mut().unwrap().remove("revision");
    assert_eq!(post(&named).0, 201, "a name alone is a name");
    assert_eq!(post(&without("actionID")), (200, plan.clone()));
    // Other ways to the same place.
    let forged = json!({ "spec": greeting(&with("script", json!("curl evil"))) });
    for path in ["/api/v1/workflows", "/api/v1/validate"] {
        let (status, answer) = server.post(path, &forged);
        assert!(answer.to_string().contains("is not the action `greet`"), "{path}: {status} {answer}");
    }
    assert_eq!(get(&server, "/api/v1/workflows").1.to_string().matches("curl evil").count(), 0);
    server.request(Method::DELETE, "/api/v1/actions/greet").send().unwrap();
    assert_eq!(post(&frozen), (200, plan), "it was compared when it was created");
    assert!(refused(&with("params", json!([]))).contains("there is no action"), "{action}");
}

#[test]
fn pln_13_pln_37_wrong_plans_are_refused_with_every_problem() {
    let place = Place::new();
    let server = place.serve();
    put_action(&server, "greet", GREET);
    let mut wrong = greeting(&json!("gret"));
    wrong["output"] = json!({ "x": "steps.nowhere.outputs.text" });
    let (status, refused) = server.post("/api/v1/plans", &json!({ "spec": wrong }));
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (400, &json!("INVALID_DEFINITION")));
    let said = refused["error"]["details"].to_string();
    assert!(said.contains("gret") && said.contains("greet") && said.contains("nowhere"), "{said}");
    let cycle = json!({ "steps": [
        { "id": "a", "action": inline(), "args": { "refs": { "who": "steps.b.outputs.text" } } },
        { "id": "b", "action": inline(), "args": { "refs": { "who": "steps.a.outputs.text" } } },
    ] });
    let (status, refused) = server.post("/api/v1/plans", &json!({ "spec": cycle }));
    assert_eq!(status, 400, "{refused}");
    let (status, refused) =
        server.post("/api/v1/plans", &json!({ "spec": greeting(&inline()), "id": "pl_1", "status": {} }));
    assert_eq!((status.as_u16(), paths(&refused)), (400, vec!["id", "status"]), "{refused}");
    assert_eq!(get(&server, "/api/v1/plans").1["items"], json!([]));
}

/// The answer to a new execution with this spec.
pub(crate) fn execute(server: &Server, spec: &Value) -> (u16, Value) {
    let (status, answer) = server.post("/api/v1/plan-executions", &json!({ "spec": spec }));
    (status.as_u16(), answer)
}

#[test]
fn pln_02_pln_04_pln_05_pln_06_pln_07_pln_08_pln_29_pln_37_pln_38_wrong_executions_are_refused_by_field() {
    let place = Place::new();
    let server = place.serve();
    let plan = create(&server, &greeting(&inline()));
    let id = plan["id"].clone();
    let secret = server.request(Method::PUT, "/api/v1/secrets/known").json(&json!({ "value": "hunter22" }));
    assert_eq!(secret.send().unwrap().status().as_u16(), 200);
    let good = json!({ "planID": id, "cluster": "local", "runner": "default", "params": { "who": "Ada" } });
    let with = |field: &str, value: Value| {
        let mut spec = good.clone();
        match value {
            Value::Null => drop(spec.as_object_mut().unwrap().remove(field)),
            value => spec[field] = value,
        }
        spec
    };
    let unknown = format!("pl_{}", "0".repeat(32));
    let cases = [
        (with("planID", Value::Null), vec!["spec.planID"]),
        (with("planID", json!(unknown)), vec!["spec.planID"]),
        (with("planID", json!("nothing")), vec!["spec.planID"]),
        (with("cluster", Value::Null), vec!["spec.cluster"]),
        (with("cluster", json!("mars")), vec!["spec.cluster"]),
        (with("runner", Value::Null), vec!["spec.runner"]),
        (with("runner", json!("nobody")), vec!["spec.runner"]),
        (with("params", Value::Null), vec!["spec.params.who"]),
        (with("params", json!({ "who": "Ada", "where": 1 })), vec!["spec.params.where"]),
        (with("params", json!({ "who": "Ada", "times": "two" })), vec!["spec.params.times"]),
        (with("params", json!({ "who": "Ada", "$secrets": {} })), vec!["spec.params.$secrets"]),
        (with("secrets", json!({ "who": "known" })), vec!["spec.secrets.who"]),
        (with("secrets", json!({ "where": "known" })), vec!["spec.secrets.where"]),
        (with("unknown", json!(1)), vec!["spec.unknown"]),
        (
            json!({ "planID": id, "params": { "x": 1 }, "secrets": { "who": "missing" } }),
            vec!["spec.params.x", "spec.secrets.who", "spec.runner", "spec.cluster"],
        ),
        (
            json!({ "planID": id, "cluster": "mars", "runner": "nobody", "params": { "who": "Ada", "times": "two" }, "secrets": { "who": "known" } }),
            vec!["spec.params.times", "spec.secrets.who", "spec.runner", "spec.cluster"],
        ),
        (
            json!({ "planID": id, "cluster": 1, "params": { "who": "Ada", "times": "two" }, "secrets": { "who": 1 }, "more": 1 }),
            vec!["spec.cluster", "spec.more", "spec.secrets.who", "spec.params.times", "spec.runner"],
        ),
        (
            json!({ "planID": unknown, "params": [], "secrets": { "x": "missing" } }),
            vec!["spec.params", "spec.planID", "spec.secrets.x"],
        ),
        (json!([]), vec!["spec"]),
    ];
    for (spec, expected) in cases {
        let (status, refused) = execute(&server, &spec);
        assert_eq!((status, paths(&refused)), (400, expected), "{spec}: {refused}");
    }
    let body = json!({ "spec": good, "id": "exec_1", "status": { "phase": "completed" } });
    let (status, refused) = server.post("/api/v1/plan-executions", &body);
    assert_eq!((status.as_u16(), paths(&refused)), (400, vec!["id", "status"]));
    let body = json!({ "spec": with("cluster", json!("mars")), "id": "exec_1", "other": 1 });
    let (status, refused) = server.post("/api/v1/plan-executions", &body);
    assert_eq!((status.as_u16(), paths(&refused)), (400, vec!["id", "other", "spec.cluster"]), "{refused}");
    let (status, refused) = server.post("/api/v1/plan-executions", &json!(1));
    assert_eq!((status.as_u16(), paths(&refused)), (400, vec![""]), "{refused}");
    assert_eq!(get(&server, "/api/v1/plan-executions").1["items"], json!([]), "none was created");
}

#[test]
fn pln_03_the_cluster_follows_from_the_parameters_or_is_named() {
    let place = Place::new();
    let server = place.serve();
    for cluster in ["eu-1", "us-1", "us-2"] {
        send(&server, Method::PUT, &format!("/api/v1/clusters/{cluster}"), &json!({}));
    }
    send(&server, Method::PUT, "/api/v1/sandboxes/box", &json!({ "cluster": "eu-1" }));
    send(&server, Method::PUT, "/api/v1/route-groups/group", &json!({ "cluster": "us-1" }));
    send(&server, Method::PUT, "/api/v1/sandboxes/loose", &json!({}));
    let resolved = |affinity: Value, cluster: Option<&str>, value: Value| {
        let mut spec = greeting(&inline());
        spec["cluster"] = affinity;
        spec["params"].as_array_mut().unwrap().push(json!({ "name": "at", "schema": {} }));
        let (_, plan) = server.post("/api/v1/plans", &json!({ "spec": spec }));
        let mut execution =
            json!({ "planID": plan["id"], "runner": "default", "params": { "who": "Ada", "at": value } });
        if let Some(cluster) = cluster {
            execution["cluster"] = json!(cluster);
        }
        let (status, answer) = execute(&server, &execution);
        match status {
            201 => Ok(answer["spec"]["cluster"].as_str().unwrap().to_owned()),
            _ => Err(paths(&answer).join(" ")),
        }
    };
    let ok = |cluster: &str| Ok(cluster.to_owned());
    let wrong = |path: &str| Err(path.to_owned());
    let from = |key: &str| json!({ key: "at" });
    let cases = [
        (from("fromCluster"), None, json!("eu-1"), ok("eu-1")),
        (from("fromCluster"), Some("eu-1"), json!("eu-1"), ok("eu-1")),
        (from("fromCluster"), Some("us-1"), json!("eu-1"), wrong("spec.cluster")),
        (from("fromCluster"), None, json!("mars"), wrong("spec.cluster")),
        (from("fromSandbox"), None, json!("box"), ok("eu-1")),
        (from("fromSandbox"), None, json!("nothing"), wrong("spec.params.at")),
        (from("fromSandbox"), None, json!("loose"), wrong("spec.cluster")),
        (from("fromSandbox"), Some("us-2"), json!("loose"), ok("us-2")),
        (from("fromRouteGroup"), None, json!("group"), ok("us-1")),
        (from("fromAnyTarget"), None, json!({ "sandbox": "box" }), ok("eu-1")),
        (from("fromAnyTarget"), None, json!({ "routeGroup": "group" }), ok("us-1")),
        (from("fromAnyTarget"), None, json!({ "routingKey": "k" }), wrong("spec.cluster")),
        (json!({ "pattern": "eu-*" }), None, json!(1), ok("eu-1")),
        (json!({ "pattern": "us-*" }), None, json!(1), wrong("spec.cluster")),
        (json!({ "pattern": "us-*" }), Some("us-2"), json!(1), ok("us-2")),
        (json!({ "pattern": "us-*" }), Some("eu-1"), json!(1), wrong("spec.cluster")),
        (json!({ "pattern": "mars*" }), None, json!(1), wrong("spec.cluster")),
    ];
    for (affinity, cluster, value, expected) in cases {
        assert_eq!(
            resolved(affinity.clone(), cluster, value.clone()),
            expected,
            "{affinity} {cluster:?} {value}"
        );
    }
}

#[test]
fn lists_of_plan_executions_refuse_what_they_do_not_know() {
    let place = Place::new();
    let server = place.serve();
    let unknown = format!("pl_{}", "0".repeat(32));
    for (query, status) in [
        ("phase=paused", 400),
        ("pageSize=0", 400),
        ("pageSize=501", 400),
        ("cursor=x", 400),
        ("plan=1", 400),
    ] {
        assert_eq!(get(&server, &format!("/api/v1/plan-executions?{query}")).0, status, "{query}");
    }
    assert_eq!(get(&server, &format!("/api/v1/plan-executions?planID={unknown}")).0, 404);
    let playbook = server.define("metadata: {name: p}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
    let (_, begun) = server
        .post(&format!("/api/v1/workflows/{playbook}/execute"), &json!({ "options": { "async": false } }));
    let other = begun["executionId"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/api/v1/plan-executions/{other}")).0, 404, "it is of another dialect");
    assert_eq!(
        send(&server, Method::PUT, &format!("/api/v1/plan-executions/{other}/cancel"), &json!({})).0,
        404
    );
}
