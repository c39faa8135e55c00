//! Retries of ended executions: from a step, from a firing, or from where the execution failed, also under a changed
//! definition. Nothing goes wrong in the world of the retry, so a violation is a fault of the retry itself.

use crate::invariants::{Broken, Invariants};
use crate::lower;
use crate::rng::Rng;
use crate::sabotage::Sabotage;
use crate::scenario::{Dialect, Scenario, Work};
use crate::seen::{Reply, Seen, What};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::*;
use windlass_retry::{PlannedFiring, RetryPlan, RetryPoint, can_be_retried, carry_over, plan_retry};

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
    (journal, trace): (&[Record], &[Seen]),
    sabotage: Option<Sabotage>,
    rng: &mut Rng,
) -> Result<(), Broken> {
    let now = journal.last().map_or(0, |record| record.at.0) + 1_000;
    let from = choose_point(net, scenario, journal, rng);
    if from.is_none() && can_be_retried(journal, None).is_err() {
        return Ok(());
    }
    let changed = rng.percent(40).then(|| change_definition(net, rng)).flatten();
    let target = changed.as_ref().unwrap_or(net);
    let plan = match plan_retry(net, journal, target, from) {
        Ok(plan) => plan,
        // The new definition does not have the step that the retry begins at.
        Err(Rejected::UnknownStep(_)) if changed.is_some() => return Ok(()),
        Err(rejected) => {
            return Err(Broken::new("R12", format!("{from:?} cannot be planned: {rejected}")));
        }
    };
    // A failing seed is understood by the retry it made.
    let explain = |broken: Broken| {
        let change =
            changed.as_ref().map_or("the same definition".to_owned(), |new| describe_change(net, new));
        let Broken { rule, what } = broken;
        let taken: Vec<String> =
            plan.records().iter().map(|record| format!("    {:?}", record.event)).collect();
        let plan =
            format!("imports {:?}\nruns {:?}\ntaken over\n{}", plan.imports, plan.runs, taken.join("\n"));
        Broken::new(rule, format!("{what}; a retry from {from:?} under {change}\n{plan}\n"))
    };
    let live = || -> Result<(), Broken> {
        let past = Completed::read(journal);
        past.check_plan(net, target, &plan)?;
        if !plan.refused.is_empty() {
            return Ok(());
        }
        if let (Some(RetryPoint::Step(from)), None) = (from, &changed) {
            // A failure that an arc handled is kept too.
            let is_done =
                |kept: &&PlannedFiring| past.firings.values().any(|(step, _, _)| *step == kept.step);
            let kept = plan.imports.iter().filter(is_done).map(|firing| firing.step.index()).collect();
            check_kept(scenario, trace, Some(from.index()), &kept)?;
        }
        let mut life = Life::begin(target, now);
        let carried = match sabotage {
            Some(Sabotage::RetryRepeatsCompleted) => repeat_more(net, journal, target),
            _ => None,
        };
        let carried = carried.as_ref().unwrap_or(&plan);
        let mut records = carried.records().to_vec();
        if sabotage == Some(Sabotage::RetryLosesResult) {
            lose_results(&mut records);
        }
        let began = records.len();
        life.fold(records)?;
        life.begin_by(carried)?;
        if life.state.head.id != ExecutionId(2) {
            return Err(Broken::new("R12", "a retry has the name of the old execution"));
        }
        life.live_kindly()?;
        past.check_life(net, &plan, &life, began)?;
        if changed.is_none() {
            check_fired(scenario, &life)?;
        }
        Ok(())
    };
    live().map_err(explain)
}

fn describe_change(old: &Net, new: &Net) -> String {
    let (before, after) = (&old.spec().steps, &new.spec().steps);
    let changed = after.iter().zip(0..).find(|(step, place)| before.get(*place) != Some(*step));
    changed.map_or_else(String::new, |(step, place)| {
        format!("another definition of step {place} ({})", step.name)
    })
}

/// Returns a plan that runs everything from the first firing on again, without regard to the preview.
fn repeat_more(net: &Net, journal: &[Record], target: &Net) -> Option<RetryPlan> {
    let first = journal.iter().find_map(|record| match &record.event {
        Event::Fired { run, step, role: Role::Routed, .. } => Some((*run, *step)),
        _ => None,
    });
    let (run, step) = first?;
    let from = match net.policy().join {
        net::Join::Each => RetryPoint::Firing(run),
        net::Join::All | net::Join::AnyLive => RetryPoint::Step(step),
    };
    plan_retry(net, journal, target, Some(from)).ok().filter(|plan| plan.refused.is_empty())
}

