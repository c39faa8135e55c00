//! The production lane with a pool of workers in simulated time. A sequence of inputs is recorded once, and given again to
//! pools of other sizes: their journals must be the same.

use crate::rng::Rng;
use crate::system::MemoryStore;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use windlass_engine::{ChildCheck, Config, Effect, EngineAnswer, Lane, Now, Request, Start, Wake, look_up};
use windlass_kernel::{
    Execution, ExecutionId, Failure, Fence, Input, ManualNote, ManualOutcome, Millis, Net, Record, RunId,
    RunState, codes, evolve,
};
use windlass_protocol::{
    Beat, Call, Order, Outcome, PROTOCOL_VERSION, Register, Report, SessionId, Unit, Work,
};
use windlass_store::{Definition, Store, StoredManifest, Target, Tenant, WorkflowId};

/// Turns of the lane for one input; more mean that it does not come to rest.
const TURNS_MAX: usize = 1_000;
/// Inputs of one execution; more mean that it does not end.
const INPUTS_MAX: usize = 5_000;
/// Time at which the simulation begins.
const EPOCH: i64 = 1_700_000_000_000;
/// The lane looks at the clock at least this often.
const SLEEP_MAX_MS: u64 = 1_000;

/// Workers, and the units of work that each takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolShape {
    pub workers: u32,
    pub slots: u32,
}

/// An input of a recorded sequence, with its time.
#[derive(Debug, Clone)]
pub struct RecordedInput {
    at_ms: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// The worker that has the offer reports. Offers are named by the kernel's own numbers.
    Report { offer: (u64, u64), outcome: Box<Outcome> },
    /// A person completes a step.
    Complete { run: RunId, fence: Fence, outcome: ManualOutcome },
    /// Time passes.
    Tick,
}

/// An execution on its way through a pool.
struct Pool {
    lane: Lane<()>,
    store: MemoryStore,
    incoming: VecDeque<Wake<()>>,
    now_ms: u64,
    sessions: BTreeMap<SessionId, BTreeSet<(u64, u64)>>,
    held: BTreeMap<(u64, u64), Unit>,
    stopping: BTreeSet<(u64, u64)>,
    definition: Option<windlass_store::DefinitionId>,
    execution: Option<ExecutionId>,
}

/// Runs a net with random reports, signals and times, and records the inputs. Returns them with the journal.
pub fn record(
    net: &Arc<Net>,
    shape: PoolShape,
    rng: &mut Rng,
) -> Result<(Vec<RecordedInput>, Vec<u8>), String> {
    let mut pool = Pool::open(net, shape)?;
    let mut inputs = Vec::new();
    while inputs.len() < INPUTS_MAX {
        let state = pool.state(net)?;
        if state.phase().is_ended() {
            return Ok((inputs, pool.journal_bytes()?));
        }
        let input = pool.draw(&state, rng);
        pool.give(&input)?;
        inputs.push(input);
    }
    Err("the execution does not end".to_owned())
}

/// Feeds recorded inputs to a pool of another size. Returns the journal.
pub fn replay(net: &Arc<Net>, shape: PoolShape, inputs: &[RecordedInput]) -> Result<Vec<u8>, String> {
    let mut pool = Pool::open(net, shape)?;
    inputs.iter().try_for_each(|input| pool.give(input))?;
    pool.journal_bytes()
}

impl Pool {
    fn open(net: &Arc<Net>, shape: PoolShape) -> Result<Pool, String> {
        let mut pool = Pool {
            lane: Lane::new(Config { seed: 7, ..Config::default() }, clock(0)),
            store: MemoryStore::default(),
            incoming: VecDeque::new(),
            now_ms: 0,
            sessions: BTreeMap::new(),
            held: BTreeMap::new(),
            stopping: BTreeSet::new(),
            definition: None,
            execution: None,
        };
        pool.ask(Request::Define(Box::new(define(net))))?;
        let definition = pool.definition.ok_or("the definition was not stored")?;
        // The execution starts before its workers are there: its id does not depend on their number.
        pool.ask(Request::Start(Box::new(Start::by_hand(definition, json!({ "text": "x" }), json!({})))))?;
        for number in 0..shape.workers {
            let worker = format!("worker {number}");
            let register = Register { protocol: PROTOCOL_VERSION, worker, slots: shape.slots };
            pool.wake(Wake::Call(Call::Register(register), ()));
        }
        pool.settle()?;
        Ok(pool)
    }

