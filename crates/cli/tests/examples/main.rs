//! Every playbook in examples/, run by the program as its header says, with what came of it.

#[expect(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the tools use more of it, and fail by panicking"
)]
#[path = "../../../worker/tests/worker/cluster.rs"]
mod cluster;
#[expect(dead_code, unused_imports, reason = "other tests use more of it")]
#[path = "../rig/mod.rs"]
mod rig;

use rig::{CommandOutput, Place};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Data of its own, and the examples where their headers look for them.
fn place() -> Place {
    let place = Place::playing("workflow:\n- {step: unused}\n");
    copy(&examples(), &place.path("examples"));
    place
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("the examples are there") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

#[track_caller]
fn run(place: &Place, name: &str, inputs: &[&str], code: i32) -> Value {
    let file = format!("examples/{name}.yaml");
    let inputs = inputs.iter().flat_map(|input| ["--input", input]);
    let args: Vec<&str> = ["run", &file, "--json"].into_iter().chain(inputs).collect();
    place.windlass(&args).expect(code).json()
}

/// `examples/servers/shop.py` as long as it is held.
struct Shop {
    process: Child,
    address: String,
}

impl Shop {
    fn open(place: &Place) -> Shop {
        let mut command = Command::new("python3");
        command.arg(place.path("examples/servers/shop.py")).stdout(Stdio::piped());
        let mut process = command.spawn().expect("python3 runs");
        let mut line = String::new();
        let stdout = process.stdout.as_mut().expect("a pipe");
        BufReader::new(stdout).read_line(&mut line).expect("it prints its address");
        Shop { process, address: format!("shop={}", line.trim()) }
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn hello_greets_and_asks_strangers() {
    let place = place();
    assert_eq!(run(&place, "hello", &[], 0)["outputs"]["stdout"], "Hello, World!\n");
    assert_eq!(run(&place, "hello", &["name=Ada"], 0)["outputs"]["stdout"], "Hello, Ada!\n");
    assert_eq!(run(&place, "hello", &["name="], 0)["outputs"]["stdout"], "Who are you?\n");
}

#[test]
fn fanout_ends_with_a_summary_after_success_and_failure() {
    let place = place();
    fs::create_dir(place.path("three")).expect("a folder");
    let output = run(&place, "fanout", &["folder=three"], 0);
    assert!(
        output["outputs"]["stdout"].as_str().expect("a text").starts_with("1 files in three on "),
        "{output}"
    );
    let output = run(&place, "fanout", &["folder=nowhere"], 4);
    assert_eq!(output["status"], "partial_success", "a branch failed, and the summary came all the same");
    let last = output["nodeExecutions"].as_array().and_then(|all| all.last()).expect("entries");
    assert_eq!((&last["nodeId"], &last["status"]), (&json!("summary"), &json!("completed")));
}

#[test]
fn join_reports_once_with_the_branches_that_arrived() {
    let place = place();
    fs::create_dir_all(place.path("three/inner")).expect("a folder");
    place.write("three/file", "");
    let output = run(&place, "join", &["folder=three"], 0);
    // The folder itself is one of the folders.
    assert_eq!(
        output["outputs"],
        json!({ "total": 3, "branches": ["folders", "files", "links"] }),
        "{output}"
    );
}

#[test]
fn loop_measures_every_word() {
    let output = run(&place(), "loop", &["words=[\"bow\", \"stern\"]"], 0);
    assert_eq!(output["outputs"]["stdout"], "2 words were measured\n");
}

#[test]
fn approval_waits_for_a_person_and_continues_either_way() {
    for (answer, expected) in
        [("true", "version 1.4.0 is out\n"), ("false", "version 1.4.0 stays in the harbour\n")]
    {
        let place = place();
        let id = run(&place, "approval", &[], 5)["executionId"].as_str().expect("an id").to_owned();
        place.windlass(&["executions", "patch", &id, &format!("approved={answer}")]).expect(0);
        let output: CommandOutput = place.windlass(&["run", "--resume", &id, "--json"]).expect(0);
        assert_eq!(output.json()["outputs"]["stdout"], expected);
    }
}

#[test]
fn pagination_collects_all_pages_from_a_server_that_stumbles() {
    let place = place();
    let shop = Shop::open(&place);
    let output = run(&place, "pagination", &[&shop.address], 0);
    assert_eq!(output["outputs"], json!({ "count": 12, "worth": 110 }));
    let id = output["executionId"].as_str().expect("an id");
    let logs = place.windlass(&["executions", "logs", id]).expect(0).out;
    assert_eq!(logs.matches("task fetch (http), try 2").count(), 1, "page 2 was asked for twice:\n{logs}");
}

#[test]
fn rate_limit_asks_again_when_the_server_wants_it() {
    let place = place();
    let shop = Shop::open(&place);
    let output = run(&place, "rate-limit", &[&shop.address], 0);
    assert_eq!(output["outputs"], json!({ "price": 42, "tries": 2 }));
    let took = output["nodeExecutions"][0]["duration"].as_u64().expect("a duration");
    assert!(took >= 1_000, "the server asked for a second, and the step took {took} ms");
}

#[test]
fn error_branch_handles_a_failure_unless_it_matters() {
    let place = place();
    let output = run(&place, "error-branch", &[], 0);
    assert_eq!((&output["outputs"]["saved"], &output["errors"]), (&json!(false), &json!([])));
    assert!(output["outputs"]["reason"].as_str().expect("a text").contains("SHELL_EXIT"), "{output}");
    assert_eq!(run(&place, "error-branch", &["folder=examples"], 0)["outputs"], json!({ "saved": true }));
    assert_eq!(run(&place, "error-branch", &["required=true"], 1)["status"], "failed");
}

#[test]
fn nested_starts_a_playbook_for_each_harbour() {
    let place = place();
    let output = run(&place, "nested", &[], 0);
    assert_eq!(output["outputs"], json!({ "visits": 3, "home": "Hamburg", "days_at_home": 11 }));
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    let all = list["executions"].as_array().expect("a list");
    let children =
        all.iter().filter(|one| one["metadata"]["parentExecutionId"] == output["executionId"]).count();
    assert_eq!((all.len(), children), (5, 4));
    let alone = run(&place, "parts/visit", &["harbour=Bergen"], 0);
    assert_eq!(alone["outputs"], json!({ "harbour": "Bergen", "days": 2 }));
}

#[test]
fn files_counts_the_lines_of_every_file() {
    let place = place();
    fs::create_dir(place.path("texts")).expect("a folder");
    place.write("texts/a.txt", "one\n");
    place.write("texts/b.txt", "one\ntwo\nthree\n");
    place.write("texts/c.md", "not this one\n");
    let output = run(&place, "files", &["folder=texts", "pattern=*.txt"], 0);
    assert_eq!(output["outputs"], json!({ "files": 2, "lines": 4, "longest": "texts/b.txt" }));
    let output = run(&place, "files", &["folder=texts", "pattern=*.none"], 0);
    assert_eq!(output["outputs"], json!({ "files": 0, "lines": 0 }));
}

#[test]
fn transform_makes_a_report_of_rows() {
    let output = run(&place(), "transform", &[], 0);
    let given = &output["outputs"];
    assert_eq!(given["worth"], json!({ "Bergen": 62.0, "Harwich": 28.0 }));
    assert_eq!((&given["best"], &given["left_out"]), (&json!("Bergen"), &json!(1)));
}

#[test]
fn secret_is_used_and_nowhere_to_be_seen() {
    let place = place();
    let shop = Shop::open(&place);
    assert_eq!(
        run(&place, "secret", &[&shop.address], 1)["status"],
        "failed",
        "the secret is not reported yet"
    );
    place.given(&["secrets", "set", "shop-key"], "open-sesame").expect(0);
    let output = run(&place, "secret", &[&shop.address], 0);
    assert_eq!(output["outputs"], json!({ "orders": 2, "total": 42 }));
    assert!(!output.to_string().contains("open-sesame"), "{output}");
}

#[test]
fn sql_writes_rows_and_asks_for_their_sum() {
    let place = place();
    let cluster = cluster::cluster();
    let db = format!("db={{\"port\": {}}}", cluster.port);
    let output = run(&place, "sql", &[&db], 0);
    let given = &output["outputs"];
    assert_eq!(
        (&given["ships"], &given["tons"], &given["largest"]),
        (&json!(3), &json!(77), &json!("Passat"))
    );
    let bad = run(&place, "sql", &[&db, "cargo=[{\"ship\": \"Ghost\", \"tons\": 0}]"], 1);
    let error = &bad["nodeExecutions"][1]["iterations"][0]["error"];
    assert!(error.to_string().contains("cargo_tons_check"), "{error}");
}

#[test]
fn workbook_calls_one_task_with_other_arguments() {
    let place = place();
    fs::create_dir_all(place.path("tree/branch")).expect("folders");
    place.write("tree/leaf", "");
    let output = run(&place, "workbook", &["path=tree"], 0);
    assert_eq!(output["outputs"], json!({ "files": 1, "folders": 2 }));
}

#[track_caller]
fn run_workflow(place: &Place, name: &str, inputs: &[&str], code: i32) -> Value {
    let inputs = inputs.iter().flat_map(|input| ["--input", input]);
    let args: Vec<&str> = ["run", name, "--json"].into_iter().chain(inputs).collect();
    place.windlass(&args).expect(code).json()
}

#[test]
fn workflow_words_reports_the_long_ones() {
    let place = place();
    let file = "examples/workflow-words.json";
    let output = run_workflow(&place, file, &[], 0);
    assert_eq!(output["outputs"]["stdout"], "long: capstan 7, halyard 7, windlass 8\n");
    let output = run_workflow(&place, file, &["long=20"], 0);
    assert_eq!(output["outputs"]["stdout"], "none is longer than 19 letters\n");
    place.windlass(&["run", file, "--input", "words=[\"Bow\"]"]).expect(2).says("inputs.words[0]");
}

#[test]
fn workflow_release_waits_for_an_answer() {
    for (answer, expected) in
        [("approve", "version 1.4.0 is out\n"), ("reject", "version 1.4.0 stays in the harbour\n")]
    {
        let place = place();
        let output = run_workflow(&place, "examples/workflow-release.yaml", &[], 5);
        let id = output["executionId"].as_str().expect("an id");
        place.windlass(&["executions", answer, id, "ask"]).expect(0);
        let output = place.windlass(&["run", "--resume", id, "--json"]).expect(0).json();
        assert_eq!(output["outputs"]["stdout"], expected);
    }
}

#[test]
fn workflow_orders_asks_again_and_continues_without_an_answer() {
    let place = place();
    let shop = Shop::open(&place);
    let file = "examples/workflow-orders.yaml";
    let output = run_workflow(&place, file, &[&shop.address], 0);
    assert_eq!(output["outputs"]["stdout"], "the price is 42");
    let output = run_workflow(&place, file, &["shop=http://127.0.0.1:9"], 0);
    assert_eq!(output["outputs"]["stdout"], "no price: CONNECTION_REFUSED");
}

#[test]
fn workflow_report_remembers_the_last_one() {
    let place = place();
    let file = "examples/workflow-report.yaml";
    let output = run_workflow(&place, file, &[], 0);
    assert_eq!(output["outputs"]["stdout"], "Passat: 52 t, Pamir: 25 t (before: nothing)\n");
    let output = run_workflow(&place, file, &["cargo=[{\"ship\": \"Pamir\", \"tons\": 7}]"], 0);
    assert_eq!(output["outputs"]["stdout"], "Pamir: 7 t (before: Passat: 52 t, Pamir: 25 t)\n");
}

#[test]
fn workflow_fleet_inspects_every_ship() {
    let place = place();
    let file = "examples/workflow-fleet.yaml";
    let output = run_workflow(&place, file, &[], 0);
    assert_eq!(output["outputs"]["stdout"], "3 ships are fit to sail\n");
    let output = run_workflow(&place, file, &["ships=[\"Passat\", \"Ghost\"]"], 4);
    assert_eq!(output["status"], "partial_success");
}

#[test]
fn actions_order_writes_and_sends_an_invoice() {
    let place = place();
    let output = run(&place, "actions-order", &[], 0);
    assert_eq!(output["outputs"]["stdout"], "to ada@example.com, invoice 2026-3 over 120\n");
    let output = run(&place, "actions-order", &["customer=Grace", "amount=75"], 0);
    assert_eq!(output["outputs"]["stdout"], "to grace@example.com, invoice 2026-5 over 75\n");
    place
        .windlass(&["run", "examples/actions-order.yaml", "--input", "amount=0"])
        .expect(2)
        .says("inputs.amount");
}

#[test]
fn actions_graph_publishes_only_what_a_person_approved() {
    for (answer, code, status) in [("approve", 0, "Succeeded"), ("reject", 1, "Failed")] {
        let place = place();
        let output = run(&place, "actions-graph", &[], 5);
        let id = output["executionId"].as_str().expect("an id");
        place.windlass(&["executions", answer, id, "publish"]).expect(0);
        let output = place.windlass(&["run", "--resume", id, "--json"]).expect(code).json();
        assert_eq!(output["view"]["status"], status);
        if code == 0 {
            assert_eq!(output["outputs"]["stdout"], "windlass-1.4.0.tar.gz is out, 12 tests passed\n");
        }
    }
}

#[test]
fn actions_saga_undoes_its_bookings_the_newest_first() {
    let place = place();
    assert_eq!(run(&place, "actions-saga", &[], 0)["outputs"], json!({ "booked": "outside" }));
    let output = run(&place, "actions-saga", &["cabin=none"], 1);
    let compensation = &output["view"]["compensation"];
    assert_eq!((&compensation["attempted"], &compensation["succeeded"]), (&json!(2), &json!(2)));
    let entries = compensation["entries"].as_array().expect("entries").iter();
    let undone: Vec<&str> = entries.filter_map(|entry| entry["operation"].as_str()).collect();
    assert_eq!(undone, ["hotel:cancel", "train:cancel"]);
    let logs = place.windlass(&["executions", "logs", "@last"]).expect(0).out;
    assert!(logs.contains("ticket T-Bergen is cancelled: the journey failed"), "{logs}");
}

#[test]
fn plan_release_reports_size_and_checksum_of_what_it_built() {
    let place = place();
    let output = run(&place, "plan-release", &["version=1.4.0"], 0);
    let outputs = &output["outputs"];
    assert_eq!(outputs["version"], "1.4.0");
    assert!(outputs["bytes"].as_u64().is_some_and(|bytes| bytes >= 1_024), "{outputs}");
    assert!(outputs["sha256"].as_str().is_some_and(|digits| digits.len() == 64), "{outputs}");
    let refused = place.windlass(&["run", "examples/plan-release.yaml", "--input", "version=new"]).expect(2);
    assert!(refused.err.contains("inputs.version"), "{}", refused.err);
}

#[test]
fn plan_health_checks_an_answer_and_alerts_only_if_it_is_bad() {
    let place = place();
    let shop = Shop::open(&place);
    let address = shop.address.trim_start_matches("shop=");
    let output = run(&place, "plan-health", &[&format!("url={address}/items")], 0);
    assert_eq!(output["outputs"], json!({ "status": 200, "verdict": { "check": "status" } }));
    assert_eq!(output["view"]["status"]["stepCounts"]["skipped"], 1, "no alert");
    // The second page fails once.
    let output = run(&place, "plan-health", &[&format!("url={address}/items?page=2")], 1);
    assert_eq!(output["view"]["status"]["stepCounts"]["failed"], 1, "the alert");
}

#[test]
fn plan_token_signs_with_a_secret_that_nothing_shows() {
    let place = place();
    place.given(&["secrets", "set", "deploy-token"], "correct horse").expect(0);
    let command = ["run", "examples/plan-token.yaml", "--param-secret", "token=deploy-token", "--json"];
    let output = place.windlass(&command).expect(0).json();
    assert!(output["outputs"]["receipt"].as_str().is_some_and(|text| text.starts_with("deployed with ")));
    assert!(!output.to_string().contains("correct horse"), "{output}");
}

#[test]
fn plan_route_takes_one_branch_in_the_sandbox_that_it_waits_for() {
    let place = place();
    let drawn = place.windlass(&["graph", "examples/plan-route.yaml"]).expect(0).out;
    assert!(["measure", "quick", "thorough", "small"].iter().all(|part| drawn.contains(part)), "{drawn}");
    place.windlass(&["sandboxes", "put", "pr-7", "--cluster", "local", "--ready"]).expect(0);
    let small = run(&place, "plan-route", &["target=pr-7"], 0);
    assert_eq!(small["outputs"], json!({ "quick": "small test with 4 requests in pr-7" }));
    let large = run(&place, "plan-route", &["target=pr-7", "size=40"], 0);
    assert_eq!(large["outputs"], json!({ "thorough": "large test with 40 requests in pr-7" }));
    assert_eq!(large["view"]["status"]["stepCounts"]["skipped"], 1, "{large}");
    let mut waits = place.command(&["run", "examples/plan-route.yaml", "--input", "target=pr-8", "--json"]);
    waits.env("WINDLASS_ROUTING_TIMEOUT_SECONDS", "1");
    let failed = CommandOutput::of(waits).expect(1).out;
    assert!(failed.contains("did not become ready in time"), "{failed}");
}

#[test]
fn plan_workers_runs_on_two_workers_of_a_server() {
    let place = place();
    let server = place.serve();
    let place = place.at(&server);
    let worker = ["worker", "--group", "default", "--cluster", "local", "--slots", "1"];
    let _workers = [0, 1].map(|_| {
        let mut running = place.start(&worker);
        running.until_says("working for the group");
        running
    });
    let run = |name: &str, more: &[&str]| {
        let param = format!("name={name}");
        let args = [
            "plans",
            "run",
            "examples/plan-workers.yaml",
            "--param",
            &param,
            "--cluster",
            "local",
            "--runner",
            "default",
        ];
        place.windlass(&[&args[..], more].concat()).expect(0)
    };
    run("first", &[]);
    let second = run("second", &["--wait", "--json"]).json();
    assert_eq!(second["status"]["phase"], "completed", "{second}");
    let listed = rig::until("both are completed", || {
        let (_, listed) = rig::read_answer(server.get("/api/v1/plan-executions?phase=completed"));
        (listed["items"].as_array().is_some_and(|items| items.len() == 2)).then_some(listed)
    });
    let hosts: BTreeSet<String> = listed["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| {
            let path = format!("/api/v1/plan-executions/{}", item["id"].as_str().expect("an id"));
            let (_, one) = rig::read_answer(server.get(&path));
            assert_eq!(one["status"]["outputs"][0]["value"].to_string().trim_matches('"'), "3", "{one}");
            one["status"]["runnerHost"].to_string()
        })
        .collect();
    assert_eq!(hosts.len(), 2, "the workers take turns: {hosts:?}");
}

#[test]
fn schedules_are_applied_once_and_say_when_they_run() {
    let place = place();
    place.windlass(&["workflows", "create", "examples/hello.yaml"]).expect(0);
    let apply = ["schedules", "apply", "-f", "examples/schedules"];
    let applied = place.windlass(&apply).expect(0).out;
    assert_eq!(applied, "created    first-monday\ncreated    health-check\ncreated    nightly-hello\n");
    let again = place.windlass(&apply).expect(0).out;
    assert_eq!(again, applied.replace("created  ", "unchanged"));
    let explained = place.windlass(&["schedules", "explain", "nightly-hello"]).expect(0).out;
    assert_eq!(explained.lines().filter(|line| line.contains("in Europe/Berlin")).count(), 5, "{explained}");
}

#[test]
fn every_example_is_valid_has_a_header_and_a_line_in_the_readme() {
    let place = place();
    let readme = fs::read_to_string(examples().join("README.md")).expect("it is there");
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(examples()).expect("the examples are there") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        if !name.ends_with(".yaml") && !name.ends_with(".json") {
            continue;
        }
        let file = format!("examples/{name}");
        let text = fs::read_to_string(place.path(&file)).expect("a text");
        let output = place.windlass(&["validate", &file]).expect(0);
        assert!(output.out.contains("no problem"), "{}{}", output.out, output.err);
        let header = |line: &&str| line.starts_with('#') || name.ends_with(".json");
        let shows = text.lines().take_while(header).any(|line| line.contains(&file));
        assert!(shows, "the header of {name} says how to run it");
        assert!(readme.contains(&format!("]({name})")), "{name} is not in the README");
        seen.insert(name);
    }
    assert!(seen.len() >= 10, "{seen:?}");
}
