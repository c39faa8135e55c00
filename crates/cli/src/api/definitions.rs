//! Requests about definitions.

use super::{ApiError, Client};
use serde_json::Value;
use windlass_store::Which;

/// Maximum number of workflows in one answer.
const PAGE: usize = 100;

/// Returns the version and the text of the newest definition of that name.
pub fn newest_version(client: &Client, name: &str) -> Result<Option<(u32, String)>, ApiError> {
    let Some(id) = workflow_ids(client, name)?.into_iter().next() else { return Ok(None) };
    let workflow = client.get(&["workflows", &id], &[])?;
    let version = workflow["version"].as_u64().and_then(|version| u32::try_from(version).ok());
    Ok(version.zip(workflow["source"].as_str().map(str::to_owned)))
}

/// Returns the ids of the workflows of exactly that name, the newest first; an id is returned as it is.
pub fn workflow_ids(client: &Client, name: &str) -> Result<Vec<String>, ApiError> {
    if matches!(Which::of(name), Which::Id(_)) {
        return Ok(vec![name.to_owned()]);
    }
    let (listed, _) = list_workflows(client, &[("search", name)], usize::MAX)?;
    let same = listed.iter().filter(|workflow| workflow["name"] == name);
    Ok(same.filter_map(|workflow| workflow["id"].as_str().map(str::to_owned)).collect())
}

/// Lists workflows that fit a filter, the newest first, and whether there are more.
pub fn list_workflows(
    client: &Client,
    filter: &[(&str, &str)],
    limit: usize,
) -> Result<(Vec<Value>, bool), ApiError> {
    let mut found = Vec::new();
    loop {
        let (offset, wanted) = (found.len().to_string(), PAGE.min(limit - found.len()).to_string());
        let query = [filter, &[("offset", &offset), ("limit", &wanted)]].concat();
        let mut page = client.get(&["workflows"], &query)?;
        if let Some(listed) = page["workflows"].as_array_mut() {
            found.append(listed);
        }
        let more = page["pagination"]["hasMore"] == true;
        if !more || found.len() >= limit {
            return Ok((found, more));
        }
    }
}
