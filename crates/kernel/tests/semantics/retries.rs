//! Retries: what a new execution takes over from an ended one, and what it runs again (R12).

use crate::drive::*;
use serde_json::json;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::{RefusedStep, RetryPoint, plan_retry};

fn each() -> Policy {
    Policy { join: Join::Each, ..Policy::default() }
}

fn any_live(failure: FailureMode) -> Policy {
    Policy { join: Join::AnyLive, failure, ..Policy::default() }
}

fn repeated(step: Step, body: Body, cap: u32, count: u32) -> Step {
    let kind = LoopKind::Count { times: template(json!(count)) };
    let repeat = Some(LoopSpec { kind, iterator: "item".into(), cap, body, break_when: None });
    Step { repeat, collect: true, ..step }
}

fn inside(region: u32, step: Step) -> Step {
    Step { region: Some(StepId(region)), ..step }
}

fn runs(drive: &Drive) -> Vec<String> {
    let plan = plan_retry(&drive.net, &drive.journal, &drive.net, None).unwrap();
    let name = |step: StepId| drive.net.step(step).name.clone();
    plan.runs
        .iter()
        .map(|(run, reason, _)| format!("{}{:?} {reason:?}", name(run.step), run.path.0))
        .collect()
}

fn output_of(drive: &Drive, run: RunId) -> serde_json::Value {
    let found = drive.journal.iter().find_map(|record| match &record.event {
        Event::Done { run: of, output, .. } if *of == run => Some((**output).clone()),
        _ => None,
    });
    found.expect("it is done")
}

#[test]
fn a_sequential_loop_runs_only_its_failed_iterations_again_and_one_at_a_time() {
    let looped = repeated(task("a", &[1]), Body::Own, 1, 4);
    let mut drive = Drive::started(each(), vec![looped, task("b", &[])]);
    let of = drive.firing("a");
    drive.done_with("a[0]", json!(0));
    drive.fail("a[1]", "X");
    drive.done_with("a[2]", json!(2));
    drive.fail("a[3]", "X");
    drive.cancel(Cancel { force: true, ..Cancel::default() }).ok();
    let (mut again, summary) = drive.retry(None).unwrap();
    assert_eq!(summary, "offer a[1]", "the second failed iteration waits for the first");
    assert_eq!(again.done_with("a[1]", json!(1)), "offer a[3]");
    assert_eq!(again.done_with("a[3]", json!(3)), "offer b");
    assert_eq!(output_of(&again, of)["results"], json!([0, 1, 2, 3]));
    assert_eq!(output_of(&again, of)["iterations"], json!(4));
    assert_eq!(again.done("b"), "completed");
}

#[test]
fn a_retry_of_a_retry_runs_what_failed_again() {
    let looped = repeated(task("a", &[]), Body::Own, 2, 5);
    let mut drive = Drive::started(each(), vec![looped]);
    for (index, ok) in [false, true, false, true, false].into_iter().enumerate() {
        let label = format!("a[{index}]");
        if ok {
            drive.done(&label)
        } else {
            drive.fail(&label, "X")
        };
    }
    assert_eq!(drive.kept(), ["a[1]", "a[3]"]);
    assert_eq!(runs(&drive), ["a[0] Failed", "a[2] Failed", "a[4] Failed"]);
    let (mut second, summary) = drive.retry(None).unwrap();
    assert_eq!(summary, "offer a[0]; offer a[2]");
    second.fail("a[0]", "X");
    second.done("a[2]");
    second.done("a[4]");
    assert_eq!(second.kept(), ["a[1]", "a[3]", "a[2]", "a[4]"]);
    let (mut third, summary) = second.retry(None).unwrap();
    assert_eq!(summary, "offer a[0]");
    assert_eq!(third.done("a[0]"), "completed");
}

