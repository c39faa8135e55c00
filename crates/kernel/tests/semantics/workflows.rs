//! Workflows: joins over live arcs, failure modes, regions, retries, agents, children (WFL rows that are the
//! kernel's alone).

use crate::drive::*;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::RetryPoint;

fn policy() -> Policy {
    Policy {
        join: Join::AnyLive,
        failure: FailureMode::Continue,
        end: EndPolicy::Partial,
        ..Policy::default()
    }
}

fn fail_fast() -> Policy {
    Policy { failure: FailureMode::FailFast, end: EndPolicy::FailOnAny, ..policy() }
}

fn on_error(to: u32) -> JoinArc {
    JoinArc { on: On::Error, ..JoinArc::to(StepId(to)) }
}

fn guarded(name: &str, arcs: Vec<JoinArc>) -> Step {
    let mut step = task(name, &[]);
    step.router.arcs = arcs;
    step
}

/// Creates a loop over a body: its members are the steps that follow it in the net.
fn region(name: &str, kind: LoopKind, cap: u32, to: &[u32]) -> Step {
    let mut step = noop(name, to);
    step.repeat = Some(LoopSpec { kind, iterator: "item".into(), cap, body: Body::Region, break_when: None });
    step
}

fn member(mut step: Step, of: u32) -> Step {
    step.region = Some(StepId(of));
    step
}

fn count(times: u32) -> LoopKind {
    LoopKind::Count { times: template(json!(times)) }
}

#[test]
fn a_join_fires_when_one_arc_is_live_and_none_poisoned() {
    let steps = || {
        vec![
            guarded("a", vec![arc(2, "event.payload.go")]),
            guarded("b", vec![arc(2, "event.payload.go")]),
            task("c", &[]),
        ]
    };
    let check = |a: bool, b: bool, expected: &str| {
        let mut drive = Drive::started(policy(), steps());
        drive.done_with("a", json!({ "go": a }));
        assert_eq!(drive.done_with("b", json!({ "go": b })), expected);
    };
    check(true, false, "offer c");
    check(true, true, "offer c");
    check(false, false, "skip c (NotTaken); completed");
    let mut drive = Drive::started(policy(), steps());
    drive.done_with("a", json!({ "go": true }));
    assert_eq!(drive.fail("b", "X"), "b failed (X); skip c (Upstream); partial");
}

#[test]
fn wfl_25_failure_modes_decide_what_follows_a_failure() {
    let run = |policy: Policy| {
        let mut drive = Drive::started(policy, vec![task("a", &[2]), task("b", &[]), task("c", &[])]);
        let first = drive.fail("a", "X");
        let mut summary = vec![first];
        for step in ["c", "b"] {
            if drive.state.runs.values().any(|run| drive.net.step(run.step).name == step) {
                summary.push(drive.done(step));
            }
        }
        summary.join(" | ")
    };
    assert_eq!(run(fail_fast()), "a failed (X) | failed");
    assert_eq!(run(policy()), "a failed (X); skip c (Upstream) | partial");
    let collect = Policy { failure: FailureMode::Collect, ..policy() };
    assert_eq!(run(collect), "a failed (X); offer c |  | partial");
}

#[test]
fn wfl_25_an_execution_fails_if_only_a_trigger_completed() {
    let mut trigger = noop("trigger", &[1]);
    trigger.trigger = true;
    let mut drive = Drive::started(policy(), vec![trigger, task("a", &[])]);
    assert_eq!(drive.fail("a", "X"), "a failed (X); failed");
}

#[test]
fn under_collect_a_failed_step_passes_its_error_on_and_a_conditional_poisons() {
    let collect = || Policy { failure: FailureMode::Collect, ..policy() };
    let arcs = || vec![arc(1, ""), arc(2, "true")];
    let mut drive =
        Drive::started(collect(), vec![guarded("a", arcs()), task("plain", &[]), task("guarded", &[])]);
    assert_eq!(drive.fail("a", "X"), "a failed (X); skip guarded (NotTaken); offer plain");
    let args = drive.state.run(drive.firing("plain")).unwrap().args.clone().unwrap();
    assert_eq!(args["error"]["code"], "X");
    let mut choice = guarded("a", arcs());
    choice.router.conditional = true;
    let mut drive = Drive::started(collect(), vec![choice, task("plain", &[]), task("guarded", &[])]);
    assert_eq!(drive.fail("a", "X"), "a failed (X); skip plain (Upstream); skip guarded (Upstream); failed");
}

