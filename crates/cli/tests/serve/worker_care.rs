//! Workers outside of the server in unusual orders of events: offers that no worker takes, reports that are repeated, claims
//! that are refused, processes that are killed.

use crate::executions::{start, until};
use crate::plan_executions::{begin, status};
use crate::plans::send;
use crate::rig::{self, Place, Running, Server, read_answer};
use crate::runners;
use crate::workers::{Worker, playbook, start_all, waiting};
use reqwest::{Method, StatusCode};
use rustix::process::Signal;
use serde_json::{Value, json};

const HERE: [&str; 4] = ["--group", "default", "--cluster", "local"];

fn worker(place: &Place, server: &Server, args: &[&str]) -> Running {
    let token = json!({ "name": "w", "role": "worker" });
    runners::worker(place, server, &runners::token(server, token), args)
}

/// A plan with one step.
fn plan(script: &str) -> Value {
    json!({ "steps": [{ "id": "a", "action": { "script": script } }] })
}

fn until_phase(server: &Server, path: &str, phase: &str) -> Value {
    rig::until(phase, || Some(status(server, path)).filter(|status| status["phase"] == phase))
}

fn group(server: &Server, name: &str) -> Value {
    let (_, groups) = read_answer(server.get("/api/v1/runner-groups"));
    let groups = groups["groups"].as_array().unwrap().clone();
    groups.into_iter().find(|group| group["name"] == name).unwrap_or_default()
}

#[test]
fn a_cancelled_execution_leaves_the_queue_of_a_group_without_workers() {
    let place = Place::new();
    let server = place.serve();
    let calls = server.define(&playbook("{kind: worker, group: lab}"));
    let mut ids = start_all(&server, &calls, 5);
    let bound =
        server.define("metadata: {name: s}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}}\n");
    let options = || json!({ "runner": { "group": "lab", "cluster": "eu" } });
    ids.extend((0..5).map(|_| start(&server, &bound, options())));
    rig::until("all wait", || (group(&server, "lab")["waiting"] == 10).then_some(()));
    let path = begin(&server, &plan("true"), &json!({}));
    rig::until("the plan waits", || (group(&server, "default")["waiting"] == 1).then_some(()));
    assert_eq!(send(&server, Method::PUT, &format!("{path}/cancel"), &json!({})).0, 200);
    for id in ids.iter().skip(1) {
        server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
        until(&server, id, "cancelled");
    }
    rig::until("nothing of them waits", || {
        (group(&server, "lab")["waiting"] == 1 && group(&server, "default")["waiting"] != 1).then_some(())
    });
    let unit = Worker::new(&server).claim(9);
    assert_eq!(unit.len(), 1, "{unit:?}");
    assert_eq!(unit[0]["executionId"], ids[0]);
}

#[test]
fn reports_that_rules_and_redaction_changed_are_accepted_again_after_a_restart() {
    let place = Place::new();
    let server = place.serve();
    let put = server.request(Method::PUT, "/api/v1/secrets/key").json(&json!({ "value": "hunter2-hunter2" }));
    assert!(put.send().unwrap().status().is_success());
    let text = "metadata: {name: s}\nkeychain: [{name: k, kind: secret, secret: key}]\nworkflow:\n- step: work\n  \
                tool: {kind: worker, group: lab, retry: {max_attempts: 3, delay: 0.01}, args: {key: '{{ keychain.k.token }}'}}\n";
    let id = start(&server, &server.define(text), json!({}));
    let mut worker = Worker::new(&server);
    let failed = worker.claim(1).remove(0);
    let error = json!({ "code": "SERVICE_UNAVAILABLE", "message": "busy with hunter2-hunter2" });
    worker.failed(&failed, error.clone());
    let done = worker.claim(1).remove(0);
    worker.done(&done, json!({ "said": "hunter2-hunter2", "n": [1, 2] }));
    until(&server, &id, "completed");
    let (address, token, session) =
        (server.address().to_owned(), worker.token.clone(), worker.session.clone());
    server.kill();
    let server = place.serve_on(&address);
    let worker = Worker { server: &server, token, session };
    worker.failed(&failed, error);
    worker.done(&done, json!({ "n": [1, 2], "said": "hunter2-hunter2" }));
    assert_eq!(worker.report(&done, json!({ "said": "other", "n": [1, 2] })).0, StatusCode::CONFLICT);
    assert_eq!(worker.report(&failed, json!({ "said": "hunter2-hunter2" })).0, StatusCode::CONFLICT);
    let other = Worker::new(&server);
    assert_ne!(other.report(&done, json!({ "n": [1, 2], "said": "hunter2-hunter2" })).0, StatusCode::OK);
}

