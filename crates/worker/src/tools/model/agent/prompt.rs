//! Begin of an agent's conversation: its task, and its workflow.

use super::super::Model;
use super::config::{AgentType, Config};
use crate::node::NodeContext;
use crate::pipeline::Call;
use crate::tools::ToolContext;
use serde_json::{Map, Value, json};
use windlass_protocol::Failure;

/// Maximum size of one value in the prompt: enough to recognise it, and room for others.
const VALUE_MAX: usize = 4 * 1024;

const TOOLS: &str = "You run nodes of a workflow. Each tool is a node; call the ones you need, with their inputs, and \
                     read their results. `skip_node` says that a node will not be needed, `pause_execution` waits for a \
                     person, `fail_execution` fails the execution. When you are done, answer with a text and call no tool.";
const REACT: &str = "Before each call say your thought in one line that begins with `Thought:`. After each result say what \
                     you observed in one line that begins with `Observation:`.";

pub(super) async fn opening(
    model: &Model,
    config: &Config,
    call: &Call,
    cx: &ToolContext,
    node: &NodeContext,
) -> Result<Vec<Value>, Box<Failure>> {
    let inputs = node.given(&cx.kit, &call.args).await?;
    let workload = node.workload(&cx.kit).await?;
    let mut system: Vec<String> = model.system.iter().cloned().collect();
    if config.agent_type != AgentType::Conversational {
        system.push(TOOLS.to_owned());
    }
    if config.agent_type == AgentType::React {
        system.push(REACT.to_owned());
    }
    let context = context(config, node, &inputs, &workload);
    system.push(format!("The workflow around you, as JSON:\n{context}"));
    let task = model.user.clone().unwrap_or_else(|| {
        format!("Do what the workflow needs with these inputs:\n{}", short(&Value::Object(inputs.clone())))
    });
    Ok(vec![
        json!({ "role": "system", "content": system.join("\n\n") }),
        json!({ "role": "user", "content": task }),
    ])
}

/// Returns the document's AIAgentContext.
fn context(config: &Config, node: &NodeContext, inputs: &Map<String, Value>, workload: &Value) -> Value {
    let identity = node.identity();
    let earlier = node.work().scope.steps.iter();
    let history = earlier.map(|(id, output)| {
        let output = inputs.get(id).unwrap_or(output);
        json!({ "nodeId": id, "status": "completed", "output": short(output) })
    });
    let mut available: Map<String, Value> =
        inputs.iter().map(|(name, value)| (name.clone(), short(value))).collect();
    available.insert("workflowInputs".to_owned(), short(workload));
    json!({
        "workflowId": identity.get("workflowId"),
        "executionId": identity.get("executionId"),
        "currentNodeId": identity.get("nodeId"),
        "nodeDescriptions": config.descriptions,
        "nodeConnections": config.connections,
        "executionHistory": history.collect::<Vec<_>>(),
        "availableData": available,
    })
}

/// Truncates a long value, with a note.
pub(super) fn short(value: &Value) -> Value {
    cut(value, VALUE_MAX)
}

pub(super) fn cut(value: &Value, max: usize) -> Value {
    let text = value.to_string();
    if text.len() <= max {
        return value.clone();
    }
    let end = (0..=max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    json!({ "cut": format!("the first {end} of {} bytes", text.len()), "text": &text[..end] })
}
