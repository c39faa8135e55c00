//! The answer of a model: whole, or piece by piece. Unknown fields are ignored.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Maximum number of calls of tools in one answer.
const CALLS_MAX: usize = 64;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct ModelAnswer {
    pub(super) text: Option<String>,
    pub(super) calls: Vec<ToolCall>,
    pub(super) finish: Option<String>,
    pub(super) model: Option<String>,
    pub(super) usage: Usage,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments as the model wrote them; usually JSON.
    pub(super) arguments: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) total: u64,
}

#[derive(Deserialize)]
struct Whole {
    choices: Vec<Choice>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<Value>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    /// Reads the arguments: a string; some servers send the object itself.
    #[serde(default)]
    arguments: Value,
}

#[derive(Deserialize, Clone, Copy, Default)]
struct Counted {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
}

impl From<Counted> for Usage {
    fn from(counted: Counted) -> Usage {
        let (prompt, completion) =
            (counted.prompt_tokens.unwrap_or_default(), counted.completion_tokens.unwrap_or_default());
        Usage { prompt, completion, total: counted.total_tokens.unwrap_or(prompt.saturating_add(completion)) }
    }
}

/// Reads an answer that arrived as a whole.
pub(super) fn whole(body: &[u8]) -> Result<ModelAnswer, String> {
    let whole: Whole = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let usage = whole.usage.unwrap_or_default().into();
    let Some(Choice { message, finish_reason }) = whole.choices.into_iter().next() else {
        return Err("it has no choices".to_owned());
    };
    let calls =
        message.tool_calls.unwrap_or_default().into_iter().enumerate().map(|(index, called)| ToolCall {
            id: called.id.filter(|id| !id.is_empty()).unwrap_or_else(|| format!("call_{index}")),
            name: called.function.name,
            arguments: match called.function.arguments {
                Value::String(text) => text,
                Value::Null => "{}".to_owned(),
                other => other.to_string(),
            },
        });
    let answer = ModelAnswer {
        text: text(message.content),
        calls: calls.collect(),
        finish: finish_reason,
        model: whole.model,
        usage,
    };
    checked(answer)
}

/// Reads a string, or a list of parts with strings.
fn text(content: Option<Value>) -> Option<String> {
    match content? {
        Value::String(text) => Some(text),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            Some(texts.collect::<Vec<_>>().concat())
        }
        _ => None,
    }
}

fn checked(answer: ModelAnswer) -> Result<ModelAnswer, String> {
    if answer.calls.len() > CALLS_MAX {
        return Err(format!("it calls more than {CALLS_MAX} tools at once"));
    }
    if answer.text.is_none() && answer.calls.is_empty() {
        return Err("it has neither a text nor a tool call".to_owned());
    }
    Ok(answer)
}

/// An answer that arrives in pieces.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    text: Option<String>,
    calls: BTreeMap<u64, ToolCall>,
    finish: Option<String>,
    model: Option<String>,
    usage: Usage,
    pub(super) over: bool,
}

impl Pieces {
    /// Takes the data of one event and returns its text.
    pub(super) fn push(&mut self, data: &str) -> Result<String, String> {
        if data.trim() == "[DONE]" {
            self.over = true;
            return Ok(String::new());
        }
        let piece: Value = serde_json::from_str(data).map_err(|error| error.to_string())?;
        if let Some(error) = piece.get("error").filter(|error| !error.is_null()) {
            return Err(format!("the server ended the stream early: {error}"));
        }
        if let Some(model) = piece["model"].as_str() {
            self.model = Some(model.to_owned());
        }
        if let Ok(counted) = Counted::deserialize(&piece["usage"]) {
            self.usage = counted.into();
        }
        let Some(choice) = piece["choices"].get(0) else { return Ok(String::new()) };
        if let Some(finish) = choice["finish_reason"].as_str() {
            self.finish = Some(finish.to_owned());
        }
        let delta = &choice["delta"];
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.called(call);
        }
        let text = delta["content"].as_str().unwrap_or_default();
        if !text.is_empty() {
            self.text.get_or_insert_default().push_str(text);
        }
        Ok(text.to_owned())
    }

    fn called(&mut self, call: &Value) {
        let index = call["index"].as_u64().unwrap_or(self.calls.len() as u64);
        let known = self.calls.entry(index).or_insert_with(|| ToolCall {
            id: format!("call_{index}"),
            name: String::new(),
            arguments: String::new(),
        });
        if let Some(id) = call["id"].as_str().filter(|id| !id.is_empty()) {
            known.id = id.to_owned();
        }
        known.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        known.arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }

    pub(super) fn end(self) -> Result<ModelAnswer, String> {
        if !self.over && self.finish.is_none() {
            return Err("it ended early".to_owned());
        }
        let Pieces { text, calls, finish, model, usage, .. } = self;
        checked(ModelAnswer { text, calls: calls.into_values().collect(), finish, model, usage })
    }
}

