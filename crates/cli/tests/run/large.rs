//! Values that are too large for a journal: stored apart, and read through their references.

use crate::rig::{Place, until};
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

const ROWS: &str = r#"
workflow:
- step: make
  tool:
    kind: python
    code: |
      result = {"rows": [{"id": i, "text": "x" * 100} for i in range(20000)], "count": 20000}
  next:
    arcs:
    - step: sum
      when: "{{ make.count == 20000 and make.rows | length == 20000 and make.rows[19999].id == 19999 }}"
      args: {rows: "{{ make.rows }}", small: 7}
- step: sum
  tool:
  - name: all
    kind: python
    args: {rows: "{{ args.rows }}"}
    code: |
      result = {"sum": sum(row["id"] for row in rows)}
  - name: again
    kind: artifact
    action: get
    ref: "{{ make._ref }}"
  - name: output
    kind: noop
    result: {sum: "{{ all.sum }}", count: "{{ again.count }}", small: "{{ args.small }}"}
  set_ctx: {output: "{{ sum.results.output }}", rows: "{{ args.rows }}"}
  next:
    arcs:
    - step: end
      when: "{{ ctx.rows | length == 20000 }}"
- step: end
  tool: {kind: noop, result: "{{ ctx.output }}"}
"#;

fn node<'v>(run: &'v Value, name: &str) -> &'v Value {
    let nodes = run["nodeExecutions"].as_array().expect("nodes");
    nodes.iter().find(|node| node["nodeId"] == name).unwrap_or_else(|| panic!("no node {name}: {run}"))
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries
        .map(|entry| if entry.path().is_dir() { bytes_in(&entry.path()) } else { length(&entry.path()) })
        .sum()
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |metadata| metadata.len())
}

#[test]
fn pbk_12_large_results_args_and_context_are_references_that_templates_read_through() {
    let place = Place::playing(ROWS);
    let run = place.run(&[], 0);
    assert_eq!(run["outputs"], json!({ "sum": 199_990_000, "count": 20_000, "small": 7 }));
    let made = &node(&run, "make")["output"];
    assert!(made["bytes"].as_u64().expect("a size") > 2_000_000, "{made}");
    let digest = made["$artifact"].as_str().and_then(|key| key.strip_prefix("sha256:")).expect("a digest");
    let kept = place.path("data/artifacts/t-default").join(&digest[..2]).join(digest);
    let kept: Value = serde_json::from_slice(&fs::read(kept).expect("it is kept")).expect("it is JSON");
    assert_eq!(kept["rows"][5], json!({ "id": 5, "text": "x".repeat(100) }));
    let store = length(&place.path("data/windlass.db")) + length(&place.path("data/windlass.db-wal"));
    assert!(store < 500_000, "the store has {store} bytes");
    assert!(bytes_in(&place.path("data/artifacts")) > 4_000_000);
    let id = run["executionId"].as_str().expect("an id");
    let events = place.windlass(&["executions", "events", id, "--json"]).expect(0).out;
    assert!(events.len() < 50_000 && !events.contains("xxxxxxxxxx"), "{} bytes of events", events.len());
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_python_result_of_many_megabytes_is_an_artifact_and_a_larger_one_an_error_with_its_size() {
    let place = Place::playing(
        r#"
workflow:
- step: make
  tool: {kind: python, code: 'result = {"text": "x" * (40 << 20), "n": 7}'}
  next: read
- step: read
  tool: {kind: python, args: {text: '{{ make.text }}', n: '{{ make.n }}'}, code: 'result = {"length": len(text) + n}'}
"#,
    );
    let run = place.run(&[], 0);
    assert_eq!(run["outputs"], json!({ "length": (40 << 20) + 7 }));
    assert!(node(&run, "make")["output"]["bytes"].as_u64().expect("a size") > 40 << 20);
    place.windlass(&["executions", "output", "@last", "make", "-o", "made.json"]).expect(0);
    let made: Value =
        serde_json::from_slice(&fs::read(place.path("made.json")).expect("a file")).expect("JSON");
    assert_eq!(made["text"].as_str().map(str::len), Some(40 << 20));
    for (code, words) in [
        ("result = 'x' * (129 << 20)", "it has 129 MiB as JSON, and 128 MiB is the maximum"),
        ("result = [[]] * 2000000", "MiB of memory, and 512 MiB is the maximum; write it to a file"),
    ] {
        let steps = format!("workflow:\n- {{step: make, tool: {{kind: python, code: \"{code}\"}}}}\n");
        place.write("play.yaml", &crate::rig::playbook("tested", &steps));
        let error = &place.run(&[], 1)["errors"][0];
        assert_eq!(error["code"], "RESULT_TOO_LARGE", "{error}");
        assert!(error["message"].as_str().expect("a text").contains(words), "{error}");
    }
}

/// A list over 64 KiB is a reference in the journal; iterations get its items all the same, also after a crash.
#[test]
fn a_loop_over_a_large_list_passes_each_iteration_its_item() {
    let place = Place::playing(
        r#"
workflow:
- step: make
  tool: {kind: python, code: 'result = [{"text": "x" * 50000, "n": n} for n in range(4)]'}
  next: each
- step: each
  loop: {in: '{{ make }}', iterator: row}
  tool:
    kind: python
    args: {row: '{{ iter.row }}'}
    code: |
      import os, time
      while row["n"] == 2 and not os.path.exists("go"):
          open("waits", "w")
          time.sleep(0.02)
      open("seen", "a").write(f"{row['n']} {len(row['text'])}\n")
"#,
    );
    let running = place.start(&["run", "play.yaml"]);
    until("the third iteration runs", || place.path("waits").exists().then_some(()));
    running.signal(rustix::process::Signal::KILL);
    running.end();
    place.write("go", "");
    place.windlass(&["run", "--resume", "@last"]).expect(0);
    assert_eq!(place.lines("seen"), ["0 50000", "1 50000", "2 50000", "3 50000"]);
}

#[test]
fn an_artifact_that_was_lost_fails_the_step_that_reads_it_and_nothing_else() {
    let place = Place::playing(
        r#"
workflow:
- step: make
  tool: {kind: python, code: "result = {'rows': ['x'] * 50000, 'n': 1}"}
  next: {spec: {mode: inclusive}, arcs: [{step: gone}, {step: fine}]}
- step: gone
  tool:
  - name: lose
    kind: shell
    command: rm -r data/artifacts
  - {name: read, kind: noop, result: "{{ make.n }}"}
- step: fine
  tool: {kind: shell, command: "true"}
"#,
    );
    let run = place.run(&[], 1);
    assert_eq!(node(&run, "gone")["error"]["code"], "REFERENCE_NOT_AVAILABLE", "{run}");
    assert_eq!(node(&run, "fine")["status"], "completed");
    let output = place.windlass(&["admin", "check"]).expect(1);
    assert!(
        output.out.contains("artifacts: sha256:") && output.out.contains("is not there"),
        "{}",
        output.out
    );
}

#[test]
fn inputs_of_any_size_are_taken() {
    let place = Place::playing(
        r#"
workload: {rows: []}
workflow:
- step: count
  tool: {kind: noop, result: {n: "{{ workload.rows | length }}", last: "{{ rows[29999] }}"}}
"#,
    );
    place.write("inputs.json", &json!({ "rows": (0..30_000).collect::<Vec<_>>() }).to_string());
    let run = place.run(&["--inputs", "@inputs.json"], 0);
    assert_eq!(run["outputs"], json!({ "n": 30_000, "last": 29_999 }));
    assert_eq!(run["inputs"]["rows"][29_999], 29_999, "they are reported as they are");
}

const CHILD: &str = r#"
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: child, path: child}
workload: {n: 1}
workflow:
- step: work
  tool:
    kind: shell
    command: |
      echo "child {{ workload.n }}" >> ran
      until [ -e go ]; do sleep 0.01; done
      [ {{ workload.n }} -lt 100 ] || exit 3
  next: {arcs: [{step: end}]}
