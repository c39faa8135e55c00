//! A Net as a picture: steps, arcs with their guards, gates, loops, entry and final step; coloured by what became of an
//! execution. Drawn from the Net, so it is the same for every dialect, and what it shows is what runs.

mod dot;
mod fold;
mod frames;
mod json;
mod layout;
mod marks;
mod mermaid;
mod outline;
mod svg;
pub(crate) mod text;

pub use marks::{ArcRef, Iterations, Mark, Marks, State, marks};

use crate::plan::describe_step;
use std::collections::BTreeSet;
use std::fmt;
use windlass_kernel::net::{
    Completion, Finish, Join, JoinArc, LoopKind, LoopSpec, On, RouterMode, Step, Work,
};
use windlass_kernel::{Net, StepId};
use windlass_protocol::{Pipeline, Tool, ToolFamily};
use windlass_views::{Graph, bare, shortened, shown_expression};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Mermaid,
    Dot,
    Svg,
    /// Nodes and edges as data.
    Json,
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

/// Maximum number of steps and arcs in a picture: more than a reader can follow, and less than a second of work.
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
        Format::Json => json::write(&picture),
    })
}

/// Returns the graph of a definition as data.
#[must_use]
pub fn graph_of(net: &Net) -> Graph {
    json::describe(&Picture::of(net, None))
}

/// Frames around a step: more are too narrow to be distinguished, and every level indents the text formats further.
const FRAMES_MAX: usize = 12;
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
    /// Loops with steps in their bodies.
    bodies: BTreeSet<usize>,
    /// Whether it shows an execution.
    marked: bool,
}

#[derive(Debug)]
struct Node {
    /// Name of the step in the definition.
    id: String,
    name: String,
    /// Captions: the work of the step, its loop, its gate, one line each.
    captions: Vec<String>,
    shape: Shape,
    /// The loop whose body it is in.
    region: Option<usize>,
    is_final: bool,
    /// Condition of the step, for programs.
    condition: Option<String>,
    mark: Option<Mark>,
}

/// Kinds of steps that a picture distinguishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Shape {
    Work,
    /// Reads or changes a database.
    Data,
    /// A model, or an agent that uses one.
    Model,
    /// Decided without a worker.
    Pure,
    /// Chooses one of its handles.
    Choice,
    /// Runs its body, or itself, several times.
    Loop,
    /// Another execution.
    Child,
    /// Waits for a time.
    Delay,
    /// Waits for a person.
    Person,
    /// Tokens wait before it.
    Gate,
    /// Runs once for all branches.
    Join,
    Trigger,
}

impl Shape {
    fn word(self) -> &'static str {
        match self {
            Shape::Work => "task",
            Shape::Data => "database",
            Shape::Model => "model",
            Shape::Pure => "no worker",
            Shape::Choice => "choice",
            Shape::Loop => "loop",
            Shape::Child => "child",
            Shape::Delay => "delay",
            Shape::Person => "approval",
            Shape::Gate => "gate",
            Shape::Join => "join",
            Shape::Trigger => "trigger",
        }
    }
}

#[derive(Debug)]
struct Edge {
    from: usize,
    to: usize,
    label: Option<String>,
    /// The guard as the definition has it, for programs; none for a handle.
    guard: Option<String>,
    kind: EdgeKind,
    /// Number of times it was taken; None without an execution.
    taken: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EdgeKind {
    /// The first that matches is taken.
    Exclusive,
    /// Every one that matches is taken.
    Inclusive,
    /// Taken when the step failed.
    Error,
    /// Edge from an agent to a step that it may run.
    Tool,
}

impl Picture {
    fn of(net: &Net, marks: Option<&Marks>) -> Picture {
        let mut edges: Vec<Edge> = net.steps().flat_map(|(id, step)| edges(net, id, step, marks)).collect();
        edges.extend(net.steps().flat_map(|(id, step)| tools(net, id, step, marks)));
        let frames = frames_of(net);
        Picture {
            nodes: net
                .steps()
                .zip(&frames)
                .map(|((id, step), region)| node(net, (id, step), *region, marks))
                .collect(),
            edges,
            entries: net.entries().iter().map(|id| id.index()).collect(),
            bodies: frames.into_iter().flatten().collect(),
            marked: marks.is_some(),
        }
    }

