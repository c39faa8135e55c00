//! Groups of workers outside of this process: offers that wait for them, and claims that wait for offers.
//!
//! A group belongs to a tenant. Its offers wait by operation, in turn; claims of its sessions take turns as well. A
//! claim is answered with all units that one batch leased to it: units that are assigned while that batch is being
//! written are left to the next claim.

use super::lines::Lines;
use super::queue::Queued;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use windlass_protocol::{SessionId, Work};
use windlass_store::{Priority, Tenant};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct GroupKey {
    pub tenant: Tenant,
    pub name: String,
}

/// Group and operation that an offer belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    pub group: GroupKey,
    pub operation: String,
}

#[derive(Debug)]
pub(super) struct Groups<R> {
    groups: BTreeMap<GroupKey, Group>,
    lines: Lines<Route>,
    claims: BTreeMap<SessionId, OpenClaim<R>>,
    /// Groups with offers or claims that were not matched yet.
    unmatched: BTreeSet<GroupKey>,
    /// Sessions that the open batch leases units to.
    assigning: BTreeSet<SessionId>,
    /// Sessions whose claims may be complete, because a lease of theirs was written.
    written: BTreeSet<SessionId>,
}

impl<R> Default for Groups<R> {
    fn default() -> Self {
        let (groups, lines, claims) = (BTreeMap::new(), Lines::default(), BTreeMap::new());
        let (unmatched, assigning, written) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Groups { groups, lines, claims, unmatched, assigning, written }
    }
}

#[derive(Debug, Default)]
struct Group {
    /// Operations with offers, in the order of their turns.
    turns: VecDeque<String>,
    /// Offers of all operations.
    waiting: usize,
    /// Sessions with a claim, in the order of their turns.
    claiming: VecDeque<SessionId>,
}

#[derive(Debug)]
struct OpenClaim<R> {
    group: GroupKey,
    reply: R,
    slots: u32,
    kinds: Option<BTreeSet<String>>,
    /// Number of further units that it may get.
    wants: u32,
    /// Offers reserved for it whose execution is being read.
    reserved: u32,
    /// Units whose lease is not on disk yet.
    assigned: u32,
    got: Vec<Work>,
    /// Whether its caller no longer waits.
    is_ending: bool,
}

impl<R> OpenClaim<R> {
    fn takes(&self, operation: &str) -> bool {
        self.wants > 0 && self.kinds.as_ref().is_none_or(|kinds| kinds.contains(operation))
    }

    fn is_complete(&self) -> bool {
        self.assigned == 0 && (!self.got.is_empty() || (self.is_ending && self.reserved == 0))
    }
}

impl Group {
    fn is_unused(&self) -> bool {
        self.waiting == 0 && self.claiming.is_empty()
    }

    /// Takes the next offer of an operation that the claim takes.
    fn pop<R>(&mut self, lines: &mut Lines<Route>, claim: &OpenClaim<R>) -> Option<Queued> {
        let place = self.turns.iter().position(|operation| claim.takes(operation))?;
        let route = Route { group: claim.group.clone(), operation: self.turns.remove(place)? };
        let offer = lines.pop(&route)?;
        self.waiting -= 1;
        if lines.len(&route) > 0 {
            self.turns.push_back(route.operation);
        }
        Some(offer)
    }
}

impl<R> Groups<R> {
    pub fn push(&mut self, route: &Route, priority: Priority, offer: Queued) {
        let is_new = self.lines.push(route, priority, offer);
        self.entered(route, is_new);
    }

    /// Queues an offer that was taken out and not handed out. It is the next one again.
    pub fn put_back(&mut self, route: &Route, priority: Priority, offer: Queued) {
        let is_new = self.lines.put_back(route, priority, offer);
        self.entered(route, is_new);
    }

    fn entered(&mut self, route: &Route, is_new: bool) {
        if !is_new {
            return;
        }
        self.unmatched.insert(route.group.clone());
        let group = self.groups.entry(route.group.clone()).or_default();
        group.waiting += 1;
        if self.lines.len(route) == 1 {
            group.turns.push_back(route.operation.clone());
        }
    }

