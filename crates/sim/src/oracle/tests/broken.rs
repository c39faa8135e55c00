//! Traces that break a rule; the last observation is the one that breaks it.

use super::check;
use super::definitions::*;
use crate::scenario::{Dialect, Gate, LoopKind, Manual, Scenario, Step, Work};

#[test]
fn routing_is_watched() {
    check(&choice(), "created; running; go 1; .; did 1 9; go 2 s2", "routing");
    check(&choice(), "created; running; go 1; .; did 1 9; go 2 s1 =8", "args");
    check(&choice(), "created; running; go 1; .; did 1 9; .", "dispatch");
    check(&choice(), "created; running; go 1; .; did 1 9; go 2 s1 =7; go 3 s1 =7", "routing");
    check(&choice(), "created; running; go 1; go 2 s1", "routing");
    check(&meeting(Dialect::Workflow), "created; running; go 1 s0; go 2 s1; .; did 1; go 3 s2", "routing");
    check(&meeting(Dialect::Plan), "created; queued; .; go 1 s0", "routing");
    check(&gated(GATE), "created; running; go 1", "gate");
    check(&bodied(), "created; running; go 2 s1 /0; .; did 2; go 3 s2 /0; .; did 3; go 4 s1 /0", "routing");
}

#[test]
fn fences_and_numbers_are_watched() {
    check(&meeting(Dialect::Workflow), "created; running; go 1 s0 ^5; go 2 s1 ^5", "fence");
    check(&single(task()), "created; running; go 1; .; lost 1; go 1 ^1", "fence");
    check(&single(task()), "created; running; go 1; .; lost 1; go 1; .; did 1 ^1", "fence");
    check(&single(task()), "created; running; go 1; .; lost 1; go 1; .; lost 1 ^1", "fence");
    check(&chain(Dialect::Playbook), "created; running; go 1; .; did 1 5; go 2 s1; .; did 1 6", "fence");
    check(&single(task()), "created; running; go 1; .; did 1!", "report");
    check(&single(task()), "created; running; go 1; .; did 1 stopped", "report");
    check(&single(task()), "created; running; go 1; go 1", "dispatch");
    check(&chain(Dialect::Playbook), "created; running; go 4; .; did 4; go 3 s1", "firing");
    check(&chain(Dialect::Playbook), "created; running; go 4; .; did 4; go 4 s1", "firing");
    check(&single(task()), "created; running; go 1 x2", "attempt");
}

#[test]
fn retries_are_watched() {
    let scenario = single(Step { retry: THRICE, ..task() });
    let failed = "created; running; go 1; .; did 1 transient; ";
    check(&scenario, &format!("{failed} go 1 x2"), "retry");
    check(&scenario, &format!("{failed} draining"), "status");
    check(&scenario, &format!("{failed} .; @99 bell backoff 1"), "bell");
    check(&scenario, &format!("{failed} .; @100 bell backoff 1!"), "bell");
    check(&scenario, &format!("{failed} .; @100 bell backoff 1; go 1 x1"), "attempt");
    check(&scenario, "created; running; go 1; .; did 1 permanent; .", "status");
    check(&scenario, "created; running; go 1; .; timeout 1; .", "stop");
}

#[test]
fn caps_and_order_are_watched() {
    check(&entries(&[1, 1, 1], 2), "created; running; go 1 s0; go 2 s1; go 3 s2", "cap");
    check(&entries(&[2, 1], 1), "created; running; go 1 s0; .", "order");
    check(&entries(&[1, 1], 1), "created; running; go 2 s1; .; did 2; go 1 s0", "firing");
    check(&entries(&[1, 1], 2), "created; running; go 1 s0; .", "dispatch");
    check(&looping(LoopKind::Count(3), 2), "created; running; go 2 lap /0; go 3 lap /1; go 4 lap /2", "loop");
    check(&looping(LoopKind::Count(3), 2), "created; running; go 2 lap /0; .", "dispatch");
}

