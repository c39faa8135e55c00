//! Makes the form of each type of node from its checked configuration. Problems with single fields were reported before.

mod ai;
mod conditional;
mod http;
mod idle;
mod repeat;
mod secret;
mod shell;

pub(super) use secret::stored;

use super::config::{bare, given};
use super::language::Kind;
use super::model::{Form, TaskForm};
use crate::document::{Kind as Is, Node};
use crate::programs::raw;
use crate::read::Reader;
use crate::source::Written;
use serde_json::{Map, Value, json};
use windlass_expr::{Expr, Piece, Template, pieces};
use windlass_kernel::any_of;
use windlass_protocol::{Key, Tool};

/// A node while its form is made.
pub(super) struct Maker<'f, 's, 'p> {
    pub(super) reader: &'f mut Reader<'s, 'p>,
    pub(super) written: &'f mut Vec<Written>,
    pub(super) config: &'f Node,
    /// The part of secrets' names that names the node.
    pub(super) place: String,
    pub(super) keychain: Vec<Key>,
    /// Noun for messages.
    pub(super) what: &'f str,
}

pub(super) fn form(kind: Kind, mut maker: Maker<'_, '_, '_>) -> Form {
    idle::check(kind, &mut maker);
    let made = match kind {
        Kind::Trigger => Some(trigger(&mut maker)),
        Kind::Conditional => conditional::form(&mut maker),
        Kind::Loop => repeat::form(&mut maker),
        Kind::Delay => delay(&mut maker),
        Kind::Approval => approval(&mut maker),
        Kind::Workflow => child(&mut maker),
        Kind::HttpApi => http::form(&mut maker),
        Kind::Llm => ai::llm(&mut maker),
        Kind::AiAgent => ai::agent(&mut maker),
        Kind::Code => code(&mut maker),
        Kind::Filter => filter(&maker),
        Kind::Data => Some(data(&mut maker)),
        Kind::Shell => shell::form(&mut maker),
        Kind::MemoryStore => Some(maker.task(Tool::MemoryStore, &["key", "value"], &[])),
        Kind::MemorySearch => Some(maker.task(Tool::MemorySearch, &["key", "prefix", "query", "limit"], &[])),
    };
    let composed = match &made {
        Some(Form::Conditional(conditional)) => Some(conditional.output.clone()),
        Some(Form::Delay { ms }) => Some(ms.clone()),
        Some(Form::Approval { asks, .. }) => asks.clone(),
        Some(Form::Child { definition, inputs, .. }) => Some(json!([definition, inputs])),
        Some(Form::Task(task)) => Some(Value::Object(task.config.clone())),
        Some(any_of![Form: Trigger Loop Broken]) | None => None,
    };
    if composed.is_some_and(|value| !maker.is_sound(&value)) {
        return Form::Broken;
    }
    match made {
        Some(Form::Task(task)) => {
            let timeout_ms = task.timeout_ms.or_else(|| maker.duration_ms("timeout"));
            Form::Task(TaskForm { timeout_ms, keychain: std::mem::take(&mut maker.keychain), ..task })
        }
        Some(form) => form,
        None => Form::Broken,
    }
}

