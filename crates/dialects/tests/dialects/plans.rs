//! Plans: what documents become, their ids, and the inputs of their executions.

use crate::compiled::net;
use serde_json::{Value, json};
use windlass_dialects::plan::{
    ActionLookup, ActionRef, NoActions, PlanCluster, PlanDocument, RegisteredAction, is_plan, parse_action,
    read_plan, read_stored_plan,
};
use windlass_dialects::{Dialect, InputsSchema, compile, recompile};
use windlass_kernel::net::{Affinity, Join, Recovery, Step, Work};
use windlass_kernel::{Net, StepId};
use windlass_protocol::{Binding, Pipeline, PlanStep, RefSource, StepProgram};

/// The plan of the notes on the document.
const HEALTH: &str = r#"
params: [{name: expected, schema: {type: integer}, default: 200}]
steps:
- {id: send, action: request-http, args: {values: {url: "http://svc:8080/health"}}}
- {id: verify, action: check, extraInputs: [{name: capture, schema: {}}, {name: want, schema: {}}],
   args: {values: {name: status, expression: "capture.response.statusCode == want"},
          refs: {capture: steps.send.outputs.capture, want: params.expected}}}
- {id: alert, action: shell, extraInputs: [{name: code, schema: {type: integer}}],
   args: {values: {script: "exit 0"}, refs: {code: steps.send.outputs.capture.response.statusCode}}, condition: "code >= 500"}
output: {status: steps.send.outputs.capture.response.statusCode, verdict: steps.verify.outputs.result}
"#;

fn read(text: &str) -> PlanDocument {
    read_plan(text, &NoActions).unwrap_or_else(|found| panic!("{found:?}"))
}

fn step<'n>(net: &'n Net, name: &str) -> &'n Step {
    net.step(net.find(name).unwrap_or_else(|| panic!("no step {name}")))
}

fn pipeline(step: &Step) -> Pipeline {
    let Work::Task { spec } = &step.work else { panic!("no task") };
    serde_json::from_value((**spec).clone()).expect("a pipeline")
}

/// The description that a worker gets, after its template is rendered.
fn described(step: &Step) -> PlanStep {
    let mut config = pipeline(step).tasks.remove(0).config;
    let field = config.get_mut(PlanStep::FIELD).expect("the step");
    let template = windlass_expr::Template::compile(field).expect("a template");
    *field = template.render(&windlass_expr::Map::new()).expect("a text");
    PlanStep::read(&config).expect("a step")
}

#[test]
fn pln_13_the_graph_follows_from_references() {
    let plan = read(HEALTH);
    let on =
        |step: &str, before: &[&str]| (step.to_owned(), before.iter().map(|&id| id.to_owned()).collect());
    assert_eq!(plan.step_dependencies, [on("send", &[]), on("verify", &["send"]), on("alert", &["send"])]);
    let net = net(HEALTH);
    let policy = net.policy();
    assert_eq!(
        (policy.join, policy.recovery, policy.affinity, policy.max_parallel),
        (Join::All, Recovery::RestartExecution, Affinity::OneWorker, Some(10))
    );
    let arcs: Vec<StepId> = step(&net, "send").router.arcs.iter().map(|arc| arc.to).collect();
    assert_eq!(arcs, [StepId(1), StepId(2)]);
    assert_eq!(step(&net, "alert").reads, [StepId(0)]);
    let condition = step(&net, "alert").condition.as_ref().expect("a condition").source().to_owned();
    assert_eq!(
        condition,
        r#"(((steps["send"]["capture"]["response"]["statusCode"]|default(none))|strict_order((500),">=")) >= 0)"#
    );
}

