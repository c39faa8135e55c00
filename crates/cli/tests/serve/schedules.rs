//! Schedules: resources, planner, dispatcher, targets.

use crate::receiver::Receiver;
use crate::rig::{Place, Server, playbook, read_answer, until};
use reqwest::Method;
use serde_json::{Value, json};

/// A schedule that is due only when it is triggered.
pub fn shell(name: &str, script: &str) -> Value {
    json!({
        "name": name,
        "timezone": "Europe/Berlin",
        "schedule": { "kind": "cron", "expr": "0 6 1 1 *" },
        "target": { "kind": "shell", "command": "sh", "args": ["-c", script] },
    })
}

pub fn with(mut document: Value, field: &str, value: Value) -> Value {
    document[field] = value;
    document
}

pub fn every_second(document: Value) -> Value {
    with(document, "schedule", json!({ "kind": "interval", "every_seconds": 1 }))
}

#[track_caller]
pub fn create(server: &Server, document: &Value) -> String {
    let (status, made) = server.post("/api/v1/schedules", document);
    assert_eq!(status, 201, "{made}");
    made["id"].as_str().unwrap().to_owned()
}

pub fn get(server: &Server, path: &str) -> Value {
    read_answer(server.get(path)).1
}

pub fn send(server: &Server, method: Method, path: &str, body: &Value) -> (u16, Value) {
    let (status, answer) = read_answer(server.request(method, path).json(body).send().unwrap());
    (status.as_u16(), answer)
}

#[track_caller]
pub fn trigger(server: &Server, schedule: &str) -> String {
    let (status, run) =
        server.post(&format!("/api/v1/schedules/{schedule}/trigger"), &json!({ "reason": "test" }));
    assert_eq!(status, 200, "{run}");
    run["run_id"].as_str().unwrap().to_owned()
}

/// Waits until a run has a status.
#[track_caller]
pub fn until_run(server: &Server, run: &str, status: &str) -> Value {
    until(&format!("run {run} is {status}"), || {
        let found = get(server, &format!("/api/v1/runs/{run}"));
        (found["status"] == status).then_some(found)
    })
}

