//! One sequence of commands, run in a folder and at a server.

use crate::normal::Normal;
use crate::rig::{Place, playbook};
use serde_json::Value;
use std::collections::BTreeMap;

const WORK: &str = "workload: {words: [x, y], code: 0}
workflow:
- step: say
  loop: {in: '{{ workload.words }}', iterator: word}
  tool: {kind: shell, command: 'echo {{ iter.word }}; echo noise >&2'}
  next: last
- step: last
  tool: {kind: shell, command: 'echo bye; exit {{ workload.code }}'}
";
const GATE: &str = "workflow:
- {step: gate, spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}}
";
const PARENT: &str = "workflow:
- {step: call, tool: {kind: playbook, path: child, args: {greeting: hi}}}
";
const CHILD: &str = "workload: {greeting: none}
workflow:
- {step: greet, tool: {kind: shell, command: 'echo {{ workload.greeting }}'}}
";
/// A person has to approve.
const ASK: &str = "name: ask
nodes:
- {id: ask, type: approval, config: {message: may it}}
";
/// A person has to confirm the end.
const CONFIRM: &str = "schemaVersion: 1
workflowId: confirm
name: confirm
actions:
- {actionId: confirm, order: 1, operation: 'door:close', completionMode: manual}
adapters: {operations: {'door:close': {kind: noop}}}
";
const TICK: &str = "name: tick
schedule: {kind: cron, expr: 0 6 1 1 *}
target: {kind: shell, command: 'true'}
";
const ACTION: &str = "name: greet
script: echo hi
";
const PLAN: &str = "spec: {steps: [{id: hello, action: greet}]}
";
const BAD: &str = "workflow:
- {step: a, next: nowhere}
";

/// Arguments of a command, its exit code, and the name under which later rows refer to the reported id.
struct Row(&'static str, i32, &'static str);

