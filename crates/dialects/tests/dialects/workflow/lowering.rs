//! Nets of workflows.

use super::workflow;
use crate::compiled::net;
use serde_json::{Value, json};
use windlass_dialects::workflow::{RetryPolicy, failure_mode};
use windlass_dialects::{Overrides, compile};
use windlass_kernel::net::{
    Backoff, EndPolicy, FailureMode, Join, On, Recovery, Retry, RetryOn, Root, Step, Work,
};
use windlass_kernel::{Net, StepId};

fn step<'n>(net: &'n Net, name: &str) -> &'n Step {
    net.step(net.find(name).expect("a step"))
}

fn task(net: &Net, name: &str) -> Value {
    match &step(net, name).work {
        Work::Task { spec } => spec["tasks"][0].clone(),
        other => panic!("{other:?}"),
    }
}

fn guards(net: &Net, name: &str) -> Vec<String> {
    let arcs = step(net, name).router.arcs.iter();
    let arc = |arc: &windlass_kernel::net::JoinArc| {
        let guard = arc.guard.as_ref().map_or("always", |guard| guard.source());
        format!("{}{} if {guard}", if arc.on == On::Error { "error " } else { "" }, net.step(arc.to).name)
    };
    arcs.map(arc).collect()
}

#[test]
fn wfl_12_wfl_15_wfl_25_a_workflow_has_the_documents_defaults() {
    let net = net(&workflow(&["start: trigger", "a: shell {command: x}"], &["start -> a"]));
    let policy = net.policy();
    assert_eq!((policy.join, policy.recovery), (Join::AnyLive, Recovery::ResumeStep));
    assert_eq!((policy.failure, policy.end), (FailureMode::FailFast, EndPolicy::FailOnAny));
    assert_eq!((policy.timeout_ms, policy.max_parallel), (Some(300_000), None));
    assert_eq!(
        (policy.names.get("inputs"), policy.names.get("nodes")),
        (Some(&Root::Inputs), Some(&Root::Outputs))
    );
    let Retry { attempts_max, backoff, initial_ms, multiplier, max_ms, jitter, .. } =
        step(&net, "a").retry.clone();
    assert_eq!((attempts_max, backoff, initial_ms, max_ms), (4, Backoff::Exponential, 1_000, 60_000));
    assert_eq!((multiplier, jitter), (2.0, 0.1));
    assert_eq!(step(&net, "start").retry.attempts_max, 1, "there is nothing to try again");
    assert!(step(&net, "start").trigger);
}

#[test]
fn wfl_15_wfl_25_settings_a_start_and_the_node_itself_change_them() {
    let text = "
settings: {failureMode: collect_errors, timeout: 1000, maxParallel: 2, retryPolicy: {maxRetries: 1, backoffStrategy: fixed, retryableErrors: [X]}}
nodes:
- {id: a, type: shell, config: {command: x}}
- {id: b, type: shell, config: {command: x}, retryPolicy: {maxRetries: 0}, timeoutMs: 50}
- {id: c, type: http_api, config: {url: 'http://x', retries: 7}}
";
    let given = net(text);
    assert_eq!((given.policy().failure, given.policy().end), (FailureMode::Collect, EndPolicy::Partial));
    assert_eq!((given.policy().timeout_ms, given.policy().max_parallel), (Some(1_000), Some(2)));
    let a = &step(&given, "a").retry;
    assert_eq!((a.attempts_max, a.backoff, &a.on), (2, Backoff::Fixed, &RetryOn::Only(vec!["X".into()])));
    assert_eq!((step(&given, "b").retry.attempts_max, step(&given, "b").timeout_ms), (1, Some(50)));
    assert_eq!(step(&given, "c").retry.attempts_max, 8);
    let asked: RetryPolicy =
        serde_json::from_value(json!({ "maxRetries": 5, "initialDelayMs": 10 })).expect("a policy");
    let overrides = Overrides {
        retry: Some(asked.retry().expect("it is sound")),
        failure_mode: failure_mode("continue_on_error"),
        ..Overrides::default()
    };
    let settings = compile(text).manifest.settings.expect("a workflow has settings");
    let other = overrides.apply(&given, &settings).expect("a net");
    assert_eq!((step(&other, "a").retry.attempts_max, step(&other, "a").retry.initial_ms), (6, 10));
    assert_eq!(step(&other, "b").retry, step(&given, "b").retry, "a node's own policy wins");
    let c = &step(&other, "c").retry;
    assert_eq!((c.attempts_max, c.initial_ms), (8, 10), "the attempts of its type stay");
    assert_eq!((other.policy().failure, other.policy().end), (FailureMode::Continue, EndPolicy::Partial));
    assert_ne!(other.digest(), given.digest());
    assert_eq!(Overrides::default().apply(&given, &settings).expect("a net").digest(), given.digest());
    let wrong: RetryPolicy = serde_json::from_value(json!({ "jitterFactor": 3 })).expect("it can be read");
    assert_eq!(wrong.retry().map_err(|(field, _)| field), Err("jitterFactor".to_owned()));
    assert!(serde_json::from_value::<RetryPolicy>(json!({ "retries": 3 })).is_err());
}

