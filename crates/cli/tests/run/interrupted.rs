//! Runs that are stopped in the middle, and what `--resume` makes of them.

use crate::rig::{Place, Running, is_gone, playbook, process_of, until};
use rustix::process::Signal;

/// `first` ends at once; `second` ends when the file `go` exists.
const TWO: &str = "workflow:
- step: first
  tool: {kind: shell, command: 'echo first >> output'}
  next: second
- step: second
  tool: {kind: shell, command: 'echo second >> output; echo $$ > pid; test -e go || exec sleep 1000'}
  next: third
- step: third
  tool: {kind: shell, command: 'echo third >> output'}
";

fn interrupt(place: &Place, args: &[&str], signal: Signal) -> (Option<i32>, String) {
    let running = place.start(args);
    let pid = process_of(place, "pid");
    running.signal(signal);
    let (code, _, err) = running.end();
    until("the step's process is gone", || is_gone(pid).then_some(()));
    (code, err)
}

/// The command in the last line of what was reported.
fn carry_on(err: &str) -> Vec<String> {
    let line = err.lines().last().expect("a last line");
    let command = line.strip_prefix("  windlass ").unwrap_or_else(|| panic!("{err}"));
    command.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn after_ctrl_c_nothing_runs_on_and_resume_does_the_rest_once() {
    let place = Place::playing(TWO);
    let (code, err) = interrupt(&place, &["run", "play.yaml"], Signal::INT);
    assert_eq!(code, Some(130), "{err}");
    place.write("go", "");
    let again = carry_on(&err);
    let again: Vec<&str> = again.iter().map(String::as_str).chain(["--json"]).collect();
    let output = place.windlass(&again).expect(0).json();
    assert_eq!(output["status"], "completed");
    assert_eq!(place.lines("output"), ["first", "second", "second", "third"]);
}

#[test]
fn after_a_kill_nothing_runs_on_and_resume_does_the_rest_once() {
    let place = Place::playing(TWO);
    let (code, _) = interrupt(&place, &["run", "play.yaml"], Signal::KILL);
    assert_eq!(code, None);
    let listed = place.windlass(&["executions", "list"]).expect(0);
    assert!(listed.out.contains("  interrupted  "), "{}", listed.out);
    let carry_on = carry_on(&listed.err);
    let page = place.windlass(&["executions", "get", "@last"]).expect(0).out;
    assert!(page.contains("  status      interrupted\n"), "{page}");
    assert_eq!(carry_on[..2], ["run", "--resume"], "{}", listed.err);
    let status = |args: &[&str]| place.windlass(args).expect(0).json()["executions"][0]["status"].clone();
    assert_eq!(status(&["executions", "list", "--json"]), "running", "the API has its own words");
    place.write("go", "");
    place.windlass(&carry_on.iter().map(String::as_str).collect::<Vec<_>>()).expect(0);
    let listed = place.windlass(&["executions", "list"]).expect(0);
    assert!(listed.out.contains("  completed  ") && listed.err.is_empty(), "{} {}", listed.out, listed.err);
    assert_eq!(place.lines("output"), ["first", "second", "second", "third"]);
    place.windlass(&["run", "--resume"]).expect(0).says("nothing to resume");
}

#[test]
fn an_orderly_end_is_no_lost_worker_however_often_it_comes() {
    let place = Place::playing(TWO);
    for _ in 0..4 {
        let args: &[&str] =
            if place.path("data").exists() { &["run", "--resume"] } else { &["run", "play.yaml"] };
        let (code, err) = interrupt(&place, args, Signal::INT);
        assert_eq!(code, Some(130), "{err}");
        std::fs::remove_file(place.path("pid")).expect("the step wrote it");
    }
    place.write("go", "");
    place.windlass(&["run", "--resume"]).expect(0);
    assert_eq!(place.lines("output").iter().filter(|line| *line == "second").count(), 5);
}

#[test]
fn another_run_in_the_folder_reports_of_what_was_interrupted() {
    let place = Place::playing(TWO);
    interrupt(&place, &["run", "play.yaml"], Signal::INT);
    place.write("other.yaml", &playbook("tested", "workflow:\n- {step: a, tool: {kind: noop}}\n"));
    place.windlass(&["run", "other.yaml"]).expect(0).says("not ended: 1 other execution in this folder");
}

#[test]
fn a_term_is_an_orderly_end_too() {
    let place = Place::playing(TWO);
    let (code, err) = interrupt(&place, &["run", "play.yaml"], Signal::TERM);
    assert_eq!((code, err.contains("continue it with")), (Some(143), true), "{err}");
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_a_stubborn_step() {
    let place = Place::playing(
        "workflow:\n- step: deaf\n  tool: {kind: shell, command: \"trap '' TERM; echo $$ > pid; while true; do sleep 1; done\"}\n",
    );
    let mut running: Running = place.start(&["run", "play.yaml"]);
    let id = running.until_says("exec_").split(':').next().expect("an id").to_owned();
    let pid = process_of(&place, "pid");
    running.signal(Signal::INT);
    running.until_says("interrupted");
    running.signal(Signal::INT);
    let (code, _, err) = running.end();
    assert_eq!(code, Some(130), "{err}");
    let events = place.windlass(&["executions", "events", &id]).expect(0).out;
    assert_eq!(events.matches("step.offered").count(), 1, "an orderly end offers the step again: {events}");
    until("the supervisor ends the step's process", || is_gone(pid).then_some(()));
}

#[test]
fn resume_without_an_id_takes_up_all_that_have_not_ended() {
    let place = Place::playing(
        "workflow:\n- step: a\n  tool: {kind: shell, command: 'echo a >> output; test -e go || exec sleep 1000'}\n",
    );
    let running = place.start(&["run", "play.yaml", "--times", "3"]);
    until("three steps run", || (place.lines("output").len() == 3).then_some(()));
    running.signal(Signal::INT);
    let (code, _, err) = running.end();
    assert_eq!((code, carry_on(&err)), (Some(130), vec!["run".to_owned(), "--resume".to_owned()]));
    place.write("go", "");
    let output = place.windlass(&["run", "--resume"]).expect(0);
    assert_eq!(output.out.lines().filter(|line| line.ends_with(" completed")).count(), 3);
    assert_eq!(place.lines("output").len(), 6);
}

#[test]
fn resuming_what_has_ended_reports_how_it_ended() {
    let place = Place::playing("workflow:\n- {step: a, tool: {kind: shell, command: 'exit 1'}}\n");
    let id = place.run(&[], 1)["executionId"].as_str().expect("an id").to_owned();
    let output = place.windlass(&["run", "--resume", &id, "--json"]).expect(1).json();
    assert_eq!(
        (output["executionId"].as_str(), output["status"].as_str()),
        (Some(id.as_str()), Some("failed"))
    );
}
