//! Waits for executions and tells of them meanwhile.

use crate::commands::told::title;
use crate::data::Data;
use crate::embedded::{Embedded, ended};
use crate::progress::{Progress, TICK, say};
use anyhow::bail;
use crossbeam_channel::{Receiver, select, tick, unbounded};
use std::io::{IsTerminal, Write, stderr};
use windlass_engine::{Answer, Request};
use windlass_kernel::{ExecutionId, Phase};
use windlass_server::follow::Follower;

#[derive(Debug)]
pub enum Waited {
    /// All of them have ended or can be moved by people only.
    Rested(Vec<(ExecutionId, Phase)>),
    /// The number of the signal.
    Interrupted(i32),
}

pub fn wait(
    embedded: &Embedded,
    data: &Data,
    ids: &[ExecutionId],
    signals: &Receiver<i32>,
) -> anyhow::Result<Waited> {
    let (sender, answers) = unbounded();
    for (place, id) in ids.iter().enumerate() {
        let sender = sender.clone();
        embedded.handle().ask(Request::Await(*id), move |answer| drop(sender.send((place, answer))));
    }
    let mut told = Told::new(data, ids)?;
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

fn phase(answer: Answer) -> anyhow::Result<Phase> {
    match answer {
        Answer::Rested(phase) => Ok(phase),
        Answer::Refused(refusal) => Err(refusal.into()),
        other => bail!("the engine gave an answer that does not fit the question: {other:?}"),
    }
}

/// One execution is told step by step, several are counted.
enum Told {
    One(Box<Progress<crate::data::Reading>>),
    Many { total: usize, shown: Option<usize> },
}

impl Told {
    fn new(data: &Data, ids: &[ExecutionId]) -> anyhow::Result<Told> {
        match ids {
            [id] => {
                let mut reader = data.read()?;
                say(&title(&mut reader, *id)?);
                Ok(Told::One(Box::new(Progress::new(Follower::new(reader, *id)?))))
            }
            _ => Ok(Told::Many { total: ids.len(), shown: None }),
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
