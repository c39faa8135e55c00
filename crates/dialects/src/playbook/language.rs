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
    key("name", "Name of the entry, which tools read as `{{ keychain.NAME.FIELD }}`"),
    key("kind", "Source of the fields"),
    key("scope", "Lifetime of a token: `local` for the execution, `shared` and `global` for the playbook"),
    key("desc", "Text for people"),
];

const STORED: &[Key] = &[
    key("secret", "Name of a stored secret; the name of the entry by default"),
    key("credential", "Another name of `secret`"),
    key("provider", "`windlass` or `env`"),
];

/// Kinds of keychain entries, and the keys that each has in addition.
pub(crate) const KEYCHAIN: [(&str, &[Key]); 9] = [
    ("bearer", &[key("token", "Token of the credential")]),
    ("static", &[key("map", "Map of the fields")]),
    (
        "basic",
        &[
            key("username", "User name"),
            key("user", "Another name of `username`"),
            key("password", "Password of the user"),
        ],
    ),
    (
        "api_key",
        &[
            key("key", "API key"),
            key("value", "Another name of `key`"),
            key("api_key", "Another name of `key`"),
            key("header", "Header of the key"),
            key("in", "Part of the request with the key"),
        ],
    ),
    ("credential", STORED),
    ("secret", STORED),
    (
        "env",
        &[
            key("map", "Map of fields to environment variables of the worker"),
            key("variable", "Single environment variable of the worker"),
        ],
    ),
    (
        "secret_manager",
        &[
            key("provider", "`windlass` or `env`"),
            key("map", "Map of fields to names of stored secrets"),
            idle("auth", "Access of other engines to a provider", "remove it"),
        ],
    ),
    (
        "oauth2",
        &[
            key("endpoint", "URL of the server that grants tokens"),
            key("token_url", "Another name of `endpoint`"),
            key("method", "`POST` or `GET`"),
            key("headers", "Headers of the request"),
            key("data", "Fields of the request"),
            key("auto_renew", "Whether a new token is fetched when one expires; true by default"),
        ],
    ),
];

pub(crate) const METADATA: &[Key] = &[
    key("name", "Name of the playbook, by which executions are found"),
    key("path", "Place of the playbook in a catalog: `folder/name`"),
    key("version", "Any text; versions are numbered automatically"),
    key("description", "Text for people"),
    key("labels", "Labels for people and tools"),
    key("tags", "Tags for people and tools"),
];

pub(crate) const EXECUTOR: &[Key] = &[
    key("profile", "Intended environment of the playbook; a hint"),
    key("kind", "Another name of `profile`"),
    key("name", "Text for people"),
    key("desc", "Text for people"),
    key("version", "Runtime that the playbook was written for; a hint"),
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
    key("entry_step", "Step that gets the first token; by default the first of `workflow`"),
    key("final_step", "Step that runs once at the end, after success or failure"),
    key("no_next_is_error", "Whether a step without a matching arc fails its branch instead of ending it"),
    key("failure", "Effect of an unhandled failure"),
    key("final_failure", "Effect of a failure of the final step"),
    key("pending_gates", "Whether a closed gate keeps the execution waiting"),
    key("templates", "Whether templates in commands and code are values or parts of the program"),
    key("policy", "Defaults for all steps"),
    idle("loop_mode", "A placement of other engines", "use `loop.spec` of the step"),
    idle("fanout", "A placement of other engines", "use `loop.spec` of the step"),
];

pub(crate) const EXECUTOR_POLICY: &[Key] = &[
    key("defaults", "Defaults of the steps"),
    key("results", "Length above which a result is large"),
    idle("limits", "Limits, which the engine sets itself", "remove it"),
];

pub(crate) const RESULTS: &[Key] = &[
    key(
        "inline_max_bytes",
        "Length above which a result, argument or context value is stored outside of the journal; 65536 by default",
    ),
    idle("reference_first", "References to large results, which are always used", "remove it"),
];

pub(crate) const DEFAULTS: &[Key] = &[
    key("timeout_s", "Time for one attempt of a step, in seconds or as `\"30s\"`"),
    key("timeout", "Another name of `timeout_s`"),
];

