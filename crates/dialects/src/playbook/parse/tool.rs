//! A step's `tool` in all its shapes: one map, a list of named maps, a list of `{label: {…}}`.

use super::rule::{self, Rules};
use super::{present, program, required, retry, step, unique};
use crate::adapters::{Outside, Sort, binding_line, check_operation, how_to_bind, is_built_in};
use crate::document::{Entry, Kind, Node};
use crate::names;
use crate::playbook::language::{
    ELSEWHERE_BUILT_IN, Key, RUNTIME, TOOL_SPEC, Templates, WORKBOOK_ENTRY, tools,
};
use crate::playbook::model::{Name, TaskDef};
use crate::read::{Reader, Unknown, first_line};
use std::collections::BTreeMap;
use windlass_expr::Read;
use windlass_protocol::{GROUP_NAME_MAX, OnUnmatched, Task, Tool, ToolRow, WORKER_KIND, is_group_name};

/// Keys of tools in other versions of the language.
const ELSEWHERE: [(&str, &str); 1] = [("eval", "use `spec.policy.rules` of the task")];

/// Keys of a tool that are not the tool's own fields.
const STRUCTURE: [&str; 4] = ["kind", "spec", "desc", "retry"];

pub(super) fn pipeline(
    node: &Node,
    step: &Name,
    templates: Templates,
    reader: &mut Reader<'_, '_>,
) -> Vec<TaskDef> {
    let Kind::List(items) = &node.kind else {
        let label = format!("{}_task", step.text);
        return task(node, label, templates, reader).into_iter().collect();
    };
    if items.is_empty() {
        let hint = "omit `tool` for a step that only routes".to_owned();
        reader.error("E0110", &node.at, format!("`tool` of step `{}` is an empty list", step.text), hint);
    }
    let mut labels = BTreeMap::new();
    let mut tasks = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some((label, body)) = labelled(item, index, reader) else { continue };
        unique(&mut labels, &label, "task", reader);
        let mut parsed = task(body, label.text, templates, reader);
        if std::ptr::eq(body, item) {
            parsed.iter_mut().for_each(|task| forget_name(&mut task.task));
        }
        tasks.extend(parsed);
    }
    tasks
}

/// Removes the name of a task in a list, which is its label; only two tools have a field of that name as well.
fn forget_name(task: &mut Task) {
    if task.kind != Tool::Secrets.kind() && task.kind != "workbook" {
        task.config.shift_remove("name");
    }
}

fn labelled<'n>(item: &'n Node, index: usize, reader: &mut Reader<'_, '_>) -> Option<(Name, &'n Node)> {
    let entries = reader.map(item, "a task")?;
    if let [Entry { key, at, value }] = entries
        && key != "kind"
        && value.is_map()
    {
        return Some((Name { text: key.clone(), at: at.clone() }, value));
    }
    let name = match item.get("name") {
        Some(name) => reader.name(name, "`name` of a task")?,
        None => Name { text: format!("task_{index}"), at: first_line(item) },
    };
    Some((name, item))
}

/// Entries of the workbook: tools that steps call by name.
pub(super) fn workbook(
    node: &Node,
    templates: Templates,
    reader: &mut Reader<'_, '_>,
) -> Vec<(Name, TaskDef)> {
    let mut names = BTreeMap::new();
    let mut found = Vec::new();
    if node.is_map() {
        let tasks = node.get("tasks").unwrap_or(node);
        for Entry { key, at, value } in tasks.entries() {
            let name = Name { text: key.clone(), at: at.clone() };
            found.extend(workbook_task(value, name, templates, reader));
        }
        return found;
    }
    for item in reader.list(node, "`workbook`").unwrap_or_default() {
        if reader.map(item, "a workbook entry").is_none() {
            continue;
        }
        let Some(name) = required(item, "name", "a workbook entry", reader) else { continue };
        unique(&mut names, &name, "workbook entry", reader);
        found.extend(workbook_task(item, name, templates, reader));
    }
    found
}

fn workbook_task(
    item: &Node,
    name: Name,
    templates: Templates,
    reader: &mut Reader<'_, '_>,
) -> Option<(Name, TaskDef)> {
    let own = present(item, "tool");
    if own.is_some() {
        reader.known(item.entries(), "a workbook entry", WORKBOOK_ENTRY, Unknown::Warning);
    }
    let body = own.unwrap_or(item);
    let task = task(body, name.text.clone(), templates, reader)?;
    Some((name, task))
}

