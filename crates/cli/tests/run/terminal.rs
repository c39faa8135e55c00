//! Commands on a terminal, which the module `pty` of Python provides.

use crate::rig::{Place, Running};
use std::process::Command;

/// Runs its arguments on a terminal of 24 rows, and writes what they print to stderr.
const TERMINAL: &str = r"
import os, pty, sys
os.dup2(2, 1)
sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:], lambda fd: os.read(fd, 65536))))
";

/// Starts a command on a terminal.
fn start(place: &Place, args: &[&str]) -> Running {
    let command = place.command(args);
    let mut terminal = Command::new("python3");
    terminal.args(["-c", TERMINAL]).arg(command.get_program()).args(command.get_args());
    terminal.current_dir(command.get_current_dir().expect("the folder"));
    terminal.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let piped = std::process::Stdio::piped;
    Running::start({
        terminal.stdin(std::process::Stdio::null()).stdout(piped()).stderr(piped());
        terminal
    })
}

const LOOP: &str = r#"
workflow:
- step: each
  loop: {in: [0, 1, 2, 3], iterator: n}
  tool:
    kind: shell
    command: 'echo item {{ n }}; test {{ n }} != 1 || exit 4; test {{ n }} != 3 || until [ -e go ]; do sleep 0.01; done'
  next: {arcs: [{step: publish, when: "{{ event.name == 'step.done' }}"}]}
- step: publish
"#;

#[test]
fn the_live_view_shows_failed_iterations_and_coming_steps_and_keeps_failed_rows() {
    let place = Place::playing(LOOP);
    let mut running = start(&place, &["run", "play.yaml"]);
    let row = running.until_says("1 failed  [1] the command ended with exit code 4");
    assert!(row.contains("each") && row.contains("/4"), "{row}");
    let coming = running.until_says("○ publish");
    assert!(!coming.contains("failed"), "{coming}");
    place.write("go", "");
    let (code, _, seen) = running.end();
    assert_eq!(code, Some(1), "{seen}");
    let last = seen.rsplit("failed \u{1b}").next().unwrap_or(&seen);
    let end = last.rfind("✗ each").unwrap_or_else(|| panic!("the failed row is gone: {seen}"));
    assert!(last[end..].contains("4/4") && last[end..].contains("1 failed  [1] the command ended"), "{seen}");
    assert!(!last[end..].contains("○ publish"), "what does not come any more is not shown: {seen}");
    assert!(last[end..].contains("error: step each: 1 of 4 iterations failed: [1]"), "{seen}");
}

#[test]
fn the_live_view_shows_the_question_of_an_approval_with_its_approvers_and_deadline() {
    let place = Place::playing("workflow: []");
    let config = r#"{"message": "Ship v2?", "approvers": ["owner", "ann"], "timeout": 3600}"#;
    let node = format!(r#"{{"id": "ask", "type": "approval", "name": "Ask Ann", "config": {config}}}"#);
    place.write("flow.json", &format!(r#"{{"name": "asks", "nodes": [{node}], "edges": []}}"#));
    let mut running = start(&place, &["run", "flow.json"]);
    let row = running.until_says("Ship v2? (asked: owner, ann; until 20");
    assert!(row.contains("ask"), "{row}");
    assert_eq!(running.end().0, Some(5));
}

#[test]
fn a_result_that_is_longer_than_the_screen_is_cut_on_a_terminal_only() {
    let place = Place::playing(
        "workflow: [{step: a, tool: {kind: noop, result: {rows: '{{ range(100) | list }}'}}}]",
    );
    let (code, _, seen) = start(&place, &["run", "play.yaml"]).end();
    assert_eq!(code, Some(0), "{seen}");
    assert!(seen.contains("… 83 more lines: windlass executions output exec_"), "{seen}");
    assert!(seen.contains("\n    17,") && !seen.contains("\n    30,"), "{seen}");
    let piped = place.windlass(&["run", "play.yaml"]).expect(0).out;
    assert_eq!(piped.lines().count(), 104, "{piped}");
}
