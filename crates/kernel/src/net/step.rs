//! One step of a Net: its work, and everything that decides when and how often it runs.

use super::policy::Retry;
use crate::ids::StepId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_expr::{Expr, Read, Template};
use windlass_failure::{Failure, FailureSite};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// Rank among ready steps, which are dispatched by (order, id).
    #[serde(default)]
    pub order: u32,
    pub work: Work,
    /// Steps whose outputs the work's own templates read; the offer names their firings.
    #[serde(default)]
    pub reads: Vec<StepId>,
    #[serde(default)]
    pub admit: Option<Admit>,
    /// Expression that skips the step if it is false.
    #[serde(default)]
    pub condition: Option<Expr>,
    #[serde(default)]
    pub wait_for: Option<WaitFor>,
    #[serde(default)]
    pub repeat: Option<LoopSpec>,
    /// Includes the outputs of the iterations in the loop's output, because an expression reads them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collect: bool,
    #[serde(default)]
    pub retry: Retry,
    /// Time limit of one attempt, counted from the start on the worker; see `Timer::Attempt`.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    #[serde(default)]
    pub completion: Completion,
    #[serde(default)]
    pub compensation: Option<Hook>,
    #[serde(default)]
    pub side_effecting: bool,
    #[serde(default)]
    pub router: Router,
    /// The loop step whose body this step belongs to.
    #[serde(default)]
    pub region: Option<StepId>,
    /// Fires only when an agent calls it, never by a token.
    #[serde(default)]
    pub on_demand: bool,
    /// Marks a trigger, which does not count as a completed step when the outcome is decided.
    #[serde(default)]
    pub trigger: bool,
    /// Display text; if unset, the step is shown by its name and its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
    /// The work reads the time at which its attempt was decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock: bool,
    /// Part that people take in the step, in the terms of its dialect. It is noted in the evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// The step that this approval precedes. People see both as one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approves: Option<StepId>,
    /// Fires once for all branches that can reach it, instead of once per token. Only in `each` nets: the joins of all
    /// others are those of the policy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub join_all: bool,
}

/// Display text of a step, in addition to its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub title: String,
    pub kind: String,
}

impl Step {
    /// Creates a step that does `work` and nothing else; the caller sets further fields.
    #[must_use]
    pub fn new(name: impl Into<String>, work: Work) -> Step {
        Step {
            name: name.into(),
            order: 0,
            work,
            reads: Vec::new(),
            admit: None,
            condition: None,
            wait_for: None,
            collect: false,
            repeat: None,
            retry: Retry::default(),
            timeout_ms: None,
            completion: Completion::Auto,
            compensation: None,
            side_effecting: false,
            router: Router::default(),
            region: None,
            on_demand: false,
            trigger: false,
            shown: None,
            clock: false,
            tier: None,
            approves: None,
            join_all: false,
        }
    }

    /// Returns the name that people see.
    #[must_use]
    pub fn title(&self) -> &str {
        self.shown.as_ref().map_or(&self.name, |shown| &shown.title)
    }

    /// Describes a failure of this step for users; `attempt` is the number of the attempt that failed.
    #[must_use]
    pub fn describe_failure(&self, failure: &Failure, attempt: u32) -> Value {
        let site = FailureSite { node_id: &self.name, node_name: self.title(), attempt };
        failure.describe(Some(site)).to_json()
    }

    /// Calls `take` for every name that an expression of this step reads during a decision.
    pub(crate) fn each_read(&self, take: &mut dyn FnMut(&Read)) {
        let admit = self.admit.iter().flat_map(Admit::reads);
        let condition = self.condition.iter().flat_map(Expr::reads);
        let wait = self.wait_for.iter().flat_map(|wait| wait.target.reads());
        let repeat = self.repeat.iter().flat_map(LoopSpec::reads);
        let work = self.work.templates().into_iter().flat_map(Template::reads);
        let hook = self.compensation.iter().flat_map(|hook| hook.work.templates()).flat_map(Template::reads);
        let arcs = self.router.arcs.iter().flat_map(|arc| {
            arc.guard.iter().flat_map(Expr::reads).chain(arc.args.iter().flat_map(Template::reads))
        });
        admit.chain(condition).chain(wait).chain(repeat).chain(work).chain(hook).chain(arcs).for_each(take);
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Computed in the kernel without a worker: routing, context patches, constants.
    Pure {
        #[serde(default)]
        output: Option<Template>,
        #[serde(default)]
        patch: Vec<PatchEntry>,
    },
    /// Offered to a worker; the kernel does not interpret the spec.
    Task { spec: Arc<Value> },
    /// Another execution, whose end is the end of this step.
    Child { definition: Template, inputs: Template },
    /// Decided by a person. `asks` is shown to the people who may answer.
    Approval {
        deadline_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<Template>,
    },
    /// A durable timer; the template renders to milliseconds.
    Delay { ms: Template },
}

impl Work {
    #[must_use]
    pub fn task(spec: Value) -> Work {
        Work::Task { spec: Arc::new(spec) }
    }

