//! The scenario with what follows from it at a glance.

use super::run::{Kind, Run};
use crate::scenario::{Arc, Dialect, Retry, Scenario, Step, Work};

#[derive(Debug, PartialEq)]
pub(super) struct Net {
    pub(super) scenario: Scenario,
    /// Arcs that lead to each step.
    pub(super) incoming: Vec<usize>,
    /// Arcs of a loop into its own body: followed per iteration, not when the loop ends.
    pub(super) into_body: Vec<Vec<Arc>>,
}

/// Way in which a ready step-run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    Task,
    Child,
    Person,
    Delay,
    Route,
    Noop,
    Loop,
}

impl Begin {
    pub(super) fn needs_slot(self) -> bool {
        matches!(self, Begin::Task | Begin::Child)
    }
}

impl Net {
    pub(super) fn new(mut scenario: Scenario) -> Net {
        let mut incoming = vec![0; scenario.steps.len()];
        scenario.steps.iter().flat_map(|step| &step.arcs).for_each(|arc| incoming[arc.to] += 1);
        let regions: Vec<_> = scenario.steps.iter().map(|step| step.region).collect();
        let split = |(index, step): (usize, &mut Step)| {
            let (into, out) =
                std::mem::take(&mut step.arcs).into_iter().partition(|arc| regions[arc.to] == Some(index));
            step.arcs = out;
            into
        };
        let into_body = scenario.steps.iter_mut().enumerate().map(split).collect();
        Net { scenario, incoming, into_body }
    }

    pub(super) fn step(&self, step: usize) -> &Step {
        &self.scenario.steps[step]
    }

    /// Whether a person decides how the step, or a step of its body, ends.
    pub(super) fn asks_people(&self, step: usize) -> bool {
        let own = self.step(step);
        let within = |(index, member): (usize, &Step)| member.region == Some(step) && self.asks_people(index);
        matches!(own.work, Work::Approval(_))
            || own.manual.is_some()
            || self.scenario.steps.iter().enumerate().any(within)
    }

    pub(super) fn is_playbook(&self) -> bool {
        self.scenario.dialect == Dialect::Playbook
    }

    /// Returns the first steps of the execution (`None`), or of the body of a loop.
    pub(super) fn entries(&self, within: Option<usize>) -> Vec<usize> {
        match (self.is_playbook(), within) {
            (true, None) => vec![0],
            (true | false, _) => {
                let begins = |&step: &usize| self.incoming[step] == 0 && !self.step(step).tool;
                self.body(within).filter(begins).collect()
            }
        }
    }

    pub(super) fn body(&self, within: Option<usize>) -> impl Iterator<Item = usize> {
        (0..self.scenario.steps.len()).filter(move |&step| self.step(step).region == within)
    }

    pub(super) fn begin(&self, run: &Run) -> Begin {
        let step = self.step(run.step);
        match (run.of, step.route_ms, &step.repeat) {
            (Kind::Hook { .. }, _, _) => Begin::Task,
            (Kind::Step | Kind::Final, Some(_), _) if !run.routed => Begin::Route,
            (Kind::Step | Kind::Final, _, Some(_)) => Begin::Loop,
            (Kind::Step | Kind::Final | Kind::Iteration { .. } | Kind::Tool { .. }, _, _) => {
                match step.work {
                    Work::Task => Begin::Task,
                    Work::Noop { .. } => Begin::Noop,
                    Work::Approval(_) => Begin::Person,
                    Work::Delay { .. } => Begin::Delay,
                    Work::Child => Begin::Child,
                }
            }
        }
    }

    pub(super) fn retry(&self, run: &Run) -> Retry {
        let step = self.step(run.step);
        match (run.of, step.hook) {
            (Kind::Hook { .. }, Some(hook)) => hook,
            (_, _) => step.retry,
        }
    }

    pub(super) fn has_hooks(&self) -> bool {
        self.scenario.steps.iter().any(|step| step.hook.is_some())
    }
}
