//! Plans whose worker dies, that are cancelled, and whose steps wait for their route.

use crate::plans::{find, output, phases, planning, ran, refused};
use crate::rig::{Place, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Two steps that note what they find, the second of which waits for the file `go`.
fn interruptible(place: &Place) -> String {
    let at = |name: &str| place.path(name).display().to_string();
    let (seen, go) = (at("seen"), at("go"));
    json!({
        "params": [{ "name": "token", "required": true }],
        "steps": [
            { "id": "a", "args": { "refs": { "token": "params.token" } }, "action": {
                "params": [{ "name": "token" }], "outputs": [{ "name": "o" }],
                "script": format!("(ls $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR; echo a; wc -c < context/token) | tr '\\n' ' ' >> {seen}; echo >> {seen}; touch $SIGNADOT_PLAN_EXECUTION_SCRATCHDIR/left; echo 1 > outputs/o"),
            } },
            { "id": "b", "args": { "refs": { "o": "steps.a.outputs.o" } }, "action": {
                "params": [{ "name": "o" }],
                "script": format!("echo b >> {seen}; while [ ! -e {go} ]; do sleep 0.05; done"),
            } },
        ],
    })
    .to_string()
}

#[test]
fn pln_10_pln_34_pln_35_an_execution_whose_worker_was_killed_starts_from_scratch_with_secrets_as_they_are_now()
 {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    place.given(&["secrets", "set", "prod"], "first-value").expect(0);
    let running = place.start(&["run", "play.yaml", "--param-secret", "token=prod"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    running.signal(Signal::KILL);
    assert_eq!(running.end().0, None);
    place.given(&["secrets", "set", "prod"], "a-longer-second-value").expect(0);
    place.write("go", "");
    let run = place.windlass(&["run", "--resume", "--json"]).expect(0).json();
    assert_eq!(
        place.lines("seen"),
        ["bin a 11 ", "b", "bin a 21 ", "b"],
        "dirs are fresh, and the value is the new one"
    );
    assert_eq!(phases(&run), "a completed, b completed");
    assert_eq!(run["view"]["status"]["stepCounts"]["completed"], 2);
}

#[test]
fn pln_34_a_secret_that_was_deleted_before_another_dispatch_fails_the_execution() {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    place.given(&["secrets", "set", "prod"], "first-value").expect(0);
    let running = place.start(&["run", "play.yaml", "--param-secret", "token=prod"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    running.signal(Signal::KILL);
    running.end();
    place.windlass(&["secrets", "delete", "prod"]).expect(0);
    let run = place.windlass(&["run", "--resume", "--json"]).expect(1).json();
    let status = &run["view"]["status"];
    let error = status["error"].as_str().unwrap_or_default();
    assert!(error.contains("parameter `token`: there is no secret `prod`"), "{status}");
    assert_eq!(status["phase"], "failed");
    assert_eq!(phases(&run), "a skipped, b skipped", "nothing ran in the new attempt");
}

#[test]
fn pln_32_a_running_execution_can_be_cancelled() {
    let place = Place::new();
    place.write("play.yaml", &interruptible(&place));
    let running = place.start(&["run", "play.yaml", "--input", "token=t", "--json"]);
    until("the second step runs", || place.lines("seen").contains(&"b".to_owned()).then_some(()));
    place.windlass(&["executions", "cancel", "@last"]).expect(0);
    let (code, out, err) = running.end();
    assert_eq!(code, Some(3), "{err}");
    let run: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(run["view"]["status"]["phase"], "cancelled");
    assert_eq!(phases(&run), "a completed, b failed");
    assert_eq!(find(&run, "b")["error"], "cancelled");
    assert_ne!(place.windlass(&["executions", "cancel", "@last"]).code, 0, "it is terminal");
}

#[test]
fn pln_16_pln_17_a_step_waits_until_its_sandbox_is_ready_and_then_runs_with_its_name_and_key() {
    let place = planning(
        r#"
params: [{name: box, required: true}]
steps:
- {id: routed, action: {script: "env | grep -E '^SIGNADOT_(ROUTING|SANDBOX|ROUTEGROUP)' | sort > outputs/o", outputs: [{name: o}]}, routingContext: {ref: {sandboxRef: params.box}}}
- {id: other, action: {script: "echo $SIGNADOT_SANDBOX_NAME > outputs/o", outputs: [{name: o}]}}
"#,
    );
    place.windlass(&["sandboxes", "put", "s1", "--routing-key", "k-1"]).expect(0);
    let running = place.start(&["run", "play.yaml", "--input", "box=s1", "--json"]);
    let waiting = until("one step waits and the other has ended", || {
        let got = place.windlass(&["executions", "get", "@last", "--json"]);
        let run = (got.code == 0).then(|| got.json())?;
        (phases(&run) == "routed waiting, other completed").then_some(run)
    });
    assert_eq!(waiting["view"]["status"]["stepCounts"]["waiting"], 1);
    assert_eq!(waiting["view"]["status"]["phase"], "running");
    place.windlass(&["sandboxes", "put", "s1", "--ready", "--routing-key", "k-1"]).expect(0);
    let (code, out, err) = running.end();
    assert_eq!(code, Some(0), "{err}");
    let run: Value = serde_json::from_str(&out).expect("JSON");
    let variables = "SIGNADOT_ROUTING_KEY=k-1\nSIGNADOT_SANDBOX_NAME=s1\n";
    assert_eq!(output(find(&run, "routed"), "o")["value"], variables);
    assert_eq!(output(find(&run, "other"), "o")["value"], "\n");
}

#[test]
fn a_routing_target_that_names_nothing_fails_its_step_at_once() {
    let place = planning(
        "params: [{name: target, schema: {}}]\nsteps:\n- {id: a, action: {script: 'touch ran'}, routingContext: {ref: {anyRef: params.target}}}\n",
    );
    for (target, expected) in [
        (r#"{"sandbox": "a", "routeGroup": "b"}"#, "it has 2 fields"),
        (r#"{"sandbox": "../x"}"#, "`sandbox` of the routing context has 1 to 64 letters"),
        (r#"{"sandbox": null}"#, "`sandbox` of the routing context is a name, and it has no value"),
        (r#"{"box": "a"}"#, "one of `sandbox`, `routeGroup` and `routingKey`"),
        ("null", "it has no value"),
    ] {
        let input = format!("target={target}");
        let run = ran(&place, &["--input", &input], 1);
        let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
        assert!(error.contains(expected), "{target}: {error}");
    }
    assert!(refused(&place, &[]).err.contains("the routing context of step `a` reads it"));
    let place = place.variable("WINDLASS_ROUTING_TIMEOUT_SECONDS", "1");
    let run = ran(&place, &["--input", r#"target={"sandbox": "pr-7"}"#], 1);
    let error = find(&run, "a")["error"].as_str().unwrap_or_default().to_owned();
    assert!(
        error.contains(r#"the awaited route {"sandbox":"pr-7"} did not become ready in time"#),
        "{error}"
    );
    place.write(
        "play.yaml",
        "steps: [{id: a, action: {script: 'true'}, routingContext: {literal: {sandbox: ../x}}}]",
    );
    assert!(refused(&place, &[]).err.contains("cannot be `../x`"));
}
