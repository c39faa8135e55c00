//! The context of an execution with its size. The size is updated with each patch, so a large context does not slow
//! down later decisions.

use crate::step_run::Patch;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;
use windlass_artifact::json_bytes;

/// Maximum length of the context's JSON. The context is in memory while the execution is live and is written with
/// every change. A value stored as an artifact counts as its reference, so sixteen of the largest other values fit,
/// and thousands of flags.
pub const CONTEXT_BYTES_MAX: usize = 1 << 20;

/// Length of the JSON of a reference to an artifact.
const REFERENCE_BYTES: usize = 110;
/// Length of the JSON around a key and its value: quotes, colon, comma.
const FIELD_BYTES: usize = 4;

/// Values by key, and the length of their JSON.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub struct Context {
    values: BTreeMap<String, Arc<Value>>,
    bytes: usize,
}

impl Context {
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the keys of a patch.
    pub(crate) fn merge(&mut self, patch: &Patch) {
        for (key, value) in patch {
            self.bytes += field_bytes(key, json_bytes(value));
            if let Some(before) = self.values.insert(key.clone(), value.clone()) {
                self.bytes -= field_bytes(key, json_bytes(&before));
            }
        }
    }

    /// Returns the length after a patch whose values above `inline_bytes` are stored as artifacts.
    pub(crate) fn bytes_with(&self, patch: &Patch, inline_bytes: usize) -> usize {
        patch.iter().fold(self.bytes, |bytes, (key, value)| {
            let before = self.values.get(key).map_or(0, |value| field_bytes(key, json_bytes(value)));
            let after = match json_bytes(value) {
                large if large > inline_bytes => REFERENCE_BYTES,
                small => small,
            };
            bytes - before + field_bytes(key, after)
        })
    }
}

fn field_bytes(key: &str, value_bytes: usize) -> usize {
    FIELD_BYTES + key.len() + value_bytes
}

impl Deref for Context {
    type Target = BTreeMap<String, Arc<Value>>;

    fn deref(&self) -> &Self::Target {
        &self.values
    }
}

impl Serialize for Context {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.values.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Context {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Context, D::Error> {
        let mut context = Context::default();
        context.merge(&Patch::deserialize(deserializer)?);
        Ok(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patch(fields: &[(&str, Value)]) -> Patch {
        fields.iter().map(|(key, value)| ((*key).to_owned(), Arc::new(value.clone()))).collect()
    }

    #[test]
    fn the_size_follows_what_is_set_and_replaced() {
        let mut context = Context::default();
        for fields in [
            patch(&[("a", json!("x".repeat(100))), ("b", json!(1))]),
            patch(&[("a", json!(null))]),
            patch(&[("b", json!([1, 2, 3])), ("c", json!({}))]),
        ] {
            let foretold = context.bytes_with(&fields, usize::MAX);
            context.merge(&fields);
            assert_eq!(context.bytes(), foretold);
            let stored = serde_json::to_string(&context).unwrap();
            assert_eq!(serde_json::from_str::<Context>(&stored).unwrap(), context, "{stored}");
            assert!(context.bytes().abs_diff(stored.len()) <= FIELD_BYTES);
        }
        let large = patch(&[("d", json!("x".repeat(1_000)))]);
        assert!(context.bytes_with(&large, 100) < context.bytes() + 200, "a reference is small");
    }
}
