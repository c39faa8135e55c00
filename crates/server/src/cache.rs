//! The cache of the read side: values that are costly to derive, bounded by their number and by their weight. The least
//! recently used are evicted first.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex whose value is consistent after every call, so that it can be used after a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub(crate) struct Cache<K, V> {
    bounds: CacheBounds,
    entries: Mutex<Entries<K, V>>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct CacheBounds {
    pub entries_max: usize,
    /// Approximate bytes.
    pub weight_max: u64,
}

#[derive(Debug)]
struct Entries<K, V> {
    by_key: BTreeMap<K, Cached<V>>,
    by_use: BTreeMap<u64, K>,
    uses: u64,
    weight: u64,
}

#[derive(Debug)]
struct Cached<V> {
    value: V,
    weight: u64,
    used: u64,
}

impl<K: Ord + Clone, V: Clone> Cache<K, V> {
    #[must_use]
    pub(crate) fn new(bounds: CacheBounds) -> Cache<K, V> {
        let (by_key, by_use) = (BTreeMap::new(), BTreeMap::new());
        Cache { bounds, entries: Mutex::new(Entries { by_key, by_use, uses: 0, weight: 0 }) }
    }

    /// Returns a value and counts it as used.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.last(key..=key)
    }

    /// Returns the value with the highest key in a range, and counts it as used.
    pub(crate) fn last(&self, range: impl RangeBounds<K>) -> Option<V> {
        let mut entries = lock(&self.entries);
        let Entries { by_key, by_use, uses, .. } = &mut *entries;
        let (key, cached) = by_key.range_mut(range).next_back()?;
        by_use.remove(&cached.used);
        *uses += 1;
        cached.used = *uses;
        by_use.insert(*uses, key.clone());
        Some(cached.value.clone())
    }

    /// Inserts or replaces a value, and evicts others until all are within the bounds. A value that is too heavy by itself
    /// is not kept.
    pub(crate) fn insert(&self, key: K, value: V, weight: u64) {
        let mut entries = lock(&self.entries);
        entries.remove(&key);
        if weight > self.bounds.weight_max {
            return;
        }
        entries.uses += 1;
        entries.weight += weight;
        let used = entries.uses;
        entries.by_use.insert(used, key.clone());
        entries.by_key.insert(key, Cached { value, weight, used });
        while entries.by_key.len() > self.bounds.entries_max || entries.weight > self.bounds.weight_max {
            let Some((_, oldest)) = entries.by_use.pop_first() else { return };
            entries.remove(&oldest);
        }
    }

    pub(crate) fn remove(&self, key: &K) {
        lock(&self.entries).remove(key);
    }

    pub(crate) fn clear(&self) {
        let mut entries = lock(&self.entries);
        entries.by_key.clear();
        entries.by_use.clear();
        entries.weight = 0;
    }
}

impl<K: Ord, V> Entries<K, V> {
    fn remove(&mut self, key: &K) {
        if let Some(removed) = self.by_key.remove(key) {
            self.by_use.remove(&removed.used);
            self.weight -= removed.weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache() -> Cache<u32, &'static str> {
        Cache::new(CacheBounds { entries_max: 3, weight_max: 100 })
    }

    fn keys(cache: &Cache<u32, &'static str>) -> Vec<u32> {
        let entries = lock(&cache.entries);
        assert_eq!(entries.by_key.len(), entries.by_use.len());
        assert_eq!(entries.weight, entries.by_key.values().map(|cached| cached.weight).sum::<u64>());
        entries.by_key.keys().copied().collect()
    }

    #[test]
    fn the_least_recently_used_is_evicted_when_there_are_too_many() {
        let cache = cache();
        for key in 1..=3 {
            cache.insert(key, "x", 1);
        }
        assert_eq!(cache.get(&1), Some("x"));
        cache.insert(4, "x", 1);
        assert_eq!(keys(&cache), [1, 3, 4]);
        assert_eq!(cache.get(&2), None);
    }

    #[test]
    fn entries_are_evicted_by_weight_and_one_that_is_too_heavy_is_not_kept() {
        let cache = cache();
        cache.insert(1, "x", 60);
        cache.insert(2, "x", 40);
        cache.insert(2, "y", 41);
        assert_eq!(keys(&cache), [2]);
        cache.insert(3, "x", 101);
        assert_eq!((keys(&cache), cache.get(&2)), (vec![2], Some("y")));
        cache.insert(2, "z", 101);
        assert!(keys(&cache).is_empty());
    }

    #[test]
    fn the_last_of_a_range_is_found_unless_it_was_removed() {
        let cache = cache();
        cache.insert(3, "three", 1);
        cache.insert(7, "seven", 1);
        assert_eq!(cache.last(0..=6), Some("three"));
        assert_eq!(cache.last(0..3), None);
        cache.remove(&3);
        assert_eq!(cache.last(0..=6), None);
        cache.clear();
        assert!(keys(&cache).is_empty());
    }
}
