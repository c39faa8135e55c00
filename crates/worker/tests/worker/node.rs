//! Workflow nodes: their context, their code, their results.

use crate::engine::{Finished, Heard, PATIENCE, Shop, pipeline};
use crate::server::{Server, answer};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Instant;
use windlass_protocol::{Level, Line, Order, Outcome, Stream, Verdict, Work};
use windlass_worker::PoolConfig;

fn shop() -> Shop {
    Shop::open()
}

/// A node of one task.
pub fn node(kind: &str, tool: &str, config: Value) -> Work {
    let mut work = pipeline(json!({
        "tasks": [{ "label": "work", "kind": tool, "config": config }],
        "node": { "id": "node-7", "name": "Seven", "kind": kind, "config": { "as": "written" },
            "credentials": { "KEY": "api-key" }, "env": { "MODE": "test" }, "before": ["start"] },
    }));
    work.workflow = Some("0".repeat(31) + "9");
    work.scope.steps = vec![("start".to_owned(), Arc::new(json!({ "n": 4 })))];
    work.scope.ctx.insert("state.seen".to_owned(), json!(["earlier"]));
    work
}

fn python(code: &str) -> Work {
    node("code", "code", json!({ "language": "python", "code": code }))
}

fn javascript(code: &str) -> Work {
    node("code", "code", json!({ "language": "javascript", "code": code }))
}

fn said(finished: &Finished) -> Vec<(Level, &str, Option<&Value>)> {
    let own = finished.lines.iter().filter(|line| line.level.is_some());
    own.map(|line| (line.level(), line.text.as_str(), line.data.as_deref())).collect()
}

const PYTHON: &str = r#"
import os
print("printed", ctx.credentials["KEY"])
ctx.logger.info("half way", {"rows": 2, "key": ctx.credentials["KEY"]})
ctx.logger.debug("not kept")
ctx.metrics.count("rows", 2)
ctx.metrics.count("rows")
ctx.progress("reading", 40)
seen = ctx.get_state("seen")
ctx.set_state("seen", seen + ["now"])
assert ctx.get_state("seen") == ["earlier", "now"] and ctx.get_state("other") is None
assert ctx.signal.aborted is False
result = {
    "id": ctx.node_id, "name": ctx.node_name, "type": ctx.node_type, "workflow": ctx.workflow_id,
    "tenant": ctx.tenant_id, "execution": ctx.execution_id, "attempt": ctx.attempt,
    "inputs": ctx.inputs, "config": ctx.config, "env": [ctx.env, os.environ["MODE"]],
    "seen": seen, "key": len(ctx.credentials["KEY"]),
    "mode": oct(os.stat(os.path.join(os.environ["WINDLASS_CONTEXT"], "credentials.json")).st_mode & 0o777),
    "dir": os.getcwd(),
}
"#;

const JAVASCRIPT: &str = r#"
const fs = require('fs');
console.log('printed', ctx.credentials.KEY);
ctx.logger.info('half way', { rows: 2, key: ctx.credentials.KEY });
ctx.logger.debug('not kept');
ctx.metrics.count('rows', 2);
ctx.metrics.count('rows');
ctx.progress('reading', 40);
const seen = await ctx.getState('seen');
await ctx.setState('seen', [...seen, 'now']);
if (JSON.stringify(await ctx.getState('seen')) !== '["earlier","now"]' || (await ctx.getState('other')) !== null) throw new Error('state');
if (ctx.signal.aborted) throw new Error('aborted');
return {
  id: ctx.nodeId, name: ctx.nodeName, type: ctx.nodeType, workflow: ctx.workflowId,
  tenant: ctx.tenantId, execution: ctx.executionId, attempt: ctx.attempt,
  inputs: ctx.inputs, config: ctx.config, env: [ctx.env, process.env.MODE],
  seen, key: ctx.credentials.KEY.length,
  mode: '0o' + (fs.statSync(process.env.WINDLASS_CONTEXT + '/credentials.json').mode & 0o777).toString(8),
  dir: process.cwd(),
};
"#;

