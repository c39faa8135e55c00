//! One step: admission, loop, timeout, context patches.

use super::{inline_max_bytes, next, present, required, tool, writes};
use crate::document::{Kind, Node};
use crate::playbook::language::{
    ADMIT, ADMIT_THEN, IN_FLIGHT_MAX, JOINS, LIFECYCLE, LOOP, LOOP_MODES, LOOP_POLICY, LOOP_SPEC, ON_DENY,
    POLICY_MODES, RESULT, STEP, STEP_POLICY, STEP_SPEC, Templates,
};
use crate::playbook::model::{StepDef, Tree};
use crate::read::{Reader, Unknown, first_line};
use std::ops::Range;
use windlass_expr::Template;
use windlass_kernel::net::{Admit, AdmitRule, Body, LoopKind, LoopSpec};

/// Keys that authors bring from elsewhere, and where their meaning is found here.
const ELSEWHERE: [(&str, &str); 6] = [
    ("when", "use `spec.policy.admit.rules` to hold the step back, or `when` on the arc that leads to it"),
    ("case", "use `next.arcs` with a `when` on each arc"),
    ("type", "use `tool: {kind: ...}`"),
    ("retry", "use a rule of the task: `spec.policy.rules` with `then: {do: retry, attempts: 3}`"),
    ("vars", "use `set_ctx`"),
    ("sink", "write the result with a task of its own, after the one that makes it"),
];

const SPEC_ELSEWHERE: [(&str, &str); 1] = [("next_mode", "use `next: {spec: {mode: ...}}`")];

/// A parallel loop without a cap.
const IN_FLIGHT: u32 = 10;

pub(super) fn step(node: &Node, templates: Templates, reader: &mut Reader<'_, '_>) -> Option<StepDef> {
    let entries = reader.map(node, "a step")?;
    let known = reader.elsewhere(entries, "a step", &ELSEWHERE);
    reader.known(known, "a step", STEP, Unknown::Error);
    let name = required(node, "step", "a step", reader)?;
    let what = format!("step `{}`", name.text);
    let next = present(node, "next");
    let (mode, arcs) = next.map(|next| next::router(next, &what, reader)).unwrap_or_default();
    let tool = present(node, "tool");
    let tasks = tool.map(|tool| tool::pipeline(tool, &name, templates, reader)).unwrap_or_default();
    let args = reader.aliased(node, &["args", "input"]).filter(|args| !args.is_null());
    let set_ctx = writes::of_step(node, reader);
    if present(node, "tool").is_none() && next.is_none() && set_ctx.fields.is_empty() {
        let hint = "add `tool` or `next`; a branch ends at any step without `next`".to_owned();
        reader.error("W0205", &name.at, format!("{what} does nothing"), hint);
    }
    let StepSpec { admit, timeout_ms, join_all } =
        present(node, "spec").map(|spec| self::spec(spec, reader)).unwrap_or_default();
    let repeat = present(node, "loop").and_then(|repeat| self::repeat(repeat, &what, reader));
    let args = args.map_or_else(Tree::default, |args| reader.tree(args, "`args`"));
    let inline_bytes = present(node, "result").and_then(|result| self::result(result, reader));
    Some(StepDef {
        name,
        timeout_ms,
        admit,
        join_all,
        args,
        repeat,
        tasks,
        set_ctx,
        inline_bytes,
        mode,
        arcs,
    })
}

/// Reads the policy of a result: the length in bytes from which it is stored outside of the journal.
pub(super) fn result(node: &Node, reader: &mut Reader<'_, '_>) -> Option<usize> {
    let entries = reader.map(node, "`result`")?;
    reader.known(entries, "`result`", RESULT, Unknown::Warning);
    inline_max_bytes(node, reader)
}

#[derive(Default)]
struct StepSpec {
    admit: Option<Admit>,
    timeout_ms: Option<u64>,
    join_all: Option<Range<usize>>,
}

fn spec(node: &Node, reader: &mut Reader<'_, '_>) -> StepSpec {
    let mut spec = StepSpec::default();
    let Some(entries) = reader.map(node, "`spec` of a step") else { return spec };
    let known = reader.elsewhere(entries, "`spec` of a step", &SPEC_ELSEWHERE);
    reader.known(known, "`spec` of a step", STEP_SPEC, Unknown::Error);
    spec.timeout_ms = present(node, "timeout").and_then(|node| reader.duration_ms(node, "`timeout`"));
    spec.join_all = present(node, "join")
        .filter(|node| reader.choice(node, "join", &JOINS) == Some(true))
        .map(first_line);
    let Some(policy) = present(node, "policy") else { return spec };
    let Some(entries) = reader.map(policy, "`policy` of a step") else { return spec };
    reader.known(entries, "`policy` of a step", STEP_POLICY, Unknown::Error);
    let lifecycle_ms = present(policy, "lifecycle").and_then(|node| lifecycle(node, reader));
    spec.timeout_ms = spec.timeout_ms.or(lifecycle_ms);
    spec.admit = present(policy, "admit").and_then(|node| admit(node, reader));
    spec
}

