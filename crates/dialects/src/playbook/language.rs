//! The vocabulary of the language: the keys of every map with their meanings, and every choice among words.
//!
//! The parser refuses a key that is not here, and the JSON Schema is generated from these tables, so that both always
//! know the same words.

pub(crate) use crate::read::Key;
use crate::read::key;
use windlass_kernel::net::{EndPolicy, FailureMode, FinalFailure, OnDeny, RouterMode};
use windlass_protocol::{Backoff, CHILD_KIND, OnUnmatched, Tool, ToolRow, field, idle};

pub(crate) const ROOT: &[Key] = &[
    key("apiVersion", "Version of the language, `noetl.io/v2`"),
    key("kind", "`Playbook`"),
    key("metadata", "Name, path and description of the playbook"),
    key("keychain", "Secrets that are resolved before the first step"),
    key("executor", "Where an execution begins, how it ends and what it needs"),
    key("workload", "Defaults of the inputs; an execution never changes its inputs"),
    key("workflow", "The steps; the first one is the entry unless `executor.spec.entry_step` names another"),
    key("adapters", "Tools for kinds that are not built in, and for operations"),
    key("workbook", "Tools with names, called by `tool: {kind: workbook, name: ...}`"),
];

/// Fields of every entry of the keychain.
pub(crate) const KEYCHAIN_ENTRY: &[Key] = &[
    key("name", "Tools read it as `{{ keychain.NAME.FIELD }}`"),
    key("kind", "Where its fields come from"),
    key(
        "scope",
        "How long a token is kept: `local` for the execution, `shared` and `global` for the playbook",
    ),
    key("desc", "For people"),
];

const STORED: &[Key] = &[
    key("secret", "The name of a stored secret; the entry's own by default"),
    key("credential", "Another name of `secret`"),
    key("provider", "`windlass` or `env`"),
];

/// Kinds of keychain entries, and the keys that each has in addition.
pub(crate) const KEYCHAIN: [(&str, &[Key]); 9] = [
    ("bearer", &[key("token", "The token")]),
    ("static", &[key("map", "The fields")]),
    (
        "basic",
        &[key("username", "Who"), key("user", "Another name of `username`"), key("password", "The password")],
    ),
    (
        "api_key",
        &[
            key("key", "The key"),
            key("value", "Another name of `key`"),
            key("api_key", "Another name of `key`"),
            key("header", "The header that holds it"),
            key("in", "The part of the request that holds it"),
        ],
    ),
    ("credential", STORED),
    ("secret", STORED),
    ("env", &[key("map", "Field to variable of the worker"), key("variable", "One variable")]),
    (
        "secret_manager",
        &[
            key("provider", "`windlass` or `env`"),
            key("map", "Field to name of a stored secret"),
            idle("auth", "How other engines reach a provider", "remove it"),
        ],
    ),
    (
        "oauth2",
        &[
            key("endpoint", "The server that grants tokens"),
            key("token_url", "Another name of `endpoint`"),
            key("method", "`POST` or `GET`"),
            key("headers", "Headers of the request"),
            key("data", "Fields of the request"),
            key("auto_renew", "Whether another token is fetched when one is over; true by default"),
        ],
    ),
];

pub(crate) const METADATA: &[Key] = &[
    key("name", "Executions are found by it"),
    key("path", "Place of the playbook in a catalog: `folder/name`"),
    key("version", "Any text; versions are numbered automatically"),
    key("description", "For people"),
    key("labels", "For people and tools"),
    key("tags", "For people and tools"),
];

pub(crate) const EXECUTOR: &[Key] = &[
    key("profile", "Where the playbook is meant to run; a hint"),
    key("kind", "Another name of `profile`"),
    key("name", "For people"),
    key("desc", "For people"),
    key("version", "The runtime the playbook was written for; a hint"),
    key("requires", "Tools that must exist"),
    key("spec", "Entry, end and policies"),
];

