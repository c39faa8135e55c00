//! A schema as a graph of the subschemas that apply to the same value and to parts of it.

use regex::Regex;
use std::collections::BTreeMap;

/// Index of a node.
pub(crate) type NodeId = usize;

#[derive(Debug)]
pub(crate) struct Graph {
    /// Nodes of the graph; the first is the root.
    pub(crate) nodes: Vec<Node>,
}

/// One subschema.
#[derive(Debug, Default)]
pub(crate) struct Node {
    /// JSON pointer of the subschema.
    pub(crate) pointer: String,
    /// Subschemas and targets of references that apply to the same value.
    pub(crate) in_place: Vec<NodeId>,
    /// Schemas of entries by name.
    pub(crate) properties: BTreeMap<String, NodeId>,
    pub(crate) patterns: Vec<(Covers, NodeId)>,
    /// Schemas of entries that neither a name nor a pattern covers.
    pub(crate) additional: Vec<NodeId>,
    /// Schemas of names of entries.
    pub(crate) names: Vec<NodeId>,
    /// Schemas of items by position.
    pub(crate) prefix: Vec<NodeId>,
    /// Schemas of items after the prefix.
    pub(crate) items: Vec<NodeId>,
    /// Schemas that every item is compared with.
    pub(crate) contains: Vec<NodeId>,
    /// Number of JSON values in `enum` and `const`.
    pub(crate) listed: u64,
    /// Number of keywords that read the whole text of a string.
    pub(crate) reads_text: u64,
    pub(crate) is_unique: bool,
    /// True for `unevaluatedProperties` and `unevaluatedItems`, which evaluate the schemas in place again for every
    /// entry or item.
    pub(crate) is_unevaluated: bool,
}

/// Set of names that a pattern covers.
#[derive(Debug)]
pub(crate) enum Covers {
    Matching(Box<Regex>),
    /// The syntax of the pattern is known only to the validator, so it may match anything.
    Anything,
}

impl Covers {
    pub(crate) fn covers(&self, name: &str) -> bool {
        match self {
            Covers::Matching(pattern) => pattern.is_match(name),
            Covers::Anything => true,
        }
    }
}
