//! Plans: joins over all arcs, one worker, restarts, uploads (PLN rows that are the kernel's alone).

use crate::drive::*;
use serde_json::json;
use windlass_kernel::net::*;
use windlass_kernel::*;

fn policy() -> Policy {
    Policy {
        join: Join::All,
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        finish: Finish::Uploads,
        max_parallel: Some(10),
        ..Policy::default()
    }
}

fn dispatched(steps: Vec<Step>) -> Drive {
    let mut drive = Drive::started(policy(), steps);
    drive.send(Input::Assign { worker: "host-1".into() }).unwrap();
    drive
}

fn running(steps: Vec<Step>) -> (Drive, String) {
    let mut drive = dispatched(steps);
    let summary = drive.send(Input::Begin).unwrap();
    (drive, summary)
}

fn lose_worker(drive: &mut Drive) -> Result<String, Rejected> {
    lose_by(drive, Loss::Started)
}

fn lose_by(drive: &mut Drive, loss: Loss) -> Result<String, Rejected> {
    let unit = LeaseUnit::Execution { generation: drive.state.head.generation };
    drive.send(Input::LeaseLost(LeaseLost { unit, loss, cursor: None }))
}

#[test]
fn pln_10_pln_35_a_lost_runner_restarts_everything_from_scratch() {
    let (mut drive, _) = running(vec![task("a", &[1]), task("b", &[])]);
    drive.done("a");
    let old = (drive.firing("b"), drive.fence("b"));
    assert_eq!(lose_worker(&mut drive).unwrap(), "stop 1+0; clear 1+0; generation 2");
    assert_eq!((drive.state.phase(), drive.state.head.counts.completed), (Phase::Queued, 0));
    drive.send(Input::Assign { worker: "host-2".into() }).unwrap();
    assert_eq!(drive.send(Input::Begin).unwrap(), "offer a", "finished steps run again");
    let late = Report {
        run: old.0,
        fence: old.1,
        result: WorkResult::Stopped,
        patch: Patch::new(),
        times: None,
        metadata: None,
        cursor: None,
    };
    let answer = drive.send(Input::Report(Box::new(late)));
    assert_eq!(answer, Err(Rejected::WrongGeneration { given: 1, current: 2 }));
}

#[test]
fn pln_10_a_runner_lost_five_times_fails_the_execution() {
    let mut drive = dispatched(vec![task("a", &[])]);
    for _ in 0..4 {
        lose_worker(&mut drive).unwrap();
        drive.send(Input::Assign { worker: "next".into() }).unwrap();
    }
    drive.send(Input::Begin).unwrap();
    assert_eq!(lose_worker(&mut drive).unwrap(), "stop 1+0; clear 1+0");
    assert_eq!(drive.state.phase(), Phase::Finalizing);
    assert_eq!(drive.send(Input::Uploaded { failure: None }).unwrap(), "failed");
    let why = drive.journal.iter().find_map(|record| match &record.event {
        Event::Draining { failure, .. } => failure.clone(),
        _ => None,
    });
    assert_eq!(why.unwrap().message, "runner lost 5 times");
}

#[test]
fn pln_10_work_that_is_given_back_or_never_began_is_no_loss_of_the_runner() {
    let mut drive = dispatched(vec![task("a", &[])]);
    for number in 2..=15 {
        let loss = if number % 2 == 0 { Loss::GivenBack } else { Loss::NotStarted };
        assert_eq!(lose_by(&mut drive, loss).unwrap(), format!("generation {number}"));
        drive.send(Input::Assign { worker: "next".into() }).unwrap();
    }
    assert_eq!((drive.state.head.restarts, drive.state.head.losses), (14, 0));
    for _ in 0..4 {
        lose_worker(&mut drive).unwrap();
        drive.send(Input::Assign { worker: "next".into() }).unwrap();
    }
    assert_eq!(lose_by(&mut drive, Loss::GivenBack).unwrap(), "generation 20", "not the fifth loss");
    drive.send(Input::Assign { worker: "next".into() }).unwrap();
    lose_worker(&mut drive).unwrap();
    assert_eq!(drive.state.phase(), Phase::Finalizing, "the fifth loss");
}

#[test]
fn pln_11_a_failed_step_is_not_retried() {
    let (mut drive, _) = running(vec![task("a", &[])]);
    assert_eq!(drive.fail("a", "SERVICE_UNAVAILABLE"), "a failed (SERVICE_UNAVAILABLE)");
    assert_eq!(drive.state.phase(), Phase::Finalizing);
}

