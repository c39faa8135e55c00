//! The simulated system: one agenda of everything that will happen, and everyone it happens to.

use super::agenda::Agenda;
use super::engine::{Process, broken};
use super::network::Network;
use super::plan::{EPOCH, Mishap, Plan};
use super::report::EventLog;
use super::sabotage::Sabotage;
use super::store::{Crash, Depot, Fate, Forgets, SystemReader};
use super::users::Users;
use super::watch::{Watch, Wish};
use super::workers::{EngineReply, SentMessage, Worker};
use crate::invariants::Broken;
use crate::rng::Rng;
use windlass_engine::Now;
use windlass_kernel::Millis;
use windlass_protocol::Unit;
use windlass_store::Write;

/// A kind world in which nothing was committed for this long is stuck. Every timeout, delay, backoff, lease and jump of
/// the clock is shorter; how many of them follow each other is up to the definitions.
const KIND_MS: u64 = 15 * 60 * 1_000;
/// Bounds a world that spins instead of going on.
const HAPPENINGS_MAX: u64 = 60_000;
/// Timers are looked at this often, and may be so much late: more than a few slow reads and writes take.
const INSPECT_MS: u64 = 5_000;
const LATE_MS: u64 = 15_000;
/// Maximum delay of timers after a jump of the clock: the time that the engine reads ahead.
const WINDOW_MS: u64 = 60_000;
/// People look after what is open this often, once the world is kind.
const HELP_MS: u64 = 4_000;

#[derive(Debug)]
pub(super) enum Happening {
    EngineStarts,
    Turn {
        life: u32,
    },
    WriteEnds {
        life: u32,
    },
    ReadEnds {
        life: u32,
    },
    /// A message from a worker reaches the engine's machine.
    Reaches {
        worker: usize,
        life: u32,
        sent: Box<SentMessage>,
    },
    /// A message from the engine reaches a worker.
    Hears {
        worker: usize,
        life: u32,
        heard: Box<EngineReply>,
        from: u32,
    },
    WorkerStarts(usize),
    WorkerWakes {
        worker: usize,
        life: u32,
    },
    ToolEnds {
        worker: usize,
        life: u32,
        unit: Unit,
        serial: u64,
    },
    AsksAgain {
        worker: usize,
        life: u32,
        unit: Unit,
        call: String,
    },
    TimesUp {
        worker: usize,
        life: u32,
        unit: Unit,
    },
    Gone {
        worker: usize,
        life: u32,
        unit: Unit,
    },
    Wishes(Wish),
    Asks {
        ask: usize,
    },
    Starts,
    Meddles(windlass_kernel::ExecutionId),
    Answers(windlass_store::MailId, usize),
    Mishap(Mishap),
    /// A write of long ago reaches the disk.
    Straggles,
    Kind,
    Help,
    /// Checks whether timers fire on time.
    Inspects,
}

pub(super) struct World {
    pub plan: Plan,
    pub rng: Rng,
    /// True time, in milliseconds since the beginning.
    pub now: u64,
    /// Offset of the wall clock.
    pub off: i64,
    pub agenda: Agenda<Happening>,
    pub depot: Depot,
    /// Reader of the disk for the oracle and the users.
    pub eyes: SystemReader,
    pub engine: Option<Process>,
    pub life: u32,
    pub workers: Vec<Worker>,
    pub network: Network,
    pub users: Users,
    pub watch: Watch,
    pub sabotage: Option<Sabotage>,
    pub log: EventLog,
    pub kind: bool,
    pub counts: Counts,
    /// Time since which the engine could process its timers without faults.
    calm_since: u64,
    /// Happenings at this very moment, against a world that spins.
    happened: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub executions: u64,
    pub commits: u64,
    pub engine_deaths: u64,
    pub worker_deaths: u64,
    pub messages: u64,
    pub lost: u64,
    pub doubled: u64,
    pub failed_writes: u64,
    pub mail: u64,
    /// Executions of actions that were compensated.
    pub undone_sagas: u64,
    pub happenings: u64,
    pub simulated_ms: u64,
    /// Maximum time until everything had ended, after the world became kind.
    pub rest_ms: u64,
}

impl World {
    pub fn new(seed: u64, sabotage: Option<Sabotage>, log: EventLog) -> Result<World, Broken> {
        let mut rng = Rng::new(seed);
        let mut plan = Plan::draw(seed, &mut rng);
        plan.on_file &= sabotage.is_none();
        let lax = sabotage.map(Sabotage::lax).unwrap_or_default();
        let depot = if plan.on_file { Depot::file() } else { Ok(Depot::memory(lax)) };
        let depot = depot.map_err(broken)?;
        let eyes = depot.reader(Forgets::default()).map_err(broken)?;
        let mut watch = Watch::default();
        plan.definitions.iter().for_each(|definition| watch.knows(definition));
        let workers = (0..plan.workers).map(|number| Worker::new(number, plan.slots)).collect();
        let mut world = World {
            network: Network::new(plan.network),
            users: Users::default(),
            plan,
            rng,
            now: 0,
            off: 0,
            agenda: Agenda::default(),
            depot,
            eyes,
            engine: None,
            life: 0,
            workers,
            watch,
            sabotage,
            log,
            kind: false,
            counts: Counts::default(),
            calm_since: 0,
            happened: 0,
        };
        world.begin();
        Ok(world)
    }

