//! Viewers of executions with very many large results, who do not read what they are answered.

use crate::rig::{Place, Server, until};
use crate::stage::Stage;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Results of one execution: 24 MB.
const RESULTS: usize = 400;
const RESULT_BYTES: usize = 60_000;
const VIEWERS: u32 = 24;
const STEPS: usize = 50;
/// An answer about it, with room for everything but the results.
const ANSWER_BYTES_MAX: usize = 5_000_000;
/// The server's memory while they all wait. Without bounds the answers alone take 576 MB.
const PEAK_MIB: u64 = 400;
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a loop with a large result in each iteration; returns the execution's id.
fn heavy(stage: &Stage, token: &str, results: usize) -> String {
    let text = "metadata: {name: heavy}\nworkload: {items: [], text: ''}\nworkflow:\n- step: each\n  \
                loop: {in: '{{ workload.items }}', iterator: item, spec: {mode: parallel}}\n  \
                tool: {kind: noop, result: {n: '{{ iter.item }}', text: '{{ workload.text }}'}}\n";
    let (status, made) = stage.upload(token, text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let items: Vec<usize> = (0..results).collect();
    let inputs = json!({ "inputs": { "items": items, "text": "x".repeat(RESULT_BYTES) } });
    let (status, begun) = stage.send(token, Method::POST, &path, &inputs);
    assert_eq!(status, StatusCode::ACCEPTED, "{begun}");
    let id = begun["executionId"].as_str().unwrap().to_owned();
    until("the loop ends", || {
        let (_, now) = stage.send(token, Method::GET, &format!("/api/v1/executions/{id}/status"), &json!({}));
        assert_ne!(now["status"], "failed", "{now}");
        (now["status"] == "completed").then_some(())
    });
    id
}

/// A connection of HTTP/2 whose client takes no body: its window is zero.
struct Deaf(TcpStream);

impl Deaf {
    fn new(server: &Server) -> Deaf {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        stream.write_all(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]).unwrap();
        Deaf(stream)
    }

    /// Requests a path on this number of streams, and returns how many were answered with 200.
    fn asks(&mut self, token: &str, path: &str, count: u32) -> u32 {
        let mut block = vec![0x82, 0x86];
        push_field(&mut block, 1, "localhost");
        push_field(&mut block, 4, path);
        block.push(0);
        push_text(&mut block, "authorization");
        push_text(&mut block, &format!("Bearer {token}"));
        for number in 0..count {
            let length = u32::try_from(block.len()).unwrap().to_be_bytes();
            let stream = (2 * number + 1).to_be_bytes();
            let head = [&length[1..], &[1, 5], &stream].concat();
            self.0.write_all(&[head, block.clone()].concat()).unwrap();
        }
        let (mut answered, mut good) = (0, 0);
        while answered < count {
            let (kind, payload) = self.frame();
            if kind == 1 {
                answered += 1;
                good += u32::from(payload.first() == Some(&0x88));
            }
        }
        good
    }

    fn frame(&mut self) -> (u8, Vec<u8>) {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).unwrap();
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).unwrap();
        (head[3], payload)
    }
}

/// A field by the index of its name (HPACK), not indexed.
fn push_field(block: &mut Vec<u8>, name: u8, value: &str) {
    block.push(name);
    push_text(block, value);
}

fn push_text(block: &mut Vec<u8>, text: &str) {
    match text.len().checked_sub(127) {
        None => block.push(u8::try_from(text.len()).unwrap()),
        Some(rest) => block.extend([127, u8::try_from(rest).unwrap()]),
    }
    block.extend(text.bytes());
}

#[test]
fn viewers_of_many_large_results_who_read_nothing_do_not_fill_the_memory() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let id = heavy(&stage, &token, RESULTS);
    let path = format!("/api/v1/executions/{id}");
    let answer = stage.server.bare(Method::GET, &path).bearer_auth(&token).send().unwrap().text().unwrap();
    assert!(answer.len() < ANSWER_BYTES_MAX, "{} bytes", answer.len());
    is_shortened(&stage, &token, &id, &serde_json::from_str(&answer).unwrap());
    let viewer = stage.token("viewer");
    let mut deaf = Deaf::new(&stage.server);
    let answered = deaf.asks(&viewer, &path, VIEWERS);
    let waited = stage.bystander();
    println!("{answered} of {VIEWERS} answered, peak {} MiB, bystander {waited:?}", stage.peak_mib());
    assert!(stage.peak_mib() < PEAK_MIB, "{} MiB", stage.peak_mib());
    assert!(waited < PATIENCE);
}