fn approval(name: &str, arcs: Vec<JoinArc>) -> Step {
    let mut step = step(name, Work::Approval { deadline_ms: Some(500), asks: None }, &[]);
    step.router.arcs = arcs;
    step
}

fn reject(drive: &mut Drive, name: &str) -> String {
    let (run, fence) = (drive.firing(name), drive.fence(name));
    let note = ManualNote { outcome: ManualOutcome::Failed, actor: "ada".into(), ..ManualNote::default() };
    drive.send(Input::Complete { run, fence, note: Box::new(note), seen: None }).unwrap()
}

#[test]
fn a_rejection_takes_no_plain_arc_in_any_failure_mode() {
    let steps = |arcs: Vec<JoinArc>| vec![approval("ok", arcs), task("ship", &[]), task("rescue", &[])];
    let plain = || vec![arc(1, ""), arc(2, "true")];
    for failure in [FailureMode::FailFast, FailureMode::Continue, FailureMode::Collect] {
        let mode = || Policy { failure, ..policy() };
        let mut drive = Drive::started(mode(), steps(plain()));
        let summary = reject(&mut drive, "ok");
        assert!(
            summary.contains("ok failed (REJECTED)") && !summary.contains("offer"),
            "{failure:?}: {summary}"
        );
        let mut drive = Drive::started(mode(), steps(plain()));
        let summary = drive.ring().unwrap();
        assert!(
            summary.contains("ok failed (MANUAL_TIMEOUT)") && !summary.contains("offer"),
            "{failure:?}: {summary}"
        );
        let mut drive = Drive::started(mode(), steps(vec![arc(1, ""), on_error(2)]));
        let summary = reject(&mut drive, "ok");
        assert_eq!(summary, "ok failed, handled (REJECTED); skip ship (NotTaken); resumed; offer rescue");
    }
}

#[test]
fn a_rejection_inside_of_a_loop_or_a_child_takes_no_plain_arc_either() {
    let collect = || Policy { failure: FailureMode::Collect, ..policy() };
    let body = member(approval("ok", Vec::new()), 0);
    let mut around = region("each", count(1), 1, &[1]);
    around.router.arcs = vec![arc(1, ""), arc(2, "")];
    let mut drive = Drive::started(collect(), vec![around, body, task("ship", &[])]);
    let summary = reject(&mut drive, "ok[0]");
    assert!(summary.contains("skip ship (Upstream)"), "{summary}");
    let (definition, inputs) = (template(json!("sub")), template(json!({})));
    let steps = vec![step("sub", Work::Child { definition, inputs }, &[1]), task("ship", &[])];
    let mut drive = Drive::started(collect(), steps);
    let (run, fence, id) = child(&drive);
    let failure = Failure::new(codes::REJECTED, "ada ended it as failed");
    let result = ChildResult { outcome: Outcome::Failed, output: Arc::default(), failure: Some(failure) };
    let summary = drive.send(Input::ChildEnded { run, fence, child: id, result }).unwrap();
    assert!(summary.contains("skip ship (Upstream)"), "{summary}");
}

#[test]
fn work_that_a_person_confirms_and_rejects_takes_no_plain_arc() {
    let collect = Policy { failure: FailureMode::Collect, ..policy() };
    let mut manual = task("a", &[1]);
    manual.completion = Completion::Manual { deadline_ms: None };
    let mut drive = Drive::started(collect, vec![manual, task("ship", &[])]);
    drive.done("a");
    let summary = reject(&mut drive, "a");
    assert!(summary.contains("a failed (REJECTED)") && summary.contains("skip ship (Upstream)"), "{summary}");
}

