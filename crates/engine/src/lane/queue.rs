//! Offers and starts that wait for a free slot. The tenant with the fewest slots is next, and tenants with the same
//! number take turns; a tenant at its limit waits. Among a tenant's own offers the more urgent are first, and none
//! waits forever.

use crate::wake::SlotLimits;
use std::collections::{BTreeMap, VecDeque};
use windlass_kernel::{ExecutionId, Fence, RunId};
use windlass_store::{Priority, Tenant};

/// Turns of each priority in one round, the most urgent first.
const TURNS: [u8; 4] = [8, 4, 2, 1];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Queued {
    pub execution: ExecutionId,
    pub work: QueuedWork,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum QueuedWork {
    Offer(RunId, Fence),
    /// The start of an execution, whose first work needs a slot.
    Start,
    /// An execution for a worker that takes it as a whole.
    Whole,
}

/// Queue of entries. An entry whose offer no longer exists is dropped when its turn comes.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Tenants that have entries.
    waiting: BTreeMap<Tenant, Waiting>,
    /// The same tenants in the order of their turns.
    turns: VecDeque<Tenant>,
    len: usize,
    /// Entries that were taken out and have no slot yet, by tenant; no number is 0.
    leaving: BTreeMap<Tenant, usize>,
    all_leaving: usize,
    limits: SlotLimits,
    /// Number of all slots, taken or free.
    pub slots: usize,
}

/// Number of slots of a tenant; entries without a slot yet are counted here.
pub(super) type SlotCount<'h> = &'h dyn Fn(&Tenant) -> usize;

/// Entries of one tenant, oldest first, by priority.
#[derive(Debug)]
pub(super) struct Waiting {
    offers: [VecDeque<Queued>; 4],
    turns: [u8; 4],
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting { offers: Default::default(), turns: TURNS }
    }
}

impl Waiting {
    pub fn is_empty(&self) -> bool {
        self.offers.iter().all(VecDeque::is_empty)
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.offers.iter().map(VecDeque::len).sum()
    }

    pub fn push(&mut self, priority: Priority, offer: Queued) {
        self.offers[priority as usize].push_back(offer);
    }

    /// Removes the offers that are not wanted any more.
    pub fn retain(&mut self, is_wanted: impl Fn(&Queued) -> bool) {
        self.offers.iter_mut().for_each(|offers| offers.retain(&is_wanted));
    }

    pub fn put_back(&mut self, priority: Priority, offer: Queued) {
        self.offers[priority as usize].push_front(offer);
    }

    pub fn pop(&mut self) -> Option<Queued> {
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
        self.of(tenant).push(priority, offer);
    }

    /// Returns an entry that found no slot to the front of the queue.
    pub fn put_back(&mut self, tenant: &Tenant, priority: Priority, offer: Queued) {
        self.of(tenant).put_back(priority, offer);
    }

    fn of(&mut self, tenant: &Tenant) -> &mut Waiting {
        self.len += 1;
        if !self.waiting.contains_key(tenant) {
            self.turns.push_back(tenant.clone());
        }
        self.waiting.entry(tenant.clone()).or_default()
    }

