//! The whole system, simulated: the production lane, session machine and pipelines over simulated time, disks, networks
//! and processes. Everything that happens follows from one seed.
//!
//! A seed is a world with a troubled time and a kind one. While it is troubled, processes are killed, messages are
//! lost, disks fail and clocks jump. Then everything works, and everything that began must end (K8).

mod agenda;
pub mod campaign;
mod definitions;
mod disk;
mod engine;
mod event_text;
mod network;
mod plan;
mod report;
mod sabotage;
mod store;
mod users;
mod watch;
mod workers;
mod world;

pub use report::{Violation, WorldReport};
pub use sabotage::Sabotage;
pub use store::{Fate, MemoryStore};
pub use world::Counts;

use crate::invariants::Broken;
use report::{EventLog, Record};
use world::World;

/// Runs the world of a seed to its end. A world that breaks a rule runs a second time, in which its events are recorded.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<WorldReport, Box<Violation>> {
    run_once(seed, sabotage, Record::Hash).or_else(|_| run_once(seed, sabotage, Record::Events))
}

/// Runs a seed and returns its events, whether a rule was broken or not.
#[must_use]
pub fn describe(seed: u64) -> Violation {
    match run_once(seed, None, Record::Events) {
        Ok(report) => Violation {
            seed,
            rule: "none".into(),
            what: "no rule was broken".into(),
            definitions: Vec::new(),
            events: report.lines,
        },
        Err(violation) => *violation,
    }
}

fn run_once(seed: u64, sabotage: Option<Sabotage>, record: Record) -> Result<WorldReport, Box<Violation>> {
    let violation = |broken: Broken, definitions, events| {
        Box::new(Violation { seed, rule: broken.rule, what: broken.what, definitions, events })
    };
    let mut world = World::new(seed, sabotage, EventLog::new(record))
        .map_err(|broken| violation(broken, Vec::new(), Vec::new()))?;
    let result = world.live();
    let definitions = world.plan.definitions.iter().flat_map(event_text::format_definition).collect();
    let (counts, on_file, hash) = (world.counts, world.plan.on_file, world.log.finish());
    let ends = world.watch.ends();
    let lines = world.log.into_lines();
    match result {
        Ok(()) => Ok(WorldReport { counts, ends, on_file, hash, lines }),
        Err(broken) => Err(violation(broken, definitions, lines)),
    }
}
