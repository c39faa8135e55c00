//! Keychains: what they may say, who may read them, and where their literals go.

use crate::compiled::check;
use serde_json::{Value, json};
use windlass_dialects::{Compiled, Outside, compile};

fn with(keychain: &str, steps: &str) -> String {
    format!("metadata: {{name: my play}}\nkeychain: {keychain}\nworkflow:\n{steps}")
}

const STEP: &str = "- {step: a, next: []}\n";

/// The text is on line 2, the steps begin on line 4.
fn refused(keychain: &str, steps: &str, expected: &[&str]) {
    check(&with(keychain, steps), expected);
}

/// The pipeline of a step as the worker gets it.
fn pipeline(compiled: &Compiled, step: &str) -> Value {
    let net = serde_json::to_value(compiled.net.as_ref().expect("a net").spec()).expect("JSON");
    let steps = net["steps"].as_array().expect("steps").clone();
    steps.into_iter().find(|found| found["name"] == step).expect("the step")["work"].clone()
}

fn carried(compiled: &Compiled, step: &str) -> Vec<String> {
    let text = pipeline(compiled, step).to_string();
    ["one", "two", "three", "four"]
        .iter()
        .filter(|name| text.contains(&format!("\"name\":\"{name}\",\"playbook\"")))
        .map(|name| (*name).to_owned())
        .collect()
}

#[test]
fn pbk_25_a_wrong_keychain_entry_is_reported_at_its_line() {
    refused(
        "[{name: k, kind: static, map: {}}, {name: k, kind: static, map: {}}, {kind: static}, x]",
        STEP,
        &[
            "E0112 2:53 keychain[1].name: keychain entry `k` is defined twice (rename one)",
            "E0102 2:80 keychain[2]: a keychain entry has no `name` (add `name: ...`)",
            "E0101 2:96 keychain[3]: a keychain entry must be a map, not a string (write `key: value`, one line each)",
        ],
    );
    let kinds = "bearer, static, basic, api_key, credential, secret, env, secret_manager, oauth2";
    let elsewhere =
        "any other credential is stored with `windlass secrets set NAME` and named by `kind: secret`";
    refused(
        "[{name: k}, {name: l, kind: google_id_token}]",
        STEP,
        &[
            &format!("E0102 2:12 keychain[0]: a keychain entry has no `kind` (known kinds: {kinds})"),
            "E0130 2:39 keychain[1].kind: keychain entries of kind `google_id_token` are not built in, and no binding exists for them (fetch the token with `kind: oauth2`, or store it with `windlass secrets set NAME` and read it with `kind: secret`)",
        ],
    );
    refused(
        "[{name: l, kind: vault}]",
        STEP,
        &[&format!(
            "E0130 2:28 keychain[0].kind: there is no kind of keychain entry `vault` (known kinds: {kinds}; {elsewhere})"
        )],
    );
    refused(
        "[{name: k, kind: bearer}, {name: l, kind: bearer, token: '{{ workload.', scope: world}]",
        STEP,
        &[
            "E0102 2:12 keychain[0]: the keychain entry has no `token` (add `token: ...`)",
            "E0108 2:91 keychain[1].scope: scope `world` does not exist (use `local` or `shared` or `global`)",
        ],
    );
    refused(
        "[{name: k, kind: secret_manager, provider: gcp, map: {key: projects/x}}]",
        STEP,
        &[
            "E0130 2:54 keychain[0].provider: there is no provider of secrets `gcp` (the providers are `windlass` and `env`: store the value with `windlass secrets set NAME`)",
        ],
    );
    refused(
        "[{name: k, kind: bearer, token: abc, tocken: x}]",
        STEP,
        &[
            "E0131 2:43 keychain[0].token: `token` of a keychain entry: the value has 3 bytes without line breaks and indents; a secret needs at least 4 (write a longer value, or name a stored secret: `{$secret: NAME}`)",
            "E0103 2:48 keychain[0].tocken: keychain entry `k` has no key `tocken` (did you mean `token`?)",
        ],
    );
    refused(
        "[{name: k, kind: bearer, token: {$secret: 'a b'}}]",
        STEP,
        &["E0131 2:43 keychain[0].token: `a b` cannot be the name of a secret"],
    );
}

