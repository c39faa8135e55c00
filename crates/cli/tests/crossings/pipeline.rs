//! A pipeline of several tasks whose engine dies.

use crate::rig::{Place, is_gone, process_of, until};
use rustix::process::Signal;

/// The third task waits for `go`; the fourth reads what the first two gave.
const FOUR: &str = "workflow:
- step: work
  tool:
  - {name: one, kind: shell, command: 'echo one >> output; echo 1'}
  - {name: two, kind: shell, command: 'echo two >> output; echo 2'}
  - {name: three, kind: shell, command: 'echo three >> output; echo $$ > pid; test -e go || exec sleep 1000'}
  - {name: four, kind: shell, command: 'echo four {{ one.stdout | trim }} {{ two.stdout | trim }} >> output'}
";

#[test]
fn pbk_21_a_pipeline_that_is_killed_in_its_third_task_continues_there() {
    let place = Place::playing(FOUR);
    let running = place.start(&["run", "play.yaml"]);
    let pid = process_of(&place, "pid");
    running.signal(Signal::KILL);
    running.end();
    until("the task's process is gone", || is_gone(pid).then_some(()));
    assert_eq!(place.lines("output"), ["one", "two", "three"]);
    place.write("go", "");
    place.windlass(&["run", "--resume"]).expect(0);
    assert_eq!(place.lines("output"), ["one", "two", "three", "three", "four 1 2"]);
    place.windlass(&["admin", "check"]).expect(0);
}

#[test]
fn a_pipeline_that_is_killed_repeatedly_never_repeats_completed_tasks() {
    let place = Place::playing(FOUR);
    let mut args: &[&str] = &["run", "play.yaml"];
    for _ in 0..3 {
        let running = place.start(args);
        let pid = process_of(&place, "pid");
        running.signal(Signal::KILL);
        running.end();
        until("the task's process is gone", || is_gone(pid).then_some(()));
        std::fs::remove_file(place.path("pid")).expect("the task wrote it");
        args = &["run", "--resume"];
    }
    place.write("go", "");
    place.windlass(&["run", "--resume"]).expect(0);
    let output = place.lines("output");
    let count = |what: &str| output.iter().filter(|line| *line == what).count();
    assert_eq!((count("one"), count("two"), count("three"), count("four 1 2")), (1, 1, 4, 1));
}
