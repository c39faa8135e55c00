//! Bounds on what a history holds: the newest firings, and the newest of their values. Evicted ones stay in the journal;
//! memory and answers do not grow with the journal.

use super::History;
use crate::firing::{End, Firing};
use crate::kept::HeldValue;
use std::collections::{BTreeMap, VecDeque};
use windlass_artifact::json_bytes;
use windlass_kernel::StepId;

/// Bytes of JSON of results and arguments that a history holds: thirty of the largest that are not set aside, and
/// thousands of ordinary ones. An answer shows all of them, so it is also what a client reads at once.
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
    /// Firings that would be evicted if they were not the newest of their step.
    newest: BTreeMap<StepId, usize>,
    evicted: u64,
}

/// Kind of value of a firing.
#[derive(Debug, Clone, Copy)]
pub(super) enum Slot {
    Args,
    Output,
}

impl Firing {
    fn slot(&mut self, slot: Slot) -> &mut Option<HeldValue> {
        match slot {
            Slot::Args => &mut self.args,
            Slot::Output => &mut self.output,
        }
    }

    /// Returns the bytes of its JSON without its values.
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
        [&self.args, &self.output].into_iter().flatten().map(HeldValue::bytes_held).sum()
    }
}

impl History {
    /// Returns the number of ended firings that were evicted.
    #[must_use]
    pub fn evicted(&self) -> u64 {
        self.retention.evicted
    }

    /// Bytes that it holds, roughly.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.retention.values_bytes + self.retention.firings_bytes + self.timeline.weight()
    }

    /// Notes a value of a firing, and evicts older ones beyond the bound.
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

    /// Notes that a firing has ended, and evicts older ones beyond the bound.
    pub(super) fn hold_ended(&mut self, place: usize) {
        let Some(firing) = self.firings.get(&place) else { return };
        self.retention.firings_bytes += firing.weight();
        self.retention.ended.push_back(place);
        while self.retention.firings_bytes > FIRINGS_BYTES_MAX && self.retention.ended.len() > 1 {
            let Some(oldest) = self.retention.ended.pop_front() else { return };
            self.evict(oldest);
        }
        if self.retention.ended.len() > 2 * self.firings.len() + 64 {
            self.retention.ended.retain(|place| self.firings.contains_key(place));
        }
    }

    /// Evicts the firing before, if it was kept only because it was the newest of its step.
    pub(super) fn replace_newest(&mut self, step: StepId) {
        if let Some(place) = self.retention.newest.remove(&step) {
            self.evict(place);
        }
    }

    /// Subtracts a firing that is removed.
    pub(super) fn release(&mut self, firing: &Firing) {
        let held = firing.values_held();
        self.retention.values_bytes = self.retention.values_bytes.saturating_sub(held);
        if firing.end.is_some() {
            self.retention.firings_bytes = self.retention.firings_bytes.saturating_sub(firing.weight());
        }
    }

    pub(super) fn release_all(&mut self) {
        self.retention = Retention::default();
    }

    /// Evicts a firing, unless it is the newest of its step, which has the status of the step.
    fn evict(&mut self, place: usize) {
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
        self.retention.evicted += 1;
        self.forget(run);
    }
}
