//! The engine over a real store, with a worker that answers from the test.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agents;
mod by_hand;
mod memory;
mod resources;
mod retry;
mod rig;
mod shares;
mod whole;

use rig::{Rig, chain, net, task};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_engine::{EngineAnswer, Refusal, Request};
use windlass_kernel::net::{Join, Policy, Step, Work};
use windlass_kernel::{Cancel, Event, ExecutionId, Input, Outcome, Phase, Rejected};
use windlass_protocol::{self as protocol, Call, Order, Reply, Verdict};

/// Work as a stored net has it.
fn work(stored: Value) -> Work {
    serde_json::from_value(stored).unwrap()
}

const COMPLETED: EngineAnswer = EngineAnswer::Rested(Phase::Ended(Outcome::Completed));

#[test]
fn a_chain_runs_step_by_step_and_each_step_is_one_commit() {
    let rig = Rig::new();
    let id = rig.start("chain", chain(3), json!({ "n": 7 }));
    for step in ["s0", "s1", "s2"] {
        let work = rig.work();
        assert_eq!((work.step.as_str(), work.attempt, &*work.scope.workload), (step, 1, &json!({ "n": 7 })));
        assert_eq!(rig.done(&work, json!({ "from": step })), Verdict::Accepted);
    }
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    assert_eq!(rig.rows(id), 4, "the start and three reports");
}

#[test]
fn work_gets_the_results_it_reads_also_after_a_restart() {
    let mut second = task("b", &[]);
    second.reads = vec![windlass_kernel::StepId(0)];
    let mut rig = Rig::new();
    let id = rig.start("reads", net(Policy::default(), vec![task("a", &[1]), second]), json!({}));
    let work = rig.work();
    rig.done(&work, json!({ "k": 1 }));
    let reads = vec![("a".to_owned(), Arc::new(json!({ "k": 1 })))];
    assert_eq!(rig.work().scope.steps, reads);
    rig.restart();
    let again = rig.work();
    assert_eq!((again.step.as_str(), again.attempt, &again.scope.steps), ("b", 1, &reads));
    rig.done(&again, json!(2));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn what_a_dead_process_had_is_offered_again_under_a_new_fence() {
    let mut rig = Rig::new();
    let id = rig.start("chain", chain(1), json!({}));
    let lost = rig.work();
    rig.restart();
    let again = rig.work();
    assert!(again.unit.fence > lost.unit.fence, "{again:?}");
    assert_eq!(rig.done(&lost, json!(1)), Verdict::Stale);
    assert_eq!(rig.done(&again, json!(2)), Verdict::Accepted);
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    let outputs: Vec<_> =
        rig.events(id).into_iter().filter(|event| matches!(event, Event::Done { .. })).collect();
    assert_eq!(outputs.len(), 1);
}

#[test]
fn a_repeated_report_is_accepted_and_another_answer_is_a_conflict() {
    let mut rig = Rig::new();
    rig.start("chain", chain(2), json!({}));
    let work = rig.work();
    assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted);
    assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted);
    assert_eq!(rig.done(&work, json!(2)), Verdict::Conflict);
    rig.restart();
    assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted, "the journal knows the answer");
}

