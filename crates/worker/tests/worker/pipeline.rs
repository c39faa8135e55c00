//! Pipelines as data: a spec, what its calls come to, and what the run says.

use crate::resume::trace_of;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use windlass_protocol::{Iter, Scope, TryTimes, Unit, Work};
use windlass_worker::{CALLS_MAX, CallResult, Next, Run};

pub const UNIT: Unit = Unit { execution: 7, run: 3, fence: 5 };

pub fn work(spec: Value) -> Work {
    let scope = Scope {
        workload: Arc::new(json!({ "url": "http://here", "size": 3 })),
        ctx: json!({ "seen": 1 }).as_object().unwrap().clone(),
        summary: false,
        args: Some(Arc::new(json!({ "page": 1, "who": "token" }))),
        iter: None,
        around: Vec::new(),
        steps: vec![("before".to_owned(), Arc::new(json!({ "n": 4 })))],
        absent: Vec::new(),
    };
    let (step, spec) = ("pages".to_owned(), Arc::new(spec));
    Work {
        unit: UNIT,
        step,
        path: vec![],
        attempt: 1,
        losses: 0,
        spec,
        scope,
        cursor: None,
        timeout_ms: None,
        tenant: "default".into(),
        workflow: None,
        debug: false,
        decided_ms: None,
        no_room: None,
    }
}

/// Parses the result of a call: `{"ok": …}` or `{"code": …}` with a class; further fields are facts.
pub fn called(answer: &Value) -> CallResult {
    let text = |key: &str| answer[key].as_str().unwrap_or("unknown").to_owned();
    let outcome = match answer.get("ok") {
        Some(result) => Ok(result.clone()),
        None => Err(Box::new(windlass_protocol::Failure {
            retry_after_ms: answer["retry_after_ms"].as_u64(),
            ..windlass_protocol::Failure::of_class(
                serde_json::from_value(text("class").into()).expect("a class"),
                &text("code"),
                "it broke",
            )
        })),
    };
    let facts: Map<String, Value> = answer["facts"].as_object().cloned().unwrap_or_default();
    CallResult { outcome, facts }
}

fn check(spec: Value, answers: &[Value], expected: &[&str]) {
    assert_eq!(trace_of(&work(spec), answers), expected);
}

fn noop(label: &str, rules: Value) -> Value {
    json!({ "label": label, "kind": "noop", "rules": rules })
}

#[test]
fn tasks_run_in_order_and_see_what_came_before() {
    check(
        json!({ "tasks": [
            { "label": "a", "kind": "x", "config": { "prev": "{{ _prev }}", "try": "{{ _task }}{{ _attempt }}" } },
            { "label": "b", "kind": "x", "config": {
                "prev": "{{ _prev.n }}", "label": "{{ a.n }}", "results": "{{ results.a.n }}" } },
            { "label": "c", "kind": "x", "config": {
                "sum": "{{ a.n + b }}", "step": "{{ before.n }}{{ steps.before.n }}",
                "workload": "{{ workload.url }}/{{ size }}", "ctx": "{{ ctx.seen }}{{ seen }}",
                "id": "{{ execution_id }}" } },
        ]}),
        &[json!({ "ok": { "n": 1 } }), json!({ "ok": 5 }), json!({ "ok": { "n": 9 } })],
        &[
            r#"a x {"prev":null,"try":"a1"}"#,
            r#"b x {"prev":1,"label":1,"results":1}"#,
            r#"c x {"sum":6,"step":"44","workload":"http://here/3","ctx":"11","id":"00000000000000000000000000000007"}"#,
            r#"done {"n":9,"status":"ok","results":{"a":{"n":1},"b":5,"c":{"n":9}}}"#,
        ],
    );
}

