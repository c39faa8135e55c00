//! A picture in one file, without scripts and fonts, readable on light and on dark paper.

use super::frames::{Arranged, Frame, arrange};
use super::layout::{Box, EdgePath, Part, Point};
use super::marks::State;
use super::outline::outline;
use super::text::{columns, for_xml};
use super::{Edge, EdgeKind, Node, Picture, Shape};
use std::collections::BTreeSet;
use std::fmt::Write;

const LETTER: f64 = 7.3;
const SMALL: f64 = 6.1;
const LINE: f64 = 15.0;
const PADDING: f64 = 12.0;
/// Distance from a node to the arc of a self loop.
const SELF_LOOP: f64 = 34.0;

/// Radius of the corners of an edge between columns.
const CORNER: f64 = 8.0;

const STYLE: &str = "svg{background:#fff}text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#1b1f24;text-anchor:middle}\
.n{font-size:12px;font-weight:bold}.c{font-size:10px}.l{font-size:10px;fill:#57606a;text-anchor:start}.p{fill:#fff}\
.b{fill:#f6f8fa;stroke:#57606a;stroke-width:1.3;stroke-linejoin:round}.e{fill:none;stroke:#57606a;stroke-width:1.3}.i{stroke-width:2.6}.r{stroke-dasharray:5 4;stroke:#b42323}.o{stroke-dasharray:1.5 3.5;stroke-linecap:round}\
.f{fill:#8250df;fill-opacity:.05;stroke:#8250df;stroke-opacity:.55;stroke-dasharray:6 4}.h{font-size:10px;fill:#8250df;text-anchor:start}\
.k{stroke:#8250df}.a{fill:#57606a}.ka{fill:#8250df}.ra{fill:#b42323}.d{fill:#1b1f24}.t{stroke-width:2.8}.u{opacity:.32}.w{opacity:.6}\
.q{fill:#f6f8fa;stroke:#57606a}.completed{fill:#c9ebd2;stroke:#1f7a3d}.failed{fill:#f8cfcf;stroke:#b42323}.running{fill:#cfe2fb;stroke:#1d5fb8}.waiting{fill:#fbe8bd;stroke:#9a6700}.skipped{fill:#e6e6e6;stroke:#777}\
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.l{fill:#9da7b3}.p{fill:#0d1117}.b,.q{fill:#161b22;stroke:#9da7b3}.e{stroke:#9da7b3}.r{stroke:#f85149}.k{stroke:#bc8cff}.h{fill:#bc8cff}.f{fill:#bc8cff;stroke:#bc8cff}.a{fill:#9da7b3}.ka{fill:#bc8cff}.ra{fill:#f85149}.d{fill:#e6edf3}\
.completed{fill:#12361f;stroke:#3fb950}.failed{fill:#4b1518;stroke:#f85149}.running{fill:#0c2d5e;stroke:#58a6ff}.waiting{fill:#3f2d04;stroke:#d29922}.skipped{fill:#22272e;stroke:#768390}}";

pub(super) fn write(picture: &Picture) -> String {
    let all = arrange(picture);
    let (legend, legend_width) = legend(picture, all.height + 8.0);
    let mut out = head(&all, legend_width);
    for frame in &all.frames {
        self::frame(&mut out, &picture.nodes[frame.of], frame);
    }
    for (edge, way) in &all.ways {
        path(&mut out, &picture.edges[*edge], way);
    }
    let begins = begins(picture);
    for (place, at) in &all.nodes {
        if begins.contains(place) {
            start(&mut out, picture, *place, *at);
        }
        let own = |edge: &&Edge| edge.from == *place && edge.to == *place;
        let loops: Vec<&Edge> = picture.edges.iter().filter(own).collect();
        node(&mut out, &picture.nodes[*place], *at, &box_size(picture, *place), &loops);
    }
    for (edge, way) in &all.ways {
        label(&mut out, &picture.edges[*edge], way.label);
    }
    out.push_str(&legend);
    out.push_str("</svg>\n");
    out
}

/// Steps with a mark of an entry: those of the whole, and those that begin an iteration.
fn begins(picture: &Picture) -> BTreeSet<usize> {
    let first = picture.entries.iter().copied();
    let loops = picture.bodies.iter().flat_map(|place| picture.body_entries(Some(*place)));
    first.chain(loops).collect()
}

fn frame(out: &mut String, node: &Node, frame: &Frame) {
    let Frame { corner: Point { x, y }, width, height, .. } = frame;
    let _ = writeln!(
        out,
        "<rect class=\"f\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"10\"/><text class=\"h\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        x + 10.0,
        y + 16.0,
        for_xml(&frame_title(node))
    );
}

fn frame_title(node: &Node) -> String {
    format!("each iteration of {}", node.name)
}

pub(super) fn title_width(node: &Node) -> f64 {
    columns(&frame_title(node)) as f64 * SMALL + 20.0
}

