//! Functions of an agent: the nodes connected to it, and three that control the execution.

use super::super::answer::ToolCall;
use super::config::{Config, Tool};
use super::prompt::cut;
use crate::failure::failure;
use crate::halt::Halt;
use crate::keeper::redact_failure;
use crate::node::{NodeContext, output, whole};
use crate::tools::ToolContext;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::timeout;
use windlass_protocol::{AgentAnswer, AgentAsk, Failure, codes};

/// Maximum size of one result in the conversation.
const RESULT_MAX: usize = 32 * 1024;
/// Names of functions, in the form that servers of models accept.
const NAME_MAX: usize = 64;

const SKIP: &str = "skip_node";
const PAUSE: &str = "pause_execution";
const FAIL: &str = "fail_execution";

pub(super) struct Toolbox {
    /// Tools by their function names.
    nodes: Vec<(String, Tool)>,
    /// Ids of all nodes of the workflow.
    ids: BTreeSet<String>,
    patience: Option<Duration>,
}

/// Meaning of a call.
enum CallMeaning {
    Request(AgentAsk),
    Invalid(String),
}

impl Toolbox {
    pub(super) fn new(config: &Config) -> Toolbox {
        let mut nodes: Vec<(String, Tool)> = Vec::new();
        for tool in &config.tools {
            let plain = function_name(&tool.node);
            let taken = |name: &str| {
                [SKIP, PAUSE, FAIL].contains(&name) || nodes.iter().any(|(other, _)| other == name)
            };
            let mut name = plain.clone();
            let mut number = 2;
            while taken(&name) {
                name = format!("{}_{number}", &plain[..plain.len().min(NAME_MAX - 4)]);
                number += 1;
            }
            nodes.push((name, tool.clone()));
        }
        let ids = config.descriptions.keys().cloned().collect();
        Toolbox { nodes, ids, patience: config.tool_timeout }
    }

    /// Returns the functions in the form for the model.
    pub(super) fn described(&self) -> Value {
        let nodes = self.nodes.iter().map(|(name, tool)| {
            let label = tool.name.as_deref().unwrap_or(&tool.node);
            let about = tool.description.as_deref().unwrap_or("Runs this node.");
            let any = || json!({ "type": "object", "additionalProperties": true });
            function(name, &format!("{label}: {about}"), tool.parameters.clone().unwrap_or_else(any))
        });
        let text = |about: &str| json!({ "type": "string", "description": about });
        let reason =
            || json!({ "type": "object", "required": ["reason"], "properties": { "reason": text("Why") } });
        let skip = json!({ "type": "object", "required": ["nodeId", "reason"],
            "properties": { "nodeId": text("The tool that will not be needed"), "reason": text("Why") } });
        let fail = json!({ "type": "object", "required": ["message"],
            "properties": { "message": text("What went wrong"), "code": text("A code for it") } });
        let own = [
            function(SKIP, "Reports that a node will not be needed in this execution", skip),
            function(PAUSE, "Pauses until a person resumes the execution", reason()),
            function(FAIL, "Fails the whole execution", fail),
        ];
        nodes.chain(own).collect()
    }

    /// Returns the result for the model. `Err` ends the agent.
    pub(super) async fn call(
        &self,
        call: &ToolCall,
        name: String,
        cx: &ToolContext,
        node: &NodeContext,
        halt: &Halt,
    ) -> Result<Value, Box<Failure>> {
        let ask = match self.parse_call(call, cx) {
            CallMeaning::Request(ask) => ask,
            CallMeaning::Invalid(why) => return Ok(json!({ "status": "refused", "reason": why })),
        };
        let gives_up = match &ask {
            AgentAsk::Fail { failure } => Some(failure.clone()),
            AgentAsk::Execute { .. } | AgentAsk::Skip { .. } | AgentAsk::Pause { .. } => None,
        };
        let waits = matches!(ask, AgentAsk::Execute { .. });
        let asked = node.call(name, ask, halt.clone());
        let answer = match self.patience.filter(|_| waits) {
            None => asked.await?,
            Some(patience) => match timeout(patience, asked).await {
                Ok(answer) => answer?,
                Err(_) => {
                    let limit = patience.as_millis();
                    return Ok(
                        json!({ "status": "timeout", "reason": format!("it has not ended within {limit} ms") }),
                    );
                }
            },
        };
        match (gives_up, answer) {
            (Some(failure), AgentAnswer::Noted) => Err(Box::new(failure)),
            (_, answer) => describe_answer(answer, cx).await,
        }
    }

