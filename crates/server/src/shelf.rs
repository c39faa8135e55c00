//! What is kept between requests because it was costly to make: bounded by how many there are and by what they weigh.
//! What nobody has asked for longest goes first.

use std::collections::BTreeMap;
use std::ops::RangeBounds;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A shelf is whole after every call, so one that a panic left is as good as any.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[derive(Debug)]
pub struct Shelf<K, V> {
    bounds: Bounds,
    kept: BTreeMap<K, Kept<V>>,
    /// By their last use.
    uses: BTreeMap<u64, K>,
    now: u64,
    weight: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    pub entries_max: usize,
    pub weight_max: u64,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    weight: u64,
    used: u64,
}

impl<K: Ord + Clone, V: Clone> Shelf<K, V> {
    #[must_use]
    pub fn new(bounds: Bounds) -> Shelf<K, V> {
        Shelf { bounds, kept: BTreeMap::new(), uses: BTreeMap::new(), now: 0, weight: 0 }
    }

    /// Counts as a use.
    pub fn get(&mut self, key: &K) -> Option<V> {
        self.last(key..=key).map(|(_, value)| value)
    }

    /// The last one in a range of keys; counts as a use.
    pub fn last(&mut self, range: impl RangeBounds<K>) -> Option<(K, V)> {
        let (key, kept) = self.kept.range_mut(range).next_back()?;
        self.uses.remove(&kept.used);
        self.now += 1;
        kept.used = self.now;
        self.uses.insert(self.now, key.clone());
        Some((key.clone(), kept.value.clone()))
    }

    /// Keeps it in the place of what was there; others go until all is within bounds. What is too heavy by itself is not
    /// kept.
    pub fn put(&mut self, key: K, value: V, weight: u64) {
        self.remove(&key);
        if weight > self.bounds.weight_max {
            return;
        }
        self.now += 1;
        self.weight += weight;
        self.uses.insert(self.now, key.clone());
        self.kept.insert(key, Kept { value, weight, used: self.now });
        while self.kept.len() > self.bounds.entries_max || self.weight > self.bounds.weight_max {
            let Some((_, oldest)) = self.uses.first_key_value() else { return };
            let oldest = oldest.clone();
            self.remove(&oldest);
        }
    }

    fn remove(&mut self, key: &K) {
        if let Some(gone) = self.kept.remove(key) {
            self.uses.remove(&gone.used);
            self.weight -= gone.weight;
        }
    }

    pub fn clear(&mut self) {
        self.kept.clear();
        self.uses.clear();
        self.weight = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shelf() -> Shelf<u32, &'static str> {
        Shelf::new(Bounds { entries_max: 3, weight_max: 100 })
    }

    fn keys(shelf: &Shelf<u32, &'static str>) -> Vec<u32> {
        assert_eq!(shelf.kept.len(), shelf.uses.len());
        assert_eq!(shelf.weight, shelf.kept.values().map(|kept| kept.weight).sum::<u64>());
        shelf.kept.keys().copied().collect()
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_when_there_are_too_many() {
        let mut shelf = shelf();
        for key in 1..=3 {
            shelf.put(key, "x", 1);
        }
        assert_eq!(shelf.get(&1), Some("x"));
        shelf.put(4, "x", 1);
        assert_eq!(keys(&shelf), [1, 3, 4]);
        assert_eq!(shelf.get(&2), None);
    }

    #[test]
    fn the_heavy_go_when_all_weigh_too_much_and_the_too_heavy_is_not_kept() {
        let mut shelf = shelf();
        shelf.put(1, "x", 60);
        shelf.put(2, "x", 40);
        shelf.put(2, "y", 41);
        assert_eq!(keys(&shelf), [2]);
        shelf.put(3, "x", 101);
        assert_eq!((keys(&shelf), shelf.get(&2)), (vec![2], Some("y")));
        shelf.put(2, "z", 101);
        assert!(keys(&shelf).is_empty());
    }

    #[test]
    fn the_last_of_a_range_is_found_and_what_was_removed_is_not() {
        let mut shelf = shelf();
        shelf.put(3, "three", 1);
        shelf.put(7, "seven", 1);
        assert_eq!(shelf.last(0..=6), Some((3, "three")));
        assert_eq!(shelf.last(0..3), None);
        shelf.remove(&3);
        assert_eq!(shelf.last(0..=6), None);
        shelf.clear();
        assert!(keys(&shelf).is_empty());
    }
}
