//! The table of tools. Dialects check documents against it, workers run what it lists, and the server looks up which
//! tools start programs. A tool is a row here, a file in the worker and a section of docs/tools.md.

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
    /// Whether it starts processes, which run as the user of the worker.
    pub runs_programs: bool,
    /// Whether its program gets all arguments of the step, and not only those that templates name.
    pub gets_args: bool,
    /// Whether playbooks can name it. Dialects make the others from nodes of workflows.
    pub in_playbooks: bool,
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
    /// Traits of most tools: playbooks can name them, and they start no program.
    pub const USUAL: ToolRow = ToolRow {
        kind: "",
        about: "",
        needs: &[],
        fields: &[],
        shared: &[],
        internal: &[],
        runs_programs: false,
        gets_args: false,
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
    field("args", "Arguments of the task, laid over the step's"),
    field("input", "Another name of `args`"),
    field("name", "In a list, the label of the task"),
    field("timeout_seconds", "Time for one try"),
];

macro_rules! tools {
    ($($tool:ident: $row:expr,)+) => {
        /// The tools that workers have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Tool { $($tool,)+ }

        impl Tool {
            pub const ALL: &'static [Tool] = &[$(Tool::$tool,)+];

            #[must_use]
            pub fn row(self) -> &'static ToolRow {
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
    pub fn kind(self) -> &'static str {
        self.row().kind
    }
}

const ENV: ToolField = field("env", "Variables laid over the environment of the worker");
const CWD: ToolField = field("cwd", "The directory it runs in");
const TIMEOUT: ToolField = field("timeout", "Seconds for one try");

tools! {
    Noop: ToolRow {
        kind: "noop",
        about: "Nothing: routes, waits at a gate, writes the context",
        fields: &[
            field("result", "What it returns"),
            field("data", "Another name of `result`"),
            field("message", "For people"),
        ],
        ..ToolRow::USUAL
    },
    Shell: ToolRow {
        kind: "shell",
        about: "Commands of a shell",
        needs: &["cmds", "command"],
        fields: &[
            field("command", "The script"),
            field("cmds", "The script as a list, which ends at the first command that fails"),
            field("shell", "The program that gets the script with `-c`; `sh` by default"),
            ENV,
            CWD,
            idle("capture", "Whether output is kept, in other engines", "remove it: output is always kept"),
        ],
        internal: &["input_variables"],
        runs_programs: true,
        ..ToolRow::USUAL
    },
    Python: ToolRow {
        kind: "python",
        about: "Python code; its result is the global `result`",
        needs: &["code", "script"],
        fields: &[
            field("code", "The source"),
            field("script", "In place of `code`: the path of a file"),
            field("libs", "Modules to import, by alias or as a list"),
            field("python", "The interpreter; `python3` by default"),
            ENV,
            CWD,
        ],
        runs_programs: true,
        gets_args: true,
        ..ToolRow::USUAL
    },
    Script: ToolRow {
        kind: "script",
        about: "A script, as a file or a text, run by its interpreter",
        needs: &["script", "code"],
        fields: &[
            field("script", "The path of a file, also as `{uri}`, or `{source: {type: inline, code}}`"),
            field("code", "In place of `script`: the text"),
            field("interpreter", "The program that runs it; by the ending of the file, else `sh`"),
            field("libs", "Modules to import, if the interpreter is Python"),
            ENV,
            CWD,
            idle("job", "The Kubernetes job of other engines", "remove it: the script runs on the worker"),
        ],
        runs_programs: true,
        gets_args: true,
        ..ToolRow::USUAL
    },
    Container: ToolRow {
        kind: "container",
        about: "A program in a container, run with docker or podman",
        needs: &["image", "runtime"],
        fields: &[
            field("image", "The image"),
            field("command", "The program and its arguments as a list, or a script for `sh`; else the image's own"),
            field("runtime", "Another place of `image` and `command`"),
            field("env", "Environment variables of the program"),
            field("cwd", "The directory in the container"),
            field("volumes", "Folders of the worker, each as `FOLDER:PATH`"),
            field("engine", "`docker` or `podman`; the first that is found by default"),
        ],
        runs_programs: true,
        ..ToolRow::USUAL
    },
    Http: ToolRow {
        kind: "http",
        about: "One HTTP request",
        needs: &["url", "endpoint"],
        fields: &[
            field("url", "The address, http or https"),
            field("endpoint", "Another name of `url`"),
            field("method", "`GET` by default"),
            field("headers", "Headers of the request"),
            field("params", "Parameters of the query"),
            field("body", "The body: a text as it is, anything else as JSON"),
            field("payload", "Another name of `body`"),
            field("json", "The body, as JSON"),
            field("form", "The body, as a form"),
            field("data", "`{query, body}`, or the body"),
            field("auth", "Credentials, or the name of a secret that holds them"),
            field("timeout", "Seconds for the call, or `{connect, read}`"),
            field("follow_redirects", "True by default, up to 10"),
            field("max_response_bytes", "A larger response fails the task"),
            field("any_status", "A response with any status is a result, not only one with 2xx"),
            field("response_mapping", "A JSONPath into the response, or a map of names to JSONPaths"),
        ],
        ..ToolRow::USUAL
    },
    Postgres: ToolRow {
        kind: "postgres",
        about: "SQL against a PostgreSQL database",
        needs: &["command", "query", "commands", "script"],
        fields: &[
            field("command", "The statements, with `;` between them"),
            field("query", "Another name of `command`"),
            field("commands", "A list of statements, or of `{command, params}`"),
            field("script", "In place of `command`: the path of a file with the statements, also as `{uri}`"),
            field("params", "Values of `$1`, `$2`, … of one statement"),
            field("auth", "The name of a secret, or a map of the fields below"),
            field("credential", "Another name of `auth`"),
            field("host", "The server, or a directory of sockets"),
            field("port", "The port of the server"),
            field("user", "The role"),
            field("password", "Its password"),
            field("database", "The database"),
            field("dbname", "Another name of `database`"),
            field("schema", "The search path"),
            field("sslmode", "`disable`, `prefer`, `require` or `verify-full`"),
            field("connection_string", "All of it as one text"),
            field("dsn", "Another name of `connection_string`"),
            field("max_result_bytes", "More bytes of rows fail the task"),
        ],
        ..ToolRow::USUAL
    },
    Artifact: ToolRow {
        kind: "artifact",
        about: "A large result, loaded by its reference",
        needs: &["ref"],
        fields: &[field("ref", "The reference: `{{ STEP._ref }}`"), field("action", "`get`")],
        ..ToolRow::USUAL
    },
    Secrets: ToolRow {
        kind: "secrets",
        about: "A secret",
        needs: &["name"],
        fields: &[field("provider", "`windlass` or `env`")],
        ..ToolRow::USUAL
    },
    Worker: ToolRow {
        kind: WORKER_KIND,
        about: "A call that a worker of a group claims and makes, also on another host",
        needs: &["group"],
        fields: &[
            field("group", "The name of the group"),
            field("operation", "What the worker does, as its claims name it; `worker` by default"),
        ],
        ..ToolRow::USUAL
    },
    Code: ToolRow {
        kind: "code",
        about: "Python or JavaScript of a node",
        needs: &["code"],
        fields: &[
            field("language", "`python` or `javascript`"),
            field("code", "The program"),
            field("input_variables", "Names that the program sees"),
            field("output_variable", "The variable whose value is the output"),
            field("memory_limit_mb", "Megabytes that it may use"),
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
        about: "The items of a list that meet a condition",
        needs: &["items"],
        fields: &[
            field("items", "The list"),
            field("iterator", "The name of an item"),
            field("condition", "The expression that keeps an item"),
            field("names", "What else the condition reads"),
        ],
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    Llm: ToolRow {
        kind: "llm",
        about: "One answer of a model",
        needs: &["base_url"],
        fields: &[
            field("output_format", "How the text is read"),
            field("json_schema", "What the output has to fit"),
        ],
        shared: MODEL,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    AiAgent: ToolRow {
        kind: "ai_agent",
        about: "A model that runs nodes as its tools",
        needs: &["base_url"],
        fields: &[
            field("agent_type", "How the model is asked for tools"),
            field("max_iterations", "Calls of the model at most"),
            field("max_total_tokens", "Tokens of all calls together at most"),
            field("tool_timeout_ms", "Time for one run of a tool"),
            field("return_intermediate_steps", "Whether the output holds the calls"),
            field("tools", "Nodes that the agent may run"),
            field("connections", "What the agent may read"),
            field("descriptions", "What the model learns about its tools"),
        ],
        shared: MODEL,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    MemoryStore: ToolRow {
        kind: "memory_store",
        about: "Keeps a value in the memory of the workflow",
        needs: &["key"],
        fields: &[field("key", "The name"), field("value", "What is kept under it")],
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    MemorySearch: ToolRow {
        kind: "memory_search",
        about: "Finds values in the memory of the workflow",
        fields: &[
            field("key", "The name"),
            field("prefix", "How names begin"),
            field("query", "A text that values contain"),
            field("limit", "Entries at most"),
        ],
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    PlanStep: ToolRow {
        kind: PLAN_STEP_KIND,
        about: "A step of a plan",
        internal: &[PlanStep::FIELD, PlanStep::SOURCES, PlanStep::ROUTING],
        runs_programs: true,
        in_playbooks: false,
        ..ToolRow::USUAL
    },
    Sql: ToolRow {
        kind: "sql",
        about: "SQL of a node, against PostgreSQL or SQLite",
        needs: &["query"],
        fields: &[
            field("query", "The statement"),
            field("params", "Values of the statement"),
            field("auth", "The name of a secret, or a map of its fields"),
            field("database", "A file of SQLite"),
            field("tables", "Tables that exist for this statement only"),
            TIMEOUT,
        ],
        in_playbooks: false,
        ..ToolRow::USUAL
    },
}

/// Fields of tools that call a model.
const MODEL: &[ToolField] = &[
    field("base_url", "The address of the model's API"),
    field("model", "The name of the model"),
    field("api_key", "The key of the API"),
    field("temperature", "Sent as it is"),
    field("max_tokens", "Sent as it is"),
    field("top_p", "Sent as it is"),
    field("frequency_penalty", "Sent as it is"),
    field("presence_penalty", "Sent as it is"),
    field("system_prompt", "What the model is"),
    field("user_prompt", "What it is asked"),
    field("stream", "Whether its text is shown as it comes"),
    TIMEOUT,
];
