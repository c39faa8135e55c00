//! Folds records, and says of each what it is about while the state before it is at hand.

use super::subject::{Happened, Life, Subject};
use std::collections::BTreeMap;
use windlass_kernel::{Event, Execution, Illegal, Net, Record, RunId, evolve};

#[derive(Debug, Default)]
pub struct Witness {
    state: Execution<'static>,
    /// Step-runs that nobody has forgotten.
    lives: BTreeMap<RunId, Life>,
}

impl Witness {
    /// As of the last record that was seen.
    #[must_use]
    pub fn state(&self) -> &Execution<'static> {
        &self.state
    }

    /// The next record of the journal.
    pub fn see(&mut self, net: &Net, record: Record) -> Result<Happened, Illegal> {
        let happened = Happened::of(net, &self.state, &self.lives, record);
        self.note(&happened);
        evolve(&mut self.state, net, &happened.record)?;
        Ok(happened)
    }

    #[must_use]
    pub fn subject(&self, run: RunId) -> Option<&Subject> {
        self.lives.get(&run).map(|life| &life.subject)
    }

    #[must_use]
    pub fn knows(&self, run: RunId) -> bool {
        self.lives.contains_key(&run)
    }

    pub fn forget(&mut self, run: RunId) {
        self.lives.remove(&run);
    }

    fn note(&mut self, happened: &Happened) {
        let at = happened.record.at;
        match &happened.record.event {
            Event::Fired { run, .. } => {
                if let Some(subject) = happened.subjects.first() {
                    self.lives.insert(*run, Life { subject: subject.clone(), began_at: None });
                }
            }
            Event::Offered { run, .. }
            | Event::ChildStarted { run, .. }
            | Event::LoopStarted { run, .. }
            | Event::Delayed { run, .. }
            | Event::AwaitingManual { run, .. } => {
                if let Some(life) = self.lives.get_mut(run) {
                    life.began_at.get_or_insert(at);
                }
            }
            Event::Restarted { .. } => self.lives.clear(),
            _ => {}
        }
    }
}