#[test]
fn a_failed_iteration_of_a_body_continues_at_the_step_that_failed() {
    for mode in [FailureMode::FailFast, FailureMode::Continue] {
        let each_item = repeated(noop("l", &[1, 3]), Body::Region, 1, 2);
        let steps = vec![each_item, inside(0, task("x", &[2])), inside(0, task("y", &[])), task("end", &[])];
        let mut drive = Drive::started(any_live(mode), steps);
        drive.done("x[0]");
        drive.fail("y[0]", "X");
        if mode == FailureMode::Continue {
            drive.done("x[1]");
            drive.done("y[1]");
        }
        let (mut again, summary) = drive.retry(None).unwrap();
        assert_eq!(summary, "offer y[0]", "x[0] is not run again");
        let after = again.done("y[0]");
        if mode == FailureMode::FailFast {
            assert_eq!(after, "offer x[1]");
            again.done("x[1]");
            assert_eq!(again.done("y[1]"), "offer end");
        } else {
            assert_eq!(after, "offer end");
        }
        assert_eq!(again.done("end"), "completed");
    }
}

#[test]
fn nested_loops_keep_what_succeeded_at_every_level() {
    let outer = repeated(noop("l", &[1]), Body::Region, 1, 2);
    let inner = inside(0, repeated(noop("m", &[2]), Body::Region, 1, 3));
    let steps = vec![outer, inner, inside(1, task("x", &[]))];
    let mut drive = Drive::started(any_live(FailureMode::Continue), steps);
    for (label, ok) in [
        ("x[0,0]", true),
        ("x[0,1]", false),
        ("x[0,2]", true),
        ("x[1,0]", true),
        ("x[1,1]", true),
        ("x[1,2]", false),
    ] {
        if ok {
            drive.done(label)
        } else {
            drive.fail(label, "X")
        };
    }
    assert_eq!(runs(&drive), ["x[0, 1] Failed", "x[1, 2] Failed"]);
    let (mut again, summary) = drive.retry(None).unwrap();
    assert_eq!(summary, "offer x[0,1]", "the loops stay sequential");
    assert_eq!(again.done("x[0,1]"), "offer x[1,2]");
    assert_eq!(again.done("x[1,2]"), "completed");
}

#[test]
fn branches_that_completed_after_the_failure_are_kept() {
    let mut first = task("a", &[1, 2]);
    first.router.mode = RouterMode::Inclusive;
    let mut drive = Drive::started(each(), vec![first, task("b", &[]), task("c", &[3]), task("d", &[])]);
    drive.done("a");
    drive.fail("b", "X");
    drive.done("c");
    drive.done("d");
    let (mut again, summary) = drive.retry(None).unwrap();
    assert_eq!(summary, "offer b");
    assert_eq!(again.done("b"), "completed");
    // The lineage of firings is kept, so that a retry from `c` runs `d` again and nothing else.
    let run = drive.journal.iter().find_map(|record| match record.event {
        Event::Fired { run, step: StepId(2), .. } => Some(run),
        _ => None,
    });
    let (mut third, summary) = again.retry(run.map(RetryPoint::Firing)).unwrap();
    assert_eq!((summary, third.done("c")), ("offer c".into(), "offer d".into()));
}

#[test]
fn a_failed_child_is_continued_by_a_retry_of_it() {
    let child = Work::Child { definition: template(json!("sub")), inputs: template(json!({})) };
    let mut drive =
        Drive::started(any_live(FailureMode::FailFast), vec![task("a", &[1]), step("c", child, &[])]);
    drive.done("a");
    let run = drive.firing("c");
    let RunState::Child { fence, child, .. } = drive.state.run(run).unwrap().state.clone() else { panic!() };
    let result = ChildResult { outcome: Outcome::Failed, output: Default::default(), failure: None };
    drive.send(Input::ChildEnded { run, fence, child, result }).unwrap();
    let (again, summary) = drive.retry(None).unwrap();
    assert_eq!(summary, "child of c #1");
    let continues = again.journal.iter().rev().find_map(|record| match &record.event {
        Event::ChildStarted { continues, .. } => *continues,
        _ => None,
    });
    assert_eq!(continues, Some(child));
}

