//! Shell tasks with real commands.

use crate::engine::{Finished, Shop, UNANSWERED_MAX, UNIT, command, pipeline, shell};
use crate::supervisor::lives;
use serde_json::{Value, json};
use windlass_protocol::{Line, Order, Outcome, Stream, Unit, Work};
use windlass_worker::{LINE_MAX, TAIL_MAX};

fn run(work: Work) -> Finished {
    Shop::open().run(work)
}

#[test]
fn a_command_returns_its_exit_code_and_its_output() {
    let finished = run(command("echo out; echo err >&2; printf 'no end'"));
    assert_eq!(*finished.output(), json!({ "exit_code": 0, "stdout": "out\nno end", "stderr": "err\n" }));
    assert_eq!(finished.text(Stream::Out), ["out", "no end"]);
    assert_eq!(finished.text(Stream::Err), ["err"]);
    assert_eq!(finished.text(Stream::Worker), [""; 0]);
}

#[test]
fn output_is_not_taken_apart() {
    assert_eq!(run(command("echo '{\"n\": 1}'")).output()["stdout"], "{\"n\": 1}\n");
}

#[test]
fn another_exit_code_is_an_error_with_its_last_words() {
    let finished = run(command("echo some; echo why >&2; echo >&2; exit 3"));
    let failure = finished.failure();
    assert_eq!((failure.class.name(), failure.code.as_str()), ("unknown", "SHELL_EXIT"));
    assert_eq!(failure.message, "the command ended with exit code 3: why");
    let details = json!({ "exit_code": 3, "stdout": "some\n", "stderr": "why\n\n", "task": "cmd" });
    assert_eq!(failure.details, details);
}

#[test]
fn a_failed_command_reports_its_reason() {
    let message = |work: Work| {
        let finished = run(work);
        (finished.failure().code.clone(), finished.failure().message.clone())
    };
    let (code, text) = message(command("kill -9 $$"));
    assert_eq!((code.as_str(), text.as_str()), ("SHELL_SIGNAL", "the command was killed by signal 9"));
    let (code, text) = message(command("no-such-command-here"));
    assert!(code == "SHELL_EXIT" && text.starts_with("a command was not found (exit code 127): "), "{text}");
    let (_, text) = message(shell(json!({ "command": "true", "shell": "no-such-shell" })));
    assert!(text.contains("not found") && text.contains("no-such-shell"), "{text}");
    let (code, text) = message(shell(json!({ "command": "true", "cwd": "/no/such/dir" })));
    assert_eq!(
        (code.as_str(), text.as_str()),
        ("INVALID_CONFIGURATION", "`cwd` of shell is no directory: `/no/such/dir`")
    );
    let (code, text) = message(command(&"x".repeat(200_000)));
    assert!(code == "INVALID_CONFIGURATION" && text.contains("longer than the system allows"), "{text}");
    let (code, text) = message(command("a\0b"));
    assert!(code == "INVALID_CONFIGURATION" && text.contains("NUL"), "{text}");
    let (code, text) = message(shell(json!({ "command": "true", "timeout_seconds": "soon" })));
    assert!(
        code == "INVALID_CONFIGURATION" && text.contains("a number of seconds above 0, not \"soon\""),
        "{text}"
    );
}

#[test]
fn a_list_of_commands_ends_at_the_first_that_fails() {
    let finished = run(shell(json!({ "cmds": ["x=1", "echo $x", "false", "echo never"] })));
    assert_eq!(finished.text(Stream::Out), ["1"]);
    assert_eq!(finished.failure().details["exit_code"], 1);
}