fn head(all: &Arranged, legend_width: f64) -> String {
    let (width, height) = (all.width.max(120.0).max(legend_width).ceil(), all.height.ceil() + 36.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 -16 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <style>{STYLE}</style>\n\
         <defs><marker id=\"a\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"a\" d=\"M0 0L8 4L0 8z\"/></marker>\
         <marker id=\"k\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"ka\" d=\"M0 0L8 4L0 8z\"/></marker>\
         <marker id=\"r\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"9\" markerHeight=\"9\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"ra\" d=\"M0 0L8 4L0 8z\"/></marker></defs>\n\
         <rect class=\"p\" x=\"0\" y=\"-16\" width=\"{width}\" height=\"{height}\"/>\n"
    )
}

fn lines(node: &Node) -> Vec<String> {
    let mut lines = node.captions.clone();
    lines.extend(node.mark.map(|mark| mark.label()));
    lines
}

/// Returns the size of a box. With a self loop it has room on both sides, so that it stays in the middle of its place.
pub(super) fn box_size(picture: &Picture, place: usize) -> Box {
    let (width, height) = inner_size(&picture.nodes[place]);
    let own = picture.edges.iter().filter(|edge| edge.from == place && edge.to == place);
    let labels = own.map(|edge| SELF_LOOP + label_width(edge) + 2.0);
    Box { width: width + 2.0 * labels.fold(0.0, f64::max), height }
}

fn inner_size(node: &Node) -> (f64, f64) {
    let captions = lines(node);
    let widest = captions
        .iter()
        .map(|caption| columns(caption) as f64 * SMALL)
        .fold(columns(&node.name) as f64 * LETTER, f64::max);
    // Room for slanted sides, and for a lid.
    let (wider, taller) = match node.shape {
        Shape::Gate | Shape::Person => (20.0, 0.0),
        Shape::Choice => (36.0, 0.0),
        Shape::Delay | Shape::Trigger | Shape::Child | Shape::Model => (14.0, 0.0),
        Shape::Data => (0.0, 10.0),
        Shape::Work | Shape::Pure | Shape::Loop | Shape::Join => (0.0, 0.0),
    };
    (widest + 2.0 * PADDING + wider, (captions.len() + 1) as f64 * LINE + PADDING + taller)
}

pub(super) fn label_width(edge: &Edge) -> f64 {
    label_of(edge).map_or(0.0, |label| columns(&label) as f64 * SMALL + 4.0)
}

/// Returns the label with the number of times that the edge was taken, if that is not obvious.
fn label_of(edge: &Edge) -> Option<String> {
    let times = edge.taken.filter(|taken| *taken > 1).map(|taken| format!("×{taken}"));
    match (&edge.label, times) {
        (Some(label), Some(times)) => Some(format!("{label} {times}")),
        (label, times) => label.clone().or(times),
    }
}

fn path(out: &mut String, edge: &Edge, way: &EdgePath) {
    let mut d = String::new();
    let mut curved: Vec<Point> = Vec::new();
    for part in &way.parts {
        match part {
            Part::Curve(from, to) if curved.is_empty() => curved.extend([*from, *to]),
            Part::Curve(_, to) => curved.push(*to),
            Part::Lines(points) => {
                curve(&mut d, &std::mem::take(&mut curved));
                lines_between(&mut d, points);
            }
        }
    }
    curve(&mut d, &curved);
    let _ = writeln!(
        out,
        "<path class=\"{}\" marker-end=\"url(#{})\" d=\"{d}\"/>",
        classes(edge, way.back),
        arrow_head(edge, way.back)
    );
}

fn arrow_head(edge: &Edge, back: bool) -> &'static str {
    match edge.kind {
        EdgeKind::Error => "r",
        _ if back => "k",
        EdgeKind::Exclusive | EdgeKind::Inclusive | EdgeKind::Tool => "a",
    }
}

fn begin(d: &mut String, at: Point) {
    if d.is_empty() {
        let _ = write!(d, "M{:.1} {:.1}", at.x, at.y);
    }
}

/// A smooth curve through the points that begins and ends upright and never swings beyond a point.
fn curve(d: &mut String, points: &[Point]) {
    let Some(first) = points.first() else { return };
    begin(d, *first);
    let slope = |a: Point, b: Point| if a.y == b.y { 0.0 } else { (b.x - a.x) / (b.y - a.y) };
    let at = |place: usize| match (
        place.checked_sub(1).and_then(|before| points.get(before)),
        points.get(place + 1),
    ) {
        (Some(before), Some(after)) => {
            let (above, below) = (slope(*before, points[place]), slope(points[place], *after));
            if above * below <= 0.0 { 0.0 } else { 2.0 * above * below / (above + below) }
        }
        _ => 0.0,
    };
    for (place, pair) in points.windows(2).enumerate() {
        let (from, to, third) = (pair[0], pair[1], (pair[1].y - pair[0].y) / 3.0);
        // An upright end of a long way to the side bends later.
        let (leaves, arrives) = (at(place), at(place + 1));
        let reach = |slope: f64| if slope == 0.0 { third * 1.5 } else { third };
        let _ = write!(
            d,
            "C{:.1} {:.1} {:.1} {:.1} {:.1} {:.1}",
            from.x + leaves * third,
            from.y + reach(leaves),
            to.x - arrives * third,
            to.y - reach(arrives),
            to.x,
            to.y
        );
    }
}

