//! The report of a failed execution: the failure, its place, and the commands that help.

use crate::api::{Client, get_execution};
use crate::text::plain;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use windlass_protocol::codes;
use windlass_views::label;

/// Failures that are reported in full; `executions get` lists all of them.
const SHOWN_MAX: usize = 3;
/// Maximum depth of nested executions in which the first failure is searched.
const DEPTH_MAX: usize = 8;
/// Maximum number of characters of a line of code.
const SOURCE_MAX: usize = 100;
/// Maximum number of lines of a stack, the last ones.
const STACK_MAX: usize = 40;

/// Files that definitions were read from, by the names of the definitions.
pub type Files = BTreeMap<String, String>;

/// A failure of an execution; for a loop, with its first inner failure.
struct Failed<'v> {
    error: &'v Value,
    inner: Option<&'v Value>,
}

/// A failure in words.
struct Report {
    what: String,
    /// The first iteration of several that failed.
    first: Option<String>,
    place: Option<String>,
    source: Option<(u64, String)>,
    stack: Option<String>,
    execution: String,
    /// The step with its iteration, as `executions logs` reads it.
    step: Option<String>,
}

#[derive(Debug, Clone, Copy)]
pub struct FailureReport<'c> {
    pub client: &'c Client,
    pub files: &'c Files,
    /// Whether stacks are shown.
    pub debug: bool,
}

impl FailureReport<'_> {
    /// Formats the failures of an execution, each with the command that shows its log, and the command that retries.
    pub fn format(&self, execution: &Value) -> String {
        let failures = failures(execution);
        let mut out = String::new();
        for failed in failures.iter().take(SHOWN_MAX) {
            self.write(&mut out, &self.describe(execution, failed, 0));
        }
        let (id, flag) = (text(execution, "executionId"), self.client.flag());
        if failures.len() > SHOWN_MAX {
            let more = super::counted(failures.len() - SHOWN_MAX, "more error");
            let _ = writeln!(out, "{more}: windlass executions get {id}{flag}");
        }
        if !failures.is_empty() && !execution["completedAt"].is_null() {
            let _ = writeln!(out, "  retry: windlass executions retry {id}{flag}");
        }
        out.trim_end().to_owned()
    }

    fn write(&self, out: &mut String, report: &Report) {
        let _ = writeln!(out, "error: {}", report.what);
        if let Some(first) = &report.first {
            let _ = writeln!(out, "  {first}");
        }
        if let Some(place) = &report.place {
            let _ = writeln!(out, "  --> {place}");
        }
        if let Some((line, source)) = &report.source {
            let _ = writeln!(out, "  {line:>3} | {source}");
        }
        for line in report.stack.iter().flat_map(|stack| stack.lines()) {
            let _ = writeln!(out, "      {}", plain(line));
        }
        let (id, flag) = (&report.execution, self.client.flag());
        let step = report.step.as_deref().map(|step| format!(" {}", quoted(step))).unwrap_or_default();
        let _ = writeln!(out, "  logs:  windlass executions logs {id}{step}{flag}");
    }

    fn describe(&self, execution: &Value, failed: &Failed<'_>, depth: usize) -> Report {
        let Failed { error, inner } = *failed;
        let place = place_words(error);
        if let Some(child) = error["childExecutionId"].as_str() {
            let described = self.describe_child(child, depth);
            let execution = text(execution, "executionId");
            return match described {
                Some(inside) => Report { what: format!("{place}{child}, {}", inside.what), ..inside },
                None => Report {
                    what: format!("{place}{child}: {}", message(error)),
                    step: step_of(error),
                    execution,
                    first: None,
                    place: None,
                    source: None,
                    stack: None,
                },
            };
        }
        let cause = inner.unwrap_or(error);
        let (what, first) = match iterations(error) {
            Some(summary) => (
                format!("{place}{summary}"),
                inner.map(|inner| format!("{} {}", label("", &path_of(inner)), message(inner))),
            ),
            None => (format!("{place}{}", message(error)), None),
        };
        Report {
            what,
            first,
            place: self.location(execution, cause),
            source: self.source(execution, cause),
            stack: stack(cause).filter(|_| self.debug),
            execution: text(execution, "executionId"),
            step: step_of(cause),
        }
    }

    /// Returns the first failure of an execution that a step started.
    fn describe_child(&self, child: &str, depth: usize) -> Option<Report> {
        let id = crate::ids::parse(child).ok().filter(|_| depth < DEPTH_MAX)?;
        let execution = get_execution(self.client, id).ok()?;
        let failures = failures(&execution);
        Some(self.describe(&execution, failures.first()?, depth + 1))
    }

    fn location(&self, execution: &Value, error: &Value) -> Option<String> {
        let location = error.get("location")?;
        let (line, column) = (location["line"].as_u64(), location["column"].as_u64());
        let column = column.map(|column| format!(":{column}")).unwrap_or_default();
        if let (Some(file), Some(line)) = (location["file"].as_str(), line) {
            return Some(format!("{}:{line}{column}", plain(file)));
        }
        let name = execution["workflowName"].as_str().unwrap_or_default();
        Some(match (self.files.get(name), line) {
            (Some(file), Some(line)) => format!("{file}:{line}{column}"),
            (None, Some(line)) => {
                format!("{}, version {}, line {line}", plain(name), execution["workflowVersion"])
            }
            (_, None) => format!("line {} of the code", location["codeLine"]),
        })
    }

    /// Returns the line of the definition. It is left out for a caller who may not read definitions.
    fn source(&self, execution: &Value, error: &Value) -> Option<(u64, String)> {
        let location = error.get("location").filter(|location| location["file"].is_null())?;
        let line = location["line"].as_u64()?;
        let (workflow, version) =
            (execution["workflowId"].as_str()?, execution["workflowVersion"].to_string());
        let version = self.client.get(&["workflows", workflow, "versions", &version], &[]).ok()?;
        let text = version["source"].as_str()?.lines().nth(usize::try_from(line).ok()?.checked_sub(1)?)?;
        Some((line, plain(text).chars().take(SOURCE_MAX).collect()))
    }
}

