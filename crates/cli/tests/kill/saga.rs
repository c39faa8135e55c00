//! A saga that is killed: a hook whose result was recorded never runs again, and every hook comes to its end.

use crate::number;
use crate::random::Random;
use crate::rig::Place;
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;
use windlass_sim::saga::{SagaAction, judge};

/// Moments of the kills; `WINDLASS_KILL_SEED` replaces it.
const SEED: u64 = 20_261_117;
const ACTIONS: usize = 4;
/// A run takes about this long. A process that has ended before its moment does not count as killed.
const LIFE: Duration = Duration::from_millis(1_500);

/// Actions that succeed, of which one has no hook, and a last one that fails. Hooks append their keys to `undone`.
fn saga() -> String {
    let mut text = "schemaVersion: 1\nworkflowId: saga\nname: saga\nactions:\n".to_owned();
    for number in 1..=ACTIONS {
        let hook = match number {
            2 => String::new(),
            _ => ", compensation: {compensationOperation: 'thing:unmake', compensationInput: {}}".to_owned(),
        };
        let _ = writeln!(text, "- {{actionId: a{number}, order: {number}, operation: 'thing:make'{hook}}}");
    }
    let order = ACTIONS + 1;
    let _ = writeln!(
        text,
        "- {{actionId: bad, order: {order}, operation: 'thing:break', retryPolicy: {{maxAttempts: 1}}}}
adapters:
  operations:
    'thing:make': {{kind: shell, command: 'sleep 0.05'}}
    'thing:unmake': {{kind: shell, command: 'echo $WINDLASS_IDEMPOTENCY_KEY >> undone; sleep 0.1'}}
    'thing:break': {{kind: shell, command: 'exit 3'}}"
    );
    text
}

fn actions() -> Vec<SagaAction> {
    let named = (1..=ACTIONS).map(|number| (format!("a{number}"), number != 2));
    let all = named.chain([("bad".to_owned(), false)]);
    all.map(|(name, has_hook)| SagaAction { name, has_hook, side_effecting: true }).collect()
}

/// Hooks whose result is on disk, with the lines that they had written then.
#[derive(Default)]
struct Recorded(BTreeMap<String, usize>);

impl Recorded {
    /// Compares these executions with what was on disk before.
    fn note(&mut self, place: &Place, ids: &[String]) -> Vec<Value> {
        let lines = place.lines("undone");
        let get = |id: &String| place.windlass(&["executions", "get", id, "--json"]).expect(0).json();
        let found: Vec<Value> = ids.iter().map(get).collect();
        for execution in &found {
            let entries = execution["view"]["compensation"]["entries"].as_array().expect("entries");
            for entry in entries.iter().filter(|entry| entry["operation"].is_string()) {
                self.note_hook(entry, &lines);
            }
        }
        found
    }

    fn note_hook(&mut self, entry: &Value, lines: &[String]) {
        let Some(key) = entry["idempotencyKey"].as_str() else { return };
        let runs = lines.iter().filter(|line| *line == key).count();
        let attempts = entry["attempts"].as_u64().expect("a number");
        assert!(runs as u64 <= attempts, "{runs} runs in {attempts} attempts: {entry}");
        if matches!(entry["outcome"].as_str(), Some("Succeeded" | "Failed")) {
            let before = *self.0.entry(key.to_owned()).or_insert(runs);
            assert_eq!(runs, before, "the hook ran again after its result was recorded: {entry}");
        }
    }
}

/// Ids of the executions in the folder, the newest first.
fn list(place: &Place, limit: &str) -> Vec<String> {
    let list = place.windlass(&["executions", "list", "--limit", limit, "--json"]).expect(0).json();
    let rows = list["executions"].as_array().expect("a list").iter();
    rows.map(|row| row["executionId"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn act_13_a_saga_that_is_killed_runs_no_hook_again_whose_result_was_recorded() {
    check(3);
}

#[test]
#[ignore = "takes minutes: cargo test -p windlass-cli --test kill saga -- --ignored --nocapture"]
fn act_13_a_saga_that_is_killed_a_hundred_times_runs_no_hook_again_whose_result_was_recorded() {
    check(100);
}

/// One saga at a time is killed, sometimes twice, and carried on to its end.
fn check(kills: u64) {
    let mut random = Random(number("WINDLASS_KILL_SEED", SEED));
    let place = Place::new();
    place.write("saga.yaml", &saga());
    let mut recorded = Recorded::default();
    let mut killed = 0;
    while killed < kills {
        let mut args = vec!["run", "saga.yaml"];
        for _ in 0..2 {
            let running = place.start(&args);
            std::thread::sleep(random.moment(LIFE));
            running.signal(Signal::KILL);
            killed += u64::from(running.end().0.is_none());
            recorded.note(&place, &list(&place, "1"));
            args = vec!["run", "--resume"];
            if random.below(2) == 0 {
                break;
            }
        }
        place.windlass(&["run", "--resume"]);
    }
    let ended = recorded.note(&place, &list(&place, "1000"));
    let undone: u64 = ended.iter().map(|execution| judge_end(&place, execution)).sum();
    place.windlass(&["admin", "check"]).expect(0);
    println!("{killed} kills, {} sagas, {undone} hooks succeeded", ended.len());
}

/// Returns how many hooks of a saga succeeded.
fn judge_end(place: &Place, execution: &Value) -> u64 {
    assert_eq!(execution["status"], "failed", "{execution}");
    let id = execution["executionId"].as_str().expect("an id");
    let events = place.windlass(&["executions", "events", id, "--json"]).expect(0);
    let events: Vec<Value> =
        events.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let summary = &execution["view"]["compensation"];
    judge(&actions(), &events, summary).unwrap_or_else(|broken| panic!("{id}: {broken:?}"));
    summary["succeeded"].as_u64().expect("a number")
}