#[test]
fn a_worker_gets_inputs_with_their_bindings_and_outputs_with_their_metadata() {
    let text = r#"
params: [{name: token}, {name: size, schema: {type: integer}, default: 3}]
steps:
- id: build
  action:
    script: |
      echo "{{ not a template }}" {% raw %} > outputs/log
    params: [{name: token, required: true}, {name: size, schema: {}}, {name: mode, default: fast}, {name: note}]
    outputs: [{name: log, metadata: {contentType: text/plain}}, {name: sum, schema: {type: object}}]
    timeout: 5m
    env: {LEVEL: high, TOKEN: {input: token}}
  args: {refs: {token: params.token, size: params.size}, values: {}}
- {id: use, action: shell, extraInputs: [{name: n, schema: {}}], args: {values: {script: "true"}, refs: {n: "steps.build.outputs.sum.a[0]"}}, condition: "n != nil"}
"#;
    let net = net(text);
    let build = described(step(&net, "build"));
    assert_eq!(step(&net, "build").timeout_ms, Some(300_000));
    let StepProgram::Script { text } = &build.program else { panic!("{build:?}") };
    assert_eq!(text, "echo \"{{ not a template }}\" {% raw %} > outputs/log\n");
    let bindings: Vec<Value> = build.inputs.iter().map(|input| json!(input.binding)).collect();
    assert_eq!(
        bindings,
        [
            json!({ "via": "ref", "text": "params.token", "from": { "param": "token" } }),
            json!({ "via": "ref", "text": "params.size", "from": { "param": "size" } }),
            json!({ "via": "default", "value": "fast" }),
            json!({ "via": "unbound" }),
        ]
    );
    assert_eq!(build.outputs[0].metadata["contentType"], "text/plain");
    assert!(build.outputs[1].in_condition && !build.outputs[0].in_condition);
    let config = pipeline(step(&net, "build")).tasks.remove(0).config;
    let render = |name: &str, scope: Value| {
        let template =
            windlass_expr::Template::compile(&config[PlanStep::SOURCES][name]).expect("a template");
        template.render(scope.as_object().expect("a scope")).expect("a value")
    };
    assert_eq!(render("size", json!({ "workload": {} })), json!([3, true]), "the default of the plan");
    assert_eq!(render("size", json!({ "workload": { "size": null } })), json!([null, true]));
    assert_eq!(render("token", json!({ "workload": {} })), json!([null, false]));
    assert_eq!(render("token", json!({ "workload": { "token": "t" } })), json!(["t", true]));
    let secret = json!({ "workload": {}, "keychain": { "secrets": { "token": "hidden" } } });
    assert_eq!(render("token", secret), json!(["hidden", true]));
    let large = "x".repeat(3 << 20);
    assert_eq!(render("token", json!({ "workload": { "token": large } })), json!([large, true]));
    let used = described(step(&net, "use"));
    let Binding::Ref { from, drill, .. } = &used.inputs[1].binding else { panic!("{used:?}") };
    assert_eq!(*from, RefSource::Output { step: "build".into(), output: "sum".into() });
    assert_eq!(drill, &["a", "0"]);
}

#[test]
fn pln_02_the_same_plan_has_the_same_id_however_it_is_written() {
    let id = read(HEALTH).id;
    assert!(id.starts_with("pl_") && id.len() == 35, "{id}");
    let spec = windlass_dialects::as_json(HEALTH).expect("YAML");
    assert_eq!(read(&json!({ "spec": spec }).to_string()).id, id, "the form does not matter");
    assert_eq!(read(&read(HEALTH).text()).id, id, "nor does it matter who wrote the actions out");
    assert_eq!(compile(HEALTH).name.as_deref(), Some(id.as_str()));
    assert_eq!(net(&read(HEALTH).text()).digest(), net(HEALTH).digest());
    assert_ne!(read(&HEALTH.replace("500", "501")).id, id);
    assert_ne!(read(&HEALTH.replace("svc:8080", "svc:80")).id, id);
}

struct Registry;

const DEPLOY: &str = "name: deploy\ndescription: Deploys.\nscript: ./deploy\nparams: [{name: target, required: true}]\noutputs: [{name: url}]\ntimeout: 90\n";

impl ActionLookup for Registry {
    fn find_action(&self, wanted: &ActionRef) -> Result<RegisteredAction, Vec<String>> {
        let revision = wanted.revision.unwrap_or(2);
        match wanted.action.as_str() {
            "deploy" | "act_1" if revision <= 2 => Ok(RegisteredAction {
                id: "act_1".into(),
                name: "deploy".into(),
                revision,
                is_enabled: true,
                document: DEPLOY.replace("./deploy", &format!("./deploy {revision}")),
            }),
            "old" => Ok(RegisteredAction {
                id: "act_2".into(),
                name: "old".into(),
                revision: 1,
                is_enabled: false,
                document: DEPLOY.into(),
            }),
            _ => Err(vec!["deploy".into(), "old".into()]),
        }
    }

