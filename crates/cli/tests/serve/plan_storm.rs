//! Many executions of a plan over four worker processes that are killed again and again. Every execution completes, no
//! step runs twice within one attempt, every artifact is whole, and a secret that all of them read is found nowhere.
//!
//! `WINDLASS_STORM_EXECUTIONS` sets the number of executions.

use crate::plan_executions::{begin, status};
use crate::rig::{self, Place, Running, Server};
use crate::runners;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

const SECRET: &str = "planted-S3cret-of-the-storm";
const WORKERS: usize = 4;
const STEPS: usize = 12;
/// Bytes of the artifact that each step passes on: more than is stored inline.
const BYTES: usize = 100_000;
/// Longest time for each execution.
const PER_EXECUTION: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(20);
/// Time between two kills.
const PACE: Duration = Duration::from_secs(2);

fn executions() -> usize {
    std::env::var("WINDLASS_STORM_EXECUTIONS").ok().map_or(8, |text| text.parse().expect("a number"))
}

/// A chain in which each step notes itself, prints the secret and passes an artifact on.
fn plan(place: &Place) -> Value {
    let seen = place.path("seen").display().to_string();
    let steps = (0..STEPS).map(|number| {
        let make = match number {
            0 => format!("head -c {BYTES} /dev/zero | tr '\\0' q > outputs/data"),
            _ => "cat context/data > outputs/data".to_owned(),
        };
        let script = format!(
            "echo \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR s{number}\" >> {seen}; cat context/token; \
             cp context/token \"$SIGNADOT_PLAN_EXECUTION_SCRATCHDIR\"; cat context/token > outputs/echo; {make}"
        );
        let mut refs = json!({ "token": "params.token" });
        let mut params = vec![json!({ "name": "token" })];
        if number > 0 {
            refs["data"] = json!(format!("steps.s{}.outputs.data", number - 1));
            params.push(json!({ "name": "data" }));
        }
        let outputs = json!([{ "name": "data" }, { "name": "echo" }]);
        json!({ "id": format!("s{number}"), "action": { "script": script, "params": params, "outputs": outputs }, "args": { "refs": refs } })
    });
    json!({
        "params": [{ "name": "token", "required": true }, { "name": "number", "schema": { "type": "integer" } }],
        "steps": steps.collect::<Vec<_>>(),
        "output": { "data": format!("steps.s{}.outputs.data", STEPS - 1) },
    })
}

fn start_worker(place: &Place, server: &Server, token: &str) -> Running {
    runners::worker(place, server, token, &["--group", "default", "--cluster", "local", "--slots", "1"])
}

/// Workers that an execution may have lost when the next one is killed: it fails with the fifth, and may lose one before its
/// first step.
const LOSSES_MAX: u32 = 3;

/// Returns whether an execution that has lost that many workers is at work. On a busy machine executions take as long as the
/// time between two kills, and of many one would lose five workers in a row.
fn is_worn(place: &Place) -> bool {
    let mut steps: BTreeMap<String, (u32, usize)> = BTreeMap::new();
    for line in place.lines("seen") {
        // The folder of an execution ends with its generation.
        let folder =
            line.split("/scratch ").next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        let Some((id, generation)) = folder.rsplit_once('-') else { continue };
        let generation = generation.parse::<u32>().unwrap_or_default();
        let newest = steps.entry(id.to_owned()).or_default();
        *newest = if newest.0 == generation { (generation, newest.1 + 1) } else { (generation, 1) };
    }
    steps.values().any(|(generation, ran)| *generation >= LOSSES_MAX && *ran < STEPS)
}

/// Kills a worker every two seconds, each time another one, until all executions have ended. Returns the number of kills.
fn kill_until_ended(place: &Place, server: &Server, paths: &[String]) -> usize {
    let token = json!({ "name": "w", "role": "worker", "group": "default" });
    let token = runners::token(server, token);
    let mut workers: Vec<Running> = (0..WORKERS).map(|_| start_worker(place, server, &token)).collect();
    let (mut kills, mut killed_at, mut open) = (0, Instant::now(), paths.to_vec());
    // One that lost its worker waits behind all others.
    let end = Instant::now() + rig::PATIENCE + PER_EXECUTION * u32::try_from(paths.len()).unwrap();
    while !open.is_empty() {
        loop {
            assert!(Instant::now() < end, "{} executions have not ended, {} first", open.len(), open[0]);
            if killed_at.elapsed() >= PACE && kills < paths.len() / 2 && !is_worn(place) {
                workers.remove(0).signal(Signal::KILL);
                workers.push(start_worker(place, server, &token));
                (kills, killed_at) = (kills + 1, Instant::now());
            }
            let status = status(server, &open[0]);
            assert_ne!(status["phase"], "failed", "{}: {}", open[0], server.get(&open[0]).text().unwrap());
            if status["phase"] == "completed" {
                break;
            }
            std::thread::sleep(LOOK);
        }
        open.remove(0);
    }
    for worker in workers {
        end_worker(worker);
    }
    // A worker that starts removes what those left that were killed.
    end_worker(start_worker(place, server, &token));
    kills
}

fn end_worker(worker: Running) {
    worker.signal(Signal::TERM);
    let (code, _, said) = worker.end();
    assert!(code == Some(0) && !said.contains(SECRET), "{said}");
}

fn contains_secret(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
}

#[test]
fn pln_10_pln_11_pln_23_executions_over_killed_workers_complete_with_whole_artifacts_and_no_secret_on_disk() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "4");
    let server = place.serve();
    let put = server.request(reqwest::Method::PUT, "/api/v1/secrets/storm").json(&json!({ "value": SECRET }));
    assert!(put.send().unwrap().status().is_success());
    let plan = plan(&place);
    let bound = |number| json!({ "params": { "number": number }, "secrets": { "token": "storm" } });
    let paths: Vec<String> = (0..executions()).map(|number| begin(&server, &plan, &bound(number))).collect();
    let kills = kill_until_ended(&place, &server, &paths);
    let seen = place.lines("seen");
    let distinct: BTreeSet<&String> = seen.iter().collect();
    assert_eq!(seen.len(), distinct.len(), "no step ran twice within one attempt");
    assert!(seen.len() >= paths.len() * STEPS, "every step ran");
    for path in &paths {
        let data = server.get(&format!("{path}/outputs/data")).bytes().unwrap();
        assert!(data.len() == BYTES && data.iter().all(|byte| *byte == b'q'), "{path}: {} bytes", data.len());
        for part in ["", "/steps/s0/outputs/echo", "/steps/s0/logs", "/steps/s11/logs"] {
            let answer = server.get(&format!("{path}{part}"));
            assert_eq!(answer.status().as_u16(), 200, "{path}{part}");
            assert!(!contains_secret(&answer.bytes().unwrap()), "{path}{part}");
        }
    }
    let (_, said) = server.stop();
    assert!(!said.contains(SECRET), "{said}");
    for file in [place.data(), place.path("workers")].iter().flat_map(|folder| rig::files(folder)) {
        assert!(!contains_secret(&std::fs::read(&file).unwrap()), "{}", file.display());
    }
    println!("{} executions, {kills} kills, {} step runs", paths.len(), seen.len());
}
