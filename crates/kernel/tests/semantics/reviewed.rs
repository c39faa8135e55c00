//! Regression tests for cases that once failed.

use crate::drive::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::RetryPoint;

fn all(failure: FailureMode) -> Policy {
    Policy { join: Join::All, failure, ..Policy::default() }
}

fn retried(drive: &Drive, from: Option<StepId>) -> (Drive, String) {
    drive.retry(from.map(RetryPoint::Step)).unwrap()
}

#[test]
fn a_step_that_finished_while_draining_is_routed_by_the_retry() {
    let mut b = task("b", &[]);
    b.router.arcs = vec![arc(2, "event.payload.n == 4")];
    let mut drive = Drive::started(all(FailureMode::FailFast), vec![task("a", &[2]), b, task("c", &[])]);
    drive.fail("a", "X");
    assert_eq!(drive.done_with("b", json!({ "n": 4 })), "failed");
    let (mut again, summary) = retried(&drive, None);
    assert_eq!(summary, "offer a", "b is not done again");
    assert_eq!((again.done("a"), again.done("c")), ("offer c".into(), "completed".into()));
}

#[test]
fn a_restart_after_a_retry_runs_the_imported_steps_too() {
    let policy = Policy {
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        ..all(FailureMode::Continue)
    };
    let mut drive = Drive::started(policy, vec![task("a", &[1]), task("b", &[])]);
    let begin = |drive: &mut Drive| {
        drive.send(Input::Assign { worker: "w".into() }).unwrap();
        drive.send(Input::Begin).unwrap()
    };
    begin(&mut drive);
    drive.done("a");
    drive.fail("b", "X");
    let (mut again, _) = retried(&drive, None);
    assert_eq!(begin(&mut again), "offer b");
    let unit = LeaseUnit::Execution { generation: again.state.head.generation };
    again.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None })).unwrap();
    assert_eq!(begin(&mut again), "offer a");
}