    fn find_original(&self, claimed: &ActionRef) -> Option<Result<RegisteredAction, Vec<String>>> {
        Some(self.find_action(claimed))
    }
}

#[test]
fn a_plan_freezes_the_revision_of_an_action() {
    let plan = |action: &str| {
        let text = format!("steps: [{{id: a, action: {action}, args: {{values: {{target: x}}}}}}]");
        read_plan(&text, &Registry)
    };
    let newest = plan("deploy").expect("a plan");
    let action = &newest.spec["steps"][0]["action"];
    assert_eq!(
        *action,
        json!({ "actionID": "act_1", "name": "deploy", "revision": 2, "params": [{ "name": "target", "required": true }],
                "outputs": [{ "name": "url" }], "script": "./deploy 2", "timeout": "90000ms" })
    );
    assert_eq!(plan("{actionID: act_1}").expect("by id").id, newest.id);
    assert_eq!(plan("{actionID: deploy}").expect("by a name in place of the id").id, newest.id);
    assert_eq!(plan("{name: deploy, revision: 2}").expect("by revision").id, newest.id);
    assert_ne!(plan("{name: deploy, revision: 1}").expect("an older one").id, newest.id);
    assert_eq!(read(&newest.text()), newest, "the text needs no registry any more");
    let message = |action: &str| plan(action).expect_err(action)[0].message.clone();
    assert_eq!(message("deplo"), "`action` of step `a`: there is no action `deplo`");
    assert_eq!(plan("deplo").expect_err("unknown")[0].hint.as_deref(), Some("did you mean `deploy`?"));
    assert_eq!(message("old"), "`action` of step `a`: the action `old` is disabled");
    assert!(message("{actionID: act_1, name: other}").contains("has the name `deploy`"));
    assert!(message("{name: deploy, revision: 9}").contains("no action `deploy` with revision 9"));
}

#[test]
fn an_action_in_place_is_compared_with_the_one_that_it_claims_to_be() {
    let plan = |action: &Value| {
        let text =
            json!({ "steps": [{ "id": "a", "action": action, "args": { "values": { "target": "x" } } }] });
        (read_plan(&text.to_string(), &Registry), read_plan(&text.to_string(), &NoActions))
    };
    let frozen = read_plan("steps: [{id: a, action: deploy, args: {values: {target: x}}}]", &Registry)
        .expect("a plan");
    let action = frozen.spec["steps"][0]["action"].clone();
    assert_eq!(plan(&action).0.expect("a copy").id, frozen.id);
    let mut seconds = action.clone();
    seconds["timeout"] = json!(90);
    assert_eq!(plan(&seconds).0.expect("another form").id, frozen.id);
    let mut forged = action;
    forged["script"] = json!("./steal");
    forged["env"] = json!({ "A": "b" });
    let (compared, stored) = plan(&forged);
    let refused = compared.expect_err("it differs");
    let expected = "`action` of step `a` is not the action `deploy` revision 2: `env`, `script` differ";
    assert_eq!((refused.len(), &*refused[0].code, &*refused[0].message), (1, "E0188", expected));
    assert!(stored.is_ok(), "a stored plan is not compared again");
}

#[test]
fn a_timeout_that_is_an_input_is_a_part_of_the_plan() {
    let text = "steps: [{id: a, action: {script: 'true', params: [{name: most}], timeout: {input: most}}, args: {values: {most: 5m}}}]";
    assert_eq!(read(text).spec["steps"][0]["action"]["timeout"], json!({ "input": "most" }));
    assert_eq!(read(&read(text).text()).id, read(text).id);
    let net = net(text);
    assert_eq!(described(step(&net, "a")).timeout_input.as_deref(), Some("most"));
    assert_eq!(step(&net, "a").timeout_ms, Some(365 * 86_400_000), "the worker knows the value");
}

