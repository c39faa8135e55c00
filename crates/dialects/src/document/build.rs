//! Builds the tree from the parser's events, with bounds on everything that a small text could expand.

use super::{Entry, Kind, Node, scalar};
use crate::diagnostic::Problems;
use granit_parser::{ErrorKind, Event, Options, Parser, ScalarStyle, Span, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use windlass_expr::has_tags;

/// Maximum size of a definition. People write definitions; larger data belongs in artifacts.
const BYTES_MAX: usize = 4 << 20;
/// Keys and values, those that aliases repeat included: 5,000 steps of twenty values each.
const NODES_MAX: usize = 100_000;
/// Bytes that aliases may repeat: as many as a document without them may have.
const REPEATED_MAX: usize = BYTES_MAX;
/// Texts with expressions in them, those that aliases repeat included: each takes some microseconds to compile, several
/// times. 1,000 steps with ten each.
const TEMPLATES_MAX: usize = 10_000;
/// Bytes of one text with expressions in it: parsing takes 200 times its size in memory.
const TEMPLATE_BYTES_MAX: usize = 256 << 10;
/// Bytes of all of them.
const TEMPLATES_BYTES_MAX: usize = 1 << 20;
/// Maximum depth, below the depth at which templates are refused.
const DEPTH_MAX: usize = 64;

/// Builds the tree; `None` when there is none, for the reason among the problems.
pub(crate) fn parse(text: &str, problems: &mut Problems) -> Option<Node> {
    if text.len() > BYTES_MAX {
        let message = format!("the document has {} bytes; {BYTES_MAX} are allowed", text.len());
        problems.add("E0002", &(0..0), message, Some("keep data in files that steps read".to_owned()));
        return None;
    }
    let mut options = Options::default();
    options.flow_nesting_limit = DEPTH_MAX;
    options.block_nesting_limit = DEPTH_MAX;
    let mut builder = Builder::new(text, problems);
    for event in Parser::new_from_str_with_options(text, options) {
        let step = match event {
            Ok((event, span)) => builder.take(&event, range(&span)),
            Err(error) if matches!(error.kind(), ErrorKind::RecursionLimitExceeded) => {
                let at = error.marker().byte_offset().unwrap_or(text.len());
                Err(Stop { code: "E0002", at: at..at + 1, message: nested_too_deep() })
            }
            Err(_)
                if is_json_like(text)
                    && let Some(stop) = json_stop(text) =>
            {
                Err(stop)
            }
            Err(error) => {
                let at = error.marker().byte_offset().unwrap_or(text.len());
                // A tab is reported at its position, not after it.
                let tabs =
                    text.get(..at).map_or(0, |before| before.len() - before.trim_end_matches('\t').len());
                Err(Stop {
                    code: "E0001",
                    at: at - tabs..at - tabs + 1,
                    message: format!("this is not YAML: {}", error.kind()),
                })
            }
        };
        if let Err(stop) = step {
            let hint = match text.get(stop.at.clone()) {
                Some("\t") if !is_json_like(text) => {
                    "YAML is indented with spaces: replace the tab".to_owned()
                }
                _ if is_json_like(text) => {
                    "look for a comma, a quote or a bracket here or just before".to_owned()
                }
                _ => "look for an indent, a quote or a bracket here or just before".to_owned(),
            };
            builder.problems.add(stop.code, &stop.at, stop.message, (stop.code == "E0001").then_some(hint));
            return None;
        }
    }
    builder.finish()
}

fn nested_too_deep() -> String {
    format!("the document is nested more than {DEPTH_MAX} deep")
}

/// Returns whether a text is meant as JSON: an object, or a list of objects.
fn is_json_like(text: &str) -> bool {
    text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '['])
}

/// Returns why a text is not JSON, in the words of JSON.
fn json_stop(text: &str) -> Option<Stop> {
    let error = serde_json::from_str::<serde::de::IgnoredAny>(text).err()?;
    let start: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    let at = (start + error.column().saturating_sub(1)).min(text.len());
    let words = error.to_string();
    let words = words.split(" at line ").next().unwrap_or_default();
    Some(Stop { code: "E0001", at: at..at + 1, message: format!("this is not JSON: {words}") })
}

struct Stop {
    code: &'static str,
    at: Range<usize>,
    message: String,
}

fn range(span: &Span) -> Range<usize> {
    span.byte_range().unwrap_or(0..0)
}

