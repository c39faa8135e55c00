//! The lane driven by hand: the disk answers and the clocks move when the test lets them.

use crate::COMPLETED;
use crate::rig::{definition, net, report, start, task};
use serde_json::json;
use std::sync::Arc;
use windlass_engine::{
    ChildCheck, Config, Effect, EngineAnswer, GroupCall, GroupReply, Lane, Lookup, Now, Request, SessionKey,
    Wake, look_up,
};
use windlass_kernel::net::{Policy, Retry, Step};
use windlass_kernel::{ExecutionId, Millis, Outcome as End, Phase};
use windlass_protocol::{
    AgentAnswer, AgentAsk, AgentCall, Call, Checkpoint, Failure, Order, Outcome, PROTOCOL_VERSION, Register,
    Reply, SessionId, Verdict, Work,
};
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{DefinitionId, Quarantine, Reader as _, Runner, Session, Store, Tenant, WorkerSession};

const ACCEPTED: EngineAnswer = EngineAnswer::Reply(Reply::Verdict(Verdict::Accepted));

struct Process<'s> {
    lane: Lane<()>,
    store: &'s mut Sqlite,
    reader: SqliteReader,
    now: u64,
    /// Difference of the wall clock from the steady one.
    off: i64,
    /// Whether the list of offers that the last process left is read.
    recovers: bool,
    orders: Vec<Order>,
}