#[test]
fn entries_that_were_not_chosen_emit_dead_tokens_so_that_joins_resolve() {
    let policy = Policy { join: Join::AnyLive, entry: Some(StepId(1)), ..Policy::default() };
    let mut drive = Drive::new(policy, vec![task("t1", &[2]), task("t2", &[2]), task("join", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "skip t1 (NotTaken); offer t2");
    assert_eq!(drive.done("t2"), "offer join");
}

#[test]
fn a_discarded_token_before_a_join_skips_the_step() {
    let mut gate = task("a", &[2]);
    let rules = vec![AdmitRule { when: Some(expr("false")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Discard, deadline_ms: None });
    let policy = Policy { join: Join::AnyLive, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![gate, task("b", &[2]), task("c", &[])]);
    assert_eq!(drive.done("b"), "offer c");
}

#[test]
fn a_condition_behind_a_closed_gate_is_not_evaluated() {
    let mut gate = task("a", &[]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.open")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
    gate.condition = Some(expr("workload.text - 1"));
    let policy = Policy { join: Join::Each, ..Policy::default() };
    let mut drive = Drive::new(policy, vec![gate]);
    assert_eq!(drive.create(json!({ "text": "x" })).unwrap(), "deny; paused");
    assert_eq!(
        drive.patch("open", json!(true)).unwrap(),
        "admit 1; a failed (EXPRESSION_ERROR); resumed; failed"
    );
}

#[test]
fn a_gate_whose_rule_a_patch_breaks_fails_its_step() {
    let mut gate = task("a", &[]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.n and ctx.n - 1 > 5")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
    let mut drive = Drive::new(Policy { join: Join::Each, ..Policy::default() }, vec![gate]);
    assert_eq!(drive.create(json!({})).unwrap(), "deny; paused");
    assert_eq!(
        drive.patch("n", json!("text")).unwrap(),
        "admit 1; a failed (EXPRESSION_ERROR); resumed; failed"
    );
}

#[test]
fn the_context_is_taken_at_the_dispatch_not_at_the_firing() {
    let mut drive = Drive::started(all(FailureMode::Continue), vec![task("a", &[1]), task("b", &[])]);
    drive.send(Input::Hold { by: "u".into(), reason: String::new() }).unwrap();
    drive.done("a");
    drive.patch("k", json!(2)).unwrap();
    drive.send(Input::Resume { by: "u".into() }).unwrap();
    let b = drive.firing("b");
    drive.patch("k", json!(3)).unwrap();
    drive.lose("b", false).unwrap();
    assert_eq!(
        drive.state.run(b).unwrap().ctx.as_ref().unwrap().get("k"),
        Some(&Arc::new(json!(2))),
        "later attempts see the same"
    );
}

#[test]
fn the_reported_failure_is_the_cause_and_not_a_handled_failure() {
    let mut a = task("a", &[]);
    a.router.arcs = vec![arc(1, "event.error")];
    let policy = Policy { join: Join::Each, timeout_ms: Some(100), ..Policy::default() };
    let mut drive = Drive::started(policy, vec![a, task("b", &[])]);
    drive.fail("a", "VALIDATION_ERROR");
    drive.ring().unwrap();
    drive.report("b", WorkResult::Stopped).unwrap();
    let why = drive.journal.iter().find_map(|record| match &record.event {
        Event::Ended { failure, .. } => failure.clone(),
        _ => None,
    });
    assert_eq!(why.unwrap().code, "EXECUTION_TIMEOUT");
}

#[test]
fn a_fork_of_a_paused_execution_has_its_full_time_limit() {
    let mut gate = task("a", &[]);
    let rules = vec![AdmitRule { when: Some(expr("ctx.open")), allow: true }];
    gate.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
    let policy = Policy { join: Join::Each, timeout_ms: Some(1_000), ..Policy::default() };
    let mut drive = Drive::started(policy, vec![gate]);
    drive.now = 900;
    drive.cancel(Cancel::default()).unwrap();
    drive.now = 50_000;
    let state = drive.retry(None).unwrap().0.state;
    assert_eq!((state.phase(), state.head.clock), (Phase::Paused, Clock::Left(1_000)));
}

#[test]
fn a_completed_execution_is_not_forked() {
    let policy = Policy { join: Join::Each, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![task("a", &[])]);
    drive.done("a");
    let forked = drive.retry(None);
    assert!(matches!(forked, Err(Rejected::Conflict { phase: Phase::Ended(Outcome::Completed), .. })));
}

#[test]
fn a_report_that_was_dropped_while_draining_is_accepted_again() {
    let mut drive =
        Drive::started(all(FailureMode::FailFast), vec![task("a", &[]), task("b", &[]), task("c", &[])]);
    drive.fail("a", "X");
    let (run, fence) = (drive.firing("b"), drive.fence("b"));
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
    let later = WorkResult::Later { delay_ms: 5, cursor: None };
    drive.send(report(later.clone())).unwrap();
    assert_eq!(drive.send(report(later)), Ok(String::new()));
    assert_eq!(drive.send(report(WorkResult::Stopped)), Err(Rejected::OtherAnswer { given: fence }));
    let (run, fence) = (drive.firing("c"), drive.fence("c"));
    drive.lose("c", true).unwrap();
    let late = Report {
        run,
        fence,
        result: WorkResult::Stopped,
        patch: Patch::new(),
        times: None,
        metadata: None,
        cursor: None,
    };
    assert_eq!(drive.send(Input::Report(Box::new(late))), Err(Rejected::StaleFence { given: fence }));
}

#[test]
fn the_number_of_step_runs_begun_in_one_decision_is_limited() {
    let limits = Limits { firings_per_decide: 10, ..Limits::default() };
    let mut drive = Drive::new(
        Policy { limits, ..all(FailureMode::Continue) },
        (0..35).map(|n| task(&format!("s{n}"), &[])).collect(),
    );
    let mut decides = vec![drive.create(json!({})).unwrap()];
    while decides.last().unwrap().ends_with("continued") {
        decides.push(drive.send(Input::Continue).unwrap());
    }
    assert!(decides.iter().all(|summary| summary.matches("offer").count() <= 10), "{decides:?}");
    assert_eq!(drive.state.head.census.offered, 35);
    assert!(drive.send(Input::Continue).is_err());
}

#[test]
fn a_scheduled_start_with_one_worker_is_due_once() {
    let policy = Policy { affinity: Affinity::OneWorker, ..all(FailureMode::Continue) };
    let mut drive = Drive::new(policy, vec![task("a", &[])]);
    let create = Create { start: StartWhen::At(Millis(100)), ..Create::new(ExecutionId(7), json!({})) };
    drive.send(Input::Create(Box::new(create))).unwrap();
    assert!(drive.send(Input::Assign { worker: "w".into() }).is_err());
    drive.ring().unwrap();
    assert!(drive.state.timers().is_empty());
    drive.send(Input::Assign { worker: "w".into() }).unwrap();
}

#[test]
fn a_final_step_that_loops_runs_to_its_end() {
    let mut last = task("wrap", &[]);
    let kind = LoopKind::Count { times: template(json!(3)) };
    last.repeat = Some(LoopSpec { kind, iterator: "i".into(), cap: 2, body: Body::Own, break_when: None });
    let policy = Policy { join: Join::Each, finish: Finish::Step(StepId(1)), ..Policy::default() };
    let mut drive = Drive::started(policy, vec![task("a", &[]), last]);
    assert_eq!(drive.done("a"), "final; loop Some(3); offer wrap[0]; offer wrap[1]");
    assert_eq!(
        (drive.done("wrap[0]"), drive.done("wrap[1]"), drive.done("wrap[2]")),
        ("offer wrap[2]".into(), String::new(), "completed".into())
    );
}

#[test]
fn a_manual_iteration_that_contradicts_another_fails_at_its_report() {
    let mut step = task("a", &[]);
    let kind = LoopKind::Count { times: template(json!(2)) };
    step.repeat = Some(LoopSpec { kind, iterator: "i".into(), cap: 2, body: Body::Own, break_when: None });
    step.completion = Completion::Manual { deadline_ms: None };
    let mut drive = Drive::started(Policy { join: Join::Each, ..Policy::default() }, vec![step]);
    let set = |drive: &mut Drive, label: &str, value: i64| {
        let (run, fence) = (drive.firing(label), drive.fence(label));
        let patch = Patch::from([("k".to_owned(), Arc::new(json!(value)))]);
        let result = WorkResult::Done { output: Arc::new(json!({})) };
        drive
            .send(Input::Report(Box::new(Report {
                run,
                fence,
                result,
                patch,
                times: None,
                metadata: None,
                cursor: None,
            })))
            .unwrap()
    };
    assert_eq!(set(&mut drive, "a[0]", 1), "ask a[0]");
    assert_eq!(set(&mut drive, "a[1]", 2), "a[1] failed (CONTEXT_CONFLICT); paused");
}

#[test]
fn a_retry_of_a_retry_keeps_the_imported_steps() {
    let mut drive =
        Drive::started(all(FailureMode::FailFast), vec![task("a", &[1]), task("b", &[2]), task("c", &[])]);
    drive.done_with("a", json!({ "n": 1 }));
    drive.fail("b", "X");
    let (mut second, _) = retried(&drive, None);
    second.done("b");
    second.fail("c", "X");
    let (mut third, summary) = retried(&second, None);
    assert_eq!(summary, "offer c", "a and b are kept, one from each execution");
    assert_eq!(third.done("c"), "completed");
    let (_, summary) = retried(&second, Some(StepId(1)));
    assert_eq!(summary, "offer b");
}

#[test]
fn a_retry_imports_arc_tokens_and_evaluates_no_guard_again() {
    let mut a = task("a", &[]);
    a.router.arcs = vec![arc(1, "ctx.go")];
    let mut drive = Drive::started(all(FailureMode::FailFast), vec![a, task("b", &[])]);
    drive.patch("go", json!(true)).unwrap();
    assert_eq!(drive.done("a"), "offer b");
    drive.fail("b", "X");
    let (_, summary) = retried(&drive, None);
    assert_eq!(summary, "offer b", "the new context has no `go`");
}

#[test]
fn a_retry_does_not_keep_steps_completed_before_a_restart() {
    let policy = Policy {
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        ..all(FailureMode::Continue)
    };
    let mut drive = Drive::started(policy, vec![task("a", &[]), task("b", &[])]);
    let begin = |drive: &mut Drive| {
        drive.send(Input::Assign { worker: "w".into() }).unwrap();
        drive.send(Input::Begin).unwrap()
    };
    begin(&mut drive);
    drive.done("a");
    let unit = LeaseUnit::Execution { generation: 1 };
    drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None })).unwrap();
    begin(&mut drive);
    drive.fail("a", "X");
    drive.done("b");
    assert_eq!(drive.kept(), ["b"]);
}

fn child(name: &str) -> Step {
    step(name, Work::Child { definition: template(json!("sub")), inputs: template(json!({})) }, &[])
}

#[test]
fn children_of_a_drained_execution_are_stopped_only_once_when_its_worker_is_lost() {
    let policy = Policy {
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        timeout_ms: Some(100),
        ..all(FailureMode::Continue)
    };
    let mut drive = Drive::started(policy, vec![child("c"), task("a", &[])]);
    drive.send(Input::Assign { worker: "w".into() }).unwrap();
    drive.send(Input::Begin).unwrap();
    assert_eq!(drive.ring().unwrap(), "stop 1+1");
    let unit = LeaseUnit::Execution { generation: 1 };
    let summary =
        drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None })).unwrap();
    assert_eq!(summary, "clear 2+0; failed");
}

