//! The judge of a saga: order, number and result of its hooks.

use crate::invariants::Broken;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An action of the definition, as its author wrote it.
#[derive(Debug, Clone)]
pub struct SagaAction {
    pub name: String,
    pub has_hook: bool,
    pub side_effecting: bool,
}

/// Judges an execution that has ended by its public events, in order, and the summary of its compensation.
///
/// Rules: nothing is dispatched after the outcome was decided; hooks wait for actions in flight, run one at a time, newest
/// completion first, and once; the summary has exactly one entry for every completed action with a side effect.
pub fn judge(actions: &[SagaAction], events: &[Value], summary: &Value) -> Result<(), Broken> {
    let actions = actions.iter().map(|action| (action.name.as_str(), action)).collect();
    let mut saga = Saga { actions, ..Saga::default() };
    events.iter().try_for_each(|event| saga.see(event))?;
    if !saga.has_ended {
        return Ok(());
    }
    saga.compare(summary)
}

#[derive(Default)]
struct Saga<'a> {
    actions: BTreeMap<&'a str, &'a SagaAction>,
    /// Actions that were dispatched or wait, and have not ended.
    open: BTreeSet<&'a str>,
    /// Entries in the order of their completion.
    completed: Vec<&'a str>,
    /// The outcome is decided; whether it is compensated.
    decided: Option<bool>,
    /// The action whose hook runs.
    hook: Option<&'a str>,
    /// Results of hooks.
    results: BTreeMap<&'a str, &'static str>,
    has_ended: bool,
}

impl<'a> Saga<'a> {
    fn see(&mut self, event: &'a Value) -> Result<(), Broken> {
        let name = event["event"].as_str().unwrap_or_default();
        let step = event["step"].as_str().unwrap_or_default();
        if self.has_ended {
            return broken("saga end", format!("{name} of {step} after the end"));
        }
        match name {
            "execution.draining" => {
                let is_undone = matches!(event["data"]["outcome"].as_str(), Some("failed" | "cancelled"));
                self.decided = Some(is_undone && event["data"]["compensates"] == true);
            }
            "step.offered" | "step.awaiting_manual" if self.hook != Some(step) => {
                if name == "step.offered" && self.decided.is_some() {
                    return broken("saga fail-fast", format!("{step} begins after the outcome was decided"));
                }
                self.open.insert(step);
            }
            "step.done" => self.complete(step)?,
            "step.failed" | "step.cancelled" | "step.skipped" if self.hook == Some(step) => {
                self.end_hook(step, "Cancelled")?;
            }
            "step.failed" | "step.cancelled" | "step.skipped" => drop(self.open.remove(step)),
            "compensation.started" => self.begin_hook(step)?,
            "compensation.done" => self.end_hook(step, "Succeeded")?,
            "compensation.failed" => self.end_hook(step, "Failed")?,
            "compensation.not_run" => self.give_up(event["data"]["count"].as_u64())?,
            "execution.completed" | "execution.partial" | "execution.failed" | "execution.cancelled" => {
                self.end()?;
            }
            _ => {}
        }
        Ok(())
    }

    fn complete(&mut self, step: &'a str) -> Result<(), Broken> {
        if self.completed.contains(&step) {
            return broken("saga once", format!("{step} completes twice"));
        }
        self.open.remove(step);
        self.completed.push(step);
        Ok(())
    }

    fn begin_hook(&mut self, step: &'a str) -> Result<(), Broken> {
        if self.decided != Some(true) {
            return broken(
                "saga trigger",
                format!("{step} is undone, and the outcome asks for no compensation"),
            );
        }
        if let Some(action) = self.open.first() {
            return broken("saga wait", format!("{step} is undone while {action} is open"));
        }
        if let Some(other) = self.hook {
            return broken("saga serial", format!("{step} is undone while the hook of {other} runs"));
        }
        match self.owed().first() {
            Some(next) if *next == step => {}
            next => return broken("saga order", format!("{step} is undone, and next is {next:?}")),
        }
        self.hook = Some(step);
        Ok(())
    }