#[test]
fn an_error_handle_handles_the_failure() {
    let steps = || vec![guarded("a", vec![arc(1, ""), on_error(2)]), task("good", &[]), task("rescue", &[])];
    let mut drive = Drive::started(fail_fast(), steps());
    assert_eq!(drive.fail("a", "X"), "a failed, handled (X); skip good (NotTaken); offer rescue");
    assert_eq!(drive.done("rescue"), "completed");
    let mut drive = Drive::started(fail_fast(), steps());
    assert_eq!(drive.done("a"), "skip rescue (NotTaken); offer good");
}

#[test]
fn wfl_12_the_timeout_counts_running_time_only_and_ends_it_as_failed() {
    let mut drive = Drive::started(Policy { timeout_ms: Some(300_000), ..fail_fast() }, vec![task("a", &[])]);
    drive.now = 100_000;
    drive.send(Input::Hold { by: "u".into(), reason: String::new() }).unwrap();
    drive.now = 900_000;
    assert!(drive.send(Input::TimerDue(Timer::Deadline)).is_err(), "the deadline does not run while paused");
    drive.send(Input::Resume { by: "u".into() }).unwrap();
    drive.now = 1_000_000;
    assert_eq!(
        drive.send(Input::TimerDue(Timer::Deadline)),
        Err(Rejected::NotDue { until: Millis(1_100_000) })
    );
    assert_eq!(drive.ring().unwrap(), "stop 1+0");
    assert_eq!(drive.report("a", WorkResult::Stopped).unwrap(), "drop a (Cancelled); failed");
}

#[test]
fn wfl_13_a_scheduled_execution_stays_queued_until_its_time() {
    let mut drive = Drive::new(policy(), vec![task("a", &[])]);
    let create = Create { start: StartWhen::At(Millis(5_000)), ..Create::new(ExecutionId(7), json!({})) };
    assert_eq!(drive.send(Input::Create(Box::new(create))).unwrap(), "");
    assert_eq!(drive.state.phase(), Phase::Queued);
    assert_eq!(drive.send(Input::TimerDue(Timer::Start)), Err(Rejected::NotDue { until: Millis(5_000) }));
    assert!(drive.send(Input::Begin).is_err());
    assert_eq!(drive.ring().unwrap(), "offer a");
}

#[test]
fn a_loop_fires_its_body_once_per_iteration_in_a_scope_of_its_own() {
    let steps = vec![
        region("each", count(2), 2, &[1, 3]),
        member(task("a", &[2]), 0),
        member(task("b", &[]), 0),
        task("after", &[]),
    ];
    let mut drive = Drive::new(policy(), steps);
    assert_eq!(drive.create(json!({})).unwrap(), "loop Some(2); offer a[0]; offer a[1]");
    assert_eq!(drive.done("a[1]"), "offer b[1]");
    assert_eq!(drive.done("b[1]"), "");
    assert_eq!(drive.done("a[0]"), "offer b[0]");
    assert_eq!(drive.done("b[0]"), "offer after");
    assert_eq!(drive.done("after"), "completed");
}

#[test]
fn a_loop_over_a_body_collects_the_outputs_of_its_leaves() {
    let mut each = region("each", count(3), 2, &[1, 4]);
    each.collect = true;
    let mut choice = guarded("a", vec![arc(2, "steps.a.big"), arc(3, "not steps.a.big")]);
    choice.region = Some(StepId(0));
    let mut after = guarded("after", vec![]);
    after.work = Work::Pure { output: Some(template(json!("{{ each.results }}"))), patch: Vec::new() };
    let mut failing = member(task("small", &[]), 0);
    failing.retry = Retry::default();
    let mut drive = Drive::started(policy(), vec![each, choice, member(task("big", &[]), 0), failing, after]);
    drive.done_with("a[0]", json!({ "big": true }));
    drive.done_with("big[0]", json!({ "n": 1 }));
    drive.done_with("a[1]", json!({ "big": false }));
    drive.done_with("small[1]", json!({ "n": 2 }));
    drive.done_with("a[2]", json!({ "big": true }));
    assert_eq!(drive.done_with("big[2]", json!({ "n": 3 })), "completed");
    let given = drive.journal.iter().rev().find_map(|record| match &record.event {
        Event::Done { output, .. } => Some((**output).clone()),
        _ => None,
    });
    assert_eq!(given, Some(json!([{ "n": 1 }, { "n": 2 }, { "n": 3 }])));
}

