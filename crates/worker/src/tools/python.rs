//! Code in Python, run by the system's interpreter.
//!
//! | field | meaning |
//! |---|---|
//! | `code` | the source |
//! | `script` | in place of `code`: the path of a file, also as `{uri}`; a relative path starts at `cwd` |
//! | `args` or `input` | merged over the step's arguments; each is a global of its name, and `args` and `input_data` contain all of them |
//! | `libs` | `{alias: module}` is imported under the alias; a list must be importable and is imported under its own names |
//! | `python` | the interpreter; `python3` by default |
//! | `env` | variables that override the worker's environment; values that are not strings are written as JSON |
//! | `cwd` | the directory, which is also searched for modules; the worker's by default |
//! | `timeout_seconds` | as `spec.timeout` |
//!
//! The result is the value that a `return` outside of functions returns, or else the global `result`, or else the value
//! that `main` returns, called with those of the arguments that it takes. Without any of them it is
//! `{status: "success", message}`. It must be JSON. An exception is an error with the fact
//! `py: {exception_type, traceback}`. The code's output is in the log.
//!
//! Arguments may hold secrets: they pass through a file in a directory that only this user can open, and are neither
//! in the environment nor among the arguments of the process.

mod config;
mod interpreter_files;

use super::ToolContext;
use super::program::{self, ERROR_TAIL_MAX, Ended};
use crate::excerpt;
use crate::failure::{self, failure, shown};
use crate::halt::Halt;
use crate::pipeline::{Call, CallResult};
use config::Program;
use interpreter_files::InterpreterFiles;
pub(super) use interpreter_files::{Exception, RUNNER, RunnerAnswer, TRACEBACK_MAX, read_answer};
use serde_json::{Map, Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use windlass_protocol::{Failure, codes};

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    match answered(call, cx, halt).await {
        Err(failure) => Err(failure).into(),
        Ok((RunnerAnswer::Exception(exception), script)) => raised(exception, script),
        Ok((answer, _)) => result(answer).into(),
    }
}

/// Returns the answer, and the script if the code is in a file.
async fn answered(
    call: &Call,
    cx: &ToolContext,
    halt: Halt,
) -> Result<(RunnerAnswer, Option<PathBuf>), Box<Failure>> {
    let program = Program::read(&call.config)?;
    let interpreter_files = InterpreterFiles::write(&program, &call.args).await?;
    let started = program::Program {
        tool: config::TOOL,
        not_started: codes::PYTHON_NOT_STARTED,
        argv: vec![program.python.as_ref(), interpreter_files.runner()],
        env: &program.env,
        unset: &[],
        cwd: program.cwd.as_deref(),
        copies: None,
    };
    let ended = started.run(cx, halt).await;
    let answer = interpreter_files.read(&cx.share).await;
    let ended = ended?;
    match answer? {
        Some(answer) if ended.status.success() => Ok((answer, program.source.into_file())),
        answer => Err(unanswered(ended, &program.python, answer.is_some())),
    }
}

fn result(answer: RunnerAnswer) -> Result<Value, Box<Failure>> {
    match answer {
        RunnerAnswer::Result(result) => Ok(result),
        RunnerAnswer::Unset(()) => Ok(json!({ "status": "success", "message": "the code gave no result" })),
        RunnerAnswer::NotJson(message) => Err(failure(codes::RESULT_NOT_JSON, message)),
        RunnerAnswer::NoLibrary(message) => Err(failure::invalid(message)),
        RunnerAnswer::Exception(exception) => raised(exception, None).outcome,
    }
}

fn raised(exception: Exception, script: Option<PathBuf>) -> CallResult {
    let mut place = json!({});
    exception.add_place(&mut place);
    let Exception { exception_type, message, traceback, trouble, .. } = exception;
    let code = match trouble.as_deref() {
        Some("timeout") => codes::NETWORK_TIMEOUT,
        Some("connection") => codes::CONNECTION_RESET,
        Some("refused") => codes::CONNECTION_REFUSED,
        Some("dns") => codes::DNS_FAILED,
        Some("syntax") => codes::PYTHON_SYNTAX,
        _ => codes::PYTHON_EXCEPTION,
    };
    let message =
        if message.is_empty() { exception_type.clone() } else { format!("{exception_type}: {message}") };
    let facts =
        json!({ "exception_type": exception_type, "traceback": excerpt::tail(&traceback, TRACEBACK_MAX) });
    let mut failed = failure(code, shown(&message));
    failed.details = facts.clone();
    if let (Value::Object(details), Value::Object(place)) = (&mut failed.details, place) {
        details.extend(place);
        details.extend(script.map(|script| ("file".to_owned(), json!(script.display().to_string()))));
    }
    CallResult { outcome: Err(failed), facts: Map::from_iter([("py".to_owned(), facts)]) }
}

/// Returns the failure of an interpreter that ended early.
fn unanswered(ended: Ended, python: &str, had_answered: bool) -> Box<Failure> {
    let Ended { status, mut out, mut err } = ended;
    let (stdout, stderr) = (out.text(ERROR_TAIL_MAX).0, err.text(ERROR_TAIL_MAX).0);
    let when = if had_answered { "after it had its result" } else { "before it had a result" };
    let mut failed = match (status.code(), status.signal()) {
        (Some(127), _) if !had_answered => failure::invalid(format!(
            "the interpreter `{}` was not found; install it, or name another one in `python`",
            shown(python)
        )),
        (Some(code), _) => failure(codes::PYTHON_EXIT, format!("python ended with exit code {code} {when}")),
        (None, signal) => {
            let signal =
                signal.map_or_else(|| "an unknown signal".to_owned(), |signal| format!("signal {signal}"));
            failure(codes::PYTHON_SIGNAL, format!("python was killed by {signal} {when}"))
        }
    };
    failed.details =
        json!({ "exit_code": status.code(), "signal": status.signal(), "stdout": stdout, "stderr": stderr });
    failed
}
