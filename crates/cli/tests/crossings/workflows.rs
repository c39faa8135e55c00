//! Situations that only workflows have: people who approve, agents, nodes of other kinds.

use crate::situations::{Ends, Situation};

pub static ALL: [Situation; 5] = [APPROVAL, AGENT, LOOP, SUB_WORKFLOW, BACKOFF];

const APPROVAL: Situation = Situation {
    name: "approval",
    definition: "name: tested
nodes:
- {id: a, type: shell, config: {command: 'cd DIR; echo a >> output'}}
- {id: x, type: approval, config: {message: May it}}
- {id: y, type: shell, config: {command: 'cd DIR; echo y >> output'}}
edges: [{source: a, target: x}, {source: x, target: y}]
",
    others: &[],
    reached: &["a"],
    status: "paused",
    opens: &["executions", "approve", "ID", "x"],
    ends: Ends {
        released: "completed: a y",
        cancelled: "cancelled: a",
        repeated: "completed: a y",
        retried: "completed: a y",
    },
};

/// An agent waits for a node that it runs.
const AGENT: Situation = Situation {
    name: "agent",
    definition: "name: tested
nodes:
- {id: t, type: trigger}
- {id: x, type: ai_agent, config: {model: m, baseUrl: MODEL, userPromptTemplate: Wait}}
- id: tool
  type: shell
  description: Waits
  config: {command: 'cd DIR; echo $$ >> steps; echo tool >> output; while ! test -e go; do sleep 0.02; done; echo tool. >> output'}
- {id: y, type: shell, config: {command: 'cd DIR; echo y >> output'}}
edges: [{source: t, target: x}, {source: x, target: tool}, {source: x, sourceHandle: done, target: y}]
",
    others: &[],
    reached: &["tool"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: tool tool. y",
        cancelled: "cancelled: tool",
        repeated: "completed: tool tool tool. y",
        retried: "completed: tool tool tool. y",
    },
};

const LOOP: Situation = Situation {
    name: "loop of nodes",
    definition: "name: tested
nodes:
- {id: t, type: trigger}
- {id: x, type: loop, config: {loopType: count, maxIterations: 2}}
- id: body
  type: shell
  config: {command: 'cd DIR; echo $$ >> steps; echo body >> output; while ! test -e go; do sleep 0.02; done; echo body. >> output'}
- {id: y, type: shell, config: {command: 'cd DIR; echo y >> output'}}
edges: [{source: t, target: x}, {source: x, sourceHandle: body, target: body}, {source: x, sourceHandle: done, target: y}]
",
    others: &[],
    reached: &["body"],
    status: "running",
    opens: &[],
    ends: Ends {
        released: "completed: body body. body body. y",
        cancelled: "cancelled: body",
        repeated: "completed: body body body. body body. y",
        retried: "completed: body body body. body body. y",
    },
};

const SUB_WORKFLOW: Situation = Situation {
    name: "sub-workflow",
    definition: "name: tested
nodes:
- {id: x, type: workflow, config: {workflowName: inner}}
- {id: y, type: shell, config: {command: 'cd DIR; echo y >> output'}}
edges: [{source: x, target: y}]
",
    others: &[(
        "inner.yaml",
        "name: inner
nodes:
- id: inner
  type: shell
  config: {command: 'cd DIR; echo $$ >> steps; echo inner >> output; while ! test -e go; do sleep 0.02; done; echo inner. >> output'}
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

const BACKOFF: Situation = Situation {
    name: "backoff of a node",
    definition: "name: tested
nodes:
- id: x
  type: shell
  config:
    command: 'cd DIR; echo x >> output; test -e go || exit 1; echo x. >> output'
    retryPolicy: {maxRetries: 1, initialDelayMs: 5500, jitterFactor: 0, retryableErrors: [SHELL_EXIT]}
- {id: y, type: shell, config: {command: 'cd DIR; echo y >> output'}}
edges: [{source: x, target: y}]
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
