//! `ai_agent`: a model that decides when to run the nodes connected to it.
//!
//! ```text
//! model ─▶ answer, kept ─▶ calls of tools ─▶ results, kept ─▶ model ─▶ … ─▶ a text
//! ```
//! Every answer is on disk before it is used, and every result before the next request to the model. A worker that
//! takes over continues there, and so does another attempt: it repeats no request that was answered, and the engine
//! answers repeated calls with their results. An answer that was lost before it was on disk is requested again, because
//! it had no effect.
//!
//! | field | meaning |
//! |---|---|
//! | `agent_type` | `tools`, the default; `conversational`: without tools; `react`: the model writes its thoughts |
//! | `max_iterations` | maximum number of answers of the model, 10 by default |
//! | `max_total_tokens` | maximum number of tokens of all answers together |
//! | `tool_timeout_ms` | maximum wait for one call |
//! | `return_intermediate_steps` | whether the calls and their results are part of the result |
//! | `tools` | nodes that the agent may run: `{step, node, name, description, parameters}` |
//! | `connections`, `descriptions` | the workflow around it |
//!
//! The result is `{text, iterations, toolCalls, finishReason}` and `intermediateSteps`.

mod config;
mod prompt;
mod state;
mod toolbox;

use super::Model;
use super::answer::ModelAnswer;
use crate::failure::failure;
use crate::halt::Halt;
use crate::node::NodeContext;
use crate::node::meter::{API_CALLS, TOKENS_USED};
use crate::pipeline::{Call, PAUSE_MAX_MS};
use crate::tools::ToolContext;
use config::{AgentType, Config};
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use state::{Made, State};
use std::time::Duration;
use tokio::time::sleep;
use toolbox::Toolbox;
use windlass_protocol::{Failure, Level, Tool, codes};

/// Number of retries of a busy model within one attempt: a long conversation finds the model busy more often than its
/// node has attempts.
const TRIES: u32 = 3;
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Maximum wait that keeps the slot. If it is exceeded, the attempt fails, and the next one continues here.
const TRY_AGAIN_MAX: Duration = Duration::from_millis(PAUSE_MAX_MS);

pub(in crate::tools) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
    let (model, fields) = Model::read(Tool::AiAgent, &call.config)?;
    let config = Config::read(fields)?;
    let node = cx.node(Tool::AiAgent)?;
    let state = match &call.memo {
        Some(memo) => State::read(memo)?,
        None => State::new(node.work().attempt, prompt::opening(&model, &config, call, cx, node).await?),
    };
    // Counts of earlier attempts are part of the report.
    node.meter.add(TOKENS_USED, state.tokens);
    node.meter.add(API_CALLS, state.requests);
    let toolbox = Toolbox::new(&config);
    Agent { model, config, toolbox, cx, node, halt }.work(state).await
}

struct Agent<'a> {
    model: Model,
    config: Config,
    toolbox: Toolbox,
    cx: &'a ToolContext,
    node: &'a NodeContext,
    halt: Halt,
}

impl Agent<'_> {
    async fn work(&self, mut state: State) -> Result<Value, Box<Failure>> {
        loop {
            let open = state.open_calls();
            if !open.is_empty() {
                let made = join_all(open.iter().enumerate().map(|(index, call)| {
                    self.toolbox.call(call, state.name(index), self.cx, self.node, &self.halt)
                }));
                for (call, result) in open.iter().zip(made.await) {
                    state.add_result(call, result?);
                }
                self.store_state(&state).await?;
            } else if let Some(text) = state.last_words() {
                return Ok(self.result(&state, text));
            } else {
                self.within_limits(&state)?;
                let answer = self.request_answer(&mut state).await?;
                state.add_answer(&answer);
                self.store_state(&state).await?;
                self.log_answer(&answer).await;
            }
        }
    }

    async fn store_state(&self, state: &State) -> Result<(), Box<Failure>> {
        self.node.remember(state.memo()).await
    }

    fn within_limits(&self, state: &State) -> Result<(), Box<Failure>> {
        let Config { max_iterations, max_total_tokens, .. } = self.config;
        let exceeded = if state.rounds >= max_iterations {
            format!("the agent did not finish within {max_iterations} iterations")
        } else if max_total_tokens.is_some_and(|max| state.tokens >= max) {
            format!(
                "the agent used {} tokens, and its limit is {}",
                state.tokens,
                max_total_tokens.unwrap_or_default()
            )
        } else {
            return Ok(());
        };
        let mut failed = failure(codes::LIMIT_EXCEEDED, exceeded);
        failed.details = json!({ "iterations": state.rounds, "tokensUsed": state.tokens });
        Err(failed)
    }

    async fn request_answer(&self, state: &mut State) -> Result<ModelAnswer, Box<Failure>> {
        let mut tries = 0;
        loop {
            tries += 1;
            state.requests += 1;
            let body = self.body(state);
            let failed = match self.model.ask(body, self.cx, self.node, self.halt.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(failed) => failed,
            };
            let wanted = failed.retry_after_ms.map(Duration::from_millis).unwrap_or_default();
            let wait = (TRY_AGAIN * 2_u32.pow(tries - 1)).max(wanted);
            if tries >= TRIES || wait > TRY_AGAIN_MAX || !failed.is_retryable() || self.halt.is_requested() {
                // Failed requests also count in the next attempt.
                self.store_state(state).await?;
                return Err(failed);
            }
            let said = format!("{}; the request is repeated in {} s", failed.message, wait.as_secs());
            self.cx.lines.say(Level::Warn, &said, None).await;
            let mut halt = self.halt.clone();
            tokio::select! {
                () = sleep(wait) => {}
                _ = halt.requested() => return Err(failed),
            }
        }
    }

    fn body(&self, state: &State) -> Map<String, Value> {
        let mut body = Map::from_iter([("messages".to_owned(), Value::Array(state.messages.clone()))]);
        if self.config.agent_type != AgentType::Conversational {
            body.insert("tools".to_owned(), self.toolbox.described());
            body.insert("tool_choice".to_owned(), json!("auto"));
        }
        body
    }

    /// Writes the agent's thoughts and decisions to the log.
    async fn log_answer(&self, answer: &ModelAnswer) {
        let streamed = self.model.stream;
        if let Some(text) = answer.text.as_deref().filter(|text| !text.is_empty() && !streamed) {
            self.cx.lines.say(Level::Info, text, None).await;
        }
        for call in &answer.calls {
            let arguments = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!(call.arguments));
            self.cx.lines.say(Level::Info, &format!("calls {}", call.name), Some(arguments)).await;
        }
    }

    fn result(&self, state: &State, text: &str) -> Value {
        let mut result = json!({ "text": text, "iterations": state.rounds, "toolCalls": state.made.len(),
            "finishReason": state.finish });
        if self.config.return_steps {
            let step = |made: &Made| {
                json!({ "iteration": made.round, "tool": made.tool, "arguments": made.arguments,
                "result": made.result })
            };
            result["intermediateSteps"] = state.made.iter().map(step).collect();
        }
        result
    }
}