/// Runs of a schedule, the oldest first, with all their fields.
pub fn runs(server: &Server, schedule: &str) -> Vec<Value> {
    let listed = get(server, &format!("/api/v1/runs?schedule_id={schedule}&limit=200"));
    let ids: Vec<&str> =
        listed["items"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect();
    ids.iter().rev().map(|id| get(server, &format!("/api/v1/runs/{id}"))).collect()
}

pub fn statuses(server: &Server, schedule: &str) -> Vec<String> {
    let status = |run: &Value| format!("{} {}", run["attempt"], run["status"].as_str().unwrap());
    runs(server, schedule).iter().map(status).collect()
}

#[test]
fn sch_21_a_schedule_has_all_its_fields_and_each_wrong_one_is_named() {
    let place = Place::new();
    let server = place.serve();
    let document = with(shell("tick", "true"), "policy", json!({ "overlap": "replace" }));
    let (status, made) = server.post("/api/v1/schedules", &document);
    assert_eq!(status, 201, "{made}");
    for field in ["start_at", "end_at", "paused_at", "last_run_at"] {
        assert_eq!(made.get(field), Some(&Value::Null), "{field} of {made}");
    }
    assert_eq!(
        made["policy"],
        json!({ "overlap": "replace", "misfire": "run_once_if_late", "timeout_seconds": 300, "max_concurrency": 1,
            "jitter_seconds": 0 })
    );
    assert!(made["next_run_at"].as_str().unwrap().ends_with("-01-01T05:00:00.000Z"), "{made}");
    let id = made["id"].as_str().unwrap();
    assert_eq!(get(&server, &format!("/api/v1/schedules/{id}")), made);
    let (status, refused) = server.post("/api/v1/schedules", &document);
    assert_eq!(
        (status.as_u16(), &refused["error"]["details"][0]["path"]),
        (409, &json!("name")),
        "{refused}"
    );
    let wrong = json!({ "name": "", "timezone": "Mars/Base", "schedule": { "kind": "cron", "expr": "0 0 30 2" }, "target": { "kind": "http" }, "x": 1 });
    let (status, refused) = server.post("/api/v1/schedules", &wrong);
    let paths: Vec<&str> = refused["error"]["details"]
        .as_array()
        .unwrap()
        .iter()
        .map(|detail| detail["path"].as_str().unwrap())
        .collect();
    assert_eq!(status, 400);
    assert_eq!(paths, ["schedule.expr", "target.method", "target.url", "name", "timezone", "x"]);
    let never = with(shell("never", "true"), "schedule", json!({ "kind": "cron", "expr": "0 0 30 2 *" }));
    assert_eq!(server.post("/api/v1/schedules", &never).1["error"]["details"][0]["path"], "schedule.expr");
    let unknown = with(shell("w", "true"), "target", json!({ "kind": "workflow", "workflow_id": "nobody" }));
    assert_eq!(
        server.post("/api/v1/schedules", &unknown).1["error"]["details"][0]["path"],
        "target.workflow_id"
    );
}

#[test]
fn schedules_are_patched_replaced_paused_listed_and_deleted() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &with(shell("one", "true"), "end_at", json!("2099-01-01T00:00:00Z")));
    let path = format!("/api/v1/schedules/{id}");
    let (status, patched) =
        send(&server, Method::PATCH, &path, &json!({ "end_at": null, "policy": { "timeout_seconds": 5 } }));
    assert_eq!((status, &patched["end_at"]), (200, &Value::Null), "{patched}");
    assert_eq!(
        (&patched["policy"]["timeout_seconds"], &patched["policy"]["overlap"]),
        (&json!(5), &json!("forbid"))
    );
    let (_, other) = send(
        &server,
        Method::PATCH,
        &path,
        &json!({ "schedule": { "kind": "once", "at": "2098-01-01T00:00:00Z" } }),
    );
    assert_eq!(other["next_run_at"], "2098-01-01T00:00:00.000Z", "{other}");
    assert_eq!(send(&server, Method::PATCH, &path, &json!({ "timezone": "x" })).0, 400);
    create(&server, &shell("two", "true"));
    assert_eq!(send(&server, Method::PATCH, &path, &json!({ "name": "two" })).0, 409);
    let (status, replaced) = send(&server, Method::PUT, &path, &shell("three", "true"));
    assert_eq!(
        (status, &replaced["name"], &replaced["policy"]["timeout_seconds"]),
        (200, &json!("three"), &json!(300))
    );
    let (status, paused) = send(&server, Method::POST, &format!("{path}/pause"), &json!({}));
    assert_eq!((status, &paused["enabled"]), (200, &json!(false)));
    assert!(paused["paused_at"].is_string(), "{paused}");
    let (_, resumed) = send(&server, Method::POST, &format!("{path}/resume"), &json!({}));
    assert_eq!((&resumed["enabled"], &resumed["paused_at"]), (&json!(true), &Value::Null));
    assert!(resumed["next_run_at"].is_string(), "{resumed}");
    create(&server, &with(shell("four", "true"), "enabled", json!(false)));
    let names = |query: &str| {
        let listed = get(&server, &format!("/api/v1/schedules{query}"));
        let items = listed["items"].as_array().unwrap();
        let names: Vec<String> = items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect();
        (names, listed["next_cursor"].as_str().map(str::to_owned))
    };
    assert_eq!(names("").0, ["four", "two", "three"]);
    assert_eq!(names("?enabled=false").0, ["four"]);
    let (first, cursor) = names("?limit=2");
    let (rest, end) = names(&format!("?limit=2&cursor={}", cursor.unwrap()));
    assert_eq!(
        (first, rest, end),
        (vec!["four".to_owned(), "two".to_owned()], vec!["three".to_owned()], None)
    );
    assert_eq!(server.get("/api/v1/schedules?enabled=1").status(), 400);
    assert_eq!(server.get("/api/v1/schedules?cursor=x").status(), 400);
    assert_eq!(send(&server, Method::DELETE, &path, &json!({})), (200, json!({ "deleted": true, "id": id })));
    assert_eq!(server.get(&path).status(), 404);
    assert_eq!(send(&server, Method::POST, &format!("{path}/trigger"), &json!({ "reason": "x" })).0, 404);
}

