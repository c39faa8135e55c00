//! `windlass bench` from outside: what it prints, and that what it prints was checked.

use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn windlass(data: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.arg("bench").args(args).arg("--data").arg(data).output().expect("the program runs")
}

fn measured(args: &[&str]) -> Value {
    let data = folder();
    let output = windlass(data.path(), &[args, &["--json"]].concat());
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {words}");
    let left = std::fs::read_dir(data.path()).expect("the folder is there").count();
    assert_eq!(left, 0, "{args:?} leaves nothing behind");
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn every_benchmark_prints_its_figures_and_that_they_were_verified() {
    let check = |args: &[&str], figures: &[&str]| {
        let output = measured(args);
        for figure in figures {
            assert!(
                output[figure].as_f64().is_some_and(|value| value > 0.0),
                "{args:?}: {figure} in {output}"
            );
        }
        assert_eq!(output["verified"], true, "{args:?}");
        assert!(output["counts"]["verified_steps"].as_u64() > Some(0), "{args:?}: {output}");
        assert!(output["machine"]["filesystem"].is_string(), "{args:?}: {output}");
    };
    let rates = ["steps_per_s", "executions_per_s", "p50_ms", "p99_ms", "wall_ms"];
    check(&["chain", "--seconds", "0.2", "--concurrency", "8"], &rates);
    check(&["single", "--seconds", "0.2"], &rates);
    check(&["payload", "--seconds", "0.2"], &rates);
    check(&["fanout", "--seconds", "0"], &["wall_ms", "steps_per_s"]);
    check(&["limit", "--seconds", "0.4"], &["file_steps_per_s", "store_steps_per_s"]);
    check(&["backlog", "--seconds", "0.2", "--backlog", "3000"], &["ratio", "steps_per_s"]);
    check(&["gates", "--seconds", "0"], &["ratio", "wall_ratio", "steps_per_s"]);
    check(&["chain", "--seconds", "0.2", "--stored", "100"], &["stored_ratio", "stored_steps_per_s"]);
    let footprint = ["ready_ms", "idle_mb", "binary_mb", "bytes_per_step", "ready_stored_ms"];
    check(&["footprint", "--seconds", "0.2"], &footprint);
}

#[test]
fn schedules_cost_little_and_each_due_one_runs_once() {
    let output = measured(&["schedules", "--seconds", "0.5", "--schedules", "60"]);
    for figure in ["start_p50_ms", "all_started_ms", "create_ms_each"] {
        assert!(output[figure].as_f64().is_some_and(|value| value > 0.0), "{figure} in {output}");
    }
    assert!(output["idle_cpu_percent"].is_number(), "{output}");
    assert_eq!(
        (&output["verified"], &output["counts"]["verified_runs"]),
        (&Value::Bool(true), &Value::from(60))
    );
}

#[test]
fn a_worker_process_does_the_steps_of_chains() {
    let output = measured(&["workers", "--seconds", "0.4", "--concurrency", "4"]);
    for figure in ["steps_per_s", "executions_per_s", "p50_ms", "p99_ms", "wall_ms"] {
        assert!(output[figure].as_f64().is_some_and(|value| value > 0.0), "{figure} in {output}");
    }
}

#[test]
fn a_long_execution_is_compared_with_its_own_beginning() {
    for name in ["long", "loop"] {
        let output = measured(&[name, "--seconds", "0"]);
        assert!(output["last_to_first"].as_f64().is_some_and(|ratio| ratio > 0.0), "{name}: {output}");
        assert_eq!(output["verified"], true, "{name}");
    }
}

#[test]
fn unchecked_figures_are_marked() {
    assert_eq!(measured(&["single", "--seconds", "0.1", "--no-verify"])["verified"], false);
}

#[test]
fn a_traced_run_checks_every_answer() {
    let output = measured(&["chain", "--seconds", "0.2", "--trace"]);
    assert_eq!(output["trace"]["violations"], 0, "{output}");
    // Of each execution its start and end, of each step its order and its verdict.
    let executions = output["counts"]["executions"].as_u64().expect("a number");
    let steps = output["counts"]["steps"].as_u64().expect("a number");
    assert_eq!(output["trace"]["answers_checked"], 2 * executions + 2 * steps, "{output}");
}

#[test]
fn a_table_is_for_people() {
    let data = folder();
    let output = windlass(data.path(), &["single", "--seconds", "0.1"]);
    let text = String::from_utf8(output.stdout).expect("text");
    for part in ["single\n", "p50_ms", "verified: every journal replayed", "cpu "] {
        assert!(text.contains(part), "`{part}` is missing in:\n{text}");
    }
    assert!(output.stderr.is_empty(), "nothing but the table: {:?}", output.stderr);
}

#[test]
fn what_cannot_be_measured_is_reported() {
    let data = folder();
    let file = data.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let refused = windlass(&file, &["chain"]);
    let words = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && words.contains("cannot create a folder in"), "{words}");
    assert_eq!(windlass(data.path(), &["nothing"]).status.code(), Some(2));
}

