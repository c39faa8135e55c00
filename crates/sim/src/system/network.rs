//! The network between the engine and workers that have a process of their own: messages are lost, doubled, late, and
//! overtake each other.

use super::plan::Trouble;
use crate::rng::Rng;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Network {
    trouble: Trouble,
    /// Links that are cut, and until when.
    cut: BTreeMap<usize, u64>,
    pub sent: u64,
    pub lost: u64,
    pub doubled: u64,
}

impl Network {
    pub fn new(trouble: Trouble) -> Network {
        Network { trouble, cut: BTreeMap::new(), sent: 0, lost: 0, doubled: 0 }
    }

    /// Stops losing and delaying messages.
    pub fn be_kind(&mut self) {
        self.trouble = Trouble { lost: 0, doubled: 0, slow: 0 };
        self.cut.clear();
    }

    pub fn cut(&mut self, worker: usize, until: u64) {
        let known = self.cut.entry(worker).or_default();
        *known = (*known).max(until);
    }

    /// Returns the times at which the message arrives: none, one or several.
    pub fn send(&mut self, worker: usize, now: u64, rng: &mut Rng) -> Vec<u64> {
        self.sent += 1;
        let is_cut = self.cut.get(&worker).is_some_and(|until| now < *until);
        if is_cut || rng.percent(self.trouble.lost) {
            self.lost += 1;
            return Vec::new();
        }
        let twice = rng.percent(self.trouble.doubled);
        self.doubled += u64::from(twice);
        (0..=u64::from(twice)).map(|_| now + self.delay(rng)).collect()
    }

    fn delay(&self, rng: &mut Rng) -> u64 {
        if !rng.percent(self.trouble.slow) {
            return rng.below(4);
        }
        let longest = *rng.pick(&[300, 3_000, 20_000, 45_000]);
        rng.below(longest)
    }
}
