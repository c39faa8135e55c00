//! Traces that are right.

use super::check;
use super::definitions::*;
use crate::scenario::{Arc, Dialect, Failure, Gate, LoopKind, Manual, Recovery, Scenario, Step, When, Work};

fn ok(scenario: &Scenario, trace: &str) {
    check(scenario, trace, "ok");
}

#[test]
fn a_chain_runs_to_its_end() {
    for dialect in [Dialect::Playbook, Dialect::Workflow, Dialect::Actions] {
        ok(
            &chain(dialect),
            "created; running; go 1 s0; .; did 1 5; go 2 s1; .; did 2; draining; completed; .; over",
        );
    }
}

#[test]
fn the_first_matching_arc_binds_its_args() {
    ok(&choice(), "created; running; go 1; .; did 1 9; go 2 s1 =7; .; did 2; draining; completed; .; over");
    ok(&choice(), "created; running; go 1; .; did 1 permanent; go 2 s2; .; did 2; draining; completed; .");
    ok(&choice(), "created; running; go 1; .; did 1 3; draining; completed; .; over");
    let strict = Scenario { no_next_is_error: true, ..choice() };
    ok(&strict, "created; running; go 1; .; did 1 3; draining; failed; .; over");
}

#[test]
fn a_noop_runs_unseen_and_a_broken_guard_fails_its_step() {
    let noop = leads(works(Work::Noop { sets: Some((0, true)) }), vec![to(1, When::Flag(0))]);
    let mut scenario = scenario(Dialect::Playbook, vec![noop, task()]);
    ok(&scenario, "created; running; go 3 s1; .; did 3; draining; completed; .");
    scenario.steps[0].arcs[0].when = When::Broken;
    ok(&scenario, "created; running; draining; failed; .; over");
}

#[test]
fn joins_resolve_with_live_dead_and_poisoned() {
    let both = "created; running; go 1 s0; go 2 s1; .; did 1; .; ";
    for dialect in [Dialect::Workflow, Dialect::Actions] {
        ok(&meeting(dialect), &format!("{both} did 2; go 3 s2; .; did 3; draining; completed; .; over"));
    }
    let partial = Scenario { partial: true, ..meeting(Dialect::Workflow) };
    ok(&partial, &format!("{both} did 2 permanent; draining; partial; .; over"));
    let collect = Scenario { failure: Failure::Collect, ..partial.clone() };
    ok(&collect, &format!("{both} did 2 permanent; go 3 s2; .; did 3; draining; partial; ."));
    let mut handled = partial;
    handled.steps[1].arcs[0].on_error = true;
    ok(&handled, &format!("{both} did 2 permanent; go 3 s2; .; did 3; draining; completed; ."));
    ok(&handled, &format!("{both} did 2; go 3 s2; .; did 3; draining; completed; ."));
}

#[test]
fn a_join_step_fires_once_when_every_branch_arrived_or_ended() {
    let begun = "created; running; go 2 s1; go 3 s2; .; did 3; .;";
    ok(&gathering(), &format!("{begun} did 2; go 4 s3; .; did 4; draining; completed; .; over"));
    ok(&gathering(), &format!("{begun} did 2 permanent; go 4 s3; .; did 4; draining; failed; .; over"));
    let neither = "created; running; go 2 s1; go 3 s2; .; did 3 permanent; .; did 2 permanent;";
    ok(&gathering(), &format!("{neither} draining; failed; .; over"));
}

#[test]
fn a_false_condition_skips_and_its_followers_too() {
    let mut plan = chain(Dialect::Workflow);
    plan.steps[0].condition = Some(When::Flag(0));
    ok(&plan, "created; running; draining; completed; .; over");
}

#[test]
fn retries_wait_for_their_bell() {
    let scenario = single(Step { retry: THRICE, ..task() });
    ok(
        &scenario,
        "created; running; go 1; .; @10 did 1 transient; .; @110 bell backoff 1; go 1 x2; .;
         timeout 1; stop 1; .; @310 bell backoff 1; go 1 x3; .; did 1 later 50; .;
         @360 bell backoff 1; go 1 x3; .; did 1 transient; draining; failed; .; over",
    );
    ok(&scenario, "created; running; go 1; .; did 1 unknown; draining; failed; .");
}

