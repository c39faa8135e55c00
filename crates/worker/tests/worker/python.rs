//! Python tasks with the system's interpreter.

use crate::engine::{Finished, Shop, UNIT, pipeline};
use crate::supervisor::lives;
use serde_json::{Value, json};
use windlass_protocol::{Order, Outcome, Stream, Work};

fn python(config: Value) -> Work {
    pipeline(json!({ "tasks": [{ "label": "py", "kind": "python", "config": config }] }))
}

fn run(config: Value) -> Finished {
    Shop::open().run(python(config))
}

fn check(args: Value, code: &str, expected: Value) {
    assert_eq!(*run(json!({ "code": code, "args": args })).output(), expected, "{code}");
}

#[test]
fn the_result_is_a_global_a_return_value_or_what_main_returns() {
    check(json!({}), "result = {'n': [1, 2.5, 'ä', None, True]}", json!({ "n": [1, 2.5, "ä", null, true] }));
    check(json!({}), "def main():\n    return 3\nresult = 4", json!(4));
    check(json!({}), "def main():\n    return 3", json!(3));
    check(json!({}), "async def main():\n    return 3", json!(3));
    check(json!({}), "def main():\n    pass", Value::Null);
    check(json!({}), "result = None", Value::Null);
    check(json!({}), "result = (1, 2)", json!([1, 2]));
    check(json!({}), "result = {1: 'a', None: 'b'}", json!({ "1": "a", "null": "b" }));
    check(json!({}), "result = 18446744073709551615", json!(u64::MAX));
    check(json!({}), "import sys\nresult = 5\nsys.exit(0)", json!(5));
    check(json!({}), "x = 1", json!({ "status": "success", "message": "the code gave no result" }));
}

#[test]
fn a_return_outside_of_functions_works_and_names_stay_global() {
    check(json!({ "n": 2 }), "n = n + 1\nreturn n", json!(3));
    check(json!({ "n": 2 }), "if n > 1:\n    return 'big'\nresult = 'small'", json!("big"));
    check(json!({ "n": 1 }), "if n > 1:\n    return 'big'\nresult = 'small'", Value::Null);
    let code = "k: int = 1\ndef more():\n    global k\n    k += 1\nmore()\nreturn [k, [n for n in range(k)]]";
    check(json!({}), code, json!([2, [0, 1]]));
    check(json!({}), "def f():\n    return 1\nresult = f()", json!(1));
}

#[test]
fn arguments_are_globals_and_dicts_and_main_gets_what_it_takes() {
    let args = json!({ "a": 1, "b": { "x": [true] } });
    check(
        args.clone(),
        "result = [a, b['x'], args['a'], input_data.get('b')]",
        json!([1, [true], 1, { "x": [true] }]),
    );
    check(args.clone(), "def main(b):\n    return b", json!({ "x": [true] }));
    check(
        args.clone(),
        "def main(a, c=7, *rest, **others):\n    return [a, c, others]",
        json!([1, 7, { "b": { "x": [true] } }]),
    );
    check(args.clone(), "def main(input_data):\n    return input_data", args.clone());
    check(args, "def main(a, /, *, b):\n    return [a, b]", json!([1, { "x": [true] }]));
    check(
        json!({ "result": 1 }),
        "x = result",
        json!({ "status": "success", "message": "the code gave no result" }),
    );
    check(json!({ "result": 1 }), "result = result + 1", json!(2));
    check(json!({ "input_data": 9 }), "result = [input_data, args['input_data']]", json!([9, 9]));
}

#[test]
fn the_steps_arguments_lie_under_the_tasks_own() {
    let spec = json!({
        "args": { "a": 1, "b": 2 },
        "tasks": [{ "label": "py", "kind": "python", "config": { "code": "result = [a, b]", "args": { "b": 3 } } }],
    });
    assert_eq!(*Shop::open().run(pipeline(spec)).output(), json!([1, 3]));
}

#[test]
fn an_exception_has_its_type_and_the_lines_of_the_code() {
    let code = "def inner():\n    raise ValueError('no ' + word)\n\ninner()";
    let finished = run(json!({ "code": code, "args": { "word": "good" } }));
    let failure = finished.failure();
    assert_eq!(
        (failure.class.name(), failure.code.as_str(), failure.message.as_str()),
        ("unknown", "PYTHON_EXCEPTION", "ValueError: no good")
    );
    let trace = failure.details["traceback"].as_str().unwrap();
    assert_eq!(failure.details["exception_type"], "ValueError");
    assert!(trace.contains("\"<code>\", line 4, in <module>\n    inner()"), "{trace}");
    assert!(trace.contains("line 2, in inner\n    raise ValueError('no ' + word)"), "{trace}");
    assert!(!trace.contains("run.py"), "{trace}");
    let finished = run(json!({ "code": "x = 1\nreturn y" }));
    assert!(finished.failure().details["traceback"].as_str().unwrap().contains("line 2, in <module>"));
    let finished = run(json!({ "code": "x = 1\nif x" }));
    assert_eq!(finished.failure().code, "PYTHON_SYNTAX");
    assert!(finished.failure().details["traceback"].as_str().unwrap().contains("line 2"));
    assert_eq!(run(json!({ "code": "import sys\nsys.exit(3)" })).failure().message, "SystemExit: 3");
}

