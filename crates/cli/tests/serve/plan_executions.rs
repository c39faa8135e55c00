//! Executions of plans over HTTP, with `windlass worker` as a process of its own.

use crate::plans::{create, execute, get, greeting, inline, send};
use crate::rig::{self, Place, Running, Server, files};
use crate::runners;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use reqwest::Method;
use reqwest::blocking::Response;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const WORKERS: [&str; 4] = ["--group", "default", "--cluster", "local"];
const COUNTED: [&str; 6] = ["init", "waiting", "running", "completed", "failed", "skipped"];

pub(crate) fn worker(place: &Place, server: &Server) -> Running {
    let token = json!({ "name": "w", "role": "worker", "group": "default" });
    runners::worker(place, server, &runners::token(server, token), &WORKERS)
}

/// Creates a plan and an execution of it; the path of the execution.
#[track_caller]
pub(crate) fn begin(server: &Server, plan: &Value, bound: &Value) -> String {
    let (status, plan) = server.post("/api/v1/plans", &json!({ "spec": plan }));
    assert!(status.is_success(), "{plan}");
    let mut spec = json!({ "planID": plan["id"], "cluster": "local", "runner": "default" });
    spec.as_object_mut().unwrap().extend(bound.as_object().unwrap().clone());
    let (status, created) = execute(server, &spec);
    assert_eq!(status, 201, "{created}");
    format!("/api/v1/plan-executions/{}", created["id"].as_str().unwrap())
}

pub(crate) fn status(server: &Server, path: &str) -> Value {
    let (code, mut execution) = get(server, path);
    assert_eq!(code, 200, "{execution}");
    let status = execution["status"].take();
    let counts = COUNTED.map(|phase| status["stepCounts"][phase].as_u64().unwrap());
    let steps = status["steps"].as_array().unwrap().len() as u64;
    assert_eq!(counts.iter().sum::<u64>(), steps, "every step is counted once: {status}");
    status
}

/// Waits for a phase. Another end than the expected one fails the test at once.
#[track_caller]
pub(crate) fn until_phase(server: &Server, path: &str, phase: &str) -> Value {
    rig::until(phase, || {
        let status = status(server, path);
        let is_there = status["phase"] == phase;
        assert!(is_there || status.get("completedAt").is_none(), "{phase} was expected: {status}");
        is_there.then_some(status)
    })
}

#[track_caller]
pub(crate) fn step<'s>(status: &'s Value, id: &str) -> &'s Value {
    status["steps"].as_array().unwrap().iter().find(|step| step["id"] == id).unwrap()
}

/// An output of a plan or a step.
#[track_caller]
pub(crate) fn output<'s>(holder: &'s Value, name: &str) -> &'s Value {
    holder["outputs"].as_array().unwrap().iter().find(|output| output["name"] == name).unwrap()
}

fn phases(status: &Value) -> String {
    let steps = status["steps"].as_array().unwrap().iter();
    let said =
        steps.map(|step| format!("{} {}", step["id"].as_str().unwrap(), step["phase"].as_str().unwrap()));
    said.collect::<Vec<_>>().join(", ")
}

pub(crate) fn part(server: &Server, path: &str, range: &str) -> Response {
    server.request(Method::GET, path).header("Range", range).send().unwrap()
}

#[test]
fn pln_01_pln_20_pln_21_pln_22_pln_32_an_execution_without_a_worker_is_pending_and_can_be_cancelled() {
    let place = Place::new();
    let server = place.serve();
    let plan = create(&server, &greeting(&inline()));
    let spec =
        json!({ "planID": plan["id"], "cluster": "local", "runner": "default", "params": { "who": "Ada" } });
    let (code, created) = execute(&server, &spec);
    assert_eq!((code, &created["spec"]), (201, &spec), "{created}");
    let id = created["id"].as_str().unwrap();
    assert!(id.starts_with("exec_"), "{created}");
    let state = &created["status"];
    assert_eq!(state["phase"], "pending", "{state}");
    let counts = json!({ "init": 1, "waiting": 0, "running": 0, "completed": 0, "failed": 0, "skipped": 0 });
    assert_eq!(state["stepCounts"], counts, "{state}");
    for field in ["runnerHost", "completedAt", "inputs", "outputs", "error"] {
        let value = state.get(field);
        assert!(value.is_none_or(|value| *value == json!([])), "{field} of {state}");
    }
    assert!(state["createdAt"].as_str().unwrap().ends_with('Z'), "{state}");
    assert_ne!(execute(&server, &spec).1["id"], created["id"]);
    let path = format!("/api/v1/plan-executions/{id}");
    let (code, cancelled) = send(&server, Method::PUT, &format!("{path}/cancel"), &json!({}));
    assert_eq!((code, &cancelled["status"]["phase"]), (200, &json!("cancelled")), "{cancelled}");
    assert!(cancelled["status"]["completedAt"].is_string(), "{cancelled}");
    let (code, refused) = send(&server, Method::PUT, &format!("{path}/cancel"), &json!({}));
    assert_eq!(code, 409, "{refused}");
    assert_eq!(get(&server, &path).1, cancelled, "the end never changes");
    status(&server, &path);
}

