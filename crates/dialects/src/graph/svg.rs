//! A picture in one file, without scripts and fonts, readable on light and on dark paper.

use super::layout::{Box, Layout, Link, Point, Way, layout};
use super::marks::State;
use super::text::{columns, for_xml};
use super::{Edge, EdgeKind, Node, Picture, Shape};
use std::fmt::Write;

const LETTER: f64 = 7.3;
const SMALL: f64 = 6.1;
const LINE: f64 = 15.0;
const PADDING: f64 = 12.0;
/// Beside a node, for the arc of a self loop.
const SELF_LOOP: f64 = 34.0;

const STYLE: &str = "svg{background:#fff}text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24;text-anchor:middle}\
.n{font-size:12px;font-weight:bold}.c{font-size:10px}.l{font-size:10px;fill:#57606a}.p{fill:#fff}\
.b{fill:#f6f8fa;stroke:#57606a;stroke-width:1.3}.e{fill:none;stroke:#57606a;stroke-width:1.3}.i{stroke-width:2.6}.r{stroke-dasharray:5 4}\
.k{stroke:#8250df}.a{fill:#57606a}.ka{fill:#8250df}.d{fill:#1b1f24}\
.completed{fill:#c9ebd2;stroke:#1f7a3d}.failed{fill:#f8cfcf;stroke:#b42323}.running{fill:#cfe2fb;stroke:#1d5fb8}.waiting{fill:#fbe8bd;stroke:#9a6700}.skipped{fill:#e6e6e6;stroke:#777}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.l{fill:#9da7b3}.p{fill:#0d1117}.b{fill:#161b22;stroke:#9da7b3}.e{stroke:#9da7b3}.k{stroke:#bc8cff}.a{fill:#9da7b3}.ka{fill:#bc8cff}.d{fill:#e6edf3}\
.completed{fill:#12361f;stroke:#3fb950}.failed{fill:#4b1518;stroke:#f85149}.running{fill:#0c2d5e;stroke:#58a6ff}.waiting{fill:#3f2d04;stroke:#d29922}.skipped{fill:#22272e;stroke:#768390}}";

pub(super) fn write(picture: &Picture) -> String {
    let boxes: Vec<Box> = (0..picture.nodes.len()).map(|place| size(picture, place)).collect();
    let links: Vec<(usize, &Edge)> =
        picture.edges.iter().enumerate().filter(|(_, edge)| edge.from != edge.to).collect();
    let asked: Vec<Link> = links.iter().map(|(_, edge)| link(edge)).collect();
    let layout =
        layout(&boxes, &asked, &picture.entries, picture.nodes.iter().position(|node| node.is_final));
    let mut out = head(&layout);
    for ((_, edge), way) in links.iter().zip(&layout.ways) {
        path(&mut out, edge, way);
    }
    for entry in &picture.entries {
        start(&mut out, layout.boxes[*entry], &boxes[*entry]);
    }
    for (place, node) in picture.nodes.iter().enumerate() {
        let loops: Vec<&Edge> =
            picture.edges.iter().filter(|edge| edge.from == place && edge.to == place).collect();
        self::node(&mut out, node, layout.boxes[place], &boxes[place], &loops);
    }
    for ((_, edge), way) in links.iter().zip(&layout.ways) {
        label(&mut out, edge.label.as_deref(), way.label);
    }
    if picture.marked {
        legend(&mut out, &layout);
    }
    out.push_str("</svg>\n");
    out
}

fn head(layout: &Layout) -> String {
    let (width, height) = (layout.width.max(120.0).ceil(), layout.height.ceil() + 30.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -16 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"a\" d=\"M0 0L8 4L0 8z\"/></marker>\
         <marker id=\"k\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"ka\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect class=\"p\" x=\"0\" y=\"-16\" width=\"{width}\" height=\"{height}\"/>\n"
    )
}

fn lines(node: &Node) -> Vec<String> {
    let mut lines = node.captions.clone();
    lines.extend(node.mark.map(|mark| mark.label()));
    lines
}

/// A box with a self loop has room on both sides, so that it stays in the middle of its place.
fn size(picture: &Picture, place: usize) -> Box {
    let (width, height) = inner_size(&picture.nodes[place]);
    let labels = picture.edges.iter().filter(|edge| edge.from == place && edge.to == place).map(|edge| {
        SELF_LOOP + edge.label.as_deref().map_or(0.0, |label| columns(label) as f64 * SMALL + 6.0)
    });
    Box { width: width + 2.0 * labels.fold(0.0, f64::max), height }
}

fn inner_size(node: &Node) -> (f64, f64) {
    let captions = lines(node);
    let widest = captions
        .iter()
        .map(|caption| columns(caption) as f64 * SMALL)
        .fold(columns(&node.name) as f64 * LETTER, f64::max);
    let more = if node.shape == Shape::Gate { 20.0 } else { 0.0 };
    (widest + 2.0 * PADDING + more, (captions.len() + 1) as f64 * LINE + PADDING)
}

fn link(edge: &Edge) -> Link {
    let label_width = edge.label.as_deref().map_or(0.0, |label| columns(label) as f64 * SMALL + 8.0);
    Link { from: edge.from, to: edge.to, label_width }
}

