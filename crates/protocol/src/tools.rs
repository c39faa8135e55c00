//! The table of tools: everything that dialects, engine, server and worker need to know about a tool without running it.
//! A tool is a row here, a file in the worker and a section of docs/tools.md.

use crate::plan::{PLAN_STEP_KIND, PlanStep};

/// Description of a tool.
#[derive(Debug, Clone, Copy)]
pub struct ToolRow {
    pub kind: &'static str,
    pub about: &'static str,
    /// A document has at least one of them.
    pub needs: &'static [&'static str],
    /// Fields of this tool only. Every tool also has those of [`COMMON_FIELDS`].
    pub fields: &'static [ToolField],
    /// Fields that it has in common with other tools.
    pub shared: &'static [ToolField],
    /// Fields that a dialect writes and that no document has.
    pub internal: &'static [&'static str],
    /// Fields that name a program or a file with one. No value may be part of them.
    pub programs: &'static [&'static str],
    /// Fields of every result of it; empty if they depend on the task.
    pub result: &'static [&'static str],
    pub effect: ToolEffect,
    pub family: ToolFamily,
    /// Whether it starts processes, which run as the user of the worker.
    pub runs_programs: bool,
    /// Whether its program gets all arguments of the step, and not only those that templates name.
    pub gets_args: bool,
    /// Whether its results are references to stored values. Results of other tools only look like some.
    pub returns_references: bool,
    /// Whether it uses the memory of its workflow.
    pub uses_memory: bool,
    /// Whether playbooks can name it. Dialects make the others from nodes of workflows.
    pub in_playbooks: bool,
}

/// What a call can change outside of the execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolEffect {
    Nothing,
    /// Nothing, if the `method` of the request is one that only reads.
    ByMethod,
    Anything,
}

/// The kind of work, for pictures of definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolFamily {
    Work,
    /// Statements in a database.
    Data,
    /// Requests to a language model.
    Model,
}

/// A key of a map in a definition.
#[derive(Debug, Clone, Copy)]
pub struct ToolField {
    pub name: &'static str,
    pub about: &'static str,
    /// Replacement for a field of other engines that has no effect here.
    pub instead: Option<&'static str>,
}

impl ToolRow {
    /// Traits of most tools: playbooks can name them, they start no program, and may change anything.
    pub const USUAL: ToolRow = ToolRow {
        kind: "",
        about: "",
        needs: &[],
        fields: &[],
        shared: &[],
        internal: &[],
        programs: &[],
        result: &[],
        effect: ToolEffect::Anything,
        family: ToolFamily::Work,
        runs_programs: false,
        gets_args: false,
        returns_references: false,
        uses_memory: false,
        in_playbooks: true,
    };

    /// Returns the fields that a document may have.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static ToolField> + Clone + use<> {
        self.fields.iter().chain(self.shared).chain(COMMON_FIELDS)
    }

    /// Returns whether a task may have the field, by a document or by the dialect.
    #[must_use]
    pub fn has_field(&self, name: &str) -> bool {
        self.all_fields().any(|field| field.name == name) || self.internal.contains(&name)
    }
}

/// Returns a field of a tool.
#[must_use]
pub const fn field(name: &'static str, about: &'static str) -> ToolField {
    ToolField { name, about, instead: None }
}

/// Returns a field of other engines that has no effect here.
#[must_use]
pub const fn idle(name: &'static str, about: &'static str, instead: &'static str) -> ToolField {
    ToolField { name, about, instead: Some(instead) }
}

/// Kind of a bound task that workers of a group claim. Its configuration is `group`, `operation` and `args`.
pub const WORKER_KIND: &str = "worker";

/// Kind of a task that is another execution.
pub const CHILD_KIND: &str = "playbook";

/// Fields of every tool.
pub const COMMON_FIELDS: &[ToolField] = &[
    field("args", "Arguments of the task, merged over those of the step"),
    field("input", "Another name of `args`"),
    field("name", "Label of the task in a list"),
    field("timeout_seconds", "Maximum time of one attempt, in seconds"),
];