#[test]
fn a_child_that_would_have_to_be_confirmed_is_dropped_while_draining() {
    let mut manual = child("c");
    manual.completion = Completion::Manual { deadline_ms: None };
    let mut drive = Drive::started(all(FailureMode::FailFast), vec![manual, task("a", &[])]);
    assert_eq!(drive.fail("a", "X"), "a failed (X); stop 0+1");
    let run = drive.firing("c");
    let RunState::Child { fence, child, .. } = drive.state.run(run).unwrap().state else {
        panic!("no child")
    };
    let version = child.0 >> 76 & 0xf;
    let variant = child.0 >> 62 & 0b11;
    assert_eq!((version, variant), (8, 0b10), "a child's id is a UUID of version 8");
    let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(json!(1)), failure: None };
    let summary = drive.send(Input::ChildEnded { run, fence, child, result }).unwrap();
    assert_eq!(summary, "drop c (Cancelled); failed");
}

#[test]
fn the_end_of_a_cancelled_execution_says_who_and_why() {
    let mut drive = Drive::started(all(FailureMode::Continue), vec![task("a", &[])]);
    let cancel = Cancel { by: "ada".into(), reason: "no longer needed".into(), ..Cancel::default() };
    drive.cancel(cancel).unwrap();
    let Some(Event::Ended { failure: Some(failure), .. }) = drive.journal.last().map(|record| &record.event)
    else {
        panic!("the end has no failure")
    };
    assert_eq!((failure.message.as_str(), &failure.details["by"]), ("no longer needed", &json!("ada")));
}

