//! The summary that a final step gets: results of every firing, failures with their places, large outputs in full.

use crate::rig::{Place, until};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A poll that fires three times, a loop with a failed iteration, a step that fails, one that is not reached.
const STEPS: &str = "executor: {spec: {final_step: wrap}}
workflow:
- step: poll
  tool: {kind: noop, result: {n: '{{ ctx.n | default(0) }}'}}
  set_ctx: {n: '{{ (ctx.n | default(0)) + 1 }}'}
  next: {arcs: [{step: poll, when: '{{ ctx.n < 3 }}'}, {step: each}]}
- step: each
  loop: {in: [1, 2, 3], iterator: n}
  tool: {kind: python, args: {n: '{{ iter.n }}'}, code: 'result = 6 // (n - 2)'}
  next: {arcs: [{step: break, when: \"{{ event.error }}\"}]}
- step: break
  tool:
  - {name: first, kind: noop}
  - name: second
    kind: python
    code: |
      x = 1
      raise ValueError(x)
- {step: never, tool: {kind: noop}}
";

fn play(last: &str, code: i32) -> (Place, Value) {
    let place = Place::playing(&format!("{STEPS}{last}"));
    let run = place.run(&[], code);
    (place, run)
}

fn statuses(firings: &Value) -> Vec<&str> {
    let firings = firings.as_array().expect("firings");
    firings.iter().map(|firing| firing["status"].as_str().expect("a status")).collect()
}

#[test]
fn pbk_18_the_final_step_gets_every_firing_and_the_place_of_every_failure() {
    let (_, run) = play("- {step: wrap, tool: {kind: python, code: 'result = args'}}\n", 1);
    let summary = &run["outputs"];
    let polled = json!([
        { "firing": 1, "path": [], "status": "completed", "output": { "n": 0 } },
        { "firing": 2, "path": [], "status": "completed", "output": { "n": 1 } },
        { "firing": 3, "path": [], "status": "completed", "output": { "n": 2 } },
    ]);
    let results = &summary["results"];
    assert_eq!(results["poll"], polled, "{run}");
    assert_eq!((statuses(&results["each"]), statuses(&results["break"])), (vec!["failed"], vec!["failed"]));
    let each = &results["each"][0]["output"];
    assert_eq!((&each["results"], &each["failed"]), (&json!([-6, null, 6]), &json!(1)), "{each}");
    assert_eq!(results["never"], json!([]), "{results}");
    assert_eq!(results.get("wrap"), None, "{results}");
    let failures = summary["failures"].as_array().expect("failures");
    let [of_loop, of_code] = &failures[..] else { panic!("{failures:?}") };
    assert_eq!((&of_loop["nodeId"], &of_loop["handled"]), (&json!("each"), &json!(true)));
    assert_eq!(of_loop["failedIterations"], json!([1]));
    assert_eq!((&of_code["nodeName"], &of_code["task"]), (&json!("break"), &json!("second")));
    assert_eq!((&of_code["code"], &of_code["class"]), (&json!("PYTHON_EXCEPTION"), &json!("unknown")));
    assert_eq!((&of_code["location"]["codeLine"], &of_code["attempt"]), (&json!(2), &json!(1)));
    assert_eq!((&of_code["handled"], &of_code["retryable"]), (&json!(false), &json!(false)));
    assert_eq!(summary["omitted"], json!({ "results": {}, "failures": 0 }));
}

#[test]
fn templates_of_a_final_step_read_results_by_step_and_failures_by_name() {
    let last = "- step: wrap
  tool:
    kind: noop
    result:
      polls: \"{{ results.poll | map(attribute='output.n') | list }}\"
      each: '{{ args.results.each[0].output.results }}'
      failed: \"{{ failures | map(attribute='step') | list }}\"
      never: '{{ results.never | length }}'
";
    let (place, run) = play(last, 1);
    let expected =
        json!({ "polls": [0, 1, 2], "each": [-6, null, 6], "failed": ["each", "break"], "never": 0 });
    assert_eq!(run["outputs"], expected, "{run}");
    let checked = place.windlass(&["validate", "play.yaml"]).expect(0);
    assert!(!checked.err.contains("W0254"), "{}", checked.err);
}

#[test]
fn a_final_step_that_reads_no_results_gets_none() {
    let last = "- {step: wrap, tool: {kind: noop, result: {failed: '{{ args.steps.failed }}'}}}\n";
    let (place, run) = play(last, 1);
    assert_eq!(run["outputs"], json!({ "failed": 2 }), "{run}");
    let events = place.windlass(&["executions", "events", "@last", "--json"]).expect(0).out;
    assert!(!events.contains("\"results\":{"), "{events}");
}

/// Two results of 200 kB, read by each kind of tool.
const LARGE: &str = "executor: {spec: {final_step: wrap}}
workflow:
- step: make
  tool: {kind: python, code: 'result = {\"text\": \"x\" * 200000, \"n\": 5}'}
  next: {arcs: [{step: make, when: '{{ (ctx.made | default(0)) < 2 }}'}]}
  set_ctx: {made: '{{ (ctx.made | default(0)) + 1 }}'}
";

#[test]
fn large_results_are_whole_for_every_tool_of_a_final_step() {
    let last = "- step: wrap
  tool:
  - name: code
    kind: python
    code: 'result = [len(firing[\"output\"][\"text\"]) for firing in results[\"make\"]]'
  - name: shell
    kind: shell
    command: 'printf %s {{ results.make[1].output.text | length }}'
  - name: rule
    kind: noop
    result: '{{ args.results.make[0].output.n }}'
  - name: all
    kind: noop
    result: {code: '{{ code }}', shell: '{{ shell.stdout }}', rule: '{{ rule }}'}
";
    let place = Place::playing(&format!("{LARGE}{last}"));
    let run = place.run(&[], 0);
    let all = json!({ "code": [200_000, 200_000], "shell": "200000", "rule": 5 });
    assert_eq!(run["outputs"]["results"]["all"], all, "{run}");
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_final_step_can_loop_over_large_results() {
    let last = "- step: wrap
  loop: {in: '{{ results.make }}', iterator: firing}
  tool: {kind: python, args: {text: '{{ iter.firing.output.text }}'}, code: 'open(\"lengths\", \"a\").write(f\"{len(text)}\\n\")'}
";
    let place = Place::playing(&format!("{LARGE}{last}"));
    place.run(&[], 0);
    assert_eq!(place.lines("lengths"), ["200000", "200000"]);
}

/// A result is data, even if it looks like a reference to the result of another step.
#[test]
fn a_result_that_looks_like_a_reference_is_not_resolved() {
    let steps = "executor: {spec: {final_step: wrap}}
workflow:
- step: make
  tool: {kind: python, code: 'result = {\"text\": \"x\" * 200000}'}
  next: forge
- step: forge
  tool: {kind: python, args: {ref: '{{ make._ref }}'}, code: 'result = {\"results\": {\"a\": [{\"output\": ref}]}, \"inner\": ref}'}
- step: wrap
  tool: {kind: python, code: 'result = results[\"forge\"][0][\"output\"]'}
";
    let run = Place::playing(steps).run(&[], 0);
    assert!(run["outputs"]["inner"]["$artifact"].is_string(), "{run}");
}

/// The process is killed while the final step runs; the next one passes it the same summary.
#[test]
fn a_final_step_has_the_same_results_after_a_crash() {
    let last = "- step: wrap
  tool:
    kind: python
    code: |
      import os, time
      open('seen', 'a').write(f\"{[len(f['output']['text']) for f in results['make']]} {len(failures)}\\n\")
      while not os.path.exists('go'):
          time.sleep(0.02)
      result = len(results['make'])
";
    let place = Place::playing(&format!("{LARGE}{last}"));
    let running = place.start(&["run", "play.yaml"]);
    until("the final step runs", || (place.lines("seen").len() == 1).then_some(()));
    running.signal(Signal::KILL);
    running.end();
    place.write("go", "");
    let run = place.windlass(&["run", "--resume", "@last", "--json"]).expect(0).json();
    assert_eq!(run["outputs"], json!({ "wrap": 2 }), "{run}");
    assert_eq!(place.lines("seen"), ["[200000, 200000] 0"; 2]);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_summary_lists_the_newest_firings_and_says_how_many_it_leaves_out() {
    let steps = "executor: {spec: {final_step: wrap}}
workflow:
- step: count
  tool: {kind: noop}
  set_ctx: {n: '{{ (ctx.n | default(0)) + 1 }}'}
  next: {arcs: [{step: count, when: '{{ ctx.n < 1200 }}'}]}
- step: wrap
  tool: {kind: noop, result: {first: '{{ results.count[0].firing }}', length: '{{ results.count | length }}', omitted: '{{ omitted.results.count }}'}}
";
    let run = Place::playing(steps).run(&[], 0);
    assert_eq!(run["outputs"], json!({ "first": 201, "length": 1_000, "omitted": 200 }), "{run}");
}
