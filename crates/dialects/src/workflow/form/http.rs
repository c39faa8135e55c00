//! `http_api`: the fields of the tool that asks servers.

use super::{Maker, raw};
use crate::document::{Kind as Is, Node};
use crate::workflow::config::given;
use crate::workflow::model::{Form, TaskForm};
use serde_json::{Map, Value, json};
use windlass_expr::{Piece, pieces};
use windlass_protocol::{Action, Backoff, Rule, Tool};

/// Tries after the first one, where retrying is asked for and no number is given.
const RETRIES: u32 = 3;
/// Delay before the second try of a request that completes in spite of errors.
const DELAY_MS: u64 = 1_000;

pub(super) fn form(maker: &mut Maker<'_, '_, '_>) -> Option<Form> {
    let mut config = Map::new();
    config.insert("url".to_owned(), json!(encoded(maker.text("url")?)));
    if let Some(method) = maker.get("method") {
        config.insert("method".to_owned(), method.json());
    }
    let mut headers = maker.get("headers").map(pairs).unwrap_or_default();
    body(maker, &mut config, &mut headers)?;
    if !headers.is_empty() {
        config.insert("headers".to_owned(), Value::Object(headers));
    }
    if let Some(params) = maker.get("queryParams") {
        config.insert("params".to_owned(), Value::Object(pairs(params)));
    }
    if let Some(auth) = maker.get("authentication").and_then(|node| auth(maker, node)) {
        config.insert("auth".to_owned(), auth);
    }
    if let Some(mapping) = maker.get("responseMapping") {
        config.insert("response_mapping".to_owned(), mapping.json());
    }
    let retries = maker.whole("retries");
    let (rules, attempts_max) = match maker.text("errorHandling") {
        Some("continue") => (tolerant(retries.unwrap_or(0)), Some(1)),
        Some("retry") => (Vec::new(), Some(retries.unwrap_or(RETRIES) + 1)),
        Some(_) | None => (Vec::new(), retries.map(|retries| retries + 1)),
    };
    let timeout_ms = maker.duration_ms("timeout");
    if let Some(ms) = timeout_ms {
        config.insert("timeout".to_owned(), json!(ms as f64 / 1_000.0));
    }
    Some(Form::Task(TaskForm {
        tool: Tool::Http.kind(),
        config,
        rules,
        attempts_max,
        timeout_ms,
        ..TaskForm::default()
    }))
}

/// Returns rules under which an error that is left after the tries is the output.
fn tolerant(retries: u32) -> Vec<Rule> {
    let rule = |when: &str, action: Action| Rule {
        when: Some(when.to_owned()),
        action,
        set_ctx: Map::new(),
        set_iter: Map::new(),
    };
    let again = Action::Retry { attempts: retries + 1, backoff: Backoff::Exponential, delay_ms: DELAY_MS };
    let again = rule(&format!("outcome.error.retryable and outcome.meta.attempt <= {retries}"), again);
    let on = rule("outcome.status == 'error'", Action::Continue);
    if retries > 0 { vec![again, on] } else { vec![on] }
}

/// Reads `[{key, value}]` or a map. An editor's entry that is disabled is left out.
fn pairs(node: &Node) -> Map<String, Value> {
    let Is::List(items) = &node.kind else { return node.json().as_object().cloned().unwrap_or_default() };
    let pair = |item: &Node| {
        let off = item.get("enabled").is_some_and(|enabled| matches!(enabled.kind, Is::Bool(false)));
        let value = item.get("value").map_or(json!(""), Node::json);
        (!off).then_some((given(item, "key")?.text()?.to_owned(), value))
    };
    let mut found: Map<String, Value> = Map::new();
    for (key, value) in items.iter().filter_map(pair) {
        // A parameter may be there several times.
        match found.get_mut(&key) {
            Some(Value::Array(all)) => all.push(value),
            Some(one) => *one = json!([one.take(), value]),
            None => drop(found.insert(key, value)),
        }
    }
    found
}