#[test]
fn a_definition_may_call_inputs_and_outputs_by_other_names() {
    let names = [("inputs".to_owned(), Root::Inputs), ("nodes".to_owned(), Root::Outputs)];
    let named = Policy { names: names.into(), ..policy() };
    let arcs = vec![arc(1, "nodes['a-1'].output.n == inputs.n"), arc(2, "nodes['a-1'].output.n != inputs.n")];
    let mut all = task("b", &[]);
    all.condition = Some(expr("nodes | length == 1 and inputs | length == 1"));
    let mut drive = Drive::new(named, vec![guarded("a-1", arcs), all, task("c", &[])]);
    drive.create(json!({ "n": 3 })).unwrap();
    assert_eq!(drive.done_with("a-1", json!({ "n": 3 })), "skip c (NotTaken); offer b");
}

#[test]
fn loops_nest_and_each_iteration_keeps_its_own_joins() {
    let steps = vec![
        region("outer", count(2), 1, &[1]),
        member(region("inner", count(2), 2, &[2]), 0),
        member(task("x", &[]), 1),
    ];
    let mut drive = Drive::new(policy(), steps);
    assert_eq!(drive.create(json!({})).unwrap(), "loop Some(2); loop Some(2); offer x[0,0]; offer x[0,1]");
    assert_eq!(
        (drive.done("x[0,0]"), drive.done("x[0,1]")),
        (String::new(), "loop Some(2); offer x[1,0]; offer x[1,1]".into())
    );
    assert_eq!((drive.done("x[1,1]"), drive.done("x[1,0]")), (String::new(), "completed".into()));
}

#[test]
fn a_failed_step_fails_its_iteration_and_the_loop_but_not_the_other_iterations() {
    let steps = vec![
        region("each", count(2), 2, &[1, 3]),
        member(task("a", &[2]), 0),
        member(task("b", &[]), 0),
        task("after", &[]),
    ];
    let mut drive = Drive::started(policy(), steps);
    assert_eq!(drive.fail("a[0]", "X"), "a[0] failed (X); skip b[0] (Upstream)");
    drive.done("a[1]");
    assert_eq!(drive.done("b[1]"), "each failed (ITERATION_FAILED); skip after (Upstream); partial");
}

#[test]
fn a_while_loop_sees_the_outputs_of_the_iteration_that_just_ended() {
    let condition = expr("steps.a.more | default(true)");
    let kind = LoopKind::While { condition, check_first: false, max: 9 };
    let mut drive = Drive::new(policy(), vec![region("each", kind, 1, &[1]), member(task("a", &[]), 0)]);
    assert_eq!(drive.create(json!({})).unwrap(), "loop None; offer a[0]");
    assert_eq!(drive.done_with("a[0]", json!({ "more": true })), "offer a[1]");
    assert_eq!(drive.done_with("a[1]", json!({ "more": false })), "completed");
}

#[test]
fn the_condition_of_a_loop_is_evaluated_for_the_next_iteration() {
    for (condition, check_first, runs) in [
        ("iter.index < 3", true, 3),
        ("item < 3", true, 3),
        ("iter.index < 3", false, 3),
        ("iter.index < 0", true, 0),
        ("iter.index < 0", false, 1),
    ] {
        let kind = LoopKind::While { condition: expr(condition), check_first, max: 9 };
        let mut drive = Drive::new(policy(), vec![region("each", kind, 1, &[1]), member(task("a", &[]), 0)]);
        let mut summary = drive.create(json!({})).unwrap();
        for index in 0..runs {
            assert!(summary.ends_with(&format!("offer a[{index}]")), "{condition} {check_first}: {summary}");
            summary = drive.done(&format!("a[{index}]"));
        }
        assert!(summary.ends_with("completed"), "{condition} {check_first}: {summary}");
    }
}

