//! Sessions in memory: the units of each worker, and the free slots.

use super::Outside;
use crate::ids::IdMap;
use crate::lane::dispatch::{Cursor, parts};
use crate::lane::groups::GroupKey;
use std::collections::{BTreeMap, VecDeque};
use windlass_kernel::{ExecutionId, Millis};
use windlass_protocol as protocol;
use windlass_store::Tenant;

#[derive(Debug, Default)]
pub(in crate::lane) struct Sessions {
    pub(super) sessions: BTreeMap<protocol::SessionId, Session>,
    pub(super) held: IdMap<protocol::Unit, protocol::SessionId>,
    /// Number of units of each execution; no number is 0.
    pub(super) by_execution: IdMap<ExecutionId, u32>,
    /// Slots of tenants, without those that were lent; no number is 0.
    pub(super) by_tenant: BTreeMap<Tenant, usize>,
    /// Sessions in turn; those without a free slot are skipped.
    pub(super) turns: VecDeque<protocol::SessionId>,
    pub(super) free: usize,
    /// Sessions of workers outside of this process that have slots, in turn.
    pub(super) runners: BTreeMap<GroupKey, VecDeque<protocol::SessionId>>,
    /// Clusters that the work of a group is restricted to.
    pub(super) restrictions: BTreeMap<GroupKey, String>,
    /// Whether one of these sessions may have a free slot that was not offered yet.
    pub(super) has_freed_runners: bool,
    /// Units that workers outside of this process hold.
    pub(super) held_outside: usize,
    /// Units of workers of this process that are steps of an execution which they hold as a whole.
    pub(super) held_inside: usize,
    /// Time before which no session expires. None: there is no session.
    pub(super) earliest_expiry: Option<u64>,
    /// Number of leases since the start that ended without a report of their worker.
    pub(super) lost: u64,
}

#[derive(Debug)]
pub(super) struct Session {
    /// Name of the worker, for people.
    pub(super) worker: String,
    pub(super) slots: u32,
    pub(super) holds: BTreeMap<protocol::Unit, HeldUnit>,
    /// Number of these that take no slot.
    pub(super) slotless: usize,
    /// Slots that are reserved for work whose execution is being read.
    pub(super) reserved: usize,
    /// Time of expiry on the steady clock.
    pub(super) expires: u64,
    /// Group of a worker outside of this process, which claims work and has no slots here.
    pub(super) outside: Option<Box<Outside>>,
}

#[derive(Debug, Clone)]
pub(super) struct HeldUnit {
    pub(super) tenant: Tenant,
    pub(super) at: Millis,
    pub(super) cursor: Cursor,
    /// Number of the checkpoint of the cursor.
    pub(super) checkpoint: u64,
    /// Grace of the stop, if it must stop.
    pub(super) stop: Option<u64>,
    pub(super) seat: SlotUse,
    /// Whether the order to stop was sent, after the decision was on disk.
    pub(super) stop_sent: bool,
    /// Time of the order, on the steady clock. None: it is not on disk yet.
    pub(super) sent: Option<u64>,
    /// Whether its log was cut because the tenant has no room.
    pub(super) log_ends: bool,
}

/// Kind of slot that a unit takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lane) enum SlotUse {
    Slot,
    /// The unit waits for others, and they may have its slot.
    Lent,
    /// The unit is a step of an execution that the worker holds as a whole, in the slot of that execution.
    Inside,
}

impl Sessions {
    /// Returns the number of units that workers hold.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of leases that were lost since the start.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of slots of all sessions of this process.
    pub fn slots(&self) -> usize {
        self.free + self.held.len() - self.held_outside - self.held_inside
    }

    /// Returns the number of free slots of all sessions.
    pub fn free(&self) -> usize {
        self.free
    }

    pub fn next_expiry(&self) -> Option<u64> {
        self.earliest_expiry
    }

    pub(super) fn insert(&mut self, id: protocol::SessionId, session: Session) {
        self.earliest_expiry = self.earliest_expiry.into_iter().chain([session.expires]).min();
        self.sessions.insert(id, session);
    }

    /// Returns the expired sessions. They are searched only if one can have expired.
    pub(super) fn expired(&mut self, now: u64) -> Vec<protocol::SessionId> {
        if self.earliest_expiry.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let is_late = |session: &Session| session.expires <= now;
        let rest = self.sessions.values().filter(|session| !is_late(session));
        self.earliest_expiry = rest.map(|session| session.expires).min();
        self.sessions.iter().filter(|(_, session)| is_late(session)).map(|(id, _)| *id).collect()
    }

