//! What records mean outside their execution: offers, stops, children, mail, timers. All of it is part of the commit.

use super::Lane;
use std::sync::Arc;
use windlass_kernel::{Create, Decision, Event, Execution, ExecutionId, Parent, Record, any_of};
use windlass_store::{DueTimer, Letter};

impl<R> Lane<R> {
    /// The state is the one after the decision. What it puts an end to has this long for it.
    pub(super) fn follow(&mut self, id: ExecutionId, decision: &Decision, grace_ms: u64) {
        for record in &decision.records {
            self.follow_record(id, record, grace_ms);
        }
        let timers = running(id, decision);
        let Some(building) = self.open.commit(id) else { return };
        building.timers.extend(timers.iter().copied());
        for timer in timers {
            self.timers.arm(timer);
        }
    }

    fn follow_record(&mut self, id: ExecutionId, record: &Record, grace_ms: u64) {
        match &record.event {
            Event::Offered { run, fence, .. } => self.offered(id, *run, *fence),
            Event::StopAsked { leases, children } => {
                for lease in leases {
                    self.ask_to_stop(id, *lease, grace_ms);
                }
                for child in children {
                    self.cancel_child(id, *child);
                }
            }
            Event::ChildStarted { run, fence, child, definition, inputs, .. } => {
                let depth = self.executions.get(id).map_or(0, |live| live.state.head.depth) + 1;
                let parent = Some(Parent { execution: id, run: *run, fence: *fence });
                let create = Create { parent, depth, ..Create::new(*child, (**inputs).clone()) };
                let Some(live) = self.executions.get(id) else { return };
                let options = Arc::new(live.origin.options.inherited(format!("exec_{id}")));
                let (definition, tenant) = (definition.clone(), live.origin.tenant.clone());
                self.post(
                    id,
                    *child,
                    Letter::Start { definition, create: Box::new(create), tenant, options },
                );
            }
            Event::Ended { .. } => {
                let parent = self.executions.get(id).and_then(|live| live.state.head.parent.clone());
                if let Some(parent) = parent {
                    let letter = Letter::Ended { child: id, run: parent.run, fence: parent.fence };
                    self.post(id, parent.execution, letter);
                }
            }
            Event::Released { .. } => self.arm_all(id),
            any_of![Event: Created Assigned TimeCame Started Held Paused Resumed Draining Cleared Compensating
                Finalizing Restarted Continued Routed Denied Admitted Discarded Fired Skipped Waiting Woken Delayed
                Lost RetryScheduled Yielded AwaitingManual CompletedManually Done Failed Dropped LoopStarted
                IterationStarted IterationEnded Patched Returned NotCompensated AgentDecided Forked] => {}
        }
    }
}

/// Timers that the decision set.
fn running(execution: ExecutionId, decision: &Decision) -> Vec<DueTimer> {
    let changes = &decision.changes;
    let runs =
        changes.runs.iter().filter_map(|(run, change)| Execution::timer_of(*run, change.after.as_deref()?));
    let gates = changes.gated.iter().filter_map(|((step, token), change)| {
        let until = change.after.as_ref()?.deadline?;
        Some((windlass_kernel::Timer::Gate { step: *step, token: *token }, until))
    });
    let all = runs.chain(gates).chain(changes.head.timer());
    all.map(|(timer, at)| DueTimer { at, execution, timer }).collect()
}
