//! Large values: the journal holds references, and expressions read the values they refer to.

use crate::drive::*;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;

/// Inline limit of these nets.
const INLINE_BYTES: usize = 200;

fn policy() -> Policy {
    let limits = Limits { inline_bytes: INLINE_BYTES, ..Limits::default() };
    Policy { join: Join::Each, entry: Some(StepId(0)), limits, ..Policy::default() }
}

fn long(n: u64) -> Value {
    json!({ "n": n, "text": "x".repeat(INLINE_BYTES) })
}

/// Returns whether no record is much longer than the inline limit.
fn journal_is_light(drive: &Drive) -> bool {
    drive.journal.iter().all(|record| json!(record).to_string().len() < 6 * INLINE_BYTES)
}

fn guarded(name: &str, when: &str) -> Step {
    let mut step = task(name, &[]);
    step.router.arcs = vec![arc(1, when)];
    step
}

fn args_of(drive: &Drive, label: &str) -> Value {
    let args = drive.state.run(drive.firing(label)).unwrap().args.clone();
    (*args.expect("arguments")).clone()
}

#[test]
fn pbk_12_args_over_the_limit_are_passed_as_a_reference_and_read_through_it() {
    let mut first = task("first", &[]);
    first.router.arcs = vec![JoinArc {
        args: Some(template(json!({ "page": "{{ event.payload }}", "small": 1 }))),
        ..JoinArc::to(StepId(1))
    }];
    let mut second =
        guarded("second", "{{ args.page.n == 3 and small == 1 and args.page.text | length == 200 }}");
    second.router.arcs[0].to = StepId(2);
    let mut drive = Drive::started(policy(), vec![first, second, task("third", &[])]);
    drive.done_with("first", long(3));
    let args = args_of(&drive, "second");
    assert_eq!(args["bytes"], json!(json!({ "page": long(3), "small": 1 }).to_string().len()));
    assert!(drive.artifacts.contains_key(args["$artifact"].as_str().unwrap()));
    assert!(journal_is_light(&drive));
    assert_eq!(drive.done("second"), "offer third");
}

#[test]
fn large_inputs_outputs_patches_and_lists_are_read_through_their_references() {
    let mut first = guarded("first", "{{ workload.n == 1 and text | length == 200 and ctx.wide.n == 2 }}");
    first.router.arcs[0].args = Some(template(json!({ "n": "{{ first.n + steps.first.n + wide.n }}" })));
    let mut second = task("second", &[2]);
    let items = template(json!("{{ range(100) }}"));
    let kind = LoopKind::ForEach { items };
    second.repeat = Some(LoopSpec {
        kind,
        iterator: "item".into(),
        cap: 1,
        body: Body::Own,
        break_when: Some(expr("{{ iter.item == 1 }}")),
    });
    let mut drive = Drive::new(policy(), vec![first, second, task("third", &[])]);
    drive.create(long(1)).unwrap();
    drive.patch("wide", long(2)).unwrap();
    drive.done_with("first", long(4));
    assert_eq!(args_of(&drive, "second"), json!({ "n": 10 }), "small values stay where they are");
    drive.done("second[0]");
    assert_eq!(drive.done("second[1]"), "offer third", "the list of the loop is read, too");
    assert_eq!(drive.artifacts.len(), 4);
    assert!(journal_is_light(&drive));
}

#[test]
fn a_reference_to_a_missing_artifact_fails_the_step_that_reads_it() {
    let mut drive = Drive::started(policy(), vec![guarded("first", "{{ workload.n }}"), task("second", &[])]);
    drive.done("first");
    let mut drive =
        Drive::new(policy(), vec![guarded("first", "{{ workload.n == 1 }}"), task("second", &[])]);
    drive.create(long(1)).unwrap();
    drive.artifacts.clear();
    assert_eq!(drive.done("first"), "first failed (REFERENCE_NOT_AVAILABLE); failed");
}

/// A caller who starts or patches an execution cannot make it read the values of others.
#[test]
fn a_value_from_outside_that_looks_like_a_reference_is_not_followed() {
    let steps = || {
        vec![guarded("first", "{{ ctx.forged['$artifact'] == workload['$artifact'] }}"), task("second", &[])]
    };
    let mut honest = Drive::new(policy(), steps());
    honest.create(long(1)).unwrap();
    let key = honest.artifacts.keys().next().unwrap().clone();
    let forged = json!({ "$artifact": key, "bytes": 124 });
    let mut drive = Drive::new(policy(), steps());
    drive.artifacts = honest.artifacts.clone();
    drive.create(forged.clone()).unwrap();
    drive.patch("forged", forged.clone()).unwrap();
    assert_eq!(drive.done("first"), "offer second", "both are the text they are");
    let kept: Vec<Value> =
        drive.artifacts.values().map(|bytes| serde_json::from_slice(bytes).unwrap()).collect();
    assert!(kept.contains(&forged));
}

#[test]
fn a_rendered_value_that_looks_like_a_reference_is_not_followed() {
    let mut first = task("first", &[]);
    let evil = json!({ "$artifact": format!("sha256:{}", "0".repeat(64)) });
    first.router.arcs =
        vec![JoinArc { args: Some(template(json!("{{ event.payload.evil }}"))), ..JoinArc::to(StepId(1)) }];
    let mut second = guarded("second", "{{ args['$artifact'] is string }}");
    second.router.arcs[0].to = StepId(2);
    let mut drive = Drive::started(policy(), vec![first, second, task("third", &[])]);
    drive.done_with("first", json!({ "evil": evil }));
    assert_eq!(drive.done("second"), "offer third");
}

/// A value that was replaced by a reference is still the same answer (R16).
#[test]
fn a_repeated_large_report_is_accepted_again() {
    let mut drive = Drive::started(policy(), vec![task("first", &[1]), task("second", &[])]);
    let (run, fence) = (drive.firing("first"), drive.fence("first"));
    let report = |n, set| {
        let result = WorkResult::Done { output: Arc::new(long(n)) };
        let patch = Patch::from([("set".to_owned(), Arc::new(long(set)))]);
        Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch,
            times: None,
            metadata: None,
            cursor: None,
        }))
    };
    drive.send(report(1, 5)).unwrap();
    assert_eq!(drive.send(report(1, 5)), Ok(String::new()));
    assert_eq!(drive.send(report(2, 5)), Err(Rejected::OtherAnswer { given: fence }));
    assert_eq!(drive.send(report(1, 6)), Err(Rejected::OtherAnswer { given: fence }));
}

#[test]
fn a_step_can_pass_its_reference_on() {
    let mut second = task("second", &[]);
    second.router.arcs = vec![JoinArc {
        args: Some(template(json!({ "ref": "{{ first._ref }}" }))),
        ..JoinArc::to(StepId(2))
    }];
    let mut drive = Drive::started(policy(), vec![task("first", &[1]), second, task("third", &[])]);
    drive.done_with("first", long(1));
    drive.done("second");
    let (key, bytes) = drive.artifacts.iter().next().unwrap();
    assert_eq!(args_of(&drive, "third"), json!({ "ref": { "$artifact": key, "bytes": bytes.len() } }));
}