#[test]
fn lists_of_plan_executions_select_by_plan_and_phase_and_go_on_at_their_cursor() {
    let place = Place::new();
    let server = place.serve();
    let paths: Vec<String> = (0..3)
        .map(|n| begin(&server, &greeting(&inline()), &json!({ "params": { "who": n.to_string() } })))
        .collect();
    let ids: Vec<&str> = paths.iter().map(|path| path.rsplit('/').next().unwrap()).collect();
    let other = json!({ "steps": [{ "id": "a", "action": { "script": "true" } }] });
    let other = begin(&server, &other, &json!({}));
    assert_eq!(send(&server, Method::PUT, &format!("{other}/cancel"), &json!({})).0, 200);
    let listed = |query: &str| get(&server, &format!("/api/v1/plan-executions?{query}")).1;
    let of = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = listed("phase=pending&pageSize=2");
    assert_eq!(of(&first), [ids[2], ids[1]], "newest first");
    let rest = listed(&format!("phase=pending&pageSize=2&cursor={}", first["nextCursor"].as_str().unwrap()));
    assert_eq!((of(&rest), &rest["nextCursor"]), (vec![ids[0].to_owned()], &Value::Null));
    let plan = get(&server, &paths[0]).1["spec"]["planID"].as_str().unwrap().to_owned();
    assert_eq!(of(&listed(&format!("planID={plan}"))), [ids[2], ids[1], ids[0]]);
    assert_eq!(get(&server, &format!("/api/v1/plans/{plan}")).1["status"]["executions"], 3);
    let cancelled = listed("phase=cancelled");
    assert_eq!(of(&cancelled), [other.rsplit('/').next().unwrap()]);
    assert_eq!(cancelled["items"][0]["status"]["phase"], "cancelled", "{cancelled}");
    assert_eq!(listed("phase=completed")["items"], json!([]));
    let (_, common) = get(&server, &format!("/api/v1/executions/{}", ids[0]));
    assert_eq!(common["dialect"], "plan", "the common list has it, too");
}

/// Notes what `first` finds in its dirs and leaves something there; `second` waits for a file.
fn interruptible(place: &Place) -> Value {
    let (seen, gate) = (place.path("seen"), place.path("gate"));
    let (seen, gate) = (seen.display(), gate.display());
    let first = format!(
        "cd \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR\"; \
         echo first $(ls -A . bin \"$HOME\" \"$TMPDIR\" | grep -c left) >> {seen}; \
         touch left bin/left \"$HOME/left\" \"$TMPDIR/left\"; cd - > /dev/null; echo printed; echo 1 > outputs/n"
    );
    let second = format!(
        "echo second >> {seen}; while [ ! -e {gate} ]; do sleep 0.05; done; cat context/n > outputs/n"
    );
    let takes = |from: &str| json!({ "refs": { "n": format!("steps.{from}.outputs.n") } });
    let (fields, failing) = (json!([{ "name": "n" }]), format!("echo failing >> {seen}; exit 3"));
    json!({
        "steps": [
            { "id": "first", "action": { "script": first, "outputs": fields } },
            { "id": "second", "action": { "script": second, "params": fields, "outputs": fields }, "args": takes("first") },
            { "id": "failing", "action": { "script": failing, "outputs": fields } },
            { "id": "skipped", "action": { "script": "true", "params": fields, "outputs": fields }, "args": takes("failing") },
            { "id": "also", "action": { "script": "true", "params": fields }, "args": takes("skipped") },
        ],
    })
}

fn times(place: &Place, line: &str) -> usize {
    place.lines("seen").iter().filter(|seen| *seen == line).count()
}

#[test]
fn pln_10_pln_11_pln_12_pln_21_pln_35_a_lost_worker_makes_an_execution_begin_from_scratch_at_another_one() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "10");
    let server = place.serve();
    let path = begin(&server, &interruptible(&place), &json!({}));
    let first = worker(&place, &server);
    let before = rig::until("the second step runs", || {
        let status = status(&server, &path);
        let is_there = times(&place, "second") == 1
            && phases(&status).starts_with("first completed, second running, failing failed");
        is_there.then_some(status)
    });
    assert_eq!(before["phase"], "running");
    assert!(before["runnerHost"].is_string() && before.get("completedAt").is_none(), "{before}");
    first.signal(Signal::KILL);
    assert_eq!(first.end().0, None);
    let lost = rig::until("the execution is taken back", || {
        let status = status(&server, &path);
        (status["stepCounts"]["init"] == 5).then_some(status)
    });
    assert_eq!((&lost["phase"], lost.get("runnerHost")), (&json!("pending"), None), "{lost}");
    let _second = worker(&place, &server);
    rig::until("the second step runs again", || (times(&place, "second") == 2).then_some(()));
    let again = status(&server, &path);
    assert!(again["runnerHost"].is_string() && again["runnerHost"] != before["runnerHost"], "{again}");
    place.write("gate", "");
    let ended = until_phase(&server, &path, "failed");
    assert_eq!(
        phases(&ended),
        "first completed, second completed, failing failed, skipped skipped, also skipped"
    );
    assert_eq!(ended["runnerHost"], again["runnerHost"]);
    assert!(step(&ended, "failing")["error"].as_str().unwrap().contains('3'), "{ended}");
    assert!(ended["completedAt"].is_string() && ended["updatedAt"].as_str() > before["updatedAt"].as_str());
    assert_eq!(times(&place, "first 0"), 2, "both attempts began with empty dirs: {:?}", place.lines("seen"));
    assert_eq!((times(&place, "second"), times(&place, "failing")), (2, 2), "once in each attempt");
    let log = events(&server.get(&format!("{path}/logs/live?step=first")).text().unwrap());
    let log: Vec<&str> =
        log.iter().map(|(_, data)| if data.contains("printed") { "printed" } else { data }).collect();
    assert_eq!(log, ["printed", "RESTART", "printed", "EOF"], "lines of both attempts can be distinguished");
    let logs = server.get(&format!("{path}/steps/first/logs")).text().unwrap();
    assert_eq!(logs, "printed\n", "the log is that of the last attempt");
}

