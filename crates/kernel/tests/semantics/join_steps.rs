//! Join steps of playbooks: one firing for all branches, when each has arrived or ended.

use crate::drive::*;
use serde_json::json;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::RetryPoint;

fn policy() -> Policy {
    Policy { join: Join::Each, entry: Some(StepId(0)), ..Policy::default() }
}

fn joining(name: &str, to: &[u32]) -> Step {
    Step { join_all: true, ..task(name, to) }
}

/// `start` leads to a, b and c, which lead to `merge`, and that to `after`.
fn fan() -> Vec<Step> {
    vec![
        noop("start", &[1, 2, 3]),
        task("a", &[4]),
        task("b", &[4]),
        task("c", &[4]),
        joining("merge", &[5]),
        task("after", &[]),
    ]
}

fn guarded(name: &str, to: u32, when: &str) -> Step {
    let mut step = task(name, &[]);
    step.router.arcs = vec![arc(to, when)];
    step
}

fn gate(key: &str) -> Admit {
    let rules = vec![AdmitRule { when: Some(expr(key)), allow: true }];
    Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None }
}

#[test]
fn a_join_step_fires_once_for_all_branches_in_any_order() {
    for order in [["a", "b", "c"], ["c", "b", "a"], ["b", "c", "a"]] {
        let mut drive = Drive::started(policy(), fan());
        assert_eq!(drive.done(order[0]), "", "two branches can still come");
        assert_eq!(drive.done(order[1]), "");
        assert_eq!(drive.done(order[2]), "join merge of 3; offer merge");
        assert_eq!(drive.done("merge"), "offer after");
        assert_eq!(drive.done("after"), "completed");
        assert_eq!(drive.state.head.counts.completed, 6);
    }
}

#[test]
fn a_net_without_join_steps_counts_nothing_and_keeps_its_digest() {
    let mut steps = fan();
    steps[4].join_all = false;
    let plain = Net::new(NetSpec { steps: steps.clone(), policy: policy() }).unwrap();
    let text = serde_json::to_string(plain.spec()).unwrap();
    assert!(!text.contains("join_all"), "{text}");
    assert_eq!(plain.joins_behind(StepId(0)), 0);
    let mut drive = Drive::of(plain);
    drive.create(json!({})).unwrap();
    assert_eq!(drive.done("a"), "offer merge");
    assert!(drive.state.head.branches.is_empty() && drive.state.joining.is_empty());
}

#[test]
fn branches_that_are_not_taken_or_end_are_not_awaited() {
    let mut steps = fan();
    steps[0].router.arcs[2].guard = Some(expr("false"));
    steps[2] = guarded("b", 4, "event.name == 'step.done'");
    let mut drive = Drive::started(policy(), steps);
    assert_eq!(drive.done("a"), "");
    assert_eq!(drive.fail("b", "BAD"), "b failed (BAD); join merge of 1; offer merge");
    drive.done("merge");
    assert_eq!(drive.done("after"), "failed", "the failure is not hidden");
}

#[test]
fn without_an_arrival_the_step_does_not_run() {
    let mut steps = fan();
    for branch in &mut steps[1..=3] {
        *branch = guarded(&branch.name.clone(), 4, "event.name == 'step.done'");
    }
    let mut drive = Drive::started(policy(), steps);
    drive.fail("a", "BAD");
    drive.fail("b", "BAD");
    assert_eq!(drive.fail("c", "BAD"), "c failed (BAD); failed");
}

#[test]
fn args_are_merged_by_the_order_of_the_definition_and_arrivals_are_listed() {
    let mut steps = fan();
    steps[1].router.arcs[0].args = Some(template(json!({ "x": "a", "from_a": 1 })));
    steps[2].router.arcs[0].args = Some(template(json!({ "x": "b" })));
    let mut drive = Drive::started(policy(), steps);
    drive.done("b");
    drive.fail("c", "BAD");
    drive.done("a");
    let args = drive.state.run(drive.firing("merge")).unwrap().args.clone().unwrap();
    assert_eq!(
        *args,
        json!({ "x": "b", "from_a": 1, "arrived": [
            { "step": "a", "failed": false, "args": { "x": "a", "from_a": 1 } },
            { "step": "b", "failed": false, "args": { "x": "b" } },
            { "step": "c", "failed": true, "args": null },
        ] })
    );
}