#[test]
fn rules_see_the_exception_and_whether_another_try_may_help() {
    let sees = |code: &str, when: &str| {
        let rules = json!([{ "when": when, "action": { "do": "break" } }, { "action": { "do": "fail" } }]);
        let task = json!({ "label": "py", "kind": "python", "config": { "code": code }, "rules": rules });
        let finished = Shop::open().run(pipeline(json!({ "tasks": [task] })));
        assert!(matches!(finished.outcome, Outcome::Done { .. }), "{when}: {:?}", finished.outcome);
    };
    sees("{}['k']", "outcome.py.exception_type == 'KeyError' and 'line 1' in outcome.py.traceback");
    sees("{}['k']", "outcome.error.exception_type == 'KeyError' and outcome.error.source == 'python'");
    sees("{}['k']", "outcome.error.kind == 'unknown' and not outcome.error.retryable");
    sees("raise TimeoutError()", "outcome.error.kind == 'timeout' and outcome.error.retryable");
    sees(
        "raise ConnectionResetError('x')",
        "outcome.error.kind == 'transport' and outcome.error.code == 'CONNECTION_RESET' and outcome.error.retryable",
    );
    sees(
        "raise ConnectionRefusedError('x')",
        "outcome.error.code == 'CONNECTION_REFUSED' and outcome.error.retryable",
    );
    let lookup = "import socket; socket.getaddrinfo('nowhere.invalid', 80)";
    sees(lookup, "outcome.error.code == 'DNS_FAILED' and outcome.error.class == 'transport'");
    let wrapped = "import urllib.request; urllib.request.urlopen('http://127.0.0.1:1/')";
    sees(wrapped, "outcome.error.code == 'CONNECTION_REFUSED'");
    sees("1 +", "outcome.error.code == 'PYTHON_SYNTAX'");
    sees("result = {1, 2}", "outcome.error.code == 'RESULT_NOT_JSON'");
    sees(
        "result = {'status': 'error', 'error': 'sold out', 'left': 0}",
        "outcome.status == 'error' and outcome.error.message == 'sold out' and outcome.error.details.left == 0",
    );
}

#[test]
fn a_result_that_is_no_json_is_named() {
    let message = |code: &str| run(json!({ "code": code })).failure().message.clone();
    assert_eq!(
        message("result = {1, 2}"),
        "`result` is of type `set`, which is not a JSON type; convert it first"
    );
    assert_eq!(
        message("import datetime\nresult = {'when': [datetime.date(2024, 1, 1)]}"),
        "`result.when[0]` is of type `datetime.date`, which is not a JSON type; convert it first"
    );
    assert_eq!(message("result = float('nan')"), "`result` is nan, and JSON has no such number");
    assert_eq!(
        message("result = 2 ** 64"),
        "`result` is an integer beyond 64 bits; return it as a string with str()"
    );
    assert_eq!(
        message("result = {(1, 2): 3}"),
        "`result` has a key of type `tuple`; keys of JSON objects are strings"
    );
    assert_eq!(
        message("result = '\\ud800'"),
        "`result` is a string with lone surrogates, which JSON cannot represent"
    );
    assert!(message("result = []\nresult.append(result)").contains("nested deeper than 100 levels"));
    assert!(message("result = 'x' * (129 << 20)").contains("128 MiB is the maximum"));
}

#[test]
fn what_is_printed_is_logged_line_by_line_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let shop = Shop::open();
    let code = "import os, sys\nos.mkfifo(gate)\nprint('first')\nprint('warn', file=sys.stderr)\nresult = open(gate).read()\nprint('ü\\ud800 end', end='')";
    shop.order(Order::Run(Box::new(python(json!({ "code": code, "args": { "gate": gate } })))));
    shop.line("first");
    std::fs::write(&gate, "word").unwrap();
    let finished = shop.finished();
    assert_eq!(*finished.output(), json!("word"));
    assert_eq!(finished.text(Stream::Out), ["ü\\ud800 end"]);
}

#[test]
fn libraries_are_imported_under_their_names() {
    let run = |libs: Value, code: &str| run(json!({ "code": code, "libs": libs }));
    assert_eq!(
        *run(json!({ "j": "json", "p": "os.path" }), "result = j.loads('[1]') + [p.basename('a/b')]")
            .output(),
        json!([1, "b"])
    );
    assert_eq!(
        *run(json!(["json", "os.path"]), "result = [json.dumps(1), os.path.basename('a/b')]").output(),
        json!(["1", "b"])
    );
    let finished = run(json!(["no_such_library_here"]), "result = 1");
    let failure = finished.failure();
    assert_eq!(
        (failure.code.as_str(), failure.message.as_str()),
        (
            "INVALID_CONFIGURATION",
            "the library `no_such_library_here` cannot be imported: No module named 'no_such_library_here'"
        )
    );
}

