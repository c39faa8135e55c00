//! The session machine, one input at a time.

use crate::names;
use serde_json::{Map, json};
use std::sync::Arc;
use windlass_protocol::{
    Failure, LEASE_TTL_MS, Order, Outcome, PROTOCOL_VERSION, Register, Registered, Reply, Report, Scope,
    SessionId, Unit, Verdict, Work,
};
use windlass_worker::session::*;

const BEAT_EVERY_MS: u64 = LEASE_TTL_MS / 2;

pub fn unit(run: u64, fence: u64) -> Unit {
    Unit { execution: 1, run, fence }
}

pub fn work(unit: Unit) -> Box<Work> {
    let (step, spec) = ("s".to_owned(), Arc::new(json!({ "tasks": [] })));
    let scope = Scope::default();
    Box::new(Work {
        unit,
        step,
        path: vec![],
        attempt: 1,
        losses: 0,
        spec,
        scope,
        cursor: None,
        timeout_ms: None,
        tenant: "default".into(),
        workflow: None,
        debug: false,
        decided_ms: None,
        no_room: None,
    })
}

pub fn new() -> Session {
    Session::new(Register { protocol: PROTOCOL_VERSION, worker: "w".to_owned(), slots: 2 })
}

/// A session that is registered at time 0, under number 1.
fn open() -> Session {
    let mut session = new();
    says(&mut session, 0, Input::Tick, &["register#1"]);
    says(&mut session, 0, registered(1, 9), &[]);
    session
}

fn says(session: &mut Session, now: u64, input: Input, expected: &[&str]) {
    let asked = format!("{input:?}");
    let outputs: Vec<String> = session.handle(now, input).iter().map(names::output).collect();
    assert_eq!(outputs, expected, "at {now}, after {asked}");
}

fn registered(number: u64, session: u64) -> Input {
    let registered = Registered { session: SessionId(session), rules: Arc::default() };
    Input::Replied { to: CallId::Register { number }, reply: Reply::Registered(registered) }
}

fn ordered(number: u64, order: Order) -> Input {
    Input::Replied { to: CallId::Register { number }, reply: Reply::Order(order) }
}

fn run(unit: Unit) -> Input {
    ordered(1, Order::Run(work(unit)))
}

fn stop(unit: Unit, grace_ms: u64) -> Input {
    ordered(1, Order::Stop { unit, grace_ms })
}

fn done(unit: Unit) -> Input {
    let report =
        Report { unit, outcome: Outcome::Done { output: json!(1) }, patch: Map::new(), metadata: Map::new() };
    Input::Ended { unit, report: Some(Box::new(report)) }
}

fn gone(unit: Unit) -> Input {
    Input::Ended { unit, report: None }
}

fn answered(unit: Unit, verdict: Verdict) -> Input {
    Input::Replied { to: CallId::Report { unit }, reply: Reply::Verdict(verdict) }
}

fn beaten(number: u64, verdict: Verdict) -> Input {
    Input::Replied { to: CallId::Beat { number }, reply: Reply::Verdict(verdict) }
}

const A: Unit = Unit { execution: 1, run: 1, fence: 5 };
const B: Unit = Unit { execution: 1, run: 2, fence: 6 };

#[test]
fn it_registers_again_until_it_is_answered() {
    let mut session = new();
    says(&mut session, 0, Input::Tick, &["register#1"]);
    assert_eq!(session.wake_at(), Some(RESEND_MS));
    says(&mut session, RESEND_MS, Input::Tick, &["register#2"]);
    assert_eq!(session.wake_at(), Some(3 * RESEND_MS));
    // An answer to the first registration is from a session that is not used.
    says(&mut session, 1500, registered(1, 1), &[]);
    says(&mut session, 1500, run(A), &[]);
    says(&mut session, 1600, registered(2, 2), &[]);
    says(&mut session, 1600, ordered(2, Order::Run(work(A))), &["start 1.5"]);
    assert_eq!(session.wake_at(), Some(RESEND_MS + BEAT_EVERY_MS));
}

