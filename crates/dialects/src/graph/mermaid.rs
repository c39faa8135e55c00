//! Mermaid: for pages that draw it themselves.

use super::marks::State;
use super::text::for_mermaid;
use super::{Edge, EdgeKind, Node, Picture, Shape};
use std::fmt::Write;

pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::from("flowchart TD\n");
    scope(picture, None, "  ", &mut out);
    for (number, entry) in picture.entries.iter().enumerate() {
        let _ = writeln!(out, "  start{number}(( )) --> n{entry}");
    }
    for edge in &picture.edges {
        let _ = writeln!(out, "  {}", arrow(edge));
    }
    edge_styles(picture, &mut out);
    classes(picture, &mut out);
    out
}

/// The steps in the body of a loop, or outside of all loops; a body is a subgraph.
fn scope(picture: &Picture, of: Option<usize>, indent: &str, out: &mut String) {
    for (place, node) in picture.nodes.iter().enumerate().filter(|(_, node)| node.region == of) {
        let _ = writeln!(out, "{indent}n{place}{}", body(node));
        if picture.bodies.contains(&place) {
            let _ = writeln!(out, "{indent}subgraph l{place}[\"loop {}\"]", for_mermaid(&node.name));
            scope(picture, Some(place), &format!("{indent}  "), out);
            let _ = writeln!(out, "{indent}end");
        }
    }
}

/// Edges are numbered in the order of their lines; those of the entries come first.
fn edge_styles(picture: &Picture, out: &mut String) {
    let numbers = |wanted: fn(u32) -> bool| {
        let all = picture.edges.iter().zip(picture.entries.len()..);
        let found =
            all.filter(|(edge, _)| edge.taken.is_some_and(wanted)).map(|(_, number)| number.to_string());
        found.collect::<Vec<_>>().join(",")
    };
    let (taken, others) = (numbers(|count| count > 0), numbers(|count| count == 0));
    if !taken.is_empty() {
        let _ = writeln!(out, "  linkStyle {taken} stroke-width:3px");
    }
    if !others.is_empty() {
        let _ = writeln!(out, "  linkStyle {others} stroke:#bbb,color:#888");
    }
}

fn body(node: &Node) -> String {
    let mark = node.mark.map(|mark| mark.label());
    let lines = std::iter::once(&node.name).chain(&node.captions).chain(mark.as_ref());
    let text: Vec<String> = lines.map(|line| for_mermaid(line)).collect();
    let text = text.join("<br/>");
    match node.shape {
        Shape::Gate => format!("{{{{\"{text}\"}}}}"),
        Shape::Join => format!("[/\"{text}\"\\]"),
        Shape::Choice => format!("{{\"{text}\"}}"),
        Shape::Child => format!("[[\"{text}\"]]"),
        Shape::Pure => format!("([\"{text}\"])"),
        Shape::Data => format!("[(\"{text}\")]"),
        Shape::Person => format!("[\\\"{text}\"/]"),
        Shape::Model => format!("[/\"{text}\"/]"),
        Shape::Delay => format!("(\"{text}\")"),
        Shape::Trigger => format!(">\"{text}\"]"),
        Shape::Work | Shape::Loop => format!("[\"{text}\"]"),
    }
}

fn arrow(edge: &Edge) -> String {
    let line = match edge.kind {
        EdgeKind::Exclusive => "-->",
        EdgeKind::Inclusive => "==>",
        EdgeKind::Error | EdgeKind::Tool => "-.->",
    };
    match &edge.label {
        Some(label) => format!("n{} {line}|\"{}\"| n{}", edge.from, for_mermaid(label), edge.to),
        None => format!("n{} {line} n{}", edge.from, edge.to),
    }
}

fn classes(picture: &Picture, out: &mut String) {
    let finals: Vec<String> = ids(picture, |node| node.is_final);
    if !finals.is_empty() {
        let _ = writeln!(out, "  classDef final stroke-width:4px\n  class {} final", finals.join(","));
    }
    for state in State::ALL.into_iter().filter(|_| picture.marked) {
        let marked = ids(picture, |node| node.mark.is_some_and(|mark| mark.state == state));
        if !marked.is_empty() {
            let (word, (fill, stroke)) = (state.word(), colours(state));
            let _ = writeln!(out, "  classDef {word} fill:{fill},stroke:{stroke},color:#111");
            let _ = writeln!(out, "  class {} {word}", marked.join(","));
        }
    }
}

fn ids(picture: &Picture, wanted: impl Fn(&Node) -> bool) -> Vec<String> {
    let found = picture.nodes.iter().enumerate().filter(|(_, node)| wanted(node));
    found.map(|(place, _)| format!("n{place}")).collect()
}

/// Returns fill and border.
pub(super) fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Completed => ("#c9ebd2", "#1f7a3d"),
        State::Failed => ("#f8cfcf", "#b42323"),
        State::Running => ("#cfe2fb", "#1d5fb8"),
        State::Waiting => ("#fbe8bd", "#9a6700"),
        State::Skipped => ("#e6e6e6", "#777777"),
    }
}