#[test]
fn pln_12_a_failed_step_skips_all_that_depends_on_it_and_nothing_else() {
    let steps = vec![task("a", &[1]), task("b", &[2]), task("c", &[]), task("x", &[4]), task("y", &[2])];
    let (mut drive, summary) = running(steps);
    assert_eq!(summary, "offer a; offer x");
    assert_eq!(drive.fail("a", "X"), "a failed (X); skip b (Upstream)");
    assert_eq!(drive.done("x"), "offer y");
    assert_eq!(drive.done("y"), "skip c (Upstream)");
    assert_eq!(drive.send(Input::Uploaded { failure: None }).unwrap(), "failed");
}

#[test]
fn pln_13_a_step_is_ready_when_all_it_depends_on_completed_and_cycles_are_refused() {
    let (mut drive, _) = running(vec![task("a", &[2]), task("b", &[2]), task("c", &[])]);
    assert_eq!((drive.done("b"), drive.done("a")), (String::new(), "offer c".into()));
    let error =
        Net::new(NetSpec { steps: vec![task("a", &[1]), task("b", &[0])], policy: policy() }).unwrap_err();
    assert_eq!(error.problems, [Problem::Cycle { through: "a".into() }]);
}

#[test]
fn pln_14_of_eleven_ready_steps_ten_run_and_the_last_follows() {
    let steps = (0..11).map(|n| task(&format!("s{n}"), &[])).collect();
    let (mut drive, summary) = running(steps);
    assert_eq!(summary.split("; ").count(), 10);
    assert!(!summary.contains("s10"));
    assert_eq!(drive.done("s3"), "offer s10");
}

#[test]
fn pln_15_a_false_condition_skips_the_step_and_its_dependents() {
    let mut conditional = task("b", &[2]);
    conditional.condition = Some(expr("workload.run"));
    let steps = || vec![task("a", &[1]), conditional.clone(), task("c", &[])];
    let (mut drive, _) = running(steps());
    assert_eq!(drive.done("a"), "skip b (Condition); skip c (NotTaken)");
    assert_eq!(drive.send(Input::Uploaded { failure: None }).unwrap(), "completed");
}

#[test]
fn pln_16_a_step_waits_for_its_route_without_a_slot() {
    let mut routed = task("a", &[]);
    routed.wait_for = Some(WaitFor { target: template(json!("sandbox")), timeout_ms: 600_000 });
    let mut drive =
        Drive::started(Policy { max_parallel: Some(1), ..policy() }, vec![routed, task("b", &[])]);
    drive.send(Input::Assign { worker: "w".into() }).unwrap();
    assert_eq!(drive.send(Input::Begin).unwrap(), "wait a; offer b");
    let run = drive.firing("a");
    assert_eq!(drive.send(Input::RouteReady { run }).unwrap(), "", "the one slot is taken");
    assert_eq!(drive.done("b"), "offer a");
    assert_eq!(
        drive.send(Input::RouteReady { run }),
        Err(Rejected::NotWaiting { run, why: "no route is awaited" })
    );
}

#[test]
fn pln_16_a_route_that_is_never_ready_fails_the_step() {
    let mut routed = task("a", &[]);
    routed.wait_for = Some(WaitFor { target: template(json!("sandbox")), timeout_ms: 600_000 });
    let (mut drive, _) = running(vec![routed]);
    assert_eq!(drive.ring().unwrap(), "a failed (ROUTING_TIMEOUT)");
    assert_eq!(drive.now, 600_000);
}

#[test]
fn pln_20_pln_31_finalizing_waits_for_uploads_and_a_failed_one_fails_the_execution() {
    for (failure, expected) in [(None, "completed"), (Some(failure("DISK_FULL")), "failed")] {
        let (mut drive, _) = running(vec![task("a", &[])]);
        assert!(
            drive
                .send(Input::Uploaded { failure: None })
                .unwrap_err()
                .to_string()
                .contains("does not wait for uploads")
        );
        drive.done("a");
        assert_eq!(drive.state.phase(), Phase::Finalizing);
        assert_eq!(drive.send(Input::Uploaded { failure }).unwrap(), expected);
        assert!(matches!(lose_worker(&mut drive), Err(Rejected::Ended(_))), "terminal is terminal");
    }
}

