use std::fmt;
use std::sync::Arc;

use minijinja::Value as Jinja;

use crate::convert::Names;
use crate::limits::{DEPTH_MAX, with_meter};
use crate::program::{Program, has_tags};
use crate::reads::normalise;
use crate::{CompileError, EvalError, Map, Read, Scope, Value};

/// A JSON tree whose strings may be templates.
///
/// A string that is a lone `{{ expr }}` keeps its native type, mixed text renders to a string, and a string without
/// tags is unchanged. Object keys are not templates.
#[derive(Clone)]
pub struct Template(Arc<Compiled>);

struct Compiled {
    source: Value,
    reads: Vec<Read>,
    names: Names,
    /// `None` if nothing in the tree is a template.
    root: Option<Node>,
}

enum Node {
    Constant(Value),
    Program(Box<Program>),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

/// A step of a JSON pointer.
enum Step<'a> {
    Index(usize),
    Key(&'a str),
}

impl Template {
    pub fn compile(source: &Value) -> Result<Template, CompileError> {
        let mut reads = Vec::new();
        let root = Node::compile(source, &mut Vec::new(), &mut reads)?;
        let root = (!matches!(root, Node::Constant(_))).then_some(root);
        let reads = normalise(reads);
        let names = Names::new(&reads);
        Ok(Template(Arc::new(Compiled { source: source.clone(), reads, names, root })))
    }

    pub fn source(&self) -> &Value {
        &self.0.source
    }

    /// Returns the names that the template reads, sorted and without duplicates; a read of a whole root includes its
    /// keys.
    pub fn reads(&self) -> &[Read] {
        &self.0.reads
    }

    /// Returns the value if nothing in it is a template.
    pub fn constant(&self) -> Option<&Value> {
        self.0.root.is_none().then_some(&self.0.source)
    }

    pub fn render(&self, scope: &dyn Scope) -> Result<Value, EvalError> {
        match &self.0.root {
            None => Ok(self.0.source.clone()),
            Some(root) => {
                let (inputs, bytes) = self.0.names.inputs(scope)?;
                // Each text of the tree may pass on the values it reads.
                with_meter(bytes.saturating_mul(root.programs()), || root.render(&inputs))
            }
        }
    }
}

impl Node {
    fn compile<'a>(
        source: &'a Value,
        path: &mut Vec<Step<'a>>,
        reads: &mut Vec<Read>,
    ) -> Result<Node, CompileError> {
        if path.len() > DEPTH_MAX {
            return Err(depth_error(path));
        }
        Ok(match source {
            Value::String(text) if has_tags(text) => {
                let program =
                    Program::template(text).map_err(|e| CompileError { path: format_pointer(path), ..e })?;
                reads.extend_from_slice(&program.reads);
                Node::Program(Box::new(program))
            }
            Value::Array(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                for (index, item) in items.iter().enumerate() {
                    path.push(Step::Index(index));
                    nodes.push(Node::compile(item, path, reads)?);
                    path.pop();
                }
                match nodes.iter().all(Node::is_constant) {
                    true => Node::Constant(source.clone()),
                    false => Node::Array(nodes),
                }
            }
            Value::Object(fields) => {
                let mut nodes = Vec::with_capacity(fields.len());
                for (key, field) in fields {
                    path.push(Step::Key(key));
                    nodes.push((key.clone(), Node::compile(field, path, reads)?));
                    path.pop();
                }
                match nodes.iter().all(|(_, node)| node.is_constant()) {
                    true => Node::Constant(source.clone()),
                    false => Node::Object(nodes),
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                Node::Constant(source.clone())
            }
        })
    }

    fn programs(&self) -> usize {
        match self {
            Node::Constant(_) => 0,
            Node::Program(_) => 1,
            Node::Array(nodes) => nodes.iter().map(Node::programs).sum(),
            Node::Object(nodes) => nodes.iter().map(|(_, node)| node.programs()).sum(),
        }
    }

    fn is_constant(&self) -> bool {
        matches!(self, Node::Constant(_))
    }

    fn render(&self, inputs: &Jinja) -> Result<Value, EvalError> {
        match self {
            Node::Constant(value) => Ok(value.clone()),
            Node::Program(program) => program.run(inputs.clone()),
            Node::Array(nodes) => nodes.iter().map(|node| node.render(inputs)).collect(),
            Node::Object(nodes) => {
                let fields = nodes.iter().map(|(key, node)| Ok((key.clone(), node.render(inputs)?)));
                fields.collect::<Result<Map, _>>().map(Value::Object)
            }
        }
    }
}

fn format_pointer(path: &[Step]) -> String {
    let mut pointer = String::new();
    for step in path {
        pointer.push('/');
        match step {
            Step::Index(index) => pointer.push_str(&index.to_string()),
            Step::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
        }
    }
    pointer
}

fn depth_error(path: &[Step]) -> CompileError {
    CompileError {
        message: format!("lists and objects can be nested at most {DEPTH_MAX} deep"),
        line: 1,
        column: 1,
        path: format_pointer(path),
        source_text: String::new(),
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Template").field(&self.0.source).finish()
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Template) -> bool {
        self.0.source == other.0.source
    }
}