/// Reads a tool that a binding names, and what its templates read.
pub(crate) fn bound_tool(node: &Node, reader: &mut Reader<'_, '_>) -> Option<(Task, Vec<Read>)> {
    let TaskDef { task, reads, .. } = task(node, String::new(), Templates::default(), reader)?;
    if !task.rules.is_empty() || task.on_unmatched != OnUnmatched::default() {
        let hint = "the action or the task that calls it has the policy".to_owned();
        reader.error("E0106", &first_line(node), "a binding has no `spec.policy`", hint);
    }
    Some((task, reads))
}

fn task(node: &Node, label: String, templates: Templates, reader: &mut Reader<'_, '_>) -> Option<TaskDef> {
    let entries = reader.map(node, "a tool")?;
    let entries = reader.elsewhere(entries, "a tool", &ELSEWHERE);
    let kind = kind(node, reader);
    let spec = present(node, "spec").filter(|spec| reader.map(spec, "`spec` of a tool").is_some());
    let lifted = lifted(node, spec);
    let own = entries.into_iter().filter(|entry| !STRUCTURE.contains(&entry.key.as_str())).cloned();
    let mut fields: Vec<Entry> = own.chain(lifted).collect();
    if kind.as_deref() == Some(Tool::Container.kind()) {
        fields = runtime(fields, reader);
    }
    let mut config = reader.fields(&fields);
    let policy = spec.and_then(|spec| present(spec, "policy"));
    let mut rules = policy.map(|policy| rule::policy(policy, reader)).unwrap_or_default();
    if let Some(retry) = present(node, "retry") {
        retry::add(retry, &mut rules, reader);
    }
    let Rules { rules, on_unmatched, mut reads, patch_reads, jumps } = rules;
    if let Some(result) = spec.and_then(|spec| present(spec, "result")) {
        step::result(result, reader);
    }
    let timeout = spec.and_then(|spec| present(spec, "timeout")).filter(|timeout| !timeout.is_map());
    let timeout_ms = timeout.and_then(|timeout| reader.duration_ms(timeout, "`timeout` of a tool"));
    let kind = kind?;
    if let Some(row) = tools().find(|row| row.kind == kind) {
        let known: Vec<Key> = row.all_fields().copied().collect();
        reader.known(&fields, &format!("the tool `{kind}`"), &known, Unknown::Error);
        needs(node, row, &fields, reader);
    }
    check_args(&fields, reader);
    if kind == WORKER_KIND {
        check_group(&fields, reader);
    }
    program::bind(&kind, &fields, &mut config.fields, templates, reader);
    reads.extend(config.reads);
    let task = Task { label, kind, config: config.fields, rules, on_unmatched, timeout_ms };
    let code_at = program::code_of(&task.kind, &fields, templates).map(|code| code.at.clone());
    Some(TaskDef { task, at: first_line(node), reads, rule_reads: patch_reads, jumps, code_at })
}

fn kind(node: &Node, reader: &mut Reader<'_, '_>) -> Option<String> {
    let Some(kind) = node.get("kind") else {
        reader.error(
            "E0110",
            &first_line(node),
            "the tool has no `kind`",
            format!("known kinds: {}", kinds()),
        );
        return None;
    };
    known_kind(kind, reader)
}

fn kinds() -> String {
    tools().map(|tool| tool.kind).collect::<Vec<_>>().join(", ")
}

/// Reads the kind that a text names.
pub(super) fn known_kind(kind: &Node, reader: &mut Reader<'_, '_>) -> Option<String> {
    let known = tools().map(|tool| tool.kind);
    let all = kinds();
    let text = reader.text(kind, "`kind` of a tool")?;
    if known.clone().any(|known| known == text) {
        return Some(text.to_owned());
    }
    if reader.own.binds(text) || reader.outside.binds(text) {
        return Some(text.to_owned());
    }
    if Sort::of(text) == Sort::Operation {
        let operation = Name { text: text.to_owned(), at: kind.at.clone() };
        check_operation(&operation, &reader.own, reader.outside, reader.problems);
        return Some(operation.text);
    }
    let instead = ELSEWHERE_BUILT_IN.iter().find(|(kind, _)| *kind == text);
    let near = names::hint(text, known).filter(|hint| hint.starts_with("did"));
    if matches!(reader.outside, Outside::Unknown) && near.is_none() && !is_built_in(text) {
        let message = format!("the tool `{text}` is not built in, and the definition does not bind it");
        reader.error("W0257", &kind.at, message, how_to_bind(text));
        return Some(text.to_owned());
    }
    let line = binding_line(text);
    let (message, hint) = match (instead, near) {
        (Some((_, instead)), _) => (
            format!("the tool `{text}` is not built in, and no binding exists for this kind"),
            format!("use {instead}, or bind the kind: `{line}`"),
        ),
        (None, Some(near)) => (format!("there is no tool `{text}`"), format!("{near} known kinds: {all}")),
        (None, None) => {
            (format!("there is no tool `{text}`"), format!("known kinds: {all}; or bind the kind: `{line}`"))
        }
    };
    reader.error("E0111", &kind.at, message, hint);
    None
}

