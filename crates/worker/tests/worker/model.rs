//! Language models and agents, against a server that speaks their protocol.

use crate::engine::{Finished, Heard, Shop};
use crate::node::node;
use crate::server::{Seen, Server, answer};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use windlass_protocol::{
    AgentAnswer, AgentAsk, AgentCall, Checkpoint, Level, Order, Outcome, Report, Verdict, Work,
};
use windlass_worker::egress::Egress;

/// Returns these answers one after the other.
fn model(answers: Vec<String>) -> Server {
    let answers = Mutex::new(VecDeque::from(answers));
    let next = move |_: &Seen| answers.lock().unwrap().pop_front();
    Server::start(move |seen| {
        next(seen).unwrap_or_else(|| answer("500 Too Many Questions", "", "")).into_bytes()
    })
}

fn ok(body: Value) -> String {
    answer("200 OK", "content-type: application/json\r\n", &body.to_string())
}

/// An answer of a model: a text, or calls as (id, name, arguments).
fn says(text: Value, calls: &[(&str, &str, &str)]) -> String {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| json!({ "id": id, "type": "function", "function": { "name": name, "arguments": arguments } }))
        .collect();
    let mut message = json!({ "role": "assistant", "content": text });
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    ok(
        json!({ "id": "x", "model": "m-2", "unknown": [1], "choices": [{ "message": message, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": 6, "completion_tokens": 4, "total_tokens": 10 } }),
    )
}

fn llm(server: &Server, more: Value) -> Work {
    let mut config = json!({ "base_url": server.url("/v1"), "model": "m", "api_key": "sk-test-123456", "user_prompt": "Say {{ start.n }}",
        "system_prompt": "Be brief.", "temperature": 0.2, "max_tokens": 50 });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut work = node("llm", "llm", config);
    work.spec = Arc::new(without_credentials(&work.spec));
    work
}

fn without_credentials(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["node"]["credentials"] = json!({});
    spec
}

fn numbered(number: u64, mut work: Work) -> Work {
    work.unit.run = 500 + number;
    work
}

fn body(seen: &Seen) -> Value {
    serde_json::from_str(&seen.body).unwrap()
}

#[test]
fn an_llm_node_asks_once_and_reports_its_usage() {
    let server = model(vec![says(json!("four"), &[])]);
    let finished = Shop::open().run(llm(&server, json!({})));
    let usage = json!({ "promptTokens": 6, "completionTokens": 4, "totalTokens": 10 });
    assert_eq!(
        finished.output(),
        &json!({ "text": "four", "model": "m-2", "finishReason": "stop", "usage": usage })
    );
    assert_eq!(json!(finished.metadata), json!({ "apiCalls": 1, "tokensUsed": 10 }));
    let seen = server.request();
    assert_eq!(
        (seen.line.as_str(), seen.header("authorization")),
        ("POST /v1/chat/completions", Some("Bearer sk-test-123456"))
    );
    let expected = json!({ "model": "m", "temperature": 0.2, "max_tokens": 50, "messages": [
        { "role": "system", "content": "Be brief." }, { "role": "user", "content": "Say 4" }] });
    assert_eq!(body(&seen), expected);
}

#[test]
fn an_llm_node_returns_json_that_fits_its_schema() {
    let schema = json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": "integer" } } });
    let server =
        model(vec![says(json!("```json\n{\"n\": 4}\n```"), &[]), says(json!("{\"n\": \"x\"}"), &[])]);
    let shop = Shop::open();
    let format = json!({ "output_format": "json", "json_schema": schema });
    assert_eq!(shop.run(numbered(1, llm(&server, format.clone()))).output()["json"], json!({ "n": 4 }));
    assert_eq!(body(&server.request())["response_format"]["json_schema"]["schema"], schema);
    let failed = shop.run(numbered(2, llm(&server, format)));
    assert_eq!(
        (failed.failure().code.as_str(), failed.failure().class.name()),
        ("PROVIDER_ERROR", "transient_5xx")
    );
}

#[test]
fn wfl_24_trouble_of_models_has_the_codes_of_the_document_and_is_never_a_panic() {
    let shop = Shop::open();
    let mut number = 10;
    let mut check = |reply: String, class: &str, code: &str, retry_after_ms: Option<u64>, words: &str| {
        let server = model(vec![reply]);
        number += 1;
        let finished = shop.run(numbered(number, llm(&server, json!({}))));
        let failure = finished.failure();
        assert_eq!(
            (failure.class.name(), failure.code.as_str(), failure.retry_after_ms),
            (class, code, retry_after_ms)
        );
        assert!(failure.message.contains(words), "{}", failure.message);
        assert_eq!(finished.metadata["apiCalls"], json!(1));
    };
    let error = json!({ "error": { "message": "too fast" } }).to_string();
    check(
        answer("429 Slow", "retry-after: 7\r\n", &error),
        "rate_limit",
        "RATE_LIMIT_EXCEEDED",
        Some(7_000),
        "too fast",
    );
    check(answer("401 No", "", "{}"), "auth", "AUTHENTICATION_FAILED", None, "401");
    check(answer("403 No", "", ""), "policy", "PERMISSION_DENIED", None, "403");
    check(answer("404 No", "", ""), "validation", "RESOURCE_NOT_FOUND", None, "404");
    check(answer("400 Bad", "", &error), "validation", "VALIDATION_ERROR", None, "too fast");
    check(answer("503 Busy", "", ""), "transient_5xx", "AI_MODEL_BUSY", None, "503");
    check(answer("500 Oops", "", "<html>"), "transient_5xx", "PROVIDER_ERROR", None, "500");
    for nonsense in [
        "<html>hello</html>",
        "{}",
        "{\"choices\": []}",
        "{\"choices\": [{\"message\": {\"content\": 7}}]}",
        "[1",
    ] {
        check(answer("200 OK", "", nonsense), "transient_5xx", "PROVIDER_ERROR", None, "is not valid");
    }
    check(
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\"".to_owned(),
        "transport",
        "CONNECTION_RESET",
        None,
        "could not be reached",
    );
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    let mut work = numbered(90, llm(&model(vec![]), json!({})));
    let mut spec = (*work.spec).clone();
    spec["tasks"][0]["config"]["base_url"] = json!(format!("http://127.0.0.1:{closed}"));
    work.spec = Arc::new(spec);
    assert_eq!(shop.run(work).failure().code, "CONNECTION_REFUSED");
}

#[test]
fn requests_to_models_follow_the_egress_rules() {
    let server = model(vec![says(json!("x"), &[])]);
    let shop = Shop::reaching(Egress { allow_private: false, allow: vec![] });
    assert_eq!(shop.run(llm(&server, json!({}))).failure().code, "EGRESS_REFUSED");
    assert_eq!(server.others(), 0);
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

#[test]
fn a_streamed_answer_is_logged_line_by_line_while_it_arrives() {
    let delta = |text: &str| event(&json!({ "choices": [{ "delta": { "content": text } }] }));
    let usage = event(&json!({ "choices": [], "usage": { "total_tokens": 11 } }));
    let stop = event(&json!({ "choices": [{ "delta": {}, "finish_reason": "stop" }] }));
    let body = format!(
        ": hello\n\n{}{}{}{stop}{usage}data: [DONE]\n\n",
        delta("one\nt"),
        delta("wo"),
        delta("\nthree")
    );
    let server = model(vec![answer("200 OK", "content-type: text/event-stream\r\n", &body)]);
    let finished = Shop::open().run(llm(&server, json!({ "stream": true })));
    assert_eq!(finished.output()["text"], json!("one\ntwo\nthree"));
    let lines: Vec<_> = finished.lines.iter().map(|line| (line.level(), line.text.as_str())).collect();
    assert_eq!(lines, [(Level::Info, "one"), (Level::Info, "two"), (Level::Info, "three")]);
    assert_eq!(finished.metadata["tokensUsed"], json!(11));
    let asked = body_of(&server);
    assert_eq!((&asked["stream"], &asked["stream_options"]["include_usage"]), (&json!(true), &json!(true)));
    let cut = model(vec![answer("200 OK", "content-type: text/event-stream\r\n", &delta("half"))]);
    let failed = Shop::open().run(llm(&cut, json!({ "stream": true })));
    assert!(failed.failure().message.contains("early"), "{}", failed.failure().message);
}

fn body_of(server: &Server) -> Value {
    body(&server.request())
}

fn agent(server: &Server, more: Value) -> Work {
    let mut config = json!({ "base_url": server.url("/v1"), "model": "m", "user_prompt": "Find it", "tools": [
        { "step": 3, "node": "look-up", "name": "Look up", "description": "Finds things",
          "parameters": { "type": "object", "properties": { "q": { "type": "string" } } } },
        { "step": 4, "node": "write" }],
        "connections": [{ "source": "agent", "target": "look-up" }], "descriptions": { "look-up": "Finds things" } });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let mut work = node("ai_agent", "ai_agent", config);
    work.spec = Arc::new(without_credentials(&work.spec));
    work
}

/// Returns the calls up to the report: `engine` answers them, checkpoints are accepted.
fn follow(
    shop: &Shop,
    mut engine: impl FnMut(&AgentCall) -> Option<AgentAnswer>,
) -> (Report, Vec<Checkpoint>) {
    let mut kept = Vec::new();
    loop {
        match shop.hear() {
            Heard::Checkpoint(checkpoint, reply) => {
                kept.push(checkpoint);
                reply(Verdict::Accepted);
            }
            Heard::Agent(call, reply) => {
                if let Some(finished) = engine(&call) {
                    reply(finished);
                }
            }
            Heard::Report(report) => return (*report, kept),
            _ => {}
        }
    }
}

fn done(output: Value) -> Option<AgentAnswer> {
    Some(AgentAnswer::Done { output: Arc::new(output) })
}

fn results(request: &Value) -> Vec<Value> {
    let messages = request["messages"].as_array().unwrap();
    let tools = messages.iter().filter(|message| message["role"] == "tool");
    tools.map(|message| serde_json::from_str(message["content"].as_str().unwrap()).unwrap()).collect()
}

#[test]
fn wfl_21_an_agent_runs_nodes_and_sees_their_results_until_it_is_done() {
    let server = model(vec![
        says(json!("I look first"), &[("c1", "look-up", "{\"q\": \"x\"}"), ("c2", "write", "")]),
        says(
            Value::Null,
            &[
                ("c3", "look-up", "not json"),
                ("c4", "nothing", "{}"),
                ("c5", "skip_node", "{\"nodeId\": \"write\", \"reason\": \"no\"}"),
            ],
        ),
        says(json!("found 7"), &[]),
    ]);
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(agent(&server, json!({ "return_intermediate_steps": true })))));
    let mut asked = Vec::new();
    let (report, kept) = follow(&shop, |call| {
        asked.push((call.call.clone(), call.ask.clone()));
        match &call.ask {
            AgentAsk::Execute { step: 3, .. } => done(json!({ "n": 7 })),
            AgentAsk::Execute { .. } => Some(AgentAnswer::Cancelled),
            _ => Some(AgentAnswer::Noted),
        }
    });
    let Outcome::Done { output } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(
        (&output["text"], &output["iterations"], &output["toolCalls"]),
        (&json!("found 7"), &json!(3), &json!(5))
    );
    assert_eq!(
        output["intermediateSteps"][0]["result"],
        json!({ "status": "completed", "output": { "n": 7 } })
    );
    assert_eq!(json!(report.metadata), json!({ "tokensUsed": 30, "apiCalls": 3 }));
    asked.sort_by(|one, other| one.0.cmp(&other.0));
    let expected = [
        ("2.1.0".to_owned(), AgentAsk::Execute { step: 3, args: json!({ "q": "x" }) }),
        ("2.1.1".to_owned(), AgentAsk::Execute { step: 4, args: json!({}) }),
        ("2.2.2".to_owned(), AgentAsk::Skip { step: 4, reason: "no".into() }),
    ];
    assert_eq!(asked, expected, "attempt, round and place name a call");
    assert_eq!(kept.len(), 5, "three answers and two rounds of results");
    let first = body_of(&server);
    let system = first["messages"][0]["content"].as_str().unwrap();
    for known in [
        "nodeDescriptions",
        "Finds things",
        "nodeConnections",
        "executionHistory",
        "availableData",
        "\"n\":4",
        "node-7",
    ] {
        assert!(system.contains(known), "{known}: {system}");
    }
    let names: Vec<_> =
        first["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].clone()).collect();
    assert_eq!(names, ["look-up", "write", "skip_node", "pause_execution", "fail_execution"]);
    let second = results(&body_of(&server));
    assert_eq!(
        second,
        [json!({ "status": "completed", "output": { "n": 7 } }), json!({ "status": "cancelled" })]
    );
    let third = results(&body_of(&server));
    assert!(third[2]["reason"].as_str().unwrap().contains("not a JSON object"), "{third:?}");
    assert!(third[3]["reason"].as_str().unwrap().contains("no tool `nothing`"), "{third:?}");
    assert_eq!(third[4], json!({ "status": "done" }));
}

#[test]
fn wfl_21_a_worker_that_takes_over_repeats_no_answered_request() {
    let server = model(vec![says(Value::Null, &[("c1", "look-up", "{}")]), says(json!("end"), &[])]);
    let shop = Shop::open();
    let work = agent(&server, json!({}));
    shop.order(Order::Run(Box::new(work.clone())));
    // The answer is kept before anything is done with it.
    let cursor = loop {
        match shop.hear() {
            Heard::Checkpoint(checkpoint, reply) => {
                reply(Verdict::Accepted);
                break checkpoint.cursor;
            }
            Heard::Agent(call, _) => panic!("it acted before its answer was kept: {call:?}"),
            _ => {}
        }
    };
    // The worker dies while the tool runs: its call is never answered here.
    loop {
        if let Heard::Agent(..) = shop.hear() {
            break;
        }
    }
    shop.shut_down();
    assert_eq!(server.request().line, "POST /v1/chat/completions");

    let second = Shop::open();
    let mut again = Work { cursor: Some(cursor), ..work };
    again.unit.fence += 1;
    second.order(Order::Run(Box::new(again)));
    let mut calls = Vec::new();
    let (report, kept) = follow(&second, |call| {
        calls.push(call.call.clone());
        done(json!("seen"))
    });
    assert_eq!(calls, ["2.1.0"], "the same call, so the engine answers with what came of it");
    let Outcome::Done { output } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(output["text"], json!("end"));
    assert_eq!(
        json!(report.metadata),
        json!({ "tokensUsed": 20, "apiCalls": 2 }),
        "what was used before counts"
    );
    assert_eq!(results(&body_of(&server)), [json!({ "status": "completed", "output": "seen" })]);
    assert_eq!(server.others(), 0, "the first answer was not asked for again");
    // And after the last result nothing is asked at all.
    let third = Shop::open();
    let mut over = agent(&server, json!({}));
    over.unit.fence += 2;
    over.cursor = Some(kept.last().unwrap().cursor.clone());
    third.order(Order::Run(Box::new(over)));
    let (report, _) = follow(&third, |call| panic!("{call:?}"));
    assert!(matches!(report.outcome, Outcome::Done { .. }), "{report:?}");
    assert_eq!(server.others(), 0);
}

#[test]
fn wfl_21_an_agent_pauses_and_fails_and_hears_of_slow_and_failed_tools() {
    let server = model(vec![
        says(Value::Null, &[("c1", "pause_execution", "{\"reason\": \"sure?\"}"), ("c2", "look-up", "{}")]),
        says(Value::Null, &[("c3", "write", "{}")]),
        says(
            Value::Null,
            &[("c4", "fail_execution", "{\"message\": \"no way\", \"code\": \"VALIDATION_ERROR\"}")],
        ),
    ]);
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(agent(&server, json!({ "tool_timeout_ms": 50 })))));
    let mut held = Vec::new();
    let (report, _) = follow(&shop, |call| match &call.ask {
        AgentAsk::Pause { reason } => {
            assert_eq!(reason, "sure?");
            Some(AgentAnswer::Noted)
        }
        AgentAsk::Execute { step: 3, .. } => {
            held.push(call.call.clone());
            Some(AgentAnswer::Failed(windlass_protocol::Failure::of_code("AUTHENTICATION_FAILED", "no")))
        }
        AgentAsk::Fail { failure } => {
            assert_eq!((failure.code.as_str(), failure.class.name()), ("VALIDATION_ERROR", "validation"));
            Some(AgentAnswer::Noted)
        }
        // There is no answer in time.
        _ => None,
    });
    let Outcome::Failed(failure) = &report.outcome else { panic!("{report:?}") };
    assert_eq!((failure.code.as_str(), failure.message.as_str()), ("VALIDATION_ERROR", "no way"));
    body_of(&server);
    let finished = results(&body_of(&server));
    assert_eq!(finished[0], json!({ "status": "done" }));
    assert_eq!(
        finished[1],
        json!({ "status": "failed", "error": { "code": "AUTHENTICATION_FAILED", "message": "no" } })
    );
    assert_eq!(results(&body_of(&server))[2]["status"], "timeout");
}

fn failed(finished: &Finished) -> (&str, &str) {
    (finished.failure().code.as_str(), finished.failure().message.as_str())
}

#[test]
fn agents_have_limits_and_kinds() {
    let shop = Shop::open();
    let again = || says(Value::Null, &[("c", "nothing", "{}")]);
    let server = model(vec![again(), again(), again()]);
    let finished = shop.run(numbered(1, agent(&server, json!({ "max_iterations": 2 }))));
    assert_eq!(failed(&finished), ("LIMIT_EXCEEDED", "the agent did not finish within 2 iterations"));
    assert_eq!(server.others(), 2);
    let server = model(vec![again(), again(), again()]);
    let finished = shop.run(numbered(2, agent(&server, json!({ "max_total_tokens": 15 }))));
    assert_eq!(failed(&finished), ("LIMIT_EXCEEDED", "the agent used 20 tokens, and its limit is 15"));
    let server = model(vec![says(json!("hello"), &[])]);
    let finished = shop.run(numbered(3, agent(&server, json!({ "agent_type": "conversational" }))));
    assert_eq!((&finished.output()["text"], body_of(&server).get("tools")), (&json!("hello"), None));
    let server = model(vec![says(json!("hello"), &[])]);
    shop.run(numbered(4, agent(&server, json!({ "agent_type": "react" }))));
    let asked = body_of(&server);
    assert!(
        asked["messages"][0]["content"].as_str().unwrap().contains("Thought:") && asked["tools"].is_array()
    );
    let finished = shop.run(numbered(5, agent(&server, json!({ "agent_type": "wizard" }))));
    assert_eq!(failed(&finished).0, "INVALID_CONFIGURATION");
}

#[test]
fn an_agent_retries_a_busy_model_and_loses_nothing() {
    let busy = answer("429 Slow", "retry-after: 0\r\n", "");
    let server = model(vec![says(Value::Null, &[("c", "look-up", "{}")]), busy, says(json!("end"), &[])]);
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(agent(&server, json!({})))));
    let mut calls = 0;
    let (report, _) = follow(&shop, |_| {
        calls += 1;
        done(json!(1))
    });
    assert!(matches!(&report.outcome, Outcome::Done { output } if output["text"] == "end"), "{report:?}");
    assert_eq!((calls, json!(report.metadata)), (1, json!({ "tokensUsed": 20, "apiCalls": 3 })));
}