pub(crate) const REQUIRES: &[Key] = &[
    key(
        "tools",
        "Kinds of tools that the playbook uses; one that does not exist is refused before anything runs",
    ),
    idle("features", "Features of other engines", "remove it, or name kinds of tools under `tools`"),
];

pub(crate) const EXECUTOR_SPEC: &[Key] = &[
    key("entry_step", "The step that gets the first token; else the first of `workflow`"),
    key("final_step", "Runs once at the end, after success or failure"),
    key("no_next_is_error", "A step whose arcs all say no fails its branch instead of ending it"),
    key("failure", "What an unhandled failure means"),
    key("final_failure", "What a failure of the final step means"),
    key("pending_gates", "Whether a closed gate keeps the execution waiting"),
    key("templates", "Whether templates in commands and code are values or parts of the program"),
    key("policy", "Defaults for all steps"),
    idle("loop_mode", "A placement of other engines", "use `loop.spec` of the step"),
    idle("fanout", "A placement of other engines", "use `loop.spec` of the step"),
];

pub(crate) const EXECUTOR_POLICY: &[Key] = &[
    key("defaults", "What steps have that do not say otherwise"),
    key("results", "When a result is large"),
    idle("limits", "Limits are the engine's own here", "remove it"),
];

pub(crate) const RESULTS: &[Key] = &[
    key(
        "inline_max_bytes",
        "A longer result, argument or context value is stored outside of the journal; 65536 by default",
    ),
    idle("reference_first", "Large results are always references here", "remove it"),
];

pub(crate) const DEFAULTS: &[Key] = &[
    key("timeout_s", "Time for one attempt of a step, in seconds or as `\"30s\"`"),
    key("timeout", "Another name of `timeout_s`"),
];

pub(crate) const STEP: &[Key] = &[
    key("step", "The step's name, unique in the playbook; its result is found under it"),
    key("desc", "For people"),
    key("spec", "Timeout, join and admission"),
    key("args", "Arguments of all its tasks, laid over those that came with the token"),
    key("input", "Another name of `args`"),
    key("loop", "Runs the pipeline once for each item of a list"),
    key("tool", "One tool, or a list of them: the pipeline that a worker runs"),
    key("set_ctx", "Written to the context after the last task and before the arcs are evaluated"),
    key("set", "Another name of `set_ctx`, whose keys may begin with `ctx.`"),
    key("result", "When the result is large"),
    key("next", "The steps that follow when this one has ended"),
];

const BY_NAME: &str = "remove it: a large result is stored, and `{{ STEP.FIELD }}` reads it";

/// Policy of the result of a step or a task.
pub(crate) const RESULT: &[Key] = &[
    key("inline_max_bytes", "A longer result of the step is stored outside of the journal"),
    idle("preview_max_bytes", "A preview of large results in other engines", BY_NAME),
    idle("store", "Where other engines store large results", BY_NAME),
    idle("select", "Fields that other engines keep of a large result", BY_NAME),
    idle("output_select", "Fields that other engines keep of a large result", BY_NAME),
    idle("accumulate", "Results of pages in other engines", "collect them with `set_ctx`"),
];

pub(crate) const STEP_SPEC: &[Key] = &[
    key("timeout", "Time for one attempt: seconds, or `\"500ms\"`, `\"30s\"`, `\"2m\"`, `\"1h\"`"),
    key(
        "join",
        "How often the step runs when several branches lead to it: once for `each` of them, or once for `all`",
    ),
    key("policy", "Admission and life cycle"),
];

pub(crate) const STEP_POLICY: &[Key] = &[
    key("admit", "A gate before the step"),
    key("lifecycle", "Timeouts"),
    idle(
        "failure",
        "Failure policy of one step in other engines",
        "handle the failure with an arc (`when: \"{{ event.name == 'step.failed' }}\"`), or set `executor.spec.failure`",
    ),
    idle("emit", "Events of other engines", "remove it: every event is journaled"),
];

