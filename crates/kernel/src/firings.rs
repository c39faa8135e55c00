//! The firings of an execution as the summary for its final step lists them: a fold of the journal with bounded memory.

use crate::any_of;
use crate::event::{Facet, Gone, LifeChange, Record, RunChange};
use crate::ids::{ExecutionId, Path, RunId, StepId};
use crate::net::Net;
use crate::step_run::Role;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use windlass_artifact::json_bytes;
use windlass_failure::Failure;

/// Firings in one summary, in equal shares for the steps that fired. A program reads them all at once.
const FIRINGS_MAX: usize = 10_000;
/// Firings of one step in a summary, so that a long loop does not fill it.
const STEP_FIRINGS_MAX: usize = 1_000;
/// Bytes of outputs in a summary, in equal shares for the steps. One decision makes the summary, so it has to be short;
/// a large output is a reference and counts as one.
const OUTPUT_BYTES_MAX: usize = 4 << 20;
/// Failures in one summary.
const FAILURES_MAX: usize = 100;
/// Failed iterations that the failure of a loop lists, as in the API.
const FAILED_ITERATIONS_MAX: usize = 10;

/// Ended firings of an execution, folded from all its records.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Firings {
    live: BTreeMap<RunId, LiveFiring>,
    steps: BTreeMap<StepId, StepFirings>,
    failures: Vec<FailedFiring>,
    failures_omitted: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct LiveFiring {
    step: StepId,
    path: Path,
    /// The loop that it is an iteration of.
    of: Option<RunId>,
    /// Number among the firings of its step, from 1.
    number: u32,
    attempt: u32,
    child: Option<ExecutionId>,
    failed_iterations: Vec<u32>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct StepFirings {
    fired: u32,
    /// Firings in the order of their ends.
    ended: VecDeque<EndedFiring>,
    bytes: usize,
    omitted: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct EndedFiring {
    number: u32,
    path: Path,
    status: &'static str,
    output: Option<Arc<Value>>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct FailedFiring {
    firing: LiveFiring,
    handled: bool,
    failure: Failure,
}

impl Firings {
    /// Adds the next record of the journal.
    pub fn note(&mut self, record: &Record) {
        match record.event.facet() {
            Facet::Run(run, change) => self.note_run(run, change),
            Facet::Life(LifeChange::Created(created)) => {
                for (import, run) in created.create.imports.iter().zip(1..) {
                    self.fire(RunId(run), import.step, &Path::default(), &Role::Routed);
                    self.end(RunId(run), "completed", Some(&import.output));
                }
            }
            Facet::Life(LifeChange::Restarted(_)) => *self = Firings::default(),
            Facet::Life(LifeChange::Cleared(cleared)) => {
                cleared.dropped.iter().for_each(|(run, _, how)| self.remove(*run, *how));
            }
            Facet::Life(
                any_of![LifeChange: Forked PauseChanged Released Patched OutcomeDecided StopAsked Ended],
            )
            | any_of![Facet: Discarded Joined Internal] => {}
        }
    }

    fn note_run(&mut self, run: RunId, change: RunChange<'_>) {
        match change {
            RunChange::Fired { step, path, role, .. } => self.fire(run, step, path, role),
            RunChange::Skipped(step, path, ..) => {
                self.fire(run, step, path, &Role::Routed);
                self.end(run, "skipped", None);
            }
            RunChange::Offered(_, attempt, _) => self.begin(run, attempt, None),
            RunChange::ChildStarted { attempt, child, .. } => self.begin(run, attempt, Some(child)),
            any_of![RunChange: Delayed LoopStarted AwaitingManual] => {
                let attempt = self.live.get(&run).map_or(1, |firing| firing.attempt.max(1));
                self.begin(run, attempt, None);
            }
            RunChange::Done(output) => self.end(run, "completed", Some(output)),
            RunChange::Failed { failure, handled, deferred, output, .. } => {
                self.fail(run, failure, handled || deferred, deferred);
                self.end(run, "failed", output);
            }
            RunChange::Dropped(how) => self.remove(run, how),
            any_of![RunChange: IterationEnded Returned Lost Retried Routed AgentDecided Internal] => {}
        }
    }

    fn fire(&mut self, run: RunId, step: StepId, path: &Path, role: &Role) {
        let of = match role {
            Role::Routed | Role::Final | Role::Tool { .. } => None,
            Role::Iteration { of, .. } => Some(*of),
            Role::Hook { .. } => return,
        };
        let fired = &mut self.steps.entry(step).or_default().fired;
        *fired += u32::from(of.is_none());
        let (number, path) = (*fired, path.clone());
        let (attempt, child, failed_iterations) = (0, None, Vec::new());
        self.live.insert(run, LiveFiring { step, path, of, number, attempt, child, failed_iterations });
    }

    fn begin(&mut self, run: RunId, attempt: u32, child: Option<ExecutionId>) {
        if let Some(firing) = self.live.get_mut(&run) {
            firing.attempt = attempt;
            firing.child = child.or(firing.child);
        }
    }

    fn fail(&mut self, run: RunId, failure: &Failure, handled: bool, deferred: bool) {
        let Some(firing) = self.live.get(&run) else { return };
        if let (Some(index), Some(of)) = (firing.path.index(), firing.of) {
            if let Some(around) = self.live.get_mut(&of)
                && around.failed_iterations.len() < FAILED_ITERATIONS_MAX
            {
                around.failed_iterations.push(index);
            }
        } else if deferred {
            // The agent that called it reports the failure.
        } else if self.failures.len() < FAILURES_MAX {
            self.failures.push(FailedFiring { firing: firing.clone(), handled, failure: failure.clone() });
        } else {
            self.failures_omitted += 1;
        }
    }

    /// Removes a firing that ended without a result. Statuses are those of the API.
    fn remove(&mut self, run: RunId, how: Gone) {
        let begun = self.live.get(&run).is_some_and(|firing| firing.attempt > 0);
        let stopped = matches!(how, Gone::Cancelled | Gone::Abandoned);
        self.end(run, if begun && stopped { "failed" } else { "skipped" }, None);
    }

    fn end(&mut self, run: RunId, status: &'static str, output: Option<&Arc<Value>>) {
        let Some(LiveFiring { step, path, of: None, number, .. }) = self.live.remove(&run) else { return };
        let (output, count) = (output.cloned(), self.steps.len());
        let bytes = output.as_deref().map_or(0, json_bytes);
        if let Some(firings) = self.steps.get_mut(&step) {
            firings.ended.push_back(EndedFiring { number, path, status, output, bytes });
            firings.bytes += bytes;
            firings.evict(count);
        }
    }

    /// Adds the ended firings of every step, the failures, and the numbers of those that are left out.
    pub(crate) fn describe(mut self, net: &Net, last: StepId, summary: &mut Map<String, Value>) {
        let count = self.steps.len();
        let (mut results, mut omitted) = (Map::new(), Map::new());
        for (id, step) in net.steps().filter(|(id, _)| *id != last) {
            let mut firings = self.steps.remove(&id).unwrap_or_default();
            firings.evict(count);
            if firings.omitted > 0 {
                omitted.insert(step.name.clone(), json!(firings.omitted));
            }
            results.insert(step.name.clone(), firings.list());
        }
        let failures: Vec<Value> = self.failures.iter().map(|failed| failed.describe(net)).collect();
        summary.insert("results".into(), Value::Object(results));
        summary.insert("failures".into(), Value::Array(failures));
        summary.insert("omitted".into(), json!({ "results": omitted, "failures": self.failures_omitted }));
    }
}

impl StepFirings {
    /// Keeps the newest firings within the step's share. The newest one always stays: its output is bounded by itself.
    fn evict(&mut self, steps: usize) {
        let firings_max = (FIRINGS_MAX / steps.max(1)).clamp(1, STEP_FIRINGS_MAX);
        let bytes_max = OUTPUT_BYTES_MAX / steps.max(1);
        while self.ended.len() > firings_max || (self.bytes > bytes_max && self.ended.len() > 1) {
            let Some(oldest) = self.ended.pop_front() else { return };
            self.bytes -= oldest.bytes;
            self.omitted += 1;
        }
    }

    fn list(self) -> Value {
        let mut ended = Vec::from(self.ended);
        ended.sort_by_key(|firing| firing.number);
        ended.iter().map(EndedFiring::describe).collect()
    }
}

impl EndedFiring {
    fn describe(&self) -> Value {
        json!({ "firing": self.number, "path": self.path.0, "status": self.status, "output": self.output })
    }
}

impl FailedFiring {
    fn describe(&self, net: &Net) -> Value {
        let FailedFiring { firing, handled, failure } = self;
        let step = net.step(firing.step);
        let mut error = step.describe_failure(failure, firing.attempt.max(1));
        let details = &failure.details;
        let line = details["line"].as_u64().map(|line| {
            let place = [("codeLine", Some(json!(line))), ("column", details.get("column").cloned())];
            let file = [("file", details.get("file").cloned())];
            let known =
                place.into_iter().chain(file).filter_map(|(key, value)| Some((key.to_owned(), value?)));
            Value::Object(known.collect())
        });
        let place = [
            ("step", Some(json!(step.name))),
            ("firing", Some(json!(firing.number))),
            ("path", Some(json!(firing.path.0))),
            ("handled", Some(json!(handled))),
            ("task", details.get("task").cloned()),
            ("location", line),
            ("childExecutionId", firing.child.map(|child| json!(format!("exec_{child}")))),
            (
                "failedIterations",
                Some(json!(firing.failed_iterations)).filter(|_| !firing.failed_iterations.is_empty()),
            ),
        ];
        if let Value::Object(error) = &mut error {
            error.extend(place.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        }
        error
    }
}
