//! `response_mapping`: selected parts of an answer, by JSONPath (RFC 9535).
//!
//! A path of names and indexes is followed here. Any other path can take any time and memory, also to be parsed: it is
//! checked and evaluated in a sandbox process.

use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use crate::sandbox::{Bounds, FOUND_BYTES_MAX, Job, Limits};
use crate::tools::ToolContext;
use serde_json::{Map, Value};
use serde_json_path::JsonPath;
use std::time::Duration;
use windlass_protocol::{Failure, codes};

/// Maximum length of a path.
const PATH_BYTES_MAX: usize = 4 * 1024;
/// Maximum number of paths of one mapping.
const PATHS_MAX: usize = 256;

/// Memory of the sandbox process: an answer of maximum size is parsed and searched in a few seconds; its values, and
/// the found ones, fit into this memory.
const BOUNDS: Bounds = Bounds {
    what: "the JSONPath",
    limits: Limits { memory_bytes: 384 << 20, cpu_seconds: 10, file_bytes: Some(0) },
    time: Duration::from_secs(30),
    result_bytes_max: FOUND_BYTES_MAX,
};

/// One path, or a name for each of several.
#[derive(Debug, Clone)]
pub(super) enum Mapping {
    One(Path),
    Named(Vec<(String, Path)>),
}

#[derive(Debug, Clone)]
pub(super) struct Path {
    text: String,
    field: &'static str,
    /// None: it may select several values.
    single: Option<JsonPath>,
}

impl Mapping {
    /// Parses a mapping. `field` is its name in the definition.
    pub(super) fn read(given: &Value, field: &'static str) -> Result<Mapping, Box<Failure>> {
        match given {
            Value::String(text) => Path::read(text, field).map(Mapping::One),
            Value::Object(fields) if fields.len() > PATHS_MAX => {
                Err(invalid(format!("`{field}` of http has more than {PATHS_MAX} paths")))
            }
            Value::Object(fields) => {
                let named = |(name, path): (&String, &Value)| match path.as_str() {
                    Some(text) => Ok((name.clone(), Path::read(text, field)?)),
                    None => Err(invalid(format!(
                        "`{field}.{name}` of http is a JSONPath, not {}",
                        shown(&path.to_string())
                    ))),
                };
                fields.iter().map(named).collect::<Result<_, _>>().map(Mapping::Named)
            }
            other => Err(invalid(format!(
                "`{field}` of http is a JSONPath, or a map of names to them, not {}",
                shown(&other.to_string())
            ))),
        }
    }

    /// Checks the paths that were not checked when they were parsed, before the request is sent.
    pub(super) async fn check(&self, cx: &ToolContext, halt: Halt) -> Result<(), Box<Failure>> {
        let paths = self.searches();
        let Some(field) = self.paths().next().map(|path| path.field).filter(|_| !paths.is_empty()) else {
            return Ok(());
        };
        let checked = cx.compute(Job::CheckPaths(paths), &BOUNDS, halt).await;
        checked.map(drop).map_err(|failure| named(field, failure))
    }

    /// Returns the parts of `data` that the paths select.
    pub(super) async fn of(
        &self,
        data: Value,
        asked: &str,
        cx: &ToolContext,
        halt: Halt,
    ) -> Result<Value, Box<Failure>> {
        let singles: Vec<Option<Value>> =
            self.paths().map(|path| path.follow(&data, asked)).collect::<Result<_, _>>()?;
        let mut found = match self.searches() {
            none if none.is_empty() => Vec::new(),
            paths => search(paths, data, cx, halt).await.map_err(|failure| named(asked, failure))?,
        }
        .into_iter();
        let mut values =
            singles.into_iter().map(|single| single.or_else(|| found.next()).unwrap_or_default());
        Ok(match self {
            Mapping::One(_) => values.next().unwrap_or_default(),
            Mapping::Named(paths) => {
                Value::Object(paths.iter().map(|(name, _)| name.clone()).zip(values).collect::<Map<_, _>>())
            }
        })
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        let (one, named) = match self {
            Mapping::One(path) => (Some(path), &[][..]),
            Mapping::Named(paths) => (None, &paths[..]),
        };
        one.into_iter().chain(named.iter().map(|(_, path)| path))
    }