/// The newest results are reported, the others by their size and place; the place has the whole value, for its tenant alone.
fn is_shortened(stage: &Stage, token: &str, id: &str, answer: &Value) {
    let iterations = answer["nodeExecutions"][0]["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), RESULTS);
    let (omitted, whole): (Vec<&Value>, Vec<&Value>) = iterations
        .iter()
        .map(|iteration| &iteration["output"])
        .partition(|output| output["$omitted"] == true);
    assert!(omitted.len() > RESULTS / 2 && whole.len() > 10, "{} and {}", omitted.len(), whole.len());
    assert!(
        answer["shortened"]["values"].as_u64().unwrap() >= omitted.len() as u64,
        "{}",
        answer["shortened"]
    );
    assert_eq!(answer["shortened"]["events"], format!("/api/v1/executions/{id}/events"));
    let url = omitted[0]["url"].as_str().unwrap();
    assert!(omitted[0]["bytes"].as_u64().unwrap() > RESULT_BYTES as u64, "{}", omitted[0]);
    let (status, value) = stage.send(token, Method::GET, url, &Value::Null);
    assert_eq!((status, value["text"].as_str().unwrap().len()), (StatusCode::OK, RESULT_BYTES));
    assert_eq!(stage.server.get(url).status(), StatusCode::NOT_FOUND, "another tenant");
    for address in ["0.0", "999999.0", "1.7", "x", "1", "-1.0", "1.0.0", "18446744073709551615.0"] {
        let path = format!("/api/v1/executions/{id}/values/{address}");
        let (status, answer) = stage.send(token, Method::GET, &path, &Value::Null);
        assert_eq!(status, StatusCode::NOT_FOUND, "{address}: {answer}");
    }
}

#[test]
fn pages_of_large_entries_end_by_their_bytes_and_go_on() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let steps = (0..STEPS).map(|n| {
        let next = if n + 1 < STEPS { format!(", next: s{}", n + 1) } else { String::new() };
        format!("- {{step: s{n}, tool: {{kind: noop, result: '{{{{ workload.text }}}}'}}{next}}}\n")
    });
    let text = format!(
        "metadata: {{name: chain}}\nworkload: {{text: ''}}\nworkflow:\n{}",
        steps.collect::<String>()
    );
    let (status, made) = stage.upload(&token, &text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let body = json!({ "inputs": { "text": "x".repeat(RESULT_BYTES) } });
    let (_, begun) = stage.send(&token, Method::POST, &path, &body);
    let id = begun["executionId"].as_str().unwrap().to_owned();
    assert_eq!(stage.ended(&token, &id)["status"], "completed");
    for list in ["events", "evidence", "logs"] {
        let (mut cursor, mut count, mut pages) = (String::new(), 0, 0);
        loop {
            let path = format!("/api/v1/executions/{id}/{list}?limit=1000{cursor}");
            let text =
                stage.server.bare(Method::GET, &path).bearer_auth(&token).send().unwrap().text().unwrap();
            assert!(text.len() < 1_400_000, "{list}: {} bytes", text.len());
            let page: Value = serde_json::from_str(&text).unwrap();
            count += page[list].as_array().unwrap().len();
            pages += 1;
            match page["pagination"]["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => break,
            }
        }
        println!("{list}: {count} entries in {pages} pages");
        assert!(count >= STEPS, "{list}: {count}");
        assert!(list != "events" || pages > 2, "{list} has {pages} pages");
    }
}

#[test]
fn answers_that_are_not_read_use_up_the_budget_of_their_own_tenant_alone() {
    let stage = Stage::at(Place::new().variable("WINDLASS_TENANT_ANSWERS", "8MiB"));
    let token = stage.token("developer");
    let path = format!("/api/v1/executions/{}", heavy(&stage, &token, 80));
    let own = format!("/api/v1/executions/{}", heavy(&stage, stage.server.token(), 80));
    let mut deaf = Deaf::new(&stage.server);
    let answered = deaf.asks(&token, &path, 20);
    assert!((1..20).contains(&answered), "{answered} of 20 answered");
    let begun = Instant::now();
    let refused = stage.server.bare(Method::GET, &path).bearer_auth(&token).send().unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.headers().contains_key("retry-after"));
    println!("{answered} of 20 answered; refused after {:?}", begun.elapsed());
    let (status, small) = stage.send(&token, Method::GET, &format!("{path}/status"), &Value::Null);
    assert_eq!(status, StatusCode::OK, "a small answer is not refused: {small}");
    assert_eq!(stage.server.get(&own).status(), StatusCode::OK, "another tenant");
    drop(deaf);
    until("the tenant is answered again", || {
        let asked = stage.server.bare(Method::GET, &path).bearer_auth(&token).send().unwrap();
        (asked.status() == StatusCode::OK).then_some(())
    });
}