#[test]
fn large_args_are_loaded_and_too_large_ones_fail_the_step() {
    let inline = |inline_bytes| Policy { limits: Limits { inline_bytes, ..Limits::default() }, ..policy() };
    let with = |size: usize| {
        let mut steps = fan();
        for (branch, key) in [(1, "x"), (2, "y")] {
            steps[branch].router.arcs[0].args = Some(template(json!({ key: "t".repeat(size) })));
        }
        steps
    };
    let mut drive = Drive::started(inline(100), with(200));
    drive.done("a");
    drive.done("b");
    assert_eq!(drive.done("c"), "join merge of 3; offer merge");
    let args = drive.state.run(drive.firing("merge")).unwrap().args.clone().unwrap();
    let kept = drive.artifacts.get(args["$artifact"].as_str().unwrap()).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(kept).unwrap();
    assert_eq!((kept["x"].as_str().unwrap().len(), kept["y"].as_str().unwrap().len()), (200, 200));

    let mut drive = Drive::started(policy(), with(600_000));
    drive.done("a");
    drive.done("b");
    let found = drive.done("c");
    assert!(found.starts_with("join merge of 3; merge failed (LIMIT"), "{found}");
}

#[test]
fn gates_people_delays_loops_and_retries_before_it_are_awaited() {
    let mut gated = task("c", &[4]);
    gated.admit = Some(gate("ctx.open"));
    let mut asked = step("c", Work::Approval { deadline_ms: None, asks: None }, &[4]);
    asked.order = 1;
    let slept = step("c", Work::Delay { ms: template(json!(50)) }, &[4]);
    let mut looped = task("c", &[4]);
    let kind = LoopKind::ForEach { items: template(json!([1, 2])) };
    looped.repeat = Some(LoopSpec { kind, iterator: "i".into(), cap: 1, body: Body::Own, break_when: None });
    let mut retried = task("c", &[4]);
    retried.retry = Retry { attempts_max: 2, unknown: UnknownErrors::Retry, ..Retry::default() };
    type Act = fn(&mut Drive) -> String;
    let cases: [(Step, Act, &str); 5] = [
        (
            gated,
            |drive| {
                drive.patch("open", json!(true)).unwrap();
                drive.done("c")
            },
            "paused",
        ),
        (
            asked,
            |drive| {
                let (run, fence) = (drive.firing("c"), drive.fence("c"));
                let note = ManualNote {
                    outcome: ManualOutcome::Succeeded,
                    actor: "ann".into(),
                    ..ManualNote::default()
                };
                drive.send(Input::Complete { run, fence, note: Box::new(note), seen: None }).unwrap()
            },
            "paused",
        ),
        (slept, |drive| drive.ring().unwrap(), ""),
        (
            looped,
            |drive| {
                assert_eq!(drive.done("c[0]"), "offer c[1]");
                drive.done("c[1]")
            },
            "",
        ),
        (
            retried,
            |drive| {
                drive.fail("c", "ODD");
                drive.ring().unwrap();
                drive.done("c")
            },
            "",
        ),
    ];
    for (branch, act, waits) in cases {
        let mut steps = fan();
        steps[3] = branch;
        let mut drive = Drive::started(policy(), steps);
        drive.done("a");
        assert_eq!(drive.done("b"), waits);
        let joined = act(&mut drive);
        assert!(
            joined.ends_with("join merge of 3; offer merge") || joined.ends_with("resumed; offer merge"),
            "{joined}"
        );
    }
}

#[test]
fn a_discarding_gate_ends_its_branch_and_gates_that_may_stay_closed_hold_nothing_back() {
    let mut steps = fan();
    steps[3].admit = Some(Admit { on_deny: OnDeny::Discard, ..gate("ctx.open") });
    let mut drive = Drive::started(policy(), steps);
    drive.done("a");
    assert_eq!(drive.done("b"), "join merge of 2; offer merge");

    let mut steps = fan();
    steps[3].admit = Some(gate("ctx.open"));
    let policy = Policy { complete_with_pending_gates: true, ..policy() };
    let mut drive = Drive::started(policy, steps);
    assert_eq!(drive.done("a"), "", "b could open the gate");
    assert_eq!(drive.done("b"), "join merge of 2; offer merge");
    drive.done("merge");
    assert_eq!(drive.done("after"), "clear 0+1; completed");
}

#[test]
fn the_gate_of_a_join_step_is_asked_once() {
    let mut steps = fan();
    steps[4].admit = Some(gate("args.arrived | length == 3 and ctx.open"));
    let mut drive = Drive::started(policy(), steps);
    drive.done("a");
    drive.done("b");
    assert_eq!(drive.done("c"), "join merge of 3; deny; paused");
    assert_eq!(drive.patch("open", json!(true)).unwrap(), "admit 1; resumed; offer merge");
}

