//! Schedules in operation: leases, backfills, jitter, bounds, webhooks, metrics.

use crate::receiver::Receiver;
use crate::rig::{Place, Server, playbook, read_answer, until};
use crate::schedules::{create, every_second, get, runs, send, shell, statuses, trigger, until_run, with};
use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};

fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

#[test]
fn sch_04_sch_14_a_running_run_keeps_its_start_and_its_lease_is_renewed_at_half_of_its_time() {
    // The name of the variable in the system that the document describes.
    let place = Place::new().variable("WAKEPLANE_LEASE_TTL_SECONDS", "2");
    let server = place.serve();
    let gate = place.path("gate");
    let script = format!("while [ ! -e {} ]; do sleep 0.05; done", gate.display());
    let run = trigger(&server, &create(&server, &shell("long", &script)));
    let first = until_run(&server, &run, "running");
    let started = time(&first["started_at"]);
    assert!(started >= time(&first["created_at"]), "{first}");
    let mut expiry = time(&first["claim_expires_at"]);
    // Three renewals: a lease that was not renewed would have expired meanwhile, and the run with it.
    for _ in 0..3 {
        let next = until("the lease is renewed", || {
            let run = get(&server, &format!("/api/v1/runs/{run}"));
            assert_eq!(run["status"], "running", "{run}");
            Some(time(&run["claim_expires_at"])).filter(|next| *next > expiry)
        });
        assert!(next.duration_since(expiry) <= SignedDuration::from_secs(60), "{next}");
        expiry = next;
    }
    std::fs::write(&gate, "").unwrap();
    let done = until_run(&server, &run, "succeeded");
    assert_eq!(time(&done["started_at"]), started);
    assert!(time(&done["finished_at"]) >= started + SignedDuration::from_secs(2), "{done}");
}

fn backfill(server: &Server, id: &str, from: &str, to: &str, dry_run: bool) -> (u16, Value) {
    let body = json!({ "from": from, "to": to, "dry_run": dry_run });
    send(server, Method::POST, &format!("/api/v1/schedules/{id}/backfill"), &body)
}

