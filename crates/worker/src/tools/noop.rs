//! Does nothing: a task for rules, context patches and decisions. Its configuration is its result.

use super::fields::Fields;
use serde_json::{Map, Value};
use windlass_protocol::{Failure, Tool};

/// Fields; the first one that exists is the result.
const GIVEN: [&str; 4] = ["result", "data", "args", "input"];

pub(super) fn run(config: &Map<String, Value>) -> Result<Value, Box<Failure>> {
    Fields::of(Tool::Noop, config)?;
    Ok(GIVEN.iter().find_map(|key| config.get(*key)).cloned().unwrap_or_default())
}