#[test]
fn wfl_22_wfl_34_programs_get_the_context_of_their_node_in_both_languages() {
    let shop = shop();
    for (number, work) in [python(PYTHON), javascript(JAVASCRIPT)].into_iter().enumerate() {
        let finished = shop.run(numbered(number as u64, work));
        let output = finished.output();
        let dir = output["dir"].as_str().unwrap();
        assert!(!std::path::Path::new(dir).exists(), "the folder is gone, and the credentials with it");
        let mut rest = output.clone();
        rest.as_object_mut().unwrap().remove("dir");
        let expected = json!({
            "id": "node-7", "name": "Seven", "type": "code", "workflow": format!("wf_{}9", "0".repeat(31)),
            "tenant": "default", "execution": format!("exec_{:032x}", 0xabc), "attempt": 2,
            "inputs": { "n": 4, "start": { "n": 4 } }, "config": { "as": "written" },
            "env": [{ "MODE": "test" }, "test"], "seen": ["earlier"], "key": 16, "mode": "0o600",
        });
        assert_eq!(rest, expected);
        assert_eq!(finished.text(Stream::Out), ["printed [redacted]"]);
        let data = json!({ "rows": 2, "key": "[redacted]" });
        assert_eq!(said(&finished), [(Level::Info, "half way", Some(&data))]);
        assert_eq!(json!(finished.metadata), json!({ "metrics": { "rows": 3 } }));
        assert_eq!(json!(finished.patch), json!({ "state.seen": ["earlier", "now"] }));
        let progress: Vec<_> = finished.progress.iter().map(|p| (p.step.as_str(), p.percentage)).collect();
        assert_eq!(progress, [("reading", 40)]);
    }
}

#[test]
fn wfl_22_inputs_are_those_of_the_execution_and_what_came_before_over_them() {
    let shop = shop();
    let check = |number: u64, change: fn(&mut Work), expected: Value| {
        let mut work = node(
            "code",
            "code",
            json!({ "language": "javascript", "code": "return inputs", "input_variables": { "own": 1 } }),
        );
        work.scope.workload = Arc::new(json!({ "url": "u", "n": 1, "start": "hidden", "own": 0 }));
        change(&mut work);
        assert_eq!(*shop.run(numbered(number, work)).output(), expected);
    };
    check(1, |_| {}, json!({ "url": "u", "n": 4, "start": { "n": 4 }, "own": 1 }));
    let two = |work: &mut Work| {
        Arc::make_mut(&mut work.spec)["node"]["before"] = json!(["start", "other"]);
        work.scope.steps.push(("other".to_owned(), Arc::new(json!({ "n": 5 }))));
    };
    check(2, two, json!({ "url": "u", "n": 1, "start": { "n": 4 }, "other": { "n": 5 }, "own": 1 }));
    let read_only = |work: &mut Work| Arc::make_mut(&mut work.spec)["node"]["before"] = json!([]);
    check(3, read_only, json!({ "url": "u", "n": 1, "start": { "n": 4 }, "own": 1 }));
    let skipped = |work: &mut Work| {
        work.scope.steps.clear();
        work.scope.absent = vec!["start".to_owned()];
    };
    check(4, skipped, json!({ "url": "u", "n": 1, "own": 1 }));
}

#[test]
fn wfl_34_state_is_on_disk_before_the_program_continues_and_a_new_worker_has_it() {
    let shop = shop();
    let code = "ctx.set_state('step', 1)\nprint('after', flush=True)\nctx.set_state('step', ctx.get_state('step') + 1)\nresult = ctx.get_state('step')";
    shop.order(Order::Run(Box::new(python(code))));
    let cursor = loop {
        match shop.hear() {
            Heard::Checkpoint(checkpoint, reply) => {
                // A disk that is not done yet: the program has not gone on.
                assert!(checkpoint.cursor.to_string().contains("state.step"), "{}", checkpoint.cursor);
                reply(Verdict::Accepted);
                break checkpoint.cursor;
            }
            Heard::Line(line) => panic!("it went on before its state was kept: {line:?}"),
            _ => {}
        }
    };
    let finished = shop.finished();
    assert_eq!((finished.output(), finished.text(Stream::Out)), (&json!(2), vec!["after"]));
    // The worker is killed after the first checkpoint; another one continues from it.
    let mut again = python("result = ctx.get_state('step')");
    again.unit.fence += 1;
    again.cursor = Some(cursor);
    let finished = shop.run(again);
    assert_eq!((finished.output(), json!(finished.patch)), (&json!(1), json!({ "state.step": 1 })));
}

