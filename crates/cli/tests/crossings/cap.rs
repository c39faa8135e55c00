//! A wide loop: never more at a time than it may, and one way on.

use crate::rig::{Place, until};
use serde_json::Value;

const ITERATIONS: usize = 1_000;
const CAP: usize = 50;

/// The first iterations wait for `go`, so that the loop is seen at its widest.
const WIDE: &str = "workflow:
- step: wide
  loop: {in: '{{ range(1000) }}', iterator: n, spec: {mode: parallel, max_in_flight: 50}}
  tool: {kind: shell, command: 'echo + >> output; while ! test -e go; do sleep 0.05; done; echo - >> output'}
  next: after
- {step: after, tool: {kind: shell, command: 'echo after {{ wide.succeeded }} >> after'}}
";

#[test]
fn pbk_23_a_thousand_parallel_iterations_never_exceed_their_cap_and_route_once() {
    let place = Place::playing(WIDE);
    // More slots than the loop may use: only its own cap holds it back.
    let running = place.start(&["run", "play.yaml", "--json", "--slots", "80"]);
    until("the loop is at its widest", || (place.lines("output").len() >= CAP).then_some(()));
    place.write("go", "");
    let (code, out, err) = running.end();
    assert_eq!(code, Some(0), "{err}");
    let output: Value = serde_json::from_str(out.trim()).expect("an object");
    let at_a_time = widest(place.lines("output").iter().map(|line| line == "+"));
    assert_eq!(at_a_time, CAP, "as the steps themselves saw it");
    assert_eq!(place.lines("output").len(), 2 * ITERATIONS);
    assert_eq!(place.lines("after"), [format!("after {ITERATIONS}")]);
    let events = events(&place, output["executionId"].as_str().expect("an id"));
    let of = |name: &str, step: &str| {
        let fits = |event: &&Value| event["event"] == name && event["step"] == step;
        events.iter().filter(fits).count()
    };
    assert_eq!((of("step.offered", "wide"), of("loop.done", "wide")), (ITERATIONS, 1));
    assert_eq!((of("token.emitted", "after"), of("step.done", "after")), (1, 1));
    let journal = events.iter().filter(|event| event["step"] == "wide").filter_map(|event| {
        match event["event"].as_str()? {
            "step.offered" => Some(true),
            "loop.iteration.done" => Some(false),
            _ => None,
        }
    });
    assert_eq!(widest(journal), CAP, "according to the journal");
}

/// The most that had begun and not ended; `true` begins one.
fn widest(begins: impl Iterator<Item = bool>) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for begins in begins {
        open = if begins { open + 1 } else { open.saturating_sub(1) };
        most = most.max(open);
    }
    most
}

fn events(place: &Place, id: &str) -> Vec<Value> {
    let output = place.windlass(&["executions", "events", id, "--json"]).expect(0);
    output.out.lines().map(|line| serde_json::from_str(line).expect("an object")).collect()
}
