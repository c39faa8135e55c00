//! Playbooks: routing by tokens, admission, loops, final step (PBK rows that are the kernel's alone).

use crate::drive::*;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::RetryPoint;

fn policy() -> Policy {
    Policy { join: Join::Each, entry: Some(StepId(0)), ..Policy::default() }
}

/// Creates a step with guarded arcs, of which the first match wins.
fn choice(name: &str, arcs: Vec<JoinArc>) -> Step {
    let mut step = task(name, &[]);
    step.router = Router { mode: RouterMode::Exclusive, arcs, ..Router::default() };
    step
}

fn gated(name: &str, rules: &[(&str, bool)], on_deny: OnDeny) -> Step {
    let rule = |(when, allow): &(&str, bool)| AdmitRule {
        when: (!when.is_empty()).then(|| expr(when)),
        allow: *allow,
    };
    let mut step = task(name, &[]);
    step.admit = Some(Admit { rules: rules.iter().map(rule).collect(), on_deny, deadline_ms: None });
    step
}

fn repeated(name: &str, items: Value, cap: u32, to: &[u32]) -> Step {
    let mut step = task(name, to);
    let kind = LoopKind::ForEach { items: template(items) };
    step.repeat = Some(LoopSpec { kind, iterator: "item".into(), cap, body: Body::Own, break_when: None });
    step
}

fn outcome(drive: &Drive) -> Phase {
    drive.state.phase()
}

#[test]
fn pbk_02_pbk_03_pbk_04_one_token_starts_at_the_entry_wherever_it_is_defined() {
    for (entry, expected) in [(0, "offer a"), (1, "offer b")] {
        let policy = Policy { entry: Some(StepId(entry)), ..policy() };
        let mut drive = Drive::new(policy, vec![task("a", &[]), task("b", &[])]);
        assert_eq!(drive.create(json!({})).unwrap(), expected);
    }
    let unknown = Policy { entry: Some(StepId(9)), ..policy() };
    let error = Net::new(NetSpec { steps: vec![task("a", &[])], policy: unknown }).unwrap_err();
    assert_eq!(error.problems, [Problem::UnknownStep { at: "the entry".into(), id: 9 }]);
}

#[test]
fn a_rejection_or_a_gate_timeout_takes_only_arcs_that_handle_the_failure() {
    let arcs = || vec![arc(1, ""), arc(1, "workload.live"), arc(2, "event.name == 'step.failed'")];
    let mut ask = choice("ok", arcs());
    ask.work = Work::Approval { deadline_ms: Some(500), asks: None };
    let mut gate = gated("gate", &[("ctx.open", true)], OnDeny::Wait);
    gate.router.arcs = arcs();
    gate.admit.as_mut().unwrap().deadline_ms = Some(500);
    for (first, code) in [(ask, "MANUAL_TIMEOUT"), (gate, "GATE_TIMEOUT")] {
        let name = first.name.clone();
        let mut drive = Drive::new(policy(), vec![first, task("ship", &[]), task("stop", &[])]);
        drive.create(json!({ "live": true })).unwrap();
        let summary = drive.ring().unwrap();
        assert!(summary.contains(&format!("{name} failed, handled ({code})")), "{summary}");
        assert!(summary.contains("offer stop") && !summary.contains("ship"), "{summary}");
    }
}

#[test]
fn pbk_05_first_admission_rule_that_matches_decides_and_no_match_denies() {
    let check = |rules: &[(&str, bool)], expected: &str| {
        let mut drive = Drive::new(policy(), vec![gated("a", rules, OnDeny::Wait)]);
        assert_eq!(drive.create(json!({ "n": 3 })).unwrap(), expected, "{rules:?}");
    };
    check(&[("workload.n > 1", true), ("", false)], "offer a");
    check(&[("workload.n > 1", false), ("", true)], "deny; paused");
    check(&[("workload.n > 5", true), ("", true)], "offer a");
    check(&[("workload.n > 5", true)], "deny; paused");
    check(&[], "deny; paused");
}

