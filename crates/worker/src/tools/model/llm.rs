//! `llm`: one request to a model. The result is `{text, model, finishReason, usage}`, with `output_format: json` also
//! `json`.

use super::{Model, usage};
use crate::failure::{failure, invalid, shown};
use crate::halt::Halt;
use crate::pipeline::Call;
use crate::tools::ToolContext;
use serde_json::{Map, Value, json};
use tokio::task::spawn_blocking;
use windlass_protocol::{Failure, Tool, codes};
use windlass_schemas::{Misfit, Schema};

pub(in crate::tools) async fn run(call: &Call, cx: &ToolContext, halt: Halt) -> Result<Value, Box<Failure>> {
    let (model, fields) = Model::read(Tool::Llm, &call.config)?;
    let node = cx.node(Tool::Llm)?;
    let format = match fields.text("output_format")?.as_deref() {
        None | Some("text") => Format::Text,
        Some("markdown") => Format::Markdown,
        Some("json") => Format::Json(fields.given("json_schema").cloned()),
        Some(other) => {
            let other = shown(other);
            return Err(invalid(format!("`output_format` of llm is text, json or markdown, not `{other}`")));
        }
    };
    let schema = checked(&format).await?;
    let answer = model.ask(body(&model, &format)?, cx, node, halt).await?;
    // It may be truncated later, and a cut secret would not be found.
    let text = cx.kit.keeper.redactor().text(&answer.text.unwrap_or_default()).into_owned();
    let mut result = json!({ "text": text, "model": answer.model, "finishReason": answer.finish,
        "usage": usage(answer.usage) });
    if let Format::Json(_) = &format {
        result["json"] = aside(move || parsed(&text, schema.as_ref())).await?;
    }
    Ok(result)
}

enum Format {
    Text,
    Markdown,
    Json(Option<Value>),
}

/// Refuses a schema with which the answer could not be checked, before the request.
async fn checked(format: &Format) -> Result<Option<Schema>, Box<Failure>> {
    let Format::Json(Some(schema)) = format else { return Ok(None) };
    let schema = schema.clone();
    let compile = move || {
        Schema::new(&schema)
            .map_err(|problem| invalid(format!("`json_schema` of llm cannot be used: {problem}")))
    };
    aside(compile).await.map(Some)
}

/// Runs work on another thread: compiling a schema and checking an answer take too long for the pool's thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Box<Failure>> + Send + 'static,
) -> Result<T, Box<Failure>> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(invalid(format!("the answer could not be checked: {error}"))))
}

fn body(model: &Model, format: &Format) -> Result<Map<String, Value>, Box<Failure>> {
    let Some(user) = &model.user else { return Err(invalid("llm needs `user_prompt`, a text")) };
    let asked = match format {
        Format::Text => None,
        Format::Markdown => Some("ModelAnswer in Markdown."),
        Format::Json(_) => Some("ModelAnswer with one JSON value and nothing else."),
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

/// Returns the text of the model without a surrounding Markdown fence.
fn parsed(text: &str, schema: Option<&Schema>) -> Result<Value, Box<Failure>> {
    let bare = text.trim();
    let bare = bare.strip_prefix("```json").or_else(|| bare.strip_prefix("```")).unwrap_or(bare);
    let bare = bare.strip_suffix("```").unwrap_or(bare).trim();
    let refused = |why: String| {
        let mut failed = failure(codes::PROVIDER_ERROR, format!("the model's answer {why}"));
        failed.details = json!({ "text": shown(text) });
        failed
    };
    let value = serde_json::from_str(bare).map_err(|error| refused(format!("is not JSON: {error}")))?;
    let Some(schema) = schema else { return Ok(value) };
    match schema.validate(&value) {
        Ok(()) => Ok(value),
        Err(misfits) => {
            let Some(Misfit { pointer, message }) = misfits.into_iter().next() else { return Ok(value) };
            Err(refused(format!("does not fit the schema at `{pointer}`: {message}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_taken_out_of_what_the_model_wrote_and_checked() {
        let schema = Schema::new(
            &json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } }),
        )
        .unwrap();
        assert_eq!(parsed("```json\n{\"n\": 1}\n```", Some(&schema)).unwrap(), json!({ "n": 1 }));
        assert_eq!(parsed(" [1] ", None).unwrap(), json!([1]));
        let check = |text: &str, expected: &str| {
            let refused = parsed(text, Some(&schema)).unwrap_err();
            assert_eq!(refused.code, "PROVIDER_ERROR");
            assert!(refused.message.contains(expected), "{}", refused.message);
        };
        check("Sure! Here it is", "is not JSON");
        check("{\"n\": \"x\"}", "does not fit the schema at `/n`");
    }

    #[tokio::test]
    async fn a_schema_that_cannot_be_used_is_refused_before_the_model_is_asked() {
        let refused = checked(&Format::Json(Some(json!({ "$ref": "#" })))).await.unwrap_err();
        assert_eq!(refused.code, "INVALID_CONFIGURATION");
        assert!(refused.message.contains("refers to itself"), "{}", refused.message);
    }
}