#[test]
fn an_order_may_come_before_the_answer_to_the_registration() {
    let mut session = new();
    says(&mut session, 0, Input::Tick, &["register#1"]);
    says(&mut session, 1, run(A), &["start 1.5"]);
    says(&mut session, 2, registered(1, 9), &[]);
    says(&mut session, 3, done(A), &["report 1.5 done 1"]);
}

#[test]
fn a_report_is_sent_until_any_verdict_comes() {
    for verdict in [Verdict::Accepted, Verdict::Stale, Verdict::Conflict] {
        let mut session = open();
        says(&mut session, 0, run(A), &["start 1.5"]);
        says(&mut session, 10, done(A), &["report 1.5 done 1"]);
        says(&mut session, 1009, Input::Tick, &[]);
        says(&mut session, 1010, Input::Tick, &["report 1.5 done 1"]);
        says(&mut session, 3010, Input::Tick, &["report 1.5 done 1"]);
        assert_eq!(session.holds().collect::<Vec<_>>(), [A]);
        says(&mut session, 3020, answered(A, verdict), &[]);
        assert_eq!(session.holds().count(), 0);
        says(&mut session, 9000, answered(A, verdict), &[]);
    }
}

#[test]
fn the_pause_between_reports_grows_up_to_its_bound() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    session.handle(0, done(A));
    let mut sent = Vec::new();
    for now in 1..=41_000 {
        let out = session.handle(now, Input::Tick);
        sent.extend(
            out.iter()
                .filter(|out| matches!(out, Output::Call { id: CallId::Report { .. }, .. }))
                .map(|_| now),
        );
    }
    assert_eq!(sent, [1_000, 3_000, 7_000, 15_000, 25_000, 35_000]);
}

#[test]
fn an_order_that_comes_twice_begins_once() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 1, run(A), &[]);
    says(&mut session, 2, done(A), &["report 1.5 done 1"]);
    says(&mut session, 3, run(A), &[]);
    says(&mut session, 4, answered(A, Verdict::Accepted), &[]);
    // The engine repeats the order because it does not know that the unit ended.
    says(&mut session, 5, run(A), &["report 1.5 stopped"]);
    says(&mut session, 6, run(A), &[]);
}

#[test]
fn a_stop_is_answered_with_what_is_known() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 0, run(B), &["start 2.6"]);
    says(&mut session, 1, stop(A, 5000), &["stop 1.5 5000"]);
    says(&mut session, 2, stop(A, 0), &["stop 1.5 0"]);
    says(&mut session, 3, gone(A), &["report 1.5 stopped"]);
    says(&mut session, 4, stop(B, 5000), &["stop 2.6 5000"]);
    says(&mut session, 5, done(B), &["report 2.6 done 1"]);
    says(&mut session, 6, stop(B, 0), &[]);
}

#[test]
fn a_stop_of_what_is_not_here_is_acknowledged_and_a_late_order_begins_nothing() {
    let mut session = open();
    says(&mut session, 0, stop(A, 0), &["report 1.5 stopped"]);
    says(&mut session, 1, run(A), &[]);
    says(&mut session, 2, answered(A, Verdict::Stale), &[]);
    says(&mut session, 3, run(A), &["report 1.5 stopped"]);
}

#[test]
fn work_continues_when_its_checkpoint_is_stored() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    let reached = |n: u32| Input::Reached { unit: A, cursor: Arc::new(json!(n)) };
    let kept = |number, verdict| {
        let to = CallId::Checkpoint { unit: A, number };
        Input::Replied { to, reply: Reply::Verdict(verdict) }
    };
    says(&mut session, 1, reached(1), &["checkpoint#2 1.5 1"]);
    says(&mut session, 1001, Input::Tick, &["checkpoint#2 1.5 1"]);
    says(&mut session, 1002, kept(2, Verdict::Accepted), &["proceed 1.5"]);
    // The answer to the doubled one comes when the next is under way.
    says(&mut session, 1003, reached(2), &["checkpoint#3 1.5 2"]);
    says(&mut session, 1004, kept(2, Verdict::Accepted), &[]);
    says(&mut session, 1005, kept(3, Verdict::Stale), &["stop 1.5 0"]);
    says(&mut session, 1006, gone(A), &[]);
    assert_eq!(session.holds().count(), 0);
}

