//! Manual completion and separation of duties over HTTP: the signal, its token, and who may send it.

use crate::executions::{get, until};
use crate::rig::{self, Place, Server, jwt, read_answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// A user with a token of its own.
pub struct Person {
    pub id: String,
    pub token: String,
}

#[track_caller]
pub fn person(server: &Server, name: &str, role: &str, roles: &[&str]) -> Person {
    let body = json!({ "name": name, "role": role, "roles": roles });
    let (status, made) = server.post("/api/v1/tokens", &body);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    Person { id: text("id"), token: text("token") }
}

impl Person {
    pub fn send(&self, server: &Server, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
        let request = server.bare(method, path).bearer_auth(&self.token).json(body);
        read_answer(request.send().unwrap())
    }

    pub fn get(&self, server: &Server, path: &str) -> Value {
        let (status, body) =
            read_answer(server.bare(Method::GET, path).bearer_auth(&self.token).send().unwrap());
        assert_eq!(status, StatusCode::OK, "{body}");
        body
    }

    /// Starts a workflow and waits until a person is asked.
    #[track_caller]
    pub fn start(&self, server: &Server, workflow: &str) -> String {
        let path = format!("/api/v1/workflows/{workflow}/execute");
        let (status, started) = self.send(server, Method::POST, &path, &json!({}));
        assert_eq!(status, StatusCode::ACCEPTED, "{started}");
        let id = started["executionId"].as_str().unwrap().to_owned();
        until(server, &id, "paused");
        id
    }

    /// The token of the only task of an execution, as this user sees it.
    #[track_caller]
    pub fn sees(&self, server: &Server, id: &str) -> Option<String> {
        let whole = self.get(server, &format!("/api/v1/executions/{id}"));
        let status = self.get(server, &format!("/api/v1/executions/{id}/status"));
        let token = |view: &Value| view["waitingFor"][0]["completionToken"].as_str().map(str::to_owned);
        assert_eq!(token(&whole), token(&status));
        token(&whole)
    }

    /// The document's signal with this user as its actor.
    pub fn signal(&self, id: &str, action: &str, token: &str, outcome: &str) -> Value {
        json!({
            "schemaVersion": 1, "runId": id, "actionId": action, "completionToken": token, "outcome": outcome,
            "actorUserId": self.id, "completedAtIso": "2026-02-20T10:00:00.000Z",
            "notes": "left the dock", "evidenceRefs": ["doc-7"],
        })
    }

    pub fn complete(&self, server: &Server, id: &str, action: &str, body: &Value) -> (StatusCode, Value) {
        self.send(server, Method::POST, &format!("/api/v1/executions/{id}/actions/{action}/complete"), body)
    }

    /// Reads the token and sends the signal.
    #[track_caller]
    pub fn answers(&self, server: &Server, id: &str, action: &str, outcome: &str) -> (StatusCode, Value) {
        let token = self.sees(server, id).unwrap_or_default();
        self.complete(server, id, action, &self.signal(id, action, &token, outcome))
    }
}

/// One action after the other, each confirmed by a person.
pub fn confirmed(name: &str, operations: &[&str], constraints: &Value) -> String {
    let actions: Vec<Value> = operations
        .iter()
        .enumerate()
        .map(|(place, operation)| {
            let (action, order) = (operation.split(':').next().unwrap(), place + 1);
            json!({ "actionId": action, "order": order, "operation": operation, "completionMode": "manual" })
        })
        .collect();
    let bound = operations.iter().map(|operation| ((*operation).to_owned(), json!({ "kind": "noop" })));
    let bound: serde_json::Map<String, Value> = bound.collect();
    json!({ "schemaVersion": 1, "workflowId": name, "name": name, "actions": actions,
        "policy": { "sodConstraints": constraints }, "adapters": { "operations": bound } })
    .to_string()
}

fn evidence(server: &Server, id: &str) -> Vec<Value> {
    get(server, id, "/evidence")["evidence"].as_array().unwrap().clone()
}

#[test]
fn act_10_act_11_act_20_a_manual_action_is_completed_by_the_documents_signal() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let viewer = person(&server, "vic", "viewer", &[]);
    let id = ann.start(&server, &server.define(&confirmed("ships", &["ship:write"], &json!([]))));
    let waits = &ann.get(&server, &format!("/api/v1/executions/{id}"))["waitingFor"][0];
    assert_eq!((&waits["kind"], &waits["actionId"]), (&json!("manual"), &json!("ship")), "{waits}");
    let token = ann.sees(&server, &id).unwrap();
    assert_eq!(bob.sees(&server, &id), Some(token.clone()), "it is the token of the task");
    assert_eq!(viewer.sees(&server, &id), None, "who may not complete does not see it");
    let before = evidence(&server, &id);

    let signal = bob.signal(&id, "ship", &token, "Succeeded");
    let with = |field: &str, value: Value| {
        let mut changed = signal.clone();
        changed[field] = value;
        changed
    };
    let (status, refused) = bob.complete(&server, &id, "ship", &json!({ "outcome": "Succeeded" }));
    assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    assert_eq!(refused["error"]["details"].as_array().unwrap().len(), 6, "{refused}");
    let (status, refused) =
        bob.complete(&server, &id, "ship", &json!({ "schemaVersion": 2, "outcome": "Done", "x": 1 }));
    assert_eq!((status, refused["error"]["details"].as_array().unwrap().len()), (StatusCode::BAD_REQUEST, 8));
    for (body, expected) in [
        (with("runId", json!("exec_00000000000000000000000000000001")), StatusCode::BAD_REQUEST),
        (with("actionId", json!("other")), StatusCode::BAD_REQUEST),
        (with("completedAtIso", json!("noon")), StatusCode::BAD_REQUEST),
        (with("completionToken", json!("wct_wrong")), StatusCode::FORBIDDEN),
        (with("completionToken", json!(format!("{token}A"))), StatusCode::FORBIDDEN),
        (with("actorUserId", json!(ann.id)), StatusCode::FORBIDDEN),
    ] {
        let (status, refused) = bob.complete(&server, &id, "ship", &body);
        assert_eq!(status, expected, "{body} {refused}");
    }
    let nowhere = with("actionId", json!("nowhere"));
    assert_eq!(bob.complete(&server, &id, "nowhere", &nowhere).0, StatusCode::NOT_FOUND);
    let as_viewer = viewer.signal(&id, "ship", &token, "Succeeded");
    assert_eq!(viewer.complete(&server, &id, "ship", &as_viewer).0, StatusCode::FORBIDDEN);
    assert_eq!(evidence(&server, &id), before, "a refused signal changes nothing");

    let (status, completed) = bob.complete(&server, &id, "ship", &signal);
    assert_eq!((status, &completed["outcome"]), (StatusCode::OK, &json!("Succeeded")), "{completed}");
    until(&server, &id, "completed");
    let after = evidence(&server, &id);
    let attempt = &after[0];
    assert_eq!(attempt["outcome"], "WaitingForManualCompletion", "the call of the operation: {attempt}");
    assert_eq!((&attempt["attempt"], &attempt["terminal"]), (&json!(1), &json!(false)), "{attempt}");
    assert!(after[1]["endedAtIso"].as_str() >= attempt["endedAtIso"].as_str());
    let entry = after.iter().find(|entry| entry["category"] == "Approval").unwrap();
    assert_eq!(entry["actor"], json!({ "kind": "User", "userId": bob.id }), "{entry}");
    assert_eq!((&entry["notes"], &entry["evidenceRefs"]), (&json!("left the dock"), &json!(["doc-7"])));
    assert_eq!(entry["completedAtIso"], "2026-02-20T10:00:00.000Z");

    for who in [&bob, &ann] {
        let again = who.signal(&id, "ship", &token, "Succeeded");
        assert_eq!(who.complete(&server, &id, "ship", &again).0, StatusCode::OK, "it is repeated");
        let other = who.signal(&id, "ship", &token, "Failed");
        assert_eq!(who.complete(&server, &id, "ship", &other).0, StatusCode::CONFLICT);
    }
    let (status, refused) = ann.complete(&server, &id, "ship", &signal);
    assert_eq!(
        status,
        StatusCode::FORBIDDEN,
        "not even a repeated signal is sent for another user: {refused}"
    );
    let stale = bob.signal(&id, "ship", "wct_wrong", "Succeeded");
    assert_eq!(bob.complete(&server, &id, "ship", &stale).0, StatusCode::CONFLICT, "it does not wait");
    assert_eq!(evidence(&server, &id), after, "a repeated signal leaves no evidence");
    for place in ["", "/status", "/events", "/evidence", "/logs"] {
        let shown = get(&server, &id, place).to_string();
        assert!(!shown.contains(&token), "{place} shows the token");
    }
}

