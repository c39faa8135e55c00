//! Cost of a schema at one part of a value: the number of evaluations and their nesting.

use crate::SchemaProblem;
use crate::graph::{Graph, NodeId};
use crate::limits::{IN_PLACE_MAX, WEIGHT_MAX};

/// Rejects schemas that refer to themselves without entering the value, and those that evaluate too much at one part.
pub(crate) fn check_weight(graph: &Graph) -> Result<(), SchemaProblem> {
    let mut weigher = Weigher { graph, weights: vec![Weight::Unknown; graph.nodes.len()] };
    (0..graph.nodes.len()).try_for_each(|id| weigher.weigh(id, 1).map(drop))
}

#[derive(Debug, Clone, Copy)]
enum Weight {
    Unknown,
    /// The parts of the schema are being weighed.
    Open,
    Known {
        evaluations: u64,
        depth: usize,
    },
}

struct Weigher<'g> {
    graph: &'g Graph,
    weights: Vec<Weight>,
}

impl Weigher<'_> {
    /// Returns evaluations and depth. `above` counts the schemas that led here, so recursion ends at
    /// [`IN_PLACE_MAX`].
    fn weigh(&mut self, id: NodeId, above: usize) -> Result<(u64, usize), SchemaProblem> {
        let node = &self.graph.nodes[id];
        let refused = |message: String| Err(SchemaProblem::new(node.pointer.clone(), message));
        match self.weights[id] {
            Weight::Open => {
                return refused(
                    "the schema refers to itself without entering the value, which never ends".to_owned(),
                );
            }
            Weight::Known { evaluations, depth } if above + depth <= IN_PLACE_MAX => {
                return Ok((evaluations, depth));
            }
            Weight::Unknown if above <= IN_PLACE_MAX => {}
            Weight::Known { .. } | Weight::Unknown => {
                let message = format!(
                    "more than {IN_PLACE_MAX} references and combined schemas follow each other for one value; combine some"
                );
                return refused(message);
            }
        }
        self.weights[id] = Weight::Open;
        let (mut evaluations, mut depth) = (0_u64, 0);
        for part in &node.in_place {
            let (more, deeper) = self.weigh(*part, above + 1)?;
            evaluations = evaluations.saturating_add(more);
            depth = depth.max(deeper);
        }
        if node.is_unevaluated {
            evaluations = evaluations.saturating_mul(2);
        }
        let (evaluations, depth) = (evaluations.saturating_add(1), depth + 1);
        if evaluations > WEIGHT_MAX {
            let message = format!(
                "one value is checked against more than {WEIGHT_MAX} schemas when references are followed; refer to each once"
            );
            return refused(message);
        }
        self.weights[id] = Weight::Known { evaluations, depth };
        Ok((evaluations, depth))
    }
}
