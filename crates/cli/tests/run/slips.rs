//! Slips of authors, found before they cost a run.

use crate::rig::{Place, playbook, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Warnings of `validate` as `CODE line: message (hint)`.
fn warnings(place: &Place) -> Vec<String> {
    let report = place.windlass(&["validate", "play.yaml", "--json"]).expect(0).json();
    let line = |warning: &Value| {
        let text = |key: &str| warning[key].as_str().unwrap_or_default();
        format!("{} {}: {} ({})", text("code"), warning["line"], text("message"), text("hint"))
    };
    report["warnings"].as_array().expect("warnings").iter().map(line).collect()
}

#[test]
fn names_that_nothing_has_are_found_with_the_nearest_one() {
    let place = Place::playing(
        "workload: {nn: 1, name: x}
workflow:
- step: build
  tool: {kind: shell, command: 'echo {{ workload.nm }}'}
  next:
    arcs:
    - {step: end, when: \"{{ evnt.name == 'step.done' }}\", args: {code: '{{ build.exit_cod }}'}}
    - {step: end, when: 'event.nam == steps.biuld.stdout and args.free and ctx.free'}
- step: end
  tool: {kind: noop, result: '{{ code }} {{ nn }} {{ buld.stdout }} {{ anything }}'}
",
    );
    assert_eq!(
        warnings(&place),
        [
            "W0254 7: `workload` has no input `nm` (did you mean `nn`?)",
            "W0254 10: an expression reads `evnt`, and nothing here has that name (did you mean `event`?)",
            "W0254 10: the result of step `build` has no field `exit_cod` (did you mean `exit_code`?)",
            "W0254 11: `event` has no `nam` (did you mean `name`?)",
            "W0254 11: an expression reads step `biuld`, which does not exist (did you mean `build`?)",
            "W0254 13: an expression reads `buld`, and nothing here has that name (did you mean `build`?)",
        ]
    );
    place.windlass(&["run", "play.yaml"]).expect(0).says("did you mean `event`?");
}

#[test]
fn inputs_of_workflows_are_compared_with_their_schema() {
    let place = Place::new();
    place.write(
        "flow.json",
        r#"{"name": "w", "nodes": [
            {"id": "t", "type": "trigger", "config": {"manualConfig": {"inputPayload": {"type": "object", "properties": {"name": {"type": "string"}}}}}},
            {"id": "n", "type": "delay", "config": {"duration": "{{ inputs.nme }}", "unit": "ms"}}],
          "edges": [{"id": "e", "source": "t", "target": "n"}]}"#,
    );
    let output = place.windlass(&["validate", "flow.json"]);
    output.says("warning[W0241]: the inputs have no `nme`").says("did you mean `name`?");
}

#[test]
fn routes_that_authors_seldom_mean_are_explained() {
    let place = Place::playing(
        "workflow:
- step: test
  tool: {kind: shell, command: 'true'}
  next: {spec: {mode: inclusive}, arcs: [{step: left}, {step: right}]}
- step: left
  tool: {kind: shell, command: 'true'}
  next: merge
- step: right
  next: merge
- step: merge
  tool: {kind: shell, command: 'echo ran >> output'}
",
    );
    let done = "write `when: \"{{ event.name == 'step.done' }}\"` to end the branch after a failure";
    let last = "write `spec: {join: all}` in the step to run it once, when all of them have arrived or ended";
    assert_eq!(
        warnings(&place),
        [
            format!(
                "W0253 7: if step `test` fails, `left` runs all the same, and the execution still ends failed ({done}; 1 more step has such an arc)"
            ),
            format!("W0255 13: step `merge` runs once for each branch of `test` that reaches it ({last})"),
        ]
    );
    place.run(&[], 0);
    assert_eq!(place.lines("output").len(), 2, "it does what the advice says");
    let quiet = place.windlass(&["run", "play.yaml"]).expect(0);
    assert!(!quiet.err.contains("W0253"), "a run is no check: {}", quiet.err);
}