#[test]
fn a_while_loop_over_its_limit_fails_and_break_ends_a_loop_early() {
    let kind = LoopKind::While { condition: expr("true"), check_first: true, max: 2 };
    let mut drive = Drive::started(policy(), vec![region("each", kind, 1, &[1]), member(task("a", &[]), 0)]);
    drive.done("a[0]");
    assert_eq!(drive.done("a[1]"), "each failed (LIMIT_EXCEEDED); partial");
    let mut repeat = region("each", count(5), 1, &[1]);
    repeat.repeat.as_mut().unwrap().break_when = Some(expr("iter.index == 1"));
    let mut drive = Drive::started(policy(), vec![repeat, member(task("a", &[]), 0)]);
    assert_eq!((drive.done("a[0]"), drive.done("a[1]")), ("offer a[1]".into(), "completed".into()));
}

#[test]
fn a_guard_in_a_body_reads_the_item_which_is_loaded_by_need() {
    let items = template(json!("{{ workload.list }}"));
    let steps = vec![
        region("each", LoopKind::ForEach { items }, 2, &[1]),
        member(guarded("a", vec![arc(2, "iter.item.big")]), 0),
        member(task("b", &[]), 0),
    ];
    let mut drive = Drive::new(policy(), steps);
    drive.create(json!({ "list": [{ "big": false }, { "big": true }] })).unwrap();
    assert_eq!(drive.done("a[0]"), "skip b[0] (NotTaken)");
    assert_eq!(drive.done("a[1]"), "offer b[1]");
}

#[test]
fn wfl_10_retry_from_a_step_repeats_it_and_its_descendants_and_reuses_the_rest() {
    let steps = vec![task("a", &[1, 2]), task("b", &[3]), task("c", &[3]), task("d", &[])];
    let mut drive = Drive::started(policy(), steps);
    drive.done_with("a", json!({ "n": 1 }));
    drive.done("b");
    drive.fail("c", "X");
    let retry = |from: Option<&str>| {
        let from = from.map(|name| drive.net.find(name).unwrap());
        drive.retry(from.map(RetryPoint::Step)).unwrap()
    };
    let (mut again, summary) = retry(Some("b"));
    assert_eq!(summary, "offer b; offer c", "c did not complete either");
    assert_eq!(
        (again.done("b"), again.done("c"), again.done("d")),
        (String::new(), "offer d".into(), "completed".into())
    );
    let (_, summary) = retry(Some("a"));
    assert_eq!(summary, "offer a");
}

#[test]
fn wfl_26_resume_repeats_only_steps_that_did_not_complete() {
    let mut drive = Drive::started(fail_fast(), vec![task("a", &[1]), task("b", &[2]), task("c", &[])]);
    drive.done_with("a", json!({ "n": 1 }));
    assert_eq!(
        drive.retry(None).err().unwrap().to_string(),
        "not possible while the execution is running: it has not ended"
    );
    drive.fail("b", "X");
    assert_eq!(drive.kept(), ["a"]);
    let unknown = drive.retry(Some(RetryPoint::Step(StepId(9)))).err();
    assert_eq!(unknown, Some(Rejected::UnknownStep(StepId(9))));
}

#[test]
fn wfl_27_a_user_an_approval_or_an_agent_pauses_an_execution() {
    let mut drive = Drive::started(
        policy(),
        vec![step("ok", Work::Approval { deadline_ms: None, asks: None }, &[1]), task("a", &[])],
    );
    assert_eq!(drive.state.phase(), Phase::Paused);
    assert!(drive.send(Input::Resume { by: "u".into() }).is_err(), "a resume completes no approval");
    let (run, fence) = (drive.firing("ok"), drive.fence("ok"));
    let note = ManualNote { outcome: ManualOutcome::Succeeded, actor: "ada".into(), ..ManualNote::default() };
    let summary = drive.send(Input::Complete { run, fence, note: Box::new(note), seen: None }).unwrap();
    assert_eq!(summary, "resumed; offer a");
    assert_eq!(drive.send(Input::Hold { by: "u".into(), reason: String::new() }).unwrap(), "paused");
    assert_eq!(drive.done("a"), "", "what is held does not end by itself");
    assert_eq!(drive.send(Input::Resume { by: "u".into() }).unwrap(), "resumed; completed");
}