#[test]
fn pln_22_lists_of_plan_executions_count_the_steps_of_each() {
    let place = Place::new();
    let server = place.serve();
    let listed = |path: &str| {
        let (code, page) = get(&server, "/api/v1/plan-executions");
        assert_eq!(code, 200, "{page}");
        let id = path.rsplit('/').next().unwrap();
        let found = page["items"].as_array().unwrap().iter().find(|item| item["id"] == id).cloned();
        found.unwrap()["status"]["stepCounts"].clone()
    };
    let counts = |numbers: [u64; 6]| {
        Value::Object(COUNTED.iter().map(|phase| (*phase).to_owned()).zip(numbers.map(Value::from)).collect())
    };
    let step = |id: &str, script: &str, from: &str, condition: &str| {
        json!({
            "id": id, "action": { "script": script, "params": [{ "name": "o" }], "outputs": [{ "name": "o" }] },
            "args": { "refs": { "o": format!("steps.{from}.outputs.o") } }, "condition": condition,
        })
    };
    let mut plan = gated(&place);
    let steps = plan["steps"].as_array_mut().unwrap();
    steps.push(step("fails", "exit 1", "gated", "true"));
    steps.push(step("left_out", "true", "gated", "false"));
    steps.push(step("after", "true", "fails", "true"));
    let path = begin(&server, &plan, &json!({}));
    assert_eq!(listed(&path), counts([4, 0, 0, 0, 0, 0]), "nothing has begun");
    let cancelled = begin(&server, &plan, &json!({}));
    assert_eq!(send(&server, Method::PUT, &format!("{cancelled}/cancel"), &json!({})).0, 200);
    assert_eq!(listed(&cancelled), counts([0, 0, 0, 0, 0, 4]), "it was cancelled before it began");
    let _worker = worker(&place, &server);
    rig::process_of(&place, "began");
    rig::until("the step runs", || (listed(&path) == counts([3, 0, 1, 0, 0, 0])).then_some(()));
    std::fs::write(place.path("gate"), "").unwrap();
    let ended = until_phase(&server, &path, "failed");
    assert_eq!(listed(&path), counts([0, 0, 0, 1, 1, 2]));
    assert_eq!(listed(&path), ended["stepCounts"], "as the execution itself shows them");
}

/// A plan of one step that notes its process and waits for a file.
pub(crate) fn gated(place: &Place) -> Value {
    let (began, gate) = (place.path("began"), place.path("gate"));
    let script = format!(
        "echo begun; echo $$ >> {}; while [ ! -e {} ]; do sleep 0.05; done; echo done > outputs/o",
        began.display(),
        gate.display()
    );
    json!({
        "steps": [{ "id": "gated", "action": { "script": script, "outputs": [{ "name": "o" }] } }],
        "output": { "o": "steps.gated.outputs.o" },
    })
}

#[test]
fn pln_32_cancelling_an_execution_stops_its_steps_and_frees_the_worker() {
    let place = Place::new();
    let server = place.serve();
    let path = begin(&server, &gated(&place), &json!({}));
    let _worker = worker(&place, &server);
    let process = rig::process_of(&place, "began");
    let running = until_phase(&server, &path, "running");
    assert_eq!(phases(&running), "gated running");
    let log = format!("{path}/steps/gated/logs");
    rig::until("the line is logged", || (server.get(&log).text().unwrap() == "begun\n").then_some(()));
    let (code, cancelled) = send(&server, Method::PUT, &format!("{path}/cancel"), &json!({}));
    assert_eq!((code, &cancelled["status"]["phase"]), (200, &json!("cancelled")), "{cancelled}");
    rig::until("the step is stopped", || rig::is_gone(process).then_some(()));
    let cancelled = status(&server, &path);
    assert_eq!(phases(&cancelled), "gated failed");
    let logs = json!([{ "stream": "stdout", "value": "begun\n" }, { "stream": "stderr", "value": "" }]);
    assert_eq!(step(&cancelled, "gated")["logs"], logs, "what it wrote until then");
    assert_eq!(server.get(&format!("{path}/steps/gated/logs")).text().unwrap(), "begun\n");
    assert_eq!(send(&server, Method::PUT, &format!("{path}/cancel"), &json!({})).0, 409);
    assert_eq!(server.get(&format!("{path}/outputs/o")).status().as_u16(), 404);
    let next = begin(&server, &greeting(&inline()), &json!({ "params": { "who": "Ada" } }));
    until_phase(&server, &next, "completed");
    assert_eq!(server.get(&format!("{next}/outputs/greeting")).text().unwrap(), "hi Ada");
}

