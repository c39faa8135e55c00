//! Tools that run programs: values in their texts become data, see [`crate::programs`].

use crate::document::{Entry, Kind, Node};
use crate::playbook::language::Templates;
use crate::programs::{self, Refusal};
use crate::read::Reader;
use serde_json::{Map, Value, json};
use windlass_expr::Template;

/// Keys of `script`, and of its `source`, that hold code or the path of a file.
const SCRIPT_CODE: [&str; 2] = ["code", "content"];
const SCRIPT_FILE: [&str; 2] = ["uri", "path"];

/// Rewrites the fields of a tool that are programs.
pub(super) fn bind(
    kind: &str,
    fields: &[Entry],
    config: &mut Map<String, Value>,
    templates: Templates,
    reader: &mut Reader<'_, '_>,
) {
    if templates == Templates::Text {
        return;
    }
    let mut tool = Tool { kind, fields, config, reader };
    for key in windlass_protocol::Tool::named(kind).map_or(&[][..], |tool| tool.row().programs) {
        tool.names_program(key, fields.iter().find(|field| field.key == *key).map(|field| &field.value));
    }
    match kind {
        "shell" => tool.shell(&["command", "cmds"], "shell"),
        "python" => tool.python(),
        "script" => tool.script(),
        "container" => tool.container(),
        _ => {}
    }
}

/// Returns the code that the fields of a tool hold. A script for a shell is code if its lines are those of the definition.
pub(super) fn code_of<'f>(kind: &str, fields: &'f [Entry], templates: Templates) -> Option<&'f Node> {
    let field = |key: &str| fields.iter().find(|field| field.key == key).map(|field| &field.value);
    let script = || field("script");
    let places = [script(), script().and_then(|script| script.get("source"))];
    let in_script = || {
        let places = places.into_iter().flatten();
        places.flat_map(|place| SCRIPT_CODE.iter().filter_map(|key| place.get(key))).next()
    };
    match kind {
        "python" => field("code").or_else(in_script),
        "shell" if templates == Templates::Values => {
            field("command").or_else(|| field("cmds")).filter(|node| node.text().is_some())
        }
        _ => None,
    }
}

struct Tool<'t, 's, 'p> {
    kind: &'t str,
    fields: &'t [Entry],
    config: &'t mut Map<String, Value>,
    reader: &'t mut Reader<'s, 'p>,
}

