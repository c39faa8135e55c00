//! Many executions that do everything with a secret that a careless author does. Afterwards neither the value nor any
//! of its usual forms is in any file, output or answer (K9).

use crate::place::set;
use crate::rig::{Place, files};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};
use serde_json::{Value, json};
use std::fs;

const EXECUTIONS: usize = 200;

/// Secret of one line, with characters that encoders escape differently.
const WORD: &str = "Tr0ub4dor/&3 \"x\"?=~";
const KEY: &str = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0\n-----END KEY-----";

const CARELESS: &str = r#"workflow:
- step: fetch
  tool: {kind: secrets, name: word}
  next: key
- step: key
  tool: {kind: secrets, name: key}
  next: print
- step: print
  tool:
    kind: shell
    env: {A: '{{ fetch.value }}', K: '{{ key.value }}', U: '{{ fetch.value | urlencode }}', J: '{{ fetch.value | tojson }}'}
    command: |
      echo "$A"; echo "$A" >&2; echo "$K"; echo "$U $J"; printf '%s' "$A" | base64
      printf 'user:%s' "$A" | base64; printf '%s' "$K" | base64; printf '%s' "$A" | od -An -v -tx1 | tr -d ' \n'; echo
      head -c 16370 /dev/zero | tr '\0' x; printf '%s' "$A"
      printf '%.7s' "$A"; sleep 0.02; printf '%s\n' "${A#???????}"
      printf '%s\n' "$K" | while read -r line; do echo "  line: $line"; sleep 0.005; done
  next: pass
- step: pass
  args: {again: '{{ fetch.value }}'}
  tool:
  - shown: {kind: noop, result: {output: '{{ fetch.value }}', list: ['{{ key.value }}']}}
  - fails:
      kind: shell
      args: {token: '{{ fetch.value }}'}
      command: "echo '{{ args.token }}' >&2; exit 3"
      spec: {policy: {rules: [{when: "{{ outcome.status == 'error' }}", then: {do: continue, set_ctx: {said: '{{ outcome.error.message }}', token: '{{ args.token }}', text: 'Bearer {{ args.token }}'}}}]}}
  - again: {kind: shell, command: 'echo "$A" "$C"', env: {A: '{{ args.again }}', C: '{{ ctx.text }}'}}
  set_ctx: {last: '{{ pass }}'}
  next: end
- step: end
  tool: {kind: shell, command: 'echo "$A: no such user" >&2; exit 9', env: {A: '{{ steps.fetch.value }}'}}
"#;

/// The value and its forms, as byte strings that must not be found.
fn forms() -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for value in [WORD, KEY] {
        let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
        let escaped = json!(value).to_string();
        let all = [
            value.to_owned(),
            hex.to_uppercase(),
            hex,
            escaped.trim_matches('"').to_owned(),
            STANDARD.encode(value),
            URL_SAFE.encode(value),
            // Inside longer data: what is left when the characters it shares with others are cut off.
            STANDARD_NO_PAD.encode(format!("user:{value}"))[8..].to_owned(),
            STANDARD_NO_PAD.encode(format!("u:{value}"))[4..].to_owned(),
            value.replace(' ', "%20").replace('"', "%22"),
        ];
        forms.extend(all.map(String::into_bytes));
    }
    forms.extend(KEY.lines().filter(|line| !line.starts_with('-')).map(|line| line.as_bytes().to_vec()));
    forms.push(b"Tr0ub4dor".to_vec());
    // A piece of one line, as `base64` wraps them.
    forms.push(STANDARD.encode(KEY).as_bytes()[40..70].to_vec());
    forms
}

#[track_caller]
fn clean(what: &str, bytes: &[u8], forms: &[Vec<u8>]) {
    for form in forms {
        let at = bytes.windows(form.len()).position(|window| window == form.as_slice());
        let around =
            at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..bytes.len().min(at + 120)]));
        assert!(
            at.is_none(),
            "{what} shows `{}`:\n{}",
            String::from_utf8_lossy(form),
            around.unwrap_or_default()
        );
    }
}

#[test]
fn pbk_25_nothing_that_two_hundred_careless_executions_do_shows_a_value() {
    let place = Place::playing(CARELESS);
    set(&place, "word", WORD);
    set(&place, "key", KEY);
    let forms = forms();
    let output =
        place.windlass(&["run", "play.yaml", "--json", "--times", &EXECUTIONS.to_string()]).expect(1);
    clean("stdout of run", output.out.as_bytes(), &forms);
    clean("stderr of run", output.err.as_bytes(), &forms);
    let executions: Vec<Value> =
        output.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(executions.len(), EXECUTIONS);
    for execution in &executions {
        let steps: Vec<&str> = execution["nodeExecutions"]
            .as_array()
            .expect("steps")
            .iter()
            .filter_map(|step| step["status"].as_str())
            .collect();
        assert_eq!(steps, ["completed", "completed", "completed", "completed", "failed"], "{execution}");
    }
    // The values did reach the steps: what they printed is there, without them.
    let said = executions[0]["nodeExecutions"][4]["error"]["message"].to_string();
    assert!(said.contains("[redacted]: no such user"), "{said}");
    for execution in executions.iter().step_by(EXECUTIONS / 8) {
        let id = execution["executionId"].as_str().expect("an id");
        for command in ["get", "events", "logs"] {
            let output = place.windlass(&["executions", command, id, "--json"]).expect(0);
            clean(command, output.out.as_bytes(), &forms);
            assert!(output.out.contains("[redacted]"), "{command}: {}", output.out);
        }
    }
    for file in files(&place.path("data")) {
        clean(&file.display().to_string(), &fs::read(&file).expect("a file"), &forms);
    }
}

/// A secret that a step did not receive is not redacted in its output: a redacted output would confirm the value to a user
/// without access.
#[test]
fn a_value_that_a_step_was_not_given_is_a_text_like_any_other() {
    let place = Place::playing(
        "workflow:
- step: fetch
  tool: {kind: secrets, name: other}
  next: cat
- step: cat
  tool: {kind: shell, command: 'cat note.txt; echo \"$O\"', env: {O: '{{ fetch.value }}'}}
",
    );
    set(&place, "word", WORD);
    set(&place, "other", "another-value-entirely");
    place.write("note.txt", &format!("the word is {WORD}\n"));
    let output = place.run(&[], 0);
    assert_eq!(output["nodeExecutions"][1]["output"]["stdout"], format!("the word is {WORD}\n[redacted]\n"));
}

/// Work that is carried on by another process knows what its first part was given.
#[test]
fn a_step_that_is_carried_on_is_redacted_with_the_secrets_of_its_first_part() {
    let place = Place::playing(
        "workflow:
- step: work
  tool:
  - token: {kind: secrets, name: word}
  - keep: {kind: shell, command: 'printf %s \"$A\" > note.txt', env: {A: '{{ token.value }}'}}
  - fails:
      kind: shell
      command: 'test -e again || { touch again; exit 1; }'
      spec: {policy: {rules: [{when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 3, delay: 6}}]}}
  - cat: {kind: shell, command: 'cat note.txt'}
",
    );
    set(&place, "word", WORD);
    // The delay is longer than a pause: the slot is released, and another unit continues after it.
    let output = place.run(&[], 0);
    assert_eq!(output["nodeExecutions"][0]["output"]["results"]["cat"]["stdout"], "[redacted]", "{output}");
}
