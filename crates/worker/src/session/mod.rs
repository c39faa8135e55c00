//! The worker's side of the protocol: a state machine without IO, clock or random numbers. Inputs have the time,
//! outputs are actions. Messages may be lost, duplicated, late or out of order; a message is sent again until it is
//! answered.
//!
//! Three promises: an offer is begun at most once here; work whose lease may have ended is stopped before the lease
//! ends; two leases of one step-run never run at the same time in one worker.

mod held;
mod recent;

use held::HeldUnit;
use recent::Recent;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_protocol::{
    Beat, Call, LEASE_TTL_MS, Order, Register, Registered, Reply, Report, SessionId, Unit, Verdict, Work,
};

/// Time after which an unanswered heartbeat is repeated: one lost message must not lose the leases.
pub const BEAT_AGAIN_MS: u64 = 2_000;

/// Time before the end of its lease at which work is stopped: the grace, and as long again for its processes to end.
pub const LEASE_MARGIN_MS: u64 = 6_000;

/// Time between TERM and KILL when the lease runs out.
pub const LEASE_GRACE_MS: u64 = 2_000;

/// Time after which other unanswered messages are repeated; it doubles up to the maximum.
pub const RESEND_MS: u64 = 1_000;
pub const RESEND_MAX_MS: u64 = 10_000;

/// Times of a lease. If it is shorter than usual, all times within it are shorter, too.
#[derive(Debug, Clone, Copy)]
struct LeaseTimes {
    ttl_ms: u64,
}

impl LeaseTimes {
    fn beat_every_ms(self) -> u64 {
        self.ttl_ms / 2
    }

    fn beat_again_ms(self) -> u64 {
        BEAT_AGAIN_MS.min(self.ttl_ms / 15)
    }

    /// Returns the time at which work is stopped whose lease began at a time.
    fn give_up_at(self, lease_from: u64) -> u64 {
        lease_from + self.ttl_ms - LEASE_MARGIN_MS.min(self.ttl_ms / 5)
    }

    fn grace_ms(self) -> u64 {
        LEASE_GRACE_MS.min(self.ttl_ms / 15)
    }
}

/// Maximum time that a shutdown waits for answers to reports of work that ended before.
pub const LAST_ANSWERS_MS: u64 = 2_000;

/// Identifies the call that a reply belongs to. A reply to an earlier registration, beat or checkpoint has another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallId {
    Register { number: u64 },
    Beat { number: u64 },
    Checkpoint { unit: Unit, number: u64 },
    Report { unit: Unit },
}

/// Event that the session reacts to.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// Time passed; due at [`Session::wake_at`].
    Tick,
    Replied {
        to: CallId,
        reply: Reply,
    },
    /// The work waits until its cursor is stored.
    Reached {
        unit: Unit,
        cursor: Arc<Value>,
    },
    /// The work and its processes have ended. Without a report it was stopped before it had a result.
    Ended {
        unit: Unit,
        report: Option<Box<Report>>,
    },
    /// Finishes its units, and requests no new ones. Units that the engine has already sent are begun.
    Drain,
    /// Stops everything and begins nothing; unfinished work is not reported, so it is offered again.
    Shutdown {
        grace_ms: u64,
    },
}

/// Effect that the session wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    Call {
        id: CallId,
        call: Call,
    },
    /// Begins the work.
    Start(Box<Work>),
    /// The cursor is stored: the work continues.
    Proceed(Unit),
    /// Ends the work: TERM, and KILL after the grace. It may be repeated, with a shorter grace.
    Stop {
        unit: Unit,
        grace_ms: u64,
    },
}

#[derive(Debug)]
pub struct Session {
    register: Register,
    times: LeaseTimes,
    link: Link,
    held: BTreeMap<Unit, HeldUnit>,
    recent: Recent,
    /// Heartbeats without an answer.
    beats: BTreeMap<u64, SentBeat>,
    numbers: u64,
    closing: Option<u64>,
    draining: bool,
    /// Whether the engine has accepted a heartbeat with the flag `draining`.
    is_drain_known: bool,
    out: Vec<Output>,
}

#[derive(Debug)]
struct SentBeat {
    at: u64,
    listed: Vec<Unit>,
    draining: bool,
}

#[derive(Debug, Clone, Copy)]
enum Link {
    /// Units of the last session have to end before there is a new one.
    Emptying,
    Registering {
        number: u64,
        sent_at: u64,
        again: Again,
    },
    Open {
        number: u64,
        session: SessionId,
        lease_from: u64,
        beat_at: u64,
    },
}