/// `$name` is an id that an earlier row output; `<` begins standard input.
const STORY: &[Row] = &[
    Row("validate work.yaml --json", 0, ""),
    Row("validate bad.yaml --json", 2, ""),
    Row("validate parent.yaml --json", 0, ""),
    Row("run bad.yaml", 2, ""),
    Row("run missing.yaml", 2, ""),
    Row("run work.yaml --json --input", 2, ""),
    Row("run work.yaml --json", 0, "good"),
    Row("run work.yaml --json --input code=7", 1, "bad"),
    Row("run work.yaml", 0, ""),
    Row("run parent.yaml --json", 0, ""),
    Row("run gate.yaml --json", 5, "gate"),
    Row("run gate.yaml --json", 5, "other"),
    Row("executions list --json", 0, ""),
    Row("executions list --json --status failed", 0, ""),
    Row("executions list --json --status open --limit 1", 0, ""),
    Row("executions list --json --status wrong", 2, ""),
    Row("executions get $good --json", 0, ""),
    Row("executions get $bad --json", 0, ""),
    Row("executions get $good --graph", 0, ""),
    Row("executions get $good --graph --format dot", 0, ""),
    Row("executions get 00000000000000000000000000000000 --json", 2, ""),
    Row("executions get hello", 2, ""),
    Row("executions events $good --json", 0, ""),
    Row("executions events $good", 0, ""),
    Row("executions events $bad --follow --json", 0, ""),
    Row("executions logs $good --json", 0, ""),
    Row("executions logs $good --step last", 0, ""),
    Row("executions logs $good say[1] last --tail 2", 0, ""),
    Row("executions list --workflow nothing", 2, ""),
    Row("executions get @last --json", 0, ""),
    // After the lists: two executions of one millisecond have no order.
    Row("run work.yaml --times 2", 0, ""),
    Row("executions watch $bad", 1, ""),
    Row("tokens create ann", 2, ""),
    Row("tokens create ann --role king", 2, ""),
    Row("tokens create ann --role viewer --expires-at yesterday", 2, ""),
    Row("tokens delete user_00000000000000000000000000000000", 2, ""),
    Row("executions logs $good --step nowhere", 2, ""),
    Row("executions logs $good --follow", 0, ""),
    Row("executions watch $good", 0, ""),
    Row("executions watch $bad", 1, ""),
    Row("executions pause $other --json --reason lunch", 0, ""),
    Row("executions resume $other --json", 0, ""),
    Row("executions resume $other", 1, ""),
    Row("executions patch $gate open=true --json", 0, ""),
    Row("executions patch $gate open=true", 1, ""),
    Row("executions patch $other nothing", 2, ""),
    Row("executions approve $other", 2, ""),
    Row("executions signal $other nowhere --outcome failed", 2, ""),
    Row("run ask.yaml --json", 5, "asks"),
    Row("tasks --json", 0, ""),
    Row("tasks --mine --kind approval --json --limit 1", 0, ""),
    Row("tasks --kind gate --json", 0, ""),
    Row("tasks --kind pause", 0, ""),
    Row("tasks --kind door", 2, ""),
    Row("executions approve $asks ask --json --note fine", 0, ""),
    Row("tasks --json", 0, ""),
    Row("run confirm.yaml --json", 5, "confirms"),
    Row("executions signal $confirms confirm --outcome Succeeded --token wrong", 2, ""),
    Row("executions signal $confirms confirm --outcome Succeeded --notes seen --json", 0, ""),
    Row("executions signal $confirms confirm --outcome Succeeded", 2, ""),
    Row("executions events $confirms --json", 0, ""),
    Row("executions approve $asks", 2, ""),
    Row("run ask.yaml --json", 5, "asks"),
    Row("executions reject $asks --json", 0, ""),
    Row("run ask.yaml --json", 5, "asks"),
    Row("executions signal $asks ask --outcome cancelled --evidence doc-1 --json", 0, ""),
    Row("executions events $asks --json", 0, ""),
    Row("executions cancel $other --json --reason enough", 0, ""),
    Row("executions cancel $other", 1, ""),
    Row("executions retry $bad --input code=0 --json", 0, ""),
    Row("executions retry $bad --from last --json", 1, ""),
    Row("executions retry $bad --from nowhere", 2, ""),
    Row("executions retry $good", 1, ""),
    Row("run --resume", 0, ""),
    Row("workflows create work.yaml --json", 0, "wf"),
    Row("workflows create bad.yaml --json", 2, ""),
    Row("workflows get $wf --json", 0, ""),
    Row("workflows get $wf --source", 0, ""),
    Row("workflows get parent --json", 0, ""),
    Row("workflows get nobody", 2, ""),
    Row("workflows get wf_00000000000000000000000000000000", 2, ""),
    Row("workflows update $wf gate.yaml --json", 0, ""),
    Row("workflows update $wf work.yaml --after 1", 1, ""),
    Row("workflows versions $wf --json", 0, ""),
    Row("workflows get $wf --version 1 --json", 0, ""),
    Row("workflows get $wf --version 9", 2, ""),
    Row("workflows duplicate $wf --name copy --json", 0, "copy"),
    Row("workflows list --json", 0, ""),
    Row("workflows list --json --search cop", 0, ""),
    Row("workflows run $copy --json", 5, ""),
    Row("workflows run child --json --input greeting=hey", 0, ""),
    Row("workflows status $copy archived --json", 0, ""),
    Row("workflows run $copy", 1, ""),
    Row("workflows delete copy --json", 0, ""),
    Row("workflows get $copy", 2, ""),
    Row("secrets set api-key --json < a-long-value", 0, ""),
    Row("secrets set api-key < abc", 2, ""),
    Row("secrets list --json", 0, ""),
    Row("secrets delete api-key --json", 0, ""),
    Row("secrets delete api-key", 2, ""),
    Row("sandboxes put box --ready --routing-key k --json", 0, ""),
    Row("sandboxes put box --cluster local", 0, ""),
    Row("sandboxes put box --routing-key", 2, ""),
    Row("sandboxes put box --ready-url file:///etc/passwd", 2, ""),
    Row("sandboxes list", 0, ""),
    Row("sandboxes get box --json", 0, ""),
    Row("sandboxes get crate", 2, ""),
    Row("sandboxes delete box --json", 0, ""),
    Row("route-groups delete box", 2, ""),
    Row("clusters put eu --json", 0, ""),
    Row("clusters list", 0, ""),
    Row("clusters delete local", 1, ""),
    Row("actions put action.yaml --json", 0, ""),
    Row("actions put bad.yaml", 2, ""),
    Row("actions put bad.yaml --name bad", 2, ""),
    Row("actions list", 0, ""),
    Row("actions get greet --json --revision 2", 2, ""),
    Row("actions revisions greet", 0, ""),
    Row("actions disable greet", 0, ""),
    Row("plans create plan.yaml --json", 2, ""),
    Row("actions enable greet --json", 0, ""),
    Row("plans create plan.yaml --json", 0, ""),
    Row("plans create bad.yaml", 2, ""),
    Row("plans list", 0, ""),
    Row("plans get pl_00000000000000000000000000000000", 2, ""),
    Row("actions delete greet --json", 0, ""),
    Row("workers list --json", 0, ""),
    Row("workers list", 0, ""),
    Row("graph work.yaml", 0, ""),
    Row("graph $good", 0, ""),
    Row("schedules create -f tick.yaml --json", 0, "tick"),
    Row("schedules create -f tick.yaml", 1, ""),
    Row("schedules create -f bad.yaml", 2, ""),
    Row("schedules apply -f tick.yaml --dry-run --json", 0, ""),
    Row("schedules list --json", 0, ""),
    Row("schedules get tick --json", 0, ""),
    Row("schedules get nobody", 2, ""),
    Row("schedules explain $tick --json", 0, ""),
    Row("schedules pause tick --json", 0, ""),
    Row("schedules list --enabled false", 0, ""),
    Row("schedules resume tick --json", 0, ""),
    Row("schedules next x", 2, ""),
    Row("runs list --json", 0, ""),
    Row("runs list --status wrong", 2, ""),
    Row("runs get run_00000000000000000000000000000000", 2, ""),
    Row("runs cancel run_00000000000000000000000000000000", 2, ""),
    Row("dead-letters list --json", 0, ""),
    Row("dead-letters get dlq_00000000000000000000000000000000", 2, ""),
    Row("dead-letters redrive dlq_00000000000000000000000000000000", 2, ""),
    Row("dead-letters discard dlq_00000000000000000000000000000000", 2, ""),
    Row("schedules delete tick --json", 0, ""),
];

