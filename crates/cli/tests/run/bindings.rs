//! Bindings: operations and kinds of tools that are not built in, run by the tool that a document or a file names.

use crate::rig::{Books, Place, requests};
use serde_json::Value;
use std::collections::BTreeSet;

const PAY: &str = "workload: {amount: 12}
workflow:
- step: pay
  tool:
    kind: 'invoice:write'
    args: {amount: '{{ workload.amount }}'}
    retry: {max_attempts: 4, initial_delay: 0}
";

fn books_file(url: &str) -> String {
    format!(
        "operations:
  'invoice:write': {{kind: http, method: POST, url: '{url}/invoices', json: {{sum: '{{{{ args.amount }}}}', key: '{{{{ _idempotency_key }}}}'}}}}
"
    )
}

#[test]
fn a_file_binds_an_operation_and_every_try_carries_the_same_key() {
    let place = Place::playing(PAY);
    let books = Books::open(&place.path("seen"), 2);
    place.write("adapters.yaml", &books_file(books.url()));
    let output = place.run(&["--adapters", "adapters.yaml"], 0);
    assert_eq!(output["outputs"]["data"]["invoiceId"], "in_7", "{output}");
    let seen = requests(&place.lines("seen"));
    assert_eq!(seen.len(), 3);
    let keys: BTreeSet<&str> =
        seen.iter().map(|one| one["headers"]["idempotency-key"].as_str().expect("a key")).collect();
    assert_eq!(keys.len(), 1, "{seen:?}");
    let body: Value = serde_json::from_str(seen[0]["body"].as_str().expect("a body")).expect("JSON");
    assert_eq!((&body["sum"], body["key"].as_str()), (&12.into(), keys.first().copied()));
    // The same file, named by the environment; the start is refused without it.
    let mut command = place.command(&["run", "play.yaml"]);
    command.env("WINDLASS_ADAPTERS", "adapters.yaml");
    crate::rig::CommandOutput::of(command).expect(0);
}

#[test]
fn what_nothing_binds_is_named_with_the_line_that_binds_it() {
    let place = Place::playing(PAY);
    let line = "adapters: {operations: {\"invoice:write\": {kind: http, method: POST, url: \"https://...\", json: \"{{ args }}\"}}}";
    let said = place.windlass(&["validate", "play.yaml"]).expect(0);
    said.says("warning[W0257]: the operation `invoice:write` is not bound").says("play.yaml:").says(line);
    let said = place.windlass(&["run", "play.yaml"]).expect(2);
    said.says("error[E0165]: the operation `invoice:write` is not bound").says("play.yaml:").says(line);
    place.write("adapters.yaml", "tools: {duckdb: {kind: noop}}");
    place.windlass(&["validate", "play.yaml", "--adapters", "adapters.yaml"]).expect(2).says(line);
    assert!(!place.data().exists(), "nothing was run");
    // The hint can be copied as it is.
    place.write("adapters.yaml", line);
    place.windlass(&["validate", "play.yaml", "--adapters", "adapters.yaml"]).expect(0);
    // A kind of tool may be a typing error, so that a definition with it is refused.
    place.write("play.yaml", &PAY.replace("'invoice:write'", "duckdb"));
    for command in ["run", "validate"] {
        let said = place.windlass(&[command, "play.yaml"]).expect(2);
        said.says("E0111")
            .says("`duckdb` is not built in")
            .says("bind the kind: `adapters: {tools: {duckdb: ");
    }
}