#[test]
fn a_call_that_takes_too_long_fails_after_a_restart_of_the_server() {
    let place = Place::new();
    let server = place.serve();
    let tool = "{kind: worker, group: lab, spec: {timeout: 2}}";
    let limited = start(&server, &server.define(&playbook(tool)), json!({}));
    let free = playbook("{kind: worker, group: lab}").replace("remote", "free");
    start(&server, &server.define(&free), json!({}));
    let mut worker = Worker::new(&server);
    let mut work = worker.claim(2);
    if work.len() == 1 {
        work.extend(worker.claim(1));
    }
    let address = server.address().to_owned();
    let (token, session) = (worker.token.clone(), worker.session.clone());
    server.kill();
    let server = place.serve_on(&address);
    let ended = until(&server, &limited, "failed");
    assert_eq!(ended["errors"][0]["class"], "timeout", "{ended}");
    let worker = Worker { server: &server, token, session };
    for unit in &work {
        let expected = if unit["executionId"] == limited { StatusCode::CONFLICT } else { StatusCode::OK };
        assert_eq!(worker.report(unit, json!(1)).0, expected, "{unit}");
    }
}

#[test]
fn a_refused_claim_opens_no_session() {
    let place = Place::new().with(&["--tenant-streams", "1"]);
    let server = place.serve();
    let worker = Worker::new(&server);
    let claim = |group: &str, wait_ms: u64| {
        worker.call("claim", &json!({ "group": group, "slots": 1, "waitMs": wait_ms }))
    };
    assert_eq!(claim("lab", 0).0, StatusCode::OK);
    std::thread::scope(|scope| {
        // It has the only stream of the tenant.
        let body = json!({ "group": "lab", "slots": 1, "waitMs": 10_000 });
        let request = worker.request("claim", &body);
        // A claim of the test may have the stream for a moment.
        let waiting = scope.spawn(move || {
            rig::until("it waits and gets work", || {
                let (status, _) = read_answer(request.try_clone().unwrap().send().unwrap());
                (status == StatusCode::OK).then_some(())
            });
        });
        rig::until("a claim is refused", || {
            (claim("other", 0).0 == StatusCode::TOO_MANY_REQUESTS).then_some(())
        });
        let before = group(&server, "other")["workers"].as_u64().unwrap_or_default();
        for _ in 0..5 {
            assert_eq!(claim("other", 0).0, StatusCode::TOO_MANY_REQUESTS);
        }
        assert_eq!(group(&server, "other")["workers"].as_u64().unwrap_or_default(), before);
        let workflow = server.define(&playbook("{kind: worker, group: lab}"));
        start(&server, &workflow, json!({}));
        waiting.join().unwrap();
    });
}

#[test]
fn a_first_claim_never_undoes_the_restriction_of_a_group() {
    let place = Place::new();
    let server = place.serve();
    let worker = Worker::new(&server);
    for number in 0..40 {
        let name = format!("g-{number}");
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let request = worker.request("claim", &json!({ "group": name, "slots": 1, "waitMs": 0 }));
                scope.spawn(move || request.send().unwrap());
            }
            let put = server.request(Method::PUT, &format!("/api/v1/runner-groups/{name}"));
            let (status, answer) = read_answer(put.json(&json!({ "cluster": "eu" })).send().unwrap());
            assert_eq!(status, StatusCode::OK, "{answer}");
        });
        assert_eq!(group(&server, &name)["cluster"], "eu", "{name}");
    }
}

#[test]
fn pln_38_a_restricted_group_assigns_no_work_to_connected_workers_of_other_clusters() {
    let place = Place::new();
    let server = place.serve();
    let _elsewhere = worker(&place, &server, &["--group", "lab", "--cluster", "us"]);
    let mut claims = Worker::new(&server);
    assert_eq!(claims.claim_now(1, 0), Vec::<Value>::new());
    let restrict = |method: Method, body: Value| {
        assert!(send(&server, method, "/api/v1/runner-groups/lab", &body).0 < 300);
    };
    restrict(Method::PUT, json!({ "cluster": "eu" }));
    let shell = "metadata: {name: s}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}}\n";
    let workflow = server.define(shell);
    let id = start(&server, &workflow, json!({ "runner": { "group": "lab" } }));
    rig::until("it waits", || (waiting(&server)["waiting"] == 1).then_some(()));
    let _here = worker(&place, &server, &["--group", "lab", "--cluster", "eu"]);
    until(&server, &id, "completed");
    let body = json!({ "group": "lab", "slots": 1, "waitMs": 0, "session": claims.session });
    assert_eq!(claims.call("claim", &body).0, StatusCode::CONFLICT);
    drop(_here);
    let id = start(&server, &workflow, json!({ "runner": { "group": "lab", "cluster": "us" } }));
    rig::until("it waits", || (waiting(&server)["waiting"] == 1).then_some(()));
    let request = server.request(Method::DELETE, "/api/v1/runner-groups/lab").send().unwrap();
    assert_eq!(request.status(), StatusCode::NO_CONTENT);
    until(&server, &id, "completed");
}

