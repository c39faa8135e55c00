//! Executions that one worker takes as a whole.

use crate::rig::{Rig, net, start, task};
use serde_json::json;
use std::sync::Arc;
use windlass_engine::{Config, EngineAnswer, Request};
use windlass_kernel::net::{Affinity, FailureMode, Finish, Join, Policy, Recovery};
use windlass_kernel::{Cancel, Event, ExecutionId, Input, Net, Outcome as End, Phase};
use windlass_protocol::{Call, Checkpoint, Failure, Order, Outcome, Reply, Unit, Verdict, Work};
use windlass_store::{Reader, WHOLE};

pub fn plan(steps: u32) -> Arc<Net> {
    let policy = Policy {
        join: Join::All,
        failure: FailureMode::Continue,
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        finish: Finish::Uploads,
        max_parallel: Some(10),
        ..Policy::default()
    };
    net(policy, (0..steps).map(|number| task(&format!("s{number}"), &[])).collect())
}

fn ready(rig: &Rig, whole: &Work) -> Verdict {
    let checkpoint = Checkpoint { unit: whole.unit, number: 1, cursor: Arc::new(json!({})) };
    match rig.send(Call::Checkpoint(checkpoint)) {
        Reply::Verdict(verdict) => verdict,
        other => panic!("{other:?}"),
    }
}

/// The worker takes the execution and is ready for its steps.
fn take(rig: &Rig) -> Work {
    let whole = rig.work();
    assert!(whole.unit.is_whole(), "{whole:?}");
    assert_eq!(ready(rig, &whole), Verdict::Accepted);
    whole
}

fn works(rig: &Rig, count: usize) -> Vec<Work> {
    (0..count).map(|_| rig.work()).collect()
}

fn phase(rig: &Rig, id: ExecutionId) -> Phase {
    rig.reader().load(id).unwrap().unwrap().state.phase()
}

