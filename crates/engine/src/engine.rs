//! A lane on threads: the loop, the writer, the reader. While a large batch is being written, the loop continues to
//! decide. It writes a small batch itself, which takes less time than handing it to another thread.

use crate::activity::{Activities, Activity};
use crate::fair::{FairThreads, WaitingMax};
use crate::ids::IdMap;
use crate::lane::{ChildCheck, Config, Lane};
use crate::reading::look_up;
use crate::resources::{ResourceRequest, Resources};
use crate::wake::{
    Effect, EngineAnswer, Fatal, Found, GroupCall, InputsLookup, Lookup, Now, ReadId, Request, SessionKey,
    Wake,
};
use crossbeam_channel::{Receiver, Sender, bounded, never, unbounded};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use windlass_kernel::{ExecutionId, Millis};
use windlass_protocol::{Call, Registered, Reply, ReplyTo, SessionId};
use windlass_store::{Applied, Store, StoreError, Write};

/// Maximum number of requests that wait for the loop; further callers wait until there is room.
const REQUESTS_MAX: usize = 4_096;
/// Maximum number of requests that are taken in one turn before the decisions are handed to the writer.
const REQUESTS_PER_TURN_MAX: usize = 512;
/// Maximum size of a batch that the loop writes itself when no other input waits and no more than this is expected:
/// handing it over costs more time than deciding meanwhile would save.
const WRITES_ON_THE_SPOT_MAX: usize = 8;
/// Threads that render and check inputs of starts: one more than a tenant may hold.
const INPUTS_THREADS: usize = 2;
/// Threads that serve resources to workers. They mostly wait for the disk, and a tenant may hold all but one.
const RESOURCE_THREADS: usize = 5;
/// Maximum time between two reads of the clock by the loop.
const SLEEP_MAX: Duration = Duration::from_secs(1);

/// Callback with the executions that changed, after the change is on disk. It is called from the engine's thread and
/// must be quick.
pub type Watch = Box<dyn Fn(&[ExecutionId]) + Send>;

/// Message for the loop.
enum EngineMessage {
    Request(Request, Box<dyn FnOnce(EngineAnswer) + Send>),
    Call(Call, ReplyTo),
    Attach(SessionKey, ReplyTo),
}

/// Receiver of an answer.
enum AnswerReceiver {
    Caller(Box<dyn FnOnce(EngineAnswer) + Send>),
    Worker(ReplyTo),
}

impl AnswerReceiver {
    fn answer(self, answer: EngineAnswer) {
        match (self, answer) {
            (AnswerReceiver::Caller(reply), answer) => reply(answer),
            (AnswerReceiver::Worker(mut reply), EngineAnswer::Reply(sent)) => reply(sent),
            // The engine stops: without a reply the worker repeats the call.
            (AnswerReceiver::Worker(_), _) => {}
        }
    }
}

/// Results of the other threads.
enum ThreadResult<S> {
    /// The store is returned with the answer.
    Written(Box<S>, Result<Vec<Applied>, StoreError>),
    Found(ReadId, Result<Found, StoreError>),
    /// A thread ended in the middle of its work.
    Died(&'static str),
}

/// A running engine over one store.
#[derive(Debug)]
pub struct Engine {
    handle: Handle,
    stop: Sender<()>,
    threads: Vec<JoinHandle<()>>,
    ended: Receiver<Option<Fatal>>,
}

/// A handle for requests to the engine; every caller has its own.
#[derive(Debug, Clone)]
pub struct Handle {
    requests: Sender<EngineMessage>,
    recovered: Arc<AtomicBool>,
}

impl Engine {
    /// Starts the threads. The unfinished work of the last process is continued at once.
    pub fn start<S: Store>(store: S, seed: u64) -> Result<Engine, StoreError> {
        Engine::start_with(store, Config { seed, ..Config::default() }, None)
    }

