//! Sessions and a small engine over a network that loses, doubles and delays messages, on a clock that jumps. What the
//! engine says arrives in the order it was said, as on one connection.

use crate::session::{new, unit, work};
use serde_json::{Map, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_protocol::{
    Call, LEASE_TTL_MS, Order, Outcome, Registered, Reply, Report, SessionId, Unit, Verdict,
};
use windlass_worker::session::{CallId, Input, Output};

/// Longer than anything is on its way, shorter than a lease.
const DELAY_MAX_MS: u64 = 4_000;
/// Time that a process takes to end beyond its grace.
const DYING_MS: u64 = 500;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

enum Sent {
    ToEngine(Output),
    ToWorker(Input),
}

/// Messages by (time of arrival, order of sending).
type Agenda = BTreeMap<(u64, u64), Sent>;

struct World {
    chance: Chance,
    now: u64,
    agenda: Agenda,
    count: u64,
    last_answer_at: u64,
    /// End of the lease of each dispatched unit.
    leases: BTreeMap<Unit, u64>,
    registration: u64,
    next_run: u64,
    fences: BTreeMap<u64, u64>,
    reported: BTreeSet<u64>,
    started: BTreeSet<Unit>,
    /// Units in the worker, and the latest end of their processes if they were ordered to stop.
    running: BTreeMap<Unit, Option<u64>>,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            chance: Chance(seed),
            now: 0,
            agenda: Agenda::new(),
            count: 0,
            last_answer_at: 0,
            leases: BTreeMap::new(),
            registration: 0,
            next_run: 0,
            fences: BTreeMap::new(),
            reported: BTreeSet::new(),
            started: BTreeSet::new(),
            running: BTreeMap::new(),
        }
    }

    fn put(&mut self, at: u64, sent: Sent) {
        self.count += 1;
        self.agenda.insert((at, self.count), sent);
    }

    /// Sends an input to the worker: lost, duplicated or late, but in order.
    fn answer(&mut self, input: &Input) {
        for _ in 0..[1, 1, 1, 0, 2][self.chance.below(5) as usize] {
            let at = self.now + self.chance.below(DELAY_MAX_MS);
            self.last_answer_at = self.last_answer_at.max(at);
            self.put(self.last_answer_at, Sent::ToWorker(input.clone()));
        }
    }

    fn carry_out(&mut self, output: Output) {
        let lost_or_doubled = [1, 1, 1, 0, 2][self.chance.below(5) as usize];
        match output {
            Output::Start(work) => self.begin(work.unit),
            Output::Stop { unit, grace_ms } => {
                let ends = self.now + self.chance.below(grace_ms + DYING_MS);
                if let Some(end @ None) = self.running.get_mut(&unit) {
                    *end = Some(ends);
                    self.put(ends, Sent::ToWorker(Input::Ended { unit, report: None }));
                }
            }
            Output::Proceed(_) => {}
            message => {
                for _ in 0..lost_or_doubled {
                    let at = self.now + self.chance.below(DELAY_MAX_MS);
                    self.put(at, Sent::ToEngine(message.clone()));
                }
            }
        }
    }

    fn begin(&mut self, unit: Unit) {
        assert!(self.started.insert(unit), "{unit:?} began twice");
        let other = self.running.keys().find(|running| running.run == unit.run);
        assert!(other.is_none(), "{unit:?} runs at the same time as {other:?}");
        self.running.insert(unit, None);
        let at = self.now + self.chance.below(60_000);
        let report = Report {
            unit,
            outcome: Outcome::Done { output: json!(1) },
            patch: Map::new(),
            metadata: Map::new(),
        };
        self.put(at, Sent::ToWorker(Input::Ended { unit, report: Some(Box::new(report)) }));
    }

    fn at_engine(&mut self, output: Output) {
        let Output::Call { id: to, call } = output else { return };
        let reply = match (to, call) {
            (CallId::Register { number }, _) => {
                self.registration = number;
                self.leases.clear();
                Reply::Registered(Registered { session: SessionId(number), rules: Arc::default() })
            }
            (_, Call::Beat(beat)) => {
                let known = beat.session.0 == self.registration;
                let verdict = if known { Verdict::Accepted } else { Verdict::Stale };
                for unit in beat.holds.iter().filter(|_| known) {
                    if let Some(lease) = self.leases.get_mut(unit).filter(|lease| **lease > self.now) {
                        *lease = self.now + LEASE_TTL_MS;
                    }
                }
                Reply::Verdict(verdict)
            }
            (_, Call::Report(report)) => {
                let unit = report.unit;
                let verdict =
                    if self.leases.remove(&unit).is_some() { Verdict::Accepted } else { Verdict::Stale };
                if verdict == Verdict::Accepted {
                    self.reported.insert(unit.run);
                }
                Reply::Verdict(verdict)
            }
            other => panic!("nothing here makes this call: {other:?}"),
        };
        self.answer(&Input::Replied { to, reply });
    }

    /// The engine orders new work, repeats work whose lease ended, or stops work.
    fn engine_acts(&mut self) {
        let number = self.registration;
        let open: Vec<Unit> = self.leases.keys().copied().collect();
        let order = match self.chance.below(4) {
            0 if !open.is_empty() => {
                let unit = open[self.chance.below(open.len() as u64) as usize];
                Order::Stop { unit, grace_ms: self.chance.below(2) * 1_000 }
            }
            1 => Order::Unknown,
            _ => {
                let lost = self.fences.keys().copied().find(|run| self.is_lost(*run));
                let run = lost.unwrap_or(self.next_run);
                self.next_run = self.next_run.max(run + 1);
                let fence = self.fences.entry(run).or_default();
                *fence += 1;
                let unit = unit(run, *fence);
                self.leases.insert(unit, self.now + LEASE_TTL_MS);
                Order::Run(work(unit))
            }
        };
        if order == Order::Unknown {
            // The engine forgets the leases only when their time is up: until then the work may run.
            self.registration = u64::MAX;
        }
        self.answer(&Input::Replied { to: CallId::Register { number }, reply: Reply::Order(order) });
    }

    fn is_lost(&self, run: u64) -> bool {
        !self.reported.contains(&run) && !self.leases.keys().any(|unit| unit.run == run)
    }

    fn expire(&mut self) {
        let ended: Vec<Unit> =
            self.leases.iter().filter(|(_, end)| **end <= self.now).map(|(unit, _)| *unit).collect();
        for unit in ended {
            self.leases.remove(&unit);
            let running = self.running.get(&unit);
            assert!(running.is_none(), "the lease of {unit:?} ended at {}, and it still runs", self.now);
        }
    }
}

