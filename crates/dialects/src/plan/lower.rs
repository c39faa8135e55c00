//! Lowering of the checked plan to the Net: a step for each step, and an arc for each dependency.

use super::bind::{inputs, reference_source, secret_name_template, source_templates};
use super::check::{Checked, waits};
use super::model::{ActionBody, ActionTimeout, Plan, Reference, RoutingKind, RoutingName, Step};
use crate::diagnostic::Problems;
use crate::programs::raw;
use crate::read::Name;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use windlass_expr::Template;
use windlass_kernel::net::NetError;
use windlass_kernel::net::{
    Affinity, DeclaredOutput, FailureMode, Join, JoinArc, NetSpec, Policy, Recovery, Shown, Step as NetStep,
    WaitFor, Work,
};
use windlass_kernel::{Net, StepId};
use windlass_protocol::{
    Binding, DURATION_MAX_MS, Key, KeyScope, KeySource, OnUnmatched, PLAN_STEP_KIND, Pipeline, PlanStep,
    Provider, RefSource, StepOutput, StepProgram, Task,
};

/// Steps of one execution that run at the same time.
const PARALLEL_MAX: u32 = 10;

/// Time for a sandbox or a route group to become ready, unless the process that starts the execution sets another one.
pub const ROUTING_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Name of the only task of a step.
const TASK: &str = "run";

pub(super) fn lower(plan: &Plan, checked: &Checked, problems: &mut Problems) -> Option<Net> {
    let mut followers = vec![Vec::new(); plan.steps.len()];
    for (place, before) in checked.dependencies.iter().enumerate() {
        before.iter().for_each(|of| followers[*of].push(JoinArc::to(id(place))));
    }
    let lowering = Lowering { plan, checked };
    let mut steps = Vec::with_capacity(plan.steps.len());
    for (place, arcs) in followers.into_iter().enumerate() {
        steps.push(lowering.step(place, arcs));
        if let Some(message) = checked.inserted.problem() {
            let hint = "let steps read the value from an output of one step, or shorten it".to_owned();
            problems.add("E0191", &plan.steps[place].id.at, message, hint);
            return None;
        }
    }
    let refused = match Net::new(NetSpec { steps, policy: policy(plan) }) {
        Ok(net) => return Some(net),
        Err(refused) => refused,
    };
    for problem in refused.problems {
        problems.add("E0117", &(0..0), problem.to_string(), None);
    }
    None
}

/// Returns the Net of a plan with another time for routes to become ready.
pub fn with_routing_timeout(net: &Net, timeout: Duration) -> Result<Net, NetError> {
    let mut spec = net.spec().clone();
    for wait in spec.steps.iter_mut().filter_map(|step| step.wait_for.as_mut()) {
        wait.timeout_ms = millis(timeout);
    }
    Net::new(spec)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn policy(plan: &Plan) -> Policy {
    Policy {
        join: Join::All,
        failure: FailureMode::Continue,
        recovery: Recovery::RestartExecution,
        affinity: Affinity::OneWorker,
        max_parallel: Some(PARALLEL_MAX),
        outputs: outputs(plan),
        ..Policy::default()
    }
}

fn outputs(plan: &Plan) -> Vec<DeclaredOutput> {
    let output = |(name, reference): &(Name, Reference)| {
        let RefSource::Output { step, output } = &reference.from else { return None };
        let place = plan.steps.iter().position(|found| found.id.text == *step)?;
        let drill = reference.drill_texts();
        Some(DeclaredOutput { name: name.text.clone(), step: id(place), key: output.clone(), drill })
    };
    plan.outputs.iter().filter_map(output).collect()
}

fn id(place: usize) -> StepId {
    StepId(u32::try_from(place).unwrap_or(u32::MAX))
}

struct Lowering<'p> {
    plan: &'p Plan,
    checked: &'p Checked,
}

