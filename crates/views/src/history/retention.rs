//! How much of an execution a history holds: the newest firings, and the newest of their values. What is let go of stays in
//! the journal; memory and answers do not grow with history.

use super::History;
use crate::firing::{End, Firing};
use crate::kept::Kept;
use std::collections::{BTreeMap, VecDeque};
use windlass_artifact::json_bytes;
use windlass_kernel::StepId;

/// JSON of results and arguments that a history holds: thirty of the largest that are not set aside, and thousands of
/// ordinary ones. An answer is made of them, so it is what a client reads at once, too.
pub const VALUES_BYTES_MAX: usize = 2 << 20;
/// JSON of firings without their values: about 20,000 of them.
pub const FIRINGS_BYTES_MAX: usize = 8 << 20;
/// JSON of a firing without its values, its counters and its failure.
const FIRING_BYTES: usize = 400;

#[derive(Debug, Clone, Default)]
pub(super) struct Retention {
    /// Values that are held, the oldest first: firings by their order.
    values: VecDeque<(usize, Slot)>,
    values_bytes: usize,
    /// Firings that have ended, in that order.
    ended: VecDeque<usize>,
    firings_bytes: usize,
    /// Firings whose turn to be let go of has come, and which stay because they are the newest of their step.
    newest: BTreeMap<StepId, usize>,
    let_go: u64,
}

/// Which value of a firing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    Args,
    Output,
}

impl Firing {
    fn slot(&mut self, slot: Slot) -> &mut Option<Kept> {
        match slot {
            Slot::Args => &mut self.args,
            Slot::Output => &mut self.output,
        }
    }

    /// Bytes that its JSON has without its values.
    #[must_use]
    pub fn weight(&self) -> usize {
        let counted = self.metadata.as_deref().map_or(0, json_bytes);
        let failed = self
            .failure
            .as_ref()
            .map_or(0, |failure| failure.code.len() + failure.message.len() + json_bytes(&failure.details));
        FIRING_BYTES + self.path.0.len() * 8 + counted + failed
    }

    fn values_held(&self) -> usize {
        [&self.args, &self.output].into_iter().flatten().map(Kept::bytes_held).sum()
    }
}

impl History {
    /// Firings that have ended and are told in the journal alone.
    #[must_use]
    pub fn let_go(&self) -> u64 {
        self.retention.let_go
    }

    /// Bytes that it holds, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.retention.values_bytes + self.retention.firings_bytes + self.timeline.weight()
    }

    /// Notes a value of a firing, and lets go of older ones beyond the bound.
    pub(super) fn hold_value(&mut self, place: usize, slot: Slot) {
        let Some(held) = self.firings.get_mut(&place).and_then(|firing| firing.slot(slot).as_ref()) else {
            return;
        };
        self.retention.values_bytes += held.bytes_held();
        self.retention.values.push_back((place, slot));
        while self.retention.values_bytes > VALUES_BYTES_MAX && self.retention.values.len() > 1 {
            let Some((place, slot)) = self.retention.values.pop_front() else { return };
            if let Some(kept) = self.firings.get_mut(&place).and_then(|firing| firing.slot(slot).as_mut()) {
                let freed = kept.drop_value();
                self.retention.values_bytes = self.retention.values_bytes.saturating_sub(freed);
            }
        }
        if self.retention.values.len() > 4 * self.firings.len() + 64 {
            self.retention.values.retain(|(place, _)| self.firings.contains_key(place));
        }
    }

    /// Notes that a firing has ended, and lets go of older ones beyond the bound.
    pub(super) fn hold_ended(&mut self, place: usize) {
        let Some(firing) = self.firings.get(&place) else { return };
        self.retention.firings_bytes += firing.weight();
        self.retention.ended.push_back(place);
        while self.retention.firings_bytes > FIRINGS_BYTES_MAX && self.retention.ended.len() > 1 {
            let Some(oldest) = self.retention.ended.pop_front() else { return };
            self.let_go_of(oldest);
        }
        if self.retention.ended.len() > 2 * self.firings.len() + 64 {
            self.retention.ended.retain(|place| self.firings.contains_key(place));
        }
    }

    /// A step has fired again: its firing before that may be let go of.
    pub(super) fn succeed_newest(&mut self, step: StepId) {
        if let Some(place) = self.retention.newest.remove(&step) {
            self.let_go_of(place);
        }
    }

    /// Counts a firing that is removed.
    pub(super) fn release(&mut self, firing: &Firing) {
        let held = firing.values_held();
        self.retention.values_bytes = self.retention.values_bytes.saturating_sub(held);
        if firing.end.is_some() {
            self.retention.firings_bytes = self.retention.firings_bytes.saturating_sub(firing.weight());
        }
    }

    pub(super) fn hold_nothing(&mut self) {
        self.retention = Retention::default();
    }

    /// The newest firing of each step stays: it says how the step stands.
    fn let_go_of(&mut self, place: usize) {
        let Some(firing) = self.firings.get(&place) else { return };
        let is_newest = firing.is_whole() && self.numbers.get(&firing.step) == Some(&firing.number);
        if is_newest {
            self.retention.newest.insert(firing.step, place);
            return;
        }
        let (run, step) = (firing.run, firing.step);
        let failed = firing.is_whole() && matches!(firing.end, Some(End::Failed { .. }));
        if failed {
            *self.failures.entry(step).or_default() += 1;
        }
        self.retention.let_go += 1;
        self.forget(run);
    }
}