/// A list or map that is not closed yet.
struct Open {
    node: Node,
    /// The key whose value comes next.
    key: Option<(String, Range<usize>)>,
    keys: BTreeSet<String>,
    anchor: usize,
}

/// Content of an anchor, and the cost of repeating it.
struct Anchored {
    node: Node,
    weight: Weight,
}

/// Cost of a part of a document.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    nodes: usize,
    /// Bytes of keys and texts.
    bytes: usize,
    templates: usize,
    template_bytes: usize,
}

impl Weight {
    /// Returns the weight of a value without those in it.
    fn of(node: &Node) -> Weight {
        let template = node.text().filter(|text| has_tags(text));
        Weight {
            nodes: 1,
            bytes: node.text().map_or(0, str::len)
                + node.entries().iter().map(|entry| entry.key.len()).sum::<usize>(),
            templates: usize::from(template.is_some()),
            template_bytes: template.map_or(0, str::len),
        }
    }

    fn add(self, more: Weight) -> Weight {
        Weight {
            nodes: self.nodes + more.nodes,
            bytes: self.bytes + more.bytes,
            templates: self.templates + more.templates,
            template_bytes: self.template_bytes + more.template_bytes,
        }
    }
}

struct Builder<'t, 'p> {
    text: &'t str,
    problems: &'p mut Problems,
    open: Vec<Open>,
    root: Option<Node>,
    anchors: BTreeMap<usize, Anchored>,
    weight: Weight,
    repeated: usize,
    documents: usize,
}

impl<'t, 'p> Builder<'t, 'p> {
    fn new(text: &'t str, problems: &'p mut Problems) -> Self {
        Builder {
            text,
            problems,
            open: Vec::new(),
            root: None,
            anchors: BTreeMap::new(),
            weight: Weight::default(),
            repeated: 0,
            documents: 0,
        }
    }

    fn finish(self) -> Option<Node> {
        if self.root.is_none() {
            self.problems.add("E0001", &(0..0), "the document is empty", None);
        }
        self.root
    }