#[test]
fn pbk_25_entries_see_earlier_ones_and_inputs_only() {
    refused(
        "[{name: b, kind: bearer, token: '{{ keychain.a.token }}'}, {name: a, kind: secret}]",
        STEP,
        &[
            "E0132 2:19 keychain[0].name: keychain entry `b` reads `a`, which is not an entry before it (put `a` before `b`)",
        ],
    );
    refused(
        "[{name: b, kind: bearer, token: '{{ ctx.token }}'}]",
        STEP,
        &[
            "E0132 2:19 keychain[0].name: keychain entry `b` cannot read `ctx` (it can read `workload`, `execution_id` and earlier entries)",
        ],
    );
    refused(
        "[{name: b, kind: bearer, token: '{{ workload.token }}'}]",
        STEP,
        &[
            "W0230 2:19 keychain[0].name: keychain entry `b` reads `workload`; inputs are stored as plain text (store the value with `windlass secrets set NAME` and name it: `kind: secret`)",
        ],
    );
}

#[test]
fn pbk_25_only_fields_of_tools_read_the_keychain() {
    let key = "[{name: k, kind: secret}]";
    let place = "(read it in the field of the tool that needs it: `{{ keychain.NAME.FIELD }}`)";
    let warning = |at: &str, what: &str| {
        format!("E0133 {at}: {what} cannot read the keychain: their values are stored {place}")
    };
    let cases = [
        (
            "- step: a\n  next: {arcs: [{step: b, when: '{{ keychain.k.token }}'}]}\n- {step: b, next: []}\n",
            warning("5:24 workflow[0].next.arcs[0].step", "guards and arguments of arcs"),
        ),
        (
            "- step: a\n  next: {arcs: [{step: b, args: {t: '{{ keychain.k.token }}'}}]}\n- {step: b, next: []}\n",
            warning("5:24 workflow[0].next.arcs[0].step", "guards and arguments of arcs"),
        ),
        (
            "- step: a\n  next: []\n  spec: {policy: {admit: {rules: [{when: '{{ keychain.k }}', then: {allow: true}}]}}}\n",
            warning("4:9 workflow[0].step", "admission rules"),
        ),
        (
            "- step: a\n  args: {t: '{{ keychain.k.token }}'}\n  tool: {kind: noop}\n",
            warning("4:9 workflow[0].step", "`args` of a step"),
        ),
        (
            "- step: a\n  set_ctx: {t: '{{ keychain.k.token }}'}\n  tool: {kind: noop}\n",
            warning("4:9 workflow[0].step", "`set_ctx`"),
        ),
        (
            "- step: a\n  loop: {in: '{{ keychain.k }}', iterator: x}\n  tool: {kind: noop}\n",
            warning("4:9 workflow[0].step", "the list of a loop"),
        ),
        (
            "- step: a\n  tool: {kind: noop, spec: {policy: {rules: [{when: '{{ keychain.k.token }}', then: {do: fail}}]}}}\n",
            warning("5:9 workflow[0].tool", "rules of a task"),
        ),
    ];
    for (steps, expected) in cases {
        refused(key, steps, &[&expected]);
    }
    refused(
        key,
        "- step: a\n  tool: {kind: shell, command: 'echo {{ keychain.kk.token }}'}\n",
        &["E0132 5:9 workflow[0].tool: the keychain has no entry `kk` (did you mean `k`?)"],
    );
    check(
        "metadata: {name: t}\nworkflow:\n- step: a\n  tool: {kind: shell, command: 'echo {{ keychain.api.token }}'}\n",
        &[
            "E0132 4:9 workflow[0].tool: the keychain has no entry `api` (declare it: `keychain: [{name: api, kind: secret}]`, and store it with `windlass secrets set api`)",
        ],
    );
}

