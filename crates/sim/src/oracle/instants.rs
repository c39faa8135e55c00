//! Steps inside the engine that are not observed: noops, loops that open and end.

use super::net::Begin;
use super::run::{Laps, RunId, State};
use super::world::World;
use crate::scenario::Work;

/// More unseen moves for one input than any sane scenario makes: a cycle of noops. Such a trace is not judged.
const INSTANTS_MAX: usize = 5_000;
/// Maximum number of steps at one instant whose orders are all tried.
const RIVALS_MAX: usize = 4;

impl World {
    pub(super) fn run_instants(&mut self) {
        for _ in 0..INSTANTS_MAX {
            let turned = self.gather() || self.turn_loops();
            self.input.instant = false;
            if turned {
                continue;
            }
            let Some(id) = self.next_instant() else { return };
            self.input.instant = true;
            self.input.chained = true;
            self.run_instant(id);
            self.input.instant = false;
        }
        self.boundless = true;
    }

    fn turn_loops(&mut self) -> bool {
        let looping = |&id: &RunId| matches!(self.runs[id].state, State::Loop(_));
        let loops: Vec<RunId> = (0..self.runs.len()).filter(looping).collect();
        loops.into_iter().any(|id| self.turn_loop(id))
    }

    /// Chooses by order and firing. If a noop writes the context, the others may run in another order.
    fn next_instant(&mut self) -> Option<RunId> {
        let mut rivals: Vec<RunId> = (0..self.runs.len()).filter(|&id| self.is_instant(id)).collect();
        rivals.sort_by_key(|&id| (self.order(id), id));
        let matters = rivals.iter().any(|&id| self.changes_context(id));
        match rivals.len() {
            0 => None,
            among @ 2..=RIVALS_MAX if matters => Some(rivals[usize::from(self.choose(among as u8))]),
            _ => Some(rivals[0]),
        }
    }

    fn is_instant(&self, id: RunId) -> bool {
        match (&self.runs[id].state, self.held) {
            (State::Ready, false) => matches!(self.begin(id), Begin::Noop | Begin::Loop),
            (_, _) => false,
        }
    }

    fn changes_context(&self, id: RunId) -> bool {
        match (&self.runs[id].state, &self.net.step(self.runs[id].step).work) {
            (State::Ready, Work::Noop { sets: Some((flag, value)) }) => self.flags.contains(flag) != *value,
            (_, _) => false,
        }
    }

    fn run_instant(&mut self, id: RunId) {
        match self.begin(id) {
            Begin::Loop => {
                self.runs[id].began = true;
                self.runs[id].state = State::Loop(Laps::default());
            }
            _ => self.run_noop(id),
        }
    }

    fn run_noop(&mut self, id: RunId) {
        self.runs[id].began = true;
        if let Work::Noop { sets: Some((flag, value)) } = self.net.step(self.runs[id].step).work {
            self.set_flag(flag, value);
        }
        self.work_done(id, None);
    }
}
