//! Copies of artifacts: the next action for each, and the results that still count. An attempt is identified by its
//! number, so the result of an earlier one changes nothing.

use crate::commit::Applied;
use crate::objects::{ObjectChange, ObjectState, PutArtifact, StoredObject, UploadPolicy};
use windlass_kernel::Millis;

/// The row of an object after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectRow {
    Keep(StoredObject),
    Remove,
}

/// Returns the row of an artifact that was put into the data folder. While its copy is being deleted, the upload begins after
/// that: otherwise the deletion could come after it.
#[must_use]
pub fn put_object(known: Option<&StoredObject>, put: &PutArtifact) -> StoredObject {
    let new = StoredObject {
        tenant: put.tenant.clone(),
        key: put.key.clone(),
        bytes: put.bytes,
        state: ObjectState::Waiting,
        attempts: 0,
        claimed: false,
        due: Some(put.at),
        error: None,
        put_at: put.at,
    };
    let Some(known) = known else { return new };
    let put_at = known.put_at.max(put.at);
    match known.state {
        ObjectState::Waiting | ObjectState::Stored => StoredObject { put_at, ..known.clone() },
        ObjectState::Failed | ObjectState::Unused if known.claimed => {
            StoredObject { state: ObjectState::Waiting, put_at, ..known.clone() }
        }
        ObjectState::Failed | ObjectState::Unused => StoredObject { put_at, ..new },
    }
}

/// Returns the row of an object after a change; None when the change does not apply.
#[must_use]
pub fn change_object(known: &StoredObject, change: &ObjectChange, at: Millis) -> Option<ObjectRow> {
    let is_open = |attempt: u32| known.claimed && known.attempts == attempt;
    let ended = || StoredObject { claimed: false, attempts: 0, due: Some(at), ..known.clone() };
    let row = match change {
        ObjectChange::Claim { until } => {
            known.due.filter(|due| *due <= at)?;
            let attempts = known.attempts.saturating_add(1);
            StoredObject { claimed: true, attempts, due: Some(*until), ..known.clone() }
        }
        ObjectChange::Uploaded { attempt } if is_open(*attempt) => match known.state {
            // Nothing refers to it any more.
            ObjectState::Unused => ended(),
            ObjectState::Waiting | ObjectState::Failed | ObjectState::Stored => {
                StoredObject { state: ObjectState::Stored, due: None, error: None, ..ended() }
            }
        },
        ObjectChange::Failed { attempt, error, policy } if is_open(*attempt) => {
            fail(known, error, *policy, at)
        }
        ObjectChange::Deleted { attempt } if is_open(*attempt) => match known.state {
            ObjectState::Unused => return Some(ObjectRow::Remove),
            // It was put again meanwhile.
            ObjectState::Waiting | ObjectState::Failed | ObjectState::Stored => ended(),
        },
        ObjectChange::Uploaded { .. } | ObjectChange::Failed { .. } | ObjectChange::Deleted { .. } => {
            return None;
        }
        ObjectChange::Discard { put_before } => {
            if known.state == ObjectState::Unused || known.put_at >= *put_before {
                return None;
            }
            let unclaimed = if known.claimed { known.clone() } else { ended() };
            StoredObject { state: ObjectState::Unused, ..unclaimed }
        }
    };
    Some(ObjectRow::Keep(row))
}

/// Returns the row of an object whose attempt belonged to an earlier process: it is over, and what it was for is due. None
/// if no attempt is under way.
#[must_use]
pub fn end_claim(known: &StoredObject, at: Millis) -> Option<StoredObject> {
    known.claimed.then(|| StoredObject { claimed: false, due: Some(at), ..known.clone() })
}

/// Decides whether the objects are copied to another place. `known` is the place of the copies so far.
#[must_use]
pub fn judge_place(known: Option<&str>, place: &str) -> Applied {
    if known == Some(place) { Applied::Duplicate } else { Applied::Done }
}

/// Returns the row of an object after the object store was replaced by another one, where nothing is stored yet.
#[must_use]
pub fn move_object(known: &StoredObject, at: Millis) -> ObjectRow {
    match known.state {
        ObjectState::Unused => ObjectRow::Remove,
        ObjectState::Waiting | ObjectState::Failed | ObjectState::Stored => ObjectRow::Keep(StoredObject {
            state: ObjectState::Waiting,
            attempts: 0,
            claimed: false,
            due: Some(at),
            error: None,
            ..known.clone()
        }),
    }
}