#[test]
fn documents_of_actions_are_checked_by_themselves() {
    let document = parse_action(DEPLOY).expect("an action");
    assert_eq!(
        (document.name.as_deref(), document.description.as_deref()),
        (Some("deploy"), Some("Deploys."))
    );
    assert_eq!(document.params().chain(document.outputs()).collect::<Vec<_>>(), ["target", "url"]);
    assert_eq!(document.to_json()["description"], "Deploys.");
    let refused =
        parse_action("name: x\nparams: [{name: a b}]\nenv: {PATH: /}\n").expect_err("it is refused");
    let codes: Vec<&str> = refused.iter().map(|found| &*found.code).collect();
    assert_eq!(codes, ["E0102", "E0109", "E0109"]);
}

#[test]
fn pln_05_pln_06_pln_07_pln_29_inputs_are_values_or_names_of_secrets() {
    let text = r##"
params:
- {name: token, required: true}
- {name: size, required: true, schema: {"$ref": "#/$defs/size", "$defs": {size: {type: integer}}}}
- {name: mode, required: true, default: fast}
- {name: note}
- {name: shown, schema: {}}
steps:
- {id: a, action: {script: "true", params: [{name: token}, {name: size}, {name: mode}]}, args: {refs: {token: params.token, size: params.size, mode: params.mode}}, condition: "mode == 'fast'"}
- {id: b, action: {script: "true", params: [{name: shown}]}, args: {refs: {shown: params.shown.part}}}
"##;
    let schema = compile(text).manifest.inputs_schema.expect("a schema");
    let schema = InputsSchema::new(&schema).expect("it can be used");
    let check = |inputs: Value, expected: &[&str]| {
        let found = schema.check(&inputs);
        let found: Vec<String> = found.iter().map(|one| format!("{} {}", one.path, one.message)).collect();
        assert!(
            found.len() == expected.len() && found.iter().zip(expected).all(|(one, part)| one.contains(part)),
            "{inputs}: {found:#?}"
        );
    };
    check(json!({ "token": "t", "size": 1 }), &[]);
    check(json!({ "size": 1, "$secrets": { "token": "prod" } }), &[]);
    check(json!({}), &["inputs.token is required: give it a value, or bind it", "inputs.size is required"]);
    check(json!({ "token": "t", "size": "x" }), &["inputs.size"]);
    check(json!({ "token": "t", "size": 1, "nope": 1 }), &["nope"]);
    check(json!({ "token": "t", "size": 1, "$secrets": { "nope": "s" } }), &["nope"]);
    check(
        json!({ "token": "t", "size": 1, "$secrets": { "token": "s" } }),
        &["has a value and is bound to a secret"],
    );
    check(
        json!({ "token": "t", "size": 1, "$secrets": { "mode": "s", "shown": "s" } }),
        &[
            "`mode` cannot be bound to a secret: the condition of step `a`",
            "`shown` cannot be bound to a secret: step `b` reads a part",
        ],
    );
}

#[test]
fn an_execution_binds_what_steps_without_a_condition_need() {
    let text = r#"
params: [{name: a}, {name: b, schema: {}, default: {}}, {name: c}, {name: box}]
steps:
- {id: s, action: {script: "true", params: [{name: x, required: true}, {name: y, required: true}, {name: z, required: true, default: d}]}, args: {refs: {x: params.a, y: params.b.part, z: params.c}}}
- {id: t, action: {script: "true", params: [{name: x, required: true}], outputs: [{name: o}]}, args: {refs: {x: params.c}}, condition: "x != nil"}
- {id: u, action: {script: "true", params: [{name: x, required: true}, {name: o}]}, args: {refs: {x: params.c, o: steps.t.outputs.o}}}
- {id: v, action: {script: "true"}, routingContext: {ref: {sandboxRef: params.box}}}
"#;
    let schema = compile(text).manifest.inputs_schema.expect("a schema");
    let schema = InputsSchema::new(&schema).expect("it can be used");
    let found = |inputs: Value| -> Vec<String> {
        schema.check(&inputs).iter().map(|one| format!("{} {}", one.path, one.message)).collect()
    };
    assert_eq!(
        found(json!({})),
        [
            "inputs.a has no value, and it is the required input `x` of step `s`: give it a value",
            "inputs.b has no `.part`, and it is the required input `y` of step `s`: add it to the value",
            "inputs.box has no value, and the routing context of step `v` reads it: give it a value",
        ]
    );
    assert_eq!(found(json!({ "a": null, "b": { "part": null }, "box": "b" })), [""; 0]);
    assert_eq!(found(json!({ "b": { "part": 1 }, "box": "b", "$secrets": { "a": "s" } })), [""; 0]);
}

