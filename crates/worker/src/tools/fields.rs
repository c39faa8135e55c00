//! Access to the fields of a task, with errors that name the tool and the field.

use crate::failure::{invalid, shown};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use windlass_protocol::{Failure, Tool};

#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'c> {
    /// Name of the tool in messages, as in "shell has no field …".
    tool: &'static str,
    config: &'c Map<String, Value>,
}

impl<'c> Fields<'c> {
    /// Refuses a field that the tool does not read, because it would have no effect.
    pub(super) fn of(tool: Tool, config: &'c Map<String, Value>) -> Result<Fields<'c>, Box<Failure>> {
        let (kind, row) = (tool.kind(), tool.row());
        if let Some(unknown) = config.keys().find(|key| !row.has_field(key)) {
            let useful = row.all_fields().filter(|field| field.instead.is_none());
            let known: Vec<&str> = useful.map(|field| field.name).collect();
            return Err(invalid(format!("{kind} has no field `{unknown}`; it has {}", known.join(", "))));
        }
        Ok(Fields { tool: kind, config })
    }

    /// Returns a field; null counts as absent.
    pub(super) fn given(&self, key: &str) -> Option<&'c Value> {
        self.config.get(key).filter(|value| !value.is_null())
    }

    /// Returns the given one of several spellings; more than one is an error.
    pub(super) fn one_of(
        &self,
        keys: &[&'static str],
    ) -> Result<Option<(&'static str, &'c Value)>, Box<Failure>> {
        let mut found = keys.iter().filter_map(|key| Some((*key, self.given(key)?)));
        match (found.next(), found.next()) {
            (Some((first, _)), Some((second, _))) => Err(invalid(format!(
                "{} has both `{first}` and `{second}`, which mean the same; keep one of them",
                self.tool
            ))),
            (first, _) => Ok(first),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<Option<String>, Box<Failure>> {
        match self.given(key) {
            None => Ok(None),
            Some(Value::String(text)) if !text.is_empty() => Ok(Some(text.clone())),
            Some(other) => Err(self.is_not(key, "a text", other)),
        }
    }

    pub(super) fn map(&self, key: &str) -> Result<Option<&'c Map<String, Value>>, Box<Failure>> {
        match self.given(key) {
            None => Ok(None),
            Some(Value::Object(fields)) => Ok(Some(fields)),
            Some(other) => Err(self.is_not(key, "a map", other)),
        }
    }

    /// Reads a boolean, also as the string that templates produce: `"true"`.
    pub(super) fn flag(&self, key: &str) -> Result<Option<bool>, Box<Failure>> {
        match self.given(key) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(*flag)),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("true") => Ok(Some(true)),
            Some(Value::String(text)) if text.trim().eq_ignore_ascii_case("false") => Ok(Some(false)),
            Some(other) => Err(self.is_not(key, "true or false", other)),
        }
    }

    /// Reads a map of strings, as for an environment; other values are written as JSON.
    pub(super) fn env(&self) -> Result<BTreeMap<String, String>, Box<Failure>> {
        let Some(fields) = self.map("env")? else { return Ok(BTreeMap::new()) };
        let given = fields.iter().filter(|(_, value)| !value.is_null());
        Ok(given.map(|(name, value)| (name.clone(), plain(value))).collect())
    }

    pub(super) fn is_not(&self, key: &str, wanted: &str, found: &Value) -> Box<Failure> {
        invalid(format!("`{key}` of {} is {wanted}, not {}", self.tool, shown(&found.to_string())))
    }
}

/// Returns a string as it is, other values as JSON.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads a number of seconds above 0, also as a string; None for other values.
pub(super) fn seconds(value: &Value) -> Option<Duration> {
    let seconds = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0.0 && seconds.is_finite())?;
    Some(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).max(Duration::from_millis(1)))
}