    /// Removes an offer that is closed. It may be none of these.
    pub fn withdraw(&mut self, offer: &Queued) {
        let Some(route) = self.lines.withdraw(offer) else { return };
        let Some(group) = self.groups.get_mut(&route.group) else { return };
        group.waiting -= 1;
        if self.lines.len(&route) == 0 {
            group.turns.retain(|operation| *operation != route.operation);
        }
        if group.is_unused() {
            self.groups.remove(&route.group);
        }
    }

    /// Opens a claim. The reply to an earlier claim of the same session is returned; units that were reserved for that
    /// claim belong to the new one.
    pub fn claim(
        &mut self,
        session: SessionId,
        group: &GroupKey,
        (slots, kinds): (u32, Option<BTreeSet<String>>),
        reply: R,
    ) -> Option<R> {
        self.unmatched.insert(group.clone());
        if let Some(open) = self.claims.get_mut(&session) {
            let earlier = std::mem::replace(&mut open.reply, reply);
            open.wants = slots.saturating_sub(open.reserved + open.assigned);
            (open.slots, open.kinds, open.is_ending) = (slots, kinds, false);
            return Some(earlier);
        }
        self.groups.entry(group.clone()).or_default().claiming.push_back(session);
        let (reserved, assigned, got) = (0, 0, Vec::new());
        let group = group.clone();
        let claim =
            OpenClaim { group, reply, slots, kinds, wants: slots, reserved, assigned, got, is_ending: false };
        self.claims.insert(session, claim);
        None
    }

    /// Returns whether the session has an open claim.
    pub fn claims(&self, session: SessionId) -> bool {
        self.claims.contains_key(&session)
    }

    /// Ends a claim whose caller no longer waits.
    pub fn end_claim(&mut self, session: SessionId) {
        if let Some(claim) = self.claims.get_mut(&session) {
            claim.wants = 0;
            claim.is_ending = true;
            self.written.insert(session);
        }
    }

    /// Ends a session.
    pub fn drop_claim(&mut self, session: SessionId) -> Option<R> {
        let claim = self.claims.remove(&session)?;
        self.forget_turn(session, &claim.group);
        Some(claim.reply)
    }

    fn forget_turn(&mut self, session: SessionId, key: &GroupKey) {
        let Some(group) = self.groups.get_mut(key) else { return };
        group.claiming.retain(|other| *other != session);
        if group.is_unused() {
            self.groups.remove(key);
        }
    }

    /// Takes the next queued offer that a claim waits for, and the session of the claim.
    pub fn next_match(&mut self) -> Option<(SessionId, Queued)> {
        while let Some(key) = self.unmatched.first().cloned() {
            if let Some(found) = self.match_in(&key) {
                return Some(found);
            }
            self.unmatched.remove(&key);
        }
        None
    }

    fn match_in(&mut self, key: &GroupKey) -> Option<(SessionId, Queued)> {
        let group = self.groups.get_mut(key).filter(|group| group.waiting > 0)?;
        for _ in 0..group.claiming.len() {
            let session = group.claiming.pop_front()?;
            group.claiming.push_back(session);
            let Some(claim) = self.claims.get_mut(&session) else { continue };
            if let Some(offer) = group.pop(&mut self.lines, claim) {
                claim.wants -= 1;
                claim.reserved += 1;
                return Some((session, offer));
            }
        }
        None
    }

    /// Returns the session whose claim gets a new offer at once: no other offer of its group waits.
    pub fn session_for(&mut self, route: &Route) -> Option<SessionId> {
        let group = self.groups.get_mut(&route.group).filter(|group| group.waiting == 0)?;
        for _ in 0..group.claiming.len() {
            let session = group.claiming.pop_front()?;
            group.claiming.push_back(session);
            if self.claims.get(&session).is_some_and(|claim| claim.takes(&route.operation)) {
                return Some(session);
            }
        }
        None
    }

