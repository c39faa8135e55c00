//! Actions: order, fail-fast, retries, manual completion, compensation (ACT rows that are the kernel's alone).

use crate::drive::*;
use serde_json::json;
use windlass_kernel::net::*;
use windlass_kernel::*;

fn policy() -> Policy {
    Policy {
        join: Join::All,
        failure: FailureMode::FailFast,
        recovery: Recovery::FailAttempt,
        compensate: true,
        ..Policy::default()
    }
}

fn retry(attempts_max: u32) -> Retry {
    Retry {
        attempts_max,
        initial_ms: 1_000,
        max_ms: 30_000,
        unknown: UnknownErrors::Retry,
        ..Retry::default()
    }
}

fn action(name: &str, order: u32, to: &[u32]) -> Step {
    let mut step = task(name, to);
    step.order = order;
    step.retry = retry(3);
    step.side_effecting = true;
    step
}

fn undoable(name: &str, order: u32, to: &[u32]) -> Step {
    let mut step = action(name, order, to);
    let hook = Retry { max_ms: 10_000, ..retry(2) };
    step.compensation =
        Some(Hook { work: Work::task(json!({ "undo": name })), retry: hook, timeout_ms: None });
    step
}

fn manual(name: &str, to: &[u32]) -> Step {
    let mut step = action(name, 1, to);
    step.completion = Completion::Manual { deadline_ms: None };
    step
}

fn note(outcome: ManualOutcome) -> Box<ManualNote> {
    Box::new(ManualNote {
        outcome,
        actor: "ada".into(),
        notes: Some("seen".into()),
        evidence: vec!["e1".into()],
        ..ManualNote::default()
    })
}

#[test]
fn act_02_without_edges_actions_run_in_order() {
    let mut drive =
        Drive::new(policy(), vec![action("a", 1, &[1]), action("b", 2, &[2]), action("c", 3, &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "offer a");
    assert_eq!(
        (drive.done("a"), drive.done("b"), drive.done("c")),
        ("offer b".into(), "offer c".into(), "completed".into())
    );
}

#[test]
fn act_03_a_join_waits_for_all_predecessors() {
    let steps =
        vec![action("a", 1, &[1, 2]), action("b", 2, &[3]), action("c", 3, &[3]), action("d", 4, &[])];
    let mut drive = Drive::started(policy(), steps);
    assert_eq!(drive.done("a"), "offer b; offer c");
    assert_eq!(drive.done("c"), "");
    assert_eq!(drive.done("b"), "offer d");
}

#[test]
fn act_04_act_17_ready_actions_are_dispatched_by_order_then_id() {
    let steps =
        vec![action("start", 1, &[1, 2, 3]), action("x", 9, &[]), action("y", 2, &[]), action("z", 2, &[])];
    let mut drive = Drive::started(policy(), steps);
    assert_eq!(drive.done("start"), "offer y; offer z; offer x");
}

#[test]
fn act_05_fail_fast_lets_running_actions_finish_and_begins_no_others() {
    let steps = vec![
        action("start", 1, &[1, 2, 3]),
        action("bad", 2, &[]),
        action("slow", 3, &[4]),
        action("again", 4, &[]),
        action("after", 5, &[]),
    ];
    let mut drive = Drive::started(policy(), steps);
    drive.done("start");
    assert_eq!(drive.fail("again", "SERVICE_UNAVAILABLE"), "retry again at 1000");
    assert_eq!(drive.fail("bad", "VALIDATION_ERROR"), "bad failed (VALIDATION_ERROR); clear 1+0");
    assert_eq!(drive.state.phase(), Phase::Draining);
    assert_eq!(drive.done("slow"), "failed", "recorded, not routed");
}

#[test]
fn act_05_a_failure_while_draining_is_not_retried() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[]), action("b", 2, &[])]);
    drive.fail("a", "VALIDATION_ERROR");
    assert_eq!(drive.fail("b", "SERVICE_UNAVAILABLE"), "b failed (SERVICE_UNAVAILABLE); failed");
}

