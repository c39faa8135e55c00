//! An engine in a temporary folder, and a worker that is the test itself.

use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use windlass_engine::{Config, Engine, EngineAnswer, Request, Start};
use windlass_kernel::net::{JoinArc, NetSpec, Policy, Step, Work};
use windlass_kernel::{Event, ExecutionId, Millis, Net, StepId};
use windlass_protocol::{
    self as protocol, AgentAsk, AgentCall, Call, Order, Outcome, Register, Reply, Report, SessionId, Verdict,
};
use windlass_store::sqlite::{Sqlite, SqliteReader};
use windlass_store::{
    Applied, Definition, DefinitionId, Mail, MailId, Reader, Store, StoreError, StoredManifest, Target,
    Tenant, WorkflowId, Write,
};

/// A test that waits this long for an order has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Rig {
    folder: tempfile::TempDir,
    engine: Option<Engine>,
    orders: Receiver<Order>,
    session: SessionId,
    pub slots: u32,
    config: Config,
    /// No two processes draw the same ids.
    life: u64,
}

pub fn task(name: &str, to: &[u32]) -> Step {
    let mut step = Step::new(name, Work::task(json!({ "tasks": [] })));
    step.router.arcs = to.iter().map(|to| JoinArc::to(StepId(*to))).collect();
    step
}

pub fn net(policy: Policy, steps: Vec<Step>) -> Arc<Net> {
    Arc::new(Net::new(NetSpec { steps, policy }).unwrap())
}

pub fn chain(length: u32) -> Arc<Net> {
    let next = |n: u32| if n + 1 < length { vec![n + 1] } else { Vec::new() };
    net(Policy::default(), (0..length).map(|n| task(&format!("s{n}"), &next(n))).collect())
}

impl Rig {
    pub fn new() -> Rig {
        Rig::with_slots(8)
    }