/// Lists the failures of an execution. The first failed iteration of a loop is a part of the loop's failure, and a loop
/// whose body has steps of its own is described by their failures.
fn failures(execution: &Value) -> Vec<Failed<'_>> {
    let errors = execution["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<Failed<'_>> = Vec::new();
    for error in errors {
        let of_loop = found.last_mut().filter(|failed| {
            failed.inner.is_none()
                && iterations(failed.error).is_some()
                && failed.error["nodeId"] == error["nodeId"]
        });
        match of_loop.filter(|_| !path_of(error).is_empty()) {
            Some(failed) => failed.inner = Some(error),
            None => found.push(Failed { error, inner: None }),
        }
    }
    let has_inner = found.iter().any(|failed| failed.inner.is_some() || !path_of(failed.error).is_empty());
    let is_plain_loop = |failed: &Failed<'_>| {
        failed.error["code"] == codes::ITERATION_FAILED.name() && iterations(failed.error).is_none()
    };
    found.retain(|failed| !has_inner || !is_plain_loop(failed));
    found
}

/// Formats the iterations of a loop that failed: `2 of 5 iterations failed: [1], [3]`.
fn iterations(error: &Value) -> Option<String> {
    let listed = error["failedIterations"].as_array()?;
    let details = &error["details"];
    let failed = details["failed"].as_u64().unwrap_or(listed.len() as u64);
    let total = details["iterations"].as_u64();
    let of = total.map(|total| format!(" of {total}")).unwrap_or_default();
    let names: Vec<String> = listed.iter().map(|index| format!("[{index}]")).collect();
    let more = if failed > names.len() as u64 { ", …" } else { "" };
    let noun = if total.unwrap_or(failed) == 1 { "iteration" } else { "iterations" };
    Some(format!("{failed}{of} {noun} failed: {}{more}", names.join(", ")))
}

fn place_words(error: &Value) -> String {
    let step = step_of(error).map(|step| format!("step {}", plain(&step)));
    let task = error["task"].as_str().map(|task| format!("task {}", plain(task)));
    let words: Vec<String> = step.into_iter().chain(task).collect();
    if words.is_empty() { String::new() } else { format!("{}: ", words.join(", ")) }
}

fn message(error: &Value) -> String {
    let words = plain(error["message"].as_str().unwrap_or_default());
    format!("{words} ({})", plain(error["code"].as_str().unwrap_or("-")))
}

fn step_of(error: &Value) -> Option<String> {
    error["nodeId"].as_str().map(|step| label(step, &path_of(error)))
}

fn path_of(error: &Value) -> Vec<u32> {
    let path = error["path"].as_array().into_iter().flatten();
    path.filter_map(|index| u32::try_from(index.as_u64()?).ok()).collect()
}

/// Returns the end of a python traceback, or the beginning of a javascript stack.
fn stack(error: &Value) -> Option<String> {
    let stack = [&error["stack"], &error["details"]["traceback"]].into_iter().find_map(Value::as_str)?;
    let lines: Vec<&str> = stack.lines().collect();
    let is_python = lines.first().is_some_and(|first| first.starts_with("Traceback"));
    let from = if is_python { lines.len().saturating_sub(STACK_MAX) } else { 0 };
    Some(lines[from..lines.len().min(from + STACK_MAX)].join("\n"))
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or("-").to_owned()
}

/// Quotes a word for a shell, where that is needed.
fn quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_alphanumeric() || "_-./:@".contains(sign);
    if word.chars().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
