//! The node types.

use super::{Exit, Field, Handle, Kind, NodeKind, OPERATORS, Shape};

const fn field(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, shape, needed: false }
}

const fn needed(name: &'static str, shape: Shape, about: &'static str) -> Field {
    Field { name, about, shape, needed: true }
}

const fn handle(name: &'static str, exit: Exit, about: &'static str) -> Handle {
    Handle { name, about, exit }
}

const ERROR: Handle = handle("error", Exit::Error, "It has failed; the failure is handled then");

/// Handle of a node with a single one. Drawings have several names for it, or none.
const PLAIN: &[Handle] = &[
    handle("output", Exit::Done, "The node has completed"),
    handle("success", Exit::Done, "The node has completed"),
    handle("done", Exit::Done, "The node has completed"),
    handle("out", Exit::Done, "The node has completed"),
    handle("source", Exit::Done, "The node has completed"),
    ERROR,
];

const CREDENTIALS: Field =
    field("credentials", Shape::Map, "Map of names to stored secrets, which templates read as `{{ NAME }}`");
const ENV: Field = field("env", Shape::Map, "Environment variables");
const TIMEOUT: Field = field("timeout", Shape::Duration, "Maximum time of one attempt, in seconds");

const SECONDS_MAX: u32 = 86_400;

