//! Workflows with mistakes: each is reported at its line, with a repair.

use super::workflow;
use crate::compiled::check;

fn refused(nodes: &[&str], edges: &[&str], expected: &[&str]) {
    check(&workflow(nodes, edges), expected);
}

#[test]
fn wfl_35_ids_and_names_are_no_longer_than_their_columns() {
    let long = "n".repeat(101);
    let text = format!(
        "name: {}\nnodes: [{{id: {long}, type: trigger, name: {}}}]\n",
        "w".repeat(256),
        "x".repeat(256)
    );
    check(
        &text,
        &[
            "E0143 1:7 name: `name` of the workflow has 256 characters, more than 255 (shorten it)",
            "E0143 2:14 nodes[0].id: `id` of a node has 101 characters, more than 100 (shorten it)",
            &format!(
                "E0143 2:138 nodes[0].name: `name` of node `{long}` has 256 characters, more than 255 (shorten it)"
            ),
        ],
    );
}

#[test]
fn a_workflow_needs_nodes_and_each_of_them_an_id_and_a_known_type() {
    check(
        "nodes: []",
        &["E0104 1:8 nodes: the workflow has no nodes (write `nodes: [{id: start, type: trigger}, ...]`)"],
    );
    check(
        "nodes:\n- {type: trigger}\n- {id: a}\n- {id: b, type: trigr}\n- {id: c, type: 7}\n- x\n",
        &[
            "E0102 2:3 nodes[0]: a node has no `id` (add `id: ...`)",
            "E0102 3:3 nodes[1]: node `a` has no `type` (known types: trigger, http_api, code, data, conditional, loop, filter, delay, approval, shell, workflow, llm, ai_agent, memory_store, memory_search)",
            "E0144 4:17 nodes[2].type: there is no node type `trigr` (did you mean `trigger`? known types: trigger, http_api, code, data, conditional, loop, filter, delay, approval, shell, workflow, llm, ai_agent, memory_store, memory_search)",
            "E0101 5:17 nodes[3].type: `type` of node `c` must be a string, not a number (put it in quotes)",
            "E0101 6:3 nodes[4]: a node must be a map, not a string (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn unknown_unfit_and_missing_fields_are_refused() {
    refused(
        &[
            "a: shell {comand: x, timeout: soon}",
            "b: http_api {url: x, method: FETCH, retries: -1, headers: 3}",
        ],
        &["a -> b"],
        &[
            "E0102 3:32 nodes[0].config: node `a` has no `command` (add `command`: Script; a value in it is one word, never a part of the program)",
            "E0103 3:33 nodes[0].config.comand: `config` of node `a` has no key `comand` (did you mean `command`?)",
            "E0101 3:53 nodes[0].config.timeout: `timeout` of node `a` is not a duration (write seconds as a number, or \"500ms\", \"30s\", \"2m\", \"1h\"; at most 365 days)",
            "E0108 4:52 nodes[1].config.method: method `FETCH` does not exist (use `GET` or `POST` or `PUT` or `PATCH` or `DELETE` or `HEAD` or `OPTIONS`)",
            "E0118 4:68 nodes[1].config.retries: `retries` of node `b` must be a whole number from 0 to 100",
            "E0101 4:81 nodes[1].config.headers: `headers` of node `b` must be a map, not a number (write `key: value`, one line each)",
        ],
    );
}

#[test]
fn edges_lead_somewhere_by_a_handle_that_exists() {
    refused(
        &["start: trigger", "b: shell {command: x}"],
        &["start -> bb", "start.sucess -> b", "b -> start"],
        &[
            "E0107 6:27 edges[0].target: there is no node `bb` (did you mean `b`?)",
            "E0145 7:44 edges[1].sourceHandle: node `start` has no handle `sucess` (did you mean `success`?)",
            "E0146 8:23 edges[2].target: an edge leads to the trigger `start` (a trigger starts the workflow; reverse the edge)",
        ],
    );
    refused(
        &[
            "c: conditional {conditions: [{id: big, variable: inputs.n, operator: gte, value: 3}]}",
            "d: delay {duration: 1}",
        ],
        &["c.small -> d"],
        &[
            "E0145 6:40 edges[0].sourceHandle: node `c` has no handle `small` (its handles are big, true, false, default, error)",
        ],
    );
    check(
        "nodes: [{id: a, type: trigger}]\nedges: [{source: a}]",
        &["E0102 2:9 edges[0]: an edge has no `target` (add `target: ID`)"],
    );
}

#[test]
fn ids_are_unique_and_edges_make_no_circle() {
    refused(
        &["a: delay {duration: 1}", "a: delay {duration: 1}"],
        &[],
        &["E0105 4:8 nodes[1].id: node `a` is defined twice (give one of them another `id`)"],
    );
    refused(
        &["start: trigger", "a: delay {duration: 1}", "b: delay {duration: 1}"],
        &["start -> a", "a -> b", "b -> a"],
        &[
            "E0149 4:8 nodes[1].id: the edges form a cycle through `a`, `b` (connect what is to be repeated to the handle `body` of a `loop` node)",
        ],
    );
}

#[test]
fn the_body_of_a_loop_is_entered_through_it_and_left_by_it() {
    let looped = "l: loop {loopType: count, maxIterations: 2}";
    let delays = ["start: trigger", looped, "a: delay {duration: 1}", "b: delay {duration: 1}"];
    refused(
        &delays[..2],
        &["start -> l"],
        &["E0148 4:8 nodes[1].id: the loop `l` has no body (add an edge from it with `sourceHandle: body`)"],
    );
    let crossing =
        "(connect the body to the handle `body` of its loop, and later nodes to its handle `done`)";
    refused(
        &delays,
        &["start -> l", "l.body -> a", "start -> a", "l -> b"],
        &[&format!(
            "E0148 10:3 edges[2]: the edge from `start` to `a` crosses the border of the body of `l` {crossing}"
        )],
    );
    refused(
        &delays,
        &["start -> l", "l.body -> a", "a -> b", "l.done -> b"],
        &[&format!(
            "E0148 11:3 edges[3]: the edge from `l` to `b` crosses the border of the body of `l` {crossing}"
        )],
    );
}

#[test]
fn expressions_read_nodes_that_exist_and_are_written_well() {
    refused(
        &[
            "start: trigger",
            "fetch: delay {duration: 1}",
            "b: shell {command: \"ls {{ nodes['fetsch'].output.x }}\"}",
        ],
        &["start -> fetch", "fetch -> b"],
        &[
            "E0141 5:42 nodes[2].config.command: an expression reads node `fetsch`, which does not exist (did you mean `fetch`?)",
        ],
    );
    refused(
        &[
            "a: shell {command: \"echo {{ 1 + }}\"}",
            "b: filter {dataSource: [1], condition: 'item > {{ x }}'}",
        ],
        &["a -> b"],
        &[
            "E0114 3:55 nodes[0].config.command: bad expression: unexpected end of variable block (an expression is `{{ ... }}` as in Jinja: `{{ workload.count > 3 }}`)",
            "E0114 4:62 nodes[1].config.condition: `condition` of node `b` must be one expression, not a text that contains expressions (write it without braces: `inputs.name ~ '!'`)",
        ],
    );
}

#[test]
fn settings_and_policies_are_checked() {
    check(
        "nodes: [{id: a, type: trigger}]\nsettings: {failureMode: ignore, timeout: 0, maxParallel: 0, retries: 3, retryPolicy: {maxRetries: -1, backoffStrategy: random, jitterFactor: 2}}\nstatus: done\n",
        &[
            "E0108 2:25 settings.failureMode: failureMode `ignore` does not exist (use `fail_fast` or `continue_on_error` or `collect_errors`)",
            "E0118 2:42 settings.timeout: `timeout` of `settings` must be a number from 1 to 31536000000",
            "E0118 2:58 settings.maxParallel: `maxParallel` of `settings` must be a whole number from 1 to 100000",
            "E0103 2:61 settings.retries: `settings` has no key `retries` (known here: `failureMode`, `timeout`, `maxParallel`, `retryPolicy`)",
            "E0118 2:99 settings.retryPolicy.maxRetries: `maxRetries` must be a whole number from 0 to 1000",
            "E0108 3:9 status: status `done` does not exist (use `draft` or `active` or `paused` or `archived`)",
        ],
    );
}

#[test]
fn conditions_and_loops_say_what_they_need() {
    refused(
        &[
            "c: conditional {conditions: []}",
            "d: conditional {conditions: [{variable: x, operator: gte}, {variable: x, operator: near, value: 1}]}",
            "e: conditional {conditions: [{id: q, variable: x, operator: is_empty}, {id: q, variable: y, operator: is_empty}]}",
        ],
        &[],
        &[
            "E0142 3:51 nodes[0].config.conditions: node `c` needs from 1 to 64 conditions (write `[{id, variable, operator, value}]`)",
            "E0142 4:52 nodes[1].config.conditions[0]: condition `condition_1` of node `d` has no `value` (`gte` needs a value to compare with)",
            "E0108 4:106 nodes[1].config.conditions[1].operator: operator `near` does not exist (use `equals` or `not_equals` or `greater_than` or `less_than` or `gte` or `lte` or `contains` or `not_contains` or `starts_with` or `ends_with` or `is_empty` or `is_not_empty` or `regex_match`)",
            "E0142 5:94 nodes[2].config.conditions[1]: node `e` has two conditions `q` (rename one: edges refer to branches by these names)",
        ],
    );
    refused(
        &[
            "l: loop {loopType: for_each}",
            "m: loop {loopType: count}",
            "n: loop {loopType: while}",
            "o: loop {loopType: do_while, condition: x, parallelExecution: true}",
            "a: delay {duration: 1}",
        ],
        &["l.body -> a", "m.body -> a", "n.body -> a", "o.body -> a"],
        &[
            "E0142 3:31 nodes[0].config: node `l` has no `dataSource` (add it: a list, or an expression that returns one)",
            "E0142 4:31 nodes[1].config: node `m` has no number of iterations (add `maxIterations`)",
            "E0142 5:31 nodes[2].config: node `n` has no condition (add `condition`, or `breakCondition`)",
            "E0142 6:31 nodes[3].config: node `o` cannot run iterations at the same time (each iteration decides whether another one follows; omit `parallelExecution`)",
            "E0148 10:3 edges[1]: the edge from `m` to `a` crosses the border of the body of `l` (connect the body to the handle `body` of its loop, and later nodes to its handle `done`)",
            "E0148 11:3 edges[2]: the edge from `n` to `a` crosses the border of the body of `l` (connect the body to the handle `body` of its loop, and later nodes to its handle `done`)",
            "E0148 12:3 edges[3]: the edge from `o` to `a` crosses the border of the body of `l` (connect the body to the handle `body` of its loop, and later nodes to its handle `done`)",
        ],
    );
}

#[test]
fn a_schema_of_inputs_must_be_one() {
    refused(
        &["a: trigger {manualConfig: {inputPayload: {type: objekt}}}"],
        &[],
        &[
            "E0140 3:71 nodes[0].config.manualConfig.inputPayload.type: `inputPayload` of node `a` is not a usable JSON Schema: \"objekt\" is not valid under any of the schemas listed in the 'anyOf' keyword",
        ],
    );
}

#[test]
fn a_tool_of_an_agent_is_no_part_of_the_flow() {
    refused(
        &[
            "start: trigger",
            "ai: ai_agent {model: m}",
            "tool: delay {duration: 1}",
            "l: loop {loopType: count, maxIterations: 2}",
        ],
        &["start -> ai", "ai -> tool", "start -> tool", "ai.tools -> l"],
        &[
            "E0147 6:8 nodes[3].id: node `l` is a loop, which no agent can run (put it into a workflow of its own, and connect a `workflow` node)",
            "E0147 10:3 edges[2]: node `tool` is a tool of an agent and part of the flow (connect later nodes to the handle `done` of the agent; its tools have no other edges)",
        ],
    );
}

#[test]
fn only_nodes_that_work_outside_read_secrets() {
    refused(
        &["a: delay {duration: '{{ API_KEY }}'}"],
        &[],
        &[
            "E0133 3:43 nodes[0].config.duration: node `a` cannot read the secret `API_KEY` (values that this type of node reads are stored; read the secret in the node that needs it)",
        ],
    );
}

#[test]
fn a_body_that_is_said_to_be_json_is_json() {
    refused(
        &[
            "a: http_api {url: 'http://x', bodyType: json, body: '{\"n\": {{ inputs.n }}}'}",
            "b: http_api {url: 'http://x', bodyType: json, body: '{\"{{ inputs.n }}\": 1}'}",
        ],
        &[],
        &[
            "E0142 3:75 nodes[0].config.body: `body` of node `a` is not JSON: key must be a string at line 1 column 8 (write JSON; put an expression in quotes; a string that is one expression keeps the type of its value: `{\"n\": \"{{ inputs.n }}\"}`)",
            "E0142 4:75 nodes[1].config.body: `body` of node `b` has an expression as a key (keys are not templates; write the body as one expression: `{{ {inputs.key: 1} }}`)",
        ],
    );
}
