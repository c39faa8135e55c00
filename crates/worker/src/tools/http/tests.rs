//! Tests of attacks by names, which the tests resolve. The servers are real.

use super::clients::Clients;
use super::config::{Limits, Request};
use super::exchange::exchange;
use crate::egress::{Egress, Resolver};
use crate::footprint::Share;
use crate::pipeline::CallResult;
use reqwest::Method;
use reqwest::header::HeaderMap;
use serde_json::json;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const LOOPBACK: &str = "127.0.0.1";
const METADATA: &str = "169.254.169.254";

/// Serves one connection after the other with one answer each, and counts them.
async fn server(answers: Vec<String>) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (port, connections)
}

fn ok() -> String {
    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nhi".to_owned()
}

fn to(location: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nconnection: close\r\ncontent-length: 0\r\nlocation: {location}\r\n\r\n")
}

/// Each lookup returns the next list of addresses, and later ones the last. The names are recorded.
struct World {
    clients: Clients,
    asked: Arc<Mutex<Vec<String>>>,
}

fn world(allow_private: bool, answers: &[&[&str]]) -> World {
    let egress = Arc::new(Egress { allow_private, allow: vec![] });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let remembered = Arc::clone(&asked);
    let answers: Vec<Vec<IpAddr>> =
        answers.iter().map(|answer| answer.iter().map(|ip| ip.parse().unwrap()).collect()).collect();
    let lookup = move |name: &str| {
        let mut asked = remembered.lock().unwrap();
        asked.push(name.to_owned());
        answers[(asked.len() - 1).min(answers.len() - 1)].clone()
    };
    World { clients: Clients::resolved_by(Resolver::with(Arc::clone(&egress), lookup), egress), asked }
}

impl World {
    async fn get(&self, url: &str) -> CallResult {
        let request = Request {
            method: Method::GET,
            url: url.parse().unwrap(),
            headers: HeaderMap::new(),
            body: None,
            secret: vec![],
            secret_param: None,
            limits: Limits::default(),
            follows: true,
            response_max: 1000,
            any_status: false,
            mapping: None,
        };
        exchange(&request, &self.clients, &Share::new(Arc::default())).await
    }

    fn lookups(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn outcome_of(called: &CallResult) -> String {
    match &called.outcome {
        Ok(result) => format!("ok {}", result["data"]),
        Err(failure) => format!("{} {}", failure.class.name(), failure.code),
    }
}

#[tokio::test]
async fn a_name_is_as_good_as_the_address_it_resolves_to() {
    let (port, connections) = server(vec![ok()]).await;
    let url = format!("http://innocent.example:{port}/");
    for refused in [METADATA, "fe80::1", "0.0.0.0", "::ffff:169.254.169.254"] {
        let called = world(true, &[&[refused]]).get(&url).await;
        assert_eq!(outcome_of(&called), "policy EGRESS_REFUSED", "{refused}");
        let message = called.outcome.unwrap_err().message;
        assert!(message.contains(&format!("GET {url} is not made: the address {refused} is")), "{message}");
    }
    let called = world(false, &[&[LOOPBACK]]).get(&url).await;
    assert_eq!(outcome_of(&called), "policy EGRESS_REFUSED");
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    assert_eq!(outcome_of(&world(true, &[&[LOOPBACK]]).get(&url).await), "ok \"hi\"");
}

#[tokio::test]
async fn of_several_addresses_only_the_allowed_are_connected_to() {
    let (port, _) = server(vec![ok()]).await;
    let world = world(true, &[&[METADATA, LOOPBACK, "fe80::1"]]);
    assert_eq!(outcome_of(&world.get(&format!("http://mixed.example:{port}/")).await), "ok \"hi\"");
}

#[tokio::test]
async fn a_name_that_changes_its_address_is_checked_at_every_connection_and_asked_once_for_each() {
    let (port, connections) = server(vec![ok(), ok()]).await;
    let world = world(true, &[&[LOOPBACK], &[METADATA]]);
    let url = format!("http://rebinding.example:{port}/");
    assert_eq!(outcome_of(&world.get(&url).await), "ok \"hi\"", "what was checked is what was connected to");
    assert_eq!(world.lookups().len(), 1);
    assert_eq!(outcome_of(&world.get(&url).await), "policy EGRESS_REFUSED");
    assert_eq!((world.lookups().len(), connections.load(Ordering::SeqCst)), (2, 1));
}

#[tokio::test]
async fn a_redirect_to_a_name_is_checked_like_any_other() {
    let (port, connections) = server(vec![to("http://other.example/latest/meta-data"), ok()]).await;
    let world = world(true, &[&[LOOPBACK], &[METADATA]]);
    let called = world.get(&format!("http://first.example:{port}/")).await;
    assert_eq!(outcome_of(&called), "policy EGRESS_REFUSED");
    assert_eq!(world.lookups(), ["first.example", "other.example"]);
    assert_eq!(connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_name_without_an_address_is_a_failed_connection() {
    let called = world(true, &[&[]]).get("http://nowhere.example/").await;
    assert_eq!(outcome_of(&called), "transport DNS_FAILED");
    assert!(called.facts.is_empty(), "there was no answer");
    assert_eq!(called.outcome.unwrap_err().details, json!(null));
}
