//! Checks of a plan that was read: names, references, bindings, conditions and order. All problems are reported.

use super::bind::{InsertedBytes, bound_input, input_kind};
use super::model::{
    ActionBody, ActionTimeout, Condition, Field, Plan, Reference, Routing, RoutingKind, RoutingName, Step,
};
use super::parse::first_misfit;
use super::types::{Types, types_at};
use crate::cycles::unorderable;
use crate::diagnostic::Problems;
use crate::inputs::NeededParam;
use crate::names;
use crate::read::Name;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use windlass_expr::{BoundName, CompileError, Expr, Translation, translate_condition};
use windlass_protocol::{BuiltinAction, DURATION_FORM, RefSource, timeout_ms};
use windlass_schemas::Schema;

/// Steps of a cycle that are named in its message.
const NAMED_MAX: usize = 10;

/// Facts about a plan that its lowering needs.
#[derive(Debug, Default)]
pub(super) struct Checked {
    /// Conditions of the steps, in their order.
    pub(super) conditions: Vec<Option<Expr>>,
    /// Places of the steps that each step depends on.
    pub(super) dependencies: Vec<BTreeSet<usize>>,
    /// Outputs that conditions read.
    pub(super) in_conditions: BTreeSet<(String, String)>,
    /// Parameters that cannot be bound to secrets, and why.
    pub(super) plain: BTreeMap<String, String>,
    /// Values of parameters that steps cannot run without.
    pub(super) needed: Vec<NeededParam>,
    /// Bytes of values that expressions contain; the Net adds to them.
    pub(super) inserted: InsertedBytes,
}

pub(super) fn check(plan: &Plan, source: &str, problems: &mut Problems) -> Checked {
    check_ids(plan, problems);
    let mut checked = Checked::default();
    for step in &plan.steps {
        let found = StepCheck { plan, step };
        found.check_arguments(problems);
        found.check_extras(problems);
        found.check_builtin(problems);
        found.check_timeout(problems);
        checked.conditions.push(found.check_condition(source, &checked.inserted, problems));
    }
    check_references(plan, problems);
    check_cluster(plan, problems);
    checked.dependencies = dependencies(plan);
    check_cycles(plan, &checked.dependencies, problems);
    note_plain(plan, &mut checked);
    checked.needed = needed(plan, &checked.dependencies);
    checked
}

/// Returns the places of the steps that each step depends on.
fn dependencies(plan: &Plan) -> Vec<BTreeSet<usize>> {
    let index: BTreeMap<&str, usize> =
        plan.steps.iter().enumerate().map(|(place, step)| (step.id.text.as_str(), place)).collect();
    let before = |step: &Step| {
        let sources = step.references().filter_map(|reference| match &reference.from {
            RefSource::Output { step, .. } => index.get(step.as_str()).copied(),
            RefSource::Param(_) => None,
        });
        sources.collect()
    };
    plan.steps.iter().map(before).collect()
}

fn check_ids(plan: &Plan, problems: &mut Problems) {
    let mut seen = BTreeSet::new();
    for step in &plan.steps {
        if !seen.insert(step.id.text.as_str()) {
            let message = format!("step `{}` is defined twice", step.id.text);
            problems.add("E0105", &step.id.at, message, "rename one of them".to_owned());
        }
    }
}

fn check_cycles(plan: &Plan, dependencies: &[BTreeSet<usize>], problems: &mut Problems) {
    let left = unorderable(dependencies.to_vec());
    let Some(first) = left.first() else { return };
    let names = left.iter().take(NAMED_MAX).map(|place| format!("`{}`", plan.steps[*place].id.text));
    let names: Vec<String> = names.collect();
    let more = if left.len() > NAMED_MAX { ", …" } else { "" };
    let message = format!("the references of {}{more} form a cycle or follow one", names.join(", "));
    problems.add("E0183", &plan.steps[*first].id.at, message, "remove one of the references".to_owned());
}

