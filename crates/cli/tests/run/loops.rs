//! Results of the iterations of a loop, read together afterwards.

use crate::rig::{Place, is_gone, process_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};

const EACH: &str = r#"
workload: {items: [3, 1, 2]}
workflow:
- step: each
  loop: {in: "{{ workload.items }}", iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool:
    kind: shell
    command: |
      [ -e go ] || [ {{ iter.n }} != 2 ] || { echo $$ > waiting; until [ -e go ]; do sleep 0.01; done; }
      echo {{ iter.n }} >> ran
      echo {{ iter.n * 10 }}
  next:
    arcs: [{step: sum, when: "{{ each.results | length == 3 and each.stats.success == 3 }}"}]
- step: sum
  tool: {kind: python, args: {all: "{{ each.results }}"}, code: "result = [int(one['stdout']) for one in all]"}
"#;

/// The engine is killed when some iterations are done: their results are kept, and none of them runs again.
#[test]
fn pbk_23_results_of_iterations_outlive_a_kill() {
    let place = Place::playing(EACH);
    let engine = place.start(&["run", "play.yaml"]);
    until("the others are done", || {
        (place.lines("ran").len() == 2 && place.path("waiting").exists()).then_some(())
    });
    until("they are on disk", || {
        let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
        let id =
            list.as_array().or(list["executions"].as_array())?.first()?["executionId"].as_str()?.to_owned();
        let events = place.windlass(&["executions", "events", &id, "--json"]).expect(0).out;
        (events.matches("loop.iteration.done").count() == 2).then_some(())
    });
    let waiting = process_of(&place, "waiting");
    engine.signal(Signal::KILL);
    drop(engine.end());
    // Its supervisor ends it; before that it would see `go` and run on.
    until("the step's process is gone", || is_gone(waiting).then_some(()));
    place.write("go", "");
    let run: Value = place.windlass(&["run", "--resume", "--json"]).expect(0).json();
    assert_eq!(run["outputs"], json!({ "sum": [30, 10, 20] }), "{run}");
    let mut ran = place.lines("ran");
    ran.sort();
    assert_eq!(ran, ["1", "2", "3"]);
    place.windlass(&["admin", "check"]).expect(0);
}
