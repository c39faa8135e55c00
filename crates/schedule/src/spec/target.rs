//! The target that a schedule starts.

use super::fields::Fields;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Arguments, variables or headers of one target.
const ENTRIES_MAX: usize = 1_000;
const METHODS: [&str; 7] = ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"];

#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    Http {
        method: String,
        url: String,
        headers: BTreeMap<String, String>,
        body: Option<Value>,
    },
    /// A program with its arguments; no shell reads them.
    Shell {
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
        cwd: Option<String>,
    },
    Workflow {
        workflow_id: String,
        input: Map<String, Value>,
        version: Option<u32>,
    },
}

impl Target {
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Target::Http { .. } => "http",
            Target::Shell { .. } => "shell",
            Target::Workflow { .. } => "workflow",
        }
    }

    pub(super) fn parse(fields: &mut Fields<'_>) -> Option<Target> {
        match fields.text("kind").as_deref() {
            Some("http") => parse_http(fields),
            Some("shell") => parse_shell(fields),
            Some("workflow") => parse_workflow(fields),
            _ => {
                fields.problem("kind", "must be one of http, shell, workflow");
                fields.ignore_rest();
                None
            }
        }
    }

    #[must_use]
    pub fn to_json(&self) -> Value {
        match self {
            Target::Http { method, url, headers, body } => {
                json!({ "kind": "http", "method": method, "url": url, "headers": headers, "body": body })
            }
            Target::Shell { command, args, env, cwd } => {
                json!({ "kind": "shell", "command": command, "args": args, "env": env, "cwd": cwd })
            }
            Target::Workflow { workflow_id, input, version } => {
                json!({ "kind": "workflow", "workflow_id": workflow_id, "input": input, "version": version })
            }
        }
    }
}

fn parse_http(fields: &mut Fields<'_>) -> Option<Target> {
    let method = fields.required_text("method", "http").map(|method| method.to_ascii_uppercase());
    if method.as_deref().is_some_and(|method| !METHODS.contains(&method)) {
        fields.problem("method", &format!("must be one of {}", METHODS.join(", ")));
    }
    let url = fields.required_text("url", "http");
    let is_absolute = |url: &str| url.starts_with("http://") || url.starts_with("https://");
    if url.as_deref().is_some_and(|url| !is_absolute(url)) {
        fields.problem("url", "must be an absolute http or https URL");
    }
    if url.as_deref().is_some_and(|url| is_absolute(url) && !has_host(url)) {
        fields.problem("url", "must name a host, and have no spaces and no control characters");
    }
    let headers = texts(fields, "headers");
    if !headers.iter().all(|(name, value)| is_header_name(name) && is_header_value(value)) {
        fields.problem("headers", "has a name or a value that no header can have");
    }
    let body = fields.value("body").cloned();
    Some(Target::Http { method: method?, url: url?, headers, body })
}

fn parse_shell(fields: &mut Fields<'_>) -> Option<Target> {
    let command = fields.required_text("command", "shell");
    let args = match fields.value("args") {
        None => Vec::new(),
        Some(value) => {
            let list = value.as_array().filter(|list| list.len() <= ENTRIES_MAX);
            let texts =
                list.and_then(|list| list.iter().map(|arg| arg.as_str().map(str::to_owned)).collect());
            texts.unwrap_or_else(|| {
                fields.problem("args", &format!("must be a list of at most {ENTRIES_MAX} strings"));
                Vec::new()
            })
        }
    };
    let (env, cwd) = (texts(fields, "env"), fields.text("cwd"));
    if !env.keys().all(|name| is_variable(name)) {
        fields.problem("env", "has a name that is not made of letters, digits and _");
    }
    let words = command.iter().chain(&args).chain(env.values()).chain(&cwd);
    if words.into_iter().any(|word| word.contains('\0')) {
        fields.problem("command", "must have no NUL characters, nor its arguments and variables");
    }
    Some(Target::Shell { command: command?, args, env, cwd })
}

fn parse_workflow(fields: &mut Fields<'_>) -> Option<Target> {
    let workflow_id = fields.required_text("workflow_id", "workflow");
    let input = match fields.value("input") {
        None => Map::new(),
        Some(Value::Object(input)) => input.clone(),
        Some(_) => {
            fields.problem("input", "must be an object");
            Map::new()
        }
    };
    let version = fields.number("version", 1..=u64::from(u32::MAX));
    Some(Target::Workflow { workflow_id: workflow_id?, input, version })
}

fn has_host(url: &str) -> bool {
    let host = url.split_once("://").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
    host.is_some_and(|host| !host.is_empty()) && !url.contains(|sign: char| sign.is_control() || sign == ' ')
}

/// Returns whether a text is a token of HTTP.
fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

/// Returns whether a text is the value of a header. A line break would begin another header.
fn is_header_value(value: &str) -> bool {
    value.chars().all(|sign| sign == '\t' || !sign.is_control())
}

fn is_variable(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_word) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

/// Reads a map of strings.
fn texts(fields: &mut Fields<'_>, name: &'static str) -> BTreeMap<String, String> {
    let Some(value) = fields.value(name) else { return BTreeMap::new() };
    let object = value.as_object().filter(|object| object.len() <= ENTRIES_MAX);
    let entry = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    object.and_then(|object| object.iter().map(entry).collect()).unwrap_or_else(|| {
        fields.problem(name, &format!("must be an object of at most {ENTRIES_MAX} strings"));
        BTreeMap::new()
    })
}
