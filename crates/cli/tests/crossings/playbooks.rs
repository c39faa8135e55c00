//! Situations of a playbook.

use crate::situations::{Ends, Situation};

pub static ALL: [Situation; 8] = [RUNNING, SEQUENTIAL, PARALLEL, BACKOFF, RETRYING, GATE, CHILD, FINAL];

/// A step named x that lasts until `go` is there.
const RUNNING: Situation = Situation {
    name: "running",
    definition: "workflow:
- step: x
  tool: {kind: shell, command: 'cd DIR; echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["x"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: x x. y",
        cancelled: "cancelled: x",
        repeated: "completed: x x x. y",
        retried: "completed: x x x. y",
    },
};

const SEQUENTIAL: Situation = Situation {
    name: "loop, one at a time",
    definition: "workflow:
- step: x
  loop: {in: [1, 2], iterator: n}
  tool:
    kind: shell
    command: 'cd DIR; echo $$ >> steps; echo x{{ iter.n }} >> output; while ! test -e go; do sleep 0.02; done; echo x{{ iter.n }}. >> output'
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["x1"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: x1 x1. x2 x2. y",
        cancelled: "cancelled: x1",
        repeated: "completed: x1 x1 x1. x2 x2. y",
        retried: "completed: x1 x1 x1. x2 x2. y",
    },
};

const PARALLEL: Situation = Situation {
    name: "loop, two at a time",
    definition: "workflow:
- step: x
  loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool: {kind: shell, command: 'cd DIR; echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["x", "x"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: 3 x, 3 x., y",
        cancelled: "cancelled: 2 x",
        repeated: "completed: 5 x, 3 x., y",
        retried: "completed: 5 x, 3 x., y",
    },
};

/// Wait between two tries of a task. A wait of more than five seconds releases the slot.
const BACKOFF: Situation = Situation {
    name: "backoff",
    definition: "workflow:
- step: x
  tool:
    kind: shell
    command: 'cd DIR; echo x >> output; test -e go || exit 1; echo x. >> output'
    spec:
      policy:
        rules:
        - {when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 5.5}}
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["x"],
    status: "retrying",
    opens: &[],
    ends: Ends {
        released: "completed: x x x. y",
        cancelled: "cancelled: x",
        repeated: "completed: x x x. y",
        retried: "completed: x x x. y",
    },
};

/// The second attempt of a task runs.
const RETRYING: Situation = Situation {
    name: "second try",
    definition: "workflow:
- step: x
  tool:
    kind: shell
    command: 'cd DIR; echo $$ >> steps; echo x{{ _attempt }} >> output; test {{ _attempt }} = 2 || exit 1; while ! test -e go; do sleep 0.02; done; echo x. >> output'
    spec:
      policy:
        rules:
        - {when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 0}}
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["x1", "x2"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: x1 x2 x. y",
        cancelled: "cancelled: x1 x2",
        repeated: "completed: x1 x2 x2 x. y",
        retried: "completed: x1 x2 x1 x2 x. y",
    },
};

const GATE: Situation = Situation {
    name: "gate",
    definition: "workflow:
- {step: a, tool: {kind: shell, command: 'cd DIR; echo a >> output'}, next: x}
- step: x
  spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'cd DIR; echo x >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[],
    reached: &["a"],
    status: "paused",
    opens: &["executions", "patch", "ID", "open=true"],
    ends: Ends {
        released: "completed: a x y",
        cancelled: "cancelled: a",
        repeated: "completed: a x y",
        retried: "completed: a x y",
    },
};

const CHILD: Situation = Situation {
    name: "child",
    definition: "workflow:
- {step: x, tool: {kind: playbook, path: child}, next: y}
- {step: y, tool: {kind: shell, command: 'cd DIR; echo y >> output'}}
",
    others: &[(
        "child.yaml",
        "workflow:
- step: inner
  tool: {kind: shell, command: 'cd DIR; echo $$ >> steps; echo inner >> output; while ! test -e go; do sleep 0.02; done; echo inner. >> output'}
",
    )],
    reached: &["inner"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: inner inner. y",
        cancelled: "cancelled: inner",
        repeated: "completed: inner inner inner. y",
        retried: "completed: inner inner inner. y",
    },
};

const FINAL: Situation = Situation {
    name: "final step",
    definition: "executor: {spec: {final_step: x}}
workflow:
- {step: a, tool: {kind: shell, command: 'cd DIR; echo a >> output'}}
- step: x
  tool: {kind: shell, command: 'cd DIR; echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
",
    others: &[],
    reached: &["a", "x"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: a x x.",
        cancelled: "cancelled: a x",
        repeated: "completed: a x x x.",
        retried: "completed: a x x x.",
    },
};

/// Lasts longer than any test.
pub static ENDLESS: Situation = Situation {
    name: "endless",
    definition: "workflow:
- {step: x, tool: {kind: shell, command: 'cd DIR; echo $$ > pid; echo x >> output; exec sleep 1000'}}
",
    ..RUNNING
};
