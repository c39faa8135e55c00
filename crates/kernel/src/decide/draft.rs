//! The draft of a decision: the resulting state, and the records that lead to it.

use super::Accepted;
use crate::aside::move_large;
use crate::event::{Event, Record};
use crate::evolve::evolve;
use crate::execution::{Execution, Head};
use crate::ids::{Fence, Millis, RunId};
use crate::input::{Given, Rejected, Values};
use crate::net::Net;
use crate::phase::Phase;
use crate::step_run::StepRun;
use windlass_artifact::Artifact;

pub(crate) struct Draft<'a> {
    pub(crate) state: Execution<'a>,
    pub(crate) net: &'a Net,
    pub(crate) given: &'a Given<'a>,
    /// Time of the events; never before the newest event (K12).
    pub(crate) at: Millis,
    pub(crate) records: Vec<Record>,
    /// Number of firings so far, limited per decision (R5).
    pub(crate) firings: u32,
    /// Number of step-runs begun so far, under the same limit.
    pub(crate) begun: u32,
    /// Outputs and loop items of this decision, which are in no journal yet.
    pub(crate) fresh: Values,
    /// Artifacts that the records refer to, to be stored before them or with them.
    pub(crate) artifacts: Vec<Artifact>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(execution: &'a Execution<'_>, net: &'a Net, given: &'a Given<'a>) -> Draft<'a> {
        Draft {
            state: execution.draft(),
            net,
            given,
            at: given.now.max(execution.head.at),
            records: Vec::new(),
            firings: 0,
            begun: 0,
            fresh: Values::default(),
            artifacts: Vec::new(),
        }
    }

    /// Returns whether the decision has reached the size of one commit.
    pub(crate) fn is_full(&self) -> bool {
        self.firings.max(self.begun) >= self.net.policy().limits.firings_per_decide
    }

    pub(crate) fn head(&self) -> &Head {
        &self.state.head
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.head.phase
    }

    /// Appends an event and applies it to the state of the draft.
    pub(crate) fn emit(&mut self, mut event: Event) -> Accepted {
        let (artifacts, values) = (&mut self.artifacts, &mut self.fresh.artifacts);
        move_large(&mut event, self.net.policy().limits.inline_bytes, |artifact, value| {
            values.insert(artifact.key.clone(), Some(value));
            artifacts.push(artifact);
        });
        let record = Record { at: self.at, event };
        self.keep_values(&record.event);
        evolve(&mut self.state, self.net, &record)?;
        self.records.push(record);
        Ok(())
    }

    fn keep_values(&mut self, event: &Event) {
        let Some((run, change)) = event.run_change() else { return };
        let output = change.output().filter(|_| self.net.reads_outputs());
        self.fresh.outputs.extend(output.map(|output| (run, output.clone())));
        self.fresh.items.extend(change.items().map(|items| (run, items.clone())));
    }

    pub(crate) fn run(&self, id: RunId) -> Result<&StepRun, Rejected> {
        self.state.run(id).ok_or(Rejected::UnknownRun(id))
    }

    pub(crate) fn next_run(&self) -> RunId {
        self.state.head.next_run
    }

    pub(crate) fn next_fence(&self) -> Fence {
        self.state.head.next_fence
    }

    /// Returns whether new control may begin: routing, firing, retries.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.phase(), Phase::Running | Phase::Paused)
    }

    pub(crate) fn conflict(&self, why: &'static str) -> Rejected {
        Rejected::Conflict { phase: self.phase(), why }
    }
}