impl ModelAnswer {
    /// Returns the answer as a message of the conversation.
    pub(super) fn message(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".to_owned(), json!("assistant"));
        message.insert("content".to_owned(), json!(self.text));
        if !self.calls.is_empty() {
            let call = |call: &ToolCall| {
                json!({ "id": call.id, "type": "function",
                    "function": { "name": call.name, "arguments": call.arguments } })
            };
            message.insert("tool_calls".to_owned(), self.calls.iter().map(call).collect());
        }
        Value::Object(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_with_what_servers_leave_out_or_add() {
        let body = json!({
            "id": "x", "object": "chat.completion", "model": "m-1", "surprise": { "deep": [1] },
            "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": null, "refusal": null,
                "tool_calls": [
                    { "id": "call_a", "type": "function", "function": { "name": "look", "arguments": "{\"q\":1}" } },
                    { "function": { "name": "write", "arguments": { "n": 2 } } },
                ] } }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 7, "details": {} },
        });
        let answer = whole(body.to_string().as_bytes()).unwrap();
        let calls: Vec<_> =
            answer.calls.iter().map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str())).collect();
        assert_eq!(calls, [("call_a", "look", "{\"q\":1}"), ("call_1", "write", "{\"n\":2}")]);
        assert_eq!((answer.usage.total, answer.finish.as_deref()), (12, Some("tool_calls")));
        let parts = json!({ "choices": [{ "message": { "content": [{ "type": "text", "text": "a" }, { "text": "b" }] } }] });
        assert_eq!(whole(parts.to_string().as_bytes()).unwrap().text.as_deref(), Some("ab"));
    }

    #[test]
    fn a_malformed_answer_is_an_error() {
        for (body, expected) in [
            ("<html>", "expected value"),
            ("{}", "missing field `choices`"),
            (r#"{"choices": []}"#, "it has no choices"),
            (r#"{"choices": [{"message": {}}]}"#, "it has neither a text nor a tool call"),
            (r#"{"choices": [{"message": {"tool_calls": [{"function": {}}]}}]}"#, "missing field `name`"),
        ] {
            let error = whole(body.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }

    #[test]
    fn pieces_add_up_to_an_answer() {
        let mut pieces = Pieces::default();
        let piece = |delta: Value, finish: Value| {
            json!({ "choices": [{ "delta": delta, "finish_reason": finish }] }).to_string()
        };
        assert_eq!(pieces.push(&piece(json!({ "content": "Hel" }), Value::Null)).unwrap(), "Hel");
        pieces.push(&piece(json!({ "content": "lo" }), Value::Null)).unwrap();
        let call = |id: Value, name: &str, arguments: &str| json!({ "tool_calls": [{ "index": 0, "id": id, "function": { "name": name, "arguments": arguments } }] });
        pieces.push(&piece(call(json!("c1"), "look", "{\"q\""), Value::Null)).unwrap();
        pieces.push(&piece(call(Value::Null, "", ":1}"), json!("tool_calls"))).unwrap();
        pieces.push(r#"{"choices": [], "usage": {"total_tokens": 9}}"#).unwrap();
        pieces.push("[DONE]").unwrap();
        let answer = pieces.end().unwrap();
        assert_eq!((answer.text.as_deref(), answer.usage.total), (Some("Hello"), 9));
        assert_eq!(
            answer.calls,
            [ToolCall { id: "c1".into(), name: "look".into(), arguments: "{\"q\":1}".into() }]
        );
        let mut cut = Pieces::default();
        cut.push(&piece(json!({ "content": "Hel" }), Value::Null)).unwrap();
        assert_eq!(cut.end().unwrap_err(), "it ended early");
        assert!(Pieces::default().push("nonsense").is_err());
    }
}