#[test]
fn a_delay_is_a_durable_timer_and_holds_no_slot() {
    let one = Policy { max_parallel: Some(1), ..policy() };
    let mut drive = Drive::new(
        one,
        vec![step("nap", Work::Delay { ms: template(json!("{{ workload.ms }}")) }, &[]), task("a", &[])],
    );
    assert_eq!(drive.create(json!({ "ms": 700 })).unwrap(), "sleep nap until 700; offer a");
    assert_eq!(drive.done("a"), "");
    assert_eq!((drive.ring().unwrap(), drive.now), ("completed".into(), 700));
}

fn with_child(attempts_max: u32) -> Drive {
    let (definition, inputs) = (template(json!("sub")), template(json!({ "n": "{{ workload.n }}" })));
    let mut parent = step("sub", Work::Child { definition, inputs }, &[1]);
    parent.retry = Retry { attempts_max, initial_ms: 10, ..Retry::default() };
    let mut drive = Drive::new(policy(), vec![parent, task("a", &[])]);
    drive.create(json!({ "n": 5 })).unwrap();
    drive
}

fn child(drive: &Drive) -> (RunId, Fence, ExecutionId) {
    let run = drive.firing("sub");
    match drive.state.run(run).unwrap().state {
        RunState::Child { fence, child, .. } => (run, fence, child),
        _ => panic!("no child is open"),
    }
}

fn end_child(drive: &mut Drive, outcome: Outcome) -> Result<String, Rejected> {
    let (run, fence, child) = child(drive);
    let failure = (outcome == Outcome::Failed).then(|| failure("SERVICE_UNAVAILABLE"));
    let result = ChildResult { outcome, output: Arc::new(json!({ "ok": 1 })), failure };
    drive.send(Input::ChildEnded { run, fence, child, result })
}

#[test]
fn the_id_of_a_child_is_derived_from_its_parent_and_its_end_is_the_end_of_the_step() {
    let mut drive = with_child(1);
    let (run, fence, id) = child(&drive);
    assert_eq!(child(&with_child(1)).2, id);
    let started = drive.journal.iter().find_map(|record| match &record.event {
        Event::ChildStarted { inputs, .. } => Some(inputs.clone()),
        _ => None,
    });
    assert_eq!(*started.unwrap(), json!({ "n": 5 }));
    assert_eq!(end_child(&mut drive, Outcome::Completed).unwrap(), "offer a");
    let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(Value::Null), failure: None };
    let again = drive.send(Input::ChildEnded { run, fence, child: id, result });
    assert_eq!(again, Ok(String::new()), "mail that comes twice changes nothing");
}

#[test]
fn a_failed_child_is_a_failed_attempt_and_a_cancelled_one_fails_for_good() {
    let mut drive = with_child(2);
    let first = child(&drive).2;
    assert_eq!(end_child(&mut drive, Outcome::Failed).unwrap(), "retry sub at 10");
    assert_eq!(drive.ring().unwrap(), "child of sub #2");
    assert_ne!(child(&drive).2, first, "every attempt is another execution");
    assert_eq!(
        end_child(&mut drive, Outcome::Cancelled).unwrap(),
        "sub failed (CANCELLED); skip a (Upstream); failed"
    );
}

