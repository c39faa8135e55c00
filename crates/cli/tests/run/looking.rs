//! Commands that look: lists, ids, events, logs.

use crate::rig::Place;
use serde_json::Value;

const STEPS: &str = "workload: {words: [x, y], code: 0}
workflow:
- step: say
  loop: {in: '{{ workload.words }}', iterator: word}
  tool: {kind: shell, command: 'echo {{ iter.word }}; echo noise >&2'}
  next: last
- step: last
  tool: {kind: shell, command: 'echo bye; exit {{ workload.code }}'}
";

fn id_of(output: &Value) -> String {
    output["executionId"].as_str().expect("an id").to_owned()
}

#[test]
fn the_list_is_newest_first_filtered_and_limited() {
    let place = Place::playing(STEPS);
    let good = id_of(&place.run(&[], 0));
    let bad = id_of(&place.run(&["--input", "code=1"], 1));
    let list = |args: &[&str]| {
        let output = place.windlass(&[&["executions", "list", "--json"], args].concat()).expect(0).json();
        let rows = output["executions"].as_array().expect("a list").clone();
        let ids: Vec<String> = rows.iter().map(id_of).collect();
        (ids, output["pagination"]["hasMore"].as_bool())
    };
    assert_eq!(list(&[]), (vec![bad.clone(), good.clone()], Some(false)));
    assert_eq!(list(&["--limit", "1"]), (vec![bad.clone()], Some(true)));
    assert_eq!(list(&["--status", "completed"]), (vec![good.clone()], Some(false)));
    assert_eq!(list(&["--status", "open"]), (vec![], Some(false)));
    let output = place.windlass(&["executions", "list"]).expect(0);
    let lines: Vec<&str> = output.out.lines().collect();
    assert!(
        lines[0].starts_with(&bad) && lines[0].contains(" failed ") && lines[0].ends_with(" s ago  tested"),
        "{}",
        output.out
    );
    place.windlass(&["executions", "list", "--status", "done"]).expect(2).says("partial_success");
}

