//! Converts the JSON of a schema to its graph, within the limits that need no counting of paths.

use crate::SchemaProblem;
use crate::graph::{Covers, Graph, Node, NodeId, Target, join, measure, parse_reference};
use crate::limits::{BYTES_MAX, DEPTH_MAX, PATTERN_BYTES_MAX, SUBSCHEMAS_MAX};
use regex::RegexBuilder;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Keywords whose schemas apply only through references.
const DEFINITIONS: [&str; 2] = ["$defs", "definitions"];
/// Keywords that hold one schema for the same value.
const SAME: [&str; 4] = ["not", "if", "then", "else"];
/// Keywords that hold a list of schemas for the same value.
const SAME_EACH: [&str; 3] = ["allOf", "anyOf", "oneOf"];
/// Keywords that hold schemas for the same value by name of an entry.
const SAME_NAMED: [&str; 2] = ["dependentSchemas", "dependencies"];
/// References whose target depends on the path of validation, so that their cost cannot be counted.
const DYNAMIC: [&str; 2] = ["$dynamicRef", "$recursiveRef"];
/// Maximum nesting of JSON. A schema of [`DEPTH_MAX`] levels has at most two levels of JSON for each.
const JSON_DEPTH_MAX: usize = 2 * DEPTH_MAX + 32;

pub(crate) fn build_graph(schema: &Value) -> Result<Graph, SchemaProblem> {
    check_size(schema)?;
    let mut reading = Reader::new(schema);
    reading.read_schema(schema, String::new(), 0)?;
    while let Some((from, reference)) = reading.references.pop() {
        let to = reading.follow(from, reference)?;
        reading.nodes[from].in_place.push(to);
    }
    Ok(Graph { nodes: reading.nodes })
}

fn check_size(schema: &Value) -> Result<(), SchemaProblem> {
    let (_, depth) = measure(schema);
    if depth > JSON_DEPTH_MAX {
        return Err(depth_problem(""));
    }
    let bytes = schema.to_string().len();
    if bytes > BYTES_MAX {
        let message =
            format!("the schema has {bytes} bytes, more than {BYTES_MAX}; describe less of the value");
        return Err(SchemaProblem::new("", message));
    }
    Ok(())
}

fn depth_problem(pointer: &str) -> SchemaProblem {
    let message = format!("the schema is nested more than {DEPTH_MAX} deep; move parts of it to `$defs`");
    SchemaProblem::new(pointer, message)
}

struct Reader<'s> {
    schema: &'s Value,
    nodes: Vec<Node>,
    /// Nodes by pointer.
    known: BTreeMap<String, NodeId>,
    anchors: BTreeMap<&'s str, NodeId>,
    /// References that have not been followed yet, with the node that contains them.
    references: Vec<(NodeId, &'s str)>,
}

