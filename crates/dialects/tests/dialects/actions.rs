//! Workflows of actions: what documents become, the schema and the page of the manual.

use crate::compiled::net;
use serde_json::{Value, json};
use windlass_dialects::{Dialect, SodConstraint, compile};
use windlass_kernel::net::{
    Backoff, Completion, FailureMode, Join, Recovery, Retry, RetryOn, Step, UnknownErrors, Work,
};
use windlass_kernel::{Net, StepId};

const PAGE: &str = include_str!("../../../../docs/actions.md");

fn document(head: &str, actions: &str) -> String {
    format!("schemaVersion: 1\nworkflowId: w\nname: w\n{head}actions:\n{actions}")
}

fn step<'n>(net: &'n Net, name: &str) -> &'n Step {
    net.step(net.find(name).unwrap_or_else(|| panic!("no step {name}")))
}

fn usual(attempts_max: u32, max_ms: u64) -> Retry {
    Retry {
        attempts_max,
        backoff: Backoff::Exponential,
        initial_ms: 1_000,
        multiplier: 2.0,
        max_ms,
        jitter: 0.0,
        on: RetryOn::Default,
        unknown: UnknownErrors::Retry,
        resumes: false,
    }
}

#[test]
fn an_action_without_settings_has_the_defaults_of_the_document() {
    let text = document(
        "",
        "- {actionId: a, order: 1, operation: 'invoice:write', compensation: {compensationOperation: 'invoice:reverse'}}\n- {actionId: b, order: 2, operation: 'invoice:read'}",
    );
    let net = net(&text);
    let policy = net.policy();
    assert_eq!(
        (policy.join, policy.failure, policy.recovery, policy.compensate, policy.timeout_ms),
        (Join::All, FailureMode::FailFast, Recovery::FailAttempt, true, None)
    );
    let a = step(&net, "a");
    assert_eq!(
        (&a.retry, a.timeout_ms, a.order, a.side_effecting),
        (&usual(3, 30_000), Some(300_000), 1, true)
    );
    assert_eq!((&a.completion, a.tier.as_deref()), (&Completion::Auto, None));
    let hook = a.compensation.as_ref().expect("a hook");
    assert_eq!((&hook.retry, hook.timeout_ms), (&usual(2, 10_000), Some(300_000)));
    assert!(!step(&net, "b").side_effecting, "it only reads");
}

#[test]
fn an_operation_becomes_one_task_whose_arguments_are_the_input() {
    let net = net(&document(
        "",
        "- {actionId: a, order: 1, operation: 'invoice:write', input: {n: '{{ inputs.n }}'}}",
    ));
    let Work::Task { spec } = &step(&net, "a").work else { panic!("no task") };
    let expected = json!({
        "args": { "n": "{{ inputs.n }}" },
        "tasks": [{ "label": "invoice:write", "kind": "invoice:write", "on_unmatched": "by_outcome" }],
        "outputs_root": "actions",
        "idempotency": "a",
    });
    assert_eq!(**spec, expected);
}

fn arcs(net: &Net) -> Vec<String> {
    let arcs = net.steps().flat_map(|(_, from)| {
        from.router.arcs.iter().map(move |arc| format!("{} -> {}", from.name, net.step(arc.to).name))
    });
    arcs.collect()
}

#[test]
fn dependencies_on_any_action_make_a_graph_and_approvals_precede_their_actions() {
    let three = |depends: [&str; 3]| {
        let action = |(id, (order, depends)): (&str, (usize, &&str))| {
            format!("- {{actionId: {id}, order: {order}, operation: 'x:y'{depends}}}\n")
        };
        let actions: String = ["a", "b", "c"].into_iter().zip((1..).zip(&depends)).map(action).collect();
        arcs(&net(&document("", &actions)))
    };
    assert_eq!(three(["", "", ""]), ["a -> b", "b -> c"]);
    assert_eq!(three(["", "", ", dependsOn: []"]), [""; 0], "all start at once");
    assert_eq!(three([", dependsOn: [b]", "", ", dependsOn: [b, a]"]), ["a -> c", "b -> a", "b -> c"]);
    assert_eq!(
        three(["", ", executionTierOverride: HumanApprove", ""]),
        ["a -> b:approval", "b -> c", "b:approval -> b"]
    );
    let net = net(&document("executionTier: ManualOnly\n", "- {actionId: a, order: 1, operation: 'x:y'}"));
    assert_eq!(net.entries(), [StepId(1)]);
    assert_eq!(step(&net, "a:approval").approves, Some(StepId(0)));
    assert_eq!(step(&net, "a").tier.as_deref(), Some("ManualOnly"));
}

