//! Agents: step-runs whose worker may request more work while it runs. Each call has a name, so that a recovered
//! agent that repeats a call gets the same answer instead of a second firing.

use super::ending::{self, EndDetails};
use super::{Accepted, Draft, hold};
use crate::event::{AgentDecision, Cause, Event};
use crate::ids::{Fence, Path, RunId, StepId};
use crate::input::{AgentAsk, Rejected};
use crate::phase::Outcome;
use crate::step_run::{Args, Role, RunState};
use windlass_failure::Failure;

/// Maximum number of calls of one agent; its step-run holds their names while it is live.
const CALLS_MAX: usize = 10_000;

pub(super) fn answer_call(
    d: &mut Draft<'_>,
    run: RunId,
    fence: Fence,
    call: &str,
    ask: &AgentAsk,
) -> Accepted {
    let agent = d.run(run)?;
    if !matches!(agent.state, RunState::Offered { fence: open } if open == fence) {
        return Err(Rejected::StaleFence { given: fence });
    }
    if agent.calls.contains_key(call) {
        return Ok(());
    }
    if agent.calls.len() >= CALLS_MAX {
        return Err(Rejected::Malformed("the agent made too many calls"));
    }
    if !d.is_open() {
        return Err(d.conflict("the execution is ending, so no new work begins"));
    }
    match ask {
        AgentAsk::Execute { step, args } => call_tool(d, run, call, *step, args),
        AgentAsk::Skip { step, reason } => {
            check_on_demand(d, *step)?;
            record_decision(d, run, call, AgentDecision::Skip { step: *step, reason: reason.clone() })
        }
        AgentAsk::Pause { reason } => {
            record_decision(d, run, call, AgentDecision::Pause { reason: reason.clone() })?;
            hold::hold(d, &format!("agent:{}", d.net.step(d.run(run)?.step).name), reason)
        }
        AgentAsk::Fail { failure } => {
            record_decision(d, run, call, AgentDecision::Fail { failure: Box::new(failure.clone()) })?;
            fail_execution(d, run, fence, failure)
        }
    }
}

fn record_decision(d: &mut Draft<'_>, run: RunId, call: &str, decision: AgentDecision) -> Accepted {
    d.emit(Event::AgentDecided { run, call: call.to_owned(), decision })
}

/// Checks that a step is available to agents and that the agent has not ruled it out.
fn check_on_demand(d: &Draft<'_>, step: StepId) -> Accepted {
    if !d.net.knows(step) {
        return Err(Rejected::UnknownStep(step));
    }
    if !d.net.step(step).on_demand {
        return Err(Rejected::Malformed("the step is not available to an agent"));
    }
    if d.head().ruled_out.contains(&step) {
        return Err(d.conflict("the agent has skipped this step before"));
    }
    Ok(())
}

fn call_tool(d: &mut Draft<'_>, run: RunId, call: &str, step: StepId, args: &Args) -> Accepted {
    check_on_demand(d, step)?;
    let tool = d.next_run();
    record_decision(d, run, call, AgentDecision::Execute { step, tool, args: args.clone() })?;
    let role = Role::Tool { agent: run, call: call.to_owned() };
    d.firings += 1;
    d.emit(Event::Fired { run: tool, step, path: Path::default(), token: None, role, args: args.clone() })
}

/// Fails the whole execution at the request of the agent, in every failure mode.
fn fail_execution(d: &mut Draft<'_>, run: RunId, fence: Fence, failure: &Failure) -> Accepted {
    ending::fail(d, run, failure.clone(), EndDetails::under(fence))?;
    if d.is_open() {
        super::cancel::drain(d, Outcome::Failed, Cause::Failure, Some(failure.clone()))
    } else {
        Ok(())
    }
}
