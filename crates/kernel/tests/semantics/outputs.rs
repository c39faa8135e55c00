//! Results of ended executions.

use crate::drive::*;
use serde_json::{Value, json};
use windlass_kernel::net::{Finish, Join, Policy, Step};
use windlass_kernel::*;

fn check(policy: Policy, steps: Vec<Step>, done: &[(&str, Value)], expected: Value) {
    let mut drive = Drive::started(policy, steps);
    for (step, output) in done {
        drive.done_with(step, output.clone());
    }
    assert!(drive.state.phase().is_ended(), "it ended");
    assert_eq!(outputs(&drive.net, &drive.journal), expected);
    let ended = result(&drive).unwrap();
    assert_eq!((ended.outcome, &*ended.output), (Outcome::Completed, &expected));
}

fn result(drive: &Drive) -> Option<ChildResult> {
    let mut outputs = Outputs::default();
    drive.journal.iter().for_each(|record| outputs.note(record));
    outputs.child_result(&drive.net, &drive.journal.last()?.event)
}

#[test]
fn the_result_of_the_only_leaf_is_returned() {
    let steps = || vec![task("a", &[1]), task("b", &[])];
    let done = |output: Value| [("a", json!({ "n": 1 })), ("b", output)];
    check(Policy::default(), steps(), &done(json!({ "n": 2 })), json!({ "n": 2 }));
    check(Policy::default(), steps(), &done(json!([1])), json!({ "b": [1] }));
}

#[test]
fn results_of_several_leaves_are_returned_by_name() {
    let policy = Policy { join: Join::All, ..Policy::default() };
    let steps = vec![task("a", &[1, 2]), task("b", &[]), task("c", &[])];
    let done = [("a", json!(1)), ("b", json!({ "n": 2 })), ("c", json!(3))];
    check(policy, steps, &done, json!({ "b": { "n": 2 }, "c": 3 }));
}

#[test]
fn a_step_without_a_matching_arc_is_a_leaf() {
    let mut first = task("a", &[]);
    first.router.arcs = vec![arc(1, "{{ event.payload.more }}")];
    let done = [("a", json!({ "more": false }))];
    check(Policy::default(), vec![first, task("b", &[])], &done, json!({ "more": false }));
}

#[test]
fn the_final_step_speaks_for_the_execution() {
    let policy = Policy { finish: Finish::Step(StepId(1)), ..Policy::default() };
    let done = [("a", json!({ "n": 1 })), ("end", json!({ "sum": 1 }))];
    check(policy, vec![task("a", &[]), task("end", &[])], &done, json!({ "sum": 1 }));
}

#[test]
fn the_newest_firing_of_a_leaf_counts() {
    let mut again = task("a", &[]);
    again.router.arcs = vec![arc(0, "{{ event.payload.n < 3 }}")];
    let done = [1, 2, 3].map(|n| ("a", json!({ "n": n })));
    check(Policy::default(), vec![again], &done, json!({ "n": 3 }));
}

#[test]
fn one_that_has_not_ended_has_no_result() {
    let drive = Drive::started(Policy::default(), vec![task("a", &[])]);
    assert_eq!(result(&drive), None);
}
