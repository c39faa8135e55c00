//! A Net as a picture: steps, arcs with their guards, gates, loops, entry and final step; coloured by what became of an
//! execution. Drawn from the Net, so it is the same for every dialect, and what it shows is what runs.

mod dot;
mod layout;
mod marks;
mod mermaid;
mod svg;
pub(crate) mod text;

pub use marks::{Mark, Marks, State, marks};

use std::collections::BTreeMap;
use std::fmt;
use text::{bare, shortened};
use windlass_kernel::net::{Finish, Join, JoinArc, LoopKind, LoopSpec, On, RouterMode, Step, Work};
use windlass_kernel::{Net, StepId};
use windlass_protocol::Pipeline;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Mermaid,
    Dot,
    Svg,
}

/// A Net with more than can be laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    steps: usize,
    arcs: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TooLarge { steps, arcs } = self;
        write!(
            f,
            "{steps} steps and {arcs} arcs are too many to lay out; SVG shows at most {STEPS_MAX} and {ARCS_MAX}. Ask for Mermaid or Graphviz"
        )
    }
}

impl std::error::Error for TooLarge {}

/// Steps and arcs that are laid out: more than anybody reads in one picture, and less than a second of work.
const STEPS_MAX: usize = 2_000;
const ARCS_MAX: usize = 5_000;

/// Draws the Net as text of a format, coloured by the marks if there are any. Only SVG has a bound: the others are laid out by the program that
/// shows them.
pub fn draw(net: &Net, marks: Option<&Marks>, format: Format) -> Result<String, TooLarge> {
    if format == Format::Svg {
        let steps = net.steps().count();
        let arcs = net.steps().map(|(_, step)| step.router.arcs.len()).sum();
        if steps > STEPS_MAX || arcs > ARCS_MAX {
            return Err(TooLarge { steps, arcs });
        }
    }
    let picture = Picture::of(net, marks);
    Ok(match format {
        Format::Mermaid => mermaid::write(&picture),
        Format::Dot => dot::write(&picture),
        Format::Svg => svg::write(&picture),
    })
}

/// Characters of a name, of a caption and of a guard that are shown; the whole is in the definition.
const NAME_MAX: usize = 40;
const CAPTION_MAX: usize = 48;
const GUARD_MAX: usize = 44;

#[derive(Debug)]
struct Picture {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    /// Whether the first tokens are there.
    entries: Vec<usize>,
    /// Whether it shows an execution.
    marked: bool,
}

#[derive(Debug)]
struct Node {
    name: String,
    /// What it does, its loop, its gate: a line each.
    captions: Vec<String>,
    shape: Shape,
    is_final: bool,
    mark: Option<Mark>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Work,
    /// Decided without a worker.
    Pure,
    /// Another execution.
    Child,
    /// Tokens wait before it.
    Gate,
}