fn check_references(plan: &Plan, problems: &mut Problems) {
    for step in &plan.steps {
        let of = format!("step `{}`", step.id.text);
        step.references().for_each(|reference| check_reference(plan, reference, &of, problems));
        step.refs.iter().for_each(|(name, reference)| check_types(plan, step, (name, reference), problems));
    }
    for (name, reference) in &plan.outputs {
        let of = format!("output `{}` of the plan", name.text);
        if let RefSource::Param(_) = reference.from {
            let message = format!("{of} refers to a parameter, and an output refers to an output of a step");
            let hint = "write `steps.STEP.outputs.NAME`".to_owned();
            problems.add("E0181", &reference.at, message, hint);
            continue;
        }
        check_reference(plan, reference, &of, problems);
    }
}

fn check_reference(plan: &Plan, reference: &Reference, of: &str, problems: &mut Problems) {
    if problems.is_full() {
        return;
    }
    let unknown = |message: String, hint: Option<String>, problems: &mut Problems| {
        problems.add("E0181", &reference.at, format!("{of} refers to {message}"), hint);
    };
    let source = match &reference.from {
        RefSource::Param(name) => {
            let names = plan.params.iter().map(|param| param.name.text.as_str());
            let Some(param) = plan.params.iter().find(|param| param.name.text == *name) else {
                let message = format!("the parameter `{name}`, which does not exist");
                return unknown(message, names::hint(name, names), problems);
            };
            param
        }
        RefSource::Output { step, output } => {
            let ids = plan.steps.iter().map(|step| step.id.text.as_str());
            let Some(found) = plan.steps.iter().find(|found| found.id.text == *step) else {
                let message = format!("the step `{step}`, which does not exist");
                return unknown(message, names::hint(step, ids), problems);
            };
            // The outputs of an action that was not found are unknown.
            if matches!(found.action.body, ActionBody::Unknown) {
                return;
            }
            let Some(field) = found.outputs().find(|field| field.name.text == *output) else {
                let message = format!("the output `{output}`, which step `{step}` does not declare");
                let known = found.outputs().map(|field| field.name.text.as_str()).collect::<Vec<_>>();
                let hint = names::hint(output, known.iter().copied());
                let declare = format!("add it to `extraOutputs` of step `{step}`");
                return unknown(message, hint.or(Some(declare)), problems);
            };
            field
        }
    };
    check_drill(source, reference, of, problems);
}

/// Checks that a value of the source can fit the schema of the input that it is bound to.
fn check_types(plan: &Plan, step: &Step, (name, reference): (&Name, &Reference), problems: &mut Problems) {
    let input = step.inputs().find(|field| field.name.text == name.text);
    let schemas = (plan.source(&reference.from).map(|field| &field.schema), input.map(|field| &field.schema));
    let (Some(Some(of_source)), Some(Some(of_input))) = schemas else { return };
    let (found, wanted) = (types_at(of_source, &reference.drill_texts()), types_at(of_input, &[]));
    // A parameter may be bound to a secret, whose value is a text.
    let may_be_secret = matches!(reference.from, RefSource::Param(_)) && reference.drill.is_empty();
    let secret = if may_be_secret { Types::STRING } else { Types::NONE };
    let is_impossible = found == Types::NONE || wanted == Types::NONE;
    if (found | secret) & wanted == Types::NONE && !is_impossible {
        let message = format!(
            "step `{}` binds `{}` ({}) to `{}` ({}), and no value fits both schemas",
            step.id.text,
            name.text,
            wanted.names(),
            reference.text,
            found.names()
        );
        let hint = "change one of the schemas, or let a step convert the value".to_owned();
        problems.add("E0189", &reference.at, message, hint);
    }
}

/// Checks that the schemas and defaults of all parameters are together within the bounds of a schema.
pub(super) fn check_inputs_schema(plan: &Plan, inputs_schema: &Value, problems: &mut Problems) {
    let Some(first) = plan.params.first().filter(|_| !problems.has_errors()) else { return };
    if let Err(problem) = Schema::new(inputs_schema) {
        let message = format!("the parameters are together no usable schema of inputs: {problem}");
        let hint =
            "shorten their schemas and defaults; a step can write a large value as its output".to_owned();
        problems.add("E0140", &first.name.at, message, hint);
    }
}