#[test]
fn a_change_that_was_made_from_another_revision_is_refused() {
    let place = Place::new();
    let server = place.serve();
    let path = format!("/api/v1/schedules/{}", create(&server, &shell("one", "true")));
    let tag = || {
        let answer = server.get(&path);
        let tag = answer.headers()["etag"].to_str().unwrap().to_owned();
        assert_eq!(tag, format!("\"{}\"", read_answer(answer).1["revision"]));
        tag
    };
    let change = |method: Method, body: &Value, tag: &str| {
        let request = server.request(method, &path).header("If-Match", tag).json(body);
        let answer = request.send().unwrap();
        let tag = answer.headers().get("etag").map(|tag| tag.to_str().unwrap().to_owned());
        let (status, body) = read_answer(answer);
        (status.as_u16(), tag, body)
    };
    let first = tag();
    let (status, second, body) = change(Method::PUT, &shell("two", "true"), &first);
    assert_eq!((status, &body["name"]), (200, &json!("two")), "{body}");
    assert_eq!(second.as_deref(), Some(&*tag()));
    for (method, body) in
        [(Method::PUT, shell("three", "true")), (Method::PATCH, json!({ "timezone": "UTC" }))]
    {
        let (status, _, refused) = change(method, &body, &first);
        assert_eq!((status, &refused["error"]["code"]), (412, &json!("PRECONDITION_FAILED")), "{refused}");
    }
    assert_eq!(get(&server, &path)["name"], "two");
    let (status, ..) = change(Method::PATCH, &json!({ "timezone": "Europe/Berlin" }), &tag());
    assert_eq!(status, 200);
    assert_eq!(change(Method::PATCH, &json!({ "name": "four" }), "*").0, 200);
    let (status, _, refused) = change(Method::PATCH, &json!({ "name": "five" }), "W/x");
    assert_eq!((status, &refused["error"]["details"][0]["path"]), (400, &json!("If-Match")), "{refused}");
}

