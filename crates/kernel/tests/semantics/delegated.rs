//! A pipeline that waits for another execution holds no offer meanwhile, and resumes at its cursor.

use crate::drive::*;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;

fn policy() -> Policy {
    Policy { join: Join::Each, entry: Some(StepId(0)), ..Policy::default() }
}

fn value(value: Value) -> Arc<Value> {
    Arc::new(value)
}

fn child(n: u32) -> WorkResult {
    let cursor = Some(value(json!({ "at": "call", "n": n })));
    WorkResult::Child {
        definition: value(json!({ "path": "other" })),
        inputs: value(json!({ "n": n })),
        cursor,
    }
}

fn waiting(drive: &Drive, label: &str) -> (Fence, ExecutionId) {
    match drive.state.run(drive.firing(label)).unwrap().state {
        RunState::Child { fence, child, .. } => (fence, child),
        ref state => panic!("{label} is {state:?}"),
    }
}

fn ended(drive: &mut Drive, label: &str, outcome: Outcome, output: Value) -> Result<String, Rejected> {
    let (run, (fence, child)) = (drive.firing(label), waiting(drive, label));
    let failure = (outcome == Outcome::Failed).then(|| failure("BROKEN"));
    let result = ChildResult { outcome, output: value(output), failure };
    drive.send(Input::ChildEnded { run, fence, child, result })
}

fn cursor(drive: &Drive, label: &str) -> Value {
    (*drive.state.run(drive.firing(label)).unwrap().cursor.clone().expect("a cursor")).clone()
}

#[test]
fn the_offer_is_closed_and_made_again_with_the_result_of_the_child() {
    let mut drive = Drive::started(policy(), vec![task("a", &[1]), task("b", &[])]);
    let first = drive.fence("a");
    assert_eq!(drive.report("a", child(1)).unwrap(), "child of a #1");
    assert_eq!(ended(&mut drive, "a", Outcome::Completed, json!({ "n": 5 })).unwrap(), "offer a");
    let back = cursor(&drive, "a");
    assert_eq!(back["then"], json!({ "at": "call", "n": 1 }));
    assert_eq!(
        (&back["child"]["status"], &back["child"]["output"]),
        (&json!("completed"), &json!({ "n": 5 }))
    );
    assert!(drive.fence("a") > first);
    assert_eq!(drive.state.run(drive.firing("a")).unwrap().attempts, 0, "no attempt is used up");
    assert_eq!(drive.done("a"), "offer b");
    let has = |wanted: fn(&Event) -> bool| drive.journal.iter().any(|record| wanted(&record.event));
    assert!(has(|event| matches!(event, Event::ChildStarted { .. })));
    assert!(has(|event| matches!(event, Event::Returned { .. })));
}

#[test]
fn every_call_starts_an_execution_of_its_own() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    drive.report("a", child(1)).unwrap();
    let (_, one) = waiting(&drive, "a");
    ended(&mut drive, "a", Outcome::Completed, json!({})).unwrap();
    drive.report("a", child(2)).unwrap();
    let (_, two) = waiting(&drive, "a");
    assert_ne!(one, two);
}

/// The rules of the pipeline, not the kernel, decide what the status means.
#[test]
fn a_pipeline_receives_the_status_of_a_child_that_failed_or_was_cancelled() {
    for (outcome, status) in
        [(Outcome::Failed, "failed"), (Outcome::Cancelled, "cancelled"), (Outcome::Partial, "partial")]
    {
        let mut drive = Drive::started(policy(), vec![task("a", &[])]);
        drive.report("a", child(1)).unwrap();
        assert_eq!(ended(&mut drive, "a", outcome, json!(null)).unwrap(), "offer a");
        let back = cursor(&drive, "a");
        assert_eq!(back["child"]["status"], status);
        assert_eq!(back["child"]["failure"]["code"] == "BROKEN", outcome == Outcome::Failed, "{back}");
    }
}

/// Invariants R15 and R16.
#[test]
fn repeated_reports_and_mail_change_nothing() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let report = |result| {
        Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        }))
    };
    drive.send(report(child(1))).unwrap();
    assert_eq!(drive.send(report(child(1))), Ok(String::new()));
    assert_eq!(drive.send(report(child(2))), Err(Rejected::OtherAnswer { given: fence }));
    let (of, id) = waiting(&drive, "a");
    let result = ChildResult { outcome: Outcome::Completed, output: value(json!(1)), failure: None };
    let mail = Input::ChildEnded { run, fence: of, child: id, result };
    assert_eq!(drive.send(mail.clone()).unwrap(), "offer a");
    assert_eq!(drive.send(mail), Ok(String::new()));
}

#[test]
fn a_worker_lost_after_the_return_does_not_start_it_again() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    drive.report("a", child(1)).unwrap();
    ended(&mut drive, "a", Outcome::Completed, json!(7)).unwrap();
    assert_eq!(drive.lose("a", true).unwrap(), "offer a");
    assert_eq!(cursor(&drive, "a")["child"]["output"], 7);
}

