//! Inputs from the command line, which replace the definition's defaults.

use crate::exit::Usage;
use crate::progress::say;
use serde_json::{Map, Value, json};
use windlass_dialects::{Compiled, SECRETS, is_text_input, name_hint};
use windlass_kernel::overlay;

#[derive(Debug, clap::Args)]
pub struct Inputs {
    /// An input; VALUE is parsed by the type that the definition declares or that its default has, else as JSON or a
    /// string
    #[arg(long = "input", value_name = "KEY=VALUE")]
    single: Vec<String>,
    /// Inputs as a JSON object, or @FILE with one
    #[arg(long = "inputs", value_name = "JSON|@FILE")]
    object: Option<String>,
    /// A parameter of a plan whose value is a stored secret
    #[arg(long = "param-secret", value_name = "PARAM=SECRET")]
    secrets: Vec<String>,
}

impl Inputs {
    pub fn is_given(&self) -> bool {
        self.object.is_some() || !self.single.is_empty() || !self.secrets.is_empty()
    }

    /// Inputs that replace those of an earlier execution.
    pub fn over(&self, earlier: Value) -> Result<Value, Usage> {
        let given = self.given(&Declared { schema: None, defaults: &earlier })?;
        let mut inputs = earlier;
        overlay(&mut inputs, given);
        Ok(inputs)
    }

    /// Warns of inputs that the definition does not declare, which are usually mistakes.
    pub fn warn_of_unknown(&self, inputs: &Value, declared: &Declared<'_>) {
        let known = declared.names();
        for name in inputs.as_object().into_iter().flat_map(Map::keys) {
            if !known.is_empty() && !known.contains(&name.as_str()) {
                let hint = name_hint(name, known.iter().copied()).map(|hint| format!("; {hint}"));
                say(&format!("warning: the definition has no input `{name}`{}", hint.unwrap_or_default()));
            }
        }
    }

    /// Merges objects key by key and replaces other values; a single input has priority.
    pub fn given(&self, declared: &Declared<'_>) -> Result<Value, Usage> {
        let mut inputs = Value::Object(Map::new());
        if let Some(text) = &self.object {
            overlay(&mut inputs, Value::Object(object(text)?));
        }
        for text in &self.single {
            let (key, value) = match text.split_once('=') {
                Some((key, value)) if declared.is_text(key) => (key.to_owned(), as_text(value)),
                _ => pair("--input", text)?,
            };
            overlay(&mut inputs, Value::Object(Map::from_iter([(key, value)])));
        }
        for text in &self.secrets {
            let (param, secret) = match text.split_once('=') {
                Some((param, secret)) if !param.is_empty() && !secret.is_empty() => (param, secret),
                _ => return Err(Usage::new(format!("--param-secret needs PARAM=SECRET, not `{text}`"))),
            };
            overlay(&mut inputs, json!({ SECRETS: { param: secret } }));
        }
        Ok(inputs)
    }
}

/// Declarations of a definition about its inputs.
#[derive(Debug, Clone, Copy)]
pub struct Declared<'d> {
    pub schema: Option<&'d Value>,
    pub defaults: &'d Value,
}

impl<'d> Declared<'d> {
    pub fn of(compiled: &'d Compiled) -> Declared<'d> {
        Declared { schema: compiled.manifest.inputs_schema.as_ref(), defaults: &compiled.workload }
    }

    fn property(&self, name: &str) -> Option<&'d Value> {
        self.schema?.get("properties")?.get(name)
    }

    /// Returns whether the input is a string, by its declared type or else by its default.
    fn is_text(&self, name: &str) -> bool {
        let declared = self.property(name).and_then(is_text_input);
        declared.unwrap_or_else(|| self.defaults.get(name).is_some_and(Value::is_string))
    }

    fn names(&self) -> Vec<&'d str> {
        let properties = self.schema.and_then(|schema| schema.get("properties")?.as_object());
        let defaults = self.defaults.as_object();
        properties.into_iter().chain(defaults).flat_map(Map::keys).map(String::as_str).collect()
    }
}

/// Returns the text itself; a JSON string without its quotes.
fn as_text(value: &str) -> Value {
    match serde_json::from_str(value) {
        Ok(Value::String(text)) => Value::String(text),
        _ => Value::String(value.to_owned()),
    }
}

