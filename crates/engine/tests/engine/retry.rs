//! Executions done again, over a real store, with a worker that answers from the test (R12).

use crate::rig::{Rig, net, task};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use windlass_engine::{EngineAnswer, NotRetried, Refusal, Request, new_execution_id};
use windlass_kernel::net::{Finish, Join, Policy, RouterMode, Step, Work};
use windlass_kernel::{Cancel, Event, ExecutionId, Input, Millis, Net, Outcome, Phase, Rejected, StepId};
use windlass_protocol::{self as protocol, Verdict};
use windlass_store::{Letter, Mail, Retry, RetryFrom};

const COMPLETED: EngineAnswer = EngineAnswer::Rested(Phase::Ended(Outcome::Completed));
const FAILED: EngineAnswer = EngineAnswer::Rested(Phase::Ended(Outcome::Failed));

fn playbook(finish: Finish) -> Policy {
    Policy { join: Join::Each, entry: Some(StepId(0)), finish, ..Policy::default() }
}

/// `a`, then `b` and `c` side by side; `c` reads what `a` gave.
fn split() -> Arc<Net> {
    let mut a = task("a", &[1, 2]);
    a.router.mode = RouterMode::Inclusive;
    let mut c = task("c", &[]);
    c.reads = vec![StepId(0)];
    net(playbook(Finish::Nothing), vec![a, task("b", &[]), c])
}

fn of(of: ExecutionId) -> Retry {
    Retry { by: "owner".into(), ..Retry::of(of) }
}

fn from(of: ExecutionId, step: &str, firing: Option<u32>) -> Retry {
    Retry { from: Some(RetryFrom { step: step.into(), firing }), ..self::of(of) }
}

/// Each under an id of its own.
fn asked(retry: Retry) -> Request {
    static COUNT: AtomicU64 = AtomicU64::new(1);
    let random = COUNT.fetch_add(1, Ordering::Relaxed);
    Request::Retry { id: new_execution_id(Millis(1), random.into()), retry, net: None, audit: None }
}

fn retried(rig: &Rig, retry: Retry) -> ExecutionId {
    match rig.call(asked(retry)) {
        EngineAnswer::Started(id) => id,
        other => panic!("{other:?}"),
    }
}

fn fail(rig: &Rig, work: &protocol::Work) {
    assert_eq!(rig.report(work, failed_as("validation")), Verdict::Accepted);
}

fn failed_as(class: &str) -> protocol::Outcome {
    let failure = json!({ "class": class, "code": "X", "message": "no" });
    protocol::Outcome::Failed(serde_json::from_value(failure).unwrap())
}

/// The next pieces of work, by the names of their steps.
fn works(rig: &Rig, count: usize) -> Vec<protocol::Work> {
    let mut all: Vec<_> = (0..count).map(|_| rig.work()).collect();
    all.sort_by(|one, other| one.step.cmp(&other.step));
    all
}

fn names(all: &[protocol::Work]) -> Vec<&str> {
    all.iter().map(|work| work.step.as_str()).collect()
}

/// `a` done, `b` failed, `c` done: ended as failed.
fn failed(rig: &Rig) -> ExecutionId {
    let id = rig.start("split", split(), json!({ "n": 1 }));
    rig.done(&rig.work(), json!({ "k": 1 }));
    let all = works(rig, 2);
    fail(rig, &all[0]);
    rig.done(&all[1], json!(1));
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    id
}

#[test]
fn a_retry_runs_what_failed_and_keeps_the_rest() {
    let rig = Rig::new();
    let old = failed(&rig);
    let journal = rig.events(old);
    let new = retried(&rig, of(old));
    let all = works(&rig, 1);
    assert_eq!(names(&all), ["b"], "c completed in another branch");
    assert!(all.iter().all(|work| work.unit.execution == new.0));
    rig.done_all(&all);
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    assert_eq!(rig.events(old), journal, "the old one is as it was");
    assert_eq!(rig.call(Request::Await(old)), FAILED);
}

#[test]
fn a_retry_outlives_a_crash_right_after_its_commit_and_is_made_once() {
    let mut rig = Rig::new();
    let old = failed(&rig);
    let new = retried(&rig, from(old, "c", None));
    let lost = works(&rig, 2);
    rig.restart();
    let again = works(&rig, 2);
    assert_eq!(names(&again), ["b", "c"]);
    assert_eq!(again[1].scope.steps, vec![("a".to_owned(), Arc::new(json!({ "k": 1 })))]);
    assert!(again.iter().zip(&lost).all(|(new, old)| new.unit.fence > old.unit.fence));
    assert_eq!(rig.done(&lost[0], json!(1)), Verdict::Stale);
    rig.done_all(&again);
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    assert!(rig.idle());
}

