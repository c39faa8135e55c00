//! Reads that wait for a thread, in a lane per tenant. The lane that has used the threads least is served next, and no
//! lane may use all threads: other tenants wait for one slice of a read at most.

use crate::database::DatabaseReader;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use windlass_store::Tenant;

/// Number of lanes that are kept before idle ones are dropped; a lane takes about 100 bytes.
const LANES_MAX: usize = 256;

pub(super) type Reading = Box<dyn FnOnce(&mut DatabaseReader) + Send>;

/// Lane of a tenant; None for reads of the server itself.
pub(super) type LaneId = Option<Tenant>;

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    /// Maximum number of reads of one lane that run at a time.
    running_max: usize,
}

#[derive(Default)]
struct Waiting {
    lanes: BTreeMap<LaneId, Lane>,
    /// Time that the least busy lane had used when it was last served. A lane that was idle starts from it.
    floor: Duration,
    closed: bool,
}

#[derive(Default)]
struct Lane {
    readings: VecDeque<Reading>,
    running: usize,
    /// Time that it has used on the threads.
    used: Duration,
}

/// Reason for which a read is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    /// The tenant has the maximum number of waiting reads.
    Full,
    Closed,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("running_max", &self.running_max).finish_non_exhaustive()
    }
}

impl Queue {
    pub(super) fn new(running_max: usize) -> Queue {
        Queue { waiting: Mutex::default(), changed: Condvar::new(), running_max: running_max.max(1) }
    }

    /// Adds a read, unless its lane has the maximum number of waiting reads.
    pub(super) fn push(&self, lane: &LaneId, waiting_max: usize, reading: Reading) -> Result<(), Refused> {
        let mut waiting = self.lock();
        if waiting.closed {
            return Err(Refused::Closed);
        }
        if waiting.lanes.len() >= LANES_MAX {
            waiting.drop_idle();
        }
        let floor = waiting.floor;
        let lane = waiting.lanes.entry(lane.clone()).or_default();
        if lane.readings.len() >= waiting_max {
            return Err(Refused::Full);
        }
        if lane.is_idle() {
            lane.used = lane.used.max(floor);
        }
        lane.readings.push_back(reading);
        drop(waiting);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for the next read; None when the queue is closed and empty.
    pub(super) fn next(&self) -> Option<(LaneId, Reading)> {
        let mut waiting = self.lock();
        loop {
            if let Some(next) = waiting.take(self.running_max) {
                return Some(next);
            }
            if waiting.closed && waiting.lanes.values().all(|lane| lane.readings.is_empty()) {
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes the end of a read and its duration.
    pub(super) fn done(&self, lane: &LaneId, took: Duration) {
        let mut waiting = self.lock();
        if let Some(lane) = waiting.lanes.get_mut(lane) {
            lane.running -= 1;
            lane.used += took;
        }
        drop(waiting);
        // A lane that was at its maximum can continue, on any thread.
        self.changed.notify_all();
    }

    /// Ends the threads after all waiting reads.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn take(&mut self, running_max: usize) -> Option<(LaneId, Reading)> {
        let ready = |lane: &Lane| !lane.readings.is_empty() && lane.running < running_max;
        let ready = self.lanes.iter_mut().filter(|(_, lane)| ready(lane));
        let (id, lane) = ready.min_by_key(|(_, lane)| lane.used)?;
        let reading = lane.readings.pop_front()?;
        lane.running += 1;
        self.floor = self.floor.max(lane.used);
        Some((id.clone(), reading))
    }

    fn drop_idle(&mut self) {
        let floor = self.floor;
        self.lanes.retain(|_, lane| !lane.is_idle() || lane.used > floor);
    }
}

impl Lane {
    fn is_idle(&self) -> bool {
        self.readings.is_empty() && self.running == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(name: &str) -> LaneId {
        Some(Tenant::new(name))
    }

    fn push(queue: &Queue, name: &str, count: usize) {
        (0..count).for_each(|_| queue.push(&lane(name), 100, Box::new(|_| ())).unwrap());
    }

    /// Takes and ends this number of reads with this duration each. Returns their lanes.
    fn served(queue: &Queue, count: usize, took: impl Fn(&str) -> u64) -> Vec<String> {
        let one = |_| {
            let (lane, _) = queue.next().unwrap();
            let name = lane.as_ref().unwrap().to_string();
            queue.done(&lane, Duration::from_millis(took(&name)));
            name
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn the_lane_that_has_used_less_is_served_first() {
        let queue = Queue::new(1);
        push(&queue, "heavy", 10);
        assert_eq!(served(&queue, 2, |_| 20), ["heavy", "heavy"]);
        push(&queue, "light", 10);
        let took = |name: &str| if name == "heavy" { 20 } else { 5 };
        let turns = served(&queue, 10, took);
        assert_eq!(turns.iter().filter(|name| *name == "light").count(), 8, "{turns:?}");
    }

    #[test]
    fn no_lane_has_all_threads_and_an_idle_one_saves_nothing_up() {
        let queue = Queue::new(1);
        push(&queue, "a", 3);
        let (a, _) = queue.next().unwrap();
        push(&queue, "b", 1);
        let (b, _) = queue.next().unwrap();
        assert_eq!((&a, &b), (&lane("a"), &lane("b")));
        queue.done(&b, Duration::from_millis(1));
        queue.done(&a, Duration::from_millis(500));
        assert_eq!(served(&queue, 2, |_| 500), ["a", "a"]);
        push(&queue, "c", 3);
        push(&queue, "b", 3);
        assert!(queue.lock().lanes.values().all(|lane| lane.used >= Duration::from_millis(500)));
    }

    #[test]
    fn a_lane_that_is_full_refuses_and_others_do_not() {
        let queue = Queue::new(1);
        push(&queue, "a", 100);
        assert_eq!(queue.push(&lane("a"), 100, Box::new(|_| ())), Err(Refused::Full));
        push(&queue, "b", 1);
        queue.close();
        assert_eq!(queue.push(&lane("b"), 100, Box::new(|_| ())), Err(Refused::Closed));
    }
}
