//! `llm` and `ai_agent`: the fields of the tools that ask language models.

use super::Maker;
use crate::workflow::model::{Form, TaskForm};
use serde_json::{Map, Value, json};
use windlass_protocol::Tool;

/// URLs of the chat completions of well-known providers.
const PROVIDERS: [(&str, &str); 3] = [
    ("openai", "https://api.openai.com/v1"),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("ollama", "http://127.0.0.1:11434/v1"),
];

const MODEL: [(&str, &str); 4] = [
    ("model", "model"),
    ("temperature", "temperature"),
    ("maxTokens", "max_tokens"),
    ("systemPrompt", "system_prompt"),
];

pub(super) fn llm(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let mut config = model(maker)?;
    let fields = [
        ("topP", "top_p"),
        ("frequencyPenalty", "frequency_penalty"),
        ("presencePenalty", "presence_penalty"),
        ("userPromptTemplate", "user_prompt"),
        ("outputFormat", "output_format"),
        ("enableStreaming", "stream"),
    ];
    put(maker, &mut config, &fields);
    if let Some(schema) = maker.get("jsonSchema").and_then(crate::bounded::schema_of) {
        config.insert("json_schema".to_owned(), schema);
    }
    Some(Form::Task(TaskForm { tool: Tool::Llm.kind(), config, ..TaskForm::default() }))
}

/// Its tools follow from the edges, and are added when those are known.
pub(super) fn agent(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let mut config = model(maker)?;
    let fields = [
        ("userPromptTemplate", "user_prompt"),
        ("agentType", "agent_type"),
        ("maxIterations", "max_iterations"),
        ("maxTotalTokens", "max_total_tokens"),
        ("toolTimeout", "tool_timeout_ms"),
        ("returnIntermediateSteps", "return_intermediate_steps"),
        ("enableStreaming", "stream"),
    ];
    put(maker, &mut config, &fields);
    for (field, usual) in [("temperature", json!(0.7)), ("max_tokens", json!(1_000))] {
        config.entry(field).or_insert(usual);
    }
    if let Some(ms) = maker.duration_ms("timeout") {
        config.insert("timeout_seconds".to_owned(), json!(ms.div_ceil(1_000)));
    }
    Some(Form::Task(TaskForm { tool: Tool::AiAgent.kind(), config, ..TaskForm::default() }))
}

fn model(maker: &mut Maker<'_, '_, '_>) -> Option<Map<String, Value>> {
    let mut config = Map::new();
    let base_url = match (maker.text("baseUrl"), maker.text("provider")) {
        (Some(url), _) => url.to_owned(),
        (None, provider) => {
            let name = provider.unwrap_or("openai").to_ascii_lowercase();
            match PROVIDERS.iter().find(|(known, _)| *known == name) {
                Some((_, url)) => (*url).to_owned(),
                None => {
                    let message = format!("the provider `{name}` of {} is unknown", maker.what);
                    let config = maker.config;
                    maker.trouble(
                        config,
                        message,
                        "add `baseUrl`: where its chat completions are, without `/chat/completions`",
                    );
                    return None;
                }
            }
        }
    };
    config.insert("base_url".to_owned(), json!(base_url));
    put(maker, &mut config, &MODEL);
    if let Some(node) = maker.get("apiKey") {
        let value = maker.secret("apiKey", node);
        config.insert("api_key".to_owned(), value);
    } else if let Some(name) = maker.text("apiKeyVariableId") {
        maker.keychain.push(super::secret::stored(name, name));
        config.insert(
            "api_key".to_owned(),
            json!(format!("{{{{ keychain[{}].value }}}}", super::literal(&json!(name)))),
        );
    }
    Some(config)
}

fn put(maker: &Maker<'_, '_, '_>, config: &mut Map<String, Value>, fields: &[(&str, &str)]) {
    for (name, field) in fields {
        if let Some(node) = maker.get(name) {
            config.insert((*field).to_owned(), node.json());
        }
    }
}