    /// Leases a new offer to the session in its own commit.
    pub fn assign_new(&mut self, session: SessionId) {
        if let Some(claim) = self.claims.get_mut(&session) {
            claim.wants -= 1;
            claim.assigned += 1;
            self.assigning.insert(session);
        }
    }

    /// Leases an offer from the queue to the session; false if its claim was answered meanwhile. A session that ends
    /// still gets units that were reserved for it.
    pub fn assign_reserved(&mut self, session: SessionId) -> bool {
        let Some(claim) = self.claims.get_mut(&session).filter(|claim| claim.reserved > 0) else {
            return false;
        };
        claim.reserved -= 1;
        claim.assigned += 1;
        self.assigning.insert(session);
        true
    }

    /// Frees the reservation of an offer that no longer exists.
    pub fn unreserve(&mut self, session: SessionId) {
        if let Some(claim) = self.claims.get_mut(&session).filter(|claim| claim.reserved > 0) {
            claim.reserved -= 1;
            claim.wants += u32::from(!claim.is_ending);
            self.unmatched.insert(claim.group.clone());
            self.written.insert(session);
        }
    }

    /// Frees the reservation of a unit whose lease was not written.
    pub fn unassign(&mut self, session: SessionId) {
        if let Some(claim) = self.claims.get_mut(&session).filter(|claim| claim.assigned > 0) {
            claim.assigned -= 1;
            self.written.insert(session);
        }
    }

    /// Adds a unit whose lease is on disk to the claim. Returns the work if no claim waits for it.
    pub fn deliver(&mut self, session: SessionId, work: Work) -> Option<Work> {
        let Some(claim) = self.claims.get_mut(&session).filter(|claim| claim.assigned > 0) else {
            return Some(work);
        };
        claim.assigned -= 1;
        claim.got.push(work);
        self.written.insert(session);
        None
    }

    /// Closes the claims of a batch that is handed to the disk: they get no further units.
    pub fn seal(&mut self) {
        for session in std::mem::take(&mut self.assigning) {
            if let Some(claim) = self.claims.get_mut(&session) {
                claim.wants = 0;
            }
        }
    }

    /// Returns the claims that are complete, with their units. One whose leases all failed waits again.
    pub fn take_complete(&mut self) -> Vec<(R, Vec<Work>)> {
        let mut complete = Vec::new();
        for session in std::mem::take(&mut self.written) {
            let Some(claim) = self.claims.get_mut(&session) else { continue };
            if claim.is_complete() {
                if let Some(claim) = self.claims.remove(&session) {
                    self.forget_turn(session, &claim.group);
                    complete.push((claim.reply, claim.got));
                }
            } else if claim.assigned == 0 && !claim.is_ending {
                claim.wants = claim.slots.saturating_sub(claim.reserved);
                self.unmatched.insert(claim.group.clone());
            }
        }
        complete
    }

    /// Returns the replies to all claims, when the lane stops.
    pub fn take_replies(&mut self) -> Vec<R> {
        std::mem::take(&mut self.claims).into_values().map(|claim| claim.reply).collect()
    }

    /// Counts the groups with waiting offers, and their offers.
    pub fn waiting(&self) -> impl Iterator<Item = (&GroupKey, usize)> {
        self.groups.iter().map(|(key, group)| (key, group.waiting))
    }
}

#[cfg(test)]
mod tests {
    use super::super::queue::QueuedWork;
    use super::*;
    use windlass_kernel::{ExecutionId, Fence, RunId};

    fn key(name: &str) -> GroupKey {
        GroupKey { tenant: Tenant::default(), name: name.to_owned() }
    }

    fn route(group: &str, operation: &str) -> Route {
        Route { group: key(group), operation: operation.to_owned() }
    }

    fn offer(number: u64) -> Queued {
        let work = QueuedWork::Offer(RunId(number), Fence(number));
        Queued { execution: ExecutionId(number.into()), work }
    }

    fn numbers(groups: &mut Groups<&str>) -> Vec<(u64, u128)> {
        std::iter::from_fn(|| groups.next_match())
            .map(|(session, offer)| (session.0, offer.execution.0))
            .collect()
    }

