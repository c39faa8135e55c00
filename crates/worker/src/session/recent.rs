//! Offers that ended here recently. A duplicate order must not begin them again.

use std::collections::{BTreeSet, VecDeque};
use windlass_protocol::Unit;

/// Number of such offers: enough for minutes of work on a few slots, where messages cross a network and can be
/// duplicated. The in-process pool is much faster and has no network.
const REMEMBERED_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub(super) struct Recent {
    order: VecDeque<Unit>,
    known: BTreeSet<Unit>,
}

impl Recent {
    pub(super) fn add(&mut self, unit: Unit) {
        if !self.known.insert(unit) {
            return;
        }
        self.order.push_back(unit);
        if self.order.len() > REMEMBERED_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    pub(super) fn contains(&self, unit: &Unit) -> bool {
        self.known.contains(unit)
    }
}