#[test]
fn pln_11_a_worker_keeps_its_execution_while_the_server_is_killed_and_started_again() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "60");
    let server = place.serve();
    let path = begin(&server, &gated(&place), &json!({}));
    let _worker = worker(&place, &server);
    rig::process_of(&place, "began");
    let before = until_phase(&server, &path, "running");
    let address = server.address().to_owned();
    server.kill();
    let server = place.serve_on(&address);
    place.write("gate", "");
    let ended = until_phase(&server, &path, "completed");
    assert_eq!(ended["runnerHost"], before["runnerHost"]);
    assert_eq!(place.lines("began").len(), 1, "nothing ran again");
    assert_eq!(server.get(&format!("{path}/outputs/o")).text().unwrap(), "done\n");
}

/// The plan of the tests below: a large text with logs, and a large document whose part is an output of the plan.
pub(crate) fn large() -> Value {
    let make = "head -c 200000 /dev/zero | tr '\\0' x > outputs/big; echo one; echo two; echo oops >&2; printf hi > outputs/small";
    let doc = "printf '{\"list\": [1, {\"name\": \"deep\"}], \"pad\": \"%s\"}' \"$(head -c 50000 /dev/zero | tr '\\0' p)\" > outputs/doc.json; head -c 100000 /dev/zero | tr '\\0' y";
    json!({
        "steps": [
            { "id": "make", "action": { "script": make, "outputs": [{ "name": "big", "metadata": { "contentType": "text/x-big" } }, { "name": "small" }] } },
            { "id": "doc", "action": { "script": doc, "outputs": [{ "name": "doc", "schema": {} }] } },
        ],
        "output": { "big": "steps.make.outputs.big", "part": "steps.doc.outputs.doc.list[1].name" },
    })
}

pub(crate) fn artifact(bytes: &[u8]) -> Value {
    json!({ "size": bytes.len(), "checksum": STANDARD.encode(Sha256::digest(bytes)), "ready": true })
}

#[test]
fn pln_25_pln_26_pln_28_pln_30_outputs_and_logs_of_a_worker_are_sent_as_bytes_and_in_parts() {
    let place = Place::new();
    let server = place.serve();
    let path = begin(&server, &large(), &json!({}));
    assert_eq!(server.get(&format!("{path}/outputs/big")).status().as_u16(), 404, "there is none yet");
    let _worker = worker(&place, &server);
    let ended = until_phase(&server, &path, "completed");
    let big = "x".repeat(200_000);
    let made = output(step(&ended, "make"), "big");
    assert_eq!((&made["artifact"], made.get("value")), (&artifact(big.as_bytes()), None), "{made}");
    let of_plan = output(&ended, "big");
    assert_eq!(of_plan["artifact"], made["artifact"]);
    assert_eq!(of_plan["stepRef"], json!({ "stepID": "make", "outputName": "big" }));
    for name in ["outputs/big", "steps/make/outputs/big"] {
        let sent = server.get(&format!("{path}/{name}"));
        assert_eq!(sent.headers()["Content-Type"], "text/x-big");
        assert!(sent.text().unwrap() == big, "{name}");
    }
    assert_eq!(server.get(&format!("{path}/steps/make/outputs/small")).text().unwrap(), "hi");
    let drilled = output(&ended, "part");
    assert_eq!(drilled["drill"], json!(["list", "1", "name"]), "{drilled}");
    assert_eq!(server.get(&format!("{path}/outputs/part")).text().unwrap(), "deep");
    let some = part(&server, &format!("{path}/outputs/big"), "bytes=199990-300000");
    assert_eq!(
        (some.status().as_u16(), &some.headers()["Content-Range"]),
        (206, &"bytes 199990-199999/200000".parse().unwrap())
    );
    assert_eq!(some.text().unwrap(), "x".repeat(10));
    let none = part(&server, &format!("{path}/outputs/big"), "bytes=200000-");
    assert_eq!(
        (none.status().as_u16(), &none.headers()["Content-Range"]),
        (416, &"bytes */200000".parse().unwrap())
    );
    let logs = format!("{path}/steps/make/logs");
    assert_eq!(server.get(&logs).text().unwrap(), "one\ntwo\n");
    assert_eq!(server.get(&format!("{logs}?stream=stderr")).text().unwrap(), "oops\n");
    let some = part(&server, &logs, "bytes=-4");
    assert_eq!((some.status().as_u16(), some.text().unwrap().as_str()), (206, "two\n"));
    assert_eq!(part(&server, &logs, "bytes=8-").status().as_u16(), 416);
    let log = &step(&ended, "doc")["logs"][0];
    assert_eq!(
        (&log["stream"], &log["artifact"]),
        (&json!("stdout"), &artifact("y".repeat(100_000).as_bytes()))
    );
    assert!(server.get(&format!("{path}/steps/doc/logs")).text().unwrap() == "y".repeat(100_000));
    for (wrong, code) in [
        ("outputs/nothing", 404),
        ("steps/make/outputs/nothing", 404),
        ("steps/nothing/outputs/big", 404),
        ("steps/nothing/logs", 404),
        ("steps/make/logs?stream=both", 400),
        ("logs/live?cursor=x", 400),
    ] {
        assert_eq!(server.get(&format!("{path}/{wrong}")).status().as_u16(), code, "{wrong}");
    }
    let unknown = format!("/api/v1/plan-executions/exec_{}", "0".repeat(32));
    for rest in ["", "/outputs/big", "/steps/make/logs", "/logs/live"] {
        assert_eq!(server.get(&format!("{unknown}{rest}")).status().as_u16(), 404, "{rest}");
    }
}