impl<'s> Process<'s> {
    fn start(store: &'s mut Sqlite, seed: u64, recovers: bool) -> Process<'s> {
        Process::of(store, Config { seed, ..Config::default() }, recovers)
    }

    fn of(store: &'s mut Sqlite, config: Config, recovers: bool) -> Process<'s> {
        let reader = store.reader().unwrap();
        let lane = Lane::new(config, at(0, 0));
        Process { lane, store, reader, now: 0, off: 0, recovers, orders: Vec::new() }
    }

    fn ask(&mut self, request: Request) -> EngineAnswer {
        self.wake(Wake::Ask(request, ())).expect("an answer")
    }

    fn call(&mut self, call: Call) -> EngineAnswer {
        self.wake(Wake::Call(call, ())).expect("an answer")
    }

    fn passes(&mut self, ms: u64) {
        self.now += ms;
        self.wake(Wake::Tick);
    }

    /// Runs until the disk has answered everything.
    fn wake(&mut self, wake: Wake<()>) -> Option<EngineAnswer> {
        let (mut wakes, mut answered) = (vec![wake], None);
        while !wakes.is_empty() {
            wakes.drain(..).for_each(|wake| self.lane.wake(wake, at(self.now, self.off)));
            self.lane.settle();
            for effect in self.lane.take_effects() {
                match effect {
                    Effect::Answer((), answer) => answered = Some(answer),
                    Effect::Write(batch) => wakes.push(Wake::Written(self.store.write(&batch))),
                    Effect::Read(_, Lookup::Offers { .. }) if !self.recovers => {}
                    Effect::Read(id, lookup) => {
                        let found = look_up(&mut self.reader, &lookup, &ChildCheck::default());
                        wakes.push(Wake::Found(id, found));
                    }
                    Effect::Order(_, order) => self.orders.push(order),
                    Effect::SessionOpen(..) | Effect::SessionOver(_) | Effect::Changed(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
        answered
    }

    fn register(&mut self) {
        let register = Register { protocol: PROTOCOL_VERSION, worker: "test".into(), slots: 1 };
        self.wake(Wake::Call(Call::Register(register), ()));
        // What waits for a slot is handed out.
        self.passes(0);
    }

    fn work(&mut self) -> Work {
        match self.orders.pop() {
            Some(Order::Run(work)) => *work,
            other => panic!("{other:?}"),
        }
    }
}

fn at(steady: u64, off: i64) -> Now {
    Now { wall: Millis(1_000_000 + i64::try_from(steady).unwrap() + off), steady }
}

/// A step that continues at its checkpoint, after its process died.
fn before(store: &mut Sqlite) -> Work {
    let mut process = Process::start(store, 1, true);
    let retry = Retry { attempts_max: 2, resumes: true, ..Retry::default() };
    let step = Step { retry, ..task("agent", &[]) };
    let defined =
        process.ask(Request::Define(Box::new(definition("one", net(Policy::default(), vec![step])))));
    assert!(matches!(defined, EngineAnswer::Defined { .. }), "{defined:?}");
    process.register();
    assert!(matches!(
        process.ask(Request::Start(Box::new(start(DefinitionId(1), json!({}))))),
        EngineAnswer::Started(_)
    ));
    let work = process.work();
    let checkpoint = Checkpoint { unit: work.unit, number: 1, cursor: Arc::new(json!({ "calls": 3 })) };
    assert_eq!(process.call(Call::Checkpoint(checkpoint)), ACCEPTED);
    work
}

#[track_caller]
fn check(outcome: Outcome, then_ms: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
    let work = before(&mut store);
    let mut process = Process::start(&mut store, 2, false);
    let judged = process.call(Call::Report(Box::new(report(&work, outcome))));
    assert_eq!(judged, ACCEPTED);
    process.passes(then_ms);
    process.register();
    let again = process.work();
    assert!(again.unit.fence > work.unit.fence);
    assert_eq!(again.cursor.as_deref(), Some(&json!({ "calls": 3 })), "it continues at its checkpoint");
}

#[test]
fn work_of_the_last_process_that_fails_continues_at_its_checkpoint() {
    let failure = Failure { retryable: Some(true), ..Failure::of_code("SERVICE_UNAVAILABLE", "it is so") };
    check(Outcome::Failed(failure), 1_000);
}

#[test]
fn work_of_the_last_process_that_its_worker_drops_continues_at_its_checkpoint() {
    check(Outcome::Stopped, 0);
}

/// Timers are read a window ahead. A clock that jumps beyond the window must not wait for the next reading.
#[test]
fn a_timer_set_after_the_clock_jumped_is_on_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
    let mut process = Process::start(&mut store, 1, true);
    let nap = serde_json::from_value(json!({ "delay": { "ms": 5_000 } })).unwrap();
    let net = net(Policy::default(), vec![Step::new("nap", nap)]);
    process.ask(Request::Define(Box::new(definition("nap", net))));
    process.off = 600_000;
    process.passes(0);
    let EngineAnswer::Started(id) = process.ask(Request::Start(Box::new(start(DefinitionId(1), json!({})))))
    else {
        panic!("it starts")
    };
    process.passes(4_999);
    assert_eq!(process.wake(Wake::Ask(Request::Await(id), ())), None, "it naps");
    process.now += 1;
    assert_eq!(process.wake(Wake::Tick), Some(COMPLETED));
}

/// A step that starts another execution, at a worker outside of the process.
fn held_outside(store: &mut Sqlite, session: &WorkerSession) -> Work {
    let mut process = Process::start(store, 1, true);
    let opened = process.ask(Request::Group(GroupCall::Open(Box::new(session.clone()))));
    assert_eq!(opened, EngineAnswer::Group(GroupReply::Opened));
    process.wake(Wake::Ask(Request::Group(GroupCall::Attach { session: key(session) }), ()));
    let net = net(Policy::default(), vec![task("child", &[])]);
    process.ask(Request::Define(Box::new(definition("one", net))));
    let mut start = start(DefinitionId(1), json!({}));
    let runner = Runner { group: session.group.clone(), cluster: None };
    Arc::make_mut(&mut start.origin).options.runner = Some(runner);
    assert!(matches!(process.ask(Request::Start(Box::new(start))), EngineAnswer::Started(_)));
    process.passes(0);
    process.work()
}

fn key(session: &WorkerSession) -> SessionKey {
    let id = SessionId(session.id.0);
    SessionKey { id, digest: session.digest, tenant: session.tenant.clone(), group: None }
}

/// Other calls of the same request would fail with it.
#[test]
fn a_call_for_a_quarantined_execution_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
    let session = WorkerSession {
        id: Session(7),
        digest: [1; 32],
        tenant: Tenant::default(),
        group: "lab".to_owned(),
        cluster: None,
        slots: 1,
        worker: "w".to_owned(),
        opened_at: Millis(1_000_000),
        expires_at: Millis(2_000_000),
    };
    let work = held_outside(&mut store, &session);
    let quarantine = Quarantine { since: Millis(1), reason: "it is so".to_owned(), deaths: 3 };
    let config = Config {
        seed: 2,
        sessions: vec![session.clone()],
        quarantined: vec![(ExecutionId(work.unit.execution), quarantine)],
        ..Config::default()
    };
    let mut process = Process::of(&mut store, config, true);
    process.passes(0);
    let child =
        Outcome::Child { definition: json!({ "path": "other" }), inputs: json!({}), cursor: json!({}) };
    let relay = |call| GroupCall::Relay { session: key(&session), call: Box::new(call), audit: None };
    let reported = process.ask(Request::Group(relay(Call::Report(Box::new(report(&work, child))))));
    assert_eq!(reported, EngineAnswer::Reply(Reply::Verdict(Verdict::Stale)));
    let (unit, ask) = (work.unit, AgentAsk::Pause { reason: "x".to_owned() });
    let agent = AgentCall { unit, call: "1".to_owned(), ask };
    let asked = process.ask(Request::Group(relay(Call::Agent(Box::new(agent)))));
    assert_eq!(asked, EngineAnswer::Reply(Reply::Agent(Box::new(AgentAnswer::Stale))));
}

#[test]
fn a_worker_that_disappears_before_it_is_ready_counts_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
    let config = Config::default();
    let ttl = config.lease_ttl_ms;
    let mut process = Process::of(&mut store, config, true);
    let plan = definition("plan", crate::whole::plan(1));
    assert!(matches!(process.ask(Request::Define(Box::new(plan))), EngineAnswer::Defined { .. }));
    let started = process.ask(Request::Start(Box::new(start(DefinitionId(1), json!({})))));
    let EngineAnswer::Started(id) = started else { panic!("{started:?}") };
    for losses in 0..5 {
        process.register();
        let whole = process.work();
        assert_eq!((whole.unit.is_whole(), whole.losses), (true, losses));
        process.passes(ttl + 1);
    }
    drop(process);
    let stored = store.reader().unwrap().load(id).unwrap().expect("an execution");
    assert_eq!(stored.state.phase(), Phase::Ended(End::Failed));
}