#[test]
fn act_10_a_token_survives_a_crash_and_is_in_no_file_of_the_folder() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    let id = ann.start(&server, &server.define(&confirmed("ships", &["ship:write"], &json!([]))));
    let token = ann.sees(&server, &id).unwrap();
    server.kill();
    let files = std::fs::read_dir(place.data()).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = std::fs::read(&file).unwrap();
        assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()), "{}", file.display());
    }
    let server = place.serve();
    assert_eq!(ann.sees(&server, &id), Some(token.clone()));
    let (status, done) = ann.complete(&server, &id, "ship", &ann.signal(&id, "ship", &token, "Succeeded"));
    assert_eq!(status, StatusCode::OK, "{done}");
    until(&server, &id, "completed");
}

#[test]
fn act_10_a_negative_outcome_fails_the_run_without_a_retry() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    let workflow = server.define(&confirmed("ships", &["ship:write", "bill:write"], &json!([])));
    for outcome in ["Failed", "Cancelled"] {
        let id = ann.start(&server, &workflow);
        assert_eq!(ann.answers(&server, &id, "ship", outcome).0, StatusCode::OK);
        let ended = until(&server, &id, "failed");
        assert_eq!(ended["view"]["status"], "Failed", "{ended}");
        let attempts = evidence(&server, &id).iter().filter(|entry| entry["actionId"] == "bill").count();
        assert!(attempts <= 1, "the next action never ran");
    }
}

