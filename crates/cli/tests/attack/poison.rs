//! Executions that end the process, or block it, again after every start.

use crate::rig::{Place, Running, Server, playbook, read_answer, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use rusqlite::Connection;
use serde_json::{Value, json};

/// A step that runs until the file is there.
fn waits_for(name: &str, file: &str) -> String {
    let step = format!(
        "workflow:\n- step: wait\n  tool: {{kind: shell, command: 'while [ ! -e {file} ]; do sleep 0.05; done; echo over'}}\n"
    );
    playbook(name, &step)
}

fn start(server: &Server, workflow: &str) -> String {
    let (status, made) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({}));
    assert_eq!(status, StatusCode::ACCEPTED, "{made}");
    made["executionId"].as_str().unwrap().to_owned()
}

fn get(server: &Server, id: &str) -> (StatusCode, Value) {
    read_answer(server.get(&format!("/api/v1/executions/{id}")))
}

fn until_status(server: &Server, id: &str, status: &str) {
    until(&format!("{id} is {status}"), || (get(server, id).1["status"] == status).then_some(()));
}

fn digits(id: &str) -> &str {
    id.strip_prefix("exec_").unwrap()
}

/// The row of an execution in the list of all.
fn listed(server: &Server, id: &str) -> Value {
    let (_, all) = read_answer(server.get("/api/v1/executions?limit=100"));
    let rows = all["executions"].as_array().unwrap();
    rows.iter().find(|row| row["executionId"] == id).unwrap_or_else(|| panic!("{id} in {all}")).clone()
}

fn quarantined(place: &Place) -> Vec<String> {
    let list = place.windlass(&["admin", "quarantine", "list", "--json"]).expect(0).json();
    let ids = list["executions"].as_array().unwrap().iter().map(|one| one["executionId"].as_str().unwrap());
    ids.map(str::to_owned).collect()
}

#[test]
fn an_execution_that_kills_the_process_every_time_is_left_out_and_the_rest_continues() {
    let place = Place::new();
    let server = place.serve();
    let go = place.path("go").display().to_string();
    let (poison, other) = (start(&server, &server.define(&waits_for("poison", "/nowhere/at/all"))), {
        let workflow = server.define(&waits_for("other", &go));
        start(&server, &workflow)
    });
    until_status(&server, &poison, "running");
    server.kill();
    // The lane meets the execution when it recovers, and the process dies with it in hand.
    let place = place.variable("WINDLASS_FAULT", &format!("abort lane {}", digits(&poison)));
    for death in 1..=3 {
        let (status, _, said) = Running::start(place.server_command()).ended();
        assert!(!status.success(), "death {death}: {said}");
    }
    let server = place.serve();
    let (status, view) = get(&server, &poison);
    assert_eq!((status, &view["quarantined"]["deaths"]), (StatusCode::OK, &json!(3)), "{view}");
    assert_eq!(listed(&server, &poison)["quarantined"]["deaths"], 3);
    std::fs::write(place.path("go"), "").unwrap();
    until_status(&server, &other, "completed");
    let metrics = server.get("/metrics").text().unwrap();
    assert!(metrics.contains("windlass_quarantined_executions 1"), "{metrics}");
    // All requests for it are refused, and the message has the repair.
    for path in ["cancel", "pause", "resume"] {
        let (status, refused) = server.post(&format!("/api/v1/executions/{poison}/{path}"), &json!({}));
        assert_eq!(
            (status, &refused["error"]["code"]),
            (StatusCode::CONFLICT, &json!("EXECUTION_QUARANTINED"))
        );
        assert!(
            refused["error"]["message"].as_str().unwrap().contains("windlass admin quarantine"),
            "{refused}"
        );
    }
    let (_, audit) = read_answer(server.get("/api/v1/audit?action=execution.quarantine"));
    assert_eq!(audit["entries"][0]["target"], json!(poison), "{audit}");
    place.windlass(&["admin", "quarantine", "cancel", &poison]).expect(1).says("in use");
    assert_eq!(quarantined(&place), std::slice::from_ref(&poison));
    server.stop();
    // The fault is still there: a cancel works without working on it.
    place.windlass(&["admin", "quarantine", "cancel", &poison]).expect(0).says("is cancelled");
    assert_eq!(quarantined(&place), Vec::<String>::new());
    place.windlass(&["admin", "check"]).expect(0);
    let server = place.serve();
    let (_, view) = get(&server, &poison);
    assert_eq!((&view["status"], &view["quarantined"]), (&json!("cancelled"), &Value::Null), "{view}");
}

