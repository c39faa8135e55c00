//! The two questions of every test: the diagnostics of a text, and the net it becomes.

use crate::schema;
use windlass_dialects::{Compiled, Diagnostic, compile};
use windlass_kernel::net::{Finish, LoopKind, Policy, RouterMode, Step, Work};
use windlass_kernel::{Net, StepId};

/// A playbook with this workflow, which begins in line 3.
pub fn playbook(workflow: &str) -> String {
    format!("metadata: {{name: t}}\nworkflow:\n{workflow}")
}

/// The diagnostics of a text, a line each: code, place, path, message, hint.
pub fn check(text: &str, expected: &[&str]) {
    let compiled = compile(text);
    let lines: Vec<String> = compiled.diagnostics.iter().map(line).collect();
    assert_eq!(lines, expected, "\n{text}");
    assert_eq!(compiled.net.is_some(), compiled.errors().next().is_none(), "a Net iff no error:\n{text}");
    if compiled.net.is_some() {
        schema::accepts(text);
    }
}

fn line(diagnostic: &Diagnostic) -> String {
    let hint = diagnostic.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!(
        "{} {}:{} {}: {}{hint}",
        diagnostic.code, diagnostic.line, diagnostic.column, diagnostic.path, diagnostic.message
    )
}

/// The Net of a text without errors, a line for the policy where it is special and one for each step.
pub fn lowers(text: &str, expected: &[&str]) {
    let net = net(text);
    let steps = net.steps().map(|(_, step)| summary(&net, step));
    let lines: Vec<String> = policy(&net, net.policy()).into_iter().chain(steps).collect();
    assert_eq!(lines, expected, "\n{text}");
}

/// Compiles a definition. Every text that compiles is valid under the schema, too.
pub fn net(text: &str) -> Net {
    let Compiled { net, diagnostics, .. } = compile(text);
    if net.is_some() {
        schema::accepts(text);
    }
    net.unwrap_or_else(|| panic!("{:?}\n{text}", diagnostics.iter().map(line).collect::<Vec<_>>()))
}

fn policy(net: &Net, policy: &Policy) -> Option<String> {
    let name = |id: StepId| &net.step(id).name;
    let mut lines = Vec::new();
    lines.extend(policy.entry.filter(|id| *id != StepId(0)).map(|id| format!("from {}", name(id))));
    if let Finish::Step(id) = policy.finish {
        lines.push(format!("final {} {:?}", name(id), policy.final_failure));
    }
    let plain = Policy::default();
    if (policy.failure, policy.end) != (plain.failure, plain.end) {
        lines.push(format!("{:?} {:?}", policy.failure, policy.end));
    }
    lines.extend(policy.no_next_is_error.then(|| "no next is an error".to_owned()));
    lines.extend(policy.complete_with_pending_gates.then(|| "gates do not wait".to_owned()));
    (!lines.is_empty()).then(|| lines.join(", "))
}

fn summary(net: &Net, step: &Step) -> String {
    let mut lines = format!("{}: {}", step.name, work(&step.work));
    for id in &step.reads {
        lines += &format!(" reads {}", net.step(*id).name);
    }
    if let Some(admit) = &step.admit {
        let rule = |when: Option<&str>, allow| format!("{}={allow}", when.unwrap_or("else"));
        let rules: Vec<String> =
            admit.rules.iter().map(|r| rule(r.when.as_ref().map(|when| when.source()), r.allow)).collect();
        lines += &format!(" admit [{}] {:?}", rules.join(", "), admit.on_deny);
    }
    if let Some(repeat) = &step.repeat
        && let LoopKind::ForEach { items } = &repeat.kind
    {
        lines += &format!(" for {} in {} by {}", repeat.iterator, items.source(), repeat.cap);
    }
    lines += &step.timeout_ms.map(|ms| format!(" within {ms} ms")).unwrap_or_default();
    for arc in &step.router.arcs {
        let arrow = if step.router.mode == RouterMode::Exclusive { "->" } else { "=>" };
        lines += &format!(" {arrow} {}", net.step(arc.to).name);
        lines += &arc.guard.as_ref().map(|guard| format!(" if {}", guard.source())).unwrap_or_default();
        lines += &arc.args.as_ref().map(|args| format!(" with {}", args.source())).unwrap_or_default();
    }
    lines
}

fn work(work: &Work) -> String {
    match work {
        Work::Pure { patch, .. } if patch.is_empty() => "pure".into(),
        Work::Pure { patch, .. } => {
            let sets: Vec<String> = patch.iter().map(|e| format!("{}={}", e.key, e.value.source())).collect();
            format!("pure {}", sets.join(" "))
        }
        Work::Task { spec } => spec.to_string(),
        Work::Child { definition, inputs } => format!("child {} {}", definition.source(), inputs.source()),
        other => format!("{other:?}"),
    }
}
