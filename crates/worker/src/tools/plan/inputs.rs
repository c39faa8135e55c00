//! Inputs of a step: their values, found through references and checked against their schemas.

use super::super::ToolContext;
use crate::failure::{failure, invalid};
use serde_json::{Map, Value};
use windlass_artifact::key;
use windlass_protocol::{
    Binding, BuiltinAction, DRILLED_BYTES_MAX, Failure, PlanStep, RefSource, StepInput, StepProgram, codes,
    drill_into,
};
use windlass_schemas::Schema;

/// Field of a reference to an output that is JSON.
pub(super) const JSON: &str = "json";

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
    Artifact(StoredInput),
}

/// A value that is stored as an artifact.
#[derive(Debug, Clone)]
pub(super) struct StoredInput {
    pub(super) key: String,
    bytes: u64,
    /// Whether the bytes are JSON; else they are text, or none of both.
    is_json: bool,
}

impl StoredInput {
    fn read(reference: &Value) -> Option<StoredInput> {
        let bytes = reference.get("bytes").and_then(Value::as_u64).unwrap_or(u64::MAX);
        let is_json = reference.get(JSON).and_then(Value::as_bool).unwrap_or(false);
        Some(StoredInput { key: key(reference)?.to_owned(), bytes, is_json })
    }
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
        let value = match found {
            Some(InputValue::Artifact(stored)) => match use_here(step, &input.name) {
                Some(use_of_it) => InputValue::Inline(load(input, &stored, use_of_it, cx).await?),
                None => InputValue::Artifact(stored),
            },
            Some(value) => value,
            None => {
                check_required(input)?;
                continue;
            }
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
    let stored = StoredInput::read(source).filter(|_| matches!(from, RefSource::Output { .. }));
    let Some(stored) = stored else {
        return Ok(drill_into(source, drill).map(|part| InputValue::Inline(part.clone())));
    };
    if drill.is_empty() {
        return Ok(Some(InputValue::Artifact(stored)));
    }
    let bytes = load_bytes(input, &stored, "reads a part of", cx).await?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| {
        invalid(format!("input `{}` reads a part of a value that is not JSON: {error}", input.name))
    })?;
    Ok(drill_into(&value, drill).map(|part| InputValue::Inline(part.clone())))
}

/// Returns what the worker itself reads the input as, if it does. Programs read their inputs from files, which have any
/// length.
fn use_here(step: &PlanStep, name: &str) -> Option<&'static str> {
    if step.timeout_input.as_deref() == Some(name) {
        return Some("that is the timeout is");
    }
    let is_read = match step.program {
        StepProgram::Builtin(BuiltinAction::RequestHttp | BuiltinAction::Check) => true,
        StepProgram::Builtin(BuiltinAction::Shell) => name == "script",
        StepProgram::Builtin(BuiltinAction::RunImage) => ["image", "command"].contains(&name),
        StepProgram::Script { .. } | StepProgram::Image { .. } => false,
    };
    is_read.then_some("of a built-in action is")
}

/// Loads a value that is read in this process.
async fn load(
    input: &StepInput,
    stored: &StoredInput,
    use_of_it: &str,
    cx: &ToolContext,
) -> Result<Value, Box<Failure>> {
    let bytes = load_bytes(input, stored, use_of_it, cx).await?;
    let unusable = |why: String| invalid(format!("input `{}` cannot be read: {why}", input.name));
    if stored.is_json {
        return serde_json::from_slice(&bytes).map_err(|error| unusable(error.to_string()));
    }
    String::from_utf8(bytes).map(Value::String).map_err(|_| unusable("it is not text".to_owned()))
}

async fn load_bytes(
    input: &StepInput,
    stored: &StoredInput,
    use_of_it: &str,
    cx: &ToolContext,
) -> Result<Vec<u8>, Box<Failure>> {
    let StoredInput { key, bytes, .. } = stored;
    if *bytes > DRILLED_BYTES_MAX {
        let message = format!(
            "input `{}` {use_of_it} a value of {bytes} bytes, more than {DRILLED_BYTES_MAX}; let a script read its file",
            input.name
        );
        return Err(failure(codes::VALUE_TOO_LARGE, message));
    }
    let loaded = cx.kit.claim.load(vec![key.clone()]).await?.pop().and_then(|(_, bytes)| bytes);
    Ok(loaded.ok_or_else(|| crate::pipeline::not_available(key))?.to_vec())
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
