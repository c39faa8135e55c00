//! Counters of a node, reported as the metadata of its firing.

use serde_json::{Map, Number, Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

pub(crate) const TOKENS_USED: &str = "tokensUsed";
pub(crate) const API_CALLS: &str = "apiCalls";
const METRICS: &str = "metrics";

/// Maximum number of counters of one node: a name per value is not a counter.
const NAMES_MAX: usize = 100;
const NAME_MAX: usize = 100;

#[derive(Debug, Default)]
pub(crate) struct Meter(Mutex<Map<String, Value>>);

impl Meter {
    pub(crate) fn add(&self, name: &str, more: u64) {
        add(&mut self.lock(), name, &Number::from(more));
    }

    /// Adds to a counter of the node.
    pub(crate) fn metric(&self, name: &str, more: &Number) -> Result<(), String> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(format!("the name of a metric has 1 to {NAME_MAX} characters"));
        }
        let mut counted = self.lock();
        let metrics = counted.entry(METRICS).or_insert_with(|| json!({}));
        let Value::Object(metrics) = metrics else { return Ok(()) };
        if !metrics.contains_key(name) && metrics.len() >= NAMES_MAX {
            return Err(format!("a node has at most {NAMES_MAX} metrics"));
        }
        add(metrics, name, more);
        Ok(())
    }

    /// Returns the counts since the last call.
    pub(crate) fn take(&self) -> Map<String, Value> {
        std::mem::take(&mut self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Map<String, Value>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds both, number by number.
pub(crate) fn sum(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match value {
            Value::Number(number) => add(into, &name, &number),
            Value::Object(fields) => {
                if let Value::Object(inner) = into.entry(name).or_insert_with(|| json!({})) {
                    sum(inner, fields);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) => {}
        }
    }
}

fn add(counts: &mut Map<String, Value>, name: &str, more: &Number) {
    let before = counts.get(name).and_then(Value::as_number).cloned().unwrap_or_else(|| Number::from(0));
    let total = match (before.as_u64(), more.as_u64()) {
        (Some(before), Some(more)) => json!(before.saturating_add(more)),
        _ => json!(before.as_f64().unwrap_or_default() + more.as_f64().unwrap_or_default()),
    };
    counts.insert(name.to_owned(), total);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_and_made_up_names_are_refused() {
        let meter = Meter::default();
        meter.add(TOKENS_USED, 3);
        meter.add(TOKENS_USED, 4);
        meter.metric("rows", &Number::from(2)).unwrap();
        meter.metric("share", &Number::from_f64(0.5).unwrap()).unwrap();
        meter.metric("share", &Number::from_f64(0.25).unwrap()).unwrap();
        let mut counted = meter.take();
        assert_eq!(json!(counted), json!({ "tokensUsed": 7, "metrics": { "rows": 2, "share": 0.75 } }));
        sum(&mut counted, json!({ "tokensUsed": 1, "metrics": { "rows": 1 } }).as_object().cloned().unwrap());
        assert_eq!(json!(counted), json!({ "tokensUsed": 8, "metrics": { "rows": 3, "share": 0.75 } }));
        assert!(meter.take().is_empty());
        for n in 0..NAMES_MAX {
            meter.metric(&format!("m{n}"), &Number::from(1)).unwrap();
        }
        assert!(meter.metric("one too many", &Number::from(1)).is_err());
        assert!(meter.metric("m1", &Number::from(1)).is_ok() && meter.metric("", &Number::from(1)).is_err());
    }
}
