//! Workflows of nodes and edges.

mod conditions;
mod drawn;
mod lowering;
mod refused;
mod shell;
mod types;
mod warned;

/// Nodes and edges in short: `a: trigger`, `b: shell {command: x}`, and `a -> b`, `a.error -> b`.
pub fn workflow(nodes: &[&str], edges: &[&str]) -> String {
    let node = |text: &&str| {
        let (id, rest) = text.split_once(": ").expect("`id: type`");
        let (kind, config) = rest.split_once(' ').unwrap_or((rest, "{}"));
        format!("- {{id: {id}, type: {kind}, config: {config}}}\n")
    };
    let edge = |text: &&str| {
        let (from, to) = text.split_once(" -> ").expect("`a -> b`");
        let (source, handle) = from.split_once('.').unwrap_or((from, ""));
        let handle = if handle.is_empty() { String::new() } else { format!(", sourceHandle: '{handle}'") };
        format!("- {{source: {source}, target: {to}{handle}}}\n")
    };
    let (nodes, edges): (String, String) =
        (nodes.iter().map(node).collect(), edges.iter().map(edge).collect());
    format!("name: t\nnodes:\n{nodes}edges:\n{edges}")
}
