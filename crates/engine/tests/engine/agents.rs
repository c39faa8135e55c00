//! Agents: calls that a worker makes while it works, and how they are answered.

use crate::COMPLETED;
use crate::rig::{PATIENCE, Rig, net, task};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use windlass_engine::{EngineAnswer, Request};
use windlass_kernel::net::{FailureMode, Join, Policy, Step};
use windlass_kernel::{Cancel, Event, ExecutionId, Input, Net, Outcome, Phase};
use windlass_protocol::{AgentAnswer, AgentAsk, Failure, Outcome as Reported, Reply, Verdict};

fn tool(name: &str) -> Step {
    Step { on_demand: true, ..task(name, &[]) }
}

/// `agent` with the tools `look` and `write`.
fn agent() -> Arc<Net> {
    net(Policy::default(), vec![task("agent", &[]), tool("look"), tool("write")])
}

fn execute(step: u32, args: Value) -> AgentAsk {
    AgentAsk::Execute { step, args }
}

fn answer(answers: &Receiver<Reply>) -> AgentAnswer {
    match answers.recv_timeout(PATIENCE) {
        Ok(Reply::Agent(answer)) => *answer,
        other => panic!("{other:?}"),
    }
}

fn done(output: Value) -> AgentAnswer {
    AgentAnswer::Done { output: Arc::new(output) }
}

fn failure(code: &str) -> Failure {
    Failure::of_class(windlass_protocol::ErrorClass::Validation, code, "it is so")
}

fn decisions(rig: &Rig, id: ExecutionId) -> usize {
    rig.events(id).iter().filter(|event| matches!(event, Event::AgentDecided { .. })).count()
}

#[test]
fn wfl_21_a_call_is_answered_when_its_step_has_ended_even_with_one_slot() {
    let rig = Rig::with_slots(1);
    let id = rig.start("agent", agent(), json!({}));
    let agent = rig.work();
    let looked = rig.ask_agent(&agent, "1", execute(1, json!({ "q": "x" })));
    let written = rig.ask_agent(&agent, "2", execute(2, json!({})));
    let look = rig.work();
    assert_eq!((look.step.as_str(), look.scope.args.as_deref()), ("look", Some(&json!({ "q": "x" }))));
    assert!(rig.idle(), "the slot that the agent lent is taken");
    assert!(looked.try_recv().is_err(), "nothing has ended");
    rig.done(&look, json!(["seen"]));
    assert_eq!(answer(&looked), done(json!(["seen"])));
    let write = rig.work();
    assert_eq!(rig.report(&write, Reported::Failed(failure("VALIDATION_ERROR"))), Verdict::Accepted);
    assert_eq!(answer(&written), AgentAnswer::Failed(failure("VALIDATION_ERROR")));
    assert_eq!(rig.done(&agent, json!("ready")), Verdict::Accepted, "a failed tool is the agent's affair");
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    assert_eq!(decisions(&rig, id), 2);
}