pub(crate) const LIFECYCLE: &[Key] = &[
    key("timeout_s", "Time for one attempt, in seconds or as `\"30s\"`"),
    idle("deadline_s", "A deadline of other engines", "use `timeout_s`"),
];

pub(crate) const ADMIT: &[Key] = &[
    key("rules", "The first rule that matches decides; when none does the token is not let through"),
    key("mode", "Only `exclusive`"),
    key("on_deny", "What becomes of a token that is not let through"),
    key("deadline", "After this time a waiting token fails the step"),
];

pub(crate) const ADMIT_THEN: &[Key] = &[key("allow", "Whether the token may fire the step")];

pub(crate) const RULE: &[Key] = &[
    key("when", "The condition"),
    key("then", "What follows from it"),
    key("else", "In place of `when`, as the last rule: matches always"),
];

pub(crate) const LOOP: &[Key] = &[
    key("in", "A list, or a template that returns one"),
    key("iterator", "The name of the item: `{{ iter.NAME }}`"),
    key("spec", "Order and number of iterations at a time"),
];

pub(crate) const LOOP_SPEC: &[Key] = &[
    key("mode", "One after the other, or in parallel"),
    key("max_in_flight", "Iterations at a time, when the mode is `parallel`; 10 if it is left out"),
    key("policy", "Placement of other engines; a hint"),
];

pub(crate) const LOOP_POLICY: &[Key] = &[key("exec", "`local` or `distributed`; a hint")];

pub(crate) const NEXT: &[Key] =
    &[key("spec", "How arcs are chosen"), key("arcs", "The arcs, evaluated in their order")];

pub(crate) const NEXT_SPEC: &[Key] =
    &[key("mode", "`exclusive` takes the first arc that matches, `inclusive` every one")];

pub(crate) const ARC: &[Key] = &[
    key("step", "The step that gets a token"),
    key("when", "The guard; without one the arc always matches, after a failure as well"),
    key("args", "Arguments that go with the token and never change: `{{ args.NAME }}`"),
    key("input", "Another name of `args`"),
    key("desc", "For people"),
];

/// Keys of every tool, in addition to its own fields.
pub(crate) const TOOL: &[Key] = &[
    key("kind", "Which tool"),
    key("name", "In a list, the task's label; of `workbook` and `secrets`, what to call or to read"),
    key("desc", "For people"),
    key("args", "Arguments of the task, laid over the step's"),
    key("input", "Another name of `args`"),
    key("spec", "Timeout and policy of the task"),
    key("retry", "Tries of the task when it fails: a number, `true`, or a policy"),
];

const DOUBLES: &str = "remove it: `backoff: exponential` doubles the delay, without a limit or jitter";

/// Policy of a tool's own `retry`.
pub(crate) const RETRY: &[Key] = &[
    key("max_attempts", "All tries, the first included; 3 if it is left out"),
    key("attempts", "Another name of `max_attempts`"),
    key("initial_delay", "Seconds before the first retry; 1 if it is left out"),
    key("delay", "Another name of `initial_delay`"),
    key("backoff", "How the delay grows"),
    key("backoff_multiplier", "1 for a constant delay, else the delay doubles"),
    key("retry_when", "Retries only if it is true; it reads `outcome`"),
    key("stop_when", "Retries only if it is false; it reads `outcome`"),
    idle("max_delay", "The longest delay in other engines", DOUBLES),
    idle("jitter", "Random delays of other engines", DOUBLES),
];

pub(crate) const TOOL_SPEC: &[Key] = &[
    key("policy", "What follows each outcome of the task"),
    key("timeout", "Time for one try"),
    key("result", "When the result is large"),
];

pub(crate) const TASK_POLICY: &[Key] = &[
    key("rules", "The first rule that matches the outcome decides"),
    key(
        "on_unmatched",
        "What follows when no rule matches; else an error fails the step and a success continues",
    ),
    key("mode", "Only `exclusive`"),
];