impl Lowering<'_> {
    fn step(&self, place: usize, arcs: Vec<JoinArc>) -> NetStep {
        let step = &self.plan.steps[place];
        let mut lowered = NetStep::new(&step.id.text, self.work(step));
        lowered.shown = Some(Shown { title: step.id.text.clone(), kind: kind(step) });
        lowered.timeout_ms = Some(timeout_ms(step));
        lowered.condition = self.checked.conditions.get(place).cloned().flatten();
        lowered.side_effecting = true;
        lowered.reads = self.checked.dependencies[place].iter().map(|place| id(*place)).collect();
        lowered.wait_for = self.target(step).filter(|_| waits(step)).and_then(|target| {
            let target = Template::compile(&target).ok()?;
            Some(WaitFor { target, timeout_ms: millis(ROUTING_TIMEOUT) })
        });
        lowered.router.arcs = arcs;
        lowered
    }

    /// Returns the one task of a step, which a worker runs in a work dir of its own.
    fn work(&self, step: &Step) -> Work {
        let described = self.describe(step);
        let mut config = Map::new();
        let sources: Map<String, Value> = described
            .inputs
            .iter()
            .filter_map(|input| match &input.binding {
                Binding::Ref { from, .. } => {
                    Some((input.name.clone(), source_templates(self.plan, from, &self.checked.inserted)))
                }
                Binding::Literal { .. } | Binding::Default { .. } | Binding::Unbound => None,
            })
            .collect();
        let text = serde_json::to_string(&described).unwrap_or_default();
        config.insert(PlanStep::FIELD.to_owned(), json!(raw(&text)));
        if !sources.is_empty() {
            config.insert(PlanStep::SOURCES.to_owned(), Value::Object(sources));
        }
        config.extend(self.target(step).map(|target| (PlanStep::ROUTING.to_owned(), target)));
        let pipeline = Pipeline {
            tasks: vec![Task {
                label: TASK.to_owned(),
                kind: PLAN_STEP_KIND.to_owned(),
                config,
                rules: Vec::new(),
                on_unmatched: OnUnmatched::default(),
                timeout_ms: None,
            }],
            keychain: self.keychain(&described),
            ..Pipeline::default()
        };
        Work::task(serde_json::to_value(pipeline).unwrap_or_default())
    }

    fn describe(&self, step: &Step) -> PlanStep {
        let program = match &step.action.body {
            ActionBody::Builtin(builtin) => StepProgram::Builtin(*builtin),
            ActionBody::Script(text) => StepProgram::Script { text: text.clone() },
            ActionBody::Image { image, script } => {
                StepProgram::Image { image: image.clone(), script: script.clone() }
            }
            // Only a plan without problems is lowered.
            ActionBody::Unknown => StepProgram::Script { text: String::new() },
        };
        let outputs = step.outputs().map(|field| StepOutput {
            name: field.name.text.clone(),
            schema: field.schema.clone(),
            required: field.required,
            default: field.default.clone(),
            metadata: field.metadata.clone(),
            in_condition: self
                .checked
                .in_conditions
                .contains(&(step.id.text.clone(), field.name.text.clone())),
        });
        PlanStep {
            program,
            env: step.action.env.clone(),
            inputs: inputs(step),
            outputs: outputs.collect(),
            captions: captions(step),
            timeout_input: match &step.action.timeout {
                Some(ActionTimeout::Input(input)) => Some(input.clone()),
                Some(ActionTimeout::Millis(_)) | None => None,
            },
        }
    }

    /// Values of the parameters that the step reads and that an execution binds to secrets.
    fn keychain(&self, step: &PlanStep) -> Vec<Key> {
        let params: BTreeSet<&String> = step
            .inputs
            .iter()
            .filter_map(|input| match &input.binding {
                Binding::Ref { from: RefSource::Param(name), .. } => Some(name),
                _ => None,
            })
            .filter(|name| !self.checked.plain.contains_key(*name))
            .collect();
        if params.is_empty() {
            return Vec::new();
        }
        let fields =
            params.into_iter().map(|name| (name.clone(), json!(secret_name_template(name)))).collect();
        vec![Key {
            name: PlanStep::SECRETS.to_owned(),
            playbook: String::new(),
            scope: KeyScope::Execution,
            source: KeySource::Bound { provider: Provider::Windlass, fields },
        }]
    }

    /// Returns the target of the routing context as a template.
    fn target(&self, step: &Step) -> Option<Value> {
        let routing = step.routing.as_ref()?;
        let reference = match &routing.name {
            RoutingName::Literal(name) => return Some(json!({ routing.kind.key(): raw(name) })),
            RoutingName::Ref(reference) => {
                format!("{{{{ {} }}}}", reference_source(self.plan, reference, &self.checked.inserted))
            }
        };
        Some(match routing.kind {
            RoutingKind::Any => json!(reference),
            RoutingKind::Sandbox | RoutingKind::RouteGroup | RoutingKind::RoutingKey => {
                json!({ routing.kind.key(): reference })
            }
        })
    }
}

