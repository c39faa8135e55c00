//! Offers that found no free slot. Tenants take turns, whoever of them has more; among a tenant's own offers the more
//! urgent go first, and none waits for ever.

use std::collections::{BTreeMap, VecDeque};
use windlass_kernel::{ExecutionId, Fence, RunId};
use windlass_store::{Priority, Tenant};

/// Turns of each priority before all have had theirs, the most urgent first.
const TURNS: [u8; 4] = [8, 4, 2, 1];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Queued {
    pub execution: ExecutionId,
    pub run: RunId,
    pub fence: Fence,
}

/// An entry whose offer is gone is dropped when its turn comes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Those that have offers here.
    waiting: BTreeMap<Tenant, Waiting>,
    /// The same, in the order of their turns.
    turns: VecDeque<Tenant>,
    len: usize,
    /// Taken out and on their way to a slot.
    leaving: usize,
}

/// What one tenant has, oldest first, by priority.
#[derive(Debug)]
struct Waiting {
    offers: [VecDeque<Queued>; 4],
    turns: [u8; 4],
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting { offers: Default::default(), turns: TURNS }
    }
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.offers.iter().all(VecDeque::is_empty)
    }

    fn pop(&mut self) -> Option<Queued> {
        let with_turn = |waiting: &Waiting| {
            (0..TURNS.len()).find(|place| waiting.turns[*place] > 0 && !waiting.offers[*place].is_empty())
        };
        let place = with_turn(self).or_else(|| {
            self.turns = TURNS;
            with_turn(self)
        })?;
        self.turns[place] -= 1;
        self.offers[place].pop_front()
    }
}

impl Queue {
    pub fn push(&mut self, tenant: &Tenant, priority: Priority, offer: Queued) {
        self.of(tenant).offers[priority as usize].push_back(offer);
    }

    /// One that was taken out and found no slot is the next again.
    pub fn put_back(&mut self, tenant: &Tenant, priority: Priority, offer: Queued) {
        self.of(tenant).offers[priority as usize].push_front(offer);
    }

    fn of(&mut self, tenant: &Tenant) -> &mut Waiting {
        self.len += 1;
        if !self.waiting.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.waiting.entry(tenant.clone()).or_default()
    }

    /// The next, which is on its way to a slot until it is said to have left.
    pub fn pop(&mut self) -> Option<Queued> {
        let tenant = self.turns.pop_front()?;
        let waiting = self.waiting.get_mut(&tenant)?;
        let offer = waiting.pop();
        if waiting.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        self.len -= 1;
        self.leaving += 1;
        offer
    }

    /// One that was taken out has found its slot, or is gone.
    pub fn left(&mut self) {
        self.leaving = self.leaving.saturating_sub(1);
    }

    pub fn leaving(&self) -> usize {
        self.leaving
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Nobody waits longer than an offer that comes now.
    pub fn is_empty(&self) -> bool {
        self.len == 0 && self.leaving == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(number: u64) -> Queued {
        Queued { execution: ExecutionId(number.into()), run: RunId(number), fence: Fence(number) }
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|offer| offer.run.0).collect()
    }

    #[test]
    fn a_tenant_with_one_offer_is_next_but_one_however_many_another_has() {
        let mut queue = Queue::default();
        let (many, one) = (Tenant::new("many"), Tenant::new("one"));
        (0..10_000).for_each(|number| queue.push(&many, Priority::Critical, offer(number)));
        queue.push(&one, Priority::Low, offer(99_999));
        assert_eq!((queue.pop(), queue.pop()), (Some(offer(0)), Some(offer(99_999))));
        assert_eq!(queue.len(), 9_999);
    }

    #[test]
    fn wfl_14_urgent_offers_go_first_and_the_others_are_not_forgotten() {
        let mut queue = Queue::default();
        let tenant = Tenant::default();
        for number in 0..30 {
            for priority in Priority::ALL {
                queue.push(&tenant, priority, offer(priority as u64));
            }
            assert_eq!(queue.len(), 4 * (number + 1));
        }
        let order = order(&mut queue);
        let (first, all) = (&order[..15], order.len());
        assert_eq!(first, [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3]);
        assert_eq!(all, 120);
    }

    #[test]
    fn offers_of_one_priority_keep_their_order_and_one_put_back_is_next() {
        let mut queue = Queue::default();
        let tenant = Tenant::default();
        (0..5).for_each(|number| queue.push(&tenant, Priority::Normal, offer(number)));
        let first = queue.pop().unwrap();
        queue.put_back(&tenant, Priority::Normal, first);
        queue.left();
        assert_eq!(order(&mut queue), [0, 1, 2, 3, 4]);
        assert!(!queue.is_empty(), "five are on their way");
        (0..5).for_each(|_| queue.left());
        assert!(queue.is_empty());
    }
}