#[test]
fn holds_pauses_and_deadlines_are_watched() {
    let scenario = Scenario { timeout_ms: Some(100), ..chain(Dialect::Workflow) };
    let held = "created; running; go 1; .; @60 hold; paused; .; ";
    check(&scenario, &format!("{held} did 1; go 2 s1"), "hold");
    check(&scenario, &format!("{held} @200 bell deadline"), "deadline");
    check(&scenario, &format!("{held} resume; ."), "status");
    check(&scenario, &format!("{held} resume!"), "hold");
    check(
        &scenario,
        &format!("{held} did 1; .; @200 resume; running; go 2 s1; .; @239 bell deadline"),
        "deadline",
    );
    check(&scenario, "created; running; go 1; .; @100 bell deadline!", "deadline");
    check(&scenario, "created; running; go 1; .; @100 bell deadline; draining; .", "stop");
    check(&approval(None), "created; running; open 1 person; .", "status");
    check(&approval(Some(9)), "created; running; open 1 person; paused; .; over", "stuck");
    check(&approval(None), "created; running; open 1 person; paused; .; confirm 1 closed", "person");
    check(
        &gated(Gate { deadline_ms: Some(50), ..GATE }),
        "created; running; paused; .; @49 bell gate s0",
        "bell",
    );
    let manual = single(Step { manual: Some(Manual { deadline_ms: None }), ..task() });
    check(&manual, "created; running; go 1; .; did 1; draining", "status");
    check(&single(works(Work::Delay { ms: 30 })), "created; running; open 1 delay; paused; .", "status");
}

#[test]
fn ends_are_watched() {
    check(&single(task()), "created; running; go 1; .; did 1; draining; failed", "status");
    check(&single(task()), "created; running; go 1; .; did 1; completed", "status");
    check(&single(task()), "created; running; go 1; .; draining", "status");
    check(&single(task()), "created; running; go 1; .; over", "stuck");
    check(&chain(Dialect::Workflow), "created; running; go 1; .; cancel; draining; cancelled; .", "stop");
    check(&chain(Dialect::Workflow), "created; running; go 1; .; cancel!", "cancel");
    check(
        &chain(Dialect::Workflow),
        "created; running; go 1; .; cancel; stop 1; draining; cancelled; .; did 1; ",
        "fence",
    );
    check(
        &chain(Dialect::Workflow),
        "created; running; go 1; .; cancel; stop 1; draining; cancelled; go 2 s1",
        "terminal",
    );
    check(&single(task()), "created; running; go 1; .; did 1; draining; completed; .; running", "status");
    check(&single(task()), "@5 created; running; @4 go 1", "time");
    let scenario = Scenario { final_step: Some(1), ..scenario(Dialect::Playbook, vec![task(), task()]) };
    check(&scenario, "created; running; go 1; .; did 1; draining; completed", "status");
    check(&scenario, "created; running; go 1; go 2 s1 final", "final");
}

#[test]
fn compensation_is_watched() {
    let failed =
        "created; running; go 1; .; did 1; go 2 s1; .; did 2; go 3 s2; .; did 3 permanent; draining; ";
    check(&saga(), &format!("{failed} failed"), "status");
    check(&saga(), &format!("{failed} compensating; go 4 s0 hook:1"), "hook");
    check(&saga(), &format!("{failed} compensating; go 4 s1 hook:1"), "hook");
    check(&saga(), &format!("{failed} compensating; go 4 s1 hook:2; go 5 s0 hook:1"), "hook");
    check(&saga(), &format!("{failed} compensating; go 4 s1 hook:2; .; cancel"), "cancel");
    check(&saga(), "created; running; go 1; .; did 1 permanent; draining; failed; .; go 2 s1", "terminal");
}

#[test]
fn restarts_are_watched() {
    let begun = "created; queued; .; assigned; starting; .; begun; running; go 1 s0; .; ";
    check(&plan(), &format!("{begun} whole 1; queued"), "status");
    check(&plan(), &format!("{begun} whole 1; ."), "restart");
    check(&plan(), &format!("{begun} whole 2"), "restart");
    check(&plan(), &format!("{begun} whole 1; restart 3"), "restart");
    check(&plan(), &format!("{begun} restart 2"), "restart");
    check(&plan(), &format!("{begun} whole 1; restart 2; queued; .; did 1"), "fence");
    check(&plan(), "created; queued; .; begun", "start");
    let again = "whole 1; restart 2; queued; .; assigned; starting; .; begun; running; ";
    check(&plan(), &format!("{begun} did 1; go 2 s1; .; {again} go 3 s1"), "routing");
}

#[test]
fn a_join_step_fires_neither_early_nor_twice() {
    let begun = "created; running; go 2 s1; go 3 s2; .; did 3;";
    check(&gathering(), &format!("{begun} go 4 s3"), "routing");
    check(&gathering(), &format!("{begun} .; did 2; go 4 s3; go 5 s3"), "routing");
    check(&gathering(), &format!("{begun} .; did 2; ."), "dispatch");
}