/// Events of a stream that has ended: their names and data.
/// Larger than what the process of a worker or a server would hold in one piece.
const HUGE: usize = 150 << 20;

#[test]
fn pln_26_an_output_of_a_worker_passes_as_a_stream_to_the_next_step_and_to_the_reader() {
    let place = Place::new();
    let server = place.serve();
    let field = json!([{ "name": "huge" }]);
    let make = format!("head -c {HUGE} /dev/zero | tr '\\0' z > outputs/huge");
    let plan = json!({
        "steps": [
            { "id": "make", "action": { "script": make, "outputs": field } },
            { "id": "count", "action": { "script": "wc -c < context/huge; tail -c 1 context/huge > outputs/last", "params": field, "outputs": [{ "name": "last" }] },
              "args": { "refs": { "huge": "steps.make.outputs.huge" } } },
        ],
        "output": { "huge": "steps.make.outputs.huge", "last": "steps.count.outputs.last" },
    });
    let path = begin(&server, &plan, &json!({}));
    let _worker = worker(&place, &server);
    let ended = until_phase(&server, &path, "completed");
    assert_eq!(output(&ended, "last")["value"], "z");
    assert_eq!(output(&ended, "huge")["artifact"]["size"], HUGE);
    let logs = server.get(&format!("{path}/steps/count/logs")).text().unwrap();
    assert_eq!(logs.trim(), HUGE.to_string());
    let sent = server.get(&format!("{path}/outputs/huge")).bytes().unwrap();
    assert_eq!((sent.len(), sent.iter().all(|byte| *byte == b'z')), (HUGE, true));
}

fn events(text: &str) -> Vec<(String, String)> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
    };
    text.split("\n\n").filter_map(|event| Some((field(event, "event:")?, field(event, "data:")?))).collect()
}

#[test]
fn the_live_log_of_an_execution_continues_while_it_runs_and_ends_with_a_signal() {
    let place = Place::new();
    let server = place.serve();
    let path = begin(&server, &large(), &json!({}));
    let live = server.get(&format!("{path}/logs/live?step=make"));
    assert_eq!(live.status().as_u16(), 200);
    let _worker = worker(&place, &server);
    let mut sent = events(&live.text().unwrap());
    assert_eq!(sent.pop(), Some(("signal".to_owned(), "EOF".to_owned())), "{sent:?}");
    let lines: Vec<Value> = sent
        .iter()
        .map(|(name, data)| {
            assert_eq!(name, "message");
            serde_json::from_str(data).unwrap()
        })
        .collect();
    let of = |stream: &str| -> Vec<&Value> { lines.iter().filter(|line| line["stream"] == stream).collect() };
    let printed: Vec<&Value> = of("stdout").iter().map(|line| &line["message"]).collect();
    assert_eq!((printed, of("stderr").len()), (vec![&json!("one"), &json!("two")], 1), "{lines:?}");
    assert!(lines.iter().all(|line| line["step"] == "make"), "{lines:?}");
    until_phase(&server, &path, "completed");
    let cursor = of("stdout")[0]["cursor"].as_str().unwrap();
    let rest = server.get(&format!("{path}/logs/live?step=make&stream=stdout&cursor={cursor}"));
    let rest = events(&rest.text().unwrap());
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert!(rest[0].1.contains("\"two\"") && rest[1].1 == "EOF", "{rest:?}");
}

const SECRET: &str = "hunter2-of-production";

