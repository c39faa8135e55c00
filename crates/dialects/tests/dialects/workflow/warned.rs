//! Workflows that can run and are probably not meant so.

use super::workflow;
use crate::compiled::check;
use windlass_dialects::compile;

fn warned(nodes: &[&str], edges: &[&str], expected: &[&str]) {
    check(&workflow(nodes, edges), expected);
}

#[test]
fn a_node_that_no_edge_leads_to_starts_at_once() {
    warned(
        &["start: trigger", "a: delay {duration: 1}"],
        &[],
        &[
            "W0202 4:8 nodes[1].id: no edge leads to node `a`: it starts at once, with the trigger (add an edge to it, or remove it)",
        ],
    );
    warned(&["a: delay {duration: 1}", "b: delay {duration: 1}"], &["a -> b"], &[]);
}

#[test]
fn an_output_is_read_after_it_is_there() {
    warned(
        &["a: shell {command: 'ls {{ b.x }}'}", "b: delay {duration: 1}"],
        &["a -> b"],
        &[
            "W0242 3:42 nodes[0].config.command: node `a` reads `b`, which does not run before it (add an edge from `b`, or from something after it)",
        ],
    );
    warned(
        &[
            "l: loop {loopType: count, maxIterations: 2}",
            "a: delay {duration: 1}",
            "z: shell {command: 'ls {{ a.x }}'}",
        ],
        &["l.body -> a", "l -> z"],
        &[
            "W0242 5:42 nodes[2].config.command: node `z` reads `a`, which runs once per iteration of the loop `l` (read the results of the iterations: `nodes['l'].output.results`)",
        ],
    );
}

#[test]
fn an_input_that_has_the_name_of_a_node_is_warned_of() {
    let trigger =
        "start: trigger {manualConfig: {inputPayload: {type: object, properties: {a: {type: string}}}}}";
    warned(
        &[trigger, "a: delay {duration: 1}", "b: shell {command: 'echo {{ a }} {{ inputs.a }}'}"],
        &["start -> a", "a -> b"],
        &[
            "W0250 5:42 nodes[2].config.command: `a` is an input and a node: `a` means the output of the node (write `inputs.a` for the input, or rename one of them)",
        ],
    );
    warned(
        &["a: shell {command: 'echo {{ a }}'}"],
        &[],
        &[
            "W0242 3:42 nodes[0].config.command: node `a` reads its own output, which it does not have yet (an input of that name is `inputs.a`)",
        ],
    );
}

#[test]
fn undefined_names_are_reported_when_the_inputs_are_known() {
    let trigger =
        "start: trigger {manualConfig: {inputPayload: {type: object, properties: {city: {type: string}}}}}";
    warned(
        &[trigger, "a: shell {command: 'echo {{ town }} {{ citty }} {{ city }} {{ inputs.x }}'}"],
        &["start -> a"],
        &[
            "W0241 4:42 nodes[1].config.command: an expression reads `citty`, which is neither a node nor an input (did you mean `city`?)",
            "W0241 4:42 nodes[1].config.command: the inputs have no `x` (known here: `city`)",
            "W0241 4:42 nodes[1].config.command: an expression reads `town`, which is neither a node nor an input (an input of that name is also `inputs.NAME`; name inputs in the trigger's `inputPayload`)",
        ],
    );
    warned(
        &["node-1: delay {duration: 1}", "a: shell {command: 'echo {{ node_1.x }}'}"],
        &["node-1 -> a"],
        &[
            "W0241 4:42 nodes[1].config.command: an expression reads `node_1`, which is neither a node nor an input (read a node of that name with `nodes['node-1'].output`)",
        ],
    );
}

#[test]
fn a_secret_in_the_text_moves_into_the_store() {
    let text = workflow(
        &["a: http_api {url: 'http://x', authentication: {type: bearer, token: very-secret-1}}"],
        &[],
    );
    check(
        &text,
        &[
            "W0231 3:91 nodes[0].config.authentication.token: `token` of node `a` is written into the definition (it moves into the encrypted store as `workflow/t/a/token`; store it yourself with `windlass secrets set NAME` and write `{{ NAME }}`)",
        ],
    );
    let compiled = compile(&text);
    assert!(!compiled.source.contains("very-secret-1") && !compiled.shown.contains("very-secret-1"));
    assert_eq!(
        (&compiled.literals[0].secret[..], &**compiled.literals[0].value),
        ("workflow/t/a/token", "very-secret-1")
    );
    let net = serde_json::to_string(compiled.net.expect("a net").spec()).expect("JSON");
    assert!(!net.contains("very-secret-1"), "{net}");
    let sql = "a: data {query: SELECT 1, connection: {host: db, user: u, password: very-secret-2}}";
    let compiled_sql = compile(&workflow(&[sql], &[]));
    assert_eq!(compiled_sql.literals[0].secret, "workflow/t/a/password");
    let stored = serde_json::to_string(compiled_sql.net.expect("a net").spec()).expect("JSON");
    assert!(!stored.contains("very-secret-2") && stored.contains("keychain.password.value"), "{stored}");
    let again = compile(&compiled.source);
    assert_eq!(serde_json::to_string(again.net.expect("what is stored compiles").spec()).expect("JSON"), net);
}

