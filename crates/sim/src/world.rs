//! The world around one execution: workers that answer, answer late, twice or never, people, routes, children,
//! a clock. Everything that happens is drawn from the seed.

mod act;
mod engine;
mod fates;
mod happen;
mod show;

use crate::afterlife;
use crate::generate;
use crate::invariants::{Broken, Invariants};
use crate::lower;
use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::saga;
use crate::scenario::{Dialect, Scenario};
use crate::seen::{Firing, Seen, What};
use happen::{Agenda, Happening};
use std::collections::BTreeMap;
use std::fmt;
use windlass_kernel::{Execution, ExecutionId, Net, Phase, Record};

/// Observations after which a world that does not come to rest is called endless.
const HAPPENINGS_MAX: usize = 4_000;

struct World {
    pub(crate) scenario: Scenario,
    pub(crate) net: Net,
    pub(crate) state: Execution<'static>,
    pub(crate) journal: Vec<Record>,
    pub(crate) rng: Rng,
    pub(crate) now: i64,
    agenda: Agenda,
    pub(crate) trace: Vec<Seen>,
    oracle: Oracle,
    invariants: Invariants,
    sabotage: Option<Sabotage>,
    /// Rate of faults in this world, in percent.
    trouble: u64,
    children: BTreeMap<Firing, (u64, ExecutionId)>,
    decides: u64,
    /// Calls that agents made.
    calls: u32,
}

/// Report on the end of one world.
#[derive(Debug, Clone)]
pub struct RunReport {
    pub events: usize,
    pub status: String,
    pub dialect: Dialect,
    pub trace_hash: u64,
    /// The oracle followed it to its end.
    pub judged: bool,
}

/// A world that broke a rule, with all that is needed to understand it.
#[derive(Debug, Clone)]
pub struct Violation {
    pub seed: u64,
    pub rule: String,
    pub what: String,
    pub scenario: String,
    pub trace: Vec<String>,
    pub journal: Vec<String>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}: {}: {}", self.seed, self.rule, self.what)?;
        writeln!(f, "\nscenario\n{}\n\nseen", self.scenario)?;
        self.trace.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "\njournal")?;
        self.journal.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

/// Scenarios that seeds select.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Worlds {
    /// Small ones of every dialect.
    #[default]
    Any,
    /// Up to 60 actions.
    Sagas,
}

impl Worlds {
    /// Runs the world of a seed to its end.
    pub fn run(self, seed: u64, sabotage: Option<Sabotage>) -> Result<RunReport, Box<Violation>> {
        let mut rng = Rng::new(seed);
        let scenario = self.scenario(&mut rng);
        run_world(seed, scenario, rng, sabotage).map(|world| world.report())
    }

    /// Runs a seed and returns everything that was seen and journaled, whether a rule was broken or not.
    #[must_use]
    pub fn describe(self, seed: u64) -> Violation {
        let mut rng = Rng::new(seed);
        let scenario = self.scenario(&mut rng);
        match run_world(seed, scenario, rng, None) {
            Ok(world) => world.violation(seed, Broken::new("none", "no rule was broken")),
            Err(violation) => *violation,
        }
    }

    fn scenario(self, rng: &mut Rng) -> Scenario {
        match self {
            Worlds::Any => generate::scenario(rng),
            Worlds::Sagas => generate::saga(rng),
        }
    }
}

/// Runs the world of a seed, of any dialect, to its end.
pub fn run(seed: u64, sabotage: Option<Sabotage>) -> Result<RunReport, Box<Violation>> {
    Worlds::Any.run(seed, sabotage)
}

