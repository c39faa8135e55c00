//! The shadow of one execution: what its journal on disk says, folded again record by record.

use crate::invariants::{Broken, Invariants};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{
    Answer, Event, Execution, ExecutionId, Fence, Kind, Millis, Net, NetDigest, Phase, Record, RunId, evolve,
    replay,
};
use windlass_store::{PartRow, Reader, Rows, decode, stored_rows};

#[derive(Debug)]
pub(in crate::system) struct Shadow {
    pub net: Arc<Net>,
    pub state: Execution<'static>,
    pub journal: Vec<Record>,
    /// The phase from each version on.
    pub phases: Vec<(u64, Phase)>,
    /// Whether it was held, from each version on.
    pub holds: Vec<(u64, bool)>,
    pub answers: BTreeMap<(RunId, Fence), Answer>,
    pub done: BTreeSet<RunId>,
    /// Decisions of agents: by whom, and which.
    decided: BTreeSet<(RunId, String)>,
    /// The highest fence that was given out.
    fence: Option<Fence>,
    invariants: Invariants,
}

impl Shadow {
    pub fn new(first: &Record, nets: &BTreeMap<NetDigest, Arc<Net>>) -> Result<Shadow, Broken> {
        let Event::Created(created) = &first.event else {
            return Err(Broken::new("K1", "a journal does not begin with its creation"));
        };
        let Some(net) = nets.get(&created.net) else {
            return Err(Broken::new("K1", "an execution of a net that was never defined"));
        };
        Ok(Shadow {
            net: net.clone(),
            state: Execution::default(),
            journal: Vec::new(),
            phases: Vec::new(),
            holds: vec![(0, false)],
            answers: BTreeMap::new(),
            done: BTreeSet::new(),
            decided: BTreeSet::new(),
            fence: None,
            invariants: Invariants::default(),
        })
    }

    pub fn version(&self) -> u64 {
        self.journal.len() as u64
    }

    pub fn records(&self) -> impl Iterator<Item = &Record> {
        self.journal.iter()
    }

    pub fn add(&mut self, record: Record) -> Result<(), Broken> {
        let before = (self.state.phase(), self.state.head.held);
        evolve(&mut self.state, &self.net, &record)
            .map_err(|illegal| Broken::new("K1", format!("the journal does not replay: {illegal}")))?;
        self.invariants.after(&self.state, &record, &self.net)?;
        self.fences(&record)?;
        self.answered(&record)?;
        self.decided(&record)?;
        if let Event::Done { run, .. } = &record.event {
            self.done.insert(*run);
        }
        self.journal.push(record);
        let version = self.version();
        if before.0 != self.state.phase() {
            self.phases.push((version, self.state.phase()));
        }
        if before.1 != self.state.head.held {
            self.holds.push((version, self.state.head.held));
        }
        Ok(())
    }

    /// Returns the time of the newest release of a hold.
    pub fn released_at(&self) -> Millis {
        let release = self.journal.iter().rev().find(|record| matches!(record.event, Event::Released { .. }));
        release.map_or(Millis(0), |record| record.at)
    }

    /// A fence is given out once and is higher than all before (K3).
    fn fences(&mut self, record: &Record) -> Result<(), Broken> {
        let given = match &record.event {
            Event::Offered { fence, .. }
            | Event::ChildStarted { fence, .. }
            | Event::AwaitingManual { fence, .. } => *fence,
            _ => return Ok(()),
        };
        if self.fence.is_some_and(|highest| given <= highest) {
            return Err(Broken::new("K3", format!("{given:?} was given after {:?}", self.fence)));
        }
        self.fence = Some(given);
        Ok(())
    }

    /// A decision of an agent is acted on once, however often it is asked for.
    fn decided(&mut self, record: &Record) -> Result<(), Broken> {
        let Event::AgentDecided { run, call, .. } = &record.event else { return Ok(()) };
        let decision = call.trim_end_matches('\'').to_owned();
        match self.decided.insert((*run, decision)) {
            true => Ok(()),
            false => Err(Broken::new("agent once", format!("call {call} of {run:?} was acted on before"))),
        }
    }

    /// A fence has one answer for ever (K3).
    fn answered(&mut self, record: &Record) -> Result<(), Broken> {
        let Some((at, answered)) = record.answer() else { return Ok(()) };
        match self.answers.get(&at) {
            None => drop(self.answers.insert(at, answered)),
            // The answer of a person comes first, and then what it led to.
            Some(Answer::Manual(_)) => {}
            Some(earlier) => {
                let what = format!("{at:?} was answered again; the first answer was {earlier:?}");
                return Err(Broken::new("K3", what));
            }
        }
        Ok(())
    }

