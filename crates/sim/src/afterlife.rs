//! What becomes of an execution that did not complete when it is retried: from a step, from a firing, or from
//! where it stood. The second life is lived in a kind world, so that what is wrong in it is the retry's fault.

use crate::invariants::{Broken, Invariants};
use crate::lower;
use crate::rng::Rng;
use crate::scenario::{Dialect, Scenario, Work};
use crate::seen::{Reply, Seen, What};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::*;

/// Inputs after which a life that does not end is called endless.
const INPUTS_MAX: usize = 2_000;

struct Life<'n> {
    net: &'n Net,
    state: Execution<'static>,
    journal: Vec<Record>,
    invariants: Invariants,
    now: i64,
}

pub(crate) fn retry(
    net: &Net,
    scenario: &Scenario,
    journal: &[Record],
    trace: &[Seen],
    rng: &mut Rng,
) -> Result<(), Broken> {
    let now = journal.last().map_or(0, |record| record.at.0) + 1_000;
    match scenario.dialect {
        Dialect::Playbook => forked(net, journal, now, rng),
        Dialect::Plan | Dialect::Workflow | Dialect::Actions => {
            redone(net, scenario, journal, trace, now, rng)
        }
    }
}

fn forked(net: &Net, journal: &[Record], now: i64, rng: &mut Rng) -> Result<(), Broken> {
    let firings: Vec<RunId> = journal
        .iter()
        .filter_map(|record| match record.event {
            Event::Fired { run, role: Role::Routed, .. } => Some(run),
            _ => None,
        })
        .collect();
    let at = (!firings.is_empty() && rng.percent(70)).then(|| *rng.pick(&firings));
    let values = Values::default();
    let given = Given { now: Millis(now), random: 0, values: &values };
    let records = match fork(net, journal, at, ExecutionId(2), None, &given) {
        Ok(forked) => forked.records,
        // Its guards read outputs; the test of forks by hand loads them.
        Err(Rejected::Needs(_)) => return Ok(()),
        Err(rejected) => return Err(Broken::new("R12", format!("{at:?} cannot be forked: {rejected}"))),
    };
    let mut life = Life::begin(net, now);
    life.fold(records)?;
    if life.state.head.id != ExecutionId(2) {
        return Err(Broken::new("R12", "a fork has the name of the old execution"));
    }
    life.live_kindly()
}

fn redone(
    net: &Net,
    scenario: &Scenario,
    journal: &[Record],
    trace: &[Seen],
    now: i64,
    rng: &mut Rng,
) -> Result<(), Broken> {
    let from = rng.percent(60).then(|| rng.index(scenario.steps.len()));
    let from_id = from.map(|step| StepId(u32::try_from(step).unwrap_or(u32::MAX)));
    let imports = redo(net, journal, from_id).map_err(|rejected| Broken::new("R12", rejected.to_string()))?;
    let kept: BTreeSet<usize> = imports.iter().map(|import| import.step.index()).collect();
    check_kept(scenario, trace, from, &kept)?;
    let mut life = Life::begin(net, now);
    let create =
        Create { imports, retry_of: Some(ExecutionId(1)), ..Create::new(ExecutionId(2), lower::inputs()) };
    life.give(&Input::Create(Box::new(create)))?;
    life.live_kindly()?;
    check_fired(scenario, &life, &kept)
}

/// Kept are only steps a user saw completed; never the step the retry begins at or what follows it.
fn check_kept(
    scenario: &Scenario,
    trace: &[Seen],
    from: Option<usize>,
    kept: &BTreeSet<usize>,
) -> Result<(), Broken> {
    let (mut steps, mut done) = (BTreeMap::new(), BTreeSet::new());
    for seen in trace {
        match &seen.what {
            What::Dispatched { firing, step, .. } => drop(steps.insert(*firing, *step)),
            What::Reported { firing, result: Reply::Done { .. }, accepted: true, .. } => {
                done.extend(steps.get(firing).copied());
            }
            _ => {}
        }
    }
    let task =
        |step: &usize| scenario.steps[*step].work == Work::Task && scenario.steps[*step].repeat.is_none();
    if let Some(step) = kept.iter().find(|step| task(step) && !done.contains(step)) {
        return Err(Broken::new("R12", format!("step {step} is kept but was never seen done")));
    }
    let mut again: Vec<usize> = from.map(|step| outermost(scenario, step)).into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(step) = again.pop() {
        if seen.insert(step) {
            again.extend(scenario.steps[step].arcs.iter().map(|arc| arc.to));
        }
    }
    match kept.intersection(&seen).next() {
        Some(step) => {
            Err(Broken::new("R12", format!("step {step} follows the start of the retry and is kept")))
        }
        None => Ok(()),
    }
}

fn outermost(scenario: &Scenario, step: usize) -> usize {
    std::iter::successors(Some(step), |step| scenario.steps[*step].region).last().unwrap_or(step)
}

