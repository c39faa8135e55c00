//! Recovery at the start: all unfinished work of the last process is in rows (K8). New requests are served meanwhile.

use super::Lane;
use super::deciding::{Pending, PendingKind};
use super::dispatch::unit;
use super::queue::{Queued, QueuedWork};
use super::reading::List;
use crate::wake::Lookup;
use windlass_kernel::{ExecutionId, Input, Loss, RunId};
use windlass_protocol::SessionId;
use windlass_store::{Lease, Offer, Stop, WHOLE};

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
        self.read_list(Lookup::Offers { after: None }, List::Offers);
        self.read_list(Lookup::Unfinished, List::Unfinished);
        self.read_list(Lookup::Stops { after: None }, List::Stops);
        self.time_passes();
    }

    pub(super) fn offers_found(&mut self, offers: &[Offer]) {
        // An offer that this process dispatched while the rows were read is known already.
        self.resume_offers(offers, |lane, _, lease| lane.sessions.knows(SessionId(lease.session.0)));
        match offers.last() {
            Some(last) if offers.len() >= PAGE => {
                let after: Option<(ExecutionId, RunId)> = Some((last.execution, last.run));
                self.read_list(Lookup::Offers { after }, List::Offers);
            }
            _ => self.recovery.offers_read = true,
        }
    }

    /// Continues a released execution. Reports of workers of this process during the quarantine were refused, and their
    /// work is lost.
    pub(super) fn offers_of_found(&mut self, offers: &[Offer]) {
        self.resume_offers(offers, |lane, offer, _| {
            lane.sessions.is_held(unit(offer.execution, offer.run, offer.fence))
        });
    }

    /// Handles the leases of the last process. Its own workers died with it: their work is lost, and waiting work
    /// continues to wait. Workers outside of it keep their work.
    fn resume_offers(&mut self, offers: &[Offer], is_held: fn(&Lane<R>, &Offer, &Lease) -> bool) {
        for offer in offers {
            match &offer.lease {
                None if self.config.has_groups || offer.run == WHOLE => {
                    let what = PendingKind::Sort { run: offer.run, fence: offer.fence };
                    self.enqueue_input(
                        offer.execution,
                        Pending { what, reply: None, mail: None, audit: None },
                    );
                }
                None => {
                    let Offer { execution, run, fence, tenant, priority, .. } = offer;
                    let queued = Queued { execution: *execution, work: QueuedWork::Offer(*run, *fence) };
                    self.queue.push(tenant, *priority, queued);
                }
                Some(lease) if self.sessions.outside(SessionId(lease.session.0)).is_some() => {
                    self.keep_offer(offer, lease);
                }
                Some(lease) if is_held(self, offer, lease) => {}
                Some(lease) => {
                    // The engine itself died. A step in flight is not the likely cause, so the loss is not counted:
                    // killing the process repeatedly fails no execution.
                    let loss = if lease.started_at.is_some() { Loss::GivenBack } else { Loss::NotStarted };
                    let lost = Pending::lost_lease((offer.run, offer.fence), loss, offer.cursor.clone());
                    self.enqueue_input(offer.execution, lost);
                }
            }
        }
    }

    pub(super) fn stops_found(&mut self, stops: &[Stop]) {
        for stop in stops {
            // A stop that this process asked for while the rows were read is not over.
            let session = SessionId(stop.session.0);
            if self.sessions.outside(session).is_some() {
                self.keep_stop(*stop);
            } else if !self.sessions.knows(session) {
                self.stopped(*stop);
            }
        }
        match stops.last() {
            Some(last) if stops.len() >= PAGE => {
                self.read_list(Lookup::Stops { after: Some(*last) }, List::Stops)
            }
            _ => self.recovery.stops_read = true,
        }
    }

    pub(super) fn unfinished_found(&mut self, ids: Vec<ExecutionId>) {
        let more = ids.len() >= PAGE;
        for id in ids {
            self.enqueue_input(id, Pending::input(Input::Continue));
        }
        if more {
            self.read_list(Lookup::Unfinished, List::Unfinished);
        } else {
            self.recovery.unfinished_read = true;
        }
    }
}