#[test]
fn a_child_that_ends_well_while_draining_is_recorded_as_done() {
    let mut drive = Drive::started(all(FailureMode::FailFast), vec![child("c"), task("a", &[])]);
    drive.fail("a", "X");
    let run = drive.firing("c");
    let RunState::Child { fence, child, .. } = drive.state.run(run).unwrap().state else {
        panic!("no child")
    };
    let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(json!(1)), failure: None };
    assert_eq!(drive.send(Input::ChildEnded { run, fence, child, result }).unwrap(), "failed");
    assert_eq!(drive.state.head.counts.completed, 1);
}

#[test]
fn a_cancel_after_hooks_ran_does_not_change_the_outcome_even_if_they_failed() {
    for hook_ends_well in [true, false] {
        let mut undoable = task("u", &[1]);
        let hook = Hook { work: Work::task(json!("undo")), retry: Retry::default(), timeout_ms: None };
        undoable.compensation = Some(hook);
        let policy = Policy {
            compensate: true,
            finish: Finish::Step(StepId(2)),
            entry: Some(StepId(0)),
            ..all(FailureMode::FailFast)
        };
        let mut drive = Drive::started(policy, vec![undoable, task("bad", &[]), task("wrap", &[])]);
        drive.done("u");
        drive.fail("bad", "X");
        let summary = if hook_ends_well { drive.done("u") } else { drive.fail("u", "Y") };
        assert!(summary.ends_with("final; offer wrap"), "{summary}");
        assert_eq!(drive.cancel(Cancel::default()).unwrap(), "stop 1+0; clear 1+0; failed");
    }
}

#[test]
fn a_dead_end_is_reported_as_the_reason() {
    let mut a = task("a", &[]);
    a.router.arcs = vec![arc(1, "false")];
    let policy = Policy { join: Join::Each, no_next_is_error: true, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![a, task("b", &[])]);
    drive.done("a");
    let Some(Event::Ended { failure: Some(failure), .. }) = drive.journal.last().map(|record| &record.event)
    else {
        panic!("the end has no failure")
    };
    assert_eq!(failure.code, "NO_NEXT");
}