#[test]
fn a_backfill_runs_each_occurrence_of_a_past_time_once_after_a_preview() {
    let place = Place::new();
    let server = place.serve();
    let daily = json!({ "kind": "cron", "expr": "30 2 * * *" });
    let id = create(&server, &with(shell("daily", "true"), "schedule", daily));
    // The clocks of Berlin are set forward on the 29th, when 2:30 does not exist.
    let (from, to) = ("2026-03-28T00:00:00Z", "2026-03-30T23:00:00Z");
    let nominal = ["2026-03-28T01:30:00.000Z", "2026-03-29T01:00:00.000Z", "2026-03-30T00:30:00.000Z"];
    let (status, preview) = backfill(&server, &id, from, to, true);
    assert_eq!((status, preview), (200, json!({ "occurrences": nominal, "created": 0 })));
    assert!(runs(&server, &id).is_empty());
    assert_eq!(backfill(&server, &id, from, to, false).1, json!({ "occurrences": nominal, "created": 3 }));
    until("all have run", || (statuses(&server, &id) == ["1 succeeded"; 3]).then_some(()));
    let explain = |query: &str| get(&server, &format!("/api/v1/schedules/{id}/explain?{query}"));
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = explain(&format!("past=2{cursor}"));
        let times = page["past"].as_array().unwrap().iter().map(|past| past["nominal_time"].clone());
        pages.push(times.collect::<Vec<_>>());
        let Some(next) = page["past_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(pages, [vec![json!(nominal[2]), json!(nominal[1])], vec![json!(nominal[0])]]);
    assert_eq!(explain("cursor=abc")["error"]["details"][0]["path"], "cursor");
    let mut times: Vec<String> =
        runs(&server, &id).iter().map(|run| run["nominal_time"].as_str().unwrap().to_owned()).collect();
    times.sort();
    assert_eq!(times, nominal);
    let keys = runs(&server, &id).iter().all(|run| run["occurrence_key"].as_str().unwrap().starts_with(&id));
    assert!(keys, "occurrences without a run have their own key");
    assert_eq!(backfill(&server, &id, from, to, false).1, json!({ "occurrences": [], "created": 0 }));
    for (from, to, field) in [
        ("2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", "to"),
        ("2026-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "to"),
        ("1990-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "to"),
        ("soon", "2026-01-01T00:00:00Z", "from"),
    ] {
        let (status, refused) = backfill(&server, &id, from, to, false);
        assert_eq!(
            (status, refused["error"]["details"][0]["path"].as_str()),
            (400, Some(field)),
            "{refused}"
        );
    }
}

#[test]
fn a_backfill_runs_occurrences_that_were_skipped() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &every_second(shell("late", "true")));
    let path = format!("/api/v1/schedules/{id}");
    until("it has run", || statuses(&server, &id).first().filter(|run| *run == "1 succeeded").cloned());
    // A change to disabled is a pause.
    send(&server, Method::PATCH, &path, &json!({ "enabled": false }));
    let paused_at = time(&get(&server, &path)["paused_at"]);
    until("three seconds have passed", || {
        (Timestamp::now().duration_since(paused_at).as_secs() >= 3).then_some(())
    });
    send(&server, Method::PATCH, &path, &json!({ "enabled": true }));
    let skipped = until("missed occurrences are recorded", || {
        runs(&server, &id).into_iter().find(|run| run["status"] == "skipped")
    });
    send(&server, Method::POST, &format!("{path}/pause"), &json!({}));
    let nominal = skipped["nominal_time"].as_str().unwrap();
    let (_, done) = backfill(&server, &id, nominal, nominal, false);
    assert_eq!(done, json!({ "occurrences": [nominal], "created": 1 }));
    let ran = until("it has run", || {
        let same = |run: &Value| run["nominal_time"] == nominal && run["status"] == "succeeded";
        runs(&server, &id).into_iter().find(same)
    });
    assert_eq!(ran["occurrence_key"], json!(format!("manual:{}", ran["id"].as_str().unwrap())));
    assert_eq!(get(&server, &format!("/api/v1/runs/{}", skipped["id"].as_str().unwrap())), skipped);
    assert_eq!(backfill(&server, &id, nominal, nominal, false).1["created"], 0);
}

#[test]
fn jitter_delays_a_start_by_the_same_time_wherever_it_is_computed() {
    let place = Place::new();
    let server = place.serve();
    let document = with(shell("spread", "true"), "policy", json!({ "jitter_seconds": 3600 }));
    let id = create(&server, &document);
    let explain = || get(&server, &format!("/api/v1/schedules/{id}/explain?next=2"))["next"].clone();
    let reason = explain()[0]["reason"].as_str().unwrap().to_owned();
    assert!(reason.contains("its jitter lets it start at 20"), "{reason}");
    assert_eq!(explain(), explain());
    assert_ne!(explain()[0]["reason"], explain()[1]["reason"]);
    let once = Timestamp::now() + SignedDuration::from_secs(1);
    let soon = json!({ "kind": "once", "at": once.to_string() });
    let id = create(&server, &with(with(document, "schedule", soon), "name", json!("soon")));
    let waits = until("it is planned", || runs(&server, &id).pop());
    assert!(time(&waits["due_time"]) >= time(&waits["nominal_time"]), "{waits}");
    let past = get(&server, &format!("/api/v1/schedules/{id}/explain"))["past"][0]["reason"].clone();
    assert!(past.as_str().unwrap().starts_with("it starts at 20"), "{past}");
}

#[test]
fn a_dead_letter_is_reported_to_the_webhook_of_its_schedule_until_it_is_taken() {
    let receiver = Receiver::answering(|before, _| match before {
        0 => "503 Service Unavailable".to_owned(),
        _ => "200 OK".to_owned(),
    });
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.0/8");
    let server = place.serve();
    let document = with(shell("dies", "exit 3"), "dead_letter_webhook", json!(receiver.url));
    let id = create(&server, &document);
    let run = trigger(&server, &id);
    let sent = until("the second attempt has arrived", || receiver.all().get(1).cloned());
    let body = sent.json();
    let letter = get(&server, "/api/v1/dead-letters")["items"][0].clone();
    assert_eq!(body["event"], "schedule.dead_lettered");
    for field in ["id", "schedule_id", "run_id", "occurrence_key", "reason"] {
        assert_eq!(body["data"][field], letter[field], "{field}");
    }
    assert_eq!((&body["data"]["run_id"], &body["data"]["schedule_id"]), (&json!(run), &json!(id)));
    assert!(sent.headers["webhook-signature"].starts_with("v1,"), "{sent:?}");
    assert_eq!(sent.headers["webhook-id"], receiver.all()[0].headers["webhook-id"]);
    let wrong = with(shell("wrong", "true"), "dead_letter_webhook", json!("http://169.254.169.254/"));
    let (status, refused) = server.post("/api/v1/schedules", &wrong);
    assert_eq!(
        (status.as_u16(), &refused["error"]["details"][0]["path"]),
        (400, &json!("dead_letter_webhook"))
    );
}

#[test]
fn a_dead_letter_is_redriven_when_fewer_than_1000_runs_of_its_schedule_wait() {
    let place = Place::new();
    let server = place.serve();
    let hold = place.path("hold");
    let script = format!("while [ -e {} ]; do sleep 0.05; done; exit 3", hold.display());
    let minutely = json!({ "kind": "cron", "expr": "* * * * *" });
    let document = with(with(shell("busy", &script), "schedule", minutely), "enabled", json!(false));
    let id = create(&server, &document);
    until_run(&server, &trigger(&server, &id), "dead_lettered");
    let letter = get(&server, "/api/v1/dead-letters")["items"][0]["id"].as_str().unwrap().to_owned();
    std::fs::write(&hold, "").unwrap();
    until_run(&server, &trigger(&server, &id), "running");
    let (_, full) = backfill(&server, &id, "2026-01-01T00:00:00Z", "2026-01-01T16:39:00Z", false);
    assert_eq!(full["created"], 1_000, "{full}");
    let path = format!("/api/v1/dead-letters/{letter}");
    let redrive = || send(&server, Method::POST, &format!("{path}/redrive"), &json!({}));
    let (status, refused) = redrive();
    let reason = "too many runs of the schedule wait; cancel some of them or wait until they have run";
    assert_eq!((status, &refused["error"]["message"]), (409, &json!(reason)), "{refused}");
    assert_eq!(get(&server, &path)["resolution"], Value::Null, "it can be redriven later");
    let redriven = Place::new().at(&server).windlass(&["dead-letters", "redrive", &letter]);
    redriven.expect(1).says(reason);
    let waiting = get(&server, &format!("/api/v1/runs?schedule_id={id}&status=pending&limit=1"));
    let cancel = format!("/api/v1/runs/{}/cancel", waiting["items"][0]["id"].as_str().unwrap());
    assert_eq!(send(&server, Method::POST, &cancel, &json!({})).0, 200);
    let (status, redriven) = redrive();
    assert_eq!(status, 200, "{redriven}");
    assert_eq!(get(&server, &path)["resolution"], "redriven");
}

#[test]
fn metrics_count_schedules_runs_and_dead_letters() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &shell("dies", "exit 3"));
    create(&server, &with(shell("off", "true"), "enabled", json!(false)));
    until_run(&server, &trigger(&server, &id), "dead_lettered");
    let text = server.get("/metrics").text().unwrap();
    for line in [
        "windlass_schedules 2",
        "windlass_schedules_enabled 1",
        "windlass_schedule_runs_due 0",
        "windlass_schedule_runs_active 0",
        "windlass_dead_letters 1",
        "windlass_schedule_runs_total{outcome=\"failed\"} 1",
        "windlass_schedule_start_lag_seconds_count 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
}