/// Straight lines with round corners.
fn lines_between(d: &mut String, points: &[Point]) {
    let Some((first, rest)) = points.split_first() else { return };
    begin(d, *first);
    let mut from = *first;
    for (number, corner) in rest.iter().enumerate() {
        let Some(next) = rest.get(number + 1) else {
            let _ = write!(d, "L{:.1} {:.1}", corner.x, corner.y);
            return;
        };
        let (before, after) = (towards(*corner, from), towards(*corner, *next));
        let _ = write!(
            d,
            "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}",
            before.x, before.y, corner.x, corner.y, after.x, after.y
        );
        from = *corner;
    }
}

/// Returns the point that is a corner's radius away from the corner, or half of the way.
fn towards(corner: Point, to: Point) -> Point {
    let length = (to.x - corner.x).hypot(to.y - corner.y);
    let part = if length > 0.0 { (CORNER / length).min(0.5) } else { 0.0 };
    Point { x: corner.x + (to.x - corner.x) * part, y: corner.y + (to.y - corner.y) * part }
}

fn classes(edge: &Edge, back: bool) -> String {
    let mut classes = match edge.kind {
        EdgeKind::Exclusive => "e",
        EdgeKind::Inclusive => "e i",
        EdgeKind::Error => "e r",
        EdgeKind::Tool => "e o",
    }
    .to_owned();
    if back && edge.kind != EdgeKind::Error {
        classes.push_str(" k");
    }
    match edge.taken {
        Some(0) => classes.push_str(" u"),
        Some(_) => classes.push_str(" t"),
        None => {}
    }
    classes
}

/// Draws text to the right of its line, on the background colour where other lines cross.
fn label(out: &mut String, edge: &Edge, at: Point) {
    let Some(label) = label_of(edge) else { return };
    let width = columns(&label) as f64 * SMALL + 4.0;
    let faint = if edge.taken == Some(0) { " w" } else { "" };
    let _ = writeln!(
        out,
        "<rect class=\"p\" x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"13\" opacity=\".8\"/><text class=\"l{faint}\" x=\"{:.1}\" y=\"{:.1}\">{}</text>",
        at.x,
        at.y - 7.0,
        at.x + 2.0,
        at.y + 3.5,
        for_xml(&label)
    );
}

fn start(out: &mut String, picture: &Picture, place: usize, at: Point) {
    let top = at.y - box_size(picture, place).height / 2.0;
    let is_entered = picture.edges.iter().any(|edge| edge.to == place && edge.from != place);
    let is_inside = picture.nodes[place].region.is_some();
    let x = if is_entered && !is_inside { at.x - 16.0 } else { at.x };
    let _ = writeln!(
        out,
        "<circle class=\"d\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"><title>entry</title></circle><path class=\"e\" marker-end=\"url(#a)\" d=\"M{x:.1} {:.1}L{x:.1} {top:.1}\"/>",
        top - 20.0,
        top - 16.0
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
    let y = if node.shape == Shape::Data { y + 10.0 } else { y };
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
    let top = at.y - height / 2.0;
    for (number, edge) in loops.iter().enumerate() {
        self_loop(out, edge, (x + width, top, height), number, loops.len());
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
        "<path class=\"{}\" marker-end=\"url(#{})\" d=\"M{right:.1} {:.1}C{far:.1} {:.1} {far:.1} {:.1} {right:.1} {:.1}\"/>",
        classes(edge, true),
        arrow_head(edge, true),
        middle - reach,
        middle - reach - 6.0,
        middle + reach + 6.0,
        middle + reach
    );
    label(out, edge, Point { x: far - 2.0, y: middle });
}

/// Draws the shapes of the picture, then the states of an execution, and returns their width.
fn legend(picture: &Picture, y: f64) -> (String, f64) {
    let mut out = String::new();
    let mut x = 14.0;
    let word = |out: &mut String, x: &mut f64, word: &str, room: f64| {
        let _ = writeln!(out, "<text class=\"l\" x=\"{:.1}\" y=\"{y:.1}\">{word}</text>", *x + room);
        *x += room + word.len() as f64 * SMALL + 14.0;
    };
    let shapes: BTreeSet<Shape> = picture.nodes.iter().map(|node| node.shape).collect();
    for shape in shapes.iter().filter(|_| shapes.len() > 1) {
        let _ = writeln!(out, "{}", outline(*shape, "q", (x, y - 10.0, 22.0, 12.0)));
        word(&mut out, &mut x, shape.word(), 30.0);
    }
    let has =
        |state: State| picture.nodes.iter().filter_map(|node| node.mark).any(|mark| mark.state == state);
    for state in State::ALL.into_iter().filter(|state| has(*state)) {
        let name = state.word();
        let _ = writeln!(
            out,
            "<rect class=\"q {name}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"10\" height=\"10\" rx=\"2\"/>",
            y - 9.0
        );
        word(&mut out, &mut x, name, 14.0);
    }
    (out, x)
}
