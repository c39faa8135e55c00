//! Checks of the runs of a schedule.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use windlass_kernel::Millis;
use windlass_schedule::RunStatus;
use windlass_store::{ScheduleRunId, StoredRun};

/// A rule that was broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Broken {
    pub rule: &'static str,
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

fn broken(rule: &'static str, what: impl Into<String>) -> Result<(), Broken> {
    Err(Broken { rule, what: what.into() })
}

/// Ended runs as they were seen first.
#[derive(Debug, Default)]
pub struct Ledger(BTreeMap<ScheduleRunId, u64>);

impl Ledger {
    /// Compares ended runs with what they were before.
    pub fn check(&mut self, runs: &[StoredRun]) -> Result<(), Broken> {
        for run in runs.iter().filter(|run| run.status.is_terminal()) {
            let mut hasher = DefaultHasher::new();
            format!("{run:?}").hash(&mut hasher);
            let digest = hasher.finish();
            if *self.0.entry(run.id).or_insert(digest) != digest {
                return broken("an ended run never changes", format!("{run:?}"));
            }
        }
        Ok(())
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// Checks all runs of a schedule at the end of the simulation. `expected` are the nominal times of its occurrences.
pub fn check_schedule(
    key: &str,
    runs: &[StoredRun],
    expected: &BTreeSet<Millis>,
    letters: &BTreeSet<ScheduleRunId>,
) -> Result<(), Broken> {
    let mut chains = BTreeMap::<&str, Vec<&StoredRun>>::new();
    runs.iter().for_each(|run| chains.entry(&run.occurrence_key).or_default().push(run));
    let mut found = BTreeSet::new();
    for (occurrence, chain) in &mut chains {
        chain.sort_by_key(|run| run.attempt);
        check_chain(occurrence, chain, letters)?;
        let is_planned = occurrence.starts_with(key);
        let nominal = chain.first().map(|run| run.nominal_time).unwrap_or(Millis(0));
        if is_planned && !found.insert(nominal) {
            return broken("a nominal time has one chain", format!("{occurrence} has two"));
        }
    }
    if let Some(lost) = expected.difference(&found).next() {
        return broken("every nominal time has a chain or a skip", format!("{key} has none at {}", lost.0));
    }
    match found.difference(expected).next() {
        Some(invented) => broken("only nominal times have runs", format!("{key} has one at {}", invented.0)),
        None => Ok(()),
    }
}

/// All attempts at one occurrence.
fn check_chain(
    occurrence: &str,
    chain: &[&StoredRun],
    letters: &BTreeSet<ScheduleRunId>,
) -> Result<(), Broken> {
    for (run, attempt) in chain.iter().zip(1..) {
        if run.attempt != attempt {
            return broken("attempts have no gap", format!("{occurrence} has {} for {attempt}", run.attempt));
        }
        let is_last = attempt as usize == chain.len();
        let is_allowed = match run.status {
            RunStatus::Failed => !is_last,
            RunStatus::Skipped => is_last && attempt == 1,
            RunStatus::Succeeded | RunStatus::DeadLettered | RunStatus::Cancelled => is_last,
            RunStatus::Pending | RunStatus::Claimed | RunStatus::Running | RunStatus::RetryScheduled => false,
        };
        if !is_allowed {
            let what = format!("{occurrence} attempt {attempt} of {} is {:?}", chain.len(), run.status);
            return broken("only the last attempt is no failure, and it has ended", what);
        }
        if run.status == RunStatus::Skipped && run.error_text.as_deref().unwrap_or_default().is_empty() {
            return broken("a skip has a reason", occurrence);
        }
        if run.finished_at.is_none() {
            return broken("an ended run has its time", occurrence);
        }
        if (run.status == RunStatus::DeadLettered) != letters.contains(&run.id) {
            return broken("a dead-lettered run has a dead letter, and no other", occurrence);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_store::{ScheduleId, Tenant};

    fn run(id: u128, nominal: i64, attempt: u32, status: RunStatus) -> StoredRun {
        StoredRun {
            id: ScheduleRunId(id),
            tenant: Tenant::default(),
            schedule: ScheduleId(1),
            occurrence_key: format!("s:{nominal}"),
            attempt,
            nominal_time: Millis(nominal),
            due_time: Millis(nominal),
            status,
            claimed_by_worker_id: None,
            claim_expires_at: None,
            started_at: None,
            finished_at: Some(Millis(9)),
            http_status_code: None,
            exit_code: None,
            result_json: None,
            error_text: Some("why".to_owned()),
            retry_available_at: None,
            execution: None,
            requested_by: None,
            created_at: Millis(0),
            updated_at: Millis(9),
        }
    }

    fn check(runs: &[StoredRun], expected: &[i64], letters: &[u128], rule: Option<&str>) {
        let expected = expected.iter().copied().map(Millis).collect();
        let letters = letters.iter().copied().map(ScheduleRunId).collect();
        let found = check_schedule("s:", runs, &expected, &letters).err().map(|broken| broken.rule);
        assert_eq!(found, rule, "{runs:?}");
    }

    #[test]
    fn each_rule_is_seen_to_be_broken() {
        use RunStatus::{DeadLettered, Failed, Pending, Skipped, Succeeded};
        let good = [run(1, 5, 1, Failed), run(2, 5, 2, DeadLettered), run(3, 6, 1, Skipped)];
        check(&good, &[5, 6], &[2], None);
        check(&good, &[5, 6, 7], &[2], Some("every nominal time has a chain or a skip"));
        check(&good, &[5], &[2], Some("only nominal times have runs"));
        check(&good, &[5, 6], &[], Some("a dead-lettered run has a dead letter, and no other"));
        check(&good, &[5, 6], &[2, 3], Some("a dead-lettered run has a dead letter, and no other"));
        check(&[run(1, 5, 1, Failed), run(2, 5, 3, Succeeded)], &[5], &[], Some("attempts have no gap"));
        let lost = "only the last attempt is no failure, and it has ended";
        check(&[run(1, 5, 1, Failed)], &[5], &[], Some(lost));
        check(&[run(1, 5, 1, Pending)], &[5], &[], Some(lost));
        check(&[run(1, 5, 1, Succeeded), run(2, 5, 2, Succeeded)], &[5], &[], Some(lost));
        let silent = StoredRun { error_text: None, ..run(1, 5, 1, Skipped) };
        check(&[silent], &[5], &[], Some("a skip has a reason"));
        let twice = StoredRun { occurrence_key: "s:again".to_owned(), ..run(2, 5, 1, Succeeded) };
        check(&[run(1, 5, 1, Succeeded), twice], &[5], &[], Some("a nominal time has one chain"));
    }

    #[test]
    fn a_changed_end_is_seen() {
        let mut ledger = Ledger::default();
        let ended = run(1, 5, 1, RunStatus::Succeeded);
        assert_eq!(ledger.check(&[ended.clone(), run(2, 6, 1, RunStatus::Pending)]), Ok(()));
        assert_eq!((ledger.check(std::slice::from_ref(&ended)), ledger.count()), (Ok(()), 1));
        let changed = StoredRun { updated_at: Millis(10), ..ended };
        assert_eq!(ledger.check(&[changed]).unwrap_err().rule, "an ended run never changes");
    }
}