#[test]
fn edges_of_a_conditional_are_taken_by_branch() {
    let text = workflow(
        &[
            "c: conditional {conditions: [{id: big, variable: '{{ inputs.n }}', operator: greater_than, value: '10'}, {id: odd, variable: inputs.n % 2, operator: equals, value: 1}], defaultBranch: rest, evaluationMode: any}",
            "x: delay {duration: 1}",
        ],
        &[
            "c.big -> x",
            "c.odd -> x",
            "c.rest -> x",
            "c.true -> x",
            "c.false -> x",
            "c.default -> x",
            "c.error -> x",
            "c -> x",
        ],
    );
    let net = net(&text);
    assert!(step(&net, "c").router.conditional);
    assert_eq!(
        guards(&net, "c"),
        [
            "x if steps[\"c\"].branch == \"big\"",
            "x if steps[\"c\"].branch == \"odd\"",
            "x if steps[\"c\"].branch == \"rest\"",
            "x if steps[\"c\"].result",
            "x if not steps[\"c\"].result",
            "x if steps[\"c\"].matched is none",
            "error x if always",
            "x if always",
        ]
    );
}

#[test]
fn the_body_of_a_loop_is_a_region_and_an_edge_back_is_none() {
    let text = workflow(
        &[
            "outer: loop {loopType: for_each, dataSource: '{{ inputs.list }}', maxIterations: 3, iteratorVariable: row, parallelExecution: true, maxParallel: 4}",
            "inner: loop {loopType: do_while, condition: not x.ok, maxIterations: 5}",
            "x: delay {duration: 1}",
            "y: delay {duration: 1}",
            "after: delay {duration: 1}",
        ],
        &[
            "outer.body -> inner",
            "inner.loop -> x",
            "x -> inner",
            "inner.done -> y",
            "y -> outer",
            "outer -> after",
        ],
    );
    let net = net(&text);
    let region = |name: &str| step(&net, name).region.map(|id| net.step(id).name.as_str());
    assert_eq!(
        [region("outer"), region("inner"), region("x"), region("y"), region("after")],
        [None, Some("outer"), Some("inner"), Some("outer"), None]
    );
    assert_eq!(guards(&net, "x"), [""; 0]);
    assert_eq!(guards(&net, "y"), [""; 0]);
    let repeat = step(&net, "outer").repeat.clone().expect("a loop");
    assert_eq!((repeat.iterator.as_str(), repeat.cap), ("row", 4));
    assert_eq!(step(&net, "inner").repeat.clone().expect("a loop").cap, 1);
}

#[test]
fn what_iterations_pass_over_is_not_begun() {
    let text = workflow(
        &[
            "l: loop {loopType: count, maxIterations: 9, continueCondition: iter.index is odd, breakCondition: iter.index > 5}",
            "a: delay {duration: 1}",
            "b: delay {duration: 1}",
        ],
        &["l.body -> a", "a -> b"],
    );
    let net = net(&text);
    assert_eq!(step(&net, "a").condition.as_ref().map(|expr| expr.source()), Some("not (iter.index is odd)"));
    assert_eq!(step(&net, "b").condition, None);
    let repeat = step(&net, "l").repeat.clone().expect("a loop");
    assert_eq!(repeat.break_when.expect("a condition").source(), "iter.index > 5");
}