#[test]
fn a_guarded_playbook_and_one_that_fails_fast_need_no_advice() {
    for steps in [
        "workflow:\n- {step: a, tool: {kind: shell, command: ls}, next: {step: b, when: \"{{ event.name == 'step.done' }}\"}}\n- {step: b, tool: {kind: noop}}\n",
        "executor: {spec: {failure: fail_fast}}\nworkflow:\n- {step: a, tool: {kind: shell, command: ls}, next: b}\n- {step: b, tool: {kind: noop}}\n",
        "workflow:\n- step: a\n  tool: {kind: shell, command: ls}\n  next: {arcs: [{step: c, when: \"{{ event.name == 'step.failed' }}\"}, {step: b}]}\n- {step: b, tool: {kind: noop}}\n- {step: c, tool: {kind: noop}}\n",
    ] {
        assert_eq!(warnings(&Place::playing(steps)), Vec::<String>::new(), "{steps}");
    }
}

const SECRET: &str = "keychain: [{name: api, kind: secret, secret: api-key}]
workflow:
- step: call
  tool: {kind: shell, command: 'echo ran >> output', env: {KEY: '{{ keychain.api.token }}'}}
";

#[test]
fn a_secret_that_is_not_stored_is_a_warning_and_keeps_a_run_from_starting() {
    let place = Place::playing(SECRET);
    let said = "step `call` reads the secret `api-key`, which is not stored";
    let output = place.windlass(&["validate", "play.yaml"]).expect(0).says(said);
    let output = output.says("hint: store it with `windlass secrets set api-key`");
    assert!(output.out.ends_with("1 step, 1 warning\n"), "{}", output.out);
    assert_eq!(warnings(&place).len(), 1);
    place.windlass(&["run", "play.yaml"]).expect(2).says("`windlass secrets set api-key`");
    assert!(place.lines("output").is_empty());
    place.given(&["secrets", "set", "api-key"], "a-long-value-of-a-key").expect(0);
    assert_eq!(warnings(&place), Vec::<String>::new());
    place.run(&[], 0);
    assert_eq!(place.lines("output"), ["ran"]);
}

#[test]
fn an_input_has_the_type_of_its_default_and_an_unknown_one_is_warned_of() {
    let place = Place::playing(
        "workload: {version: '1.0', count: 1, free: null}
workflow:
- {step: a, tool: {kind: noop, result: '{{ workload }}'}}
",
    );
    let inputs =
        ["--input", "version=1.10", "--input", "count=2", "--input", "free=1.10", "--input", "cuont=3"];
    let output = place.windlass(&[&["run", "play.yaml", "--json"], &inputs[..]].concat()).expect(0);
    let output = output.says("warning: the definition has no input `cuont`; did you mean `count`?");
    assert_eq!(output.json()["inputs"], json!({ "version": "1.10", "count": 2, "free": 1.1, "cuont": 3 }));
}

const LARGE: &str = r#"
workflow:
- step: make
  tool: {kind: python, code: 'result = {"rows": ["x" * 1000] * 200}'}
  next: say
- step: say
  tool: {kind: python, code: 'result = "hello"'}
"#;

#[test]
fn outputs_and_large_values_are_written_to_files() {
    let place = Place::playing(LARGE);
    let id = place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned();
    let printed = place.windlass(&["executions", "output", &id]).expect(0).json();
    assert_eq!(printed, json!({ "say": "hello" }));
    let said = place.windlass(&["executions", "output", &id, "say"]).expect(0);
    assert_eq!(said.out, "hello");
    place.windlass(&["executions", "output", &id, "make", "-o", "made.json"]).expect(0);
    let made: Value = serde_json::from_str(&place.lines("made.json").join("\n")).expect("JSON");
    assert_eq!(made["rows"].as_array().map(Vec::len), Some(200), "the value and not its reference");
    place.windlass(&["executions", "output", &id, "mak"]).expect(2).says("no result of step `mak`");
    place.windlass(&["executions", "output", &id, "make", "--firing", "2"]).expect(2);
    let listed = place.windlass(&["executions", "artifacts", &id, "--json"]).expect(0).json();
    let [artifact] = &listed["artifacts"].as_array().expect("a list")[..] else { panic!("{listed}") };
    assert_eq!(artifact["place"], "make");
    let written = place.windlass(&["executions", "artifacts", &id, "-o", "large"]).expect(0);
    assert!(written.out.contains("large/make.json"), "{}", written.out);
    let stored: Value = serde_json::from_str(&place.lines("large/make.json").join("\n")).expect("JSON");
    assert_eq!(stored, made);
}

