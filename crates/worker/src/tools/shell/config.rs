//! Fields of a shell task.

use crate::failure::invalid;
use crate::tools::fields::Fields;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use windlass_protocol::{Failure, Tool};

pub(super) const TOOL: &str = Tool::Shell.kind();

#[derive(Debug, PartialEq)]
pub(super) struct Script {
    pub(super) shell: String,
    pub(super) text: String,
    /// Lines of the script are those in the definition; a list has one more before them.
    pub(super) is_text: bool,
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    /// Variables of a node, merged over the outputs of the nodes before it.
    pub(super) variables: Value,
}

impl Script {
    pub(super) fn read(config: &Map<String, Value>) -> Result<Script, Box<Failure>> {
        let fields = Fields::of(Tool::Shell, config)?;
        Ok(Script {
            shell: fields.text("shell")?.unwrap_or_else(|| "sh".to_owned()),
            text: script(fields)?,
            is_text: !matches!(fields.one_of(&["command", "cmds"])?, Some((_, Value::Array(_)))),
            cwd: fields.text("cwd")?,
            env: fields.env()?,
            variables: fields.map("input_variables")?.map_or(Value::Null, |own| Value::Object(own.clone())),
        })
    }
}

fn script(fields: Fields<'_>) -> Result<String, Box<Failure>> {
    let Some((_, found)) = fields.one_of(&["command", "cmds"])? else {
        return Err(invalid("shell needs `command` or `cmds`, a text or a list of texts"));
    };
    match found {
        Value::Array(lines) => {
            let lines = lines.iter().map(line).collect::<Result<Vec<_>, _>>()?;
            Ok(format!("set -e\n{}", lines.join("\n")))
        }
        single => line(single),
    }
}

fn line(value: &Value) -> Result<String, Box<Failure>> {
    match value {
        Value::String(text) => Ok(text.clone()),
        // A template may produce a number or a boolean: `{{ args.count }}`, `true`.
        Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
        other => Err(invalid(format!("a command of shell is a text, not {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(config: Value, expected: Result<(&str, &str), &str>) {
        let read = Script::read(config.as_object().unwrap());
        let script = read.as_ref().map(|script| (script.shell.as_str(), script.text.as_str()));
        assert_eq!(script.map_err(|failure| failure.message.as_str()), expected, "{config}");
    }

    #[test]
    fn a_script_is_a_text_or_a_list() {
        check(json!({ "command": "ls" }), Ok(("sh", "ls")));
        check(json!({ "cmds": "ls", "command": null, "shell": "bash" }), Ok(("bash", "ls")));
        check(
            json!({ "cmds": ["cd /", "ls"], "args": { "x": 1 }, "name": "n" }),
            Ok(("sh", "set -e\ncd /\nls")),
        );
        check(json!({ "command": true }), Ok(("sh", "true")));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let neither = "shell needs `command` or `cmds`, a text or a list of texts";
        check(json!({}), Err(neither));
        check(
            json!({ "command": "ls", "cmds": ["ls"] }),
            Err("shell has both `command` and `cmds`, which mean the same; keep one of them"),
        );
        check(json!({ "cmds": [["ls"]] }), Err("a command of shell is a text, not [\"ls\"]"));
        check(json!({ "command": "ls", "cwd": 3 }), Err("`cwd` of shell is a text, not 3"));
        check(json!({ "command": "ls", "env": [] }), Err("`env` of shell is a map, not []"));
        check(
            json!({ "comand": "ls" }),
            Err(
                "shell has no field `comand`; it has command, cmds, shell, env, cwd, args, input, name, timeout_seconds",
            ),
        );
    }

    #[test]
    fn the_environment_is_text() {
        let config = json!({ "command": "x", "env": { "A": "a", "N": 1, "L": [1], "none": null } });
        let script = Script::read(config.as_object().unwrap()).unwrap();
        let env: Vec<(&str, &str)> = script.env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(env, [("A", "a"), ("L", "[1]"), ("N", "1")]);
    }
}
