//! Playbooks that an earlier release compiled: there values were parts of the programs. They are compiled again when they
//! start; executions that run already keep their Net.

use serde_json::Value;
use windlass_dialects::{Dialect, compile};
use windlass_kernel::Net;
use windlass_kernel::net::{NetSpec, Work};
use windlass_store::StoredDefinition;

/// Fields of tools that are programs.
const PROGRAMS: [(&str, &[&str]); 2] = [("shell", &["command", "cmds"]), ("python", &["code", "script"])];

/// Filters that only the present compiler writes into programs.
const BOUND: [&str; 2] = ["| as_python", "| in_python"];

/// The Net to run in place of the stored one, if that may let values into programs. Where the definition does not compile any
/// more, its templates are what they were, and only editors may start it.
#[must_use]
pub fn relower(definition: &StoredDefinition, net: &Net) -> Option<Net> {
    let is_playbook = Dialect::of_name(&definition.dialect) == Some(Dialect::Playbook);
    if !is_playbook || net.policy().editors_only || !net.steps().any(|(_, step)| may_be_older(&step.work)) {
        return None;
    }
    match compile(&definition.source).net {
        Some(newer) => Some(newer).filter(|newer| newer.digest() != net.digest()),
        None => for_editors(net.spec().clone()),
    }
}

fn may_be_older(work: &Work) -> bool {
    let Work::Task { spec } = work else { return false };
    let tasks = spec["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    tasks.iter().any(|task| {
        let fields =
            PROGRAMS.iter().find(|(kind, _)| task["kind"] == *kind).map_or(&[][..], |(_, fields)| *fields);
        fields.iter().any(|field| has_templates(&task["config"][*field]))
    })
}

fn has_templates(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("{{") && !BOUND.iter().any(|filter| text.contains(filter)),
        Value::Array(items) => items.iter().any(has_templates),
        Value::Object(fields) => fields.values().any(has_templates),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

fn for_editors(mut spec: NetSpec) -> Option<Net> {
    spec.policy.editors_only = true;
    Net::new(spec).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_store::{DefinitionId, Tenant, WorkflowId};

    /// A definition, and a Net of it as an earlier release made it.
    fn stored(command: &str) -> (StoredDefinition, Net) {
        let source = |command: &str| {
            json!({ "metadata": { "name": "p" }, "workflow": [{ "step": "a", "tool": { "kind": "shell", "command": command } }] })
                .to_string()
        };
        let mut spec = compile(&source("true")).net.expect("it compiles").spec().clone();
        if let Work::Task { spec } = &mut spec.steps[0].work {
            let mut older = (**spec).clone();
            older["tasks"][0]["config"]["command"] = json!(command);
            *spec = std::sync::Arc::new(older);
        }
        let net = Net::new(spec).expect("a net");
        let definition = StoredDefinition {
            id: DefinitionId(1),
            workflow: WorkflowId(1),
            tenant: Tenant::default(),
            name: "p".to_owned(),
            version: 1,
            dialect: "playbook".to_owned(),
            source: source(command),
            workload: json!({}),
            net: net.digest(),
        };
        (definition, net)
    }

    #[test]
    fn older_nets_are_compiled_again() {
        let (definition, net) = stored("echo {{ workload.x }}");
        let newer = relower(&definition, &net).expect("another net");
        assert!(!may_be_older(&newer.spec().steps[0].work) && !newer.policy().editors_only);
        assert!(relower(&definition, &newer).is_none());
        let (definition, net) = stored("echo plain");
        assert!(relower(&definition, &net).is_none());
    }

    #[test]
    fn what_does_not_compile_any_more_is_for_editors() {
        let (definition, net) = stored("{{ workload.x }}");
        assert!(relower(&definition, &net).expect("another net").policy().editors_only);
    }
}
