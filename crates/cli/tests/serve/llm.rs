//! `llm` nodes through the API of a server: answers as a whole and in pieces, busy and broken models, and a key that is
//! never shown.

use crate::executions::{finish, get, start, until};
use crate::model::{Asked, Model, Reply, busy, text};
use crate::rig::{Place, Server, files};
use reqwest::Method;
use serde_json::{Value, json};

/// API key that is sent. No part of it may appear in any output.
const KEY: &str = "sk-live-Zq8vT3nW9xK2mB7dR5";

fn place() -> Place {
    Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1")
}

fn define(server: &Server, model: &Model, config: Value, policy: Value) -> String {
    let mut node = json!({ "model": "m", "baseUrl": model.url, "userPromptTemplate": "Say {{ inputs.n }}" });
    node.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let nodes = json!([{ "id": "ask", "type": "llm", "config": node, "retryPolicy": policy }]);
    server.define(&json!({ "name": "asking", "nodes": nodes, "edges": [] }).to_string())
}

/// The node of an execution that was waited for.
fn asked(server: &Server, workflow: &str) -> Value {
    let answer = finish(server, workflow, json!({ "n": 4 }));
    get(server, answer["executionId"].as_str().unwrap(), "")["nodeExecutions"][0].clone()
}

fn piece(delta: Value) -> String {
    format!("data: {}\n\n", json!({ "choices": [{ "delta": delta }] }))
}

fn in_pieces(texts: &[&str]) -> Reply {
    let mut body: String = texts.iter().map(|text| piece(json!({ "content": text }))).collect();
    body.push_str(
        "data: {\"choices\": [{\"delta\": {}, \"finish_reason\": \"stop\"}], \"usage\": {\"total_tokens\": 5}}\n\ndata: [DONE]\n\n",
    );
    Reply::Other("200 OK", "content-type: text/event-stream\r\n", body)
}

#[test]
fn wfl_23_an_answer_comes_whole_or_in_pieces_and_what_it_used_is_reported() {
    let place = place();
    let server = place.serve();
    let set = server.request(Method::PUT, "/api/v1/secrets/MODEL_KEY").json(&json!({ "value": KEY }));
    assert!(set.send().unwrap().status().is_success());
    let model = Model::start(|_, asked| match asked.body["stream"] == true {
        true => in_pieces(&["fo", "ur\nfi", "ve"]),
        false => text("four\nfive"),
    });
    for stream in [false, true] {
        let config = json!({ "apiKey": "{{ MODEL_KEY }}", "enableStreaming": stream });
        let answer = finish(&server, &define(&server, &model, config, json!({})), json!({ "n": 4 }));
        let id = answer["executionId"].as_str().unwrap();
        let node = get(&server, id, "")["nodeExecutions"][0].clone();
        assert_eq!(
            (&node["output"]["text"], &node["output"]["finishReason"]),
            (&json!("four\nfive"), &json!("stop"))
        );
        assert_eq!(
            (&node["metadata"]["tokensUsed"], &node["metadata"]["apiCalls"]),
            (&json!(5), &json!(1)),
            "{node}"
        );
        let said: Vec<Value> = get(&server, id, "/logs")["logs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["message"].clone())
            .collect();
        assert_eq!(said.contains(&json!("four")) && said.contains(&json!("five")), stream, "{said:?}");
    }
    for Asked { body, authorization } in model.asked() {
        assert_eq!(authorization.as_deref(), Some(format!("Bearer {KEY}").as_str()));
        assert_eq!(body["messages"], json!([{ "role": "user", "content": "Say 4" }]));
    }
}

#[test]
fn wfl_24_a_busy_model_is_retried_after_its_delay_and_a_broken_answer_as_often_as_the_policy_allows() {
    let place = place();
    let server = place.serve();
    let model = Model::start(|number, _| match number {
        0 => busy("429 Slow", "retry-after: 1\r\n"),
        _ => text("four"),
    });
    let policy = json!({ "maxRetries": 1, "initialDelayMs": 1, "jitterFactor": 0 });
    let id = start(&server, &define(&server, &model, json!({}), policy), json!({}));
    let node = until(&server, &id, "completed")["nodeExecutions"][0].clone();
    assert_eq!((&node["retryCount"], &node["output"]["text"]), (&json!(1), &json!("four")), "{node}");
    assert_eq!(model.asked().len(), 2);
    let events = get(&server, &id, "/events")["events"].clone();
    let mut answer = events.as_array().unwrap().iter();
    let waited = answer.find(|event| event["event"] == "step.retry_scheduled");
    let waited = waited.unwrap_or_else(|| panic!("{events}"));
    let at: jiff::Timestamp = waited["timestamp"].as_str().unwrap().parse().unwrap();
    let until_at: jiff::Timestamp = waited["data"]["until"].as_str().unwrap().parse().unwrap();
    let wait_ms = until_at.as_millisecond() - at.as_millisecond();
    assert_eq!(wait_ms, 1_000, "not earlier than it wants: {waited}");

    let once = || json!({ "maxRetries": 1, "initialDelayMs": 1 });
    let check = |body: &'static str, config: Value, words: &str| {
        let model = Model::start(move |_, _| {
            Reply::Other("200 OK", "content-type: application/json\r\n", body.to_owned())
        });
        let node = asked(&server, &define(&server, &model, config, once()));
        assert_eq!(
            (&node["status"], &node["error"]["code"]),
            (&json!("failed"), &json!("PROVIDER_ERROR")),
            "{node}"
        );
        assert!(node["error"]["message"].as_str().unwrap().contains(words), "{node}");
        assert_eq!(model.asked().len(), 2, "{words}");
    };
    check("<html>", json!({}), "is not valid");
    check("{\"choices\": []}", json!({}), "it has no choices");
    check(
        "{\"choices\": [{\"message\": {\"content\": \"Sure!\"}}]}",
        json!({ "outputFormat": "json" }),
        "is not JSON",
    );
    let schema = json!({ "type": "object", "required": ["n"] });
    let config = json!({ "outputFormat": "json", "jsonSchema": schema });
    check("{\"choices\": [{\"message\": {\"content\": \"{}\"}}]}", config, "does not fit the schema");
    let cut = Model::start(|_, _| {
        Reply::Other("200 OK", "content-type: text/event-stream\r\n", piece(json!({ "content": "ha" })))
    });
    let node = asked(&server, &define(&server, &cut, json!({ "enableStreaming": true }), once()));
    assert!(node["error"]["message"].as_str().unwrap().contains("early"), "{node}");
}