#[test]
fn lost_leases_are_offered_again() {
    let scenario = single(task());
    ok(
        &scenario,
        "created; running; go 1; .; lost 1; go 1; .; lost 1 started; go 1; .; did 1 ^1!; .;
         lost 1 started; go 1; .; lost 1 started; draining; failed; .; over",
    );
}

#[test]
fn a_repeated_answer_changes_nothing() {
    let scenario = chain(Dialect::Playbook);
    ok(
        &scenario,
        "created; running; go 1; .; did 1 5; go 2 s1; .; did 1 5; .; did 1 6!; .; did 2; draining; completed; .",
    );
}

#[test]
fn gates_open_by_patch_by_report_and_never_by_resume() {
    ok(
        &gated(GATE),
        "created; running; paused; .; patch k0; running; go 1; .; did 1; draining; completed; .",
    );
    ok(&gated(GATE), "created; running; paused; .; over");
    let late = Gate { deadline_ms: Some(50), ..GATE };
    ok(&gated(late), "created; running; paused; .; @50 bell gate s0; running; draining; failed; .; over");
    let discard = Gate { discard: true, ..GATE };
    ok(&gated(discard), "created; running; draining; completed; .");
    let idle = Scenario { gates_complete: true, ..gated(GATE) };
    ok(&idle, "created; running; draining; completed; .");
}

#[test]
fn people_confirm_or_let_it_pass() {
    let person = approval(Some(100));
    ok(
        &person,
        "created; running; open 1 person; paused; .; confirm 1; running; draining; completed; .; confirm 1 closed repeated; .",
    );
    ok(
        &person,
        "created; running; open 1 person; paused; .; @100 bell person 1; running; draining; failed; .",
    );
    let manual = single(Step { manual: Some(Manual { deadline_ms: None }), ..task() });
    ok(
        &manual,
        "created; running; go 1; .; did 1; open 1 person; paused; .; confirm 1 closed!; .; deny 1; running; draining; failed; .",
    );
}

#[test]
fn routes_delays_and_children_are_waited_for() {
    let route = single(Step { route_ms: Some(100), ..task() });
    ok(&route, "created; running; open 4 route; .; route 4; go 4; .; did 4; draining; completed; .");
    ok(&route, "created; running; open 4 route; .; @100 bell route 4; draining; failed; .");
    let delay = single(works(Work::Delay { ms: 30 }));
    ok(&delay, "created; running; open 1 delay; .; @30 bell delay 1; draining; completed; .");
    let child = single(Step { retry: THRICE, timeout_ms: Some(500), ..works(Work::Child) });
    ok(
        &child,
        "created; running; open 1 child; .; child 1 transient; .; @100 bell backoff 1; open 1 child; .;
         @600 bell child 1; stop 1; .; @800 bell backoff 1; open 1 child; .; child 1 cancelled; draining; failed; .",
    );
}

#[test]
fn loops_open_in_order_up_to_their_cap() {
    ok(
        &looping(LoopKind::Count(3), 2),
        "created; running; go 2 lap /0; go 3 lap /1; .; did 3 k0; go 4 lap /2; .; did 2 -k0; .; did 4; draining; failed; .",
    );
    ok(
        &looping(LoopKind::Until { flag: 0, max: 3 }, 1),
        "created; running; go 2 lap /0; .; did 2; go 3 lap /1; .; did 3 k0; draining; completed; .",
    );
    ok(
        &looping(LoopKind::Until { flag: 0, max: 1 }, 1),
        "created; running; go 2 lap /0; .; did 2; draining; failed; .",
    );
    ok(&looping(LoopKind::ForEach(0), 1), "created; running; draining; completed; .");
}

#[test]
fn a_body_runs_per_iteration() {
    ok(
        &bodied(),
        "created; running; go 2 s1 /0; .; did 2; go 3 s2 /0; .; did 3; go 4 s1 /1; .; did 4; go 5 s2 /1; .;
         did 5; go 6 s3; .; did 6; draining; completed; .; over",
    );
    ok(
        &bodied(),
        "created; running; go 2 s1 /0; .; did 2 permanent; go 4 s1 /1; .; did 4; go 5 s2 /1; .; did 5; draining; failed; .",
    );
}

#[test]
fn slots_go_by_order() {
    ok(
        &entries(&[2, 1, 1], 1),
        "created; running; go 2 s1; .; did 2; go 3 s2; .; did 3; go 1 s0; .; did 1; draining; completed; .",
    );
}

