//! Tools that run programs: values in their texts become data, see [`crate::programs`].

use crate::document::{Entry, Kind, Node};
use crate::playbook::language::Templates;
use crate::programs::{self, Refusal};
use crate::read::Reader;
use serde_json::{Map, Value, json};
use windlass_expr::Template;

/// Fields that name a program or a file with one.
const PROGRAMS: [(&str, &[&str]); 2] = [("shell", &["shell"]), ("python", &["python"])];

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
    for key in PROGRAMS.iter().filter(|(of, _)| *of == kind).flat_map(|(_, keys)| *keys) {
        tool.names_program(key, fields.iter().find(|field| field.key == *key).map(|field| &field.value));
    }
    match kind {
        "shell" => tool.shell(),
        "python" => tool.python(),
        _ => {}
    }
}

/// Returns the code that the fields of a tool hold.
pub(super) fn code_of<'f>(kind: &str, fields: &'f [Entry]) -> Option<&'f Node> {
    let field = |key: &str| fields.iter().find(|field| field.key == key).map(|field| &field.value);
    let script = || field("script");
    let places = [script(), script().and_then(|script| script.get("source"))];
    let in_script = || {
        let places = places.into_iter().flatten();
        places.flat_map(|place| SCRIPT_CODE.iter().filter_map(|key| place.get(key))).next()
    };
    if kind == "python" { field("code").or_else(in_script) } else { None }
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

    fn shell(&mut self) {
        let Some((key, node)) = ["command", "cmds"].into_iter().find_map(|key| Some((key, self.field(key)?)))
        else {
            return;
        };
        let Some(text) = script(node).filter(|text| has_tags(text)) else { return };
        let env = self.field("env");
        let is_taken = |name: &str| env.is_some_and(|env| env.get(name).is_some());
        let program = self.field("shell").and_then(Node::text);
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
            // As text, in the words of a template.
            env[name] = json!(format!("{{{{ ({source}) | string }}}}"));
        }
    }

    fn python(&mut self) {
        if let Some(node) = self.field("code") {
            let code = self.code("code", node);
            self.config.extend(code.map(|code| ("code".to_owned(), code)));
        }
        let Some(script) = self.field("script") else { return };
        self.names_program("script", Some(script));
        for (place, node) in [("", Some(script)), ("source", script.get("source"))] {
            for key in SCRIPT_FILE {
                self.names_program("script", node.and_then(|node| node.get(key)));
            }
            for key in SCRIPT_CODE {
                let Some(code) =
                    node.and_then(|node| node.get(key)).and_then(|node| self.code("script", node))
                else {
                    continue;
                };
                match place {
                    "" => self.config["script"][key] = code,
                    place => self.config["script"][place][key] = code,
                }
            }
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

    /// A field that a program is found by holds no values.
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
