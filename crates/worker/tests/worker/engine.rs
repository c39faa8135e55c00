//! An engine that accepts everything, and passes the messages of the worker to the test.

use crate::sandbox::sandbox_command;
use crate::supervisor::supervisor_command;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use windlass_protocol::*;
use windlass_secrets::Zeroizing;
use windlass_worker::egress::Egress;
use windlass_worker::{CHUNK_MAX, Pool, PoolConfig};

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
    stored: Mutex<Stored>,
    rules: Arc<WorkerRules>,
}

/// Data that the engine stores for units, by tenant.
#[derive(Default)]
struct Stored {
    /// Tenant and workflow of every unit that was ordered.
    owners: BTreeMap<Unit, (String, Option<String>)>,
    artifacts: BTreeMap<(String, String), Vec<u8>>,
    memories: Vec<((String, Option<String>), Memory)>,
}

impl Engine {
    fn forward(&self, heard: Heard) {
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
                let rules = self.rules.clone();
                reply(Reply::Registered(Registered { session: SessionId(1), rules }));
                *self.orders.lock().unwrap() = Some(reply);
                self.forward(Heard::Registered);
            }
            Call::Beat(_) => reply(ACCEPTED),
            Call::Report(report) => {
                reply(ACCEPTED);
                self.forward(Heard::Report(report));
            }
            Call::Checkpoint(checkpoint) => {
                let answer = Box::new(move |verdict| reply(Reply::Verdict(verdict)));
                self.forward(Heard::Checkpoint(checkpoint, answer));
            }
            Call::Agent(call) => {
                let answer = Box::new(move |answer| reply(Reply::Agent(Box::new(answer))));
                self.forward(Heard::Agent(*call, answer));
            }
            Call::Resource(call) => {
                let served = self.stored.lock().unwrap().serve(*call);
                reply(Reply::Resource(Box::new(served)));
            }
            Call::Progress(progress) => {
                reply(ACCEPTED);
                self.forward(Heard::Progress(progress));
            }
            Call::Leave(session) => {
                reply(ACCEPTED);
                self.forward(Heard::Left(session));
            }
            Call::Log(log) => {
                assert!(log.lines.iter().map(|line| line.text.len()).sum::<usize>() <= CHUNK_MAX);
                match &mut *self.held_back.lock().unwrap() {
                    Some(held_back) => held_back.push(reply),
                    None => reply(ACCEPTED),
                }
                log.lines.into_iter().for_each(|line| self.forward(Heard::Line(line)));
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
pub struct Finished {
    pub outcome: Outcome,
    pub lines: Vec<Line>,
    pub patch: Map<String, Value>,
    pub metadata: Map<String, Value>,
    pub progress: Vec<Progress>,
}

impl Finished {
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

impl Stored {
    fn serve(&mut self, call: ResourceCall) -> ResourceReply {
        let Some(owner) = self.owners.get(&call.unit).cloned() else { return ResourceReply::Stale };
        let tenant = owner.0.clone();
        match call.ask {
            ResourceAsk::GetRights => {
                ResourceReply::Rights(Rights { programs: true, variables: Variables::All })
            }
            ResourceAsk::OpenSecret { name } => open_secret(&tenant, &name),
            ResourceAsk::PutArtifact { key, body } => {
                self.artifacts.insert((tenant, key), body.bytes);
                ResourceReply::Stored
            }
            ResourceAsk::GetArtifact { key } | ResourceAsk::GetArtifactFile { key } => {
                ResourceReply::Artifact(self.artifacts.get(&(tenant, key)).cloned().map(Body::from))
            }
            ResourceAsk::StoreMemory { key, value } => {
                self.memories.push((owner, Memory { key, value, at: 0 }));
                ResourceReply::Stored
            }
            ResourceAsk::FindRoutingKey { target } => ResourceReply::RoutingKey(target.routing_key),
            ResourceAsk::SearchMemory(search) => {
                let own = self.memories.iter().filter(|(of, _)| *of == owner).map(|(_, memory)| memory);
                let prefix = search.prefix.unwrap_or_default();
                let found = own.filter(|memory| memory.key.starts_with(&prefix)).take(search.limit);
                ResourceReply::Memories(found.cloned().collect())
            }
        }
    }
}

/// One secret for each of two tenants, under one name.
fn open_secret(tenant: &str, name: &str) -> ResourceReply {
    let value = match (tenant, name) {
        ("default", "api-key") => "hunter22-default",
        ("tnt_b", "api-key") => "hunter22-other",
        _ => {
            let message = format!("there is no secret `{name}`: store it with `windlass secrets set {name}`");
            return ResourceReply::Failed(Failure::of_code("RESOURCE_NOT_FOUND", message));
        }
    };
    ResourceReply::Secret(SecretValue(Zeroizing::new(value.to_owned())))
}

impl Shop {
    /// Opens a shop whose steps may reach this machine.
    pub fn open() -> Shop {
        Shop::reaching(Egress { allow_private: true, allow: vec![] })
    }

    pub fn reaching(egress: Egress) -> Shop {
        Shop::start(egress, |config| config)
    }

    pub fn with(change: impl FnOnce(PoolConfig) -> PoolConfig) -> Shop {
        Shop::start(Egress::default(), change)
    }

    fn start(egress: Egress, change: impl FnOnce(PoolConfig) -> PoolConfig) -> Shop {
        let (sender, heard) = channel();
        let rules = Arc::new(WorkerRules { egress: egress.rules(), ..WorkerRules::default() });
        let engine = Arc::new(Engine { heard: Mutex::new(Some(sender)), rules, ..Engine::default() });
        let config = change(PoolConfig::new("test", supervisor_command(), sandbox_command()));
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
        if let Order::Run(work) = &order {
            let owner = (work.tenant.clone(), work.workflow.clone());
            self.engine.stored.lock().unwrap().owners.insert(work.unit, owner);
        }
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

    /// Waits until as many chunks as are allowed are unanswered. Returns their number of bytes.
    pub fn until_logs_wait(&self) -> usize {
        let mut bytes = 0;
        while self.engine.unanswered_logs() < UNANSWERED_MAX {
            let Heard::Line(line) = self.hear() else { panic!("only lines come") };
            bytes += line.text.len() + 1;
        }
        bytes
    }

    /// Waits for the report; checkpoints are accepted.
    pub fn finished(&self) -> Finished {
        let (mut lines, mut progress) = (Vec::new(), Vec::new());
        loop {
            match self.hear() {
                Heard::Registered | Heard::Left(_) => {}
                Heard::Agent(call, _) => panic!("unexpected call: {call:?}"),
                Heard::Progress(one) => progress.push(one),
                Heard::Line(line) => lines.push(line),
                Heard::Checkpoint(_, reply) => reply(Verdict::Accepted),
                Heard::Report(report) => {
                    let Report { outcome, patch, metadata, .. } = *report;
                    return Finished { outcome, lines, patch, metadata, progress };
                }
            }
        }
    }

    pub fn run(&self, work: Work) -> Finished {
        self.order(Order::Run(Box::new(work)));
        self.finished()
    }

    /// Shuts the pool down; nothing is received after that.
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
        losses: 0,
        spec,
        scope,
        cursor: None,
        timeout_ms: None,
        tenant: "default".into(),
        workflow: None,
        debug: false,
        decided_ms: None,
        no_room: None,
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