fn refused(to: CallId, code: &str) -> Input {
    Input::Replied { to, reply: Reply::Refused(Box::new(Failure::of_code(code, "it is too large"))) }
}

#[test]
fn a_report_that_can_never_be_accepted_is_replaced_by_a_failure_once() {
    let mut session = open();
    let too_large = || refused(CallId::Report { unit: A }, "RESULT_TOO_LARGE");
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 1, too_large(), &[]);
    says(&mut session, 2, done(A), &["report 1.5 done 1"]);
    says(&mut session, 3, too_large(), &["report 1.5 failed RESULT_TOO_LARGE"]);
    // The replaced report was sent twice, or the failure is refused, too: it is repeated, and not at once.
    says(&mut session, 4, too_large(), &[]);
    says(&mut session, 1_003, Input::Tick, &["report 1.5 failed RESULT_TOO_LARGE"]);
    says(&mut session, 1_004, answered(A, Verdict::Accepted), &[]);
    assert_eq!(session.holds().count(), 0);
}

#[test]
fn work_whose_checkpoint_can_never_be_accepted_is_stopped_and_fails() {
    let mut session = open();
    let too_large = |number| refused(CallId::Checkpoint { unit: A, number }, "RESULT_TOO_LARGE");
    says(&mut session, 0, run(A), &["start 1.5"]);
    let reached = Input::Reached { unit: A, cursor: Arc::new(json!(1)) };
    says(&mut session, 1, reached, &["checkpoint#2 1.5 1"]);
    says(&mut session, 2, too_large(1), &[]);
    says(&mut session, 3, too_large(2), &["stop 1.5 0"]);
    says(&mut session, 4, gone(A), &["report 1.5 failed RESULT_TOO_LARGE"]);
    says(&mut session, 5, answered(A, Verdict::Accepted), &[]);
    assert_eq!(session.holds().count(), 0);
}

#[test]
fn beats_list_what_is_held_and_are_sent_again_soon_when_lost() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, BEAT_EVERY_MS, Input::Tick, &["beat#2 [1.5]"]);
    says(&mut session, 16_999, Input::Tick, &[]);
    says(&mut session, 17_000, Input::Tick, &["beat#3 [1.5]"]);
    says(&mut session, 17_100, beaten(3, Verdict::Accepted), &[]);
    assert_eq!(session.wake_at(), Some(17_000 + BEAT_EVERY_MS));
    // Counted from the time of sending, regardless of earlier messages with later answers.
    says(&mut session, 17_200, beaten(2, Verdict::Accepted), &[]);
    says(&mut session, 32_000, Input::Tick, &["beat#4 [1.5]"]);
}

#[test]
fn work_is_stopped_before_its_lease_can_end() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    session.handle(BEAT_EVERY_MS, Input::Tick);
    let give_up = LEASE_TTL_MS - LEASE_MARGIN_MS;
    let early: Vec<Output> =
        (BEAT_EVERY_MS + 1..give_up).flat_map(|now| session.handle(now, Input::Tick)).collect();
    assert!(early.iter().all(|out| matches!(out, Output::Call { id: CallId::Beat { .. }, .. })), "{early:?}");
    assert_eq!(session.wake_at(), Some(give_up));
    says(&mut session, give_up, Input::Tick, &["stop 1.5 2000"]);
    // A late answer renews nothing, and the end is not reported.
    says(&mut session, give_up + 1, beaten(2, Verdict::Accepted), &[]);
    says(&mut session, give_up + 2, gone(A), &[]);
    assert_eq!(session.holds().count(), 0);
}

#[test]
fn a_lease_is_counted_from_the_sending_of_the_last_accepted_beat_that_listed_the_work() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 15_000, Input::Tick, &["beat#2 [1.5]"]);
    says(&mut session, 15_001, run(B), &["start 2.6"]);
    says(&mut session, 16_000, beaten(2, Verdict::Accepted), &[]);
    // B came before the answer and was not listed: its lease counts from what was known then.
    says(&mut session, 24_000, Input::Tick, &["stop 2.6 2000"]);
    says(&mut session, 38_999, Input::Tick, &["beat#3 [1.5 2.6]"]);
    says(&mut session, 39_000, Input::Tick, &["stop 1.5 2000"]);
}

