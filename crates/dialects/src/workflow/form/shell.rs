//! `shell`: a value of an expression comes into the script as a variable of the environment. The shell puts it in as one
//! word and never reads it as a part of the program, whoever gave it.

use super::script::{Script, is_known};
use super::{Maker, raw, variables};
use crate::document::Node;
use crate::workflow::model::Form;
use serde_json::{Map, Value, json};
use windlass_expr::{Expr, Piece, Template, pieces};

/// Variables of values are these words and a number.
const VARIABLE: &str = "WINDLASS_VALUE_";

pub(super) fn form(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let node = maker.get("command")?;
    let own = maker.get("inputVariables").map(variables).unwrap_or_default();
    let mut env = own.clone();
    env.extend(maker.get("env").and_then(|env| env.json().as_object().cloned()).unwrap_or_default());
    let command = command(node, &mut env, maker)?;
    let mut form = maker.task("shell", &["shell", "cwd"], &[]);
    if let Form::Task(task) = &mut form {
        task.config.insert("command".to_owned(), json!(raw(&command)));
        for (field, values) in [("env", env), ("input_variables", own)] {
            if !values.is_empty() {
                task.config.insert(field.to_owned(), Value::Object(values));
            }
        }
    }
    Some(form)
}

/// The script with a variable for each value; the variables are put into `env`.
fn command(node: &Node, env: &mut Map<String, Value>, maker: &mut Maker<'_, '_, '_>) -> Option<String> {
    let shell = maker.get("shell");
    if let Some(shell) = shell.filter(|shell| shell.text().is_some_and(|text| text.contains("{{"))) {
        let message = format!("`shell` of {} is an expression: its value would be the program", maker.what);
        maker.refuse(shell, "{{", message, "name the shell".to_owned());
        return None;
    }
    let pieces = spelt_out(pieces(node.text()?));
    let known = shell.and_then(Node::text).is_none_or(is_known);
    let alone = matches!(&pieces[..], [Piece::Expression(_)]);
    let (mut written, mut script) = (String::new(), Script::default());
    for piece in pieces {
        let source = match piece {
            Piece::Text(text) => {
                script.text(&text);
                written.push_str(&text);
                continue;
            }
            Piece::Statement(_) => {
                let message = format!("`command` of {} has a statement, `{{% … %}}`", maker.what);
                let hint = "decide in the script, over a variable of `env`, or with a node `conditional`";
                maker.refuse(node, "{%", message, hint.to_owned());
                return None;
            }
            Piece::Expression(source) => source,
        };
        let place = match (alone, known) {
            (true, _) => Some("and nothing else: it would be the program"),
            (_, false) => Some("for a shell whose quotes are not known"),
            _ => script.objection(),
        };
        if let Some(place) = place {
            refuse(node, &source, place, maker);
            return None;
        }
        let name = free(env);
        written.push_str(&format!("\"${{{name}-}}\""));
        env.insert(name, json!(format!("{{{{ {source} }}}}")));
        script.value();
    }
    Some(written)
}

/// What an expression gives that reads nothing is the author's own text.
fn spelt_out(pieces: Vec<Piece>) -> Vec<Piece> {
    let constant = |source: &str| {
        let expr = Expr::compile(source).ok().filter(|expr| expr.reads().is_empty())?;
        let value = Template::compile(&json!(format!("{{{{ {} }}}}", expr.source()))).ok()?;
        let value = value.render(&Map::new()).ok()?;
        Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    };
    let spelt = |piece: Piece| match piece {
        Piece::Expression(source) => constant(&source).map_or(Piece::Expression(source), Piece::Text),
        piece => piece,
    };
    pieces.into_iter().map(spelt).collect()
}

fn free(env: &Map<String, Value>) -> String {
    let mut number = env.len();
    loop {
        number += 1;
        let name = format!("{VARIABLE}{number}");
        if !env.contains_key(&name) {
            return name;
        }
    }
}

fn refuse(node: &Node, source: &str, place: &str, maker: &mut Maker<'_, '_, '_>) {
    let message = format!("`command` of {} has `{{{{ {source} }}}}` {place}", maker.what);
    let hint = format!(
        "a value must not become a part of the program: pass it by `env: {{VALUE: \"{{{{ {source} }}}}\"}}` and write \
         \"$VALUE\", or let the expression stand as a word of its own"
    );
    maker.refuse(node, source, message, hint);
}
