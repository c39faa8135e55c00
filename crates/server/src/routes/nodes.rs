//! `/api/v1/nodes`: the node types of workflows, for editors.

use super::shared::Refusals;
use crate::app::App;
use crate::auth::{Caller, Permission};
use crate::problem::Problem;
use axum::Json;
use axum::extract::Path;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use windlass_dialects::workflow::{NodeType, node_types};

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeTypeList {
    types: Vec<NodeTypeView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeTypeView {
    /// Value of a node's `nodeType`
    name: String,
    category: String,
    description: String,
    /// JSON Schema (2020-12) of the node's `config`
    schema: Value,
    /// Outputs of the node, by `sourceHandle`
    handles: Vec<NodeHandleView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeHandleView {
    name: String,
    description: String,
}

impl From<NodeType> for NodeTypeView {
    fn from(node: NodeType) -> NodeTypeView {
        let handles = node.handles.iter();
        NodeTypeView {
            name: node.name.to_owned(),
            category: node.category.to_owned(),
            description: node.description.to_owned(),
            schema: node.schema,
            handles: handles
                .map(|handle| NodeHandleView {
                    name: handle.name.to_owned(),
                    description: handle.description.to_owned(),
                })
                .collect(),
        }
    }
}

pub(crate) fn router() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list_node_types)).routes(routes!(get_node_schema))
}

/// List the node types
#[utoipa::path(get, path = "/api/v1/nodes/types", tag = "nodes", security(("bearer" = [])),
    responses((status = 200, body = NodeTypeList), Refusals))]
async fn list_node_types(caller: Caller) -> Result<Json<NodeTypeList>, Problem> {
    caller.may(Permission::View)?;
    Ok(Json(NodeTypeList { types: node_types().into_iter().map(NodeTypeView::from).collect() }))
}

/// Get the JSON Schema of a node type's `config`
#[utoipa::path(get, path = "/api/v1/nodes/types/{type}/schema", tag = "nodes", security(("bearer" = [])),
    params(("type" = String, Path, description = "Name of the node type")),
    responses((status = 200, body = Value), Refusals))]
async fn get_node_schema(caller: Caller, Path(kind): Path<String>) -> Result<Json<Value>, Problem> {
    caller.may(Permission::View)?;
    let found = node_types().into_iter().find(|node| node.name == kind);
    found.map(|node| Json(node.schema)).ok_or_else(|| Problem::not_found("node type", &kind))
}