    fn begin(&mut self) {
        self.agenda.plan(0, Happening::EngineStarts);
        if !self.plan.embedded {
            for worker in 0..self.plan.workers {
                let at = self.rng.below(500);
                self.agenda.plan(at, Happening::WorkerStarts(worker));
            }
        }
        for number in 0..self.plan.definitions.len() {
            self.agenda.plan(1, Happening::Wishes(Wish::Define(number)));
        }
        for at in self.plan.starts.clone() {
            self.agenda.plan(100 + at, Happening::Starts);
        }
        for (at, mishap) in self.plan.mishaps.clone() {
            self.agenda.plan(at, Happening::Mishap(mishap));
        }
        for at in self.plan.stragglers.clone() {
            self.agenda.plan(at, Happening::Straggles);
        }
        self.agenda.plan(INSPECT_MS, Happening::Inspects);
        self.agenda.plan(self.plan.trouble_ms, Happening::Kind);
    }

    pub fn disturbed(&mut self, until: u64) {
        self.calm_since = self.calm_since.max(until);
    }

    /// Checks that the engine fires every timer soon after it is due, if nothing disturbs it.
    fn inspects(&mut self) -> Result<(), Broken> {
        self.agenda.plan(self.now + INSPECT_MS, Happening::Inspects);
        if self.engine.is_none() || self.now < self.calm_since + LATE_MS {
            return Ok(());
        }
        self.watch.timers_are_on_time(Millis(self.wall().0 - LATE_MS as i64))
    }

    pub fn live(&mut self) -> Result<(), Broken> {
        let (mut commits, mut moved_at) = (0, self.plan.trouble_ms);
        for _ in 0..HAPPENINGS_MAX {
            let Some((at, happening)) = self.agenda.take() else {
                return Err(Broken::new("K8", "nothing will ever happen again"));
            };
            self.count(at)?;
            if self.now > moved_at + KIND_MS {
                return Err(
                    self.stuck("the world was kind, and nothing was committed for a quarter of an hour")?
                );
            }
            self.happen(happening)?;
            if self.watch.commits > commits {
                (commits, moved_at) = (self.watch.commits, moved_at.max(self.now));
            }
            if self.is_over()? {
                return self.end();
            }
        }
        Err(self.stuck("the world does not end")?)
    }

    fn count(&mut self, at: u64) -> Result<(), Broken> {
        self.happened = if at > self.now { 0 } else { self.happened + 1 };
        self.now = self.now.max(at);
        self.counts.happenings += 1;
        if self.happened > 2_000 {
            return Err(Broken::new("K8", "the simulated time does not advance: the same event repeats"));
        }
        Ok(())
    }

    fn stuck(&mut self, how: &str) -> Result<Broken, Broken> {
        let mut left = self.watch.unrest(&mut self.eyes)?;
        left.extend(self.users.unanswered(self.life).map(|wish| format!("{wish:?} is not answered")));
        Ok(Broken::new("K8", format!("{how}; left: {}", left.join(", "))))
    }

    /// The process or the machine ended: the disk is what is left of it.
    pub fn crash(&mut self, outstanding: Option<&[Write]>) -> Result<(), Broken> {
        let how = match self.sabotage {
            Some(Sabotage::CommitForgotten) => Crash::Forgets,
            Some(Sabotage::BatchTorn) => Crash::Tears,
            _ => Crash::Sound,
        };
        self.depot.crash(outstanding, how, &mut self.rng).map_err(broken)?;
        self.eyes = self.depot.reader(Forgets::default()).map_err(broken)?;
        self.watch.recovered(outstanding, &mut self.eyes)
    }

    fn happen(&mut self, happening: Happening) -> Result<(), Broken> {
        self.log.hash_happening(self.now, &happening);
        match happening {
            Happening::EngineStarts => self.engine_starts(),
            Happening::Turn { life } => self.turn(life),
            Happening::WriteEnds { life } => self.write_ends(life),
            Happening::ReadEnds { life } => self.read_ends(life),
            Happening::Reaches { worker, life, sent } => self.reaches(worker, life, *sent),
            Happening::Hears { worker, life, heard, from } => self.hears(worker, life, *heard, from),
            Happening::WorkerStarts(worker) => self.worker_starts(worker),
            Happening::WorkerWakes { worker, life } => self.worker_wakes(worker, life),
            Happening::ToolEnds { worker, life, unit, serial } => self.tool_ends(worker, life, unit, serial),
            Happening::AsksAgain { worker, life, unit, call } => self.asks_again(worker, life, unit, &call),
            Happening::TimesUp { worker, life, unit } => self.times_up(worker, life, unit),
            Happening::Gone { worker, life, unit } => self.gone(worker, life, unit),
            Happening::Wishes(wish) => self.wishes(wish),
            Happening::Asks { ask } => self.asks(ask),
            Happening::Starts => self.starts(),
            Happening::Meddles(id) => self.meddles(id),
            Happening::Answers(mail, ask) => self.answers(mail, ask),
            Happening::Mishap(mishap) => self.mishap(mishap),
            Happening::Straggles => self.straggles(),
            Happening::Kind => self.be_kind(),
            Happening::Help => self.help(),
            Happening::Inspects => self.inspects(),
        }
    }

