//! An engine that says yes, and tells the test what it hears.

use crate::sandbox::sandbox_command;
use crate::supervisor::supervisor_command;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_artifact::Artifact;
use windlass_protocol::*;
use windlass_worker::egress::Egress;
use windlass_worker::{Artifacts, CHUNK_MAX, Pool, PoolConfig};

/// Nothing here takes so long unless it is broken.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Chunks that a worker sends without an answer.
pub const UNANSWERED_MAX: usize = 4;

/// Answers one call.
pub type Answer<T> = Box<dyn FnOnce(T) + Send>;

pub enum Heard {
    Registered,
    Line(Line),
    Checkpoint(Checkpoint, Answer<Verdict>),
    Report(Box<Report>),
    Left(SessionId),
    Progress(Progress),
    Agent(AgentCall, Answer<AgentAnswer>),
}

/// Log chunks are answered at once, or kept until `release`.
#[derive(Default)]
pub struct Engine {
    orders: Mutex<Option<ReplyTo>>,
    heard: Mutex<Option<Sender<Heard>>>,
    held_back: Mutex<Option<Vec<ReplyTo>>>,
}

impl Engine {
    fn tell(&self, heard: Heard) {
        if let Some(heard_by) = &*self.heard.lock().unwrap() {
            let _ = heard_by.send(heard);
        }
    }

    pub fn hold_back_logs(&self) {
        *self.held_back.lock().unwrap() = Some(Vec::new());
    }

    pub fn unanswered_logs(&self) -> usize {
        self.held_back.lock().unwrap().as_ref().map_or(0, Vec::len)
    }

    pub fn release_logs(&self) {
        let held_back = self.held_back.lock().unwrap().take();
        held_back.into_iter().flatten().for_each(|mut reply| reply(ACCEPTED));
    }
}

const ACCEPTED: Reply = Reply::Verdict(Verdict::Accepted);

impl Engine {
    fn take(&self, call: Call, mut reply: ReplyTo) {
        match call {
            Call::Register(_) => {
                reply(Reply::Registered(SessionId(1)));
                *self.orders.lock().unwrap() = Some(reply);
                self.tell(Heard::Registered);
            }
            Call::Beat(_) => reply(ACCEPTED),
            Call::Report(report) => {
                reply(ACCEPTED);
                self.tell(Heard::Report(report));
            }
            Call::Checkpoint(checkpoint) => {
                let answer = Box::new(move |verdict| reply(Reply::Verdict(verdict)));
                self.tell(Heard::Checkpoint(checkpoint, answer));
            }
            Call::Agent(call) => {
                let answer = Box::new(move |answer| reply(Reply::Agent(Box::new(answer))));
                self.tell(Heard::Agent(*call, answer));
            }
            Call::Progress(progress) => {
                reply(ACCEPTED);
                self.tell(Heard::Progress(progress));
            }
            Call::Leave(session) => {
                reply(ACCEPTED);
                self.tell(Heard::Left(session));
            }
            Call::Log(log) => {
                assert!(log.lines.iter().map(|line| line.text.len()).sum::<usize>() <= CHUNK_MAX);
                match &mut *self.held_back.lock().unwrap() {
                    Some(held_back) => held_back.push(reply),
                    None => reply(ACCEPTED),
                }
                log.lines.into_iter().for_each(|line| self.tell(Heard::Line(line)));
            }
        }
    }
}

/// A pool with its engine.
pub struct Shop {
    pub engine: Arc<Engine>,
    pub pool: Option<Pool>,
    heard: Receiver<Heard>,
}

/// All that was heard of one unit up to its report.
pub struct Told {
    pub outcome: Outcome,
    pub lines: Vec<Line>,
    pub patch: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub progress: Vec<Progress>,
}

impl Told {
    pub fn text(&self, stream: Stream) -> Vec<&str> {
        self.lines.iter().filter(|line| line.stream == stream).map(|line| line.text.as_str()).collect()
    }

    pub fn bytes(&self) -> usize {
        self.text(Stream::Out).iter().map(|line| line.len() + 1).sum()
    }

    pub fn output(&self) -> &Value {
        match &self.outcome {
            Outcome::Done { output } => output,
            other => panic!("it is not done: {other:?}"),
        }
    }

    pub fn failure(&self) -> &Failure {
        match &self.outcome {
            Outcome::Failed(failure) => failure,
            other => panic!("it did not fail: {other:?}"),
        }
    }
}

/// Artifacts that live as long as the worker.
#[derive(Debug, Default)]
pub struct Memory(Mutex<BTreeMap<(String, String), Vec<u8>>>);