/// An outsider's view of K7: in the list of system calls every batch is synced before it is acknowledged.
#[test]
#[ignore = "needs strace"]
fn the_system_calls_show_a_sync_before_each_acknowledgement() {
    let data = folder();
    let calls = data.path().join("calls");
    let status = Command::new("strace")
        .args(["-f", "-y", "-e", "trace=pwrite64,fsync,fdatasync,write", "-o"])
        .arg(&calls)
        .arg(env!("CARGO_BIN_EXE_windlass"))
        .args(["bench", "chain", "--seconds", "1", "--trace", "--data"])
        .arg(data.path())
        .status()
        .expect("strace runs");
    assert!(status.success(), "the run ended with {status}");
    let (batches, answers) = judge(&calls);
    println!("{batches} batches, each synced before it was acknowledged; {answers} answers after them");
    assert!(batches > 10 && answers > 10, "{batches} batches and {answers} answers were seen");
}

/// Activity of one thread since its batch began.
#[derive(Default)]
struct Thread {
    /// A call that another thread's call was listed before.
    begun: String,
    wrote: bool,
    synced: bool,
}

fn judge(calls: &PathBuf) -> (usize, usize) {
    let text = std::fs::read_to_string(calls).expect("a list of calls");
    let mut threads: HashMap<&str, Thread> = HashMap::new();
    let (mut acknowledged, mut answers) = (0, 0);
    for line in text.lines() {
        let Some((id, rest)) = line.split_once(' ') else { continue };
        let thread = threads.entry(id).or_default();
        let Some(call) = whole(thread, rest.trim_start()) else { continue };
        let ended_well = !call.contains(" = -1 ");
        if call.starts_with("pwrite64") && call.contains("-wal>") {
            (thread.wrote, thread.synced) = (true, false);
        } else if call.starts_with('f') && call.contains("-wal>") && ended_well {
            thread.synced = true;
        } else if call.contains("trace.log>") && call.contains(" begins") {
            (thread.wrote, thread.synced) = (false, false);
        } else if call.contains("trace.log>") && call.contains(" acknowledged") {
            assert!(thread.wrote && thread.synced, "a batch was acknowledged before it was synced: {line}");
            acknowledged += 1;
        } else if let Some((_, after)) = call.split_once("answer after batch ") {
            let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
            let batch: usize = digits.parse().expect("the number of a batch");
            assert!(batch <= acknowledged, "an answer after batch {batch}, which is not on disk: {line}");
            answers += 1;
        }
    }
    (acknowledged, answers)
}

/// A call that was listed in two parts, as one.
fn whole(thread: &mut Thread, part: &str) -> Option<String> {
    if let Some(begun) = part.strip_suffix(" <unfinished ...>") {
        begun.clone_into(&mut thread.begun);
        return None;
    }
    match part.split_once(" resumed>") {
        Some((_, rest)) if part.starts_with("<... ") => {
            let begun = std::mem::take(&mut thread.begun);
            Some(format!("{begun}{rest}"))
        }
        _ => Some(part.to_owned()),
    }
}