    /// Draws what happens next: mostly a report, sometimes nothing but time.
    fn draw(&self, state: &Execution<'_>, rng: &mut Rng) -> RecordedInput {
        let people: Vec<(RunId, Fence)> =
            state.runs.iter().filter_map(|(id, run)| Some((*id, waiting_fence(&run.state)?))).collect();
        let offers: Vec<(u64, u64)> = self.held.keys().copied().collect();
        let at_ms = self.now_ms + rng.below(200);
        let what = match (offers.is_empty(), people.is_empty(), rng.percent(85)) {
            (false, true, true) => self.draw_report(*rng.pick(&offers), rng),
            (false, false, true) if rng.percent(70) => self.draw_report(*rng.pick(&offers), rng),
            (_, false, true) => draw_signal(*rng.pick(&people), rng),
            _ => {
                return RecordedInput {
                    at_ms: at_ms + self.lane.sleep_ms().clamp(1, SLEEP_MAX_MS),
                    what: What::Tick,
                };
            }
        };
        RecordedInput { at_ms, what }
    }

    fn draw_report(&self, offer: (u64, u64), rng: &mut Rng) -> What {
        let outcome = match rng.below(100) {
            _ if self.stopping.contains(&offer) => Outcome::Stopped,
            0..=89 => Outcome::Done { output: json!({ "n": rng.below(11) }) },
            90..=97 => Outcome::Failed(Failure::new(codes::SERVICE_UNAVAILABLE, "the other side is busy")),
            _ => Outcome::Failed(Failure::new(codes::VALIDATION_ERROR, "the input is wrong")),
        };
        What::Report { offer, outcome: Box::new(outcome) }
    }

    fn give(&mut self, input: &RecordedInput) -> Result<(), String> {
        self.now_ms = input.at_ms;
        self.beat();
        match &input.what {
            What::Report { offer, outcome } => {
                let unit =
                    self.held.remove(offer).ok_or_else(|| format!("no worker has the offer {offer:?}"))?;
                self.stopping.remove(offer);
                for holds in self.sessions.values_mut() {
                    holds.remove(offer);
                }
                let (patch, metadata) = Default::default();
                let report = Report { unit, outcome: (**outcome).clone(), patch, metadata };
                self.wake(Wake::Call(Call::Report(Box::new(report)), ()));
            }
            What::Complete { run, fence, outcome } => {
                let execution = self.execution.ok_or("nothing was started")?;
                let note =
                    ManualNote { outcome: outcome.clone(), actor: "person".into(), ..ManualNote::default() };
                let input = Input::Complete { run: *run, fence: *fence, note: Box::new(note), seen: None };
                self.wake(Wake::Ask(Request::Give { execution, input, audit: None }, ()));
            }
            What::Tick => self.wake(Wake::Tick),
        }
        self.settle()
    }

    /// Every worker reports what it holds, so that no lease is lost.
    fn beat(&mut self) {
        let beats: Vec<Beat> = self
            .sessions
            .iter()
            .map(|(session, holds)| Beat {
                draining: false,
                session: *session,
                holds: holds.iter().filter_map(|offer| self.held.get(offer)).copied().collect(),
            })
            .collect();
        for beat in beats {
            self.wake(Wake::Call(Call::Beat(beat), ()));
        }
    }

    fn ask(&mut self, request: Request) -> Result<(), String> {
        self.wake(Wake::Ask(request, ()));
        self.settle()
    }

    fn wake(&mut self, wake: Wake<()>) {
        self.incoming.push_back(wake);
    }

