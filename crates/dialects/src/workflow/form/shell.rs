//! `shell`: values come into the script as variables of the environment, see [`crate::programs`].

use super::{Maker, variables};
use crate::document::Node;
use crate::programs::{self, Refusal};
use crate::workflow::model::Form;
use serde_json::{Map, Value, json};
use windlass_protocol::Tool;

pub(super) fn form(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let node = maker.get("command")?;
    let own = maker.get("inputVariables").map(variables).unwrap_or_default();
    let mut env = own.clone();
    env.extend(maker.get("env").and_then(|env| env.json().as_object().cloned()).unwrap_or_default());
    let command = command(node, &mut env, maker)?;
    let mut form = maker.task(Tool::Shell, &["shell", "cwd"], &[]);
    if let Form::Task(task) = &mut form {
        task.code_at = Some(node.at.clone());
        task.config.insert("command".to_owned(), json!(command));
        for (field, values) in [("env", env), ("input_variables", own)] {
            if !values.is_empty() {
                task.config.insert(field.to_owned(), Value::Object(values));
            }
        }
    }
    Some(form)
}

/// Returns the script with a variable for each value; the variables are put into `env`.
fn command(node: &Node, env: &mut Map<String, Value>, maker: &mut Maker<'_, '_, '_>) -> Option<String> {
    let shell = maker.get("shell");
    if let Some(shell) = shell.filter(|shell| shell.text().is_some_and(|text| text.contains("{{"))) {
        let message = format!("`shell` of {} is an expression: its value would be the program", maker.what);
        maker.refuse(shell, "{{", message, "name the shell".to_owned());
        return None;
    }
    let program = shell.and_then(Node::text);
    let bound = match programs::shell(node.text()?, program, &|name| env.contains_key(name)) {
        Ok(bound) => bound,
        Err(refusal) => {
            refuse(node, &refusal, maker);
            return None;
        }
    };
    env.extend(bound.values.into_iter().map(|(name, source)| (name, json!(format!("{{{{ {source} }}}}")))));
    Some(bound.command)
}

fn refuse(node: &Node, refusal: &Refusal, maker: &mut Maker<'_, '_, '_>) {
    let message = format!("`command` of {} has {} {}", maker.what, refusal.shown(), refusal.place);
    maker.refuse(node, refusal.needle(), message, refusal.hint.clone());
}