#[test]
fn sch_05_sch_13_sch_19_a_triggered_program_runs_with_its_arguments_as_they_are() {
    let place = Place::new();
    let server = place.serve();
    let target = json!({ "kind": "shell", "command": "sh",
        "args": ["-c", "printf '%s|' \"$@\" \"$GREETING\"; echo noise >&2", "sh", "a b", "{{ workload }}", "$HOME;`id`"],
        "env": { "GREETING": "it's {{ x }}" } });
    let id = create(&server, &with(shell("words", ""), "target", target));
    let run = trigger(&server, &id);
    let done = until_run(&server, &run, "succeeded");
    assert_eq!(done["occurrence_key"], json!(format!("manual:{run}")));
    assert_eq!((&done["exit_code"], &done["attempt"]), (&json!(0), &json!(1)));
    assert!(done["started_at"].is_string() && done["finished_at"].is_string(), "{done}");
    let receipts: Vec<(&str, &str)> = done["receipts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|receipt| (receipt["receipt_kind"].as_str().unwrap(), receipt["body"].as_str().unwrap()))
        .collect();
    assert_eq!(receipts, [("stdout", "a b|{{ workload }}|$HOME;`id`|it's {{ x }}|"), ("stderr", "noise\n")]);
    let execution = get(&server, &format!("/api/v1/executions/{}", done["execution_id"].as_str().unwrap()));
    assert_eq!(
        (&execution["status"], &execution["metadata"]["triggerType"]),
        (&json!("completed"), &json!("schedule"))
    );
    let schedule = get(&server, &format!("/api/v1/schedules/{id}"));
    assert_eq!(schedule["last_run_at"], done["finished_at"]);
    let (status, refused) = send(&server, Method::POST, &format!("/api/v1/runs/{run}/cancel"), &json!({}));
    assert_eq!(status, 409, "{refused}");
}

#[test]
fn sch_06_sch_09_sch_19_a_failing_request_is_retried_and_becomes_a_dead_letter() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.0/8");
    let server = place.serve();
    let receiver = Receiver::answering(|before, _| if before < 2 { "503 Busy" } else { "200 OK" }.to_owned());
    let target = json!({ "kind": "http", "method": "post", "url": receiver.url, "headers": { "X-Test": "{{ 1 }}" }, "body": { "n": "{{ 2 }}" } });
    let document = with(
        with(shell("hook", ""), "target", target),
        "retry",
        json!({ "max_attempts": 2, "initial_delay_seconds": 1 }),
    );
    let id = create(&server, &document);
    let first = trigger(&server, &id);
    let letter =
        until("a dead letter is there", || get(&server, "/api/v1/dead-letters")["items"].get(0).cloned());
    assert_eq!(statuses(&server, &id), ["1 failed", "2 dead_lettered"]);
    let all = runs(&server, &id);
    assert_eq!((&all[0]["id"], &all[0]["http_status_code"]), (&json!(first), &json!(503)), "{}", all[0]);
    assert_eq!(
        (&all[1]["occurrence_key"], &letter["occurrence_key"]),
        (&all[0]["occurrence_key"], &all[0]["occurrence_key"])
    );
    assert_eq!((&letter["run_id"], &letter["reason"]), (&all[1]["id"], &all[1]["error_text"]));
    assert!(all[1]["retry_available_at"].as_str().unwrap() > all[0]["finished_at"].as_str().unwrap());
    let sent = &receiver.all()[0];
    assert_eq!((sent.headers["x-test"].as_str(), sent.json()), ("{{ 1 }}", json!({ "n": "{{ 2 }}" })));
    let path = format!("/api/v1/dead-letters/{}", letter["id"].as_str().unwrap());
    let (status, redriven) = send(&server, Method::POST, &format!("{path}/redrive"), &json!({}));
    assert_eq!(status, 200, "{redriven}");
    let done = until_run(&server, redriven["run_id"].as_str().unwrap(), "succeeded");
    assert_eq!(
        (&done["http_status_code"], &done["receipts"][0]["receipt_kind"]),
        (&json!(200), &json!("http_response")),
        "{done}"
    );
    assert_eq!(get(&server, &path)["resolution"], "redriven");
    assert_eq!(send(&server, Method::POST, &format!("{path}/discard"), &json!({})).0, 409);
}

#[test]
fn sch_02_sch_19_a_workflow_runs_at_its_time_exactly_once() {
    let place = Place::new();
    let server = place.serve();
    server.define(&playbook("nightly", "workload: {who: none}\nworkflow:\n- {step: greet, tool: {kind: shell, command: 'echo {{ workload.who }}'}}\n"));
    let at = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(1);
    let document = json!({ "name": "once", "schedule": { "kind": "once", "at": at.to_string() },
        "target": { "kind": "workflow", "workflow_id": "nightly", "input": { "who": "ada" }, "version": 1 } });
    let id = create(&server, &document);
    let done = until("the run has succeeded", || {
        runs(&server, &id).into_iter().find(|run| run["status"] == "succeeded")
    });
    assert_eq!(done["result_json"]["stdout"], "ada\n", "{done}");
    assert_eq!(done["occurrence_key"], json!(format!("{id}:{}", at.strftime("%Y-%m-%dT%H:%M:%SZ"))));
    assert_eq!(done["claimed_by_worker_id"].as_str().map(|id| &id[..4]), Some("wrk_"));
    let schedule = get(&server, &format!("/api/v1/schedules/{id}"));
    assert_eq!((&schedule["next_run_at"], runs(&server, &id).len()), (&Value::Null, 1));
    let explained = get(&server, &format!("/api/v1/schedules/{id}/explain"));
    assert_eq!(explained["next"], json!([]));
    assert_eq!(
        (&explained["past"][0]["status"], &explained["past"][0]["reason"]),
        (&json!("succeeded"), &json!("attempt 1 succeeded"))
    );
}