/// Time at which unanswered messages are repeated.
#[derive(Debug, Clone, Copy)]
struct Again {
    at: u64,
    delay_ms: u64,
}

impl Again {
    fn first(now: u64) -> Again {
        Again { at: now + RESEND_MS, delay_ms: RESEND_MS }
    }

    fn later(self, now: u64) -> Again {
        let delay_ms = (self.delay_ms * 2).min(RESEND_MAX_MS);
        Again { at: now + delay_ms, delay_ms }
    }
}

impl Session {
    /// Creates a session. The first [`Input::Tick`] registers it.
    #[must_use]
    pub fn new(register: Register) -> Session {
        Session {
            register,
            times: LeaseTimes { ttl_ms: LEASE_TTL_MS },
            link: Link::Emptying,
            held: BTreeMap::new(),
            recent: Recent::default(),
            beats: BTreeMap::new(),
            numbers: 0,
            closing: None,
            draining: false,
            is_drain_known: false,
            out: Vec::new(),
        }
    }

    /// Handles an input. `now` is in milliseconds and never decreases; its origin is arbitrary.
    pub fn handle(&mut self, now: u64, input: Input) -> Vec<Output> {
        match input {
            Input::Tick => {}
            Input::Replied { to, reply } => self.replied(now, to, reply),
            Input::Reached { unit, cursor } => self.reached(now, unit, cursor),
            Input::Ended { unit, report } => self.ended(now, unit, report),
            Input::Drain => self.drain(now),
            Input::Shutdown { grace_ms } => self.shut_down(now, grace_ms),
        }
        self.due(now);
        std::mem::take(&mut self.out)
    }

    /// Returns the time of the next [`Input::Tick`], if nothing else happens.
    #[must_use]
    pub fn wake_at(&self) -> Option<u64> {
        let link = match self.link {
            Link::Emptying => None,
            Link::Registering { again, .. } => Some(again.at).filter(|_| self.closing.is_none()),
            Link::Open { beat_at, .. } => Some(beat_at),
        };
        let held = self.held.values().filter_map(|held| held.wake_at(self.times));
        let last = self.closing.filter(|_| self.held.values().any(|held| !held.is_local()));
        held.chain(link).chain(last).min()
    }

    /// Returns the id of the session at the engine; None while it is not registered.
    #[must_use]
    pub fn id(&self) -> Option<SessionId> {
        match self.link {
            Link::Open { session, .. } => Some(session),
            Link::Emptying | Link::Registering { .. } => None,
        }
    }

    /// Lists the units that it still holds, for the next heartbeat.
    pub fn holds(&self) -> impl Iterator<Item = Unit> {
        self.held.keys().copied()
    }

