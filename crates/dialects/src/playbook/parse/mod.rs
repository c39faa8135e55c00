//! Builds the model from the tree: the root and the executor.

mod next;
mod program;
mod retry;
mod rule;
mod step;
mod tool;
mod workload;
mod writes;

pub(crate) use tool::bound_tool;

use super::keychain;
use super::language::{
    DEFAULTS, EXECUTOR, EXECUTOR_POLICY, EXECUTOR_SPEC, FAILURES, FINAL_FAILURES, PENDING_GATES, PROFILES,
    REQUIRES, RESULTS, ROOT, TEMPLATES, Templates,
};
use super::model::{Executor, Name, Playbook};
use crate::adapters::{ADAPTERS, parse_section};
use crate::document::{Kind, Node};
use crate::read::{Reader, Unknown, first_line};
use std::collections::BTreeMap;

/// Root sections of other versions of the language.
const ELSEWHERE: [(&str, &str); 1] =
    [("vars", "move them to `workload`; what changes while it runs is `ctx`, written by `set_ctx`")];

pub(super) fn playbook(root: &Node, reader: &mut Reader<'_, '_>) -> Playbook {
    let mut playbook = Playbook { name: name(root, reader), path: path(root), ..Playbook::default() };
    sections(root, reader);
    let place = keychain::place(playbook.name.as_deref(), reader.source);
    if let Some(keychain) = present(root, "keychain") {
        playbook.keychain = keychain::keychain(keychain, &place, reader, &mut playbook.written);
    }
    // Read before all fields that name a kind of tool.
    if let Some(adapters) = present(root, ADAPTERS) {
        let Playbook { keychain, written, .. } = &mut playbook;
        reader.own = parse_section(adapters, &place, keychain, reader, written);
    }
    if let Some(executor) = present(root, "executor") {
        playbook.executor = self::executor(executor, reader);
    }
    if let Some(workload) = present(root, "workload") {
        playbook.workload = workload::workload(workload, reader);
    }
    if let Some(workbook) = present(root, "workbook") {
        playbook.workbook = tool::workbook(workbook, playbook.executor.templates, reader);
    }
    let templates = playbook.executor.templates;
    let steps = workflow(root, reader).iter();
    playbook.steps = steps.filter_map(|node| step::step(node, templates, reader)).collect();
    playbook
}

/// Returns the value of a key. A key without a value counts as absent.
fn present<'n>(node: &'n Node, key: &str) -> Option<&'n Node> {
    node.get(key).filter(|node| !node.is_null())
}

fn sections(root: &Node, reader: &mut Reader<'_, '_>) {
    let sections = reader.elsewhere(root.entries(), "a playbook", &ELSEWHERE);
    reader.known(sections, "a playbook", ROOT, Unknown::Warning);
    if let Some(kind) = present(root, "kind") {
        reader.choice(kind, "kind", &[("Playbook", ())]);
    }
}

fn name(root: &Node, reader: &mut Reader<'_, '_>) -> Option<String> {
    let metadata = present(root, "metadata");
    if let Some(metadata) = metadata {
        reader.map(metadata, "`metadata`")?;
    }
    let found = metadata.and_then(|metadata| present(metadata, "name").or_else(|| present(metadata, "path")));
    let Some(found) = found else {
        let at = metadata.map_or(root.at.start..root.at.start, first_line);
        let hint = "add `metadata: {name: ...}`: executions are found by it".to_owned();
        reader.error("W0207", &at, "the playbook has no name", hint);
        return None;
    };
    reader.text(found, "the playbook's name").map(str::to_owned)
}

/// Reads another name by which playbooks may start it.
fn path(root: &Node) -> Option<String> {
    present(present(root, "metadata")?, "path")?.text().map(str::to_owned)
}

/// Reads the name under a required key.
fn required(node: &Node, key: &str, what: &str, reader: &mut Reader<'_, '_>) -> Option<Name> {
    match node.get(key) {
        Some(value) => reader.name(value, &format!("`{key}` of {what}")),
        None => {
            reader.error(
                "E0102",
                &first_line(node),
                format!("{what} has no `{key}`"),
                format!("add `{key}: ...`"),
            );
            None
        }
    }
}

fn unique(names: &mut BTreeMap<String, ()>, name: &Name, what: &str, reader: &mut Reader<'_, '_>) {
    if names.insert(name.text.clone(), ()).is_some() {
        let message = format!("{what} `{}` is defined twice", name.text);
        reader.error("E0112", &name.at, message, "rename one".to_owned());
    }
}

fn workflow<'n>(root: &'n Node, reader: &mut Reader<'_, '_>) -> &'n [Node] {
    let hint = "write a list: `workflow:` and under it `- step: NAME`".to_owned();
    let Some(workflow) = present(root, "workflow") else {
        let at = root.entries().iter().find(|entry| entry.key == "workflow").map(|entry| entry.at.clone());
        reader.error("E0104", &at.unwrap_or(first_line(root)), "the playbook has no `workflow`", hint);
        return &[];
    };
    match &workflow.kind {
        Kind::List(steps) if !steps.is_empty() => steps,
        Kind::List(_) => {
            reader.error("E0104", &workflow.at, "`workflow` has no steps", hint);
            &[]
        }
        _ => {
            let message = format!("`workflow` must be a list of steps, not {}", workflow.noun());
            reader.error("E0104", &first_line(workflow), message, hint);
            &[]
        }
    }
}

