//! A retry that is killed again and again: what it took over never runs again, and what it had to run runs to its end.

use crate::random::Random;
use crate::rig::{Place, playbook};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Moments of the kills; another seed is another story.
const SEED: u64 = 20_261_116;
const KILLS: usize = 12;
const ITEMS: usize = 60;

/// Every tenth item fails until the file `go` is there, and so does the third step of the child.
const PARENT: &str = "executor: {spec: {failure: fail_on_any}}
workflow:
- {step: start, tool: {kind: noop}, next: {spec: {mode: inclusive}, arcs: [{step: each}, {step: call}]}}
- step: each
  loop: {in: '{{ range(60) | list }}', iterator: n, spec: {mode: parallel, max_in_flight: 4}}
  tool: {kind: shell, command: 'echo item{{ iter.n }} >> output; sleep 0.05; test $(({{ iter.n }} % 10)) != 9 || test -e go'}
- {step: call, tool: {kind: playbook, path: child}}
";

const CHILD: &str = "workflow:
- {step: one, tool: {kind: shell, command: 'echo one >> output'}, next: two}
- {step: two, tool: {kind: shell, command: 'echo two >> output'}, next: three}
- {step: three, tool: {kind: shell, command: 'echo three >> output; sleep 0.1; test -e go'}, next: {arcs: [{step: four, when: \"{{ event.name == 'step.done' }}\"}]}}
- {step: four, tool: {kind: shell, command: 'echo four >> output; sleep 0.1'}}
";

fn executions(place: &Place) -> Vec<Value> {
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    list["executions"].as_array().expect("a list").clone()
}

/// The retry of `old`, if it was made.
fn find_retry(place: &Place, old: &str) -> Option<Value> {
    executions(place)
        .into_iter()
        .find(|row| row["metadata"]["parentExecutionId"] == *old && row["workflowName"] == "tested")
}

fn counts(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    lines.iter().for_each(|line| *counts.entry(line.as_str()).or_default() += 1);
    counts
}

#[test]
fn a_retry_that_is_killed_repeats_nothing_that_it_took_over_and_loses_nothing() {
    let place = Place::playing(PARENT);
    place.write("child.yaml", &playbook("child", CHILD));
    let old = place.run(&[], 1)["executionId"].as_str().expect("an id").to_owned();
    let before = place.lines("output").len();
    assert_eq!(before, ITEMS + 3);
    place.write("go", "");
    let mut random = Random(SEED);
    for _ in 0..KILLS {
        let running = match find_retry(&place, &old) {
            None => place.start(&["executions", "retry", &old]),
            Some(retry) if retry["status"] == "completed" => break,
            Some(_) => place.start(&["run", "--resume"]),
        };
        std::thread::sleep(Duration::from_millis(100) + random.moment(Duration::from_millis(700)));
        running.signal(Signal::KILL);
        running.end();
    }
    match find_retry(&place, &old) {
        None => drop(place.windlass(&["executions", "retry", &old]).expect(0)),
        Some(retry) if retry["status"] == "completed" => {}
        Some(_) => drop(place.windlass(&["run", "--resume"]).expect(0)),
    }
    let lines = place.lines("output").split_off(before);
    let again = counts(&lines);
    for item in 0..ITEMS {
        let runs = again.get(format!("item{item}").as_str()).copied().unwrap_or(0);
        match item % 10 {
            9 => assert!(runs >= 1, "item {item} failed and was lost: {lines:?}"),
            _ => assert_eq!(runs, 0, "item {item} had succeeded: {lines:?}"),
        }
    }
    for (step, least) in [("one", 0), ("two", 0), ("three", 1), ("four", 1)] {
        let runs = again.get(step).copied().unwrap_or(0);
        assert!(if least == 0 { runs == 0 } else { runs >= 1 }, "{step}: {lines:?}");
    }
    let retry = find_retry(&place, &old).expect("the retry");
    assert_eq!(retry["status"], "completed");
    let new = retry["executionId"].as_str().expect("an id").to_owned();
    let whole = place.windlass(&["executions", "get", &new, "--json"]).expect(0).json();
    let done = whole["nodeExecutions"].as_array().expect("entries").iter();
    assert!(done.clone().all(|entry| entry["status"] == "completed"), "{whole}");
    // Made once, with one child: a lost start of the child would make another.
    assert_eq!(executions(&place).len(), 4, "the old execution and its child, the retry and its child");
    place.windlass(&["admin", "check"]).expect(0);
}
