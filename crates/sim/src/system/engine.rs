//! The engine's process: the production lane in a loop like the production one, over simulated threads.

mod acting;

use super::sabotage::Sabotage;
use super::store::{Fate, SystemReader};
use super::workers::{Caller, SentMessage};
use super::world::{Happening, World};
use crate::invariants::Broken;
use std::collections::{BTreeMap, VecDeque};
use windlass_engine::{ChildCheck, Config, Lane, Lookup, ReadId, Wake, look_up};
use windlass_protocol::SessionId;
use windlass_store::{Applied, StoreError, Write};

/// The loop looks at the clock at least this often, as the production one does.
const SLEEP_MAX_MS: u64 = 1_000;
/// Wake-ups taken in one turn.
const WAKES_PER_TURN_MAX: usize = 512;
/// Times for which a process is down.
const AWAY_MS: [u64; 4] = [5, 200, 3_000, 40_000];

/// Receiver of an answer.
#[derive(Debug, Clone)]
pub(super) enum Ticket {
    User(usize),
    Worker { worker: usize, life: u32, sent: Box<SentMessage> },
}

#[derive(Debug)]
pub(super) struct Process {
    life: u32,
    began: u64,
    lane: Lane<Ticket>,
    reader: SystemReader,
    incoming: VecDeque<Wake<Ticket>>,
    /// Time of the next turn of the loop.
    turn_at: u64,
    /// The machine has no time for it before.
    stalled_until: u64,
    /// Batches on their way to the disk; more than one only under a sabotage.
    writing: VecDeque<Writing>,
    reading: VecDeque<(ReadId, Lookup)>,
    reader_free_at: u64,
    sessions: BTreeMap<SessionId, (usize, u32, Caller)>,
    stopping: bool,
}

#[derive(Debug)]
struct Writing {
    batch: Vec<Write>,
    fate: Fate,
    /// The engine was informed before the write, which a sabotage does.
    informed: bool,
}

impl World {
    pub(super) fn engine_starts(&mut self) -> Result<(), Broken> {
        if self.engine.is_some() {
            return Ok(());
        }
        self.life += 1;
        self.disturbed(self.now);
        self.watch.leases.life = self.life;
        self.log.record(self.now, || format!("the engine starts (life {})", self.life));
        let forgets = self.sabotage.map(|sabotage| sabotage.forgets(self.life == 1)).unwrap_or_default();
        let reader = self.depot.reader(forgets).map_err(broken)?;
        let config = Config { seed: self.rng.bits(), ..self.plan.config.clone() };
        let lane = Lane::new(config, self.clock(self.now));
        self.engine = Some(Process {
            life: self.life,
            began: self.now,
            lane,
            reader,
            incoming: VecDeque::new(),
            turn_at: self.now,
            stalled_until: self.now,
            writing: VecDeque::new(),
            reading: VecDeque::new(),
            reader_free_at: self.now,
            sessions: BTreeMap::new(),
            stopping: false,
        });
        self.agenda.plan(self.now, Happening::Turn { life: self.life });
        if self.plan.embedded {
            for worker in 0..self.workers.len() {
                self.worker_starts(worker)?;
            }
        }
        Ok(())
    }

    pub(super) fn engine_is_busy(&self) -> bool {
        self.engine.as_ref().is_none_or(|engine| {
            !engine.writing.is_empty() || !engine.incoming.is_empty() || !engine.lane.is_recovered()
        })
    }

    /// Wakes the engine's loop, which may take a moment until it turns.
    pub(super) fn wake(&mut self, wake: Wake<Ticket>) {
        let soon = self.now + self.rng.below(3);
        let Some(engine) = &mut self.engine else { return };
        let soon = soon.max(engine.stalled_until);
        engine.incoming.push_back(wake);
        if soon < engine.turn_at {
            engine.turn_at = soon;
            self.agenda.plan(soon, Happening::Turn { life: engine.life });
        }
    }

    pub(super) fn engine_stalls(&mut self, for_ms: u64) {
        let until = self.now + for_ms;
        self.disturbed(until);
        let Some(engine) = &mut self.engine else { return };
        self.log.record(self.now, || format!("the engine gets no time for {for_ms} ms"));
        engine.stalled_until = until;
        engine.turn_at = until;
        self.agenda.plan(until, Happening::Turn { life: engine.life });
    }

    /// One turn of the loop: everything that came in, then what the lane wants done.
    pub(super) fn turn(&mut self, life: u32) -> Result<(), Broken> {
        let Some(engine) = self.engine.as_mut().filter(|engine| engine.life == life) else { return Ok(()) };
        if engine.turn_at != self.now {
            return Ok(());
        }
        let mut incoming = std::mem::take(&mut engine.incoming);
        let now = self.clock(self.engine.as_ref().map_or(0, |engine| engine.began));
        let Some(engine) = self.engine.as_mut() else { return Ok(()) };
        if incoming.is_empty() {
            engine.lane.wake(Wake::Tick, now);
        }
        for _ in 0..WAKES_PER_TURN_MAX {
            if engine.lane.is_full() && matches!(incoming.front(), Some(Wake::Ask(..) | Wake::Call(..))) {
                break;
            }
            let Some(wake) = incoming.pop_front() else { break };
            engine.lane.wake(wake, now);
        }
        engine.incoming = incoming;
        engine.lane.settle();
        for effect in engine.lane.take_effects() {
            if self.plan.dies_anywhere > 0 && self.rng.below(10_000) < self.plan.dies_anywhere {
                return self.engine_dies("it is killed in the middle of a turn");
            }
            self.act(effect)?;
            if self.engine.as_ref().is_none_or(|engine| engine.life != life) {
                return Ok(());
            }
        }
        self.plan_turn();
        Ok(())
    }