/// Reads the body; `None` if a problem was reported.
fn body(
    maker: &mut Maker<'_, '_, '_>,
    config: &mut Map<String, Value>,
    headers: &mut Map<String, Value>,
) -> Option<()> {
    let Some(body) = maker.get("body") else { return Some(()) };
    let (field, kind, value) = match (maker.text("bodyType"), body.text()) {
        (Some("none"), _) => return Some(()),
        (Some("json"), None) => ("json", None, body.json()),
        (Some("json"), Some(text)) if is_written(text) => ("body", Some("application/json"), body.json()),
        (Some("json"), Some(text)) => ("json", None, json_of(body, text.trim(), maker)?),
        (Some("form"), None) => ("form", None, body.json()),
        (Some("form"), Some(_)) => ("body", Some("application/x-www-form-urlencoded"), body.json()),
        (Some("xml"), _) => ("body", Some("application/xml"), body.json()),
        (Some("text"), _) => ("body", Some("text/plain; charset=utf-8"), body.json()),
        (_, _) => ("body", None, body.json()),
    };
    let said = headers.keys().any(|key| key.eq_ignore_ascii_case("content-type"));
    if let Some(kind) = kind.filter(|_| !said) {
        headers.insert("Content-Type".to_owned(), json!(kind));
    }
    config.insert(field.to_owned(), value);
    Some(())
}

fn lone(text: &str) -> Option<String> {
    match &pieces(text.trim())[..] {
        [Piece::Expression(source)] => Some(source.clone()),
        _ => None,
    }
}

fn last_filter(source: &str) -> &str {
    source.rsplit_once('|').map_or("", |(_, filter)| filter.trim().trim_end_matches("()"))
}

/// `{{ … | tojson }}`: JSON that needs no further writing.
fn is_written(text: &str) -> bool {
    lone(text).is_some_and(|source| last_filter(&source) == "tojson")
}

/// Reads the JSON that an editor stores as a text. Its strings are templates, and a value cannot leave its string.
fn json_of(node: &Node, text: &str, maker: &mut Maker<'_, '_, '_>) -> Option<Value> {
    if lone(text).is_some() {
        return Some(json!(text));
    }
    let what = format!("`body` of {}", maker.what);
    match serde_json::from_str::<Value>(text) {
        Ok(value) if has_expression_as_key(&value) => {
            let hint = "keys are not templates; write the body as one expression: `{{ {inputs.key: 1} }}`";
            maker.trouble(node, format!("{what} has an expression as a key"), hint);
            None
        }
        Ok(value) => Some(value),
        Err(error) => {
            let hint = "write JSON; put an expression in quotes; a string that is one expression keeps the type of \
                        its value: `{\"n\": \"{{ inputs.n }}\"}`";
            maker.trouble(node, format!("{what} is not JSON: {error}"), hint);
            None
        }
    }
}

fn has_expression_as_key(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key.contains("{{") || has_expression_as_key(value))
        }
        Value::Array(items) => items.iter().any(has_expression_as_key),
        _ => false,
    }
}

/// Percent-encodes the values in the path and the query of a URL, so that they cannot change other parts of it. Values that
/// end in the filter `urlencode` or `safe` are left unchanged.
fn encoded(url: &str) -> String {
    if lone(url).is_some() {
        return url.to_owned();
    }
    let (mut written, mut before) = (String::new(), String::new());
    for piece in pieces(url) {
        match piece {
            Piece::Text(text) => {
                written.push_str(&raw(&text));
                before.push_str(&text);
            }
            Piece::Statement(source) => written.push_str(&source),
            Piece::Expression(source) => {
                let as_it_is =
                    !is_behind_host(&before) || ["urlencode", "safe"].contains(&last_filter(&source));
                written.push_str(&match as_it_is {
                    true => format!("{{{{ {source} }}}}"),
                    false => format!("{{{{ ({source}) | urlencode | replace('/', '%2F') }}}}"),
                });
                before.push('_');
            }
        }
    }
    written
}

fn is_behind_host(before: &str) -> bool {
    before.split_once("://").map_or(before, |(_, rest)| rest).contains(['/', '?', '#'])
}

fn auth(maker: &mut Maker<'_, '_, '_>, node: &Node) -> Option<Value> {
    let mut field = |name: &str| match given(node, name) {
        Some(value) => Some(maker.secret(name, value)),
        None => {
            let message = format!("`authentication` of {} has no `{name}`", maker.what);
            maker.trouble(node, message, "add it: `{{ NAME }}` names a stored secret");
            None
        }
    };
    Some(match given(node, "type")?.text()? {
        "basic" => {
            let (username, password) =
                (given(node, "username").map_or(json!(""), Node::json), field("password")?);
            json!({ "type": "basic", "username": username, "password": password })
        }
        "bearer" => json!({ "type": "bearer", "token": field("token")? }),
        "apikey" => {
            let value = field("apiKey")?;
            let header = given(node, "apiKeyHeader").map_or(json!("X-API-Key"), Node::json);
            json!({ "type": "api_key", "value": value, "header": header })
        }
        _ => return None,
    })
}
