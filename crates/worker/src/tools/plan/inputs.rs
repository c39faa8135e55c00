//! Inputs of a step: their values, found through references and checked against their schemas.

use super::super::ToolContext;
use crate::failure::{failure, invalid};
use serde_json::{Map, Value};
use windlass_artifact::key;
use windlass_protocol::{
    Binding, DRILLED_BYTES_MAX, Failure, PlanStep, RefSource, StepInput, codes, drill_into,
};
use windlass_schemas::Schema;

/// An input that is bound. An unbound one has no file.
#[derive(Debug)]
pub(super) struct ResolvedInput {
    pub(super) name: String,
    /// It has a schema, so its file is JSON.
    pub(super) is_json: bool,
    /// A secret is bound to it.
    pub(super) is_secret: bool,
    pub(super) value: InputValue,
}

#[derive(Debug)]
pub(super) enum InputValue {
    Inline(Value),
    /// The key of an artifact with the bytes of the value.
    Artifact(String),
}

/// Returns the text of an input that is not an artifact.
pub(super) fn text_of(inputs: &[ResolvedInput], name: &str) -> Option<String> {
    match &inputs.iter().find(|input| input.name == name)?.value {
        InputValue::Inline(value) => Some(plain_text(value)),
        InputValue::Artifact(_) => None,
    }
}

/// Returns a string as it is, other values as JSON.
pub(super) fn plain_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) async fn resolve(
    step: &PlanStep,
    config: &Map<String, Value>,
    cx: &ToolContext,
) -> Result<Vec<ResolvedInput>, Box<Failure>> {
    let mut resolved = Vec::new();
    for input in &step.inputs {
        let found = match &input.binding {
            Binding::Literal { value } | Binding::Default { value } => {
                Some(InputValue::Inline(value.clone()))
            }
            Binding::Unbound => None,
            Binding::Ref { from, drill, default, .. } => {
                let source = PlanStep::source(config, &input.name);
                let found = referenced(input, from, drill, source, cx).await?;
                found.or_else(|| default.clone().map(InputValue::Inline))
            }
        };
        let Some(value) = found else {
            check_required(input)?;
            continue;
        };
        if let (InputValue::Inline(value), Some(schema)) = (&value, &input.schema) {
            check_schema(&input.name, schema, value)?;
        }
        resolved.push(ResolvedInput {
            name: input.name.clone(),
            is_json: input.schema.is_some(),
            is_secret: is_secret(input, cx),
            value,
        });
    }
    Ok(resolved)
}

/// Returns the value of a reference. Only results of steps contain references to our artifacts.
async fn referenced(
    input: &StepInput,
    from: &RefSource,
    drill: &[String],
    source: Option<&Value>,
    cx: &ToolContext,
) -> Result<Option<InputValue>, Box<Failure>> {
    let Some(source) = source else { return Ok(None) };
    let artifact = key(source).filter(|_| matches!(from, RefSource::Output { .. }));
    let Some(artifact) = artifact else {
        return Ok(drill_into(source, drill).map(|part| InputValue::Inline(part.clone())));
    };
    if drill.is_empty() {
        return Ok(Some(InputValue::Artifact(artifact.to_owned())));
    }
    let bytes = source.get("bytes").and_then(Value::as_u64).unwrap_or(u64::MAX);
    if bytes > DRILLED_BYTES_MAX {
        let message = format!(
            "input `{}` reads a part of a value of {bytes} bytes, more than {DRILLED_BYTES_MAX}; refer to the whole value",
            input.name
        );
        return Err(failure(codes::VALUE_TOO_LARGE, message));
    }
    let loaded = cx.kit.claim.load(vec![artifact.to_owned()]).await?.pop().and_then(|(_, bytes)| bytes);
    let Some(bytes) = loaded else { return Err(crate::pipeline::not_available(artifact)) };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        invalid(format!("input `{}` reads a part of a value that is not JSON: {error}", input.name))
    })?;
    Ok(drill_into(&value, drill).map(|part| InputValue::Inline(part.clone())))
}

fn check_required(input: &StepInput) -> Result<(), Box<Failure>> {
    if !input.required {
        return Ok(());
    }
    let why = match &input.binding {
        Binding::Ref { text, .. } => format!("`{text}` has no value"),
        Binding::Literal { .. } | Binding::Default { .. } | Binding::Unbound => "it is not bound".to_owned(),
    };
    Err(failure(codes::INPUT_UNBOUND, format!("the input `{}` is required, and {why}", input.name)))
}

pub(super) fn check_schema(what: &str, schema: &Value, value: &Value) -> Result<(), Box<Failure>> {
    let refused =
        |why: String| failure(codes::VALIDATION_ERROR, format!("`{what}` does not fit its schema: {why}"));
    let schema = Schema::new(schema).map_err(|problem| refused(problem.to_string()))?;
    match schema.validate(value).err().and_then(|misfits| misfits.into_iter().next()) {
        None => Ok(()),
        Some(misfit) if misfit.pointer.is_empty() => Err(refused(misfit.message)),
        Some(misfit) => Err(refused(format!("at `{}`: {}", misfit.pointer, misfit.message))),
    }
}

fn is_secret(input: &StepInput, cx: &ToolContext) -> bool {
    let Binding::Ref { from: RefSource::Param(param), .. } = &input.binding else { return false };
    cx.keychain.get(PlanStep::SECRETS).is_some_and(|secrets| secrets.get(param).is_some())
}