#[test]
fn a_command_knows_its_place_and_reads_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let names = "$WINDLASS_EXECUTION_ID|$WINDLASS_STEP|$WINDLASS_ATTEMPT|$WINDLASS_IDEMPOTENCY_KEY";
    let finished = run(shell(json!({
        "command": format!("pwd -P; echo \"{names}|$OWN|${{HOME:+inherited}}\"; cat; test -c /dev/fd/0 || echo a pipe; ps -o pgid= -p $$ | tr -d ' '; echo $$"),
        "cwd": dir.path(),
        "env": { "OWN": "{{ 1 + 1 }}", "WINDLASS_STEP": "forged", "HOME": "/home" },
    })));
    let lines = finished.text(Stream::Out);
    assert_eq!(lines[0], dir.path().canonicalize().unwrap().to_str().unwrap());
    let id = format!("{:032x}", 0xabc);
    assert_eq!(lines[1], format!("{id}|a step|2|{id}:7|2|inherited"));
    assert_eq!(lines[2], lines[3], "it leads a group of its own");
}

#[test]
fn lines_are_logged_while_the_command_runs() {
    let dir = tempfile::tempdir().unwrap();
    let gate = dir.path().join("gate");
    let shop = Shop::open();
    let text = format!("mkfifo {0}; echo first; read answer <{0}; echo got $answer", gate.display());
    shop.order(Order::Run(Box::new(command(&text))));
    shop.line("first");
    std::fs::write(&gate, "word\n").unwrap();
    assert_eq!(shop.finished().output()["stdout"], "first\ngot word\n");
}

#[test]
fn long_lines_are_split_and_bytes_that_are_no_text_are_replaced() {
    let finished = run(command("head -c 150000 /dev/zero | tr '\\0' x; echo; printf 'a\\377b\\n'"));
    let sizes: Vec<usize> = finished.text(Stream::Out).iter().map(|line| line.len()).collect();
    assert_eq!(sizes, [LINE_MAX, LINE_MAX, 150_000 - 2 * LINE_MAX, 5]);
    assert_eq!(finished.text(Stream::Out)[3], "a\u{fffd}b");
    assert!(finished.output()["stdout"].as_str().unwrap().ends_with("x\na\u{fffd}b\n"));
}

/// The size of a chunk is asserted by the engine of these tests.
#[test]
fn ten_megabytes_are_all_logged_and_the_end_of_them_is_kept() {
    let finished = run(command("yes 0123456789abcdef | head -c 10000000; echo; echo last"));
    assert_eq!(finished.bytes(), 10_000_000 + 1 + 5);
    let output = finished.output();
    let stdout = output["stdout"].as_str().unwrap();
    assert!(stdout.len() == TAIL_MAX && stdout.ends_with("\nlast\n"), "{} bytes", stdout.len());
    assert_eq!(output["truncated"], true);
}

#[test]
fn a_slow_engine_holds_the_command_back() {
    let dir = tempfile::tempdir().unwrap();
    let done = dir.path().join("done");
    let shop = Shop::open();
    shop.engine.hold_back_logs();
    let text = format!("yes 0123456789abcdef | head -c 3000000; echo ok >{}", done.display());
    shop.order(Order::Run(Box::new(command(&text))));
    let mut bytes = shop.until_logs_wait();
    // Time enough for more, if nothing held it back.
    for run in 10..15 {
        bytes += shop.run(Work { unit: Unit { run, ..UNIT }, ..command("true") }).bytes();
    }
    assert_eq!(shop.engine.unanswered_logs(), UNANSWERED_MAX);
    assert!(!done.exists(), "what does not fit into the pipe is not even written");
    shop.engine.release_logs();
    bytes += shop.finished().bytes();
    assert!(done.exists() && bytes >= 3_000_000, "{bytes}");
}

/// The grandchild's id, and the work that runs it.
fn with_grandchild(rest: &str) -> String {
    format!("sh -c 'sleep 1000 & echo pid $!; wait' & {rest}")
}

fn pid(lines: &[Line]) -> &str {
    lines.iter().find_map(|line| line.text.strip_prefix("pid ")).expect("the grandchild printed its id")
}

