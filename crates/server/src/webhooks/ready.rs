//! Executions with events to deliver, in a queue per receiver. Receivers take turns, so that none waits for another
//! one's queue, however long that is and however slowly it is answered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use windlass_kernel::ExecutionId;

/// Maximum number of executions in progress: each may wait for its receiver.
const AT_ONCE_MAX: usize = 64;
/// Maximum number of executions in progress per receiver, so that a slow one delays only itself.
const PER_RECEIVER_MAX: usize = 8;

#[derive(Debug, Default)]
pub(crate) struct Ready {
    queues: HashMap<Arc<str>, Queue>,
    /// Receivers with waiting executions that are below their maximum, each once.
    turns: VecDeque<Arc<str>>,
    queued: HashSet<ExecutionId>,
    at_work: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<ExecutionId>,
    at_work: usize,
}

impl Queue {
    fn has_turn(&self) -> bool {
        !self.waiting.is_empty() && self.at_work < PER_RECEIVER_MAX
    }
}

impl Ready {
    /// Appends an execution to the queue of its receiver, unless it is queued.
    pub(crate) fn push(&mut self, execution: ExecutionId, receiver: &Arc<str>) {
        if self.queued.insert(execution) {
            self.change(receiver, |queue| queue.waiting.push_back(execution));
        }
    }

    /// Takes the next execution; call [`Ready::done`] when it is finished. Returns None at the maximum.
    pub(crate) fn next(&mut self) -> Option<(ExecutionId, Arc<str>)> {
        if self.at_work >= AT_ONCE_MAX {
            return None;
        }
        let receiver = self.turns.pop_front()?;
        let queue = self.queues.get_mut(&receiver)?;
        let execution = queue.waiting.pop_front()?;
        queue.at_work += 1;
        self.at_work += 1;
        if queue.has_turn() {
            self.turns.push_back(receiver.clone());
        }
        self.queued.remove(&execution);
        Some((execution, receiver))
    }

    pub(crate) fn done(&mut self, receiver: &Arc<str>) {
        self.at_work -= 1;
        self.change(receiver, |queue| queue.at_work -= 1);
    }

    /// Changes a queue. A receiver that gets a turn by this is appended to the turns.
    fn change(&mut self, receiver: &Arc<str>, change: impl FnOnce(&mut Queue)) {
        let queue = self.queues.entry(receiver.clone()).or_default();
        let had_turn = queue.has_turn();
        change(queue);
        if queue.has_turn() && !had_turn {
            self.turns.push_back(receiver.clone());
        } else if queue.waiting.is_empty() && queue.at_work == 0 {
            self.queues.remove(receiver);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(name: &str) -> Arc<str> {
        name.into()
    }

    fn ready(ids: std::ops::Range<u128>, receiver: &Arc<str>, ready: &mut Ready) {
        ids.for_each(|id| ready.push(ExecutionId(id), receiver));
    }

    fn taken(ready: &mut Ready) -> Vec<u128> {
        std::iter::from_fn(|| ready.next()).map(|(id, _)| id.0).collect()
    }

    #[test]
    fn a_receiver_that_never_responds_does_not_delay_others() {
        let (slow, well) = (receiver("slow"), receiver("well"));
        let mut all = Ready::default();
        ready(0..100_000, &slow, &mut all);
        ready(100_000..100_003, &well, &mut all);
        assert_eq!(taken(&mut all), [0, 100_000, 1, 100_001, 2, 100_002, 3, 4, 5, 6, 7]);
        // The receiver is at its maximum until an execution is done.
        ready(100_003..100_004, &well, &mut all);
        assert_eq!(taken(&mut all), [100_003]);
        all.done(&slow);
        assert_eq!(taken(&mut all), [8]);
    }

    #[test]
    fn receivers_take_turns_for_free_slots() {
        let receivers: Vec<Arc<str>> = (0..9).map(|name| receiver(&name.to_string())).collect();
        let mut all = Ready::default();
        for (receiver, number) in receivers.iter().zip(0..) {
            ready(number * 100..number * 100 + 50, receiver, &mut all);
        }
        let first = taken(&mut all);
        assert_eq!(first.len(), AT_ONCE_MAX);
        assert_eq!(first[..10], [0, 100, 200, 300, 400, 500, 600, 700, 800, 1]);
        let last = first[AT_ONCE_MAX - 1] / 100;
        all.done(&receivers[3]);
        let next = taken(&mut all);
        assert_eq!(next.len(), 1);
        assert_eq!(next[0] / 100, (last + 1) % 9);
    }

    #[test]
    fn an_execution_is_queued_once_and_finished_ones_are_dropped() {
        let one = receiver("one");
        let mut all = Ready::default();
        ready(1..2, &one, &mut all);
        ready(1..2, &one, &mut all);
        assert_eq!(taken(&mut all), [1]);
        ready(1..2, &one, &mut all);
        all.done(&one);
        assert_eq!(taken(&mut all), [1], "ready once more while it was worked on");
        all.done(&one);
        assert!(all.queues.is_empty() && all.turns.is_empty() && all.queued.is_empty());
    }
}
