//! Execution ids to their small numbers, for those in use.

use std::collections::HashMap;
use windlass_kernel::ExecutionId;

/// Entries of one half; about 2 MB each. More executions than both halves hold cost one lookup a commit.
const HALF_MAX: usize = 65_536;

/// Two halves: a full young one becomes the old one, and what is asked for again is young again.
#[derive(Debug, Default)]
pub(super) struct Keys {
    young: HashMap<ExecutionId, i64>,
    old: HashMap<ExecutionId, i64>,
}

impl Keys {
    pub(super) fn get(&mut self, id: ExecutionId) -> Option<i64> {
        if let Some(key) = self.young.get(&id) {
            return Some(*key);
        }
        let key = *self.old.get(&id)?;
        self.put(id, key);
        Some(key)
    }

    pub(super) fn forget(&mut self, id: ExecutionId) {
        self.young.remove(&id);
        self.old.remove(&id);
    }

    pub(super) fn put(&mut self, id: ExecutionId, key: i64) {
        if self.young.len() >= HALF_MAX {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_stays_and_the_rest_is_forgotten() {
        let mut keys = Keys::default();
        keys.put(ExecutionId(0), 7);
        for number in 1..3 * HALF_MAX as u128 {
            keys.put(ExecutionId(number), 0);
            assert_eq!(keys.get(ExecutionId(0)), Some(7));
        }
        assert!(keys.young.len() + keys.old.len() <= 2 * HALF_MAX);
        assert_eq!(keys.get(ExecutionId(1)), None);
    }
}