fn lose_results(records: &mut [Record]) {
    for record in records {
        if let Event::Done { output, .. } = &mut record.event {
            *output = Arc::new(json!({ "n": 99 }));
        }
    }
}

/// A step or a firing that the retry begins at, or where the execution failed.
fn choose_point(net: &Net, scenario: &Scenario, journal: &[Record], rng: &mut Rng) -> Option<RetryPoint> {
    let completed = matches!(
        journal.last().map(|record| &record.event),
        Some(Event::Ended { outcome: Outcome::Completed, .. })
    );
    if !completed && !rng.percent(60) {
        return None;
    }
    if scenario.dialect != Dialect::Playbook {
        let steps: Vec<StepId> =
            net.steps().filter(|(_, step)| !step.on_demand).map(|(step, _)| step).collect();
        return Some(RetryPoint::Step(*rng.pick(&steps)));
    }
    let firings: Vec<RunId> = journal
        .iter()
        .filter_map(|record| match record.event {
            Event::Fired { run, role: Role::Routed, .. } => Some(run),
            _ => None,
        })
        .collect();
    (!firings.is_empty()).then(|| RetryPoint::Firing(*rng.pick(&firings)))
}

/// A definition with one step renamed, one with other work, one that joins or no longer does, or one more step at the end
/// of another.
fn change_definition(net: &Net, rng: &mut Rng) -> Option<Net> {
    let mut spec = net.spec().clone();
    let at = rng.index(spec.steps.len());
    match rng.below(4) {
        0 => spec.steps[at].name.push_str("_renamed"),
        1 => spec.steps[at].work = net::Work::task(json!({ "kind": "changed" })),
        2 if spec.policy.join == net::Join::Each => spec.steps[at].join_all = !spec.steps[at].join_all,
        _ => {
            let new = StepId(u32::try_from(spec.steps.len()).unwrap_or(u32::MAX));
            let mut step = net::Step::new("added", net::Work::task(json!({ "kind": "added" })));
            step.region = spec.steps[at].region;
            step.order = spec.steps.iter().map(|step| step.order).max().unwrap_or(0) + 1;
            spec.steps[at].router.arcs.push(net::JoinArc::to(new));
            spec.steps.push(step);
        }
    }
    Net::new(spec).ok()
}

/// Work of the old execution that ended well, as its journal has it.
struct Completed {
    /// Step, path and output of each firing that routing or a loop began.
    firings: BTreeMap<RunId, (StepId, Path, Arc<serde_json::Value>)>,
    /// Number of each firing among those of its step, from 1; an iteration has the number of its loop.
    numbers: BTreeMap<RunId, u32>,
    /// Firings whose compensation ran.
    undone: BTreeSet<RunId>,
}

impl Completed {
    fn read(journal: &[Record]) -> Completed {
        let mut live = BTreeMap::new();
        let mut completed =
            Completed { firings: BTreeMap::new(), numbers: BTreeMap::new(), undone: BTreeSet::new() };
        let mut counts: BTreeMap<StepId, u32> = BTreeMap::new();
        for record in journal {
            match &record.event {
                Event::Skipped { step, .. } => *counts.entry(*step).or_default() += 1,
                Event::Fired { run, step, path, role, .. } => {
                    let number = match role {
                        Role::Iteration { of, .. } => completed.numbers.get(of).copied().unwrap_or(1),
                        Role::Hook { .. } => 0,
                        Role::Routed | Role::Final | Role::Tool { .. } => {
                            let count = counts.entry(*step).or_default();
                            *count += 1;
                            *count
                        }
                    };
                    completed.numbers.insert(*run, number);
                    live.insert(*run, (*step, path.clone(), role.clone()));
                }
                Event::Done { run, output, .. } => match live.remove(run) {
                    Some((_, _, Role::Hook { of })) => drop(completed.undone.insert(of)),
                    Some((step, path, Role::Routed | Role::Iteration { .. })) => {
                        completed.firings.insert(*run, (step, path, output.clone()));
                    }
                    _ => {}
                },
                Event::Restarted { .. } => {
                    completed.firings.clear();
                    counts.clear();
                    live.clear();
                }
                _ => {}
            }
        }
        completed
    }

