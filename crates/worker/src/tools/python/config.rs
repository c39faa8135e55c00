//! A python task's fields, read and checked.

use crate::failure::{invalid, shown};
use crate::tools::fields::Fields;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use windlass_protocol::{Failure, Tool};

pub(super) const TOOL: &str = "python";

/// Name of inline code in tracebacks.
const INLINE: &str = "<code>";

#[derive(Debug, PartialEq)]
pub(super) struct Program {
    pub(super) python: String,
    pub(super) source: Source,
    pub(super) libs: Value,
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Source {
    Inline(String),
    File(PathBuf),
}

impl Program {
    pub(super) fn read(config: &Map<String, Value>) -> Result<Program, Box<Failure>> {
        let fields = Fields::of(Tool::Python, config)?;
        // A template may leave anything behind, and none of it would be found under a name.
        fields.map("args")?;
        fields.map("input")?;
        let cwd = fields.text("cwd")?;
        Ok(Program {
            python: fields.text("python")?.unwrap_or_else(|| "python3".to_owned()),
            source: source(fields, cwd.as_deref())?,
            libs: libs(fields)?,
            cwd,
            env: fields.env()?,
        })
    }
}

impl Source {
    pub(super) fn into_file(self) -> Option<PathBuf> {
        match self {
            Source::Inline(_) => None,
            Source::File(path) => Some(path),
        }
    }

    /// The name in tracebacks.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Inline(_) => INLINE.to_owned(),
            Source::File(path) => path.display().to_string(),
        }
    }
}

fn source(fields: Fields<'_>, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
    match fields.one_of(&["code", "script"])? {
        Some(("code", Value::String(code))) => Ok(Source::Inline(code.clone())),
        Some(("script", script)) => scripted(fields, script, cwd),
        Some((key, other)) => Err(fields.is_not(key, "a text", other)),
        None => Err(invalid("python needs `code`, a text, or `script`, a file")),
    }
}

/// A path, or `{uri, source: {type: file}}`, or `{source: {type: inline, code}}`.
fn scripted(fields: Fields<'_>, script: &Value, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
    let map = match script {
        Value::String(path) => return file(path, cwd),
        Value::Object(map) => map,
        other => return Err(fields.is_not("script", "a path or a map", other)),
    };
    let from = map.get("source").unwrap_or(&Value::Null);
    let text = |key: &str| from.get(key).or_else(|| map.get(key)).and_then(Value::as_str);
    let kind = text("type").or_else(|| from.as_str());
    match (kind, text("code").or_else(|| text("content")), text("uri").or_else(|| text("path"))) {
        (None | Some("inline"), Some(code), None) => Ok(Source::Inline(code.to_owned())),
        (None | Some("file"), None, Some(path)) => file(path, cwd),
        (Some(kind), _, _) if !["inline", "file"].contains(&kind) => Err(invalid(format!(
            "`script` of python comes from a `file` or is `inline`, not from `{}`; fetch it in a step before",
            shown(kind)
        ))),
        _ => Err(invalid("`script` of python needs `uri`, the path of a file, or inline `code`")),
    }
}

fn file(uri: &str, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
    let path = uri.strip_prefix("file://").unwrap_or(uri);
    if path.is_empty() || path.contains("://") {
        let uri = shown(uri);
        return Err(invalid(format!(
            "`script` of python is the path of a file, not `{uri}`; fetch it in a step before"
        )));
    }
    Ok(Source::File(cwd.map(PathBuf::from).unwrap_or_default().join(path)))
}

fn libs(fields: Fields<'_>) -> Result<Value, Box<Failure>> {
    let libs = fields.given("libs").cloned().unwrap_or_else(|| json!([]));
    let modules: Vec<&Value> = match &libs {
        Value::Array(modules) => modules.iter().collect(),
        Value::Object(aliases) => {
            if let Some(alias) = aliases.keys().find(|alias| !is_identifier(alias)) {
                return Err(invalid(format!(
                    "`libs` of python has the alias `{}`, which is no name",
                    shown(alias)
                )));
            }
            aliases.values().collect()
        }
        other => return Err(fields.is_not("libs", "a list of modules or a map of aliases", other)),
    };
    let is_module = |module: &&Value| module.as_str().is_some_and(|name| name.split('.').all(is_identifier));
    match modules.iter().find(|module| !is_module(module)) {
        Some(other) => {
            Err(invalid(format!("`libs` of python has {other}, which is no name of a module to import")))
        }
        None => Ok(libs),
    }
}

fn is_identifier(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter == '_' || letter.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(config: Value, expected: Result<Source, &str>) {
        let read = Program::read(config.as_object().unwrap());
        let source = read.map(|program| program.source).map_err(|failure| failure.message);
        assert_eq!(source, expected.map_err(str::to_owned), "{config}");
    }

    #[test]
    fn code_stands_in_the_definition_or_in_a_file() {
        let inline = || Ok(Source::Inline("x = 1".to_owned()));
        let file = |path: &str| Ok(Source::File(PathBuf::from(path)));
        check(json!({ "code": "x = 1" }), inline());
        check(json!({ "script": { "source": { "type": "inline", "code": "x = 1" } } }), inline());
        check(json!({ "script": { "code": "x = 1", "source": "inline" } }), inline());
        check(json!({ "script": "a/b.py" }), file("a/b.py"));
        check(json!({ "script": { "uri": "b.py" }, "cwd": "/srv" }), file("/srv/b.py"));
        check(
            json!({ "script": { "uri": "file:///a/b.py", "source": { "type": "file" } }, "cwd": "/srv" }),
            file("/a/b.py"),
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        check(json!({}), Err("python needs `code`, a text, or `script`, a file"));
        check(json!({ "code": "x", "args": "text" }), Err("`args` of python is a map, not \"text\""));
        check(json!({ "code": ["x"] }), Err("`code` of python is a text, not [\"x\"]"));
        check(
            json!({ "code": "x", "script": "y" }),
            Err("python has both `code` and `script`, which mean the same; keep one of them"),
        );
        check(
            json!({ "script": { "uri": "gs://bucket/x.py", "source": { "type": "gcs" } } }),
            Err(
                "`script` of python comes from a `file` or is `inline`, not from `gcs`; fetch it in a step before",
            ),
        );
        check(
            json!({ "script": "https://x/y.py" }),
            Err("`script` of python is the path of a file, not `https://x/y.py`; fetch it in a step before"),
        );
        check(
            json!({ "script": {} }),
            Err("`script` of python needs `uri`, the path of a file, or inline `code`"),
        );
        check(
            json!({ "code": "x", "libs": 3 }),
            Err("`libs` of python is a list of modules or a map of aliases, not 3"),
        );
        check(
            json!({ "code": "x", "libs": ["os; import sys"] }),
            Err("`libs` of python has \"os; import sys\", which is no name of a module to import"),
        );
        check(
            json!({ "code": "x", "libs": { "a b": "os" } }),
            Err("`libs` of python has the alias `a b`, which is no name"),
        );
    }
}
