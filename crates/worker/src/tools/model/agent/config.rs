//! Fields of an agent.

use crate::failure::{invalid, shown};
use crate::tools::fields::Fields;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::time::Duration;
use windlass_protocol::Failure;

const ITERATIONS: u32 = 10;
const ITERATIONS_MAX: u64 = 1_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentType {
    Tools,
    Conversational,
    React,
}

/// A node that the agent may run.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Tool {
    pub(super) step: u32,
    pub(super) node: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) description: Option<String>,
    #[serde(default)]
    pub(super) parameters: Option<Value>,
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) agent_type: AgentType,
    pub(super) max_iterations: u32,
    pub(super) max_total_tokens: Option<u64>,
    pub(super) tool_timeout: Option<Duration>,
    pub(super) return_steps: bool,
    pub(super) tools: Vec<Tool>,
    pub(super) connections: Value,
    pub(super) descriptions: Map<String, Value>,
}

impl Config {
    pub(super) fn read(fields: Fields<'_>) -> Result<Config, Box<Failure>> {
        let whole = |name: &str, max: u64| match fields.given(name) {
            None => Ok(None),
            Some(given) => {
                let number = given.as_u64().or_else(|| given.as_str()?.trim().parse().ok());
                let number = number.filter(|number| (1..=max).contains(number));
                let wanted = || fields.is_not(name, &format!("a whole number from 1 to {max}"), given);
                number.map(Some).ok_or_else(wanted)
            }
        };
        let iterations = whole("max_iterations", ITERATIONS_MAX)?.and_then(|most| u32::try_from(most).ok());
        Ok(Config {
            agent_type: agent_type(&fields)?,
            max_iterations: iterations.unwrap_or(ITERATIONS),
            max_total_tokens: whole("max_total_tokens", u64::MAX)?,
            tool_timeout: whole("tool_timeout_ms", u64::MAX)?.map(Duration::from_millis),
            return_steps: fields.flag("return_intermediate_steps")?.unwrap_or(false),
            tools: tools(&fields)?,
            connections: fields.given("connections").cloned().unwrap_or_default(),
            descriptions: fields.map("descriptions")?.cloned().unwrap_or_default(),
        })
    }
}

fn agent_type(fields: &Fields<'_>) -> Result<AgentType, Box<Failure>> {
    match fields.text("agent_type")?.as_deref() {
        None | Some("tools") => Ok(AgentType::Tools),
        Some("conversational") => Ok(AgentType::Conversational),
        Some("react") => Ok(AgentType::React),
        Some(other) => {
            let other = shown(other);
            Err(invalid(format!("`agent_type` of ai_agent is tools, conversational or react, not `{other}`")))
        }
    }
}

fn tools(fields: &Fields<'_>) -> Result<Vec<Tool>, Box<Failure>> {
    let Some(given) = fields.given("tools") else { return Ok(Vec::new()) };
    serde_json::from_value(given.clone())
        .map_err(|error| invalid(format!("`tools` of ai_agent is a list of nodes with their steps: {error}")))
}
