//! Runs one crossing: builds the situation, sends the control, describes the answer, and then completes the execution
//! as well as possible.

use crate::drive::*;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::net::*;
use windlass_kernel::*;
use windlass_retry::RetryPoint;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    Hold,
    Resume,
    Cancel,
    ForcedCancel,
    ExecutionTimeout,
    ContextPatch,
    LeaseLost,
    Restart,
    RetryFromStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Situation {
    Ready,
    InFlight,
    Backoff,
    WaitingForRouting,
    AtAGate,
    AwaitingManual,
    LoopIteration,
    ChildExecution,
    Draining,
    Compensating,
    Finalizing,
}

/// Returns `answer / phase / step / end`: whether the control was accepted, the states of the execution and of the watched
/// step-run right after it, and the end if everything else succeeds.
pub fn play(control: Control, situation: Situation) -> String {
    let Some(mut drive) = build(control, situation) else { return "no such net".into() };
    if control == Control::RetryFromStep {
        return retry(&mut drive);
    }
    let answer = send(&mut drive, control, situation);
    let cell = format!("{} / {} / {}", word(&answer), phase(&drive), watched(&drive));
    finish(&mut drive, 0);
    format!("{cell} / {}", phase(&drive))
}

fn word(answer: &Result<String, Rejected>) -> &'static str {
    if answer.is_ok() { "ok" } else { "refused" }
}

fn phase(drive: &Drive) -> String {
    match drive.state.phase() {
        Phase::Ended(outcome) => format!("{outcome:?}").to_lowercase(),
        phase => format!("{phase:?}").to_lowercase(),
    }
}

/// Returns the state of the watched step, which is always named `x`.
fn watched(drive: &Drive) -> String {
    let step = drive.net.find("x").unwrap();
    let live = drive
        .state
        .runs
        .values()
        .filter(|run| run.step == step)
        .find(|run| run.state.kind() != Kind::Looping);
    match live {
        Some(run) => format!("{:?}", run.state.kind()).to_lowercase(),
        None if drive.state.gated.keys().any(|(at, _)| *at == step) => "gated".into(),
        None => "gone".into(),
    }
}

fn policy(control: Control, situation: Situation) -> Policy {
    let each = matches!(situation, Situation::AtAGate | Situation::Finalizing | Situation::LoopIteration);
    let restart = control == Control::Restart;
    let ends = matches!(situation, Situation::Draining | Situation::Compensating);
    Policy {
        join: if each { Join::Each } else { Join::All },
        entry: each.then_some(StepId(0)),
        failure: if ends { FailureMode::FailFast } else { FailureMode::Continue },
        compensate: situation == Situation::Compensating,
        finish: if situation == Situation::Finalizing { Finish::Step(StepId(1)) } else { Finish::Nothing },
        timeout_ms: Some(60_000),
        recovery: if restart { Recovery::RestartExecution } else { Recovery::ResumeStep },
        affinity: if restart { Affinity::OneWorker } else { Affinity::AnyWorker },
        ..Policy::default()
    }
}

/// Returns an execution with step `x` in the situation; `None` if no Net can reach it.
fn build(control: Control, situation: Situation) -> Option<Drive> {
    let net = Net::new(NetSpec { steps: steps(situation), policy: policy(control, situation) }).ok()?;
    let mut drive = Drive::of(net);
    drive.create(json!({})).unwrap();
    begin(&mut drive);
    match situation {
        Situation::Backoff => drop(drive.fail("x", "SERVICE_UNAVAILABLE")),
        Situation::AwaitingManual => drop(drive.done("x")),
        Situation::Draining => drop(drive.fail("y", "VALIDATION_ERROR")),
        Situation::Compensating => {
            drive.done("x");
            drive.fail("y", "VALIDATION_ERROR");
        }
        Situation::Finalizing => drop(drive.done("y")),
        Situation::Ready
        | Situation::InFlight
        | Situation::WaitingForRouting
        | Situation::AtAGate
        | Situation::LoopIteration
        | Situation::ChildExecution => {}
    }
    Some(drive)
}

fn begin(drive: &mut Drive) {
    if drive.state.phase() == Phase::Queued {
        drive.send(Input::Assign { worker: "w".into() }).unwrap();
        drive.send(Input::Begin).unwrap();
    }
}

fn steps(situation: Situation) -> Vec<Step> {
    let mut x = task("x", &[]);
    match situation {
        Situation::Ready | Situation::InFlight => vec![x],
        Situation::Backoff => {
            x.retry.attempts_max = 3;
            vec![x]
        }
        Situation::WaitingForRouting => {
            x.wait_for = Some(WaitFor { target: template(json!("sandbox")), timeout_ms: 600_000 });
            vec![x]
        }
        Situation::AtAGate => {
            let rules = vec![AdmitRule { when: Some(expr("ctx.open")), allow: true }];
            x.admit = Some(Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None });
            vec![x]
        }
        Situation::AwaitingManual => {
            x.completion = Completion::Manual { deadline_ms: None };
            vec![x]
        }
        Situation::LoopIteration => {
            let kind = LoopKind::Count { times: template(json!(3)) };
            x.repeat =
                Some(LoopSpec { kind, iterator: "i".into(), cap: 1, body: Body::Own, break_when: None });
            vec![x]
        }
        Situation::ChildExecution => {
            let (definition, inputs) = (template(json!("child")), template(json!({})));
            vec![step("x", Work::Child { definition, inputs }, &[])]
        }
        Situation::Draining => vec![x, task("y", &[])],
        Situation::Compensating => {
            let retry = Retry::default();
            x.compensation = Some(Hook { work: Work::task(json!("undo")), retry, timeout_ms: None });
            x.router.arcs = vec![JoinArc::to(StepId(1))];
            vec![x, task("y", &[])]
        }
        Situation::Finalizing => vec![task("y", &[]), x],
    }
}