#[test]
fn sch_17_sch_23_a_newer_occurrence_waits_replaces_or_is_refused_by_policy() {
    let place = Place::new();
    let server = place.serve();
    let block = |name: &str, overlap: &str| {
        let document =
            with(shell(name, "sleep 300"), "policy", json!({ "overlap": overlap, "max_concurrency": 2 }));
        let id = create(&server, &document);
        let first = trigger(&server, &id);
        until_run(&server, &first, "running");
        (id, first)
    };
    let (id, first) = block("forbid", "forbid");
    let waiting = [trigger(&server, &id), trigger(&server, &id)];
    assert_eq!(statuses(&server, &id), ["1 running", "1 pending", "1 pending"]);
    assert_eq!(
        send(&server, Method::POST, &format!("/api/v1/runs/{}/cancel", waiting[0]), &json!({})).1["status"],
        "cancelled"
    );
    assert_eq!(send(&server, Method::DELETE, &format!("/api/v1/schedules/{id}"), &json!({})).0, 409);
    send(&server, Method::POST, &format!("/api/v1/runs/{first}/cancel"), &json!({}));
    until_run(&server, &waiting[1], "running");
    assert_eq!(
        statuses(&server, &id),
        ["1 cancelled", "1 cancelled", "1 running"],
        "no retry follows a cancel"
    );
    let (id, _) = block("latest", "queue_latest");
    let superseded = trigger(&server, &id);
    let newest = trigger(&server, &id);
    assert_eq!(
        until_run(&server, &superseded, "skipped")["error_text"],
        "superseded by newer queued occurrence"
    );
    assert_eq!(get(&server, &format!("/api/v1/runs/{newest}"))["status"], "pending");
    let (id, first) = block("replace", "replace");
    let newest = trigger(&server, &id);
    until_run(&server, &first, "cancelled");
    until_run(&server, &newest, "running");
    let (id, _) = block("allow", "allow");
    let second = trigger(&server, &id);
    until_run(&server, &second, "running");
    let third = trigger(&server, &id);
    assert_eq!(get(&server, &format!("/api/v1/runs/{third}"))["status"], "pending");
}

#[test]
fn a_list_of_runs_is_sent_when_it_differs_from_the_page_that_was_seen() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &every_second(shell("tick", "true")));
    for path in [format!("/api/v1/runs?schedule_id={id}"), format!("/api/v1/schedules/{id}/runs?limit=200")] {
        assert_eq!(get(&server, &path).get("tag"), None);
        let mut page = get(&server, &format!("{path}&wait_ms=0"));
        let mut statuses = std::collections::BTreeSet::new();
        while !statuses.contains("succeeded") {
            let tag = page["tag"].as_str().unwrap().to_owned();
            page = get(&server, &format!("{path}&wait_ms=30000&seen={tag}"));
            assert_ne!(page["tag"], tag, "it was sent because of a change: {page}");
            let runs = page["items"].as_array().unwrap().iter();
            statuses.extend(runs.map(|run| run["status"].as_str().unwrap().to_owned()));
        }
    }
    let pause = send(&server, Method::POST, &format!("/api/v1/schedules/{id}/pause"), &json!({}));
    assert_eq!(pause.0, 200, "{pause:?}");
    let ended = format!("/api/v1/runs?schedule_id={id}&status=failed");
    let none = get(&server, &format!("{ended}&wait_ms=0"));
    let tag = none["tag"].as_str().unwrap();
    assert_eq!(get(&server, &format!("{ended}&wait_ms=1&seen={tag}")), none);
    assert_eq!(get(&server, &format!("{ended}&wait_ms=30000&seen=another")), none);
    assert_eq!(get(&server, &format!("{ended}&wait_ms=30000")), none, "there is nothing to compare with");
    let (status, refused) = read_answer(server.get("/api/v1/runs?wait_ms=30001"));
    let details = &refused["error"]["details"][0];
    assert_eq!(
        (status.as_u16(), &details["path"], &details["message"]),
        (400, &json!("wait_ms"), &json!("must be at most 30000"))
    );
}