pub(crate) const STEP: &[Key] = &[
    key("step", "Name of the step, unique in the playbook; expressions read the result by it"),
    key("desc", "Text for people"),
    key("spec", "Timeout, join and admission"),
    key("args", "Arguments of all tasks of the step, merged over those of the token"),
    key("input", "Another name of `args`"),
    key("loop", "Runs the pipeline once for each item of a list"),
    key("tool", "One tool, or a list of them: the pipeline that a worker runs"),
    key("set_ctx", "Values written to the context after the last task, before the arcs are evaluated"),
    key("set", "Another name of `set_ctx`, whose keys may begin with `ctx.`"),
    key("result", "Length above which the result is large"),
    key("next", "Steps that follow the end of this step"),
];

const BY_NAME: &str = "remove it: a large result is stored, and `{{ STEP.FIELD }}` reads it";

/// Policy of the result of a step or a task.
pub(crate) const RESULT: &[Key] = &[
    key("inline_max_bytes", "Length above which a result of the step is stored outside of the journal"),
    idle("preview_max_bytes", "A preview of large results in other engines", BY_NAME),
    idle("store", "Storage of large results in other engines", BY_NAME),
    idle("select", "Fields that other engines keep of a large result", BY_NAME),
    idle("output_select", "Fields that other engines keep of a large result", BY_NAME),
    idle("accumulate", "Results of pages in other engines", "collect them with `set_ctx`"),
];

pub(crate) const STEP_SPEC: &[Key] = &[
    key("timeout", "Time for one attempt: seconds, or `\"500ms\"`, `\"30s\"`, `\"2m\"`, `\"1h\"`"),
    key("join", "Runs of a step that several branches lead to: one for `each` of them, or one for `all`"),
    key("policy", "Admission and life cycle"),
];

pub(crate) const STEP_POLICY: &[Key] = &[
    key("admit", "Gate before the step"),
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
    key(
        "rules",
        "Rules, of which the first that matches decides; a token without a matching rule is not admitted",
    ),
    key("mode", "Only `exclusive`"),
    key("on_deny", "Effect on a token that is not admitted"),
    key("deadline", "Time after which a waiting token fails the step"),
];

pub(crate) const ADMIT_THEN: &[Key] = &[key("allow", "Whether the token may fire the step")];

pub(crate) const RULE: &[Key] = &[
    key("when", "Condition of the rule"),
    key("then", "Effect of the rule"),
    key("else", "Replaces `when` in the last rule, which always matches"),
];

pub(crate) const LOOP: &[Key] = &[
    key("in", "List of items, or a template that returns one"),
    key("iterator", "Name of the item: `{{ iter.NAME }}`"),
    key("spec", "Order and number of iterations at a time"),
];

pub(crate) const LOOP_SPEC: &[Key] = &[
    key("mode", "Iterations in sequence, or in parallel"),
    key("max_in_flight", "Maximum number of iterations at a time with the mode `parallel`; 10 by default"),
    key("policy", "Placement of other engines; a hint"),
];

pub(crate) const LOOP_POLICY: &[Key] = &[key("exec", "`local` or `distributed`; a hint")];

pub(crate) const NEXT: &[Key] =
    &[key("spec", "Selection of arcs"), key("arcs", "Arcs, evaluated in their order")];

pub(crate) const NEXT_SPEC: &[Key] =
    &[key("mode", "`exclusive` takes the first arc that matches, `inclusive` every one")];

pub(crate) const ARC: &[Key] = &[
    key("step", "Step that gets a token"),
    key("when", "Guard; without one the arc always matches, even after a failure"),
    key("args", "Arguments of the token, which never change: `{{ args.NAME }}`"),
    key("input", "Another name of `args`"),
    key("desc", "Text for people"),
];

/// Keys of every tool, in addition to its own fields.
pub(crate) const TOOL: &[Key] = &[
    key("kind", "Kind of the tool"),
    key("name", "Label of the task in a list; for `workbook` and `secrets`, the name of the tool or secret"),
    key("desc", "Text for people"),
    key("args", "Arguments of the task, merged over those of the step"),
    key("input", "Another name of `args`"),
    key("spec", "Timeout and policy of the task"),
    key("retry", "Retries of a failed task: a number of attempts, `true`, or a policy"),
];

const DOUBLES: &str = "remove it: `backoff: exponential` doubles the delay, without a limit or jitter";

