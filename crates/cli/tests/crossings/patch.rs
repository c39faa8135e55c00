//! A patch of the context and the tokens that it wakes.

use crate::rig::{Place, until};
use rustix::process::Signal;
use serde_json::Value;

/// Three gates that look at different keys, one with two tokens, and a step that keeps the engine at work.
const GATES: &str = "workflow:
- step: split
  next:
    spec: {mode: inclusive}
    arcs:
    - {step: red, args: {n: 1}}
    - {step: red, args: {n: 2}}
    - {step: blue}
    - {step: both}
    - {step: lasting}
- step: red
  spec: {policy: {admit: {rules: [{when: '{{ ctx.red }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'echo red >> output'}
- step: blue
  spec: {policy: {admit: {rules: [{when: '{{ ctx.blue }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'echo blue >> output'}
- step: both
  spec: {policy: {admit: {rules: [{when: '{{ ctx.red and ctx.blue }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'echo both >> output'}
- step: lasting
  tool: {kind: shell, command: 'echo begun >> output; while ! test -e go; do sleep 0.02; done'}
";

fn gates(place: &Place, id: &str) -> Vec<String> {
    let output = place.windlass(&["executions", "get", id, "--json"]).expect(0).json();
    let gates = output["view"]["gates"].as_array().cloned().unwrap_or_default();
    gates.iter().filter_map(|gate| Some(gate["step"].as_str()?.to_owned())).collect()
}

#[test]
fn pbk_06_a_patch_wakes_exactly_the_tokens_it_enables_and_a_kill_right_after_loses_none() {
    let place = Place::playing(GATES);
    let mut running = place.start(&["run", "play.yaml"]);
    let id = running.until_says("exec_").split(':').next().expect("an id").to_owned();
    until("the steps have begun", || (place.lines("output") == ["begun"]).then_some(()));
    assert_eq!(gates(&place, &id), ["red", "red", "blue", "both"]);
    place.windlass(&["executions", "patch", &id, "other=1"]).expect(0);
    assert_eq!(gates(&place, &id), ["red", "red", "blue", "both"], "no gate reads that key");
    // The answer is a promise: if the process is killed after it, the tokens still continue.
    place.windlass(&["executions", "patch", &id, "red=true"]).expect(0);
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(gates(&place, &id), ["blue", "both"]);
    place.write("go", "");
    place.windlass(&["run", "--resume", &id]).expect(5);
    let output = place.lines("output");
    let count = |what: &str| output.iter().filter(|line| *line == what).count();
    // A red step that had begun when it was killed ran again; both did, and nothing else.
    assert!((2..=4).contains(&count("red")), "{output:?}");
    assert_eq!((count("blue"), count("both")), (0, 0), "{output:?}");
    let done = |output: &Value, step: &str| {
        let entries = output["nodeExecutions"].as_array().cloned().unwrap_or_default();
        entries.iter().filter(|one| one["nodeId"] == step && one["status"] == "completed").count()
    };
    let output = place.windlass(&["executions", "get", &id, "--json"]).expect(0).json();
    assert_eq!((done(&output, "red"), done(&output, "lasting")), (2, 1));
    place.windlass(&["executions", "patch", &id, "blue=true"]).expect(0);
    let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(0).json();
    assert_eq!((done(&output, "red"), done(&output, "blue"), done(&output, "both")), (2, 1, 1));
    place.windlass(&["admin", "check"]).expect(0);
}