#[test]
fn wfl_21_a_call_that_was_answered_before_a_crash_is_answered_alike_and_begins_nothing() {
    let mut rig = Rig::new();
    let id = rig.start("agent", agent(), json!({}));
    let before = rig.work();
    let looked = rig.ask_agent(&before, "1", execute(1, json!({})));
    rig.done(&rig.work(), json!({ "n": 1 }));
    assert_eq!(answer(&looked), done(json!({ "n": 1 })));
    let failed = rig.ask_agent(&before, "2", execute(2, json!({})));
    rig.report(&rig.work(), Reported::Failed(failure("RESOURCE_NOT_FOUND")));
    answer(&failed);
    let skipped = rig.ask_agent(&before, "3", AgentAsk::Skip { step: 2, reason: "no use".into() });
    assert_eq!(answer(&skipped), AgentAnswer::Noted);

    rig.restart();
    let agent = rig.work();
    assert_eq!(agent.step, "agent");
    let asked = |call, ask| answer(&rig.ask_agent(&agent, call, ask));
    assert_eq!(asked("1", execute(1, json!({}))), done(json!({ "n": 1 })));
    assert_eq!(asked("2", execute(2, json!({}))), AgentAnswer::Failed(failure("RESOURCE_NOT_FOUND")));
    assert_eq!(asked("3", AgentAsk::Skip { step: 2, reason: "no use".into() }), AgentAnswer::Noted);
    assert!(rig.idle(), "no tool began again");
    assert_eq!(decisions(&rig, id), 3);
    let refused = asked("4", execute(2, json!({})));
    assert!(matches!(&refused, AgentAnswer::Refused { why } if why.contains("skipped")), "{refused:?}");
    rig.done(&agent, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
}

#[test]
fn wfl_21_a_tool_that_ran_during_a_crash_answers_the_agent_that_asks_again() {
    let mut rig = Rig::new();
    let id = rig.start("agent", agent(), json!({}));
    let unanswered = rig.ask_agent(&rig.work(), "1", execute(1, json!({})));
    let lost = rig.work();
    rig.restart();
    assert!(!matches!(unanswered.recv_timeout(PATIENCE), Ok(Reply::Agent(_))), "the process is gone");
    let works = [rig.work(), rig.work()];
    let find = |step| works.iter().find(|work| work.step == step).unwrap();
    let again = rig.ask_agent(find("agent"), "1", execute(1, json!({})));
    assert_eq!(rig.done(&lost, json!("late")), Verdict::Stale);
    rig.done(find("look"), json!("once"));
    assert_eq!(answer(&again), done(json!("once")));
    assert_eq!(decisions(&rig, id), 1);
}

#[test]
fn wfl_21_wfl_27_a_pause_is_answered_when_a_user_resumes_also_after_a_crash() {
    let mut rig = Rig::new();
    let id = rig.start("agent", agent(), json!({}));
    let pause = || AgentAsk::Pause { reason: "is this right?".into() };
    let resume =
        || Request::Give { audit: None, execution: id, input: Input::Resume { by: "user_1".into() } };
    let agent = rig.work();
    let paused = rig.ask_agent(&agent, "1", pause());
    // An answer to a later question: the one before it would have come by now.
    let refused = |call| {
        let answered = answer(&rig.ask_agent(&agent, call, execute(9, json!({}))));
        assert!(matches!(answered, AgentAnswer::Refused { .. }), "{answered:?}");
    };
    refused("2");
    assert!(paused.try_recv().is_err(), "it is held");
    assert_eq!(rig.call(resume()), EngineAnswer::Accepted);
    assert_eq!(answer(&paused), AgentAnswer::Noted);

    let paused = rig.ask_agent(&agent, "3", pause());
    refused("4");
    rig.restart();
    drop(paused);
    assert_eq!(rig.call(resume()), EngineAnswer::Accepted);
    let agent = rig.work();
    assert_eq!(answer(&rig.ask_agent(&agent, "3", pause())), AgentAnswer::Noted, "it was resumed since");
    rig.done(&agent, json!(1));
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    assert_eq!(decisions(&rig, id), 2);
}

#[test]
fn wfl_21_an_agent_fails_the_execution() {
    let rig = Rig::new();
    let id = rig.start("agent", agent(), json!({}));
    let agent = rig.work();
    let failed = rig.ask_agent(&agent, "1", AgentAsk::Fail { failure: failure("AGENT_GAVE_UP") });
    assert_eq!(answer(&failed), AgentAnswer::Noted);
    assert_eq!(rig.done(&agent, json!(1)), Verdict::Stale, "it has ended with the execution");
    assert_eq!(rig.call(Request::Await(id)), EngineAnswer::Rested(Phase::Ended(Outcome::Failed)));
}

#[test]
fn calls_of_an_ending_execution_and_of_an_old_lease_are_refused() {
    let mut rig = Rig::new();
    let id = rig.start("agent", agent(), json!({}));
    let old = rig.work();
    rig.restart();
    let agent = rig.work();
    let stale = answer(&rig.ask_agent(&old, "1", execute(1, json!({}))));
    assert_eq!(stale, AgentAnswer::Stale);
    let waits = rig.ask_agent(&agent, "1", execute(1, json!({})));
    let look = rig.work();
    let cancel = Input::Cancel(Cancel { by: "user_1".into(), ..Cancel::default() });
    assert_eq!(rig.call(Request::Give { audit: None, execution: id, input: cancel }), EngineAnswer::Accepted);
    assert_eq!(answer(&waits), AgentAnswer::Cancelled);
    for work in [&look, &agent] {
        rig.report(work, Reported::Stopped);
    }
    assert_eq!(rig.call(Request::Await(id)), EngineAnswer::Rested(Phase::Ended(Outcome::Cancelled)));
}

/// Work in flight runs to its end while an execution drains, so an agent that waits for the end of a hold must go on.
#[test]
fn wfl_21_a_pause_ends_when_another_step_fails_the_execution() {
    let rig = Rig::new();
    let policy = Policy { join: Join::All, failure: FailureMode::FailFast, ..Policy::default() };
    let id = rig.start("agent", net(policy, vec![task("agent", &[]), task("other", &[])]), json!({}));
    let works = [rig.work(), rig.work()];
    let find = |step| works.iter().find(|work| work.step == step).unwrap();
    let paused = rig.ask_agent(find("agent"), "1", AgentAsk::Pause { reason: "is this right?".into() });
    assert_eq!(rig.call(Request::AwaitPause(id)), EngineAnswer::Rested(Phase::Paused));
    rig.report(find("other"), Reported::Failed(failure("VALIDATION_ERROR")));
    assert_eq!(answer(&paused), AgentAnswer::Noted);
    rig.done(find("agent"), json!(1));
    assert_eq!(rig.call(Request::Await(id)), EngineAnswer::Rested(Phase::Ended(Outcome::Failed)));
}