#[test]
fn act_12_the_user_who_started_a_run_may_not_complete_it_under_maker_checker() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let workflow = server.define(&confirmed("ships", &["ship:write"], &json!([{ "kind": "MakerChecker" }])));
    let id = ann.start(&server, &workflow);
    for _ in 0..3 {
        let (status, refused) = ann.answers(&server, &id, "ship", "Succeeded");
        assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
        assert_eq!(refused["error"]["code"], "POLICY_VIOLATION");
        assert_eq!(refused["error"]["details"][0]["code"], "MakerChecker", "{refused}");
    }
    assert_eq!(get(&server, &id, "")["status"], "paused", "nothing has changed");
    let found = evidence(&server, &id);
    let violations: Vec<_> = found.iter().filter(|entry| entry["category"] == "PolicyViolation").collect();
    assert_eq!(violations.len(), 1, "a violation is recorded once: {found:?}");
    assert_eq!(violations[0]["actor"]["userId"], json!(ann.id));
    assert!(violations[0]["error"]["message"].as_str().unwrap().starts_with("MakerChecker: "));
    let (_, audit) = read_answer(server.get("/api/v1/audit?action=execution.violation"));
    assert_eq!(audit["entries"][0]["details"]["constraint"], "MakerChecker", "{audit}");
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "completed");
}

#[test]
fn act_12_the_user_who_triggers_a_schedule_may_not_complete_its_run_under_maker_checker() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let editor = person(&server, "eve", "developer", &[]);
    server.define(&confirmed("ships", &["ship:write"], &json!([{ "kind": "MakerChecker" }])));
    let schedule = json!({ "name": "ships", "schedule": { "kind": "cron", "expr": "0 6 1 1 *" },
        "target": { "kind": "workflow", "workflow_id": "ships" } });
    let (status, made) = editor.send(&server, Method::POST, "/api/v1/schedules", &schedule);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let trigger = format!("/api/v1/schedules/{}/trigger", made["id"].as_str().unwrap());
    let (status, triggered) = ann.send(&server, Method::POST, &trigger, &json!({ "reason": "late order" }));
    assert_eq!(status, StatusCode::OK, "{triggered}");
    let run = format!("/api/v1/runs/{}", triggered["run_id"].as_str().unwrap());
    let id = rig::until("the run has an execution", || {
        ann.get(&server, &run)["execution_id"].as_str().map(str::to_owned)
    });
    until(&server, &id, "paused");
    for maker in [&ann, &editor] {
        let (status, refused) = maker.answers(&server, &id, "ship", "Succeeded");
        assert_eq!(status, StatusCode::FORBIDDEN, "{refused}");
        assert_eq!(refused["error"]["details"][0]["code"], "MakerChecker", "{refused}");
    }
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "completed");
}