#[test]
fn a_result_is_under_data_as_well_unless_it_has_such_a_field() {
    let mut work = work(json!({ "tasks": [
        { "label": "a", "kind": "x", "config": {
            "alias": "{{ before.data.n }}", "own": "{{ http.data }}", "text": "{{ said.data }}", "none": "{{ before.nope }}",
            "job": "{{ job.uuid == execution_id }}" } },
    ], "set_ctx": { "n": "{{ pages.data.n }}" } }));
    work.scope.steps.push(("http".to_owned(), Arc::new(json!({ "data": [1], "n": 2 }))));
    work.scope.steps.push(("said".to_owned(), Arc::new(json!("hi"))));
    assert_eq!(
        trace_of(&work, &[json!({ "ok": { "n": 5 } })]),
        [r#"a x {"alias":4,"own":[1],"text":"hi","none":null,"job":true}"#, r#"done {"n":5} set {"n":5}"#],
    );
}

#[test]
fn neither_an_input_nor_a_patch_hides_a_name_of_the_definition() {
    let forged = json!({ "n": "forged", "uuid": "forged" });
    let names = ["before", "skipped", "a", "b", "item", "job", "keychain", "free", "pages"];
    let mut work = work(json!({ "tasks": [
        { "label": "a", "kind": "x", "config": { "own": "{{ a.n }}", "later": "{{ b.n }}" }, "on_unmatched": "continue",
          "rules": [{ "when": "{{ a.n or keychain.n }}", "action": { "do": "fail" } }, { "action": { "do": "continue" } }] },
        { "label": "b", "kind": "x", "config": {
            "failed": "{{ a.n }}", "step": "{{ before.n }}", "skipped": "{{ skipped.n }}", "item": "{{ item.n }}",
            "job": "{{ job.uuid == execution_id }}", "chain": "{{ keychain.n }}",
            "free": "{{ free.n }} {{ workload.skipped.n }} {{ ctx.skipped.n }} {{ job.n }}" } },
    ], "set_ctx": { "n": "{{ pages.n }}" } }));
    work.scope.workload = Arc::new(names.iter().map(|name| ((*name).to_owned(), forged.clone())).collect());
    work.scope.ctx = names[..7].iter().map(|name| ((*name).to_owned(), forged.clone())).collect();
    work.scope.absent = vec!["skipped".to_owned()];
    work.scope.iter =
        Some(Iter { name: "item".to_owned(), item: json!({ "n": 2 }), index: 0, total: Some(1) });
    assert_eq!(
        trace_of(&work, &[json!({ "code": "E" }), json!({ "ok": { "n": 5 } })]),
        [
            r#"a x {"own":null,"later":null}"#,
            r#"b x {"failed":null,"step":4,"skipped":null,"item":2,"job":true,"chain":null,"free":"forged forged forged forged"}"#,
            r#"done {"n":5,"status":"ok","results":{"a":{"status":"error","error":{"code":"E","class":"unknown","kind":"unknown","message":"it broke","retryable":false,"nodeId":"pages","nodeName":"pages","attempt":1,"source":"x"}},"b":{"n":5}}} set {"n":5}"#,
        ],
    );
}

#[test]
fn pbk_21_rules_say_retry_jump_break_fail_or_continue() {
    let on_error = |action: Value| json!([{ "when": "{{ outcome.status == 'error' }}", "action": action }]);
    let broken = json!({ "code": "E" });
    let three = |action: Value| json!({ "tasks": [noop("a", json!([])), noop("b", on_error(action)), noop("c", json!([]))] });
    let ok = json!({ "ok": 1 });
    check(
        three(json!({ "do": "retry", "attempts": 2, "backoff": "constant", "delay_ms": 30 })),
        &[ok.clone(), broken.clone(), ok.clone(), ok.clone()],
        &[
            "a noop {}",
            "b noop {}",
            "wait 30",
            "b#2 noop {}",
            "c noop {}",
            r#"done {"result":1,"status":"ok","results":{"a":1,"b":1,"c":1}}"#,
        ],
    );
    let kept = r#""b":{"status":"error","error":{"code":"E","class":"unknown","kind":"unknown","message":"it broke","retryable":false,"nodeId":"pages","nodeName":"pages","attempt":1,"source":"noop"}}"#;
    check(
        three(json!({ "do": "jump", "to": "a" })),
        &[ok.clone(), broken.clone(), ok.clone(), ok.clone(), ok.clone()],
        &[
            "a noop {}",
            "b noop {}",
            "a noop {}",
            "b#2 noop {}",
            "c noop {}",
            r#"done {"result":1,"status":"ok","results":{"a":1,"b":1,"c":1}}"#,
        ],
    );
    check(
        three(json!({ "do": "break" })),
        &[ok.clone(), broken.clone()],
        &[
            "a noop {}",
            "b noop {}",
            &format!(r#"done {{"result":1,"status":"ok","results":{{"a":1,{kept}}}}}"#),
        ],
    );
    check(
        three(json!({ "do": "continue" })),
        &[ok.clone(), broken.clone(), json!({ "ok": { "x": 2 } })],
        &[
            "a noop {}",
            "b noop {}",
            "c noop {}",
            &format!(r#"done {{"x":2,"status":"ok","results":{{"a":1,{kept},"c":{{"x":2}}}}}}"#),
        ],
    );
    check(
        three(json!({ "do": "fail" })),
        &[ok, broken],
        &["a noop {}", "b noop {}", r#"failed unknown E: it broke {"task":"b"}"#],
    );
}

#[test]
fn the_first_rule_that_matches_decides_and_else_always_does() {
    let rules = json!([
        { "when": "{{ outcome.result == 1 }}", "action": { "do": "jump", "to": "a" }, "set_ctx": { "rule": 1 } },
        { "when": "outcome.result > 1", "action": { "do": "break" }, "set_ctx": { "rule": 2 } },
        { "action": { "do": "continue" }, "set_ctx": { "rule": "else" } },
    ]);
    let spec = json!({ "tasks": [noop("a", rules), noop("b", json!([]))] });
    let only_a =
        |n: u32| format!(r#"done {{"result":{n},"status":"ok","results":{{"a":{n}}}}} set {{"rule":2}}"#);
    check(spec.clone(), &[json!({ "ok": 1 }), json!({ "ok": 2 })], &["a noop {}", "a noop {}", &only_a(2)]);
    check(
        spec,
        &[json!({ "ok": 0 }), json!({ "ok": 0 })],
        &[
            "a noop {}",
            "b noop {}",
            r#"done {"result":0,"status":"ok","results":{"a":0,"b":0}} set {"rule":"else"}"#,
        ],
    );
}

#[test]
fn without_a_match_an_error_fails_and_anything_else_continues() {
    let unmatched = |policy: &str| json!({ "tasks": [{ "label": "a", "kind": "x", "on_unmatched": policy }, noop("b", json!([]))] });
    let (ok, broken) = (json!({ "ok": 1 }), json!({ "code": "E" }));
    let done = r#"done {"result":1,"status":"ok","results":{"a":1,"b":1}}"#;
    check(unmatched("by_outcome"), &[ok.clone(), ok.clone()], &["a x {}", "b noop {}", done]);
    check(
        unmatched("by_outcome"),
        std::slice::from_ref(&broken),
        &["a x {}", r#"failed unknown E: it broke {"task":"a"}"#],
    );
    let spec = unmatched("continue");
    assert_eq!(trace_of(&work(spec), &[broken, ok.clone()])[..2], ["a x {}", "b noop {}"]);
    check(
        unmatched("fail"),
        &[ok],
        &[
            "a x {}",
            r#"failed unknown TASK_REJECTED: task `a` succeeded, and its policy fails the step then {"task":"a"}"#,
        ],
    );
}

fn retrying(backoff: &str, attempts: u32, delay_ms: u64) -> Value {
    let retry = json!({ "do": "retry", "attempts": attempts, "backoff": backoff, "delay_ms": delay_ms });
    json!({ "tasks": [noop("a", json!([{ "when": "{{ outcome.status == 'error' }}", "action": retry }]))] })
}

#[test]
fn delays_between_tries_follow_the_backoff() {
    let broken: Vec<Value> = (0..4).map(|_| json!({ "code": "E" })).collect();
    let waits = |backoff: &str| -> Vec<String> {
        let trace = trace_of(&work(retrying(backoff, 4, 100)), &broken);
        assert_eq!(trace.last().unwrap(), r#"failed unknown E: it broke {"task":"a"}"#);
        trace.into_iter().filter(|line| line.starts_with("wait")).collect()
    };
    assert_eq!(waits("constant"), ["wait 100", "wait 100", "wait 100"]);
    assert_eq!(waits("linear"), ["wait 100", "wait 200", "wait 300"]);
    assert_eq!(waits("exponential"), ["wait 100", "wait 200", "wait 400"]);
}

#[test]
fn attempts_count_all_tries_and_from_one_again_after_a_success() {
    let retry = json!({ "do": "retry", "attempts": 2, "backoff": "constant", "delay_ms": 0 });
    let rules = json!([
        { "when": "outcome.status == 'error'", "action": retry },
        { "when": "outcome.result < 3", "action": { "do": "jump", "to": "a" } },
    ]);
    let broken = json!({ "code": "E" });
    check(
        json!({ "tasks": [noop("a", rules)] }),
        &[broken.clone(), json!({ "ok": 1 }), broken.clone(), json!({ "ok": 2 }), broken.clone(), broken],
        &[
            "a noop {}",
            "a#2 noop {}",
            "a noop {}",
            "a#2 noop {}",
            "a noop {}",
            "a#2 noop {}",
            r#"failed unknown E: it broke {"task":"a"}"#,
        ],
    );
}

#[test]
fn a_success_that_a_rule_wants_retried_uses_up_attempts_too() {
    let retry = json!({ "do": "retry", "attempts": 3, "backoff": "constant", "delay_ms": 5 });
    check(
        json!({ "tasks": [noop("a", json!([{ "when": "{{ not output.data }}", "action": retry }]))] }),
        &[json!({ "ok": false }), json!({ "ok": false }), json!({ "ok": false })],
        &[
            "a noop {}",
            "wait 5",
            "a#2 noop {}",
            "wait 5",
            "a#3 noop {}",
            r#"failed unknown RETRIES_EXHAUSTED: task `a` succeeded 3 times, and a rule still retries it; check the condition of the rule {"task":"a"}"#,
        ],
    );
}

#[test]
fn a_long_pause_releases_the_slot_and_sends_each_write_once() {
    let retry = json!({ "do": "retry", "attempts": 9, "backoff": "exponential", "delay_ms": 5000 });
    let rules = json!([
        { "when": "outcome.status == 'error'", "action": retry, "set_ctx": { "tries": "{{ _attempt }}" } },
        { "action": { "do": "continue" }, "set_ctx": { "counted": "{{ ctx.tries }}" } },
    ]);
    check(
        json!({ "tasks": [noop("a", rules)] }),
        &[json!({ "code": "E" }), json!({ "code": "E" }), json!({ "ok": 1 })],
        &[
            "a noop {}",
            "wait 5000",
            "a#2 noop {}",
            r#"later 10000 set {"tries":2}"#,
            "a#3 noop {}",
            r#"done 1 set {"counted":2}"#,
        ],
    );
}

#[test]
fn a_task_is_not_retried_before_the_time_that_the_server_names() {
    let says = |ms: u64| json!({ "code": "BUSY", "class": "rate_limit", "retry_after_ms": ms });
    let trace = trace_of(
        &work(retrying("constant", 4, 100)),
        &[says(1_500), says(50), says(7_000), json!({ "ok": 1 })],
    );
    let waits: Vec<&String> = trace.iter().filter(|line| line.starts_with(['w', 'l'])).collect();
    assert_eq!(
        waits,
        ["wait 1500", "wait 100", "later 7000"],
        "the longer of both, and long ones give the slot back"
    );
}

#[test]
fn a_growing_delay_stays_within_a_month() {
    let trace = trace_of(&work(retrying("exponential", 200, 60_000)), &vec![json!({ "code": "E" }); 200]);
    assert!(trace.contains(&"later 2592000000".to_owned()), "{trace:?}");
}

#[test]
fn rules_write_the_context_and_the_iteration_before_the_action() {
    let rules = json!([{
        "when": "{{ iter.page < 2 or not iter.page }}",
        "action": { "do": "jump", "to": "a" },
        "set_ctx": { "rows": "{{ (ctx.rows or []) + [outcome.result.row] }}" },
        "set_iter": { "page": "{{ (iter.page or 0) + 1 }}" },
    }]);
    check(
        json!({
            "tasks": [{ "label": "a", "kind": "http", "config": { "page": "{{ iter.page }}" }, "rules": rules }],
            "set_ctx": { "last": "{{ pages.row }}", "all": "{{ steps.pages.row }}{{ rows | length }}" },
        }),
        &[json!({ "ok": { "row": "x" } }), json!({ "ok": { "row": "y" } }), json!({ "ok": { "row": "z" } })],
        &[
            r#"a http {"page":null}"#,
            r#"a http {"page":1}"#,
            r#"a http {"page":2}"#,
            r#"done {"row":"z"} set {"all":"z2","last":"z","rows":["x","y"]}"#,
        ],
    );
}

#[test]
fn a_failed_pipeline_keeps_what_its_rules_wrote() {
    let rules = json!([{ "action": { "do": "fail" }, "set_ctx": { "why": "{{ outcome.error.code }}" } }]);
    check(
        json!({ "tasks": [noop("a", rules)], "set_ctx": { "never": 1 } }),
        &[json!({ "code": "E" })],
        &["a noop {}", r#"failed unknown E: it broke {"task":"a"} set {"why":"E"}"#],
    );
}

#[test]
fn args_of_the_task_lie_over_the_steps_and_those_over_the_tokens() {
    check(
        json!({
            "args": { "page": "{{ args.page + 1 }}", "step": "s" },
            "tasks": [
                { "label": "a", "kind": "x",
                  "config": { "say": "{{ args.who }} {{ args.page }} {{ step }} {{ input.own }}", "args": { "own": "{{ page }}", "step": "t" } },
                  "rules": [{ "when": "args.own == 2 and args.who == 'token'", "action": { "do": "continue" } }, { "action": { "do": "fail" } }] },
                { "label": "b", "kind": "x", "config": { "say": "{{ step }}{{ args.own }}" } },
            ],
        }),
        &[json!({ "ok": null }), json!({ "ok": null })],
        &[
            r#"a x {"args":{"own":2,"step":"t"},"say":"token 2 t 2"}"#,
            r#"b x {"say":"s"}"#,
            r#"done {"result":null,"status":"ok","results":{"a":null,"b":null}}"#,
        ],
    );
}

#[test]
fn rules_see_the_whole_outcome_under_both_names() {
    let rule =
        |when: &str| json!([{ "when": when, "action": { "do": "break" } }, { "action": { "do": "fail" } }]);
    let is_seen = |when: &str, answer: Value| {
        let trace = trace_of(&work(json!({ "tasks": [noop("a", rule(when))] })), &[answer]);
        assert!(trace[1].starts_with("done"), "{when}: {trace:?}");
    };
    let limited = json!({ "code": "BUSY", "class": "rate_limit", "retry_after_ms": 1500, "facts": { "http": { "status": 429 } } });
    is_seen("outcome.error.code == 'BUSY' and outcome.error.class == 'rate_limit'", limited.clone());
    is_seen("outcome.error.retryable and output.error.retry_after == 1.5", limited.clone());
    is_seen("outcome.http.status in [429, 503] and outcome.result is undefined", limited);
    is_seen(
        "output.data.n == 1 and outcome.result.n == 1 and outcome.error is undefined",
        json!({ "ok": { "n": 1 } }),
    );
    is_seen(
        "output.status == 'ok' and outcome.meta.attempt == 1 and (output | length) == 4",
        json!({ "ok": 1 }),
    );
    is_seen("not outcome.error.retryable and not outcome.http.status", json!({ "code": "E" }));
}

#[test]
fn an_iteration_is_seen_by_all_its_names() {
    let mut work = work(json!({ "tasks": [{ "label": "a", "kind": "x", "config": {
        "item": "{{ iter.word }}{{ word }}", "index": "{{ iter.index }}{{ iter._index }}{{ loop_index }}",
        "ends": "{{ iter.first }} {{ iter.last }} {{ iter._last }}", "all": "{{ iter }}" } }] }));
    work.scope.iter = Some(Iter { name: "word".to_owned(), item: json!("hi"), index: 2, total: Some(3) });
    let trace = trace_of(&work, &[json!({ "ok": 1 })]);
    let expected = r#"a x {"item":"hihi","index":"222","ends":"False True True","all":{"index":2,"first":false,"last":true,"word":"hi"}}"#;
    assert_eq!(trace[0], expected);
}

#[test]
fn one_task_has_its_own_result_and_no_task_has_none() {
    check(json!({ "tasks": [noop("a", json!([]))] }), &[json!({ "ok": [1] })], &["a noop {}", "done [1]"]);
    check(json!({ "tasks": [], "set_ctx": { "x": "{{ args.page }}" } }), &[], &[r#"done null set {"x":1}"#]);
    let own_status = json!({ "tasks": [noop("a", json!([])), noop("b", json!([]))] });
    let trace = trace_of(
        &work(own_status),
        &[json!({ "ok": 0 }), json!({ "ok": { "status": "late", "results": 1 } })],
    );
    assert_eq!(trace[2], r#"done {"status":"late","results":{"a":0,"b":{"status":"late","results":1}}}"#);
}

#[test]
fn an_expression_that_cannot_be_evaluated_fails_the_step_and_is_named() {
    let config =
        |value: &str| json!({ "tasks": [{ "label": "a", "kind": "x", "config": { "url": value } }] });
    check(
        config("{{ 1 / 0 }}"),
        &[],
        &[
            r#"failed validation EXPRESSION_ERROR: `url` of task `a` cannot be evaluated: unable to calculate 1 / 0, in `{{ 1 / 0 }}` {"task":"a"}"#,
        ],
    );
    let trace = trace_of(&work(config("{{ oops")), &[]);
    assert!(
        trace[0].starts_with("failed validation EXPRESSION_ERROR: `url` of task `a` cannot be evaluated:"),
        "{trace:?}"
    );
    let rule =
        |rule: Value| trace_of(&work(json!({ "tasks": [noop("a", json!([rule]))] })), &[json!({ "ok": 1 })]);
    let trace = rule(json!({ "when": "1 / 0 > 1", "action": { "do": "continue" } }));
    assert!(trace[1].contains("EXPRESSION_ERROR: a rule of task `a` cannot"), "{trace:?}");
    let trace = rule(json!({ "action": { "do": "continue" }, "set_ctx": { "k": "{{ 1 / 0 }}" } }));
    assert!(trace[1].contains("`k` of `set_ctx` in a rule of task `a`"), "{trace:?}");
    let trace = trace_of(&work(json!({ "args": { "k": "{{ 1 / 0 }}" }, "tasks": [] })), &[]);
    assert!(trace[0].contains("`k` of the step's `args`"), "{trace:?}");
}

#[test]
fn endless_jumps_reach_a_limit() {
    let work = work(json!({ "tasks": [noop("a", json!([{ "action": { "do": "jump", "to": "a" } }]))] }));
    let mut run = Run::begin(work.clone());
    let mut calls = 0;
    let report = loop {
        match run.advance() {
            Next::Call(_) => {
                run.answer(Ok(Value::Null).into());
                calls += 1;
            }
            Next::Checkpoint(cursor) => {
                if calls % 1_000 == 0 {
                    run = Run::begin(Work { cursor: Some(Arc::new(cursor)), ..work.clone() });
                }
            }
            Next::Report(report) => break report,
            other => panic!("nothing else was asked for: {other:?}"),
        }
    };
    assert_eq!(calls, CALLS_MAX);
    let trace = format!("{:?}", report.outcome);
    assert!(trace.contains("LIMIT_EXCEEDED") && trace.contains(r#""task": String("a")"#), "{trace}");
}

#[test]
fn what_cannot_be_read_fails_at_once() {
    let trace = trace_of(&work(json!({ "tasks": "none" })), &[]);
    assert!(
        trace[0]
            .starts_with("failed validation INVALID_CONFIGURATION: the work of step `pages` is no pipeline"),
        "{trace:?}"
    );
    let mut other = work(json!({ "tasks": [noop("a", json!([]))] }));
    other.cursor = Some(Arc::new(json!({ "version": 99, "at": "a" })));
    assert!(trace_of(&other, &[])[0].contains("INVALID_CURSOR"), "{:?}", trace_of(&other, &[]));
    other.cursor = Some(Arc::new(json!({ "child": { "status": 1 }, "then": { "version": 1, "at": "a" } })));
    assert!(trace_of(&other, &[])[0].contains("INVALID_CURSOR"), "{:?}", trace_of(&other, &[]));
    other.cursor = Some(Arc::new(json!({ "version": 1, "at": "gone" })));
    assert!(
        trace_of(&other, &[])[0].contains("step `pages` has no task `gone`"),
        "{:?}",
        trace_of(&other, &[])
    );
}

#[test]
fn tries_are_reported_with_the_times_of_their_calls() {
    let retry = json!([{ "when": "outcome.status == 'error'",
        "action": { "do": "retry", "attempts": 2, "backoff": "constant", "delay_ms": 0 } }]);
    let mut run = Run::begin(work(json!({ "tasks": [noop("a", retry)] })));
    let mut answers =
        [(json!({ "class": "transport", "code": "X" }), 10), (json!({ "ok": 1 }), 30)].into_iter();
    let report = loop {
        match run.advance() {
            Next::Call(_) => {
                let (answer, started_ms) = answers.next().expect("an answer");
                run.note_times(TryTimes { started_ms, ended_ms: started_ms + 5 });
                run.answer(called(&answer));
            }
            Next::Report(report) => break report,
            Next::Checkpoint(_) | Next::Wait { .. } => {}
            other => panic!("nothing else was asked for: {other:?}"),
        }
    };
    let tries = report.metadata["tries"].as_array().expect("tries");
    let times: Vec<_> = tries.iter().map(|tried| &tried["times"]).collect();
    let expected = [json!({ "started_ms": 10, "ended_ms": 15 }), json!({ "started_ms": 30, "ended_ms": 35 })];
    assert_eq!(times, expected.iter().collect::<Vec<_>>());
}

#[test]
fn an_unrequested_answer_changes_nothing() {
    let mut run = Run::begin(work(json!({ "tasks": [noop("a", json!([]))] })));
    run.answer(Ok(json!(1)).into());
    assert!(matches!(run.advance(), Next::Call(_)));
    run.answer(Ok(json!(2)).into());
    run.answer(Ok(json!(3)).into());
    let Next::Report(report) = run.advance() else { panic!("it is over") };
    assert_eq!(report.outcome, windlass_protocol::Outcome::Done { output: json!(2) });
}

#[test]
fn a_result_that_says_error_is_an_error_for_every_tool() {
    let says = |result: Value| {
        let trace = trace_of(&work(json!({ "tasks": [noop("a", json!([]))] })), &[json!({ "ok": result })]);
        trace[1].clone()
    };
    assert_eq!(
        says(json!({ "status": "error", "error": { "message": "no room", "code": "FULL" } })),
        r#"failed unknown FULL: no room {"status":"error","error":{"message":"no room","code":"FULL"},"task":"a"}"#
    );
    assert_eq!(
        says(json!({ "status": "error", "error": "no room" })),
        r#"failed unknown TASK_ERROR: no room {"status":"error","error":"no room","task":"a"}"#
    );
    assert_eq!(
        says(json!({ "status": "error" })),
        r#"failed unknown TASK_ERROR: the result has the status `error` {"status":"error","task":"a"}"#
    );
    for fine in [
        json!({ "status": "failed" }),
        json!("error"),
        json!(["error"]),
        json!({ "data": { "status": "error" } }),
    ] {
        assert_eq!(says(fine.clone()), format!("done {fine}"));
    }
}

#[test]
fn the_kind_of_an_error_is_its_class_and_its_place_is_named() {
    let set = json!({ "seen": "{{ outcome.error }}" });
    let retry = json!({ "do": "retry", "attempts": 2, "backoff": "constant", "delay_ms": 0 });
    let rules = json!([
        { "when": "outcome.meta.attempt == 1", "action": retry },
        { "action": { "do": "break" }, "set_ctx": set },
    ]);
    let spec = json!({ "tasks": [noop("a", rules)] });
    let answer = json!({ "class": "rate_limit", "code": "RATE_LIMIT_EXCEEDED", "retry_after_ms": 10,
        "facts": { "http": { "status": 429 } } });
    let trace = trace_of(&work(spec), &[answer.clone(), answer]);
    let seen = trace.iter().find_map(|line| line.split("set ").nth(1)).expect("a context");
    let seen: Value = serde_json::from_str(seen).expect("JSON");
    let error = &seen["seen"];
    assert_eq!((&error["kind"], &error["class"]), (&json!("rate_limit"), &json!("rate_limit")), "{seen}");
    assert_eq!((&error["retryable"], &error["retryAfterMs"]), (&json!(true), &json!(10)), "{seen}");
    assert_eq!((&error["attempt"], &error["http_status"]), (&json!(2), &json!(429)), "{seen}");
    assert_eq!((&error["nodeId"], &error["nodeName"]), (&error["nodeName"], &error["nodeId"]), "{seen}");
    assert!(error["nodeId"].is_string(), "{seen}");
}

#[test]
fn tries_of_a_call_share_its_number_and_later_calls_have_others() {
    let retry = json!({ "do": "retry", "attempts": 3, "backoff": "constant", "delay_ms": 0 });
    let rules = json!([
        { "when": "outcome.status == 'error'", "action": retry },
        { "when": "outcome.result < 2", "action": { "do": "jump", "to": "a" } },
    ]);
    let work = work(json!({ "tasks": [noop("a", rules), noop("b", json!([]))] }));
    let answers = [
        json!({ "code": "E" }),
        json!({ "ok": 1 }),
        json!({ "code": "E" }),
        json!({ "ok": 2 }),
        json!({ "ok": 3 }),
    ];
    let mut run = Run::begin(work.clone());
    let mut numbers = Vec::new();
    for answer in &answers {
        let Next::Call(call) = run.advance() else { panic!("it continues") };
        numbers.push((call.label, call.number));
        run.answer(called(answer));
        // Another worker takes over.
        if let Next::Checkpoint(cursor) = run.advance() {
            run = Run::begin(Work { cursor: Some(Arc::new(cursor)), ..work.clone() });
        }
    }
    let numbers: Vec<(&str, u32)> = numbers.iter().map(|(label, number)| (label.as_str(), *number)).collect();
    assert_eq!(numbers, [("a", 0), ("a", 0), ("a", 1), ("a", 1), ("b", 2)]);
}
