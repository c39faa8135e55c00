//! `memory_store` and `memory_search`: values that a workflow keeps beyond its executions, by key.
//!
//! | tool | fields | result |
//! |---|---|---|
//! | `memory_store` | `key`, `value` | `{key, stored: true}` |
//! | `memory_search` | `key`, `prefix`, `query` (words), `limit` (10) | `{items: [{key, value, storedAt}], count}`, newest first |

use super::Desk;
use super::fields::Fields;
use crate::failure::{failure, invalid};
use crate::memory::{MemoryError, Remembered, Wanted};
use crate::pipeline::Call;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tokio::task::spawn_blocking;
use windlass_protocol::{ErrorClass, Failure, Tool};

const KEY_MAX: usize = 255;
const VALUE_MAX: usize = 256 * 1024;
const LIMIT: usize = 10;
const LIMIT_MAX: u64 = 1_000;

pub(super) async fn store(call: &Call, desk: &Desk) -> Result<Value, Box<Failure>> {
    let fields = Fields::of(Tool::MemoryStore, &call.config)?;
    let Some(key) = fields.text("key")?.filter(|key| key.len() <= KEY_MAX) else {
        return Err(invalid(format!("memory_store needs `key`, a text of up to {KEY_MAX} characters")));
    };
    let Some(mut value) = call.config.get("value").cloned() else {
        return Err(invalid("memory_store needs `value`"));
    };
    // It outlives the execution, and is not redacted when it is read.
    desk.kit.keeper.redactor().value(&mut value);
    let size = value.to_string().len();
    if size > VALUE_MAX {
        return Err(invalid(format!("`value` of memory_store has {size} bytes, and {VALUE_MAX} at most")));
    }
    let (tenant, workflow) = owner(desk, "memory_store")?;
    let memory = Arc::clone(&desk.kit.memory);
    let remembered = Remembered { tenant, workflow, key: key.clone(), value };
    beside(move || memory.store(remembered)).await?;
    Ok(json!({ "key": key, "stored": true }))
}

pub(super) async fn search(call: &Call, desk: &Desk) -> Result<Value, Box<Failure>> {
    let fields = Fields::of(Tool::MemorySearch, &call.config)?;
    let limit = match fields.given("limit") {
        None => LIMIT,
        Some(given) => {
            let number = given.as_u64().or_else(|| given.as_str()?.trim().parse().ok());
            let number = number.filter(|number| (1..=LIMIT_MAX).contains(number));
            let wanted = || fields.is_not("limit", &format!("a whole number from 1 to {LIMIT_MAX}"), given);
            usize::try_from(number.ok_or_else(wanted)?).unwrap_or(LIMIT)
        }
    };
    let (tenant, workflow) = owner(desk, "memory_search")?;
    let words = fields.text("query")?.unwrap_or_default();
    let words = words.split_whitespace().map(str::to_owned).collect();
    let wanted =
        Wanted { tenant, workflow, key: fields.text("key")?, prefix: fields.text("prefix")?, words, limit };
    let memory = Arc::clone(&desk.kit.memory);
    let found = beside(move || memory.search(&wanted)).await?;
    let item = |found: &crate::memory::Found| {
        let at = Timestamp::from_millisecond(found.at).map(|at| at.to_string()).unwrap_or_default();
        Map::from_iter([
            ("key".to_owned(), json!(found.key)),
            ("value".to_owned(), found.value.clone()),
            ("storedAt".to_owned(), json!(at)),
        ])
    };
    let items: Vec<_> = found.iter().map(item).collect();
    Ok(json!({ "count": items.len(), "items": items }))
}

fn owner(desk: &Desk, tool: &str) -> Result<(String, String), Box<Failure>> {
    let work = desk.node(tool)?.work();
    let missing =
        || invalid(format!("`{tool}` remembers for a workflow, and this execution belongs to none"));
    Ok((work.tenant.clone(), work.workflow.clone().ok_or_else(missing)?))
}

async fn beside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, MemoryError> + Send + 'static,
) -> Result<T, Box<Failure>> {
    let done = spawn_blocking(work).await.unwrap_or_else(|error| Err(MemoryError(error.to_string())));
    done.map_err(|error| {
        let mut failed =
            failure(ErrorClass::Unknown, "MEMORY_UNAVAILABLE", format!("memories cannot be used: {error}"));
        failed.retryable = Some(true);
        failed
    })
}