#[test]
fn joins_in_sequence_and_nested_ones_each_fire_once() {
    // start -> (a, b) -> inner -> (c, d) -> outer, and start -> e -> outer.
    let mut drive = Drive::started(
        policy(),
        vec![
            noop("start", &[1, 2, 7]),
            task("a", &[3]),
            task("b", &[3]),
            joining("inner", &[4, 5]),
            task("c", &[6]),
            task("d", &[6]),
            joining("outer", &[]),
            task("e", &[6]),
        ],
    );
    assert_eq!(drive.done("e"), "");
    assert_eq!(drive.done("a"), "", "a token that waits at `inner` keeps `outer` waiting");
    assert_eq!(drive.done("b"), "join inner of 2; offer inner");
    assert_eq!(drive.done("inner"), "offer c; offer d");
    assert_eq!(drive.done("d"), "");
    assert_eq!(drive.done("c"), "join outer of 3; offer outer");
    assert_eq!(drive.done("outer"), "completed");
}

#[test]
fn a_cycle_through_the_join_step_runs_it_once_per_round() {
    // merge -> check -> again -> (a, b) -> merge until three rounds are over.
    let mut check = task("check", &[]);
    check.router.arcs = vec![arc(0, "event.result.again")];
    let mut drive = Drive::started(
        policy(),
        vec![noop("start", &[1, 2]), task("a", &[3]), task("b", &[3]), joining("merge", &[4]), check],
    );
    for again in [true, true, false] {
        assert_eq!(drive.done("b"), "");
        assert_eq!(drive.done("a"), "join merge of 2; offer merge");
        drive.done("merge");
        let next = drive.done_with("check", json!({ "again": again }));
        assert_eq!(next, if again { "offer a; offer b" } else { "completed" });
    }
}

#[test]
fn join_steps_that_wait_for_each_other_do_not_wait_for_ever() {
    // start -> one, two; one -> two when it says so, two -> one always guarded off.
    let never = |to| vec![arc(to, "false")];
    let mut drive = Drive::started(
        policy(),
        vec![
            noop("start", &[1, 2]),
            Step { router: Router { arcs: never(2), ..Router::default() }, ..joining("one", &[]) },
            Step { router: Router { arcs: never(1), ..Router::default() }, ..joining("two", &[]) },
        ],
    );
    assert_eq!(drive.done("one"), "join two of 1; offer two");
    assert_eq!(drive.done("two"), "completed");
}

#[test]
fn waiting_tokens_are_discarded_by_cancels_and_by_fail_fast() {
    let mut drive = Drive::started(policy(), fan());
    drive.done("a");
    let cancelled = drive.cancel(Cancel { by: "ann".into(), ..Cancel::default() }).unwrap();
    assert_eq!(cancelled, "stop 2+0; clear 2+1; cancelled");
    assert!(drive.state.joining.is_empty());

    let policy = Policy { failure: FailureMode::FailFast, ..policy() };
    let mut drive = Drive::started(policy, fan());
    drive.done("a");
    assert_eq!(drive.fail("b", "BAD"), "b failed (BAD); clear 0+1");
    assert_eq!(drive.done("c"), "failed");
}

#[test]
fn a_hold_lets_branches_join_and_begins_nothing() {
    let mut drive = Drive::started(policy(), fan());
    drive.done("a");
    drive.done("b");
    drive.send(Input::Hold { by: "ann".into(), reason: String::new() }).unwrap();
    assert_eq!(drive.done("c"), "join merge of 3");
    assert_eq!(drive.send(Input::Resume { by: "ann".into() }).unwrap(), "resumed; offer merge");
}

#[test]
fn a_retry_joins_again_only_if_a_branch_runs_again() {
    let mut steps = fan();
    steps[3] = guarded("c", 4, "event.name == 'step.done'");
    let mut drive = Drive::started(policy(), steps);
    drive.done("a");
    drive.done("b");
    assert_eq!(drive.fail("c", "BAD"), "c failed (BAD); join merge of 2; offer merge");
    drive.done("merge");
    assert_eq!(drive.done("after"), "failed");
    assert_eq!(drive.kept(), ["start", "a", "b"], "the join follows c");
    let (mut again, begun) = drive.retry(None).unwrap();
    assert_eq!(begun, "offer c");
    assert_eq!(again.done("c"), "join merge of 3; offer merge");
    again.done("merge");
    assert_eq!(again.done("after"), "completed");
}

