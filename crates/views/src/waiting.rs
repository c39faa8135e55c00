//! Things that an execution waits for: answers of people, and branches that can still reach a join step.

use crate::entry::NodeLabel;
use crate::expression::opening;
use crate::history::{ExecutionHold, History};
use crate::large::{AnswerBudget, ValueBudget, WAITING_MAX, reference};
use crate::shapes::{TaskRef, Waiting, WaitingKind};
use crate::timeline::label;
use crate::wire::{execution_id, time};
use serde_json::Value;
use std::collections::BTreeSet;
use windlass_artifact::{json_bytes, key};
use windlass_kernel::net::{Step, Work};
use windlass_kernel::{Execution, Millis, Net, Path, Role, RunId, RunState, StepId, TokenId, any_of};

/// Maximum number of steps that a waiting join step names, of each kind.
const NAMED_MAX: usize = 20;

/// Lists a pause first, then approvals and manual steps, then gates, then `children`: what sub-executions wait for. At
/// most [`WAITING_MAX`] of them.
#[must_use]
pub fn waiting_for(
    net: &Net,
    history: &History,
    children: &[Waiting],
    budget: &mut AnswerBudget<'_>,
) -> Vec<Waiting> {
    let (mut found, mut values) = (Vec::new(), ValueBudget::default());
    if let Some(hold) = history.hold().filter(|_| history.state().head.held) {
        found.push(waiting_for_release(Some(hold)));
    }
    let mut listing = Listing {
        net,
        state: history.state(),
        asked: &|run| history.asked_at(run),
        denied: &|token| history.denied_at(token),
        show: &mut |value| budget.show_reference(&mut values, value),
    };
    listing.list(&mut found);
    let rule_bytes = |waits: &Waiting| waits.when.iter().chain(&waits.reads).map(String::len).sum::<usize>();
    let bytes = |waits: &Waiting| {
        rule_bytes(waits) + waits.message.iter().chain(&waits.approvers).map(json_bytes).sum::<usize>()
    };
    let fits = |waits: &&Waiting| values.take(bytes(waits) as u64);
    let left = WAITING_MAX.saturating_sub(found.len());
    found.extend(children.iter().take(left).take_while(fits).cloned());
    found
}

/// Lists what a sub-execution waits for, from its state alone: without the times at which it began to wait.
#[must_use]
pub fn waiting_of_child(net: &Net, state: &Execution<'_>) -> Vec<Waiting> {
    let (id, mut found) = (state.head.id, Vec::new());
    if state.head.held {
        found.push(waiting_for_release(None));
    }
    let show = &mut |value: &Value| reference(id, value);
    Listing { net, state, asked: &|_| None, denied: &|_| None, show }.list(&mut found);
    let child_id = Some(execution_id(id));
    found.into_iter().map(|waits| Waiting { child_id: child_id.clone(), ..waits }).collect()
}

/// Returns what a child waits for as its parent shows it: the step that waits for the child may end it sooner.
#[must_use]
pub fn seen_by_parent(waits: Waiting, until: Option<Millis>) -> Waiting {
    let deadline = waits.deadline.into_iter().chain(until.map(time)).min();
    Waiting { deadline, ..waits }
}

/// Returns the wait of a token at the gate of a step.
#[must_use]
pub fn waiting_at_gate(net: &Net, step: StepId, since: Option<Millis>, deadline: Option<Millis>) -> Waiting {
    GateRules::of(net, step).waiting(net.step(step), since, deadline)
}

/// Returns the wait of a held execution for its release. Without its hold, the reason is absent.
#[must_use]
pub fn waiting_for_release(hold: Option<&ExecutionHold>) -> Waiting {
    Waiting {
        reason: hold.map(|hold| hold.reason.clone()),
        by: hold.map(|hold| hold.by.clone()),
        ..waiting(WaitingKind::Pause, hold.map(|hold| hold.at), None)
    }
}

struct Listing<'l, 'e> {
    net: &'l Net,
    state: &'l Execution<'e>,
    /// Time at which a person was asked about a firing.
    asked: &'l dyn Fn(RunId) -> Option<Millis>,
    /// Time at which a gate denied a token.
    denied: &'l dyn Fn(TokenId) -> Option<Millis>,
    show: &'l mut dyn FnMut(&Value) -> Value,
}

impl Listing<'_, '_> {
    fn list(&mut self, found: &mut Vec<Waiting>) {
        for (run, live) in self.state.runs.iter() {
            if found.len() == WAITING_MAX {
                return;
            }
            if let RunState::Manual { output, deadline, fence } = &live.state {
                let step = self.net.step(live.step);
                let task = TaskRef { execution: self.state.head.id, run: *run, fence: *fence };
                let since = (self.asked)(*run);
                let waits = match step.work {
                    Work::Approval { .. } => {
                        asking(waiting(WaitingKind::Approval, since, *deadline), output, self.show)
                    }
                    any_of![Work: Pure Task Child Delay] => waiting(WaitingKind::Manual, since, *deadline),
                };
                let shown = self.net.step(self.net.shown_as(live.step));
                let action_id = Some(label(&shown.name, &live.path.0));
                found.push(at_node(Waiting { action_id, task: Some(task), ..waits }, shown, &live.path));
            }
        }
        let (left, mut rules) = (WAITING_MAX - found.len(), ValueBudget::default());
        let mut known: Option<(StepId, GateRules)> = None;
        // The tokens of a step follow each other.
        for ((step, token), gate) in self.state.gated.iter().take(left) {
            if known.as_ref().is_none_or(|(of, _)| of != step) {
                known = Some((*step, GateRules::of(self.net, *step)));
            }
            let shown =
                known.as_ref().filter(|(_, gate)| rules.take(gate.bytes())).map(|(_, gate)| gate.clone());
            let shown = shown.unwrap_or_default();
            found.push(shown.waiting(self.net.step(*step), (self.denied)(*token), gate.deadline));
        }
    }
}

