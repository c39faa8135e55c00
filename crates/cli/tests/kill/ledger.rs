//! The state on disk at the end of each process, and what follows from it for the lines that steps wrote.

use crate::place::{End, Place, STEPS};
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::{Event, ExecutionId, Outcome, Phase, RunId};
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{Query, Reader};

/// Rows read at a time.
const PAGE: usize = 1_000;

#[derive(Default)]
pub struct Ledger {
    ends: Vec<End>,
    executions: BTreeMap<ExecutionId, Known>,
}

/// An execution as far as its journal was read.
#[derive(Default)]
struct Known {
    version: u64,
    phase: Option<Phase>,
    steps: BTreeMap<RunId, String>,
    /// Number of the process in which each step was committed as done.
    done: BTreeMap<String, usize>,
    /// Pairs of process and step: a worker had the step when the process ended.
    held: BTreeSet<(usize, String)>,
}

impl Ledger {
    /// Lives are counted from 0; this is the one that runs.
    pub fn life(&self) -> usize {
        self.ends.len()
    }

    pub fn kills(&self) -> usize {
        self.ends.iter().filter(|end| **end == End::Killed).count()
    }

    pub fn executions(&self) -> usize {
        self.executions.len()
    }

    /// Steps that were committed as done.
    pub fn done(&self) -> usize {
        self.executions.values().map(|known| known.done.len()).sum()
    }

    /// Ends a process: its successor must continue from what is on disk now.
    pub fn close_life(&mut self, place: &Place, end: End) {
        let life = self.life();
        self.ends.push(end);
        let store = place.store();
        let mut reader = match Sqlite::read_only(&store) {
            Ok(reader) => reader,
            // It was killed before its tables were made, so it had taken nothing yet.
            Err(error) => return assert!(self.executions.is_empty(), "{error}"),
        };
        self.read_executions(&mut reader, life);
        self.read_offers(&mut reader, life);
    }

    fn read_executions(&mut self, reader: &mut SqliteReader, life: usize) {
        let mut before = None;
        loop {
            let page = reader.list(&Query { before, limit: PAGE, ..Query::default() }).expect("a list");
            let Some(last) = page.last() else { return };
            before = Some(last.execution);
            for listed in &page {
                let known = self.executions.entry(listed.execution).or_default();
                if !known.phase.is_some_and(Phase::is_ended) {
                    known.phase = Some(listed.phase);
                    known.read_on(reader, listed.execution, life);
                }
            }
        }
    }

    fn read_offers(&mut self, reader: &mut SqliteReader, life: usize) {
        let mut after = None;
        loop {
            let page = reader.offers(after, PAGE).expect("a list");
            let Some(last) = page.last() else { return };
            after = Some((last.execution, last.run));
            for offer in page.iter().filter(|offer| offer.lease.is_some()) {
                let known = self.executions.get_mut(&offer.execution).expect("a listed execution");
                let step = known.steps[&offer.run].clone();
                known.held.insert((life, step));
            }
        }
    }

    /// Checks at the end that every step is done once, and that every repeated step had a reason.
    pub fn judge(&self, place: &Place) {
        let lines = place.lines();
        let mut again = 0;
        for (id, known) in &self.executions {
            assert_eq!(known.phase, Some(Phase::Ended(Outcome::Completed)), "execution {id}");
            assert_eq!(known.done.len(), STEPS, "execution {id}: each step is done");
            for (step, done_in) in &known.done {
                let ran_in = lines.get(&format!("{id}.{step}")).map_or(&[][..], Vec::as_slice);
                self.judge_step(known, step, *done_in, ran_in, &format!("execution {id}, step {step}"));
                again += ran_in.len() - 1;
            }
        }
        assert_eq!(lines.len(), self.done(), "no step ran that is not known");
        println!("{} lives, {} executions, {again} steps ran again", self.life(), self.executions());
    }

    fn judge_step(&self, known: &Known, step: &str, done_in: usize, ran_in: &[usize], what: &str) {
        let mut lives = ran_in.to_vec();
        lives.sort_unstable();
        assert!(lives.windows(2).all(|pair| pair[0] < pair[1]), "{what} ran twice in one life: {lives:?}");
        assert!(lives.contains(&done_in), "{what} was committed in life {done_in}, but ran in {lives:?}");
        let last = *lives.last().expect("a line");
        assert!(last <= done_in, "{what} was committed in life {done_in} and ran again in life {last}");
        for life in lives.into_iter().filter(|life| *life < done_in && self.ends[*life] == End::Killed) {
            let held = known.held.contains(&(life, step.to_owned()));
            assert!(
                held,
                "{what} ran in life {life} and again, but no worker had it when that life was ended"
            );
        }
    }
}

impl Known {
    fn read_on(&mut self, reader: &mut SqliteReader, id: ExecutionId, life: usize) {
        loop {
            let rows = reader.journal(id, self.version, PAGE).expect("a journal");
            if rows.is_empty() {
                return;
            }
            for record in rows.into_iter().flat_map(|row| row.records) {
                self.version += 1;
                self.take(record.event, id, life);
            }
        }
    }

    fn take(&mut self, event: Event, id: ExecutionId, life: usize) {
        match event {
            Event::Fired { run, step, .. } => drop(self.steps.insert(run, format!("s{}", step.0))),
            Event::Done { run, .. } => {
                let step = self.steps[&run].clone();
                let before = self.done.insert(step.clone(), life);
                assert_eq!(before, None, "execution {id}: step {step} was committed twice");
            }
            _ => {}
        }
    }
}

mod the_ledger_itself {
    use super::*;

    /// Judges a step after two kills and the end; a worker had the step when the first process ended.
    fn judge(done_in: usize, ran_in: &[usize]) {
        let ledger =
            Ledger { ends: vec![End::Killed, End::Killed, End::ByItself], executions: BTreeMap::new() };
        let known = Known { held: BTreeSet::from([(0, "s1".to_owned())]), ..Known::default() };
        ledger.judge_step(&known, "s1", done_in, ran_in, "s1");
    }

    #[test]
    fn a_step_may_run_again_when_it_was_in_flight() {
        judge(2, &[2]);
        judge(2, &[0, 2]);
        judge(1, &[0, 1]);
    }

    #[test]
    #[should_panic(expected = "was committed in life 0 and ran again in life 1")]
    fn a_committed_step_that_ran_again_is_reported() {
        judge(0, &[0, 1]);
    }

    #[test]
    #[should_panic(expected = "no worker had it when that life was ended")]
    fn a_step_that_ran_twice_without_a_reason_is_reported() {
        judge(2, &[1, 2]);
    }

    #[test]
    #[should_panic(expected = "ran twice in one life")]
    fn a_step_that_ran_twice_in_one_life_is_reported() {
        judge(2, &[2, 2]);
    }

    #[test]
    #[should_panic(expected = "was committed in life 1, but ran in [0]")]
    fn a_step_that_was_committed_without_running_is_reported() {
        judge(1, &[0]);
    }
}
