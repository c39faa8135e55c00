//! Mermaid: for pages that draw it themselves.

use super::marks::State;
use super::text::for_mermaid;
use super::{Edge, EdgeKind, Node, Picture, Shape};
use std::fmt::Write;

pub(super) fn write(picture: &Picture) -> String {
    let mut out = String::from("flowchart TD\n");
    for (place, node) in picture.nodes.iter().enumerate() {
        let _ = writeln!(out, "  n{place}{}", body(node));
    }
    for (number, entry) in picture.entries.iter().enumerate() {
        let _ = writeln!(out, "  start{number}(( )) --> n{entry}");
    }
    for edge in &picture.edges {
        let _ = writeln!(out, "  {}", arrow(edge));
    }
    classes(picture, &mut out);
    out
}

fn body(node: &Node) -> String {
    let mark = node.mark.map(|mark| mark.label());
    let lines = std::iter::once(&node.name).chain(&node.captions).chain(mark.as_ref());
    let text: Vec<String> = lines.map(|line| for_mermaid(line)).collect();
    let text = text.join("<br/>");
    match node.shape {
        Shape::Gate => format!("{{{{\"{text}\"}}}}"),
        Shape::Child => format!("[[\"{text}\"]]"),
        Shape::Pure => format!("([\"{text}\"])"),
        Shape::Work => format!("[\"{text}\"]"),
    }
}

fn arrow(edge: &Edge) -> String {
    let line = match edge.kind {
        EdgeKind::Exclusive => "-->",
        EdgeKind::Inclusive => "==>",
        EdgeKind::Error => "-.->",
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

/// Fill and border.
pub(super) fn colours(state: State) -> (&'static str, &'static str) {
    match state {
        State::Completed => ("#c9ebd2", "#1f7a3d"),
        State::Failed => ("#f8cfcf", "#b42323"),
        State::Running => ("#cfe2fb", "#1d5fb8"),
        State::Waiting => ("#fbe8bd", "#9a6700"),
        State::Skipped => ("#e6e6e6", "#777777"),
    }
}