#[test]
fn a_retry_after_the_join_keeps_it_and_one_before_the_join_waits_for_its_branch() {
    let mut drive = Drive::started(policy(), fan());
    for branch in ["a", "b", "c"] {
        drive.done(branch);
    }
    let merged = drive.firing("merge");
    drive.done("merge");
    assert_eq!(drive.fail("after", "BAD"), "after failed (BAD); failed");
    assert_eq!(drive.kept(), ["start", "a", "b", "c", "merge"]);
    let (mut after, begun) = drive.retry(None).unwrap();
    assert_eq!((begun.as_str(), after.done("after").as_str()), ("offer after", "completed"));
    let (mut at, begun) = drive.retry(Some(RetryPoint::Firing(merged))).unwrap();
    assert_eq!(begun, "join merge of 3; offer merge");
    at.done("merge");
    assert_eq!(at.done("after"), "completed");
    let branch = drive.journal.iter().find_map(|record| match record.event {
        Event::Fired { run, step: StepId(2), .. } => Some(run),
        _ => None,
    });
    let (mut before, begun) = drive.retry(branch.map(RetryPoint::Firing)).unwrap();
    assert_eq!(begun, "offer b");
    assert_eq!(before.done("b"), "join merge of 3; offer merge");
    // A retry of a retry reads the records that the first one took over.
    before.done("merge");
    before.fail("after", "BAD");
    assert_eq!(before.kept(), ["start", "a", "c", "b", "merge"]);
    let (mut twice, begun) = before.retry(None).unwrap();
    assert_eq!((begun.as_str(), twice.done("after").as_str()), ("offer after", "completed"));
}

#[test]
fn a_retry_under_a_definition_that_joins_otherwise_runs_the_step_again() {
    let mut drive = Drive::started(policy(), fan());
    for branch in ["a", "b", "c"] {
        drive.done(branch);
    }
    drive.done("merge");
    drive.fail("after", "BAD");
    let mut steps = fan();
    steps[4].join_all = false;
    let plain = || Net::new(NetSpec { steps: steps.clone(), policy: policy() }).unwrap();
    let (_, begun) = drive.retry_under(plain(), None).unwrap();
    assert_eq!(begun, "offer merge; offer merge; offer merge");

    let mut drive = Drive::of(plain());
    drive.create(json!({})).unwrap();
    for branch in ["a", "b", "c"] {
        drive.done(branch);
        drive.done("merge");
        drive.fail("after", "BAD");
    }
    let joins = Net::new(NetSpec { steps: fan(), policy: policy() }).unwrap();
    let (_, begun) = drive.retry_under(joins, None).unwrap();
    assert_eq!(begun, "join merge of 3; offer merge");
}

#[test]
fn joins_are_refused_elsewhere_and_beyond_their_number() {
    let refused = |policy, steps: Vec<Step>| Net::new(NetSpec { steps, policy }).unwrap_err().to_string();
    let all = Policy { join: Join::All, ..Policy::default() };
    let error = refused(all, vec![task("a", &[1]), joining("b", &[])]);
    assert!(error.contains("`b`: only a step that fires once per token can join branches"), "{error}");
    let many: Vec<Step> = (0..65).map(|number| joining(&format!("j{number}"), &[])).collect();
    let error = refused(policy(), many);
    assert!(error.contains("`j64`: a net can have at most 64 join steps"), "{error}");
}

#[test]
fn journals_that_join_illegally_are_refused() {
    let mut drive = Drive::started(policy(), fan());
    drive.done("a");
    let waiting: Vec<TokenId> = drive.state.joining.keys().map(|(_, token)| *token).collect();
    let next = drive.state.head.next_token;
    let joined = |step, tokens: Vec<TokenId>, token| Event::Joined { step, tokens, token, args: None };
    for event in [
        joined(StepId(1), waiting.clone(), next),
        joined(StepId(4), Vec::new(), next),
        joined(StepId(4), vec![next], next),
        joined(StepId(4), waiting.clone(), next.next()),
    ] {
        let record = Record { at: Millis(drive.now), event };
        let mut state = drive.state.clone();
        assert!(evolve(&mut state, &drive.net, &record).is_err(), "{record:?}");
    }
    let record = Record { at: Millis(drive.now), event: joined(StepId(4), waiting, next) };
    evolve(&mut drive.state, &drive.net, &record).unwrap();
}
