//! Sessions of workers outside of this process, which claim work of their group.

use super::super::dispatch::Cursor;
use super::super::groups::GroupKey;
use super::table::{Session, Sessions};
use crate::wake::{HeldCall, SessionKey};
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol as protocol;
use windlass_store::Tenant;

/// Facts about the session of a worker outside of this process.
#[derive(Debug)]
pub(in crate::lane) struct Outside {
    pub group: GroupKey,
    pub cluster: Option<String>,
    /// Whether the worker claims calls of its group, and takes no orders.
    pub claims: bool,
    /// Whether orders reach the worker: it has fetched some since this process began, and has not disconnected.
    pub is_attached: bool,
    /// SHA-256 of the session's text.
    pub digest: [u8; 32],
    /// Earliest time of the next renewal of its row, on the steady clock.
    pub renew_at: u64,
}

impl Sessions {
    pub fn open_outside(
        &mut self,
        id: protocol::SessionId,
        (worker, slots): (String, u32),
        outside: Outside,
        expires: u64,
    ) {
        if slots > 0 {
            self.runners.entry(outside.group.clone()).or_default().push_back(id);
        }
        let (holds, outside) = (BTreeMap::new(), Some(Box::new(outside)));
        self.insert(id, Session { worker, slots, holds, slotless: 0, reserved: 0, expires, outside });
    }

    /// Returns whether the worker claims calls of its group, and takes no orders.
    pub fn is_claiming(&self, id: protocol::SessionId) -> bool {
        self.outside(id).is_some_and(|outside| outside.claims)
    }

    /// Returns whether slots of workers outside of this process may have become free since the last time.
    pub fn take_freed_runners(&mut self) -> bool {
        std::mem::take(&mut self.has_freed_runners)
    }

    /// Sets the cluster whose workers alone get something of the group. Returns the sessions that get nothing from now on.
    pub fn restrict(&mut self, group: &GroupKey, cluster: Option<String>) -> Vec<protocol::SessionId> {
        match cluster {
            Some(cluster) => self.restrictions.insert(group.clone(), cluster),
            None => self.restrictions.remove(group),
        };
        self.has_freed_runners = true;
        self.sessions.keys().copied().filter(|id| self.is_barred(*id)).collect()
    }

    /// Returns whether the session's group is restricted to a cluster that its worker is not in.
    pub fn is_barred(&self, id: protocol::SessionId) -> bool {
        self.outside(id).is_some_and(|outside| {
            let only = self.restrictions.get(&outside.group);
            only.is_some_and(|only| outside.cluster.as_ref() != Some(only))
        })
    }

    /// Reserves a slot of the next worker of the group in turn that has one, and is in the cluster.
    pub fn reserve_runner(&mut self, group: &GroupKey, cluster: Option<&str>) -> Option<protocol::SessionId> {
        let only = self.restrictions.get(group).map(String::as_str);
        let turns = self.runners.get_mut(group)?;
        for _ in 0..turns.len() {
            let id = turns.pop_front()?;
            turns.push_back(id);
            let Some(session) = self.sessions.get_mut(&id) else { continue };
            let Some(outside) = session.outside.as_deref().filter(|outside| outside.is_attached) else {
                continue;
            };
            let own = outside.cluster.as_deref();
            let is_in = |cluster: Option<&str>| cluster.is_none() || own == cluster;
            if session.has_slot() && is_in(cluster) && is_in(only) {
                session.reserved += 1;
                return Some(id);
            }
        }
        None
    }

    /// Notes whether orders of the session reach its worker from now on.
    pub fn set_reachable(&mut self, id: protocol::SessionId, is_reachable: bool) {
        if let Some(outside) = self.sessions.get_mut(&id).and_then(|session| session.outside.as_deref_mut()) {
            outside.is_attached = is_reachable;
            self.has_freed_runners |= is_reachable;
        }
    }