    #[test]
    fn claims_of_a_group_take_turns_and_get_only_what_is_theirs() {
        let mut groups: Groups<&str> = Groups::default();
        groups.claim(SessionId(1), &key("a"), (2, None), "one");
        groups.claim(SessionId(2), &key("a"), (9, Some(BTreeSet::from(["cut".to_owned()]))), "two");
        groups.claim(SessionId(3), &key("b"), (9, None), "three");
        for number in 0..4 {
            groups.push(&route("a", "cut"), Priority::Normal, offer(number));
        }
        groups.push(&route("a", "glue"), Priority::Normal, offer(9));
        let got = numbers(&mut groups);
        let by = |session| got.iter().filter(|(of, _)| *of == session).map(|(_, n)| *n).collect::<Vec<_>>();
        assert_eq!(by(1).len(), 2, "as many as it has slots: {got:?}");
        assert!(by(2).iter().all(|number| *number < 4), "operations that it names: {got:?}");
        assert!(by(3).is_empty(), "another group: {got:?}");
        assert_eq!(got.len(), 5);
    }

    #[test]
    fn a_claim_is_answered_once_with_what_one_batch_gave() {
        let mut groups: Groups<&str> = Groups::default();
        groups.claim(SessionId(1), &key("a"), (5, None), "one");
        assert_eq!(groups.session_for(&route("a", "cut")), Some(SessionId(1)));
        groups.assign_new(SessionId(1));
        groups.seal();
        assert_eq!(groups.session_for(&route("a", "cut")), None, "its batch is on its way");
        groups.unassign(SessionId(1));
        assert!(groups.take_complete().is_empty(), "nothing was written for it");
        assert_eq!(groups.session_for(&route("a", "cut")), Some(SessionId(1)), "it waits again");
        groups.end_claim(SessionId(1));
        let complete = groups.take_complete();
        assert!(matches!(&complete[..], [("one", got)] if got.is_empty()));
        assert_eq!((groups.groups.len(), groups.claims.len()), (0, 0), "nothing of it is left");
    }

    #[test]
    fn a_withdrawn_offer_leaves_its_group_and_no_claim_gets_it() {
        let mut groups: Groups<&str> = Groups::default();
        for number in 0..3 {
            groups.push(&route("a", "cut"), Priority::Normal, offer(number));
        }
        groups.push(&route("a", "glue"), Priority::Normal, offer(3));
        [1, 3, 9].into_iter().for_each(|number| groups.withdraw(&offer(number)));
        assert_eq!(groups.waiting().map(|(_, waiting)| waiting).collect::<Vec<_>>(), [2]);
        groups.claim(SessionId(1), &key("a"), (9, None), "one");
        assert_eq!(numbers(&mut groups), [(1, 0), (1, 2)]);
        groups.drop_claim(SessionId(1));
        groups.push(&route("a", "cut"), Priority::Normal, offer(5));
        groups.withdraw(&offer(5));
        assert_eq!((groups.groups.len(), groups.waiting().count()), (0, 0), "nothing of it is left");
    }

    #[test]
    fn an_offer_reserved_for_a_claim_that_ended_is_the_next_one_again() {
        let mut groups: Groups<&str> = Groups::default();
        groups.push(&route("a", "cut"), Priority::Low, offer(1));
        groups.claim(SessionId(1), &key("a"), (1, None), "one");
        assert_eq!(numbers(&mut groups), [(1, 1)]);
        groups.end_claim(SessionId(1));
        assert!(groups.take_complete().is_empty(), "its offer is still being read");
        assert_eq!(groups.drop_claim(SessionId(1)), Some("one"), "its session has expired");
        assert!(!groups.assign_reserved(SessionId(1)));
        groups.put_back(&route("a", "cut"), Priority::Low, offer(1));
        groups.claim(SessionId(2), &key("a"), (1, None), "two");
        assert_eq!(numbers(&mut groups), [(2, 1)]);
    }
}
