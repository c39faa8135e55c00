//! Offers that wait for workers outside of this process, in a line for each kind of worker. No worker may ever come, so an
//! offer that is withdrawn leaves its line.

use super::queue::{Queued, Waiting};
use std::collections::{BTreeMap, HashMap};
use windlass_store::Priority;

/// Minimum number of withdrawn offers before a line is compacted, in addition to the number of its live offers. The
/// cost of a compaction is proportional to the whole line.
const GONE_MIN: usize = 64;

#[derive(Debug)]
pub(super) struct Lines<K> {
    /// Lines with at least one live offer.
    lines: BTreeMap<K, Line>,
    /// The line of each live offer.
    places: HashMap<Queued, K>,
}

#[derive(Debug, Default)]
struct Line {
    queue: Waiting,
    /// Offers that may be taken.
    live: usize,
    /// Offers that were withdrawn and are still in the queue.
    gone: usize,
}

impl<K> Default for Lines<K> {
    fn default() -> Self {
        Lines { lines: BTreeMap::new(), places: HashMap::new() }
    }
}

impl<K: Ord + Clone> Lines<K> {
    /// Enqueues an offer; returns false if it waits already.
    pub fn push(&mut self, key: &K, priority: Priority, offer: Queued) -> bool {
        self.enter(key, offer, |queue| queue.push(priority, offer))
    }

    /// Enqueues an offer that was taken out and not handed out, as the next one; returns false if it waits already.
    pub fn put_back(&mut self, key: &K, priority: Priority, offer: Queued) -> bool {
        self.enter(key, offer, |queue| queue.put_back(priority, offer))
    }

    fn enter(&mut self, key: &K, offer: Queued, enqueue: impl FnOnce(&mut Waiting)) -> bool {
        if self.places.contains_key(&offer) {
            return false;
        }
        self.places.insert(offer, key.clone());
        let line = self.lines.entry(key.clone()).or_default();
        enqueue(&mut line.queue);
        line.live += 1;
        true
    }

    pub fn pop(&mut self, key: &K) -> Option<Queued> {
        let line = self.lines.get_mut(key)?;
        while let Some(offer) = line.queue.pop() {
            if self.places.remove(&offer).is_none() {
                line.gone -= 1;
                continue;
            }
            line.live -= 1;
            if line.live == 0 {
                self.lines.remove(key);
            }
            return Some(offer);
        }
        None
    }

    /// Removes an offer that is closed. Returns the line that it waited in.
    pub fn withdraw(&mut self, offer: &Queued) -> Option<K> {
        let key = self.places.remove(offer)?;
        let line = self.lines.get_mut(&key)?;
        line.live -= 1;
        line.gone += 1;
        if line.live == 0 {
            self.lines.remove(&key);
        } else if line.gone > line.live + GONE_MIN {
            let places = &self.places;
            line.queue.retain(|offer| places.contains_key(offer));
            line.gone = 0;
        }
        Some(key)
    }

    pub fn len(&self, key: &K) -> usize {
        self.lines.get(key).map_or(0, |line| line.live)
    }

    /// Returns the lines with an offer, and the number of live offers of each.
    pub fn iter(&self) -> impl Iterator<Item = (&K, usize)> {
        self.lines.iter().map(|(key, line)| (key, line.live))
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::QueuedWork;
    use super::*;
    use windlass_kernel::{ExecutionId, Fence, RunId};

    fn offer(number: u64) -> Queued {
        let work = QueuedWork::Offer(RunId(number), Fence(number));
        Queued { execution: ExecutionId(number.into()), work }
    }

    #[test]
    fn withdrawn_offers_take_no_memory_and_the_others_keep_their_order() {
        let mut lines: Lines<&str> = Lines::default();
        for number in 0..10_000 {
            assert!(lines.push(&"a", Priority::Normal, offer(number)));
        }
        assert!(!lines.push(&"b", Priority::Normal, offer(3)), "it waits already");
        for number in (0..10_000).filter(|number| *number != 7 && *number != 9_000) {
            assert_eq!(lines.withdraw(&offer(number)), Some("a"));
        }
        assert_eq!(lines.withdraw(&offer(0)), None);
        let stored = lines.lines["a"].queue.len();
        assert!(stored <= 2 + 2 + GONE_MIN, "{stored} are still stored");
        assert_eq!(lines.len(&"a"), 2);
        assert_eq!(
            [lines.pop(&"a"), lines.pop(&"a"), lines.pop(&"a")],
            [Some(offer(7)), Some(offer(9_000)), None]
        );
        assert_eq!((lines.lines.len(), lines.places.len()), (0, 0), "nothing of it is left");
    }

    #[test]
    fn an_offer_that_was_put_back_is_the_next_and_can_be_withdrawn() {
        let mut lines: Lines<&str> = Lines::default();
        for number in 0..3 {
            lines.push(&"a", Priority::Normal, offer(number));
        }
        let first = lines.pop(&"a").unwrap();
        lines.withdraw(&offer(1));
        assert!(lines.put_back(&"a", Priority::Normal, first));
        assert_eq!(lines.iter().collect::<Vec<_>>(), [(&"a", 2)]);
        lines.withdraw(&first);
        assert_eq!([lines.pop(&"a"), lines.pop(&"a")], [Some(offer(2)), None]);
    }
}
