//! Requests of users and the answers to them. Every answer must be true, and stay true.

use super::Watch;
use super::journal::Shadow;
use crate::invariants::Broken;
use crate::lower::flag_name;
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_artifact::{Source, set_aside};
use windlass_engine::{EngineAnswer, Refusal, Request, Start};
use windlass_kernel::{
    Cancel, Event, ExecutionId, Failure, Fence, Input, ManualNote, ManualOutcome, Millis, Record, Rejected,
    RunId, RunState, StartWhen,
};
use windlass_store::{Definition, DefinitionId};

/// Something a user wants.
#[derive(Debug, Clone)]
pub(in crate::system) enum Wish {
    Define(usize),
    Start { definition: DefinitionId, when: StartWhen },
    Await(ExecutionId),
    Cancel { id: ExecutionId, force: bool, compensate: bool },
    Hold(ExecutionId),
    Resume(ExecutionId),
    Patch { id: ExecutionId, flags: Vec<(usize, bool)> },
    Begin(ExecutionId),
    Complete { id: ExecutionId, run: RunId, fence: Fence, outcome: ManualOutcome },
    RouteReady { id: ExecutionId, run: RunId },
}

#[derive(Debug)]
pub(in crate::system) struct Ask {
    pub wish: Wish,
    /// The version of what it is about that was on disk when it was asked.
    pub since: u64,
    /// The life of the engine that was asked.
    pub life: u32,
    pub answer: Option<EngineAnswer>,
}

#[derive(Debug, Default)]
pub(in crate::system) struct Memory {
    pub asks: Vec<Ask>,
}

/// Every ask signs its inputs, so that the journal says whose they were.
fn signature(number: usize) -> String {
    format!("ask {number}")
}

impl Wish {
    pub fn about(&self) -> Option<ExecutionId> {
        match self {
            Wish::Define(_) | Wish::Start { .. } => None,
            Wish::Await(id)
            | Wish::Cancel { id, .. }
            | Wish::Hold(id)
            | Wish::Resume(id)
            | Wish::Patch { id, .. }
            | Wish::Begin(id)
            | Wish::Complete { id, .. }
            | Wish::RouteReady { id, .. } => Some(*id),
        }
    }

    /// The input it is to an execution.
    pub fn input(&self, number: usize) -> Option<Input> {
        let by = signature(number);
        Some(match self {
            Wish::Define(_) | Wish::Start { .. } | Wish::Await(_) => return None,
            Wish::Cancel { force, compensate, .. } => Input::Cancel(Cancel {
                by,
                reason: "a user wants it".into(),
                force: *force,
                compensate: *compensate,
            }),
            Wish::Hold(_) => Input::Hold { by, reason: "a user wants it".into() },
            Wish::Resume(_) => Input::Resume { by },
            Wish::Patch { flags, .. } => {
                let flags = flags.iter().map(|(flag, value)| (flag_name(*flag), Arc::new(json!(value))));
                Input::Patch { patch: flags.collect(), by }
            }
            Wish::Begin(_) => Input::Begin,
            Wish::Complete { run, fence, outcome, .. } => {
                let (notes, evidence) = (None, Vec::new());
                let note = ManualNote {
                    outcome: outcome.clone(),
                    actor: by,
                    notes,
                    evidence,
                    ..ManualNote::default()
                };
                Input::Complete { run: *run, fence: *fence, note: Box::new(note), seen: None }
            }
            Wish::RouteReady { run, .. } => Input::RouteReady { run: *run },
        })
    }

    pub fn request(&self, number: usize, definitions: &[Definition]) -> Request {
        match self {
            Wish::Define(which) => Request::Define(Box::new(definitions[*which].clone())),
            Wish::Start { definition, when } => Request::Start(Box::new(Start {
                when: *when,
                ..Start::by_hand(*definition, inputs(number), Value::Null)
            })),
            Wish::Await(id) => Request::Await(*id),
            other => match (other.about(), other.input(number)) {
                (Some(execution), Some(input)) => Request::Give { execution, input, audit: None },
                _ => unreachable!("what is neither about an execution nor an input is named above"),
            },
        }
    }
}

