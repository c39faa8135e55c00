//! Results of an execution, read from its journal for its user and for the step-run that waits for it.

use crate::any_of;
use crate::event::{BranchEnd, Event, Facet, LifeChange, Record, RunChange};
use crate::ids::{RunId, StepId};
use crate::input::ChildResult;
use crate::net::{DeclaredOutput, Finish, Net};
use crate::step_run::Role;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Results of an execution so far: the newest result of each step, and the steps where branches ended well. `R` is
/// the stored form of a result: the value, or where it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Outputs<R = Arc<Value>> {
    fired: BTreeMap<RunId, StepId>,
    results: BTreeMap<StepId, R>,
    ends: BTreeSet<StepId>,
}

impl<R> Default for Outputs<R> {
    fn default() -> Outputs<R> {
        Outputs { fired: BTreeMap::new(), results: BTreeMap::new(), ends: BTreeSet::new() }
    }
}

impl Outputs {
    /// Adds the next record and keeps the values of results.
    pub fn note(&mut self, record: &Record) {
        self.note_with(record, &mut |_, output| output.clone());
    }

    /// Returns an object: the final step's result if there is one, else the result of the only completed leaf, else
    /// results by leaf name. A leaf is a step where a branch ended well; its newest firing counts.
    #[must_use]
    pub fn value(&self, net: &Net) -> Value {
        self.value_with(net, &mut |output| (**output).clone())
    }

    /// Returns the result that the parent of an ended execution receives; `None` if `last` is not its end.
    #[must_use]
    pub fn child_result(&self, net: &Net, last: &Event) -> Option<ChildResult> {
        let Event::Ended { outcome, failure } = last else { return None };
        Some(ChildResult {
            outcome: *outcome,
            output: Arc::new(self.value(net)),
            failure: failure.as_deref().cloned(),
        })
    }
}

impl<R> Outputs<R> {
    /// Adds the next record. `keep` is called with each result and its index among the results of the record.
    pub fn note_with(&mut self, record: &Record, keep: &mut dyn FnMut(usize, &Arc<Value>) -> R) {
        match record.event.facet() {
            Facet::Life(LifeChange::Restarted(_)) => self.results.clear(),
            Facet::Life(LifeChange::Created(created)) => {
                let imports = created.create.imports.iter().enumerate();
                self.results.extend(imports.map(|(at, import)| (import.step, keep(at, &import.output))));
            }
            Facet::Run(run, RunChange::Fired { step, role: Role::Routed | Role::Final, .. }) => {
                self.fired.insert(run, step);
            }
            Facet::Run(run, RunChange::Done(output)) => {
                self.results.extend(self.fired.remove(&run).map(|step| (step, keep(0, output))));
            }
            Facet::Run(_, RunChange::Routed(step, _, _, BranchEnd::Well)) => drop(self.ends.insert(step)),
            Facet::Life(
                any_of![LifeChange: Forked PauseChanged Released Patched OutcomeDecided Cleared StopAsked
                Ended],
            )
            | Facet::Run(
                _,
                any_of![RunChange: Fired Skipped LoopStarted IterationEnded Delayed Offered AwaitingManual
                ChildStarted Returned Lost Retried Failed Dropped Routed AgentDecided Internal],
            )
            | any_of![Facet: Discarded Joined Internal] => {}
        }
    }

    /// Returns the outputs that the definition declares, without those whose steps have not completed.
    fn declared(&self, net: &Net, render: &mut dyn FnMut(&R) -> Value) -> Map<String, Value> {
        let rendered: BTreeMap<StepId, Value> = net
            .policy()
            .outputs
            .iter()
            .filter_map(|output| Some((output.step, render(self.results.get(&output.step)?))))
            .collect();
        let find = |output: &DeclaredOutput| {
            let value = output.find(rendered.get(&output.step)?)??;
            Some((output.name.clone(), value.clone()))
        };
        net.policy().outputs.iter().filter_map(find).collect()
    }

    /// Returns the same object as [`Outputs::value`], with each result rendered by `render`.
    #[must_use]
    pub fn value_with(&self, net: &Net, render: &mut dyn FnMut(&R) -> Value) -> Value {
        if !net.policy().outputs.is_empty() {
            return Value::Object(self.declared(net, render));
        }
        if let Finish::Step(step) = net.policy().finish
            && let Some(result) = self.results.get(&step)
        {
            return object(net, step, render(result));
        }
        let is_leaf = |step: StepId| {
            net.step(step).region.is_none()
                && (net.step(step).router.arcs.is_empty() || self.ends.contains(&step))
        };
        let leaves: Vec<_> = self.results.iter().filter(|(step, _)| is_leaf(**step)).collect();
        match leaves[..] {
            [(step, result)] => object(net, *step, render(result)),
            _ => {
                let named =
                    leaves.iter().map(|(step, result)| (net.step(**step).name.clone(), render(result)));
                Value::Object(named.collect())
            }
        }
    }
}

/// Returns the outputs of a whole journal.
#[must_use]
pub fn outputs<'r>(net: &Net, journal: impl IntoIterator<Item = &'r Record>) -> Value {
    let mut outputs = Outputs::default();
    journal.into_iter().for_each(|record| outputs.note(record));
    outputs.value(net)
}

fn object(net: &Net, step: StepId, result: Value) -> Value {
    if result.is_object() {
        return result;
    }
    Value::Object(Map::from_iter([(net.step(step).name.clone(), result)]))
}