#[test]
fn act_12_two_tokens_of_one_person_are_one_user() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &[]);
    let other = |of: &Person| person_of(&server, "ann's laptop", &of.id);
    // The third is named after the second, which is the first.
    let (laptop, bob) = (other(&ann), person(&server, "bob", "member", &[]));
    let phone = other(&laptop);
    let maker = server.define(&confirmed("ships", &["ship:write"], &json!([{ "kind": "MakerChecker" }])));
    let id = laptop.start(&server, &maker);
    for own in [&ann, &laptop, &phone] {
        let (status, refused) = own.answers(&server, &id, "ship", "Succeeded");
        assert_eq!((status, &refused["error"]["code"]), (StatusCode::FORBIDDEN, &json!("POLICY_VIOLATION")));
    }
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);

    let two = json!([{ "kind": "DistinctApprovers", "minimumApprovers": 2 }]);
    let id = bob.start(&server, &server.define(&confirmed("twice", &["ship:write"], &two)));
    for own in [&ann, &laptop, &phone] {
        let (status, counted) = own.answers(&server, &id, "ship", "Succeeded");
        assert_eq!(status, StatusCode::ACCEPTED, "{counted}");
        assert_eq!(counted["approvals"], json!({ "given": 1, "needed": 2 }));
    }
    assert_eq!(phone.answers(&server, &id, "ship", "Failed").0, StatusCode::CONFLICT);
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);

    let duties = json!([{ "kind": "IncompatibleDuties", "dutyKeys": ["ship:write", "bill:write"] }]);
    let id = bob.start(&server, &server.define(&confirmed("duties", &["ship:write", "bill:write"], &duties)));
    assert_eq!(ann.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "paused");
    assert_eq!(phone.answers(&server, &id, "bill", "Succeeded").0, StatusCode::FORBIDDEN);

    let listed = read_answer(server.get("/api/v1/tokens")).1;
    let of_ann = listed["tokens"].as_array().unwrap().iter().filter(|token| token["person"] == ann.id);
    assert_eq!(of_ann.count(), 2, "{listed}");
    for wrong in ["", "ann", "jwt:", "user_00000000000000000000000000000000"] {
        let body = json!({ "name": "x", "role": "member", "person": wrong });
        let (status, refused) = server.post("/api/v1/tokens", &body);
        assert_eq!(
            (status, &refused["error"]["details"][0]["path"]),
            (StatusCode::BAD_REQUEST, &json!("person"))
        );
    }
}

#[test]
fn act_12_a_retry_keeps_approvals_only_for_the_inputs_that_they_were_given_for() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(
        &json!({
            "schemaVersion": 1, "workflowId": "pays", "name": "pays", "executionTier": "HumanApprove",
            "actions": [{ "actionId": "pay", "order": 1, "operation": "pay:send", "input": { "n": "{{ inputs.n }}" },
                "retryPolicy": { "maxAttempts": 1 } }],
            "adapters": { "operations": { "pay:send": { "kind": "python", "code": "raise ValueError(n)" } } },
        })
        .to_string(),
    );
    let (_, started) =
        server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "inputs": { "n": 1 } }));
    let id = started["executionId"].as_str().unwrap();
    until(&server, id, "paused");
    let approve = format!("/api/v1/executions/{id}/actions/pay/complete");
    assert_eq!(server.post(&approve, &json!({ "outcome": "Succeeded" })).0, StatusCode::OK);
    until(&server, id, "failed");
    let retry = format!("/api/v1/executions/{id}/retry");
    let (status, refused) = server.post(&retry, &json!({ "inputs": { "n": 1000 } }));
    assert_eq!(status, StatusCode::CONFLICT, "{refused}");
    assert!(refused.to_string().contains("start the workflow anew with the new inputs"), "{refused}");
    let (status, again) = server.post(&retry, &json!({}));
    assert!(status.is_success(), "{again}");
    let ended = until(&server, again["executionId"].as_str().unwrap(), "failed");
    assert_eq!(ended["view"]["actions"][0]["approval"], "Approved", "{ended}");
}

