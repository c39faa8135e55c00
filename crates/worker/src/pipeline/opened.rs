//! Secrets that templates of a call read. A handle is opened in a value itself or in its field `value`, and only while
//! the configuration of a tool is rendered; elsewhere it stays a handle.

use serde_json::Value;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use windlass_artifact::secret;
use windlass_secrets::Zeroizing;

#[derive(Default)]
pub(super) struct Opened {
    values: BTreeMap<String, Zeroizing<String>>,
    /// Handles that were read and are not open: the rendered result is discarded.
    missing: RefCell<BTreeSet<String>>,
}

impl Opened {
    pub(super) fn put(&mut self, handle: String, value: Zeroizing<String>) {
        self.values.insert(handle, value);
    }

    pub(super) fn take_missing(&self) -> Vec<String> {
        self.missing.take().into_iter().collect()
    }

    pub(super) fn reveal<'v>(&self, value: Cow<'v, Value>) -> Cow<'v, Value> {
        if let Some(handle) = secret(&value) {
            return self.value(handle).map_or(Cow::Owned(Value::Null), Cow::Owned);
        }
        let inner = value.get("value").and_then(secret);
        match inner.map(|handle| self.value(handle)) {
            None => value,
            Some(opened) => {
                let mut whole = value.into_owned();
                whole["value"] = opened.unwrap_or_default();
                Cow::Owned(whole)
            }
        }
    }

    fn value(&self, handle: &str) -> Option<Value> {
        let found = self.values.get(handle).map(|value| Value::String(value.to_string()));
        if found.is_none() {
            self.missing.borrow_mut().insert(handle.to_owned());
        }
        found
    }
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