#[test]
fn outputs_are_read_from_a_server() {
    let place = Place::playing(LARGE);
    let server = place.serve();
    let place = place.at(&server);
    let id = place.run(&[], 0)["executionId"].as_str().expect("an id").to_owned();
    let printed = place.windlass(&["executions", "output", &id, "make"]).expect(0).json();
    assert_eq!(printed["rows"].as_array().map(Vec::len), Some(200));
    let listed = place.windlass(&["executions", "artifacts", &id]).expect(0);
    assert!(listed.out.contains("  make  sha256:"), "{}", listed.out);
}

#[test]
fn a_server_reports_slips_at_validation_and_refuses_a_start_without_its_secret() {
    let place = Place::new();
    let server = place.serve();
    let text = format!("metadata: {{name: s}}\n{SECRET}  next: end\n- {{step: end, tool: {{kind: noop}}}}\n");
    let request =
        server.request(reqwest::Method::POST, "/api/v1/validate").header("content-type", "application/yaml");
    let report: Value = request.body(text.clone()).send().expect("an answer").json().expect("JSON");
    let codes: Vec<&str> = report["warnings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["code"].as_str())
        .collect();
    assert_eq!((&report["valid"], &codes[..]), (&json!(true), &["W0253"][..]), "{report}");
    assert!(report.to_string().contains("`windlass secrets set api-key`"), "{report}");
    let id = server.define(&text);
    let (status, refused) = server.post(&format!("/api/v1/workflows/{id}/execute"), &json!({}));
    assert_eq!(status, 400);
    assert!(refused.to_string().contains("`windlass secrets set api-key`"), "{refused}");
}

#[test]
fn now_is_the_time_of_the_journal_and_the_same_for_all_tasks_of_an_attempt() {
    let place = Place::playing(
        r#"
workload: {started: '{{ now() }}'}
workflow:
- step: a
  tool:
  - {name: first, kind: shell, command: 'sleep 0.05; echo {{ now() }}'}
  - {name: second, kind: noop, result: {at: '{{ now() }}', day: '{{ now() | strftime("%Y-%m-%d") }}', seconds: '{{ now().timestamp() | int > 1700000000 }}'}}
  next: {arcs: [{step: b, when: '{{ now() > workload.started or now() == workload.started }}', args: {at: '{{ now() }}'}}]}
- step: b
  tool: {kind: noop, result: '{{ args.at }}'}
"#,
    );
    let run = place.run(&[], 0);
    let nodes = run["nodeExecutions"].as_array().expect("nodes");
    let result = &nodes[0]["output"]["results"];
    let at = result["second"]["at"].as_str().expect("a time");
    assert_eq!(result["first"]["stdout"], format!("{at}\n"), "{run}");
    assert_eq!((&result["second"]["day"], &result["second"]["seconds"]), (&json!(at[..10]), &json!(true)));
    let id = run["executionId"].as_str().expect("an id");
    let events = place.windlass(&["executions", "events", id, "--json"]).expect(0).out;
    let offered = events.lines().find(|line| line.contains("step.offered") || line.contains("step.queued"));
    assert!(offered.is_some_and(|line| line.contains(at)), "{at} is the time of the offer:\n{events}");
    let routed = nodes[1]["output"].as_str().expect("a time");
    assert!(routed > at && run["inputs"]["started"].as_str().is_some_and(|started| started <= at), "{run}");
}

/// A step that is killed and runs again makes the same file name from the time.
#[test]
fn now_is_the_same_after_the_process_was_killed() {
    let place = Place::playing(
        "workflow:
- step: a
  tool: {kind: shell, command: 'echo {{ now() }} >> times; until [ -e go ]; do sleep 0.02; done'}
",
    );
    let running = place.start(&["run", "play.yaml"]);
    until("the step runs", || (place.lines("times").len() == 1).then_some(()));
    running.signal(Signal::KILL);
    running.end();
    place.write("go", "");
    place.windlass(&["run", "--resume", "@last"]).expect(0);
    let times = place.lines("times");
    assert_eq!((times.len(), &times[0]), (2, &times[1]));
}

#[test]
fn expressions_have_the_functions_that_people_use_offline() {
    let place = Place::playing(
        r#"
workload: {name: 'Ada Lovelace', log: 'id=12 id=345', when: '2026-03-01T12:30:00+02:00', rows: [1, 2, 3]}
workflow:
- step: a
  tool:
    kind: noop
    result:
      sum: '{% set ns = namespace(total=0) %}{% for row in rows %}{% set ns.total = ns.total + row %}{% endfor %}{{ ns.total }}'
      short: '{{ name | truncate(9) }}'
      cut: '{{ name | truncate(6, killwords=true, end="…") }}'
      first: '{{ log | regex_search("id=(\d+)") }}'
      none: '{{ log | regex_search("x=(\d+)") }}'
      all: '{{ log | regex_findall("\d+") }}'
      swapped: '{{ name | regex_replace("([a-zA-Z]+) ([a-zA-Z]+)", "\\2, \\1") }}'
      day: '{{ workload.when | strftime("%d.%m.%Y %H:%M") }}'
      next: '{{ workload.when | add_seconds(86400) }}'
      hash: '{{ "abc" | sha256 }}'
"#,
    );
    let run = place.run(&[], 0);
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(
        run["outputs"],
        json!({
            "sum": "6", "short": "Ada...", "cut": "Ada L…", "first": "12", "none": null, "all": ["12", "345"],
            "swapped": "Lovelace, Ada", "day": "01.03.2026 10:30", "next": "2026-03-02T10:30:00.000Z", "hash": hash,
        })
    );
    for (bad, why) in [
        ("{{ name | regex_search('(') }}", "is not a regular expression"),
        ("{{ name | strftime('%Y') }}", "is not a time"),
        ("{{ workload.when | strftime('%Q') }}", "has no `%Q`"),
        ("{{ ('a' * 70000) | regex_findall('a') }}", "at most 65536 bytes"),
        (
            "{% set ns = namespace(a=[]) %}{% for i in range(90) %}{% set ns.a = [ns.a, ns.a] %}{% endfor %}x",
            "",
        ),
    ] {
        let steps = format!(
            "workload: {{name: x, when: '2026-03-01'}}\nworkflow:\n- {{step: a, tool: {{kind: noop, result: \"{bad}\"}}}}\n"
        );
        let run = Place::playing(&steps).run(&[], 1);
        assert!(
            run["errors"][0]["message"].as_str().is_some_and(|message| message.contains(why)),
            "{bad}: {run}"
        );
    }
}

#[test]
fn definitions_whose_parts_all_refer_to_the_whole_are_refused() {
    let place = Place::new();
    let step = |number: usize| {
        format!("- {{step: s{number}, set_ctx: {{all: '{{{{ steps }}}}'}}, next: s{}}}\n", number + 1)
    };
    let steps: String = (0..1_100).map(step).collect();
    place.write(
        "play.yaml",
        &playbook("tested", &format!("workflow:\n{steps}- {{step: s1100, tool: {{kind: noop}}}}\n")),
    );
    place.windlass(&["validate", "play.yaml"]).expect(2).says("E0122").says("read single steps");
    let node = |number: usize| {
        let config = json!({ "provider": "openai", "model": "m", "userPromptTemplate": "x" });
        json!({ "id": format!("n{number}"), "type": "ai_agent", "config": config })
    };
    let edge = |number: usize| json!({ "source": format!("n{number}"), "target": format!("n{}", number + 1), "sourceHandle": "done" });
    let nodes: Vec<Value> = (0..400).map(node).collect();
    let edges: Vec<Value> = (0..399).map(edge).collect();
    place.write("agents.json", &json!({ "name": "agents", "nodes": nodes, "edges": edges }).to_string());
    let refused = place.windlass(&["validate", "agents.json"]).expect(2);
    refused.says("E0143").says("too many nodes refer to the whole workflow of 400 nodes");
}