    fn mishap(&mut self, mishap: Mishap) -> Result<(), Broken> {
        if self.kind {
            return Ok(());
        }
        match mishap {
            Mishap::EngineKilled => self.engine_dies("it is killed"),
            Mishap::EngineStopped => self.engine_stops(),
            Mishap::WorkerKilled(worker) => self.worker_dies(worker),
            Mishap::WorkerStopped(worker) => self.worker_stops(worker),
            Mishap::EngineStalls { for_ms } => {
                self.engine_stalls(for_ms);
                Ok(())
            }
            Mishap::LinkCut { worker, for_ms } => {
                self.log.record(self.now, || format!("the link to worker {worker} is cut for {for_ms} ms"));
                self.network.cut(worker, self.now + for_ms);
                Ok(())
            }
            Mishap::ClockJumps(by) => {
                self.log.record(self.now, || format!("the wall clock jumps by {by} ms"));
                self.off += by;
                self.disturbed(self.now + WINDOW_MS);
                Ok(())
            }
        }
    }

    /// A worker writes under a lease that it lost long ago. The disk must refuse it.
    fn straggles(&mut self) -> Result<(), Broken> {
        let Some(batch) = self.watch.straggler(&mut self.rng) else { return Ok(()) };
        self.log.record(self.now, || "a worker writes under an expired lease".to_owned());
        let applied = self.depot.write(&batch, Fate::Synced).map_err(broken)?;
        self.watch.synced(&batch, &applied, &mut self.eyes)
    }

    /// Begins the time in which nothing goes wrong any more and people answer everything that waits for them.
    fn be_kind(&mut self) -> Result<(), Broken> {
        self.log.record(self.now, || "faults end; the world is kind from here on".to_owned());
        self.kind = true;
        self.network.be_kind();
        self.plan.disk.slow = 0;
        self.plan.disk.fails = 0;
        self.plan.tools = super::plan::ToolTrouble { fails: 0, long: 0 };
        self.plan.dies_anywhere = 0;
        if self.engine.is_none() {
            self.agenda.plan(self.now, Happening::EngineStarts);
        }
        for worker in 0..self.workers.len() {
            if !self.plan.embedded && !self.workers[worker].is_up() {
                self.agenda.plan(self.now, Happening::WorkerStarts(worker));
            }
        }
        self.agenda.plan(self.now + HELP_MS, Happening::Help);
        Ok(())
    }

    fn help(&mut self) -> Result<(), Broken> {
        self.agenda.plan(self.now + HELP_MS, Happening::Help);
        self.look_after()
    }

    /// Everything has ended and nothing is on its way.
    fn is_over(&mut self) -> Result<bool, Broken> {
        let answered = self.users.unanswered(self.life).is_none();
        if !self.kind || !answered || !self.users.have_started(&self.plan) || self.engine_is_busy() {
            return Ok(false);
        }
        if self.watch.ids().any(|id| self.watch.phase(id).is_none_or(|phase| !phase.is_ended())) {
            return Ok(false);
        }
        Ok(self.watch.unrest(&mut self.eyes)?.is_empty())
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.watch.over(&mut self.eyes)?;
        self.watch.remembers(&self.users.memory)?;
        self.counts.executions = self.watch.ids().count() as u64;
        self.counts.commits = self.watch.commits;
        self.counts.mail = self.watch.mail.posted;
        self.counts.undone_sagas = self.watch.undone_sagas();
        self.counts.messages = self.network.sent;
        self.counts.lost = self.network.lost;
        self.counts.doubled = self.network.doubled;
        self.counts.simulated_ms = self.now;
        self.counts.rest_ms = self.now - self.plan.trouble_ms;
        for record in self.watch.records() {
            self.log.hash_value(record);
        }
        Ok(())
    }

    pub fn wall(&self) -> Millis {
        Millis(EPOCH.0 + self.now as i64 + self.off)
    }

    pub fn clock(&self, began: u64) -> Now {
        let steady = self.now - began;
        let fast = self.sabotage == Some(Sabotage::LeasesEndEarly);
        Now { wall: self.wall(), steady: if fast { steady * 5 } else { steady } }
    }
}
