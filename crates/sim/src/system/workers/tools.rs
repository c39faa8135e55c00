//! Work on a worker's bench: a pipeline, and the one thing it waits for. Tools take time and fail as chance has it.

use super::super::engine::broken;
use super::super::sabotage::Sabotage;
use super::super::world::{Happening, World};
use super::agents::{self, Agent};
use crate::invariants::Broken;
use serde_json::json;
use windlass_protocol::{Failure, Outcome, Report, Unit, Work, codes};
use windlass_store::{StoreError, Tenant};
use windlass_worker::session::Input;
use windlass_worker::{CallResult, Next, Run};

#[derive(Debug)]
pub(super) struct Bench {
    pub(super) run: Run,
    pub(super) waits: Waits,
    /// The call that it has begun is an agent.
    pub(super) agent: Option<Agent>,
    /// Counts what it waited for, so that what comes too late is distinguished.
    serial: u64,
    pub(super) halted: bool,
    /// It is over; the session is to hear of it.
    pub(super) over: Option<Option<Box<Report>>>,
}

#[derive(Debug)]
pub(super) enum Waits {
    /// A tool, that will come to this.
    Call(Box<CallResult>),
    Pause,
    /// The cursor of the pipeline is stored.
    Kept,
    /// An agent's model.
    Thought,
    /// Result of an agent's call.
    Answer(String),
    Nothing,
}

impl World {
    pub(super) fn put_on_bench(&mut self, worker: usize, work: Work) -> Result<(), Broken> {
        let (unit, timeout_ms) = (work.unit, work.timeout_ms);
        let life = self.workers[worker].life;
        let (run, waits, agent) = (Run::begin(work), Waits::Nothing, None);
        let bench = Bench { run, waits, agent, serial: 0, halted: false, over: None };
        if let Some(process) = &mut self.workers[worker].process {
            process.bench.insert(unit, bench);
        }
        if let Some(timeout_ms) = timeout_ms {
            let at = self.now + timeout_ms;
            self.agenda.plan(at, Happening::TimesUp { worker, life, unit });
        }
        if unit.is_whole() {
            return self.hold_whole(worker, unit);
        }
        self.advance(worker, unit)
    }

    /// The worker is ready for the steps of an execution that it took, and holds it until it is stopped.
    fn hold_whole(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        if let Some(bench) = self.bench(worker, unit) {
            bench.waits = Waits::Kept;
        }
        self.feed(worker, Input::Reached { unit, cursor: json!({}).into() })
    }

    pub(super) fn bench(&mut self, worker: usize, unit: Unit) -> Option<&mut Bench> {
        self.workers[worker].process.as_mut()?.bench.get_mut(&unit)
    }

    /// The pipeline says what is next.
    pub(super) fn advance(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        let (waits, delay_ms) = match bench.run.advance() {
            Next::Report(report) => {
                bench.waits = Waits::Nothing;
                bench.over = Some(Some(report));
                return Ok(());
            }
            Next::Load(keys) => {
                let tenant = Tenant::new(&bench.run.work().tenant);
                let read = |key: String| Ok((key.clone(), self.depot.artifact(&tenant, &key)?));
                let values: Result<Vec<_>, StoreError> = keys.into_iter().map(read).collect();
                let values = values.map_err(broken)?;
                if let Some(bench) = self.bench(worker, unit) {
                    bench.run.loaded(values);
                }
                return self.advance(worker, unit);
            }
            Next::Keep(made) => {
                let tenant = Tenant::new(&bench.run.work().tenant);
                made.iter().try_for_each(|artifact| self.depot.keep(&tenant, artifact)).map_err(broken)?;
                return self.advance(worker, unit);
            }
            Next::Checkpoint(cursor) => {
                bench.waits = Waits::Kept;
                return self.feed(worker, Input::Reached { unit, cursor: cursor.into() });
            }
            Next::Open(handles) => {
                for handle in handles {
                    let nothing =
                        Failure::new(codes::RESOURCE_NOT_FOUND, "the simulated worker has no secrets");
                    bench.run.opened(handle, Err(Box::new(nothing)));
                }
                return self.advance(worker, unit);
            }
            Next::Wait { delay_ms } => (Waits::Pause, delay_ms),
            Next::Call(call) if call.kind == agents::KIND => return self.agent_begins(worker, unit, &call),
            Next::Call(_) => {
                let (result, takes_ms) = self.call();
                (Waits::Call(Box::new(result)), takes_ms)
            }
        };
        self.wait_for(worker, unit, waits, delay_ms);
        Ok(())
    }

    pub(super) fn wait_for(&mut self, worker: usize, unit: Unit, waits: Waits, delay_ms: u64) {
        let (at, life) = (self.now + delay_ms, self.workers[worker].life);
        let Some(bench) = self.bench(worker, unit) else { return };
        bench.waits = waits;
        bench.serial += 1;
        let serial = bench.serial;
        self.agenda.plan(at, Happening::ToolEnds { worker, life, unit, serial });
    }