#[test]
fn wfl_22_a_tenant_has_its_own_secrets() {
    let shop = shop();
    let code = "result = len(ctx.credentials['KEY'])";
    let mut other = python(code);
    other.tenant = "tnt_b".to_owned();
    assert_eq!(shop.run(python(code)).output(), &json!("hunter22-default".len()));
    other.unit.run += 1;
    assert_eq!(shop.run(other).output(), &json!("hunter22-other".len()));
    let mut stranger = python(code);
    stranger.tenant = "tnt_c".to_owned();
    stranger.unit.run += 2;
    assert_eq!(shop.run(stranger).failure().code, "RESOURCE_NOT_FOUND");
}

fn numbered(number: u64, mut work: Work) -> Work {
    work.unit.run = 100 + number;
    work
}

#[test]
fn wfl_23_wfl_24_results_and_failures_follow_the_contract_in_both_languages() {
    let shop = shop();
    let mut number = 0;
    let mut check = |work: Work, expected: Value| {
        number += 1;
        let finished = shop.run(numbered(number, work));
        let seen = match &finished.outcome {
            Outcome::Done { output } => json!({ "data": output }),
            Outcome::Failed(f) => {
                json!({ "class": f.class, "code": f.code, "message": f.message, "retryable": f.retryable })
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(seen, expected, "{:?}", finished.lines);
    };
    let failed = |class: &str, code: &str, message: &str, retryable: Value| json!({ "class": class, "code": code, "message": message, "retryable": retryable });
    check(python("return {'success': True, 'data': [1]}"), json!({ "data": [1] }));
    check(python("def main(ctx, inputs):\n    return inputs['start']['n']"), json!({ "data": 4 }));
    check(python("x = 1"), json!({ "data": null }));
    check(javascript("result = inputs.start.n + 1"), json!({ "data": 5 }));
    check(python("def main(x, y):\n    return [x['n'], y.attempt]"), json!({ "data": [4, 2] }));
    check(
        python("def main(context, inputs, more=7):\n    return [context.attempt, inputs['n'], more]"),
        json!({ "data": [2, 4, 7] }),
    );
    check(
        javascript("async function main(inputs, context) { return [inputs.start.n, context.attempt] }"),
        json!({ "data": [4, 2] }),
    );
    check(javascript("// nothing"), json!({ "data": null }));
    let busy = json!({ "success": false, "error": { "code": "AI_MODEL_BUSY", "message": "later", "retryable": true } });
    let expected = failed("transient_5xx", "AI_MODEL_BUSY", "later", json!(true));
    check(python(&format!("import json\nreturn json.loads('''{busy}''')")), expected.clone());
    check(javascript(&format!("return {busy}")), expected);
    let own = failed("unknown", "OWN_CODE", "MyError: no", json!(true));
    check(
        python("class MyError(Exception):\n    code = 'OWN_CODE'\n    retryable = True\nraise MyError('no')"),
        own.clone(),
    );
    check(
        javascript(
            "throw Object.assign(new Error('no'), { name: 'MyError', code: 'OWN_CODE', retryable: true })",
        ),
        own,
    );
    check(
        python("raise ValueError('bad')"),
        failed("unknown", "CODE_EXCEPTION", "ValueError: bad", Value::Null),
    );
    check(
        javascript("null.x").clone(),
        failed(
            "unknown",
            "CODE_EXCEPTION",
            "TypeError: Cannot read properties of null (reading 'x')",
            Value::Null,
        ),
    );
    check(
        python("raise ConnectionResetError('gone')"),
        failed("transport", "CONNECTION_RESET", "ConnectionResetError: gone", Value::Null),
    );
    check(
        javascript("return { n: 10n }"),
        failed(
            "validation",
            "RESULT_NOT_JSON",
            "`n` of the result is a BigInt; return it as a string with String()",
            Value::Null,
        ),
    );
    check(
        javascript("process.exit(3)"),
        failed(
            "unknown",
            "CODE_EXIT",
            "javascript ended with exit code 3 before it had a result",
            Value::Null,
        ),
    );
}

#[test]
fn wfl_17_stacks_and_debug_lines_are_for_executions_in_debug_mode() {
    let shop = shop();
    let codes = [
        ("python", "ctx.logger.debug('deep', {'n': 1})\nraise ValueError('bad')"),
        ("javascript", "ctx.logger.debug('deep', { n: 1 })\nthrow new Error('bad')"),
    ];
    let mut number = 0;
    for (language, code) in codes {
        for debug in [false, true] {
            number += 1;
            let mut work =
                numbered(number, node("code", "code", json!({ "language": language, "code": code })));
            work.debug = debug;
            let finished = shop.run(work);
            let stack = finished.failure().details["stack"].as_str();
            assert_eq!(
                stack.is_some_and(|stack| stack.contains("bad") && stack.contains("code")),
                debug,
                "{stack:?}"
            );
            let data = json!({ "n": 1 });
            let expected = if debug { vec![(Level::Debug, "deep", Some(&data))] } else { vec![] };
            assert_eq!(said(&finished), expected);
        }
    }
}

#[test]
fn input_variables_are_names_of_the_code_and_the_output_variable_is_the_result() {
    let shop = shop();
    for (number, (language, code)) in [
        ("python", "total = sum(rows) + extra"),
        ("javascript", "const total = rows.reduce((a, b) => a + b) + extra"),
    ]
    .into_iter()
    .enumerate()
    {
        let config = json!({ "language": language, "code": code, "input_variables": { "rows": [1, 2], "extra": "{{ start.n }}" },
            "output_variable": "total", "timeout_seconds": 60 });
        assert_eq!(shop.run(numbered(number as u64, node("code", "code", config))).output(), &json!(7));
    }
}

#[test]
fn code_has_a_limit_on_time_and_memory() {
    let shop = shop();
    let config = |language: &str, code: &str, limit: Value| {
        let mut config = json!({ "language": language, "code": code });
        config.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
        node("code", "code", config)
    };
    let slow = shop.run(numbered(
        1,
        config("python", "import time\ntime.sleep(1000)", json!({ "timeout_seconds": 0.2 })),
    ));
    assert_eq!(slow.failure().code, "NETWORK_TIMEOUT");
    let hungry = [
        config("python", "x = bytearray(2 * 1024**3)", json!({ "memory_limit_mb": 512 })),
        config(
            "javascript",
            "const x = []; for (;;) x.push(new Array(10000).fill(1.5))",
            json!({ "memory_limit_mb": 32 }),
        ),
    ];
    for (number, work) in hungry.into_iter().enumerate() {
        let finished = shop.run(numbered(2 + number as u64, work));
        assert_eq!(finished.failure().code, "OUT_OF_MEMORY", "{:?}", finished.failure());
    }
}

#[test]
fn wfl_22_a_program_that_gets_the_stop_signal_finds_the_abort_file() {
    let shop = shop();
    let codes = [
        python(
            "import os, time\nsignal = ctx.signal\nprint('ready', flush=True)\nwhile not signal.aborted: time.sleep(0.01)\nprint('stopping', os.path.exists(os.environ['WINDLASS_ABORT']), flush=True)",
        ),
        javascript(
            "const { signal } = ctx; console.log('ready'); await new Promise((done) => { const tick = setInterval(() => { if (signal.aborted && require('fs').existsSync(process.env.WINDLASS_ABORT)) { clearInterval(tick); done(); } }, 10) }); console.log('stopping True')",
        ),
    ];
    for (number, work) in codes.into_iter().enumerate() {
        let work = numbered(number as u64, work);
        let unit = work.unit;
        shop.order(Order::Run(Box::new(work)));
        shop.line("ready");
        let began = Instant::now();
        shop.order(Order::Stop { unit, grace_ms: 30_000 });
        assert_eq!(shop.line("stopping "), "True");
        let finished = shop.finished();
        assert_eq!(finished.outcome, Outcome::Stopped);
        assert!(began.elapsed() < PATIENCE, "it ended by itself");
    }
}

#[test]
fn wfl_22_wfl_23_shell_nodes_have_the_context_and_give_files_or_a_result() {
    let shop = shop();
    let shell =
        |number, command: &str| numbered(number, node("shell", "shell", json!({ "command": command })));
    let finished =
        shop.run(shell(1, "cat \"$WINDLASS_CONTEXT/inputs.json\"; echo \"$MODE $WINDLASS_NODE_ID\"; pwd"));
    let stdout = finished.output()["stdout"].as_str().unwrap().to_owned();
    assert!(stdout.starts_with("{\"n\":4,\"start\":{\"n\":4}}test node-7\n/"), "{stdout}");
    let finished = shop.run(shell(
        2,
        "echo '{\"a\": 1}' > \"$WINDLASS_OUTPUTS/x.json\"; printf plain > \"$WINDLASS_OUTPUTS/y.txt\"",
    ));
    assert_eq!(finished.output()["files"], json!({ "x.json": { "a": 1 }, "y.txt": "plain" }));
    let finished = shop.run(shell(3, "echo '{\"success\": true, \"data\": {\"n\": 1}, \"metadata\": {\"apiCalls\": 2}}' > \"$WINDLASS_OUTPUTS/result.json\""));
    assert_eq!((finished.output(), json!(finished.metadata)), (&json!({ "n": 1 }), json!({ "apiCalls": 2 })));
    let failed = "echo '{\"success\": false, \"error\": {\"code\": \"VALIDATION_ERROR\", \"message\": \"no\"}}' > \"$WINDLASS_OUTPUTS/result.json\"";
    let finished = shop.run(shell(4, failed));
    assert_eq!(
        (finished.failure().class.name(), finished.failure().code.as_str()),
        ("validation", "VALIDATION_ERROR")
    );
    let finished = shop.run(shell(5, "echo nonsense > \"$WINDLASS_OUTPUTS/result.json\""));
    assert_eq!(finished.failure().code, "RESULT_NOT_JSON");
}

#[test]
fn lines_without_a_level_are_read_as_before() {
    let old: Vec<Line> = serde_json::from_str(r#"[{"at": 1, "stream": "err", "text": "x"}]"#).unwrap();
    assert_eq!((old[0].level(), old[0].data.as_ref()), (Level::Warn, None));
    assert_eq!(serde_json::to_string(&old).unwrap(), r#"[{"at":1,"stream":"err","text":"x"}]"#);
}

/// A wheel is a zip; python makes it, so that no package index is needed.
fn wheel(folder: &std::path::Path) -> String {
    let script = r#"
import sys, zipfile
path = sys.argv[1] + "/tiny_pack-1.0-py3-none-any.whl"
info = "tiny_pack-1.0.dist-info/"
with zipfile.ZipFile(path, "w") as wheel:
    wheel.writestr("tiny_pack.py", "ANSWER = 42\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: tiny-pack\nVersion: 1.0\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    wheel.writestr(info + "RECORD", "")
print(path)
"#;
    let made = std::process::Command::new("python3").args(["-c", script]).arg(folder).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

#[test]
fn packages_of_python_code_are_installed_once_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let package = wheel(folder.path());
    let cache = folder.path().join("cache");
    let shop = Shop::with(|config| PoolConfig { cache: cache.clone(), ..config });
    let code = |number, package: &str| {
        let config = json!({ "language": "python", "code": "import tiny_pack\nresult = tiny_pack.ANSWER",
            "pip_dependencies": [package] });
        numbered(number, node_without_secrets("code", config))
    };
    let first = shop.run(code(1, &package));
    assert_eq!(first.output(), &json!(42));
    assert!(
        first.text(Stream::Worker).iter().any(|line| line.starts_with("installing ")),
        "{:?}",
        first.lines
    );
    let second = shop.run(code(2, &package));
    assert_eq!((second.output(), second.text(Stream::Worker)), (&json!(42), vec![]), "it is there already");
    let missing = format!("{}/nothing-1.0-py3-none-any.whl", folder.path().display());
    let failed = shop.run(code(3, &missing));
    let failure = failed.failure();
    assert_eq!(failure.code, "DEPENDENCIES_NOT_INSTALLED");
    assert!(failure.message.contains("can this worker reach the package index?"), "{}", failure.message);
}

fn node_without_secrets(tool: &str, config: Value) -> Work {
    pipeline(json!({
        "tasks": [{ "label": "work", "kind": tool, "config": config }],
        "node": { "id": "n", "name": "N", "kind": tool },
    }))
}

#[test]
fn http_nodes_take_parts_of_the_answer_by_jsonpath_and_count_their_calls() {
    let body = r#"{"items": [{"id": 1}, {"id": 2}]}"#;
    let server =
        Server::start(move |_| answer("200 OK", "content-type: application/json\r\n", body).into_bytes());
    let shop = shop();
    let http = |number, mapping: Value| {
        let config = json!({ "url": server.url("/list"), "response_mapping": mapping });
        numbered(number, node_without_secrets("http", config))
    };
    let finished = shop.run(http(1, json!("$.items[*].id")));
    assert_eq!(
        (&finished.output()["data"], &finished.output()["status_code"]),
        (&json!([1, 2]), &json!(200))
    );
    assert_eq!(json!(finished.metadata), json!({ "apiCalls": 1 }));
    let named = shop.run(http(2, json!({ "first": "$.items[0].id" })));
    assert_eq!(named.output()["data"], json!({ "first": 1 }));
    let missing = shop.run(http(3, json!("$.rows")));
    assert_eq!(missing.failure().code, "VALIDATION_ERROR");
    assert!(missing.failure().message.ends_with("its fields are items"), "{}", missing.failure().message);
    assert_eq!(shop.run(http(4, json!("rows"))).failure().code, "INVALID_CONFIGURATION");
    let unparsed = shop.run(http(5, json!({ "a": "$.items[*", "b": "$..id" })));
    assert_eq!(
        (unparsed.failure().code.as_str(), &json!(unparsed.metadata)),
        ("INVALID_CONFIGURATION", &json!({}))
    );
    let both = shop.run(http(6, json!({ "all": "$..id", "first": "$.items[0].id", "none": "$.rows[*]" })));
    assert_eq!(both.output()["data"], json!({ "all": [1, 2], "first": 1, "none": [] }));
}

#[test]
fn data_nodes_ask_rows_and_files_with_sql_and_reach_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let databases = folder.path().join("databases");
    let shop = Shop::with(|config| PoolConfig { databases: Some(databases.clone()), ..config });
    let sql = |number, config: Value| numbered(number, node_without_secrets("sql", config));
    let tables =
        json!({ "people": [{ "name": "Ann", "age": 30, "tags": ["a"] }, { "name": "Bob", "age": null }] });
    let finished = shop.run(sql(
        1,
        json!({ "query": "SELECT name, age, json_extract(tags, '$[0]') AS tag FROM people WHERE name = ?1",
        "params": ["Ann"], "tables": tables }),
    ));
    let expected = json!({ "rows": [{ "name": "Ann", "age": 30, "tag": "a" }], "row_count": 1, "columns": ["name", "age", "tag"] });
    assert_eq!(finished.output(), &expected);

    let file = |number, query: &str| sql(number, json!({ "database": "shop.db", "query": query }));
    shop.run(file(2, "CREATE TABLE t (n INTEGER UNIQUE)")).output();
    assert_eq!(shop.run(file(3, "INSERT INTO t VALUES (1), (2)")).output()["row_count"], json!(2));
    assert_eq!(shop.run(file(4, "SELECT sum(n) AS s FROM t")).output()["rows"], json!([{ "s": 3 }]));
    assert!(databases.join("default/shop.db").is_file());
    let mut other = file(5, "SELECT * FROM t");
    other.tenant = "tnt_b".to_owned();
    assert_eq!(
        shop.run(other).failure().code,
        "DB_STATEMENT",
        "another tenant's file of that name is another file"
    );

    let mut number = 10;
    let mut refused = |config: Value, code: &str| {
        number += 1;
        let finished = shop.run(sql(number, config.clone()));
        assert_eq!(finished.failure().code, code, "{config}: {}", finished.failure().message);
    };
    refused(json!({ "database": "shop.db", "query": "INSERT INTO t VALUES (1)" }), "DB_CONSTRAINT");
    refused(json!({ "database": "../x.db", "query": "SELECT 1" }), "INVALID_CONFIGURATION");
    refused(json!({ "database": "/etc/x.db", "query": "SELECT 1" }), "INVALID_CONFIGURATION");
    refused(json!({ "query": "ATTACH DATABASE '/tmp/other.db' AS o" }), "PERMISSION_DENIED");
    refused(json!({ "query": "VACUUM INTO '/tmp/windlass-stolen.db'" }), "PERMISSION_DENIED");
    refused(json!({ "query": "SELECT 1; SELECT 2" }), "INVALID_CONFIGURATION");
    refused(json!({ "query": "SELECT ?1" }), "INVALID_CONFIGURATION");
    refused(json!({ "query": "SELEC 1" }), "DB_SYNTAX");
    refused(json!({ "query": "SELECT 1 AS a, 2 AS a" }), "INVALID_CONFIGURATION");
    refused(json!({ "query": "SELECT 1", "tables": { "t": "no rows" } }), "INVALID_CONFIGURATION");
    refused(json!({ "query": "SELECT 1", "tables": {}, "database": "x.db" }), "INVALID_CONFIGURATION");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS m FROM n";
    refused(json!({ "query": endless, "timeout_seconds": 0.2 }), "NETWORK_TIMEOUT");
}

#[test]
fn memory_nodes_keep_values_for_their_workflow_without_secrets() {
    let shop = shop();
    let of = |number, tool: &str, config: Value| numbered(number, node(tool, tool, config));
    let value = json!({ "n": 1, "k": "{{ keychain.api.token }}" });
    let mut storing = of(1, "memory_store", json!({ "key": "user:ann", "value": value }));
    let mut spec = (*storing.spec).clone();
    spec["keychain"] = json!([{ "name": "api", "playbook": "p", "scope": "execution",
        "source": { "from": "secret", "provider": "windlass", "name": "api-key" } }]);
    storing.spec = Arc::new(spec);
    let stored = shop.run(storing);
    assert_eq!(stored.output(), &json!({ "key": "user:ann", "stored": true }));
    let found = shop.run(of(2, "memory_search", json!({ "prefix": "user:" })));
    let item = json!({ "key": "user:ann", "value": { "n": 1, "k": "[redacted]" }, "storedAt": "1970-01-01T00:00:00Z" });
    assert_eq!(found.output(), &json!({ "count": 1, "items": [item] }));
    let mut other = of(3, "memory_search", json!({}));
    other.workflow = Some("7".repeat(32));
    assert_eq!(shop.run(other).output()["count"], json!(0));
    assert_eq!(
        shop.run(of(4, "memory_search", json!({ "limit": 0 }))).failure().code,
        "INVALID_CONFIGURATION"
    );
    assert_eq!(
        shop.run(of(5, "memory_store", json!({ "value": 1 }))).failure().code,
        "INVALID_CONFIGURATION"
    );
}
