//! Records that cannot follow the records before them: a replay refuses them and names the rule they break.

use crate::drive::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;

/// Two parallel tasks before a join, the first of them done.
fn half_done() -> Drive {
    let policy = Policy { join: Join::All, ..Policy::default() };
    let mut drive = Drive::started(policy, vec![task("a", &[2]), task("b", &[2]), task("c", &[])]);
    drive.done("a");
    drive
}

fn refused(drive: &Drive, at: i64, event: Event) -> String {
    let mut state = drive.state.clone();
    match evolve(&mut state, &drive.net, &Record { at: Millis(at), event }) {
        Ok(()) => "accepted".into(),
        Err(illegal) => illegal.what,
    }
}

#[test]
fn a_record_that_breaks_a_rule_is_refused() {
    let drive = half_done();
    let (done, live) = (RunId::first(1), drive.firing("b"));
    let (next, fence, stale) = (drive.state.head.next_run, drive.state.head.next_fence, Fence::first(1));
    let path = Path::default;
    let null = || Arc::new(json!(null));
    let end = |run, fence| Event::Done {
        run,
        fence,
        output: null(),
        patch: Patch::new(),
        times: None,
        metadata: None,
    };
    let fired = |run, step, token| Event::Fired {
        run,
        step: StepId(step),
        path: path(),
        token,
        role: Role::Routed,
        args: None,
    };
    let routed = |run, step, arc| {
        let emitted = vec![Emission { arc, token: TokenValue::Live(None) }];
        Event::Routed { run, step: StepId(step), path: path(), emitted, end: BranchEnd::GoesOn }
    };
    let check = |event: Event, expected: &str| {
        let message = refused(&drive, 5, event.clone());
        assert!(message.contains(expected), "{event:?}: {message}");
    };
    check(end(done, Some(stale)), "not live (K2)");
    check(end(live, Some(stale)), "(K3)");
    check(end(live, None), "(K3)");
    check(Event::Offered { run: live, fence, attempt: 2, reads: vec![] }, "no Offer (K2)");
    check(Event::Offered { run: live, fence: stale, attempt: 1, reads: vec![] }, "not the next fence (K3)");
    check(fired(live, 2, None), "not the next firing");
    check(fired(next, 9, None), "not the next firing");
    check(fired(next, 2, Some(TokenId::first(1))), "(K4)");
    check(routed(done, 0, 0), "second token (K4)");
    check(routed(done, 0, 7), "an arc that does not exist");
    check(routed(live, 1, 0), "has not ended");
    check(routed(done, 9, 0), "has not ended");
    check(Event::Started { deadline: None }, "no Start in running");
    check(Event::Resumed { deadline: None }, "no Resume in running");
    check(Event::Compensating, "no Compensate in running");
    check(Event::Ended { outcome: Outcome::Completed, failure: None }, "in running");
    check(Event::Released { by: String::new() }, "held or released twice");
    let restarted = |generation| Event::Restarted { generation, remaining_ms: None, started: true };
    check(restarted(2), "cleared state");
    check(restarted(9), "cleared state");
    check(Event::LoopStarted { run: live, total: Some(1), items: None }, "no Loop (K2)");
    check(
        Event::IterationStarted { run: live, index: 0 },
        &format!("step-run {} is not an open loop", live.0),
    );
    check(Event::Woken { run: live }, "no Wake (K2)");
    check(Event::NotCompensated { runs: vec![live] }, "neither run nor given up");
    check(Event::Denied { token: TokenId::first(1), deadline: None }, "is not enabled");
    check(Event::Admitted { tokens: vec![(StepId(0), TokenId::first(1))] }, "not at a gate");
    assert!(refused(&drive, -1, Event::Continued).contains("(K12)"));
    assert_eq!(refused(&drive, 5, end(live, Some(drive.fence("b")))), "accepted");
}

#[test]
fn nothing_follows_the_end_and_the_outcome_is_decided_once() {
    let mut drive = half_done();
    let drain =
        Event::Draining { outcome: Outcome::Failed, cause: Cause::Failure, failure: None, compensate: true };
    let mut draining = half_done();
    let record = Record { at: Millis(5), event: drain.clone() };
    evolve(&mut draining.state, &draining.net, &record).unwrap();
    assert!(refused(&draining, 5, drain.clone()).contains("no Drain in draining"));
    let ended = Event::Ended { outcome: Outcome::Failed, failure: None };
    assert!(refused(&draining, 5, ended).contains("not quiet (K5)"));
    drive.cancel(Cancel::default()).unwrap();
    assert!(refused(&drive, 5, Event::Continued).contains("(K2)"));
}

#[test]
fn a_journal_of_another_net_is_refused() {
    let drive = half_done();
    let other = Net::new(NetSpec { steps: vec![task("z", &[])], policy: Policy::default() }).unwrap();
    assert_eq!(replay(&other, &drive.journal).unwrap_err().what, "the journal belongs to another net");
}
