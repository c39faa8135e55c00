//! Executions of plans whose workers end: only a worker that is lost at work counts.

use crate::plan_executions::{begin, gated, until_phase, worker};
use crate::rig::{self, Place};
use crate::runners;
use rustix::process::Signal;
use serde_json::json;

fn until_begun(place: &Place, times: usize) {
    rig::until("the step begins", || (place.lines("began").len() == times).then_some(()));
}

#[test]
fn pln_10_workers_that_drain_six_times_do_not_fail_an_execution() {
    let place = Place::new().variable("WINDLASS_LEASE_TTL_SECONDS", "600");
    let server = place.serve();
    let path = begin(&server, &gated(&place), &json!({}));
    for times in 1..=6 {
        let mut draining = worker(&place, &server);
        until_begun(&place, times);
        draining.signal(Signal::TERM);
        draining.until_says("finishing running work");
        draining.signal(Signal::TERM);
        let (code, _, said) = draining.end();
        assert_eq!(code, Some(0), "{said}");
    }
    let _last = worker(&place, &server);
    until_begun(&place, 7);
    place.write("gate", "");
    until_phase(&server, &path, "completed");
}

#[test]
fn pln_10_an_execution_whose_worker_is_killed_five_times_fails() {
    let place = runners::place();
    let server = place.serve();
    let path = begin(&server, &gated(&place), &json!({}));
    for times in 1..=5 {
        let killed = worker(&place, &server);
        until_begun(&place, times);
        killed.signal(Signal::KILL);
        killed.end();
    }
    let failed = until_phase(&server, &path, "failed");
    assert_eq!(failed["error"], "runner lost 5 times", "{failed}");
    let _idle = worker(&place, &server);
    assert_eq!(place.lines("began").len(), 5, "it is not run again");
}
