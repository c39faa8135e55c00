//! Public names of events.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../kernel/tests/semantics/drive.rs"]
#[expect(dead_code, reason = "the tests of the kernel use the rest")]
mod drive;

use drive::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_views::Timeline;

/// Returns the public names of the events since the record with number `from`.
fn since(drive: &Drive, from: usize) -> String {
    let mut timeline = Timeline::default();
    let entries = drive.journal.iter().map(|record| timeline.advance(&drive.net, record).unwrap());
    let entries: Vec<_> = entries.collect();
    let names = entries[from..].iter().flat_map(|entry| entry.public_events()).map(|public| public.name);
    names.collect::<Vec<_>>().join(" ")
}

fn each(steps: Vec<Step>) -> Drive {
    Drive::started(Policy { join: Join::Each, ..Policy::default() }, steps)
}

#[test]
fn a_step_is_reported_from_its_token_to_its_end() {
    let mut drive = each(vec![task("a", &[1]), task("b", &[])]);
    assert_eq!(since(&drive, 0), "execution.created execution.started token.admitted step.offered");
    let from = drive.journal.len();
    drive.done("a");
    assert_eq!(since(&drive, from), "step.done next.evaluated token.emitted token.admitted step.offered");
    let from = drive.journal.len();
    drive.fail("b", "X");
    let expected = "step.failed next.evaluated execution.draining execution.failed";
    assert_eq!(since(&drive, from), expected);
}

#[test]
fn a_loop_reports_its_iterations_and_its_end() {
    let mut step = task("a", &[]);
    let kind = LoopKind::Count { times: template(json!(2)) };
    step.repeat = Some(LoopSpec { kind, iterator: "i".into(), cap: 1, body: Body::Own, break_when: None });
    let mut drive = each(vec![step]);
    let from = drive.journal.len();
    drive.done("a[0]");
    assert_eq!(since(&drive, from), "loop.iteration.done step.offered");
    let from = drive.journal.len();
    drive.fail("a[1]", "X");
    assert!(since(&drive, from).starts_with("loop.iteration.failed loop.done step.failed"));
}

#[test]
fn hooks_and_children_have_names_of_their_own() {
    let (definition, inputs) = (template(json!("sub")), template(json!({})));
    let mut sub = step("sub", Work::Child { definition, inputs }, &[1]);
    let undo = |retry| Hook { work: Work::task(json!("undo")), retry, timeout_ms: None };
    sub.compensation = Some(undo(Retry::default()));
    let policy =
        Policy { join: Join::All, failure: FailureMode::FailFast, compensate: true, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![sub, task("bad", &[])]);
    assert!(since(&drive, 0).ends_with("child.started"));
    let run = drive.firing("sub");
    let RunState::Child { fence, child, .. } = drive.state.run(run).unwrap().state else {
        panic!("no child")
    };
    let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(json!(1)), failure: None };
    let from = drive.journal.len();
    drive.send(Input::ChildEnded { run, fence, child, result }).unwrap();
    assert!(since(&drive, from).starts_with("child.ended step.done next.evaluated"));
    let from = drive.journal.len();
    drive.fail("bad", "X");
    let expected = "step.failed execution.draining execution.compensating compensation.started step.offered";
    assert_eq!(since(&drive, from), expected, "the hook's own work is offered, not another child");
    let from = drive.journal.len();
    drive.done("sub");
    assert_eq!(since(&drive, from), "compensation.done execution.failed");
}

#[test]
fn pauses_patches_gates_and_drops_are_reported() {
    let mut gate = task("a", &[]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.open")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
    let mut drive = each(vec![gate]);
    assert!(since(&drive, 0).ends_with("token.denied execution.paused"));
    let from = drive.journal.len();
    drive.patch("open", json!(1)).unwrap();
    assert_eq!(since(&drive, from), "ctx.patched token.admitted execution.resumed step.offered");
    let from = drive.journal.len();
    drive.cancel(Cancel::default()).unwrap();
    assert_eq!(since(&drive, from), "execution.draining step.cancelled execution.cancelled");
}
