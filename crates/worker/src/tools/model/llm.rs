//! `llm`: one question to a model. The result is `{text, model, finishReason, usage}`, and `json` beside it with
//! `output_format: json`.

use super::{Model, usage};
use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use crate::pipeline::Call;
use crate::tools::Desk;
use serde_json::{Map, Value, json};
use windlass_protocol::Failure;

const TOOL: &str = "llm";
const OWN: [&str; 2] = ["output_format", "json_schema"];

pub(in crate::tools) async fn run(call: &Call, desk: &Desk, halt: Halt) -> Result<Value, Box<Failure>> {
    let (model, fields) = Model::read(TOOL, &call.config, &OWN)?;
    let node = desk.node(TOOL)?;
    let format = match fields.text("output_format")?.as_deref() {
        None | Some("text") => Format::Text,
        Some("markdown") => Format::Markdown,
        Some("json") => Format::Json(fields.given("json_schema").cloned()),
        Some(other) => {
            let other = shown(other);
            return Err(invalid(format!("`output_format` of llm is text, json or markdown, not `{other}`")));
        }
    };
    let answer = model.ask(body(&model, &format)?, desk, node, halt).await?;
    // What is told of it may be cut, and half a secret would not be found.
    let text = desk.kit.keeper.redactor().text(&answer.text.unwrap_or_default()).into_owned();
    let mut told = json!({ "text": text, "model": answer.model, "finishReason": answer.finish,
        "usage": usage(answer.usage) });
    if let Format::Json(schema) = &format {
        told["json"] = parsed(&text, schema.as_ref())?;
    }
    Ok(told)
}

enum Format {
    Text,
    Markdown,
    Json(Option<Value>),
}

fn body(model: &Model, format: &Format) -> Result<Map<String, Value>, Box<Failure>> {
    let Some(user) = &model.user else { return Err(invalid("llm needs `user_prompt`, a text")) };
    let asked = match format {
        Format::Text => None,
        Format::Markdown => Some("Answer in Markdown."),
        Format::Json(_) => Some("Answer with one JSON value and nothing else."),
    };
    let system: Vec<&str> = model.system.as_deref().into_iter().chain(asked).collect();
    let mut messages = Vec::new();
    if !system.is_empty() {
        messages.push(json!({ "role": "system", "content": system.join("\n\n") }));
    }
    messages.push(json!({ "role": "user", "content": user }));
    let mut body = Map::from_iter([("messages".to_owned(), Value::Array(messages))]);
    let wanted = match format {
        Format::Json(Some(schema)) => {
            json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema } })
        }
        Format::Json(None) => json!({ "type": "json_object" }),
        Format::Text | Format::Markdown => return Ok(body),
    };
    body.insert("response_format".to_owned(), wanted);
    Ok(body)
}

/// What the model wrote, also inside a fence of Markdown.
fn parsed(text: &str, schema: Option<&Value>) -> Result<Value, Box<Failure>> {
    let bare = text.trim();
    let bare = bare.strip_prefix("```json").or_else(|| bare.strip_prefix("```")).unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let refused = |why: String| {
        let mut failed = failure("transient_5xx", "PROVIDER_ERROR", format!("the model's answer {why}"));
        failed.details = json!({ "text": shown(text) });
        failed
    };
    let value = serde_json::from_str(bare).map_err(|error| refused(format!("is no JSON: {error}")))?;
    let Some(schema) = schema else { return Ok(value) };
    let schema = jsonschema::validator_for(schema)
        .map_err(|error| invalid(format!("`json_schema` of llm is no JSON Schema: {error}")))?;
    match schema.validate(&value) {
        Ok(()) => Ok(value),
        Err(error) => {
            Err(refused(format!("does not fit the schema at `{}`: {error}", error.instance_path())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_out_of_what_the_model_wrote_and_checked() {
        let schema =
            json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
        assert_eq!(parsed("```json\n{\"n\": 1}\n```", Some(&schema)).unwrap(), json!({ "n": 1 }));
        assert_eq!(parsed(" [1] ", None).unwrap(), json!([1]));
        let check = |text: &str, expected: &str| {
            let refused = parsed(text, Some(&schema)).unwrap_err();
            assert_eq!(refused.code, "PROVIDER_ERROR");
            assert!(refused.message.contains(expected), "{}", refused.message);
        };
        check("Sure! Here it is", "is no JSON");
        check("{\"n\": \"x\"}", "does not fit the schema at `/n`");
        assert_eq!(parsed("{}", Some(&json!({ "type": 3 }))).unwrap_err().code, "INVALID_CONFIGURATION");
    }
}