    pub(super) fn call(&mut self) -> (CallResult, u64) {
        let takes_ms = match self.rng.below(100) {
            _ if self.rng.percent(self.plan.tools.long) => self.rng.between(20_000, 70_000),
            0..=59 => self.rng.between(1, 400),
            60..=89 => self.rng.between(1, 3_000),
            _ => self.rng.between(1, 9_000),
        };
        let outcome = match self.rng.percent(self.plan.tools.fails) {
            false => Ok(json!({ "n": self.rng.below(11) })),
            true => Err(Box::new(self.failure())),
        };
        (outcome.into(), takes_ms)
    }

    fn failure(&mut self) -> Failure {
        let texts = ["SERVICE_UNAVAILABLE", "SERVICE_UNAVAILABLE", "ODD", "VALIDATION_ERROR"];
        let code = *self.rng.pick(&texts);
        Failure::of_code(code, "a simulated failure")
    }

    pub(in crate::system) fn tool_ends(
        &mut self,
        worker: usize,
        life: u32,
        unit: Unit,
        serial: u64,
    ) -> Result<(), Broken> {
        if self.process(worker, life).is_none() {
            return Ok(());
        }
        let Some(bench) = self.bench(worker, unit) else { return Ok(()) };
        if bench.serial != serial || bench.halted || bench.over.is_some() {
            return Ok(());
        }
        match std::mem::replace(&mut bench.waits, Waits::Nothing) {
            Waits::Thought => return self.agent_decides(worker, unit),
            Waits::Call(result) => {
                bench.agent = None;
                bench.run.answer(*result);
            }
            Waits::Pause | Waits::Kept | Waits::Answer(_) | Waits::Nothing => {}
        }
        self.advance(worker, unit)?;
        self.hand_in(worker)
    }

    pub(super) fn proceed(&mut self, worker: usize, unit: Unit) -> Result<(), Broken> {
        match self.bench(worker, unit) {
            Some(bench) if unit.is_whole() => {
                bench.waits = Waits::Nothing;
                Ok(())
            }
            Some(Bench { waits: Waits::Kept, agent: Some(_), .. }) => self.continue_agent(worker, unit),
            Some(Bench { waits: Waits::Kept, agent: None, .. }) => self.advance(worker, unit),
            _ => Ok(()),
        }
    }

    /// Processes take up to the grace to go.
    pub(super) fn stop(&mut self, worker: usize, unit: Unit, grace_ms: u64) {
        if self.sabotage == Some(Sabotage::StopIgnored) {
            return;
        }
        let life = self.workers[worker].life;
        let at = self.now + self.rng.below(grace_ms + 1);
        if let Some(bench) = self.bench(worker, unit) {
            bench.halted = true;
            self.agenda.plan(at, Happening::Gone { worker, life, unit });
        }
    }

    pub(in crate::system) fn gone(&mut self, worker: usize, life: u32, unit: Unit) -> Result<(), Broken> {
        if self.process(worker, life).is_none() {
            return Ok(());
        }
        if let Some(bench) = self.bench(worker, unit)
            && bench.over.is_none()
        {
            bench.over = Some(None);
        }
        self.hand_in(worker)
    }

    /// The attempt took too long; the worker itself says so.
    pub(in crate::system) fn times_up(&mut self, worker: usize, life: u32, unit: Unit) -> Result<(), Broken> {
        if self.process(worker, life).is_none() {
            return Ok(());
        }
        if let Some(bench) = self.bench(worker, unit)
            && !bench.halted
            && bench.over.is_none()
        {
            let failed = Failure::new(codes::NETWORK_TIMEOUT, "the attempt took too long");
            bench.over = Some(Some(bench.run.report_now(Outcome::Failed(failed))));
        }
        self.hand_in(worker)
    }

    pub(super) fn hand_in(&mut self, worker: usize) -> Result<(), Broken> {
        for input in self.finished(worker) {
            self.feed(worker, input)?;
        }
        Ok(())
    }

    /// Removes finished work from the bench.
    pub(super) fn finished(&mut self, worker: usize) -> Vec<Input> {
        let Some(process) = &mut self.workers[worker].process else { return Vec::new() };
        let over: Vec<Unit> =
            process.bench.iter().filter(|(_, bench)| bench.over.is_some()).map(|(unit, _)| *unit).collect();
        let mut inputs = Vec::new();
        for unit in over {
            let Some(report) = process.bench.remove(&unit).and_then(|bench| bench.over) else { continue };
            self.watch.leases.end(unit);
            self.log.record(self.now, || {
                let how =
                    report.as_ref().map_or("it was stopped".to_owned(), |report| described(&report.outcome));
                format!("worker {worker} is done with {}: {how}", super::super::event_text::format_unit(unit))
            });
            inputs.push(Input::Ended { unit, report });
        }
        inputs
    }
}

fn described(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done { .. } => "done".into(),
        Outcome::Failed(failure) => format!("failed, {}", failure.code),
        Outcome::Stopped => "stopped".into(),
        Outcome::Later { delay_ms, .. } => format!("continues in {delay_ms} ms"),
        Outcome::Child { .. } => "waits for another execution".into(),
    }
}
