//! Steps of plans. Each runs in a work dir of its own, in the folder that all steps of its execution share:
//!
//! ```text
//! scratch/            for all steps of the execution; bin/ in it is first on the PATH
//! steps/ID/           the work dir, where the program runs
//!     context/        the inputs: NAME.json with a schema, NAME without one
//!     outputs/        read back as outputs: NAME.json, else NAME
//!     home/, tmp/     HOME and TMPDIR
//! ```
//!
//! The result is an object of outputs by name. A large output, and one that is not text, is stored as an artifact, and a
//! reference is in its place. Both streams are captured for the report, in addition to the log.

mod builtin;
mod image;
mod inputs;
mod outputs;
mod place;

use super::program::Program;
use super::shell;
use super::{GRACE_MS, ToolContext};
use crate::failure::{failure, invalid, shown, timeout};
use crate::halt::{Halt, limited};
use crate::pipeline::{Call, CallResult};
use inputs::ResolvedInput;
use place::StepPlace;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use windlass_protocol::{
    BuiltinAction, DURATION_FORM, Failure, PlanStep, RoutingTarget, StepProgram, StepVariable, codes,
    timeout_ms,
};

/// Name in messages, as in "the command of plan step could not be started".
const TOOL: &str = "plan step";

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    run_step(call, cx, halt).await.into()
}

async fn run_step(call: &Call, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
    let step = PlanStep::read(&call.config).map_err(invalid)?;
    let inputs = inputs::resolve(&step, &call.config, cx).await?;
    let limit_ms = limit_ms(&step, &inputs)?;
    let work = |halt| run_with_inputs(&step, &inputs, call, cx, halt);
    let ended = limited(limit_ms, GRACE_MS, halt, work).await;
    match limit_ms {
        Some(limit_ms) if ended.timed_out => Err(timeout(&format!("step `{}`", cx.step()), limit_ms)),
        _ => ended.result,
    }
}

/// Returns the time limit of a step whose action reads it from an input. The engine knows any other.
fn limit_ms(step: &PlanStep, inputs: &[ResolvedInput]) -> Result<Option<u64>, Box<Failure>> {
    let Some(name) = &step.timeout_input else { return Ok(None) };
    let Some(text) = inputs::text_of(inputs, name) else { return Ok(Some(PlanStep::TIMEOUT_MS)) };
    let refused = || {
        let text = shown(&text);
        invalid(format!(
            "the input `{name}` is the timeout of the step, and `{text}` is not a duration: {DURATION_FORM}"
        ))
    };
    timeout_ms(&Value::String(text.clone())).map(Some).ok_or_else(refused)
}

async fn run_with_inputs(
    step: &PlanStep,
    inputs: &[ResolvedInput],
    call: &Call,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let routing = routing(&call.config)?;
    let produced = match &step.program {
        StepProgram::Builtin(BuiltinAction::RequestHttp) => {
            cx.note_logs(Vec::new());
            builtin::request_http(inputs, call, cx, halt).await?
        }
        StepProgram::Builtin(BuiltinAction::Check) => {
            cx.note_logs(Vec::new());
            builtin::check(inputs)?
        }
        StepProgram::Builtin(BuiltinAction::Shell | BuiltinAction::RunImage)
        | StepProgram::Script { .. }
        | StepProgram::Image { .. } => {
            return run_program(step, inputs, routing.as_ref(), cx, halt).await;
        }
    };
    outputs::store_values(step, produced, cx).await
}

fn routing(config: &Map<String, Value>) -> Result<Option<RoutingTarget>, Box<Failure>> {
    let Some(target) = config.get(PlanStep::ROUTING) else { return Ok(None) };
    RoutingTarget::read(target).map(Some).map_err(invalid)
}

async fn run_program(
    step: &PlanStep,
    inputs: &[ResolvedInput],
    routing: Option<&RoutingTarget>,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let place = StepPlace::make(cx).await?;
    let result = run_in(&place, step, inputs, routing, cx, halt).await;
    place.remove(inputs).await;
    result
}

async fn run_in(
    place: &StepPlace,
    step: &PlanStep,
    inputs: &[ResolvedInput],
    routing: Option<&RoutingTarget>,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    place.write_inputs(inputs, cx).await?;
    let mut env = place.environment(cx, routing).await?;
    for (name, variable) in &step.env {
        if let Some(value) = variable_text(variable, inputs)? {
            env.entry(name.clone()).or_insert(value);
        }
    }
    let result = match &step.program {
        StepProgram::Script { text } => run_script(place, text, &env, cx, halt).await,
        StepProgram::Builtin(BuiltinAction::RunImage) => {
            let image = image::Image::of_inputs(inputs)?;
            image.run(place, &env, cx, halt).await
        }
        StepProgram::Image { image, script } => {
            let Some(name) = variable_text(image, inputs)? else {
                return Err(invalid("the input that names the image is not bound"));
            };
            let image = image::Image { name, command: script.as_deref().map(image::script_command) };
            image.run(place, &env, cx, halt).await
        }
        StepProgram::Builtin(_) => {
            let script = inputs::text_of(inputs, "script").unwrap_or_default();
            run_script(place, &script, &env, cx, halt).await
        }
    };
    cx.note_logs(place.captured_logs(cx).await?);
    result?;
    outputs::collect(place, step, cx).await
}

/// Runs a script: one that names its interpreter is run by it, any other by `sh`.
async fn run_script(
    place: &StepPlace,
    script: &str,
    env: &BTreeMap<String, String>,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let path = place.write_script(script).await?;
    let argv: Vec<&OsStr> =
        if script.starts_with("#!") { vec![path.as_os_str()] } else { vec!["sh".as_ref(), path.as_os_str()] };
    shell::read_result(place.program(argv, env).run(cx, halt).await?)
}

impl StepPlace {
    fn program<'p>(&'p self, argv: Vec<&'p OsStr>, env: &'p BTreeMap<String, String>) -> Program<'p> {
        Program {
            tool: TOOL,
            not_started: codes::STEP_NOT_STARTED,
            argv,
            env,
            unset: place::ROUTING_VARIABLES,
            cwd: self.dir.to_str(),
            copies: Some(&self.folders.logs),
        }
    }
}

/// Returns a text of the action or of an input; None if nothing binds the input.
fn variable_text(variable: &StepVariable, inputs: &[ResolvedInput]) -> Result<Option<String>, Box<Failure>> {
    match variable {
        StepVariable::Text(text) => Ok(Some(text.clone())),
        StepVariable::Input { input } => {
            let found = inputs.iter().find(|found| found.name == *input);
            match found.map(|found| &found.value) {
                Some(inputs::InputValue::Artifact(_)) => {
                    Err(invalid(format!("the input `{input}` is too large for a variable; read its file")))
                }
                _ => Ok(inputs::text_of(inputs, input)),
            }
        }
    }
}

/// Returns a failure of the work dir; another worker may succeed.
fn unusable(error: &std::io::Error) -> Box<Failure> {
    failure(codes::NO_WORK_DIR, format!("the work dir of the step cannot be used: {error}"))
}