    pub fn unreserve_runner(&mut self, id: protocol::SessionId) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.reserved = session.reserved.saturating_sub(1);
            self.has_freed_runners = true;
        }
    }

    pub fn has_slot(&self, id: protocol::SessionId) -> bool {
        self.sessions.get(&id).is_some_and(Session::has_slot)
    }

    /// Notes that a worker takes no further units.
    pub fn drain(&mut self, id: protocol::SessionId) {
        self.change(id, |session| session.slots = 0);
    }

    pub fn outside(&self, id: protocol::SessionId) -> Option<&Outside> {
        self.sessions.get(&id)?.outside.as_deref()
    }

    /// Returns the number of sessions of a tenant's workers outside of this process.
    pub fn outside_of(&self, tenant: &Tenant) -> usize {
        self.outside_loads().filter(|(group, _)| group.tenant == *tenant).count()
    }

    /// Returns a session without work that is closed for a new session of this group: one of the group with the most sessions, if
    /// these are more than the group will have, otherwise one of the group itself whose worker has been silent, because it
    /// expires before this time. Sessions that wait for work come last.
    pub fn find_replaceable(
        &self,
        group: &GroupKey,
        silent_until: u64,
        waits: impl Fn(protocol::SessionId) -> bool,
    ) -> Option<protocol::SessionId> {
        let mut counts: BTreeMap<&GroupKey, usize> = BTreeMap::new();
        for (of, _) in self.outside_loads().filter(|(of, _)| of.tenant == group.tenant) {
            *counts.entry(of).or_default() += 1;
        }
        let share = counts.get(group).copied().unwrap_or_default() + 1;
        let may_close = |of: &GroupKey, session: &Session| match of == group {
            true => session.expires <= silent_until,
            false => counts.get(of).is_some_and(|count| *count > share),
        };
        let idle = self.sessions.iter().filter_map(|(id, session)| {
            let outside =
                session.outside.as_deref().filter(|outside| outside.group.tenant == group.tenant)?;
            let is_idle = session.holds.is_empty() && session.reserved == 0;
            (is_idle && may_close(&outside.group, session)).then_some((*id, session, outside))
        });
        let chosen = idle.max_by_key(|(id, session, outside)| {
            let count = counts.get(&outside.group).copied().unwrap_or_default();
            (count, !(waits(*id) || outside.is_attached), std::cmp::Reverse((session.expires, *id)))
        });
        chosen.map(|(id, ..)| id)
    }

    /// Lists the groups of all workers outside of this process, and the units of each worker.
    pub fn outside_loads(&self) -> impl Iterator<Item = (&GroupKey, usize)> {
        self.sessions
            .values()
            .filter_map(|session| Some((&session.outside.as_deref()?.group, session.holds.len())))
    }

    /// Returns the calls that workers hold and do not have to stop.
    pub fn held_calls(&self) -> Vec<HeldCall> {
        let of = self.sessions.iter().filter_map(|(id, session)| {
            let outside = session.outside.as_deref().filter(|outside| outside.claims)?;
            Some((*id, outside, &session.holds))
        });
        let calls = of.flat_map(|(id, outside, holds)| {
            let GroupKey { tenant, name } = outside.group.clone();
            let session = SessionKey { id, digest: outside.digest, tenant, group: Some(name) };
            let wanted = holds.iter().filter(|(_, held)| held.stop.is_none());
            wanted.map(move |(unit, held)| HeldCall {
                session: session.clone(),
                unit: *unit,
                claimed_at: held.at,
            })
        });
        calls.collect()
    }

    pub fn held_by_session(&self, id: protocol::SessionId) -> usize {
        self.sessions.get(&id).map_or(0, |session| session.holds.len())
    }

    /// Returns the session that holds a unit.
    pub fn holder(&self, unit: protocol::Unit) -> Option<protocol::SessionId> {
        self.held.get(&unit).copied()
    }

    /// Renews a session of a worker outside of this process. Returns whether its row has to be renewed as well.
    pub fn renew(&mut self, id: protocol::SessionId, expires: u64, now: u64, row_every_ms: u64) -> bool {
        let Some(session) = self.sessions.get_mut(&id) else { return false };
        session.expires = expires;
        let Some(outside) = &mut session.outside else { return false };
        let is_due = now >= outside.renew_at;
        if is_due {
            outside.renew_at = now + row_every_ms;
        }
        is_due
    }

    /// Compares the units of a session with those that its worker lists. Returns the units that the worker has given
    /// up, and those that it has to stop. A unit that was sent after `overdue` may have crossed the list.
    pub fn compare(
        &self,
        id: protocol::SessionId,
        listed: &BTreeSet<protocol::Unit>,
        overdue: u64,
    ) -> (Vec<protocol::Unit>, Vec<protocol::Unit>) {
        let (mut dropped, mut stop) = (Vec::new(), Vec::new());
        for (unit, held) in self.sessions.get(&id).map(|session| &session.holds).into_iter().flatten() {
            match (held.stop, listed.contains(unit)) {
                (Some(_), true) if held.stop_sent => stop.push(*unit),
                (Some(_), false) if held.stop_sent && held.sent.is_some() => dropped.push(*unit),
                (None, false) if held.sent.is_some_and(|sent| sent <= overdue) => dropped.push(*unit),
                _ => {}
            }
        }
        (dropped, stop)
    }

    /// Restores a unit from before the start, with its checkpoint and its stop order, if any.
    pub fn restored(&mut self, unit: protocol::Unit, cursor: Cursor, stop: Option<u64>, now: u64) {
        let Some(held) = self.held_mut(unit) else { return };
        held.sent = Some(now);
        held.cursor = cursor.or(held.cursor.take());
        held.stop = held.stop.or(stop);
        held.stop_sent = held.stop.is_some();
    }
}