#[test]
fn pbk_25_the_first_step_carries_all_and_the_others_what_they_read() {
    let keychain = "[{name: one, kind: secret}, {name: two, kind: bearer, token: '{{ keychain.one.token }}'}, {name: three, kind: secret}, {name: four, kind: secret}]";
    let steps = "- {step: first, tool: {kind: noop}, next: second}\n- {step: second, tool: {kind: shell, command: 'login {{ keychain.two.token }}'}, next: third}\n- {step: third, tool: {kind: http, url: x, auth: four}, next: last}\n- {step: last, tool: {kind: noop}}\n";
    let compiled = compile(&with(keychain, steps));
    assert_eq!(carried(&compiled, "first"), ["one", "two", "three", "four"]);
    assert_eq!(carried(&compiled, "second"), ["one", "two"]);
    assert_eq!(carried(&compiled, "third"), ["four"]);
    assert_eq!(carried(&compiled, "last"), Vec::<String>::new());
}

#[test]
fn pbk_25_literals_leave_the_definition() {
    let text = with(
        "\n- {name: api, kind: bearer, token: \"s3cret-token\"} # not s3cret-token\n- name: db\n  kind: static\n  map: {user: admin, password: hunter2hunter2, pin: 123456}\n- name: pem\n  kind: static\n  map:\n    key: |\n      line-one-of-it\n      line-two-of-it\n- {name: known, kind: bearer, token: {$secret: stored}}\n",
        STEP,
    );
    let compiled = compile(&text);
    assert!(compiled.is_valid(), "{:?}", compiled.diagnostics);
    let literals: Vec<(&str, &str)> =
        compiled.literals.iter().map(|literal| (literal.secret.as_str(), literal.value.as_str())).collect();
    assert_eq!(
        literals,
        [
            ("keychain/my-play/api/token", "s3cret-token"),
            ("keychain/my-play/db/password", "hunter2hunter2"),
            ("keychain/my-play/db/pin", "123456"),
            ("keychain/my-play/pem/key", "line-one-of-it\nline-two-of-it\n"),
        ]
    );
    let net = pipeline(&compiled, "a").to_string();
    for kept in
        [&compiled.source, &compiled.shown, &net, &format!("{compiled:?}").replace(&compiled.source, "")]
    {
        for secret in ["s3cret", "hunter2", "123456", "line-one", "line-two"] {
            assert!(!kept.contains(secret), "{secret} in {kept}");
        }
    }
    assert!(net.contains(&json!({ "$secret": "stored" }).to_string()) && net.contains("admin"));
    assert_eq!(compiled.shown.lines().count(), text.lines().count());
    // What is stored means the same: nothing but handles are left.
    let again = compile(&compiled.source);
    assert!(
        again.is_valid() && compiled.source.contains("keychain/my-play/api/token"),
        "{}",
        compiled.source
    );
}

#[test]
fn pbk_25_a_problem_next_to_a_literal_does_not_show_it() {
    let text = with("[{name: api, kind: bearer, token: s3cret-token, tokn: 1}]", STEP);
    let compiled = compile(&text);
    let rendered: String =
        compiled.diagnostics.iter().map(|d| d.render(&compiled.shown, "play.yaml")).collect();
    assert!(rendered.contains("token: ************, tokn") && !rendered.contains("s3cret"), "{rendered}");
}

#[test]
fn literals_under_marks_have_names_of_their_own_and_mean_the_same() {
    let text = |token: &str| with(&format!("[{{name: api, kind: bearer, token: {token}}}]"), STEP);
    let marks = windlass_secrets::Marks::new([7; 32]);
    let marked = |token: &str| windlass_dialects::compile_marked(&text(token), &marks, Outside::Unknown);
    let name = |token: &str| marked(token).literals[0].secret.clone();
    assert!(name("s3cret-one").starts_with("keychain/my-play/api/token/"), "{}", name("s3cret-one"));
    assert_eq!(name("s3cret-one"), name("s3cret-one"));
    assert_ne!(name("s3cret-one"), name("s3cret-two"));
    let stored = marked("s3cret-one");
    assert!(pipeline(&stored, "a").to_string().contains(&name("s3cret-one")), "the net has the same name");
    let again = compile(&stored.source);
    assert_eq!(again.net.unwrap().digest(), stored.net.unwrap().digest());
}