fn run_world(
    seed: u64,
    scenario: Scenario,
    mut rng: Rng,
    sabotage: Option<Sabotage>,
) -> Result<World, Box<Violation>> {
    let firings_per_decide = *rng.pick(&[1, 3, 20, 1_000]);
    let mut spec = lower::lower(&scenario, firings_per_decide);
    if let Some(sabotage) = sabotage {
        sabotage.on_net(&mut spec);
    }
    let net = match Net::new(spec) {
        Ok(net) => net,
        Err(error) => panic!("seed {seed}: the generator made a net that cannot run: {error}\n{scenario:#?}"),
    };
    let trouble = *rng.pick(&[0, 5, 20, 45]);
    let mut world = World {
        oracle: Oracle::new(&scenario),
        invariants: Invariants::default(),
        scenario,
        net,
        state: Execution::default(),
        journal: Vec::new(),
        rng,
        now: 1_000,
        agenda: Agenda::default(),
        trace: Vec::new(),
        sabotage,
        trouble,
        children: BTreeMap::new(),
        decides: 0,
        calls: 0,
    };
    match world.live() {
        Ok(()) => Ok(world),
        Err(broken) => Err(Box::new(world.violation(seed, broken))),
    }
}

impl World {
    fn live(&mut self) -> Result<(), Broken> {
        self.create()?;
        self.plan_users();
        for _ in 0..HAPPENINGS_MAX {
            let Some(happening) = self.next_happening() else {
                self.observe(What::Over)?;
                self.invariants.replays(&self.net, &self.journal, &self.state)?;
                self.judge_saga()?;
                return self.live_again();
            };
            self.happen(happening)?;
        }
        Err(Broken::new("liveness", "the world does not come to rest"))
    }

    /// Actions are judged once more, by what users are shown.
    fn judge_saga(&self) -> Result<(), Broken> {
        match self.scenario.dialect {
            Dialect::Actions => saga::judge_journal(&self.scenario, &self.net, &self.journal),
            Dialect::Plan | Dialect::Playbook | Dialect::Workflow => Ok(()),
        }
    }

    /// Some of them are retried.
    fn live_again(&mut self) -> Result<(), Broken> {
        let retryable = self.state.phase().is_ended();
        let other = self.sabotage.is_some_and(|sabotage| !sabotage.is_of_retries());
        if !retryable || other || !self.rng.percent(50) {
            return Ok(());
        }
        let past = (&*self.journal, &*self.trace);
        afterlife::retry(&self.net, &self.scenario, past, self.sabotage, &mut self.rng)
    }

    /// Returns the next planned happening or timer, whichever comes first; timers may be late.
    fn next_happening(&mut self) -> Option<Happening> {
        let timer = self.state.timers().into_iter().min_by_key(|(timer, due)| (*due, *timer));
        let planned = self.agenda.next_at();
        match (timer, planned) {
            (None, None) => None,
            (Some((timer, due)), planned) if planned.is_none_or(|at| due.0 <= at) => {
                // A late timer lets what is planned go first.
                if planned.is_some() && self.rng.percent(self.trouble / 2) {
                    return self.planned();
                }
                self.now = self.now.max(due.0);
                Some(Happening::Timer(timer))
            }
            _ => self.planned(),
        }
    }

    fn planned(&mut self) -> Option<Happening> {
        let (at, happening) = self.agenda.take()?;
        self.now = self.now.max(at);
        Some(happening)
    }

    pub(crate) fn observe(&mut self, what: What) -> Result<(), Broken> {
        let seen = Seen { at: self.now, what };
        let verdict = self.oracle.see(&seen);
        self.trace.push(seen);
        verdict.map_err(|violation| Broken::new(violation.rule, violation.what))
    }

    fn report(&self) -> RunReport {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        format!("{:?}", self.trace).hash(&mut hasher);
        self.journal.hash(&mut hasher);
        RunReport {
            events: self.journal.len(),
            status: match self.state.phase() {
                Phase::Ended(outcome) => format!("{outcome:?}"),
                phase => format!("left {phase:?}"),
            },
            dialect: self.scenario.dialect,
            trace_hash: hasher.finish(),
            judged: !self.oracle.gave_up(),
        }
    }

    fn violation(&self, seed: u64, broken: Broken) -> Violation {
        Violation {
            seed,
            rule: broken.rule,
            what: broken.what,
            scenario: format!("{:#?}", self.scenario),
            trace: self.trace.iter().map(|seen| format!("{:>7} {:?}", seen.at, seen.what)).collect(),
            journal: self
                .journal
                .iter()
                .map(|record| format!("{:>7} {:?}", record.at.0, record.event))
                .collect(),
        }
    }
}
