//! Waits for executions and tells of them meanwhile.

use crate::commands::told::title;
use crate::embedded::{Embedded, ended};
use crate::place::Place;
use crate::progress::{Progress, TICK, say};
use anyhow::bail;
use crossbeam_channel::{Receiver, select, tick, unbounded};
use std::io::{IsTerminal, Write, stderr};
use windlass_engine::{Answer, Request};
use windlass_kernel::{Execution, ExecutionId, Phase};
use windlass_server::follow::Follower;

#[derive(Debug)]
pub enum Waited {
    /// All of them have ended or can be moved by people only.
    Rested(Vec<(ExecutionId, Phase)>),
    /// The number of the signal.
    Interrupted(i32),
}

/// For an engine in this process, which says when they rest.
pub fn wait(
    embedded: &Embedded,
    place: &Place,
    ids: &[ExecutionId],
    signals: &Receiver<i32>,
) -> anyhow::Result<Waited> {
    let (sender, answers) = unbounded();
    for (place, id) in ids.iter().enumerate() {
        let sender = sender.clone();
        embedded.handle().ask(Request::Await(*id), move |answer| drop(sender.send((place, answer))));
    }
    let mut told = Told::new(place, ids)?;
    let ticks = tick(TICK);
    let mut phases = vec![None; ids.len()];
    let mut rested = 0;
    while rested < ids.len() {
        select! {
            recv(answers) -> answer => {
                let (place, answer) = answer?;
                phases[place] = Some(phase(answer)?);
                rested += 1;
            }
            recv(signals) -> signal => {
                told.end(rested)?;
                return Ok(Waited::Interrupted(signal?));
            }
            recv(embedded.ended()) -> fatal => return Err(ended(fatal.ok().flatten())),
            recv(ticks) -> _ => told.tick(rested)?,
        }
    }
    told.end(rested)?;
    Ok(Waited::Rested(ids.iter().copied().zip(phases.into_iter().flatten()).collect()))
}

/// For a server: one after the other, because what one waits for, the others do meanwhile.
pub fn wait_afar(place: &Place, ids: &[ExecutionId], signals: &Receiver<i32>) -> anyhow::Result<Waited> {
    let mut told = Told::new(place, ids)?;
    let mut rested = Vec::new();
    for id in ids {
        let mut follower = match told {
            Told::One(_) => None,
            Told::Many { .. } => Some(place.follow(*id)?),
        };
        loop {
            if let Some(follower) = &mut follower {
                follower.poll()?;
            }
            told.tick(rested.len())?;
            let state = follower.as_ref().map(Follower::state).or_else(|| told.state());
            if let Some(phase) = state.and_then(rest) {
                rested.push((*id, phase));
                break;
            }
            if let Ok(signal) = signals.try_recv() {
                told.end(rested.len())?;
                return Ok(Waited::Interrupted(signal));
            }
        }
    }
    told.end(rested.len())?;
    Ok(Waited::Rested(rested))
}

/// Ended, or only people can move it. What is held waits for its release.
fn rest(state: &Execution<'_>) -> Option<Phase> {
    let phase = state.phase();
    (phase.is_ended() || phase == Phase::Paused && !state.head.held).then_some(phase)
}

fn phase(answer: Answer) -> anyhow::Result<Phase> {
    match answer {
        Answer::Rested(phase) => Ok(phase),
        Answer::Refused(refusal) => Err(refusal.into()),
        other => bail!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}

/// One execution is told step by step, several are counted.
enum Told {
    One(Box<Progress>),
    Many { total: usize, shown: Option<usize> },
}

impl Told {
    fn new(place: &Place, ids: &[ExecutionId]) -> anyhow::Result<Told> {
        match ids {
            [id] => {
                say(&title(&place.told(*id)?));
                Ok(Told::One(Box::new(Progress::new(place.follow(*id)?))))
            }
            _ => Ok(Told::Many { total: ids.len(), shown: None }),
        }
    }

    fn state(&self) -> Option<&Execution<'static>> {
        match self {
            Told::One(progress) => Some(progress.state()),
            Told::Many { .. } => None,
        }
    }

    fn tick(&mut self, rested: usize) -> anyhow::Result<()> {
        match self {
            Told::One(progress) => progress.tick()?,
            Told::Many { total, shown } => {
                if stderr().is_terminal() && *shown != Some(rested) {
                    *shown = Some(rested);
                    let _ = write!(stderr(), "\r{rested} of {total} executions\x1b[K");
                }
            }
        }
        Ok(())
    }

    fn end(self, rested: usize) -> anyhow::Result<()> {
        match self {
            Told::One(progress) => drop(progress.end()?),
            Told::Many { total, .. } => {
                let clear = if stderr().is_terminal() { "\r\x1b[K" } else { "" };
                say(&format!("{clear}{rested} of {total} executions came to rest"));
            }
        }
        Ok(())
    }
}
