//! Effects of records outside their execution: offers, stops, children, mail, timers. All of them are part of the
//! commit.

use super::Lane;
use super::deciding::AwaitedState;
use std::sync::Arc;
use windlass_kernel::{
    Create, Decision, Execution, ExecutionId, Facet, Input, LifeChange, Parent, Record, RunChange, any_of,
};
use windlass_store::{DueTimer, Letter, Origin, Retry};

impl<R> Lane<R> {
    /// Adds the effects of a decision to its commit. `grace_ms` is the time that stopped work has to end.
    pub(super) fn follow(&mut self, id: ExecutionId, decision: &Decision, grace_ms: u64) {
        for record in &decision.records {
            self.follow_record(id, record, grace_ms);
        }
        self.release_uploading(id, grace_ms);
        let timers = running(id, decision);
        let Some(building) = self.open.commit(id) else { return };
        building.timers.extend(timers.iter().copied());
        for timer in timers {
            self.timers.arm(timer);
        }
    }

    fn follow_record(&mut self, id: ExecutionId, record: &Record, grace_ms: u64) {
        match record.event.facet() {
            Facet::Run(run, RunChange::Offered(fence, ..)) => self.offered(id, run, fence),
            Facet::Life(LifeChange::StopAsked(leases, children)) => {
                for lease in leases {
                    self.ask_to_stop(id, *lease, grace_ms);
                }
                for child in children {
                    self.cancel_child(id, *child);
                }
            }
            Facet::Run(run, RunChange::ChildStarted { fence, child, continues: Some(of), .. }) => {
                let Some(live) = self.executions.get(id) else { return };
                let retry = Retry {
                    parent: Some(Parent { execution: id, run, fence }),
                    trigger: Origin::CHILD.to_owned(),
                    by: format!("exec_{id}"),
                    restricted: live.origin.options.restricted,
                    ..Retry::of(of)
                };
                self.post(id, child, Letter::Retry(Box::new(retry)));
            }
            Facet::Run(run, RunChange::ChildStarted { fence, child, definition, inputs, .. }) => {
                let depth = self.executions.get(id).map_or(0, |live| live.state.head.depth) + 1;
                let parent = Some(Parent { execution: id, run, fence });
                let create = Create { parent, depth, ..Create::new(child, (**inputs).clone()) };
                let Some(live) = self.executions.get(id) else { return };
                let options = Arc::new(live.origin.options.inherited(format!("exec_{id}")));
                let (definition, tenant) = (definition.clone(), live.origin.tenant.clone());
                self.post(id, child, Letter::Start { definition, create: Box::new(create), tenant, options });
            }
            Facet::Life(LifeChange::Ended(_)) => {
                self.end_whole(id, self.generation(id), grace_ms);
                let parent = self.executions.get(id).and_then(|live| live.state.head.parent.clone());
                if let Some(parent) = parent {
                    let letter = Letter::Ended { child: id, run: parent.run, fence: parent.fence };
                    self.post(id, parent.execution, letter);
                }
            }
            Facet::Life(LifeChange::PauseChanged) => self.report_pause(id),
            Facet::Life(LifeChange::Released) => {
                self.arm_all(id);
                self.report_pause(id);
            }
            // The worker of the previous generation, if it still runs.
            Facet::Life(LifeChange::Restarted(_)) => {
                self.end_whole(id, self.generation(id).saturating_sub(1), grace_ms);
            }
            Facet::Life(any_of![LifeChange: Created Forked Patched OutcomeDecided Cleared])
            | Facet::Run(
                _,
                any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed AwaitingManual Returned
                Lost Retried Done Failed Dropped Routed AgentDecided Internal],
            )
            | any_of![Facet: Discarded Joined Internal] => {}
        }
    }

    fn generation(&self, id: ExecutionId) -> u32 {
        self.executions.get(id).map_or(0, |live| live.state.head.generation)
    }

    /// Reports to the parent whether only people can continue this execution. A held execution waits for its release.
    fn report_pause(&mut self, id: ExecutionId) {
        let Some(live) = self.executions.get(id) else { return };
        let Some(parent) = &live.state.head.parent else { return };
        let (to, run, fence, paused) =
            (parent.execution, parent.run, parent.fence, live.rests(AwaitedState::ForPeople));
        if !live.state.phase().is_ended() {
            self.post(id, to, Letter::Input(Input::ChildPaused { run, fence, child: id, paused }));
        }
    }
}

/// Returns the timers that the decision set.
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
