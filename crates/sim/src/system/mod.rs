//! The whole system, simulated: the production lane, session machine and pipelines over simulated time, disks, networks
//! and processes. Everything that happens follows from one seed.
//!
//! A seed is a world with a troubled time and a kind one. While it is troubled, processes are killed, messages are
//! lost, disks fail and clocks jump. Then everything works, and whatever was begun must come to its end (K8).

mod agenda;
pub mod campaign;
mod definitions;
mod disk;
mod engine;
mod network;
mod plan;
mod sabotage;
mod store;
mod story;
mod telling;
mod users;
mod watch;
mod workers;
mod world;

pub use sabotage::Sabotage;
pub use store::{Fate, MemoryStore};
pub use story::{Story, Violation};
pub use world::Counts;

use crate::invariants::Broken;
use story::Telling;
use world::World;

/// Runs the world of a seed to its end. One that breaks a rule is run again, to tell its story.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<Story, Box<Violation>> {
    lived(seed, sabotage, false).or_else(|_| lived(seed, sabotage, true))
}

/// Runs a seed and tells all that happened, whether a rule was broken or not.
#[must_use]
pub fn tell(seed: u64) -> Violation {
    match lived(seed, None, true) {
        Ok(story) => Violation {
            seed,
            rule: "none".into(),
            what: "no rule was broken".into(),
            definitions: Vec::new(),
            story: story.lines,
        },
        Err(violation) => *violation,
    }
}

fn lived(seed: u64, sabotage: Option<Sabotage>, aloud: bool) -> Result<Story, Box<Violation>> {
    let violation = |broken: Broken, definitions, story| {
        Box::new(Violation { seed, rule: broken.rule, what: broken.what, definitions, story })
    };
    let mut world = World::new(seed, sabotage, Telling::new(aloud))
        .map_err(|broken| violation(broken, Vec::new(), Vec::new()))?;
    let lived = world.live();
    let definitions = world.plan.definitions.iter().flat_map(telling::definition).collect();
    let (counts, on_file, hash) = (world.counts, world.plan.on_file, world.telling.finish());
    let ends = world.watch.ends();
    let lines = world.telling.into_lines();
    match lived {
        Ok(()) => Ok(Story { counts, ends, on_file, hash, lines }),
        Err(broken) => Err(violation(broken, definitions, lines)),
    }
}
