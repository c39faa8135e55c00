//! At the start: everything the last process left to be done is in rows (K8). New requests are served meanwhile.

use super::Lane;
use super::deciding::Pending;
use super::queue::Queued;
use super::reading::Why;
use crate::wake::Lookup;
use windlass_kernel::{ExecutionId, Input, LeaseLost, LeaseUnit, Loss, RunId};
use windlass_protocol::SessionId;
use windlass_store::{Offer, Stop};

/// Rows read at a time.
pub const PAGE: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct Recovery {
    offers_read: bool,
    unfinished_read: bool,
    stops_read: bool,
}

impl Recovery {
    pub fn is_over(&self) -> bool {
        self.offers_read && self.unfinished_read && self.stops_read
    }
}

impl<R> Lane<R> {
    pub(super) fn recover(&mut self) {
        self.read(Lookup::Offers { after: None }, Why::Offers);
        self.read(Lookup::Unfinished, Why::Unfinished);
        self.read(Lookup::Stops { after: None }, Why::Stops);
        self.time_passes();
    }

    /// Workers of the last process died with it: what they had is lost, what waited waits on.
    pub(super) fn offers_found(&mut self, offers: &[Offer]) {
        for offer in offers {
            match &offer.lease {
                None => {
                    let Offer { execution, run, fence, tenant, priority, .. } = offer;
                    let queued = Queued { execution: *execution, run: *run, fence: *fence };
                    self.queue.push(tenant, *priority, queued);
                }
                // Handed out by this process while the rows were read.
                Some(lease) if self.sessions.knows(SessionId(lease.session.0)) => {}
                Some(lease) => {
                    let unit = LeaseUnit::Run { run: offer.run, fence: offer.fence };
                    // The engine itself died. That many steps were in flight says nothing against any of them, so
                    // it is not counted: a process that is killed again and again fails no execution.
                    let loss = if lease.started_at.is_some() { Loss::GivenBack } else { Loss::NotStarted };
                    let lost = LeaseLost { unit, loss, cursor: offer.cursor.clone() };
                    self.give(offer.execution, Pending::input(Input::LeaseLost(lost)));
                }
            }
        }
        match offers.last() {
            Some(last) if offers.len() >= PAGE => {
                let after: Option<(ExecutionId, RunId)> = Some((last.execution, last.run));
                self.read(Lookup::Offers { after }, Why::Offers);
            }
            _ => self.recovery.offers_read = true,
        }
    }

    pub(super) fn stops_found(&mut self, stops: &[Stop]) {
        for stop in stops {
            // One that this process asked for while the rows were read is not over.
            if !self.sessions.knows(SessionId(stop.session.0)) {
                self.stopped(*stop);
            }
        }
        match stops.last() {
            Some(last) if stops.len() >= PAGE => self.read(Lookup::Stops { after: Some(*last) }, Why::Stops),
            _ => self.recovery.stops_read = true,
        }
    }

    pub(super) fn unfinished_found(&mut self, ids: Vec<ExecutionId>) {
        let more = ids.len() >= PAGE;
        for id in ids {
            self.give(id, Pending::input(Input::Continue));
        }
        if more {
            self.read(Lookup::Unfinished, Why::Unfinished);
        } else {
            self.recovery.unfinished_read = true;
        }
    }
}