#[test]
fn an_id_may_be_bare_dashed_or_a_part_that_fits_one() {
    let place = Place::playing(STEPS);
    let (first, second) = (id_of(&place.run(&[], 0)), id_of(&place.run(&[], 0)));
    let bare = first.strip_prefix("exec_").expect("a prefix");
    let dashed =
        format!("{}-{}-{}-{}-{}", &bare[..8], &bare[8..12], &bare[12..16], &bare[16..20], &bare[20..]);
    for text in [first.as_str(), bare, &bare.to_uppercase(), &dashed, &first[..29], &bare[20..]] {
        let output = place.windlass(&["executions", "get", text, "--json"]).expect(0).json();
        assert_eq!(id_of(&output), first, "{text}");
    }
    // Both began within the same minute, so they begin with the same digits.
    let shared: String =
        first.chars().zip(second.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    if shared.len() >= "exec_".len() + 8 {
        place.windlass(&["executions", "get", &shared]).expect(2).says("fits 2 executions").says(&second);
    }
    place.windlass(&["executions", "get", &bare[..7]]).expect(2).says("at least 8 digits");
    place.windlass(&["executions", "get", "hello"]).expect(2).says("is not an execution id");
    place.windlass(&["executions", "get", &"0".repeat(32)]).expect(2).says("executions list");
}

#[test]
fn get_reports_the_same_object_as_run_and_a_page_for_people() {
    let place = Place::playing(STEPS);
    let output = place.run(&["--input", "code=1"], 1);
    let again = place.windlass(&["executions", "get", &id_of(&output), "--json"]).expect(0).json();
    assert_eq!(output, again);
    let page = place.windlass(&["executions", "get", &id_of(&output)]).expect(0).out;
    for part in [
        "tested, version 1",
        "status      failed in ",
        "say   completed in ",
        ", 2 iterations",
        "last  failed in ",
        "error: step last: ",
    ] {
        assert!(page.contains(part), "`{part}` is missing in:\n{page}");
    }
}

/// The events of an execution: name, step, path.
fn events(place: &Place, id: &str) -> Vec<(u64, String)> {
    let output = place.windlass(&["executions", "events", id, "--json"]).expect(0);
    let brief = |event: &Value| {
        let path = event["path"].as_array().map(|_| event["path"].to_string());
        let parts = [event["event"].as_str(), event["step"].as_str(), path.as_deref()];
        (
            event["sequence"].as_u64().expect("a number"),
            parts.into_iter().flatten().collect::<Vec<_>>().join(" "),
        )
    };
    output.out.lines().map(|line| brief(&serde_json::from_str(line).expect("an object"))).collect()
}

#[test]
fn events_have_their_public_names() {
    let place = Place::playing(
        "workflow:\n- {step: a, next: b}\n- {step: b, tool: {kind: shell, command: 'true'}}\n",
    );
    let id = id_of(&place.run(&[], 0));
    let (sequence, names): (Vec<u64>, Vec<String>) = events(&place, &id).into_iter().unzip();
    let expected = [
        "execution.created",
        "execution.started",
        "token.admitted a",
        "step.done a",
        "next.evaluated a",
        "token.emitted b",
        "token.admitted b",
        "step.offered b",
        "step.done b",
        "next.evaluated b",
        "execution.draining",
        "execution.completed",
    ];
    assert_eq!(names, expected);
    assert!(sequence.is_sorted(), "{sequence:?}");
    let lines = place.windlass(&["executions", "events", &id]).expect(0).out;
    assert_eq!(lines.lines().count(), expected.len());
}

#[test]
fn events_of_a_loop_name_the_iteration() {
    let place = Place::playing(STEPS);
    let id = id_of(&place.run(&[], 0));
    let names: Vec<String> = events(&place, &id).into_iter().map(|(_, name)| name).collect();
    let of_loop: Vec<&str> = names.iter().map(String::as_str).filter(|name| name.contains(" say")).collect();
    let expected = [
        "token.admitted say",
        "loop.started say",
        "step.offered say [0]",
        "loop.iteration.done say [0]",
        "step.offered say [1]",
        "loop.iteration.done say [1]",
        "loop.done say",
        "step.done say",
        "next.evaluated say",
    ];
    assert_eq!(of_loop, expected);
}

#[test]
fn logs_carry_the_step_and_the_iteration() {
    let place = Place::playing(STEPS);
    let id = id_of(&place.run(&[], 0));
    let lines = place.windlass(&["executions", "logs", &id]).expect(0).out;
    let mut found: Vec<&str> = lines.lines().collect();
    found.sort_unstable();
    assert_eq!(found, ["last | bye", "say[0] | noise", "say[0] | x", "say[1] | noise", "say[1] | y"]);
    let output = place.windlass(&["executions", "logs", &id, "--step", "last", "--json"]).expect(0).json();
    assert_eq!(
        (
            &output["nodeId"],
            &output["message"],
            &output["level"],
            &output["data"]["stream"],
            &output["data"]["attempt"]
        ),
        (&"last".into(), &"bye".into(), &"info".into(), &"stdout".into(), &1.into())
    );
    place.windlass(&["executions", "logs", &id, "--step", "lost"]).expect(2).says("its steps are say, last");
}

#[test]
fn watching_what_has_ended_reports_it_and_exits_like_run() {
    let place = Place::playing(STEPS);
    let id = id_of(&place.run(&["--input", "code=1"], 1));
    place
        .windlass(&["executions", "watch", &id])
        .expect(1)
        .says("step say done")
        .says("last | bye")
        .says("error: step last: ");
}

#[test]
fn a_definition_and_an_execution_are_drawn() {
    let place = Place::playing(
        "workload: {n: 3}\nworkflow:\n- {step: a, tool: {kind: shell, command: 'true'}, set_ctx: {k: '{{ (ctx.k or 0) + 1 }}'}, next: [{step: a, when: '{{ ctx.k < workload.n }}'}, b]}\n- {step: b, tool: {kind: shell, command: 'false'}}\n",
    );
    let plain = place.windlass(&["graph", "play.yaml"]).expect(0).out;
    assert!(plain.starts_with("flowchart TD\n  n0[\"a<br/>shell\"]\n"), "{plain}");
    let output = place.run(&[], 1);
    let id = output["executionId"].as_str().expect("an id");
    let coloured = place.windlass(&["executions", "get", id, "--graph"]).expect(0).out;
    assert!(coloured.contains("a<br/>shell<br/>3 times · completed · "), "{coloured}");
    assert!(coloured.contains("linkStyle 1,2 stroke-width:3px"), "{coloured}");
    assert!(coloured.contains("class n1 failed"), "{coloured}");
    assert_eq!(place.windlass(&["graph", id]).expect(0).out, coloured, "the same picture by another command");
    assert_eq!(place.windlass(&["graph", "@last"]).expect(0).out, coloured);
    place.windlass(&["graph", "0123456789abcdef"]).expect(2).says("no execution");
    place.windlass(&["graph", "none.yaml"]).expect(2).says("none.yaml");
    place.windlass(&["executions", "get", id, "--graph", "--format", "svg", "-o", "run.svg"]).expect(0);
    let svg = std::fs::read_to_string(place.path("run.svg")).expect("a picture");
    assert!(svg.starts_with("<svg ") && svg.contains("b failed"), "{svg}");
    assert!(svg.contains(">failed · ") && svg.contains(">1. ctx.k &lt; workload.n ×2</text>"), "{svg}");
    assert_eq!(
        (svg.matches("class=\"e k t\"").count(), svg.matches("class=\"e t\"").count()),
        (1, 1),
        "{svg}"
    );
    place.write(
        "loop.yaml",
        "workflow:\n- {step: each, tool: {kind: shell, command: 'test {{ n }} != 2'}, loop: {in: [1, 2, 3], iterator: n}}\n",
    );
    let output = place.windlass(&["run", "loop.yaml", "--json"]).expect(1).json();
    let id = output["executionId"].as_str().expect("an id");
    let graph = place.windlass(&["executions", "get", id, "--graph"]).expect(0).out;
    assert!(graph.contains("<br/>failed · 3 iterations, 1 failed · "), "{graph}");
    place.write("bad.yaml", "workflow: [{step: a, next: b}]");
    place.windlass(&["graph", "bad.yaml"]).expect(2).says("nothing was drawn");
}
