//! What the engine must never ask for.

use crate::commit::Commit;
use crate::rows::Class;

/// What the engine promises of every commit; a broken promise stops it before anything is written.
pub(super) fn must_be_sound(commit: &Commit) {
    let id = commit.execution;
    let records = commit.records.len() as u64;
    assert!(records > 0, "a commit of execution {id} without records");
    assert_eq!(
        commit.rows.head.version,
        commit.expected + records,
        "a commit of execution {id} counts its records wrong"
    );
    assert_eq!(
        commit.expected == 0,
        commit.creation.is_some(),
        "only the first commit of execution {id} creates it"
    );
    for lease in &commit.leases {
        let offered = commit.rows.runs.iter().any(|row| {
            row.run == lease.run
                && row
                    .after
                    .as_ref()
                    .is_some_and(|row| row.class == Class::Offered && row.fence == Some(lease.fence))
        });
        assert!(offered && lease.execution == id, "a commit of execution {id} leases what it does not offer");
    }
    let own = commit.stops.iter().all(|stop| stop.execution == id);
    assert!(own, "a commit of execution {id} stops work of another");
}