#[test]
fn a_hold_stops_what_is_new() {
    let scenario = Scenario { timeout_ms: Some(100), ..chain(Dialect::Workflow) };
    ok(
        &scenario,
        "created; running; go 1; .; @60 hold; paused; .; hold; .; did 1; .; @200 bell deadline!; .;
         resume; running; go 2 s1; .; resume!; .; @240 bell deadline; stop 2; draining; .; did 2 stopped; failed; .; hold!; .",
    );
}

#[test]
fn fail_fast_drains_then_undoes_in_reverse() {
    ok(
        &saga(),
        "created; running; go 1; .; did 1; go 2 s1; .; did 2; go 3 s2; .; did 3 permanent; draining; compensating;
         go 4 s1 hook:2; .; cancel!; .; did 4 permanent; go 5 s0 hook:1; .; did 5; failed; .; cancel!; .; over",
    );
    ok(
        &saga(),
        "created; running; go 1; .; did 1; go 2 s1; .; cancel compensate; stop 2; draining; .; did 2; compensating;
         go 4 s1 hook:2; .; cancel force; stop 4; cancelled; .; did 4!; .",
    );
}

#[test]
fn cancel_is_terminal_at_once() {
    ok(
        &chain(Dialect::Workflow),
        "created; running; go 1; .; cancel; stop 1; draining; cancelled; .; did 1!; .; patch k0!; .; over",
    );
    ok(
        &plan(),
        "created; queued; .; assigned; starting; .; cancel; running; draining; cancelled; .; begun!; .",
    );
    ok(&plan(), "created; queued; .; cancel; draining; cancelled; .; over");
}

#[test]
fn the_final_step_runs_once_at_the_end() {
    let scenario = |final_partial| Scenario {
        final_step: Some(1),
        final_partial,
        ..scenario(Dialect::Playbook, vec![task(), task()])
    };
    ok(
        &scenario(false),
        "created; running; go 1; .; did 1; draining; finalizing; go 2 s1 final; .; did 2; completed; .",
    );
    ok(
        &scenario(true),
        "created; running; go 1; .; did 1; draining; finalizing; go 2 s1 final; .; did 2 permanent; partial; .",
    );
    ok(
        &scenario(true),
        "created; running; go 1; .; did 1; draining; finalizing; go 2 s1 final; .; cancel; stop 2; cancelled; .",
    );
    let routed = Scenario { final_step: Some(1), ..chain(Dialect::Playbook) };
    ok(&routed, "created; running; go 1; .; did 1; go 2 s1; .; did 2; draining; completed; .");
}

#[test]
fn a_lost_plan_begins_again_four_times() {
    let start = "assigned; starting; .; begun; running;";
    let mut trace = String::from("created; queued; .;");
    for round in 1..5 {
        let (first, next) = (round * 10, round + 1);
        trace +=
            &format!("{start} go {first} s0; .; whole {round}; restart {next}; queued; .; did {first}!; .;");
    }
    ok(&plan(), &format!("{trace} {start} go 90 s0; .; whole 5; draining; failed; .; over"));
    let uploads = Scenario { uploads: true, ..single(task()) };
    let uploads = Scenario { dialect: Dialect::Plan, ..uploads };
    ok(
        &uploads,
        &format!(
            "created; queued; .; {start} go 1; .; did 1; draining; finalizing; .; uploaded failed; failed; ."
        ),
    );
}

#[test]
fn a_failure_that_no_guard_reads_stays_unhandled() {
    let unguarded = Scenario { partial: true, ..chain(Dialect::Playbook) };
    ok(&unguarded, "created; running; go 1; .; did 1 permanent; go 2 s1; .; did 2; draining; partial; .");
    let inclusive = vec![to(1, When::Always), Arc { args: Some(2), ..to(1, When::ArgAtLeast(0)) }];
    let scenario = scenario(Dialect::Playbook, vec![leads(task(), inclusive), task()]);
    ok(&scenario, "created; running; go 1; .; did 1; go 2 s1; .; did 2; draining; completed; .");
}

#[test]
fn a_started_loss_can_be_a_failed_attempt() {
    let scenario = Scenario { recovery: Recovery::FailAttempt, ..single(Step { retry: THRICE, ..task() }) };
    ok(
        &scenario,
        "created; running; go 1; .; lost 1 started; .; @100 bell backoff 1; go 1 x2; .; did 1; draining; completed; .",
    );
}
