//! Worker processes: the production session machine and the production pipelines, over simulated tools.

mod agents;
mod tools;

use super::engine::Ticket;
use super::sabotage::Sabotage;

use super::world::{Happening, World};
use crate::invariants::Broken;
pub(super) use agents::KIND as AGENT;
use std::collections::{BTreeMap, VecDeque};
use tools::Bench;
use windlass_engine::Wake;
use windlass_protocol::{Call, Order, PROTOCOL_VERSION, Register, Reply, SessionId, Unit, Verdict, Work};
use windlass_worker::session::{CallId, Input, Output, Session};

/// Times for which a worker is away.
const AWAY_MS: [u64; 3] = [100, 5_000, 50_000];
const SHUTDOWN_GRACE_MS: u64 = 1_000;

#[derive(Debug)]
pub(super) struct Worker {
    number: usize,
    slots: u32,
    /// Counts its processes.
    life: u32,
    process: Option<Running>,
}

#[derive(Debug)]
struct Running {
    began: u64,
    session: Session,
    wake_at: u64,
    bench: BTreeMap<Unit, Bench>,
    /// Life of the engine in which each order was given.
    ordered_in: BTreeMap<Unit, u32>,
    /// First session of each registration. Orders of other sessions are ignored.
    sessions: BTreeMap<u64, SessionId>,
}

/// Call of a worker on its way to the engine.
#[derive(Debug, Clone)]
pub(super) struct SentMessage {
    pub caller: Caller,
    pub call: Call,
}

/// Reply of the engine on its way to a worker.
#[derive(Debug, Clone)]
pub(super) struct EngineReply {
    pub caller: Caller,
    pub reply: Reply,
    /// Session that an order is meant for.
    pub session: Option<SessionId>,
}

/// Names the call that a reply belongs to.
#[derive(Debug, Clone)]
pub(super) enum Caller {
    Session(CallId),
    /// Call of the agent that works on this unit.
    Agent {
        unit: Unit,
        call: String,
    },
    /// The worker has ended in order and expects no reply.
    Leaver,
}

impl Worker {
    pub fn new(number: usize, slots: u32) -> Worker {
        Worker { number, slots, life: 0, process: None }
    }

    pub fn is_up(&self) -> bool {
        self.process.is_some()
    }
}

impl World {
    pub(super) fn worker_starts(&mut self, worker: usize) -> Result<(), Broken> {
        let now = self.now;
        let this = &mut self.workers[worker];
        if this.is_up() {
            return Ok(());
        }
        this.life += 1;
        let register = Register {
            protocol: PROTOCOL_VERSION,
            worker: format!("worker {}", this.number),
            slots: this.slots,
        };
        this.process = Some(Running {
            began: now,
            session: Session::new(register),
            wake_at: u64::MAX,
            bench: BTreeMap::new(),
            ordered_in: BTreeMap::new(),
            sessions: BTreeMap::new(),
        });
        self.log.record(now, || format!("worker {worker} starts"));
        self.feed(worker, Input::Tick)
    }

    pub(super) fn worker_dies(&mut self, worker: usize) -> Result<(), Broken> {
        // A worker inside the engine's process dies with it, not alone.
        if self.plan.embedded || !self.workers[worker].is_up() {
            return Ok(());
        }
        self.counts.worker_deaths += 1;
        self.worker_is_gone(worker);
        self.worker_comes_back(worker);
        Ok(())
    }

    fn worker_comes_back(&mut self, worker: usize) {
        let longest = *self.rng.pick(&AWAY_MS);
        let at = self.now + 1 + self.rng.below(longest);
        self.agenda.plan(at, Happening::WorkerStarts(worker));
    }

    pub(super) fn worker_is_gone(&mut self, worker: usize) {
        let Some(process) = self.workers[worker].process.take() else { return };
        self.log.record(self.now, || format!("worker {worker} is gone"));
        for unit in process.bench.keys() {
            self.watch.leases.end(*unit);
        }
    }

    /// Stops a worker: it stops its work and reports none of it.
    pub(super) fn worker_stops(&mut self, worker: usize) -> Result<(), Broken> {
        if self.plan.embedded || !self.workers[worker].is_up() {
            return Ok(());
        }
        self.log.record(self.now, || format!("worker {worker} is asked to stop"));
        self.feed(worker, Input::Shutdown { grace_ms: SHUTDOWN_GRACE_MS })
    }

    pub(super) fn worker_wakes(&mut self, worker: usize, life: u32) -> Result<(), Broken> {
        let due = self.process(worker, life).is_some_and(|process| process.wake_at == self.now);
        if due { self.feed(worker, Input::Tick) } else { Ok(()) }
    }

    fn process(&self, worker: usize, life: u32) -> Option<&Running> {
        let this = &self.workers[worker];
        this.process.as_ref().filter(|_| this.life == life)
    }

