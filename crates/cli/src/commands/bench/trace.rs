//! A traced run: every answer and every order is held against the commits that the store had acknowledged by then
//! (K7). What is asked is not which came first by the clock: the fact that an answer tells must be in the record of
//! acknowledged facts at the moment the answer is given.
//!
//! The same moments are written to a file beside the store. Under `strace` they stand in one list with the syncs,
//! so that an outsider can see that each batch was synced before it was acknowledged.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use windlass_engine::Answer;
use windlass_kernel::{Event, ExecutionId};
use windlass_protocol::{Order, Reply, Unit, Verdict};
use windlass_store::{Applied, Commit, Write};

/// Violations that are described one by one; the others are counted.
const DESCRIBED_MAX: usize = 10;

#[derive(Debug)]
pub struct Trace {
    seen: Mutex<Seen>,
}

#[derive(Debug)]
struct Seen {
    facts: HashSet<Fact>,
    batches: u64,
    checked: u64,
    violations: u64,
    described: Vec<String>,
    log: File,
}

/// Something that is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Fact {
    Created(ExecutionId),
    Offered(Unit),
    Leased(Unit),
    Answered(Unit),
    Ended(ExecutionId),
}

/// What the trace found.
#[derive(Debug)]
pub struct Findings {
    pub batches: u64,
    pub checked: u64,
    pub violations: u64,
    pub described: Vec<String>,
}

impl Trace {
    /// Moments go to a file of their own, unsynced: it is read by whoever watches the system calls.
    pub fn new(file: &Path) -> io::Result<Trace> {
        let log = File::create(file)?;
        let (facts, described) = (HashSet::new(), Vec::new());
        Ok(Trace { seen: Mutex::new(Seen { facts, batches: 0, checked: 0, violations: 0, described, log }) })
    }

    /// A batch is on its way to the disk.
    pub fn begins(&self) {
        let mut seen = self.seen();
        let number = seen.batches + 1;
        seen.note(&format!("batch {number} begins"));
    }

    /// The store says that the batch is on disk.
    pub fn acknowledged(&self, batch: &[Write], applied: &[Applied]) {
        let mut seen = self.seen();
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

    /// The caller learns that the execution began.
    pub fn started(&self, answer: &Answer) {
        if let Answer::Started(id) = answer {
            self.seen().check("a start was answered", &[Fact::Created(*id)]);
        }
    }

    /// The caller learns how the execution ended.
    pub fn rested(&self, id: ExecutionId, answer: &Answer) {
        if matches!(answer, Answer::Rested(phase) if phase.is_ended()) {
            self.seen().check("an end was answered", &[Fact::Ended(id)]);
        }
    }

    /// A worker gets an order.
    pub fn ordered(&self, order: &Order) {
        if let Order::Run(work) = order {
            self.seen().check("work was given out", &[Fact::Offered(work.unit), Fact::Leased(work.unit)]);
        }
    }

    /// A worker learns that its report took effect.
    pub fn judged(&self, unit: Unit, reply: &Reply) {
        if *reply == Reply::Verdict(Verdict::Accepted) {
            self.seen().check("a report was accepted", &[Fact::Answered(unit)]);
        }
    }

    pub fn findings(&self) -> Findings {
        let seen = self.seen();
        let (batches, checked, violations) = (seen.batches, seen.checked, seen.violations);
        Findings { batches, checked, violations, described: seen.described.clone() }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn commit(&mut self, commit: &Commit) {
        let id = commit.execution;
        for record in commit.records.iter() {
            let fact = match &record.event {
                Event::Created(_) => Fact::Created(id),
                Event::Offered { run, fence, .. } => Fact::Offered(unit(id, run.0, fence.0)),
                Event::Done { run, fence: Some(fence), .. } => Fact::Answered(unit(id, run.0, fence.0)),
                Event::Ended { .. } => Fact::Ended(id),
                _ => continue,
            };
            self.facts.insert(fact);
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
        // One call, so that the line is one line among the system calls. A file that cannot be written makes the
        // list incomplete, which its reader finds; the check above does not rest on it.
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

    /// One chain of one step: its two batches, and what is answered after each.
    struct Story {
        trace: Trace,
        batches: [Vec<Write>; 2],
        unit: Unit,
        _folder: tempfile::TempDir,
    }

    impl Story {
        fn new() -> Story {
            let folder = tempfile::tempdir().unwrap();
            let mut chains = Chains::new(Arc::new(nets::chain(1).unwrap()), 1, 1, Millis(0));
            let batches = [(); 2].map(|()| chains.batch().unwrap().unwrap());
            let Write::Commit(first) = &batches[0][0] else { panic!("a commit") };
            let lease = first.leases[0];
            let unit = unit(lease.execution, lease.run.0, lease.fence.0);
            Story { trace: Trace::new(&folder.path().join("log")).unwrap(), batches, unit, _folder: folder }
        }

        fn write(&self, number: usize) {
            self.trace.begins();
            self.trace.acknowledged(&self.batches[number], &[Applied::Committed(Position(1))]);
        }

        fn tell_first(&self) {
            self.trace.started(&Answer::Started(ExecutionId(1)));
            let (step, path, spec) = (String::new(), Vec::new(), Arc::default());
            let (scope, cursor, timeout_ms) = (Scope::default(), None, None);
            let (tenant, workflow, debug) = ("default".to_owned(), None, false);
            let work = Work {
                unit: self.unit,
                step,
                path,
                attempt: 1,
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

        fn tell_second(&self) {
            self.trace.judged(self.unit, &Reply::Verdict(Verdict::Accepted));
            self.trace.rested(ExecutionId(1), &Answer::Rested(Phase::Ended(Outcome::Completed)));
        }

        fn found(&self) -> (u64, u64) {
            let findings = self.trace.findings();
            (findings.checked, findings.violations)
        }
    }

    #[test]
    fn an_answer_after_its_commit_is_in_order() {
        let story = Story::new();
        story.write(0);
        story.tell_first();
        story.write(1);
        story.tell_second();
        assert_eq!(story.found(), (4, 0));
    }

    #[test]
    fn every_answer_before_its_commit_is_a_violation() {
        let story = Story::new();
        story.tell_first();
        assert_eq!(story.found(), (2, 2));
        story.write(0);
        story.tell_second();
        assert_eq!(story.found(), (4, 4));
    }

    #[test]
    fn a_commit_that_was_refused_is_not_on_disk() {
        let story = Story::new();
        story.trace.acknowledged(&story.batches[0], &[Applied::Conflict]);
        story.tell_first();
        assert_eq!(story.found(), (2, 2));
    }
}