#[test]
fn act_06_a_terminal_action_does_not_change() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[1]), action("b", 2, &[])]);
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
    let done = WorkResult::Done { output: std::sync::Arc::new(json!({})) };
    drive.send(report(done.clone())).unwrap();
    let before = drive.state.clone();
    assert_eq!(drive.send(report(done)), Ok(String::new()), "the same answer is accepted again");
    assert_eq!(
        drive.send(report(WorkResult::Failed(failure("X")))),
        Err(Rejected::OtherAnswer { given: fence })
    );
    assert_eq!(drive.state, before);
}

#[test]
fn act_08_unknown_errors_are_retried_until_the_attempts_are_used_up() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[])]);
    assert_eq!(drive.fail("a", "WHO_KNOWS"), "retry a at 1000");
    assert_eq!(drive.ring().unwrap(), "offer a #2");
    assert_eq!(drive.fail("a", "WHO_KNOWS"), "retry a at 3000");
    assert_eq!(drive.ring().unwrap(), "offer a #3");
    assert_eq!(drive.fail("a", "WHO_KNOWS"), "a failed (WHO_KNOWS); failed");
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[])]);
    assert_eq!(drive.fail("a", "PERMISSION_DENIED"), "a failed (PERMISSION_DENIED); failed");
}

#[test]
fn act_09_a_timed_out_attempt_follows_the_retry_policy_and_its_late_result_is_ignored() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[])]);
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    drive.now = 300_000;
    let summary = drive.send(Input::TimerDue(Timer::Attempt { run, fence })).unwrap();
    assert_eq!(summary, "stop 1+0; retry a at 301000");
    let late = Input::Report(Box::new(Report {
        run,
        fence,
        result: WorkResult::Done { output: std::sync::Arc::new(json!(1)) },
        patch: Patch::new(),
        times: None,
        metadata: None,
        cursor: None,
    }));
    assert_eq!(drive.send(late), Err(Rejected::StaleFence { given: fence }));
    drive.ring().unwrap();
    let stale = drive.send(Input::TimerDue(Timer::Attempt { run, fence }));
    assert_eq!(stale, Err(Rejected::StaleFence { given: fence }), "the timer of an attempt that is over");
    assert_eq!(drive.done("a"), "completed");
}

#[test]
fn act_12_counted_and_refused_answers_are_recorded_and_end_nothing() {
    let mut drive = Drive::started(policy(), vec![manual("a", &[1]), action("b", 2, &[])]);
    drive.done("a");
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let refused = NoteEffect::Refused { constraint: "MakerChecker".into(), message: "no".into() };
    for effect in [NoteEffect::Counts, refused] {
        let note = ManualNote { effect, ..*note(ManualOutcome::Succeeded) };
        let before = drive.journal.len();
        assert_eq!(
            drive.send(Input::Complete { run, fence, note: Box::new(note), seen: None }),
            Ok(String::new())
        );
        assert_eq!(drive.journal.len(), before + 1);
        assert_eq!(
            (drive.firing("a"), drive.fence("a")),
            (run, fence),
            "the step still waits, and its token is valid"
        );
    }
    let end = Input::Complete { run, fence, note: note(ManualOutcome::Succeeded), seen: None };
    assert_eq!(drive.send(end.clone()).unwrap(), "resumed; offer b");
    assert_eq!(drive.send(end), Ok(String::new()), "the answer that ended it is the one that is repeated");
}

#[test]
fn act_12_an_answer_whose_policy_was_checked_against_an_older_state_is_refused() {
    let mut drive = Drive::started(policy(), vec![manual("a", &[])]);
    drive.done("a");
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let version = drive.state.head.version;
    let answer =
        |seen| Input::Complete { run, fence, note: note(ManualOutcome::Succeeded), seen: Some(seen) };
    for other in [version - 1, version + 1] {
        assert!(matches!(drive.send(answer(other)), Err(Rejected::Conflict { .. })), "{other}");
    }
    assert_eq!(drive.send(answer(version)).unwrap(), "resumed; completed");
}