/// Fields without effect because of another field, with their warnings.
#[test]
fn a_field_without_effect_is_a_warning() {
    let check = |node: &str, field: &str, why: &str| {
        let compiled = compile(&workflow(&[node], &[]));
        let warnings: Vec<String> = compiled
            .warnings()
            .filter(|warning| warning.code == "W0243")
            .map(|warning| warning.message.clone())
            .collect();
        assert_eq!(warnings, [format!("`{field}` of node `a` has no effect: {why}")], "{node}");
    };
    check(
        "a: trigger {triggerMode: manual, scheduleConfig: {type: cron, cronExpression: '0 * * * *'}}",
        "scheduleConfig",
        "the `triggerMode` is another one",
    );
    check("a: trigger {triggerMode: schedule}", "triggerMode", "there is no `scheduleConfig`");
    check(
        "a: loop {loopType: while, condition: 'false', dataSource: [1]}",
        "dataSource",
        "such a loop repeats by its condition and has no items",
    );
    check(
        "a: loop {loopType: for_each, dataSource: [1], maxParallel: 3}",
        "maxParallel",
        "one iteration follows the other",
    );
    check(
        "a: loop {loopType: count, maxIterations: 2, condition: 'true'}",
        "condition",
        "only `while` and `do_while` use it",
    );
    check(
        "a: conditional {conditions: [{id: x, variable: inputs.x, operator: is_empty, logicGate: OR}]}",
        "conditions",
        "with this `evaluationMode` `logicGate` is ignored",
    );
    check(
        "a: llm {model: m, userPromptTemplate: x, jsonSchema: {type: object}}",
        "jsonSchema",
        "the answer is not JSON",
    );
    check(
        "a: code {language: javascript, code: 'return 1', pipDependencies: [requests]}",
        "pipDependencies",
        "they are packages of Python",
    );
    check(
        "a: workflow {workflowId: x, workflowName: y}",
        "workflowName",
        "`workflowId` says which one it is",
    );
    check("a: http_api {url: 'http://x', bodyType: none, body: 1}", "body", "the `bodyType` is `none`");
    check("a: delay {duration: 5m, unit: hours}", "unit", "the `duration` is a text with a unit of its own");
    for node in [
        "a: trigger {triggerMode: manual}",
        "a: loop {loopType: for_each, dataSource: [1], maxParallel: 3, parallelExecution: true}",
        "a: conditional {conditions: [{id: x, variable: inputs.x, operator: is_empty, logicGate: AND}]}",
        "a: llm {model: m, userPromptTemplate: x, outputFormat: json, jsonSchema: {type: object}}",
        "a: delay {duration: 5, unit: hours}",
    ] {
        let compiled = compile(&workflow(&[node], &[]));
        assert!(compiled.warnings().all(|warning| warning.code != "W0243"), "{node}");
    }
}

#[test]
fn a_loop_that_is_cut_short_says_so() {
    warned(
        &["l: loop {loopType: count, dataSource: 5, maxIterations: 3}", "a: delay {duration: 1}"],
        &["l.body -> a"],
        &[
            "W0245 3:61 nodes[0].config.dataSource: node `l` is to run 5 times, and `maxIterations` is 3 (it runs 3 times; raise `maxIterations`, or omit it)",
        ],
    );
    warned(
        &["l: loop {loopType: count, dataSource: 2, maxIterations: 3}", "a: delay {duration: 1}"],
        &["l.body -> a"],
        &[],
    );
}

#[test]
fn a_trigger_that_waits_for_requests_without_a_path_waits_for_ever() {
    let warnings = "W0246 3:34 nodes[0].config: node `t` is started by requests, and `webhookConfig` has no `path` (add `webhookConfig: {path: /NAME}`: it is started by requests to /hooks/NAME)";
    warned(&["t: trigger {triggerMode: webhook}"], &[], &[warnings]);
    warned(&["t: trigger {triggerMode: webhook, webhookConfig: {method: GET}}"], &[], &[warnings]);
    warned(&["t: trigger {triggerMode: webhook, webhookConfig: {path: a}}"], &[], &[]);
    warned(&["t: trigger {triggerMode: manual, webhookConfig: {path: a}}"], &[], &[]);
}
