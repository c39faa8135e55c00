//! Nodes of workflows through the binary: context, state, memory, models and agents, also over a kill.

use crate::rig::{Place, process_of, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// A server for chat completions: it returns these messages in turn and records the requests.
struct Model {
    port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    fn start(messages: Vec<Value>) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (asked, messages) = (Arc::new(Mutex::new(Vec::new())), Mutex::new(VecDeque::from(messages)));
        let heard = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let message = messages.lock().expect("a lock").pop_front();
                answer(stream, &heard, message);
            }
        });
        Model { port, asked }
    }

    fn asked(&self) -> Vec<Value> {
        self.asked.lock().expect("a lock").clone()
    }
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<Value>>, message: Option<Value>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    let headers: Vec<String> =
        reader.by_ref().lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
    let length =
        headers.iter().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).expect("a body");
    asked.lock().expect("a lock").push(serde_json::from_slice(&body).expect("JSON"));
    let (status, body) = match message {
        Some(message) => (
            "200 OK",
            json!({ "choices": [{ "message": message, "finish_reason": "stop" }], "usage": { "total_tokens": 10 } }),
        ),
        None => ("400 Bad Request", json!({ "error": { "message": "unexpected request" } })),
    };
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it is written");
}

fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({ "role": "assistant", "content": null, "tool_calls": [
        { "id": id, "type": "function", "function": { "name": name, "arguments": arguments.to_string() } }] })
}

fn with(workflow: &Value) -> Place {
    let place = Place::playing("workflow: []\n");
    place.write("flow.json", &workflow.to_string());
    place
}

fn run(place: &Place) -> Value {
    place.windlass(&["run", "flow.json", "--json"]).expect(0).json()
}

fn entry<'t>(output: &'t Value, node: &str) -> &'t Value {
    let entries = output["nodeExecutions"].as_array().expect("entries");
    entries.iter().find(|entry| entry["nodeId"] == node).unwrap_or_else(|| panic!("{node}: {output}"))
}

#[test]
fn wfl_22_wfl_34_state_passes_from_node_to_node_and_memory_from_execution_to_execution() {
    let shell = "test \"$(windlass-node get seen)\" = null || exit 3
        windlass-node log warn careful '{\"n\": 1}'
        windlass-node progress 50 half
        windlass-node metric files 2
        windlass-node set seen '{\"by\": \"shell\"}'
        echo \"{\\\"success\\\": true, \\\"data\\\": $(windlass-node input start)}\" > \"$WINDLASS_OUTPUTS/result.json\"";
    let workflow = json!({ "name": "passing", "nodes": [
        { "id": "start", "type": "trigger" },
        { "id": "sh", "type": "shell", "config": { "command": shell } },
        { "id": "py", "type": "code", "config": { "language": "python", "code":
            "seen = ctx.get_state('seen')\nctx.set_state('seen', {**seen, 'then': 'python'})\nresult = seen" } },
        { "id": "js", "type": "code", "config": { "language": "javascript", "code": "return await ctx.getState('seen')" } },
        { "id": "find", "type": "memory_search", "config": { "prefix": "run" } },
        { "id": "keep", "type": "memory_store", "config": { "key": "run", "value": "{{ js }}" } },
        { "id": "sql", "type": "data", "config": { "query": "SELECT count(*) AS n FROM found", "tables": { "found": "{{ find.items }}" } } }],
        "edges": [{ "source": "start", "target": "sh" }, { "source": "sh", "target": "py" }, { "source": "py", "target": "js" },
            { "source": "js", "target": "find" }, { "source": "find", "target": "keep" }, { "source": "find", "target": "sql" }] });
    let place = with(&workflow);
    let first = run(&place);
    assert_eq!(entry(&first, "py")["output"], json!({ "by": "shell" }));
    assert_eq!(entry(&first, "js")["output"], json!({ "by": "shell", "then": "python" }));
    assert_eq!(entry(&first, "sh")["metadata"]["metrics"], json!({ "files": 2 }));
    assert!(entry(&first, "sh")["metadata"]["duration"].is_u64());
    assert_eq!(entry(&first, "find")["output"]["count"], 0);
    assert_eq!(entry(&first, "sql")["output"]["rows"][0]["n"], 0);
    // Another execution sees the memory, and not the state: the shell node would fail.
    let second = run(&place);
    assert_eq!(
        entry(&second, "find")["output"]["items"][0]["value"],
        json!({ "by": "shell", "then": "python" })
    );
    assert_eq!(entry(&second, "sql")["output"]["rows"][0]["n"], 1);
    let id = second["executionId"].as_str().expect("an id");
    let logs = place.windlass(&["executions", "logs", id, "--json"]).expect(0).out;
    let line = logs.lines().find(|line| line.contains("careful")).expect("the line");
    assert!(line.contains("\"level\":\"warn\"") && line.contains("\"n\":1"), "{line}");
}