#[test]
fn manual_completion_hooks_and_policies_are_kept() {
    let text = document(
        "policy: {sodConstraints: [{kind: MakerChecker}, {kind: DistinctApprovers, minimumApprovers: 2}, {kind: IncompatibleDuties, dutyKeys: ['x:y', 'x:z']}, {kind: SpecialistApproval, requiredRoles: [auditor], rationale: law}]}\ntimeoutMs: 5000\n",
        "- {actionId: a, order: 1, operation: 'x:y', completionMode: manual, completionDeadlineMs: 10, sideEffecting: true,
   compensation: {compensationOperation: 'x:z', compensationInput: {a: '{{ actions.a.output }}'}, compensationInputSchema: {type: object}, timeoutMs: 7, retryPolicy: {maxAttempts: 4}}}",
    );
    let compiled = compile(&text);
    let net = compiled.net.expect("a net");
    let a = step(&net, "a");
    assert_eq!(a.completion, Completion::Manual { deadline_ms: Some(10) });
    assert_eq!(net.policy().timeout_ms, Some(5_000));
    let hook = a.compensation.as_ref().expect("a hook");
    assert_eq!((hook.timeout_ms, hook.retry.attempts_max, hook.retry.max_ms), (Some(7), 4, 10_000));
    let Work::Task { spec } = &hook.work else { panic!("no task") };
    assert_eq!(
        (&spec["args_schema"], &spec["tasks"][0]["kind"]),
        (&json!({ "type": "object" }), &json!("x:z"))
    );
    assert_eq!(a.reads, [StepId(0)], "a hook reads the output of its own action");
    assert_eq!(
        compiled.manifest.sod_constraints,
        [
            SodConstraint::MakerChecker,
            SodConstraint::DistinctApprovers { minimum_approvers: 2 },
            SodConstraint::IncompatibleDuties { duty_keys: vec!["x:y".into(), "x:z".into()] },
            SodConstraint::SpecialistApproval {
                required_roles: vec!["auditor".into()],
                rationale: Some("law".into())
            },
        ]
    );
    let stored = serde_json::to_value(&compiled.manifest).expect("JSON");
    assert_eq!(stored["sod_constraints"][1], json!({ "kind": "DistinctApprovers", "minimumApprovers": 2 }));
}

#[test]
fn names_and_defaults_of_the_head_are_kept() {
    let text = document(
        "inputs: {type: object, properties: {n: {default: 3}, m: {}}}\nactive: false\n",
        "- {actionId: a, order: 1, portFamily: CrmSales, capability: 'party:read'}",
    );
    let compiled = compile(&text);
    assert_eq!((compiled.name.as_deref(), compiled.path.as_deref()), (Some("w"), Some("w")));
    assert_eq!((compiled.status, &compiled.workload), (Some("paused"), &json!({ "n": 3 })));
    let second = text.replace("schemaVersion: 1", "schemaVersion: 2");
    assert!(compile(&second).is_valid(), "a capability is enough in both versions");
}

#[test]
fn every_key_of_the_schema_is_on_the_page() {
    let schema = Dialect::of_name("actions").and_then(Dialect::schema).expect("a schema");
    let maps = schema["$defs"].as_object().expect("definitions").values().chain([&schema]);
    let keys: Vec<&String> =
        maps.filter_map(|map| map["properties"].as_object()).flat_map(|map| map.keys()).collect();
    assert!(keys.len() > 40, "{keys:?}");
    for key in keys {
        assert!(PAGE.contains(key.as_str()), "docs/actions.md does not have `{key}`");
    }
}

#[test]
fn the_documents_on_the_page_compile() {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let documents: Vec<&str> = blocks.filter(|block| block.contains("\nactions:")).collect();
    assert!(!documents.is_empty());
    for text in documents {
        net(text);
    }
}

#[test]
fn a_document_in_json_is_accepted_too() {
    let text: Value = json!({
        "schemaVersion": 1, "workflowId": "w", "name": "w", "version": 2, "workspaceId": "s", "active": true,
        "executionTier": "Auto", "description": null,
        "actions": [{ "actionId": "a", "order": 1, "portFamily": "ItsmItOps", "operation": "incident:write", "dependsOn": null }],
    });
    net(&text.to_string());
}
