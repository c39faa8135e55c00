//! Commands of the system's shell.
//!
//! | field | meaning |
//! |---|---|
//! | `command` or `cmds` | the script; a list is joined line by line and ends at the first command that fails (`set -e`) |
//! | `shell` | the program that gets it with `-c`; `sh` by default |
//! | `env` | variables that override the worker's environment; values that are not strings are written as JSON |
//! | `cwd` | the directory; the worker's by default |
//! | `timeout_seconds` | as `spec.timeout` |
//! | `args`, `input` | for templates of the other fields |
//! | `input_variables` | the node's own inputs, in a workflow |
//!
//! The result is `{exit_code, stdout, stderr}`, the streams' last 64 KiB as text, with `truncated: true` when that is not
//! all of it; the log has every line. Another exit code than 0 is an error. In a workflow node the script has the node's
//! context and folder, and what it puts into `outputs/` becomes its result.

mod config;

use super::program::{ERROR_TAIL_MAX, Ended, Program};
use super::{ToolContext, code};
use crate::failure::{failure, shown};
use crate::halt::Halt;
use crate::node::{NodeContext, Outputs, Workspace};
use crate::stream::TAIL_MAX;
use config::Script;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use windlass_protocol::{Failure, codes};

pub(super) async fn run(
    config: &Map<String, Value>,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let script = Script::read(config)?;
    let result = match &cx.node {
        Some(node) => in_node(&script, cx, node, halt).await,
        None => read_result(script.program(&script.env, script.cwd.as_deref()).run(cx, halt).await?),
    };
    result.map_err(|failure| script.locate(failure))
}

/// Runs a script in the folder of a node. The contents of `outputs/` are part of its result, or all of it.
async fn in_node(
    script: &Script,
    cx: &ToolContext,
    node: &NodeContext,
    halt: Halt,
) -> Result<Value, Box<Failure>> {
    let workspace = Workspace::make(cx, node, &script.variables).await?;
    let cwd = script.cwd.as_deref().or(workspace.path().to_str());
    let env = workspace.env(&script.env);
    let ended = code::in_context(&script.program(&env, cwd), &workspace, cx, node, halt).await?;
    let mut result = read_result(ended)?;
    match workspace.outputs(node).await? {
        Outputs::Result(result) => Ok(result),
        Outputs::Files(files) => {
            if !files.is_empty() {
                result["files"] = Value::Object(files);
            }
            Ok(result)
        }
    }
}

impl Script {
    /// Adds the line of the script that the shell's last complaint names.
    fn locate(&self, mut failure: Box<Failure>) -> Box<Failure> {
        let words = failure.details["stderr"].as_str().and_then(last_words);
        let line = words.filter(|_| self.is_text).and_then(|words| find_line(&self.shell, words));
        if let Some(line) = line {
            failure.details["line"] = json!(line);
        }
        failure
    }

    fn program<'p>(&'p self, env: &'p BTreeMap<String, String>, cwd: Option<&'p str>) -> Program<'p> {
        let argv = vec![self.shell.as_ref(), "-c".as_ref(), self.text.as_ref()];
        Program {
            tool: config::TOOL,
            not_started: codes::SHELL_NOT_STARTED,
            argv,
            env,
            unset: &[],
            cwd,
            copies: None,
        }
    }
}

pub(super) fn read_result(ended: Ended) -> Result<Value, Box<Failure>> {
    let Ended { status, mut out, mut err } = ended;
    let max = if status.success() { TAIL_MAX } else { ERROR_TAIL_MAX };
    let ((stdout, cut_out), (stderr, cut_err)) = (out.text(max), err.text(max));
    let last_words = last_words(&stderr).map(shown);
    let mut result = json!({ "exit_code": status.code(), "stdout": stdout, "stderr": stderr });
    if cut_out || cut_err {
        result["truncated"] = json!(true);
    }
    if status.success() {
        return Ok(result);
    }
    let mut failure = match (status.code(), status.signal()) {
        (Some(code), _) => exited(code),
        (None, signal) => {
            result["signal"] = json!(signal);
            killed(signal)
        }
    };
    if let Some(words) = last_words {
        failure.message = format!("{}: {words}", failure.message);
    }
    failure.details = result;
    Err(failure)
}

fn last_words(stderr: &str) -> Option<&str> {
    stderr.lines().rev().find(|line| !line.trim().is_empty())
}

/// Finds the line that a shell names: `sh: 3: x: not found`, `bash: line 3: x: command not found`.
fn find_line(shell: &str, words: &str) -> Option<u32> {
    let rest = words.strip_prefix(shell)?.strip_prefix(": ")?;
    let (number, _) = rest.strip_prefix("line ").unwrap_or(rest).split_once(':')?;
    number.parse().ok().filter(|line| *line > 0)
}

fn exited(code: i32) -> Box<Failure> {
    let message = match code {
        126 => "a command cannot be executed (exit code 126)".to_owned(),
        127 => "a command was not found (exit code 127)".to_owned(),
        code => format!("the command ended with exit code {code}"),
    };
    failure(codes::SHELL_EXIT, message)
}

fn killed(signal: Option<i32>) -> Box<Failure> {
    let signal = signal.map_or_else(|| "an unknown signal".to_owned(), |signal| format!("signal {signal}"));
    failure(codes::SHELL_SIGNAL, format!("the command was killed by {signal}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_the_one_that_the_shell_itself_names() {
        assert_eq!(find_line("sh", "sh: 3: frobnicate: not found"), Some(3));
        assert_eq!(find_line("sh", "sh: line 12: frobnicate: command not found"), Some(12));
        assert_eq!(find_line("/bin/bash", "/bin/bash: line 1: cd: /x: No such file or directory"), Some(1));
        for other in ["make: 3: no rule", "sh: 0: cannot open", "sh: x: 3: y", "sh: 3", "wc: 3: x", ""] {
            assert_eq!(find_line("sh", other), None, "{other}");
        }
    }
}
