//! Requests about executions.

use super::poll::{ApiProgress, wait_ms};
use super::{ApiError, Client};
use crate::commands::graph::Drawn;
use crate::follow::Follower;
use reqwest::Method;
use serde_json::Value;
use std::rc::Rc;
use windlass_kernel::ExecutionId;
use windlass_views::execution_id;

/// Maximum number of entries of a list in one answer.
const PAGE: usize = 100;
/// Records of evidence in one answer: the maximum of a server.
const EVIDENCE_PAGE: &str = "1000";

/// Returns the object that represents an execution in all answers.
pub fn get_execution(client: &Client, id: ExecutionId) -> Result<Value, ApiError> {
    let mut execution = client.get(&["executions", &execution_id(id)], &[])?;
    // Links in the answer refer to a server.
    if !client.is_remote()
        && let Some(fields) = execution.as_object_mut()
    {
        fields.shift_remove("links");
    }
    Ok(execution)
}

/// Returns its status, progress and the tasks that it waits for.
pub fn get_status(client: &Client, id: ExecutionId) -> Result<Value, ApiError> {
    client.get(&["executions", &execution_id(id), "status"], &[])
}

/// Returns its status when it has ended or is paused, or after a short time.
pub fn await_rest(client: &Client, id: ExecutionId) -> Result<Value, ApiError> {
    client.get(&["executions", &execution_id(id), "status"], &[("waitMs", wait_ms(client))])
}

/// Returns the value of a reference or of the mark of an omitted value; None if it is neither.
pub fn get_value(client: &Client, shown: &Value) -> Result<Option<Value>, ApiError> {
    let is_mark = shown.get("$artifact").is_some() || shown.get("$omitted").is_some();
    // The place of some omitted values is only known to be among the events.
    let url = shown.get("url").and_then(Value::as_str).filter(|url| is_mark && !url.ends_with("/events"));
    let Some(path) = url.and_then(|url| url.strip_prefix("/api/v1/")) else { return Ok(None) };
    client.get(&path.split('/').collect::<Vec<_>>(), &[]).map(Some)
}

/// One page of evidence.
#[derive(Debug, Default)]
pub struct EvidencePage {
    pub records: Vec<Value>,
    /// Anchor of the last page, if the folder has a key.
    pub anchor: Option<Value>,
    /// Cursor of the next page; None after the last one.
    pub cursor: Option<String>,
}

/// Returns attempts, ends and actions of people, as a chain of hashes, from a cursor on.
pub fn get_evidence(
    client: &Client,
    id: ExecutionId,
    cursor: Option<&str>,
) -> Result<EvidencePage, ApiError> {
    let mut query = vec![("limit", EVIDENCE_PAGE)];
    query.extend(cursor.map(|cursor| ("cursor", cursor)));
    let mut page = client.get(&["executions", &execution_id(id), "evidence"], &query)?;
    let records = page["evidence"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let cursor = page["pagination"]["cursor"].as_str().map(str::to_owned);
    Ok(EvidencePage { records, anchor: page.get("anchor").cloned(), cursor })
}

/// Returns the definition as a picture, coloured by the state of each step.
pub fn get_picture(client: &Client, id: ExecutionId, format: Drawn) -> Result<String, ApiError> {
    let request = client.request(Method::GET, &["executions", &execution_id(id), "graph"]);
    client.text(request.query(&[("format", format.name())]))
}

pub fn follow(client: &Rc<Client>, id: ExecutionId) -> anyhow::Result<Follower> {
    Follower::new(ApiProgress::new(client.clone(), id), id)
}

/// Filter for all executions that have not ended.
pub const OPEN: [(&str, &str); 1] = [("status", "open")];

/// Lists executions that fit a filter, the newest first, and whether there are more.
pub fn list_executions(
    client: &Client,
    filter: &[(&str, &str)],
    limit: usize,
) -> Result<(Vec<Value>, bool), ApiError> {
    list_executions_at(client, &["executions"], filter, limit)
}

/// Lists the executions of one workflow.
pub fn list_executions_of(
    client: &Client,
    workflow: &str,
    filter: &[(&str, &str)],
    limit: usize,
) -> Result<(Vec<Value>, bool), ApiError> {
    list_executions_at(client, &["workflows", workflow, "executions"], filter, limit)
}

fn list_executions_at(
    client: &Client,
    path: &[&str],
    filter: &[(&str, &str)],
    limit: usize,
) -> Result<(Vec<Value>, bool), ApiError> {
    let mut found = list_pages(client, path, "executions", filter, limit.saturating_add(1))?;
    let more = found.len() > limit;
    found.truncate(limit);
    Ok((found, more))
}

/// Collects entries of a list, page by page, until there are `wanted`.
fn list_pages(
    client: &Client,
    path: &[&str],
    key: &str,
    filter: &[(&str, &str)],
    wanted: usize,
) -> Result<Vec<Value>, ApiError> {
    let mut found = Vec::new();
    let mut cursor = None::<String>;
    loop {
        let limit = (wanted - found.len()).min(PAGE).to_string();
        let mut query = vec![("limit", limit.as_str())];
        query.extend(filter);
        query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
        let mut page = client.get(path, &query)?;
        if let Some(listed) = page[key].as_array_mut() {
            found.append(listed);
        }
        cursor = page["pagination"]["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() || found.len() >= wanted {
            return Ok(found);
        }
    }
}