fn executor(node: &Node, reader: &mut Reader<'_, '_>) -> Executor {
    let mut executor = Executor::default();
    let Some(entries) = reader.map(node, "`executor`") else { return executor };
    reader.known(entries, "`executor`", EXECUTOR, Unknown::Error);
    if let Some(profile) = reader.aliased(node, &["profile", "kind"]).filter(|profile| !profile.is_null()) {
        reader.choice(profile, "profile", &PROFILES);
    }
    if let Some(requires) = present(node, "requires") {
        self::requires(requires, reader);
    }
    let Some(spec) = present(node, "spec") else { return executor };
    let Some(entries) = reader.map(spec, "`executor.spec`") else { return executor };
    reader.known(entries, "`executor.spec`", EXECUTOR_SPEC, Unknown::Error);
    executor.entry_step = present(spec, "entry_step").and_then(|node| reader.name(node, "`entry_step`"));
    executor.final_step = present(spec, "final_step").and_then(|node| reader.name(node, "`final_step`"));
    executor.no_next_is_error = present(spec, "no_next_is_error")
        .and_then(|node| reader.boolean(node, "`no_next_is_error`"))
        .unwrap_or_default();
    ends(spec, &mut executor, reader);
    executor.templates = templates(spec, reader);
    if let Some(policy) = present(spec, "policy") {
        policies(policy, &mut executor, reader);
    }
    executor
}

fn requires(node: &Node, reader: &mut Reader<'_, '_>) {
    let Some(entries) = reader.map(node, "`requires`") else { return };
    reader.known(entries, "`requires`", REQUIRES, Unknown::Warning);
    let tools = present(node, "tools").and_then(|tools| reader.list(tools, "`tools`")).unwrap_or_default();
    for tool in tools {
        tool::known_kind(tool, reader);
    }
}

fn ends(spec: &Node, executor: &mut Executor, reader: &mut Reader<'_, '_>) {
    let failure = present(spec, "failure").and_then(|node| reader.choice(node, "failure policy", &FAILURES));
    (executor.failure, executor.end) = failure.unwrap_or(FAILURES[0].1);
    let last = present(spec, "final_failure")
        .and_then(|node| reader.choice(node, "policy of the final step", &FINAL_FAILURES));
    executor.final_failure = last.unwrap_or_default();
    let pending = present(spec, "pending_gates")
        .and_then(|node| reader.choice(node, "policy of gates", &PENDING_GATES));
    executor.complete_with_pending_gates = pending.unwrap_or_default();
}

/// Reads whether templates are text of programs. A caller who starts the playbook then chooses the program, so the
/// author is warned and only editors may start it.
fn templates(spec: &Node, reader: &mut Reader<'_, '_>) -> Templates {
    let Some(node) = present(spec, "templates") else { return Templates::default() };
    let templates = reader.choice(node, "meaning of templates", &TEMPLATES).unwrap_or_default();
    if templates == Templates::Text {
        let message = "templates are a part of the programs: their values run as code";
        let hint =
            "only callers who may edit definitions can start it; omit `templates` to pass values as data";
        reader.error("W0249", &node.at, message, hint.to_owned());
    }
    templates
}

/// Bounds of the size at which values are stored apart: below it every value would be a file, above it a journal is
/// slow to read.
const INLINE_BYTES: std::ops::RangeInclusive<u32> = 1_024..=1_048_576;

fn policies(policy: &Node, executor: &mut Executor, reader: &mut Reader<'_, '_>) {
    let Some(entries) = reader.map(policy, "`executor.spec.policy`") else { return };
    reader.known(entries, "`executor.spec.policy`", EXECUTOR_POLICY, Unknown::Warning);
    executor.timeout_ms = default_timeout(policy, reader);
    executor.inline_bytes = inline_bytes(policy, reader);
}

fn inline_bytes(policy: &Node, reader: &mut Reader<'_, '_>) -> Option<usize> {
    let results = present(policy, "results")?;
    let entries = reader.map(results, "`executor.spec.policy.results`")?;
    reader.known(entries, "`executor.spec.policy.results`", RESULTS, Unknown::Warning);
    inline_max_bytes(results, reader)
}

fn inline_max_bytes(results: &Node, reader: &mut Reader<'_, '_>) -> Option<usize> {
    let bytes = present(results, "inline_max_bytes")?;
    let bytes = reader.whole(bytes, "`inline_max_bytes`", INLINE_BYTES)?;
    usize::try_from(bytes).ok()
}

fn default_timeout(policy: &Node, reader: &mut Reader<'_, '_>) -> Option<u64> {
    let defaults = present(policy, "defaults")?;
    let entries = reader.map(defaults, "`executor.spec.policy.defaults`")?;
    reader.known(entries, "`executor.spec.policy.defaults`", DEFAULTS, Unknown::Warning);
    let timeout = reader.aliased(defaults, &["timeout_s", "timeout"])?;
    reader.duration_ms(timeout, "the default timeout")
}
