//! Answers of the engine to agents, compared with the data on disk at that moment (K7): the decision is there, and so
//! is the end of the work that it began.

use super::Watch;
use super::journal::Shadow;
use super::leases::{is_open, parts};
use crate::invariants::Broken;
use windlass_kernel::{AgentDecision, Event, RunId};
use windlass_protocol::{AgentAnswer, AgentCall};

impl Watch {
    pub fn agent_was_answered(&mut self, call: &AgentCall, answered: &AgentAnswer) -> Result<(), Broken> {
        let (execution, run, _) = parts(call.unit);
        let shadow = self.shadows.get(&execution);
        let decided = shadow.and_then(|shadow| decision(shadow, run, &call.call));
        let on_disk = match (answered, &decided) {
            (
                AgentAnswer::Done { .. } | AgentAnswer::Failed(_) | AgentAnswer::Cancelled,
                Some((_, decision)),
            ) => {
                matches!((decision, shadow), (AgentDecision::Execute { tool, .. }, Some(shadow)) if ended(shadow, *tool, answered))
            }
            (AgentAnswer::Noted, Some((at, AgentDecision::Pause { .. }))) => {
                shadow.is_some_and(|shadow| shadow.records().skip(*at).any(|record| ends_hold(&record.event)))
            }
            (AgentAnswer::Noted, Some((_, decision))) => !matches!(decision, AgentDecision::Execute { .. }),
            (AgentAnswer::Refused { .. }, None) => true,
            (AgentAnswer::Stale, _) => !is_open(&self.shadows, call.unit),
            (_, None) | (AgentAnswer::Refused { .. }, Some(_)) => false,
        };
        if !on_disk {
            let what = format!(
                "call {} of {:?} was answered {answered:?}; on disk is {decided:?}",
                call.call, call.unit
            );
            return Err(Broken::new("K7", what));
        }
        Ok(())
    }
}

/// Returns whether the event ends the hold of an agent that asked for a pause: the execution was released, or its
/// outcome is decided. A draining execution waits for work in flight.
fn ends_hold(event: &Event) -> bool {
    matches!(event, Event::Released { .. } | Event::Draining { .. })
}

/// Returns the decision of that name and the number of its record.
fn decision<'s>(shadow: &'s Shadow, agent: RunId, name: &str) -> Option<(usize, &'s AgentDecision)> {
    shadow.records().enumerate().find_map(|(number, record)| match &record.event {
        Event::AgentDecided { run, call, decision } if *run == agent && call == name => {
            Some((number, decision))
        }
        _ => None,
    })
}

fn ended(shadow: &Shadow, tool: RunId, answered: &AgentAnswer) -> bool {
    shadow.records().any(|record| match (&record.event, answered) {
        (Event::Done { run, output, .. }, AgentAnswer::Done { output: answered }) => {
            *run == tool && output == answered
        }
        (Event::Failed { run, failure, .. }, AgentAnswer::Failed(answered)) => {
            *run == tool && failure.code == answered.code
        }
        (Event::Dropped { run, .. }, AgentAnswer::Cancelled) => *run == tool,
        (Event::Cleared(cleared), AgentAnswer::Cancelled) => {
            cleared.dropped.iter().any(|(run, ..)| *run == tool)
        }
        _ => false,
    })
}