#[test]
fn pln_09_pln_23_a_secret_of_a_worker_run_execution_is_in_no_answer_and_in_no_file() {
    let place = Place::new();
    let server = place.serve();
    assert_eq!(send(&server, Method::PUT, "/api/v1/secrets/prod", &json!({ "value": SECRET })).0, 200);
    let script = "ls -l context/token | cut -c1-10 > outputs/mode; wc -c < context/token > outputs/length; cat context/token > outputs/echo; \
                  cp context/token \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR\"; echo out $(cat context/token); echo err $(cat context/token) >&2; exit $CODE";
    let fields = json!([{ "name": "mode" }, { "name": "length" }, { "name": "echo" }]);
    let action = |code: &str| json!({ "script": script.replace("$CODE", code), "params": [{ "name": "token" }], "outputs": fields });
    let args = json!({ "refs": { "token": "params.token" } });
    let plan = json!({
        "params": [{ "name": "token", "required": true }],
        "steps": [{ "id": "good", "action": action("0"), "args": args }, { "id": "bad", "action": action("3"), "args": args }],
    });
    let path = begin(&server, &plan, &json!({ "secrets": { "token": "prod" } }));
    let worker = worker(&place, &server);
    let ended = until_phase(&server, &path, "failed");
    assert_eq!(phases(&ended), "good completed, bad failed");
    let input = &ended["inputs"][0];
    assert_eq!((&input["resolvedVia"], &input["secretName"]), (&json!("callerSecret"), &json!("prod")));
    assert_eq!(get(&server, &path).1["spec"]["secrets"], json!({ "token": "prod" }));
    let good = step(&ended, "good");
    assert_eq!(output(good, "mode")["value"], "-rw-------\n");
    assert_eq!(output(good, "length")["value"], format!("{}\n", SECRET.len()), "the step had the value");
    let id = path.rsplit('/').next().unwrap();
    let common = format!("/api/v1/executions/{id}");
    for answer in [
        path.clone(),
        "/api/v1/plan-executions".to_owned(),
        format!("{path}/steps/good/outputs/echo"),
        format!("{path}/steps/good/logs"),
        format!("{path}/steps/bad/logs?stream=stderr"),
        format!("{path}/logs/live"),
        format!("{common}/logs"),
        common,
    ] {
        let sent = server.get(&answer);
        assert_eq!(sent.status().as_u16(), 200, "{answer}");
        let text = sent.text().unwrap();
        assert!(!text.contains(SECRET), "{answer}: {text}");
        assert!(!answer.contains("/steps/good/logs") || text.starts_with("out "), "{text}");
    }
    worker.signal(Signal::TERM);
    let (code, _, said) = worker.end();
    assert!(code == Some(0) && !said.contains(SECRET), "{said}");
    let (_, said) = server.stop();
    assert!(!said.contains(SECRET), "{said}");
    for file in [place.data(), place.path("workers")].iter().flat_map(|folder| files(folder)) {
        let bytes = std::fs::read(&file).unwrap();
        let is_there = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!is_there, "{}", file.display());
    }
}

#[test]
fn pln_16_pln_17_a_step_of_a_worker_waits_for_its_sandbox_and_runs_when_it_is_ready() {
    let place = Place::new();
    let server = place.serve();
    let script = "echo $SIGNADOT_SANDBOX_NAME $SIGNADOT_ROUTING_KEY > outputs/o";
    let action = json!({ "script": script, "outputs": [{ "name": "o" }] });
    let plan = json!({
        "params": [{ "name": "box", "required": true }],
        "steps": [
            { "id": "routed", "action": action, "routingContext": { "ref": { "sandboxRef": "params.box" } } },
            { "id": "other", "action": action },
        ],
    });
    let put = |ready: bool| {
        let sandbox = json!({ "cluster": "local", "routingKey": "k-1", "ready": ready });
        send(&server, Method::PUT, "/api/v1/sandboxes/s1", &sandbox).0
    };
    assert!(put(false) < 300);
    let path = begin(&server, &plan, &json!({ "params": { "box": "s1" } }));
    let _worker = worker(&place, &server);
    let waiting = rig::until("one step waits and the other has ended", || {
        let status = status(&server, &path);
        (phases(&status) == "routed waiting, other completed").then_some(status)
    });
    assert_eq!((&waiting["phase"], &waiting["stepCounts"]["waiting"]), (&json!("running"), &json!(1)));
    assert!(put(true) < 300);
    let ended = until_phase(&server, &path, "completed");
    assert_eq!(output(step(&ended, "routed"), "o")["value"], "s1 k-1\n");
    assert_eq!(output(step(&ended, "other"), "o")["value"], "\n");
}