#[test]
fn cancel_reaches_the_child_and_its_end_is_only_recorded() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    drive.report("a", child(1)).unwrap();
    assert_eq!(drive.cancel(Cancel::default()).unwrap(), "stop 0+1; clear 1+0; cancelled");
}

#[test]
fn writes_of_a_pipeline_are_applied_before_it_waits_and_can_open_a_gate() {
    let mut fork = noop("fork", &[1, 2]);
    fork.router.mode = RouterMode::Inclusive;
    let mut gated = task("b", &[]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.ok")), allow: true }];
    gated.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
    let mut drive = Drive::started(policy(), vec![fork, task("a", &[]), gated]);
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let patch = Patch::from([("ok".to_owned(), value(json!(true)))]);
    let report = Report { run, fence, result: child(1), patch, times: None, metadata: None, cursor: None };
    assert_eq!(drive.send(Input::Report(Box::new(report))).unwrap(), "child of a #1; admit 1; offer b");
}

#[test]
fn nesting_is_limited() {
    let limits = Limits { depth: 0, ..Limits::default() };
    let mut drive = Drive::started(Policy { limits, ..policy() }, vec![task("a", &[])]);
    assert_eq!(drive.report("a", child(1)).unwrap(), "a failed (LIMIT_EXCEEDED); failed");
}

#[test]
fn a_step_timeout_ends_the_wait() {
    let mut step = task("a", &[]);
    step.timeout_ms = Some(100);
    let mut drive = Drive::started(policy(), vec![step]);
    drive.report("a", child(1)).unwrap();
    let summary = drive.ring().unwrap();
    assert!(summary.contains("stop 0+1") && summary.ends_with("failed"), "{summary}");
}

fn pauses(drive: &mut Drive, label: &str, paused: bool) -> Result<String, Rejected> {
    let (run, (fence, child)) = (drive.firing(label), waiting(drive, label));
    drive.send(Input::ChildPaused { run, fence, child, paused })
}

/// The deadline of a parent does not run while only a person can continue its child.
#[test]
fn a_parent_is_paused_while_only_people_can_continue_its_child() {
    let timed = Policy { timeout_ms: Some(1_000), ..policy() };
    let mut drive = Drive::started(timed, vec![task("a", &[1]), task("b", &[])]);
    drive.report("a", child(1)).unwrap();
    assert_eq!(drive.state.phase(), Phase::Running);
    pauses(&mut drive, "a", true).unwrap();
    assert_eq!(drive.state.phase(), Phase::Paused);
    assert!(drive.state.timers().is_empty(), "{:?}", drive.state.timers());
    pauses(&mut drive, "a", true).unwrap();
    drive.now += 5_000;
    pauses(&mut drive, "a", false).unwrap();
    assert_eq!(drive.state.phase(), Phase::Running);
    assert_eq!(drive.state.timers().len(), 1);
    pauses(&mut drive, "a", true).unwrap();
    assert_eq!(ended(&mut drive, "a", Outcome::Completed, json!(1)).unwrap(), "resumed; offer a");
    assert_eq!(drive.state.phase(), Phase::Running);
}

#[test]
fn a_parent_runs_while_anything_else_of_it_moves() {
    let both = Policy { join: Join::All, entry: None, ..policy() };
    let mut drive = Drive::started(both, vec![task("a", &[]), task("b", &[])]);
    drive.report("a", child(1)).unwrap();
    pauses(&mut drive, "a", true).unwrap();
    assert_eq!(drive.state.phase(), Phase::Running);
    drive.report("b", child(2)).unwrap();
    assert_eq!(drive.state.phase(), Phase::Running);
    pauses(&mut drive, "b", true).unwrap();
    assert_eq!(drive.state.phase(), Phase::Paused);
}

/// Ready work cannot begin: the paused child fills the only place.
#[test]
fn a_parent_is_paused_when_a_paused_child_fills_the_limit_on_parallel_work() {
    let capped = Policy { join: Join::All, max_parallel: Some(1), entry: None, ..policy() };
    let mut drive = Drive::started(capped, vec![task("a", &[]), task("b", &[])]);
    drive.report("a", child(1)).unwrap();
    pauses(&mut drive, "a", true).unwrap();
    assert_eq!(drive.state.phase(), Phase::Paused);
    pauses(&mut drive, "a", false).unwrap();
    assert_eq!(drive.state.phase(), Phase::Running);
}

#[test]
fn news_of_an_earlier_child_changes_nothing() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    drive.report("a", child(1)).unwrap();
    let (run, (fence, id)) = (drive.firing("a"), waiting(&drive, "a"));
    ended(&mut drive, "a", Outcome::Completed, json!(1)).unwrap();
    drive.report("a", child(2)).unwrap();
    assert_eq!(drive.send(Input::ChildPaused { run, fence, child: id, paused: true }), Ok(String::new()));
    assert_eq!(drive.state.phase(), Phase::Running);
}
