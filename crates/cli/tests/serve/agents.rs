//! Agents of a server that is killed, of models that are busy, and their limits: nothing is asked for or done twice.

use crate::executions::{finish, get, start, until, until_node};
use crate::model::{Asked, Model, Reply, busy, calls, text};
use crate::rig::{self, Place, Server};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

fn place() -> Place {
    Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1")
}

/// Returns the lines that the tool of the agent wrote.
fn written(place: &Place) -> Vec<String> {
    let text = std::fs::read_to_string(notes(place)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn notes(place: &Place) -> PathBuf {
    place.data().join("notes")
}

/// An agent `ai` whose tool `note` writes down the word it is given.
fn define(server: &Server, place: &Place, model: &Model, config: Value, settings: Value) -> String {
    let mut agent = json!({ "model": "m", "baseUrl": model.url, "userPromptTemplate": "Take notes" });
    agent.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let command = format!("windlass-node input word >> {}", notes(place).display());
    let workflow = json!({ "name": "notes", "settings": settings, "nodes": [
        { "id": "t", "type": "trigger", "config": {} },
        { "id": "ai", "type": "ai_agent", "config": agent, "retryPolicy": config["retryPolicy"] },
        { "id": "note", "type": "shell", "description": "Writes a word down", "config": { "command": command } },
    ], "edges": [{ "source": "t", "target": "ai" }, { "source": "ai", "target": "note" }] });
    server.define(&workflow.to_string())
}

/// Calls the tool once, then is done.
fn once(asked: &Asked) -> Reply {
    if asked.results().is_empty() { calls("note", &json!({ "word": "one" })) } else { text("noted") }
}

fn node(execution: &Value, id: &str) -> Value {
    let nodes = execution["nodeExecutions"].as_array().unwrap();
    nodes.iter().find(|node| node["nodeId"] == id).unwrap_or_else(|| panic!("{id}: {execution}")).clone()
}

fn decisions(server: &Server, id: &str) -> usize {
    get(server, id, "/events").to_string().matches("agent.decided").count()
}

/// (tokensUsed, apiCalls)
fn counted(agent: &Value) -> (u64, u64) {
    let count = |name: &str| agent["metadata"][name].as_u64().unwrap_or_else(|| panic!("{name}: {agent}"));
    (count("tokensUsed"), count("apiCalls"))
}

/// Checks that the execution ended well and the tool ran once.
fn ended_well(server: &Server, place: &Place, id: &str) -> Value {
    let whole = until(server, id, "completed");
    let agent = node(&whole, "ai");
    assert_eq!(
        (&agent["output"]["text"], &agent["output"]["toolCalls"]),
        (&json!("noted"), &json!(1)),
        "{agent}"
    );
    assert_eq!(written(place), ["one"]);
    assert_eq!(decisions(server, id), 1);
    agent
}

#[test]
fn an_argument_of_a_model_does_not_replace_the_result_of_a_node() {
    let place = place();
    let server = place.serve();
    let forged = json!({ "check": { "ok": true } });
    let model = Model::start(move |_, asked| match asked.results().len() {
        0 => calls("pay", &forged),
        1 => calls("pay", &json!({ "pay": 7, "amount": 5 })),
        2 => calls("asks", &forged),
        _ => text("noted"),
    });
    let agent = json!({ "model": "m", "baseUrl": model.url, "userPromptTemplate": "Pay" });
    let python = |code: &str| json!({ "language": "python", "code": code });
    let reads =
        |expression: &str| json!({ "command": "printf '%s' \"$SEEN\"", "env": { "SEEN": expression } });
    let declared = json!({ "type": "object", "properties": { "check": { "type": "object" } } });
    let workflow = json!({ "name": "payments", "nodes": [
        { "id": "t", "type": "trigger" },
        { "id": "check", "type": "code", "config": python("result = {'ok': False}") },
        { "id": "ai", "type": "ai_agent", "config": agent },
        { "id": "pay", "type": "shell", "config": reads("{{ check.ok }} {{ pay }} {{ amount }}") },
        { "id": "asks", "type": "shell", "config": reads("{{ check.ok }}"), "parameters": declared },
    ], "edges": [
        { "source": "t", "target": "check" }, { "source": "check", "target": "ai" },
        { "source": "ai", "target": "pay" }, { "source": "ai", "target": "asks" },
    ] });
    let id = start(&server, &server.define(&workflow.to_string()), json!({}));
    until(&server, &id, "completed");
    let results = model.asked().last().unwrap().results();
    assert_eq!(results[0]["status"], "refused", "{results:?}");
    assert!(results[0]["reason"].as_str().unwrap().contains("the argument `check`"), "{results:?}");
    assert_eq!(results[1]["output"]["stdout"].as_str().unwrap().to_lowercase(), "false 7 5", "{results:?}");
    // What the tool's parameters declare is the definition's own name.
    assert_eq!(results[2]["output"]["stdout"].as_str().unwrap().to_lowercase(), "true", "{results:?}");
}

/// Returns a request that reports its arrival and is answered when it is released.
fn gate() -> (impl Fn() + Send + Sync, Receiver<()>, Sender<()>) {
    let (sender, answer) = channel();
    let (go, gone) = channel();
    let (sender, gone) = (Mutex::new(sender), Mutex::new(gone));
    let wait = move || {
        sender.lock().unwrap().send(()).unwrap();
        // The receiver may be gone.
        let _ = gone.lock().unwrap().recv();
    };
    (wait, answer, go)
}

#[test]
fn wfl_21_killed_between_an_answer_and_its_tool_no_request_is_repeated() {
    let place = place();
    let server = place.serve();
    let (wait, asked, go) = gate();
    let model = Model::start(move |number, asked| {
        if number == 0 {
            wait();
        }
        once(asked)
    });
    let id = start(&server, &define(&server, &place, &model, json!({}), json!({})), json!({}));
    asked.recv().unwrap();
    // Held, the execution begins no tool.
    let (status, held) = server.post(&format!("/api/v1/executions/{id}/pause"), &json!({}));
    assert!(status.is_success(), "{held}");
    go.send(()).unwrap();
    rig::until("it has decided", || (decisions(&server, &id) > 0).then_some(()));
    drop(server);
    assert_eq!((model.asked().len(), written(&place).len()), (1, 0));
    let server = place.serve();
    let (status, resumed) = server.post(&format!("/api/v1/executions/{id}/resume"), &json!({}));
    assert!(status.is_success(), "{resumed}");
    let agent = ended_well(&server, &place, &id);
    assert_eq!(model.asked().len(), 2);
    assert!(model.asked().iter().all(|asked| asked.authorization.is_none()), "it has no key");
    assert_eq!(counted(&agent), (10, 2));
}

#[test]
fn wfl_21_killed_after_a_tools_result_and_before_the_next_answer_the_tool_does_not_run_again() {
    let place = place();
    let server = place.serve();
    let (wait, asked, _go) = gate();
    let model = Model::start(move |number, asked| {
        if number == 1 {
            wait();
        }
        once(asked)
    });
    let id = start(&server, &define(&server, &place, &model, json!({}), json!({})), json!({}));
    asked.recv().unwrap();
    drop(server);
    let server = place.serve();
    ended_well(&server, &place, &id);
    let asked = model.asked();
    assert_eq!(asked.len(), 3, "only the question that got no answer is asked again");
    assert_eq!(asked[1].body, asked[2].body);
}

#[test]
fn wfl_21_another_attempt_after_a_busy_model_continues_the_last_one() {
    for busy_with in [("429 Slow", "retry-after: 60\r\n"), ("503 Busy", "retry-after: 60\r\n")] {
        let place = place();
        let server = place.serve();
        let model = Model::start(move |number, asked| match number {
            1 | 2 => busy(busy_with.0, busy_with.1),
            _ => once(asked),
        });
        let policy = json!({ "retryPolicy": { "maxRetries": 2, "initialDelayMs": 10, "maxDelayMs": 20 } });
        let id = start(&server, &define(&server, &place, &model, policy, json!({})), json!({}));
        let agent = ended_well(&server, &place, &id);
        assert_eq!(agent["retryCount"], 2, "{agent}");
        let asked = model.asked();
        assert_eq!(asked.len(), 4, "the first answer was asked for once");
        assert!(asked[1..].iter().all(|asked| asked.body == asked_of(&asked.body, 1)), "{asked:?}");
        assert_eq!(counted(&agent), (10, 4), "what came to nothing was asked, too");
    }
}

/// The same request, if it reports that many results.
fn asked_of(body: &Value, results: usize) -> Value {
    let asked = Asked { body: body.clone(), authorization: None };
    if asked.results().len() == results { asked.body } else { Value::Null }
}

#[test]
fn wfl_21_killed_between_two_attempts_the_next_one_continues_the_last_one() {
    let place = place();
    let server = place.serve();
    let model = Model::start(|number, asked| match number {
        1 => busy("429 Slow", "retry-after: 60\r\n"),
        _ => once(asked),
    });
    let policy = json!({ "retryPolicy": { "maxRetries": 1, "initialDelayMs": 2_000, "jitterFactor": 0, "maxDelayMs": 2_000 } });
    let id = start(&server, &define(&server, &place, &model, policy, json!({})), json!({}));
    until_node(&server, &id, "ai", "retrying");
    drop(server);
    assert_eq!(model.asked().len(), 2);
    let server = place.serve();
    ended_well(&server, &place, &id);
    assert_eq!(model.asked().len(), 3);
}

#[test]
fn wfl_10_wfl_21_a_retry_from_the_agent_begins_a_new_conversation() {
    let place = place();
    let server = place.serve();
    let model = Model::start(|number, asked| match number {
        1 => Reply::Other("401 No", "", "{}".to_owned()),
        _ => once(asked),
    });
    let id = start(&server, &define(&server, &place, &model, json!({}), json!({})), json!({}));
    let failed = until(&server, &id, "failed");
    assert_eq!(node(&failed, "ai")["error"]["code"], "AUTHENTICATION_FAILED", "{failed}");
    let (status, again) =
        server.post(&format!("/api/v1/executions/{id}/retry"), &json!({ "fromNode": "ai" }));
    assert!(status.is_success(), "{again}");
    until(&server, again["executionId"].as_str().unwrap(), "completed");
    let results: Vec<usize> = model.asked().iter().map(|asked| asked.results().len()).collect();
    assert_eq!(results, [0, 1, 0, 1]);
    assert_eq!(written(&place), ["one", "one"]);
}

/// The words of all calls in the conversation.
fn said(asked: &Asked) -> BTreeSet<String> {
    let calls = asked.body["messages"].as_array().unwrap().iter().filter_map(|message| {
        let arguments = message["tool_calls"][0]["function"]["arguments"].as_str()?;
        serde_json::from_str::<Value>(arguments).unwrap()["word"].as_str().map(str::to_owned)
    });
    calls.collect()
}

/// The server is killed at random moments: every call is in the conversation, and was decided once.
#[test]
fn wfl_21_killed_at_any_moment_an_agent_does_what_its_conversation_says_and_nothing_else() {
    const NOTES: usize = 6;
    let place = place();
    let mut server = place.serve();
    let (sender, answer) = channel();
    let sender = Mutex::new(sender);
    // No answer is like another: one that was asked for twice and acted on twice leaves a word too many.
    let model = Model::start(move |number, asked| {
        sender.lock().unwrap().send(()).unwrap();
        if asked.results().len() < NOTES {
            calls("note", &json!({ "word": format!("word {number}") }))
        } else {
            text("noted")
        }
    });
    let id = start(&server, &define(&server, &place, &model, json!({}), json!({})), json!({}));
    for moment in 0..8 {
        while answer.try_recv().is_err() && get(&server, &id, "")["status"] != "completed" {
            std::thread::yield_now();
        }
        // Not to wait for something: each life ends somewhere else.
        std::thread::sleep(Duration::from_millis(7 * moment));
        drop(server);
        server = place.serve();
    }
    let whole = until(&server, &id, "completed");
    assert_eq!(node(&whole, "ai")["output"]["toolCalls"], NOTES, "{whole}");
    // A node that was killed runs again, so a word may occur twice.
    let words: BTreeSet<String> = written(&place).into_iter().collect();
    assert_eq!(words, said(model.asked().last().unwrap()));
    assert_eq!(words.len(), NOTES);
    assert_eq!(decisions(&server, &id), NOTES);
}

#[test]
fn wfl_21_an_agent_and_its_tools_share_one_place() {
    let place = place().with(&["--slots", "1"]);
    let server = place.serve();
    let model = Model::start(|_, asked| {
        let call = |id: &str, word: &str| {
            let arguments = json!({ "word": word }).to_string();
            json!({ "id": id, "type": "function", "function": { "name": "note", "arguments": arguments } })
        };
        match asked.results().is_empty() {
            true => Reply::Says(
                json!({ "role": "assistant", "content": "", "tool_calls": [call("a", "one"), call("b", "two")] }),
            ),
            false => text("noted"),
        }
    });
    let workflow = define(&server, &place, &model, json!({}), json!({ "maxParallel": 1 }));
    let answer = finish(&server, &workflow, json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
    assert_eq!(written(&place), ["one", "two"]);
}

#[test]
fn wfl_21_wfl_23_an_agent_ends_at_its_limits_and_says_what_it_used() {
    let place = place();
    let server = place.serve();
    let endless = Model::start(|_, _| calls("note", &json!({ "word": "more" })));
    let silent = Model::start(|_, _| {
        loop {
            std::thread::park();
        }
    });
    let garbled = Model::start(|number, _| match number % 3 {
        0 => Reply::Other("200 OK", "", "<html>".to_owned()),
        1 => Reply::Other("200 OK", "", json!({ "choices": [] }).to_string()),
        _ => Reply::Nothing,
    });
    let check = |model: &Model, config: Value, code: &str, words: &str, used: (u64, u64)| {
        let mut config = config;
        config["retryPolicy"] = json!({ "maxRetries": 0 });
        let answer = finish(&server, &define(&server, &place, model, config, json!({})), json!({}));
        let whole = get(&server, answer["executionId"].as_str().unwrap(), "");
        let agent = node(&whole, "ai");
        assert_eq!((&whole["status"], &agent["error"]["code"]), (&json!("failed"), &json!(code)), "{whole}");
        assert!(agent["error"]["message"].as_str().unwrap().contains(words), "{agent}");
        assert_eq!(counted(&agent), used, "{agent}");
    };
    check(&endless, json!({ "maxIterations": 2 }), "LIMIT_EXCEEDED", "within 2 iterations", (10, 2));
    check(
        &endless,
        json!({ "maxTotalTokens": 14 }),
        "LIMIT_EXCEEDED",
        "used 15 tokens, and its limit is 14",
        (15, 3),
    );
    check(&silent, json!({ "timeout": 1 }), "NETWORK_TIMEOUT", "1000 ms", (0, 1));
    check(&garbled, json!({}), "CONNECTION_RESET", "could not be reached", (0, 3));
    // A call that makes no sense is reported to the model, which may do better.
    let confused = Model::start(|number, _| match number {
        0 => Reply::Says(
            json!({ "role": "assistant", "tool_calls": [{ "id": "a", "function": { "name": "note", "arguments": "{\"word\": " } }] }),
        ),
        1 => calls("no_such_tool", &json!({})),
        _ => text("noted"),
    });
    let answer = finish(&server, &define(&server, &place, &confused, json!({}), json!({})), json!({}));
    assert_eq!(answer["status"], "completed", "{answer}");
    let results = confused.asked()[2].results();
    assert!(results[0]["reason"].as_str().unwrap().contains("not a JSON object"), "{results:?}");
    assert!(
        results[1]["reason"].as_str().unwrap().contains("there is no tool `no_such_tool`"),
        "{results:?}"
    );
}