#[test]
fn act_10_a_manual_action_ends_only_by_a_signal_with_its_own_token() {
    let mut drive = Drive::started(policy(), vec![manual("a", &[1]), action("b", 2, &[])]);
    let work = drive.fence("a");
    assert_eq!(drive.done("a"), "ask a; paused");
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    assert!(fence > work, "the token is made on entering the state");
    let wrong =
        drive.send(Input::Complete { run, fence: work, note: note(ManualOutcome::Succeeded), seen: None });
    assert_eq!(wrong, Err(Rejected::OtherAnswer { given: work }));
    let unknown = drive.send(Input::Complete {
        run,
        fence: Fence(fence.0 + 9),
        note: note(ManualOutcome::Succeeded),
        seen: None,
    });
    assert_eq!(unknown, Err(Rejected::StaleFence { given: Fence(fence.0 + 9) }));
    let summary =
        drive.send(Input::Complete { run, fence, note: note(ManualOutcome::Succeeded), seen: None }).unwrap();
    assert_eq!(summary, "resumed; offer b");
}

#[test]
fn act_11_a_repeated_signal_is_accepted_and_another_outcome_is_a_conflict() {
    let mut drive = Drive::started(policy(), vec![manual("a", &[])]);
    drive.done("a");
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let signal = |outcome| Input::Complete { run, fence, note: note(outcome), seen: None };
    assert_eq!(drive.send(signal(ManualOutcome::Succeeded)).unwrap(), "resumed; completed");
    assert_eq!(drive.send(signal(ManualOutcome::Succeeded)), Ok(String::new()));
    assert_eq!(drive.send(signal(ManualOutcome::Failed)), Err(Rejected::OtherAnswer { given: fence }));
}

#[test]
fn act_10_a_signal_that_says_failed_or_cancelled_fails_the_run_and_is_not_retried() {
    for (outcome, code) in [(ManualOutcome::Failed, "REJECTED"), (ManualOutcome::Cancelled, "CANCELLED")] {
        let mut drive = Drive::started(policy(), vec![undoable("u", 1, &[1]), manual("a", &[])]);
        drive.done("u");
        drive.done("a");
        let (run, fence) = (drive.firing("a"), drive.fence("a"));
        let summary = drive.send(Input::Complete { run, fence, note: note(outcome), seen: None }).unwrap();
        assert_eq!(summary, format!("a failed ({code}); resumed; undo u; offer u"));
    }
}

#[test]
fn act_13_act_14_hooks_run_one_at_a_time_newest_completion_first() {
    let steps =
        vec![undoable("a", 1, &[3]), undoable("b", 2, &[3]), undoable("c", 3, &[3]), action("bad", 4, &[])];
    let mut drive = Drive::started(policy(), steps);
    drive.done("b");
    drive.done("c");
    drive.done("a");
    assert_eq!(drive.fail("bad", "VALIDATION_ERROR"), "bad failed (VALIDATION_ERROR); undo a; offer a");
    let args = drive.state.run(drive.firing("a")).unwrap().args.clone().unwrap();
    assert_eq!(args["idempotencyKey"], "exec_00000000000000000000000000000007:a:compensate");
    let failure = &args["failure"];
    assert_eq!((&failure["code"], &failure["nodeId"]), (&json!("VALIDATION_ERROR"), &json!("bad")));
    assert_eq!(drive.done("a"), "undo c; offer c");
    assert_eq!(drive.done("c"), "undo b; offer b");
    assert_eq!(drive.done("b"), "failed");
    assert_eq!(drive.state.head.counts.compensated, 3);
}