#[test]
fn a_changed_definition_takes_over_what_it_still_has() {
    let spec =
        |steps: Vec<Step>| Net::new(NetSpec { steps, policy: any_live(FailureMode::FailFast) }).unwrap();
    let mut drive = Drive::started(
        any_live(FailureMode::FailFast),
        vec![task("a", &[1]), task("b", &[2]), task("c", &[])],
    );
    drive.done("a");
    drive.done("b");
    drive.fail("c", "X");
    // Another step after `b`, and `c` after that.
    let new = spec(vec![task("a", &[1]), task("b", &[2]), task("n", &[3]), task("c", &[])]);
    let (mut again, summary) = drive.retry_under(new, None).unwrap();
    assert_eq!(
        (summary, again.done("n"), again.done("c")),
        ("offer n".into(), "offer c".into(), "completed".into())
    );
    // A step before `b` makes `b` run again.
    let new = spec(vec![task("a", &[1]), task("n", &[2]), task("b", &[3]), task("c", &[])]);
    let (mut again, summary) = drive.retry_under(new, None).unwrap();
    assert_eq!((summary, again.done("n")), ("offer n".into(), "offer b".into()));
    // Without `b`, its work would be lost.
    let new = spec(vec![task("a", &[1]), task("other", &[2]), task("c", &[])]);
    let plan = plan_retry(&drive.net, &drive.journal, &new, None).unwrap();
    assert_eq!(plan.refused, [(StepId(1), RefusedStep::Removed)]);
    // Unless the caller asks for everything from a step before it.
    let plan = plan_retry(&drive.net, &drive.journal, &new, Some(RetryPoint::Step(StepId(0)))).unwrap();
    assert_eq!((plan.refused.len(), plan.imports.len()), (0, 0));
}

#[test]
fn an_approval_is_asked_for_again_if_what_it_approved_has_changed() {
    let all = || Policy { join: Join::All, failure: FailureMode::FailFast, ..Policy::default() };
    let pay = |amount: u32| step("pay", Work::task(json!({ "amount": amount })), &[2]);
    let ask = || {
        let approves = Some(StepId(1));
        Step { approves, ..step("ask", Work::Approval { deadline_ms: None, asks: None }, &[1]) }
    };
    let steps = |amount: u32| vec![ask(), pay(amount), task("ship", &[])];
    let net = |amount: u32| Net::new(NetSpec { steps: steps(amount), policy: all() }).unwrap();
    let approved = || {
        let mut drive = Drive::started(all(), steps(1));
        let (run, fence) = (drive.firing("ask"), drive.fence("ask"));
        let note = Box::new(ManualNote { actor: "ann".into(), ..ManualNote::default() });
        drive.send(Input::Complete { run, fence, note, seen: None }).unwrap();
        drive
    };
    let kept = |drive: &Drive, amount: u32, from: Option<RetryPoint>| {
        let plan = plan_retry(&drive.net, &drive.journal, &net(amount), from).unwrap();
        plan.imports.iter().map(|kept| drive.net.step(kept.step).name.clone()).collect::<Vec<_>>()
    };
    let mut unpaid = approved();
    unpaid.fail("pay", "VALIDATION_ERROR");
    assert_eq!(kept(&unpaid, 1, None), ["ask"], "the approval is for this");
    assert_eq!(kept(&unpaid, 2, None), Vec::<String>::new());
    let mut paid = approved();
    paid.done("pay");
    paid.fail("ship", "VALIDATION_ERROR");
    assert_eq!(kept(&paid, 2, None), ["ask", "pay"], "what was paid is not paid again");
    let from = Some(RetryPoint::Step(StepId(1)));
    assert_eq!(kept(&paid, 1, from), ["ask"]);
    assert_eq!(kept(&paid, 2, from), Vec::<String>::new());
}

#[test]
fn a_completed_execution_is_run_again_from_a_step() {
    let mut drive = Drive::started(any_live(FailureMode::FailFast), vec![task("a", &[1]), task("b", &[])]);
    drive.done("a");
    drive.done("b");
    let (mut again, summary) = drive.retry(Some(RetryPoint::Step(StepId(1)))).unwrap();
    assert_eq!((summary, again.done("b")), ("offer b".into(), "completed".into()));
}