/// The rules of a gate as an answer shows them.
#[derive(Debug, Clone, Default)]
struct GateRules {
    reads: Vec<String>,
    when: Option<String>,
}

impl GateRules {
    fn of(net: &Net, step: StepId) -> GateRules {
        let reads = gate_keys(net, step).into_iter().map(str::to_owned).collect();
        GateRules { reads, when: net.step(step).admit.as_ref().and_then(opening) }
    }

    fn waiting(self, step: &Step, since: Option<Millis>, deadline: Option<Millis>) -> Waiting {
        let GateRules { reads, when } = self;
        at_node(
            Waiting { reads, when, ..waiting(WaitingKind::Gate, since, deadline) },
            step,
            &Path::default(),
        )
    }

    fn bytes(&self) -> u64 {
        self.reads.iter().chain(&self.when).map(|text| text.len() as u64).sum()
    }
}

fn waiting(kind: WaitingKind, since: Option<Millis>, deadline: Option<Millis>) -> Waiting {
    Waiting {
        kind,
        child_id: None,
        since: since.map(time),
        deadline: deadline.map(time),
        node_id: None,
        node_name: None,
        path: Vec::new(),
        message: None,
        approvers: None,
        reads: Vec::new(),
        when: None,
        reason: None,
        by: None,
        action_id: None,
        completion_token: None,
        task: None,
    }
}

/// Adds the question of an approval, or the reference to a large one.
fn asking(waits: Waiting, asked: &Value, show: &mut dyn FnMut(&Value) -> Value) -> Waiting {
    match key(asked) {
        Some(_) => Waiting { message: Some(show(asked)), ..waits },
        None => {
            let (message, approvers) =
                (asked.get("message").map(&mut *show), asked.get("approvers").map(&mut *show));
            Waiting { message, approvers, ..waits }
        }
    }
}

fn at_node(waits: Waiting, step: &Step, path: &Path) -> Waiting {
    let NodeLabel { id, name, .. } = NodeLabel::of(step);
    Waiting { node_id: Some(id), node_name: Some(name), path: path.0.clone(), ..waits }
}

/// Returns the context keys that the rules of a step's gate read.
#[must_use]
pub fn gate_keys(net: &Net, step: StepId) -> BTreeSet<&str> {
    let rules = net.step(step).admit.iter().flat_map(|admit| &admit.rules);
    let reads = rules.filter_map(|rule| rule.when.as_ref()).flat_map(|when| when.reads());
    reads.filter(|read| read.root == "ctx").filter_map(|read| read.key.as_deref()).collect()
}

/// A join step at which tokens wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingJoin {
    pub step: StepId,
    /// Steps that the waiting tokens came from.
    pub arrived: Vec<StepId>,
    /// Steps whose branches can still reach it.
    pub awaited: Vec<StepId>,
}

/// Lists the join steps at which tokens wait, in the order of the definition.
#[must_use]
pub fn waiting_joins(net: &Net, state: &Execution<'_>) -> Vec<WaitingJoin> {
    if state.joining.is_empty() {
        return Vec::new();
    }
    let live = live_steps(state);
    let joins = net.join_steps().iter().enumerate();
    let found = joins.map(|(number, step)| {
        let arrived = state.joining.values().filter(|token| token.step == *step);
        let arrived: BTreeSet<StepId> = arrived.filter_map(|token| Some(token.from?.0)).collect();
        let at_others = state.joining.values().map(|token| token.step).filter(|at| at != step);
        let awaited: BTreeSet<StepId> = live.iter().copied().chain(at_others).collect();
        let can_reach = |from: &StepId| net.joins_behind(*from) >> number & 1 == 1;
        WaitingJoin {
            step: *step,
            arrived: arrived.into_iter().take(NAMED_MAX).collect(),
            awaited: awaited.into_iter().filter(can_reach).take(NAMED_MAX).collect(),
        }
    });
    found.filter(|join| !join.arrived.is_empty()).collect()
}

/// Returns the steps with tokens or step-runs that arcs can lead on.
fn live_steps(state: &Execution<'_>) -> BTreeSet<StepId> {
    let tokens = state.arrived.values().chain(state.gated.values().map(|gate| &gate.token));
    let runs = state.runs.values().filter(|run| run.role == Role::Routed);
    tokens.map(|token| token.step).chain(runs.map(|run| run.step)).collect()
}