fn inputs(number: usize) -> Value {
    json!({ "text": "x", "asked": number })
}

impl Watch {
    /// Checks an answer to a user: its content is on disk at this moment (K7).
    pub fn was_answered(&self, number: usize, ask: &Ask, answer: &EngineAnswer) -> Result<(), Broken> {
        let untrue = |what: &str| {
            let message = format!("ask {number} ({:?}) was answered {answer:?}: {what}", ask.wish);
            Err(Broken::new("K7", message))
        };
        match (&ask.wish, answer) {
            (Wish::Define(_), EngineAnswer::Defined { .. }) | (_, EngineAnswer::Stopping) => Ok(()),
            (Wish::Start { .. }, EngineAnswer::Started(id)) => self.started(number, *id),
            (Wish::Await(id), EngineAnswer::Rested(phase)) if self.phase(*id) != Some(*phase) => {
                untrue("the disk has another phase")
            }
            (Wish::Await(_), EngineAnswer::Rested(_)) => Ok(()),
            (wish, EngineAnswer::Accepted) => match wish.about().and_then(|id| self.shadows.get(&id)) {
                Some(shadow) if shadow.shows(number, ask) => Ok(()),
                Some(_) => untrue("its journal does not show it"),
                None => untrue("there is no such execution"),
            },
            (wish, EngineAnswer::Refused(refusal)) => match self.refused(wish, ask.since, refusal) {
                None => Ok(()),
                Some(what) => untrue(&what),
            },
            _ => untrue("that is no answer to this"),
        }
    }

    fn started(&self, number: usize, id: ExecutionId) -> Result<(), Broken> {
        let Some(shadow) = self.shadows.get(&id) else {
            return Err(Broken::new("K7", format!("ask {number} was answered {id}, which is not on disk")));
        };
        let inputs = inputs(number);
        let aside = set_aside(&inputs, Source::Outside, shadow.net.policy().limits.inline_bytes);
        if *shadow.state.head.inputs != aside.map_or(inputs, |(reference, _)| reference) {
            let what = format!("execution {id} of ask {number} has the inputs {}", shadow.state.head.inputs);
            return Err(Broken::new("durability", what));
        }
        Ok(())
    }

    /// Returns why the refusal is wrong, if it is.
    fn refused(&self, wish: &Wish, since: u64, refusal: &Refusal) -> Option<String> {
        let shadow = wish.about().and_then(|id| self.shadows.get(&id));
        match (refusal, shadow) {
            (Refusal::NoExecution(_), None) => None,
            (Refusal::NoExecution(_), Some(_)) => Some("it is on disk".into()),
            (Refusal::NoDefinition, _) => Some("every definition was registered".into()),
            (Refusal::NotRetried(_), _) => Some("the request names no step to begin at".into()),
            (Refusal::BadInputs(_), _) => Some("its inputs have no defaults".into()),
            (Refusal::HookTaken(_), _) => Some("no definition has a hook".into()),
            (Refusal::KeyTaken, _) => Some("the request has no key".into()),
            (Refusal::Quarantined { .. } | Refusal::NotQuarantined(_) | Refusal::Unreadable(_), _) => {
                Some("every row can be read, and nothing is quarantined".into())
            }
            (Refusal::NoRoom { .. }, _) => Some("no tenant has a limit".into()),
            (Refusal::Rejected(_), None) => Some("there is no such execution".into()),
            (Refusal::Rejected(Rejected::Ended(outcome)), Some(shadow)) => {
                let ended = shadow.state.phase() == windlass_kernel::Phase::Ended(*outcome);
                (!ended).then(|| format!("on disk it is {:?}", shadow.state.phase()))
            }
            (Refusal::Rejected(Rejected::Conflict { phase, .. }), Some(shadow)) => {
                (!shadow.was(*phase, since)).then(|| "it was not in that phase".to_owned())
            }
            (Refusal::Rejected(Rejected::StaleFence { .. } | Rejected::NotWaiting { .. }), Some(shadow)) => {
                let waits = match wish {
                    Wish::Complete { run, fence, .. } => {
                        let state = shadow.state.run(*run).map(|run| &run.state);
                        matches!(state, Some(RunState::Manual { fence: open, .. }) if open == fence)
                    }
                    Wish::RouteReady { run, .. } => {
                        let state = shadow.state.run(*run).map(|run| &run.state);
                        matches!(state, Some(RunState::Waiting { .. }))
                    }
                    _ => true,
                };
                waits.then(|| "on disk it waits for exactly that".to_owned())
            }
            (Refusal::Rejected(Rejected::OtherAnswer { .. }), Some(shadow)) => match wish {
                Wish::Complete { run, fence, .. } if shadow.answers.contains_key(&(*run, *fence)) => None,
                _ => Some("there is no other answer on disk".into()),
            },
            (Refusal::Rejected(Rejected::UnknownRun(_)), Some(_)) => None,
            (Refusal::Rejected(_), Some(_)) => Some("that is no reason to refuse this".into()),
        }
    }