    /// Starts an engine with a configuration, and with a callback for changes.
    pub fn start_with<S: Store>(
        store: S,
        config: Config,
        watch: Option<Watch>,
    ) -> Result<Engine, StoreError> {
        let reader = store.reader()?;
        let (requests, asked) = bounded(REQUESTS_MAX);
        let late = asked.clone();
        let (stop, stopped) = bounded(1);
        let (has_ended, ended) = bounded(1);
        let (events, happened) = unbounded();
        let (batches, to_write) = bounded(1);
        let (lookups, to_read) = unbounded();
        let written = events.clone();
        let Activities { lane: activity, reader: reader_activity, writer: writer_activity } =
            config.activities.clone();
        let writer = spawn("writer", move || write_batches(&to_write, &written, &*writer_activity));
        let (found, check) = (events.clone(), config.check_child.clone());
        let readers = (0..INPUTS_THREADS).map(|_| store.reader()).collect::<Result<Vec<_>, _>>()?;
        let inputs = FairThreads::start("inputs", readers, WaitingMax::UNBOUNDED);
        let inputs = inputs.map_err(|error| StoreError::Io(format!("cannot start a thread: {error}")))?;
        let serving = FairThreads::start("resources", vec![(); RESOURCE_THREADS], WaitingMax::UNBOUNDED);
        let serving = serving.map_err(|error| StoreError::Io(format!("cannot start a thread: {error}")))?;
        let resources = config.resources.clone();
        let reading = spawn("reader", move || answer_lookups(reader, &to_read, &events, &*reader_activity));
        let began = Instant::now();
        let recovered = Arc::new(AtomicBool::new(false));
        let turn = LaneLoop {
            lane: Lane::new(Config { watched: watch.is_some(), ..config }, now(began)),
            watch,
            store: Some(Box::new(store)),
            on_the_spot: None,
            asked,
            happened,
            stopped,
            batches,
            lookups,
            inputs,
            found,
            check,
            resources,
            serving,
            sessions: IdMap::default(),
            recovered: recovered.clone(),
            began,
            activity,
        };
        let looping = spawn("lane", move || {
            let fatal = catch_unwind(AssertUnwindSafe(|| turn.run())).unwrap_or(Some(Fatal::Died));
            // A caller after the end gets a dropped reply.
            spawn("late", move || late.iter().for_each(drop));
            // Several callers may wait for the end, and each must be notified, now or later.
            spawn("ended", move || while has_ended.send(fatal.clone()).is_ok() {});
        });
        let handle = Handle { requests, recovered };
        Ok(Engine { handle, stop, threads: vec![looping, writer, reading], ended })
    }

    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Returns a channel that receives a message when the engine has ended, with the reason if no stop was requested.
    /// Every receiver gets it.
    #[must_use]
    pub fn ended(&self) -> &Receiver<Option<Fatal>> {
        &self.ended
    }

    /// Finishes and writes started work, answers all callers, and ends.
    pub fn stop(self) -> Option<Fatal> {
        let _ = self.stop.send(());
        let fatal = self.ended.recv().unwrap_or(Some(Fatal::Died));
        drop(self.handle);
        for thread in self.threads {
            let _ = thread.join();
        }
        fatal
    }
}

impl Handle {
    /// Returns a handle without an engine, which refuses every request. It is for a process that only reads.
    #[must_use]
    pub fn closed() -> Handle {
        Handle { requests: bounded(0).0, recovered: Arc::new(AtomicBool::new(true)) }
    }

    /// Sends a request. The answer is passed to a callback on the engine's thread, which must be quick. Blocks while
    /// too many requests wait. After the engine has ended, the callback is dropped without a call.
    pub fn ask(&self, request: Request, reply: impl FnOnce(EngineAnswer) + Send + 'static) {
        let _ = self.requests.send(EngineMessage::Request(request, Box::new(reply)));
    }

    /// Sends a request like [`Handle::ask`], unless too many requests wait: then it returns false.
    #[must_use]
    pub fn try_ask(&self, request: Request, reply: impl FnOnce(EngineAnswer) + Send + 'static) -> bool {
        self.requests.try_send(EngineMessage::Request(request, Box::new(reply))).is_ok()
    }

    /// Returns whether all unfinished work of the last process has been found.
    #[must_use]
    pub fn is_recovered(&self) -> bool {
        self.recovered.load(Ordering::Acquire)
    }

    /// Makes a call for a worker. Replies come from the engine's thread. Blocks while too many requests wait.
    pub fn send(&self, call: Call, reply: ReplyTo) {
        let _ = self.requests.send(EngineMessage::Call(call, reply));
    }

    /// Directs the orders of a session of a worker outside of this process to a callback until the session ends. It is
    /// called from the engine's thread. Returns false if too many requests wait.
    #[must_use]
    pub fn attach(&self, session: SessionKey, orders: ReplyTo) -> bool {
        self.requests.try_send(EngineMessage::Attach(session, orders)).is_ok()
    }