/// Checks that a value of the source can have the part that a reference names.
fn check_drill(source: &Field, reference: &Reference, of: &str, problems: &mut Problems) {
    if reference.drill.is_empty() {
        return;
    }
    let name = &source.name.text;
    let Some(schema) = &source.schema else {
        let message = format!("{of} reads a part of `{name}`, which has no schema");
        let hint =
            "declare a schema for it (`schema: {}` allows any JSON), or refer to the whole value".to_owned();
        problems.add("E0182", &reference.at, message, hint);
        return;
    };
    if types_at(schema, &reference.drill_texts()) == Types::NONE {
        let message =
            format!("{of} reads `{}`, and the schema of `{name}` allows no such part", reference.text);
        problems.add("E0182", &reference.at, message, "change the reference or the schema".to_owned());
    }
}

fn check_cluster(plan: &Plan, problems: &mut Problems) {
    let Some(cluster) = plan.cluster.as_ref().filter(|cluster| cluster.key != "pattern") else { return };
    let names = plan.params.iter().map(|param| param.name.text.as_str());
    if !names.clone().any(|name| name == cluster.value) {
        let message = format!(
            "`{}` of `cluster` names the parameter `{}`, which does not exist",
            cluster.key, cluster.value
        );
        problems.add("E0181", &cluster.at, message, names::hint(&cluster.value, names));
    }
}

struct StepCheck<'c> {
    plan: &'c Plan,
    step: &'c Step,
}

