//! Sagas: graphs of up to 60 actions that fail, time out, wait for people and are cancelled.
//!
//! The judge sees what a user sees: the public events of an execution and the summary of its compensation. It knows the
//! definition and nothing of the kernel, so it judges simulated executions and those of the real program alike.

mod judge;
mod pool;

pub use judge::{SagaAction, judge};
pub use pool::{PoolShape, RecordedInput, record, replay};

use crate::invariants::Broken;
use crate::scenario::Scenario;
use serde_json::Value;
use windlass_kernel::net::Step;
use windlass_kernel::{Illegal, Net, Record};
use windlass_views::{Compensation, EventProjection, History, Projection, Timeline};

/// Returns the actions of a scenario by their names in the Net of `lower`.
#[must_use]
pub fn actions(scenario: &Scenario) -> Vec<SagaAction> {
    let steps = scenario.steps.iter().enumerate();
    steps
        .map(|(number, step)| SagaAction {
            name: format!("s{number}"),
            has_hook: step.hook.is_some(),
            side_effecting: true,
        })
        .collect()
}

/// Judges the journal of an execution of a scenario, as users see it.
pub fn judge_journal(scenario: &Scenario, net: &Net, journal: &[Record]) -> Result<(), Broken> {
    judge_as(&actions(scenario), net, journal)
}

/// Judges the journal of an execution of a net of actions, as users see it.
pub(crate) fn judge_net(net: &Net, journal: &[Record]) -> Result<(), Broken> {
    let action = |step: &Step| SagaAction {
        name: step.name.clone(),
        has_hook: step.compensation.is_some(),
        side_effecting: step.side_effecting,
    };
    let actions: Vec<SagaAction> = net.steps().map(|(_, step)| action(step)).collect();
    judge_as(&actions, net, journal)
}

fn judge_as(actions: &[SagaAction], net: &Net, journal: &[Record]) -> Result<(), Broken> {
    let illegal = |illegal: Illegal| Broken::new("legality", illegal.to_string());
    let events = public_events(net, journal).map_err(illegal)?;
    let summary = summary(net, journal).map_err(illegal)?;
    judge(actions, &events, &serde_json::to_value(summary).unwrap_or_default())
}

fn public_events(net: &Net, journal: &[Record]) -> Result<Vec<Value>, Illegal> {
    let mut timeline = Timeline::default();
    let mut projection = EventProjection::new(windlass_kernel::ExecutionId(1));
    let mut events = Vec::new();
    for record in journal {
        let entry = timeline.advance(net, record)?;
        let found = projection.project(net, record, &entry);
        events.extend(found.iter().filter_map(|event| serde_json::to_value(event).ok()));
    }
    Ok(events)
}

fn summary(net: &Net, journal: &[Record]) -> Result<Compensation, Illegal> {
    History::of(net, journal).map(|history| history.compensation(net))
}