/// The code and the normal form of what each row output.
fn report(place: &Place) -> Vec<String> {
    let files = [("work", WORK), ("gate", GATE), ("parent", PARENT), ("child", CHILD), ("bad", BAD)];
    for (name, steps) in files {
        place.write(&format!("{name}.yaml"), &playbook(name, steps));
    }
    place.write("ask.yaml", ASK);
    place.write("confirm.yaml", CONFIRM);
    place.write("tick.yaml", TICK);
    place.write("action.yaml", ACTION);
    place.write("plan.yaml", PLAN);
    let (mut normal, mut known) = (Normal::default(), BTreeMap::<&str, String>::new());
    let output = STORY.iter().map(|Row(asked, code, keeps)| {
        let (asked_words, input) = asked.split_once(" < ").unwrap_or((asked, ""));
        let words = asked_words.split(' ').map(|word| match word.strip_prefix('$') {
            Some(name) => known[name].as_str(),
            None => word,
        });
        let output = place.given(&words.collect::<Vec<_>>(), input);
        assert_eq!(output.code, *code, "{asked}\nstdout: {}\nstderr: {}", output.out, output.err);
        if !keeps.is_empty() {
            let object: Value = serde_json::from_str(&output.out).unwrap();
            let id = object["executionId"].as_str().or(object["id"].as_str()).unwrap();
            known.insert(keeps, id.to_owned());
        }
        format!("{asked}\n{}", normal.text(&output.out))
    });
    output.collect()
}

#[test]
fn every_command_reports_the_same_in_a_folder_and_at_a_server() {
    let folder = report(&Place::new());
    let host = Place::new();
    let server = host.serve();
    let afar = report(&Place::new().at(&server));
    for (here, there) in folder.iter().zip(&afar) {
        let differs = here.lines().zip(there.lines()).find(|(here, there)| here != there);
        assert!(here == there, "{differs:?} in\n{here}\nand\n{there}");
    }
}