#[derive(Debug)]
struct Edge {
    from: usize,
    to: usize,
    label: Option<String>,
    kind: EdgeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeKind {
    /// The first that matches is taken.
    Exclusive,
    /// Every one that matches is taken.
    Inclusive,
    /// Taken when the step failed.
    Error,
}

impl Picture {
    fn of(net: &Net, marks: Option<&Marks>) -> Picture {
        let none = BTreeMap::new();
        let marks_by_step = marks.unwrap_or(&none);
        Picture {
            nodes: net.steps().map(|(id, step)| node(net, id, step, marks_by_step)).collect(),
            edges: net.steps().flat_map(|(id, step)| edges(net, id, step)).collect(),
            entries: net.entries().iter().map(|id| id.index()).collect(),
            marked: marks.is_some(),
        }
    }
}

fn node(net: &Net, id: StepId, step: &Step, marks: &Marks) -> Node {
    let is_final = net.policy().finish == Finish::Step(id);
    let mut captions = vec![step.shown.as_ref().map_or_else(|| work(step), |shown| shown.kind.clone())];
    captions.extend(step.repeat.as_ref().map(repeat));
    captions.extend(step.region.map(|region| format!("in the loop {}", net.step(region).name)));
    captions.extend(gate(step));
    captions.extend(step.condition.as_ref().map(|condition| format!("if {}", bare(condition.source()))));
    if chooses(net, step) && step.router.mode == RouterMode::Inclusive {
        captions.push("takes every arc that matches".to_owned());
    }
    if is_final {
        captions.push("final step".to_owned());
    }
    Node {
        name: shortened(step.shown.as_ref().map_or(&step.name, |shown| &shown.title), NAME_MAX),
        captions: captions.iter().map(|caption| shortened(caption, CAPTION_MAX)).collect(),
        shape: shape(step),
        is_final,
        mark: marks.get(&id).copied(),
    }
}

fn shape(step: &Step) -> Shape {
    match &step.work {
        _ if step.admit.is_some() => Shape::Gate,
        Work::Child { .. } => Shape::Child,
        Work::Pure { .. } | Work::Delay { .. } => Shape::Pure,
        Work::Task { .. } | Work::Approval { .. } => Shape::Work,
    }
}

fn work(step: &Step) -> String {
    match &step.work {
        Work::Pure { patch, .. } if patch.is_empty() => "noop".to_owned(),
        Work::Pure { patch, .. } => {
            let keys: Vec<&str> = patch.iter().map(|entry| entry.key.as_str()).collect();
            format!("sets {}", keys.join(", "))
        }
        Work::Child { definition, .. } => {
            let path = definition.source().get("path").and_then(|path| path.as_str()).unwrap_or("playbook");
            format!("playbook {}", bare(path))
        }
        Work::Approval { .. } => "approval".to_owned(),
        Work::Delay { .. } => "delay".to_owned(),
        Work::Task { spec } => {
            let pipeline: Pipeline = serde_json::from_value((**spec).clone()).unwrap_or_default();
            let kinds: Vec<&str> = pipeline.tasks.iter().map(|task| task.kind.as_str()).collect();
            if kinds.is_empty() { "task".to_owned() } else { kinds.join(" · ") }
        }
    }
}

fn repeat(repeat: &LoopSpec) -> String {
    let over = match &repeat.kind {
        LoopKind::ForEach { items } => match items.source() {
            serde_json::Value::String(text) => format!("for {} in {}", repeat.iterator, bare(text)),
            serde_json::Value::Array(list) => format!("for {} in {} items", repeat.iterator, list.len()),
            _ => format!("for each {}", repeat.iterator),
        },
        LoopKind::Count { times } => format!("{} times", times.source()),
        LoopKind::While { condition, .. } => format!("while {}", bare(condition.source())),
    };
    if repeat.cap > 1 { format!("{over}, {} at a time", repeat.cap) } else { over }
}

fn gate(step: &Step) -> Option<String> {
    let opens = step.admit.as_ref()?.rules.iter().find(|rule| rule.allow);
    Some(match opens.map(|rule| &rule.when) {
        Some(Some(when)) => format!("gate: {}", bare(when.source())),
        Some(None) => "gate: else".to_owned(),
        None => "gate: closed".to_owned(),
    })
}

/// In playbooks arcs are chosen among; elsewhere every arc carries a token, and there is nothing to say about it.
fn chooses(net: &Net, step: &Step) -> bool {
    net.policy().join == Join::Each && step.router.arcs.len() > 1
}

fn edges(net: &Net, id: StepId, step: &Step) -> Vec<Edge> {
    let exclusive = net.policy().join == Join::Each && step.router.mode == RouterMode::Exclusive;
    let edge = |(place, arc): (usize, &JoinArc)| Edge {
        from: id.index(),
        to: arc.to.index(),
        label: match net.is_body_arc(id, arc) {
            true => Some("each iteration".to_owned()),
            false => label(step, place, arc, exclusive),
        },
        kind: match (arc.on, exclusive) {
            (On::Error, _) => EdgeKind::Error,
            (On::End, true) => EdgeKind::Exclusive,
            (On::End, false) => EdgeKind::Inclusive,
        },
    };
    step.router.arcs.iter().enumerate().map(edge).collect()
}

/// The guard; where the order counts, with its place in it.
fn label(step: &Step, place: usize, arc: &JoinArc, exclusive: bool) -> Option<String> {
    let ordered = exclusive && step.router.arcs.len() > 1;
    let guard = match (&arc.guard, arc.on) {
        // What a step says of itself is the edge's to say.
        (Some(guard), _) => bare(&guard.source().replace(&format!("steps[{:?}].", step.name), "")),
        (None, On::Error) => "on error".to_owned(),
        (None, On::End) if ordered && place > 0 => "else".to_owned(),
        (None, On::End) => return None,
    };
    let guard = if ordered { format!("{}. {guard}", place + 1) } else { guard };
    Some(shortened(&guard, GUARD_MAX))
}