/// Moves fields from `spec` to the tool, unless the tool has them. A timeout in parts is a field of the tool.
fn lifted(node: &Node, spec: Option<&Node>) -> Vec<Entry> {
    let entries = spec.map(Node::entries).unwrap_or_default().iter();
    let is_field = |entry: &&Entry| {
        !TOOL_SPEC.iter().any(|key| key.name == entry.key) || (entry.key == "timeout" && entry.value.is_map())
    };
    entries.filter(is_field).filter(|entry| node.get(&entry.key).is_none()).cloned().collect()
}

/// Moves what a container's `runtime` says to the fields of the tool.
fn runtime(fields: Vec<Entry>, reader: &mut Reader<'_, '_>) -> Vec<Entry> {
    let is_runtime = |field: &Entry| field.key == "runtime" && !field.value.is_null();
    let (runtime, mut own): (Vec<Entry>, Vec<Entry>) = fields.into_iter().partition(is_runtime);
    for entry in &runtime {
        let Some(entries) = reader.map(&entry.value, "`runtime` of the tool `container`") else { continue };
        reader.known(entries, "`runtime` of the tool `container`", RUNTIME, Unknown::Warning);
        let is_used = |entry: &&Entry| {
            RUNTIME.iter().any(|key| key.name == entry.key && key.instead.is_none())
                && !own.iter().any(|field| field.key == entry.key)
        };
        let moved: Vec<Entry> = entries.iter().filter(is_used).cloned().collect();
        own.extend(moved);
    }
    own
}

/// Refuses a template as the group, because the group decides who gets the task before anything of it is rendered.
fn check_group(fields: &[Entry], reader: &mut Reader<'_, '_>) {
    for Entry { key, value, .. } in fields {
        let is_valid: fn(&str) -> bool = match key.as_str() {
            "group" => is_group_name,
            "operation" => |text| !text.contains("{{") && !text.contains("{%"),
            _ => continue,
        };
        let Some(text) = reader.text(value, &format!("`{key}` of the tool `worker`")) else { continue };
        if !is_valid(text) {
            let message = format!("`{key}` of the tool `worker` is `{text}`, which is not a plain name");
            let hint =
                format!("use at most {GROUP_NAME_MAX} letters, digits, `.`, `_` and `-`, and no template");
            reader.error("E0101", &value.at, message, hint);
        }
    }
}

fn needs(node: &Node, row: &ToolRow, fields: &[Entry], reader: &mut Reader<'_, '_>) {
    let given = |key: &&str| fields.iter().any(|field| field.key == **key);
    if !row.needs.is_empty() && !row.needs.iter().any(given) {
        let words: Vec<String> = row.needs.iter().map(|key| format!("`{key}`")).collect();
        let hint = format!("add {}", words.join(" or "));
        reader.error(
            "E0102",
            &first_line(node),
            format!("the tool `{}` has no {}", row.kind, words[0]),
            hint,
        );
    }
}

fn check_args(fields: &[Entry], reader: &mut Reader<'_, '_>) {
    let aliases: Vec<Entry> =
        fields.iter().filter(|field| field.key == "args" || field.key == "input").cloned().collect();
    if let [_, second] = &aliases[..] {
        reader.error(
            "E0103",
            &second.at,
            "`args` and `input` are the same thing",
            "keep one of them".to_owned(),
        );
    }
    for args in aliases.iter().filter(|args| !args.value.is_null()) {
        reader.map(&args.value, "`args` of a tool");
    }
}