/// Another token of a person.
fn person_of(server: &Server, name: &str, of: &str) -> Person {
    let (status, made) =
        server.post("/api/v1/tokens", &json!({ "name": name, "role": "member", "person": of }));
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    Person { id: text("id"), token: text("token") }
}

#[test]
fn act_12_the_subject_of_a_jwt_may_be_the_person_of_a_token() {
    let secret = "0123456789abcdef0123456789abcdef";
    let flags = ["--jwt-issuer", "https://id.example", "--jwt-audience", "windlass"];
    let place = Place::new().variable("WINDLASS_JWT_SECRET", secret).with(&flags);
    let server = place.serve();
    let claims = json!({ "sub": "ann", "tenant": "default", "role": "member", "exp": 4_000_000_000_i64,
        "iss": "https://id.example", "aud": "windlass" });
    let token = jwt::sign(secret, &json!({ "alg": "HS256", "typ": "JWT" }), &claims);
    let ann = Person { id: "jwt:ann".to_owned(), token };
    let (script, bob) =
        (person_of(&server, "ann's script", "jwt:ann"), person(&server, "bob", "member", &[]));
    let maker = server.define(&confirmed("ships", &["ship:write"], &json!([{ "kind": "MakerChecker" }])));
    let id = ann.start(&server, &maker);
    assert_eq!(script.answers(&server, &id, "ship", "Succeeded").0, StatusCode::FORBIDDEN);
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
    let id = script.start(&server, &maker);
    assert_eq!(ann.answers(&server, &id, "ship", "Succeeded").0, StatusCode::FORBIDDEN);
}

#[test]
fn act_12_the_owner_of_the_folder_and_the_owners_token_are_one_user() {
    let place = Place::new();
    let server = place.serve();
    place.write("ships.json", &confirmed("ships", &["ship:write"], &json!([{ "kind": "MakerChecker" }])));
    let started = place.windlass(&["run", "ships.json", "--json"]).expect(5).json();
    let id = started["executionId"].as_str().unwrap();
    assert_eq!(started["metadata"]["triggeredBy"], "owner", "{started}");
    let me = read_answer(server.get("/api/v1/me")).1["id"].as_str().unwrap().to_owned();
    let owner = Person { id: me, token: server.token().to_owned() };
    let (status, refused) = owner.answers(&server, id, "ship", "Succeeded");
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::FORBIDDEN, &json!("POLICY_VIOLATION")));
    let workflow = started["workflowId"].as_str().unwrap();
    let id = owner.start(&server, workflow);
    let refused = place.windlass(&["executions", "signal", &id, "ship", "--outcome", "Succeeded"]);
    assert!(refused.code != 0 && refused.err.contains("POLICY_VIOLATION"), "{refused:?}");
    let bob = person(&server, "bob", "member", &[]);
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
}

#[test]
fn act_12_an_action_needs_as_many_users_as_distinct_approvers_says() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let constraints = json!([{ "kind": "DistinctApprovers", "minimumApprovers": 2 }]);
    let workflow = server.define(&confirmed("ships", &["ship:write"], &constraints));
    let id = ann.start(&server, &workflow);
    for _ in 0..2 {
        let (status, counted) = ann.answers(&server, &id, "ship", "Succeeded");
        assert_eq!(status, StatusCode::ACCEPTED, "{counted}");
        assert_eq!(counted["approvals"], json!({ "given": 1, "needed": 2 }));
    }
    assert_eq!(ann.answers(&server, &id, "ship", "Failed").0, StatusCode::CONFLICT);
    let counted = evidence(&server, &id).iter().filter(|entry| entry["outcome"] == "Counted").count();
    assert_eq!(counted, 1);
    assert_eq!(bob.answers(&server, &id, "ship", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "completed");
    let second = ann.start(&server, &workflow);
    assert_eq!(ann.answers(&server, &second, "ship", "Failed").0, StatusCode::OK, "one refusal is enough");
    until(&server, &second, "failed");
}