#[test]
fn pln_10_pln_34_an_execution_that_was_given_back_begins_again_with_secrets_as_they_are_now() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let secret = |value: &str| {
        assert_eq!(send(&server, Method::PUT, "/api/v1/secrets/prod", &json!({ "value": value })).0, 200);
    };
    secret("first-value");
    let mut plan = gated(&place);
    let script = plan["steps"][0]["action"]["script"].as_str().unwrap();
    let script = script.replace("echo done", "wc -c < context/token");
    plan["params"] = json!([{ "name": "token", "required": true }]);
    plan["steps"][0]["action"]["script"] = json!(script);
    plan["steps"][0]["action"]["params"] = json!([{ "name": "token" }]);
    plan["steps"][0]["args"] = json!({ "refs": { "token": "params.token" } });
    let bound = json!({ "secrets": { "token": "prod" } });
    let (path, mut first) = (begin(&server, &plan, &bound), worker(&place, &server));
    let process = rig::process_of(&place, "began");
    first.signal(Signal::TERM);
    first.until_says("finishing running work");
    first.signal(Signal::TERM);
    assert_eq!(first.end().0, Some(0));
    rig::until("the step is stopped", || rig::is_gone(process).then_some(()));
    secret("a-longer-second-value");
    place.write("gate", "");
    let second = worker(&place, &server);
    until_phase(&server, &path, "completed");
    assert_eq!(server.get(&format!("{path}/outputs/o")).text().unwrap().trim(), "21");
    // One whose secret is gone when it is dispatched fails without running a step.
    second.signal(Signal::TERM);
    assert_eq!(second.end().0, Some(0));
    let path = begin(&server, &plan, &bound);
    let deleted = server.request(Method::DELETE, "/api/v1/secrets/prod").send().unwrap();
    assert!(deleted.status().is_success());
    let _third = worker(&place, &server);
    let ended = until_phase(&server, &path, "failed");
    assert!(ended["error"].as_str().unwrap().contains("there is no secret `prod`"), "{ended}");
    assert_eq!((phases(&ended).as_str(), place.lines("began").len()), ("gated skipped", 2));
}

#[test]
fn pln_23_params_of_any_size_reach_their_step_and_are_shown_with_their_secrets() {
    let place = Place::new();
    let server = place.serve();
    assert_eq!(
        send(&server, Method::PUT, "/api/v1/secrets/prod", &json!({ "value": "planted-value" })).0,
        200
    );
    let fields = json!([{ "name": "p" }, { "name": "q" }, { "name": "t", "required": true }]);
    let script =
        "cat context/p | wc -c > outputs/o; cat context/q >> outputs/o; wc -c < context/t >> outputs/o";
    let action = json!({ "script": script, "params": fields, "outputs": [{ "name": "o" }] });
    let refs = json!({ "p": "params.p", "q": "params.q", "t": "params.t" });
    let plan =
        json!({ "params": fields, "steps": [{ "id": "a", "action": action, "args": { "refs": refs } }] });
    let _worker = worker(&place, &server);
    for bytes in [100_000, 3_900_000] {
        let bound = json!({ "params": { "p": "x".repeat(bytes), "q": "small" }, "secrets": { "t": "prod" } });
        let path = begin(&server, &plan, &bound);
        let ended = until_phase(&server, &path, "completed");
        assert_eq!(output(step(&ended, "a"), "o")["value"], format!("{bytes}\nsmall13\n"));
        let via: Vec<&Value> =
            ended["inputs"].as_array().unwrap().iter().map(|input| &input["resolvedVia"]).collect();
        assert_eq!(via, ["literal", "literal", "callerSecret"]);
        let spec = get(&server, &path).1["spec"].clone();
        assert_eq!((&spec["secrets"], &spec["params"]["q"]), (&json!({ "t": "prod" }), &json!("small")));
        let p = &spec["params"]["p"];
        match p.as_str() {
            Some(text) => assert_eq!(text.len(), bytes),
            None => {
                let (code, whole) = get(&server, p["url"].as_str().unwrap());
                assert_eq!((code, whole["p"].as_str().unwrap().len()), (200, bytes));
            }
        }
    }
}

#[test]
fn executions_of_plans_belong_to_their_tenant_and_steps_do_not_see_the_token_of_their_worker() {
    let place = Place::new();
    let server = place.serve();
    let action = json!({ "script": "env > outputs/env", "outputs": [{ "name": "env" }] });
    let plan =
        json!({ "steps": [{ "id": "a", "action": action }], "output": { "env": "steps.a.outputs.env" } });
    let path = begin(&server, &plan, &json!({}));
    let token = runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let _worker = runners::worker(&place, &server, &token, &WORKERS);
    until_phase(&server, &path, "completed");
    let env = server.get(&format!("{path}/outputs/env")).text().unwrap();
    assert!(env.contains("SIGNADOT_PLAN_STEP_ID=a") && !env.contains("WINDLASS_TOKEN"), "{env}");
    assert!(!env.contains("WINDLASS_SECRETS"), "{env}");
    assert!(!env.contains(&token), "{env}");
    let (_, other) = server.post("/api/v1/tenants", &json!({ "name": "other" }));
    let foreign = runners::token(&server, json!({ "name": "f", "role": "admin", "tenantId": other["id"] }));
    for rest in ["", "/outputs/env", "/steps/a/outputs/env", "/steps/a/logs", "/logs/live"] {
        let sent = server.bare(Method::GET, &format!("{path}{rest}")).bearer_auth(&foreign).send().unwrap();
        assert_eq!(sent.status().as_u16(), 404, "{rest}");
    }
    let sent = server.bare(Method::PUT, &format!("{path}/cancel")).bearer_auth(&foreign).send().unwrap();
    assert_eq!(sent.status().as_u16(), 404);
    let listed = server.bare(Method::GET, "/api/v1/plan-executions").bearer_auth(&foreign).send().unwrap();
    assert_eq!(rig::read_answer(listed).1["items"], json!([]));
}