#[test]
fn definitions_of_targets_are_no_workflows_of_a_user() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &shell("hidden", "true"));
    let names = || get(&server, "/api/v1/workflows")["workflows"].clone();
    assert_eq!(names(), json!([]));
    until_run(&server, &trigger(&server, &id), "succeeded");
    // Another shape of the target is another definition.
    let path = format!("/api/v1/schedules/{id}");
    let change = json!({ "target": { "env": { "A": "b" } } });
    assert_eq!(send(&server, Method::PATCH, &path, &change).0, 200);
    assert_eq!(names(), json!([]));
    until_run(&server, &trigger(&server, &id), "succeeded");
    assert_eq!(send(&server, Method::DELETE, &path, &json!({})).0, 200);
    assert_eq!(names(), json!([]));
}

#[test]
fn a_dry_run_checks_and_stores_nothing() {
    let place = Place::new();
    let server = place.serve();
    let document = shell("try", "true");
    let (status, shown) = server.post("/api/v1/schedules?dry_run=true", &document);
    assert_eq!((status.as_u16(), &shown["name"]), (200, &json!("try")), "{shown}");
    assert_eq!(get(&server, "/api/v1/schedules")["items"], json!([]));
    let id = create(&server, &document);
    let before = get(&server, &format!("/api/v1/schedules/{id}"));
    let change = with(document, "retry", json!({ "max_attempts": 7 }));
    let path = format!("/api/v1/schedules/{id}?dry_run=true");
    let (status, after) = send(&server, Method::PUT, &path, &change);
    assert_eq!((status, &after["retry"]["max_attempts"]), (200, &json!(7)), "{after}");
    assert_eq!(get(&server, &format!("/api/v1/schedules/{id}")), before);
}

