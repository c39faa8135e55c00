//! Code of a workflow node, in Python or JavaScript, with the context of the node.
//!
//! | field | meaning |
//! |---|---|
//! | `language` | `python` or `javascript` (run by `node`) |
//! | `code` | the source |
//! | `input_variables` | each is a name of the code, and a key of `ctx.inputs` |
//! | `output_variable` | the name that holds the result; `result` by default |
//! | `timeout_seconds` | time limit of one try |
//! | `memory_limit_mb` | python: limit of the address space; javascript: limit of the heap |
//! | `pip_dependencies` | python packages, installed once into an environment that is kept |
//! | `env` | variables that override the node's environment |
//!
//! The result is the value that a `return` outside of functions returns, or else the variable, or else the value that
//! `main` returns. It is the node's data, or the node contract (`node/output.rs`). The code's output is in the log.

mod config;
mod venv;

use super::ToolContext;
use super::program::{ERROR_TAIL_MAX, Ended, Program};
use super::python::{Exception, RUNNER, RunnerAnswer, TRACEBACK_MAX, read_answer};
use crate::excerpt;
use crate::failure::{self, failure, shown};
use crate::halt::{self, Halt};
use crate::node::{NodeContext, Workspace, output};
use crate::pipeline::{Call, CallResult};
use config::{Code, Language};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use windlass_protocol::{Failure, Tool, codes};

const JAVASCRIPT: &str = include_str!("code/run.cjs");

/// Sets the limit and replaces itself by the interpreter.
const LIMITED: &str = "ulimit -v \"$0\" && exec \"$@\"";

pub(super) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> CallResult {
    ran(call, cx, halt).await.into()
}

async fn ran(call: &Call, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
    let code = Code::read(&call.config)?;
    let node = cx.node(Tool::Code)?;
    let own = code.variables(&call.args);
    let workspace = Workspace::make(cx, node, &own).await?;
    let interpreter = match code.language {
        Language::Python if !code.packages.is_empty() => {
            venv::python(&code.packages, cx, halt.clone()).await?
        }
        Language::Python => "python3".into(),
        Language::Javascript => "node".into(),
    };
    let (name, runner) = match code.language {
        Language::Python => ("run.py", RUNNER),
        Language::Javascript => ("run.cjs", JAVASCRIPT),
    };
    let runner = workspace.put(name, runner)?;
    let request = json!({ "code": code.source, "name": "<code>", "args": own, "libs": [], "node": true,
        "output": code.output });
    workspace.put("request.json", &request.to_string())?;
    let (limit_kb, heap) = limits(&code);
    let mut argv: Vec<&OsStr> = Vec::new();
    if let Some(limit_kb) = &limit_kb {
        argv.extend(["sh", "-c", LIMITED, limit_kb].map(OsStr::new));
    }
    argv.push(interpreter.as_os_str());
    argv.extend(heap.as_deref().map(OsStr::new));
    argv.push(runner.as_os_str());
    let program = Program {
        tool: code.language.name(),
        not_started: codes::CODE_NOT_STARTED,
        argv,
        env: &workspace.env(&code.env),
        unset: &[],
        cwd: workspace.path().to_str(),
        copies: None,
    };
    let ended = in_context(&program, &workspace, cx, node, halt).await?;
    let answer = read_answer(workspace.path(), &cx.share).await?;
    match answer {
        Some(answer) if ended.status.success() => result(answer, code.language, node),
        _ => Err(unanswered(ended, &code, &interpreter)),
    }
}

/// Runs the program and answers its requests.
pub(super) async fn in_context(
    program: &Program<'_>,
    workspace: &Workspace,
    cx: &ToolContext,
    node: &NodeContext,
    halt: Halt,
) -> Result<Ended, Box<Failure>> {
    let (puller, stop) = halt::halt();
    tokio::select! {
        biased;
        ended = program.run(cx, stop) => ended,
        never = workspace.serve(cx, node) => match never {},
        never = workspace.pass_stop(halt, puller) => match never {},
    }
}