    /// Checks that everything that completed is in the plan: taken over by itself or in its loop, run again, or
    /// refused.
    fn check_plan(&self, net: &Net, target: &Net, plan: &RetryPlan) -> Result<(), Broken> {
        let named: BTreeSet<(StepId, &Path)> = plan
            .imports
            .iter()
            .chain(plan.runs.iter().map(|(firing, _, _)| firing))
            .map(|firing| (firing.step, &firing.path))
            .collect();
        for (run, (step, path, _)) in &self.firings {
            let around = std::iter::successors(Some((*step, path.clone())), |(step, path)| {
                // An iteration of the step itself belongs to the firing of its loop.
                match net.step(*step).region {
                    _ if path.0.len() > net.depth(*step) => Some((*step, path.parent())),
                    Some(region) => Some((region, path.parent())),
                    None => None,
                }
            });
            let mut around = around;
            let is_explained = |step: StepId, path: &Path| {
                let is_refused = plan.refused.iter().any(|(refused, _)| *refused == step);
                let is_gone = target.find(&net.step(step).name).is_none();
                is_refused || is_gone || named.contains(&(step, path))
            };
            if !around.any(|(step, path)| is_explained(step, &path)) {
                let what = format!("{run:?} of step {step:?} completed and is in no list of the plan");
                return Err(Broken::new("retry", what));
            }
        }
        Ok(())
    }

    /// Nothing that the plan takes over is run again, and its results are there.
    fn check_life(&self, net: &Net, plan: &RetryPlan, life: &Life<'_>, began: usize) -> Result<(), Broken> {
        let old: BTreeMap<RunId, &Arc<serde_json::Value>> = life.journal[..began]
            .iter()
            .filter_map(|record| match &record.event {
                Event::Done { run, output, .. } => Some((*run, output)),
                _ => None,
            })
            .collect();
        for (run, (step, path, output)) in &self.firings {
            let number = self.numbers.get(run).copied();
            let is_listed = |firing: &&PlannedFiring| {
                firing.step == *step && firing.path == *path && Some(firing.firing) == number
            };
            let imports = plan.imports.iter().filter(is_listed).count();
            let runs = plan.runs.iter().filter(|(firing, _, _)| is_listed(&firing)).count();
            if imports == 0 {
                continue;
            }
            if runs == 0 && old.get(run) != Some(&output) {
                let what = format!("{run:?} of step {step:?} is listed as taken over and its result is lost");
                return Err(Broken::new("retry", what));
            }
            let name = &net.step(*step).name;
            let again = life.journal[began..].iter().find(|record| match &record.event {
                Event::Fired { step, path: fired, role: Role::Routed | Role::Iteration { .. }, .. } => {
                    life.net.step(*step).name == *name && fired == path
                }
                _ => false,
            });
            // In playbooks a step can fire again by another token.
            if runs == 0 && again.is_some() && net.policy().join != net::Join::Each {
                let what = format!("step {name} {path:?} was taken over and fires again");
                return Err(Broken::new("retry", what));
            }
        }
        Ok(())
    }
}

/// Checks that only steps that a user saw completed are kept, and neither the step at which the retry begins nor its
/// successors.
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

/// Checks that every step has fired at the end, in one of the two executions, if nothing in the scenario is
/// conditional.
fn check_fired(scenario: &Scenario, life: &Life<'_>) -> Result<(), Broken> {
    let fired: BTreeSet<usize> = life
        .journal
        .iter()
        .filter_map(|record| match &record.event {
            Event::Fired { step, .. } => Some(step.index()),
            _ => None,
        })
        .collect();
    let plain = matches!(scenario.dialect, Dialect::Plan | Dialect::Actions)
        && scenario.steps.iter().all(|step| step.condition.is_none());
    let missed = (0..scenario.steps.len()).find(|step| !fired.contains(step));
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

    /// Makes the first records of the retry.
    fn begin_by(&mut self, plan: &RetryPlan) -> Result<(), Broken> {
        let new = NewExecution { id: ExecutionId(2), ..NewExecution::default() };
        let mut values = Values::default();
        for _ in 0..20 {
            let given = Given { now: Millis(self.now), random: 0, values: &values };
            match carry_over(plan, self.net, &new, &given) {
                Ok(decision) => return self.fold(decision.records),
                Err(Rejected::Needs(needs)) => values.load(plan.records(), &needs),
                Err(rejected) => return Err(Broken::new("R12", format!("it cannot begin: {rejected}"))),
            }
        }
        Err(Broken::new("R4", "values are asked for again and again for a retry"))
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
                    ..ManualNote::default()
                };
                Input::Complete { run, fence, note: Box::new(note), seen: None }
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