    fn end_hook(&mut self, step: &'a str, result: &'static str) -> Result<(), Broken> {
        if self.hook.take() != Some(step) || self.results.insert(step, result).is_some() {
            return broken("saga once", format!("a hook of {step} ends that does not run"));
        }
        Ok(())
    }

    fn give_up(&mut self, count: Option<u64>) -> Result<(), Broken> {
        let owed = self.owed();
        if count != Some(owed.len() as u64) {
            return broken("saga not run", format!("{count:?} hooks are given up of {owed:?}"));
        }
        self.results.extend(owed.into_iter().map(|step| (step, "NotRun")));
        Ok(())
    }

    /// Completed actions whose hooks have not run, newest completion first.
    fn owed(&self) -> Vec<&'a str> {
        let has_hook = |step: &&str| self.actions.get(step).is_some_and(|action| action.has_hook);
        let is_open = |step: &&str| !self.results.contains_key(step) && self.hook != Some(*step);
        self.completed.iter().rev().copied().filter(has_hook).filter(is_open).collect()
    }

    fn end(&mut self) -> Result<(), Broken> {
        self.has_ended = true;
        match (self.decided, self.hook, self.owed().first()) {
            (_, Some(step), _) => broken("saga end", format!("the end comes while the hook of {step} runs")),
            (Some(true), None, Some(step)) => broken("saga end", format!("{step} is never undone")),
            _ => Ok(()),
        }
    }

    /// Entries that the summary must have, in their order.
    fn expected(&self) -> Vec<(&'a str, &'static str)> {
        if self.decided != Some(true) {
            return Vec::new();
        }
        let result = |step: &'a str| match self.actions.get(step)? {
            action if action.has_hook => self.results.get(step).map(|result| (step, *result)),
            action => action.side_effecting.then_some((step, "NonCompensable")),
        };
        self.completed.iter().rev().filter_map(|step| result(step)).collect()
    }

    fn compare(&self, summary: &Value) -> Result<(), Broken> {
        let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
        let entries = summary["entries"].as_array().into_iter().flatten();
        let reported: Vec<(String, String)> =
            entries.map(|entry| (text(&entry["actionId"]), text(&entry["outcome"]))).collect();
        let expected = self.expected();
        let is_same = |((step, result), entry): (&(&str, &str), &(String, String))| {
            *step == entry.0 && *result == entry.1
        };
        if reported.len() != expected.len() || !expected.iter().zip(&reported).all(is_same) {
            return broken("saga summary", format!("entries are {reported:?}, expected {expected:?}"));
        }
        let count = |results: &[&str]| expected.iter().filter(|(_, result)| results.contains(result)).count();
        let counts = [
            ("attempted", count(&["Succeeded", "Failed", "Cancelled"])),
            ("succeeded", count(&["Succeeded"])),
            ("failed", count(&["Failed"])),
            ("nonCompensable", count(&["NonCompensable"])),
        ];
        match counts.into_iter().find(|(name, count)| summary[*name] != *count) {
            Some((name, count)) => {
                broken("saga summary", format!("`{name}` is {}, expected {count}", summary[name]))
            }
            None => Ok(()),
        }
    }
}