/// Parses `KEY=VALUE`. The value is JSON if it is valid JSON.
pub fn pair(what: &str, text: &str) -> Result<(String, Value), Usage> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
            Ok((key.to_owned(), value))
        }
        _ => Err(Usage::new(format!("{what} needs KEY=VALUE, not `{text}`"))),
    }
}

fn object(text: &str) -> Result<Map<String, Value>, Usage> {
    let (text, what) = match text.strip_prefix('@') {
        None => (text.to_owned(), "--inputs".to_owned()),
        Some(file) => {
            let read = std::fs::read_to_string(file);
            (read.map_err(|error| Usage::new(format!("cannot read {file}: {error}")))?, file.to_owned())
        }
    };
    match serde_json::from_str(&text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Usage::new(format!("{what} must be a JSON object"))),
        Err(error) => {
            Err(Usage::new(format!("{what} is not JSON: {error}")).hint("for a file, use --inputs @FILE"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(object: Option<&str>, single: &[&str], expected: Result<Value, &str>) {
        let single = single.iter().map(ToString::to_string).collect();
        let inputs = Inputs { single, object: object.map(str::to_owned), secrets: Vec::new() };
        let defaults = json!({ "n": 1, "db": { "host": "a", "port": 5 }, "list": [1, 2] });
        let found = inputs.over(defaults).map_err(|error| error.to_string());
        match expected {
            Ok(expected) => assert_eq!(found, Ok(expected)),
            Err(part) => assert!(found.as_ref().is_err_and(|error| error.contains(part)), "{found:?}"),
        }
    }

    #[test]
    fn given_inputs_replace_defaults() {
        check(None, &[], Ok(json!({ "n": 1, "db": { "host": "a", "port": 5 }, "list": [1, 2] })));
        check(
            Some(r#"{"db": {"host": "b"}, "list": [3], "new": null}"#),
            &["n=2"],
            Ok(json!({ "n": 2, "db": { "host": "b", "port": 5 }, "list": [3], "new": null })),
        );
        check(
            Some(r#"{"n": 2}"#),
            &["n=3", "n=4"],
            Ok(json!({ "n": 4, "db": { "host": "a", "port": 5 }, "list": [1, 2] })),
        );
    }

    #[test]
    fn a_single_value_is_json_or_else_text() {
        let text = |value: &str| pair("--input", value).map_err(|error| error.to_string());
        for (given, expected) in [
            ("k=1", json!(1)),
            ("k=true", json!(true)),
            ("k=[1,2]", json!([1, 2])),
            ("k=\"1\"", json!("1")),
            ("k=World", json!("World")),
            ("k=a=b", json!("a=b")),
            ("k=", json!("")),
        ] {
            assert_eq!(text(given), Ok(("k".to_owned(), expected)));
        }
    }

    #[test]
    fn a_value_follows_the_declared_type_and_else_that_of_the_default() {
        let schema =
            json!({ "properties": { "version": { "type": "string" }, "count": { "type": "integer" } } });
        let defaults = json!({ "tag": "1", "count": "1", "n": 1 });
        let declared = Declared { schema: Some(&schema), defaults: &defaults };
        let single = ["version=1.10", "tag=007", "count=2", "n=3", "free=4", "version=\"2\""];
        let given = |single: &[&str]| {
            let single = single.iter().map(ToString::to_string).collect();
            Inputs { single, object: None, secrets: Vec::new() }
                .given(&declared)
                .map_err(|error| error.to_string())
        };
        let expected = json!({ "version": "1.10", "tag": "007", "count": 2, "n": 3, "free": 4 });
        assert_eq!(given(&single[..5]), Ok(expected));
        assert_eq!(given(&single[5..]), Ok(json!({ "version": "2" })));
    }

    #[test]
    fn bad_inputs_are_refused() {
        check(None, &["n"], Err("--input needs KEY=VALUE, not `n`"));
        check(None, &["=1"], Err("--input needs KEY=VALUE"));
        check(Some("[1]"), &[], Err("--inputs must be a JSON object"));
        check(Some("{"), &[], Err("--inputs is not JSON"));
        check(Some("@no/such/file"), &[], Err("cannot read no/such/file"));
    }
}