impl<'s> Reader<'s> {
    fn new(schema: &'s Value) -> Reader<'s> {
        let (known, anchors) = (BTreeMap::new(), BTreeMap::new());
        Reader { schema, nodes: Vec::new(), known, anchors, references: Vec::new() }
    }

    fn read_schema(
        &mut self,
        schema: &'s Value,
        pointer: String,
        depth: usize,
    ) -> Result<NodeId, SchemaProblem> {
        if let Some(known) = self.known.get(&pointer) {
            return Ok(*known);
        }
        if depth > DEPTH_MAX {
            return Err(depth_problem(&pointer));
        }
        let id = self.nodes.len();
        if id >= SUBSCHEMAS_MAX {
            let message =
                format!("the schema has more than {SUBSCHEMAS_MAX} subschemas; describe less of the value");
            return Err(SchemaProblem::new(pointer, message));
        }
        self.known.insert(pointer.clone(), id);
        self.nodes.push(Node { pointer: pointer.clone(), ..Node::default() });
        if let Value::Object(keywords) = schema {
            let node = self.read_keywords(keywords, &pointer, (id, depth))?;
            self.nodes[id] = node;
        }
        Ok(id)
    }

    fn read_keywords(
        &mut self,
        keywords: &'s Map<String, Value>,
        pointer: &str,
        (id, depth): (NodeId, usize),
    ) -> Result<Node, SchemaProblem> {
        let mut node = Node { pointer: pointer.to_owned(), ..Node::default() };
        for (keyword, value) in keywords {
            let at = join(pointer, keyword);
            let key = keyword.as_str();
            let one = |reading: &mut Self, value: &'s Value| {
                let is_schema = value.is_object() || value.is_boolean();
                is_schema.then(|| reading.read_schema(value, at.clone(), depth + 1)).transpose()
            };
            match key {
                "$ref" => self.references.extend(value.as_str().map(|reference| (id, reference))),
                "$anchor" | "$dynamicAnchor" => self.anchors.extend(value.as_str().map(|name| (name, id))),
                "$id" | "id" if !pointer.is_empty() && value.is_string() => {
                    let message =
                        format!("`{key}` inside a schema changes the meaning of references; leave it out");
                    return Err(SchemaProblem::new(at, message));
                }
                "additionalProperties" => node.additional.extend(one(self, value)?),
                "unevaluatedProperties" => {
                    node.is_unevaluated = true;
                    node.additional.extend(one(self, value)?);
                }
                "propertyNames" => node.names.extend(one(self, value)?),
                "contains" => node.contains.extend(one(self, value)?),
                "additionalItems" => node.items.extend(one(self, value)?),
                "unevaluatedItems" => {
                    node.is_unevaluated = true;
                    node.items.extend(one(self, value)?);
                }
                "items" if !value.is_array() => node.items.extend(one(self, value)?),
                "items" | "prefixItems" => node.prefix = self.read_list(value, &at, depth)?,
                "properties" => node.properties = self.read_named(value, &at, depth)?,
                "patternProperties" => {
                    let named = self.read_named(value, &at, depth)?;
                    node.patterns =
                        named.into_iter().map(|(pattern, id)| (compile_pattern(&pattern), id)).collect();
                }
                "enum" | "const" => node.listed += measure(value).0,
                "pattern" | "format" | "minLength" | "maxLength" | "contentEncoding" | "contentMediaType" => {
                    node.reads_text += 1;
                }
                "uniqueItems" => node.is_unique = value == &Value::Bool(true),
                _ if SAME.contains(&key) => node.in_place.extend(one(self, value)?),
                _ if SAME_EACH.contains(&key) => node.in_place.extend(self.read_list(value, &at, depth)?),
                _ if SAME_NAMED.contains(&key) => {
                    node.in_place.extend(self.read_named(value, &at, depth)?.into_values());
                }
                _ if DEFINITIONS.contains(&key) => drop(self.read_named(value, &at, depth)?),
                _ if DYNAMIC.contains(&key) => {
                    return Err(SchemaProblem::new(at, format!("`{key}` is not supported; use `$ref`")));
                }
                _ => {}
            }
        }
        Ok(node)
    }

    /// Reads the schemas of a list.
    fn read_list(&mut self, value: &'s Value, at: &str, depth: usize) -> Result<Vec<NodeId>, SchemaProblem> {
        let items = value.as_array().into_iter().flatten().enumerate();
        let ids = items.map(|(index, item)| self.read_schema(item, join(at, &index.to_string()), depth + 1));
        ids.collect()
    }

    /// Reads the schemas of an object; other values, such as a list of names in `dependencies`, are left out.
    fn read_named(
        &mut self,
        value: &'s Value,
        at: &str,
        depth: usize,
    ) -> Result<BTreeMap<String, NodeId>, SchemaProblem> {
        let entries = value.as_object().into_iter().flatten();
        let schemas = entries.filter(|(_, value)| value.is_object() || value.is_boolean());
        let ids = schemas
            .map(|(name, value)| Ok((name.clone(), self.read_schema(value, join(at, name), depth + 1)?)));
        ids.collect()
    }

    fn follow(&mut self, from: NodeId, reference: &str) -> Result<NodeId, SchemaProblem> {
        let at = join(&self.nodes[from].pointer, "$ref");
        let shown: String = reference.chars().take(80).collect();
        let missing = || SchemaProblem::new(at.clone(), format!("`{shown}` does not exist in this schema"));
        match parse_reference(reference) {
            Some(Target::Pointer(pointer)) => {
                let schema: &'s Value = self.schema;
                let found = schema.pointer(&pointer).ok_or_else(missing)?;
                self.read_schema(found, pointer, 0)
            }
            Some(Target::Anchor(name)) => self.anchors.get(name.as_str()).copied().ok_or_else(missing),
            None => {
                let message = format!(
                    "`{shown}` is in another document; copy it into `$defs` and refer to `#/$defs/…`"
                );
                Err(SchemaProblem::new(at, message))
            }
        }
    }
}

fn compile_pattern(pattern: &str) -> Covers {
    let mut builder = RegexBuilder::new(pattern);
    builder.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX);
    builder.build().map_or(Covers::Anything, |pattern| Covers::Matching(Box::new(pattern)))
}