#[test]
fn a_cancel_stops_children_and_nesting_is_limited() {
    let mut drive = with_child(1);
    assert_eq!(drive.cancel(Cancel::default()).unwrap(), "stop 0+1; clear 1+0; cancelled");
    let (definition, inputs) = (template(json!("sub")), template(json!({})));
    let mut drive = Drive::new(policy(), vec![step("sub", Work::Child { definition, inputs }, &[])]);
    let deep = |depth| Input::Create(Box::new(Create { depth, ..Create::new(ExecutionId(7), json!({})) }));
    assert_eq!(drive.send(deep(16)).unwrap(), "sub failed (LIMIT_EXCEEDED); failed");
    let mut drive = Drive::new(policy(), vec![task("a", &[])]);
    assert!(matches!(drive.send(deep(17)), Err(Rejected::Malformed(_))));
}

fn with_agent() -> Drive {
    let mut tool = task("tool", &[]);
    tool.on_demand = true;
    Drive::started(policy(), vec![task("agent", &[1]), task("after", &[]), tool])
}

fn ask(drive: &mut Drive, call: &str, ask: AgentAsk) -> Result<String, Rejected> {
    let (run, fence) = (drive.firing("agent"), drive.fence("agent"));
    drive.send(Input::Agent { run, fence, call: call.into(), ask })
}

#[test]
fn wfl_21_an_agent_executes_nodes_outside_the_marking_and_a_repeated_call_runs_nothing_again() {
    let mut drive = with_agent();
    let execute = || AgentAsk::Execute { step: StepId(2), args: Some(Arc::new(json!({ "q": 1 }))) };
    assert_eq!(ask(&mut drive, "c1", execute()).unwrap(), "offer tool");
    assert_eq!(ask(&mut drive, "c1", execute()).unwrap(), "", "recovered, it asks the same again");
    assert_eq!(ask(&mut drive, "c2", execute()).unwrap(), "offer tool");
    assert_eq!(drive.fail("tool", "X"), "tool failed (X)", "the agent sees it; nothing else is touched");
    drive.done("tool");
    assert_eq!(drive.done("agent"), "offer after");
    assert_eq!(drive.done("after"), "completed");
    let decided =
        drive.journal.iter().filter(|record| matches!(record.event, Event::AgentDecided { .. })).count();
    assert_eq!(decided, 2);
}

#[test]
fn wfl_21_an_agent_that_waits_for_its_tools_holds_no_slot() {
    let mut tool = task("tool", &[]);
    tool.on_demand = true;
    let one = Policy { max_parallel: Some(1), ..policy() };
    let mut drive = Drive::started(one, vec![task("agent", &[]), task("other", &[]), tool]);
    let execute = || AgentAsk::Execute { step: StepId(2), args: None };
    assert_eq!(ask(&mut drive, "c1", execute()).unwrap(), "offer other", "it was there first");
    assert_eq!(ask(&mut drive, "c2", execute()).unwrap(), "", "the place is taken");
    assert_eq!(drive.done("other"), "offer tool");
    let newest = drive.firing("tool");
    let oldest = *drive.state.runs.iter().find(|(_, run)| run.step == StepId(2)).unwrap().0;
    let fence = drive.state.run(oldest).unwrap().fence.unwrap();
    let result = WorkResult::Done { output: Arc::new(json!(1)) };
    let report =
        Report { run: oldest, fence, result, patch: Patch::new(), times: None, metadata: None, cursor: None };
    assert_eq!(drive.send(Input::Report(Box::new(report))).unwrap(), "offer tool");
    assert_eq!(drive.firing("tool"), newest);
    assert_eq!(drive.done("tool"), "");
    assert_eq!(drive.done("agent"), "completed");
}

#[test]
fn wfl_21_another_attempt_resumes_at_the_checkpoint_only_if_the_policy_allows_it() {
    for resumes in [true, false] {
        let mut step = task("a", &[]);
        step.retry = Retry { attempts_max: 3, initial_ms: 10, resumes, ..Retry::default() };
        let mut drive = Drive::started(policy(), vec![step]);
        let fail = |drive: &mut Drive, cursor: Option<&str>| {
            let (run, fence) = (drive.firing("a"), drive.fence("a"));
            let result = WorkResult::Failed(failure("SERVICE_UNAVAILABLE"));
            let cursor = cursor.map(|at| Arc::new(json!(at)));
            let (patch, times, metadata) = (Patch::new(), None, None);
            let report = Report { run, fence, result, patch, times, metadata, cursor };
            drive.send(Input::Report(Box::new(report))).unwrap();
            (resume_point(drive), drive.ring().unwrap())
        };
        let kept = resumes.then(|| json!("halfway"));
        assert_eq!(fail(&mut drive, Some("halfway")), (kept.clone(), "offer a #2".into()));
        assert_eq!(fail(&mut drive, None), (kept, "offer a #3".into()), "an attempt without a checkpoint");
        assert_eq!(drive.done("a"), "completed");
    }
}

