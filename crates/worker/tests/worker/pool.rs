//! The pool as a whole: pipelines over real tools, checkpoints, shutdown.

use crate::engine::{Heard, Shop, UNIT, command, pipeline};
use crate::supervisor::lives;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use windlass_protocol::{Order, Outcome, Stream, Unit, Verdict, Work};
use windlass_worker::{OwnCommand, PoolConfig};

#[test]
fn pbk_21_a_pipeline_of_real_tools_runs_by_its_rules() {
    let retry = json!({ "do": "retry", "attempts": 3, "backoff": "constant", "delay_ms": 1 });
    let finished = Shop::open().run(pipeline(json!({ "tasks": [
        { "label": "flaky", "kind": "shell", "config": { "command": "test {{ _attempt }} = 3 && echo {{ _attempt }}" },
          "rules": [{ "when": "outcome.status == 'error'", "action": retry }] },
        { "label": "pick", "kind": "noop", "config": { "args": { "n": "{{ _prev.stdout | trim | int }}" } } },
        { "label": "tell", "kind": "shell", "config": { "command": "echo {{ pick.n + 1 }} {{ results.flaky.exit_code }}" } },
    ]})));
    assert_eq!(finished.output()["stdout"], "4 0\n");
    assert_eq!(finished.output()["results"]["pick"], json!({ "n": 3 }));
    let said = [
        "task flaky (shell)",
        "task flaky (shell), try 2",
        "task flaky (shell), try 3",
        "task pick (noop)",
        "task tell (shell)",
    ];
    assert_eq!(finished.text(Stream::Worker), said);
}

#[test]
fn a_noop_returns_its_configuration() {
    let noop = |config| {
        Shop::open().run(pipeline(json!({ "tasks": [{ "label": "n", "kind": "noop", "config": config }] })))
    };
    assert_eq!(*noop(json!({ "data": "{{ [1, 2] }}" })).output(), json!([1, 2]));
    assert_eq!(*noop(json!({ "input": { "a": 1 } })).output(), json!({ "a": 1 }));
    assert_eq!(*noop(json!({ "message": "hello" })).output(), json!(null));
}

#[test]
fn an_unknown_tool_is_refused_with_the_known_ones() {
    let finished = Shop::open().run(pipeline(json!({ "tasks": [{ "label": "x", "kind": "fax" }] })));
    let failure = finished.failure();
    assert_eq!((failure.class.name(), failure.code.as_str()), ("validation", "INVALID_CONFIGURATION"));
    assert_eq!(
        failure.message,
        "this worker has no tool `fax`; it has noop, shell, python, script, container, http, postgres, artifact, secrets, worker"
    );
}

/// Two tasks that leave a mark each.
fn marks(dir: &Path) -> Work {
    let mark = |label: &str| {
        let command = format!("echo {label} >>{}", dir.join("marks").display());
        json!({ "label": label, "kind": "shell", "config": { "command": command } })
    };
    pipeline(json!({ "tasks": [mark("one"), mark("two")] }))
}

#[test]
fn the_next_task_waits_for_the_checkpoint_and_never_runs_when_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(marks(dir.path()))));
    let reply = loop {
        if let Heard::Checkpoint(_, reply) = shop.hear() {
            break reply;
        }
    };
    // Time enough for the next task, if it did not wait.
    for run in 10..15 {
        shop.run(Work { unit: Unit { run, ..UNIT }, ..command("true") });
    }
    reply(Verdict::Stale);
    let heard = shop.shut_down();
    assert!(
        !heard.iter().any(|heard| matches!(heard, Heard::Report(_))),
        "work that is not ours is not reported"
    );
    assert_eq!(std::fs::read_to_string(dir.path().join("marks")).unwrap(), "one\n");
}

#[test]
fn a_pipeline_that_was_interrupted_continues_at_its_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut work = marks(dir.path());
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(work.clone())));
    let cursor = loop {
        if let Heard::Checkpoint(checkpoint, _) = shop.hear() {
            break checkpoint.cursor;
        }
    };
    drop(shop);
    (work.cursor, work.unit.fence) = (Some(Arc::new((*cursor).clone())), 2);
    let finished = Shop::open().run(work);
    assert_eq!(finished.output()["results"]["one"]["exit_code"], 0);
    assert_eq!(std::fs::read_to_string(dir.path().join("marks")).unwrap(), "one\ntwo\n");
}

#[test]
fn units_run_concurrently() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let shop = Shop::open();
    // Each end of the pipe opens only when the other does.
    let other = Work { unit: Unit { run: 8, ..UNIT }, ..command(&format!("echo hi >{}", fifo.display())) };
    shop.order(Order::Run(Box::new(command(&format!("cat {}", fifo.display())))));
    shop.order(Order::Run(Box::new(other)));
    for _ in 0..2 {
        assert!(matches!(shop.finished().outcome, Outcome::Done { .. }));
    }
}

#[test]
fn a_shutdown_ends_the_processes_and_reports_nothing() {
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(command("sleep 1000 & echo pid $!; wait"))));
    let sleeper = shop.line("pid ");
    let heard = shop.shut_down();
    assert!(!lives(&sleeper));
    assert!(!heard.iter().any(|heard| matches!(heard, Heard::Report(_))));
    assert!(
        matches!(heard.last(), Some(Heard::Left(windlass_protocol::SessionId(1)))),
        "it says goodbye when all is gone"
    );
}

#[test]
fn a_shutdown_does_not_wait_for_an_engine_that_takes_no_log() {
    let shop = Shop::open();
    shop.engine.hold_back_logs();
    shop.order(Order::Run(Box::new(command("echo pid $$; yes"))));
    let writer = shop.line("pid ");
    shop.until_logs_wait();
    shop.shut_down();
    assert!(!lives(&writer));
}

#[test]
fn a_worker_whose_session_is_unknown_registers_again_after_its_units_have_ended() {
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(command("echo pid $$; exec sleep 1000"))));
    let sleeper = shop.line("pid ");
    shop.order(Order::Unknown);
    loop {
        match shop.hear() {
            Heard::Registered => break,
            Heard::Report(report) => panic!("lost work is not reported: {report:?}"),
            Heard::Line(_)
            | Heard::Checkpoint(..)
            | Heard::Left(_)
            | Heard::Progress(_)
            | Heard::Agent(..) => {}
        }
    }
    assert!(!lives(&sleeper));
    let again = Work { unit: Unit { fence: 2, ..UNIT }, ..command("echo again") };
    assert_eq!(shop.run(again).output()["stdout"], "again\n");
}

#[test]
fn a_program_without_a_supervisor_is_not_started() {
    let nowhere = OwnCommand { program: "/nowhere/windlass".into(), args: vec![] };
    let shop = Shop::with(|config| PoolConfig { supervisor: nowhere, ..config });
    let failure = shop.run(command("echo never")).failure().clone();
    assert_eq!((failure.code.as_str(), failure.retryable), ("SHELL_NOT_STARTED", Some(true)), "{failure:?}");
}