    /// Sends a request and waits for the answer; None when the engine has ended.
    #[must_use]
    pub fn call(&self, request: Request) -> Option<EngineAnswer> {
        let (sender, receiver) = bounded(1);
        self.ask(request, move |answer| {
            let _ = sender.send(answer);
        });
        receiver.recv().ok()
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let builder = std::thread::Builder::new().name(format!("windlass-{name}"));
    builder.spawn(work).expect("the system can start a thread")
}

fn write_batches<S: Store>(
    batches: &Receiver<(Box<S>, Vec<Write>)>,
    events: &Sender<ThreadResult<S>>,
    activity: &dyn Activity,
) {
    let _panic_report = PanicReport("writer", events);
    for (mut store, batch) in batches {
        activity.begin_work();
        let result = written(store.as_mut(), &batch);
        activity.begin_wait();
        if events.send(ThreadResult::Written(store, result)).is_err() {
            return;
        }
    }
}

/// Writes a batch and records its duration, because all callers wait for the disk.
fn written<S: Store>(store: &mut S, batch: &[Write]) -> Result<Vec<Applied>, StoreError> {
    let began = Instant::now();
    let result = store.write(batch);
    metrics::histogram!("windlass_commit_seconds").record(began.elapsed());
    result
}

fn answer_lookups<S: Store>(
    mut reader: S::Reader,
    lookups: &Receiver<(ReadId, Lookup)>,
    events: &Sender<ThreadResult<S>>,
    activity: &dyn Activity,
) {
    let _panic_report = PanicReport("reader", events);
    for (id, lookup) in lookups {
        match lookup.execution() {
            Some(execution) => activity.begin_execution(execution),
            None => activity.begin_work(),
        }
        let found = look_up(&mut reader, &lookup, &ChildCheck::default());
        activity.begin_wait();
        if events.send(ThreadResult::Found(id, found)).is_err() {
            return;
        }
    }
}

/// Reports a thread that panics; otherwise its callers would wait forever.
struct PanicReport<'e, S>(&'static str, &'e Sender<ThreadResult<S>>);

impl<S> Drop for PanicReport<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.1.send(ThreadResult::Died(self.0));
        }
    }
}

/// The loop of a lane.
struct LaneLoop<S: Store> {
    lane: Lane<AnswerReceiver>,
    watch: Option<Watch>,
    /// `None` while the writer thread has it.
    store: Option<Box<S>>,
    /// Result of a batch that the loop wrote itself, until the next turn handles it.
    on_the_spot: Option<ThreadResult<S>>,
    asked: Receiver<EngineMessage>,
    happened: Receiver<ThreadResult<S>>,
    stopped: Receiver<()>,
    batches: Sender<(Box<S>, Vec<Write>)>,
    lookups: Sender<(ReadId, Lookup)>,
    inputs: FairThreads<S::Reader>,
    found: Sender<ThreadResult<S>>,
    check: ChildCheck,
    resources: Arc<dyn Resources>,
    serving: FairThreads<()>,
    sessions: IdMap<SessionId, ReplyTo>,
    recovered: Arc<AtomicBool>,
    began: Instant,
    activity: Arc<dyn Activity>,
}

impl<S: Store> LaneLoop<S> {
    fn run(mut self) -> Option<Fatal> {
        loop {
            self.lane.settle();
            if self.lane.is_recovered() {
                self.recovered.store(true, Ordering::Release);
            }
            // The decisions are complete: the following effects belong to no single execution.
            self.activity.begin_work();
            if let Some(end) = self.act() {
                return end;
            }
            self.listen();
        }
    }

    /// Waits for a message and takes all that have arrived.
    fn listen(&mut self) {
        match self.on_the_spot.take() {
            Some(written) => self.handle_result(written),
            None => self.wait(),
        }
        while let Ok(happened) = self.happened.try_recv() {
            self.handle_result(happened);
        }
        for _ in 0..REQUESTS_PER_TURN_MAX {
            // The disk is free and gets the decisions so far; the rest is decided while it writes.
            if self.lane.is_full() || !self.happened.is_empty() {
                break;
            }
            let Ok(asked) = self.asked.try_recv() else { break };
            self.take(asked);
        }
    }

    fn wait(&mut self) {
        let sleep = Duration::from_millis(self.lane.sleep_ms()).min(SLEEP_MAX);
        let full = never();
        self.activity.begin_wait();
        let asked = if self.lane.is_full() { &full } else { &self.asked };
        crossbeam_channel::select! {
            recv(self.happened) -> happened => {
                self.activity.begin_work();
                self.handle_result(happened.unwrap_or(ThreadResult::Died("writer and reader")));
            }
            recv(asked) -> asked => {
                self.activity.begin_work();
                match asked {
                    Ok(asked) => self.take(asked),
                    // All handles are dropped: no request can follow.
                    Err(_) => self.wake(Wake::Stop),
                }
            }
            recv(self.stopped) -> _ => self.wake(Wake::Stop),
            default(sleep) => {
                self.activity.begin_work();
                self.wake(Wake::Tick);
            }
        }
    }

    fn wake(&mut self, wake: Wake<AnswerReceiver>) {
        self.lane.wake(wake, now(self.began));
    }

    fn handle_result(&mut self, happened: ThreadResult<S>) {
        let wake = match happened {
            ThreadResult::Written(store, result) => {
                self.store = Some(store);
                Wake::Written(result)
            }
            ThreadResult::Found(id, found) => Wake::Found(id, found),
            ThreadResult::Died(thread) => Wake::Written(Err(StoreError::Io(format!(
                "the {thread} thread panicked; see the earlier lines of the log"
            )))),
        };
        self.wake(wake);
    }

