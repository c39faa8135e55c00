//! Planned happenings in the order of simulated time; at one moment in the order in which they were planned.

use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Agenda<T> {
    planned: BTreeMap<(u64, u64), T>,
    count: u64,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Agenda { planned: BTreeMap::new(), count: 0 }
    }
}

impl<T> Agenda<T> {
    pub fn plan(&mut self, at: u64, happening: T) {
        self.planned.insert((at, self.count), happening);
        self.count += 1;
    }

    pub fn take(&mut self) -> Option<(u64, T)> {
        self.planned.pop_first().map(|((at, _), happening)| (at, happening))
    }
}
