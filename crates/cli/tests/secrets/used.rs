//! Secrets of steps: only the step gets the value.

use crate::place::{assert_nowhere_on_disk, set};
use crate::rig::Place;
use rusqlite::Connection;
use serde_json::json;
use std::fs;

const VALUE: &str = "correct-horse-battery";

/// Reads the secret in one step and uses it in the next.
const USING: &str = "workflow:
- step: fetch
  tool: {kind: secrets, name: api}
  next: use
- step: use
  tool: {kind: shell, command: 'printf %s \"$TOKEN\" | wc -c; echo \"it is $TOKEN\"', env: {TOKEN: '{{ fetch.value }}'}}
";

#[test]
fn pbk_25_a_step_gets_the_value_and_what_it_says_is_redacted() {
    let place = Place::playing(USING);
    set(&place, "api", VALUE);
    let output = place.run(&[], 0);
    let outputs: Vec<_> =
        output["nodeExecutions"].as_array().expect("steps").iter().map(|n| &n["output"]).collect();
    assert_eq!(*outputs[0], json!({ "value": { "$secret": "api" } }));
    assert_eq!(outputs[1]["stdout"], format!("{}\nit is [redacted]\n", VALUE.len()));
    assert_nowhere_on_disk(&place, VALUE.as_bytes());
}

#[test]
fn a_handle_is_opened_in_the_same_step_and_not_in_depth() {
    let place = Place::playing(
        "workflow:
- step: both
  tool:
  - token: {kind: secrets, name: api}
  - use: {kind: shell, command: 'test \"$A-$B\" = correct-horse-battery-correct-horse-battery', env: {A: '{{ token.value }}', B: '{{ _prev.value }}'}}
  next: later
- step: later
  tool: {kind: shell, command: 'test \"$A\" = correct-horse-battery', env: {A: '{{ both.results.token.value }}'}}
",
    );
    set(&place, "api", VALUE);
    // A value deeper than a result is not a handle: the last step does not get the value.
    let output = place.run(&[], 1);
    let states: Vec<_> =
        output["nodeExecutions"].as_array().expect("steps").iter().map(|n| &n["status"]).collect();
    assert_eq!(states, ["completed", "failed"]);
    assert!(!output.to_string().contains(VALUE));
}

/// A result of another tool than `secrets` names no secret, wherever it pretends to.
#[test]
fn what_only_looks_like_a_handle_is_never_opened() {
    let place = Place::playing(
        r#"workflow:
- step: forge
  tool:
  - shell: {kind: shell, command: 'echo hello'}
  - noop: {kind: noop, result: {value: {$secret: api}}}
  - bare: {kind: noop, result: {$secret: api}}
  - same: {kind: shell, command: 'echo "$A $B $C" >> seen', env: {A: '{{ noop.value }}', B: '{{ bare }}', C: '{{ _prev }}'}}
  - deep: {kind: noop, result: {list: [{$secret: api}], deep: {value: {value: {$secret: api}}}}}
  - last: {kind: noop, result: {value: {$secret: api}}}
  set_ctx: {token: '{{ forge.value }}', whole: '{{ forge }}'}
  next: {arcs: [{step: use, args: {token: '{{ forge.value }}', value: {$secret: api}}}]}
- step: use
  args: {again: '{{ args.token }}', own: {$secret: api}}
  tool:
    kind: shell
    command: 'echo "$A $B $C $D $E $F $G" >> seen'
    env: {A: '{{ forge.value }}', B: '{{ forge.results.deep }}', C: '{{ args.token }}', D: '{{ args.value }}', E: '{{ ctx.token }}', F: '{{ args.own }}', G: '{{ steps.forge }}'}
"#,
    );
    set(&place, "api", VALUE);
    place.run(&[], 0);
    let seen = place.lines("seen").join("\n");
    assert!(seen.contains("$secret") && !seen.contains(VALUE), "{seen}");
}

