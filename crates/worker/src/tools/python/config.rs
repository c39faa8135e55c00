//! Fields of a python task.

use crate::failure::{invalid, shown};
use crate::tools::fields::Fields;
use crate::tools::source::Source;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use windlass_protocol::{Failure, Tool};

pub(super) const TOOL: &str = Tool::Python.kind();

#[derive(Debug, PartialEq)]
pub(super) struct Program {
    pub(super) python: String,
    pub(super) source: Source,
    pub(super) libs: Value,
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
}

impl Program {
    pub(super) fn read(config: &Map<String, Value>) -> Result<Program, Box<Failure>> {
        let fields = Fields::of(Tool::Python, config)?;
        // A template may produce any value, and only a map has names.
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

fn source(fields: Fields<'_>, cwd: Option<&str>) -> Result<Source, Box<Failure>> {
    match fields.one_of(&["code", "script"])? {
        Some(("code", Value::String(code))) => Ok(Source::Inline(code.clone())),
        Some(("script", script)) => Source::read(TOOL, script, cwd),
        Some((key, other)) => Err(fields.is_not(key, "a text", other)),
        None => Err(invalid("python needs `code`, a text, or `script`, a file")),
    }
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
    use std::path::PathBuf;

    fn check(config: Value, expected: Result<Source, &str>) {
        let read = Program::read(config.as_object().unwrap());
        let source = read.map(|program| program.source).map_err(|failure| failure.message);
        assert_eq!(source, expected.map_err(str::to_owned), "{config}");
    }

    #[test]
    fn code_is_in_the_definition_or_in_a_file() {
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