#[test]
fn a_letter_that_asks_for_a_retry_survives_a_crash_and_is_carried_out_once() {
    let mut rig = Rig::new();
    let old = failed(&rig);
    let new = ExecutionId(77);
    rig.stop();
    let mail = Mail {
        to: new,
        letter: Letter::Retry(Box::new(from(old, "b", None))),
        answered: true,
        at: Millis(0),
    };
    let posted = rig.post(&mail);
    rig.restart();
    assert_eq!(names(&works(&rig, 1)), ["b"]);
    assert_eq!(rig.letter_answer(posted), Some(Ok(())));
    rig.restart();
    let again = works(&rig, 1);
    assert!(again.iter().all(|work| work.unit.execution == new.0));
    rig.done_all(&again);
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    assert!(rig.idle(), "the letter is not read twice");
}

#[test]
fn a_letter_that_cannot_be_carried_out_is_answered_with_the_reason() {
    let mut rig = Rig::new();
    let old = failed(&rig);
    rig.stop();
    let letter = Letter::Retry(Box::new(from(old, "nowhere", None)));
    let mail = Mail { to: ExecutionId(77), letter, answered: true, at: Millis(0) };
    let posted = rig.post(&mail);
    rig.restart();
    let refusal = rig.until_answered(posted).unwrap_err();
    assert!(refusal.contains("no step `nowhere`") && refusal.contains("a, b, c"), "{refusal}");
    let unknown = EngineAnswer::Refused(Refusal::NoExecution(ExecutionId(77)));
    assert_eq!(rig.call(Request::Await(ExecutionId(77))), unknown);
}

#[test]
fn the_firing_is_chosen_by_its_number_or_by_its_failure() {
    let mut again = task("a", &[]);
    again.router.arcs = serde_json::from_value(json!([{ "to": 0, "guard": "a.again" }])).unwrap();
    let rig = Rig::new();
    let id = rig.start("round", net(playbook(Finish::Nothing), vec![again]), json!({}));
    for n in [1, 2] {
        rig.done(&rig.work(), json!({ "again": true, "n": n }));
    }
    fail(&rig, &rig.work());
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    for (number, fired) in [(Some(1), 1), (Some(2), 2), (Some(3), 3), (None, 3)] {
        let new = retried(&rig, from(id, "a", number));
        rig.done(&rig.work(), json!({ "again": false }));
        assert_eq!(rig.call(Request::Await(new)), COMPLETED);
        let count = rig.events(new).iter().filter(|event| matches!(event, Event::Fired { .. })).count();
        assert_eq!(count, fired, "{number:?}");
    }
    let refused = rig.call(asked(from(id, "a", Some(4))));
    let none = NotRetried::NoFiring { step: "a".into(), firing: 4, fired: 3 };
    assert_eq!(refused, EngineAnswer::Refused(none.into()));
}

#[test]
fn what_cannot_be_retried_is_refused_with_the_reason() {
    let rig = Rig::new();
    let finish = Finish::Step(StepId(2));
    let steps = vec![task("a", &[]), task("b", &[]), task("end", &[])];
    let id = rig.start("final", net(playbook(finish), steps), json!({}));
    let check = |retry: Retry, expected: Refusal| {
        assert_eq!(rig.call(asked(retry)), EngineAnswer::Refused(expected));
    };
    let running = Rejected::Conflict { phase: Phase::Running, why: "it has not ended" };
    check(of(id), running.into());
    fail(&rig, &rig.work());
    rig.done(&rig.work(), json!(1));
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    let known = ["a", "b", "end"].map(String::from).to_vec();
    check(from(id, "x", None), NotRetried::NoStep { step: "x".into(), known }.into());
    check(from(id, "b", None), NotRetried::NeverFired { step: "b".into() }.into());
    check(from(id, "end", None), NotRetried::Final { step: "end".into() }.into());
    check(of(ExecutionId(5)), Refusal::NoExecution(ExecutionId(5)));
    let new = retried(&rig, of(id));
    rig.done(&rig.work(), json!(1));
    rig.done(&rig.work(), json!(1));
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    let why = "only a failed, partial or cancelled execution can be retried as a whole; name a step to run a \
               completed one again from there";
    let completed = Rejected::Conflict { phase: Phase::Ended(Outcome::Completed), why };
    check(of(new), completed.into());
}

#[test]
fn a_cancelled_execution_continues_where_it_was_with_other_inputs() {
    let rig = Rig::new();
    let id = rig.start("split", split(), json!({ "n": 1 }));
    rig.done(&rig.work(), json!({ "k": 1 }));
    let all = works(&rig, 2);
    let cancel = Input::Cancel(Cancel { by: "u".into(), ..Cancel::default() });
    assert_eq!(rig.call(Request::Give { audit: None, execution: id, input: cancel }), EngineAnswer::Accepted);
    for _ in &all {
        assert!(matches!(rig.order(), protocol::Order::Stop { .. }));
    }
    let new = retried(&rig, Retry { inputs: Some(Arc::new(json!({ "n": 2 }))), ..of(id) });
    // The stopped ones hold their slots until they say so; there are more.
    let again = works(&rig, 2);
    assert_eq!(names(&again), ["b", "c"]);
    assert_eq!(*again[0].scope.workload, json!({ "n": 2 }));
    rig.done_all(&again);
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
}

