//! Replacement of calls of workbook entries by the content of the entries.

use super::model::{Name, Playbook, TaskDef};
use crate::diagnostic::Problems;
use crate::names;
use serde_json::Value;
use std::collections::BTreeMap;
use std::ops::Range;
use windlass_protocol::Task;

pub(super) fn inline(playbook: &mut Playbook, problems: &mut Problems) {
    for (name, entry) in playbook.workbook.iter().filter(|(_, entry)| entry.task.kind == "workbook") {
        let message = format!("workbook entry `{}` calls the workbook", name.text);
        problems.add("E0116", &entry.at, message, Some("call that entry from the step instead".to_owned()));
    }
    let entries: BTreeMap<&str, &TaskDef> =
        playbook.workbook.iter().map(|(Name { text, .. }, entry)| (text.as_str(), entry)).collect();
    let sizes: BTreeMap<&str, usize> = entries.iter().map(|(name, entry)| (*name, size(entry))).collect();
    let mut left = COPIED_MAX;
    for task in playbook.steps.iter_mut().flat_map(|step| &mut step.tasks) {
        if task.task.kind != "workbook" {
            continue;
        }
        let Some(Value::String(name)) = task.task.config.get("name") else { continue };
        match (entries.get(name.as_str()), sizes.get(name.as_str())) {
            (Some(entry), Some(size)) => {
                let Some(rest) = left.checked_sub(*size) else {
                    let message = format!("calls of the workbook copy more than {COPIED_MAX} bytes");
                    let hint = "make its entries smaller, or call them from fewer steps".to_owned();
                    return problems.add("E0002", &task.at, message, Some(hint));
                };
                left = rest;
                replace(task, entry);
            }
            _ => unknown(name, &task.at, &entries, problems),
        }
    }
}

/// Bytes of entries in all calls together: as many as a document may have.
const COPIED_MAX: usize = 4 << 20;

/// Memory of a name that an expression reads, about.
const READ_BYTES: usize = 64;

/// Returns the approximate memory of a copy of an entry.
fn size(entry: &TaskDef) -> usize {
    let config: usize =
        entry.task.config.iter().map(|(key, value)| key.len() + value.to_string().len()).sum();
    let rules = serde_json::to_string(&entry.task.rules).map_or(0, |rules| rules.len());
    config + rules + READ_BYTES * (1 + entry.reads.len() + entry.rule_reads.len())
}

fn unknown(name: &str, at: &Range<usize>, entries: &BTreeMap<&str, &TaskDef>, problems: &mut Problems) {
    let message = format!("the workbook has no entry `{name}`");
    let hint = if problems.is_full() { None } else { names::hint(name, entries.keys().copied()) };
    problems.add("E0116", at, message, hint.or(Some("add it under `workbook`".to_owned())));
}

/// Merges the entry into the caller. The caller's arguments have precedence, key by key; so do its rules and its
/// timeout.
fn replace(caller: &mut TaskDef, entry: &TaskDef) {
    let Task { label, config, rules, on_unmatched, timeout_ms, .. } = caller.task.clone();
    let mut task = Task { label, ..entry.task.clone() };
    let mut args = taken(&mut task.config).unwrap_or_default();
    args.extend(taken(&mut config.clone()).unwrap_or_default());
    if !args.is_empty() {
        task.config.insert("args".into(), Value::Object(args));
    }
    if rules.is_empty() {
        caller.jumps.clone_from(&entry.jumps);
        caller.rule_reads.clone_from(&entry.rule_reads);
    } else {
        (task.rules, task.on_unmatched) = (rules, on_unmatched);
    }
    task.timeout_ms = timeout_ms.or(task.timeout_ms);
    caller.task = task;
    caller.code_at.clone_from(&entry.code_at);
    caller.reads.extend(entry.reads.iter().cloned());
}

fn taken(config: &mut serde_json::Map<String, Value>) -> Option<serde_json::Map<String, Value>> {
    let args = config.shift_remove("args").or_else(|| config.shift_remove("input"))?;
    match args {
        Value::Object(args) => Some(args),
        _ => None,
    }
}
