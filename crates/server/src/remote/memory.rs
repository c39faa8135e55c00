//! A map of the newest entries.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Keeps a bounded number of entries; the oldest is evicted first.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    max: usize,
    entries: HashMap<K, V>,
    /// Keys in the order of their insertion; some may be gone.
    order: VecDeque<K>,
}

impl<K: Hash + Eq + Copy, V> Recent<K, V> {
    pub(super) fn new(max: usize) -> Recent<K, V> {
        Recent { max, entries: HashMap::new(), order: VecDeque::new() }
    }

    pub(super) fn put(&mut self, key: K, value: V) {
        if self.entries.insert(key, value).is_none() {
            self.order.push_back(key);
        }
        while self.entries.len() > self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
        }
        // Keys of entries that were taken out would grow without end.
        if self.order.len() > 2 * self.max {
            self.order.retain(|key| self.entries.contains_key(key));
        }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        self.entries.remove(key)
    }

    pub(super) fn take_if(&mut self, key: &K, is_wanted: impl FnOnce(&V) -> bool) -> Option<V> {
        self.entries.get(key).is_some_and(is_wanted).then(|| self.entries.remove(key)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_are_evicted_and_keys_do_not_pile_up() {
        let mut recent = Recent::new(3);
        for number in 0..5 {
            recent.put(number, number * 10);
        }
        assert_eq!([0, 1, 2, 4].map(|key| recent.get(&key).copied()), [None, None, Some(20), Some(40)]);
        assert_eq!(recent.take_if(&2, |value| *value == 21), None);
        assert_eq!(recent.take(&2), Some(20));
        for number in 10..1_000 {
            recent.put(number, 0);
            recent.take(&number);
        }
        assert!(recent.order.len() <= 7 && recent.get(&4).is_some(), "{}", recent.order.len());
    }
}