/// A model that repeats the key it was sent wherever it can.
fn talkative(number: usize, asked: &Asked) -> Reply {
    let key = asked.authorization.as_deref().unwrap().strip_prefix("Bearer ").unwrap();
    let (front, back) = key.split_at(9);
    // Half of it before the place where an error cuts the body off.
    let long = |length: usize| format!("{}{key}{}", "x".repeat(length - 10), "y".repeat(5_000));
    match number {
        0 => text(&format!("your key is {key}\n{}", long(16 * 1024))),
        1 => in_pieces(&["your key is ", front, back, "\nso ", &long(16 * 1024)]),
        2 => Reply::Other(
            "401 No",
            "",
            json!({ "error": { "message": format!("bad key {key}") } }).to_string(),
        ),
        3 => Reply::Other("400 No", "", long(2 * 1024)),
        4 => Reply::Other("400 No", "", json!({ "error": { "message": long(200) } }).to_string()),
        5 => Reply::Other("200 OK", "", json!({ "choices": key }).to_string()),
        6 => Reply::Other("200 OK", "", long(2 * 1024)),
        7 => text(&long(200)),
        _ => Reply::Other(
            "200 OK",
            "content-type: text/event-stream\r\n",
            format!("data: {{\"error\": \"{key}\"}}\n\n"),
        ),
    }
}

#[test]
fn wfl_22_the_key_of_a_model_is_in_no_row_no_log_and_no_answer() {
    let place = place();
    let server = place.serve();
    let set = server.request(Method::PUT, "/api/v1/secrets/MODEL_KEY").json(&json!({ "value": KEY }));
    assert!(set.send().unwrap().status().is_success());
    let model = Model::start(talkative);
    let formats = ["text", "text", "text", "text", "text", "text", "text", "json", "text"];
    let mut seen = String::new();
    for (number, format) in formats.into_iter().enumerate() {
        let stream = [1, 8].contains(&number);
        let config =
            json!({ "apiKeyVariableId": "MODEL_KEY", "enableStreaming": stream, "outputFormat": format });
        let options = json!({ "async": false, "debugMode": true });
        let workflow = define(&server, &model, config, json!({ "maxRetries": 0 }));
        let (_, answer) =
            server.post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "options": options }));
        let id = answer["executionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        seen.push_str(&answer.to_string());
        for rest in ["", "/events", "/logs", "/status"] {
            seen.push_str(&get(&server, &id, rest).to_string());
        }
        assert_eq!(answer["status"] == "completed", number < 2, "{number}: {answer}");
    }
    assert_eq!(model.asked().len(), formats.len());
    for path in ["/metrics", "/api/v1/audit"] {
        seen.push_str(&server.get(path).text().unwrap());
    }
    let (_, said) = server.stop();
    seen.push_str(&said);
    // Whole, or a part that is long enough to be worth something.
    let parts: Vec<&[u8]> = KEY.as_bytes().windows(9).filter(|part| !part.starts_with(b"sk-live")).collect();
    clean("what was answered and said", seen.as_bytes(), &parts);
    assert!(seen.contains("[redacted]"), "it was there to be taken out");
    for file in files(&place.data()) {
        clean(&file.display().to_string(), &std::fs::read(&file).unwrap(), &parts);
    }
}

#[track_caller]
fn clean(what: &str, bytes: &[u8], parts: &[&[u8]]) {
    for part in parts {
        let at = bytes.windows(part.len()).position(|window| window == *part);
        let around = at.map(|at| String::from_utf8_lossy(&bytes[at.saturating_sub(80)..at + part.len()]));
        assert!(around.is_none(), "{what} has a part of the key: {around:?}");
    }
}