pub(crate) const THEN: &[Key] = &[
    key("do", "The action"),
    key("attempts", "Of `retry`: all tries, the first included; 3 if it is left out"),
    key("backoff", "Of `retry`: how the delay grows"),
    key("delay", "Of `retry`: seconds before the first retry, or `\"500ms\"`, `\"30s\"`"),
    key("to", "Of `jump`: the label of a task of this step, or `previous`"),
    key("set_ctx", "Written to the context before the action, whichever it is"),
    key("set_iter", "Written to the iteration before the action, whichever it is"),
    key("set", "Both in one: keys begin with `ctx.` or `iter.`"),
];

pub(crate) const WORKBOOK_ENTRY: &[Key] = &[
    key("name", "What steps call it"),
    key("desc", "For people"),
    key("tool", "The tool"),
    key("assert", "For people: what it expects and returns"),
];

/// The Kubernetes runtime of a container in other engines. The container runs next to the worker here.
pub(crate) const RUNTIME: &[Key] = &[
    key("image", "The image"),
    key("command", "The program and its arguments"),
    key("env", "Environment variables of the program"),
    idle("provider", "Where other engines run containers", RUNS_HERE),
    idle("namespace", "Of Kubernetes", RUNS_HERE),
    idle("serviceAccountName", "Of Kubernetes", RUNS_HERE),
    idle("backoffLimit", "Of Kubernetes", "use `retry` of the tool"),
    idle("activeDeadlineSeconds", "Of Kubernetes", "use `spec.timeout`"),
    idle("cleanup", "Of Kubernetes", RUNS_HERE),
    idle("resources", "Of Kubernetes", RUNS_HERE),
];

const RUNS_HERE: &str = "remove it: the worker runs the container with docker or podman";

/// Kinds of tools that other engines have built in, and a way to do their work with the tools that exist here.
pub(crate) const ELSEWHERE_BUILT_IN: [(&str, &str); 12] = [
    ("duckdb", "`kind: python` with the duckdb module, or `kind: shell` with the `duckdb` program"),
    ("ducklake", "`kind: python` with the duckdb module and its ducklake extension"),
    ("nats", "`kind: shell` with the `nats` program, or `kind: python` with the nats module"),
    ("snowflake", "`kind: python` with the snowflake module, or `kind: http` with its SQL API"),
    ("snowflake_transfer", "`kind: python` with the snowflake module"),
    (
        "transfer",
        "a task that reads and a task that writes: `kind: postgres`, `kind: http` or `kind: python`",
    ),
    ("gcs", "`kind: http` with the storage API, or `kind: shell` with the `gcloud` program"),
    ("gateway", "`kind: http`"),
    ("rhai", "`kind: python` or `kind: shell`"),
    ("iterator", "`loop` of the step"),
    ("playbooks", "`kind: playbook`, in a step with `loop`"),
    ("task_sequence", "a list of tools under `tool`"),
];

/// Kinds of keychain entries that other engines have built in.
pub(crate) const KEYS_BUILT_IN_ELSEWHERE: [&str; 4] =
    ["gcp", "google_id_token", "google_oauth", "postgres_credential"];

const WAITS: &str = "How other engines wait for the playbook";
const WAITS_HINT: &str = "remove it: the task waits for the playbook, and its result is the playbook's";

