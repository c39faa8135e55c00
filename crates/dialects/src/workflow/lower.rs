//! Lowering of the model and the plan to the Net.

use super::form::stored;
use super::language::{Exit, Kind};
use super::model::{Flow, Form, LoopForm, NodeDef, TaskForm, Workflow};
use super::plan::{Plan, guard};
use super::reads::{Names, reads_all};
use super::retry;
use crate::diagnostic::Problems;
use crate::manifest::{DefaultRetry, Settings, end_policy};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use windlass_expr::{Expr, NOW, Template};
use windlass_kernel::net::{
    Body, FailureMode, Join, JoinArc, LoopSpec, NetSpec, On, Policy, Recovery, Retry, Root, Shown, Step, Work,
};
use windlass_kernel::{Net, StepId, any_of};
use windlass_protocol::{Node, Pipeline, Task};

/// Default timeout of an execution.
const TIMEOUT_MS: u64 = 300_000;

/// Lowers a workflow that has been checked: every name in it exists.
pub(super) fn lower(workflow: &Workflow, plan: &Plan, problems: &mut Problems) -> Option<Net> {
    let names = Names::of(workflow);
    let retry = workflow.settings.retry.clone().unwrap_or_else(retry::usual);
    let lowering = Lowering::new(workflow, plan, names, retry);
    let steps = (0..workflow.nodes.len()).map(|place| lowering.step(place)).collect();
    let refused = match Net::new(NetSpec { steps, policy: policy(workflow) }) {
        Ok(net) => return Some(net),
        Err(refused) => refused,
    };
    for problem in refused.problems {
        problems.add("E0117", &(0..0), problem.to_string(), None);
    }
    None
}

/// Returns the settings that a start may replace.
pub(super) fn settings(workflow: &Workflow) -> Settings {
    let default_retry = |(node, step): (&NodeDef, u32)| {
        let attempts_max = match &node.form {
            Form::Task(task) => task.attempts_max,
            Form::Child { .. } => None,
            any_of![Form: Trigger Conditional Loop Delay Approval Broken] => return None,
        };
        node.retry.is_none().then_some(DefaultRetry { step, attempts_max })
    };
    Settings {
        failure_mode: workflow.settings.failure,
        default_retries: workflow.nodes.iter().zip(0..).filter_map(default_retry).collect(),
    }
}

fn policy(workflow: &Workflow) -> Policy {
    let settings = &workflow.settings;
    let failure = settings.failure.unwrap_or(FailureMode::FailFast);
    Policy {
        join: Join::AnyLive,
        failure,
        end: end_policy(failure),
        max_parallel: settings.max_parallel,
        timeout_ms: Some(settings.timeout_ms.unwrap_or(TIMEOUT_MS)),
        recovery: Recovery::ResumeStep,
        names: BTreeMap::from([("inputs".to_owned(), Root::Inputs), ("nodes".to_owned(), Root::Outputs)]),
        ..Policy::default()
    }
}

struct Lowering<'w> {
    workflow: &'w Workflow,
    plan: &'w Plan,
    names: Names<'w>,
    retry: Retry,
    /// Edges from and to each node.
    flows_from: Vec<Vec<&'w Flow>>,
    flows_to: Vec<Vec<&'w Flow>>,
    /// Nodes whose outputs expressions read; all of them if one reads the whole of `nodes`.
    read: BTreeSet<usize>,
    reads_all: bool,
}

fn id(place: usize) -> StepId {
    StepId(u32::try_from(place).unwrap_or(u32::MAX))
}