#[test]
fn an_arc_can_pass_on_the_whole_event() {
    let mut a = task("a", &[1]);
    a.router.arcs[0].args = Some(template(json!({ "event": "{{ event }}" })));
    let mut drive = Drive::started(Policy { join: Join::Each, ..Policy::default() }, vec![a, task("b", &[])]);
    drive.done_with("a", json!({ "n": 1 }));
    let args = drive.state.run(drive.firing("b")).unwrap().args.clone().unwrap();
    let event = json!({ "name": "step.done", "step": "a", "payload": { "n": 1 }, "result": { "n": 1 } });
    assert_eq!(args["event"], event);
}

#[test]
fn a_worker_lost_during_uploads_restarts_only_an_execution_that_drained_by_itself() {
    let policy = |timeout_ms| Policy {
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        finish: Finish::Uploads,
        timeout_ms,
        ..all(FailureMode::Continue)
    };
    let begin = |drive: &mut Drive| {
        drive.send(Input::Assign { worker: "w".into() }).unwrap();
        drive.send(Input::Begin).unwrap();
    };
    let lose = |drive: &mut Drive| {
        let unit = LeaseUnit::Execution { generation: drive.state.head.generation };
        drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None })).unwrap()
    };
    let mut drive = Drive::started(policy(Some(100)), vec![task("a", &[])]);
    begin(&mut drive);
    drive.ring().unwrap();
    drive.report("a", WorkResult::Stopped).unwrap();
    assert_eq!((drive.state.phase(), lose(&mut drive)), (Phase::Finalizing, "failed".into()));
    let mut drive = Drive::started(policy(None), vec![task("a", &[])]);
    for generation in 2..=5 {
        begin(&mut drive);
        drive.done("a");
        assert_eq!(lose(&mut drive), format!("generation {generation}"));
    }
    begin(&mut drive);
    drive.done("a");
    assert_eq!(lose(&mut drive), "failed", "the fifth loss is the last");
}

#[test]
fn imported_steps_count_as_completed_when_the_retry_fails() {
    let policy = Policy { end: EndPolicy::Partial, ..all(FailureMode::Continue) };
    let mut drive = Drive::started(policy, vec![task("a", &[1]), task("b", &[])]);
    drive.done("a");
    assert_eq!(drive.fail("b", "X"), "b failed (X); partial");
    let (mut again, _) = retried(&drive, None);
    assert_eq!(again.fail("b", "X"), "b failed (X); partial");
}

#[test]
fn a_guard_that_the_retry_evaluates_sees_imported_outputs() {
    let mut b = task("b", &[]);
    b.router.arcs = vec![arc(2, "steps.kept.n == 4")];
    let steps = vec![task("kept", &[1]), b, task("c", &[]), task("bad", &[])];
    let mut drive = Drive::started(all(FailureMode::FailFast), steps);
    drive.done_with("kept", json!({ "n": 4 }));
    drive.fail("bad", "X");
    drive.done("b");
    let (_, summary) = retried(&drive, None);
    assert_eq!(summary, "offer c; offer bad");
}

fn end_child(drive: &mut Drive, outcome: Outcome) -> (Input, String) {
    let run = drive.firing("c");
    let RunState::Child { fence, child, .. } = drive.state.run(run).unwrap().state else {
        panic!("no child")
    };
    let failure = (outcome == Outcome::Failed).then(|| failure("X"));
    let result = ChildResult { outcome, output: Arc::new(json!(1)), failure };
    let mail = Input::ChildEnded { run, fence, child, result };
    let summary = drive.send(mail.clone()).unwrap();
    (mail, summary)
}

#[test]
fn repeated_mail_about_a_failed_child_is_accepted() {
    let mut drive = Drive::started(all(FailureMode::Continue), vec![child("c"), task("a", &[])]);
    let (mail, summary) = end_child(&mut drive, Outcome::Failed);
    assert_eq!((summary.as_str(), drive.send(mail)), ("c failed (X)", Ok(String::new())));
}

#[test]
fn a_child_cancelled_while_draining_is_dropped() {
    let mut drive = Drive::started(all(FailureMode::FailFast), vec![child("c"), task("a", &[])]);
    drive.fail("a", "X");
    assert_eq!(end_child(&mut drive, Outcome::Cancelled).1, "drop c (Cancelled); failed");
}

