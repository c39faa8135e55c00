//! A code task's fields, read and checked.

use crate::failure::{invalid, shown};
use crate::tools::fields::Fields;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windlass_protocol::{Failure, Tool};

/// Bounds of the memory limit. Interpreters do not start with less; a larger number is probably in bytes.
const MEMORY_MB: std::ops::RangeInclusive<u64> = 16..=1_048_576;
const PACKAGES_MAX: usize = 100;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Python,
    Javascript,
}

impl Language {
    pub(super) fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Javascript => "javascript",
        }
    }
}

#[derive(Debug)]
pub(super) struct Code {
    pub(super) language: Language,
    pub(super) source: String,
    pub(super) output: Option<String>,
    pub(super) memory_mb: Option<u64>,
    pub(super) packages: Vec<String>,
    pub(super) env: BTreeMap<String, String>,
    variables: Map<String, Value>,
}

impl Code {
    pub(super) fn read(config: &Map<String, Value>) -> Result<Code, Box<Failure>> {
        let fields = Fields::of(Tool::Code, config)?;
        let Some(source) = fields.text("code")? else { return Err(invalid("code needs `code`, a text")) };
        Ok(Code {
            language: language(&fields)?,
            source,
            output: output(&fields)?,
            memory_mb: memory_mb(&fields)?,
            packages: packages(&fields)?,
            env: fields.env()?,
            variables: fields.map("input_variables")?.cloned().unwrap_or_default(),
        })
    }

    /// Returns the variables. The node's own ones override those of an agent.
    pub(super) fn variables(&self, args: &Value) -> Value {
        let mut all = args.as_object().cloned().unwrap_or_default();
        all.extend(self.variables.clone());
        Value::Object(all)
    }
}

fn language(fields: &Fields<'_>) -> Result<Language, Box<Failure>> {
    match fields.text("language")?.as_deref() {
        Some("python" | "python3") => Ok(Language::Python),
        Some("javascript" | "js" | "node") => Ok(Language::Javascript),
        Some(other) => {
            Err(invalid(format!("`language` of code is python or javascript, not `{}`", shown(other))))
        }
        None => Err(invalid("code needs `language`: python or javascript")),
    }
}

fn output(fields: &Fields<'_>) -> Result<Option<String>, Box<Failure>> {
    let name = fields.text("output_variable")?;
    match name.as_deref().filter(|name| !is_identifier(name)) {
        Some(bad) => Err(invalid(format!("`output_variable` of code is a name, not `{}`", shown(bad)))),
        None => Ok(name),
    }
}

fn is_identifier(name: &str) -> bool {
    name.chars().all(|letter| letter == '_' || letter.is_ascii_alphanumeric())
        && !name.starts_with(|first: char| first.is_ascii_digit())
}

fn memory_mb(fields: &Fields<'_>) -> Result<Option<u64>, Box<Failure>> {
    let Some(given) = fields.given("memory_limit_mb") else { return Ok(None) };
    let mb = given.as_u64().or_else(|| given.as_str()?.trim().parse().ok());
    match mb.filter(|mb| MEMORY_MB.contains(mb)) {
        Some(mb) => Ok(Some(mb)),
        None => {
            let wanted =
                format!("a whole number of megabytes from {} to {}", MEMORY_MB.start(), MEMORY_MB.end());
            Err(fields.is_not("memory_limit_mb", &wanted, given))
        }
    }
}

/// Refuses names that pip would take for an option.
fn packages(fields: &Fields<'_>) -> Result<Vec<String>, Box<Failure>> {
    let Some(given) = fields.given("pip_dependencies") else { return Ok(Vec::new()) };
    let list = given.as_array().filter(|list| list.len() <= PACKAGES_MAX);
    let Some(list) = list else {
        return Err(fields.is_not(
            "pip_dependencies",
            &format!("a list of up to {PACKAGES_MAX} packages"),
            given,
        ));
    };
    let package = |value: &Value| {
        let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
        let text = text.filter(|text| !text.starts_with('-') && !text.contains(['\n', '\r', '\0']));
        text.map(str::to_owned)
            .ok_or_else(|| invalid(format!("`pip_dependencies` of code has {value}, which is no package")))
    };
    let mut packages = list.iter().map(package).collect::<Result<Vec<_>, _>>()?;
    packages.sort_unstable();
    packages.dedup();
    Ok(packages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(config: Value, expected: &str) {
        let refused = Code::read(config.as_object().unwrap()).unwrap_err();
        assert_eq!((refused.code.as_str(), refused.message.as_str()), ("INVALID_CONFIGURATION", expected));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        refused(json!({ "language": "python" }), "code needs `code`, a text");
        refused(json!({ "code": "x" }), "code needs `language`: python or javascript");
        refused(
            json!({ "language": "ruby", "code": "x" }),
            "`language` of code is python or javascript, not `ruby`",
        );
        refused(
            json!({ "language": "python", "code": "x", "memory_limit_mb": 1 }),
            "`memory_limit_mb` of code is a whole number of megabytes from 16 to 1048576, not 1",
        );
        refused(
            json!({ "language": "python", "code": "x", "output_variable": "a; b" }),
            "`output_variable` of code is a name, not `a; b`",
        );
        refused(
            json!({ "language": "python", "code": "x", "pip_dependencies": ["--index-url=x"] }),
            "`pip_dependencies` of code has \"--index-url=x\", which is no package",
        );
        refused(
            json!({ "language": "python", "code": "x", "inputVariables": {} }),
            "code has no field `inputVariables`; it has language, code, input_variables, output_variable, memory_limit_mb, pip_dependencies, env, timeout, args, input, name, timeout_seconds",
        );
    }

    #[test]
    fn the_nodes_own_variables_lie_over_what_an_agent_gave() {
        let config =
            json!({ "language": "js", "code": "x", "input_variables": { "a": 1 }, "memory_limit_mb": "64" });
        let code = Code::read(config.as_object().unwrap()).unwrap();
        assert_eq!(code.variables(&json!({ "a": 0, "b": 2 })), json!({ "a": 1, "b": 2 }));
        assert_eq!((code.language, code.memory_mb), (Language::Javascript, Some(64)));
    }
}
