//! Nodes of workflows, as their workers get them beside the pipeline.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The node whose work a pipeline is; programs see it as their context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Node {
    pub id: String,
    pub name: String,
    /// The node's type: `http_api`, `code`, …
    pub kind: String,
    /// As it is written, before templates are rendered.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub config: Map<String, Value>,
    /// Names the node uses, and the stored secrets behind them. Values are never here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub credentials: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Ids of the nodes right before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<String>,
}