#[test]
fn offers_wait_in_the_queue_until_a_slot_is_free() {
    let rig = Rig::with_slots(1);
    let policy = Policy { join: Join::All, ..Policy::default() };
    let id = rig.start("wide", net(policy, (0..5).map(|n| task(&format!("s{n}"), &[])).collect()), json!({}));
    for n in 0..5 {
        let work = rig.work();
        assert_eq!(work.step, format!("s{n}"), "in order");
        assert!(rig.idle(), "one at a time");
        rig.done(&work, json!(n));
    }
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn queued_offers_survive_a_restart_without_counting_as_lost() {
    let mut rig = Rig::with_slots(0);
    let id = rig.start("chain", chain(1), json!({}));
    for _ in 0..5 {
        rig.restart();
    }
    rig.slots = 1;
    rig.restart();
    let work = rig.work();
    rig.done(&work, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn a_thousand_reports_cost_a_few_commits() {
    let rig = Rig::with_slots(2_000);
    let mut steps: Vec<Step> = (0..1_000).map(|n| task(&format!("s{n}"), &[1_000])).collect();
    steps.push(task("join", &[]));
    let id = rig.start("wide", net(Policy { join: Join::All, ..Policy::default() }, steps), json!({}));
    let all: Vec<_> = (0..1_000).map(|_| rig.work()).collect();
    rig.done_all(&all);
    let join = rig.work();
    assert_eq!(join.step, "join");
    rig.done(&join, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    assert!(rig.rows(id) < 500, "{} rows for 1,001 reports", rig.rows(id));
}

#[test]
fn cancel_stops_the_worker_and_its_late_report_changes_nothing() {
    let rig = Rig::with_slots(1);
    let id = rig.start("chain", chain(2), json!({}));
    let work = rig.work();
    let cancel = Request::Give {
        audit: None,
        execution: id,
        input: Input::Cancel(Cancel { by: "u".into(), ..Cancel::default() }),
    };
    assert_eq!(rig.call(cancel), EngineAnswer::Accepted);
    let Order::Stop { unit, .. } = rig.order() else { panic!("the worker gets an order to stop") };
    assert_eq!(unit, work.unit);
    assert_eq!(rig.stops(), 1, "the obligation is a row until the worker answers");
    let other = rig.start("other", chain(1), json!({}));
    assert!(rig.idle(), "the slot is not free before the process is gone");
    assert_eq!(rig.report(&work, protocol::Outcome::Stopped), Verdict::Stale);
    let next = rig.work();
    assert_eq!(next.unit.execution, other.0);
    rig.done(&next, json!(1));
    assert_eq!(rig.call(Request::Await(other)), COMPLETED);
    assert_eq!(rig.stops(), 0);
    assert_eq!(rig.call(Request::Await(id)), EngineAnswer::Rested(Phase::Ended(Outcome::Cancelled)));
}

#[test]
fn timers_fire_by_themselves_and_survive_a_restart() {
    let delay = work(json!({ "delay": { "ms": 30 } }));
    let mut rig = Rig::new();
    let id = rig.start("delay", net(Policy::default(), vec![Step::new("d", delay)]), json!({}));
    rig.restart();
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn a_held_execution_keeps_its_timers_until_it_is_released() {
    let delay = work(json!({ "delay": { "ms": 1 } }));
    let mut rig = Rig::new();
    let id =
        rig.start("held", net(Policy::default(), vec![task("a", &[1]), Step::new("d", delay)]), json!({}));
    let work = rig.work();
    let hold = Input::Hold { by: "u".into(), reason: "look".into() };
    assert_eq!(rig.call(Request::Give { audit: None, execution: id, input: hold }), EngineAnswer::Accepted);
    rig.done(&work, json!(1));
    rig.restart();
    let resume = Input::Resume { by: "u".into() };
    assert_eq!(rig.call(Request::Give { audit: None, execution: id, input: resume }), EngineAnswer::Accepted);
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn a_child_runs_and_its_end_is_its_parents_step() {
    let rig = Rig::new();
    rig.define("child", chain(1));
    let child = work(json!({ "child": { "definition": { "path": "child" }, "inputs": { "n": 1 } } }));
    let id = rig.start("parent", net(Policy::default(), vec![Step::new("c", child)]), json!({}));
    let work = rig.work();
    assert_ne!(work.unit.execution, id.0);
    assert_eq!(*work.scope.workload, json!({ "n": 1 }));
    rig.done(&work, json!({ "answer": 42 }));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    let output = rig.events(id).into_iter().find_map(|event| match event {
        Event::Done { output, .. } => Some(output),
        _ => None,
    });
    assert_eq!(output.as_deref(), Some(&json!({ "answer": 42 })));
}

#[test]
fn a_child_of_an_unknown_definition_fails_its_step_with_the_name() {
    let child = work(json!({ "child": { "definition": { "path": "nowhere" }, "inputs": {} } }));
    let rig = Rig::new();
    let id = rig.start("parent", net(Policy::default(), vec![Step::new("c", child)]), json!({}));
    assert_eq!(rig.call(Request::Await(id)), EngineAnswer::Rested(Phase::Ended(Outcome::Failed)));
    let is_recorded = rig.events(id).iter().any(|event| match event {
        Event::Failed { failure, .. } => failure.message.contains("`nowhere`"),
        _ => false,
    });
    assert!(is_recorded, "{:?}", rig.events(id));
}

#[test]
fn a_cancelled_parent_cancels_its_child() {
    let rig = Rig::new();
    rig.define("child", chain(1));
    let child = work(json!({ "child": { "definition": { "path": "child" }, "inputs": {} } }));
    let id = rig.start("parent", net(Policy::default(), vec![Step::new("c", child)]), json!({}));
    let work = rig.work();
    let cancel = Input::Cancel(Cancel { by: "u".into(), ..Cancel::default() });
    assert_eq!(rig.call(Request::Give { audit: None, execution: id, input: cancel }), EngineAnswer::Accepted);
    let child = ExecutionId(work.unit.execution);
    assert_eq!(rig.call(Request::Await(child)), EngineAnswer::Rested(Phase::Ended(Outcome::Cancelled)));
    assert!(matches!(rig.order(), Order::Stop { .. }));
}

#[test]
fn the_next_worker_continues_at_the_checkpoint() {
    let mut rig = Rig::new();
    let id = rig.start("chain", chain(1), json!({}));
    let work = rig.work();
    let cursor = Arc::new(json!({ "next": "third" }));
    let checkpoint = protocol::Checkpoint { unit: work.unit, number: 1, cursor: cursor.clone() };
    assert_eq!(rig.send(Call::Checkpoint(checkpoint.clone())), Reply::Verdict(Verdict::Accepted));
    rig.restart();
    let again = rig.work();
    assert_eq!(again.cursor, Some(cursor));
    assert_eq!(rig.send(Call::Checkpoint(checkpoint)), Reply::Verdict(Verdict::Stale), "under the old fence");
    rig.done(&again, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn what_does_not_exist_is_refused() {
    let rig = Rig::new();
    let unknown = ExecutionId(5);
    assert_eq!(rig.call(Request::Await(unknown)), EngineAnswer::Refused(Refusal::NoExecution(unknown)));
    let resume = Request::Give { audit: None, execution: unknown, input: Input::Resume { by: "u".into() } };
    assert_eq!(rig.call(resume), EngineAnswer::Refused(Refusal::NoExecution(unknown)));
}

#[test]
fn an_ended_execution_refuses_what_comes_too_late() {
    let rig = Rig::new();
    let id = rig.start("chain", chain(1), json!({}));
    let work = rig.work();
    rig.done(&work, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    let cancel = Request::Give { audit: None, execution: id, input: Input::Cancel(Cancel::default()) };
    let ended = Refusal::Rejected(Rejected::Ended(Outcome::Completed));
    assert_eq!(rig.call(cancel), EngineAnswer::Refused(ended));
}

#[test]
fn more_firings_than_one_commit_takes_go_on_after_a_restart() {
    let mut policy = Policy { join: Join::All, ..Policy::default() };
    policy.limits.firings_per_decide = 10;
    let mut steps: Vec<Step> = (0..95).map(|n| Step::new(format!("s{n}"), Work::noop())).collect();
    steps.push(task("last", &[]));
    for step in &mut steps[..95] {
        step.router.arcs = vec![windlass_kernel::net::JoinArc::to(windlass_kernel::StepId(95))];
    }
    let rig = Rig::new();
    let id = rig.start("pure", net(policy, steps), json!({}));
    let work = rig.work();
    assert_eq!(work.step, "last");
    assert!(rig.rows(id) >= 9, "{} rows", rig.rows(id));
    rig.done(&work, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn a_store_that_fails_ends_the_engine_without_answers() {
    let rig = Rig::failing_after(2);
    rig.define_only("chain", chain(1));
    let answers: Vec<_> = (0..5).map(|_| rig.ask_start()).collect();
    assert!(answers.iter().any(Option::is_none), "{answers:?}");
    let fatal = rig.fatal();
    assert!(fatal.contains("disk is full"), "{fatal}");
    assert_eq!(rig.fatal(), fatal, "a later receiver gets it, too");
}

#[test]
fn a_worker_that_leaves_returns_its_work_and_no_loss_is_counted() {
    let mut rig = Rig::new();
    let id = rig.start("chain", chain(1), json!({}));
    for _ in 0..5 {
        let work = rig.work();
        rig.leave();
        let again = rig.work();
        assert!(again.unit.fence > work.unit.fence);
        rig.restart_in_order();
    }
    let work = rig.work();
    rig.done(&work, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

/// Work for a worker names only its own step. The engine decides about routing and the end, from the report alone.
#[test]
fn pbk_22_a_worker_only_reports_and_the_engine_alone_routes_schedules_and_completes() {
    let mut choose = task("choose", &[]);
    let arcs = json!([{ "to": 1, "guard": "choose.n > 5" }, { "to": 2 }]);
    choose.router.arcs = serde_json::from_value(arcs).unwrap();
    choose.router.mode = windlass_kernel::net::RouterMode::Exclusive;
    let policy = Policy { join: Join::Each, entry: Some(windlass_kernel::StepId(0)), ..Policy::default() };
    let steps = vec![choose, task("great", &[]), task("small", &[])];
    let mut rig = Rig::new();
    let id = rig.start("choice", net(policy, steps), json!({}));
    let first = rig.work();
    let text = serde_json::to_string(&first).unwrap();
    assert!(!text.contains("great") && !text.contains("small") && !text.contains("arcs"), "{text}");
    assert!(rig.idle(), "nothing is scheduled before the report");
    rig.done(&first, json!({ "n": 7 }));
    // The report is all that is needed: without any worker the engine has routed, and it is on disk.
    rig.restart();
    let events = rig.events(id);
    let routed = |event: &Event| matches!(event, Event::Routed { emitted, .. } if emitted.len() == 1);
    assert_eq!(events.iter().filter(|event| routed(event)).count(), 1);
    let second = rig.work();
    assert_eq!(second.step, "great");
    rig.done(&second, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED, "no worker said that it is over");
}

#[test]
fn a_worker_of_another_version_is_refused() {
    let register = protocol::Register { protocol: 0, worker: "old".into(), slots: 1 };
    let Reply::Refused(failure) = Rig::new().send(Call::Register(register)) else { panic!("it is refused") };
    assert_eq!(failure.code, "PROTOCOL_MISMATCH");
    assert!(failure.message.contains("version 0"), "{}", failure.message);
}
