//! Readers of a very long journal: other tenants do not wait for them.

use crate::rig::until;
use crate::stage::Stage;
use reqwest::blocking::Client;
use reqwest::{Method, StatusCode};
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Iterations: in a debug build a journal that takes many seconds to fold, and few to make.
const ITERATIONS: usize = 4_000;
const READERS: usize = 16;
/// Far beyond what a request takes here, and far below what the old server made others wait.
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn sixteen_readers_of_a_long_journal_do_not_hold_up_another_tenant() {
    let stage = Stage::new();
    let token = stage.token("developer");
    let id = long(&stage, &token);
    let small = stage.server.define("metadata: {name: small}\nworkflow:\n- {step: a, tool: {kind: noop}}\n");
    let body = json!({ "options": { "async": false } });
    let (_, own) = stage.server.post(&format!("/api/v1/workflows/{small}/execute"), &body);
    let own = format!("/api/v1/executions/{}", own["executionId"].as_str().unwrap());
    let over = AtomicBool::new(false);
    let mut waited = Vec::new();
    std::thread::scope(|scope| {
        for number in 0..READERS {
            let path = ["", "/events?limit=1000", "/evidence?limit=1000", "/logs?limit=1000"][number % 4];
            let url = format!("{}/api/v1/executions/{id}{path}", stage.server.url());
            let (token, over) = (&token, &over);
            scope.spawn(move || {
                let client = Client::builder().timeout(Duration::from_secs(120)).build().unwrap();
                while !over.load(Ordering::Relaxed) {
                    let asked = client.get(&url).bearer_auth(token).send().unwrap();
                    let status = asked.status();
                    assert!(
                        status == StatusCode::OK || status == StatusCode::SERVICE_UNAVAILABLE,
                        "{status}"
                    );
                    asked.bytes().unwrap();
                }
            });
        }
        for _ in 0..50 {
            let begun = Instant::now();
            assert_eq!(stage.server.get(&own).status(), StatusCode::OK);
            waited.push(begun.elapsed());
        }
        over.store(true, Ordering::Relaxed);
    });
    waited.sort();
    let (median, most) = (waited[waited.len() / 2], waited[waited.len() - 1]);
    println!("others waited {median:?}, at most {most:?}; {} MiB", stage.memory_mib());
    assert!(most < PATIENCE, "{waited:?}");
}

/// Runs a loop of many iterations; the execution's id.
fn long(stage: &Stage, token: &str) -> String {
    let items: Vec<usize> = (0..ITERATIONS).collect();
    let text = "metadata: {name: long}\nworkload: {items: []}\nworkflow:\n- step: each\n  \
                loop: {in: '{{ workload.items }}', iterator: item, spec: {mode: parallel}}\n  tool: {kind: noop, result: '{{ iter.item }}'}\n";
    let (status, made) = stage.upload(token, text);
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let path = format!("/api/v1/workflows/{}/execute", made["id"].as_str().unwrap());
    let (status, answer) = stage.send(token, Method::POST, &path, &json!({ "inputs": { "items": items } }));
    assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
    let id = answer["executionId"].as_str().unwrap().to_owned();
    until("the loop ends", || {
        let (_, now) = stage.send(token, Method::GET, &format!("/api/v1/executions/{id}/status"), &json!({}));
        (now["status"] == "completed").then_some(())
    });
    id
}