/// Policy of a tool's own `retry`.
pub(crate) const RETRY: &[Key] = &[
    key("max_attempts", "Number of attempts, including the first; 3 by default"),
    key("attempts", "Another name of `max_attempts`"),
    key("initial_delay", "Seconds before the first retry; 1 by default"),
    key("delay", "Another name of `initial_delay`"),
    key("backoff", "Growth of the delay"),
    key("backoff_multiplier", "1 for a constant delay, else the delay doubles"),
    key("retry_when", "Condition over `outcome`: only if it is true, the task is retried"),
    key("stop_when", "Condition over `outcome`: only if it is false, the task is retried"),
    idle("max_delay", "Maximum delay in other engines", DOUBLES),
    idle("jitter", "Random delays of other engines", DOUBLES),
];

pub(crate) const TOOL_SPEC: &[Key] = &[
    key("policy", "Actions after the outcome of the task"),
    key("timeout", "Maximum time of one attempt"),
    key("result", "Length above which the result is large"),
];

pub(crate) const TASK_POLICY: &[Key] = &[
    key("rules", "Rules, of which the first that matches the outcome decides"),
    key(
        "on_unmatched",
        "Action if no rule matches; by default an error fails the step and a success continues",
    ),
    key("mode", "Only `exclusive`"),
];

pub(crate) const THEN: &[Key] = &[
    key("do", "Action of the rule"),
    key("attempts", "`retry`: number of attempts, including the first; 3 by default"),
    key("backoff", "`retry`: growth of the delay"),
    key("delay", "`retry`: seconds before the first retry, or `\"500ms\"`, `\"30s\"`"),
    key("to", "`jump`: label of a task of this step, or `previous`"),
    key("set_ctx", "Values written to the context before any action"),
    key("set_iter", "Values written to the iteration before any action"),
    key("set", "Values written to the context or the iteration: keys begin with `ctx.` or `iter.`"),
];

pub(crate) const WORKBOOK_ENTRY: &[Key] = &[
    key("name", "Name of the tool in steps"),
    key("desc", "Text for people"),
    key("tool", "Definition of the tool"),
    key("assert", "Arguments and result of the tool, for people"),
];

/// The Kubernetes runtime of a container in other engines. The container runs next to the worker here.
pub(crate) const RUNTIME: &[Key] = &[
    key("image", "Image of the container"),
    key("command", "Program and its arguments"),
    key("env", "Environment variables of the program"),
    idle("provider", "Provider of containers in other engines", RUNS_HERE),
    idle("namespace", "Namespace of Kubernetes", RUNS_HERE),
    idle("serviceAccountName", "Service account of Kubernetes", RUNS_HERE),
    idle("backoffLimit", "Number of retries by Kubernetes", "use `retry` of the tool"),
    idle("activeDeadlineSeconds", "Time limit of Kubernetes", "use `spec.timeout`"),
    idle("cleanup", "Removal of pods by Kubernetes", RUNS_HERE),
    idle("resources", "Resources of Kubernetes", RUNS_HERE),
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

const WAITS: &str = "Way in which other engines wait for the playbook";
const WAITS_HINT: &str = "remove it: the task waits for the playbook, and its result is the playbook's";

/// Tools that start or name another definition; no worker runs them.
const CALLS: [ToolRow; 2] = [
    ToolRow {
        kind: CHILD_KIND,
        about: "Runs another playbook as an execution of its own",
        needs: &["path", "catalog_id"],
        fields: &[
            field("path", "Playbook: a file in this folder, or a registered name"),
            field("catalog_id", "Another name of `path`"),
            field("version", "Number of a registered version, or `latest`"),
            field("payload", "Another name of `args`"),
            idle("return_step", WAITS, WAITS_HINT),
            idle("return_result", WAITS, WAITS_HINT),
            idle("result_step", WAITS, WAITS_HINT),
            idle("poll_interval", WAITS, WAITS_HINT),
            idle("timeout", "Maximum time of the playbook in other engines", "use `spec.timeout`"),
        ],
        ..ToolRow::USUAL
    },
    ToolRow { kind: "workbook", about: "Calls a tool of the workbook", needs: &["name"], ..ToolRow::USUAL },
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

/// Values of `pending_gates`: whether the execution completes although a gate is closed.
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
