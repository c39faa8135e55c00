//! Plans: immutable graphs of steps whose order follows from references. Parse, check, lower.
//!
//! [`read_plan`] reads a document with the actions of a registry and returns the plan with every action written out. That
//! text needs no registry any more: `compile` makes the same Net of it, and the plan has the same id.

mod bind;
mod check;
mod language;
mod lower;
mod model;
mod parse;
mod reference;
mod registry;
mod schema;
mod spec;
mod types;
mod view;

pub(crate) use view::describe_step;

pub use lower::{ROUTING_TIMEOUT, with_routing_timeout};
pub use registry::{
    ActionDocument, ActionLookup, ActionRef, NoActions, RegisteredAction, is_builtin_action, parse_action,
};
pub use view::step_counts;

use crate::adapters::{Adapters, Outside};
use crate::diagnostic::{Diagnostic, Problems};
use crate::document;
use crate::manifest::{Lowered, Manifest};
use crate::read::Reader;
use crate::table::{Compiler, Dialect, Document, Identity, has_key};
use check::Checked;
use model::Plan;
use serde_json::{Value, json};

pub(crate) const DIALECT: Dialect = Dialect {
    name: "plan",
    shape: "a plan has a list `steps`",
    has_shape: |root| has_key(root, "steps"),
    identity: Identity::ByContent { prefix: spec::ID_PREFIX },
    view: &view::VIEW,
    // Conditions of earlier compilers compare values of different kinds, and large parameters are no sources of inputs.
    nets_since: 5,
    older_nets_are_programs: false,
    compiler: Some(Compiler { schema: schema::schema, compile }),
};

fn compile(document: &Document<'_>, problems: &mut Problems) -> Lowered {
    let Document { root, text: source, marks, outside } = *document;
    let mut reader = Reader { source, problems, marks, own: Adapters::default(), outside };
    let plan = parse::plan(root, &NoActions, &mut reader);
    let checked = check::check(&plan, source, problems);
    // A stored plan that has errors by now keeps its Net, whose inputs are still checked.
    let inputs_schema = lower::inputs_schema(&plan, &checked);
    check::check_inputs_schema(&plan, &inputs_schema, problems);
    let manifest = Manifest { inputs_schema: Some(inputs_schema), ..Manifest::default() };
    if problems.has_errors() {
        return Lowered { manifest, ..Lowered::default() };
    }
    let net = lower::lower(&plan, &checked, problems);
    Lowered { name: Some(spec::plan_id(&spec::plan_json(&plan))), net, manifest, ..Lowered::default() }
}

/// A plan that was read, with every action written out.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanDocument {
    /// `pl_` and 32 hexadecimal digits, which follow from `spec` alone.
    pub id: String,
    /// The plan with its actions as they were found.
    pub spec: Value,
    /// For each step, the steps that it depends on.
    pub step_dependencies: Vec<(String, Vec<String>)>,
    pub params: Vec<PlanParam>,
    pub cluster: Option<PlanCluster>,
    /// The runner group that the plan sets.
    pub runner: Option<String>,
    pub warnings: Vec<Diagnostic>,
}

/// A parameter of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanParam {
    pub name: String,
    /// An execution must bind it: it is required and has no default.
    pub is_needed: bool,
}

/// Rule by which the cluster of an execution follows from its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanCluster {
    /// The value of the parameter is the name of the cluster.
    FromCluster(String),
    FromSandbox(String),
    FromRouteGroup(String),
    /// The value of the parameter is an object with `sandbox`, `routeGroup` or `routingKey`.
    FromAnyTarget(String),
    /// A pattern with `*`, which exactly one connected cluster matches.
    Pattern(String),
}

impl PlanDocument {
    /// Returns the text that is stored for the plan. `compile` accepts it without a registry.
    #[must_use]
    pub fn text(&self) -> String {
        json!({ "spec": self.spec }).to_string()
    }
}

/// Returns whether a text is a document of a plan, valid or not.
#[must_use]
pub fn is_plan(text: &str) -> bool {
    let root = document::parse(text, &mut Problems::default());
    root.is_some_and(|root| crate::Dialects::builtin().shape_of(&root) == Some(DIALECT))
}

/// Reads a plan and checks it with the actions of a registry. All problems are reported at once, sorted by position.
pub fn read_plan(text: &str, lookup: &dyn ActionLookup) -> Result<PlanDocument, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let root = document::parse(text, &mut problems);
    let mut reader = Reader {
        source: text,
        problems: &mut problems,
        marks: None,
        own: Adapters::default(),
        outside: Outside::Unknown,
    };
    let plan = root.as_ref().map(|root| parse::plan(root, lookup, &mut reader)).unwrap_or_default();
    let checked = check::check(&plan, text, &mut problems);
    let lowered = if problems.has_errors() { None } else { lower::lower(&plan, &checked, &mut problems) };
    let diagnostics = problems.into_diagnostics(text, root.as_ref());
    match lowered {
        Some(_) => Ok(describe(plan, &checked, diagnostics)),
        None => Err(diagnostics),
    }
}

/// Reads a stored plan. It was checked when it was created, so what the checks of this version refuse is no error.
pub fn read_stored_plan(text: &str) -> Result<PlanDocument, Vec<Diagnostic>> {
    let mut problems = Problems::default();
    let root = document::parse(text, &mut problems);
    let Some(root) = root else { return Err(problems.into_diagnostics(text, None)) };
    let mut reader = Reader {
        source: text,
        problems: &mut problems,
        marks: None,
        own: Adapters::default(),
        outside: Outside::Unknown,
    };
    let plan = parse::plan(&root, &NoActions, &mut reader);
    let checked = check::check(&plan, text, &mut problems);
    Ok(describe(plan, &checked, Vec::new()))
}

fn describe(plan: Plan, checked: &Checked, warnings: Vec<Diagnostic>) -> PlanDocument {
    let spec = spec::plan_json(&plan);
    let name = |place: &usize| plan.steps[*place].id.text.clone();
    let dependencies = plan.steps.iter().zip(&checked.dependencies);
    let param = |param: &model::Field| PlanParam {
        name: param.name.text.clone(),
        is_needed: param.required && param.default.is_none(),
    };
    PlanDocument {
        id: spec::plan_id(&spec),
        step_dependencies: dependencies
            .map(|(step, before)| (step.id.text.clone(), before.iter().map(name).collect()))
            .collect(),
        params: plan.params.iter().map(param).collect(),
        cluster: plan.cluster.map(|cluster| match cluster.key {
            "fromCluster" => PlanCluster::FromCluster(cluster.value),
            "fromSandbox" => PlanCluster::FromSandbox(cluster.value),
            "fromRouteGroup" => PlanCluster::FromRouteGroup(cluster.value),
            "fromAnyTarget" => PlanCluster::FromAnyTarget(cluster.value),
            _ => PlanCluster::Pattern(cluster.value),
        }),
        runner: plan.runner,
        spec,
        warnings,
    }
}
