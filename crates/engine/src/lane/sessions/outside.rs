//! Sessions of workers outside of this process, which claim work of their group.

use super::super::dispatch::Cursor;
use super::super::groups::GroupKey;
use super::table::{Session, Sessions};
use std::collections::{BTreeMap, BTreeSet};
use windlass_protocol as protocol;
use windlass_store::Tenant;

/// Facts about the session of a worker outside of this process.
#[derive(Debug)]
pub(in crate::lane) struct Outside {
    pub group: GroupKey,
    /// SHA-256 of the session's text.
    pub digest: [u8; 32],
    /// On the steady clock: when its row is renewed at the earliest.
    pub renew_at: u64,
}

impl Sessions {
    pub fn open_outside(&mut self, id: protocol::SessionId, outside: Outside, expires: u64) {
        let (holds, outside) = (BTreeMap::new(), Some(Box::new(outside)));
        let worker = String::new();
        self.insert(id, Session { worker, slots: 0, holds, slotless: 0, expires, outside });
    }

    pub fn outside(&self, id: protocol::SessionId) -> Option<&Outside> {
        self.sessions.get(&id)?.outside.as_deref()
    }

    /// Number of sessions of a tenant's workers outside of this process.
    pub fn outside_of(&self, tenant: &Tenant) -> usize {
        self.outside_loads().filter(|(group, _)| group.tenant == *tenant).count()
    }

    /// Groups of all workers outside of this process, and what each worker holds.
    pub fn outside_loads(&self) -> impl Iterator<Item = (&GroupKey, usize)> {
        self.sessions
            .values()
            .filter_map(|session| Some((&session.outside.as_deref()?.group, session.holds.len())))
    }

    pub fn held_by_session(&self, id: protocol::SessionId) -> usize {
        self.sessions.get(&id).map_or(0, |session| session.holds.len())
    }

    /// Returns the session that holds a unit.
    pub fn holder(&self, unit: protocol::Unit) -> Option<protocol::SessionId> {
        self.held.get(&unit).copied()
    }

    /// Renews a session of a worker outside of this process; true: its row has to be renewed as well.
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

    /// Compares what a session holds with the units that its worker lists: those that the worker has given up, and those
    /// that it has to stop. A unit that was sent after `overdue` may have crossed the list on its way.
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

    /// A unit from before the start: its checkpoint, and whether it must stop.
    pub fn restored(&mut self, unit: protocol::Unit, cursor: Cursor, stop: Option<u64>, now: u64) {
        let Some(held) = self.held_mut(unit) else { return };
        held.sent = Some(now);
        held.cursor = cursor.or(held.cursor.take());
        held.stop = held.stop.or(stop);
        held.stop_sent = held.stop.is_some();
    }
}
