//! Offers and their leases: who may take an offer, and when a lease is kept.

use crate::commit::{Applied, Session};
use crate::rows::Class;
use windlass_kernel::Fence;

/// The row of an open offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfferFacts {
    pub fence: Option<Fence>,
    /// The session that has the lease.
    pub session: Option<Session>,
}

/// Requirement of a write for an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferClaim {
    /// A session takes the offer, or changes the lease that it has.
    Lease(Session),
    /// The holder of the lease reports a checkpoint or its progress.
    Report,
}

/// Decides whether an offer may be changed under this fence. `offer` is None where the step-run has no open offer, and
/// where an earlier commit of the batch was refused.
#[must_use]
pub fn judge_offer_write(offer: Option<OfferFacts>, fence: Fence, claim: OfferClaim) -> Applied {
    let Some(offer) = offer.filter(|offer| offer.fence == Some(fence)) else { return Applied::Fenced };
    let is_allowed = match claim {
        OfferClaim::Lease(session) => offer.session.is_none_or(|holder| holder == session),
        OfferClaim::Report => offer.session.is_some(),
    };
    if is_allowed { Applied::Done } else { Applied::Fenced }
}

/// Returns whether a step-run keeps its lease, its cursor and its progress: they belong to the offer of one fence.
#[must_use]
pub fn keeps_lease(before: (Class, Option<Fence>), after: (Class, Option<Fence>)) -> bool {
    before.0 == Class::Offered && before == after
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_has_one_holder_under_one_fence() {
        let offer =
            |session: Option<u64>| Some(OfferFacts { fence: Some(Fence(5)), session: session.map(Session) });
        let lease = OfferClaim::Lease(Session(1));
        let cases = [
            (None, 5, lease, Applied::Fenced),
            (offer(None), 4, lease, Applied::Fenced),
            (offer(None), 5, lease, Applied::Done),
            (offer(Some(1)), 5, lease, Applied::Done),
            (offer(Some(2)), 5, lease, Applied::Fenced),
            (offer(None), 5, OfferClaim::Report, Applied::Fenced),
            (offer(Some(2)), 5, OfferClaim::Report, Applied::Done),
            (offer(Some(2)), 6, OfferClaim::Report, Applied::Fenced),
            (Some(OfferFacts { fence: None, session: None }), 0, lease, Applied::Fenced),
        ];
        for (offer, fence, claim, applied) in cases {
            assert_eq!(judge_offer_write(offer, Fence(fence), claim), applied, "{offer:?} {fence} {claim:?}");
        }
    }

    #[test]
    fn a_lease_stays_with_the_offer_of_its_fence() {
        let (offered, other) = (|fence| (Class::Offered, Some(Fence(fence))), (Class::Other, Some(Fence(1))));
        let cases = [
            (offered(1), offered(1), true),
            (offered(1), offered(2), false),
            (offered(1), other, false),
            (other, offered(1), false),
            (other, other, false),
        ];
        for (before, after, kept) in cases {
            assert_eq!(keeps_lease(before, after), kept, "{before:?} {after:?}");
        }
    }
}
