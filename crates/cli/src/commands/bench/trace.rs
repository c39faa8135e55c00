//! A traced run: every answer and every order is compared with the commits that the store had acknowledged by then
//! (K7). The order of the clock is not used: the fact that an answer states must be in the record of acknowledged facts
//! at the moment of the answer.
//!
//! The same moments are written to a file in the folder of the store. Under `strace` they are in one list with the
//! syncs, so that an outsider can see that each batch was synced before it was acknowledged.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_engine::EngineAnswer;
use windlass_kernel::{ExecutionId, Facet, LifeChange, RunChange, any_of};
use windlass_protocol::{Order, Reply, Unit, Verdict};
use windlass_store::{Applied, Commit, Write};

/// Violations that are described one by one; the others are counted.
const DESCRIBED_MAX: usize = 10;

#[derive(Debug)]
pub struct Trace {
    state: Mutex<TraceState>,
}

#[derive(Debug)]
struct TraceState {
    facts: HashSet<Fact>,
    batches: u64,
    checked: u64,
    violations: u64,
    described: Vec<String>,
    log: File,
}

/// A fact that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fact {
    Created(ExecutionId),
    Offered(Unit),
    Leased(Unit),
    Answered(Unit),
    Ended(ExecutionId),
}

/// Result of the trace.
#[derive(Debug)]
pub struct Findings {
    pub batches: u64,
    pub checked: u64,
    pub violations: u64,
    pub described: Vec<String>,
}

impl Trace {
    /// Moments are written to a separate file, unsynced, for a reader who traces the system calls.
    pub fn new(file: &Path) -> io::Result<Trace> {
        let log = File::create(file)?;
        let (facts, described) = (HashSet::new(), Vec::new());
        Ok(Trace {
            state: Mutex::new(TraceState { facts, batches: 0, checked: 0, violations: 0, described, log }),
        })
    }

    /// Notes that a batch is sent to the disk.
    pub fn begins(&self) {
        let mut seen = self.lock_state();
        let number = seen.batches + 1;
        seen.note(&format!("batch {number} begins"));
    }

    /// Notes that the store acknowledged the batch.
    pub fn acknowledged(&self, batch: &[Write], applied: &[Applied]) {
        let mut seen = self.lock_state();
        seen.batches += 1;
        for (write, applied) in batch.iter().zip(applied) {
            match (write, applied) {
                (Write::Commit(commit), Applied::Committed(_)) => seen.commit(commit),
                (Write::Lease(lease), Applied::Done) => {
                    seen.facts.insert(Fact::Leased(unit(lease.execution, lease.run.0, lease.fence.0)));
                }
                _ => {}
            }
        }
        let number = seen.batches;
        seen.note(&format!("batch {number} acknowledged"));
    }

    /// Checks the answer that the execution began.
    pub fn started(&self, answer: &EngineAnswer) {
        if let EngineAnswer::Started(id) = answer {
            self.lock_state().check("a start was answered", &[Fact::Created(*id)]);
        }
    }

    /// Checks the answer about the end of the execution.
    pub fn rested(&self, id: ExecutionId, answer: &EngineAnswer) {
        if matches!(answer, EngineAnswer::Rested(phase) if phase.is_ended()) {
            self.lock_state().check("an end was answered", &[Fact::Ended(id)]);
        }
    }

    /// Checks an order to a worker.
    pub fn ordered(&self, order: &Order) {
        if let Order::Run(work) = order {
            self.lock_state()
                .check("work was given out", &[Fact::Offered(work.unit), Fact::Leased(work.unit)]);
        }
    }

    /// Checks the answer to an accepted report.
    pub fn judged(&self, unit: Unit, reply: &Reply) {
        if *reply == Reply::Verdict(Verdict::Accepted) {
            self.lock_state().check("a report was accepted", &[Fact::Answered(unit)]);
        }
    }

    pub fn findings(&self) -> Findings {
        let seen = self.lock_state();
        let (batches, checked, violations) = (seen.batches, seen.checked, seen.violations);
        Findings { batches, checked, violations, described: seen.described.clone() }
    }

