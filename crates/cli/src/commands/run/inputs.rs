//! Inputs from the command line, which replace the definition's defaults.

use crate::exit::Usage;
use serde_json::{Map, Value};
use windlass_kernel::overlay;

#[derive(Debug, clap::Args)]
pub struct Inputs {
    /// An input; VALUE is JSON, or else a text
    #[arg(long = "input", value_name = "KEY=VALUE")]
    single: Vec<String>,
    /// Inputs as a JSON object, or @FILE with one
    #[arg(long = "inputs", value_name = "JSON|@FILE")]
    object: Option<String>,
}

impl Inputs {
    pub fn is_given(&self) -> bool {
        self.object.is_some() || !self.single.is_empty()
    }

    /// Laid over those of an earlier execution.
    pub fn over(&self, earlier: Value) -> Result<Value, Usage> {
        let mut inputs = earlier;
        overlay(&mut inputs, self.given()?);
        Ok(inputs)
    }

    /// Objects are merged key by key, anything else is replaced; a single input wins.
    pub fn given(&self) -> Result<Value, Usage> {
        let mut inputs = Value::Object(Map::new());
        if let Some(text) = &self.object {
            overlay(&mut inputs, Value::Object(object(text)?));
        }
        for text in &self.single {
            let (key, value) = pair("--input", text)?;
            overlay(&mut inputs, Value::Object(Map::from_iter([(key, value)])));
        }
        Ok(inputs)
    }
}

/// `KEY=VALUE`, where the value is JSON if it can be read as such.
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
            Err(Usage::new(format!("{what} is not JSON: {error}")).hint("a file is given as --inputs @FILE"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(object: Option<&str>, single: &[&str], expected: Result<Value, &str>) {
        let single = single.iter().map(ToString::to_string).collect();
        let inputs = Inputs { single, object: object.map(str::to_owned) };
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
    fn bad_inputs_are_refused() {
        check(None, &["n"], Err("--input needs KEY=VALUE, not `n`"));
        check(None, &["=1"], Err("--input needs KEY=VALUE"));
        check(Some("[1]"), &[], Err("--inputs must be a JSON object"));
        check(Some("{"), &[], Err("--inputs is not JSON"));
        check(Some("@no/such/file"), &[], Err("cannot read no/such/file"));
    }
}