/// Tools that start or name another definition; no worker runs them.
const CALLS: [ToolRow; 2] = [
    ToolRow {
        kind: CHILD_KIND,
        about: "Another playbook, as an execution of its own",
        needs: &["path", "catalog_id"],
        fields: &[
            field("path", "The playbook, as a file in this folder or as it was registered"),
            field("catalog_id", "Another name of `path`"),
            field("version", "The number of a registered version, or `latest`"),
            field("payload", "Another name of `args`"),
            idle("return_step", WAITS, WAITS_HINT),
            idle("return_result", WAITS, WAITS_HINT),
            idle("result_step", WAITS, WAITS_HINT),
            idle("poll_interval", WAITS, WAITS_HINT),
            idle("timeout", "Time for the playbook, in other engines", "use `spec.timeout`"),
        ],
        ..ToolRow::USUAL
    },
    ToolRow { kind: "workbook", about: "A tool of the workbook", needs: &["name"], ..ToolRow::USUAL },
];

/// Returns the tools that a playbook can name.
pub(crate) fn tools() -> impl Iterator<Item = &'static ToolRow> + Clone {
    Tool::ALL.iter().map(|tool| tool.row()).filter(|row| row.in_playbooks).chain(&CALLS)
}

pub(crate) const PROFILES: [(&str, ()); 4] =
    [("local", ()), ("distributed", ()), ("auto", ()), ("hybrid", ())];

pub(crate) const FAILURES: [(&str, (FailureMode, EndPolicy)); 3] = [
    ("fail_on_any", (FailureMode::Continue, EndPolicy::FailOnAny)),
    ("fail_fast", (FailureMode::FailFast, EndPolicy::FailOnAny)),
    ("partial", (FailureMode::Continue, EndPolicy::Partial)),
];

pub(crate) const FINAL_FAILURES: [(&str, FinalFailure); 2] =
    [("fail", FinalFailure::Fail), ("partial", FinalFailure::Partial)];

/// Whether the execution completes all the same.
pub(crate) const PENDING_GATES: [(&str, bool); 2] = [("wait", false), ("complete", true)];

/// Description of a template in the text of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Templates {
    /// Any value.
    #[default]
    Values,
    /// A part of the program.
    Text,
}

pub(crate) const TEMPLATES: [(&str, Templates); 2] =
    [("values", Templates::Values), ("text", Templates::Text)];

pub(crate) const ON_DENY: [(&str, OnDeny); 2] = [("wait", OnDeny::Wait), ("discard", OnDeny::Discard)];

/// Whether the step waits for all branches that can reach it.
pub(crate) const JOINS: [(&str, bool); 2] = [("each", false), ("all", true)];

/// Whether iterations run in parallel.
pub(crate) const LOOP_MODES: [(&str, bool); 2] = [("sequential", false), ("parallel", true)];

pub(crate) const ROUTER_MODES: [(&str, RouterMode); 2] =
    [("exclusive", RouterMode::Exclusive), ("inclusive", RouterMode::Inclusive)];

/// Fields of policies with only one defined mode.
pub(crate) const POLICY_MODES: [(&str, ()); 1] = [("exclusive", ())];

pub(crate) const ON_UNMATCHED: [(&str, OnUnmatched); 2] =
    [("continue", OnUnmatched::Continue), ("fail", OnUnmatched::Fail)];

#[derive(Debug, Clone, Copy)]
pub(crate) enum Do {
    Continue,
    Retry,
    Jump,
    Break,
    Fail,
}

pub(crate) const ACTIONS: [(&str, Do); 5] = [
    ("continue", Do::Continue),
    ("retry", Do::Retry),
    ("jump", Do::Jump),
    ("break", Do::Break),
    ("fail", Do::Fail),
];

pub(crate) const BACKOFFS: [(&str, Backoff); 5] = [
    ("none", Backoff::Constant),
    ("fixed", Backoff::Constant),
    ("constant", Backoff::Constant),
    ("linear", Backoff::Linear),
    ("exponential", Backoff::Exponential),
];

/// Other names of the task before this one.
pub(crate) const PREVIOUS: [&str; 4] = ["previous", "prev", "_previous", "@previous"];

/// Iterations at a time; the kernel's bound.
pub(crate) const IN_FLIGHT_MAX: u32 = 10_000;
pub(crate) const ATTEMPTS_MAX: u32 = 1_000_000;