impl<'w> Lowering<'w> {
    fn new(workflow: &'w Workflow, plan: &'w Plan, names: Names<'w>, retry: Retry) -> Lowering<'w> {
        let (mut flows_from, mut flows_to) =
            (vec![Vec::new(); workflow.nodes.len()], vec![Vec::new(); workflow.nodes.len()]);
        for flow in &plan.flows {
            flows_from[flow.from].push(flow);
            flows_to[flow.to].push(flow);
        }
        let seen = || workflow.nodes.iter().flat_map(|node| &node.seen);
        let read = seen().filter_map(|seen| names.node(&seen.read)).collect();
        let reads_all = seen().any(|seen| reads_all(&seen.read));
        Lowering { workflow, plan, names, retry, flows_from, flows_to, read, reads_all }
    }

    fn step(&self, place: usize) -> Step {
        let node = &self.workflow.nodes[place];
        let mut step = Step::new(&node.id.text, self.work(place, node));
        step.shown = Some(Shown { title: node.title.clone(), kind: node.kind.name.to_owned() });
        step.trigger = node.kind.kind == Kind::Trigger;
        step.on_demand = self.plan.on_demand.contains(&place);
        step.region = self.plan.region[place].map(id);
        step.timeout_ms = match &node.form {
            Form::Child { timeout_ms, .. } => node.timeout_ms.or(*timeout_ms),
            _ => node.timeout_ms,
        };
        step.condition = self.condition(place);
        step.router.conditional = node.kind.kind == Kind::Conditional;
        step.router.arcs = self.arcs(place, node);
        if let Form::Loop(form) = &node.form {
            step.repeat = Some(repeat(form));
            step.collect = self.wants_results(place);
        }
        if matches!(node.form, Form::Task(_) | Form::Child { .. }) {
            step.retry = self.retry(node);
        }
        if matches!(node.form, Form::Task(_)) {
            step.reads = self.reads(place, node);
            step.clock = node.seen.iter().any(|seen| seen.read.root == NOW);
        }
        step
    }

    /// Returns whether something reads the results of the iterations, or they are the output because nothing follows
    /// the loop.
    fn wants_results(&self, place: usize) -> bool {
        let read = self.reads_all || self.read.contains(&place);
        let leads_on = self.flows_from[place].iter().any(|flow| flow.exit == Exit::Done);
        read || !leads_on || self.programs_after(place)
    }

    /// A node directly after it may read all its outputs.
    fn programs_after(&self, place: usize) -> bool {
        let leaves = |exit: Exit| matches!(exit, Exit::Done | Exit::Error);
        let after = self.flows_from[place].iter().filter(|flow| leaves(flow.exit));
        after.into_iter().any(|flow| is_program(self.workflow.nodes[flow.to].kind.kind))
    }

    /// Returns the retry policy. A node's own policy has precedence over the number of tries that its type sets.
    fn retry(&self, node: &NodeDef) -> Retry {
        let tries = match &node.form {
            Form::Task(task) => task.attempts_max,
            _ => None,
        };
        let usual = Retry { attempts_max: tries.unwrap_or(self.retry.attempts_max), ..self.retry.clone() };
        let policy = node.retry.clone().unwrap_or(usual);
        // A busy model does not undo what an agent has done so far.
        Retry { resumes: node.kind.kind == Kind::AiAgent, ..policy }
    }

    /// Returns the condition. The first nodes of a body do not run in an iteration that is skipped.
    fn condition(&self, place: usize) -> Option<Expr> {
        let around = self.plan.region[place]?;
        let Form::Loop(form) = &self.workflow.nodes[around].form else { return None };
        let first = self.flows_to[place].iter().any(|flow| flow.from == around);
        let skip = form.skip_when.as_ref().filter(|_| first)?;
        Expr::compile(&format!("not ({skip})")).ok()
    }

    fn arcs(&self, place: usize, node: &NodeDef) -> Vec<JoinArc> {
        let arc = |flow: &&Flow| JoinArc {
            guard: guard(node, flow).and_then(|guard| Expr::compile(&guard).ok()),
            on: if flow.exit == Exit::Error { On::Error } else { On::End },
            ..JoinArc::to(id(flow.to))
        };
        self.flows_from[place].iter().map(arc).collect()
    }

    fn work(&self, place: usize, node: &NodeDef) -> Work {
        let template = |value: &Value| Template::compile(value).ok();
        let pure = |output: &Value| Work::Pure { output: template(output), patch: Vec::new() };
        match &node.form {
            Form::Trigger => pure(&json!("{{ workload }}")),
            Form::Conditional(conditional) => pure(&conditional.output),
            Form::Loop(_) | Form::Broken => Work::noop(),
            Form::Approval { deadline_ms, asks } => {
                Work::Approval { deadline_ms: *deadline_ms, asks: asks.as_ref().and_then(template) }
            }
            Form::Delay { ms } => template(ms).map_or_else(Work::noop, |ms| Work::Delay { ms }),
            Form::Child { definition, inputs, .. } => match (template(definition), template(inputs)) {
                (Some(definition), Some(inputs)) => Work::Child { definition, inputs },
                _ => Work::noop(),
            },
            Form::Task(task) => Work::task(self.pipeline(place, node, task)),
        }
    }

    fn pipeline(&self, place: usize, node: &NodeDef, task: &TaskForm) -> Value {
        let mut config = task.config.clone();
        if node.kind.kind == Kind::AiAgent {
            config.extend(self.of_agent(place));
        }
        let declared = node.credentials.iter().map(|(name, secret)| stored(name, secret));
        let known: BTreeSet<&String> = task.keychain.iter().map(|key| &key.name).collect();
        let keychain = task.keychain.iter().cloned().chain(declared.filter(|key| !known.contains(&key.name)));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let pipeline = Pipeline {
            tasks: vec![Task {
                label: node.id.text.clone(),
                kind: task.tool.to_owned(),
                config,
                rules: task.rules.clone(),
                on_unmatched: windlass_protocol::OnUnmatched::default(),
                timeout_ms: task.timeout_ms,
            }],
            keychain: keychain.collect(),
            idempotency: None,
            node: Some(Box::new(Node {
                id: node.id.text.clone(),
                name: node.title.clone(),
                kind: node.kind.name.to_owned(),
                config: node.config.clone(),
                credentials: node.credentials.clone(),
                env: node.env.iter().map(|(name, value)| (name.clone(), text(value))).collect(),
                before: self
                    .before(place, node)
                    .into_iter()
                    .map(|at| self.workflow.nodes[at].id.text.clone())
                    .collect(),
            })),
            ..Pipeline::default()
        };
        serde_json::to_value(pipeline).unwrap_or_default()
    }

    /// Nodes that an agent may run, and their descriptions.
    fn of_agent(&self, place: usize) -> Map<String, Value> {
        let nodes = &self.workflow.nodes;
        let owned = self.plan.tools.get(&place).map(Vec::as_slice).unwrap_or_default();
        let tool = |place: &usize| {
            let node = &nodes[*place];
            let mut tool = json!({
                "step": id(*place).0,
                "node": node.id.text,
                "name": node.title,
                "description": described(node),
            });
            if let Some(parameters) = &node.parameters {
                tool["parameters"] = parameters.clone();
            }
            tool
        };
        let edge = |edge: &super::model::EdgeDef| {
            let mut connection = json!({ "source": edge.source.text, "target": edge.target.text });
            if let Some(handle) = &edge.handle {
                connection["sourceHandle"] = json!(handle.text);
            }
            connection
        };
        let descriptions: Map<String, Value> =
            nodes.iter().map(|node| (node.id.text.clone(), json!(described(node)))).collect();
        let connections: Vec<Value> = self.workflow.edges.iter().map(edge).collect();
        // A description is the author's words, not a template.
        Map::from_iter([
            ("tools".to_owned(), quoted(json!(owned.iter().map(tool).collect::<Vec<_>>()))),
            ("connections".to_owned(), quoted(Value::Array(connections))),
            ("descriptions".to_owned(), quoted(Value::Object(descriptions))),
        ])
    }

    /// Loops further out whose items it reads by their name.
    fn outer_items(&self, place: usize, node: &NodeDef) -> Vec<usize> {
        let around = std::iter::successors(self.plan.region[place], |at| self.plan.region[*at]);
        let reads = |at: &usize| {
            let is_read = |form: &LoopForm| node.seen.iter().any(|seen| seen.read.root == form.iterator);
            matches!(&self.workflow.nodes[*at].form, Form::Loop(form) if is_read(form))
        };
        around.skip(1).filter(reads).collect()
    }

    /// Returns the nodes whose outputs its templates read, and those right before it, which are its inputs.
    fn reads(&self, place: usize, node: &NodeDef) -> Vec<StepId> {
        let mut found: BTreeSet<usize> =
            node.seen.iter().filter_map(|seen| self.names.node(&seen.read)).collect();
        if node.seen.iter().any(|seen| reads_all(&seen.read)) {
            found.extend(0..self.workflow.nodes.len());
        }
        found.extend(self.before(place, node));
        found.extend(self.outer_items(place, node));
        found.remove(&place);
        found.into_iter().map(id).collect()
    }

    /// Steps whose outputs are inputs of a program.
    fn before(&self, place: usize, node: &NodeDef) -> BTreeSet<usize> {
        let flows = self.flows_to[place].iter().filter(|flow| flow.exit != Exit::Body);
        if is_program(node.kind.kind) { flows.map(|flow| flow.from).collect() } else { BTreeSet::new() }
    }
}

/// Returns whether it gets the outputs of the nodes directly before it, whether or not its templates read them.
fn is_program(kind: Kind) -> bool {
    matches!(kind, Kind::Shell | Kind::Code | Kind::AiAgent)
}

fn described(node: &NodeDef) -> &str {
    if node.description.is_empty() { node.kind.about } else { &node.description }
}

/// Texts that no template engine changes.
fn quoted(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(crate::programs::raw(&text)),
        Value::Array(items) => items.into_iter().map(quoted).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, value)| (key, quoted(value))).collect())
        }
        other => other,
    }
}

fn repeat(form: &LoopForm) -> LoopSpec {
    LoopSpec {
        kind: form.kind.clone(),
        iterator: form.iterator.clone(),
        cap: form.cap,
        body: Body::Region,
        break_when: form.break_when.clone(),
    }
}
