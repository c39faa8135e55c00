//! The language of Graphviz.

use super::mermaid::colours;
use super::text::for_dot;
use super::{Edge, EdgeKind, Node, Picture, Shape};
use std::fmt::Write;

pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::from(
        "digraph net {\n  node [fontname=\"monospace\", fontsize=11, style=\"rounded,filled\", fillcolor=\"white\"];\n  edge [fontname=\"monospace\", fontsize=10];\n",
    );
    scope(picture, None, "  ", &mut out);
    for (number, entry) in picture.entries.iter().enumerate() {
        let _ = writeln!(
            out,
            "  start{number} [shape=point, width=0.15, fillcolor=\"black\"];\n  start{number} -> n{entry};"
        );
    }
    for edge in &picture.edges {
        let _ = writeln!(out, "  {};", arrow(edge));
    }
    out.push_str("}\n");
    out
}

/// The steps in the body of a loop, or outside of all loops; a body is a cluster.
fn scope(picture: &Picture, of: Option<usize>, indent: &str, out: &mut String) {
    for (place, node) in picture.nodes.iter().enumerate().filter(|(_, node)| node.region == of) {
        let _ = writeln!(out, "{indent}n{place} [{}];", attributes(node));
        if picture.bodies.contains(&place) {
            let title = for_dot(&node.name);
            let _ = writeln!(
                out,
                "{indent}subgraph cluster{place} {{\n{indent}  label=\"loop {title}\"; style=dashed; color=purple;"
            );
            scope(picture, Some(place), &format!("{indent}  "), out);
            let _ = writeln!(out, "{indent}}}");
        }
    }
}

fn attributes(node: &Node) -> String {
    let mark = node.mark.map(|mark| mark.label());
    let lines = std::iter::once(&node.name).chain(&node.captions).chain(mark.as_ref());
    let label: Vec<String> = lines.map(|line| for_dot(line)).collect();
    let shape = match node.shape {
        Shape::Gate => "octagon",
        Shape::Join => "invhouse",
        Shape::Choice => "diamond",
        Shape::Child => "box3d",
        Shape::Data => "cylinder",
        Shape::Person => "invtrapezium",
        Shape::Model => "parallelogram",
        Shape::Delay => "ellipse",
        Shape::Trigger => "cds",
        Shape::Loop => "folder",
        Shape::Pure | Shape::Work => "box",
    };
    let mut attributes = format!("shape={shape}, label=\"{}\"", label.join("\\n"));
    if node.is_final {
        attributes.push_str(", peripheries=2");
    }
    if let Some(mark) = node.mark {
        let (fill, stroke) = colours(mark.state);
        let _ = write!(attributes, ", fillcolor=\"{fill}\", color=\"{stroke}\"");
    }
    attributes
}

fn arrow(edge: &Edge) -> String {
    let style = match edge.kind {
        EdgeKind::Exclusive => "",
        EdgeKind::Inclusive => ", penwidth=2",
        EdgeKind::Error => ", style=dashed",
        EdgeKind::Tool => ", style=dotted",
    };
    let taken = match edge.taken {
        Some(0) => ", color=\"#bbbbbb\", fontcolor=\"#888888\"",
        Some(_) => ", penwidth=3",
        None => "",
    };
    let label = edge.label.as_deref().unwrap_or_default();
    format!("n{} -> n{} [label=\"{}\"{style}{taken}]", edge.from, edge.to, for_dot(label))
}
