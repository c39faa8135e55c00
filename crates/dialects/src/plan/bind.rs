//! Inputs of steps: what binds each of them, and the expressions that read what binds it.

use super::model::{Field, Plan, Reference, Segment, Step};
use windlass_expr::literal;
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
        };
    }
    match &field.default {
        Some(value) => Binding::Default { value: value.clone() },
        None => Binding::Unbound,
    }
}

/// Returns the expression that reads an input in a condition: null if nothing binds it.
pub(super) fn input_source(plan: &Plan, step: &Step, field: &Field) -> String {
    match binding(step, field) {
        Binding::Literal { value } | Binding::Default { value } => literal(&value),
        Binding::Unbound => "none".to_owned(),
        Binding::Ref { .. } => {
            let mut refs = step.refs.iter().filter(|(name, _)| name.text == field.name.text);
            let found = refs.next().map(|(_, reference)| reference_source(plan, reference));
            found.map_or("none".to_owned(), |source| format!("({source}|default(none))"))
        }
    }
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

/// Returns the template of the value that a reference names, before its drill: a list with the value,
/// or an empty list.
pub(super) fn source_template(plan: &Plan, from: &RefSource) -> String {
    match from {
        RefSource::Output { step, output } => {
            let source = format!("steps[{}][{}]", quoted(step), quoted(output));
            format!("{{{{ [{source}] if {source} is defined else [] }}}}")
        }
        RefSource::Param(name) => {
            let default = param_default(plan, name).map_or("[]".to_owned(), |default| format!("[{default}]"));
            let (secret, value) = (secret(name), param(name));
            format!(
                "{{{{ [{secret}] if {secret} is defined else ([{value}] if {value} is defined else {default}) }}}}"
            )
        }
    }
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
