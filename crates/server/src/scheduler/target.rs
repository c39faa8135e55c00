//! http and shell targets as playbooks of one step. Values of the target are inputs, so no template in them is evaluated.

use serde_json::{Map, Value, json};
use windlass_schedule::{ScheduleSpec, Target};

/// Name of the only step.
const STEP: &str = "target";
/// Beginning of the names of the variables that hold the program and its arguments.
const ARGUMENT: &str = "SCHEDULE_ARGUMENT_";

/// Returns the definition of an http or shell target. It depends on the shape of the target, not on its values.
pub(crate) fn definition(spec: &ScheduleSpec) -> Option<Value> {
    let tool = match &spec.target {
        Target::Workflow { .. } => return None,
        Target::Http { method, headers, body, .. } => {
            let mut tool = json!({ "kind": "http", "method": method, "url": "{{ workload.url }}",
                "timeout": spec.policy.timeout_seconds });
            tool["headers"] = Value::Object(named_values(headers.keys(), "headers"));
            if let Some(body) = body {
                // A string is sent unchanged.
                let field = if body.is_string() { "body" } else { "json" };
                tool[field] = json!("{{ workload.body }}");
            }
            tool
        }
        Target::Shell { args, env, cwd, .. } => {
            // The arguments are variables of the shell, so that none of them is parsed as a part of its script.
            let variables: Vec<String> = (0..=args.len()).map(|index| format!("{ARGUMENT}{index}")).collect();
            let words: Vec<String> = variables.iter().map(|name| format!("\"${name}\"")).collect();
            let command = format!("set -- {}; unset {}; exec \"$@\"", words.join(" "), variables.join(" "));
            let mut values = named_values(variables.iter(), "argv");
            values.extend(named_values(env.keys(), "env"));
            let mut tool = json!({ "kind": "shell", "command": command });
            tool["env"] = Value::Object(values);
            if cwd.is_some() {
                tool["cwd"] = json!("{{ workload.cwd }}");
            }
            tool
        }
    };
    let name = format!("schedule {}", spec.name);
    Some(json!({
        "apiVersion": "noetl.io/v2",
        "kind": "Playbook",
        "metadata": { "name": name, "path": name },
        "workload": defaults(&spec.target),
        "workflow": [{ "step": STEP, "tool": tool }],
    }))
}

/// Returns the inputs of an execution of the target.
pub(crate) fn inputs(target: &Target) -> Map<String, Value> {
    let inputs = match target {
        Target::Http { url, headers, body, .. } => {
            json!({ "url": url, "headers": headers.values().collect::<Vec<_>>(), "body": body })
        }
        Target::Shell { command, args, env, cwd } => {
            let argv: Vec<&String> = std::iter::once(command).chain(args).collect();
            json!({ "argv": argv, "env": env.values().collect::<Vec<_>>(), "cwd": cwd })
        }
        Target::Workflow { input, .. } => return input.clone(),
    };
    match inputs {
        Value::Object(inputs) => inputs,
        _ => Map::new(),
    }
}

/// Returns the inputs without their values, which declares them.
fn defaults(target: &Target) -> Map<String, Value> {
    inputs(target).into_iter().map(|(name, _)| (name, Value::Null)).collect()
}

/// Returns a map whose values are the entries of a list of inputs, in the same order.
fn named_values<'n>(names: impl Iterator<Item = &'n String>, list: &str) -> Map<String, Value> {
    let entry = |(index, name): (usize, &String)| {
        (name.clone(), json!(format!("{{{{ workload.{list}[{index}] }}}}")))
    };
    names.enumerate().map(entry).collect()
}
