//! Every control in every situation, in a folder and at a server.

use crate::rig::{is_gone, process_of, until};
use crate::situations::{Ends, Reached, Situation, WAYS, Way, all};
use rustix::process::Signal;
use serde_json::Value;
use std::sync::Mutex;

/// Control that is sent to the execution in the situation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Control {
    /// Held, and released when what runs has been reported to end.
    Pause,
    Cancel,
    ForcedCancel,
    Patch,
    /// The process that runs it ends in order, and another one continues.
    Interrupt,
    /// Everything is killed at once.
    Kill,
    /// Cancelled, then done again from there.
    Fork,
}

const CONTROLS: [Control; 7] = [
    Control::Pause,
    Control::Cancel,
    Control::ForcedCancel,
    Control::Patch,
    Control::Interrupt,
    Control::Kill,
    Control::Fork,
];

impl Control {
    fn end(self, ends: &Ends) -> &'static str {
        match self {
            Control::Pause | Control::Patch => ends.released,
            Control::Cancel | Control::ForcedCancel => ends.cancelled,
            Control::Interrupt | Control::Kill => ends.repeated,
            Control::Fork => ends.retried,
        }
    }
}

/// Crossings at a time: they touch nothing of each other, and spend most of their time in waits.
const AT_A_TIME: usize = 8;

#[test]
fn wfl_09_wfl_10_wfl_27_every_control_in_every_situation_ends_as_the_table_says() {
    let cells = Mutex::new(cells());
    let wrong = Mutex::new(Vec::new());
    let next = || cells.lock().expect("no thread panicked").next();
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((situation, control, way, expected)) = next() {
                    let found = cross(situation, control, way);
                    if found != expected {
                        let name = situation.name;
                        let text = format!(
                            "{name} × {control:?}, {way:?}:\n  expected {expected}\n  found    {found}"
                        );
                        wrong.lock().expect("no thread panicked").push(text);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no thread panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

type Cell = (&'static Situation, Control, Way, &'static str);

fn cells() -> impl Iterator<Item = Cell> {
    let ways = all().flat_map(|situation| WAYS.map(|way| (situation, way)));
    ways.flat_map(|(situation, way)| {
        CONTROLS.map(|control| (situation, control, way, control.end(&situation.ends)))
    })
}

/// Sends the control, lets the steps go on, and returns how the execution ended and what its steps wrote.
fn cross(situation: &Situation, control: Control, way: Way) -> String {
    let at = situation.reach(way);
    send(situation, control, &at);
    let at = follow(situation, control, way, at);
    at.release();
    let output = match control {
        Control::Cancel | Control::ForcedCancel => at.get(),
        Control::Fork => {
            let retried = at.control("retry", &["--json"]).json();
            if situation.rests() {
                assert_eq!(retried["status"], "paused", "it waits again");
                completed(situation, &at, retried["executionId"].as_str().expect("an id"))
            } else {
                retried
            }
        }
        Control::Pause | Control::Patch | Control::Interrupt | Control::Kill => {
            completed(situation, &at, &at.id)
        }
    };
    let (status, lines) = (output["status"].as_str().unwrap_or("-").to_owned(), at.place.lines("output"));
    at.check_data();
    format!("{status}: {}", described(&lines, situation.name))
}

fn send(situation: &Situation, control: Control, at: &Reached) {
    match control {
        // The final step runs to its end.
        Control::Pause if situation.name == "final step" => {
            at.control("pause", &[]).expect(1).says("not possible");
            at.release();
        }
        Control::Patch if situation.name == "final step" => {
            at.control("patch", &["k=1"]).expect(1).says("not possible");
            at.release();
        }
        Control::Pause => {
            at.control("pause", &[]).expect(0);
            assert_eq!(at.get()["status"], "paused", "{}", situation.name);
            at.release();
            at.control("resume", &[]).expect(0);
            at.control("resume", &[]).expect(1);
        }
        Control::Patch => {
            at.control("patch", &["k=1"]).expect(0);
            assert_eq!(at.get()["view"]["ctx"]["k"], 1, "{}", situation.name);
            at.release();
        }
        Control::Cancel | Control::Fork => {
            at.control("cancel", &[]).expect(0);
            at.control("cancel", &[]).expect(1);
        }
        Control::ForcedCancel => {
            at.control("cancel", &["--force"]).expect(0);
            at.control("cancel", &["--force"]).expect(1);
        }
        Control::Interrupt => at.signal(Signal::INT),
        Control::Kill => at.signal(Signal::KILL),
    }
}

/// Waits until the command that follows the execution has ended, and starts the server again if the control ended it.
fn follow(situation: &Situation, control: Control, way: Way, mut at: Reached) -> Reached {
    if way == Way::Server && matches!(control, Control::Interrupt | Control::Kill) {
        return at.restarted();
    }
    let (code, err) = at.followed();
    match control {
        Control::Interrupt if !situation.rests() => assert_eq!(code, Some(130), "{err}"),
        Control::Kill => at.until_steps_are_gone(),
        Control::Interrupt => {}
        _ if situation.rests() => assert_eq!(code, Some(5), "{err}"),
        Control::Cancel | Control::ForcedCancel | Control::Fork => assert_eq!(code, Some(3), "{err}"),
        Control::Pause | Control::Patch => assert_eq!(code, Some(0), "{err}"),
    }
    at
}

/// Completes an execution whose steps may end.
fn completed(situation: &Situation, at: &Reached, id: &str) -> Value {
    if situation.rests() {
        situation.open(&at.place, id);
    }
    at.place.windlass(&["run", "--resume", id, "--json"]).expect(0).json()
}

/// Counts the lines, because iterations in parallel have no order.
fn described(lines: &[String], situation: &str) -> String {
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
    for way in WAYS {
        let mut at = crate::playbooks::ENDLESS.reach(way);
        let pid = process_of(&at.place, "pid");
        at.control("cancel", &[]).expect(0);
        at.followed();
        until("the step's process is gone", || is_gone(pid).then_some(()));
    }
}