    fn take(&mut self, asked: EngineMessage) {
        self.wake(match asked {
            EngineMessage::Request(request, reply) => Wake::Ask(request, AnswerReceiver::Caller(reply)),
            EngineMessage::Call(call, reply) => Wake::Call(call, AnswerReceiver::Worker(reply)),
            EngineMessage::Attach(session, reply) => {
                Wake::Ask(Request::Group(GroupCall::Attach { session }), AnswerReceiver::Worker(reply))
            }
        });
    }

    /// Performs the effects of the lane; `Some` ends the loop.
    fn act(&mut self) -> Option<Option<Fatal>> {
        let mut small = None;
        for effect in self.lane.take_effects() {
            match effect {
                Effect::Answer(receiver, answer) => receiver.answer(answer),
                Effect::Write(batch) if batch.len() > WRITES_ON_THE_SPOT_MAX => self.hand_over(batch),
                Effect::Write(batch) => small = Some(batch),
                Effect::Read(id, Lookup::Inputs(wanted)) => self.make_inputs(id, wanted),
                Effect::Read(id, lookup) => drop(self.lookups.send((id, lookup))),
                Effect::SessionOpen(registered, receiver) => self.open_session(registered, receiver),
                Effect::Order(session, order) => {
                    if let Some(reply) = self.sessions.get_mut(&session) {
                        reply(Reply::Order(order));
                    }
                }
                Effect::SessionOver(session) => drop(self.sessions.remove(&session)),
                Effect::Serve(request, receiver) => self.serve(request, receiver),
                Effect::Changed(executions) => {
                    if let Some(watch) = &self.watch {
                        watch(&executions);
                    }
                }
                Effect::Quarantined(execution, reason) => {
                    tracing::error!(%execution, reason, "quarantined an execution; it does not run until it is released");
                }
                Effect::Stopped => return Some(None),
                Effect::Fatal(fatal) => return Some(Some(fatal)),
            }
        }
        if let Some(batch) = small {
            self.write(batch);
        }
        None
    }

    /// Writes a batch, or hands it to the writer thread. Called last in a turn, so that no answer waits for the disk.
    fn write(&mut self, batch: Vec<Write>) {
        let expects_more = self.lane.in_flight() > WRITES_ON_THE_SPOT_MAX;
        if expects_more || !self.asked.is_empty() || !self.happened.is_empty() {
            return self.hand_over(batch);
        }
        let mut store = self.take_store();
        let result = written(store.as_mut(), &batch);
        self.on_the_spot = Some(ThreadResult::Written(store, result));
    }

    fn hand_over(&mut self, batch: Vec<Write>) {
        let store = self.take_store();
        // A writer that has ended has reported it.
        let _ = self.batches.send((store, batch));
    }

    fn take_store(&mut self) -> Box<S> {
        self.store.take().expect("at most one batch is out at a time")
    }

    /// Renders and checks inputs on threads that tenants share in turn.
    fn make_inputs(&self, id: ReadId, wanted: Box<InputsLookup>) {
        let (tenant, found, check) = (wanted.tenant.clone(), self.found.clone(), self.check.clone());
        let lookup = Lookup::Inputs(wanted);
        let make = move |reader: &mut S::Reader| {
            let made = catch_unwind(AssertUnwindSafe(|| look_up(reader, &lookup, &check)));
            let failed =
                || Ok(Found::Inputs(Err("the inputs could not be rendered because of a defect".to_owned())));
            let _ = found.send(ThreadResult::Found(id, made.unwrap_or_else(|_| failed())));
        };
        let submitted = self.inputs.submit(&tenant, 0, Box::new(make));
        debug_assert_eq!(submitted, Ok(()), "what waits for these threads has no bound");
    }

    fn serve(&self, request: ResourceRequest, receiver: AnswerReceiver) {
        let (tenant, resources) = (request.tenant.clone(), self.resources.clone());
        let serve = move |(): &mut ()| receiver.answer(EngineAnswer::resource(resources.serve(request)));
        let submitted = self.serving.submit(&tenant, 0, Box::new(serve));
        debug_assert_eq!(submitted, Ok(()), "what waits for these threads has no bound");
    }

    fn open_session(&mut self, registered: Registered, receiver: AnswerReceiver) {
        let session = registered.session;
        if let AnswerReceiver::Worker(mut reply) = receiver {
            reply(Reply::Registered(registered));
            self.sessions.insert(session, reply);
        }
    }
}

fn now(began: Instant) -> Now {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let steady = began.elapsed();
    Now {
        wall: Millis(i64::try_from(wall.as_millis()).unwrap_or(i64::MAX)),
        steady: u64::try_from(steady.as_millis()).unwrap_or(u64::MAX),
    }
}
