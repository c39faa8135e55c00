//! Large values of a pipeline: kept as artifacts before anything refers to them, and read through their references.

use crate::engine::Shop;
use crate::pipeline::{UNIT, called, work};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_artifact::key;
use windlass_protocol::{Outcome, Work};
use windlass_worker::{Next, Run};

const INLINE_BYTES: usize = 60;

fn long(n: u64) -> Value {
    json!({ "n": n, "text": "x".repeat(INLINE_BYTES) })
}

/// Calls of a run, which checks that everything a call refers to was stored before.
#[derive(Default)]
struct Transcript {
    kept: BTreeMap<String, Vec<u8>>,
    calls: Vec<Value>,
    cursors: Vec<Value>,
    loads: usize,
}

impl Transcript {
    fn run(&mut self, work: Work, answers: &[Value]) -> windlass_protocol::Report {
        let mut answers = answers.iter();
        let mut run = Run::begin(work);
        loop {
            match run.advance() {
                Next::Open(handles) => panic!("nothing names a secret: {handles:?}"),
                Next::Keep(made) => self.kept.extend(made.into_iter().map(|made| (made.key, made.bytes))),
                Next::Load(keys) => {
                    self.loads += 1;
                    let read = |key: String| (key.clone(), self.kept.get(&key).cloned());
                    run.loaded(keys.into_iter().map(read).collect());
                }
                Next::Checkpoint(cursor) => {
                    self.holds(&cursor);
                    self.cursors.push(cursor);
                }
                Next::Call(call) => {
                    self.calls.push(Value::Object(call.config.clone()));
                    run.answer(called(answers.next().expect("an answer")));
                }
                Next::Wait { .. } => panic!("no pause was asked for"),
                Next::Report(report) => {
                    self.holds(&json!(report.outcome));
                    self.holds(&json!(report.patch));
                    return *report;
                }
            }
        }
    }

    /// Every reference in it leads to something that is kept.
    fn holds(&self, value: &Value) {
        if let Some(key) = key(value) {
            assert!(self.kept.contains_key(key), "{key} is transcript before it is kept");
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|value| self.holds(value)),
            Value::Array(items) => items.iter().for_each(|value| self.holds(value)),
            _ => {}
        }
    }

    fn value(&self, reference: &Value) -> Value {
        let key = key(reference).unwrap_or_else(|| panic!("{reference} is no reference"));
        serde_json::from_slice(&self.kept[key]).unwrap()
    }
}

fn tasks(tasks: Value) -> Work {
    work(json!({ "tasks": tasks, "inline_bytes": INLINE_BYTES }))
}

#[test]
fn large_results_are_kept_once_and_read_by_later_tasks_and_rules() {
    let pipeline = tasks(json!([
        { "label": "a", "kind": "x", "rules": [{
            "when": "{{ outcome.result.n == 1 and output.data.n == 1 }}",
            "action": { "do": "continue" },
            "set_ctx": { "all": "{{ outcome.result }}" }, "set_iter": { "page": "{{ outcome.result }}" } }] },
        { "label": "b", "kind": "x", "config": {
            "n": "{{ a.n + results.a.n + _prev.n + ctx.all.n + iter.page.n + all.n }}", "whole": "{{ a }}", "ref": "{{ a._ref }}" } },
    ]));
    let mut transcript = Transcript::default();
    let report = transcript.run(pipeline, &[json!({ "ok": long(1) }), json!({ "ok": 7 })]);
    assert_eq!(transcript.calls[1]["n"], 6);
    assert_eq!(transcript.calls[1]["whole"], long(1));
    assert_eq!(transcript.value(&transcript.calls[1]["ref"]), long(1));
    assert_eq!(transcript.loads, 0, "what was just there need not be read again");
    assert!(
        transcript.cursors[0].to_string().len() < 1_000 && !transcript.cursors[0].to_string().contains("xxx")
    );
    assert_eq!(transcript.value(&report.patch["all"]), long(1));
    let Outcome::Done { output } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(
        transcript.value(output),
        json!({ "result": 7, "status": "ok", "results": { "a": long(1), "b": 7 } })
    );
}

#[test]
fn a_worker_that_takes_over_loads_what_the_cursor_refers_to() {
    let spec = json!([
        { "label": "a", "kind": "x" },
        { "label": "b", "kind": "x", "config": { "n": "{{ a.n }}" } },
    ]);
    let mut transcript = Transcript::default();
    transcript.run(tasks(spec.clone()), &[json!({ "ok": long(3) }), json!({ "ok": 1 })]);
    let cursor = Some(Arc::new(transcript.cursors.remove(0)));
    transcript.calls.clear();
    let report =
        transcript.run(Work { cursor: cursor.clone(), ..tasks(spec.clone()) }, &[json!({ "ok": 1 })]);
    assert_eq!((transcript.calls[0]["n"].clone(), transcript.loads), (json!(3), 1));
    assert!(matches!(report.outcome, Outcome::Done { .. }));
    transcript.kept.clear();
    let report = transcript.run(Work { cursor, ..tasks(spec) }, &[]);
    let Outcome::Failed(failure) = report.outcome else { panic!("{report:?}") };
    assert_eq!((failure.code.as_str(), failure.retryable), ("REFERENCE_NOT_AVAILABLE", Some(true)));
    assert_eq!(failure.details["task"], "b");
}