    fn plan_turn(&mut self) {
        let Some(engine) = &mut self.engine else { return };
        let sleep = engine.lane.sleep_ms().clamp(1, SLEEP_MAX_MS);
        let wait = if engine.incoming.is_empty() { sleep } else { 1 };
        engine.turn_at = self.now + wait;
        let life = engine.life;
        self.agenda.plan(self.now + wait, Happening::Turn { life });
    }

    fn hand_over(&mut self, batch: Vec<Write>) -> Result<(), Broken> {
        let disk = self.plan.disk;
        let delay = if self.rng.percent(disk.slow) { 3_000 } else { disk.write_ms };
        let delay = 1 + self.rng.below(delay);
        let fails = self.rng.below(1_000) < self.plan.disk.fails;
        let fate = match (fails, self.rng.percent(50)) {
            (true, true) => Fate::FailedLost,
            (true, false) => Fate::FailedKept,
            (false, _) => Fate::Synced,
        };
        let idle = self.engine.as_ref().is_some_and(|engine| engine.writing.is_empty());
        let early = self.sabotage == Some(Sabotage::EffectBeforeSync) && idle && self.rng.percent(30);
        if early {
            let applied = self.depot.foretell(&batch).map_err(broken)?;
            self.wake(Wake::Written(Ok(applied)));
        }
        let Some(engine) = &mut self.engine else { return Ok(()) };
        if engine.writing.iter().any(|writing| !writing.informed) {
            return Err(Broken::new(
                "one batch at a time",
                "a batch was handed over before the last was written",
            ));
        }
        engine.writing.push_back(Writing { batch, fate, informed: early });
        let life = engine.life;
        self.agenda.plan(self.now + delay, Happening::WriteEnds { life });
        Ok(())
    }

    pub(super) fn write_ends(&mut self, life: u32) -> Result<(), Broken> {
        let Some(engine) = self.engine.as_mut().filter(|engine| engine.life == life) else { return Ok(()) };
        let Some(Writing { batch, fate, informed }) = engine.writing.pop_front() else { return Ok(()) };
        let written = self.depot.write(&batch, fate);
        if fate == Fate::Synced {
            self.record_writes(&batch, &written);
            let applied = written.as_ref().map_err(|error| broken(error.clone()))?;
            self.watch.synced(&batch, applied, &mut self.eyes)?;
        } else {
            self.counts.failed_writes += 1;
            self.log.record(self.now, || format!("a write fails: {fate:?}"));
            self.watch.recovered(Some(&batch), &mut self.eyes)?;
        }
        if !informed {
            self.wake(Wake::Written(written));
        }
        Ok(())
    }

    fn look_for(&mut self, id: ReadId, lookup: Lookup) {
        let disk = self.plan.disk;
        let Some(engine) = &mut self.engine else { return };
        // A cold disk is slow at first: what is new meets what is read from before.
        let cold = self.now == engine.began && self.rng.percent(disk.cold);
        let delay = if cold || self.rng.percent(disk.slow) { 2_000 } else { disk.read_ms };
        engine.reader_free_at = engine.reader_free_at.max(self.now) + self.rng.below(delay);
        engine.reading.push_back((id, lookup));
        self.agenda.plan(engine.reader_free_at, Happening::ReadEnds { life: engine.life });
    }

    /// There is one reader: it answers in order.
    pub(super) fn read_ends(&mut self, life: u32) -> Result<(), Broken> {
        let Some(engine) = self.engine.as_mut().filter(|engine| engine.life == life) else { return Ok(()) };
        let Some((id, lookup)) = engine.reading.pop_front() else { return Ok(()) };
        let found = look_up(&mut engine.reader, &lookup, &ChildCheck::default());
        if let Err(error) = &found {
            return Err(broken(error.clone()));
        }
        self.wake(Wake::Found(id, found));
        Ok(())
    }

    pub(super) fn engine_stops(&mut self) -> Result<(), Broken> {
        let Some(engine) = &mut self.engine else { return Ok(()) };
        if !engine.stopping {
            engine.stopping = true;
            self.log.record(self.now, || "the engine is asked to stop".to_owned());
            self.wake(Wake::Stop);
        }
        Ok(())
    }

    pub(super) fn engine_dies(&mut self, why: &str) -> Result<(), Broken> {
        let Some(engine) = self.engine.take() else { return Ok(()) };
        self.counts.engine_deaths += 1;
        let outstanding: Option<Vec<Write>> = match engine.writing.is_empty() {
            true => None,
            false => Some(engine.writing.into_iter().flat_map(|writing| writing.batch).collect()),
        };
        self.repeat_unanswered(engine.life);
        self.log.record(self.now, || {
            let writing = if outstanding.is_some() { ", a batch is on its way to the disk" } else { "" };
            format!("the engine dies: {why}{writing}")
        });
        self.crash(outstanding.as_deref())?;
        self.engine_is_gone()
    }

    fn engine_is_gone(&mut self) -> Result<(), Broken> {
        if self.plan.embedded {
            for worker in 0..self.workers.len() {
                self.worker_is_gone(worker);
            }
        }
        let longest = if self.kind { 5 } else { *self.rng.pick(&AWAY_MS) };
        let at = self.now + self.rng.below(longest) + 1;
        self.agenda.plan(at, Happening::EngineStarts);
        Ok(())
    }

    fn record_writes(&mut self, batch: &[Write], written: &Result<Vec<Applied>, StoreError>) {
        if !self.log.keeps_lines() {
            return;
        }
        let Ok(applied) = written else { return };
        for (write, applied) in batch.iter().zip(applied) {
            self.log.record(self.now, || super::event_text::format_write(write, applied));
        }
    }
}

pub(super) fn broken(error: StoreError) -> Broken {
    Broken::new("store", error.to_string())
}
