//! The graph as data, for programs that lay it out themselves.

use super::{Edge, EdgeKind, Mark, Node, Picture};
use windlass_views::{Graph, GraphEdge, GraphIterations, GraphNode, GraphState};

pub(super) fn write(picture: &Picture) -> String {
    serde_json::to_string(&describe(picture)).expect("text and numbers can be written")
}

pub(super) fn describe(picture: &Picture) -> Graph {
    Graph {
        nodes: picture.nodes.iter().map(|node| describe_node(picture, node)).collect(),
        edges: picture.edges.iter().map(|edge| describe_edge(picture, edge)).collect(),
        entries: picture.entries.iter().map(|entry| id(picture, *entry)).collect(),
    }
}

/// Steps are identified by their names, as in every other answer of the API.
fn id(picture: &Picture, place: usize) -> String {
    picture.nodes[place].id.clone()
}

fn describe_node(picture: &Picture, node: &Node) -> GraphNode {
    GraphNode {
        id: node.id.clone(),
        name: node.name.clone(),
        captions: node.captions.clone(),
        shape: node.shape.word().to_owned(),
        in_loop: node.region.map(|region| id(picture, region)),
        is_final: node.is_final,
        condition: node.condition.clone(),
        state: node.mark.map(describe_mark),
    }
}

fn describe_mark(mark: Mark) -> GraphState {
    GraphState {
        status: mark.state.word().to_owned(),
        firings: mark.firings,
        failures: mark.failures,
        attempts: mark.attempts,
        duration_ms: mark.duration_ms,
        iterations: mark.iterations.map(|of| GraphIterations { begun: of.begun, failed: of.failed }),
    }
}

fn describe_edge(picture: &Picture, edge: &Edge) -> GraphEdge {
    let kind = match edge.kind {
        EdgeKind::Exclusive => "first",
        EdgeKind::Inclusive => "every",
        EdgeKind::Error => "error",
        EdgeKind::Tool => "tool",
    };
    GraphEdge {
        from: id(picture, edge.from),
        to: id(picture, edge.to),
        label: edge.label.clone(),
        guard: edge.guard.clone(),
        kind: kind.to_owned(),
        taken: edge.taken,
    }
}