impl Artifacts for Memory {
    fn keep(&self, tenant: &str, artifact: &Artifact) -> io::Result<()> {
        self.0.lock().unwrap().insert((tenant.to_owned(), artifact.key.clone()), artifact.bytes.clone());
        Ok(())
    }

    fn read(&self, tenant: &str, key: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(&(tenant.to_owned(), key.to_owned())).cloned())
    }
}

impl Shop {
    /// May reach this machine.
    pub fn open() -> Shop {
        Shop::reaching(Egress { allow_private: true, allow: vec![] })
    }

    pub fn reaching(egress: Egress) -> Shop {
        Shop::with(|config| PoolConfig { egress, ..config })
    }

    pub fn with(change: impl FnOnce(PoolConfig) -> PoolConfig) -> Shop {
        let (sender, heard) = channel();
        let engine = Arc::new(Engine { heard: Mutex::new(Some(sender)), ..Engine::default() });
        let artifacts = Arc::new(Memory::default());
        let config = change(PoolConfig::new("test", supervisor_command(), sandbox_command(), artifacts));
        let port = Arc::clone(&engine);
        let pool = Pool::start(config, Arc::new(move |call, reply| port.take(call, reply))).unwrap();
        let shop = Shop { engine, pool: Some(pool), heard };
        assert!(matches!(shop.hear(), Heard::Registered));
        shop
    }

    pub fn hear(&self) -> Heard {
        self.heard.recv_timeout(PATIENCE).expect("the worker says something in time")
    }

    pub fn order(&self, order: Order) {
        (self.engine.orders.lock().unwrap().as_mut().unwrap())(Reply::Order(order));
    }

    /// The next line that begins with the prefix; other lines are passed over.
    pub fn line(&self, prefix: &str) -> String {
        loop {
            match self.hear() {
                Heard::Line(line) if line.text.starts_with(prefix) => {
                    return line.text[prefix.len()..].to_owned();
                }
                Heard::Report(report) => panic!("it ended before `{prefix}`: {:?}", report.outcome),
                Heard::Registered | Heard::Line(_) | Heard::Checkpoint(..) => {}
                Heard::Left(_) | Heard::Progress(_) | Heard::Agent(..) => {}
            }
        }
    }

    /// Until as many chunks as are allowed wait for an answer. Tells how many bytes came.
    pub fn until_logs_wait(&self) -> usize {
        let mut bytes = 0;
        while self.engine.unanswered_logs() < UNANSWERED_MAX {
            let Heard::Line(line) = self.hear() else { panic!("only lines come") };
            bytes += line.text.len() + 1;
        }
        bytes
    }

    /// Up to the report. Checkpoints are accepted.
    pub fn told(&self) -> Told {
        let (mut lines, mut progress) = (Vec::new(), Vec::new());
        loop {
            match self.hear() {
                Heard::Registered | Heard::Left(_) => {}
                Heard::Agent(call, _) => panic!("nobody expects {call:?}"),
                Heard::Progress(one) => progress.push(one),
                Heard::Line(line) => lines.push(line),
                Heard::Checkpoint(_, reply) => reply(Verdict::Accepted),
                Heard::Report(report) => {
                    let Report { outcome, patch, metadata, .. } = *report;
                    return Told { outcome, lines, patch, metadata, progress };
                }
            }
        }
    }

    pub fn run(&self, work: Work) -> Told {
        self.order(Order::Run(Box::new(work)));
        self.told()
    }

    /// Nothing is heard any more once the pool is gone.
    pub fn shut_down(mut self) -> Vec<Heard> {
        self.pool.take().unwrap().shutdown();
        *self.engine.heard.lock().unwrap() = None;
        self.heard.try_iter().collect()
    }
}

pub const UNIT: Unit = Unit { execution: 0xabc, run: 7, fence: 1 };

pub fn pipeline(spec: Value) -> Work {
    let (step, spec) = ("a step".to_owned(), Arc::new(spec));
    let scope = Scope::default();
    Work {
        unit: UNIT,
        step,
        path: vec![],
        attempt: 2,
        spec,
        scope,
        cursor: None,
        timeout_ms: None,
        tenant: "default".into(),
        workflow: None,
        debug: false,
    }
}

/// A step with one shell task of these fields.
pub fn shell(config: Value) -> Work {
    pipeline(
        json!({ "inline_bytes": 1_000_000, "tasks": [{ "label": "cmd", "kind": "shell", "config": config }] }),
    )
}

pub fn command(text: &str) -> Work {
    shell(json!({ "command": text }))
}