macro_rules! tools {
    ($($tool:ident: $row:expr,)+) => {
        /// The tools that workers have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Tool { $($tool,)+ }

        impl Tool {
            pub const ALL: &'static [Tool] = &[$(Tool::$tool,)+];

            #[must_use]
            pub const fn row(self) -> &'static ToolRow {
                match self {
                    $(Tool::$tool => {
                        const ROW: ToolRow = $row;
                        &ROW
                    })+
                }
            }
        }
    };
}

impl Tool {
    #[must_use]
    pub fn named(kind: &str) -> Option<Tool> {
        Tool::ALL.iter().copied().find(|tool| tool.kind() == kind)
    }

    #[must_use]
    pub const fn kind(self) -> &'static str {
        self.row().kind
    }
}

const ENV: ToolField = field("env", "Variables in addition to the environment of the worker");
const CWD: ToolField = field("cwd", "Working directory");
const TIMEOUT: ToolField = field("timeout", "Maximum time of one attempt, in seconds");
/// Result of a program.
const OUTPUT: &[&str] = &["exit_code", "stdout", "stderr", "truncated", "signal"];

tools! {
    Noop: ToolRow {
        kind: "noop",
        about: "Does nothing itself: routes, waits at a gate, writes the context",
        fields: &[
            field("result", "Result of the task"),
            field("data", "Another name of `result`"),
            field("message", "Text for people"),
        ],
        effect: ToolEffect::Nothing,
        ..ToolRow::USUAL
    },
    Shell: ToolRow {
        kind: "shell",
        about: "Runs commands in a shell",
        needs: &["cmds", "command"],
        fields: &[
            field("command", "Script to run"),
            field("cmds", "Script as a list of commands, which ends at the first command that fails"),
            field("shell", "Shell that runs the script with `-c`; `sh` by default"),
            ENV,
            CWD,
            idle("capture", "Whether other engines store the output", "remove it: output is always stored"),
        ],
        internal: &["input_variables"],
        programs: &["shell"],
        result: OUTPUT,
        runs_programs: true,
        ..ToolRow::USUAL
    },
    Python: ToolRow {
        kind: "python",
        about: "Runs Python code, whose result is the global `result`",
        needs: &["code", "script"],
        fields: &[
            field("code", "Source of the program"),
            field("script", "Path of a file, in place of `code`"),
            field("libs", "Modules to import, by alias or as a list"),
            field("python", "Interpreter; `python3` by default"),
            ENV,
            CWD,
        ],
        programs: &["python"],
        runs_programs: true,
        gets_args: true,
        ..ToolRow::USUAL
    },
    Script: ToolRow {
        kind: "script",
        about: "Runs a script, a file or a text, with its interpreter",
        needs: &["script", "code"],
        fields: &[
            field("script", "Path of a file, also as `{uri}`, or `{source: {type: inline, code}}`"),
            field("code", "Text of the script, in place of `script`"),
            field("interpreter", "Program that runs the script; by default it follows from the extension of the file, or is `sh`"),
            field("libs", "Modules to import, if the interpreter is Python"),
            ENV,
            CWD,
            idle("job", "Kubernetes job of other engines", "remove it: the script runs on the worker"),
        ],
        programs: &["interpreter"],
        runs_programs: true,
        gets_args: true,
        ..ToolRow::USUAL
    },
    Container: ToolRow {
        kind: "container",
        about: "Runs a program in a container, with docker or podman",
        needs: &["image", "runtime"],
        fields: &[
            field("image", "Image of the container"),
            field("command", "Program and its arguments as a list, or a script for `sh`; by default the command of the image"),
            field("runtime", "Map with `image` and `command`, in place of these fields"),
            field("env", "Environment variables of the program"),
            field("cwd", "Working directory in the container"),
            field("volumes", "Folders of the worker, each as `FOLDER:PATH`"),
            field("engine", "`docker` or `podman`; the first that is found by default"),
        ],
        programs: &["engine"],
        result: OUTPUT,
        runs_programs: true,
        ..ToolRow::USUAL
    },
    Http: ToolRow {
        kind: "http",
        about: "Sends an HTTP request",
        needs: &["url", "endpoint"],
        fields: &[
            field("url", "URL with http or https"),
            field("endpoint", "Another name of `url`"),
            field("method", "Method of the request; `GET` by default"),
            field("headers", "Headers of the request"),
            field("params", "Parameters of the query"),
            field("body", "Body: a text unchanged, any other value as JSON"),
            field("payload", "Another name of `body`"),
            field("json", "Body, sent as JSON"),
            field("form", "Body, sent as a form"),
            field("data", "`{query, body}`, or the body"),
            field("auth", "Credentials, or the name of a secret with them"),
            field("timeout", "Maximum seconds of the request, or `{connect, read}`"),
            field("follow_redirects", "Whether up to 10 redirects are followed; true by default"),
            field("max_response_bytes", "Maximum size of the response; a larger one fails the task"),
            field("any_status", "A response with any status is a result, not only one with 2xx"),
            field("response_mapping", "JSONPath into the response, or a map of names to JSONPaths"),
        ],
        result: &["status_code", "headers", "url", "elapsed"],
        effect: ToolEffect::ByMethod,
        ..ToolRow::USUAL
    },
    Postgres: ToolRow {
        kind: "postgres",
        about: "Runs SQL in a PostgreSQL database",
        needs: &["command", "query", "commands", "script"],
        fields: &[
            field("command", "Statements, separated by `;`"),
            field("query", "Another name of `command`"),
            field("commands", "List of statements, or of `{command, params}`"),
            field("script", "Path of a file with the statements, also as `{uri}`, in place of `command`"),
            field("params", "Values of `$1`, `$2`, … of one statement"),
            field("auth", "Name of a secret, or a map of the fields below"),
            field("credential", "Another name of `auth`"),
            field("host", "Host of the server, or a directory of sockets"),
            field("port", "Port of the server"),
            field("user", "Role of the database"),
            field("password", "Password of the role"),
            field("database", "Name of the database"),
            field("dbname", "Another name of `database`"),
            field("schema", "Search path of schemas"),
            field("sslmode", "`disable`, `prefer`, `require` or `verify-full`"),
            field("connection_string", "Connection string with all of these fields"),
            field("dsn", "Another name of `connection_string`"),
            field("max_result_bytes", "Maximum size of the rows in bytes; more fail the task"),
        ],
        family: ToolFamily::Data,
        ..ToolRow::USUAL
    },
    Artifact: ToolRow {
        kind: "artifact",
        about: "Loads a large result by its reference",
        needs: &["ref"],
        fields: &[field("ref", "Reference to the result: `{{ STEP._ref }}`"), field("action", "`get`")],
        effect: ToolEffect::Nothing,
        returns_references: true,
        ..ToolRow::USUAL
    },
    Secrets: ToolRow {
        kind: "secrets",
        about: "Reads a secret",
        needs: &["name"],
        fields: &[field("provider", "`windlass` or `env`")],
        effect: ToolEffect::Nothing,
        returns_references: true,
        ..ToolRow::USUAL
    },
    Worker: ToolRow {
        kind: WORKER_KIND,
        about: "Passes a call to a worker of a group, also on another host",
        needs: &["group"],
        fields: &[
            field("group", "Name of the group"),
            field("operation", "Kind of the call in the claims of the worker; `worker` by default"),
        ],
        ..ToolRow::USUAL
    },
    Code: ToolRow {
        kind: "code",
        about: "Runs Python or JavaScript of a node",
        needs: &["code"],
        fields: &[
            field("language", "`python` or `javascript`"),
            field("code", "Program to run"),
            field("input_variables", "Variables of the program"),
            field("output_variable", "Variable whose value is the output"),
            field("memory_limit_mb", "Maximum memory of the program, in megabytes"),
            field("pip_dependencies", "Packages that the program imports"),
            ENV,
            TIMEOUT,
        ],
        in_playbooks: false,
        runs_programs: true,
        gets_args: true,
        ..ToolRow::USUAL
    },
    Filter: ToolRow {
        kind: "filter",
        about: "Selects the items of a list that meet a condition",
        needs: &["items"],
        fields: &[
            field("items", "List of items"),
            field("iterator", "Name of an item"),
            field("condition", "Condition under which an item is selected"),
            field("names", "Further names that the condition reads"),
        ],
        effect: ToolEffect::Nothing,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    Llm: ToolRow {
        kind: "llm",
        about: "Sends a prompt to a language model",
        needs: &["base_url"],
        fields: &[
            field("output_format", "Format of the answer"),
            field("json_schema", "JSON Schema of the output"),
        ],
        shared: MODEL,
        family: ToolFamily::Model,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    AiAgent: ToolRow {
        kind: "ai_agent",
        about: "Runs a language model that calls nodes as its tools",
        needs: &["base_url"],
        fields: &[
            field("agent_type", "Form in which the model receives its tools"),
            field("max_iterations", "Maximum number of calls of the model"),
            field("max_total_tokens", "Maximum number of tokens of all calls together"),
            field("tool_timeout_ms", "Maximum time of one run of a tool"),
            field("return_intermediate_steps", "Whether the output contains the calls"),
            field("tools", "Nodes that the agent may run"),
            field("connections", "Data that the agent may read"),
            field("descriptions", "Descriptions of the tools for the model"),
        ],
        shared: MODEL,
        family: ToolFamily::Model,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    MemoryStore: ToolRow {
        kind: "memory_store",
        about: "Stores a value in the memory of the workflow",
        needs: &["key"],
        fields: &[field("key", "Name of the value"), field("value", "Value to store")],
        uses_memory: true,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    MemorySearch: ToolRow {
        kind: "memory_search",
        about: "Finds values in the memory of the workflow",
        fields: &[
            field("key", "Name of the value"),
            field("prefix", "Prefix of the names"),
            field("query", "Text that values contain"),
            field("limit", "Maximum number of entries"),
        ],
        effect: ToolEffect::Nothing,
        uses_memory: true,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    PlanStep: ToolRow {
        kind: PLAN_STEP_KIND,
        about: "Runs a step of a plan",
        internal: &[PlanStep::FIELD, PlanStep::SOURCES, PlanStep::ROUTING],
        returns_references: true,
        runs_programs: true,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    Sql: ToolRow {
        kind: "sql",
        about: "Runs SQL of a node, in PostgreSQL or SQLite",
        needs: &["query"],
        fields: &[
            field("query", "Statement to run"),
            field("params", "Parameters of the statement"),
            field("auth", "Name of a secret, or a map of its fields"),
            field("database", "Database file of SQLite"),
            field("tables", "Tables that exist only for this statement"),
            TIMEOUT,
        ],
        family: ToolFamily::Data,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
}

/// Fields of tools that call a model.
const MODEL: &[ToolField] = &[
    field("base_url", "URL of the API of the model"),
    field("model", "Name of the model"),
    field("api_key", "API key"),
    field("temperature", "Randomness of the answer; passed to the API"),
    field("max_tokens", "Maximum number of tokens of one answer; passed to the API"),
    field("top_p", "Nucleus sampling; passed to the API"),
    field("frequency_penalty", "Penalty for tokens by their frequency so far; passed to the API"),
    field("presence_penalty", "Penalty for tokens that occurred before; passed to the API"),
    field("system_prompt", "First message to the model"),
    field("user_prompt", "Prompt of the user"),
    field("stream", "Whether the answer is logged as it arrives"),
    TIMEOUT,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_kinds_of_their_own_and_name_fields_that_they_have() {
        for tool in Tool::ALL {
            let row = tool.row();
            assert_eq!(Tool::named(row.kind), Some(*tool), "{}", row.kind);
            for name in row.needs.iter().chain(row.programs) {
                assert!(row.has_field(name), "{} has no field `{name}`", row.kind);
            }
            assert!(row.programs.is_empty() || row.runs_programs, "{} names a program", row.kind);
        }
    }
}
