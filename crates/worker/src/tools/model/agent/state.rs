//! State of an agent: its conversation and its counts. All of it is stored, so that another worker can continue.

use super::super::answer::{ModelAnswer, ToolCall};
use crate::failure::failure;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use windlass_protocol::{Failure, codes};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct State {
    /// Attempt in which the conversation began.
    #[serde(default = "first")]
    pub(super) began: u32,
    pub(super) messages: Vec<Value>,
    /// Number of answers of the model.
    pub(super) rounds: u32,
    pub(super) tokens: u64,
    /// Number of requests to the model, including failed ones.
    pub(super) requests: u64,
    pub(super) made: Vec<Made>,
    #[serde(default)]
    pub(super) finish: Option<String>,
}

/// A call of a tool, and its result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) round: u32,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) result: Value,
}

fn first() -> u32 {
    1
}

impl State {
    pub(super) fn new(began: u32, messages: Vec<Value>) -> State {
        State { began, messages, rounds: 0, tokens: 0, requests: 0, made: Vec::new(), finish: None }
    }

    pub(super) fn read(memo: &Value) -> Result<State, Box<Failure>> {
        State::deserialize(memo).map_err(|error| {
            let message =
                format!("the stored state of the agent cannot be read: {error}; use workers of one version");
            failure(codes::INVALID_CURSOR, message)
        })
    }

    pub(super) fn memo(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    pub(super) fn add_answer(&mut self, answer: &ModelAnswer) {
        self.rounds += 1;
        self.tokens = self.tokens.saturating_add(answer.usage.total);
        self.finish.clone_from(&answer.finish);
        self.messages.push(answer.message());
    }

    /// Returns the calls of the newest answer; none once they have results.
    pub(super) fn open_calls(&self) -> Vec<ToolCall> {
        let calls = self.messages.last().and_then(|last| last["tool_calls"].as_array());
        let call = |call: &Value| ToolCall {
            id: call["id"].as_str().unwrap_or_default().to_owned(),
            name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
            arguments: call["function"]["arguments"].as_str().unwrap_or_default().to_owned(),
        };
        calls.into_iter().flatten().map(call).collect()
    }

    /// Returns the name of a call of the newest answer, which is the same in every attempt that continues this
    /// conversation.
    pub(super) fn name(&self, index: usize) -> String {
        format!("{}.{}.{index}", self.began, self.rounds)
    }

    pub(super) fn add_result(&mut self, call: &ToolCall, result: Value) {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
        self.messages.push(json!({ "role": "tool", "tool_call_id": call.id, "content": result.to_string() }));
        self.made.push(Made { round: self.rounds, tool: call.name.clone(), arguments, result });
    }

    /// Returns the text of an answer without calls.
    pub(super) fn last_words(&self) -> Option<&str> {
        let last = self.messages.last().filter(|last| last["role"] == "assistant")?;
        Some(last["content"].as_str().unwrap_or_default())
    }
}
