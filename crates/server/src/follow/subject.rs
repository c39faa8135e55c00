//! What a record is about, found while the state before it is at hand.

use std::collections::BTreeMap;
use windlass_kernel::{
    Event, Execution, Millis, Net, Path, Record, Role, RunId, StepId, TokenId, TokenValue,
};

#[derive(Debug)]
pub(super) struct Life {
    pub subject: Subject,
    pub began_at: Option<Millis>,
}

/// A record with its public names, and the step-runs it is about.
#[derive(Debug)]
pub struct Happened {
    pub version: u64,
    pub record: Record,
    /// Each with the step it is about, if that is one.
    pub names: Vec<(&'static str, Option<Subject>)>,
    pub subjects: Vec<Subject>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Subject {
    pub step: StepId,
    pub name: String,
    pub path: Path,
    /// None: a token, not a firing.
    pub run: Option<RunId>,
    pub role: Role,
    pub began_at: Option<Millis>,
}

impl Subject {
    /// `measure`, or `measure[2]` for an iteration.
    pub fn label(&self) -> String {
        label(&self.name, &self.path.0)
    }
}

pub fn label(step: &str, path: &[u32]) -> String {
    let indexes: String = path.iter().map(|index| format!("[{index}]")).collect();
    format!("{step}{indexes}")
}

impl Happened {
    /// By the state before it alone.
    #[must_use]
    pub fn after(net: &Net, before: &Execution<'_>, record: Record) -> Happened {
        Happened::of(net, before, &BTreeMap::new(), record)
    }

    pub(super) fn of(
        net: &Net,
        before: &Execution<'_>,
        lives: &BTreeMap<RunId, Life>,
        record: Record,
    ) -> Happened {
        let look = Look { net, before, lives };
        let subjects = look.subjects(&record.event);
        let names = look.names(&record.event, &subjects);
        Happened { version: before.head.version, record, names, subjects }
    }

    /// The one step-run that this ends.
    pub fn ended_run(&self) -> Option<RunId> {
        match &self.record.event {
            Event::Done { run, .. } | Event::Failed { run, .. } | Event::Dropped { run, .. } => Some(*run),
            _ => None,
        }
    }

    pub fn subject(&self) -> Option<&Subject> {
        self.subjects.first()
    }
}

struct Look<'a> {
    net: &'a Net,
    before: &'a Execution<'a>,
    lives: &'a BTreeMap<RunId, Life>,
}

impl Look<'_> {
    fn subjects(&self, event: &Event) -> Vec<Subject> {
        match event {
            Event::Fired { run, step, path, role, .. } => {
                vec![self.subject(*step, path, Some(*run), role.clone())]
            }
            Event::Skipped { run, step, path, .. } | Event::Routed { run, step, path, .. } => {
                vec![self.subject(*step, path, Some(*run), Role::Routed)]
            }
            Event::Denied { token, .. } | Event::Discarded { token } => {
                self.token(*token).into_iter().collect()
            }
            Event::Admitted { tokens } => tokens.iter().filter_map(|(_, token)| self.token(*token)).collect(),
            Event::Cleared(cleared) => {
                cleared.dropped.iter().filter_map(|(run, _, _)| self.live(*run)).collect()
            }
            Event::IterationStarted { run, index } | Event::IterationEnded { run, index, .. } => {
                let within = |of: Subject| Subject { path: of.path.child(*index), ..of };
                self.live(*run).map(within).into_iter().collect()
            }
            event => run_of(event).and_then(|run| self.live(run)).into_iter().collect(),
        }
    }

    /// Where one record has several names, they are about different things.
    fn names(&self, event: &Event, subjects: &[Subject]) -> Vec<(&'static str, Option<Subject>)> {
        let names = event.names(self.before);
        let own = subjects.first().cloned();
        let about: Vec<Option<Subject>> = match event {
            Event::Routed { step, path, emitted, .. } => {
                let live = emitted.iter().filter(|emission| matches!(emission.token, TokenValue::Live(_)));
                let arcs = &self.net.step(*step).router.arcs;
                let targets = live.map(|emission| {
                    let to = arcs.get(emission.arc as usize)?.to;
                    Some(self.subject(to, &path.truncated(self.net.depth(to)), None, Role::Routed))
                });
                std::iter::once(own).chain(targets).collect()
            }
            Event::Cleared(cleared) => {
                let tokens = cleared.tokens.iter().map(|token| self.token(*token));
                tokens.chain(cleared.dropped.iter().map(|(run, _, _)| self.live(*run))).collect()
            }
            _ => vec![own; names.len()],
        };
        names.into_iter().zip(about).collect()
    }

    fn subject(&self, step: StepId, path: &Path, run: Option<RunId>, role: Role) -> Subject {
        let name = self.net.step(step).name.clone();
        Subject { step, name, path: path.clone(), run, role, began_at: None }
    }

    fn live(&self, run: RunId) -> Option<Subject> {
        let known = |life: &Life| Subject { began_at: life.began_at, ..life.subject.clone() };
        let stands = || {
            let live = self.before.run(run)?;
            Some(self.subject(live.step, &live.path, Some(run), live.role.clone()))
        };
        self.lives.get(&run).map(known).or_else(stands)
    }

    fn token(&self, id: TokenId) -> Option<Subject> {
        let gated =
            || self.before.gated.iter().find(|((_, token), _)| *token == id).map(|(_, gate)| &gate.token);
        let token = self.before.arrived.get(&id).or_else(gated)?;
        Some(self.subject(token.step, &token.path, None, Role::Routed))
    }
}

fn run_of(event: &Event) -> Option<RunId> {
    match event {
        Event::Waiting { run, .. }
        | Event::Woken { run }
        | Event::Delayed { run, .. }
        | Event::Offered { run, .. }
        | Event::Lost { run, .. }
        | Event::RetryScheduled { run, .. }
        | Event::Yielded { run, .. }
        | Event::AwaitingManual { run, .. }
        | Event::CompletedManually { run, .. }
        | Event::Done { run, .. }
        | Event::Failed { run, .. }
        | Event::Dropped { run, .. }
        | Event::LoopStarted { run, .. }
        | Event::ChildStarted { run, .. }
        | Event::AgentDecided { run, .. } => Some(*run),
        _ => None,
    }
}