    /// Steps that begin an iteration of the loop.
    fn body_entries(&self, of: Option<usize>) -> impl Iterator<Item = usize> {
        let begins = move |edge: &&Edge| of == Some(edge.from) && self.nodes[edge.to].region == of;
        self.edges.iter().filter(begins).map(|edge| edge.to)
    }
}

/// Returns the loop whose frame each step is in. Bodies that are nested too deep have no frames of their own.
fn frames_of(net: &Net) -> Vec<Option<usize>> {
    let around = |step: &usize| net.step(StepId(u32::try_from(*step).ok()?)).region.map(StepId::index);
    let mut found: Vec<Option<(Option<usize>, usize)>> = vec![None; net.steps().count()];
    for step in 0..found.len() {
        // The loops from the innermost outwards, to one that is known.
        let mut chain = vec![step];
        while let Some(next) =
            around(&chain[chain.len() - 1]).filter(|_| found[chain[chain.len() - 1]].is_none())
        {
            chain.push(next);
        }
        for at in chain.into_iter().rev() {
            if found[at].is_none() {
                let frame = around(&at).and_then(|region| {
                    let (outer, depth) = found[region]?;
                    Some(if depth < FRAMES_MAX { (Some(region), depth + 1) } else { (outer, depth) })
                });
                found[at] = Some(frame.unwrap_or((None, 0)));
            }
        }
    }
    found.into_iter().map(|found| found.and_then(|(frame, _)| frame)).collect()
}

fn node(net: &Net, (id, step): (StepId, &Step), region: Option<usize>, marks: Option<&Marks>) -> Node {
    let is_final = net.policy().finish == Finish::Step(id);
    let kind = step.shown.as_ref().map_or_else(|| work(step), |shown| shown.kind.clone());
    let numbered = step.order > 0 && step.approves.is_none();
    let mut captions = vec![if numbered { format!("{}. {kind}", step.order) } else { kind }];
    captions.extend(step.tier.as_ref().map(|tier| format!("tier {tier}")));
    if step.completion != Completion::Auto {
        captions.push("completed by a person".to_owned());
    }
    captions.extend(step.compensation.as_ref().map(|hook| format!("undone by {}", undoing(&hook.work))));
    captions.extend(step.repeat.as_ref().map(repeat));
    captions.extend(gate(step));
    captions.extend(step.join_all.then(|| "joins all branches".to_owned()));
    match describe_step(step) {
        Some(described) => captions.extend(described.captions),
        None => captions
            .extend(step.condition.as_ref().map(|condition| format!("if {}", bare(condition.written())))),
    }
    if chooses(net, step) && step.router.mode == RouterMode::Inclusive {
        captions.push("takes every arc that matches".to_owned());
    }
    if is_final {
        captions.push("final step".to_owned());
    }
    Node {
        id: step.name.clone(),
        name: shortened(step.shown.as_ref().map_or(&step.name, |shown| &shown.title), NAME_MAX),
        captions: captions.iter().map(|caption| shortened(caption, CAPTION_MAX)).collect(),
        shape: shape(step),
        region,
        is_final,
        condition: step.condition.as_ref().map(|condition| shown_expression(condition.written())),
        mark: marks.and_then(|marks| marks.steps.get(&id)).copied(),
    }
}

fn shape(step: &Step) -> Shape {
    match &step.work {
        _ if step.join_all => Shape::Join,
        _ if step.admit.is_some() => Shape::Gate,
        _ if step.trigger => Shape::Trigger,
        _ if step.router.conditional => Shape::Choice,
        _ if step.repeat.is_some() => Shape::Loop,
        Work::Child { .. } => Shape::Child,
        Work::Delay { .. } => Shape::Delay,
        Work::Approval { .. } => Shape::Person,
        Work::Pure { .. } => Shape::Pure,
        Work::Task { spec } => {
            let kinds = kinds(spec);
            let is =
                |kind: &String, family| Tool::named(kind).is_some_and(|tool| tool.row().family == family);
            let all = |family| !kinds.is_empty() && kinds.iter().all(|kind| is(kind, family));
            if all(ToolFamily::Data) {
                Shape::Data
            } else if all(ToolFamily::Model) {
                Shape::Model
            } else {
                Shape::Work
            }
        }
    }
}

/// Returns the tools of a step's tasks.
fn kinds(spec: &serde_json::Value) -> Vec<String> {
    let pipeline: Pipeline = serde_json::from_value(spec.clone()).unwrap_or_default();
    pipeline.tasks.into_iter().map(|task| task.kind).collect()
}

/// Returns the name of the operation that undoes a step.
fn undoing(work: &Work) -> String {
    let Work::Task { spec } = work else { return "a hook".to_owned() };
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).unwrap_or_default();
    pipeline.tasks.first().map_or_else(|| "a hook".to_owned(), |task| task.label.clone())
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
            let kinds = kinds(spec);
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
        LoopKind::While { condition, .. } => format!("while {}", bare(condition.written())),
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

/// Returns whether a step chooses among its arcs. In playbooks, arcs are alternatives and have labels; in other
/// dialects every arc carries a token and needs none.
fn chooses(net: &Net, step: &Step) -> bool {
    net.policy().join == Join::Each && step.router.arcs.len() > 1
}

fn edges(net: &Net, id: StepId, step: &Step, marks: Option<&Marks>) -> Vec<Edge> {
    let exclusive = net.policy().join == Join::Each && step.router.mode == RouterMode::Exclusive;
    // The handles of a loop with a body.
    let is_loop = step.router.arcs.iter().any(|arc| net.is_body_arc(id, arc));
    let edge = |(place, arc): (usize, &JoinArc)| Edge {
        from: id.index(),
        to: arc.to.index(),
        label: match net.is_body_arc(id, arc) {
            true => Some("body".to_owned()),
            false if is_loop && arc.on == On::End && arc.guard.is_none() => Some("done".to_owned()),
            false => label(step, place, arc, exclusive),
        },
        guard: arc
            .guard
            .as_ref()
            .filter(|_| !step.router.conditional)
            .map(|guard| shown_expression(guard.written())),
        kind: match arc.on {
            On::Error => EdgeKind::Error,
            On::End if chooses(net, step) && !exclusive => EdgeKind::Inclusive,
            On::End => EdgeKind::Exclusive,
        },
        taken: marks.map(|marks| match net.is_body_arc(id, arc) {
            // An iteration begins without a token on the arc.
            true => marks.firings(arc.to),
            false => marks.taken(ArcRef { from: id, arc: place }, arc.to),
        }),
    };
    step.router.arcs.iter().enumerate().map(edge).collect()
}

/// Edges to the steps that an agent may run.
fn tools(net: &Net, id: StepId, step: &Step, marks: Option<&Marks>) -> Vec<Edge> {
    let Work::Task { spec } = &step.work else { return Vec::new() };
    let pipeline: Pipeline = serde_json::from_value((**spec).clone()).unwrap_or_default();
    let listed = pipeline.tasks.iter().filter_map(|task| task.config.get("tools")?.as_array());
    let numbers = listed.flatten().filter_map(|tool| u32::try_from(tool.get("step")?.as_u64()?).ok());
    let steps = numbers.map(StepId).filter(|tool| net.knows(*tool) && net.step(*tool).on_demand);
    let edge = |to: StepId| Edge {
        from: id.index(),
        to: to.index(),
        label: Some("tool".to_owned()),
        guard: None,
        kind: EdgeKind::Tool,
        taken: marks.map(|marks| marks.firings(to)),
    };
    steps.map(edge).collect()
}

/// Returns the handle or the guard; if the order matters, with its place in it.
fn label(step: &Step, place: usize, arc: &JoinArc, exclusive: bool) -> Option<String> {
    let ordered = exclusive && step.router.arcs.len() > 1;
    let guard = match (&arc.guard, arc.on) {
        (Some(guard), _) => {
            // A caption of the step about an edge is shown at the edge.
            let own = bare(&guard.source().replace(&format!("steps[{:?}].", step.name), ""));
            if step.router.conditional { handle(&own) } else { own }
        }
        (None, On::Error) => "error".to_owned(),
        (None, On::End) if ordered && place > 0 => "else".to_owned(),
        (None, On::End) => return None,
    };
    let guard = if ordered { format!("{}. {guard}", place + 1) } else { guard };
    Some(shortened(&guard, GUARD_MAX))
}

/// Returns the name of the handle that the guard of a choice represents.
fn handle(guard: &str) -> String {
    let branch = guard.strip_prefix("branch == ").and_then(|name| serde_json::from_str(name).ok());
    match guard {
        "result" => "true".to_owned(),
        "not result" => "false".to_owned(),
        "matched is none" => "default".to_owned(),
        _ => branch.unwrap_or_else(|| guard.to_owned()),
    }
}
