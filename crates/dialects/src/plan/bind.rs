//! Inputs of steps: what binds each of them, and the expressions that read what binds it.

use super::model::{Field, Plan, Reference, Segment, Step};
use serde_json::{Value, json};
use windlass_expr::{BoundName, ValueKind, literal};
use windlass_protocol::{Binding, PlanStep, RefSource, StepInput};

/// Returns the inputs of a step with their bindings. An input that is bound twice was reported.
pub(super) fn inputs(step: &Step) -> Vec<StepInput> {
    step.inputs().map(|field| input(step, field)).collect()
}

fn input(step: &Step, field: &Field) -> StepInput {
    let name = &field.name.text;
    StepInput {
        name: name.clone(),
        schema: field.schema.clone(),
        required: field.required,
        binding: binding(step, field),
    }
}

fn binding(step: &Step, field: &Field) -> Binding {
    let name = &field.name.text;
    if let Some((_, value)) = step.values.iter().find(|(of, _)| of.text == *name) {
        return Binding::Literal { value: value.clone() };
    }
    if let Some((_, reference)) = step.refs.iter().find(|(of, _)| of.text == *name) {
        return Binding::Ref {
            text: reference.text.clone(),
            from: reference.from.clone(),
            drill: reference.drill.iter().map(Segment::text).collect(),
            default: field.default.clone(),
        };
    }
    match &field.default {
        Some(value) => Binding::Default { value: value.clone() },
        None => Binding::Unbound,
    }
}

/// Returns the expression that reads an input in a condition, which is null if nothing binds it, and what is known about
/// its value. Any input may turn out to be null.
pub(super) fn bound_input(plan: &Plan, step: &Step, field: &Field) -> BoundName {
    let known = |value: &Value| Some(ValueKind::of(value)).filter(|kind| *kind != ValueKind::Nil);
    match binding(step, field) {
        Binding::Literal { value } | Binding::Default { value } => {
            BoundName { source: literal(&value), kind: known(&value).unwrap_or(ValueKind::Unknown) }
        }
        Binding::Unbound => BoundName { source: "none".to_owned(), kind: ValueKind::Unknown },
        Binding::Ref { default, .. } => {
            let mut refs = step.refs.iter().filter(|(name, _)| name.text == field.name.text);
            let Some((_, reference)) = refs.next() else {
                return BoundName { source: "none".to_owned(), kind: ValueKind::Unknown };
            };
            let kind = reference_kind(plan, reference);
            let is_same = default.as_ref().and_then(known).is_none_or(|of_default| of_default == kind);
            let default = default.as_ref().map_or("none".to_owned(), literal);
            BoundName {
                source: format!("({}|default({default}))", reference_source(plan, reference)),
                kind: if is_same { kind } else { ValueKind::Unknown },
            }
        }
    }
}

/// Returns the kind of a value that a reference names, as far as its schema determines one.
fn reference_kind(plan: &Plan, reference: &Reference) -> ValueKind {
    let field = match &reference.from {
        RefSource::Param(name) => plan.params.iter().find(|param| param.name.text == *name),
        RefSource::Output { step, output } => {
            let step = plan.steps.iter().find(|found| found.id.text == *step);
            step.and_then(|step| step.outputs().find(|field| field.name.text == *output))
        }
    };
    let schema = field.and_then(|field| field.schema.as_ref()).filter(|_| reference.drill.is_empty());
    schema.map_or(ValueKind::Unknown, ValueKind::of_schema)
}

/// Returns the expression that reads a reference in a decision: undefined if it leads nowhere.
pub(super) fn reference_source(plan: &Plan, reference: &Reference) -> String {
    let whole = match &reference.from {
        RefSource::Param(name) => match param_default(plan, name) {
            Some(default) => format!("({}|default({default}))", param(name)),
            None => param(name),
        },
        RefSource::Output { step, output } => format!("steps[{}][{}]", quoted(step), quoted(output)),
    };
    let drill = reference.drill.iter().map(|segment| match segment {
        Segment::Field(name) => format!("[{}]", quoted(name)),
        Segment::Index(index) => format!("[{index}]"),
    });
    std::iter::once(whole).chain(drill).collect()
}

/// Returns the templates of the value that a reference names, before its drill, and of whether there is one. The value is
/// a template of its own that passes it on as it is, of any size: the parts of a list would count as made data.
pub(super) fn source_templates(plan: &Plan, from: &RefSource) -> Value {
    let (value, is_defined) = match from {
        RefSource::Output { step, output } => {
            let source = format!("steps[{}][{}]", quoted(step), quoted(output));
            (source.clone(), format!("{source} is defined"))
        }
        RefSource::Param(name) => {
            let (secret, value, default) = (secret(name), param(name), param_default(plan, name));
            let is_defined = match default {
                Some(_) => "true".to_owned(),
                None => format!("{secret} is defined or {value} is defined"),
            };
            let default = default.unwrap_or("none".to_owned());
            let value = format!(
                "{secret} if {secret} is defined else ({value} if {value} is defined else {default})"
            );
            (value, is_defined)
        }
    };
    json!([format!("{{{{ {value} }}}}"), format!("{{{{ {is_defined} }}}}")])
}

/// Returns the template for the name of the secret that a parameter is bound to; it renders to null without one.
pub(super) fn secret_name_template(name: &str) -> String {
    format!("{{{{ workload[{}][{}]|default(none) }}}}", quoted(crate::inputs::SECRETS), quoted(name))
}

fn param(name: &str) -> String {
    format!("workload[{}]", quoted(name))
}

fn secret(name: &str) -> String {
    format!("keychain[{}][{}]", quoted(PlanStep::SECRETS), quoted(name))
}

fn param_default(plan: &Plan, name: &str) -> Option<String> {
    let param = plan.params.iter().find(|param| param.name.text == name)?;
    param.default.as_ref().map(literal)
}

fn quoted(text: &str) -> String {
    literal(&text.into())
}