impl StepCheck<'_> {
    fn is_known(&self) -> bool {
        !matches!(self.step.action.body, ActionBody::Unknown)
    }

    fn check_arguments(&self, problems: &mut Problems) {
        let step = self.step;
        let id = &step.id.text;
        let refs: BTreeSet<&str> = step.refs.iter().map(|(name, _)| name.text.as_str()).collect();
        for (name, _) in step.values.iter().filter(|(name, _)| refs.contains(name.text.as_str())) {
            let message = format!("step `{id}` binds `{}` in `values` and in `refs`", name.text);
            problems.add("E0184", &name.at, message, "keep one of them".to_owned());
        }
        if !self.is_known() {
            return;
        }
        for name in step.values.iter().map(|(name, _)| name).chain(step.refs.iter().map(|(name, _)| name)) {
            self.check_argument(name, problems);
        }
        for (name, value) in &step.values {
            let field = step.inputs().find(|field| field.name.text == name.text);
            let misfit = field.and_then(|field| first_misfit(field.schema.as_ref()?, value));
            if let Some(misfit) = misfit {
                let message =
                    format!("the value of `{}` of step `{id}` does not fit its schema: {misfit}", name.text);
                problems.add("E0189", &name.at, message, None);
            }
        }
        let is_bound = |field: &Field| {
            let is_value = step.values.iter().any(|(name, _)| name.text == field.name.text);
            is_value || refs.contains(field.name.text.as_str()) || field.default.is_some()
        };
        for field in step.inputs().filter(|field| field.required && !is_bound(field)) {
            let name = &field.name.text;
            let message = format!("step `{id}` does not bind its required input `{name}`");
            let hint = format!("add `{name}` to `args.values` or to `args.refs`");
            problems.add("E0185", &step.id.at, message, hint);
        }
    }

    fn check_argument(&self, name: &Name, problems: &mut Problems) {
        if problems.is_full() || self.step.inputs().any(|field| field.name.text == name.text) {
            return;
        }
        let message = format!("step `{}` has no input `{}`", self.step.id.text, name.text);
        let known: Vec<&str> = self.step.inputs().map(|field| field.name.text.as_str()).collect();
        let hint = names::hint(&name.text, known.iter().copied());
        let declare = "declare it in `extraInputs`".to_owned();
        problems.add("E0187", &name.at, message, hint.or(Some(declare)));
    }

    /// Checks that extra fields do not hide those of the action.
    fn check_extras(&self, problems: &mut Problems) {
        let step = self.step;
        let both = [
            ("extraInputs", &step.extra_inputs, &step.action.params),
            ("extraOutputs", &step.extra_outputs, &step.action.outputs),
        ];
        for (key, extra, own) in both {
            for field in extra.iter().filter(|field| own.iter().any(|own| own.name.text == field.name.text)) {
                let name = &field.name.text;
                let message =
                    format!("`{key}` of step `{}` has `{name}`, which the action has", step.id.text);
                problems.add("E0105", &field.name.at, message, "choose another name".to_owned());
            }
        }
    }

    /// A check whose expression is written in the plan is tried before it runs.
    fn check_builtin(&self, problems: &mut Problems) {
        let is_check = matches!(self.step.action.body, ActionBody::Builtin(BuiltinAction::Check));
        let mut values = self.step.values.iter().filter(|(name, _)| is_check && name.text == "expression");
        let Some((name, Value::String(text))) = values.next() else { return };
        let bind = |name: &str| {
            let field = self.step.extra_inputs.iter().find(|field| field.name.text == name);
            // Only the kinds of values matter here: the worker evaluates the expression.
            let bound = field.map(|field| BoundName {
                source: "none".to_owned(),
                kind: input_kind(self.plan, self.step, field),
            });
            bound.ok_or_else(|| format!("step `{}` has no extra input `{name}`", self.step.id.text))
        };
        let of = format!("expression of step `{}`", self.step.id.text);
        match translate_condition(text, &bind) {
            Ok(Translation { warnings, .. }) => {
                warnings.iter().for_each(|warning| warn_of_constant(&of, &name.at, warning, problems));
            }
            Err(error) => {
                let message = format!("bad {of}: {}", error.message);
                let hint = "it reads the extra inputs of the step, and is true or false".to_owned();
                problems.add("E0186", &name.at, message, hint);
            }
        }
    }

    /// Checks a value that is the timeout of the step. That of a reference is known when the step begins.
    fn check_timeout(&self, problems: &mut Problems) {
        let step = self.step;
        let Some(ActionTimeout::Input(input)) = &step.action.timeout else { return };
        let written = step.values.iter().find(|(name, _)| name.text == *input);
        let default =
            step.inputs().find(|field| field.name.text == *input).and_then(|field| field.default.as_ref());
        let found =
            written.map(|(name, value)| (value, &name.at)).or(default.map(|value| (value, &step.id.at)));
        if let Some((value, at)) = found
            && timeout_ms(value).is_none()
        {
            let message = format!(
                "`{input}` of step `{}` is its timeout, and its value is not a duration",
                step.id.text
            );
            problems.add("E0189", at, message, DURATION_FORM.to_owned());
        }
    }

    fn check_condition(
        &self,
        source: &str,
        inserted: &InsertedBytes,
        problems: &mut Problems,
    ) -> Option<Expr> {
        let condition = self.step.condition.as_ref().filter(|_| self.is_known())?;
        let bind = |name: &str| {
            let field = self.step.inputs().find(|field| field.name.text == name);
            let known: Vec<&str> = self.step.inputs().map(|field| field.name.text.as_str()).collect();
            let hint = names::hint(name, known.iter().copied()).map(|hint| format!("; {hint}"));
            let field = field.ok_or_else(|| {
                format!("step `{}` has no input `{name}`{}", self.step.id.text, hint.unwrap_or_default())
            })?;
            let bound = bound_input(self.plan, self.step, field, inserted);
            inserted.problem().map_or(Ok(bound), Err)
        };
        let of = format!("condition of step `{}`", self.step.id.text);
        let compiled = translate_condition(&condition.text, &bind).and_then(|translated| {
            let expr = Expr::compile_translation(&translated.source, &condition.text)?;
            Ok((expr, translated.warnings))
        });
        match compiled {
            Ok((expr, warnings)) => {
                for warning in warnings {
                    warn_of_constant(&of, &place(condition, &warning, source), &warning, problems);
                }
                Some(expr)
            }
            Err(error) => {
                let message = format!("bad {of}: {}", error.message);
                let hint =
                    "a condition is an expression over the inputs of the step: `code >= 500 and not dry`";
                problems.add("E0186", &place(condition, &error, source), message, hint.to_owned());
                None
            }
        }
    }
}

fn warn_of_constant(of: &str, at: &Range<usize>, warning: &CompileError, problems: &mut Problems) {
    let hint =
        "convert one of them with `int(…)`, `float(…)` or `string(…)`, or change the schema".to_owned();
    problems.add("W0258", at, format!("{of}: {}", warning.message), hint);
}

/// The place of an error in a condition that is written in one line as it is, else the whole condition.
fn place(condition: &Condition, error: &CompileError, source: &str) -> Range<usize> {
    let written = source.get(condition.at.clone()).unwrap_or_default();
    let offset: usize = condition.text.chars().take(error.column.saturating_sub(1)).map(char::len_utf8).sum();
    match written.find(&condition.text) {
        Some(found) if !condition.text.contains('\n') && error.source_text == condition.text => {
            let start = condition.at.start + found + offset;
            start..(start + 1).min(condition.at.end.max(start))
        }
        _ => condition.at.clone(),
    }
}

