//! Executions that are started and awaited, a fixed number of them at a time: when one ends, the next begins.

use super::figures::Latencies;
use super::progress::Progress;
use super::rig::Rig;
use anyhow::{anyhow, bail};
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use windlass_engine::{EngineAnswer, Request, Start};
use windlass_kernel::{ExecutionId, Outcome, Phase};
use windlass_store::DefinitionId;

/// Work that is requested of an engine.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub definition: DefinitionId,
    /// Number of executions at a time.
    pub concurrency: usize,
    pub until: Until,
    /// Number of steps of each execution.
    pub steps: u64,
}

#[derive(Debug, Clone, Copy)]
pub enum Until {
    /// Time after which no execution is started; those that run are awaited.
    Seconds(f64),
    Count(usize),
}

/// Result of the load.
#[derive(Debug)]
pub struct Driven {
    pub executions: Vec<ExecutionId>,
    /// Latency from the request of a start to the answer about its end.
    pub latencies: Latencies,
    /// Time from the first request to the last answer.
    pub wall: Duration,
}

impl Load {
    pub fn drive(self, rig: &Rig, progress: &Progress) -> anyhow::Result<Driven> {
        let (answers, answered) = unbounded();
        let began = Instant::now();
        let mut driver = Driver {
            load: self,
            rig,
            answers,
            began,
            asked: vec![began; self.concurrency],
            running: 0,
            started: 0,
            executions: Vec::new(),
            latencies: Latencies::default(),
        };
        (0..self.concurrency).for_each(|place| driver.start(place));
        while driver.running > 0 {
            driver.next(&answered)?;
            progress.show(|| driver.progress_text());
        }
        Ok(Driven { executions: driver.executions, latencies: driver.latencies, wall: began.elapsed() })
    }
}

struct Driver<'r> {
    load: Load,
    rig: &'r Rig,
    answers: Sender<(usize, Answered)>,
    began: Instant,
    /// Time of the request of the execution at each place.
    asked: Vec<Instant>,
    running: usize,
    started: usize,
    executions: Vec<ExecutionId>,
    latencies: Latencies,
}

enum Answered {
    Started(EngineAnswer),
    Rested(ExecutionId, EngineAnswer),
}

impl Driver<'_> {
    fn start(&mut self, place: usize) {
        let goes_on = match self.load.until {
            Until::Seconds(seconds) => self.began.elapsed().as_secs_f64() < seconds,
            Until::Count(count) => self.started < count,
        };
        if !goes_on {
            return;
        }
        self.started += 1;
        self.running += 1;
        self.asked[place] = Instant::now();
        let (answers, tally) = (self.answers.clone(), self.rig.tally().clone());
        self.rig.handle().ask(start_of(self.load.definition), move |answer| {
            if let Some(trace) = &tally.trace {
                trace.started(&answer);
            }
            let _ = answers.send((place, Answered::Started(answer)));
        });
    }

    fn next(&mut self, answered: &Receiver<(usize, Answered)>) -> anyhow::Result<()> {
        select! {
            recv(answered) -> message => {
                let (place, answer) = message?;
                self.take(place, answer)
            }
            recv(self.rig.engine().ended()) -> fatal => match fatal {
                Ok(Some(fatal)) => Err(anyhow!(fatal).context("the engine ended")),
                Ok(None) | Err(_) => bail!("the engine ended without a request to stop"),
            },
        }
    }

    fn take(&mut self, place: usize, answered: Answered) -> anyhow::Result<()> {
        match answered {
            Answered::Started(EngineAnswer::Started(id)) => {
                self.executions.push(id);
                self.wait_for(place, id);
            }
            Answered::Rested(_, EngineAnswer::Rested(Phase::Ended(Outcome::Completed))) => {
                self.latencies.push(self.asked[place].elapsed());
                self.running -= 1;
                self.start(place);
            }
            Answered::Started(answer) => bail!("an execution was not started: {answer:?}"),
            Answered::Rested(id, answer) => bail!("execution {id} did not complete: {answer:?}"),
        }
        Ok(())
    }

    fn wait_for(&self, place: usize, id: ExecutionId) {
        let (answers, tally): (_, Arc<_>) = (self.answers.clone(), self.rig.tally().clone());
        self.rig.handle().ask(Request::Await(id), move |answer| {
            if let Some(trace) = &tally.trace {
                trace.rested(id, &answer);
            }
            let _ = answers.send((place, Answered::Rested(id, answer)));
        });
    }

    fn progress_text(&self) -> String {
        let ended = self.latencies.count() as u64;
        let rate = super::figures::rate(ended * self.load.steps, self.began.elapsed());
        format!("{ended} executions, {rate:.0} steps/s")
    }
}

/// Returns the start of an execution without inputs.
pub fn start_of(definition: DefinitionId) -> Request {
    Request::Start(Box::new(Start::by_hand(definition, json!({}), json!({}))))
}