impl<'f> Maker<'f, '_, '_> {
    fn get(&self, name: &str) -> Option<&'f Node> {
        given(self.config, name)
    }

    fn text(&self, name: &str) -> Option<&'f str> {
        self.get(name)?.text()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|node| matches!(node.kind, Is::Bool(true)))
    }

    /// Returns a whole number; anything else was reported before.
    fn whole(&self, name: &str) -> Option<u32> {
        match &self.get(name)?.kind {
            Is::Number(number) => u32::try_from(number.as_u64()?).ok(),
            Is::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    fn duration_ms(&mut self, name: &str) -> Option<u64> {
        let node = self.get(name)?;
        self.reader.duration_ms(node, &format!("`{name}` of {}", self.what))
    }

    /// Fields of the tool that the node has as they are, and those with another name there.
    fn task(&mut self, tool: Tool, same: &[&str], renamed: &[(&str, &str)]) -> Form {
        let pairs = same.iter().map(|name| (*name, *name)).chain(renamed.iter().copied());
        let fields = pairs.filter_map(|(name, field)| Some((field.to_owned(), self.get(name)?.json())));
        Form::Task(TaskForm { tool: tool.kind(), config: fields.collect(), ..TaskForm::default() })
    }

    /// Returns whether a value that is built from several fields is also a template as a whole.
    fn is_sound(&mut self, value: &Value) -> bool {
        let Err(error) = Template::compile(value) else { return true };
        // Each field was compiled by itself: its problems were reported at its position.
        if self.reader.problems.has_errors() {
            return false;
        }
        let message = format!("the fields of {} form no expression: {}", self.what, error.message);
        let config = self.config;
        self.trouble(config, message, "look for expressions that are not closed");
        false
    }

    /// Refuses a value that would become a part of a program. `source` is searched where the field is written.
    fn refuse(&mut self, node: &Node, source: &str, message: String, hint: String) {
        let at = self.reader.spot(node, source);
        self.reader.error("E0151", &at, message, hint);
    }

    fn trouble(&mut self, node: &Node, message: String, hint: &str) {
        self.reader.error("E0142", &crate::read::first_line(node), message, hint.to_owned());
    }
}

/// Returns a text that is an expression as a template, and any other value as it is.
fn value_of(node: &Node) -> Value {
    match node.text() {
        Some(text) => json!(format!("{{{{ {} }}}}", bare(text))),
        None => node.json(),
    }
}

fn trigger(maker: &mut Maker<'_, '_, '_>) -> Form {
    let path = maker.get("webhookConfig").and_then(|config| given(config, "path"));
    if maker.text("triggerMode") == Some("webhook") && path.is_none() {
        let message = format!("{} is started by requests, and `webhookConfig` has no `path`", maker.what);
        let hint = "add `webhookConfig: {path: /NAME}`: it is started by requests to /hooks/NAME".to_owned();
        maker.reader.error("W0246", &crate::read::first_line(maker.config), message, hint);
    }
    Form::Trigger
}

/// Fields of a connection that must not be stored.
const CONNECTION_SECRETS: [&str; 3] = ["password", "connection_string", "dsn"];

fn data(maker: &mut Maker<'_, '_, '_>) -> Form {
    if let Some((node, source)) = maker.get("query").and_then(|node| Some((node, put_in(node.text()?)?))) {
        let message = format!(
            "`query` of {} has `{{{{ {source} }}}}`: its value becomes a part of the statement",
            maker.what
        );
        let hint = "write `$1` (SQLite: `?1`) there, and the expression in `params`".to_owned();
        let at = maker.reader.spot(node, &source);
        maker.reader.error("W0248", &at, message, hint);
    }
    let mut form =
        maker.task(Tool::Sql, &["query", "params", "database", "tables"], &[("connection", "auth")]);
    let secrets: Vec<(&str, Value)> = CONNECTION_SECRETS
        .iter()
        .filter_map(|field| Some((*field, maker.secret(field, given(maker.get("connection")?, field)?))))
        .collect();
    if let Form::Task(task) = &mut form {
        for (field, value) in secrets {
            task.config["auth"][field] = value;
        }
    }
    form
}

fn delay(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let node = maker.get("duration")?;
    let unit_ms: u64 = match maker.text("unit") {
        Some("ms" | "milliseconds") => 1,
        Some("minutes") => 60_000,
        Some("hours") => 3_600_000,
        Some("days") => 86_400_000,
        Some(_) | None => 1_000,
    };
    let ms = match &node.kind {
        Is::Text(text) if text.contains("{{") => json!(format!("{{{{ ({}) * {unit_ms} }}}}", bare(text))),
        Is::Number(number) if unit_ms != 1_000 => {
            let ms = number.as_f64().filter(|number| *number >= 0.0)? * unit_ms as f64;
            json!(ms as u64)
        }
        _ => json!(maker.reader.duration_ms(node, &format!("`duration` of {}", maker.what))?),
    };
    Some(Form::Delay { ms })
}

fn approval(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let fields = ["message", "approvers"].into_iter();
    let asks: Map<String, Value> =
        fields.filter_map(|name| Some((name.to_owned(), maker.get(name)?.json()))).collect();
    let asks = Some(Value::Object(asks)).filter(|asks| *asks != json!({}));
    Some(Form::Approval { deadline_ms: maker.duration_ms("timeout"), asks })
}

fn child(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let Some(named) = maker.text("workflowId").or_else(|| maker.text("workflowName")) else {
        let message = format!("{} does not name a workflow", maker.what);
        let config = maker.config;
        maker.trouble(config, message, "add `workflowName` or `workflowId`");
        return None;
    };
    let path = wire_id(named).unwrap_or_else(|| named.to_owned());
    let mut definition = Map::from_iter([("path".to_owned(), json!(path))]);
    if let Some(version) = maker.get("version") {
        definition.insert("version".to_owned(), version.json());
    }
    let inputs = maker.get("inputs").map_or(json!({}), Node::json);
    let timeout_ms = maker.duration_ms("timeout");
    Some(Form::Child { definition: Value::Object(definition), inputs, timeout_ms })
}

/// Returns the id of `wf_` and 32 digits, or of a bare UUID; any other text is a name.
pub(super) fn wire_id(text: &str) -> Option<String> {
    let digits: String = text.strip_prefix("wf_").unwrap_or(text).chars().filter(|c| *c != '-').collect();
    let whole = digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit());
    whole.then(|| format!("wf_{}", digits.to_ascii_lowercase()))
}