    fn parse_call(&self, call: &ToolCall, cx: &ToolContext) -> CallMeaning {
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let parsed = serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object);
        let Some(mut args) = parsed else {
            return CallMeaning::Invalid(
                "the arguments are not a JSON object; call the tool again".to_owned(),
            );
        };
        // A decision is stored in the journal, so secrets that the model repeats are redacted first.
        cx.kit.keeper.redactor().value(&mut args);
        let text = |key: &str| args[key].as_str().unwrap_or_default().to_owned();
        let known = |name: &str| self.nodes.iter().find(|(other, tool)| other == name || tool.node == name);
        match call.name.as_str() {
            SKIP => match known(&text("nodeId")) {
                Some((_, tool)) => {
                    CallMeaning::Request(AgentAsk::Skip { step: tool.step, reason: text("reason") })
                }
                None => CallMeaning::Invalid(format!(
                    "there is no node `{}`; there are {}",
                    text("nodeId"),
                    self.names()
                )),
            },
            PAUSE => CallMeaning::Request(AgentAsk::Pause { reason: text("reason") }),
            FAIL => CallMeaning::Request(AgentAsk::Fail { failure: given_up(&args, cx) }),
            name => match known(name) {
                Some((_, tool)) if let Some(id) = self.hidden(tool, &args) => CallMeaning::Invalid(format!(
                    "the argument `{id}` has the name of a node; call `{name}` again without it"
                )),
                Some((_, tool)) => CallMeaning::Request(AgentAsk::Execute { step: tool.step, args }),
                None => {
                    CallMeaning::Invalid(format!("there is no tool `{name}`; there are {}", self.names()))
                }
            },
        }
    }

    /// Finds the node whose bare name an argument would hide in the tool, if the definition does not declare an
    /// argument of that name.
    fn hidden<'a>(&self, tool: &Tool, args: &'a Value) -> Option<&'a String> {
        let asks = |name: &str| {
            tool.parameters.as_ref().is_some_and(|schema| schema["properties"].get(name).is_some())
        };
        let given = args.as_object().into_iter().flat_map(Map::keys);
        given.into_iter().find(|name| **name != tool.node && self.ids.contains(*name) && !asks(name))
    }

    fn names(&self) -> String {
        let own = [SKIP, PAUSE, FAIL];
        let names: Vec<&str> = self.nodes.iter().map(|(name, _)| name.as_str()).chain(own).collect();
        names.join(", ")
    }
}

fn given_up(args: &Value, cx: &ToolContext) -> Failure {
    let code = args["code"].as_str().filter(|code| !code.is_empty()).unwrap_or(codes::AGENT_FAILED.name());
    let message =
        args["message"].as_str().filter(|text| !text.is_empty()).unwrap_or("the agent failed the execution");
    let mut failed = *output::from_error(&json!({ "code": code, "message": message }));
    redact_failure(&cx.kit.keeper.redactor(), &mut failed);
    failed
}

async fn describe_answer(answer: AgentAnswer, cx: &ToolContext) -> Result<Value, Box<Failure>> {
    Ok(match answer {
        AgentAnswer::Done { output } => {
            let output = whole(&cx.kit, &output).await?;
            json!({ "status": "completed", "output": cut(&output, RESULT_MAX) })
        }
        AgentAnswer::Failed(failure) => {
            json!({ "status": "failed", "error": { "code": failure.code, "message": failure.message } })
        }
        AgentAnswer::Cancelled => json!({ "status": "cancelled" }),
        AgentAnswer::Noted => json!({ "status": "done" }),
        AgentAnswer::Refused { why } => json!({ "status": "refused", "reason": why }),
        AgentAnswer::Stale => {
            return Err(failure(codes::STOPPED, "the agent's work was reassigned or has ended"));
        }
    })
}

fn function(name: &str, about: &str, parameters: Value) -> Value {
    let function = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("description".to_owned(), json!(about)),
        ("parameters".to_owned(), parameters),
    ]);
    json!({ "type": "function", "function": function })
}

fn function_name(node: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let name: String =
        node.chars().map(|letter| if fits(letter) { letter } else { '_' }).take(NAME_MAX).collect();
    if name.is_empty() { "node".to_owned() } else { name }
}
