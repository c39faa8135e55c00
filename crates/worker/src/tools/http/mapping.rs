//! `response_mapping`: the parts of an answer that are wanted, by JSONPath (RFC 9535).

use crate::failure::{failure, invalid, shown};
use serde_json::{Map, Value};
use serde_json_path::JsonPath;
use windlass_protocol::Failure;

/// One path, or a name for each of several.
#[derive(Debug, Clone)]
pub(super) enum Mapping {
    One(Path),
    Named(Vec<(String, Path)>),
}

#[derive(Debug, Clone)]
pub(super) struct Path {
    text: String,
    path: JsonPath,
    field: &'static str,
}

impl Mapping {
    /// `field`: what the definition calls it.
    pub(super) fn read(given: &Value, field: &'static str) -> Result<Mapping, Box<Failure>> {
        match given {
            Value::String(text) => Path::read(text, field).map(Mapping::One),
            Value::Object(fields) => {
                let named = |(name, path): (&String, &Value)| match path.as_str() {
                    Some(text) => Ok((name.clone(), Path::read(text, field)?)),
                    None => Err(invalid(format!("`{field}.{name}` of http is a JSONPath, not {path}"))),
                };
                fields.iter().map(named).collect::<Result<_, _>>().map(Mapping::Named)
            }
            other => Err(invalid(format!(
                "`{field}` of http is a JSONPath, or a map of names to them, not {}",
                shown(&other.to_string())
            ))),
        }
    }

    pub(super) fn of(&self, data: &Value, asked: &str) -> Result<Value, Box<Failure>> {
        match self {
            Mapping::One(path) => path.of(data, asked),
            Mapping::Named(paths) => {
                let part = |(name, path): &(String, Path)| Ok((name.clone(), path.of(data, asked)?));
                paths.iter().map(part).collect::<Result<Map<_, _>, Box<Failure>>>().map(Value::Object)
            }
        }
    }
}

impl Path {
    fn read(text: &str, field: &'static str) -> Result<Path, Box<Failure>> {
        let path = JsonPath::parse(text).map_err(|error| {
            invalid(format!("`{field}` of http, `{}`, is no JSONPath: {error}", shown(text)))
        })?;
        Ok(Path { text: text.to_owned(), path, field })
    }

    /// The value of a path that leads to one place; the list of all that any other path finds.
    fn of(&self, data: &Value, asked: &str) -> Result<Value, Box<Failure>> {
        let found = self.path.query(data);
        if !is_singular(&self.text) {
            return Ok(found.all().into_iter().cloned().collect());
        }
        found.first().cloned().ok_or_else(|| self.nothing(data, asked))
    }

    fn nothing(&self, data: &Value, asked: &str) -> Box<Failure> {
        let there = match data {
            Value::Object(fields) => {
                format!("its fields are {}", shown(&fields.keys().cloned().collect::<Vec<_>>().join(", ")))
            }
            Value::Array(items) => format!("it is a list of {}", items.len()),
            Value::String(_) => "it is a text".to_owned(),
            Value::Null | Value::Bool(_) | Value::Number(_) => format!("it is {data}"),
        };
        let message =
            format!("`{}` finds nothing at `{}` in the answer to {asked}: {there}", self.field, self.text);
        failure("validation", "VALIDATION_ERROR", message)
    }
}

/// Only names and places, no wildcard, slice, filter or descent: such a path leads to one place or to none.
fn is_singular(path: &str) -> bool {
    let (mut quote, mut escaped, mut before) = (None, false, ' ');
    for letter in path.chars() {
        match quote {
            Some(_) if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            None if matches!(letter, '*' | '?' | ':' | ',') || (letter == '.' && before == '.') => {
                return false;
            }
            None => {}
        }
        before = letter;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mapped(mapping: Value, data: Value) -> Result<Value, (String, String)> {
        let mapping =
            Mapping::read(&mapping, "response_mapping").map_err(|failure| (failure.code, failure.message))?;
        mapping.of(&data, "GET x").map_err(|failure| (failure.code, failure.message))
    }

    #[test]
    fn paths_take_parts_of_the_answer() {
        let data =
            json!({ "items": [{ "id": 1, "ok": true }, { "id": 2, "ok": false }], "a,b": { "c": null } });
        assert_eq!(mapped(json!("$.items[0].id"), data.clone()), Ok(json!(1)));
        assert_eq!(mapped(json!("$.items[*].id"), data.clone()), Ok(json!([1, 2])));
        assert_eq!(mapped(json!("$.items[?@.ok == true].id"), data.clone()), Ok(json!([1])));
        assert_eq!(mapped(json!("$.none[*]"), data.clone()), Ok(json!([])), "a list may be empty");
        assert_eq!(mapped(json!("$['a,b'].c"), data.clone()), Ok(json!(null)), "null is a value");
        let named = json!({ "first": "$.items[0].id", "all": "$..id" });
        assert_eq!(mapped(named, data), Ok(json!({ "first": 1, "all": [1, 2] })));
    }

    #[test]
    fn what_is_no_path_or_finds_nothing_is_told() {
        let check = |mapping: Value, code: &str, words: &str| {
            let (found, message) = mapped(mapping, json!({ "a": 1, "b": 2 })).unwrap_err();
            assert_eq!(found, code);
            assert!(message.contains(words), "{message}");
        };
        check(json!("items"), "INVALID_CONFIGURATION", "is no JSONPath");
        check(json!(7), "INVALID_CONFIGURATION", "not 7");
        check(json!({ "x": 7 }), "INVALID_CONFIGURATION", "`response_mapping.x`");
        check(
            json!("$.c"),
            "VALIDATION_ERROR",
            "finds nothing at `$.c` in the answer to GET x: its fields are a, b",
        );
    }
}