#[test]
fn pln_32_an_execution_can_be_cancelled_in_every_phase_before_the_end() {
    let cancelled = |mut drive: Drive| {
        drive.cancel(Cancel::default()).unwrap();
        let phases: Vec<_> = drive
            .journal
            .iter()
            .filter_map(|record| match record.event {
                Event::Started { .. } => Some("running"),
                Event::Ended { .. } => Some("cancelled"),
                _ => None,
            })
            .collect();
        assert_eq!(drive.state.phase(), Phase::Ended(Outcome::Cancelled));
        assert!(matches!(drive.cancel(Cancel::default()), Err(Rejected::Ended(Outcome::Cancelled))));
        phases
    };
    let steps = || vec![task("a", &[])];
    assert_eq!(cancelled(Drive::started(policy(), steps())), ["cancelled"]);
    assert_eq!(cancelled(dispatched(steps())), ["running", "cancelled"], "running is seen before cancelled");
    assert_eq!(cancelled(running(steps()).0), ["running", "cancelled"]);
    let (mut drive, _) = running(steps());
    drive.done("a");
    assert_eq!(cancelled(drive), ["running", "cancelled"]);
}

#[test]
fn pln_34_a_plan_that_cannot_be_prepared_fails_before_it_runs() {
    let mut drive = dispatched(vec![task("a", &[])]);
    drive.send(Input::StartFailed { failure: failure("RESOURCE_NOT_FOUND") }).unwrap();
    assert_eq!(drive.send(Input::Uploaded { failure: None }).unwrap(), "failed");
}

#[test]
fn steps_that_cannot_be_repeated_are_refused_with_restart() {
    let mut manual = task("m", &[]);
    manual.completion = Completion::Manual { deadline_ms: None };
    let approval = step("p", Work::Approval { deadline_ms: None, asks: None }, &[]);
    let mut undo = task("u", &[]);
    undo.compensation = Some(Hook { work: Work::task(json!(1)), retry: Retry::default(), timeout_ms: None });
    let error = Net::new(NetSpec { steps: vec![manual, approval, undo], policy: policy() }).unwrap_err();
    let found: Vec<_> = error.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 3);
    assert!(
        found[0].contains("`m` has manual completion")
            && found[1].contains("an approval")
            && found[2].contains("compensation")
    );
}

#[test]
fn pln_28_declared_outputs_are_found_in_those_of_steps_and_fail_the_execution_if_they_lead_nowhere() {
    let output = |name: &str, step: u32, key: &str, drill: &[&str]| DeclaredOutput {
        name: name.into(),
        step: StepId(step),
        key: key.into(),
        drill: drill.iter().map(|&segment| segment.to_owned()).collect(),
    };
    let ended_by = |finish: Finish, result: serde_json::Value| {
        let mut skipped = task("b", &[]);
        skipped.condition = Some(expr("false"));
        let outputs = vec![
            output("whole", 0, "o", &[]),
            output("part", 0, "o", &["list", "1"]),
            output("skipped", 1, "o", &["x"]),
            output("absent", 0, "other", &["x"]),
        ];
        let policy = Policy { finish, outputs, ..policy() };
        let mut drive = Drive::started(policy, vec![task("a", &[]), skipped]);
        drive.send(Input::Assign { worker: "w".into() }).unwrap();
        drive.send(Input::Begin).unwrap();
        let done = WorkResult::Done { output: std::sync::Arc::new(result) };
        let mut summary = drive.report("a", done).unwrap();
        if finish == Finish::Uploads {
            summary = drive.send(Input::Uploaded { failure: None }).unwrap();
        }
        (summary, outputs_of(&drive))
    };
    let ended = |result: serde_json::Value| {
        let uploaded = ended_by(Finish::Uploads, result.clone());
        assert_eq!(uploaded, ended_by(Finish::Nothing, result), "uploads change nothing");
        uploaded
    };
    let (summary, outputs) = ended(json!({ "o": { "list": [1, 2] } }));
    assert_eq!(summary, "completed");
    assert_eq!(outputs, json!({ "whole": { "list": [1, 2] }, "part": 2 }));
    let (summary, _) = ended(json!({ "o": { "list": [1] } }));
    assert_eq!(summary, "failed");
    let reference = json!({ "$artifact": format!("sha256:{}", "0".repeat(64)) });
    let (summary, outputs) = ended(json!({ "o": reference }));
    assert_eq!((summary.as_str(), &outputs["part"]), ("completed", &reference), "readers walk the drill");
}

fn outputs_of(drive: &Drive) -> serde_json::Value {
    outputs(&drive.net, &drive.journal)
}