#[test]
fn an_http_node_is_a_task_with_the_tools_fields() {
    let text = workflow(
        &[
            "a: http_api {url: 'http://x/{{ inputs.id }}', method: POST, headers: [{key: X-A, value: '1'}, {key: X-B, value: '2', enabled: false}], queryParams: [{key: q, value: 1}, {key: q, value: 2}], body: '<a/>', bodyType: xml, timeout: 5, authentication: {type: basic, username: u, password: '{{ DB_PASSWORD }}'}, responseMapping: $.items, errorHandling: continue, retries: 2}",
        ],
        &[],
    );
    let net = net(&text);
    assert_eq!(step(&net, "a").retry.attempts_max, 1, "it retries by itself, and then continues");
    let task = task(&net, "a");
    assert_eq!((&task["kind"], &task["timeout_ms"]), (&json!("http"), &json!(5_000)));
    assert_eq!(
        task["config"],
        json!({
            "url": "http://x/{{ (inputs.id) | urlencode | replace('/', '%2F') }}", "method": "POST", "headers": { "X-A": "1", "Content-Type": "application/xml" },
            "params": { "q": [1, 2] }, "body": "<a/>", "timeout": 5.0, "response_mapping": "$.items",
            "auth": { "type": "basic", "username": "u", "password": "{{ DB_PASSWORD }}" },
        })
    );
    assert_eq!(task["rules"][0]["action"]["do"], "retry");
    assert_eq!(task["rules"][1]["action"]["do"], "continue");
    let Work::Task { spec } = &step(&net, "a").work else { panic!("a task") };
    assert_eq!(spec["node"]["credentials"], json!({ "DB_PASSWORD": "DB_PASSWORD" }));
    assert_eq!(
        spec["keychain"][0]["source"],
        json!({ "from": "named", "provider": "windlass", "fields": { "value": "DB_PASSWORD" } })
    );
}

#[test]
fn a_value_in_a_url_is_encoded_behind_the_host() {
    let check = |url: &str, expected: &str| {
        let net = net(&workflow(&[&format!("a: http_api {{url: {}}}", json!(url))], &[]));
        assert_eq!(task(&net, "a")["config"]["url"], expected);
    };
    let encoded = |source: &str| format!("{{{{ ({source}) | urlencode | replace('/', '%2F') }}}}");
    check("{{ inputs.url }}", "{{ inputs.url }}");
    check(
        "{{ inputs.shop }}/limited?n={{ inputs.n }}",
        &format!("{{{{ inputs.shop }}}}/limited?n={}", encoded("inputs.n")),
    );
    check("https://{{ inputs.host }}:{{ inputs.port }}/", "https://{{ inputs.host }}:{{ inputs.port }}/");
    check(
        "http://x/{{ inputs.a | urlencode }}/{{ inputs.b|safe }}",
        "http://x/{{ inputs.a | urlencode }}/{{ inputs.b|safe }}",
    );
    check(
        "http://x{% if inputs.a %}/{{ inputs.a }}{% endif %}",
        &format!("http://x{{% if inputs.a %}}/{}{{% endif %}}", encoded("inputs.a")),
    );
    check("http://x/plain", "http://x/plain");
}

