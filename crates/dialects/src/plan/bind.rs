//! Inputs of steps: what binds each of them, and the expressions that read what binds it.

use super::model::{Field, Plan, Reference, Segment, Step};
use serde_json::{Value, json};
use std::cell::Cell;
use windlass_expr::{BoundName, ValueKind, literal};
use windlass_protocol::{Binding, PlanStep, RefSource, StepInput};

/// Maximum bytes of values that the expressions of one plan contain. A default or a value of a plan is copied into every
/// expression that reads it, and a Net is kept in memory while its executions run.
const INSERTED_BYTES_MAX: usize = 16 << 20;

/// Counts the bytes of values that are copied into the expressions of a plan.
#[derive(Debug, Default)]
pub(super) struct InsertedBytes(Cell<usize>);

impl InsertedBytes {
    /// Returns a value as a literal of an expression. Beyond the maximum, the literal is null and the plan is refused.
    fn literal(&self, value: &Value) -> String {
        if self.problem().is_some() {
            return "none".to_owned();
        }
        let literal = literal(value);
        self.0.set(self.0.get().saturating_add(literal.len()));
        literal
    }

    /// Returns the message of the refusal if the maximum was exceeded.
    pub(super) fn problem(&self) -> Option<String> {
        let most = INSERTED_BYTES_MAX >> 20;
        (self.0.get() > INSERTED_BYTES_MAX).then(|| {
            format!(
                "the expressions of the plan would repeat more than {most} MiB of its defaults and values"
            )
        })
    }
}

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
            drill: reference.drill_texts(),
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
pub(super) fn bound_input(plan: &Plan, step: &Step, field: &Field, inserted: &InsertedBytes) -> BoundName {
    let kind = input_kind(plan, step, field);
    let source = match binding(step, field) {
        Binding::Literal { value } | Binding::Default { value } => inserted.literal(&value),
        Binding::Unbound => "none".to_owned(),
        Binding::Ref { default, .. } => match find_reference(step, field) {
            None => "none".to_owned(),
            Some(reference) => {
                let default = default.as_ref().map_or("none".to_owned(), |value| inserted.literal(value));
                format!("({}|default({default}))", reference_source(plan, reference, inserted))
            }
        },
    };
    BoundName { source, kind }
}

fn find_reference<'s>(step: &'s Step, field: &Field) -> Option<&'s Reference> {
    step.refs.iter().find(|(name, _)| name.text == field.name.text).map(|(_, reference)| reference)
}

/// Returns what is known about the value of an input.
pub(super) fn input_kind(plan: &Plan, step: &Step, field: &Field) -> ValueKind {
    let known = |value: &Value| Some(ValueKind::of(value)).filter(|kind| *kind != ValueKind::Nil);
    if let Some((_, value)) = step.values.iter().find(|(name, _)| name.text == field.name.text) {
        return known(value).unwrap_or(ValueKind::Unknown);
    }
    let of_default = field.default.as_ref().and_then(known);
    match find_reference(step, field) {
        None => of_default.unwrap_or(ValueKind::Unknown),
        Some(reference) => {
            let kind = reference_kind(plan, reference);
            if of_default.is_none_or(|of_default| of_default == kind) { kind } else { ValueKind::Unknown }
        }
    }
}

/// Returns the kind of a value that a reference names, as far as its schema determines one.
fn reference_kind(plan: &Plan, reference: &Reference) -> ValueKind {
    let field = plan.source(&reference.from);
    let schema = field.and_then(|field| field.schema.as_ref()).filter(|_| reference.drill.is_empty());
    schema.map_or(ValueKind::Unknown, ValueKind::of_schema)
}

/// Returns the expression that reads a reference in a decision: undefined if it leads nowhere.
pub(super) fn reference_source(plan: &Plan, reference: &Reference, inserted: &InsertedBytes) -> String {
    let whole = match &reference.from {
        RefSource::Param(name) => match param_default(plan, name, inserted) {
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
pub(super) fn source_templates(plan: &Plan, from: &RefSource, inserted: &InsertedBytes) -> Value {
    let (value, is_defined) = match from {
        RefSource::Output { step, output } => {
            let source = format!("steps[{}][{}]", quoted(step), quoted(output));
            (source.clone(), format!("{source} is defined"))
        }
        RefSource::Param(name) => {
            let (secret, value, default) = (secret(name), param(name), param_default(plan, name, inserted));
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

fn param_default(plan: &Plan, name: &str, inserted: &InsertedBytes) -> Option<String> {
    let param = plan.params.iter().find(|param| param.name.text == name)?;
    param.default.as_ref().map(|value| inserted.literal(value))
}

fn quoted(text: &str) -> String {
    literal(&text.into())
}