    /// Every answer to a user holds for ever.
    pub fn remembers(&self, memory: &Memory) -> Result<(), Broken> {
        for (number, ask) in memory.asks.iter().enumerate() {
            match (&ask.answer, ask.wish.about().and_then(|id| self.shadows.get(&id))) {
                (Some(EngineAnswer::Started(id)), _) => self.started(number, *id)?,
                (Some(EngineAnswer::Accepted), Some(shadow)) if shadow.shows(number, ask) => {}
                (Some(EngineAnswer::Accepted), _) => {
                    let what = format!("ask {number} ({:?}) was accepted, and nothing shows it", ask.wish);
                    return Err(Broken::new("durability", what));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl Shadow {
    /// The journal says that the ask took effect, or that it had before.
    fn shows(&self, number: usize, ask: &Ask) -> bool {
        let signed = signature(number);
        let any = |shows: &dyn Fn(&Event) -> bool| self.records().any(|record: &Record| shows(&record.event));
        match &ask.wish {
            Wish::Define(_) | Wish::Start { .. } | Wish::Await(_) => false,
            // A forced end of a compensation is not signed.
            Wish::Cancel { force, .. } => {
                *force && self.state.phase().is_ended()
                    || any(&|event| match event {
                        Event::Draining { failure: Some(failure), .. }
                        | Event::Ended { failure: Some(failure), .. } => is_signed(failure, &signed),
                        _ => false,
                    })
            }
            Wish::Hold(_) => self.was_held(ask.since),
            Wish::Resume(_) => any(&|event| matches!(event, Event::Released { by } if *by == signed)),
            Wish::Patch { .. } => any(&|event| matches!(event, Event::Patched { by, .. } if *by == signed)),
            Wish::Begin(_) => any(&|event| matches!(event, Event::Started { .. })),
            Wish::Complete { run, fence, outcome, .. } => any(&|event| match event {
                Event::CompletedManually { run: r, fence: f, by } => {
                    r == run && f == fence && by.outcome == *outcome
                }
                _ => false,
            }),
            Wish::RouteReady { run, .. } => {
                any(&|event| matches!(event, Event::Woken { run: r } if r == run))
            }
        }
    }
}

fn is_signed(failure: &Failure, signature: &str) -> bool {
    failure.details["by"] == signature
}

/// A start in the future, as users give it.
pub(in crate::system) fn at(wall: Millis, delay_ms: u64) -> StartWhen {
    StartWhen::At(wall.plus(delay_ms))
}