#[test]
fn nothing_is_offered_to_an_idle_worker_that_was_killed() {
    // The lease is longer than the patience of the test.
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let idle = worker(&place, &server, &HERE);
    // It has fetched its orders once, and waits for more.
    let first = begin(&server, &plan("true"), &json!({}));
    until_phase(&server, &first, "completed");
    idle.signal(Signal::KILL);
    drop(idle);
    let _next = worker(&place, &server, &HERE);
    for _ in 0..4 {
        let path = begin(&server, &plan("echo again"), &json!({}));
        until_phase(&server, &path, "completed");
    }
}

#[test]
fn a_worker_that_is_asked_to_end_finishes_all_steps_of_its_plan() {
    let place = Place::new();
    let server = place.serve();
    let gate = place.path("gate").display().to_string();
    let wait = format!(
        "echo $$ > {}; while [ ! -e {gate} ]; do sleep 0.05; done; echo x > outputs/o",
        place.path("began").display()
    );
    let field = json!([{ "name": "o" }]);
    let steps = (0..3).map(|number| {
        let script = if number == 0 { wait.clone() } else { "cp context/o outputs/o".to_owned() };
        let refs =
            if number == 0 { json!({}) } else { json!({ "o": format!("steps.s{}.outputs.o", number - 1) }) };
        let params = if number == 0 { json!([]) } else { field.clone() };
        let action = json!({ "script": script, "params": params, "outputs": field });
        json!({ "id": format!("s{number}"), "action": action, "args": { "refs": refs } })
    });
    let plan = json!({ "steps": steps.collect::<Vec<_>>() });
    let path = begin(&server, &plan, &json!({}));
    let mut worker = worker(&place, &server, &HERE);
    rig::process_of(&place, "began");
    worker.signal(Signal::TERM);
    worker.until_says("finishing running work");
    // Nothing new reaches a draining worker after its heartbeat.
    rig::until("the server knows", || {
        let other =
            begin(&server, &json!({ "steps": [{ "id": "b", "action": { "script": "true" } }] }), &json!({}));
        let is_known = status(&server, &other)["phase"] == "pending";
        send(&server, Method::PUT, &format!("{other}/cancel"), &json!({}));
        is_known.then_some(())
    });
    place.write("gate", "");
    until_phase(&server, &path, "completed");
    let (code, _, said) = worker.end();
    assert!(code == Some(0) && said.contains("all work is finished"), "{said}");
}

#[test]
fn pln_16_the_time_that_a_step_waits_for_its_sandbox_is_a_setting() {
    let place = Place::new().with(&["--routing-timeout-seconds", "1"]);
    let server = place.serve();
    let _worker = worker(&place, &server, &HERE);
    let routed = json!({ "id": "routed", "action": { "script": "true" }, "routingContext": { "literal": { "sandbox": "never" } } });
    let path = begin(
        &server,
        &json!({ "steps": [routed, { "id": "other", "action": { "script": "true" } }] }),
        &json!({}),
    );
    let ended = until_phase(&server, &path, "failed");
    let phases: Vec<&Value> = ended["steps"].as_array().unwrap().iter().map(|step| &step["phase"]).collect();
    assert_eq!(phases, ["failed", "completed"], "{ended}");
    let error = ended["steps"][0]["error"].as_str().unwrap();
    assert!(error.contains("did not become ready in time"), "{error}");
    for wrong in ["0", "soon", "-1"] {
        let refused = Place::new().variable("WINDLASS_ROUTING_TIMEOUT_SECONDS", wrong).refuse();
        assert!(!refused.0.success() && refused.1.contains("ROUTING_TIMEOUT_SECONDS"), "{}", refused.1);
    }
}

/// Finds a text in files of a folder, other than in those that the test itself writes.
fn holds(folder: &std::path::Path, text: &str) -> Vec<std::path::PathBuf> {
    let found = |file: &std::path::PathBuf| {
        std::fs::read(file).is_ok_and(|bytes| bytes.windows(text.len()).any(|part| part == text.as_bytes()))
    };
    rig::files(folder).into_iter().filter(found).collect()
}