#[test]
fn nothing_begins_on_a_lease_that_will_not_last() {
    let mut session = open();
    says(&mut session, 24_000, run(A), &["beat#2 []"]);
    assert_eq!(session.holds().count(), 0);
}

#[test]
fn a_finished_report_outlives_its_lease() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 1, done(A), &["report 1.5 done 1"]);
    let outputs = session.handle(60_000, Input::Tick);
    assert!(outputs.iter().any(|out| names::output(out) == "report 1.5 done 1"), "{outputs:?}");
}

#[test]
fn an_unknown_session_stops_all_units_and_registers_after_they_have_ended() {
    for forgotten in [ordered(1, Order::Unknown), beaten(2, Verdict::Stale)] {
        let mut session = open();
        says(&mut session, 0, run(A), &["start 1.5"]);
        says(&mut session, 0, run(B), &["start 2.6"]);
        says(&mut session, 1, done(B), &["report 2.6 done 1"]);
        session.handle(15_000, Input::Tick);
        says(&mut session, 15_001, forgotten, &["stop 1.5 2000"]);
        // Nothing is heard, beaten or reported in between.
        says(&mut session, 15_002, run(unit(3, 7)), &[]);
        says(&mut session, 50_000, Input::Tick, &[]);
        says(&mut session, 50_001, done(A), &["register#3"]);
        says(&mut session, 50_002, run(unit(3, 7)), &[]);
        says(&mut session, 50_003, registered(3, 10), &[]);
        says(&mut session, 50_003, run(unit(3, 7)), &[]);
        let again = ordered(3, Order::Run(work(unit(3, 8))));
        says(&mut session, 50_004, again, &["start 3.8"]);
    }
}

#[test]
fn a_newer_lease_of_the_same_step_run_waits_for_the_older_to_be_gone() {
    let mut session = open();
    says(&mut session, 0, run(unit(1, 5)), &["start 1.5"]);
    says(&mut session, 1, run(unit(1, 6)), &["stop 1.5 2000"]);
    says(&mut session, 2, run(unit(1, 4)), &[]);
    says(&mut session, 3, gone(unit(1, 5)), &["start 1.6"]);
    says(&mut session, 4, done(unit(1, 6)), &["report 1.6 done 1"]);
    // A report under the older fence could only be stale.
    says(&mut session, 5, run(unit(1, 7)), &["start 1.7"]);
    assert_eq!(session.holds().collect::<Vec<_>>(), [unit(1, 7)]);
}

#[test]
fn work_that_waits_to_begin_can_be_stopped() {
    let mut session = open();
    says(&mut session, 0, run(unit(1, 5)), &["start 1.5"]);
    says(&mut session, 1, run(unit(1, 6)), &["stop 1.5 2000"]);
    says(&mut session, 2, stop(unit(1, 6), 0), &["report 1.6 stopped"]);
    says(&mut session, 3, gone(unit(1, 5)), &[]);
}

#[test]
fn a_shutdown_reports_nothing_that_was_not_finished() {
    let mut session = open();
    says(&mut session, 0, run(A), &["start 1.5"]);
    says(&mut session, 0, run(B), &["start 2.6"]);
    says(&mut session, 1, done(B), &["report 2.6 done 1"]);
    says(&mut session, 2, Input::Shutdown { grace_ms: 300 }, &["stop 1.5 300"]);
    says(&mut session, 3, run(unit(3, 7)), &[]);
    assert!(!session.is_closed());
    says(&mut session, 4, done(A), &[]);
    assert!(!session.is_closed(), "the finished one still waits for its answer");
    let mut unanswered = 4;
    while !session.is_closed() {
        unanswered = session.wake_at().unwrap();
        session.handle(unanswered, Input::Tick);
    }
    assert_eq!(unanswered, 2 + LAST_ANSWERS_MS);
}

#[test]
fn a_session_without_work_closes_at_once() {
    let mut session = new();
    says(&mut session, 0, Input::Tick, &["register#1"]);
    says(&mut session, 1, Input::Shutdown { grace_ms: 0 }, &[]);
    assert!(session.is_closed() && session.wake_at().is_none());
}
