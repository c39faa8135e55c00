//! `memory_store` and `memory_search`: values that a workflow stores by key, beyond its executions.
//!
//! | tool | fields | result |
//! |---|---|---|
//! | `memory_store` | `key`, `value` | `{key, stored: true}` |
//! | `memory_search` | `key`, `prefix`, `query` (words), `limit` (10) | `{items: [{key, value, storedAt}], count}`, newest first |

use super::ToolContext;
use super::fields::Fields;
use crate::claim::unexpected;
use crate::failure::invalid;
use crate::pipeline::Call;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use windlass_protocol::{Failure, Memory, MemorySearch, ResourceAsk, ResourceReply, Tool};

const KEY_MAX: usize = 255;
const VALUE_MAX: usize = 256 * 1024;
const LIMIT: usize = 10;
const LIMIT_MAX: u64 = 1_000;

pub(super) async fn store(call: &Call, cx: &ToolContext) -> Result<Value, Box<Failure>> {
    let fields = Fields::of(Tool::MemoryStore, &call.config)?;
    let Some(key) = fields.text("key")?.filter(|key| key.len() <= KEY_MAX) else {
        return Err(invalid(format!("memory_store needs `key`, a text of up to {KEY_MAX} characters")));
    };
    let Some(mut value) = call.config.get("value").cloned() else {
        return Err(invalid("memory_store needs `value`"));
    };
    // It outlives the execution, and is not redacted when it is read.
    cx.kit.keeper.redactor().value(&mut value);
    let size = value.to_string().len();
    if size > VALUE_MAX {
        return Err(invalid(format!("`value` of memory_store has {size} bytes, and {VALUE_MAX} at most")));
    }
    needs_workflow(cx, Tool::MemoryStore)?;
    cx.kit.claim.ask(ResourceAsk::StoreMemory { key: key.clone(), value }).await?;
    Ok(json!({ "key": key, "stored": true }))
}

pub(super) async fn search(call: &Call, cx: &ToolContext) -> Result<Value, Box<Failure>> {
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
    needs_workflow(cx, Tool::MemorySearch)?;
    let words = fields.text("query")?.unwrap_or_default();
    let words = words.split_whitespace().map(str::to_owned).collect();
    let search = MemorySearch { key: fields.text("key")?, prefix: fields.text("prefix")?, words, limit };
    let found = match cx.kit.claim.ask(ResourceAsk::SearchMemory(search)).await? {
        ResourceReply::Memories(found) => found,
        other => return Err(unexpected(&other)),
    };
    let item = |found: &Memory| {
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

fn needs_workflow(cx: &ToolContext, tool: Tool) -> Result<(), Box<Failure>> {
    match cx.node(tool)?.work().workflow {
        Some(_) => Ok(()),
        None => {
            let kind = tool.kind();
            Err(invalid(format!("`{kind}` stores for a workflow, and this execution belongs to none")))
        }
    }
}