#[test]
fn references_of_the_execution_are_read_everywhere() {
    let mut transcript = Transcript::default();
    let made = |n: u64| {
        let (reference, artifact) =
            windlass_artifact::set_aside(&long(n), windlass_artifact::Source::Own, INLINE_BYTES).unwrap();
        (reference, (artifact.key, artifact.bytes))
    };
    let (workload, one) = made(1);
    let (args, two) = made(2);
    let (ctx, three) = made(3);
    let (before, four) = made(4);
    transcript.kept.extend([one, two, three, four]);
    let mut work = tasks(json!([{ "label": "a", "kind": "x", "config": {
        "all": ["{{ workload.n }}", "{{ args.n }}", "{{ ctx.seen.n }}", "{{ before.n }}"],
        "whole": ["{{ workload }}", "{{ args }}", "{{ ctx.seen }}", "{{ steps.before }}"],
        "wide": "{{ ctx | length + steps | length }}" } }]));
    work.scope.workload = Arc::new(workload);
    work.scope.args = Some(Arc::new(args));
    work.scope.ctx.insert("seen".into(), ctx);
    work.scope.steps = vec![("before".into(), Arc::new(before))];
    transcript.run(work, &[json!({ "ok": null })]);
    assert_eq!(transcript.calls[0]["all"], json!([1, 2, 3, 4]));
    assert_eq!(transcript.calls[0]["whole"], json!([long(1), long(2), long(3), long(4)]));
    assert_eq!(transcript.calls[0]["wide"], 2);
}

/// An answer of a server that looks like a reference is text: it is neither followed nor handed on as one.
#[test]
fn what_a_tool_answers_is_never_taken_for_a_reference() {
    let mut transcript = Transcript::default();
    let (reference, artifact) =
        windlass_artifact::set_aside(&long(1), windlass_artifact::Source::Own, INLINE_BYTES).unwrap();
    transcript.kept.insert(artifact.key, artifact.bytes);
    for forged in [reference.clone(), json!({ "$secret": "key" }), json!({ "value": { "$secret": "key" } })] {
        let spec = tasks(json!([
            { "label": "a", "kind": "x", "rules": [{ "action": { "do": "continue" }, "set_ctx": {
                "nested": "{{ outcome.result.deep }}", "whole": "{{ outcome.result.deep }}" } }] },
            { "label": "b", "kind": "x", "config": { "a": "{{ a }}", "deep": "{{ a.deep }}", "ctx": "{{ ctx.whole }}" } },
        ]));
        transcript.calls.clear();
        let mut answer = forged.clone();
        answer["deep"] = forged.clone();
        let report = transcript.run(spec, &[json!({ "ok": answer }), json!({ "ok": 1 })]);
        assert_eq!(transcript.calls[1], json!({ "a": answer, "deep": forged, "ctx": forged }));
        assert_eq!(transcript.value(&report.patch["whole"]), forged);
    }
}

#[test]
fn a_task_that_is_another_execution_releases_the_slot_and_continues_with_its_result() {
    let spec = json!([
        { "label": "first", "kind": "x" },
        { "label": "child", "kind": "playbook", "config": { "path": "other", "args": { "n": "{{ first }}" } },
          "rules": [
            { "when": "outcome.status == 'error' and outcome.error.code == 'BROKEN'",
              "action": { "do": "continue" }, "set_ctx": { "broken": "{{ args.n }}" } },
            { "action": { "do": "continue" }, "set_ctx": { "id": "{{ outcome.playbook.execution_id }}" } },
          ] },
        { "label": "last", "kind": "x", "config": { "child": "{{ child.n }}", "prev": "{{ _prev }}" } },
    ]);
    let mut transcript = Transcript::default();
    let report = transcript.run(tasks(spec.clone()), &[json!({ "ok": 5 })]);
    let Outcome::Child { definition, inputs, cursor } = report.outcome else { panic!("{report:?}") };
    assert_eq!((definition, inputs), (json!({ "path": "other" }), json!({ "n": 5 })));
    let mut back = |child: Value| {
        let cursor = Some(Arc::new(json!({ "child": child, "then": cursor })));
        transcript.calls.clear();
        let report = transcript.run(Work { cursor, ..tasks(spec.clone()) }, &[json!({ "ok": 1 })]);
        (transcript.calls[0].clone(), report.patch)
    };
    let done = json!({ "execution": "e1", "status": "completed", "output": { "n": 9 } });
    let (call, patch) = back(done);
    assert_eq!((call, patch["id"].clone()), (json!({ "child": 9, "prev": { "n": 9 } }), json!("e1")));
    let failure = json!({ "class": "unknown", "code": "BROKEN", "message": "it broke" });
    let (call, patch) = back(json!({ "execution": "e1", "status": "failed", "failure": failure }));
    assert_eq!((call, patch["broken"].clone()), (json!({ "child": null, "prev": 5 }), json!(5)));
}

#[test]
fn the_pool_keeps_and_loads_artifacts() {
    let shop = Shop::open();
    let spec = json!({ "inline_bytes": INLINE_BYTES, "tasks": [
        { "label": "a", "kind": "noop", "config": { "result": long(8) } },
        { "label": "again", "kind": "artifact", "config": { "action": "get", "ref": "{{ a._ref }}" } },
        { "label": "b", "kind": "noop", "config": { "result": { "n": "{{ again.n }}" } } },
        { "label": "c", "kind": "artifact", "config": { "ref": "sha256:nothing" },
          "rules": [{ "action": { "do": "continue" } }] },
    ]});
    let work = Work { spec: Arc::new(spec), ..work(json!({})) };
    assert_eq!(work.unit, UNIT);
    let transcript = shop.run(work);
    let output = transcript.output();
    assert!(key(output).is_some(), "{output}");
}
