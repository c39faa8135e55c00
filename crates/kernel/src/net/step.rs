//! One step of a Net: its work and everything that decides when and how often it runs.

use super::policy::Retry;
use crate::ids::StepId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use windlass_expr::{Expr, Read, Template};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub name: String,
    /// Ready steps are dispatched by (order, id).
    #[serde(default)]
    pub order: u32,
    pub work: Work,
    /// Steps whose outputs the work's own templates read; the offer names their firings.
    #[serde(default)]
    pub reads: Vec<StepId>,
    #[serde(default)]
    pub admit: Option<Admit>,
    /// False skips the step.
    #[serde(default)]
    pub condition: Option<Expr>,
    #[serde(default)]
    pub wait_for: Option<WaitFor>,
    #[serde(default)]
    pub repeat: Option<LoopSpec>,
    /// The loop's output has the outputs of its iterations, because something reads them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub collect: bool,
    #[serde(default)]
    pub retry: Retry,
    /// Of one attempt; the worker's clock starts it, see `Timer::Attempt`.
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
    /// Fired by an agent only, never by a token of the marking.
    #[serde(default)]
    pub on_demand: bool,
    /// A trigger does not count when it is asked whether anything completed.
    #[serde(default)]
    pub trigger: bool,
    /// How people see it; None: by its name and its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Shown>,
}

/// What a definition calls a step beside its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Shown {
    pub title: String,
    pub kind: String,
}

impl Step {
    /// A step that does `work` and nothing else; fields are set from there.
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
        }
    }

    /// Every name that an expression of this step reads while it is decided.
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
    /// Decided here, without a worker: routing, context patches, constants.
    Pure {
        #[serde(default)]
        output: Option<Template>,
        #[serde(default)]
        patch: Vec<PatchEntry>,
    },
    /// Offered to a worker, who alone knows what it means.
    Task { spec: Arc<Value> },
    /// Another execution; its end is this step's.
    Child { definition: Template, inputs: Template },
    /// A person decides. What is asked is told to whoever may answer.
    Approval {
        deadline_ms: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asks: Option<Template>,
    },
    /// A durable timer; the template gives milliseconds.
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

/// `when: None` is the `else` rule.
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

/// Something outside must be ready before the work starts; who waits holds no slot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitFor {
    pub target: Template,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoopSpec {
    pub kind: LoopKind,
    /// Name of the item in the body's `iter`.
    pub iterator: String,
    /// Iterations open at a time; 1 is sequential.
    pub cap: u32,
    pub body: Body,
    /// True after an iteration: no further one starts.
    #[serde(default)]
    pub break_when: Option<Expr>,
}

impl LoopSpec {
    fn reads(&self) -> impl Iterator<Item = &Read> {
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
    /// Sequential; `check_first: false` is do-while. More than `max` iterations fail the step.
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
    /// After the work, a person confirms the end.
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
    /// The step exists to choose among its arcs: when it fails, no arc can be chosen.
    pub conditional: bool,
    pub arcs: Vec<JoinArc>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "snake_case")]
pub enum RouterMode {
    /// The first matching arc.
    Exclusive,
    /// Every matching arc.
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
    /// From an error handle: taken when the step failed, and then the failure is handled.
    Error,
}