fn code(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let mut config = Map::new();
    config.insert("language".to_owned(), json!(maker.text("language")?));
    let (program, text) = (maker.get("code")?, maker.text("code")?);
    config.insert("code".to_owned(), json!(raw(text)));
    let meant = |source: &String| READ_BY_EXPRESSIONS.iter().any(|root| source.starts_with(root));
    if let Some(source) = put_in(text).filter(meant) {
        let message =
            format!("`code` of {} is not a template: `{{{{ {source} }}}}` is left unchanged", maker.what);
        let hint = "name the value in `inputVariables`, or read `inputs`".to_owned();
        let at = maker.reader.spot(program, &source);
        maker.reader.error("W0244", &at, message, hint);
    }
    if let Some(node) = maker.get("inputVariables") {
        config.insert("input_variables".to_owned(), Value::Object(variables(node)));
    }
    for (name, field) in [
        ("outputVariable", "output_variable"),
        ("timeout", "timeout_seconds"),
        ("memoryLimit", "memory_limit_mb"),
        ("pipDependencies", "pip_dependencies"),
        ("env", "env"),
    ] {
        if let Some(node) = maker.get(name) {
            config.insert(field.to_owned(), node.json());
        }
    }
    // The field of this type; `timeout` of other types is that of the task.
    let timeout_ms = maker.whole("timeout").map(|seconds| u64::from(seconds) * 1_000);
    let code_at = Some(program.at.clone());
    Some(Form::Task(TaskForm { tool: Tool::Code.kind(), config, timeout_ms, code_at, ..TaskForm::default() }))
}

/// Returns the first expression of a text that reads a value.
fn put_in(text: &str) -> Option<String> {
    pieces(text).into_iter().find_map(|piece| match piece {
        Piece::Expression(source) => {
            let reads = Expr::compile(&source).is_ok_and(|expr| !expr.reads().is_empty());
            reads.then_some(source)
        }
        Piece::Text(_) | Piece::Statement(_) => None,
    })
}

/// Names that every expression may read, if the braces of the program had another meaning.
const READ_BY_EXPRESSIONS: [&str; 4] = ["inputs.", "nodes[", "nodes.", "args."];

fn variables(node: &Node) -> Map<String, Value> {
    let Is::List(items) = &node.kind else {
        return node.json().as_object().cloned().unwrap_or_default();
    };
    let variable = |item: &Node| match item.text() {
        // `fetch.rows` is known by its last part.
        Some(text) => {
            let path = bare(text);
            let name = path.rsplit(['.', ' ']).next().unwrap_or(path);
            Some((name.to_owned(), json!(format!("{{{{ {path} }}}}"))))
        }
        None => {
            let name = given(item, "name")?.text()?;
            let value = given(item, "value").map_or(json!(format!("{{{{ {name} }}}}")), Node::json);
            Some((name.to_owned(), value))
        }
    };
    items.iter().filter_map(variable).collect()
}

/// The worker evaluates the condition for every item. Names other than the item are rendered once, before.
fn filter(maker: &Maker<'_, '_, '_>) -> Option<Form> {
    let items = value_of(maker.get("dataSource")?);
    let condition = maker.get("condition")?;
    let source = match &condition.kind {
        Is::Bool(value) => value.to_string(),
        _ => bare(condition.text()?).to_owned(),
    };
    let iterator = repeat::iterator(maker.config);
    let reads = Expr::compile(&source).ok()?.reads().to_vec();
    let mut names = Map::new();
    for read in reads.iter().filter(|read| read.root != iterator && read.root != "index") {
        let Some(key) = &read.key else {
            names.insert(read.root.clone(), json!(format!("{{{{ {} }}}}", read.root)));
            continue;
        };
        let inner = names.entry(read.root.clone()).or_insert_with(|| json!({}));
        inner[key] = json!(format!("{{{{ {}[{}] }}}}", read.root, literal(&json!(key))));
    }
    let config = json!({ "items": items, "iterator": iterator, "condition": source, "names": names });
    let config = config.as_object().cloned().unwrap_or_default();
    Some(Form::Task(TaskForm { tool: Tool::Filter.kind(), config, ..TaskForm::default() }))
}

/// Returns a JSON value as an expression. No brace in a text of it is read as a tag.
pub(super) fn literal(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(_) => {
            value.to_string().replace('{', "\\u007b").replace('}', "\\u007d").replace('%', "\\u0025")
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let field =
                |(key, value): (&String, &Value)| format!("{}: {}", literal(&json!(key)), literal(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{ {} }}", fields.join(", "))
        }
    }
}
