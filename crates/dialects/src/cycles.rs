//! Cycles among steps that follow each other.

use std::collections::BTreeSet;

/// Returns the steps that are in a cycle or follow one, given the steps before each step: those that remain when steps
/// without open predecessors are removed again and again.
pub(crate) fn unorderable(mut before: Vec<BTreeSet<usize>>) -> Vec<usize> {
    let mut followers = vec![Vec::new(); before.len()];
    for (place, before) in before.iter().enumerate() {
        before.iter().for_each(|of| followers[*of].push(place));
    }
    let mut free: Vec<usize> = (0..before.len()).filter(|place| before[*place].is_empty()).collect();
    while let Some(done) = free.pop() {
        for follower in &followers[done] {
            before[*follower].remove(&done);
            if before[*follower].is_empty() {
                free.push(*follower);
            }
        }
    }
    before.iter().enumerate().filter(|(_, open)| !open.is_empty()).map(|(place, _)| place).collect()
}