#[test]
fn every_childs_id_is_a_uuid_of_version_8() {
    for parent in 0..64 {
        let mut drive = Drive::new(all(FailureMode::Continue), vec![child("c")]);
        let create = Create::new(ExecutionId(parent), json!({}));
        drive.send(Input::Create(Box::new(create))).unwrap();
        let RunState::Child { child, .. } = drive.state.run(drive.firing("c")).unwrap().state else {
            panic!("no child")
        };
        assert_eq!((child.0 >> 76 & 0xf, child.0 >> 62 & 0b11), (8, 0b10), "{child}");
    }
}

#[test]
fn a_restarted_execution_does_not_run_out_of_time_while_it_is_queued() {
    let policy = Policy {
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        timeout_ms: Some(1_000),
        ..all(FailureMode::Continue)
    };
    let mut drive = Drive::started(policy, vec![task("a", &[])]);
    drive.send(Input::Assign { worker: "w".into() }).unwrap();
    drive.send(Input::Begin).unwrap();
    drive.now = 400;
    let unit = LeaseUnit::Execution { generation: 1 };
    drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None })).unwrap();
    drive.now = 9_000;
    assert!(drive.state.timers().is_empty() && drive.send(Input::TimerDue(Timer::Deadline)).is_err());
    drive.send(Input::Assign { worker: "w2".into() }).unwrap();
    assert_eq!(drive.state.timers(), [(Timer::Deadline, Millis(9_600))], "600 ms were left");
}

#[test]
fn an_execution_started_on_call_waits_in_the_queue() {
    let mut drive = Drive::new(all(FailureMode::Continue), vec![task("a", &[])]);
    let create = Create { start: StartWhen::Called, ..Create::new(ExecutionId(7), json!({})) };
    assert_eq!(drive.send(Input::Create(Box::new(create))).unwrap(), "");
    assert_eq!(drive.state.phase(), Phase::Queued);
    assert_eq!(drive.send(Input::Begin).unwrap(), "offer a");
}

#[test]
fn an_offer_names_the_firings_its_templates_read() {
    let mut b = task("b", &[]);
    b.reads = vec![StepId(0)];
    let mut drive = Drive::started(all(FailureMode::Continue), vec![task("a", &[1]), b]);
    let a = drive.firing("a");
    drive.done("a");
    let Some(Event::Offered { reads, .. }) = drive.journal.last().map(|record| &record.event) else {
        panic!("no offer")
    };
    assert_eq!(*reads, [(StepId(0), a)]);
}

#[test]
fn a_checkpoint_survives_the_loss_of_its_lease_and_times_are_kept() {
    let mut drive = Drive::started(all(FailureMode::Continue), vec![task("a", &[])]);
    let unit = LeaseUnit::Run { run: drive.firing("a"), fence: drive.fence("a") };
    let cursor = Some(Arc::new(json!({ "label": "third" })));
    drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: cursor.clone() })).unwrap();
    assert_eq!(drive.state.run(drive.firing("a")).unwrap().cursor, cursor);
    let (run, fence) = (drive.firing("a"), drive.fence("a"));
    let times = Some(Times { claimed_at: Millis(3), started_at: Millis(4) });
    let result = WorkResult::Done { output: Arc::new(json!({})) };
    drive
        .send(Input::Report(Box::new(Report {
            run,
            fence,
            result,
            patch: Patch::new(),
            times,
            metadata: None,
            cursor: None,
        })))
        .unwrap();
    assert!(
        drive
            .journal
            .iter()
            .any(|record| matches!(&record.event, Event::Done { times: t, .. } if *t == times))
    );
}

#[test]
fn returned_work_is_offered_again_and_not_counted_as_lost() {
    let mut drive = Drive::started(Policy::default(), vec![task("a", &[])]);
    for _ in 0..5 {
        let (run, fence) = (drive.firing("a"), drive.fence("a"));
        let unit = LeaseUnit::Run { run, fence };
        drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::GivenBack, cursor: None })).unwrap();
        assert!(drive.fence("a") > fence, "offered again under a new fence");
    }
    assert_eq!(drive.state.run(drive.firing("a")).unwrap().losses, 0);
    assert_eq!(drive.done("a"), "completed");
}