#[test]
fn conditions_are_checked_with_the_schemas_of_inputs() {
    let plan = |condition: &str| {
        let step = "{id: s, action: {script: 'true', params: [{name: n}, {name: t}, {name: free}, {name: five, default: 5}]}, args: {refs: {n: params.n, t: params.t, free: params.free}}";
        let params = "[{name: n, schema: {type: integer}}, {name: t, schema: {type: string}}, {name: free}]";
        read_plan(&format!("params: {params}\nsteps: [{step}, condition: \"{condition}\"}}]"), &NoActions)
    };
    let refused = |condition: &str| {
        let found = plan(condition).expect_err(condition);
        (found[0].code.to_string(), found[0].message.clone())
    };
    let (code, message) = refused("t > 100");
    assert_eq!(code, "E0186");
    assert!(
        message.contains("`>` compares two numbers or two texts, not a text and a number: declare a schema"),
        "{message}"
    );
    assert!(refused("1 <= n <= 3").1.contains("`<=` follows a comparison"));
    assert!(refused("free matches '(a{1000}){1000}'").1.contains("is not a regular expression"));
    let warnings = |condition: &str| -> Vec<String> {
        plan(condition)
            .expect(condition)
            .warnings
            .iter()
            .map(|found| format!("{} {}", found.code, found.message))
            .collect()
    };
    let expected = "W0258 condition of step `s`: `==` compares a text with a number, so it is always false";
    assert_eq!(warnings("t == 5"), [expected]);
    assert_eq!(warnings("five != t").len(), 1);
    for condition in ["n == 5", "n != nil and n > 5", "free == 5 or free > 5", "five > n"] {
        assert_eq!(warnings(condition), [""; 0], "{condition}");
    }
}

#[test]
fn a_stored_plan_stays_readable_when_its_condition_is_refused_by_now() {
    let text = read(HEALTH).text();
    assert_eq!(read_stored_plan(&text).expect("a plan").id, read(HEALTH).id);
    let older = text.replace("code >= 500", "1 < code < 500");
    assert!(read_plan(&older, &NoActions).is_err());
    let plan = read_stored_plan(&older).expect("a plan");
    assert_eq!((plan.spec["steps"].as_array().map(Vec::len), plan.step_dependencies.len()), (Some(3), 3));
}

#[test]
fn routing_waits_for_sandboxes_and_route_groups_only() {
    let text = |routing: &str| {
        format!(
            "params: [{{name: box}}, {{name: target, schema: {{}}}}]\nsteps: [{{id: a, action: {{script: 'true'}}, routingContext: {routing}}}]\ncluster: {{fromSandbox: box}}\nrunner: default\n"
        )
    };
    let target = |routing: &str| {
        let net = net(&text(routing));
        let found = step(&net, "a").wait_for.clone();
        found.map(|wait| (json!(wait.target), wait.timeout_ms))
    };
    assert_eq!(target("{literal: {sandbox: s}}"), Some((json!({ "sandbox": "s" }), 600_000)));
    let by_ref = target("{ref: {routeGroupRef: params.box}}").expect("it waits").0;
    assert_eq!(by_ref, json!({ "routeGroup": "{{ workload[\"box\"] }}" }));
    assert_eq!(
        target("{ref: {anyRef: params.target}}").expect("it waits").0,
        json!("{{ workload[\"target\"] }}")
    );
    assert_eq!(target("{literal: {routingKey: k}}"), None);
    let plan = read(&text("{literal: {routingKey: k}}"));
    assert_eq!(plan.cluster, Some(PlanCluster::FromSandbox("box".into())));
    assert_eq!(plan.runner.as_deref(), Some("default"));
}