fn send(drive: &mut Drive, control: Control, situation: Situation) -> Result<String, Rejected> {
    match control {
        Control::Hold => drive.send(Input::Hold { by: "user".into(), reason: String::new() }),
        Control::Resume => {
            // If a hold is refused, there is nothing to resume.
            let _ = drive.send(Input::Hold { by: "user".into(), reason: String::new() });
            drive.send(Input::Resume { by: "user".into() })
        }
        Control::Cancel => drive.cancel(Cancel::default()),
        Control::ForcedCancel => drive.cancel(Cancel { force: true, ..Cancel::default() }),
        Control::ExecutionTimeout => {
            drive.now = 60_000;
            drive.send(Input::TimerDue(Timer::Deadline))
        }
        Control::ContextPatch => drive.patch("open", json!(true)),
        Control::LeaseLost => lose(drive, situation),
        Control::Restart => {
            let unit = LeaseUnit::Execution { generation: 1 };
            drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::Started, cursor: None }))
        }
        Control::RetryFromStep => unreachable!("played by `retry`"),
    }
}

fn lose(drive: &mut Drive, situation: Situation) -> Result<String, Rejected> {
    let step = drive.net.find("x").unwrap();
    let offered =
        drive.state.runs.iter().filter(|(_, run)| run.step == step && run.state.kind() != Kind::Looping);
    let (run, fence) = offered.last().map_or((RunId::first(1), None), |(id, run)| (*id, run.fence));
    let unit = LeaseUnit::Run { run, fence: fence.unwrap_or(Fence::first(1)) };
    let started = situation != Situation::Ready;
    drive.send(Input::LeaseLost(LeaseLost { unit, loss: Loss::of(started), cursor: None }))
}

/// Checks that a retry of a live execution is refused; then cancels it by force and describes the new execution.
fn retry(drive: &mut Drive) -> String {
    let step = drive.net.find("x").unwrap();
    let each = drive.net.policy().join == Join::Each;
    assert!(drive.retry(None).is_err(), "a live execution cannot be retried");
    drive.cancel(Cancel { force: true, ..Cancel::default() }).unwrap();
    let from = match each {
        false => Some(RetryPoint::Step(step)),
        true => drive.journal.iter().rev().find_map(|record| match &record.event {
            Event::Fired { run, step: at, role: Role::Routed, .. } if *at == step => {
                Some(RetryPoint::Firing(*run))
            }
            _ => None,
        }),
    };
    let Ok((mut retried, _)) = drive.retry(from) else {
        return format!("{} / {}", phase(drive), "refused");
    };
    let cell = format!("{} / ok / {} / {}", phase(drive), phase(&retried), watched(&retried));
    finish(&mut retried, 0);
    format!("{cell} / {}", phase(&retried))
}

/// Completes the execution: releases holds, opens gates, approves, and reports success for workers.
fn finish(drive: &mut Drive, steps: u32) {
    assert!(steps < 100, "it never ends");
    if drive.state.phase().is_ended() {
        return;
    }
    begin(drive);
    if drive.state.head.held {
        drive.send(Input::Resume { by: "user".into() }).unwrap();
    }
    if !drive.state.gated.is_empty() {
        drive.patch("open", json!(true)).unwrap();
    }
    let live: Vec<(RunId, StepRun)> =
        drive.state.runs.iter().map(|(id, run)| (*id, (**run).clone())).collect();
    for (id, run) in live {
        advance(drive, id, &run);
    }
    finish(drive, steps + 1);
}

fn advance(drive: &mut Drive, run: RunId, found: &StepRun) {
    let done = Arc::new(json!({}));
    let input = match &found.state {
        RunState::Offered { fence } => Input::Report(Box::new(Report {
            run,
            fence: *fence,
            result: WorkResult::Done { output: done },
            patch: Patch::new(),
            times: None,
            metadata: None,
            cursor: None,
        })),
        RunState::Manual { fence, .. } => {
            let note = ManualNote {
                outcome: ManualOutcome::Succeeded,
                actor: "p".into(),
                notes: None,
                evidence: vec![],
                ..ManualNote::default()
            };
            Input::Complete { run, fence: *fence, note: Box::new(note), seen: None }
        }
        RunState::Waiting { .. } => Input::RouteReady { run },
        RunState::Backoff { until } => {
            drive.now = drive.now.max(until.0);
            Input::TimerDue(Timer::Backoff { run })
        }
        RunState::Child { fence, child, .. } => {
            let result = ChildResult { outcome: Outcome::Completed, output: done, failure: None };
            Input::ChildEnded { run, fence: *fence, child: *child, result }
        }
        RunState::Ready { .. } | RunState::Delayed { .. } | RunState::Looping(_) => return,
    };
    drive.send(input).unwrap();
}
