//! Commits: the order of refusals, idempotency keys, and refusals within one batch.

use super::mail::{MailEnding, MailFacts, end_mail};
use crate::commit::{Applied, Commit, Creation, Lease, MailId};
use crate::origin::IdempotencyKey;
use crate::rows::{Class, RunRow};
use crate::store::StoreResult;
use std::collections::HashSet;
use windlass_kernel::{ExecutionId, Fence, Millis, Phase, RunId, any_of};

/// Facts about the execution that a commit is for. Each is looked up when [`judge_commit`] needs it.
pub trait CommitFacts {
    /// Returns whether the execution exists.
    fn exists(&mut self) -> StoreResult<bool>;

    /// Returns the version of the execution, which exists.
    fn version(&mut self) -> StoreResult<u64>;

    /// Returns the fence of the open offer of a step-run of the execution, which exists.
    fn open_fence(&mut self, run: RunId) -> StoreResult<Option<Fence>>;

    /// Returns the newest execution of the same workflow that was created under this key.
    fn key_holder(&mut self, creation: &Creation, key: &IdempotencyKey) -> StoreResult<Option<KeyHolder>>;

    /// Returns the row of a letter, if there is one.
    fn mail(&mut self, mail: MailId) -> StoreResult<Option<MailFacts>>;
}

/// An execution that was created under an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyHolder {
    pub phase: Phase,
    /// Time of its newest event.
    pub at: Millis,
}

/// Actions of a store for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitVerdict {
    /// Write the first rows of the execution.
    Create,
    /// Write the next rows of the execution.
    Append,
    /// Write nothing, and return this result.
    Refuse(Applied),
}

/// Decides whether a commit is written. `endings` receives the ending of each consumed letter, in order; it is only
/// valid for a commit that is not refused.
pub fn judge_commit(
    commit: &Commit,
    facts: &mut impl CommitFacts,
    endings: &mut Vec<MailEnding>,
) -> StoreResult<CommitVerdict> {
    endings.clear();
    let verdict = match (facts.exists()?, &commit.creation) {
        (true, Some(_)) => CommitVerdict::Refuse(Applied::Duplicate),
        (false, None) => CommitVerdict::Refuse(Applied::Conflict),
        (false, Some(creation)) => judge_creation(creation, facts)?,
        (true, None) => judge_next(commit, facts)?,
    };
    if let CommitVerdict::Refuse(_) = verdict {
        return Ok(verdict);
    }
    for mail in &commit.consumed {
        let Some(ending) = end_mail(facts.mail(*mail)?) else {
            return Ok(CommitVerdict::Refuse(Applied::Duplicate));
        };
        endings.push(ending);
    }
    Ok(verdict)
}

fn judge_creation(creation: &Creation, facts: &mut impl CommitFacts) -> StoreResult<CommitVerdict> {
    let Some(key) = &creation.origin.key else { return Ok(CommitVerdict::Create) };
    let holder = facts.key_holder(creation, key)?;
    Ok(match holder {
        Some(holder) if holds_key(&holder, key) => CommitVerdict::Refuse(Applied::Taken),
        Some(_) | None => CommitVerdict::Create,
    })
}

fn judge_next(commit: &Commit, facts: &mut impl CommitFacts) -> StoreResult<CommitVerdict> {
    if facts.version()? != commit.expected {
        return Ok(CommitVerdict::Refuse(Applied::Conflict));
    }
    for (run, fence) in &commit.answered {
        if facts.open_fence(*run)? != Some(*fence) {
            return Ok(CommitVerdict::Refuse(Applied::Fenced));
        }
    }
    Ok(CommitVerdict::Append)
}

/// Returns whether an execution still holds its key: until it has ended, and then until the key expires.
#[must_use]
pub fn holds_key(holder: &KeyHolder, key: &IdempotencyKey) -> bool {
    !holder.phase.is_ended() || holder.at >= key.forgotten
}

/// Executions of which a commit of the current batch was refused. Writes that were decided after that commit are
/// refused.
#[derive(Debug, Default)]
pub struct Refusals(HashSet<ExecutionId>);