#[test]
fn a_tenant_cannot_reach_schedules_of_others_nor_programs_of_the_host() {
    let place = Place::new();
    let server = place.serve();
    let id = create(&server, &shell("own", "true"));
    server.define(&playbook("own", "workflow:\n- {step: a, tool: {kind: noop}}\n"));
    let (_, tenant) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let (_, token) =
        server.post("/api/v1/tokens", &json!({ "name": "x", "role": "owner", "tenantId": tenant["id"] }));
    let other = |method: Method, path: &str, body: Value| {
        let request = server.bare(method, path).bearer_auth(token["token"].as_str().unwrap());
        let (status, answer) = read_answer(request.json(&body).send().unwrap());
        (status.as_u16(), answer)
    };
    let path = format!("/api/v1/schedules/{id}");
    let window = json!({ "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:00Z" });
    for (method, path, body) in [
        (Method::GET, path.clone(), json!({})),
        (Method::PUT, path.clone(), shell("own", "false")),
        (Method::PATCH, path.clone(), json!({ "enabled": false })),
        (Method::DELETE, path.clone(), json!({})),
        (Method::POST, format!("{path}/pause"), json!({})),
        (Method::POST, format!("{path}/resume"), json!({})),
        (Method::POST, format!("{path}/trigger"), json!({ "reason": "x" })),
        (Method::POST, format!("{path}/backfill"), window),
        (Method::GET, format!("{path}/explain"), json!({})),
        (Method::GET, format!("{path}/runs"), json!({})),
    ] {
        assert_eq!(other(method, &path, body).0, 404, "{path}");
    }
    assert_eq!(get(&server, &path)["enabled"], true);
    let (status, refused) = other(Method::POST, "/api/v1/schedules", shell("mine", "id"));
    assert_eq!((status, &refused["error"]["code"]), (403, &json!("PERMISSION_DENIED")), "{refused}");
    let target = json!({ "kind": "workflow", "workflow_id": "own" });
    let (status, refused) =
        other(Method::POST, "/api/v1/schedules", with(shell("mine", ""), "target", target));
    assert_eq!((status, &refused["error"]["details"][0]["path"]), (400, &json!("target.workflow_id")));
}

fn triggered(name: &str, config: &Value) -> String {
    json!({
        "name": name,
        "nodes": [
            { "id": "start", "type": "trigger", "config": config },
            { "id": "wait", "type": "delay", "config": { "duration": 0, "unit": "seconds" } },
        ],
        "edges": [{ "id": "e", "source": "start", "target": "wait" }],
    })
    .to_string()
}

#[test]
fn a_schedule_of_a_trigger_is_created_and_deleted_with_the_version_of_its_workflow() {
    let place = Place::new();
    let server = place.serve();
    let every = |seconds: u32| json!({ "triggerMode": "schedule", "scheduleConfig": { "type": "interval", "intervalValue": seconds, "intervalUnit": "seconds" } });
    let workflow = server.define(&triggered("ticks", &every(1)));
    let schedules = || get(&server, "/api/v1/schedules")["items"].clone();
    let first = schedules()[0].clone();
    assert_eq!((&first["workflow_id"], &first["target_kind"]), (&json!(workflow), &json!("workflow")));
    let id = first["id"].as_str().unwrap();
    until("it runs", || runs(&server, id).into_iter().find(|run| run["status"] == "succeeded"));
    let path = format!("/api/v1/schedules/{id}");
    for (method, body) in [(Method::PATCH, json!({ "timezone": "UTC" })), (Method::DELETE, json!({}))] {
        let (status, refused) = send(&server, method, &path, &body);
        assert_eq!(status, 409, "{refused}");
    }
    let put = |config: &Value| {
        let request = server.request(Method::PUT, &format!("/api/v1/workflows/{workflow}"));
        read_answer(
            request
                .body(triggered("ticks", config))
                .header("content-type", "application/json")
                .send()
                .unwrap(),
        )
    };
    assert_eq!(put(&every(3600)).0, 200);
    let second = schedules();
    assert_eq!((second.as_array().unwrap().len(), &second[0]["id"]), (1, &json!(id)), "it keeps its runs");
    assert_eq!(second[0]["schedule"]["every_seconds"], 3600);
    until("no run is active", || {
        let open = ["pending", "claimed", "running"];
        runs(&server, id).iter().all(|run| !open.contains(&run["status"].as_str().unwrap())).then_some(())
    });
    assert_eq!(put(&json!({ "triggerMode": "manual" })).0, 200);
    assert_eq!(schedules(), json!([]));
    let cron = |expr: &str| json!({ "scheduleConfig": { "type": "cron", "cronExpression": expr, "timezone": "Asia/Tokyo" } });
    let (status, refused) = put(&cron("0 0 30 2 *"));
    assert_eq!(status, 400, "{refused}");
    assert!(refused.to_string().contains("trigger `start`: schedule.expr has no occurrence"), "{refused}");
    assert_eq!(put(&cron("0 6 * * *")).0, 200);
    assert_eq!(schedules()[0]["timezone"], "Asia/Tokyo");
    let deleted = server.request(Method::DELETE, &format!("/api/v1/workflows/{workflow}")).send().unwrap();
    assert_eq!(deleted.status(), 204);
    assert_eq!(schedules(), json!([]));
}