#[test]
fn sch_11_sch_22_a_run_that_is_killed_with_its_server_has_failed_and_is_retried() {
    let place = Place::new();
    let server = place.serve();
    let flag = place.path("second");
    let script = format!("if [ -e {0} ]; then exit 0; fi; touch {0}; sleep 300", flag.display());
    let document =
        with(shell("killed", &script), "retry", json!({ "max_attempts": 3, "initial_delay_seconds": 1 }));
    let id = create(&server, &document);
    let run = trigger(&server, &id);
    until_run(&server, &run, "running");
    until("the program has begun", || flag.exists().then_some(()));
    server.kill();
    let server = place.serve();
    let failed = until_run(&server, &run, "failed");
    assert_eq!(failed["error_text"], "worker lease expired during execution");
    until("the retry has succeeded", || {
        (statuses(&server, &id) == ["1 failed", "2 succeeded"]).then_some(())
    });
}

#[test]
fn sch_08_a_stop_cancels_programs_and_keeps_workflows() {
    let place = Place::new();
    let server = place.serve();
    let gate = place.path("gate");
    let wait = format!(
        "workflow:\n- {{step: wait, tool: {{kind: shell, command: 'while [ ! -e {} ]; do sleep 0.05; done'}}}}\n",
        gate.display()
    );
    server.define(&playbook("waits", &wait));
    let target = json!({ "kind": "workflow", "workflow_id": "waits" });
    let workflow = create(&server, &with(shell("workflow", ""), "target", target));
    let program =
        create(&server, &with(shell("program", "sleep 300"), "retry", json!({ "max_attempts": 3 })));
    let (kept, stopped) = (trigger(&server, &workflow), trigger(&server, &program));
    until_run(&server, &kept, "running");
    until_run(&server, &stopped, "running");
    assert!(server.stop().0.success());
    let server = place.serve();
    assert_eq!(until_run(&server, &stopped, "cancelled")["error_text"], "the server was stopped");
    assert_eq!(get(&server, &format!("/api/v1/runs/{kept}"))["status"], "running");
    std::fs::write(&gate, "").unwrap();
    until_run(&server, &kept, "succeeded");
    assert_eq!(statuses(&server, &program), ["1 cancelled"], "no retry follows a stop");
}

#[test]
fn sch_12_sch_18_occurrences_missed_in_a_pause_follow_the_misfire_policy() {
    let place = Place::new();
    let server = place.serve();
    let document = every_second(shell("late", "true"));
    let id = create(&server, &with(document, "policy", json!({ "misfire": "catch_up" })));
    until("it has run", || statuses(&server, &id).first().filter(|run| *run == "1 succeeded").cloned());
    let path = format!("/api/v1/schedules/{id}");
    send(&server, Method::POST, &format!("{path}/pause"), &json!({}));
    send(&server, Method::PATCH, &path, &json!({ "policy": { "misfire": "run_once_if_late" } }));
    let before = runs(&server, &id).len();
    let paused_at: jiff::Timestamp = get(&server, &path)["paused_at"].as_str().unwrap().parse().unwrap();
    until("three seconds have passed", || {
        (jiff::Timestamp::now().duration_since(paused_at).as_secs() >= 3).then_some(())
    });
    assert_eq!(runs(&server, &id).len(), before, "nothing is planned in a pause");
    send(&server, Method::POST, &format!("{path}/resume"), &json!({}));
    let skipped = until("missed occurrences are recorded", || {
        runs(&server, &id).into_iter().find(|run| run["status"] == "skipped")
    });
    assert_eq!(skipped["error_text"], "skipped due to run_once_if_late policy");
    assert_eq!(skipped["finished_at"], skipped["created_at"]);
}