#[test]
fn wfl_21_after_a_kill_no_request_is_repeated_and_no_ended_node_runs_again() {
    let model = Model::start(vec![
        call("c1", "quick", &json!({ "word": "one" })),
        call("c2", "slow", &json!({})),
        json!({ "role": "assistant", "content": "both are done" }),
    ]);
    let place = Place::playing("workflow: []\n");
    let at = |name: &str| place.path(name).display().to_string();
    let quick = format!("echo quick >> {}; windlass-node input word", at("output"));
    let slow = format!(
        "echo slow >> {}; echo $$ > {}; test -e {} || exec sleep 1000",
        at("output"),
        at("pid"),
        at("go")
    );
    let workflow = json!({ "name": "agent", "nodes": [
        { "id": "start", "type": "trigger" },
        { "id": "ai", "type": "ai_agent", "config": { "model": "m", "baseUrl": format!("http://127.0.0.1:{}/v1", model.port),
            "userPromptTemplate": "Do both", "returnIntermediateSteps": true } },
        { "id": "quick", "type": "shell", "description": "Is quick", "config": { "command": quick } },
        { "id": "slow", "type": "shell", "description": "Is slow", "config": { "command": slow } }],
        "edges": [{ "source": "start", "target": "ai" }, { "source": "ai", "target": "quick" }, { "source": "ai", "target": "slow" }] });
    place.write("flow.json", &workflow.to_string());
    let running = place.start(&["run", "flow.json"]);
    process_of(&place, "pid");
    running.signal(Signal::KILL);
    running.end();
    assert_eq!(model.asked().len(), 2);
    let left = || std::fs::read_dir(place.path("data/work")).expect("the folder").count();
    assert_eq!(left(), 1, "the folder of the running node remains");
    place.write("go", "");
    place.windlass(&["run", "--resume"]).expect(0);
    assert_eq!(left(), 0, "the next process did");
    assert_eq!(place.lines("output"), ["quick", "slow", "slow"], "only what was under way is done again");
    let asked = model.asked();
    assert_eq!(asked.len(), 3, "each answer was asked for once");
    let listed = place.windlass(&["executions", "list", "--json"]).expect(0).json();
    let id = listed["executions"][0]["executionId"].as_str().expect("an id");
    let output = place.windlass(&["executions", "get", id, "--json"]).expect(0).json();
    let agent = entry(&output, "ai");
    assert_eq!(
        (&agent["output"]["text"], &agent["output"]["toolCalls"]),
        (&json!("both are done"), &json!(2))
    );
    assert_eq!((&agent["metadata"]["tokensUsed"], &agent["metadata"]["apiCalls"]), (&json!(30), &json!(3)));
    let steps = agent["output"]["intermediateSteps"].as_array().expect("steps");
    assert_eq!(steps[0]["result"]["output"]["stdout"], "one\n");
    let events = place.windlass(&["executions", "events", id, "--json"]).expect(0).out;
    assert_eq!(events.matches("agent.decided").count(), 2, "each decision is journaled once");
    until("nothing is left", || {
        place.windlass(&["run", "--resume"]).err.contains("nothing to resume").then_some(())
    });
}
