//! Every control in every situation.

use crate::rig::{is_gone, until};
use crate::situations::{ALL, Reached, Situation};
use rustix::process::{Pid, Signal};

/// Control that is sent to the execution in the situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// Held, and released when what runs has been reported to end.
    Pause,
    Cancel,
    Patch,
    /// The worker and the engine end in order, and another process continues.
    Interrupt,
    /// Everything is killed at once.
    Kill,
    /// Cancelled, then done again from there.
    Fork,
}

const CONTROLS: [Control; 6] =
    [Control::Pause, Control::Cancel, Control::Patch, Control::Interrupt, Control::Kill, Control::Fork];

/// End of the execution, and the output of its steps; `(x y)` allows both orders.
const EXPECTED: [(&str, [&str; 6]); 8] = [
    (
        "running",
        [
            "completed: x x. y",
            "cancelled: x",
            "completed: x x. y",
            "completed: x x x. y",
            "completed: x x x. y",
            "completed: x x x. y",
        ],
    ),
    (
        "loop, one at a time",
        [
            "completed: x1 x1. x2 x2. y",
            "cancelled: x1",
            "completed: x1 x1. x2 x2. y",
            "completed: x1 x1 x1. x2 x2. y",
            "completed: x1 x1 x1. x2 x2. y",
            "completed: x1 x1 x1. x2 x2. y",
        ],
    ),
    (
        "loop, two at a time",
        [
            "completed: 3 x, 3 x., y",
            "cancelled: 2 x",
            "completed: 3 x, 3 x., y",
            "completed: 5 x, 3 x., y",
            "completed: 5 x, 3 x., y",
            "completed: 5 x, 3 x., y",
        ],
    ),
    (
        "backoff",
        [
            "completed: x x x. y",
            "cancelled: x",
            "completed: x x x. y",
            "completed: x x x. y",
            "completed: x x x. y",
            "completed: x x x. y",
        ],
    ),
    (
        "second try",
        [
            "completed: x1 x2 x. y",
            "cancelled: x1 x2",
            "completed: x1 x2 x. y",
            "completed: x1 x2 x2 x. y",
            "completed: x1 x2 x2 x. y",
            "completed: x1 x2 x1 x2 x. y",
        ],
    ),
    (
        "gate",
        [
            "completed: a x y",
            "cancelled: a",
            "completed: a x y",
            "completed: a x y",
            "completed: a x y",
            "completed: a x y",
        ],
    ),
    (
        "child",
        [
            "completed: inner inner. y",
            "cancelled: inner",
            "completed: inner inner. y",
            "completed: inner inner inner. y",
            "completed: inner inner inner. y",
            "completed: inner inner inner. y",
        ],
    ),
    (
        "final step",
        [
            "completed: a x x.",
            "cancelled: a x",
            "completed: a x x.",
            "completed: a x x x.",
            "completed: a x x x.",
            "completed: a x x x.",
        ],
    ),
];