fn broken(rule: &str, what: String) -> Result<(), Broken> {
    Err(Broken::new(rule, what))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// `a` and `b` have hooks, `c` has none. A line is `event step`; `draining` decides a failure.
    fn check(lines: &str, entries: &[(&str, &str)]) -> Result<(), String> {
        let action =
            |name: &str, has_hook| SagaAction { name: name.to_owned(), has_hook, side_effecting: true };
        let actions = [action("a", true), action("b", true), action("c", false), action("d", true)];
        let events: Vec<Value> = lines.lines().map(|line| event(line.trim())).collect();
        let entry = |(action, outcome): &(&str, &str)| json!({ "actionId": action, "outcome": outcome });
        let count = |outcomes: &[&str]| entries.iter().filter(|(_, found)| outcomes.contains(found)).count();
        let summary = json!({
            "attempted": count(&["Succeeded", "Failed", "Cancelled"]),
            "succeeded": count(&["Succeeded"]),
            "failed": count(&["Failed"]),
            "nonCompensable": count(&["NonCompensable"]),
            "entries": entries.iter().map(entry).collect::<Vec<_>>(),
        });
        judge(&actions, &events, &summary).map_err(|broken| broken.rule)
    }

    fn event(line: &str) -> Value {
        let (name, step) = line.split_once(' ').unwrap_or((line, ""));
        let data = match name {
            "execution.draining" => json!({ "outcome": "failed", "compensates": true }),
            "compensation.not_run" => json!({ "count": step.parse::<u64>().unwrap_or_default() }),
            _ => json!({}),
        };
        json!({ "event": name, "step": step, "data": data })
    }

    const BEGIN: &str =
        "step.offered a\nstep.done a\nstep.offered b\nstep.offered c\nstep.done c\nstep.offered d";
    const ENTRIES: [(&str, &str); 3] = [("b", "Failed"), ("c", "NonCompensable"), ("a", "Succeeded")];

    fn journal_of(rest: &str) -> String {
        format!("{BEGIN}\n{}", rest.replace("; ", "\n"))
    }

    /// `b` completes after `d` has failed.
    const GOOD: &str = "step.failed d; execution.draining; step.done b; compensation.started b; step.offered b; \
                        step.retry_scheduled b; step.offered b; compensation.failed b; compensation.started a; \
                        step.offered a; compensation.done a; execution.failed";

    #[test]
    fn a_saga_that_is_undone_newest_first_is_accepted() {
        assert_eq!(check(&journal_of(GOOD), &ENTRIES), Ok(()));
    }

    #[test]
    fn a_forced_cancel_stops_one_hook_and_skips_the_others() {
        let rest = "step.failed d; execution.draining; step.done b; compensation.started b; step.offered b; \
                    step.cancelled b; compensation.not_run 1; execution.failed";
        let entries = [("b", "Cancelled"), ("c", "NonCompensable"), ("a", "NotRun")];
        assert_eq!(check(&journal_of(rest), &entries), Ok(()));
    }

    #[test]
    fn every_broken_rule_is_named() {
        let broken = |from: &str, to: &str| check(&journal_of(&GOOD.replacen(from, to, 1)), &ENTRIES);
        let rule = |name: &str| Err(name.to_owned());
        assert_eq!(broken("compensation.started b", "compensation.started a"), rule("saga order"));
        assert_eq!(broken("step.done b; ", ""), rule("saga wait"));
        assert_eq!(broken("step.done b; ", "step.offered a; "), rule("saga fail-fast"));
        assert_eq!(broken("compensation.failed b; ", ""), rule("saga serial"));
        assert_eq!(broken("execution.draining; ", ""), rule("saga trigger"));
        let twice = "compensation.done a; compensation.started a";
        assert_eq!(broken("compensation.done a", twice), rule("saga order"));
        assert_eq!(
            broken("compensation.done a", "compensation.done a; compensation.done a"),
            rule("saga once")
        );
        let early = "compensation.started a; step.offered a; compensation.done a; execution.failed";
        assert_eq!(broken(early, "execution.failed"), rule("saga end"));
        assert_eq!(broken("execution.failed", "execution.failed; step.offered a"), rule("saga end"));
    }

    #[test]
    fn the_summary_has_every_completed_action_once() {
        let mut entries = ENTRIES.to_vec();
        entries.remove(1);
        assert_eq!(check(&journal_of(GOOD), &entries), Err("saga summary".to_owned()), "c is missing");
        entries.insert(1, ("c", "Succeeded"));
        assert_eq!(check(&journal_of(GOOD), &entries), Err("saga summary".to_owned()), "c has no hook");
        entries = ENTRIES.to_vec();
        entries.push(("a", "Succeeded"));
        assert_eq!(check(&journal_of(GOOD), &entries), Err("saga summary".to_owned()), "a is there twice");
    }
}