/// What is kept is not fired again; where nothing is conditional, everything else is.
fn check_fired(scenario: &Scenario, life: &Life<'_>, kept: &BTreeSet<usize>) -> Result<(), Broken> {
    let fired: BTreeSet<usize> = life
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::Fired { step, .. } => Some(step.index()),
            _ => None,
        })
        .collect();
    if let Some(step) = kept.intersection(&fired).next() {
        return Err(Broken::new("R12", format!("step {step} was kept and fires again")));
    }
    let plain =
        scenario.dialect != Dialect::Workflow && scenario.steps.iter().all(|step| step.condition.is_none());
    let missed = (0..scenario.steps.len()).find(|step| !kept.contains(step) && !fired.contains(step));
    match (plain, missed) {
        (true, Some(step)) => Err(Broken::new("R12", format!("step {step} is neither kept nor fired"))),
        (true, None) if life.state.phase() != Phase::Ended(Outcome::Completed) => {
            Err(Broken::new("R12", format!("a kind retry ends as {:?}", life.state.phase())))
        }
        _ => Ok(()),
    }
}

fn set_flags() -> Input {
    let flags = (0..crate::generate::FLAGS).map(|flag| (lower::flag_name(flag), Arc::new(json!(true))));
    Input::Patch { patch: flags.collect(), by: "user".into() }
}

impl<'n> Life<'n> {
    fn begin(net: &'n Net, now: i64) -> Life<'n> {
        Life { net, state: Execution::default(), journal: Vec::new(), invariants: Invariants::default(), now }
    }

    fn fold(&mut self, records: Vec<Record>) -> Result<(), Broken> {
        for record in records {
            evolve(&mut self.state, self.net, &record)
                .map_err(|illegal| Broken::new("legality", illegal.to_string()))?;
            self.invariants.after(&self.state, &record, self.net)?;
            self.journal.push(record);
        }
        Ok(())
    }

    fn give(&mut self, input: &Input) -> Result<(), Broken> {
        let mut values = Values::default();
        for _ in 0..20 {
            let given = Given { now: Millis(self.now), random: 0, values: &values };
            match decide(&self.state, self.net, input, &given) {
                Ok(decision) => return self.fold(decision.records),
                Err(Rejected::Needs(needs)) => values.load(&self.journal, &needs),
                Err(rejected) => return Err(Broken::new("R12", format!("{input:?}: {rejected}"))),
            }
        }
        Err(Broken::new("R4", format!("values are asked for again and again for {input:?}")))
    }

    /// Flags are set, people agree, workers succeed, until it ends.
    fn live_kindly(&mut self) -> Result<(), Broken> {
        if matches!(self.state.phase(), Phase::Queued | Phase::Starting | Phase::Running | Phase::Paused) {
            let flags =
                (0..crate::generate::FLAGS).map(|flag| (lower::flag_name(flag), Arc::new(json!(true))));
            self.give(&Input::Patch { patch: flags.collect(), by: "user".into() })?;
        }
        for _ in 0..INPUTS_MAX {
            match self.next_input() {
                Some(input) => self.give(&input)?,
                None => break,
            }
        }
        if !self.state.phase().is_ended() {
            return Err(Broken::new("R12", format!("a retry is stuck in {:?}", self.state.phase())));
        }
        self.invariants.replays(self.net, &self.journal, &self.state)
    }

    fn next_input(&mut self) -> Option<Input> {
        if matches!(self.journal.last().map(|record| &record.event), Some(Event::Continued)) {
            return Some(Input::Continue);
        }
        match self.state.phase() {
            Phase::Queued => return Some(Input::Assign { worker: "w".into() }),
            Phase::Starting => return Some(Input::Begin),
            Phase::Finalizing if self.state.runs.is_empty() => {
                return Some(Input::Uploaded { failure: None });
            }
            _ => {}
        }
        let runs: Vec<(RunId, RunState)> =
            self.state.runs.iter().map(|(run, found)| (*run, found.state.clone())).collect();
        let next = runs.into_iter().find_map(|(run, state)| self.advance(run, state));
        // A step may have cleared a flag again since.
        next.or_else(|| (!self.state.gated.is_empty()).then(set_flags))
    }

    fn advance(&mut self, run: RunId, state: RunState) -> Option<Input> {
        let output = Arc::new(json!({ "n": 3 }));
        Some(match state {
            RunState::Offered { fence } => {
                let result = WorkResult::Done { output };
                Input::Report(Box::new(Report {
                    run,
                    fence,
                    result,
                    patch: Patch::new(),
                    times: None,
                    metadata: None,
                    cursor: None,
                }))
            }
            RunState::Manual { fence, .. } => {
                let note = ManualNote {
                    outcome: ManualOutcome::Succeeded,
                    actor: "person".into(),
                    notes: None,
                    evidence: Vec::new(),
                };
                Input::Complete { run, fence, note: Box::new(note) }
            }
            RunState::Child { fence, child, .. } => {
                let result = ChildResult { outcome: Outcome::Completed, output, failure: None };
                Input::ChildEnded { run, fence, child, result }
            }
            RunState::Waiting { .. } => Input::RouteReady { run },
            RunState::Backoff { until } => {
                self.now = self.now.max(until.0);
                Input::TimerDue(Timer::Backoff { run })
            }
            RunState::Delayed { until } => {
                self.now = self.now.max(until.0);
                Input::TimerDue(Timer::Delay { run })
            }
            RunState::Ready { .. } | RunState::Looping(_) => return None,
        })
    }
}
