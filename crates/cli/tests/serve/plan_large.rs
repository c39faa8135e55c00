//! A large output passes through a worker process to the server and to the next step, and neither process holds it: their
//! memory does not grow with its size.
//!
//! `WINDLASS_LARGE_OUTPUT_BYTES` sets its size; then the processes may have 100 MB each, which a release build keeps.

use crate::plan_executions::{begin, status};
use crate::rig::{self, Place, Running, Server};
use crate::runners;
use serde_json::{Value, json};
use std::io::Read as _;
use std::time::{Duration, Instant};

/// Size of the output that both processes pass first.
const SMALL: u64 = 2 << 20;
/// Size of the large output, unless the environment sets it.
const LARGE: u64 = 256 << 20;
/// Memory that each of the processes may need for the large output in addition to that.
const GROWTH_MAX: u64 = 64 << 20;
/// Memory that each of the processes may need in all, if the environment sets the size.
const MEMORY_MAX: u64 = 100_000_000;

fn size_of_environment() -> Option<u64> {
    std::env::var("WINDLASS_LARGE_OUTPUT_BYTES").ok().map(|text| text.parse().expect("a number"))
}

/// Highest resident memory of a process so far.
fn peak_memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

fn plan(size: u64) -> Value {
    let field = json!([{ "name": "huge" }]);
    let count = json!({ "script": "wc -c < context/huge > outputs/size", "params": field, "outputs": [{ "name": "size" }] });
    json!({
        "steps": [
            { "id": "make", "action": { "script": format!("truncate -s {size} outputs/huge"), "outputs": field } },
            { "id": "count", "action": count, "args": { "refs": { "huge": "steps.make.outputs.huge" } } },
        ],
        "output": { "huge": "steps.make.outputs.huge", "size": "steps.count.outputs.size" },
    })
}

/// Passes an output of that size, and returns the time until the execution has ended.
fn pass(server: &Server, size: u64) -> Duration {
    let began = Instant::now();
    let path = begin(server, &plan(size), &json!({}));
    // A disk takes its time for a large one.
    let end = began + rig::PATIENCE + Duration::from_secs(size >> 22);
    let ended = loop {
        let status = status(server, &path);
        assert!(Instant::now() < end && status["phase"] != "failed", "{status}");
        if status["phase"] == "completed" {
            break status;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let passed = began.elapsed();
    assert_eq!(ended["outputs"][0]["artifact"]["size"], size, "{ended}");
    assert_eq!(server.get(&format!("{path}/outputs/size")).text().unwrap().trim(), size.to_string());
    let (mut answer, mut read, mut piece) =
        (server.get(&format!("{path}/outputs/huge")), 0, vec![1; 1 << 20]);
    loop {
        let count = answer.read(&mut piece).unwrap();
        if count == 0 {
            break;
        }
        assert!(piece[..count].iter().all(|byte| *byte == 0));
        read += count as u64;
    }
    assert_eq!(read, size);
    passed
}

#[test]
fn pln_30_an_output_of_any_size_passes_through_a_worker_with_little_memory() {
    let size = size_of_environment().unwrap_or(LARGE);
    let place = Place::new();
    let server = place.serve();
    let token = json!({ "name": "w", "role": "worker", "group": "default" });
    let args = ["--group", "default", "--cluster", "local"];
    let worker: Running = runners::worker(&place, &server, &runners::token(&server, token), &args);
    let peaks = || [worker.pid(), server.process()].map(peak_memory);
    pass(&server, SMALL);
    let before = peaks();
    let passed = pass(&server, size);
    let after = peaks();
    println!(
        "{size} bytes in {passed:?}; peak memory of worker and server {after:?}, for {SMALL} bytes {before:?}"
    );
    let grown = [0, 1].map(|place| after[place] - before[place]);
    assert!(grown.iter().all(|grown| *grown < GROWTH_MAX), "{grown:?}");
    assert!(size_of_environment().is_none() || after.iter().all(|peak| *peak < MEMORY_MAX), "{after:?}");
}