#[test]
fn pln_09_what_killed_workers_left_is_removed_when_any_worker_starts_in_their_folder() {
    const SECRET: &str = "hunter2-that-was-left-behind";
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "4");
    let server = place.serve();
    assert_eq!(send(&server, Method::PUT, "/api/v1/secrets/prod", &json!({ "value": SECRET })).0, 200);
    let script = format!(
        "cp context/token \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR\"; mkdir -m 0 outputs/closed; echo x >> {}; sleep 600",
        place.path("began").display()
    );
    let step = json!({ "id": "a", "action": { "script": script, "params": [{ "name": "token" }] }, "args": { "refs": { "token": "params.token" } } });
    let plan = json!({ "params": [{ "name": "token", "required": true }], "steps": [step] });
    let bound = json!({ "secrets": { "token": "prod" } });
    let paths: Vec<String> = (0..3).map(|_| begin(&server, &plan, &bound)).collect();
    let workers: Vec<Running> =
        (0..3).map(|_| worker(&place, &server, &[&HERE[..], &["--slots", "1"]].concat())).collect();
    rig::until("all run", || (place.lines("began").len() == 3).then_some(()));
    assert!(holds(&place.path("workers"), SECRET).len() >= 3);
    for worker in workers {
        worker.signal(Signal::KILL);
        worker.end();
    }
    for path in &paths {
        send(&server, Method::PUT, &format!("{path}/cancel"), &json!({}));
    }
    let last = worker(&place, &server, &HERE);
    assert_eq!(holds(&place.path("workers"), SECRET), Vec::<std::path::PathBuf>::new());
    last.signal(Signal::TERM);
    last.end();
}

/// Program with which a step of another execution attacks the same worker, as the same user.
const ATTACK: &str = r#"
for pid in $(ps -o pid= -C windlass 2>/dev/null || ls /proc | grep '^[0-9]*$'); do
  exe=$(readlink /proc/$pid/exe 2>/dev/null); args=$(tr '\0' ' ' < /proc/$pid/cmdline 2>/dev/null)
  case "$args" in *" worker --server"*|*" serve"*) ;; *) continue ;; esac
  echo "process $pid: $args"
  tr '\0' '\n' < /proc/$pid/environ 2>&1 | grep -i -e token -e secret -e denied
  head -c 64 /proc/$pid/maps 2>&1 | head -1
  dd if=/proc/$pid/mem bs=1 count=1 2>&1 | head -1
  for fd in /proc/$pid/fd/*; do readlink "$fd" 2>&1 | head -1; done | sort -u | head -20
done
env; cat /proc/self/environ | tr '\0' '\n'
"#;

#[test]
fn pln_09_a_step_finds_neither_the_token_of_its_worker_nor_its_memory() {
    let place = Place::new();
    let server = place.serve();
    let token = runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let _worker = runners::worker(&place, &server, &token, &HERE);
    let step = json!({ "id": "a", "action": { "script": ATTACK } });
    let path = begin(&server, &json!({ "steps": [step] }), &json!({}));
    until_phase(&server, &path, "completed");
    let found = server.get(&format!("{path}/steps/a/logs")).text().unwrap();
    assert!(found.contains(" worker --server"), "the step saw the process: {found}");
    assert!(!found.contains(&token) && !found.contains(server.token()), "{found}");
    assert!(!found.contains("WINDLASS_TOKEN"), "{found}");
}

#[test]
fn a_cancelled_execution_leaves_no_folder_although_its_step_writes_until_it_is_killed() {
    let place = Place::new();
    let server = place.serve();
    let _worker = worker(&place, &server, &HERE);
    let began = place.path("began");
    let script = format!(
        "trap 'mkdir -p $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/late; cp context/token $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/late/' TERM\n\
         touch {}\nwhile true; do sleep 0.1; mkdir -p $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/late; done",
        began.display()
    );
    let path = begin(&server, &plan(&script), &json!({}));
    rig::until("the step runs", || began.exists().then_some(()));
    let work = place.path("workers").join("1/work");
    let folders =
        || std::fs::read_dir(&work).unwrap().flatten().map(|entry| entry.file_name()).collect::<Vec<_>>();
    assert_eq!(folders().len(), 1, "{:?}", folders());
    assert_eq!(send(&server, Method::PUT, &format!("{path}/cancel"), &json!({})).0, 200);
    rig::until("the folder is gone", || folders().is_empty().then_some(()));
    // The worker is free for more only when the program has ended, so nothing can write the folder again.
    let next = begin(&server, &plan("true"), &json!({}));
    until_phase(&server, &next, "completed");
    rig::until("nothing is left", || folders().is_empty().then_some(()));
}
