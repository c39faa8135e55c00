//! Counts the evaluations that a value needs, by the recursion of the validator without its semantics. Early exits of
//! the validator are ignored, because it has none when it collects errors.

use crate::Misfit;
use crate::graph::{Graph, Node, NodeId, measure};
use crate::limits::{BYTES_PER_STEP, NESTING_MAX, STEPS_MAX};
use crate::report::shorten_pointer;
use serde_json::{Map, Value};

/// Counts the steps of a validation; fails beyond [`STEPS_MAX`].
pub(crate) fn count_steps(graph: &Graph, value: &Value) -> Result<u64, Misfit> {
    let mut counter = StepCounter { graph, left: STEPS_MAX };
    let root = Visit { depth: 1, times: 1 };
    counter.visit(0, value, root).map_err(|exceeded| exceeded.to_misfit(graph))?;
    Ok(STEPS_MAX - counter.left)
}

type Counted = Result<(), Exceeded>;

/// Limit that was exceeded, and the schema where it was.
#[derive(Debug)]
enum Exceeded {
    Steps(NodeId),
    Nesting(NodeId),
}

impl Exceeded {
    fn to_misfit(&self, graph: &Graph) -> Misfit {
        let place = |id: &NodeId| match graph.nodes[*id].pointer.as_str() {
            "" => "its root".to_owned(),
            pointer => format!("`{}`", shorten_pointer(pointer)),
        };
        let message = match self {
            Exceeded::Steps(id) => format!(
                "validating this value takes more than {STEPS_MAX} steps; simplify the schema near {}",
                place(id)
            ),
            Exceeded::Nesting(id) => format!(
                "validating this value needs more than {NESTING_MAX} schemas inside each other, near {}; send a flatter value",
                place(id)
            ),
        };
        Misfit { pointer: String::new(), message }
    }
}

#[derive(Debug, Clone, Copy)]
struct Visit {
    depth: usize,
    /// Number of times that enclosing schemas repeat the evaluation.
    times: u64,
}

impl Visit {
    fn deeper(self) -> Visit {
        Visit { depth: self.depth + 1, ..self }
    }
}

struct StepCounter<'g> {
    graph: &'g Graph,
    left: u64,
}

impl StepCounter<'_> {
    fn visit(&mut self, id: NodeId, value: &Value, visit: Visit) -> Counted {
        let node = &self.graph.nodes[id];
        if visit.depth > NESTING_MAX {
            return Err(Exceeded::Nesting(id));
        }
        self.charge(id, own_steps(node, value), visit)?;
        let parts = match value {
            Value::Array(items) => items.len(),
            Value::Object(entries) => entries.len(),
            _ => 0,
        };
        let mut below = visit.deeper();
        if node.is_unevaluated {
            below.times = below.times.saturating_mul(parts as u64 + 2);
        }
        for part in &node.in_place {
            self.visit(*part, value, below)?;
        }
        match value {
            Value::Object(entries) => self.visit_entries(node, entries, visit.deeper()),
            Value::Array(items) => self.visit_items(node, items, visit.deeper()),
            _ => Ok(()),
        }
    }

    fn charge(&mut self, id: NodeId, steps: u64, visit: Visit) -> Counted {
        self.left = self.left.checked_sub(steps.saturating_mul(visit.times)).ok_or(Exceeded::Steps(id))?;
        Ok(())
    }

    fn visit_entries(&mut self, node: &Node, entries: &Map<String, Value>, visit: Visit) -> Counted {
        let narrows = !node.patterns.is_empty() || !node.additional.is_empty() || !node.names.is_empty();
        if !narrows && node.properties.is_empty() {
            return Ok(());
        }
        for (name, value) in entries {
            let mut is_covered = false;
            for (pattern, id) in &node.patterns {
                self.charge(*id, 1 + text_steps(name), visit)?;
                if pattern.covers(name) {
                    is_covered = true;
                    self.visit(*id, value, visit)?;
                }
            }
            if let Some(id) = node.properties.get(name) {
                is_covered = true;
                self.visit(*id, value, visit)?;
            }
            let additional = node.additional.iter().filter(|_| !is_covered);
            additional.copied().try_for_each(|id| self.visit(id, value, visit))?;
            if !node.names.is_empty() {
                let name = Value::String(name.clone());
                node.names.iter().try_for_each(|id| self.visit(*id, &name, visit))?;
            }
        }
        Ok(())
    }

    fn visit_items(&mut self, node: &Node, items: &[Value], visit: Visit) -> Counted {
        for (index, item) in items.iter().enumerate() {
            match node.prefix.get(index) {
                Some(id) => self.visit(*id, item, visit)?,
                None => node.items.iter().try_for_each(|id| self.visit(*id, item, visit))?,
            }
            node.contains.iter().try_for_each(|id| self.visit(*id, item, visit))?;
        }
        Ok(())
    }
}

/// Returns the steps of keywords that contain no schemas.
fn own_steps(node: &Node, value: &Value) -> u64 {
    let text = value.as_str().map_or(0, |text| node.reads_text.saturating_mul(1 + text_steps(text)));
    let unique = if node.is_unique && value.is_array() { measure(value).0 } else { 0 };
    1_u64.saturating_add(node.listed).saturating_add(text).saturating_add(unique)
}

fn text_steps(text: &str) -> u64 {
    text.len() as u64 / BYTES_PER_STEP
}