#[test]
fn a_timeout_is_a_failure_and_a_tenant_sees_its_own_runs_only() {
    let place = Place::new();
    let server = place.serve();
    let document = with(shell("slow", "sleep 300"), "policy", json!({ "timeout_seconds": 1 }));
    let id = create(&server, &document);
    let run = trigger(&server, &id);
    let dead = until_run(&server, &run, "dead_lettered");
    assert_eq!(dead["error_text"], "execution timed out after 1s");
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let (_, token) =
        server.post("/api/v1/tokens", &json!({ "name": "x", "role": "owner", "tenantId": tenant["id"] }));
    let other = |method: Method, path: &str| {
        let request = server.bare(method, path).bearer_auth(token["token"].as_str().unwrap());
        read_answer(request.send().unwrap())
    };
    for path in ["/api/v1/schedules", "/api/v1/runs", "/api/v1/dead-letters"] {
        assert_eq!(other(Method::GET, path).1, json!({ "items": [], "next_cursor": null }), "{path}");
    }
    let letter = get(&server, "/api/v1/dead-letters")["items"][0]["id"].as_str().unwrap().to_owned();
    for path in [format!("schedules/{id}"), format!("runs/{run}"), format!("dead-letters/{letter}")] {
        assert_eq!(other(Method::GET, &format!("/api/v1/{path}")).0, 404, "{path}");
    }
    assert_eq!(other(Method::POST, &format!("/api/v1/dead-letters/{letter}/discard")).0, 404);
    assert_eq!(other(Method::POST, &format!("/api/v1/runs/{run}/cancel")).0, 404);
}

/// All entries of a list, page by page.
pub fn pages(server: &Server, path: &str) -> Vec<Value> {
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(server, &format!("{path}?limit=50{cursor}"));
        found.extend(page["items"].as_array().unwrap().iter().cloned());
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return found,
        }
    }
}

#[test]
fn sch_07_kills_in_a_storm_of_retries_lose_no_retry_and_no_dead_letter() {
    storm(8);
}

#[test]
#[ignore = "takes some minutes"]
fn sch_07_a_hundred_kills_in_a_storm_of_retries_lose_no_retry_and_no_dead_letter() {
    storm(100);
}

/// Kills the server at random moments while runs fail and are retried.
fn storm(kills: usize) {
    let place = Place::new();
    let mut server = place.serve();
    let schedules: Vec<String> = ["a", "b", "c"]
        .iter()
        .map(|name| {
            let retry = json!({ "max_attempts": 3, "initial_delay_seconds": 1, "max_delay_seconds": 1 });
            let document = with(every_second(shell(name, "exit 3")), "retry", retry);
            create(&server, &with(document, "policy", json!({ "overlap": "allow", "max_concurrency": 9 })))
        })
        .collect();
    let mut final_runs = std::collections::BTreeMap::<String, Value>::new();
    for kill in 1..=kills {
        let all = until("more runs have begun", || {
            Some(pages(&server, "/api/v1/runs")).filter(|all| all.len() > kill * 12)
        });
        let ended = all.iter().filter(|run| !run["finished_at"].is_null());
        for run in ended {
            let known = final_runs.entry(run["id"].as_str().unwrap().to_owned()).or_insert(run.clone());
            assert_eq!(known, run, "a run that has ended is never changed");
        }
        let moment = jiff::Timestamp::now().subsec_nanosecond().unsigned_abs() % 300_000_000;
        std::thread::sleep(std::time::Duration::from_nanos(moment.into()));
        server.kill();
        server = place.serve();
    }
    for id in &schedules {
        assert_eq!(send(&server, Method::POST, &format!("/api/v1/schedules/{id}/pause"), &json!({})).0, 200);
    }
    let open = ["pending", "claimed", "running", "retry_scheduled"];
    let all = until("all runs have ended", || {
        let all = pages(&server, "/api/v1/runs");
        (!all.iter().any(|run| open.contains(&run["status"].as_str().unwrap()))).then_some(all)
    });
    let mut chains = std::collections::BTreeMap::<String, Vec<(u64, String)>>::new();
    for run in &all {
        let chain = chains.entry(run["occurrence_key"].as_str().unwrap().to_owned()).or_default();
        chain.push((run["attempt"].as_u64().unwrap(), run["status"].as_str().unwrap().to_owned()));
    }
    let failed = [(1, "failed".to_owned()), (2, "failed".to_owned()), (3, "dead_lettered".to_owned())];
    let mut dead = 0;
    for (key, mut chain) in chains {
        chain.sort();
        match chain.as_slice() {
            [(1, status)] if status == "skipped" => {}
            chain => {
                assert_eq!(chain, failed, "{key}");
                dead += 1;
            }
        }
    }
    assert!(dead > kills, "the storm had {dead} chains");
    assert_eq!(pages(&server, "/api/v1/dead-letters").len(), dead);
}
