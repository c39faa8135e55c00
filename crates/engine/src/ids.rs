//! Ids of executions, and maps by ids. Ids are random or counted, and no outsider can choose those that are stored, so
//! a hash that only distributes them is enough. It is the same in every run.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use windlass_kernel::{ExecutionId, Millis};

pub(crate) type IdSet<K> = HashSet<K, BuildHasherDefault<IdHasher>>;
pub(crate) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Returns a UUID of version 7: ordered by time, so new executions are close together on disk.
#[must_use]
pub fn new_execution_id(wall: Millis, random: u128) -> ExecutionId {
    let time = u128::from(u64::try_from(wall.0).unwrap_or(0)) << 80;
    let tail = random & ((1 << 80) - 1);
    let versioned = tail & !(0xf << 76) | (0x7 << 76);
    ExecutionId(time | versioned & !(0b11 << 62) | (0b10 << 62))
}

/// An odd number without a pattern: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
const LOW: u128 = u64::MAX as u128;

#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    /// Combines both halves of the product, so that every bit of the number affects every bit of the hash.
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ SPREAD) * u128::from(SPREAD);
        self.0 = (product & LOW) as u64 ^ (product >> 64) as u64;
    }

    fn write_u128(&mut self, number: u128) {
        self.write_u64((number & LOW) as u64);
        self.write_u64((number >> 64) as u64);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::hash::{BuildHasher, Hash};

    fn hash(key: impl Hash) -> u64 {
        BuildHasherDefault::<IdHasher>::default().hash_one(key)
    }

    #[test]
    fn ids_that_differ_in_one_place_only_are_spread() {
        // A table uses the low bits and the highest seven bits.
        let check = |what: &str, hashes: Vec<u64>| {
            let low: HashSet<u64> = hashes.iter().map(|hash| hash & 0xfff).collect();
            let high: HashSet<u64> = hashes.iter().map(|hash| hash >> 57).collect();
            let (low, high) = (low.len(), high.len());
            assert!(low > 2_400 && high == 128, "{what}: {low} and {high} different ends of 4096 hashes");
        };
        check("counted", (0..4_096u64).map(hash).collect());
        check("in the upper half", (0..4_096u128).map(|id| hash(id << 100)).collect());
        check("times", (0..4_096u128).map(|id| hash(id << 80 | 0x7_1234)).collect());
        check("offers", (0..4_096u64).map(|fence| hash((7u128, 1u64 << 32, fence))).collect());
        check("bytes", (0..4_096u32).map(|number| hash([number.to_le_bytes(), [0; 4]])).collect());
    }
}