fn play(seed: u64) -> (usize, usize) {
    let mut world = World::new(seed);
    let mut session = new();
    for _ in 0..3_000 {
        let next = world.agenda.first_key_value().map(|((at, _), _)| *at);
        let wake = session.wake_at().unwrap_or(world.now + 1_000);
        let lease = world.leases.values().min().copied();
        let at = next.into_iter().chain(lease).fold(wake, u64::min).max(world.now);
        // Not always at the moment: machines sleep too long.
        world.now = at + world.chance.below(3) * world.chance.below(50);
        let due: Vec<(u64, u64)> = world.agenda.range(..(world.now + 1, 0)).map(|(key, _)| *key).collect();
        let mut inputs = vec![Input::Tick];
        for key in due {
            match world.agenda.remove(&key).unwrap() {
                Sent::ToEngine(output) => world.at_engine(output),
                Sent::ToWorker(Input::Ended { unit, report }) => {
                    if world.running.remove(&unit).is_some() {
                        inputs.push(Input::Ended { unit, report });
                    }
                }
                Sent::ToWorker(input) => inputs.push(input),
            }
        }
        for input in inputs {
            for output in session.handle(world.now, input) {
                world.carry_out(output);
            }
        }
        world.expire();
        if world.chance.below(8) == 0 {
            world.engine_acts();
        }
    }
    (world.started.len(), world.reported.len())
}

#[test]
fn an_offer_begins_once_alone_and_never_outlives_its_lease() {
    let (mut started, mut reported) = (0, 0);
    for seed in 0..150 {
        let played = play(seed);
        (started, reported) = (started + played.0, reported + played.1);
    }
    // The worlds are not so bad that nothing happens in them.
    assert!(started > 5_000 && reported > 500, "{started} started, {reported} reported");
}
