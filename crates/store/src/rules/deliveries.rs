//! Deliveries of webhooks: numbering, giving up on a receiver, and redelivery.

use crate::commit::Applied;
use crate::outbox::{DeliveryState, NewDeliveries};
use windlass_kernel::Millis;

/// The columns of a delivery that change while it is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliveryStatus {
    pub state: DeliveryState,
    pub attempts: u32,
    /// Time of the next attempt.
    pub due: Option<Millis>,
    /// Status code of the receiver's newest answer.
    pub answer: Option<u16>,
    pub error: Option<String>,
}

/// Returns whether new deliveries follow the last number of their execution. If they do not, another process has made
/// deliveries meanwhile.
#[must_use]
pub fn continues_numbering(last: u64, new: &NewDeliveries) -> bool {
    new.made.first().is_none_or(|first| first.number == last + 1)
}

/// Returns the first status of a delivery. `given_up` is why its receiver was given up, if it was.
#[must_use]
pub fn begin_delivery(given_up: Option<&str>, at: Millis) -> DeliveryStatus {
    let pending = DeliveryStatus {
        state: DeliveryState::Pending,
        attempts: 0,
        due: Some(at),
        answer: None,
        error: None,
    };
    match given_up {
        None => pending,
        Some(why) => give_up(pending, why),
    }
}

/// Columns of an outbox that change when its receiver is given up and when a redelivery is requested.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxStatus {
    pub is_open: bool,
    /// Reason for which the receiver was given up, if it was.
    pub given_up: Option<String>,
}

/// Gives up the receiver of an execution: its outbox and every pending delivery. Deliveries that are added later begin as
/// given up, until a redelivery.
#[must_use]
pub fn give_up_receiver(
    outbox: OutboxStatus,
    pending: Vec<DeliveryStatus>,
    why: &str,
) -> (OutboxStatus, Vec<DeliveryStatus>) {
    let outbox = OutboxStatus { given_up: Some(why.to_owned()), ..outbox };
    (outbox, pending.into_iter().map(|status| give_up(status, why)).collect())
}

/// Gives up a pending delivery. All pending deliveries of an execution are given up together, because a receiver that
/// refuses one of them gets none of the later ones.
fn give_up(pending: DeliveryStatus, why: &str) -> DeliveryStatus {
    let error = pending.error.or_else(|| Some(why.to_owned()));
    DeliveryStatus { state: DeliveryState::GivenUp, due: None, error, ..pending }
}

/// Decides whether the outbox of an execution is closed: all its events were made into deliveries, and none is pending.
/// `has_pending` is None for an execution without an outbox.
#[must_use]
pub fn judge_outbox_closing(has_pending: Option<bool>) -> Applied {
    match has_pending {
        Some(false) => Applied::Done,
        Some(true) | None => Applied::Duplicate,
    }
}

/// Returns the status of a delivery that is requested once more, and that of its outbox: it is open, and the receiver is not
/// given up any longer.
#[must_use]
pub fn redeliver(status: DeliveryStatus, at: Millis) -> (OutboxStatus, DeliveryStatus) {
    let outbox = OutboxStatus { is_open: true, given_up: None };
    (outbox, DeliveryStatus { state: DeliveryState::Pending, attempts: 0, due: Some(at), ..status })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outbox::NewDelivery;
    use windlass_kernel::ExecutionId;

    #[test]
    fn numbers_of_deliveries_have_no_gap_and_no_repetition() {
        for (last, first, follows) in [
            (0, Some(1), true),
            (2, Some(3), true),
            (2, Some(2), false),
            (2, Some(4), false),
            (2, None, true),
        ] {
            let made = first.map(|number| NewDelivery {
                number,
                message: 1,
                event: String::new(),
                body: String::new(),
            });
            let made = made.into_iter().collect();
            let new = NewDeliveries { execution: ExecutionId(1), seen: 9, made, at: Millis(1) };
            assert_eq!(continues_numbering(last, &new), follows, "{first:?} after {last}");
        }
    }

    #[test]
    fn a_receiver_is_given_up_until_a_redelivery() {
        let status = |state, attempts, due: Option<i64>, error: Option<&str>| DeliveryStatus {
            state,
            attempts,
            due: due.map(Millis),
            answer: None,
            error: error.map(str::to_owned),
        };
        let (pending, given_up) = (DeliveryState::Pending, DeliveryState::GivenUp);
        assert_eq!(begin_delivery(None, Millis(5)), status(pending, 0, Some(5), None));
        assert_eq!(begin_delivery(Some("gone"), Millis(5)), status(given_up, 0, None, Some("gone")));
        let open = OutboxStatus { is_open: true, given_up: None };
        let waiting = vec![status(pending, 3, Some(9), Some("500")), status(pending, 0, Some(9), None)];
        let (outbox, deliveries) = give_up_receiver(open.clone(), waiting, "gone");
        assert_eq!(outbox, OutboxStatus { given_up: Some("gone".to_owned()), ..open.clone() });
        let expected = [Some("500"), Some("gone")];
        assert_eq!(deliveries.iter().map(|status| status.error.as_deref()).collect::<Vec<_>>(), expected);
        assert!(deliveries.iter().all(|status| status.state == given_up && status.due.is_none()));
        let again = redeliver(status(given_up, 3, None, Some("500")), Millis(20));
        assert_eq!(again, (open, status(pending, 0, Some(20), Some("500"))));
    }

    #[test]
    fn an_outbox_is_closed_while_nothing_is_pending() {
        for (has_pending, expected) in
            [(None, Applied::Duplicate), (Some(true), Applied::Duplicate), (Some(false), Applied::Done)]
        {
            assert_eq!(judge_outbox_closing(has_pending), expected, "{has_pending:?}");
        }
    }
}