impl<'t> Tool<'t, '_, '_> {
    fn field(&self, key: &str) -> Option<&'t Node> {
        self.fields.iter().find(|field| field.key == key).map(|field| &field.value)
    }

    /// Passes the values of a script for a shell in variables; `program` is the field that names the shell.
    fn shell(&mut self, keys: &[&str], program: &str) {
        let Some((key, node)) = keys.iter().find_map(|key| Some((*key, self.field(key)?))) else { return };
        let Some(text) = script(node).filter(|text| has_tags(text)) else { return };
        let env = self.field("env");
        let is_taken = |name: &str| env.is_some_and(|env| env.get(name).is_some());
        let program = self.field(program).and_then(Node::text);
        let bound = match programs::shell(&text, program, &is_taken) {
            Ok(bound) => bound,
            Err(refusal) => return self.refuse(key, node, &refusal),
        };
        let command = json!(bound.command);
        self.config.insert(key.to_owned(), if node.text().is_some() { command } else { json!([command]) });
        let Some((_, first)) = bound.values.first() else { return };
        if env.is_some_and(|env| !env.is_map() && !env.is_null()) {
            let hint = "write `env` as a map: values become variables of it";
            return self.refuse(
                key,
                node,
                &Refusal::new(first, "together with an `env` that is not a map", hint),
            );
        }
        let env = self.config.entry("env").or_insert_with(|| json!({}));
        if env.is_null() {
            *env = json!({});
        }
        for (name, source) in bound.values {
            // The value as text, with the filters of a template.
            env[name] = json!(format!("{{{{ ({source}) | string }}}}"));
        }
    }

    fn python(&mut self) {
        if let Some(node) = self.field("code") {
            let code = self.code("code", node);
            self.config.extend(code.map(|code| ("code".to_owned(), code)));
        }
        self.python_script();
    }

    /// Refuses a file that a value would name, and rewrites Python in `script`.
    fn python_script(&mut self) {
        for (place, key, node) in self.script_texts() {
            let Some(code) = self.code("script", node) else { continue };
            match place {
                "" => self.config["script"][key] = code,
                place => self.config["script"][place][key] = code,
            }
        }
    }

    /// Texts in `script` with their places; the names of files in it are checked.
    fn script_texts(&mut self) -> Vec<(&'static str, &'static str, &'t Node)> {
        let Some(script) = self.field("script") else { return Vec::new() };
        self.names_program("script", Some(script));
        let mut texts = Vec::new();
        for (place, node) in [("", Some(script)), ("source", script.get("source"))] {
            for key in SCRIPT_FILE {
                self.names_program("script", node.and_then(|node| node.get(key)));
            }
            let found = |key| node.and_then(|node| node.get(key)).map(|node| (place, key, node));
            texts.extend(SCRIPT_CODE.into_iter().filter_map(found));
        }
        texts
    }

    /// The text of a script is Python, a script for a shell, or a text without values.
    fn script(&mut self) {
        let interpreter = self.field("interpreter").and_then(Node::text).unwrap_or("sh");
        let name = interpreter.rsplit('/').next().unwrap_or(interpreter);
        if name.starts_with("python") {
            return self.python();
        }
        self.shell(&["code"], "interpreter");
        for (_, _, node) in self.script_texts() {
            let text = node.text().unwrap_or_default();
            if Template::compile(&json!(text)).is_ok_and(|template| !template.reads().is_empty()) {
                let message = "`script` of the tool `script` has values in a text that is not Python";
                let hint = "write the text in `code`".to_owned();
                self.reader.error("E0151", &crate::read::first_line(node), message, hint);
            }
        }
    }

    /// Values in a list are words of their own; a text is a script for the shell of the image.
    fn container(&mut self) {
        if self.field("command").is_some_and(|command| command.text().is_some()) {
            self.shell(&["command"], "");
        }
        let Some((node, text)) = self.field("image").and_then(|node| Some((node, node.text()?))) else {
            return;
        };
        if Template::compile(&json!(text)).is_ok_and(|template| !template.reads().is_empty()) {
            let message =
                "`image` of the tool `container` is an expression: its value is the program that runs";
            let hint = "name the image, unless everyone who starts the playbook may choose it".to_owned();
            self.reader.error("W0252", &crate::read::first_line(node), message, hint);
        }
    }

    fn code(&mut self, key: &str, node: &Node) -> Option<Value> {
        let text = node.text().filter(|text| has_tags(text))?;
        match programs::python(text) {
            Ok(code) => Some(json!(code)),
            Err(refusal) => {
                self.refuse(key, node, &refusal);
                None
            }
        }
    }

    /// Refuses values in a field that names a program.
    fn names_program(&mut self, key: &str, node: Option<&Node>) {
        let Some((node, text)) = node.and_then(|node| Some((node, node.text()?))) else { return };
        let reads = Template::compile(&json!(text)).is_ok_and(|template| !template.reads().is_empty());
        if reads {
            let message = format!(
                "`{key}` of the tool `{}` is an expression: its value would be the program",
                self.kind
            );
            self.reader.error(
                "E0151",
                &crate::read::first_line(node),
                message,
                "name the program".to_owned(),
            );
        }
    }

    fn refuse(&mut self, key: &str, node: &Node, refusal: &Refusal) {
        let message =
            format!("`{key}` of the tool `{}` has {} {}", self.kind, refusal.shown(), refusal.place);
        let at = self.reader.spot(node, refusal.needle());
        let hint = format!(
            "{}; `executor.spec.templates: text` makes templates a part of the program",
            refusal.hint
        );
        self.reader.error("E0151", &at, message, hint);
    }
}

/// Returns the script as the worker puts it together. A value that is not a string fails when it runs.
fn script(node: &Node) -> Option<String> {
    let line = |node: &Node| match &node.kind {
        Kind::Text(text) => Some(text.clone()),
        Kind::Number(_) | Kind::Bool(_) => Some(node.json().to_string()),
        _ => None,
    };
    match &node.kind {
        Kind::List(lines) => lines.iter().map(line).collect::<Option<Vec<_>>>().map(|lines| lines.join("\n")),
        _ => line(node),
    }
}

fn has_tags(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}
