//! Lowering of the checked document to the Net: one step for each action, and one more for each approval before an
//! action.

use super::check::{Index, OUTPUTS, index};
use super::model::{Action, Compensation, CompletionMode, Input, Tier, Workflow};
use crate::diagnostic::Problems;
use crate::programs::raw;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::{NOW, Template};
use windlass_kernel::net::{
    Completion, FailureMode, Hook, Join, JoinArc, NetSpec, Policy, Recovery, Root, Shown, Step, Work,
};
use windlass_kernel::{Net, StepId};
use windlass_protocol::{OnUnmatched, Pipeline, Task};

/// Suffix of the name of the step that waits for the approval of an action. No action has such a name.
const APPROVAL: &str = ":approval";

/// Root of the outputs of actions in templates: `actions.ID.output`.
const ACTIONS: &str = "actions";

pub(super) fn lower(workflow: &Workflow, problems: &mut Problems) -> Option<Net> {
    let index = index(workflow);
    let (approvals, followers) = (approvals(workflow), followers(workflow, &index));
    let lowering = Lowering { workflow, index, approvals, followers };
    let actions = (0..workflow.actions.len()).map(|place| lowering.action(place));
    let approvals = lowering.approvals.keys().map(|place| lowering.approval(*place));
    let steps = actions.chain(approvals).collect();
    let refused = match Net::new(NetSpec { steps, policy: policy(workflow) }) {
        Ok(net) => return Some(net),
        Err(refused) => refused,
    };
    for problem in refused.problems {
        problems.add("E0117", &(0..0), problem.to_string(), None);
    }
    None
}

fn policy(workflow: &Workflow) -> Policy {
    Policy {
        join: Join::All,
        failure: FailureMode::FailFast,
        recovery: Recovery::FailAttempt,
        compensate: true,
        timeout_ms: workflow.timeout_ms,
        names: BTreeMap::from([("inputs".to_owned(), Root::Inputs), (ACTIONS.to_owned(), Root::Outputs)]),
        ..Policy::default()
    }
}

/// Returns the steps of the approvals, by the actions that they precede. They follow the actions in the Net.
fn approvals(workflow: &Workflow) -> BTreeMap<usize, StepId> {
    let gated = workflow.actions.iter().enumerate().filter(|(_, action)| action.tier.is_gated());
    gated.zip(workflow.actions.len()..).map(|((place, _), step)| (place, id(step))).collect()
}

/// Returns the actions after each action. Without dependencies, each is followed by the next one in order.
fn followers(workflow: &Workflow, index: &Index<'_>) -> Vec<Vec<usize>> {
    let count = workflow.actions.len();
    if !workflow.is_graph() {
        return (1..=count).map(|next| (next..count).take(1).collect()).collect();
    }
    let mut followers = vec![Vec::new(); count];
    for (place, action) in workflow.actions.iter().enumerate() {
        let before = action.depends_on.iter().flatten().filter_map(|name| index.get(name.text.as_str()));
        before.for_each(|of| followers[*of].push(place));
    }
    followers
}

fn id(place: usize) -> StepId {
    StepId(u32::try_from(place).unwrap_or(u32::MAX))
}

struct Lowering<'w> {
    workflow: &'w Workflow,
    index: Index<'w>,
    approvals: BTreeMap<usize, StepId>,
    /// Actions that become eligible after each action.
    followers: Vec<Vec<usize>>,
}

impl Lowering<'_> {
    fn action(&self, place: usize) -> Step {
        let action = &self.workflow.actions[place];
        let mut step = Step::new(
            &action.id.text,
            pipeline(&action.operation.text, &action.input, None, action.id.text.clone()),
        );
        step.order = order(place);
        step.shown = Some(Shown { title: action.id.text.clone(), kind: action.operation.text.clone() });
        step.tier = tier(action);
        step.retry = action.retry.clone();
        step.timeout_ms = Some(action.timeout_ms);
        step.side_effecting = action.side_effecting;
        step.completion = match action.completion {
            CompletionMode::Auto => Completion::Auto,
            CompletionMode::Manual { deadline_ms } => Completion::Manual { deadline_ms },
        };
        step.compensation = action.compensation.as_ref().map(|of| hook(&action.id.text, of));
        step.reads = self.reads(action);
        step.clock = inputs(action).any(|input| input.reads.iter().any(|seen| seen.read.root == NOW));
        step.router.arcs =
            self.followers[place].iter().map(|place| JoinArc::to(self.entry(*place))).collect();
        step
    }

    /// Builds the approval before an action. A person decides about it before the action is dispatched.
    fn approval(&self, place: usize) -> Step {
        let action = &self.workflow.actions[place];
        let message =
            format!("{} of action {} ({})", action.operation.text, action.id.text, action.tier.word());
        let asks = Template::compile(&json!({ "message": raw(&message) })).ok();
        let mut step =
            Step::new(format!("{}{APPROVAL}", action.id.text), Work::Approval { deadline_ms: None, asks });
        step.order = order(place);
        step.shown =
            Some(Shown { title: format!("{}: approval", action.id.text), kind: "approval".to_owned() });
        step.tier = tier(action);
        step.approves = Some(id(place));
        step.router.arcs = vec![JoinArc::to(id(place))];
        step
    }

    /// Returns the step that control reaches first on its way to an action.
    fn entry(&self, place: usize) -> StepId {
        self.approvals.get(&place).copied().unwrap_or(id(place))
    }

    /// Returns the actions whose outputs the inputs of an action and of its hook read.
    fn reads(&self, action: &Action) -> Vec<StepId> {
        let reads = inputs(action)
            .flat_map(|input| &input.reads)
            .filter(|seen| OUTPUTS.contains(&seen.read.root.as_str()));
        let places: BTreeSet<usize> =
            reads.filter_map(|seen| self.index.get(seen.read.key.as_deref()?).copied()).collect();
        places.into_iter().map(id).collect()
    }
}

fn inputs(action: &Action) -> impl Iterator<Item = &Input> {
    std::iter::once(&action.input).chain(action.compensation.iter().map(|hook| &hook.input))
}

/// Returns the tier, unless people take no part.
fn tier(action: &Action) -> Option<String> {
    (action.tier != Tier::Auto).then(|| action.tier.word().to_owned())
}

fn order(place: usize) -> u32 {
    u32::try_from(place + 1).unwrap_or(u32::MAX)
}

fn hook(action: &str, compensation: &Compensation) -> Hook {
    let schema = compensation.input_schema.clone();
    let key = format!("{action}:compensate");
    Hook {
        work: pipeline(&compensation.operation.text, &compensation.input, schema, key),
        retry: compensation.retry.clone(),
        timeout_ms: Some(compensation.timeout_ms),
    }
}

/// Builds the work of an operation: one task of that kind, which an adapter replaces by a tool. `key` follows the id
/// of the run in the idempotency key.
fn pipeline(operation: &str, input: &Input, args_schema: Option<Value>, key: String) -> Work {
    let pipeline = Pipeline {
        args: input.fields.clone(),
        args_schema,
        tasks: vec![Task {
            label: operation.to_owned(),
            kind: operation.to_owned(),
            config: serde_json::Map::new(),
            rules: Vec::new(),
            on_unmatched: OnUnmatched::default(),
            timeout_ms: None,
        }],
        outputs_root: Some(ACTIONS.to_owned()),
        idempotency: Some(key),
        ..Pipeline::default()
    };
    Work::task(serde_json::to_value(pipeline).unwrap_or_default())
}