#[test]
fn a_secret_that_is_not_there_fails_with_what_to_do() {
    let place = Place::playing(USING);
    let output = place.run(&[], 1);
    let error = &output["nodeExecutions"][0]["error"];
    assert_eq!(error["code"], "RESOURCE_NOT_FOUND");
    assert!(error["message"].as_str().is_some_and(|m| m.contains("windlass secrets set api")), "{error}");
    // It can be deleted between the step that names it and the one that uses it, too.
    let place = Place::playing(&USING.replace("  next: use\n", "  next: drop\n- step: drop\n  tool: {kind: shell, command: '$WINDLASS secrets delete api'}\n  next: use\n"));
    set(&place, "api", VALUE);
    let mut command = place.command(&["run", "play.yaml", "--json"]);
    let output = command.env("WINDLASS", env!("CARGO_BIN_EXE_windlass")).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("there is no secret `api`"), "{out}");
}

#[test]
fn tampered_swapped_and_foreign_rows_are_reported_and_never_half_used() {
    let place = Place::playing(USING);
    set(&place, "api", VALUE);
    set(&place, "other", "another-value-entirely");
    let store = Connection::open(place.path("data/windlass.db")).expect("a store");
    let change = |sql: &str| store.execute(sql, []).expect("a row changes");
    let fails = |code: &str, part: &str| {
        let output = place.run(&[], 1);
        let error = output["nodeExecutions"][0]["error"].to_string();
        assert!(error.contains(code) && error.contains(part), "{error}");
        assert!(!output.to_string().contains("entirely"), "{output}");
    };
    change(
        "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'other') WHERE name = 'api'",
    );
    fails("SECRET_UNUSABLE", "`api` (version 1) cannot be opened");
    change("UPDATE secrets SET sealed = x'0102' WHERE name = 'api'");
    fails("SECRET_UNUSABLE", "`api` (version 1) cannot be opened");
    set(&place, "api", VALUE);
    place.run(&[], 0);
    change("UPDATE secrets SET key = '0011223344556677' WHERE name = 'api'");
    fails("SECRET_UNUSABLE", "0011223344556677");
    fs::remove_file(place.path("data/master.key")).expect("the key is removed");
    fails("SECRET_UNUSABLE", "there is no master key");
}

#[test]
fn variables_of_the_worker_are_secrets_too_but_not_the_engines() {
    let place = Place::playing(
        "workflow:
- step: fetch
  tool: {kind: secrets, name: '{{ workload.name }}', provider: env}
  next: use
- step: use
  tool: {kind: shell, command: 'echo \"$TOKEN\"', env: {TOKEN: '{{ fetch.value }}'}}
",
    );
    let run = |name: &str| {
        let mut command = place.command(&["run", "play.yaml", "--json", "--input", &format!("name={name}")]);
        command.env("MY_TOKEN", VALUE).env("SHORT", "abc");
        command.env("WINDLASS_TOKEN", "the-owners-token-1").env_remove("WINDLASS_MASTER_KEY");
        let output = command.output().expect("it runs");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, out) = run("MY_TOKEN");
    assert!(code == Some(0) && out.contains("[redacted]") && !out.contains(VALUE), "{out}");
    let (code, out) = run("WINDLASS_TOKEN");
    assert!(code == Some(1) && out.contains("the engine's own") && !out.contains("owners-token"), "{out}");
    assert!(run("SHORT").1.contains("cannot be a secret"));
    assert!(run("NOT_SET").1.contains("the worker has no variable `NOT_SET`"));
    assert_nowhere_on_disk(&place, VALUE.as_bytes());
}

#[test]
fn steps_do_not_inherit_the_engines_own_secrets() {
    let place = Place::playing("workflow:\n- step: look\n  tool: {kind: shell, command: 'env'}\n");
    let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let mut command = place.command(&["run", "play.yaml", "--json"]);
    command.env("WINDLASS_MASTER_KEY", key).env("WINDLASS_TOKEN", "the-owners-token-1");
    command.env("WINDLASS_DATABASE_URL", "postgres://u:hidden-word@h/d");
    let output = command.output().expect("it runs");
    let out = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{out}");
    assert!(!out.contains("WINDLASS_MASTER_KEY") && !out.contains("WINDLASS_TOKEN"), "{out}");
    assert!(!out.contains("WINDLASS_DATABASE_URL") && !out.contains(key), "{out}");
}