    /// Takes a slot of the next session in turn that has one.
    pub fn take_slot(&mut self) -> Option<protocol::SessionId> {
        for _ in 0..self.turns.len() {
            let id = self.turns.pop_front()?;
            self.turns.push_back(id);
            if self.sessions.get(&id).is_some_and(Session::has_slot) {
                return Some(id);
            }
        }
        None
    }

    /// Returns the name of a session's worker.
    pub fn worker(&self, id: protocol::SessionId) -> Option<&str> {
        self.sessions.get(&id).map(|session| session.worker.as_str())
    }

    pub fn is_held(&self, unit: protocol::Unit) -> bool {
        self.held.contains_key(&unit)
    }

    pub fn knows(&self, id: protocol::SessionId) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Notes that the order to stop was sent.
    pub fn stop_sent(&mut self, unit: protocol::Unit) {
        if let Some(held) = self.held_mut(unit) {
            held.stop_sent = true;
        }
    }

    /// Notes that the order to run was sent.
    pub fn sent(&mut self, unit: protocol::Unit, now: u64) {
        if let Some(held) = self.held_mut(unit) {
            held.sent = Some(now);
        }
    }

    /// Lends the slot of a unit that waits for others.
    pub fn lend(&mut self, unit: protocol::Unit) {
        self.set_seat(unit, SlotUse::Slot, SlotUse::Lent);
    }

    /// Continues the unit at once, even if its slot is taken: a session may exceed its slots for a while.
    pub fn take_back(&mut self, unit: protocol::Unit) {
        self.set_seat(unit, SlotUse::Lent, SlotUse::Slot);
    }

    pub(super) fn set_seat(&mut self, unit: protocol::Unit, from: SlotUse, to: SlotUse) {
        let Some(id) = self.held.get(&unit).copied() else { return };
        let Some(held) = self.held_mut(unit).filter(|held| held.seat == from) else { return };
        let tenant = held.tenant.clone();
        self.change(id, |session| session.seat(unit, to));
        match to {
            _ if self.outside(id).is_some() => {}
            SlotUse::Lent => self.gave_back(&tenant),
            SlotUse::Slot | SlotUse::Inside => self.took(tenant),
        }
    }

    /// Returns the number of slots in which a tenant works.
    pub fn held_by(&self, tenant: &Tenant) -> usize {
        self.by_tenant.get(tenant).copied().unwrap_or_default()
    }

    pub(super) fn took(&mut self, tenant: Tenant) {
        *self.by_tenant.entry(tenant).or_default() += 1;
    }

    pub(super) fn gave_back(&mut self, tenant: &Tenant) {
        let Some(count) = self.by_tenant.get_mut(tenant) else { return };
        *count -= 1;
        if *count == 0 {
            self.by_tenant.remove(tenant);
        }
    }

    pub(super) fn change<T>(
        &mut self,
        id: protocol::SessionId,
        change: impl FnOnce(&mut Session) -> T,
    ) -> Option<T> {
        let session = self.sessions.get_mut(&id)?;
        let before = session.free();
        let changed = change(session);
        if session.outside.is_some() {
            self.has_freed_runners |= session.free() > before;
        } else {
            self.free = self.free - before + session.free();
        }
        Some(changed)
    }

    pub fn hold(&mut self, id: protocol::SessionId, unit: protocol::Unit, tenant: Tenant, at: Millis) {
        self.hold_in(SlotUse::Slot, id, unit, tenant, at);
    }

    pub fn hold_in(
        &mut self,
        seat: SlotUse,
        id: protocol::SessionId,
        unit: protocol::Unit,
        tenant: Tenant,
        at: Millis,
    ) {
        let held = HeldUnit::new(seat, tenant.clone(), at);
        if self.change(id, |session| session.hold(unit, held)).is_none() {
            return;
        }
        if self.held.insert(unit, id).is_none() {
            *self.by_execution.entry(parts(unit).0).or_default() += 1;
        }
        match (self.outside(id), seat) {
            (Some(_), _) => self.held_outside += 1,
            (None, SlotUse::Inside) => self.held_inside += 1,
            (None, SlotUse::Slot | SlotUse::Lent) => self.took(tenant),
        }
    }