fn lifecycle(node: &Node, reader: &mut Reader<'_, '_>) -> Option<u64> {
    let entries = reader.map(node, "`lifecycle`")?;
    reader.known(entries, "`lifecycle`", LIFECYCLE, Unknown::Error);
    present(node, "timeout_s").and_then(|node| reader.duration_ms(node, "`timeout_s`"))
}

fn admit(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Admit> {
    let entries = reader.map(node, "`admit`")?;
    reader.known(entries, "`admit`", ADMIT, Unknown::Error);
    if let Some(mode) = present(node, "mode") {
        reader.choice(mode, "admission mode", &POLICY_MODES);
    }
    let Some(rules) = node.get("rules") else {
        reader.error("E0109", &first_line(node), "`admit` has no `rules`", "add `rules: [...]`".to_owned());
        return None;
    };
    let rules = reader.list(rules, "`rules` of `admit`")?;
    let on_deny = present(node, "on_deny").and_then(|node| reader.choice(node, "`on_deny`", &ON_DENY));
    let deadline_ms = present(node, "deadline").and_then(|node| reader.duration_ms(node, "`deadline`"));
    let parsed: Vec<AdmitRule> = rules.iter().filter_map(|rule| admit_rule(rule, reader)).collect();
    super::rule::else_is_last(rules, reader);
    Some(Admit { rules: parsed, on_deny: on_deny.unwrap_or_default(), deadline_ms })
}

fn admit_rule(node: &Node, reader: &mut Reader<'_, '_>) -> Option<AdmitRule> {
    let (when, then) = super::rule::parts(node, "then: {allow: true}", reader)?;
    let entries = reader.map(then, "`then` of an admission rule")?;
    reader.known(entries, "`then` of an admission rule", ADMIT_THEN, Unknown::Error);
    let Some(allow) = then.get("allow") else {
        let hint = "write `then: {allow: true}` or `then: {allow: false}`".to_owned();
        reader.error("E0109", &first_line(then), "an admission rule has no `allow`", hint);
        return None;
    };
    let allow = reader.boolean(allow, "`allow`")?;
    let when = match when {
        Some(when) => Some(reader.condition(when, "`when` of an admission rule")?),
        None => None,
    };
    Some(AdmitRule { when, allow })
}

fn repeat(node: &Node, what: &str, reader: &mut Reader<'_, '_>) -> Option<LoopSpec> {
    let entries = reader.map(node, "`loop`")?;
    reader.known(entries, "`loop`", LOOP, Unknown::Error);
    for key in ["in", "iterator"].iter().filter(|key| node.get(key).is_none()) {
        let hint = "write `loop: {in: \"{{ workload.items }}\", iterator: item}`".to_owned();
        reader.error("E0115", &first_line(node), format!("the loop of {what} has no `{key}`"), hint);
    }
    let cap = present(node, "spec").map_or(Some(1), |spec| cap(spec, reader));
    let items = node.get("in").and_then(|node| items(node, reader));
    let iterator = node.get("iterator").and_then(|node| reader.text(node, "`iterator`"))?.to_owned();
    Some(LoopSpec {
        kind: LoopKind::ForEach { items: items? },
        iterator,
        cap: cap?,
        body: Body::Own,
        break_when: None,
    })
}

fn items(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Template> {
    match &node.kind {
        Kind::List(_) => reader.template(node),
        Kind::Text(text) if text.contains("{{") || text.contains("{%") => reader.template(node),
        _ => {
            let hint = "write a list, or `\"{{ workload.items }}\"` for one that is known later".to_owned();
            reader.error(
                "E0101",
                &first_line(node),
                format!("a loop cannot iterate over {}", node.noun()),
                hint,
            );
            None
        }
    }
}

fn cap(node: &Node, reader: &mut Reader<'_, '_>) -> Option<u32> {
    let entries = reader.map(node, "`spec` of a loop")?;
    reader.known(entries, "`spec` of a loop", LOOP_SPEC, Unknown::Error);
    if let Some(policy) = present(node, "policy") {
        let entries = reader.map(policy, "`policy` of a loop")?;
        reader.known(entries, "`policy` of a loop", LOOP_POLICY, Unknown::Warning);
    }
    let parallel = match present(node, "mode") {
        Some(mode) => reader.choice(mode, "loop mode", &LOOP_MODES)?,
        None => false,
    };
    let most = match present(node, "max_in_flight") {
        Some(most) => reader.whole(most, "`max_in_flight`", 1..=IN_FLIGHT_MAX)?,
        None => IN_FLIGHT,
    };
    Some(if parallel { most } else { 1 })
}