#[test]
fn pbk_06_a_denied_token_waits_until_a_patch_admits_it() {
    let mut drive = Drive::started(policy(), vec![gated("a", &[("ctx.ok", true)], OnDeny::Wait)]);
    assert_eq!(drive.patch("other", json!(true)).unwrap(), "");
    assert_eq!(drive.patch("ok", json!(false)).unwrap(), "");
    assert_eq!(outcome(&drive), Phase::Paused);
    assert_eq!(drive.patch("ok", json!(true)).unwrap(), "admit 1; resumed; offer a");
    assert_eq!(drive.done("a"), "completed");
}

#[test]
fn pbk_06_a_closed_gate_does_not_pause_other_running_steps() {
    let mut fork = noop("fork", &[1, 2]);
    fork.router.mode = RouterMode::Inclusive;
    let mut drive =
        Drive::new(policy(), vec![fork, gated("a", &[("ctx.ok", true)], OnDeny::Wait), task("b", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "deny; offer b");
    assert_eq!(outcome(&drive), Phase::Running);
    assert_eq!(drive.done("b"), "paused");
}

#[test]
fn pbk_28_a_denied_token_can_be_discarded_by_policy() {
    let mut drive = Drive::new(policy(), vec![gated("a", &[("false", true)], OnDeny::Discard)]);
    assert_eq!(drive.create(json!({})).unwrap(), "discard; completed");
}

#[test]
fn a_gate_that_opens_too_late_fails_its_step() {
    let mut gate = gated("a", &[("ctx.ok", true)], OnDeny::Wait);
    gate.admit.as_mut().unwrap().deadline_ms = Some(500);
    gate.router.arcs = vec![arc(1, "event.error")];
    let mut drive = Drive::started(policy(), vec![gate, task("late", &[])]);
    assert_eq!(drive.ring().unwrap(), "admit 1; a failed, handled (GATE_TIMEOUT); resumed; offer late");
    assert_eq!(drive.now, 500);
}

#[test]
fn pbk_07_pbk_08_arcs_are_evaluated_after_success_and_failure_and_see_all_names() {
    let arcs = || {
        vec![
            arc(1, "event.name == 'step.failed' and event.error.code == 'VALIDATION_ERROR'"),
            arc(2, "event.payload.n > workload.limit and ctx.flag and args.a is not defined"),
            arc(3, ""),
        ]
    };
    let check = |act: &dyn Fn(&mut Drive) -> String, expected: &str| {
        let mut drive = Drive::new(
            policy(),
            vec![choice("s", arcs()), task("bad", &[]), task("big", &[]), task("other", &[])],
        );
        drive.create(json!({ "limit": 3 })).unwrap();
        drive.patch("flag", json!(true)).unwrap();
        assert_eq!(act(&mut drive), expected);
    };
    check(&|drive| drive.fail("s", "VALIDATION_ERROR"), "s failed, handled (VALIDATION_ERROR); offer bad");
    check(&|drive| drive.fail("s", "OTHER"), "s failed (OTHER); offer other");
    check(&|drive| drive.done_with("s", json!({ "n": 4 })), "offer big");
    check(&|drive| drive.done_with("s", json!({ "n": 3 })), "offer other");
}

#[test]
fn neither_an_input_nor_a_patch_hides_a_name_of_the_definition() {
    // The first arc is taken if the guard is true after `s`; inputs and context contain every name that the guard reads.
    let check = |guard: &str, act: &dyn Fn(&mut Drive) -> String, expected: &str| {
        let forged = json!({ "ok": true, "code": "FORGED", "uuid": "forged", "length": 7 });
        let steps =
            vec![choice("s", vec![arc(1, guard), arc(2, "event.name")]), task("yes", &[]), task("no", &[])];
        let mut drive = Drive::new(policy(), steps);
        let names = ["s", "yes", "error", "result", "response", "loop", "job", "free"];
        drive.create(names.iter().map(|name| ((*name).to_owned(), forged.clone())).collect()).unwrap();
        for name in &names[..7] {
            drive.patch(name, forged.clone()).unwrap();
        }
        assert!(act(&mut drive).ends_with(expected), "{guard}");
    };
    let done = |drive: &mut Drive| drive.done_with("s", json!({ "ok": false }));
    let fail = |drive: &mut Drive| drive.fail("s", "X");
    check("s.ok", &done, "offer no");
    check("s.ok", &fail, "offer no");
    check("yes is defined", &done, "offer no");
    check("error", &done, "offer no");
    check("error.code == 'X'", &fail, "offer yes");
    check("result.ok or response.ok or loop is defined", &done, "offer no");
    check("job.uuid == 'forged'", &done, "offer no");
    check("free.ok and workload.s.ok and ctx.yes.ok and job.ok", &done, "offer yes");
}

#[test]
fn a_patch_hides_no_item_of_a_loop() {
    let mut each = repeated("a", json!([{ "n": 1 }]), 1, &[]);
    let output = template(json!("{{ item.n }} {{ index }} {{ other }}"));
    each.work = Work::Pure { output: Some(output), patch: Vec::new() };
    let mut drive = Drive::new(policy(), vec![task("go", &[1]), each]);
    drive.create(json!({ "item": { "n": 8 }, "other": 8 })).unwrap();
    for (name, value) in [("item", json!({ "n": 9 })), ("index", json!(9)), ("other", json!(9))] {
        drive.patch(name, value).unwrap();
    }
    assert!(drive.done("go").ends_with("completed"));
    let expected = json!("1 0 9");
    let is_output =
        |record: &Record| matches!(&record.event, Event::Done { output, .. } if **output == expected);
    assert!(drive.journal.iter().any(is_output), "{:?}", drive.journal);
}

#[test]
fn pbk_08_an_unguarded_arc_is_taken_after_a_failure_but_does_not_handle_it() {
    let mut drive = Drive::started(policy(), vec![task("a", &[1]), task("b", &[])]);
    assert_eq!(drive.fail("a", "X"), "a failed (X); offer b");
    assert_eq!(drive.done("b"), "failed");
}

#[test]
fn pbk_09_pbk_10_exclusive_takes_the_first_match_inclusive_every_match() {
    for (mode, expected) in [(RouterMode::Exclusive, "offer b"), (RouterMode::Inclusive, "offer b; offer c")]
    {
        let mut start = choice("a", vec![arc(3, "false"), arc(1, ""), arc(2, "true")]);
        start.router.mode = mode;
        let mut drive = Drive::started(policy(), vec![start, task("b", &[]), task("c", &[]), task("d", &[])]);
        assert_eq!(drive.done("a"), expected);
    }
}

#[test]
fn pbk_11_args_of_an_arc_are_bound_to_the_firing_and_do_not_change() {
    let mut first = task("a", &[1]);
    first.router.arcs[0].args =
        Some(template(json!({ "n": "{{ event.payload.n }}", "text": "n is {{ ctx.n }}" })));
    let mut drive = Drive::started(policy(), vec![first, task("b", &[])]);
    drive.patch("n", json!(1)).unwrap();
    drive.done_with("a", json!({ "n": 7 }));
    drive.patch("n", json!(2)).unwrap();
    let run = drive.state.run(drive.firing("b")).unwrap();
    assert_eq!(run.args.as_deref(), Some(&json!({ "n": 7, "text": "n is 1" })));
    assert_eq!(
        run.ctx.as_ref().unwrap()["n"],
        Arc::new(json!(1)),
        "the context is as it was at the dispatch"
    );
}

#[test]
fn pbk_13_pbk_14_a_branch_ends_at_a_leaf_or_where_nothing_matches() {
    let steps = || vec![choice("a", vec![arc(1, "event.payload.n > 5")]), task("b", &[])];
    let mut drive = Drive::started(policy(), steps());
    assert_eq!(drive.done_with("a", json!({ "n": 9 })), "offer b");
    assert_eq!(drive.done("b"), "completed");
    let mut drive = Drive::started(policy(), steps());
    assert_eq!(drive.done_with("a", json!({ "n": 1 })), "completed");
    let strict = Policy { no_next_is_error: true, ..policy() };
    let mut drive = Drive::started(strict.clone(), steps());
    assert_eq!(drive.done_with("a", json!({ "n": 1 })), "failed");
    let mut drive = Drive::started(strict, steps());
    drive.done_with("a", json!({ "n": 9 }));
    assert_eq!(drive.done("b"), "completed", "a leaf is no dead end");
}

#[test]
fn pbk_15_an_execution_completes_only_when_no_work_is_left() {
    let mut fork = noop("fork", &[1, 2]);
    fork.router.mode = RouterMode::Inclusive;
    let mut retried = task("a", &[]);
    retried.retry = Retry { attempts_max: 2, initial_ms: 100, ..Retry::default() };
    let mut drive = Drive::started(policy(), vec![fork, retried, task("b", &[])]);
    assert_eq!(drive.fail("a", "SERVICE_UNAVAILABLE"), "retry a at 100");
    assert_eq!(drive.done("b"), "", "an attempt is still to come");
    assert_eq!(drive.ring().unwrap(), "offer a #2");
    assert_eq!(drive.done("a"), "completed");
}

#[test]
fn pbk_16_the_end_follows_the_failure_policy() {
    let check = |change: &dyn Fn(&mut Policy), fail_both: bool, expected: &str| {
        let mut policy = policy();
        change(&mut policy);
        let mut fork = noop("fork", &[1, 2]);
        fork.router.mode = RouterMode::Inclusive;
        let mut drive = Drive::started(policy, vec![fork, task("a", &[]), task("b", &[])]);
        let summary = drive.fail("a", "X");
        let end = if fail_both { drive.fail("b", "X") } else { drive.done("b") };
        assert_eq!(format!("{summary} | {end}"), expected);
    };
    check(&|_| {}, false, "a failed (X) | failed");
    check(&|policy| policy.failure = FailureMode::FailFast, false, "a failed (X) | failed");
    check(&|policy| policy.end = EndPolicy::Partial, false, "a failed (X) | partial");
    check(&|policy| policy.end = EndPolicy::Partial, true, "a failed (X) | b failed (X); failed");
}

fn with_final(change: impl Fn(&mut Policy)) -> Drive {
    let mut policy = Policy { finish: Finish::Step(StepId(2)), ..policy() };
    change(&mut policy);
    Drive::started(policy, vec![task("a", &[1]), task("b", &[]), task("wrap", &[0])])
}

#[test]
fn pbk_17_the_final_step_runs_once_at_the_end_and_its_arcs_are_not_followed() {
    let mut drive = with_final(|_| {});
    drive.done("a");
    assert_eq!(drive.done("b"), "final; offer wrap");
    assert_eq!(drive.done("wrap"), "completed");
}

#[test]
fn pbk_17_a_final_step_that_routing_ran_does_not_run_again() {
    let policy = Policy { finish: Finish::Step(StepId(1)), ..policy() };
    let mut drive = Drive::started(policy, vec![task("a", &[1]), task("wrap", &[])]);
    drive.done("a");
    assert_eq!(drive.done("wrap"), "completed");
}

/// Returns the arguments of the final step that has fired.
fn summary(drive: &Drive, step: &str) -> Value {
    (**drive.state.run(drive.firing(step)).unwrap().args.as_ref().unwrap()).clone()
}

#[test]
fn pbk_18_the_final_step_receives_a_summary() {
    let mut drive = with_final(|policy| policy.final_reads_firings = true);
    drive.fail("a", "X");
    drive.done_with("b", json!({ "n": 1 }));
    let args = summary(&drive, "wrap");
    assert_eq!(args["execution_id"], json!("00000000000000000000000000000007"));
    assert_eq!(args["status"], json!("failed"));
    assert_eq!(args["steps"], json!({ "completed": 1, "failed": 1, "skipped": 0 }));
    assert_eq!(args["branches"], json!({ "well": 1, "failed": 0 }));
    let failed = &args["failures"][0];
    assert_eq!(
        (&failed["step"], &failed["nodeId"], &failed["code"]),
        (&json!("a"), &json!("a"), &json!("X"))
    );
    assert_eq!(
        (&failed["attempt"], &failed["firing"], &failed["handled"]),
        (&json!(1), &json!(1), &json!(false))
    );
    let completed = json!([{ "firing": 1, "path": [], "status": "completed", "output": { "n": 1 } }]);
    let failed = json!([{ "firing": 1, "path": [], "status": "failed", "output": null }]);
    assert_eq!(args["results"], json!({ "a": failed, "b": completed }));
    assert_eq!(args["omitted"], json!({ "results": {}, "failures": 0 }));
}

#[test]
fn a_final_step_that_reads_no_firings_gets_counts_and_notes_of_failures() {
    let mut drive = with_final(|_| {});
    drive.fail("a", "X");
    drive.done("b");
    let args = summary(&drive, "wrap");
    assert_eq!(args["failures"], json!([{ "step": "a", "code": "X", "message": "it said X" }]));
    assert_eq!(args.get("results"), None);
}

/// A step that fires again and again until it fails.
fn polling() -> Step {
    choice("poll", vec![arc(0, "event.name == 'step.done'")])
}

#[test]
fn a_summary_lists_the_newest_firings_of_each_step_and_counts_the_others() {
    let policy = Policy { finish: Finish::Step(StepId(1)), final_reads_firings: true, ..policy() };
    let mut drive = Drive::started(policy, vec![polling(), task("wrap", &[])]);
    for number in 1..1_500 {
        drive.done_with("poll", json!(number));
    }
    drive.fail("poll", "X");
    let args = summary(&drive, "wrap");
    let listed = args["results"]["poll"].as_array().unwrap();
    assert_eq!((listed.len(), &args["omitted"]["results"]), (1_000, &json!({ "poll": 500 })));
    assert_eq!((&listed[0]["firing"], &listed[0]["output"]), (&json!(501), &json!(501)));
    assert_eq!((&listed[999]["firing"], &listed[999]["status"]), (&json!(1_500), &json!("failed")));
}

#[test]
fn outputs_in_a_summary_are_bounded_and_the_newest_is_kept() {
    let limits = Limits { inline_bytes: 8 << 20, ..Limits::default() };
    let policy = Policy { finish: Finish::Step(StepId(1)), final_reads_firings: true, limits, ..policy() };
    let mut drive = Drive::started(policy, vec![polling(), task("wrap", &[])]);
    for _ in 0..3 {
        drive.done_with("poll", json!("x".repeat(3 << 20)));
    }
    drive.fail("poll", "X");
    let args = summary(&drive, "wrap");
    let numbers: Vec<u64> = args["results"]["poll"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["firing"].as_u64().unwrap())
        .collect();
    assert_eq!((numbers, &args["omitted"]["results"]["poll"]), (vec![3, 4], &json!(2)));
}

#[test]
fn pbk_19_a_failing_final_step_makes_the_end_worse_as_policy_says() {
    let check = |partial: bool, fail_before: bool, expected: &str| {
        let failure = if partial { FinalFailure::Partial } else { FinalFailure::Fail };
        let mut drive = with_final(|policy| policy.final_failure = failure);
        if fail_before {
            drive.fail("a", "X")
        } else {
            drive.done("a")
        };
        drive.done("b");
        assert_eq!(drive.fail("wrap", "Y"), format!("wrap failed (Y); {expected}"));
    };
    check(false, false, "failed");
    check(true, false, "partial");
    check(true, true, "failed");
}

#[test]
fn pbk_20_noop_routes_patches_and_decides_without_a_worker() {
    let mut set = noop("set", &[1]);
    let value = template(json!("{{ workload.n + 1 }}"));
    set.work = Work::Pure { output: None, patch: vec![PatchEntry { key: "n".into(), value }] };
    let mut pick = choice("pick", vec![arc(2, "ctx.n == 4"), arc(3, "")]);
    pick.work = Work::noop();
    let mut drive = Drive::new(policy(), vec![set, pick, task("four", &[]), task("other", &[])]);
    assert_eq!(drive.create(json!({ "n": 3 })).unwrap(), "offer four");
}

#[test]
fn pbk_23_a_loop_keeps_its_cap_and_routes_once() {
    let mut drive =
        Drive::new(policy(), vec![repeated("a", json!([10, 20, 30, 40]), 2, &[1]), task("b", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "loop Some(4); offer a[0]; offer a[1]");
    assert_eq!(drive.done("a[1]"), "offer a[2]");
    assert_eq!(drive.done("a[0]"), "offer a[3]");
    assert_eq!(drive.done("a[2]"), "");
    assert_eq!(drive.done("a[3]"), "offer b");
    assert_eq!(drive.done("b"), "completed");
}

#[test]
fn pbk_23_a_sequential_loop_waits_for_an_iteration_in_backoff() {
    let mut step = repeated("a", json!([1, 2]), 1, &[]);
    step.retry = Retry { attempts_max: 2, initial_ms: 50, ..Retry::default() };
    let mut drive = Drive::started(policy(), vec![step]);
    assert_eq!(drive.fail("a[0]", "SERVICE_UNAVAILABLE"), "retry a[0] at 50");
    assert_eq!(drive.ring().unwrap(), "offer a[0] #2");
    assert_eq!(drive.done("a[0]"), "offer a[1]");
    assert_eq!(drive.done("a[1]"), "completed");
}

#[test]
fn a_failed_iteration_lets_the_others_finish_and_fails_the_loop_with_counts() {
    let mut step = repeated("a", json!([1, 2, 3]), 3, &[]);
    step.router.arcs = vec![arc(
        1,
        "event.name == 'loop.done' and event.payload.failed == 1 and event.payload.succeeded == 2",
    )];
    let mut drive = Drive::started(policy(), vec![step, task("some", &[])]);
    assert_eq!(drive.fail("a[1]", "X"), "a[1] failed (X)");
    drive.done("a[0]");
    assert_eq!(drive.done("a[2]"), "a failed, handled (ITERATION_FAILED); offer some");
    assert_eq!(drive.done("some"), "completed");
}

#[test]
fn an_empty_loop_is_done_at_once_and_a_loop_over_no_list_fails() {
    let mut drive = Drive::new(policy(), vec![repeated("a", json!([]), 2, &[1]), task("b", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "loop Some(0); offer b");
    let mut drive = Drive::new(policy(), vec![repeated("a", json!("{{ workload.nothing }}"), 2, &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "a failed (EXPRESSION_ERROR); failed");
}

#[test]
fn parallel_iterations_that_set_a_key_differently_fail_the_later_one() {
    let set = |drive: &mut Drive, label: &str, value: Value| {
        let (run, fence) = (drive.firing(label), drive.fence(label));
        let patch = Patch::from([("k".to_owned(), Arc::new(value))]);
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
    let mut drive = Drive::started(policy(), vec![repeated("a", json!([1, 2, 3]), 3, &[])]);
    assert_eq!(set(&mut drive, "a[0]", json!(1)), "");
    assert_eq!(set(&mut drive, "a[1]", json!(1)), "", "an equal write is no conflict");
    let repeated = {
        let (run, fence) = (drive.firing("a[2]"), drive.fence("a[2]"));
        let patch = Patch::from([("k".to_owned(), Arc::new(json!(2)))]);
        let result = WorkResult::Done { output: Arc::new(json!({})) };
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
    let summary = set(&mut drive, "a[2]", json!(2));
    assert_eq!(summary, "a[2] failed (CONTEXT_CONFLICT); a failed (ITERATION_FAILED); failed");
    assert_eq!(drive.state.head.ctx["k"], Arc::new(json!(1)));
    assert_eq!(drive.send(repeated), Ok(String::new()), "a repeated report is accepted again");
}

#[test]
fn pbk_24_several_tokens_at_one_step_are_several_firings() {
    let mut fork = noop("fork", &[1, 1, 1]);
    fork.router.mode = RouterMode::Inclusive;
    for (arc, n) in fork.router.arcs.iter_mut().zip(0..) {
        arc.args = Some(template(json!({ "n": n })));
    }
    let mut drive = Drive::new(policy(), vec![fork, task("a", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "offer a; offer a; offer a");
    let args: Vec<_> = drive.state.runs.values().map(|run| run.args.as_ref().unwrap()["n"].clone()).collect();
    assert_eq!(args, [json!(0), json!(1), json!(2)]);
    assert_eq!(
        (drive.done("a"), drive.fail("a", "X"), drive.done("a")),
        (String::new(), "a failed (X)".into(), "failed".into())
    );
}

#[test]
fn a_guard_that_cannot_be_evaluated_fails_its_step_and_keeps_the_output() {
    let steps = vec![choice("a", vec![arc(1, "workload.text - 1"), arc(1, "event.error")]), task("b", &[])];
    let mut drive = Drive::new(policy(), steps);
    drive.create(json!({ "text": "x" })).unwrap();
    assert_eq!(drive.done_with("a", json!({ "n": 1 })), "a failed (EXPRESSION_ERROR); failed");
    let kept = drive.journal.iter().any(
        |record| matches!(&record.event, Event::Failed { output: Some(output), .. } if output["n"] == 1),
    );
    assert!(kept);
}

#[test]
fn guards_read_earlier_outputs_which_are_loaded_by_need() {
    let steps = vec![
        task("fetch", &[1]),
        choice("check", vec![arc(2, "fetch.more and steps.fetch.n == 2")]),
        task("next", &[]),
    ];
    let mut drive = Drive::started(policy(), steps);
    drive.done_with("fetch", json!({ "more": true, "n": 2 }));
    let (run, fence) = (drive.firing("check"), drive.fence("check"));
    let result = WorkResult::Done { output: Arc::new(json!({})) };
    let report = Input::Report(Box::new(Report {
        run,
        fence,
        result,
        patch: Patch::new(),
        times: None,
        metadata: None,
        cursor: None,
    }));
    let values = Values::default();
    let given = Given { now: Millis(0), random: 0, values: &values };
    let needs = decide(&drive.state, &drive.net, &report, &given);
    assert!(
        matches!(needs, Err(Rejected::Needs(needs)) if needs.len() == 1),
        "only the one output is asked for"
    );
    assert_eq!(drive.send(report).unwrap(), "offer next");
}

#[test]
fn routing_that_never_ends_reaches_its_limit_and_names_the_step() {
    let limits = Limits { firings_per_execution: 50, firings_per_decide: 7, ..Limits::default() };
    let mut drive = Drive::new(Policy { limits, ..policy() }, vec![noop("a", &[1]), noop("b", &[0])]);
    assert_eq!(drive.create(json!({})).unwrap(), "continued");
    let mut summary = String::new();
    while !drive.state.phase().is_ended() {
        summary = drive.send(Input::Continue).unwrap();
    }
    assert_eq!(summary, "clear 1+0; failed");
    let failed = drive.journal.iter().find_map(|record| match &record.event {
        Event::Draining { failure: Some(failure), .. } => Some(failure.clone()),
        _ => None,
    });
    let failure = failed.unwrap();
    assert_eq!(failure.code, "LIMIT_EXCEEDED");
    assert!(
        (failure.message.contains("`a`") || failure.message.contains("`b`"))
            && failure.message.contains("firings_per_execution"),
        "{}",
        failure.message
    );
}

#[test]
fn too_many_waiting_tokens_fail_the_execution() {
    let mut fork = noop("fork", &[1, 1, 1, 1]);
    fork.router.mode = RouterMode::Inclusive;
    let limits = Limits { standing_tokens: 3, ..Limits::default() };
    let mut drive = Drive::new(Policy { limits, ..policy() }, vec![fork, gated("a", &[], OnDeny::Wait)]);
    assert_eq!(drive.create(json!({})).unwrap(), "clear 0+4; failed");
}

#[test]
fn a_waiting_pipeline_releases_its_slot_and_resumes_at_its_cursor() {
    let policy = Policy { max_parallel: Some(1), ..policy() };
    let mut drive = Drive::started(policy, vec![task("a", &[])]);
    let cursor = Some(Arc::new(json!({ "label": "third" })));
    let later = WorkResult::Later { delay_ms: 9_000, cursor: cursor.clone() };
    drive.report("a", later).unwrap();
    assert_eq!(drive.state.head.census.in_flight(), 0);
    assert_eq!(drive.ring().unwrap(), "offer a", "no attempt is used up");
    assert_eq!((drive.now, drive.state.run(drive.firing("a")).unwrap().cursor.clone()), (9_000, cursor));
}

#[test]
fn a_playbook_is_retried_by_a_fork_at_a_firing() {
    let mut drive = Drive::started(policy(), vec![task("a", &[1]), task("b", &[2]), task("c", &[])]);
    drive.done_with("a", json!({ "n": 1 }));
    let failed = drive.firing("b");
    drive.fail("b", "X");
    drive.done("c");
    for at in [Some(RetryPoint::Firing(failed)), None] {
        let (mut again, _) = drive.retry(at).unwrap();
        assert_eq!(again.state.head.id, ExecutionId(8));
        assert!(
            again.fence("b") > drive.journal.iter().filter_map(fence_of).max().unwrap(),
            "fences are new"
        );
        assert_eq!((again.done("b"), again.done("c")), ("offer c".into(), "completed".into()));
    }
}

#[test]
fn a_fork_of_a_fork_names_its_direct_parent() {
    let mut drive = Drive::started(policy(), vec![task("a", &[1]), task("b", &[])]);
    let first = drive.firing("a");
    drive.done("a");
    drive.fail("b", "X");
    let (mut second, _) = drive.retry(None).unwrap();
    second.fail("b", "X");
    // The firing can be before or after the point where the second fork began.
    let own = second.journal.iter().rev().find_map(|record| match record.event {
        Event::Fired { run, .. } => Some(run),
        _ => None,
    });
    for at in [None, Some(first), own] {
        let (third, _) = second.retry(at.map(RetryPoint::Firing)).unwrap();
        let named = third.journal.iter().rev().find_map(|record| match &record.event {
            Event::Forked(fork) => Some((fork.parent, fork.id)),
            _ => None,
        });
        assert_eq!(named, Some((ExecutionId(8), ExecutionId(8))), "{at:?}");
    }
}

fn fence_of(record: &Record) -> Option<Fence> {
    match record.event {
        Event::Offered { fence, .. } => Some(fence),
        _ => None,
    }
}

#[test]
fn a_steps_own_name_in_its_guards_is_the_result_it_just_made() {
    let steps = || {
        vec![
            choice("a", vec![arc(0, "a.again and not steps.a.stop"), arc(1, "a is not defined")]),
            task("b", &[]),
        ]
    };
    let mut drive = Drive::started(policy(), steps());
    assert_eq!(drive.done_with("a", json!({ "again": true })), "offer a");
    assert_eq!(
        drive.done_with("a", json!({ "again": false })),
        "completed",
        "not the output of the firing before"
    );
    let mut drive = Drive::started(policy(), steps());
    drive.done_with("a", json!({ "again": true }));
    assert_eq!(
        drive.fail("a", "X"),
        "a failed, handled (X); offer b",
        "a failure has no result, not even an old one; a success would have one"
    );
}

#[test]
fn a_gate_that_opened_does_not_close_again_for_its_token() {
    let mut fork = noop("fork", &[1, 1]);
    fork.router.mode = RouterMode::Inclusive;
    let limits = Limits { firings_per_decide: 1, ..Limits::default() };
    let mut drive = Drive::started(
        Policy { limits, ..policy() },
        vec![fork, gated("a", &[("ctx.open", true)], OnDeny::Wait)],
    );
    while drive.send(Input::Continue).is_ok() {}
    assert_eq!(drive.state.gated.len(), 2);
    assert_eq!(drive.patch("open", json!(true)).unwrap(), "admit 2; continued");
    let summary = drive.patch("open", json!(false)).unwrap();
    assert!(!summary.contains("deny"), "{summary}");
    while drive.send(Input::Continue).is_ok() {}
    assert_eq!((drive.state.head.census.offered, drive.state.gated.len()), (2, 0));
}

#[test]
fn pbk_23_a_loop_collects_the_outputs_of_its_iterations_in_order() {
    let mut each = repeated("each", json!([1, 2, 3]), 3, &[]);
    each.collect = true;
    each.router.arcs =
        vec![arc(1, "{{ each.results[0].n == 10 and each.results[2].n == 30 and each.stats.total == 3 }}")];
    let mut drive = Drive::started(policy(), vec![each, task("after", &[])]);
    drive.done_with("each[2]", json!({ "n": 30 }));
    drive.done_with("each[0]", json!({ "n": 10 }));
    assert_eq!(drive.done_with("each[1]", json!({ "n": 20 })), "offer after");
    let mut none = repeated("each", json!([]), 3, &[]);
    none.collect = true;
    none.router.arcs = vec![arc(1, "{{ each.results == [] }}")];
    let mut drive = Drive::new(policy(), vec![none, task("after", &[])]);
    assert_eq!(drive.create(json!({})).unwrap(), "loop Some(0); offer after");
}