/// The process list and the environment contain no argument; the files are for this user only, and removed afterwards.
#[test]
fn arguments_are_private_and_their_files_are_removed_afterwards() {
    let code = r#"
import glob, os, stat, sys
here = os.path.dirname(os.path.abspath(sys.argv[0]))
seen = b''.join(open(f'/proc/{pid}/{name}', 'rb').read() for pid in ('self', os.getppid()) for name in ('cmdline', 'environ'))
result = {
    'here': here,
    'seen': b's3cr3t' in seen,
    'modes': sorted({oct(stat.S_IMODE(os.stat(path).st_mode)) for path in [here] + glob.glob(here + '/*')}),
    'files': sorted(os.listdir(here)),
}
"#;
    let finished = run(json!({ "code": code, "args": { "password": "s3cr3t" } }));
    let output = finished.output();
    assert_eq!(output["seen"], false);
    assert_eq!(output["modes"], json!(["0o600", "0o700"]));
    assert_eq!(output["files"], json!(["run.py"]), "the request is gone once it is read");
    assert!(!std::path::Path::new(output["here"].as_str().unwrap()).exists());
    let finished = run(json!({ "code": "import sys, os\nraise ValueError(os.path.dirname(sys.argv[0]))" }));
    let here = finished.failure().message["ValueError: ".len()..].to_owned();
    assert!(!std::path::Path::new(&here).exists(), "{here}");
}

#[test]
fn it_runs_in_its_directory_with_its_environment() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("beside.py"), "word = 'found'").unwrap();
    let script = "import os, beside\nresult = [os.getcwd(), os.environ['OWN'], beside.word, __name__, os.environ['WINDLASS_STEP']]";
    std::fs::write(dir.path().join("script.py"), script).unwrap();
    let cwd = dir.path().canonicalize().unwrap();
    let finished = run(json!({ "script": { "uri": "script.py" }, "cwd": cwd, "env": { "OWN": 3 } }));
    assert_eq!(*finished.output(), json!([cwd, "3", "found", "windlass_task", "a step"]));
    std::fs::write(dir.path().join("script.py"), "x = 1\nraise KeyError(x)").unwrap();
    let finished = run(json!({ "script": "script.py", "cwd": cwd }));
    let trace = finished.failure().details["traceback"].as_str().unwrap().to_owned();
    assert!(trace.contains(&format!("{}\", line 2", cwd.join("script.py").display())), "{trace}");
    let message = run(json!({ "script": "none.py", "cwd": cwd })).failure().message.clone();
    assert!(message.contains("none.py`, cannot be read: No such file"), "{message}");
    let message = run(json!({ "script": cwd })).failure().message.clone();
    assert!(message.ends_with("is no file"), "{message}");
}

#[test]
fn an_interpreter_that_dies_is_a_failure() {
    let failure = |config: Value| run(config).failure().clone();
    let finished = failure(json!({ "code": "import os\nprint('so far', flush=True)\nos._exit(3)" }));
    assert_eq!(
        (finished.code.as_str(), finished.message.as_str()),
        ("PYTHON_EXIT", "python ended with exit code 3 before it had a result")
    );
    assert_eq!(finished.details["stdout"], "so far\n");
    let finished = failure(json!({ "code": "import os\nos.kill(os.getpid(), 9)" }));
    assert_eq!(
        (finished.code.as_str(), finished.message.as_str()),
        ("PYTHON_SIGNAL", "python was killed by signal 9 before it had a result")
    );
    let finished = failure(json!({ "code": "import atexit, os\natexit.register(os._exit, 4)\nresult = 1" }));
    assert_eq!(finished.message, "python ended with exit code 4 after it had its result");
    let finished = failure(json!({ "code": "result = 1", "python": "no-such-python" }));
    assert_eq!(
        (finished.code.as_str(), finished.message.as_str()),
        (
            "INVALID_CONFIGURATION",
            "the interpreter `no-such-python` was not found; install it, or name another one in `python`"
        )
    );
    let finished = failure(json!({ "code": "result = 1", "cwd": "/no/such/dir" }));
    assert_eq!(finished.message, "`cwd` of python is no directory: `/no/such/dir`");
}

#[test]
fn code_that_takes_too_long_is_killed_with_all_it_started() {
    let code = "import subprocess\nchild = subprocess.Popen(['sleep', '1000'])\nprint('pid', child.pid)\nchild.wait()";
    assert_eq!(run(json!({ "code": code, "timeout_seconds": 0.5 })).failure().code, "NETWORK_TIMEOUT");
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(python(json!({ "code": code })))));
    let pid = shop.line("pid ");
    shop.order(Order::Stop { unit: UNIT, grace_ms: 60_000 });
    assert_eq!(shop.finished().outcome, Outcome::Stopped);
    assert!(!lives(&pid));
}