/// Returns the time limit of an attempt. The worker enforces one that is the value of an input.
fn timeout_ms(step: &Step) -> u64 {
    match step.action.timeout {
        None => PlanStep::TIMEOUT_MS,
        Some(ActionTimeout::Millis(timeout_ms)) => timeout_ms,
        Some(ActionTimeout::Input(_)) => DURATION_MAX_MS,
    }
}

/// Returns the condition and the routing context as the plan has them.
fn captions(step: &Step) -> Vec<String> {
    let condition = step.condition.as_ref().map(|condition| format!("if {}", condition.text));
    let routing = step.routing.as_ref().map(|routing| {
        let name = match &routing.name {
            RoutingName::Literal(name) => name,
            RoutingName::Ref(reference) => &reference.text,
        };
        match routing.kind {
            RoutingKind::Sandbox => format!("in sandbox {name}"),
            RoutingKind::RouteGroup => format!("in route group {name}"),
            RoutingKind::RoutingKey => format!("with routing key {name}"),
            RoutingKind::Any => format!("routed to {name}"),
        }
    });
    condition.into_iter().chain(routing).collect()
}

/// Returns the kind of the step for people.
fn kind(step: &Step) -> String {
    let of_body = match &step.action.body {
        ActionBody::Builtin(builtin) => builtin.name(),
        ActionBody::Script(_) | ActionBody::Unknown => "script",
        ActionBody::Image { .. } => "image",
    };
    step.action.name.clone().unwrap_or_else(|| of_body.to_owned())
}

/// Returns the JSON Schema of the inputs of an execution: the parameters, and under [`crate::inputs::SECRETS`] the names of
/// the secrets that parameters are bound to.
pub(super) fn inputs_schema(plan: &Plan, checked: &Checked) -> Value {
    let mut properties = Map::new();
    let mut secrets = Map::new();
    for param in &plan.params {
        let name = &param.name.text;
        let mut schema = param.schema.clone().unwrap_or_else(|| json!({}));
        rebase(&mut schema, name);
        if let Value::Object(fields) = &mut schema {
            fields.extend(param.default.iter().map(|default| ("default".to_owned(), default.clone())));
            if param.schema.is_none() {
                fields.insert(crate::inputs::TEXT.to_owned(), json!(true));
            }
        }
        properties.insert(name.clone(), schema);
        secrets.insert(name.clone(), json!({ "type": "string", "minLength": 1 }));
    }
    let required = plan.params.iter().filter(|param| param.required && param.default.is_none());
    let required: Vec<&String> = required.map(|param| &param.name.text).collect();
    properties.insert(
        crate::inputs::SECRETS.to_owned(),
        json!({
            "type": "object",
            "properties": secrets,
            "additionalProperties": false,
            crate::inputs::PLAIN: checked.plain,
            crate::inputs::NEEDED: checked.needed,
        }),
    );
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// References within a schema begin at its root, which is a property now.
fn rebase(schema: &mut Value, name: &str) {
    match schema {
        Value::Object(fields) => {
            for (key, field) in fields {
                match field {
                    Value::String(text) if key == "$ref" && (text == "#" || text.starts_with("#/")) => {
                        *text = format!("#/properties/{name}{}", &text[1..]);
                    }
                    field => rebase(field, name),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rebase(item, name)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
