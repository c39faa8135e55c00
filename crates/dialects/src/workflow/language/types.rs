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
    handle("output", Exit::Done, "It has completed"),
    handle("success", Exit::Done, "It has completed"),
    handle("done", Exit::Done, "It has completed"),
    handle("out", Exit::Done, "It has completed"),
    handle("source", Exit::Done, "It has completed"),
    ERROR,
];

const CREDENTIALS: Field =
    field("credentials", Shape::Map, "Name to stored secret: templates read it as `{{ NAME }}`");
const ENV: Field = field("env", Shape::Map, "Environment variables");
const TIMEOUT: Field = field("timeout", Shape::Duration, "How long one try may take, in seconds");

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
                "What is meant to start it",
            ),
            field(
                "manualConfig",
                Shape::Object(&[field(
                    "inputPayload",
                    Shape::Schema,
                    "JSON Schema that the inputs must fit",
                )]),
                "Started by a person or a program",
            ),
            field(
                "scheduleConfig",
                Shape::Object(&[
                    field("type", Shape::Choice(&["interval", "cron", "once"]), "Which of the others counts"),
                    field("intervalValue", Shape::Whole(1, u32::MAX), "How many units"),
                    field(
                        "intervalUnit",
                        Shape::Choice(&["seconds", "minutes", "hours", "days", "weeks"]),
                        "The unit",
                    ),
                    field("cronExpression", Shape::Text, "As in crontab"),
                    field("onceDate", Shape::Text, "RFC 3339"),
                    field(
                        "timezone",
                        Shape::Text,
                        "Of the cron expression, as in Europe/Berlin; UTC by default",
                    ),
                ]),
                "Started at these times",
            ),
            field(
                "webhookConfig",
                Shape::Object(&[
                    field(
                        "method",
                        Shape::Choice(&["GET", "POST", "PUT", "PATCH", "DELETE"]),
                        "Of the request",
                    ),
                    field("path", Shape::Text, "Under /hooks"),
                    field("requireAuth", Shape::Flag, "Whether a token is needed"),
                ]),
                "Started by a request",
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
            needed("url", Shape::Text, "http or https"),
            field(
                "method",
                Shape::Choice(&["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]),
                "GET by default",
            ),
            field("headers", Shape::Pairs, "Headers of the request"),
            field("queryParams", Shape::Pairs, "Laid into the query of the URL"),
            field("body", Shape::Any, "What is sent"),
            field(
                "bodyType",
                Shape::Choice(&["none", "json", "form", "xml", "text"]),
                "How the body is written; by default JSON unless it is a text",
            ),
            TIMEOUT,
            field("retries", Shape::Whole(0, 100), "Tries after the first one"),
            field(
                "authentication",
                Shape::Object(&[
                    needed(
                        "type",
                        Shape::Choice(&["none", "basic", "bearer", "apikey"]),
                        "Method of authentication",
                    ),
                    field("username", Shape::Text, "Of basic"),
                    field("password", Shape::Secret, "Of basic"),
                    field("token", Shape::Secret, "Of bearer"),
                    field("apiKey", Shape::Secret, "Of apikey"),
                    field("apiKeyHeader", Shape::Text, "The header of the key; X-API-Key by default"),
                ]),
                "Authentication of the request",
            ),
            field("responseMapping", Shape::Any, "JSONPath into the answer, or a map of name to JSONPath"),
            field(
                "errorHandling",
                Shape::Choice(&["throw", "continue", "retry"]),
                "throw: the node fails; continue: it completes with the error; retry: it is tried again, then fails",
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
            needed("language", Shape::Choice(&["python", "javascript"]), "Which one"),
            needed("code", Shape::Code, "The program; it is not a template"),
            field(
                "inputVariables",
                Shape::Variables,
                "Names that the program sees, or a map of name to value",
            ),
            field("outputVariable", Shape::Text, "The variable whose value is the output"),
            field("timeout", Shape::Whole(1, SECONDS_MAX), "Seconds that one try may take"),
            field("memoryLimit", Shape::Whole(16, 1 << 20), "Megabytes that it may use"),
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
            needed("query", Shape::Text, "The statement; put values into `params`"),
            field("params", Shape::Any, "A list of values for the statement"),
            field("connection", Shape::Any, "The name of a stored secret, or a map of its fields"),
            field("database", Shape::Text, "A file of SQLite"),
            field("tables", Shape::Map, "Name to rows: tables that exist for this query only"),
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
        about: "Chooses among its edges",
        fields: &[
            needed(
                "conditions",
                Shape::Items(&[
                    field(
                        "id",
                        Shape::Text,
                        "The branch of this condition: an edge names it as sourceHandle",
                    ),
                    needed("variable", Shape::Expression, "What is looked at"),
                    needed("operator", Shape::Choice(&OPERATORS), "How it is compared"),
                    field("value", Shape::Any, "With what"),
                    field(
                        "logicGate",
                        Shape::Choice(&["AND", "OR"]),
                        "How it joins those before it, with evaluationMode custom",
                    ),
                ]),
                "The conditions, evaluated in this order",
            ),
            field("defaultBranch", Shape::Text, "The branch that is taken when no condition holds"),
            field(
                "evaluationMode",
                Shape::Choice(&["all", "any", "custom"]),
                "What `true` means: all by default; custom joins them by logicGate, from the first on",
            ),
        ],
        handles: &[
            handle("true", Exit::Yes, "The conditions hold, by evaluationMode"),
            handle("false", Exit::No, "They do not"),
            handle("default", Exit::Default, "No condition holds"),
            ERROR,
        ],
    },
    NodeKind {
        name: "loop",
        also: &[],
        kind: Kind::Loop,
        category: "flow",
        about: "Runs the nodes behind its handle `body` again and again",
        fields: &[
            needed(
                "loopType",
                Shape::Choice(&["for_each", "while", "do_while", "count"]),
                "Which kind of loop",
            ),
            field("dataSource", Shape::Values, "for_each: the items; count: how many times"),
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
            field("breakCondition", Shape::Expression, "Asked after an iteration: no further one begins"),
            field(
                "continueCondition",
                Shape::Expression,
                "for_each and count: an iteration for which it holds does nothing; while: another name of `condition`",
            ),
            field("iteratorVariable", Shape::Text, "The item's name in the body; `item` by default"),
            field("parallelExecution", Shape::Flag, "Several iterations at a time"),
            field("maxParallel", Shape::Whole(1, 10_000), "Maximum number at a time; 10 by default"),
        ],
        handles: &[
            handle("body", Exit::Body, "Once per iteration"),
            handle("loop", Exit::Body, "Once per iteration"),
            handle("done", Exit::Done, "After the last iteration"),
            handle("output", Exit::Done, "After the last iteration"),
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
            needed("dataSource", Shape::Values, "The items"),
            needed("condition", Shape::Expression, "Evaluated for every item"),
            field("iteratorVariable", Shape::Text, "The item's name in the condition; `item` by default"),
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
                "Of a number; seconds by default",
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
            field("message", Shape::Text, "The question"),
            field(
                "approvers",
                Shape::Texts,
                "Who may answer: ids of users and names of roles; owners and admins always may",
            ),
            field("timeout", Shape::Duration, "After that it has failed; without it, it waits for ever"),
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
            needed(
                "command",
                Shape::Text,
                "The script; a value in it is one word, never a part of the program",
            ),
            field("shell", Shape::Text, "The program that gets it with -c; sh by default"),
            field("cwd", Shape::Text, "The directory"),
            field(
                "inputVariables",
                Shape::Variables,
                "Inputs and variables of the environment: names, or a map of name to value",
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
        about: "Runs another workflow; its outputs are the output",
        fields: &[
            field("workflowId", Shape::Text, "Its id"),
            field("workflowName", Shape::Text, "Its name"),
            field("version", Shape::Whole(1, u32::MAX), "The newest by default"),
            field("inputs", Shape::Map, "Its inputs"),
            TIMEOUT,
        ],
        handles: PLAIN,
    },
    NodeKind {
        name: "llm",
        also: &[],
        kind: Kind::Llm,
        category: "ai",
        about: "Asks a language model",
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
            field("frequencyPenalty", Shape::Number(-2.0, 2.0), "Against repetition"),
            field("presencePenalty", Shape::Number(-2.0, 2.0), "For new topics"),
            needed("userPromptTemplate", Shape::Text, "The prompt"),
            field("outputFormat", Shape::Choice(&["text", "json", "markdown"]), "text by default"),
            field("jsonSchema", Shape::Schema, "What the answer must fit, with outputFormat json"),
            field("enableStreaming", Shape::Flag, "Log the answer while it arrives"),
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
        about: "A language model that runs the nodes connected to it as it sees fit",
        fields: &[
            MODEL[0],
            MODEL[1],
            MODEL[2],
            MODEL[3],
            MODEL[4],
            MODEL[5],
            MODEL[6],
            MODEL[7],
            field("userPromptTemplate", Shape::Text, "What it shall do"),
            field("agentType", Shape::Choice(&["tools", "conversational", "react"]), "tools by default"),
            field("maxIterations", Shape::Whole(1, 1_000), "Rounds of thinking and acting; 10 by default"),
            field("maxTotalTokens", Shape::Whole(1, u32::MAX), "Tokens of all rounds together"),
            field("toolTimeout", Shape::Whole(1, SECONDS_MAX * 1_000), "Milliseconds for one node it runs"),
            field("returnIntermediateSteps", Shape::Flag, "Its rounds are part of the output"),
            field("enableStreaming", Shape::Flag, "Log its answers while they arrive"),
            TIMEOUT,
            CREDENTIALS,
        ],
        handles: &[
            handle(
                "tools",
                Exit::Tools,
                "Makes the target available to it; so does an edge without a handle",
            ),
            handle("done", Exit::Done, "It has completed"),
            handle("output", Exit::Done, "It has completed"),
            ERROR,
        ],
    },
    NodeKind {
        name: "memory_store",
        also: &[],
        kind: Kind::MemoryStore,
        category: "ai",
        about: "Keeps a value for this workflow, beyond the execution",
        fields: &[needed("key", Shape::Text, "Its name"), needed("value", Shape::Any, "What is kept")],
        handles: PLAIN,
    },
    NodeKind {
        name: "memory_search",
        also: &[],
        kind: Kind::MemorySearch,
        category: "ai",
        about: "Finds values that were kept for this workflow",
        fields: &[
            field("key", Shape::Text, "Exactly this name"),
            field("prefix", Shape::Text, "Names that begin with this"),
            field("query", Shape::Text, "Words that the name or the value has"),
            field("limit", Shape::Whole(1, 1_000), "Maximum number of results"),
        ],
        handles: PLAIN,
    },
];

/// Fields of every node that calls a language model.
const MODEL: [Field; 8] = [
    field("provider", Shape::Text, "Whose model: openai, openrouter, ollama, or any with `baseUrl`"),
    field("baseUrl", Shape::Text, "Address of the chat completions, without `/chat/completions`"),
    needed("model", Shape::Text, "Its name"),
    field("apiKey", Shape::Secret, "The key: `{{ NAME }}` of a stored secret"),
    field("apiKeyVariableId", Shape::Text, "The name of the stored secret that is the key"),
    field("temperature", Shape::Number(0.0, 2.0), "0 is the most predictable; 0.7 by default"),
    field("maxTokens", Shape::Whole(1, 10_000_000), "Of one answer"),
    field("systemPrompt", Shape::Text, "The first message to the model"),
];