#[test]
fn a_bad_file_is_reported_with_its_places_before_anything_runs() {
    let place = Place::playing(PAY);
    place.write("adapters.yaml", "operations:\n  'invoice:write': {kind: http, uri: 'http://x'}\n");
    for command in ["run", "validate"] {
        let said = place.windlass(&[command, "play.yaml", "--adapters", "adapters.yaml"]).expect(2);
        said.says("adapters.yaml has errors")
            .says("E0103")
            .says("adapters.yaml:2:")
            .says("did you mean `url`?");
    }
    place.windlass(&["run", "play.yaml", "--adapters", "none.yaml"]).expect(2).says("cannot read none.yaml");
    place.write("adapters.yaml", "keychain: [{name: k, kind: bearer, token: very-secret-words}]");
    let said = place.windlass(&["run", "play.yaml", "--adapters", "adapters.yaml"]).expect(2);
    let said = said.says("an adapters file cannot contain a secret");
    assert!(!said.err.contains("very-secret-words"), "{}", said.err);
    assert!(!place.data().exists(), "nothing was run");
    // A server does not start with it, either.
    let (status, said) = place.with(&["--adapters", "adapters.yaml"]).refuse();
    assert!(status.code() == Some(2) && said.contains("adapters.yaml:1:"), "{said}");
}

