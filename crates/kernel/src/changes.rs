//! Changes of the live state by one decision, table by table. The caller applies them instead of folding the records
//! again, and stores derive their rows from them.

use crate::execution::{Execution, Gate, Head, JoinState, ParkedIteration, Scope, Token};
use crate::ids::{Path, RunId, StepId, TokenId};
use crate::step_run::{Kind, StepRun};
use crate::table::Table;
use std::cmp::Reverse;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

/// One entry before and after; it is present in at least one of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Change<V, B = ()> {
    pub before: Option<B>,
    pub after: Option<V>,
}

/// Changed entries in key order.
pub type Delta<K, V, B = ()> = Vec<(K, Change<V, B>)>;

/// Changes that lead from the state before to the state after.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    pub head: Head,
    /// True if the context changed.
    pub ctx: bool,
    pub arrived: Delta<TokenId, Token>,
    pub gated: Delta<(StepId, TokenId), Box<Gate>>,
    pub joins: Delta<(StepId, Path), Box<JoinState>>,
    pub joining: Delta<(StepId, TokenId), Token>,
    pub runs: Delta<RunId, Box<StepRun>, Kind>,
    pub ready: Delta<(bool, u32, RunId), ()>,
    pub hungry: Delta<RunId, ()>,
    pub scopes: Delta<(RunId, u32), Scope>,
    pub parked: Delta<(RunId, u32), Box<ParkedIteration>>,
    pub regions: Delta<(StepId, Path), RunId>,
    pub latest: Delta<(StepId, Path), RunId>,
    pub owed: Delta<Reverse<u64>, (RunId, StepId)>,
}

macro_rules! each_table {
    ($do:ident) => {
        $do!(arrived, gated, joins, joining, runs, ready, hungry, scopes, parked, regions, latest, owed)
    };
}

impl Changes {
    /// Returns the whole state as changes from an empty one. The state must not be a draft.
    #[must_use]
    pub fn whole(state: &Execution<'_>) -> Changes {
        macro_rules! all {
            ($($table:ident),*) => {
                Changes { head: state.head.clone(), ctx: true, $($table: all_entries(&state.$table)),* }
            };
        }
        each_table!(all)
    }

    /// Merges successive changes into one.
    #[must_use]
    pub fn folded(mut all: Vec<Changes>) -> Changes {
        let Some(last) = all.pop() else { return Changes::default() };
        if all.is_empty() {
            return last;
        }
        let ctx = last.ctx || all.iter().any(|changes| changes.ctx);
        let head = last.head.clone();
        all.push(last);
        macro_rules! fold {
            ($($table:ident),*) => {
                Changes { head, ctx, $($table: merge_deltas(all.iter_mut().map(|changes| &mut changes.$table))),* }
            };
        }
        each_table!(fold)
    }
}

fn all_entries<K: Ord + Clone, V: Clone, B>(table: &Table<'_, K, V>) -> Delta<K, V, B> {
    let change = |value: &V| Change { before: None, after: Some(value.clone()) };
    table.iter().map(|(key, value)| (key.clone(), change(value))).collect()
}

/// Merges deltas; an entry that was added and removed in between is no change.
fn merge_deltas<'d, K: Ord + 'd, V: 'd, B: 'd>(
    all: impl Iterator<Item = &'d mut Delta<K, V, B>>,
) -> Delta<K, V, B> {
    let mut merged: BTreeMap<K, Change<V, B>> = BTreeMap::new();
    for (key, change) in all.flat_map(std::mem::take) {
        match merged.entry(key) {
            btree_map::Entry::Vacant(slot) => drop(slot.insert(change)),
            btree_map::Entry::Occupied(mut slot) => slot.get_mut().after = change.after,
        }
    }
    merged.into_iter().filter(|(_, change)| change.before.is_some() || change.after.is_some()).collect()
}

impl<'b> Execution<'b> {
    /// Returns what a draft changed.
    pub(crate) fn into_changes(self, before: &Head) -> Changes {
        let ctx = !Arc::ptr_eq(&self.head.ctx, &before.ctx);
        macro_rules! of {
            (runs) => {
                self.runs.into_changes(|run| run.state.kind())
            };
            ($table:ident) => {
                self.$table.into_changes(|_| ())
            };
        }
        macro_rules! all {
            ($($table:ident),*) => { Changes { head: self.head, ctx, $($table: of!($table)),* } };
        }
        each_table!(all)
    }

    /// Applies the changes of a decision that was made on this state.
    pub fn apply(&mut self, changes: &Changes) {
        self.head = changes.head.clone();
        macro_rules! each {
            ($($table:ident),*) => { $(self.$table.apply(&changes.$table);)* };
        }
        each_table!(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(before: bool, after: Option<u8>) -> Change<u8> {
        Change { before: before.then_some(()), after }
    }

    #[test]
    fn what_came_and_went_between_two_states_is_no_change() {
        let mut first = vec![
            (1, change(false, Some(1))),
            (2, change(true, Some(2))),
            (3, change(true, None)),
            (4, change(false, Some(4))),
        ];
        let mut later = vec![
            (1, change(true, None)),
            (2, change(true, None)),
            (3, change(false, Some(33))),
            (5, change(true, None)),
        ];
        let merged = merge_deltas([&mut first, &mut later].into_iter());
        let expected = vec![
            (2, change(true, None)),
            (3, change(true, Some(33))),
            (4, change(false, Some(4))),
            (5, change(true, None)),
        ];
        assert_eq!(merged, expected);
    }
}
