//! Steps that run before each step of a graph.

const WORD: usize = u64::BITS as usize;

/// All predecessors of every step, direct and indirect: a bit for each pair. 5,000 steps take 3 MiB, where a set for each
/// step takes hundreds.
#[derive(Debug)]
pub(crate) struct Ancestors {
    /// Number of words of one step.
    row: usize,
    words: Vec<u64>,
}

impl Ancestors {
    /// Finds the ancestors, given the direct predecessors of each step. The graph must have no cycle.
    pub(crate) fn find(direct: &[Vec<usize>]) -> Ancestors {
        let row = direct.len().div_ceil(WORD);
        let mut ancestors = Ancestors { row, words: vec![0; row * direct.len()] };
        let mut followers = vec![Vec::new(); direct.len()];
        for (step, before) in direct.iter().enumerate() {
            before.iter().for_each(|of| followers[*of].push(step));
        }
        let mut open: Vec<usize> = direct.iter().map(Vec::len).collect();
        let mut free: Vec<usize> = (0..direct.len()).filter(|step| open[*step] == 0).collect();
        // The row of a step is complete when all of its predecessors are done.
        while let Some(done) = free.pop() {
            for follower in &followers[done] {
                ancestors.add(*follower, done);
                open[*follower] -= 1;
                if open[*follower] == 0 {
                    free.push(*follower);
                }
            }
        }
        ancestors
    }

    /// Reports whether a step is an ancestor of another one.
    pub(crate) fn has(&self, of: usize, step: usize) -> bool {
        self.words[of * self.row + step / WORD] >> (step % WORD) & 1 == 1
    }

    /// Adds a step and its ancestors to those of another step.
    fn add(&mut self, to: usize, step: usize) {
        for word in 0..self.row {
            self.words[to * self.row + word] |= self.words[step * self.row + word];
        }
        self.words[to * self.row + step / WORD] |= 1 << (step % WORD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ancestors_are_found_over_all_paths_and_words() {
        // 0 -> 1 -> … -> 129, with 130 as another root; 131 follows 64 and 130, named twice.
        let mut direct: Vec<Vec<usize>> =
            (0..130).map(|step: usize| step.checked_sub(1).into_iter().collect()).collect();
        direct.extend([Vec::new(), vec![64, 130, 64]]);
        let ancestors = Ancestors::find(&direct);
        for (of, step, expected) in [
            (0, 0, false),
            (129, 0, true),
            (129, 128, true),
            (129, 129, false),
            (1, 2, false),
            (129, 130, false),
            (131, 130, true),
            (131, 64, true),
            (131, 0, true),
            (131, 65, false),
        ] {
            assert_eq!(ancestors.has(of, step), expected, "{step} before {of}");
        }
    }
}