- step: end
  tool: {kind: noop, result: {n: "{{ workload.n * 10 }}"}}
"#;

const PARENT: &str = r#"
workflow:
- step: all
  tool:
  - {name: first, kind: shell, command: echo first >> ran}
  - {name: one, kind: playbook, path: child, args: {n: 4}}
  - {name: two, kind: playbook, path: child, args: {n: "{{ one.n * 10 }}"},
     spec: {policy: {rules: [
       {when: "{{ outcome.status == 'error' }}", then: {do: continue, set_ctx: {why: "{{ outcome.error.code }}"}}}]}}}
  - {name: last, kind: noop, result: {one: "{{ one.n }}", why: "{{ ctx.why }}"}}
"#;

/// The engine is killed while the pipeline waits for its child: nothing is done twice, the rules see how it ended.
#[test]
fn a_pipeline_waits_durably_for_the_playbooks_in_it() {
    let place = Place::playing(PARENT);
    place.write("child.yaml", CHILD);
    let engine = place.start(&["run", "play.yaml", "--json"]);
    until("the first child begins", || (place.lines("ran") == ["first", "child 4"]).then_some(()));
    engine.signal(rustix::process::Signal::KILL);
    drop(engine.end());
    place.write("go", "");
    let output = place.windlass(&["run", "--resume", "--json"]).expect(0);
    let run: Value = serde_json::from_str(output.out.lines().next().unwrap_or_default()).expect("the parent");
    assert_eq!(run["outputs"]["one"], 40, "{run}");
    assert_eq!(run["outputs"]["why"], "SHELL_EXIT");
    let ran = place.lines("ran");
    assert_eq!((ran[0].as_str(), ran.iter().filter(|line| *line == "first").count()), ("first", 1));
    assert_eq!(ran.last().map(String::as_str), Some("child 400"));
    let list = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    assert_eq!(list.as_array().or(list["executions"].as_array()).map(Vec::len), Some(3), "{list}");
    place.windlass(&["admin", "check"]).expect(0);
}