#[test]
fn every_control_in_every_situation_ends_as_the_table_says() {
    // Nothing of one crossing touches another; several at a time use the waits of each other.
    let cells: Vec<(&Situation, Control, &str)> = ALL
        .iter()
        .zip(&EXPECTED)
        .flat_map(|(situation, (name, row))| {
            assert_eq!(situation.name, *name, "the rows are in this order");
            CONTROLS.iter().zip(row).map(move |(control, expected)| (*situation, *control, *expected))
        })
        .collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let wrong = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((situation, control, expected)) =
                    cells.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let found = cross(situation, *control);
                    if found != *expected {
                        let name = situation.name;
                        let output =
                            format!("{name} × {control:?}:\n  expected {expected}\n  found    {found}");
                        wrong.lock().expect("no thread panicked").push(output);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn cross(situation: &Situation, control: Control) -> String {
    let at = situation.reach();
    let refused = situation.name == "final step" && control == Control::Pause;
    match control {
        Control::Pause if refused => {
            at.place.windlass(&["executions", "pause", &at.id]).expect(1).says("not possible");
            release(&at);
        }
        Control::Pause => {
            at.place.windlass(&["executions", "pause", &at.id]).expect(0);
            assert_eq!(at.get()["status"], "paused", "{}", situation.name);
            release(&at);
            at.place.windlass(&["executions", "resume", &at.id]).expect(0);
        }
        Control::Patch if situation.name == "final step" => {
            at.place.windlass(&["executions", "patch", &at.id, "k=1"]).expect(1).says("not possible");
            release(&at);
        }
        Control::Patch => {
            at.place.windlass(&["executions", "patch", &at.id, "k=1"]).expect(0);
            assert_eq!(at.get()["view"]["ctx"]["k"], 1, "{}", situation.name);
            release(&at);
        }
        Control::Interrupt => at.running.signal(Signal::INT),
        Control::Kill => at.running.signal(Signal::KILL),
        Control::Cancel | Control::Fork => {
            at.place.windlass(&["executions", "cancel", &at.id]).expect(0);
        }
    }
    let Reached { place, running, id } = at;
    let (code, _, err) = running.end();
    // At a gate no step runs; otherwise the program reports its end.
    match control {
        Control::Interrupt if situation.name != "gate" => assert_eq!(code, Some(130), "{err}"),
        Control::Kill | Control::Interrupt => {}
        _ if situation.name == "gate" => assert_eq!(code, Some(5), "{err}"),
        Control::Cancel | Control::Fork => assert_eq!(code, Some(3), "{err}"),
        Control::Pause | Control::Patch => assert_eq!(code, Some(0), "{err}"),
    }
    if control == Control::Kill {
        // Supervisors end the steps of a killed worker; before that, a step would see `go` and run on.
        until("the steps are gone", || {
            place.lines("steps").iter().all(|line| is_gone(pid(line))).then_some(())
        });
    }
    place.write("go", "");
    let output = match control {
        Control::Fork => {
            let args: &[&str] = &["executions", "retry", &id, "--json"];
            let output = place.windlass(args);
            if situation.name == "gate" { open_gate(&place, &output.json()) } else { output.expect(0).json() }
        }
        Control::Cancel => place.windlass(&["executions", "get", &id, "--json"]).expect(0).json(),
        _ => {
            if situation.name == "gate" {
                place.windlass(&["executions", "patch", &id, "open=true"]).expect(0);
            }
            place.windlass(&["run", "--resume", &id, "--json"]).expect(0).json()
        }
    };
    place.windlass(&["admin", "check"]).expect(0);
    let lines = place.lines("output");
    format!("{}: {}", output["status"].as_str().unwrap_or("-"), reported_as(&lines, situation.name))
}

fn pid(line: &str) -> Pid {
    line.parse().ok().and_then(Pid::from_raw).expect("the id of a process")
}

/// Programs that may end. At the gate there are none.
fn release(at: &Reached) {
    at.place.write("go", "");
}

/// The retried execution waits at the same gate.
fn open_gate(place: &crate::rig::Place, output: &serde_json::Value) -> serde_json::Value {
    assert_eq!(output["status"], "paused");
    let id = output["executionId"].as_str().expect("an id");
    place.windlass(&["executions", "patch", id, "open=true"]).expect(0);
    place.windlass(&["run", "--resume", id, "--json"]).expect(0).json()
}

/// Counts the lines, because iterations in parallel have no order.
fn reported_as(lines: &[String], situation: &str) -> String {
    if situation != "loop, two at a time" {
        return lines.join(" ");
    }
    let count = |what: &str| lines.iter().filter(|line| *line == what).count();
    let parts = [("x", count("x")), ("x.", count("x.")), ("y", count("y"))];
    let output = parts.iter().filter(|(_, count)| *count > 0).map(|(what, count)| match (*what, count) {
        ("y", 1) => "y".to_owned(),
        (what, count) => format!("{count} {what}"),
    });
    output.collect::<Vec<_>>().join(", ")
}

#[test]
fn a_cancel_ends_the_process_of_the_step_it_meets() {
    let at = Situation {
        definition: "workflow:\n- {step: x, tool: {kind: shell, command: 'echo $$ > pid; echo x >> output; exec sleep 1000'}}\n",
        ..crate::situations::RUNNING
    }
    .reach();
    let pid = crate::rig::process_of(&at.place, "pid");
    at.place.windlass(&["executions", "cancel", &at.id]).expect(0);
    at.running.end();
    until("the step's process is gone", || is_gone(pid).then_some(()));
}