#[test]
fn a_text_of_json_is_json_with_templates_in_its_strings() {
    let config = |body: &str| {
        let body = json!({ "url": "http://x", "method": "POST", "bodyType": "json", "body": body });
        task(&net(&workflow(&[&format!("a: http_api {body}")], &[])), "a")["config"].clone()
    };
    let request = config(r#" {"name": "{{ inputs.n }}", "list": [1, "x {{ inputs.n }}"]} "#);
    assert_eq!(request["json"], json!({ "name": "{{ inputs.n }}", "list": [1, "x {{ inputs.n }}"] }));
    assert_eq!(request["body"], Value::Null);
    assert_eq!(config("{{ inputs.all }}")["json"], "{{ inputs.all }}");
    let written = config("{{ inputs.all | tojson }}");
    assert_eq!(
        (&written["body"], &written["headers"]["Content-Type"]),
        (&json!("{{ inputs.all | tojson }}"), &json!("application/json"))
    );
}

#[test]
fn code_is_no_template_and_sees_named_values() {
    let text = "nodes:\n- id: a\n  type: code\n  config:\n    language: javascript\n    code: 'return `${{x: 1}.x}` + \"{{ not }}\"'\n    inputVariables: [inputs.rows, {name: n, value: 3}]\n    outputVariable: out\n    timeout: 7\n    memoryLimit: 64\n";
    let config = task(&net(text), "a")["config"].clone();
    assert_eq!(config["code"], "{% raw %}return `${{x: 1}.x}` + \"{{ not }}\"{% endraw %}");
    assert_eq!(config["input_variables"], json!({ "rows": "{{ inputs.rows }}", "n": 3 }));
    assert_eq!(
        (&config["output_variable"], &config["timeout_seconds"], &config["memory_limit_mb"]),
        (&json!("out"), &json!(7), &json!(64))
    );
}

#[test]
fn wfl_21_edges_that_touch_an_agent_make_nodes_available() {
    let text = workflow(
        &[
            "start: trigger",
            "ai: ai_agent {model: m, baseUrl: 'http://x/v1', apiKeyVariableId: MODEL_KEY, userPromptTemplate: '{{ inputs.task }}'}",
            "search: delay {duration: 1}",
            "deeper: delay {duration: 1}",
            "other: delay {duration: 1}",
            "after: delay {duration: 1}",
        ],
        &["start -> ai", "ai -> search", "search -> deeper", "other -> ai", "ai.done -> after"],
    )
    .replace("{id: search,", "{id: search, name: Search, description: 'Looks {{ up }}', parameters: {type: object},");
    let net = net(&text);
    assert_eq!(guards(&net, "ai"), ["after if always"]);
    assert_eq!(guards(&net, "start"), ["ai if always"]);
    let on_demand: Vec<&str> =
        net.steps().filter(|(_, step)| step.on_demand).map(|(_, step)| step.name.as_str()).collect();
    assert_eq!(on_demand, ["search", "deeper", "other"]);
    let config = task(&net, "ai")["config"].clone();
    assert_eq!(
        config["tools"][0],
        json!({ "step": 2, "node": "search", "name": "Search", "description": "{% raw %}Looks {{ up }}{% endraw %}", "parameters": { "type": "object" } })
    );
    assert_eq!(config["tools"].as_array().map(Vec::len), Some(3));
    assert_eq!(
        config["connections"][4],
        json!({ "source": "ai", "target": "after", "sourceHandle": "done" })
    );
    assert_eq!(config["api_key"], "{{ keychain[\"MODEL_KEY\"].value }}");
    assert_eq!(config["base_url"], "http://x/v1");
}

#[test]
fn only_what_a_node_reads_is_loaded_for_it() {
    let text = workflow(
        &[
            "a: delay {duration: 1}",
            "node-2: delay {duration: 1}",
            "c: delay {duration: 1}",
            "d: http_api {url: \"http://x/{{ nodes['node-2'].output.x }}/{{ a.y }}\"}",
            "e: shell {command: x}",
        ],
        &["a -> node-2", "node-2 -> c", "c -> d", "d -> e"],
    );
    let net = net(&text);
    let reads =
        |name: &str| step(&net, name).reads.iter().map(|id| net.step(*id).name.clone()).collect::<Vec<_>>();
    assert_eq!(reads("d"), ["a", "node-2"]);
    assert_eq!(reads("e"), ["d"], "programs are given what came right before them");
}

#[test]
fn the_trigger_says_what_the_inputs_are() {
    let text = workflow(
        &[
            "start: trigger {manualConfig: {inputPayload: {type: object, required: [city], properties: {city: {type: string}, days: {type: integer, default: 3}}}}}",
        ],
        &[],
    );
    let compiled = compile(&text);
    assert_eq!(compiled.workload, json!({ "days": 3 }));
    let schema = compiled.manifest.inputs_schema.expect("a schema");
    let schema = windlass_dialects::InputsSchema::new(&schema).expect("a usable schema");
    let problems = |inputs: Value| {
        schema
            .check(&inputs)
            .into_iter()
            .map(|problem| format!("{}: {}", problem.path, problem.message))
            .collect::<Vec<_>>()
    };
    assert_eq!(problems(json!({ "city": "Ulm", "days": 3 })), [""; 0]);
    assert_eq!(
        problems(json!({ "days": "x" })),
        ["inputs: \"city\" is a required property", "inputs.days: \"x\" is not of type \"integer\""]
    );
}

#[test]
fn the_timeout_of_a_sub_workflow_is_that_of_its_step() {
    for (config, expected) in [
        ("{workflowName: x, timeout: 7}", Some(7_000)),
        ("{workflowName: x, timeout: 7, timeoutMs: 20}", Some(20)),
        ("{workflowName: x}", None),
    ] {
        let node = format!("a: workflow {config}");
        let net = compile(&workflow(&[&node], &[])).net.expect("a net");
        assert_eq!(net.step(StepId(0)).timeout_ms, expected, "{config}");
    }
}
