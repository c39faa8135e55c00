//! A map that is kept between requests and bounded in memory, not only in number: a tenant chooses how large entries are.

use std::collections::HashMap;
use std::hash::Hash;

/// Entries with about as many bytes as they hold. Beyond its bounds it forgets all, which costs no more than making them
/// again.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    entries: HashMap<K, (V, usize)>,
    bytes: usize,
    entries_max: usize,
    bytes_max: usize,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    #[must_use]
    pub fn new(entries_max: usize, bytes_max: usize) -> BoundedMap<K, V> {
        BoundedMap { entries: HashMap::new(), bytes: 0, entries_max, bytes_max }
    }

    #[must_use]
    pub fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key).map(|(value, _)| value)
    }

    /// An entry that would fill much of the map alone is not kept.
    pub fn insert(&mut self, key: K, value: V, bytes: usize) {
        if bytes > self.bytes_max / 4 {
            return;
        }
        if self.entries.len() >= self.entries_max || self.bytes + bytes > self.bytes_max {
            self.entries.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        if let Some((_, replaced)) = self.entries.insert(key, (value, bytes)) {
            self.bytes -= replaced;
        }
    }

    pub fn remove(&mut self, key: &K) {
        if let Some((_, bytes)) = self.entries.remove(key) {
            self.bytes -= bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_bytes_are_bounded() {
        let mut map = BoundedMap::new(3, 100);
        map.insert("large", 0, 26);
        assert_eq!(map.get(&"large"), None);
        for (key, value) in [("a", 1), ("b", 2), ("c", 3)] {
            map.insert(key, value, 10);
        }
        map.insert("a", 4, 20);
        assert_eq!((map.get(&"a"), map.get(&"b")), (Some(&4), None), "a fourth insert forgets all");
        map.insert("d", 5, 25);
        map.remove(&"d");
        assert_eq!((map.bytes, map.get(&"d")), (20, None));
        for key in ["e", "f"] {
            map.insert(key, 6, 25);
        }
        assert_eq!(map.bytes, 70);
    }
}