/// Notes the parameters that cannot be secrets: a secret reaches programs only, so those that a decision, an output or
/// a part of a value needs are plain.
fn note_plain(plan: &Plan, checked: &mut Checked) {
    let mut plain = |reference: &Reference, why: String| {
        if let RefSource::Param(name) = &reference.from {
            checked.plain.entry(name.clone()).or_insert(why);
        }
    };
    for (step, condition) in plan.steps.iter().zip(&checked.conditions) {
        let id = &step.id.text;
        if let Some(Routing { name: RoutingName::Ref(reference), .. }) = &step.routing {
            plain(reference, format!("the routing context of step `{id}` reads it"));
        }
        for (name, reference) in &step.refs {
            if !reference.drill.is_empty() {
                plain(reference, format!("step `{id}` reads a part of it"));
            }
            let is_read = step.condition.as_ref().is_some_and(|found| mentions(&found.text, &name.text));
            if condition.is_some() && is_read {
                plain(reference, format!("the condition of step `{id}` may read it"));
                if let RefSource::Output { step, output } = &reference.from {
                    checked.in_conditions.insert((step.clone(), output.clone()));
                }
            }
        }
    }
    if let Some(cluster) = plan.cluster.as_ref().filter(|cluster| cluster.key != "pattern") {
        checked.plain.entry(cluster.value.clone()).or_insert("it decides about the cluster".to_owned());
    }
}

/// Returns the parameters without which a step cannot run. A step with a condition may be skipped instead, and so may those
/// that follow it: they fail when they run.
fn needed(plan: &Plan, dependencies: &[BTreeSet<usize>]) -> Vec<NeededParam> {
    let mut may_be_skipped: Vec<bool> = plan.steps.iter().map(|step| step.condition.is_some()).collect();
    let mut followers = vec![Vec::new(); plan.steps.len()];
    for (place, before) in dependencies.iter().enumerate() {
        before.iter().for_each(|of| followers[*of].push(place));
    }
    let mut open: Vec<usize> = (0..plan.steps.len()).filter(|place| may_be_skipped[*place]).collect();
    while let Some(place) = open.pop() {
        for follower in &followers[place] {
            if !std::mem::replace(&mut may_be_skipped[*follower], true) {
                open.push(*follower);
            }
        }
    }
    let mut needed = Vec::new();
    for (step, _) in plan.steps.iter().zip(may_be_skipped).filter(|(_, is_skipped)| !is_skipped) {
        let id = &step.id.text;
        if let Some(Routing { name: RoutingName::Ref(reference), .. }) = &step.routing {
            needed.extend(needed_param(
                plan,
                reference,
                format!("the routing context of step `{id}` reads it"),
            ));
        }
        for field in step.inputs().filter(|field| field.required && field.default.is_none()) {
            let name = &field.name.text;
            let mut refs = step.refs.iter().filter(|(bound, _)| bound.text == *name);
            needed.extend(refs.next().and_then(|(_, reference)| {
                needed_param(plan, reference, format!("it is the required input `{name}` of step `{id}`"))
            }));
        }
    }
    needed
}

/// Returns the parameter that a reference reads, unless it has a value in every execution.
fn needed_param(plan: &Plan, reference: &Reference, why: String) -> Option<NeededParam> {
    let RefSource::Param(name) = &reference.from else { return None };
    let param = plan.params.iter().find(|param| param.name.text == *name)?;
    let always_has_value = param.required || param.default.is_some();
    let drill = reference.drill_texts();
    (!always_has_value || !reference.drill.is_empty()).then(|| NeededParam {
        param: name.clone(),
        drill,
        why,
    })
}

/// Returns whether a text has the name as a word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
    text.split(|sign| !is_part(sign)).any(|word| word == name)
}

/// Returns whether the step waits for its routing context. A routing key has nothing to wait for.
pub(super) fn waits(step: &Step) -> bool {
    step.routing.as_ref().is_some_and(|routing| match routing.kind {
        RoutingKind::Sandbox | RoutingKind::RouteGroup | RoutingKind::Any => true,
        RoutingKind::RoutingKey => false,
    })
}