    /// Returns whether the session is over. After a shutdown: all processes have ended, and every report is answered.
    /// After a drain, the engine has also confirmed that it sends nothing new.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        (self.closing.is_some() || self.is_drain_known) && self.held.is_empty()
    }

    /// Handles a reply. A reply of another kind than the call expects is ignored: the call is repeated.
    fn replied(&mut self, now: u64, to: CallId, reply: Reply) {
        match (to, reply) {
            (CallId::Register { number }, Reply::Registered(registered)) => {
                self.registered(number, &registered);
            }
            (CallId::Register { number }, Reply::Order(order)) => self.ordered(now, number, order),
            (CallId::Beat { number }, Reply::Verdict(verdict)) => self.beat_answered(number, verdict),
            (CallId::Checkpoint { unit, number }, Reply::Verdict(verdict)) => {
                self.kept(unit, number, verdict)
            }
            (CallId::Checkpoint { unit, number }, Reply::Refused(why)) => {
                self.checkpoint_refused(unit, number, why);
            }
            (CallId::Report { unit }, Reply::Verdict(_)) => self.reported(unit),
            (CallId::Report { unit }, Reply::Refused(why)) => self.report_refused(now, unit, *why),
            (
                CallId::Register { .. }
                | CallId::Beat { .. }
                | CallId::Checkpoint { .. }
                | CallId::Report { .. },
                Reply::Registered(_)
                | Reply::Order(_)
                | Reply::Verdict(_)
                | Reply::Agent(_)
                | Reply::Resource(_)
                | Reply::Refused(_),
            ) => {}
        }
    }

    fn call(&mut self, id: CallId, call: Call) {
        self.out.push(Output::Call { id, call });
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn registered(&mut self, number: u64, registered: &Registered) {
        if let Link::Registering { number: asked, sent_at, .. } = self.link
            && asked == number
        {
            self.times = LeaseTimes { ttl_ms: registered.rules.lease_ttl_ms.unwrap_or(LEASE_TTL_MS) };
            let (session, beat_at) = (registered.session, sent_at + self.times.beat_every_ms());
            self.link = Link::Open { number, session, lease_from: sent_at, beat_at };
        }
    }

    /// Returns the time from which the lease of an ordered unit is counted; None for an earlier registration.
    fn lease_from(&self, number: u64) -> Option<u64> {
        match self.link {
            Link::Registering { number: current, sent_at, .. } => (current == number).then_some(sent_at),
            Link::Open { number: current, lease_from, .. } => (current == number).then_some(lease_from),
            Link::Emptying => None,
        }
    }

    fn ordered(&mut self, now: u64, number: u64, order: Order) {
        let Some(lease_from) = self.lease_from(number) else { return };
        match order {
            Order::Run(work) => self.run(now, work, lease_from),
            Order::Stop { unit, grace_ms } => self.stop(now, unit, grace_ms, lease_from),
            Order::Unknown => self.forgotten(),
        }
    }

    /// Handles a reply that the engine does not know this session: all its units are lost.
    fn forgotten(&mut self) {
        self.link = Link::Emptying;
        self.beats.clear();
        // Without a session no new units can arrive.
        self.is_drain_known |= self.draining;
        self.give_up_all(self.times.grace_ms());
        self.held.retain(|_, held| held.is_local());
    }

    fn beat_answered(&mut self, number: u64, verdict: Verdict) {
        let Some(SentBeat { at: sent_at, listed, draining }) = self.beats.remove(&number) else { return };
        if verdict != Verdict::Accepted {
            return self.forgotten();
        }
        self.is_drain_known |= draining;
        if let Link::Open { lease_from, beat_at, .. } = &mut self.link {
            *lease_from = (*lease_from).max(sent_at);
            *beat_at = (*beat_at).max(sent_at + self.times.beat_every_ms());
        }
        for unit in listed {
            if let Some(held) = self.held.get_mut(&unit) {
                held.lease_from = held.lease_from.max(sent_at);
            }
        }
        self.beats.retain(|_, earlier| earlier.at > sent_at);
    }

    fn drain(&mut self, now: u64) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        match self.link {
            Link::Open { session, .. } => self.send_beat(now, session),
            // Without a session no units could arrive.
            Link::Emptying | Link::Registering { .. } => self.closing = Some(now + LAST_ANSWERS_MS),
        }
    }

    fn shut_down(&mut self, now: u64, grace_ms: u64) {
        self.closing = Some(now + LAST_ANSWERS_MS);
        self.give_up_all(grace_ms);
    }

    fn due(&mut self, now: u64) {
        self.leases(now);
        self.resend(now);
        if self.closing.is_some_and(|until| now >= until) {
            self.held.retain(|_, held| held.is_local());
        }
        match self.link {
            Link::Emptying if self.held.is_empty() && self.closing.is_none() && !self.draining => {
                self.send_register(now, Again::first(now));
            }
            Link::Registering { again, .. } if now >= again.at && self.closing.is_none() => {
                self.send_register(now, again.later(now));
            }
            Link::Open { session, beat_at, .. } if now >= beat_at => self.send_beat(now, session),
            Link::Emptying | Link::Registering { .. } | Link::Open { .. } => {}
        }
    }

    /// Registers under a new number each time: replies to an earlier one belong to a session that is abandoned.
    fn send_register(&mut self, now: u64, again: Again) {
        let number = self.number();
        self.link = Link::Registering { number, sent_at: now, again };
        self.call(CallId::Register { number }, Call::Register(self.register.clone()));
    }

    fn send_beat(&mut self, now: u64, session: SessionId) {
        let number = self.number();
        let holds: Vec<Unit> = self.holds().collect();
        // A reply that is older than the leases renews none of them.
        let ttl_ms = self.times.ttl_ms;
        self.beats.retain(|_, sent| sent.at + ttl_ms > now);
        self.beats.insert(number, SentBeat { at: now, listed: holds.clone(), draining: self.draining });
        if let Link::Open { beat_at, .. } = &mut self.link {
            *beat_at = now + self.times.beat_again_ms();
        }
        self.call(CallId::Beat { number }, Call::Beat(Beat { session, holds, draining: self.draining }));
    }
}