    /// Returns whether a worker has a part of the execution.
    pub fn work_on(&self, execution: ExecutionId) -> bool {
        self.by_execution.contains_key(&execution)
    }

    pub(super) fn let_go(&mut self, unit: protocol::Unit) -> Option<protocol::SessionId> {
        let id = self.held.remove(&unit)?;
        let execution = parts(unit).0;
        if let Some(count) = self.by_execution.get_mut(&execution) {
            *count -= 1;
            if *count == 0 {
                self.by_execution.remove(&execution);
            }
        }
        Some(id)
    }

    /// Frees the slot. Returns the time since which it was held, and whether the unit was to stop.
    pub fn release(&mut self, unit: protocol::Unit) -> Option<(protocol::SessionId, Millis, bool)> {
        let id = self.let_go(unit)?;
        let held = self.change(id, |session| session.release(unit))??;
        let is_outside = self.outside(id).is_some();
        self.count_out(&held, is_outside);
        Some((id, held.at, held.stop.is_some()))
    }

    /// Sets the progress from the last report of its worker.
    pub fn cursor(&self, unit: protocol::Unit) -> Cursor {
        let id = self.held.get(&unit)?;
        self.sessions.get(id)?.holds.get(&unit)?.cursor.clone()
    }

    /// Returns the tenant of a unit that a worker holds.
    pub fn tenant_of(&self, unit: protocol::Unit) -> Option<Tenant> {
        let id = self.held.get(&unit)?;
        self.sessions.get(id)?.holds.get(&unit).map(|held| held.tenant.clone())
    }

    pub(super) fn held_mut(&mut self, unit: protocol::Unit) -> Option<&mut HeldUnit> {
        let id = self.held.get(&unit)?;
        self.sessions.get_mut(id)?.holds.get_mut(&unit)
    }

    pub(super) fn remove(&mut self, id: protocol::SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        match &session.outside {
            Some(outside) => self.forget_runner(id, &outside.group),
            None => {
                self.turns.retain(|other| *other != id);
                self.free -= session.free();
            }
        }
        for (unit, held) in &session.holds {
            self.let_go(*unit);
            self.count_out(held, session.outside.is_some());
        }
        Some(session)
    }

    fn forget_runner(&mut self, id: protocol::SessionId, group: &GroupKey) {
        let Some(turns) = self.runners.get_mut(group) else { return };
        turns.retain(|other| *other != id);
        if turns.is_empty() {
            self.runners.remove(group);
        }
    }

    pub(super) fn count_out(&mut self, held: &HeldUnit, is_outside: bool) {
        match held.seat {
            _ if is_outside => self.held_outside -= 1,
            SlotUse::Slot => self.gave_back(&held.tenant),
            SlotUse::Inside => self.held_inside -= 1,
            SlotUse::Lent => {}
        }
    }
}

impl HeldUnit {
    pub(super) fn new(seat: SlotUse, tenant: Tenant, at: Millis) -> HeldUnit {
        let (cursor, checkpoint, stop, sent) = (None, 0, None, None);
        HeldUnit { tenant, at, cursor, checkpoint, stop, seat, stop_sent: false, sent, log_ends: false }
    }

    pub(super) fn is_slotless(&self) -> bool {
        self.seat != SlotUse::Slot
    }
}

impl Session {
    pub(super) fn has_slot(&self) -> bool {
        self.free() > 0
    }

    pub(super) fn free(&self) -> usize {
        (self.slots as usize + self.slotless).saturating_sub(self.holds.len() + self.reserved)
    }

    pub(super) fn hold(&mut self, unit: protocol::Unit, held: HeldUnit) {
        self.slotless += usize::from(held.is_slotless());
        if let Some(before) = self.holds.insert(unit, held) {
            self.slotless -= usize::from(before.is_slotless());
        }
    }

    pub(super) fn seat(&mut self, unit: protocol::Unit, seat: SlotUse) {
        let Some(held) = self.holds.get_mut(&unit) else { return };
        self.slotless -= usize::from(held.is_slotless());
        held.seat = seat;
        self.slotless += usize::from(held.is_slotless());
    }

    pub(super) fn release(&mut self, unit: protocol::Unit) -> Option<HeldUnit> {
        let held = self.holds.remove(&unit)?;
        self.slotless -= usize::from(held.is_slotless());
        Some(held)
    }
}