impl Refusals {
    #[must_use]
    pub fn contain(&self, execution: ExecutionId) -> bool {
        self.0.contains(&execution)
    }

    /// Remembers the execution if its commit was not written.
    pub fn record(&mut self, execution: ExecutionId, applied: Applied) {
        match applied {
            Applied::Committed(_) => {}
            any_of![Applied: Done Defined Accepted Conflict Fenced Duplicate Taken QueueFull HookTaken] => {
                self.0.insert(execution);
            }
        }
    }
}

/// Returns what is wrong with a commit that the engine must never make. A store writes nothing of such a commit.
#[must_use]
pub fn find_broken_promise(commit: &Commit) -> Option<&'static str> {
    let offers = |row: &RunRow, lease: &Lease| {
        let open = row.after.as_ref().filter(|row| row.class == Class::Offered);
        row.run == lease.run && open.is_some_and(|row| row.fence == Some(lease.fence))
    };
    let owns_lease = |lease: &Lease| {
        lease.execution == commit.execution && commit.rows.runs.iter().any(|row| offers(row, lease))
    };
    let counted = commit.expected + commit.records.len() as u64;
    let promises = [
        (!commit.records.is_empty(), "it has no records"),
        (commit.rows.head.version == counted, "its version does not count its records"),
        ((commit.expected == 0) == commit.creation.is_some(), "only the first commit creates an execution"),
        (commit.leases.iter().all(owns_lease), "it leases a step-run that it does not offer"),
        (
            commit.stops.iter().all(|stop| stop.execution == commit.execution),
            "it stops work of another execution",
        ),
    ];
    promises.into_iter().find(|(kept, _)| !kept).map(|(_, broken)| broken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commit::{Session, Stop};
    use crate::conformance::world::{World, circle};
    use serde_json::json;
    use windlass_kernel::Outcome;

    const OPEN: MailFacts = MailFacts { wants_answer: false, settled: false };

    /// A store that answers the same for every execution and counts what it is asked.
    #[derive(Debug, Clone, Default)]
    struct Facts {
        version: Option<u64>,
        fence: Option<Fence>,
        holder: Option<KeyHolder>,
        mail: Option<MailFacts>,
        asked: Vec<&'static str>,
    }

    impl CommitFacts for Facts {
        fn exists(&mut self) -> StoreResult<bool> {
            self.asked.push("exists");
            Ok(self.version.is_some())
        }

        fn version(&mut self) -> StoreResult<u64> {
            self.asked.push("version");
            Ok(self.version.expect("it exists"))
        }

        fn open_fence(&mut self, _run: RunId) -> StoreResult<Option<Fence>> {
            self.asked.push("fence");
            Ok(self.fence)
        }

        fn key_holder(
            &mut self,
            _creation: &Creation,
            _key: &IdempotencyKey,
        ) -> StoreResult<Option<KeyHolder>> {
            self.asked.push("key");
            Ok(self.holder)
        }

        fn mail(&mut self, _mail: MailId) -> StoreResult<Option<MailFacts>> {
            self.asked.push("mail");
            Ok(self.mail)
        }
    }

    fn key(forgotten: i64) -> IdempotencyKey {
        IdempotencyKey { key: "k".into(), request: [0; 32], forgotten: Millis(forgotten) }
    }

    /// The first commit of an execution under a key, and the next one, which answers an offer. Both consume a letter.
    fn commits() -> (Commit, Commit) {
        let (mut world, mut first) = World::create(&circle(), 1);
        let mut next = world.done(json!(1));
        for commit in [&mut first, &mut next] {
            commit.consumed = vec![MailId(4)];
        }
        if let Some(creation) = &mut first.creation {
            std::sync::Arc::make_mut(&mut creation.origin).key = Some(key(100));
        }
        (first, next)
    }

    #[test]
    fn refusals_have_one_order_and_end_the_lookups() {
        let (first, next) = commits();
        let (version, fence) = (Some(next.expected), Some(next.answered[0].1));
        let running = Some(KeyHolder { phase: Phase::Running, at: Millis(1) });
        let refuse = CommitVerdict::Refuse;
        let cases: Vec<(&Commit, Facts, CommitVerdict, &[&str])> = vec![
            (
                &first,
                Facts { mail: Some(OPEN), ..Facts::default() },
                CommitVerdict::Create,
                &["exists", "key", "mail"],
            ),
            (&first, Facts { version, ..Facts::default() }, refuse(Applied::Duplicate), &["exists"]),
            (
                &first,
                Facts { holder: running, ..Facts::default() },
                refuse(Applied::Taken),
                &["exists", "key"],
            ),
            (&first, Facts::default(), refuse(Applied::Duplicate), &["exists", "key", "mail"]),
            (&next, Facts::default(), refuse(Applied::Conflict), &["exists"]),
            (
                &next,
                Facts { version: Some(0), fence, ..Facts::default() },
                refuse(Applied::Conflict),
                &["exists", "version"],
            ),
            (
                &next,
                Facts { version, mail: Some(OPEN), ..Facts::default() },
                refuse(Applied::Fenced),
                &["exists", "version", "fence"],
            ),
            (
                &next,
                Facts { version, fence, ..Facts::default() },
                refuse(Applied::Duplicate),
                &["exists", "version", "fence", "mail"],
            ),
            (
                &next,
                Facts { version, fence, mail: Some(OPEN), ..Facts::default() },
                CommitVerdict::Append,
                &["exists", "version", "fence", "mail"],
            ),
        ];
        for (commit, mut facts, verdict, asked) in cases {
            let mut endings = vec![MailEnding::Answer];
            let given = format!("{facts:?}");
            assert_eq!(judge_commit(commit, &mut facts, &mut endings), Ok(verdict), "{given}");
            assert_eq!(facts.asked, asked, "{given}");
            if !matches!(verdict, CommitVerdict::Refuse(_)) {
                assert_eq!(endings, [MailEnding::Delete], "{given}");
            }
        }
    }

    #[test]
    fn a_key_is_held_until_its_execution_has_ended_and_the_key_has_expired() {
        let ended = Phase::Ended(Outcome::Failed);
        let cases = [
            (Phase::Running, 50, true),
            (Phase::Queued, 200, true),
            (ended, 99, false),
            (ended, 100, true),
            (ended, 101, true),
        ];
        for (phase, at, holds) in cases {
            let holder = KeyHolder { phase, at: Millis(at) };
            assert_eq!(holds_key(&holder, &key(100)), holds, "{holder:?}");
        }
    }

    #[test]
    fn a_commit_keeps_what_the_engine_promises() {
        let (first, next) = commits();
        let stop = Stop { execution: ExecutionId(9), run: RunId(1), fence: Fence(1), session: Session(1) };
        let lease = World::create(&circle(), 1).0.lease(1);
        let change = |change: &dyn Fn(&mut Commit)| {
            let mut commit = next.clone();
            change(&mut commit);
            find_broken_promise(&commit)
        };
        assert_eq!(find_broken_promise(&first), None);
        assert_eq!(change(&|_| {}), None);
        assert!(change(&|commit| commit.records = Vec::new().into()).is_some());
        assert!(change(&|commit| commit.rows.head.version += 1).is_some());
        assert!(change(&|commit| commit.creation.clone_from(&first.creation)).is_some());
        assert!(change(&|commit| commit.leases = vec![lease]).is_some(), "an offer of an earlier commit");
        assert!(change(&|commit| commit.stops = vec![stop]).is_some());
    }

    #[test]
    fn only_a_commit_that_was_not_written_refuses_what_follows() {
        let mut refusals = Refusals::default();
        refusals.record(ExecutionId(1), Applied::Committed(crate::commit::Position(1)));
        refusals.record(ExecutionId(2), Applied::Conflict);
        assert!(!refusals.contain(ExecutionId(1)) && refusals.contain(ExecutionId(2)));
    }
}