fn path(out: &mut String, edge: &Edge, way: &Way) {
    let mut d = String::new();
    if let Some(first) = way.points.first() {
        let _ = write!(d, "M{:.1} {:.1}", first.x, first.y);
    }
    for pair in way.points.windows(2) {
        let bend = f64::midpoint(pair[0].y, pair[1].y);
        let _ = write!(
            d,
            "C{:.1} {bend:.1} {:.1} {bend:.1} {:.1} {:.1}",
            pair[0].x, pair[1].x, pair[1].x, pair[1].y
        );
    }
    let _ = writeln!(
        out,
        "<path class=\"{}\" marker-end=\"url(#{})\" d=\"{d}\"/>",
        classes(edge, way.back),
        if way.back { "k" } else { "a" }
    );
}

fn classes(edge: &Edge, back: bool) -> String {
    let kind = match edge.kind {
        EdgeKind::Exclusive => "e",
        EdgeKind::Inclusive => "e i",
        EdgeKind::Error => "e r",
    };
    if back { format!("{kind} k") } else { kind.to_owned() }
}

/// On the paper's colour, so that it can be read where lines cross.
fn label(out: &mut String, label: Option<&str>, at: Point) {
    let Some(label) = label else { return };
    let width = columns(label) as f64 * SMALL + 4.0;
    let _ = writeln!(
        out,
        "<rect class=\"p\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"13\"/><text class=\"l\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        at.x - width / 2.0,
        at.y - 7.0,
        at.x,
        at.y + 3.5,
        for_xml(label)
    );
}

fn start(out: &mut String, at: Point, size: &Box) {
    let top = at.y - size.height / 2.0;
    let x = at.x - 24.0;
    let _ = writeln!(
        out,
        "<circle class=\"d\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"5\"><title>entry</title></circle><path class=\"e\" marker-end=\"url(#a)\" d=\"M{x:.1} {:.1}L{x:.1} {top:.1}\"/>",
        top - 24.0,
        top - 19.0
    );
}

fn node(out: &mut String, node: &Node, at: Point, size: &Box, loops: &[&Edge]) {
    let (width, _) = inner_size(node);
    let (x, y, height) = (at.x - width / 2.0, at.y - size.height / 2.0, size.height);
    let class = node.mark.map_or("b".to_owned(), |mark| format!("b {}", mark.state.word()));
    let _ = writeln!(out, "<g><title>{}</title>", for_xml(&node.name));
    if node.is_final {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"9\"/>",
            x - 4.0,
            y - 4.0,
            width + 8.0,
            height + 8.0
        );
    }
    let _ = writeln!(out, "{}", outline(node.shape, &class, (x, y, width, height)));
    let _ = writeln!(
        out,
        "<text class=\"n\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        at.x,
        y + LINE + 2.0,
        for_xml(&node.name)
    );
    for (number, caption) in lines(node).iter().enumerate() {
        let line = y + LINE * (number + 2) as f64 + 1.0;
        let _ =
            writeln!(out, "<text class=\"c\" x=\"{:.1}\" y=\"{line:.1}\">{}</text>", at.x, for_xml(caption));
    }
    out.push_str("</g>\n");
    for (number, edge) in loops.iter().enumerate() {
        self_loop(out, edge, (x + width, y, height), number, loops.len());
    }
}

fn outline(shape: Shape, class: &str, (x, y, width, height): (f64, f64, f64, f64)) -> String {
    let rect = |radius: f64| {
        format!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"{radius}\"/>"
        )
    };
    match shape {
        Shape::Work => rect(6.0),
        Shape::Pure => rect(16.0),
        Shape::Child => {
            let line = |at: f64| format!("<path class=\"e\" d=\"M{at:.1} {y:.1}v{height:.1}\"/>");
            format!("{}{}{}", rect(2.0), line(x + 6.0), line(x + width - 6.0))
        }
        Shape::Gate => {
            let (right, bottom, middle) = (x + width, y + height, y + height / 2.0);
            format!(
                "<path class=\"{class}\" d=\"M{:.1} {y:.1}H{:.1}L{right:.1} {middle:.1}L{:.1} {bottom:.1}H{:.1}L{x:.1} {middle:.1}z\"/>",
                x + 12.0,
                right - 12.0,
                right - 12.0,
                x + 12.0
            )
        }
    }
}

fn self_loop(
    out: &mut String,
    edge: &Edge,
    (right, y, height): (f64, f64, f64),
    number: usize,
    count: usize,
) {
    let part = height / count as f64;
    let middle = y + part * (number as f64 + 0.5);
    let reach = (part / 3.0).min(12.0);
    let far = right + SELF_LOOP - 6.0;
    let _ = writeln!(
        out,
        "<path class=\"{}\" marker-end=\"url(#k)\" d=\"M{right:.1} {:.1}C{far:.1} {:.1} {far:.1} {:.1} {right:.1} {:.1}\"/>",
        classes(edge, true),
        middle - reach,
        middle - reach - 6.0,
        middle + reach + 6.0,
        middle + reach
    );
    let width = edge.label.as_deref().map_or(0.0, |label| columns(label) as f64 * SMALL);
    label(out, edge.label.as_deref(), Point { x: far + width / 2.0, y: middle });
}

fn legend(out: &mut String, layout: &Layout) {
    let y = layout.height + 8.0;
    let mut x = 14.0;
    for state in State::ALL {
        let word = state.word();
        let _ = writeln!(
            out,
            "<rect class=\"b {word}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" rx=\"2\"/><text class=\"l\" style=\"text-anchor:start\" x=\"{:.1}\" y=\"{:.1}\">{word}</text>",
            y - 9.0,
            x + 14.0,
            y
        );
        x += 24.0 + word.len() as f64 * SMALL + 8.0;
    }
}