fn limits(code: &Code) -> (Option<String>, Option<String>) {
    match (code.language, code.memory_mb) {
        (Language::Python, Some(mb)) => (Some((mb * 1024).to_string()), None),
        (Language::Javascript, Some(mb)) => (None, Some(format!("--max-old-space-size={mb}"))),
        (_, None) => (None, None),
    }
}

fn result(answer: RunnerAnswer, language: Language, node: &NodeContext) -> Result<Value, Box<Failure>> {
    match answer {
        RunnerAnswer::Result(given) => output::read_output(given, &node.meter),
        RunnerAnswer::Unset(()) => Ok(Value::Null),
        RunnerAnswer::NotJson(message) => Err(failure(codes::RESULT_NOT_JSON, message)),
        RunnerAnswer::NoLibrary(message) => Err(failure::invalid(message)),
        RunnerAnswer::Exception(exception) => Err(raised(exception, language, node.work().debug)),
    }
}

/// Returns the failure of an exception. If it has its own code, that code and its flag are used.
fn raised(exception: Exception, language: Language, debug: bool) -> Box<Failure> {
    let mut details = json!({ "exceptionType": exception.exception_type });
    exception.add_place(&mut details);
    let Exception { exception_type, message, traceback, trouble, code, retryable, .. } = exception;
    let message = if message.is_empty() { exception_type } else { format!("{exception_type}: {message}") };
    let message = shown(&message);
    let mut failed = match (code, trouble.as_deref()) {
        (Some(code), _) => Box::new(Failure::of_code(&code, message)),
        (None, Some("timeout")) => failure(codes::NETWORK_TIMEOUT, message),
        (None, Some("connection")) => failure(codes::CONNECTION_RESET, message),
        (None, Some("refused")) => failure(codes::CONNECTION_REFUSED, message),
        (None, Some("dns")) => failure(codes::DNS_FAILED, message),
        (None, Some("syntax")) => failure(codes::CODE_SYNTAX, message),
        (None, Some("memory")) => failure(codes::OUT_OF_MEMORY, message),
        (None, _) => failure(codes::CODE_EXCEPTION, message),
    };
    failed.retryable = retryable;
    failed.details = details;
    if debug {
        // The message is in the last line of python, and in the first line of javascript.
        failed.details["stack"] = json!(match language {
            Language::Python => excerpt::tail(&traceback, TRACEBACK_MAX),
            Language::Javascript => excerpt::head(&traceback, TRACEBACK_MAX),
        });
    }
    failed
}

/// Returns the failure of an interpreter that ended early.
fn unanswered(ended: Ended, code: &Code, interpreter: &Path) -> Box<Failure> {
    let Ended { status, mut out, mut err } = ended;
    let (stdout, stderr) = (out.text(ERROR_TAIL_MAX).0, err.text(ERROR_TAIL_MAX).0);
    let language = code.language.name();
    let mut failed = match (status.code(), status.signal()) {
        _ if stderr.contains("heap out of memory") => {
            failure(codes::OUT_OF_MEMORY, format!("{language} used more memory than its limit"))
        }
        (Some(127), _) => failure::invalid(format!(
            "`{}` was not found on this worker; install it to run nodes in {language}",
            interpreter.display()
        )),
        (Some(code), _) => failure(
            codes::CODE_EXIT,
            format!("{language} ended with exit code {code} before it had a result"),
        ),
        (None, signal) => {
            let signal =
                signal.map_or_else(|| "an unknown signal".to_owned(), |signal| format!("signal {signal}"));
            failure(codes::CODE_SIGNAL, format!("{language} was killed by {signal} before it had a result"))
        }
    };
    failed.details =
        json!({ "exitCode": status.code(), "signal": status.signal(), "stdout": stdout, "stderr": stderr });
    failed
}