#[test]
fn act_12_signals_at_the_same_time_cannot_both_pass_the_last_check() {
    let place = Place::new();
    let server = place.serve();
    let people: Vec<Person> =
        (0..6).map(|number| person(&server, &format!("p{number}"), "member", &[])).collect();
    let constraints = json!([{ "kind": "DistinctApprovers", "minimumApprovers": 6 }]);
    let workflow = server.define(&confirmed("ships", &["ship:write"], &constraints));
    let id = people[0].start(&server, &workflow);
    let token = people[0].sees(&server, &id).unwrap();
    let path = format!("/api/v1/executions/{id}/actions/ship/complete");
    let requests = people.iter().map(|who| {
        let signal = who.signal(&id, "ship", &token, "Succeeded");
        server.bare(Method::POST, &path).bearer_auth(&who.token).json(&signal)
    });
    let requests: Vec<_> = requests.collect();
    let answers: Vec<StatusCode> = std::thread::scope(|threads| {
        let sent =
            requests.into_iter().map(|request| threads.spawn(move || request.send().unwrap().status()));
        let sent: Vec<_> = sent.collect();
        sent.into_iter().map(|one| one.join().unwrap()).collect()
    });
    let ended = answers.iter().filter(|status| **status == StatusCode::OK).count();
    let counted = answers.iter().filter(|status| **status == StatusCode::ACCEPTED).count();
    assert_eq!((ended, counted), (1, 5), "{answers:?}");
    until(&server, &id, "completed");
}

#[test]
fn act_12_a_user_performs_one_of_several_incompatible_duties() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let duties = ["order:write", "payment:write"];
    let constraints = json!([{ "kind": "IncompatibleDuties", "dutyKeys": duties }]);
    let id = ann.start(&server, &server.define(&confirmed("pays", &duties, &constraints)));
    assert_eq!(ann.answers(&server, &id, "order", "Succeeded").0, StatusCode::OK);
    crate::executions::looked_at(&server, &id, "the next action waits", |now| {
        now["waitingFor"][0]["actionId"] == "payment"
    });
    let (status, refused) = ann.answers(&server, &id, "payment", "Succeeded");
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(refused["error"]["details"][0]["code"], "IncompatibleDuties", "{refused}");
    assert_eq!(bob.answers(&server, &id, "payment", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "completed");
}

#[test]
fn act_12_a_specialist_is_a_user_whose_token_has_the_role() {
    let place = Place::new();
    let server = place.serve();
    let ann = person(&server, "ann", "member", &["clerk"]);
    let bob = person(&server, "bob", "member", &["controller"]);
    assert_eq!(bob.get(&server, "/api/v1/me")["roles"], json!(["controller"]));
    let constraints =
        json!([{ "kind": "SpecialistApproval", "requiredRoles": ["controller"], "rationale": "rule 7" }]);
    let id = ann.start(&server, &server.define(&confirmed("pays", &["payment:write"], &constraints)));
    let (status, refused) = ann.answers(&server, &id, "payment", "Succeeded");
    assert_eq!(status, StatusCode::FORBIDDEN);
    assert_eq!(refused["error"]["details"][0]["code"], "SpecialistApproval", "{refused}");
    assert_eq!(bob.answers(&server, &id, "payment", "Succeeded").0, StatusCode::OK);
    until(&server, &id, "completed");
}

#[test]
fn act_12_constraints_hold_for_approvals_before_an_action_too() {
    let place = Place::new();
    let server = place.serve();
    let (ann, bob) = (person(&server, "ann", "member", &[]), person(&server, "bob", "member", &[]));
    let text = json!({ "schemaVersion": 1, "workflowId": "pays", "name": "pays", "executionTier": "HumanApprove",
        "actions": [{ "actionId": "pay", "order": 1, "operation": "payment:write" }],
        "policy": { "sodConstraints": [{ "kind": "MakerChecker" }] },
        "adapters": { "operations": { "payment:write": { "kind": "noop" } } } });
    let id = ann.start(&server, &server.define(&text.to_string()));
    let short = json!({ "outcome": "Succeeded" });
    let (status, refused) = ann.complete(&server, &id, "pay", &short);
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::FORBIDDEN, &json!("POLICY_VIOLATION")));
    assert_eq!(bob.complete(&server, &id, "pay", &short).0, StatusCode::OK);
    until(&server, &id, "completed");
}