#[test]
fn act_13_compensation_waits_for_running_actions_and_undoes_those_that_succeed() {
    let mut drive = Drive::started(policy(), vec![undoable("a", 1, &[]), action("bad", 2, &[])]);
    assert_eq!(drive.fail("bad", "VALIDATION_ERROR"), "bad failed (VALIDATION_ERROR)");
    assert_eq!(drive.done("a"), "undo a; offer a");
}

#[test]
fn act_14_act_15_a_hook_has_its_own_retries_and_its_failure_does_not_stop_the_others() {
    let steps =
        vec![undoable("a", 1, &[1]), undoable("b", 2, &[2]), action("plain", 3, &[3]), action("bad", 4, &[])];
    let mut drive = Drive::started(policy(), steps);
    for step in ["a", "b", "plain"] {
        drive.done(step);
    }
    drive.fail("bad", "VALIDATION_ERROR");
    assert_eq!(drive.fail("b", "SERVICE_UNAVAILABLE"), "retry b at 1000");
    assert_eq!(drive.ring().unwrap(), "offer b #2");
    assert_eq!(drive.fail("b", "SERVICE_UNAVAILABLE"), "b failed (SERVICE_UNAVAILABLE); undo a; offer a");
    assert_eq!(drive.done("a"), "failed");
    let counts = drive.state.head.counts;
    assert_eq!((counts.compensated, counts.compensation_failed, counts.non_compensable), (1, 1, 1));
}

#[test]
fn act_16_a_firing_keeps_its_number_over_all_attempts() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[])]);
    let first = drive.firing("a");
    drive.fail("a", "X");
    drive.ring().unwrap();
    assert_eq!(drive.firing("a"), first);
}

#[test]
fn act_19_a_run_that_times_out_is_compensated_before_it_ends() {
    let policy = Policy { timeout_ms: Some(5_000), ..policy() };
    let mut drive = Drive::started(policy, vec![undoable("a", 1, &[1]), action("b", 2, &[])]);
    drive.done("a");
    assert_eq!(drive.ring().unwrap(), "stop 1+0");
    assert_eq!(drive.report("b", WorkResult::Stopped).unwrap(), "drop b (Cancelled); undo a; offer a");
    assert_eq!(drive.done("a"), "failed");
}

#[test]
fn a_cancelled_run_is_compensated_only_on_request() {
    let start = || {
        let mut drive = Drive::started(policy(), vec![undoable("a", 1, &[1]), action("b", 2, &[])]);
        drive.done("a");
        drive
    };
    assert_eq!(start().cancel(Cancel::default()).unwrap(), "stop 1+0; clear 1+0; cancelled");
    let mut drive = start();
    assert_eq!(drive.cancel(Cancel { compensate: true, ..Cancel::default() }).unwrap(), "stop 1+0");
    assert_eq!(drive.done("b"), "undo a; offer a");
    assert_eq!(drive.done("a"), "cancelled");
}

#[test]
fn a_lost_worker_costs_an_action_one_attempt() {
    let mut drive = Drive::started(policy(), vec![action("a", 1, &[])]);
    assert_eq!(drive.lose("a", true).unwrap(), "retry a at 1000");
    drive.ring().unwrap();
    assert_eq!(drive.lose("a", false).unwrap(), "offer a #2", "nothing had started");
}

#[test]
fn a_retry_repeats_steps_that_compensation_undid() {
    let steps = vec![undoable("a", 1, &[2]), undoable("b", 2, &[2]), action("bad", 3, &[])];
    let mut drive = Drive::started(policy(), steps);
    drive.done("a");
    drive.done("b");
    drive.fail("bad", "VALIDATION_ERROR");
    drive.done("b");
    drive.cancel(Cancel { force: true, ..Cancel::default() }).unwrap();
    assert_eq!(drive.kept(), ["a"], "the hook of a did not run, that of b did");
}