    /// A message from the engine's life `from`.
    pub(super) fn hears(
        &mut self,
        worker: usize,
        life: u32,
        heard: EngineReply,
        from: u32,
    ) -> Result<(), Broken> {
        let this = &mut self.workers[worker];
        let Some(process) = this.process.as_mut().filter(|_| this.life == life) else { return Ok(()) };
        let EngineReply { caller, reply, session: under } = heard;
        let to = match (caller, &reply) {
            (Caller::Agent { unit, call }, Reply::Agent(answer)) => {
                return self.agent_hears(worker, unit, &call, answer);
            }
            (Caller::Session(to), _) => to,
            (Caller::Agent { .. } | Caller::Leaver, _) => return Ok(()),
        };
        match (to, &reply) {
            (CallId::Register { number }, Reply::Registered(registered)) => {
                process.sessions.entry(number).or_insert(registered.session);
            }
            // The worker listens to the session that it heard of first.
            (CallId::Register { number }, Reply::Order(_))
                if process.sessions.get(&number) != under.as_ref() =>
            {
                return Ok(());
            }
            (CallId::Report { unit }, Reply::Verdict(Verdict::Accepted)) => self.watch.heard(unit)?,
            (
                CallId::Register { .. }
                | CallId::Beat { .. }
                | CallId::Checkpoint { .. }
                | CallId::Report { .. },
                _,
            ) => {}
        }
        let run = match &reply {
            Reply::Order(Order::Run(work)) => Some(work.clone()),
            Reply::Order(Order::Stop { .. } | Order::Unknown)
            | Reply::Registered(_)
            | Reply::Verdict(_)
            | Reply::Agent(_)
            | Reply::Resource(_)
            | Reply::Refused(_) => None,
        };
        if let (Some(work), Some(process)) = (&run, &mut self.workers[worker].process) {
            process.ordered_in.entry(work.unit).or_insert(from);
        }
        self.feed(worker, Input::Replied { to, reply })?;
        let twice = run.is_some() && self.sabotage == Some(Sabotage::OrderBegunTwice) && self.rng.percent(30);
        run.filter(|_| twice).map_or(Ok(()), |work| self.begin_work(worker, *work))
    }

    /// One input to the session, and all that follows from it inside the worker.
    pub(super) fn feed(&mut self, worker: usize, input: Input) -> Result<(), Broken> {
        let mut inputs = VecDeque::from([input]);
        while let Some(input) = inputs.pop_front() {
            let now = self.now;
            let Some(process) = &mut self.workers[worker].process else { return Ok(()) };
            let outputs = process.session.handle(now - process.began, input);
            for output in outputs {
                self.carry_out(worker, output)?;
            }
            inputs.extend(self.finished(worker));
        }
        self.plan_wake(worker);
        self.leave_if_closed(worker);
        Ok(())
    }

    fn plan_wake(&mut self, worker: usize) {
        let this = &mut self.workers[worker];
        let Some(process) = &mut this.process else { return };
        let Some(at) = process.session.wake_at() else { return };
        let at = (process.began + at).max(self.now);
        if process.wake_at != at || at == self.now {
            process.wake_at = at;
            self.agenda.plan(at, Happening::WorkerWakes { worker, life: this.life });
        }
    }

    fn leave_if_closed(&mut self, worker: usize) {
        let closed = self.workers[worker].process.as_ref().is_some_and(|process| process.session.is_closed());
        if closed {
            let process = self.workers[worker].process.as_ref();
            let newest = process.and_then(|process| process.sessions.values().next_back().copied());
            if let Some(session) = newest {
                self.watch.leases.left(session);
                self.send(worker, SentMessage { caller: Caller::Leaver, call: Call::Leave(session) });
            }
            self.worker_is_gone(worker);
            self.worker_comes_back(worker);
        }
    }

    fn carry_out(&mut self, worker: usize, output: Output) -> Result<(), Broken> {
        match output {
            Output::Call { id, call } => self.call_engine(worker, id, call),
            Output::Start(work) => return self.begin_work(worker, *work),
            Output::Proceed(unit) => self.proceed(worker, unit)?,
            Output::Stop { unit, grace_ms } => self.stop(worker, unit, grace_ms),
        }
        Ok(())
    }

    fn call_engine(&mut self, worker: usize, id: CallId, call: Call) {
        let caller = Caller::Session(id);
        let is_report = matches!(call, Call::Report(_));
        let forged = is_report && self.sabotage == Some(Sabotage::VerdictForged) && self.rng.percent(20);
        if forged {
            let (life, from) = (self.workers[worker].life, self.life);
            let heard = EngineReply { caller, reply: Reply::Verdict(Verdict::Accepted), session: None };
            let heard = Box::new(heard);
            return self.agenda.plan(self.now + 1, Happening::Hears { worker, life, heard, from });
        }
        self.send(worker, SentMessage { caller, call });
    }

    fn send(&mut self, worker: usize, sent: SentMessage) {
        let life = self.workers[worker].life;
        let arrivals = match self.plan.embedded {
            true => vec![self.now],
            false => self.network.send(worker, self.now, &mut self.rng),
        };
        for at in arrivals {
            self.agenda.plan(at, Happening::Reaches { worker, life, sent: Box::new(sent.clone()) });
        }
    }

    /// Delivers a message if the engine runs; otherwise it is lost.
    pub(super) fn reaches(&mut self, worker: usize, life: u32, sent: SentMessage) -> Result<(), Broken> {
        let call = sent.call.clone();
        self.wake(Wake::Call(call, Ticket::Worker { worker, life, sent: Box::new(sent) }));
        Ok(())
    }

    fn begin_work(&mut self, worker: usize, work: Work) -> Result<(), Broken> {
        let unit = work.unit;
        let Some(process) = &self.workers[worker].process else { return Ok(()) };
        let ordered_in = process.ordered_in.get(&unit).copied().unwrap_or(self.life);
        self.log
            .record(self.now, || format!("worker {worker} begins {}", super::event_text::format_unit(unit)));
        self.watch.begun(unit, ordered_in)?;
        self.put_on_bench(worker, work)
    }
}