    fn lock_state(&self) -> MutexGuard<'_, TraceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TraceState {
    fn commit(&mut self, commit: &Commit) {
        let id = commit.execution;
        for record in commit.records.iter() {
            let fact = match record.event.facet() {
                Facet::Life(LifeChange::Created(_)) => Some(Fact::Created(id)),
                Facet::Run(run, RunChange::Offered(fence, ..)) => {
                    Some(Fact::Offered(unit(id, run.0, fence.0)))
                }
                Facet::Life(LifeChange::Ended(_)) => Some(Fact::Ended(id)),
                Facet::Run(
                    _,
                    any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed AwaitingManual
                    ChildStarted Returned Lost Retried Done Failed Dropped Routed AgentDecided Internal],
                )
                | Facet::Life(
                    any_of![LifeChange: Forked PauseChanged Released Patched OutcomeDecided Cleared StopAsked
                    Restarted],
                )
                | any_of![Facet: Discarded Joined Internal] => None,
            };
            let answered = record.answer().map(|((run, fence), _)| Fact::Answered(unit(id, run.0, fence.0)));
            self.facts.extend(fact.into_iter().chain(answered));
        }
        for lease in &commit.leases {
            self.facts.insert(Fact::Leased(unit(id, lease.run.0, lease.fence.0)));
        }
    }

    fn check(&mut self, what: &str, needs: &[Fact]) {
        self.checked += 1;
        if let Some(missing) = needs.iter().find(|fact| !self.facts.contains(fact)) {
            self.violations += 1;
            if self.described.len() < DESCRIBED_MAX {
                self.described.push(format!("{what} before this was on disk: {missing:?}"));
            }
        }
        let after = self.batches;
        self.note(&format!("answer after batch {after}"));
    }

    fn note(&mut self, line: &str) {
        // One call, so that the line is one line among the system calls. A file that cannot be written makes the list
        // incomplete, which its reader detects; the check above does not depend on it.
        let _ = self.log.write_all(format!("{line}\n").as_bytes());
    }
}

fn unit(execution: ExecutionId, run: u64, fence: u64) -> Unit {
    Unit { execution: execution.0, run, fence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::bench::commits::Chains;
    use crate::commands::bench::nets;
    use std::sync::Arc;
    use windlass_kernel::{Millis, Outcome, Phase};
    use windlass_protocol::{Scope, Work};
    use windlass_store::Position;

    /// One chain of one step: its two batches, and the answers after each.
    struct TracedRun {
        trace: Trace,
        batches: [Vec<Write>; 2],
        unit: Unit,
        _folder: tempfile::TempDir,
    }

    impl TracedRun {
        fn new() -> TracedRun {
            let folder = tempfile::tempdir().unwrap();
            let mut chains = Chains::new(Arc::new(nets::chain(1).unwrap()), 1, 1, Millis(0));
            let batches = [(); 2].map(|()| chains.batch().unwrap().unwrap());
            let Write::Commit(first) = &batches[0][0] else { panic!("a commit") };
            let lease = first.leases[0];
            let unit = unit(lease.execution, lease.run.0, lease.fence.0);
            TracedRun {
                trace: Trace::new(&folder.path().join("log")).unwrap(),
                batches,
                unit,
                _folder: folder,
            }
        }

        fn write(&self, number: usize) {
            self.trace.begins();
            self.trace.acknowledged(&self.batches[number], &[Applied::Committed(Position(1))]);
        }

        fn answer_first(&self) {
            self.trace.started(&EngineAnswer::Started(ExecutionId(1)));
            let (step, path, spec) = (String::new(), Vec::new(), Arc::default());
            let (scope, cursor, timeout_ms) = (Scope::default(), None, None);
            let (tenant, workflow, debug) = ("default".to_owned(), None, false);
            let work = Work {
                unit: self.unit,
                step,
                path,
                attempt: 1,
                losses: 0,
                spec,
                scope,
                cursor,
                timeout_ms,
                tenant,
                workflow,
                debug,
                decided_ms: None,
                no_room: None,
            };
            self.trace.ordered(&Order::Run(Box::new(work)));
        }

        fn answer_second(&self) {
            self.trace.judged(self.unit, &Reply::Verdict(Verdict::Accepted));
            self.trace.rested(ExecutionId(1), &EngineAnswer::Rested(Phase::Ended(Outcome::Completed)));
        }

        fn found(&self) -> (u64, u64) {
            let findings = self.trace.findings();
            (findings.checked, findings.violations)
        }
    }

    #[test]
    fn an_answer_after_its_commit_is_in_order() {
        let run = TracedRun::new();
        run.write(0);
        run.answer_first();
        run.write(1);
        run.answer_second();
        assert_eq!(run.found(), (4, 0));
    }

    #[test]
    fn every_answer_before_its_commit_is_a_violation() {
        let run = TracedRun::new();
        run.answer_first();
        assert_eq!(run.found(), (2, 2));
        run.write(0);
        run.answer_second();
        assert_eq!(run.found(), (4, 4));
    }

    #[test]
    fn a_commit_that_was_refused_is_not_on_disk() {
        let run = TracedRun::new();
        run.trace.acknowledged(&run.batches[0], &[Applied::Conflict]);
        run.answer_first();
        assert_eq!(run.found(), (2, 2));
    }
}