/// Returns the checkpoint that the journal names for the next attempt.
fn resume_point(drive: &Drive) -> Option<Value> {
    let scheduled = drive.journal.iter().rev().find_map(|record| match &record.event {
        Event::RetryScheduled { cursor, .. } => Some(cursor.as_deref().cloned()),
        _ => None,
    });
    scheduled.expect("a retry is scheduled")
}

#[test]
fn wfl_21_an_agent_skips_pauses_and_fails() {
    let mut drive = with_agent();
    let skip = AgentAsk::Skip { step: StepId(2), reason: "not needed".into() };
    ask(&mut drive, "c1", skip).unwrap();
    let execute = AgentAsk::Execute { step: StepId(2), args: None };
    assert!(matches!(ask(&mut drive, "c2", execute), Err(Rejected::Conflict { .. })));
    assert_eq!(ask(&mut drive, "c3", AgentAsk::Pause { reason: "look".into() }).unwrap(), "paused");
    drive.send(Input::Resume { by: "u".into() }).unwrap();
    let summary = ask(&mut drive, "c4", AgentAsk::Fail { failure: failure("NO_WAY") }).unwrap();
    assert_eq!(summary, "agent failed (NO_WAY); clear 0+1; failed");
}

#[test]
fn an_agent_may_call_only_steps_that_are_connected_to_it() {
    let mut drive = with_agent();
    let ask_for = |step| AgentAsk::Execute { step: StepId(step), args: None };
    assert!(matches!(ask(&mut drive, "c", ask_for(1)), Err(Rejected::Malformed(_))));
    assert_eq!(ask(&mut drive, "c", ask_for(9)), Err(Rejected::UnknownStep(StepId(9))));
}

#[test]
fn max_parallel_counts_children_and_offers_and_lets_the_rest_wait() {
    let two = Policy { max_parallel: Some(2), ..policy() };
    let mut drive = Drive::new(two, (0..4).map(|n| task(&format!("s{n}"), &[])).collect());
    assert_eq!(drive.create(json!({})).unwrap(), "offer s0; offer s1");
    assert_eq!(drive.done("s1"), "offer s2");
    assert_eq!(drive.lose("s0", true).unwrap(), "offer s0", "the lost one is offered again before the next");
}

#[test]
fn a_third_loss_of_a_started_step_fails_it() {
    let mut drive = Drive::started(policy(), vec![task("a", &[])]);
    assert_eq!(drive.lose("a", false).unwrap(), "offer a");
    assert_eq!(
        (drive.lose("a", true).unwrap(), drive.lose("a", true).unwrap()),
        ("offer a".into(), "offer a".into())
    );
    assert_eq!(drive.lose("a", true).unwrap(), "a failed (WORKER_LOST); failed");
}

#[test]
fn the_first_iterations_see_their_items_in_the_decision_that_starts_the_loop() {
    let items = template(json!("{{ workload.list }}"));
    let mut checked = member(task("a", &[]), 0);
    checked.condition = Some(expr("iter.item.ok and iter.index < 2 and iter.first == (iter.index == 0)"));
    let mut drive = Drive::new(policy(), vec![region("each", LoopKind::ForEach { items }, 3, &[1]), checked]);
    let list = json!({ "list": [{ "ok": true }, { "ok": false }, { "ok": true }] });
    let summary = drive.create(list).unwrap();
    assert_eq!(summary, "loop Some(3); skip a[1] (Condition); skip a[2] (Condition); offer a[0]");
}