fn end(rig: &Rig, id: ExecutionId) -> Phase {
    match rig.call(Request::Await(id)) {
        EngineAnswer::Rested(phase) => phase,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_execution_waits_for_a_worker_and_takes_one_of_its_slots_for_all_its_steps() {
    let rig = Rig::with_slots(1);
    let first = rig.start("plan", plan(11), json!({}));
    let second = rig.start("plan", plan(11), json!({}));
    let whole = rig.work();
    assert_eq!((phase(&rig, first), phase(&rig, second)), (Phase::Starting, Phase::Queued));
    assert!(rig.idle(), "no step begins before the worker is ready");
    assert_eq!(ready(&rig, &whole), Verdict::Accepted);
    let running = works(&rig, 10);
    assert!(rig.idle(), "ten at a time, and no other execution");
    assert!(running.iter().all(|work| work.unit.execution == first.0));
    assert_eq!(ready(&rig, &whole), Verdict::Accepted, "said again, it changes nothing");
    assert_eq!(rig.done(&running[0], json!(1)), Verdict::Accepted);
    let last = rig.work();
    rig.done_all(&running[1..]);
    rig.done(&last, json!(1));
    assert_eq!(end(&rig, first), Phase::Ended(End::Completed));
    let Order::Stop { unit, .. } = rig.order() else { panic!("the worker lets go of it") };
    assert_eq!(unit, whole.unit);
    assert_eq!((rig.stops(), phase(&rig, second)), (1, Phase::Queued), "its slot is taken until then");
    assert_eq!(rig.report(&whole, Outcome::Stopped), Verdict::Accepted);
    let whole = take(&rig);
    assert_eq!((whole.unit.execution, rig.stops()), (second.0, 0));
    let offers = rig.reader().offers_of(second, windlass_kernel::RunId(WHOLE.0 - 1), 9).unwrap();
    assert!(offers.iter().any(|offer| offer.run == WHOLE && offer.lease.is_some()), "the lease is a row");
}

#[test]
fn a_lost_worker_restarts_the_execution_at_another_one_and_its_reports_change_nothing() {
    let mut rig = Rig::with_slots(1);
    let id = rig.start("plan", plan(2), json!({}));
    let old = take(&rig);
    let steps = works(&rig, 2);
    rig.done(&steps[0], json!("old"));
    rig.leave();
    let whole = take(&rig);
    assert_eq!((whole.unit.generation(), whole.attempt, whole.losses), (2, 1, 1), "it begins a second time");
    let again = works(&rig, 2);
    assert_eq!(rig.done(&steps[1], json!("old")), Verdict::Stale);
    assert_eq!(rig.report(&old, Outcome::Stopped), Verdict::Stale);
    assert_eq!(ready(&rig, &old), Verdict::Stale);
    rig.done_all(&again);
    assert_eq!(end(&rig, id), Phase::Ended(End::Completed));
    let done = |event: &&Event| matches!(event, Event::Done { .. });
    assert_eq!(rig.events(id).iter().filter(done).count(), 3, "the step that was done ran again");
}

#[test]
fn an_execution_is_failed_by_the_fifth_lost_worker() {
    let rig = Rig::with_slots(1);
    let id = rig.start("plan", plan(1), json!({}));
    let mut whole = rig.work();
    for generation in 1..=5 {
        assert_eq!((whole.unit.generation(), ready(&rig, &whole)), (generation, Verdict::Accepted));
        let step = rig.work();
        assert_eq!(rig.report(&whole, Outcome::Stopped), Verdict::Accepted, "its lease seemed to end");
        let orders = if generation < 5 { vec![rig.order(), rig.order()] } else { vec![rig.order()] };
        for order in orders {
            match order {
                Order::Run(again) => whole = *again,
                Order::Stop { unit, .. } => assert_eq!(unit, step.unit),
                Order::Unknown => panic!("the session is open"),
            }
        }
        rig.report(&step, Outcome::Stopped);
    }
    assert_eq!(end(&rig, id), Phase::Ended(End::Failed));
    assert!(rig.idle());
}

#[test]
fn work_that_is_given_back_or_that_never_began_counts_as_no_loss() {
    let mut rig = Rig::with_slots(1);
    let id = rig.start("plan", plan(1), json!({}));
    for _ in 0..6 {
        take(&rig);
        rig.work();
        rig.leave();
    }
    for _ in 0..6 {
        take(&rig);
        rig.work();
        rig.restart();
    }
    for _ in 0..6 {
        let whole = rig.work();
        assert_eq!(rig.report(&whole, Outcome::Stopped), Verdict::Accepted, "it was not ready yet");
    }
    let whole = take(&rig);
    assert_eq!(whole.unit.generation(), 19);
    rig.done(&rig.work(), json!(1));
    assert_eq!(end(&rig, id), Phase::Ended(End::Completed));
}

#[test]
fn a_restart_of_the_engine_takes_up_executions_that_wait_and_restarts_those_that_ran() {
    let mut rig = Rig::with_slots(1);
    let running = rig.start("plan", plan(1), json!({}));
    let waiting = rig.start("plan", plan(1), json!({}));
    take(&rig);
    rig.work();
    rig.restart();
    let mut taken = Vec::new();
    for _ in 0..2 {
        let whole = rig.work();
        assert!(whole.unit.is_whole());
        taken.push((whole.unit.execution, whole.unit.generation()));
        ready(&rig, &whole);
        let step = rig.work();
        assert_eq!(step.unit.generation(), whole.unit.generation());
        rig.done(&step, json!(1));
        assert!(matches!(rig.order(), Order::Stop { .. }));
        rig.report(&whole, Outcome::Stopped);
    }
    taken.sort_unstable();
    let mut expected = [(running.0, 2), (waiting.0, 1)];
    expected.sort_unstable();
    assert_eq!(taken, expected);
}

#[test]
fn a_worker_that_cannot_begin_fails_the_execution_and_one_that_drops_it_restarts_it() {
    let rig = Rig::with_slots(1);
    let failed = rig.start("plan", plan(1), json!({}));
    let whole = rig.work();
    let failure = Failure::of_code("RESOURCE_NOT_FOUND", "there is no secret `token`");
    assert_eq!(rig.report(&whole, Outcome::Failed(failure)), Verdict::Accepted);
    assert_eq!(end(&rig, failed), Phase::Ended(End::Failed));
    let restarted = rig.start("plan", plan(1), json!({}));
    let whole = take(&rig);
    rig.work();
    assert_eq!(rig.report(&whole, Outcome::Stopped), Verdict::Accepted);
    // Its step is to be stopped, and the execution begins again.
    let mut orders = [rig.order(), rig.order()];
    orders.sort_by_key(|order| matches!(order, Order::Run(_)));
    let [Order::Stop { .. }, Order::Run(again)] = &orders else { panic!("{orders:?}") };
    assert!(again.unit.is_whole() && again.unit.generation() == 2);
    assert_eq!(again.unit.execution, restarted.0);
}

#[test]
fn a_cancelled_execution_leaves_the_queue_and_its_worker() {
    let rig = Rig::with_slots(1);
    let running = rig.start("plan", plan(1), json!({}));
    let waiting = rig.start("plan", plan(1), json!({}));
    let whole = take(&rig);
    let step = rig.work();
    for execution in [waiting, running] {
        let cancel = Cancel { by: "me".into(), reason: String::new(), force: false, compensate: false };
        let input = Input::Cancel(cancel);
        assert_eq!(rig.call(Request::Give { execution, input, audit: None }), EngineAnswer::Accepted);
    }
    let stopped: Vec<Unit> = (0..2)
        .map(|_| match rig.order() {
            Order::Stop { unit, .. } => unit,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(stopped.contains(&whole.unit) && stopped.contains(&step.unit));
    rig.report(&step, Outcome::Stopped);
    rig.report(&whole, Outcome::Stopped);
    let next = rig.start("plan", plan(1), json!({}));
    assert_eq!(take(&rig).unit.execution, next.0, "the slot is free for others");
    assert_eq!(rig.stops(), 0);
}

#[test]
fn workers_and_their_whole_executions_leave_slots_to_other_work() {
    let rig = Rig::with_slots(2);
    rig.start("plan", plan(10), json!({}));
    take(&rig);
    works(&rig, 10);
    let other = rig.start("other", crate::rig::chain(1), json!({}));
    let work = rig.work();
    assert_eq!(work.unit.execution, other.0, "steps inside take no slot");
    let third = rig.define("other", crate::rig::chain(1));
    assert!(matches!(rig.call(Request::Start(Box::new(start(third, json!({}))))), EngineAnswer::Started(_)));
    assert!(rig.idle(), "both slots are taken");
}

/// An engine whose artifacts are uploaded elsewhere.
fn uploading() -> Rig {
    Rig::with_config(Config { seed: 7, uploads_artifacts: true, ..Config::default() }, 1)
}

fn uploaded(rig: &Rig, id: ExecutionId, failure: Option<Failure>) -> EngineAnswer {
    rig.call(Request::Give { execution: id, input: Input::Uploaded { failure }, audit: None })
}

#[test]
fn an_execution_that_waits_for_its_uploads_needs_no_worker() {
    let rig = uploading();
    let first = rig.start("plan", plan(1), json!({}));
    let second = rig.start("plan", plan(1), json!({}));
    let whole = take(&rig);
    rig.done(&rig.work(), json!(1));
    let Order::Stop { unit, .. } = rig.order() else { panic!("the worker lets go of it") };
    assert_eq!((unit, phase(&rig, first)), (whole.unit, Phase::Finalizing));
    assert_eq!(rig.report(&whole, Outcome::Stopped), Verdict::Accepted);
    let next = take(&rig);
    assert_eq!(next.unit.execution, second.0, "its slot is free");
    assert_eq!(phase(&rig, first), Phase::Finalizing);
    assert_eq!(uploaded(&rig, first, None), EngineAnswer::Accepted);
    assert_eq!(end(&rig, first), Phase::Ended(End::Completed));
    assert!(matches!(uploaded(&rig, first, None), EngineAnswer::Refused(_)), "it has ended");
    rig.done(&rig.work(), json!(1));
    assert!(matches!(rig.order(), Order::Stop { .. }));
    let down =
        Failure::of_class(windlass_protocol::ErrorClass::Transport, "DOWN", "the object store is down");
    assert_eq!(uploaded(&rig, second, Some(down)), EngineAnswer::Accepted);
    assert_eq!(end(&rig, second), Phase::Ended(End::Failed));
}

#[test]
fn the_loss_of_the_worker_of_an_execution_that_waits_for_its_uploads_changes_nothing() {
    let mut rig = uploading();
    let id = rig.start("plan", plan(1), json!({}));
    take(&rig);
    rig.done(&rig.work(), json!(1));
    assert!(matches!(rig.order(), Order::Stop { .. }));
    rig.leave();
    assert!(rig.idle(), "it does not restart");
    assert_eq!(phase(&rig, id), Phase::Finalizing);
    rig.restart();
    assert!(rig.idle());
    assert_eq!(phase(&rig, id), Phase::Finalizing);
    assert_eq!(uploaded(&rig, id, None), EngineAnswer::Accepted);
    assert_eq!(end(&rig, id), Phase::Ended(End::Completed));
    assert_eq!(rig.stops(), 0);
}