    /// Takes the next entry, with its tenant. It counts for the tenant until `left` is called.
    pub fn pop(&mut self, held: SlotCount<'_>) -> Option<(Tenant, Queued)> {
        let tenant = self.turns.remove(self.next(held)?)?;
        let waiting = self.waiting.get_mut(&tenant)?;
        let offer = waiting.pop()?;
        if waiting.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant.clone());
        }
        self.len -= 1;
        *self.leaving.entry(tenant.clone()).or_default() += 1;
        self.all_leaving += 1;
        Some((tenant, offer))
    }

    /// Returns the position of the tenant whose turn it is. A tenant without slots is chosen at once, so at most one
    /// more tenant is examined than have slots.
    fn next(&self, held: SlotCount<'_>) -> Option<usize> {
        let mut least: Option<(usize, usize)> = None;
        for (place, tenant) in self.turns.iter().enumerate() {
            let has = self.has(tenant, held);
            if has < self.limits.of(tenant, self.slots) && least.is_none_or(|(fewest, _)| has < fewest) {
                least = Some((has, place));
            }
            if has == 0 {
                break;
            }
        }
        least.map(|(_, place)| place)
    }

    fn has(&self, tenant: &Tenant, held: SlotCount<'_>) -> usize {
        held(tenant) + self.leaving.get(tenant).copied().unwrap_or_default()
    }

    /// Notes that an entry that was taken out has a slot, or was dropped.
    pub fn left(&mut self, tenant: &Tenant) {
        let Some(count) = self.leaving.get_mut(tenant) else { return };
        *count -= 1;
        if *count == 0 {
            self.leaving.remove(tenant);
        }
        self.all_leaving -= 1;
    }

    pub fn leaving(&self) -> usize {
        self.all_leaving
    }

    pub fn limit(&mut self, limits: SlotLimits) {
        self.limits = limits;
    }

    /// Returns whether no offer waits longer than a new one of the tenant, and the tenant may have one more slot.
    pub fn lets_pass(&self, tenant: &Tenant, held: SlotCount<'_>) -> bool {
        self.all_leaving == 0
            && self.has(tenant, held) < self.limits.of(tenant, self.slots)
            && self.next(held).is_none()
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.len == 0 && self.all_leaving == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Share;

    fn offer(number: u64) -> Queued {
        Queued {
            execution: ExecutionId(number.into()),
            work: QueuedWork::Offer(RunId(number), Fence(number)),
        }
    }

    fn number(offer: Queued) -> u64 {
        u64::try_from(offer.execution.0).unwrap()
    }

    /// Slots of busy tenants.
    type AtWork = BTreeMap<Tenant, usize>;

    fn pop(queue: &mut Queue, at_work: &AtWork) -> Option<(Tenant, Queued)> {
        queue.pop(&|tenant| at_work.get(tenant).copied().unwrap_or_default())
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| pop(queue, &AtWork::new())).map(|(_, offer)| number(offer)).collect()
    }

    #[test]
    fn a_tenant_with_one_offer_is_next_but_one_however_many_another_has() {
        let mut queue = Queue::default();
        let (many, one) = (Tenant::new("many"), Tenant::new("one"));
        (0..10_000).for_each(|number| queue.push(&many, Priority::Critical, offer(number)));
        queue.push(&one, Priority::Low, offer(99_999));
        let mut next = || pop(&mut queue, &AtWork::new()).map(|(_, offer)| offer);
        assert_eq!((next(), next()), (Some(offer(0)), Some(offer(99_999))));
        assert_eq!(queue.len(), 9_999);
    }

    #[test]
    fn the_tenant_with_fewer_slots_is_next_even_if_others_wait_longer() {
        let mut queue = Queue::default();
        let (busy, other) = (Tenant::new("busy"), Tenant::new("other"));
        (0..9).for_each(|number| queue.push(&busy, Priority::Critical, offer(number)));
        (10..14).for_each(|number| queue.push(&other, Priority::Low, offer(number)));
        let mut at_work = AtWork::from([(busy.clone(), 6)]);
        // Slots of `busy` become free one after the other; an offer that is taken begins at once.
        let mut taken = Vec::new();
        for _ in 0..4 {
            *at_work.get_mut(&busy).unwrap() -= 1;
            let (tenant, offer) = pop(&mut queue, &at_work).unwrap();
            queue.left(&tenant);
            *at_work.entry(tenant).or_default() += 1;
            taken.push(number(offer));
        }
        assert_eq!(taken, [10, 11, 12, 0], "until the other has more");
    }

    #[test]
    fn a_tenant_at_its_limit_waits_and_keeps_no_other_from_a_slot() {
        let mut queue = Queue::default();
        let (bound, free) = (Tenant::new("bound"), Tenant::new("free"));
        queue.limit(SlotLimits { each: Share::AtMost(9), own: BTreeMap::from([(bound.clone(), Some(1))]) });
        (0..3).for_each(|number| queue.push(&bound, Priority::Normal, offer(number)));
        let none = AtWork::new();
        assert_eq!(pop(&mut queue, &none), Some((bound.clone(), offer(0))));
        assert_eq!(pop(&mut queue, &none), None, "one is on its way");
        queue.left(&bound);
        let at_work = AtWork::from([(bound.clone(), 1)]);
        let held = |tenant: &Tenant| at_work.get(tenant).copied().unwrap_or_default();
        assert!(queue.lets_pass(&free, &held) && !queue.lets_pass(&bound, &held));
        queue.push(&free, Priority::Normal, offer(7));
        assert!(!queue.lets_pass(&free, &held), "a tenant waits that may have a slot");
        assert_eq!(pop(&mut queue, &at_work), Some((free, offer(7))));
        assert_eq!(pop(&mut queue, &at_work), None);
        queue.limit(SlotLimits { each: Share::All, own: BTreeMap::from([(bound.clone(), None)]) });
        assert_eq!(pop(&mut queue, &at_work), Some((bound, offer(1))));
    }

    #[test]
    fn a_fair_share_leaves_a_quarter_of_the_slots_to_others() {
        for (slots, share) in [(1, 1), (2, 1), (4, 3), (8, 6), (100, 75)] {
            let mut queue = Queue { slots, ..Queue::default() };
            queue.limit(SlotLimits { each: Share::Fair, own: BTreeMap::new() });
            let (busy, other) = (Tenant::new("busy"), Tenant::new("other"));
            (0..200).for_each(|number| queue.push(&busy, Priority::Normal, offer(number)));
            let taken = std::iter::from_fn(|| pop(&mut queue, &AtWork::new())).count();
            assert_eq!(taken, share, "of {slots} slots");
            queue.push(&other, Priority::Low, offer(999));
            assert_eq!(pop(&mut queue, &AtWork::new()), Some((other, offer(999))));
        }
    }

    /// In every order of events, the tenant with the fewest slots among those that wait and may have one gets the next slot.
    #[test]
    fn no_tenant_gets_a_slot_while_another_with_fewer_waits() {
        let tenants: Vec<Tenant> = ["a", "b", "c", "d"].map(Tenant::new).into();
        let limits = SlotLimits { each: Share::AtMost(3), own: BTreeMap::from([(tenants[0].clone(), None)]) };
        let (mut queue, mut at_work) = (Queue::default(), AtWork::new());
        queue.limit(limits.clone());
        let mut waiting = AtWork::new();
        let mut bits = 7_u64;
        let mut dispatched = 0;
        for number in 0..20_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let tenant = &tenants[(bits >> 33) as usize % tenants.len()];
            let count = |counts: &AtWork, tenant: &Tenant| counts.get(tenant).copied().unwrap_or_default();
            match (bits >> 60) % 3 {
                0 => {
                    queue.push(tenant, Priority::Normal, offer(number));
                    *waiting.entry(tenant.clone()).or_default() += 1;
                }
                1 if count(&at_work, tenant) > 0 => *at_work.get_mut(tenant).unwrap() -= 1,
                _ if at_work.values().sum::<usize>() < 8 => {
                    let may = |tenant: &&Tenant| {
                        count(&waiting, tenant) > 0 && count(&at_work, tenant) < limits.of(tenant, 8)
                    };
                    let fewest = tenants.iter().filter(may).map(|tenant| count(&at_work, tenant)).min();
                    let next = pop(&mut queue, &at_work).map(|(tenant, _)| tenant);
                    assert_eq!(next.as_ref().map(|tenant| count(&at_work, tenant)), fewest, "at {number}");
                    let Some(next) = next else { continue };
                    queue.left(&next);
                    *waiting.get_mut(&next).unwrap() -= 1;
                    *at_work.entry(next).or_default() += 1;
                    dispatched += 1;
                }
                _ => {}
            }
        }
        assert!(dispatched > 1_000, "{dispatched}");
    }

    #[test]
    fn wfl_14_urgent_offers_are_first_and_the_others_do_not_starve() {
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
        let (_, first) = pop(&mut queue, &AtWork::new()).unwrap();
        queue.put_back(&tenant, Priority::Normal, first);
        queue.left(&tenant);
        assert_eq!(order(&mut queue), [0, 1, 2, 3, 4]);
        assert!(!queue.is_empty(), "five are on their way");
        (0..5).for_each(|_| queue.left(&tenant));
        assert!(queue.is_empty());
    }
}