    #[must_use]
    pub fn noop() -> Work {
        Work::Pure { output: None, patch: Vec::new() }
    }

    fn templates(&self) -> Vec<&Template> {
        match self {
            Work::Pure { output, patch } => {
                output.iter().chain(patch.iter().map(|entry| &entry.value)).collect()
            }
            Work::Child { definition, inputs } => vec![definition, inputs],
            Work::Delay { ms } => vec![ms],
            Work::Approval { asks, .. } => asks.iter().collect(),
            Work::Task { .. } => Vec::new(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PatchEntry {
    pub key: String,
    pub value: Template,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Admit {
    pub rules: Vec<AdmitRule>,
    #[serde(default)]
    pub on_deny: OnDeny,
    #[serde(default)]
    pub deadline_ms: Option<u64>,
}

impl Admit {
    pub(crate) fn reads(&self) -> impl Iterator<Item = &Read> {
        self.rules.iter().filter_map(|rule| rule.when.as_ref()).flat_map(Expr::reads)
    }
}

/// Rule of admission; `when: None` is the `else` rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdmitRule {
    pub when: Option<Expr>,
    pub allow: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum OnDeny {
    #[default]
    Wait,
    Discard,
}

/// Condition outside the execution that must be met before the work starts. A waiting step-run holds no slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitFor {
    pub target: Template,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopSpec {
    pub kind: LoopKind,
    /// Name of the item in `iter` of the body.
    pub iterator: String,
    /// Maximum number of iterations open at a time; 1 is sequential.
    pub cap: u32,
    pub body: Body,
    /// Expression that is evaluated after an iteration; if it is true, no further iteration starts.
    #[serde(default)]
    pub break_when: Option<Expr>,
}

impl LoopSpec {
    pub fn reads(&self) -> impl Iterator<Item = &Read> {
        let kind: &[Read] = match &self.kind {
            LoopKind::ForEach { items } => items.reads(),
            LoopKind::Count { times } => times.reads(),
            LoopKind::While { condition, .. } => condition.reads(),
        };
        kind.iter().chain(self.break_when.iter().flat_map(Expr::reads))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopKind {
    ForEach {
        items: Template,
    },
    Count {
        times: Template,
    },
    /// Sequential loop; `check_first: false` is do-while. The step fails after more than `max` iterations.
    While {
        condition: Expr,
        check_first: bool,
        max: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// The step's own work, once per iteration.
    Own,
    /// The steps whose `region` is this step.
    Region,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    #[default]
    Auto,
    /// A person confirms the end after the work is done.
    Manual { deadline_ms: Option<u64> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub work: Work,
    pub retry: Retry,
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Router {
    pub mode: RouterMode,
    /// Marks a step that only chooses among its arcs: when it fails, no arc can be chosen.
    pub conditional: bool,
    pub arcs: Vec<JoinArc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RouterMode {
    /// Takes the first matching arc.
    Exclusive,
    /// Takes every matching arc.
    #[default]
    Inclusive,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinArc {
    pub to: StepId,
    #[serde(default)]
    pub guard: Option<Expr>,
    #[serde(default)]
    pub args: Option<Template>,
    #[serde(default)]
    pub on: On,
}

impl JoinArc {
    #[must_use]
    pub fn to(to: StepId) -> JoinArc {
        JoinArc { to, guard: None, args: None, on: On::End }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum On {
    #[default]
    End,
    /// Leaves an error handle: it is taken when the step failed, and then the failure is handled.
    Error,
}
