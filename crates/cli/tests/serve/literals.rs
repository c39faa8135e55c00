//! Secrets that are written into definitions: each definition has its own.

use crate::executions::finish;
use crate::rig::{Place, Server, read_answer};
use reqwest::Method;
use serde_json::{Value, json};

/// Prints the length of its token, which identifies a token without revealing it.
fn playbook(token: &str) -> String {
    format!(
        "metadata: {{name: same}}\nkeychain:\n  - {{name: api, kind: bearer, token: {token}}}\nworkflow:\n  \
         - step: use\n    tool: {{kind: shell, command: 'printf %s \"$T\" | wc -c', env: {{T: '{{{{ keychain.api.token }}}}'}}}}\n"
    )
}

const SHORT: &str = "hunter2-a";
const LONG: &str = "hunter2-longer";

fn said(server: &Server, workflow: &str) -> usize {
    let answer = finish(server, workflow, json!({}));
    let stdout = answer["nodeResults"]["use"]["output"]["stdout"].as_str();
    stdout.unwrap_or_else(|| panic!("{answer}")).trim().parse().unwrap()
}

fn put(server: &Server, path: &str, text: String) -> Value {
    let request = server.request(Method::PUT, path).header("Content-Type", "text/yaml").body(text);
    let (status, answer) = read_answer(request.send().unwrap());
    assert!(status.is_success(), "{answer}");
    answer
}

#[test]
fn two_workflows_of_one_name_have_their_own_literals() {
    let place = Place::new();
    let server = place.serve();
    let first = server.define(&playbook(SHORT));
    let second = server.define(&playbook(LONG));
    assert_eq!((said(&server, &first), said(&server, &second)), (SHORT.len(), LONG.len()));
    // A copy keeps what it was made with.
    let (_, copy) = server.post(&format!("/api/v1/workflows/{first}/duplicate"), &json!({}));
    put(&server, &format!("/api/v1/workflows/{first}"), playbook(LONG));
    let copy = copy["id"].as_str().unwrap();
    assert_eq!((said(&server, &first), said(&server, copy)), (LONG.len(), SHORT.len()));
}

#[test]
fn an_execution_that_is_done_again_has_the_literals_of_its_version() {
    let place = Place::new();
    let server = place.serve();
    let fails = |token: &str| playbook(token).replace("wc -c", "wc -c; test -e /nowhere");
    let workflow = server.define(&fails(SHORT));
    let failed = finish(&server, &workflow, json!({}));
    assert_eq!(failed["status"], "failed", "{failed}");
    put(&server, &format!("/api/v1/workflows/{workflow}"), fails(LONG));
    let path = format!("/api/v1/executions/{}/retry", failed["executionId"].as_str().unwrap());
    let (_, again) = server.post(&path, &json!({}));
    let again = crate::executions::until(&server, again["executionId"].as_str().unwrap(), "failed");
    let answer = again["nodeExecutions"].to_string();
    let counted = |text: &str| answer.contains(&format!("{}\\n", text.len()));
    assert!(counted(SHORT) && !counted(LONG), "{answer}");
}

#[test]
fn the_same_text_is_the_same_version_and_its_names_report_nothing() {
    let place = Place::new();
    let server = place.serve();
    let named = "/api/v1/workflows?name=same";
    let versions: Vec<Value> = [SHORT, SHORT, LONG, LONG]
        .iter()
        .map(|token| put(&server, named, playbook(token))["version"].take())
        .collect();
    assert_eq!(versions, [1, 1, 2, 2]);
    let secrets = read_answer(server.get("/api/v1/secrets")).1;
    let names: Vec<&str> = secrets["secrets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|secret| secret["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2, "{names:?}");
    // Elsewhere the same value has another name: who sees one cannot try values.
    let other = Place::new();
    let elsewhere = other.serve();
    put(&elsewhere, named, playbook(SHORT));
    let theirs = read_answer(elsewhere.get("/api/v1/secrets")).1;
    let theirs = theirs["secrets"][0]["name"].as_str().unwrap();
    assert!(theirs.starts_with("keychain/same/api/token/") && !names.contains(&theirs), "{theirs} {names:?}");
}