    /// Returns the paths that may select several values.
    fn searches(&self) -> Vec<String> {
        self.paths().filter(|path| path.single.is_none()).map(|path| path.text.clone()).collect()
    }
}

/// Returns a list for each path.
async fn search(
    paths: Vec<String>,
    data: Value,
    cx: &ToolContext,
    halt: Halt,
) -> Result<Vec<Value>, Box<Failure>> {
    let found = cx.compute(Job::FindPaths { paths, data }, &BOUNDS, halt).await?;
    let found = cx.share.parse(found).await.map_err(|error| {
        failure(codes::RESULT_TOO_LARGE, format!("what the JSONPath finds cannot be kept: {error}"))
    })?;
    match found {
        Value::Array(found) => Ok(found),
        other => Err(failure(codes::WORKER_DEFECT, format!("no lists: {}", shown(&other.to_string())))),
    }
}

fn named(place: &str, mut failure: Box<Failure>) -> Box<Failure> {
    failure.message = format!("{place}: {}", failure.message);
    failure
}

impl Path {
    fn read(text: &str, field: &'static str) -> Result<Path, Box<Failure>> {
        if text.len() > PATH_BYTES_MAX {
            return Err(invalid(format!("a path of `{field}` of http has more than {PATH_BYTES_MAX} bytes")));
        }
        let single = match is_singular(text) {
            true => Some(JsonPath::parse(text).map_err(|error| {
                invalid(format!("`{field}` of http, `{}`, is no JSONPath: {error}", shown(text)))
            })?),
            false => None,
        };
        Ok(Path { text: text.to_owned(), field, single })
    }

    /// Returns the value of a path that selects one value; None for other paths.
    fn follow(&self, data: &Value, asked: &str) -> Result<Option<Value>, Box<Failure>> {
        let Some(path) = &self.single else { return Ok(None) };
        let found = path.query(data).first().cloned();
        found.map(Some).ok_or_else(|| self.nothing(data, asked))
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
        failure(codes::VALIDATION_ERROR, message)
    }
}

/// Parses a path of names and indexes only, without wildcard, slice, filter or descent: it selects at most one value.
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

    /// Returns the value of the only path; None if it is for the sandbox.
    fn followed(path: &str, data: &Value) -> Result<Option<Value>, (String, String)> {
        let code_and_message = |failure: Box<Failure>| (failure.code, failure.message);
        Path::read(path, "response_mapping")
            .and_then(|path| path.follow(data, "GET x"))
            .map_err(code_and_message)
    }

    #[test]
    fn paths_of_names_and_places_are_followed_and_others_are_not() {
        let data = json!({ "items": [{ "id": 1 }, { "id": 2 }], "a,b": { "c": null } });
        assert_eq!(followed("$.items[0].id", &data), Ok(Some(json!(1))));
        assert_eq!(followed("$['a,b'].c", &data), Ok(Some(json!(null))), "null is a value");
        for path in
            ["$.items[*].id", "$..id", "$.items[?@.id == 1]", "$.items[0:1]", "$.items[0,1]", "$..*..*..*"]
        {
            assert_eq!(followed(path, &data), Ok(None), "{path}");
        }
    }

    #[test]
    fn a_bad_path_or_one_that_finds_nothing_is_an_error() {
        let data = json!({ "a": 1, "b": 2 });
        let check = |path: &str, code: &str, words: &str| {
            let (found, message) = followed(path, &data).unwrap_err();
            assert_eq!(found, code);
            assert!(message.contains(words), "{message}");
        };
        check("items", "INVALID_CONFIGURATION", "is no JSONPath");
        check(&"$.a".repeat(2_000), "INVALID_CONFIGURATION", "more than 4096 bytes");
        check(
            "$.c",
            "VALIDATION_ERROR",
            "finds nothing at `$.c` in the answer to GET x: its fields are a, b",
        );
        let refused = |mapping: Value, words: &str| {
            let failure = Mapping::read(&mapping, "response_mapping").unwrap_err();
            assert!(
                failure.code == "INVALID_CONFIGURATION" && failure.message.contains(words),
                "{failure:?}"
            );
        };
        refused(json!(7), "not 7");
        refused(json!({ "x": 7 }), "`response_mapping.x`");
    }
}