#[test]
fn a_task_that_takes_too_long_is_killed_with_all_it_started() {
    let rules = json!([{ "when": "outcome.error.class == 'timeout'", "action": { "do": "continue" } }]);
    let task = |limit: Value| {
        let config = json!({ "command": with_grandchild("wait"), "timeout_seconds": limit });
        json!({ "label": "slow", "kind": "shell", "config": config, "rules": rules, "timeout_ms": 300_000 })
    };
    let finished = run(pipeline(json!({ "tasks": [task(json!(0.2))] })));
    let error = &finished.output()["error"];
    assert_eq!((&error["code"], &error["retryable"]), (&json!("NETWORK_TIMEOUT"), &json!(true)));
    assert_eq!(error["message"], "task `slow` took longer than its timeout of 200 ms and was stopped");
    assert!(!lives(pid(&finished.lines)));
}

#[test]
fn an_attempt_that_takes_too_long_fails_under_all_rules() {
    let rules = json!([{ "action": { "do": "continue" }, "set_ctx": { "wrote": 1 } }]);
    let mut work = pipeline(json!({ "tasks": [
        { "label": "one", "kind": "noop", "rules": rules },
        { "label": "two", "kind": "shell", "config": { "command": with_grandchild("wait") }, "rules": rules },
    ]}));
    work.timeout_ms = Some(500);
    let finished = run(work);
    let failure = finished.failure();
    assert_eq!((failure.class.name(), failure.code.as_str()), ("timeout", "NETWORK_TIMEOUT"));
    assert_eq!(failure.message, "step `a step` took longer than its timeout of 500 ms and was stopped");
    assert!(!lives(pid(&finished.lines)));
}

#[test]
fn what_a_command_leaves_behind_ends_with_it() {
    let finished = run(command("sleep 1000 & echo pid $!"));
    assert_eq!(finished.output()["exit_code"], 0);
    assert!(!lives(pid(&finished.lines)));
}

#[test]
fn what_leaves_the_group_and_keeps_the_pipe_ends_with_the_step() {
    let dir = tempfile::tempdir().unwrap();
    let leave =
        "setsid sh -c 'echo pid $$; : >left; exec sleep 1000' & while ! test -e left; do :; done; echo end";
    let finished = run(shell(json!({ "command": leave, "cwd": dir.path() })));
    assert_eq!(finished.output()["exit_code"], 0);
    assert!(!lives(pid(&finished.lines)));
}

#[test]
fn a_stopped_command_may_say_goodbye() {
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(command(
        "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
    ))));
    shop.line("ready");
    shop.order(Order::Stop { unit: UNIT, grace_ms: 60_000 });
    let finished = shop.finished();
    assert_eq!((finished.text(Stream::Out), &finished.outcome), (vec!["bye"], &Outcome::Stopped));
}

#[test]
fn who_does_not_hear_is_killed_after_the_grace() {
    for grace_ms in [0, 50] {
        let shop = Shop::open();
        let deaf =
            "trap '' TERM; sh -c 'trap \"\" TERM; echo pid $$; while :; do sleep 0.01; done' & wait; wait";
        shop.order(Order::Run(Box::new(command(deaf))));
        let deaf = shop.line("pid ");
        shop.order(Order::Stop { unit: UNIT, grace_ms });
        assert_eq!(shop.finished().outcome, Outcome::Stopped);
        assert!(!lives(&deaf));
    }
}

#[test]
fn a_stop_can_be_made_shorter() {
    let shop = Shop::open();
    let stubborn = "trap 'echo heard' TERM; echo pid $$; while :; do sleep 0.01; done";
    shop.order(Order::Run(Box::new(command(stubborn))));
    let stubborn = shop.line("pid ");
    shop.order(Order::Stop { unit: UNIT, grace_ms: 600_000 });
    shop.line("heard");
    shop.order(Order::Stop { unit: UNIT, grace_ms: 0 });
    assert_eq!(shop.finished().outcome, Outcome::Stopped);
    assert!(!lives(&stubborn));
}
