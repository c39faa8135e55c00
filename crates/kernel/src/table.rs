//! An ordered map that can be layered over another one. `decide` works on a draft of the execution: its tables hold
//! only what the draft changed and read the rest from the base, so the cost of a draft does not grow with the number
//! of live step-runs.

use crate::changes::{Change, Delta};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::hash::{Hash, Hasher};
use std::ops::{Bound, RangeBounds};

#[derive(Debug, Clone)]
pub struct Table<'b, K, V> {
    repr: Repr<'b, K, V>,
}

#[derive(Debug, Clone)]
enum Repr<'b, K, V> {
    Whole(BTreeMap<K, V>),
    /// `None` marks a key removed from the base.
    Over {
        base: &'b BTreeMap<K, V>,
        changed: BTreeMap<K, Option<V>>,
        len: usize,
    },
}

impl<K, V> Default for Table<'_, K, V> {
    fn default() -> Self {
        Table { repr: Repr::Whole(BTreeMap::new()) }
    }
}

impl<'b, K: Ord + Clone, V: Clone> Table<'b, K, V> {
    /// Creates a draft over `base`; changes stay in the draft.
    #[must_use]
    pub fn over<'a>(base: &'a Table<'b, K, V>) -> Table<'a, K, V> {
        match &base.repr {
            Repr::Whole(map) => {
                Table { repr: Repr::Over { base: map, changed: BTreeMap::new(), len: map.len() } }
            }
            Repr::Over { base, changed, len } => {
                Table { repr: Repr::Over { base, changed: changed.clone(), len: *len } }
            }
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        match &self.repr {
            Repr::Whole(map) => map.len(),
            Repr::Over { len, .. } => *len,
        }
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        match &self.repr {
            Repr::Whole(map) => map.get(key),
            Repr::Over { base, changed, .. } => match changed.get(key) {
                Some(slot) => slot.as_ref(),
                None => base.get(key),
            },
        }
    }

    #[must_use]
    pub fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Returns a value to change in place; a draft copies only the value it changes.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match &mut self.repr {
            Repr::Whole(map) => map.get_mut(key),
            Repr::Over { base, changed, .. } => match changed.entry(key.clone()) {
                btree_map::Entry::Occupied(slot) => slot.into_mut().as_mut(),
                btree_map::Entry::Vacant(slot) => {
                    let value = base.get(key)?.clone();
                    slot.insert(Some(value)).as_mut()
                }
            },
        }
    }

    pub fn insert(&mut self, key: K, value: V) -> bool {
        match &mut self.repr {
            Repr::Whole(map) => map.insert(key, value).is_none(),
            Repr::Over { base, changed, len } => {
                let was = match changed.get(&key) {
                    Some(slot) => slot.is_some(),
                    None => base.contains_key(&key),
                };
                changed.insert(key, Some(value));
                *len += usize::from(!was);
                !was
            }
        }
    }

    pub fn remove(&mut self, key: &K) -> Option<V> {
        match &mut self.repr {
            Repr::Whole(map) => {
                let old = map.remove(key);
                // An emptied map keeps its root node, which an idle execution does not need.
                if map.is_empty() {
                    *map = BTreeMap::new();
                }
                old
            }
            Repr::Over { base, changed, len } => {
                let in_base = base.contains_key(key);
                let old = match changed.get_mut(key) {
                    // A removal marker is needed only for a key that the base has.
                    Some(_) if !in_base => changed.remove(key).flatten(),
                    Some(slot) => slot.take(),
                    None => base.get(key).cloned().inspect(|_| {
                        changed.insert(key.clone(), None);
                    }),
                };
                *len -= usize::from(old.is_some());
                old
            }
        }
    }

    /// Returns every entry that a draft changed, with `sum` of the entry before.
    pub(crate) fn into_changes<B>(self, sum: impl Fn(&V) -> B) -> Delta<K, V, B> {
        let Repr::Over { base, changed, .. } = self.repr else { return Delta::new() };
        let change = |(key, after)| {
            let before = base.get(&key).map(&sum);
            (key, Change { before, after })
        };
        changed.into_iter().map(change).collect()
    }

    pub(crate) fn apply<B>(&mut self, delta: &Delta<K, V, B>) {
        for (key, change) in delta {
            match &change.after {
                Some(value) => {
                    self.insert(key.clone(), value.clone());
                }
                None => {
                    self.remove(key);
                }
            }
        }
    }

    pub fn clear(&mut self) {
        match &mut self.repr {
            Repr::Whole(map) => map.clear(),
            Repr::Over { base, changed, len } => {
                *changed = base.keys().map(|key| (key.clone(), None)).collect();
                *len = 0;
            }
        }
    }