    /// Lets the lane do everything that it can do now.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..TURNS_MAX {
            while let Some(wake) = self.incoming.pop_front() {
                self.lane.wake(wake, clock(self.now_ms));
            }
            self.lane.settle();
            let effects = self.lane.take_effects();
            if effects.is_empty() && self.incoming.is_empty() && self.lane.is_recovered() {
                return Ok(());
            }
            effects.into_iter().try_for_each(|effect| self.act(effect))?;
        }
        Err("the lane does not come to rest".to_owned())
    }

    fn act(&mut self, effect: Effect<()>) -> Result<(), String> {
        match effect {
            Effect::Answer((), EngineAnswer::Defined { id, .. }) => self.definition = Some(id),
            Effect::Answer((), EngineAnswer::Started(id)) => self.execution = Some(id),
            Effect::Answer((), EngineAnswer::Refused(refusal)) => return Err(refusal.to_string()),
            Effect::Answer((), _) | Effect::Changed(_) | Effect::SessionOver(_) => {}
            Effect::SessionOpen(registered, ()) => {
                self.sessions.insert(registered.session, BTreeSet::new());
            }
            Effect::Write(batch) => {
                let written = self.store.write(&batch);
                self.wake(Wake::Written(written));
            }
            Effect::Read(id, lookup) => {
                let mut reader = self.store.reader().map_err(|error| error.to_string())?;
                self.wake(Wake::Found(id, look_up(&mut reader, &lookup, &ChildCheck::default())));
            }
            Effect::Order(session, Order::Run(work)) => self.take(session, &work),
            Effect::Order(_, Order::Stop { unit, .. }) => drop(self.stopping.insert((unit.run, unit.fence))),
            Effect::Order(_, Order::Unknown) => return Err("a session is unknown".to_owned()),
            Effect::Serve(request, ()) => return Err(format!("no worker asked for {request:?}")),
            Effect::Stopped => return Err("the lane stopped".to_owned()),
            Effect::Quarantined(_, reason) => return Err(reason),
            Effect::Fatal(fatal) => return Err(fatal.to_string()),
        }
        Ok(())
    }

    fn take(&mut self, session: SessionId, work: &Work) {
        let offer = (work.unit.run, work.unit.fence);
        self.held.insert(offer, work.unit);
        self.sessions.entry(session).or_default().insert(offer);
    }

    fn journal(&self) -> Result<Vec<Record>, String> {
        let id = self.execution.ok_or("nothing was started")?;
        let mut reader = self.store.reader().map_err(|error| error.to_string())?;
        windlass_engine::journal(&mut reader, id).map_err(|error| error.to_string())
    }

    fn journal_bytes(&self) -> Result<Vec<u8>, String> {
        serde_json::to_vec(&self.journal()?).map_err(|error| error.to_string())
    }

    fn state(&self, net: &Net) -> Result<Execution<'static>, String> {
        let mut state = Execution::default();
        let mut apply = |record: &Record| evolve(&mut state, net, record);
        self.journal()?.iter().try_for_each(&mut apply).map_err(|illegal| illegal.to_string())?;
        Ok(state)
    }
}

fn draw_signal((run, fence): (RunId, Fence), rng: &mut Rng) -> What {
    let outcome = if rng.percent(90) { ManualOutcome::Succeeded } else { ManualOutcome::Failed };
    What::Complete { run, fence, outcome }
}

fn waiting_fence(state: &RunState) -> Option<Fence> {
    if let RunState::Manual { fence, .. } = state { Some(*fence) } else { None }
}

fn clock(now_ms: u64) -> Now {
    Now { wall: Millis(EPOCH + i64::try_from(now_ms).unwrap_or(0)), steady: now_ms }
}

fn define(net: &Arc<Net>) -> Definition {
    Definition {
        tenant: Tenant::default(),
        target: Target::Named(WorkflowId(1)),
        name: "saga".to_owned(),
        dialect: "simulated".to_owned(),
        source: String::new(),
        workload: json!({}),
        manifest: StoredManifest::default(),
        net: net.clone(),
        hooks: Vec::new(),
        schedules: Vec::new(),
        at: Millis(EPOCH),
        status: None,
        author: None,
    }
}
