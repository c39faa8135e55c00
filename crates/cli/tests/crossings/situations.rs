//! Situations of a playbook. Each step writes its name to `output` when it begins, and with a dot when it ends; the step in
//! question ends when the file `go` exists.

use crate::rig::{Place, Running, playbook, until};
use serde_json::Value;

pub struct Situation {
    pub name: &'static str,
    pub definition: &'static str,
    /// Further definitions in the folder.
    pub others: &'static [(&'static str, &'static str)],
    /// Lines that are there when it has been reached.
    pub reached: &'static [&'static str],
    /// Status of the only entry in that situation.
    pub status: &'static str,
}

/// A step named x that lasts until `go` is there.
pub const RUNNING: Situation = Situation {
    name: "running",
    definition: "workflow:
- step: x
  tool: {kind: shell, command: 'echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["x"],
    status: "running",
};

pub const SEQUENTIAL: Situation = Situation {
    name: "loop, one at a time",
    definition: "workflow:
- step: x
  loop: {in: [1, 2], iterator: n}
  tool:
    kind: shell
    command: 'echo $$ >> steps; echo x{{ iter.n }} >> output; while ! test -e go; do sleep 0.02; done; echo x{{ iter.n }}. >> output'
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["x1"],
    status: "running",
};

pub const PARALLEL: Situation = Situation {
    name: "loop, two at a time",
    definition: "workflow:
- step: x
  loop: {in: [1, 2, 3], iterator: n, spec: {mode: parallel, max_in_flight: 2}}
  tool: {kind: shell, command: 'echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["x", "x"],
    status: "running",
};

/// Wait between two tries of a task. A wait of more than five seconds releases the slot.
pub const BACKOFF: Situation = Situation {
    name: "backoff",
    definition: "workflow:
- step: x
  tool:
    kind: shell
    command: 'echo x >> output; test -e go || exit 1; echo x. >> output'
    spec:
      policy:
        rules:
        - {when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 5.5}}
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["x"],
    status: "retrying",
};

/// The second attempt of a task runs.
pub const RETRYING: Situation = Situation {
    name: "second try",
    definition: "workflow:
- step: x
  tool:
    kind: shell
    command: 'echo $$ >> steps; echo x{{ _attempt }} >> output; test {{ _attempt }} = 2 || exit 1; while ! test -e go; do sleep 0.02; done; echo x. >> output'
    spec:
      policy:
        rules:
        - {when: \"{{ outcome.status == 'error' }}\", then: {do: retry, attempts: 2, delay: 0}}
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["x1", "x2"],
    status: "running",
};

pub const GATE: Situation = Situation {
    name: "gate",
    definition: "workflow:
- {step: a, tool: {kind: shell, command: 'echo a >> output'}, next: x}
- step: x
  spec: {policy: {admit: {rules: [{when: '{{ ctx.open }}', then: {allow: true}}]}}}
  tool: {kind: shell, command: 'echo x >> output'}
  next: y
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[],
    reached: &["a"],
    status: "paused",
};

pub const CHILD: Situation = Situation {
    name: "child",
    definition: "workflow:
- {step: x, tool: {kind: playbook, path: child}, next: y}
- {step: y, tool: {kind: shell, command: 'echo y >> output'}}
",
    others: &[(
        "child.yaml",
        "workflow:
- step: inner
  tool: {kind: shell, command: 'echo $$ >> steps; echo inner >> output; while ! test -e go; do sleep 0.02; done; echo inner. >> output'}
",
    )],
    reached: &["inner"],
    status: "running",
};

pub const FINAL: Situation = Situation {
    name: "final step",
    definition: "executor: {spec: {final_step: x}}
workflow:
- {step: a, tool: {kind: shell, command: 'echo a >> output'}}
- step: x
  tool: {kind: shell, command: 'echo $$ >> steps; echo x >> output; while ! test -e go; do sleep 0.02; done; echo x. >> output'}
",
    others: &[],
    reached: &["a", "x"],
    status: "running",
};

pub const ALL: [&Situation; 8] =
    [&RUNNING, &SEQUENTIAL, &PARALLEL, &BACKOFF, &RETRYING, &GATE, &CHILD, &FINAL];

/// A folder with the definition, the program at work on it, and its execution.
pub struct Reached {
    pub place: Place,
    pub running: Running,
    pub id: String,
}

impl Situation {
    pub fn reach(&self) -> Reached {
        let place = Place::playing(self.definition);
        for (file, text) in self.others {
            place.write(file, &playbook("tested", text));
        }
        let mut running = place.start(&["run", "play.yaml"]);
        let id = running.until_says("exec_").split(':').next().expect("an id").to_owned();
        until(self.name, || (place.lines("output") == self.reached).then_some(()));
        let reached = Reached { place, running, id };
        until(self.name, || (reached.status() == self.status).then_some(()));
        reached
    }
}

impl Reached {
    pub fn get(&self) -> Value {
        self.place.windlass(&["executions", "get", &self.id, "--json"]).expect(0).json()
    }

    /// Status of the step in question, or of the execution if it waits at a gate.
    fn status(&self) -> String {
        let output = self.get();
        let entries = output["nodeExecutions"].as_array().cloned().unwrap_or_default();
        let last = entries.last().filter(|_| output["status"] != "paused");
        last.unwrap_or(&output)["status"].as_str().unwrap_or_default().to_owned()
    }
}
