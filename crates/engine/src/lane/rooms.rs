//! Limit on the open executions of a tenant. It applies to all beginnings: starts, retries and the sub-workflows of
//! open executions.

use super::Lane;
use super::batch::{Batch, Building};
use super::reading::LookupReason;
use super::retry::Retrying;
use crate::retries::Past;
use crate::wake::{EngineAnswer, Lookup, OpenLimits, Refusal, Start};
use std::collections::BTreeMap;
use windlass_kernel::{Event, Failure, codes};
use windlass_store::{Letter, StoredMail, Tenant};

/// A beginning of an execution.
#[derive(Debug)]
pub(super) enum Starter<R> {
    Start(Box<Start>, R),
    Retry(Box<Retrying<R>>, Box<Past>),
    Child(Box<StoredMail>),
}

/// Upper bound of the open executions of each tenant with a limit. Refused beginnings are counted, too, so the exact
/// number is looked up before a start is refused.
#[derive(Debug)]
pub(super) struct Rooms<R> {
    limits: OpenLimits,
    known: BTreeMap<Tenant, OpenCount>,
    /// Beginnings that wait for the lookup.
    waiting: BTreeMap<Tenant, Vec<Starter<R>>>,
}

#[derive(Debug, Clone, Copy)]
struct OpenCount {
    open: usize,
    /// Whether it was looked up and nothing began since then.
    exact: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoomDecision {
    Taken,
    Full { limit: usize },
    NotKnown { limit: usize },
}

impl<R> Default for Rooms<R> {
    fn default() -> Self {
        Rooms { limits: OpenLimits::default(), known: BTreeMap::new(), waiting: BTreeMap::new() }
    }
}

impl<R> Rooms<R> {
    pub fn limit(&mut self, limits: OpenLimits) {
        if self.limits != limits {
            // The known number was counted up to the old limit only.
            self.known.clear();
            self.limits = limits;
        }
    }

    fn take(&mut self, tenant: &Tenant) -> RoomDecision {
        let Some(limit) = self.limits.of(tenant) else {
            // Without a limit nothing is counted; a later limit begins anew.
            self.known.remove(tenant);
            return RoomDecision::Taken;
        };
        match self.known.get_mut(tenant) {
            Some(room) if room.open < limit => {
                *room = OpenCount { open: room.open + 1, exact: false };
                RoomDecision::Taken
            }
            Some(OpenCount { exact: true, .. }) => RoomDecision::Full { limit },
            Some(_) | None => RoomDecision::NotKnown { limit },
        }
    }

    fn ended(&mut self, tenant: &Tenant) {
        if let Some(room) = self.known.get_mut(tenant) {
            room.open = room.open.saturating_sub(1);
        }
    }
}

impl<R> Lane<R> {
    /// Continues with the start if the tenant may have one more open execution.
    pub(super) fn begin_in_room(&mut self, tenant: &Tenant, starter: Starter<R>) {
        match self.rooms.take(tenant) {
            RoomDecision::Taken => self.begin(starter),
            RoomDecision::Full { limit } => self.no_room(starter, limit),
            RoomDecision::NotKnown { limit } => {
                let waiting = self.rooms.waiting.entry(tenant.clone()).or_default();
                waiting.push(starter);
                if waiting.len() == 1 {
                    let unwritten = self.unwritten_of(tenant);
                    let lookup = Lookup::Open(tenant.clone(), limit);
                    self.read(lookup, LookupReason::Room(tenant.clone(), unwritten));
                }
            }
        }
    }

    /// Returns the number of executions that began and may not have been on disk when the open ones were counted.
    fn unwritten_of(&self, tenant: &Tenant) -> usize {
        let begun = |building: &&Building<R>| {
            building.creation.as_ref().is_some_and(|creation| creation.origin.tenant == *tenant)
        };
        let count = |batch: &Batch<R>| batch.commits.iter().filter(begun).count();
        count(&self.open) + self.syncing.as_ref().map_or(0, count) + self.reads.beginnings_of(tenant)
    }

    pub(super) fn note_room(&mut self, tenant: &Tenant, unwritten: usize, open: usize) {
        let room = OpenCount { open: open + unwritten, exact: unwritten == 0 };
        self.rooms.known.insert(tenant.clone(), room);
        for starter in self.rooms.waiting.remove(tenant).unwrap_or_default() {
            self.begin_in_room(tenant, starter);
        }
    }

    pub(super) fn leave_room(&mut self, building: &Building<R>) {
        let ended = building.records.iter().any(|record| matches!(record.event, Event::Ended { .. }));
        if ended && let Some(live) = self.executions.get(building.id) {
            self.rooms.ended(&live.origin.tenant);
        }
    }

    fn begin(&mut self, starter: Starter<R>) {
        match starter {
            Starter::Start(start, reply) => self.start(*start, reply),
            Starter::Retry(retrying, past) => self.start_retry(*retrying, *past),
            Starter::Child(mail) => self.find_child(*mail),
        }
    }

    fn no_room(&mut self, starter: Starter<R>, limit: usize) {
        let refusal = Refusal::NoRoom { limit };
        match starter {
            Starter::Start(_, reply) => self.answer(reply, EngineAnswer::Refused(refusal)),
            Starter::Retry(retrying, _) => self.retry_refused(*retrying, refusal),
            Starter::Child(mail) => {
                if let Letter::Start { create, .. } = mail.letter {
                    self.missing(create.id);
                    let failure = Failure::new(codes::EXECUTION_LIMIT_EXCEEDED, refusal.to_string());
                    self.child_failed(mail.id, &create, failure);
                }
            }
        }
    }
}