pub(crate) const NODE_TYPES: &[NodeKind] = &[
    NodeKind {
        name: "trigger",
        also: &[],
        kind: Kind::Trigger,
        category: "core",
        about: "Starts the workflow; its output is the inputs",
        fields: &[
            field(
                "triggerMode",
                Shape::Choice(&["chat", "manual", "schedule", "webhook"]),
                "Intended way to start the workflow",
            ),
            field(
                "manualConfig",
                Shape::Object(&[field("inputPayload", Shape::Schema, "JSON Schema of the inputs")]),
                "Settings of a start by a person or a program",
            ),
            field(
                "scheduleConfig",
                Shape::Object(&[
                    field("type", Shape::Choice(&["interval", "cron", "once"]), "Kind of schedule"),
                    field("intervalValue", Shape::Whole(1, u32::MAX), "Number of units between two starts"),
                    field(
                        "intervalUnit",
                        Shape::Choice(&["seconds", "minutes", "hours", "days", "weeks"]),
                        "Unit of `intervalValue`",
                    ),
                    field("cronExpression", Shape::Text, "Cron expression, as in crontab"),
                    field("onceDate", Shape::Text, "Time of the start, in RFC 3339"),
                    field(
                        "timezone",
                        Shape::Text,
                        "Time zone of the cron expression, as in Europe/Berlin; UTC by default",
                    ),
                ]),
                "Settings of starts by time",
            ),
            field(
                "webhookConfig",
                Shape::Object(&[
                    field(
                        "method",
                        Shape::Choice(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
                        "Method of the request",
                    ),
                    field("path", Shape::Text, "Path of the hook, under /hooks"),
                    field("requireAuth", Shape::Flag, "Whether the request needs a token"),
                ]),
                "Settings of starts by a request",
            ),
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "http_api",
        also: &["http_request"],
        kind: Kind::HttpApi,
        category: "integration",
        about: "Sends a request to a server",
        fields: &[
            needed("url", Shape::Text, "URL with http or https"),
            field(
                "method",
                Shape::Choice(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
                "Method of the request; GET by default",
            ),
            field("headers", Shape::Pairs, "Headers of the request"),
            field("queryParams", Shape::Pairs, "Parameters added to the query of the URL"),
            field("body", Shape::Any, "Body of the request"),
            field(
                "bodyType",
                Shape::Choice(&["none", "json", "form", "xml", "text"]),
                "Format of the body; by default text for a string, otherwise JSON",
            ),
            TIMEOUT,
            field("retries", Shape::Whole(0, 100), "Number of retries"),
            field(
                "authentication",
                Shape::Object(&[
                    needed(
                        "type",
                        Shape::Choice(&["none", "basic", "bearer", "apikey"]),
                        "Method of authentication",
                    ),
                    field("username", Shape::Text, "User name of basic authentication"),
                    field("password", Shape::Secret, "Password of basic authentication"),
                    field("token", Shape::Secret, "Token of bearer authentication"),
                    field("apiKey", Shape::Secret, "Key of apikey authentication"),
                    field("apiKeyHeader", Shape::Text, "Header of the key; X-API-Key by default"),
                ]),
                "Authentication of the request",
            ),
            field(
                "responseMapping",
                Shape::Any,
                "JSONPath into the response, or a map of names to JSONPaths",
            ),
            field(
                "errorHandling",
                Shape::Choice(&["throw", "continue", "retry"]),
                "throw: the node fails; continue: it completes with the error; retry: it is retried, then fails",
            ),
            CREDENTIALS,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "code",
        also: &[],
        kind: Kind::Code,
        category: "integration",
        about: "Runs Python or JavaScript",
        fields: &[
            needed("language", Shape::Choice(&["python", "javascript"]), "Language of the program"),
            needed("code", Shape::Code, "Program; it is not a template"),
            field(
                "inputVariables",
                Shape::Variables,
                "List of variables that the program reads, or a map of names to values",
            ),
            field("outputVariable", Shape::Text, "Variable whose value is the output"),
            field("timeout", Shape::Whole(1, SECONDS_MAX), "Maximum time of one attempt, in seconds"),
            field("memoryLimit", Shape::Whole(16, 1 << 20), "Maximum memory of the program, in megabytes"),
            field("pipDependencies", Shape::Texts, "Packages that the program imports"),
            CREDENTIALS,
            ENV,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "data",
        also: &["sql"],
        kind: Kind::Data,
        category: "integration",
        about: "Runs SQL",
        fields: &[
            needed("query", Shape::Text, "Statement; put values into `params`"),
            field("params", Shape::Any, "List of values for the statement"),
            field(
                "connection",
                Shape::Any,
                "Name of a stored secret, or a map of the fields of a connection",
            ),
            field("database", Shape::Text, "Database file of SQLite"),
            field("tables", Shape::Map, "Map of names to rows: tables that exist only for this query"),
            TIMEOUT,
            CREDENTIALS,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "conditional",
        also: &[],
        kind: Kind::Conditional,
        category: "flow",
        about: "Selects edges by conditions",
        fields: &[
            needed(
                "conditions",
                Shape::Items(&[
                    field("id", Shape::Text, "Branch of this condition, which an edge names as sourceHandle"),
                    needed("variable", Shape::Expression, "Left operand"),
                    needed("operator", Shape::Choice(&OPERATORS), "Operator of the comparison"),
                    field("value", Shape::Any, "Right operand"),
                    field(
                        "logicGate",
                        Shape::Choice(&["AND", "OR"]),
                        "Operator between this condition and the previous ones, with evaluationMode custom",
                    ),
                ]),
                "Conditions, evaluated in this order",
            ),
            field("defaultBranch", Shape::Text, "Branch that is taken if no condition holds"),
            field(
                "evaluationMode",
                Shape::Choice(&["all", "any", "custom"]),
                "Conditions that `true` requires: all by default; custom combines them by logicGate, from the first on",
            ),
        ],
        handles: &[
            handle("true", Exit::Yes, "The conditions hold, by evaluationMode"),
            handle("false", Exit::No, "The conditions do not hold, by evaluationMode"),
            handle("default", Exit::Default, "No condition holds"),
            ERROR,
        ],
    },
    NodeKind {
        name: "loop",
        also: &[],
        kind: Kind::Loop,
        category: "flow",
        about: "Repeats the nodes behind its handle `body`",
        fields: &[
            needed("loopType", Shape::Choice(&["for_each", "while", "do_while", "count"]), "Kind of loop"),
            field("dataSource", Shape::Values, "for_each: list of items; count: number of iterations"),
            field(
                "maxIterations",
                Shape::Whole(1, 1_000_000),
                "for_each: number of items to process; count: number of iterations; while: limit, more iterations fail the node",
            ),
            field(
                "condition",
                Shape::Expression,
                "while and do_while: the loop continues as long as this is true",
            ),
            field("breakCondition", Shape::Expression, "Ends the loop if it is true after an iteration"),
            field(
                "continueCondition",
                Shape::Expression,
                "for_each and count: an iteration for which it holds does nothing; while: another name of `condition`",
            ),
            field("iteratorVariable", Shape::Text, "Name of the item in the body; `item` by default"),
            field("parallelExecution", Shape::Flag, "Run several iterations at a time"),
            field(
                "maxParallel",
                Shape::Whole(1, 10_000),
                "Maximum number of iterations at a time; 10 by default",
            ),
        ],
        handles: &[
            handle("body", Exit::Body, "Runs once per iteration"),
            handle("loop", Exit::Body, "Runs once per iteration"),
            handle("done", Exit::Done, "Runs after the last iteration"),
            handle("output", Exit::Done, "Runs after the last iteration"),
            ERROR,
        ],
    },
    NodeKind {
        name: "filter",
        also: &[],
        kind: Kind::Filter,
        category: "flow",
        about: "Keeps the items for which a condition holds",
        fields: &[
            needed("dataSource", Shape::Values, "List of items"),
            needed("condition", Shape::Expression, "Condition that is evaluated for every item"),
            field("iteratorVariable", Shape::Text, "Name of the item in the condition; `item` by default"),
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "delay",
        also: &[],
        kind: Kind::Delay,
        category: "flow",
        about: "Waits; a restart of the engine does not shorten or lengthen it",
        fields: &[
            needed(
                "duration",
                Shape::Any,
                "A number, a string like `5m`, or an expression that returns a number",
            ),
            field(
                "unit",
                Shape::Choice(&["ms", "milliseconds", "seconds", "minutes", "hours", "days"]),
                "Unit of a number; seconds by default",
            ),
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "approval",
        also: &[],
        kind: Kind::Approval,
        category: "flow",
        about: "Waits for a person to approve or reject",
        fields: &[
            field("message", Shape::Text, "Question to the approvers"),
            field(
                "approvers",
                Shape::Texts,
                "Ids of users and names of roles that may answer; owners and admins always may",
            ),
            field(
                "timeout",
                Shape::Duration,
                "Time after which the node fails; without it, the node waits without a limit",
            ),
        ],
        handles: &[
            handle("approved", Exit::Done, "The request was approved"),
            handle("output", Exit::Done, "The request was approved"),
            handle("rejected", Exit::Error, "The request was rejected, or not answered in time"),
            ERROR,
        ],
    },
    NodeKind {
        name: "shell",
        also: &[],
        kind: Kind::Shell,
        category: "operations",
        about: "Runs commands",
        fields: &[
            needed("command", Shape::Text, "Script; a value in it is one word, never a part of the program"),
            field("shell", Shape::Text, "Shell that runs the script with -c; sh by default"),
            field("cwd", Shape::Text, "Working directory"),
            field(
                "inputVariables",
                Shape::Variables,
                "Inputs and environment variables: a list of names, or a map of names to values",
            ),
            ENV,
            TIMEOUT,
            CREDENTIALS,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "workflow",
        also: &["sub_workflow"],
        kind: Kind::Workflow,
        category: "flow",
        about: "Runs another workflow and returns its outputs",
        fields: &[
            field("workflowId", Shape::Text, "Id of the workflow"),
            field("workflowName", Shape::Text, "Name of the workflow"),
            field("version", Shape::Whole(1, u32::MAX), "Version of the workflow; the newest by default"),
            field("inputs", Shape::Map, "Inputs of the workflow"),
            TIMEOUT,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "llm",
        also: &[],
        kind: Kind::Llm,
        category: "ai",
        about: "Sends a prompt to a language model",
        fields: &[
            MODEL[0],
            MODEL[1],
            MODEL[2],
            MODEL[3],
            MODEL[4],
            MODEL[5],
            MODEL[6],
            MODEL[7],
            field("topP", Shape::Number(0.0, 1.0), "Nucleus sampling"),
            field(
                "frequencyPenalty",
                Shape::Number(-2.0, 2.0),
                "Penalty for tokens by their frequency so far",
            ),
            field("presencePenalty", Shape::Number(-2.0, 2.0), "Penalty for tokens that occurred before"),
            needed("userPromptTemplate", Shape::Text, "Prompt of the user"),
            field(
                "outputFormat",
                Shape::Choice(&["text", "json", "markdown"]),
                "Format of the answer; text by default",
            ),
            field("jsonSchema", Shape::Schema, "JSON Schema of the answer, with outputFormat json"),
            field("enableStreaming", Shape::Flag, "Log the answer as it arrives"),
            TIMEOUT,
            CREDENTIALS,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "ai_agent",
        also: &["agent"],
        kind: Kind::AiAgent,
        category: "core",
        about: "Language model that decides which of the connected nodes to run",
        fields: &[
            MODEL[0],
            MODEL[1],
            MODEL[2],
            MODEL[3],
            MODEL[4],
            MODEL[5],
            MODEL[6],
            MODEL[7],
            field("userPromptTemplate", Shape::Text, "Task of the agent"),
            field(
                "agentType",
                Shape::Choice(&["tools", "conversational", "react"]),
                "Kind of agent; tools by default",
            ),
            field("maxIterations", Shape::Whole(1, 1_000), "Maximum number of rounds; 10 by default"),
            field(
                "maxTotalTokens",
                Shape::Whole(1, u32::MAX),
                "Maximum number of tokens of all rounds together",
            ),
            field(
                "toolTimeout",
                Shape::Whole(1, SECONDS_MAX * 1_000),
                "Maximum time of one node that the agent runs, in milliseconds",
            ),
            field("returnIntermediateSteps", Shape::Flag, "Include the rounds in the output"),
            field("enableStreaming", Shape::Flag, "Log the answers as they arrive"),
            TIMEOUT,
            CREDENTIALS,
        ],
        handles: &[
            handle(
                "tools",
                Exit::Tools,
                "Makes the target a tool of the agent, like an edge without a handle",
            ),
            handle("done", Exit::Done, "The node has completed"),
            handle("output", Exit::Done, "The node has completed"),
            ERROR,
        ],
    },
    NodeKind {
        name: "memory_store",
        also: &[],
        kind: Kind::MemoryStore,
        category: "ai",
        about: "Stores a value of the workflow that outlives the execution",
        fields: &[
            needed("key", Shape::Text, "Name of the value"),
            needed("value", Shape::Any, "Value to store"),
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "memory_search",
        also: &[],
        kind: Kind::MemorySearch,
        category: "ai",
        about: "Finds stored values of the workflow",
        fields: &[
            field("key", Shape::Text, "Exact name of the value"),
            field("prefix", Shape::Text, "Prefix of the name"),
            field("query", Shape::Text, "Words in the name or the value"),
            field("limit", Shape::Whole(1, 1_000), "Maximum number of results"),
        ],
        handles: PLAIN,
    },
];

/// Fields of every node that calls a language model.
const MODEL: [Field; 8] = [
    field(
        "provider",
        Shape::Text,
        "Provider of the model: openai, openrouter, ollama, or any with `baseUrl`",
    ),
    field("baseUrl", Shape::Text, "URL of the API, without `/chat/completions`"),
    needed("model", Shape::Text, "Name of the model"),
    field("apiKey", Shape::Secret, "API key: `{{ NAME }}` of a stored secret"),
    field("apiKeyVariableId", Shape::Text, "Name of the stored secret with the key"),
    field(
        "temperature",
        Shape::Number(0.0, 2.0),
        "Randomness of the answer, 0 is the most predictable; 0.7 by default",
    ),
    field("maxTokens", Shape::Whole(1, 10_000_000), "Maximum number of tokens of one answer"),
    field("systemPrompt", Shape::Text, "First message to the model"),
];