#[test]
fn an_execution_that_hangs_the_pool_is_seen_ends_the_process_and_is_left_out() {
    let place = Place::new().with(&["--stall-timeout", "12s"]);
    let server = place.serve();
    let workflow = server
        .define(&playbook("quick", "workflow:\n- step: a\n  tool: {kind: shell, command: 'echo done'}\n"));
    server.stop();
    let mut command = place.server_command();
    command.env("WINDLASS_FAULT", "hang pool *");
    let server = Server::start(command, &place.data());
    let poison = start(&server, &workflow);
    // The process answers that it lives, and says that it is not ready.
    until("the standstill is seen", || {
        assert_eq!(server.get("/healthz").status(), StatusCode::OK);
        (server.get("/readyz").status() == StatusCode::SERVICE_UNAVAILABLE).then_some(())
    });
    let (status, said) = server.ended();
    assert!(!status.success() && said.contains(&poison) && said.contains("pool"), "{said}");
    // An execution that hung a thread is skipped at once: each attempt would block all others for the same time.
    let server = place.serve();
    let (_, view) = get(&server, &poison);
    assert!(view["quarantined"]["reason"].is_string(), "{view}");
    let next = start(&server, &workflow);
    until_status(&server, &next, "completed");
    // Without the fault it can be released, and completes.
    let path = format!("/api/v1/quarantine/{poison}/release");
    let stage = Stage::with(place, server);
    let stranger = stage.token("owner");
    assert_eq!(stage.send(&stranger, Method::POST, &path, &json!({})).0, StatusCode::NOT_FOUND);
    assert_eq!(
        stage.send(&stranger, Method::GET, "/api/v1/quarantine", &Value::Null).0,
        StatusCode::FORBIDDEN
    );
    let Stage { place, server, .. } = stage;
    assert_eq!(server.post(&path, &json!({})).0, StatusCode::OK);
    let (_, audit) = read_answer(server.get("/api/v1/audit?action=execution.release"));
    assert_eq!(audit["entries"][0]["target"], json!(poison), "{audit}");
    until_status(&server, &poison, "completed");
    assert_eq!(server.post(&path, &json!({})).0, StatusCode::NOT_FOUND);
    assert_eq!(quarantined(&place), Vec::<String>::new());
}

/// A process that is killed is no sign of a defect if its work makes progress.
#[test]
fn work_that_makes_progress_is_never_left_out_however_often_the_process_is_killed() {
    let place = Place::new();
    let steps = "workflow:\n- step: many\n  loop: {in: '{{ range(0, 5000) | list }}', iterator: n}\n  tool: {kind: noop}\n";
    let mut server = place.serve();
    let workflow = server.define(&playbook("busy", steps));
    let id = start(&server, &workflow);
    let mut named = 0;
    for _ in 0..8 {
        let before = get(&server, &id).1["progress"].clone();
        until("it continues", || {
            let now = get(&server, &id).1;
            (now["progress"] != before || now["status"] != "queued").then_some(())
        });
        server.kill();
        let left = std::fs::read_to_string(place.data().join("in-hand")).unwrap();
        named += usize::from(left.contains(digits(&id)));
        server = place.serve();
        assert_eq!(quarantined(&place), Vec::<String>::new(), "{named} times in hand");
    }
    until_status(&server, &id, "completed");
    server.stop();
    assert!(!place.data().join("in-hand").exists(), "an orderly end leaves nothing");
}

#[test]
fn one_damaged_execution_never_keeps_the_others_from_going_on() {
    let place = Place::new();
    let server = place.serve();
    let go = place.path("go").display().to_string();
    let workflow = server.define(&waits_for("waits", &go));
    let ids: Vec<String> = (0..4).map(|_| start(&server, &workflow)).collect();
    ids.iter().for_each(|id| until_status(&server, id, "running"));
    server.kill();
    let raw = Connection::open(place.data().join("windlass.db")).unwrap();
    let key: i64 = {
        let id = u128::from_str_radix(digits(&ids[1]), 16).unwrap().to_be_bytes();
        raw.query_row("SELECT key FROM executions WHERE id = ?1", [id], |row| row.get(0)).unwrap()
    };
    assert_eq!(raw.execute("UPDATE heads SET state = X'c1' WHERE key = ?1", [key]).unwrap(), 1);
    let bad = u128::from_str_radix(digits(&ids[2]), 16).unwrap().to_be_bytes();
    let sql = "INSERT INTO inbox (target, letter, wants_answer, at) VALUES (?1, '{\"input\": 7}', 0, 0)";
    raw.execute(sql, [bad]).unwrap();
    drop(raw);
    let server = place.serve();
    std::fs::write(place.path("go"), "").unwrap();
    until_status(&server, &ids[0], "completed");
    until_status(&server, &ids[3], "completed");
    until("both are left out", || (quarantined(&place).len() == 2).then_some(()));
    let (status, refused) = get(&server, &ids[1]);
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::CONFLICT, &json!("EXECUTION_QUARANTINED")));
    assert!(refused["error"]["message"].as_str().unwrap().contains("admin check"), "{refused}");
    assert!(listed(&server, &ids[1])["quarantined"]["reason"].is_string());
    let new = start(&server, &workflow);
    until_status(&server, &new, "completed");
    server.stop();
    place.windlass(&["admin", "quarantine", "cancel", &ids[1]]).expect(0).says("abandoned");
    place.windlass(&["admin", "quarantine", "cancel", &ids[2]]).expect(0).says("cancelled");
    place.windlass(&["admin", "quarantine", "release", &ids[0]]).expect(2).says("not quarantined");
    let server = place.serve();
    assert_eq!(listed(&server, &ids[1])["status"], "cancelled");
    assert_eq!(get(&server, &ids[2]).1["status"], "cancelled");
}