#[test]
fn ctrl_c_ends_a_wait_for_a_plan_and_the_execution_continues() {
    let place = Place::new();
    let server = place.serve();
    let _worker = worker(&place, &server);
    place.write("plan.json", &json!({ "spec": gated(&place) }).to_string());
    let place = place.at(&server);
    let args = ["plans", "run", "plan.json", "--cluster", "local", "--runner", "default", "--wait"];
    let mut waiting = place.start(&args);
    waiting.until_says("step gated queued");
    rig::until("the step runs", || (place.lines("began").len() == 1).then_some(()));
    waiting.signal(Signal::INT);
    let (code, out, err) = waiting.end();
    assert_eq!((code, out.as_str()), (Some(130), ""), "{err}");
    assert!(
        err.contains("it continues at the server; follow it with:\n  windlass executions watch exec_"),
        "{err}"
    );
    place.write("gate", "");
    rig::until("it is completed", || {
        let (_, listed) = get(&server, "/api/v1/plan-executions?phase=completed");
        (listed["items"].as_array()?.len() == 1).then_some(())
    });
}

#[test]
fn plans_run_waits_for_a_worker_and_its_exit_code_is_that_of_the_end() {
    let place = Place::new();
    let server = place.serve();
    let _worker = worker(&place, &server);
    place.write("plan.json", &json!({ "spec": greeting(&inline()) }).to_string());
    let failing = json!({ "spec": { "steps": [{ "id": "a", "action": { "script": "exit 3" } }] } });
    place.write("failing.json", &failing.to_string());
    let place = place.at(&server);
    let at = ["--cluster", "local", "--runner", "default"];
    let run = |args: &[&str]| place.windlass(&[&["plans", "run"], args, &at].concat());
    run(&["plan.json", "--param", "who=Ada", "--output-dir", "out"]).expect(0);
    assert_eq!(place.lines("out/greeting"), ["hi Ada"]);
    run(&["failing.json", "--wait"]).expect(1).says("step a queued").says("step a failed");
    assert_ne!(run(&["plan.json", "--wait"]).says("who").code, 0, "a required parameter is not bound");
    run(&["plan.json", "--param", "who=1.10", "--output-dir", "out"]).expect(0);
    assert_eq!(place.lines("out/greeting"), ["hi 1.10"], "a parameter without a schema is a text");
    let count = || get(&server, "/api/v1/plan-executions").1["items"].as_array().unwrap().len();
    let before = count();
    let refused =
        run(&["plan.json", "--param", "who=Ada", "--output-dir", "/proc/nope"]).says("cannot create");
    assert_ne!(refused.code, 0);
    assert_eq!(count(), before, "no execution was started");
}

#[test]
fn plans_run_says_which_worker_to_start_if_none_is_connected() {
    let place = Place::new();
    let server = place.serve();
    place.write(
        "plan.json",
        &json!({ "spec": { "steps": [{ "id": "a", "action": { "script": "true" } }] } }).to_string(),
    );
    let place = place.at(&server);
    let args = ["plans", "run", "plan.json", "--cluster", "local", "--runner", "default", "--wait"];
    let mut waiting = place.start(&args);
    waiting.until_says("no worker of the group `default` is connected");
    let _worker = worker(&place, &server);
    let (code, _, err) = waiting.end();
    assert_eq!(code, Some(0), "{err}");
    let again = place.windlass(&args).expect(0);
    assert!(!again.err.contains("is connected"), "{}", again.err);
}

#[test]
fn pln_21_an_execution_that_was_given_back_and_cancelled_has_no_runner() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let (path, mut first) = (begin(&server, &gated(&place), &json!({})), worker(&place, &server));
    rig::process_of(&place, "began");
    assert!(until_phase(&server, &path, "running")["runnerHost"].is_string());
    first.signal(Signal::TERM);
    first.until_says("finishing running work");
    first.signal(Signal::TERM);
    assert_eq!(first.end().0, Some(0));
    assert!(until_phase(&server, &path, "pending").get("runnerHost").is_none());
    let (code, cancelled) = send(&server, Method::PUT, &format!("{path}/cancel"), &json!({}));
    assert_eq!((code, &cancelled["status"]["phase"]), (200, &json!("cancelled")), "{cancelled}");
    assert!(cancelled["status"].get("runnerHost").is_none(), "{cancelled}");
}

#[test]
fn the_live_log_of_a_step_that_does_not_exist_is_not_found() {
    let place = Place::new();
    let server = place.serve();
    let path = begin(&server, &gated(&place), &json!({}));
    let asked = server.get(&format!("{path}/logs/live?step=nope"));
    assert_eq!(asked.status().as_u16(), 404);
    assert!(asked.text().unwrap().contains("nope"));
}