    pub fn with_slots(slots: u32) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
        Rig::over(folder, store, slots)
    }

    /// The store fails after that many batches.
    pub fn failing_after(batches: u32) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
        Rig::over(folder, Failing { store, left: batches }, 1)
    }

    pub fn with_config(config: Config, slots: u32) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("windlass.db")).unwrap();
        let engine = Engine::start_with(store, config.clone(), None).unwrap();
        Rig { config, ..Rig::of(folder, engine, slots) }
    }

    fn over(folder: tempfile::TempDir, store: impl Store, slots: u32) -> Rig {
        Rig::of(folder, Engine::start(store, 7).unwrap(), slots)
    }

    fn of(folder: tempfile::TempDir, engine: Engine, slots: u32) -> Rig {
        let (session, orders) = register(&engine, slots);
        Rig { folder, engine: Some(engine), orders, session, slots, config: Config::default(), life: 0 }
    }

    /// Another worker.
    pub fn worker(&self, slots: u32) -> (SessionId, Receiver<Order>) {
        register(self.engine.as_ref().unwrap(), slots)
    }

    /// The process ends; `restart` begins the next.
    pub fn stop(&mut self) {
        if let Some(engine) = self.engine.take() {
            assert_eq!(engine.stop(), None);
        }
    }

    /// Posts mail as another process does.
    pub fn post(&self, mail: &Mail) -> MailId {
        let mut store = Sqlite::open(&self.folder.path().join("windlass.db")).unwrap();
        match store.write(&[Write::Accept(mail.clone())]).unwrap()[..] {
            [Applied::Accepted(id)] => id,
            ref other => panic!("mail was answered {other:?}"),
        }
    }

    pub fn letter_answer(&self, mail: MailId) -> Option<Result<(), String>> {
        self.reader().answer(mail).unwrap()
    }

    pub fn until_answered(&self, mail: MailId) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(answer) = self.letter_answer(mail) {
                return answer;
            }
            assert!(Instant::now() < end, "the letter is not answered");
            std::thread::yield_now();
        }
    }

    /// Everything the process had in memory is gone; the worker is a new one.
    pub fn restart(&mut self) {
        self.stop();
        let store = Sqlite::open(&self.folder.path().join("windlass.db")).unwrap();
        self.life += 1;
        let config = Config { seed: 7 + self.life, ..self.config.clone() };
        let engine = Engine::start_with(store, config, None).unwrap();
        (self.session, self.orders) = register(&engine, self.slots);
        self.engine = Some(engine);
    }

    /// The worker says goodbye; another one takes its place.
    pub fn leave(&mut self) {
        assert_eq!(self.send(Call::Leave(self.session)), Reply::Verdict(Verdict::Accepted));
        (self.session, self.orders) = register(self.engine.as_ref().unwrap(), self.slots);
    }

    /// Restarts as after a regular stop of the process: the worker ends first, then the engine.
    pub fn restart_in_order(&mut self) {
        assert_eq!(self.send(Call::Leave(self.session)), Reply::Verdict(Verdict::Accepted));
        self.restart();
    }

    pub fn call(&self, request: Request) -> EngineAnswer {
        self.engine.as_ref().unwrap().handle().call(request).unwrap()
    }

    /// A call of a worker.
    pub fn send(&self, call: Call) -> Reply {
        self.start_call(call).recv_timeout(PATIENCE).expect("a reply")
    }

    fn start_call(&self, call: Call) -> Receiver<Reply> {
        let (sender, replies) = channel();
        let handle = self.engine.as_ref().unwrap().handle();
        handle.send(call, Box::new(move |reply| drop(sender.send(reply))));
        replies
    }

    pub fn define(&self, name: &str, net: Arc<Net>) -> DefinitionId {
        match self.call(Request::Define(Box::new(definition(name, net)))) {
            EngineAnswer::Defined { id, .. } => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn define_only(&self, name: &str, net: Arc<Net>) {
        assert_eq!(self.define(name, net), DefinitionId(1));
    }

    pub fn start(&self, name: &str, net: Arc<Net>, inputs: Value) -> ExecutionId {
        let definition = self.define(name, net);
        match self.call(Request::Start(Box::new(start(definition, inputs)))) {
            EngineAnswer::Started(id) => id,
            other => panic!("{other:?}"),
        }
    }

    pub fn ask_start(&self) -> Option<EngineAnswer> {
        let request = Request::Start(Box::new(start(DefinitionId(1), json!({}))));
        self.engine.as_ref().unwrap().handle().call(request)
    }

    pub fn order(&self) -> Order {
        self.orders.recv_timeout(PATIENCE).expect("an order for the worker")
    }

    pub fn work(&self) -> protocol::Work {
        match self.order() {
            Order::Run(work) => *work,
            other => panic!("{other:?}"),
        }
    }

    /// No order is there. What was answered before has led to its orders by now: both leave in one go.
    pub fn idle(&self) -> bool {
        self.orders.try_recv().is_err()
    }

    pub fn done(&self, work: &protocol::Work, output: Value) -> Verdict {
        self.report(work, Outcome::Done { output })
    }

    pub fn report(&self, work: &protocol::Work, outcome: Outcome) -> Verdict {
        match self.send(Call::Report(Box::new(report(work, outcome)))) {
            Reply::Verdict(verdict) => verdict,
            other => panic!("{other:?}"),
        }
    }

    /// An agent's call; its answer may take long.
    pub fn ask_agent(&self, agent: &protocol::Work, call: &str, ask: AgentAsk) -> Receiver<Reply> {
        let call = AgentCall { unit: agent.unit, call: call.to_owned(), ask };
        self.start_call(Call::Agent(Box::new(call)))
    }

    /// All at once, without waiting for one answer before the next report.
    pub fn done_all(&self, all: &[protocol::Work]) {
        let report = |work| report(work, Outcome::Done { output: json!(1) });
        let replies: Vec<_> =
            all.iter().map(|work| self.start_call(Call::Report(Box::new(report(work))))).collect();
        for reply in replies {
            assert_eq!(reply.recv_timeout(PATIENCE), Ok(Reply::Verdict(Verdict::Accepted)));
        }
    }

    pub fn reader(&self) -> SqliteReader {
        Sqlite::read_only(&self.folder.path().join("windlass.db")).unwrap()
    }

    pub fn rows(&self, id: ExecutionId) -> usize {
        self.reader().journal(id, 0, 100_000).unwrap().len()
    }

    pub fn events(&self, id: ExecutionId) -> Vec<Event> {
        let journal = windlass_engine::journal(&mut self.reader(), id).unwrap();
        journal.into_iter().map(|record| record.event).collect()
    }

    pub fn stops(&self) -> usize {
        self.reader().stops(None, 100).unwrap().len()
    }

    pub fn fatal(&self) -> String {
        let ended = self.engine.as_ref().unwrap().ended().recv_timeout(PATIENCE).unwrap();
        ended.expect("it ended by itself").to_string()
    }
}

pub fn definition(name: &str, net: Arc<Net>) -> Definition {
    Definition {
        tenant: Tenant::default(),
        target: Target::Named(WorkflowId(name.bytes().fold(7, |sum, byte| (sum << 5) ^ u128::from(byte)))),
        name: name.into(),
        dialect: "playbook".into(),
        source: format!("{name} {:?}", net.digest()),
        workload: json!({}),
        manifest: StoredManifest::default(),
        net,
        hooks: Vec::new(),
        schedules: Vec::new(),
        at: Millis(0),
        status: None,
        author: None,
    }
}

pub fn start(definition: DefinitionId, inputs: Value) -> Start {
    Start::by_hand(definition, inputs, json!({}))
}

pub fn report(work: &protocol::Work, outcome: Outcome) -> Report {
    Report { unit: work.unit, outcome, patch: serde_json::Map::new(), metadata: serde_json::Map::new() }
}

fn register(engine: &Engine, slots: u32) -> (SessionId, Receiver<Order>) {
    let (sender, orders) = channel();
    let (registered, answer) = channel();
    let register = Register { protocol: protocol::PROTOCOL_VERSION, worker: "test".into(), slots };
    let heard = move |reply| match reply {
        Reply::Order(order) => drop(sender.send(order)),
        other => drop(registered.send(other)),
    };
    engine.handle().send(Call::Register(register), Box::new(heard));
    match answer.recv_timeout(PATIENCE) {
        Ok(Reply::Registered(registered)) => (registered.session, orders),
        other => panic!("{other:?}"),
    }
}

struct Failing {
    store: Sqlite,
    left: u32,
}

impl Store for Failing {
    type Reader = SqliteReader;

    fn write(&mut self, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
        if self.left == 0 {
            return Err(StoreError::Full("no space".into()));
        }
        self.left -= 1;
        self.store.write(batch)
    }

    fn reader(&self) -> Result<SqliteReader, StoreError> {
        self.store.reader()
    }
}