#[test]
fn a_branch_that_completed_after_a_retry_is_kept() {
    let mut slow = task("slow", &[]);
    slow.retry = serde_json::from_value(json!({ "attempts_max": 2, "initial_ms": 30 })).unwrap();
    let mut a = task("a", &[1, 2]);
    a.router.mode = RouterMode::Inclusive;
    let rig = Rig::new();
    let steps = vec![a, slow, task("b", &[3]), task("c", &[])];
    let id = rig.start("backoff", net(playbook(Finish::Nothing), steps), json!({}));
    rig.done(&rig.work(), json!(1));
    let all = works(&rig, 2);
    assert_eq!(rig.report(&all[1], failed_as("transient_5xx")), Verdict::Accepted);
    rig.done(&all[0], json!(1));
    let (mut slow, mut c) = (None, None);
    for work in [rig.work(), rig.work()] {
        match work.step.as_str() {
            "slow" => slow = Some(work),
            _ => c = Some(work),
        }
    }
    fail(&rig, &c.unwrap());
    rig.done(&slow.unwrap(), json!(1));
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    let new = retried(&rig, from(id, "b", None));
    let all = works(&rig, 1);
    assert_eq!(names(&all), ["b"], "slow completed at its second attempt");
    rig.done_all(&all);
    rig.done(&rig.work(), json!(1));
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
}

#[test]
fn a_child_that_completed_is_kept_and_a_failed_one_continues() {
    let rig = Rig::new();
    rig.define("child", net(Policy::default(), vec![task("inner", &[])]));
    let child: Work = work(json!({ "child": { "definition": { "path": "child" }, "inputs": {} } }));
    let mut a = task("a", &[1, 2]);
    a.router.mode = RouterMode::Inclusive;
    let steps = vec![a, Step::new("c", child), task("b", &[])];
    let id = rig.start("parent", net(playbook(Finish::Nothing), steps), json!({}));
    rig.done(&rig.work(), json!(1));
    let all = works(&rig, 2);
    assert_eq!(names(&all), ["b", "inner"]);
    fail(&rig, &all[0]);
    rig.done(&all[1], json!(1));
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    let new = retried(&rig, of(id));
    let all = works(&rig, 1);
    assert_eq!(names(&all), ["b"]);
    rig.done_all(&all);
    assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    // From the child's step, another child starts; when it fails, the next retry continues with it.
    let third = retried(&rig, from(id, "c", None));
    let all = works(&rig, 2);
    let (b, inner) = (&all[0], &all[1]);
    rig.done(b, json!(1));
    fail(&rig, inner);
    assert_eq!(rig.call(Request::Await(third)), FAILED);
    let fourth = retried(&rig, of(third));
    let again = rig.work();
    assert_eq!(again.step, "inner");
    assert_ne!(again.unit.execution, inner.unit.execution);
    rig.done(&again, json!(1));
    assert_eq!(rig.call(Request::Await(fourth)), COMPLETED);
}

fn work(stored: Value) -> Work {
    serde_json::from_value(stored).unwrap()
}

#[test]
fn elsewhere_what_completed_is_imported_and_the_rest_is_done_again() {
    let rig = Rig::new();
    let policy = Policy { join: Join::All, ..Policy::default() };
    let mut last = task("c", &[]);
    last.reads = vec![StepId(0)];
    let steps = vec![task("a", &[1]), task("b", &[2]), last];
    let id = rig.start("plan", net(policy, steps), json!({ "n": 1 }));
    rig.done(&rig.work(), json!({ "k": 1 }));
    fail(&rig, &rig.work());
    assert_eq!(rig.call(Request::Await(id)), FAILED);
    let refused = rig.call(asked(from(id, "b", Some(1))));
    assert_eq!(refused, EngineAnswer::Refused(NotRetried::NoFirings.into()));
    for (retry, expected) in [(of(id), vec!["b", "c"]), (from(id, "a", None), vec!["a", "b", "c"])] {
        let new = retried(&rig, retry);
        for name in expected {
            let work = rig.work();
            assert_eq!((work.step.as_str(), work.unit.execution), (name, new.0));
            if name == "c" {
                assert_eq!(work.scope.steps.len(), 1);
            }
            rig.done(&work, json!({ "k": 1 }));
        }
        assert_eq!(rig.call(Request::Await(new)), COMPLETED);
    }
}