/// Deletions are tried until they succeed: nothing waits for them.
fn fail(known: &StoredObject, error: &str, policy: UploadPolicy, at: Millis) -> StoredObject {
    let is_last = known.attempts >= policy.attempts_max;
    let (state, delay_ms) = match known.state {
        ObjectState::Waiting | ObjectState::Stored if !is_last => {
            (ObjectState::Waiting, delay_ms(known.attempts, policy))
        }
        ObjectState::Waiting | ObjectState::Stored | ObjectState::Failed => {
            (ObjectState::Failed, policy.failed_delay_ms)
        }
        ObjectState::Unused => (ObjectState::Unused, delay_ms(known.attempts, policy)),
    };
    let due = Some(at.plus(delay_ms));
    StoredObject { state, claimed: false, due, error: Some(error.to_owned()), ..known.clone() }
}

/// Returns the delay after an attempt, counted from 1.
fn delay_ms(attempts: u32, policy: UploadPolicy) -> u64 {
    let doubled = 1_u64.checked_shl(attempts.saturating_sub(1)).unwrap_or(u64::MAX);
    policy.delay_ms.saturating_mul(doubled).min(policy.delay_max_ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::Tenant;

    const POLICY: UploadPolicy =
        UploadPolicy { attempts_max: 3, delay_ms: 10, delay_max_ms: 15, failed_delay_ms: 1_000 };

    fn put(at: i64) -> PutArtifact {
        PutArtifact { tenant: Tenant::new("a"), key: "sha256:1".to_owned(), bytes: 7, at: Millis(at) }
    }

    fn change(known: &StoredObject, change: ObjectChange, at: i64) -> Option<StoredObject> {
        match change_object(known, &change, Millis(at)) {
            Some(ObjectRow::Keep(row)) => Some(row),
            Some(ObjectRow::Remove) | None => None,
        }
    }

    fn claim(known: &StoredObject, at: i64) -> StoredObject {
        change(known, ObjectChange::Claim { until: Millis(at + 100) }, at).expect("it is due")
    }

    fn fail(known: &StoredObject, at: i64) -> StoredObject {
        let error = "down".to_owned();
        let failed = ObjectChange::Failed { attempt: known.attempts, error, policy: POLICY };
        change(known, failed, at).expect("the attempt is under way")
    }

    fn facts(row: &StoredObject) -> (ObjectState, u32, bool, Option<i64>) {
        (row.state, row.attempts, row.claimed, row.due.map(|due| due.0))
    }

    #[test]
    fn an_upload_is_tried_with_growing_delays_and_counts_as_failed_after_the_last() {
        use ObjectState::{Failed, Waiting};
        let mut row = put_object(None, &put(1));
        assert_eq!(facts(&row), (Waiting, 0, false, Some(1)));
        for (attempt, state, due) in
            [(1, Waiting, 60), (2, Waiting, 65), (3, Failed, 1_050), (4, Failed, 1_050)]
        {
            row = claim(&StoredObject { due: Some(Millis(40)), ..row }, 40);
            assert_eq!(facts(&row), (row.state, attempt, true, Some(140)));
            row = fail(&row, 50);
            assert_eq!(facts(&row), (state, attempt, false, Some(due)), "attempt {attempt}");
            assert_eq!(row.error.as_deref(), Some("down"));
        }
        let row = claim(&row, 2_000);
        let stored = change(&row, ObjectChange::Uploaded { attempt: 5 }, 2_001).expect("it is under way");
        assert_eq!((facts(&stored), stored.error), ((ObjectState::Stored, 0, false, None), None));
    }

    #[test]
    fn nothing_is_claimed_early_and_results_of_other_attempts_change_nothing() {
        let waiting = put_object(None, &put(10));
        assert_eq!(change(&waiting, ObjectChange::Claim { until: Millis(50) }, 9), None);
        let first = claim(&waiting, 10);
        assert_eq!(change(&first, ObjectChange::Claim { until: Millis(500) }, 109), None);
        let second = claim(&first, 110);
        for attempt in [0, 1, 3] {
            assert_eq!(change(&second, ObjectChange::Uploaded { attempt }, 111), None, "attempt {attempt}");
        }
        let failed = ObjectChange::Failed { attempt: 1, error: String::new(), policy: POLICY };
        assert_eq!(change(&second, failed, 111), None);
        assert!(change(&second, ObjectChange::Uploaded { attempt: 2 }, 111).is_some());
    }

    #[test]
    fn what_is_put_again_is_uploaded_again_unless_it_is_there() {
        let failed = StoredObject { state: ObjectState::Failed, attempts: 3, ..put_object(None, &put(1)) };
        assert_eq!(facts(&put_object(Some(&failed), &put(9))), (ObjectState::Waiting, 0, false, Some(9)));
        let stored = StoredObject { state: ObjectState::Stored, due: None, ..failed.clone() };
        let kept = put_object(Some(&stored), &put(9));
        assert_eq!((kept.state, kept.due, kept.put_at), (ObjectState::Stored, None, Millis(9)));
        let waiting = claim(&put_object(None, &put(1)), 1);
        let again = put_object(Some(&waiting), &put(9));
        assert_eq!(again, StoredObject { put_at: Millis(9), ..waiting });
    }

    #[test]
    fn an_upload_waits_for_a_deletion_that_is_under_way() {
        let stored = StoredObject { state: ObjectState::Stored, due: None, ..put_object(None, &put(1)) };
        let discard = |before| ObjectChange::Discard { put_before: Millis(before) };
        assert_eq!(change(&stored, discard(1), 5), None, "it is too recent");
        let unused = change(&stored, discard(2), 5).expect("it is old");
        assert_eq!(facts(&unused), (ObjectState::Unused, 0, false, Some(5)));
        assert_eq!(change(&unused, discard(2), 5), None);
        let deleting = claim(&unused, 6);
        assert_eq!(
            change_object(&deleting, &ObjectChange::Deleted { attempt: 1 }, Millis(7)),
            Some(ObjectRow::Remove)
        );
        let again = put_object(Some(&deleting), &put(8));
        assert_eq!(facts(&again), (ObjectState::Waiting, 1, true, Some(106)));
        let deleted = change(&again, ObjectChange::Deleted { attempt: 1 }, 9).expect("it was put again");
        assert_eq!(facts(&deleted), (ObjectState::Waiting, 0, false, Some(9)));
        let retried = fail(&claim(&StoredObject { attempts: 60, ..unused }, 6), 7);
        assert_eq!(
            facts(&retried),
            (ObjectState::Unused, 61, false, Some(22)),
            "it is tried until it is gone"
        );
    }

    #[test]
    fn what_is_discarded_while_it_is_uploaded_is_deleted_after_that() {
        let uploading = claim(&put_object(None, &put(1)), 1);
        let discarded = change(&uploading, ObjectChange::Discard { put_before: Millis(2) }, 5);
        let discarded = discarded.expect("it is old");
        assert_eq!(facts(&discarded), (ObjectState::Unused, 1, true, Some(101)));
        let uploaded = change(&discarded, ObjectChange::Uploaded { attempt: 1 }, 6).expect("it is under way");
        assert_eq!(facts(&uploaded), (ObjectState::Unused, 0, false, Some(6)));
    }
    #[test]
    fn attempts_of_an_earlier_process_are_over_and_due() {
        let waiting = put_object(None, &put(1));
        assert_eq!(end_claim(&waiting, Millis(5)), None);
        for state in ObjectState::ALL {
            let claimed = claim(&StoredObject { state, ..waiting.clone() }, 1);
            let ended = end_claim(&claimed, Millis(5)).expect("an attempt is under way");
            assert_eq!(facts(&ended), (state, 1, false, Some(5)));
        }
    }

    #[test]
    fn everything_is_copied_again_to_another_place_unless_nothing_refers_to_it() {
        for (known, place, expected) in [
            (None, "a", Applied::Done),
            (Some("a"), "a", Applied::Duplicate),
            (Some("a"), "b", Applied::Done),
        ] {
            assert_eq!(judge_place(known, place), expected, "{place} after {known:?}");
        }
        let failed = fail(&claim(&put_object(None, &put(1)), 1), 2);
        for state in ObjectState::ALL {
            let moved = move_object(&claim(&StoredObject { state, ..failed.clone() }, 50), Millis(60));
            let waiting = StoredObject { due: Some(Millis(60)), ..put_object(None, &put(1)) };
            let expected = match state {
                ObjectState::Unused => ObjectRow::Remove,
                _ => ObjectRow::Keep(waiting),
            };
            assert_eq!(moved, expected, "{state:?}");
        }
    }
}