#[test]
fn a_plan_is_known_by_its_shape() {
    assert!(is_plan("steps: nonsense") && is_plan("spec: {steps: []}"));
    assert!(!is_plan("workflow: []\nsteps: []") && !is_plan("nodes: []") && !is_plan("- 1") && !is_plan("{"));
}

const PAGE: &str = include_str!("../../../../docs/plans.md");

#[test]
fn the_documents_on_the_page_compile_and_it_names_every_key() {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let documents: Vec<&str> = blocks.filter(|block| block.contains("steps:")).collect();
    assert!(!documents.is_empty());
    documents.into_iter().for_each(|text| drop(net(text)));
    let schema = Dialect::of_name("plan").and_then(Dialect::schema).expect("a schema");
    for map in ["plan", "step", "field", "args", "cluster"] {
        let keys = schema["$defs"][map]["properties"].as_object().expect("keys").keys();
        for key in keys {
            assert!(PAGE.contains(&format!("`{key}`")), "docs/plans.md does not have `{key}` of {map}");
        }
    }
    for builtin in windlass_protocol::BuiltinAction::ALL {
        assert!(PAGE.contains(&format!("`{}`", builtin.name())), "{builtin:?}");
    }
}

#[test]
fn a_plan_whose_expressions_repeat_a_large_value_is_refused() {
    let large = "x".repeat(3 << 20);
    let steps = |count: usize| {
        let step = |n| {
            format!(
                "{{\"id\": \"s{n}\", \"action\": {{\"script\": \"true\", \"params\": [{{\"name\": \"i\"}}]}}, \"args\":                  {{\"refs\": {{\"i\": \"params.p\"}}}}}}"
            )
        };
        (0..count).map(step).collect::<Vec<_>>().join(",")
    };
    let plan = |count: usize| {
        format!(
            "{{\"params\": [{{\"name\": \"p\", \"default\": \"{large}\"}}], \"steps\": [{}]}}",
            steps(count)
        )
    };
    assert!(read_plan(&plan(5), &NoActions).is_ok());
    let refused = read_plan(&plan(1_000), &NoActions).expect_err("it is refused");
    assert_eq!((refused.len(), refused[0].code.to_string()), (1, "E0191".to_owned()));
    assert!(refused[0].message.contains("repeat more than 16 MiB"), "{}", refused[0].message);
    let condition = vec!["i == i"; 100].join(" and ");
    let conditional = format!(
        "{{\"steps\": [{{\"id\": \"s\", \"action\": {{\"script\": \"true\", \"params\": [{{\"name\": \"i\"}}]}}, \"args\":          {{\"values\": {{\"i\": \"{large}\"}}}}, \"condition\": \"{condition}\"}}]}}"
    );
    let refused = read_plan(&conditional, &NoActions).expect_err("it is refused");
    assert!(refused[0].message.contains("repeat more than 16 MiB"), "{}", refused[0].message);
}

#[test]
fn a_check_that_names_a_large_value_often_is_read_without_copies_of_it() {
    let large = "x".repeat(3 << 20);
    let expression = vec!["v"; 1_200].join(" + ") + " == 'a'";
    let plan = format!(
        "{{\"steps\": [{{\"id\": \"s\", \"action\": \"check\", \"extraInputs\": [{{\"name\": \"v\"}}], \"args\":          {{\"values\": {{\"name\": \"n\", \"expression\": \"{expression}\", \"v\": \"{large}\"}}}}}}]}}"
    );
    // With a copy for each use, it would take 4 GB.
    read_plan(&plan, &NoActions).expect("a plan");
}

#[test]
fn a_stored_plan_that_is_refused_by_now_keeps_its_net() {
    let stored = net(HEALTH);
    let refused = "params: [{name: p}]\nsteps: [{id: a, action: {script: 'true'}, condition: missing}]";
    let again = recompile(("plan", refused), 1, &stored);
    assert_eq!((again.net.is_none(), again.manifest.editors_only), (true, false));
    assert!(again.manifest.inputs_schema.is_some(), "inputs of its executions are still checked");
}