    /// The rows on disk are the ones that follow from the journal on disk (K1).
    pub fn holds(&self, id: ExecutionId, reader: &mut impl Reader) -> Result<(), Broken> {
        let found = reader.rows(id).map_err(super::store)?;
        let expected = stored_rows(&self.net, &self.state, &self.journal);
        let Some(found) = found else {
            return Err(Broken::new("K1", format!("execution {id} has a journal and no rows")));
        };
        if let Some(what) = difference(&sorted(expected)?, &sorted(found)?) {
            return Err(Broken::new("K1", format!("execution {id}: {what}")));
        }
        let loaded = reader.load(id).map_err(super::store)?.map(|stored| stored.state);
        if loaded.as_ref() != Some(&self.state) {
            return Err(Broken::new("K1", format!("execution {id} is loaded as something else")));
        }
        Ok(())
    }

    /// Records that were durable once stay durable.
    pub fn is_prefix_of(&self, id: ExecutionId, journal: &[Record]) -> Result<(), Broken> {
        if journal.len() < self.journal.len() || journal[..self.journal.len()] != self.journal {
            let what = format!(
                "execution {id} had {} records on disk, and {} are left or they are others",
                self.journal.len(),
                journal.len()
            );
            return Err(Broken::new("durability", what));
        }
        Ok(())
    }

    pub fn replays(&self, id: ExecutionId, journal: &[Record]) -> Result<(), Broken> {
        match replay(&self.net, journal) {
            Ok(state) if state == self.state => Ok(()),
            Ok(_) => Err(Broken::new("K1", format!("the journal of {id} replays to another state"))),
            Err(illegal) => Err(Broken::new("K1", format!("the journal of {id} does not replay: {illegal}"))),
        }
    }

    /// Returns true if the execution was in the phase at some moment since the version.
    pub fn was(&self, phase: Phase, since: u64) -> bool {
        let before = self.phases.iter().rfind(|(version, _)| *version <= since);
        let later = self.phases.iter().filter(|(version, _)| *version > since);
        before.into_iter().chain(later).any(|(_, seen)| *seen == phase)
    }

    pub fn was_held(&self, since: u64) -> bool {
        let before = self.holds.iter().rfind(|(version, _)| *version <= since);
        let later = self.holds.iter().filter(|(version, _)| *version > since);
        before.into_iter().chain(later).any(|(_, held)| *held)
    }

    pub fn waits_for(&self) -> String {
        let held = if self.state.head.held { "held, " } else { "" };
        let runs = self.state.runs.iter().filter(|(_, run)| run.state.kind() != Kind::Looping);
        let runs: Vec<String> = runs
            .map(|(id, run)| format!("{} {:?} {:?}", self.net.step(run.step).name, id, run.state))
            .collect();
        format!("{held}{} gates, [{}]", self.state.gated.len(), runs.join("; "))
    }
}

/// Stores may keep rows in any order, and no row for an empty context.
fn sorted(mut rows: Rows) -> Result<Rows, Broken> {
    rows.runs.sort_by_key(|row| row.run);
    rows.parts.sort_by(|a, b| (a.part, &a.key).cmp(&(b.part, &b.key)));
    rows.facts.sort();
    rows.facts.dedup();
    let empty = match &rows.ctx {
        Some(ctx) => decode::<windlass_kernel::Ctx>(ctx).map_err(super::store)?.is_empty(),
        None => true,
    };
    if empty {
        rows.ctx = None;
    }
    Ok(rows)
}

fn difference(expected: &Rows, found: &Rows) -> Option<String> {
    if expected == found {
        return None;
    }
    let keys = |rows: &[PartRow]| rows.iter().map(|row| (row.part, row.key.clone())).collect::<Vec<_>>();
    let runs = |rows: &Rows| rows.runs.iter().map(|row| row.run).collect::<Vec<_>>();
    let what = if expected.head != found.head {
        format!("the head row is at version {}, not {}", found.head.version, expected.head.version)
    } else if runs(expected) != runs(found) {
        format!("rows of step-runs {:?}, where {:?} follow", runs(found), runs(expected))
    } else if expected.runs != found.runs {
        "the row of a step-run is another one".to_owned()
    } else if keys(&expected.parts) != keys(&found.parts) {
        format!("{} rows of its tables, where {} follow", found.parts.len(), expected.parts.len())
    } else if expected.facts != found.facts {
        format!("facts of {:?}, where {:?} follow", found.facts, expected.facts)
    } else {
        "a row of its tables or its context is another one".to_owned()
    };
    Some(what)
}