/// Kinds that other engines have built in, each bound to a tool that exists.
#[test]
fn a_playbook_runs_with_kinds_that_are_bound_and_the_document_wins() {
    let place = Place::playing(
        "adapters:
  tools:
    duckdb: {kind: python, code: 'result = {\"rows\": [args[\"query\"], args[\"limit\"]]}'}
workload: {table: \"t'; drop\"}
workflow:
- step: ask
  tool:
  - rows: {kind: duckdb, query: 'select * from {{ workload.table }}', args: {limit: 2}}
  - sent: {kind: nats, subject: 'rows.{{ rows.rows[1] }}', spec: {policy: {rules: [{else: {then: {do: continue, set_ctx: {sent: true}}}}]}}}
",
    );
    place.write(
        "adapters.json",
        r#"{"tools": {"duckdb": {"kind": "noop"}, "nats": {"kind": "shell", "command": "printf '%s' {{ args.subject }}; printf '%s' \"$WINDLASS_IDEMPOTENCY_KEY\" >key"}}}"#,
    );
    place.windlass(&["validate", "play.yaml", "--adapters", "adapters.json"]).expect(0);
    let output = place.run(&["--adapters", "adapters.json"], 0);
    assert_eq!(output["outputs"]["stdout"], "rows.2", "{output}");
    let key = place.lines("key").concat();
    assert!(
        key.contains(':') && output["executionId"].as_str().expect("an id").contains(&key[..32]),
        "{key}"
    );
    let steps = place.windlass(&["executions", "get", "@last", "--json"]).expect(0).json();
    assert_eq!(steps["nodeExecutions"][0]["output"]["stdout"], "rows.2", "{steps}");
}

#[test]
fn a_definition_can_be_bound_and_what_it_starts_is_bound_too() {
    let place = Place::playing(PAY);
    place.write(
        "child.yaml",
        &crate::rig::playbook(
            "child",
            "workflow:\n- step: write\n  tool: {kind: 'ledger:write', sum: '{{ workload.amount }}'}\n",
        ),
    );
    place.write(
        "adapters.yaml",
        "operations:
  'invoice:write': {kind: workflow, name: child}
  'ledger:write': {kind: shell, command: 'echo {{ args.sum }} >>ledger'}
",
    );
    let mut create = place.command(&["workflows", "create", "child.yaml"]);
    create.env("WINDLASS_ADAPTERS", "adapters.yaml");
    crate::rig::CommandOutput::of(create).expect(0);
    place.run(&["--adapters", "adapters.yaml"], 0);
    assert_eq!(place.lines("ledger"), ["12"]);
    // Without the binding of the child, the step fails with the reason.
    place.write("adapters.yaml", "operations: {'invoice:write': {kind: workflow, name: child}}");
    let output = place.run(&["--adapters", "adapters.yaml"], 1);
    let message = output["errors"][0]["message"].as_str().expect("a message");
    assert!(message.contains("`child` cannot start") && message.contains("ledger:write"), "{output}");
}

#[test]
fn values_of_secrets_in_a_binding_are_redacted() {
    let place = Place::playing(PAY);
    let books = Books::open(&place.path("seen"), 0);
    place.write(
        "adapters.yaml",
        &format!(
            "keychain: [{{name: books, kind: secret}}]
operations:
  'invoice:write': {{kind: http, method: POST, url: '{}/', headers: {{authorization: 'Bearer {{{{ keychain.books.token }}}}'}}, json: '{{{{ args }}}}'}}
",
            books.url()
        ),
    );
    let refused = place.windlass(&["run", "play.yaml", "--adapters", "adapters.yaml"]).expect(2);
    refused.says("`pay` reads the secret `books`, which is not stored");
    place.given(&["secrets", "set", "books"], "long-enough-token\n").expect(0);
    let output = place.run(&["--adapters", "adapters.yaml"], 0);
    let seen = requests(&place.lines("seen"));
    assert_eq!(seen[0]["headers"]["authorization"], "Bearer long-enough-token");
    assert!(!output.to_string().contains("long-enough-token"), "{output}");
    for file in crate::rig::files(&place.data()) {
        let bytes = std::fs::read(&file).expect("a file");
        let found = bytes.windows(17).any(|part| part == b"long-enough-token");
        assert!(!found, "{}", file.display());
    }
}

const INVOICE: &str = "schemaVersion: 1
workflowId: invoices/pay
name: pay
actions:
- actionId: bill
  order: 1
  operation: 'invoice:write'
  input: {amount: 12}
  retryPolicy: {initialBackoffMs: 1}
  compensation: {compensationOperation: 'invoice:reverse', compensationInput: {invoiceId: '{{ actions.bill.output.data.invoiceId }}'}}
- {actionId: check, order: 2, operation: 'invoice:read'}
- {actionId: mail, order: 3, operation: 'mail:send', retryPolicy: {maxAttempts: 2, initialBackoffMs: 1}}
";

#[test]
fn act_16_act_14_every_call_of_an_action_and_of_its_hook_carries_its_key() {
    let place = Place::new();
    place.write("play.yaml", INVOICE);
    let books = Books::open(&place.path("seen"), 1);
    let url = books.url();
    place.write(
        "adapters.yaml",
        &format!(
            "operations:
  'invoice:write': {{kind: http, method: POST, url: '{url}/invoices', json: '{{{{ args }}}}'}}
  'invoice:read': {{kind: http, url: '{url}/invoices'}}
  'mail:send': {{kind: shell, command: 'echo \"$WINDLASS_IDEMPOTENCY_KEY\" >>mails; exit 1'}}
  'invoice:reverse':
    kind: python
    code: |
      import os
      first = not os.path.exists('reversed')
      open('reversed', 'a').write(os.environ['WINDLASS_IDEMPOTENCY_KEY'] + ' ' + args['invoiceId'] + chr(10))
      if first: raise RuntimeError('the ledger is locked')
      result = 'reversed'
"
        ),
    );
    let output = place.run(&["--adapters", "adapters.yaml"], 1);
    let run = output["executionId"].as_str().expect("an id");
    let seen = requests(&place.lines("seen"));
    let key = |one: &Value| one["headers"]["idempotency-key"].as_str().unwrap_or_default().to_owned();
    let keys: Vec<String> = seen.iter().map(key).collect();
    assert_eq!(keys, [format!("{run}:bill"), format!("{run}:bill"), format!("{run}:check")], "{seen:?}");
    assert_eq!(seen[0]["body"], r#"{"amount":12}"#);
    assert_eq!(place.lines("mails"), vec![format!("{run}:mail"); 2]);
    assert_eq!(place.lines("reversed"), vec![format!("{run}:bill:compensate in_7"); 2], "{output}");
}

#[test]
fn an_action_whose_operation_is_not_bound_is_named_before_anything_runs() {
    let place = Place::new();
    place.write("play.yaml", INVOICE);
    place
        .windlass(&["validate", "play.yaml"])
        .expect(0)
        .says("warning[W0257]: the operation `invoice:reverse` is not bound");
    place
        .windlass(&["run", "play.yaml"])
        .expect(2)
        .says("error[E0165]: the operation `invoice:write` is not bound");
    assert!(!place.data().exists(), "nothing was run");
}
