//! The oracle: a second, independent reading of the documents. It knows the scenario and what a user sees, and
//! nothing of the kernel. It keeps the plain facts (which step-runs there must be, what each waits for) and asks of
//! every observation whether it may be, and at every `Settled` whether anything is still owed.
//!
//! Where the documents leave something open (say, in which order two noops of the same instant run) the oracle
//! follows every reading: each is a `World`, and a trace is wrong only when no world can explain it.

mod agents;
mod arcs;
mod asks;
mod bells;
mod cancel;
mod child;
mod choices;
mod effects;
mod ends;
mod gather;
mod instants;
mod leases;
mod life;
mod loops;
mod net;
mod retry;
mod routing;
mod run;
mod settled;
mod status;
#[cfg(test)]
mod tests;
mod world;

use crate::scenario::Scenario;
use crate::seen::{Seen, What};
use net::Net;
use std::sync::Arc as Shared;
use world::World;

/// The rule that was broken, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub rule: &'static str,
    pub what: String,
}

type Checked<T = ()> = Result<T, Violation>;

/// Readings followed at the same time. Typical traces need one to four; a trace beyond this is not judged further.
const WORLDS_MAX: usize = 512;

#[derive(Debug)]
pub struct Oracle {
    net: Shared<Net>,
    worlds: Vec<World>,
    history: Vec<Seen>,
    gave_up: bool,
}

impl Oracle {
    pub fn new(scenario: &Scenario) -> Oracle {
        let net = Shared::new(Net::new(scenario.clone()));
        let worlds = vec![World::new(Shared::clone(&net), Vec::new())];
        Oracle { net, worlds, history: Vec::new(), gave_up: false }
    }

    /// Err: the rule that was broken, in words, with step, firing and time.
    pub fn see(&mut self, seen: &Seen) -> Result<(), Violation> {
        if self.gave_up {
            return Ok(());
        }
        self.history.push(seen.clone());
        let mut first = None;
        let mut unexplored = Vec::new();
        let mut left = Vec::new();
        for mut world in std::mem::take(&mut self.worlds) {
            let verdict = world.see(seen);
            unexplored.append(&mut world.choices.take_untried());
            match verdict {
                Ok(()) => left.push(world),
                Err(violation) => first = first.or(Some(violation)),
            }
        }
        self.explore(unexplored, &mut left, &mut first);
        forget_equals(&mut left, &seen.what);
        self.gave_up = left.iter().any(|world| world.boundless) || left.len() > WORLDS_MAX;
        self.worlds = left;
        match (self.worlds.is_empty(), first) {
            (true, Some(violation)) => Err(violation),
            (true, None) | (false, _) => Ok(()),
        }
    }

    /// True when the trace could not be followed to its end (too many readings, or an endless chain of noops).
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// Number of readings of the documents that explain the trace so far.
    pub fn readings(&self) -> usize {
        self.worlds.len()
    }

    /// A reading not followed so far is followed from the beginning: readings are rare, copies at every observation
    /// are not.
    fn explore(&self, mut tapes: Vec<Vec<u8>>, left: &mut Vec<World>, first: &mut Option<Violation>) {
        while let Some(tape) = tapes.pop() {
            let mut world = World::new(Shared::clone(&self.net), tape);
            let verdict = self.history.iter().try_for_each(|seen| world.see(seen));
            tapes.append(&mut world.choices.take_untried());
            match verdict {
                Ok(()) if left.contains(&world) => {}
                Ok(()) => left.push(world),
                Err(violation) => *first = first.take().or(Some(violation)),
            }
            if left.len() > WORLDS_MAX {
                return;
            }
        }
    }
}

/// Readings that came to the same facts are one from then on. Looked for where it pays: between inputs.
fn forget_equals(worlds: &mut Vec<World>, what: &What) {
    if *what == What::Settled {
        for kept in (1..worlds.len()).rev() {
            if worlds[..kept].contains(&worlds[kept]) {
                worlds.remove(kept);
            }
        }
    }
}
