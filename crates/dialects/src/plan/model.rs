//! A plan as it was read, every name with its position.

use crate::read::Name;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use windlass_protocol::{BuiltinAction, RefSource, StepVariable};

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) prompt: Option<String>,
    pub(super) selection_hint: Option<String>,
    pub(super) params: Vec<Field>,
    pub(super) steps: Vec<Step>,
    /// Outputs of the plan by name, and the values that they refer to.
    pub(super) outputs: Vec<(Name, Reference)>,
    pub(super) cluster: Option<ClusterAffinity>,
    pub(super) runner: Option<String>,
}

impl Plan {
    /// Returns the field whose value a reference names, if it exists.
    pub(super) fn source(&self, from: &RefSource) -> Option<&Field> {
        match from {
            RefSource::Param(name) => self.params.iter().find(|param| param.name.text == *name),
            RefSource::Output { step, output } => {
                let step = self.steps.iter().find(|found| found.id.text == *step)?;
                step.outputs().find(|field| field.name.text == *output)
            }
        }
    }
}

/// A parameter of a plan or an action, an output of an action, or an extra input or output of a step.
#[derive(Debug, Clone)]
pub(super) struct Field {
    pub(super) name: Name,
    pub(super) required: bool,
    pub(super) default: Option<Value>,
    pub(super) schema: Option<Value>,
    pub(super) metadata: BTreeMap<String, String>,
}

#[derive(Debug)]
pub(super) struct Step {
    pub(super) id: Name,
    pub(super) action: Action,
    pub(super) values: Vec<(Name, Value)>,
    pub(super) refs: Vec<(Name, Reference)>,
    pub(super) condition: Option<Condition>,
    pub(super) extra_inputs: Vec<Field>,
    pub(super) extra_outputs: Vec<Field>,
    pub(super) routing: Option<Routing>,
}

impl Step {
    /// Lists the parameters of the action and the extra inputs.
    pub(super) fn inputs(&self) -> impl Iterator<Item = &Field> {
        self.action.params.iter().chain(&self.extra_inputs)
    }

    /// Lists the outputs of the action and the extra outputs.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Field> {
        self.action.outputs.iter().chain(&self.extra_outputs)
    }

    /// Lists the references of the step, which its dependencies follow from.
    pub(super) fn references(&self) -> impl Iterator<Item = &Reference> {
        let routing = self.routing.as_ref().and_then(|routing| match &routing.name {
            RoutingName::Literal(_) => None,
            RoutingName::Ref(reference) => Some(reference),
        });
        self.refs.iter().map(|(_, reference)| reference).chain(routing)
    }
}

/// An action with everything that a step takes from it. One that could not be found has no parameters.
#[derive(Debug, Default)]
pub(super) struct Action {
    pub(super) id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) revision: Option<u32>,
    pub(super) params: Vec<Field>,
    pub(super) outputs: Vec<Field>,
    pub(super) timeout: Option<ActionTimeout>,
    pub(super) env: BTreeMap<String, StepVariable>,
    pub(super) body: ActionBody,
}

/// Time limit of the steps of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ActionTimeout {
    Millis(u64),
    /// The value of an input.
    Input(String),
}

#[derive(Debug, Default, Clone)]
pub(super) enum ActionBody {
    /// A problem was reported, and nothing more is reported about the inputs and outputs of the step.
    #[default]
    Unknown,
    Builtin(BuiltinAction),
    Script(String),
    Image {
        image: StepVariable,
        script: Option<String>,
    },
}

/// A condition, and the position of its text.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) text: String,
    pub(super) at: Range<usize>,
}

#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) text: String,
    pub(super) from: RefSource,
    pub(super) drill: Vec<Segment>,
    pub(super) at: Range<usize>,
}

/// A step of a drill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Field(String),
    Index(usize),
}

impl Reference {
    /// Returns the drill as workers and views get it.
    pub(super) fn drill_texts(&self) -> Vec<String> {
        self.drill.iter().map(Segment::text).collect()
    }
}

impl Segment {
    /// Returns the segment as views show it.
    pub(super) fn text(&self) -> String {
        match self {
            Segment::Field(name) => name.clone(),
            Segment::Index(index) => index.to_string(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Routing {
    pub(super) kind: RoutingKind,
    pub(super) name: RoutingName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RoutingKind {
    Sandbox,
    RouteGroup,
    RoutingKey,
    /// A target that an execution chooses: an object with one of the other three.
    Any,
}

impl RoutingKind {
    /// Returns the key of a literal target.
    pub(super) fn key(self) -> &'static str {
        match self {
            RoutingKind::Sandbox => "sandbox",
            RoutingKind::RouteGroup => "routeGroup",
            RoutingKind::RoutingKey => "routingKey",
            RoutingKind::Any => "any",
        }
    }
}

#[derive(Debug)]
pub(super) enum RoutingName {
    Literal(String),
    Ref(Reference),
}

/// Rule by which the cluster of an execution follows from its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClusterAffinity {
    /// `fromCluster`, `fromSandbox`, `fromRouteGroup`, `fromAnyTarget` or `pattern`.
    pub(super) key: &'static str,
    /// A parameter; of `pattern`, a glob over the names of clusters.
    pub(super) value: String,
    pub(super) at: Range<usize>,
}
