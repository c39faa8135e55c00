//! Definitions, wherever they are.

use super::{Client, Place};
use serde_json::Value;
use windlass_engine::Folder;
use windlass_store::{Reader, Tenant, Which};

/// Workflows in one answer of a server.
const PAGE: usize = 100;

impl Place {
    /// The newest registered definition of that name: its version and its text.
    pub fn newest(&self, name: &str) -> anyhow::Result<Option<(u32, String)>> {
        match self {
            Place::Folder(data) if !Folder::store(data.folder()).exists() => Ok(None),
            Place::Folder(data) => {
                let found = data.read()?.find_definition(&Tenant::default(), &Which::of(name), None)?;
                Ok(found.map(|definition| (definition.version, definition.source)))
            }
            Place::Server(server) => {
                let Some(id) = called(server, name)?.into_iter().next() else { return Ok(None) };
                let told = server.get(&["workflows", &id], &[])?;
                let version = told["version"].as_u64().and_then(|version| u32::try_from(version).ok());
                Ok(version.zip(told["source"].as_str().map(str::to_owned)))
            }
        }
    }
}

/// Ids of the workflows of exactly that name, the newest first; what is an id already is the only one.
pub fn called(api: &Client, name: &str) -> anyhow::Result<Vec<String>> {
    if matches!(Which::of(name), Which::Id(_)) {
        return Ok(vec![name.to_owned()]);
    }
    let (listed, _) = workflows(api, &[("search", name)], usize::MAX)?;
    let same = listed.iter().filter(|workflow| workflow["name"] == name);
    Ok(same.filter_map(|workflow| workflow["id"].as_str().map(str::to_owned)).collect())
}

/// Workflows that a filter leaves, the newest first, and whether there are more.
pub fn workflows(api: &Client, filter: &[(&str, &str)], limit: usize) -> anyhow::Result<(Vec<Value>, bool)> {
    let mut found = Vec::new();
    loop {
        let (offset, wanted) = (found.len().to_string(), PAGE.min(limit - found.len()).to_string());
        let query = [filter, &[("offset", &offset), ("limit", &wanted)]].concat();
        let mut page = api.get(&["workflows"], &query)?;
        if let Some(listed) = page["workflows"].as_array_mut() {
            found.append(listed);
        }
        let more = page["pagination"]["hasMore"] == true;
        if !more || found.len() >= limit {
            return Ok((found, more));
        }
    }
}