    /// Returns all entries in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.range(..)
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    pub fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    pub fn range<R: RangeBounds<K> + Clone>(&self, range: R) -> impl Iterator<Item = (&K, &V)> {
        let (base, changed) = match &self.repr {
            Repr::Whole(map) => (Some(map), None),
            Repr::Over { base, changed, .. } => (Some(*base), Some(changed)),
        };
        Merge {
            base: base.map(|map| map.range(range.clone())),
            changed: changed.map(|map| map.range((range.start_bound().cloned(), range.end_bound().cloned()))),
            next_base: None,
            next_changed: None,
        }
    }

    /// Returns the entries whose key is `from` or greater, for scans by prefix.
    pub fn from(&self, from: K) -> impl Iterator<Item = (&K, &V)> {
        self.range((Bound::Included(from), Bound::Unbounded))
    }
}

/// Merges two sorted scans; a changed entry hides the base's entry, and a removal hides it too.
struct Merge<'a, K, V> {
    base: Option<btree_map::Range<'a, K, V>>,
    changed: Option<btree_map::Range<'a, K, Option<V>>>,
    next_base: Option<(&'a K, &'a V)>,
    next_changed: Option<(&'a K, &'a Option<V>)>,
}

impl<'a, K: Ord, V> Iterator for Merge<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next_base.is_none() {
                self.next_base = self.base.as_mut().and_then(Iterator::next);
            }
            if self.next_changed.is_none() {
                self.next_changed = self.changed.as_mut().and_then(Iterator::next);
            }
            let order = match (self.next_base, self.next_changed) {
                (None, None) => return None,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((base, _)), Some((changed, _))) => base.cmp(changed),
            };
            if order == Ordering::Less {
                return self.next_base.take();
            }
            if order == Ordering::Equal {
                self.next_base = None;
            }
            if let Some((key, Some(value))) = self.next_changed.take() {
                return Some((key, value));
            }
        }
    }
}

impl<K: Ord + Clone, V: Clone + PartialEq> PartialEq for Table<'_, K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Ord + Clone + Hash, V: Clone + Hash> Hash for Table<'_, K, V> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.len().hash(state);
        for entry in self.iter() {
            entry.hash(state);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Table<'static, u32, &'static str> {
        let mut table = Table::default();
        for (key, value) in [(1, "a"), (2, "b"), (4, "d")] {
            table.insert(key, value);
        }
        table
    }

    fn shown(table: &Table<'_, u32, &'static str>) -> String {
        table.iter().map(|(key, value)| format!("{key}{value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_draft_shows_its_changes_in_order_and_leaves_the_base_alone() {
        let base = base();
        let mut draft = Table::over(&base);
        draft.insert(3, "c");
        draft.remove(&1);
        *draft.get_mut(&4).unwrap() = "D";
        assert_eq!(shown(&draft), "2b 3c 4D");
        assert_eq!((draft.len(), shown(&base).as_str()), (3, "1a 2b 4d"));
        assert_eq!(draft.from(3).map(|(key, _)| *key).collect::<Vec<_>>(), [3, 4]);
    }

    #[test]
    fn what_a_draft_removed_stays_removed_until_it_is_put_back() {
        let base = base();
        let mut draft = Table::over(&base);
        assert_eq!(
            (draft.remove(&2), draft.remove(&2), draft.get(&2), draft.len()),
            (Some("b"), None, None, 2)
        );
        assert!(draft.get_mut(&2).is_none());
        assert!(draft.insert(2, "B"));
        assert_eq!(shown(&draft), "1a 2B 4d");
        draft.clear();
        assert_eq!((draft.len(), shown(&draft).as_str()), (0, ""));
    }

    #[test]
    fn tables_are_equal_when_they_show_the_same() {
        let base = base();
        let mut draft = Table::over(&base);
        assert!(draft == base.clone());
        draft.remove(&1);
        draft.insert(1, "A");
        assert!(draft != base.clone(), "another value");
        draft.insert(1, "a");
        draft.insert(5, "e");
        assert!(draft != base.clone(), "another key");
    }

    #[test]
    fn a_draft_of_a_draft_keeps_what_the_first_changed() {
        let base = base();
        let mut first = Table::over(&base);
        first.remove(&1);
        let mut second = Table::over(&first);
        second.insert(9, "z");
        assert_eq!((shown(&first).as_str(), shown(&second).as_str()), ("2b 4d", "2b 4d 9z"));
    }
}