    fn take(&mut self, event: &Event<'_>, at: Range<usize>) -> Result<(), Stop> {
        match event {
            Event::DocumentStart(..) => self.begin(at),
            Event::Scalar(text, style, anchor, tag) => {
                let kind = self.scalar(text, *style, tag.as_deref(), &at);
                self.value(Node { kind, at }, *anchor)
            }
            Event::SequenceStart(_, anchor, tag) => {
                self.untagged(tag.as_deref(), &at);
                self.open(Kind::List(Vec::new()), at, *anchor)
            }
            Event::MappingStart(_, anchor, tag) => {
                self.untagged(tag.as_deref(), &at);
                self.open(Kind::Map(Vec::new()), at, *anchor)
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(at),
            Event::Alias(anchor) => self.alias(*anchor, at),
            _ => Ok(()),
        }
    }

    fn begin(&mut self, at: Range<usize>) -> Result<(), Stop> {
        self.documents += 1;
        if self.documents > 1 {
            let message = "a file holds one document; this is the second".to_owned();
            return Err(Stop { code: "E0004", at, message });
        }
        Ok(())
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>, at: &Range<usize>) -> Kind {
        let is_text = tag.is_some_and(|tag| tag.is_yaml_core_schema_tag("str"));
        self.untagged(tag, at);
        if style == ScalarStyle::Plain && !is_text {
            scalar::plain(text)
        } else {
            Kind::Text(text.to_owned())
        }
    }

    fn untagged(&mut self, tag: Option<&Tag>, at: &Range<usize>) {
        if let Some(tag) = tag.filter(|tag| !tag.is_yaml_core_schema()) {
            self.problems.add("E0004", at, format!("the tag `{tag}` has no meaning here"), None);
        }
    }

    fn count(&mut self, weight: Weight, repeated: usize, at: &Range<usize>) -> Result<(), Stop> {
        self.weight = self.weight.add(weight);
        self.repeated += repeated;
        let refused = |message: String| Err(Stop { code: "E0002", at: at.clone(), message });
        if self.weight.nodes > NODES_MAX || self.repeated > REPEATED_MAX {
            return refused(format!(
                "the document has more than {NODES_MAX} values, or aliases that repeat too much"
            ));
        }
        if weight.templates == 1 && weight.template_bytes > TEMPLATE_BYTES_MAX {
            return refused(format!(
                "a text with expressions in it has more than {TEMPLATE_BYTES_MAX} bytes"
            ));
        }
        if self.weight.templates > TEMPLATES_MAX || self.weight.template_bytes > TEMPLATES_BYTES_MAX {
            return refused(format!(
                "the document has more than {TEMPLATES_MAX} texts with expressions in them, or more than {TEMPLATES_BYTES_MAX} bytes of them"
            ));
        }
        Ok(())
    }

    fn open(&mut self, kind: Kind, at: Range<usize>, anchor: usize) -> Result<(), Stop> {
        if self.open.len() >= DEPTH_MAX {
            let message = nested_too_deep();
            return Err(Stop { code: "E0002", at, message });
        }
        self.open.push(Open { node: Node { kind, at }, key: None, keys: BTreeSet::new(), anchor });
        Ok(())
    }

    fn close(&mut self, at: Range<usize>) -> Result<(), Stop> {
        let Some(Open { mut node, keys, anchor, .. }) = self.open.pop() else { return Ok(()) };
        node.at.end =
            self.text[..at.start.min(self.text.len())].trim_end().len().max(at.end.min(at.start + 1));
        node.at.end = node.at.end.max(node.at.start);
        if let Kind::Map(entries) = &mut node.kind {
            merge(entries, keys);
        }
        self.value(node, anchor)
    }

    fn alias(&mut self, anchor: usize, at: Range<usize>) -> Result<(), Stop> {
        let Some(Anchored { node, weight }) = self.anchors.get(&anchor) else {
            let message = "an alias cannot be inside the value that it names".to_owned();
            return Err(Stop { code: "E0004", at, message });
        };
        let (weight, repeats) = (*weight, depth(node));
        self.count(weight, weight.bytes, &at)?;
        if self.open.len() + repeats > DEPTH_MAX {
            let message = nested_too_deep();
            return Err(Stop { code: "E0002", at, message });
        }
        let Some(Anchored { node, .. }) = self.anchors.get(&anchor) else { return Ok(()) };
        let node = Node { kind: node.kind.clone(), at };
        self.place(node)
    }

    fn value(&mut self, node: Node, anchor: usize) -> Result<(), Stop> {
        self.count(Weight { bytes: 0, ..Weight::of(&node) }, 0, &node.at)?;
        if anchor != 0 {
            let weight = weigh(&node);
            self.count(Weight { nodes: weight.nodes, ..Weight::default() }, weight.bytes, &node.at)?;
            self.anchors.insert(anchor, Anchored { node: node.clone(), weight });
        }
        self.place(node)
    }

    /// Adds a value at its place in the document.
    fn place(&mut self, node: Node) -> Result<(), Stop> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match (&mut open.node.kind, open.key.take()) {
            (Kind::List(items), _) => items.push(node),
            (Kind::Map(entries), Some((key, at))) => entries.push(Entry { key, at, value: node }),
            _ => return self.key(node),
        }
        Ok(())
    }

    fn key(&mut self, node: Node) -> Result<(), Stop> {
        let key = match &node.kind {
            Kind::Text(text) => text.clone(),
            Kind::Null | Kind::Bool(_) | Kind::Number(_) => node.json().to_string(),
            Kind::List(_) | Kind::Map(_) => {
                let message = "a key must be a string, not a list or map".to_owned();
                return Err(Stop { code: "E0004", at: node.at, message });
            }
        };
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        if !open.keys.insert(key.clone()) {
            let hint = "a map has each key once; remove or rename one".to_owned();
            self.problems.add("E0003", &node.at, format!("key `{key}` is defined twice"), Some(hint));
        }
        open.key = Some((key, node.at));
        Ok(())
    }
}

/// Merges the entries of other maps under those of this one, for `<<: *base`.
fn merge(entries: &mut Vec<Entry>, mut keys: BTreeSet<String>) {
    let Some(place) = entries.iter().position(|entry| entry.key == "<<") else { return };
    let base = entries.remove(place).value;
    let maps = if base.is_map() { vec![&base] } else { base.items().iter().collect() };
    for entry in maps.into_iter().flat_map(Node::entries) {
        if keys.insert(entry.key.clone()) {
            entries.push(entry.clone());
        }
    }
}

fn depth(node: &Node) -> usize {
    let inner = node.items().iter().chain(node.entries().iter().map(|entry| &entry.value));
    inner.map(|node| 1 + depth(node)).max().unwrap_or(0)
}

fn weigh(node: &Node) -> Weight {
    let inner = node.items().iter().chain(node.entries().iter().map(|entry| &entry.value));
    inner.map(weigh).fold(Weight::of(node), Weight::add)
}
