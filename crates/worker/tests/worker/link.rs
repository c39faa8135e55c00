//! The connection of a worker process to a server that answers late, or that accepts only small requests.

use crate::engine::PATIENCE;
use crate::server::{Server, answer};
use serde_json::json;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use windlass_protocol::{
    CALLS_BYTES_MAX, Call, CallBatch, OpenedSession, Outcome, PROTOCOL_VERSION, Register, Registered, Reply,
    Report, SessionId, Unit, Verdict,
};
use windlass_worker::{LinkConfig, Port, connect};

/// Answers the first registration after the second one has arrived, as an overloaded server would.
fn late_server() -> Server {
    let second = Arc::new((Mutex::new(false), Condvar::new()));
    Server::start(move |seen| {
        if !seen.line.ends_with("/register") {
            let reply = Some(Reply::Verdict(Verdict::Accepted));
            let body = if seen.line.ends_with("/calls") {
                json!({ "replies": [reply] })
            } else {
                return Vec::new();
            };
            return answer("200 OK", "content-type: application/json\r\n", &body.to_string()).into_bytes();
        }
        let number = if seen.body.contains("worker 2") { 2 } else { 1 };
        let (has_come, changed) = &*second;
        if number == 2 {
            *has_come.lock().unwrap() = true;
            changed.notify_all();
        } else {
            drop(changed.wait_while(has_come.lock().unwrap(), |has_come| !*has_come).unwrap());
        }
        let registered = Registered { session: SessionId(number), rules: Arc::default() };
        let opened = OpenedSession { session: format!("s{number}"), registered };
        let body = serde_json::to_string(&opened).unwrap();
        answer("200 OK", "content-type: application/json\r\n", &body).into_bytes()
    })
}

fn replies() -> (Box<dyn FnMut(Reply) + Send>, Receiver<Reply>) {
    let (sender, received) = channel();
    (Box::new(move |reply| drop(sender.send(reply))), received)
}

/// Connects to the server; the connection lives as long as this process.
fn connected(server: &Server, downloads: &Path) -> Port {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let config = LinkConfig {
        server: server.url(""),
        token: "t".to_owned().into(),
        group: "lab".to_owned(),
        cluster: None,
        release: "1".to_owned(),
        downloads: downloads.to_owned(),
    };
    let _inside = handle.enter();
    connect(config, Arc::new(|_| {})).unwrap()
}

fn register(worker: &str) -> Call {
    Call::Register(Register { protocol: PROTOCOL_VERSION, worker: worker.to_owned(), slots: 1 })
}

#[test]
fn the_session_of_a_superseded_registration_is_left_and_gets_no_orders() {
    let server = late_server();
    let folder = tempfile::tempdir().unwrap();
    let port = connected(&server, folder.path());
    let (first, first_replies) = replies();
    port(register("worker 1"), first);
    let (second, second_replies) = replies();
    port(register("worker 2"), second);
    let reply = second_replies.recv_timeout(PATIENCE).unwrap();
    assert!(
        matches!(&reply, Reply::Registered(registered) if registered.session == SessionId(2)),
        "{reply:?}"
    );
    let mut left = None;
    while left.is_none() {
        let seen = server.request();
        assert!(!(seen.line.ends_with("/orders") && seen.body.contains("s1")), "{seen:?}");
        if seen.line.ends_with("/calls") {
            assert_eq!(seen.header("windlass-session"), Some("s1"), "a server refuses calls without it");
        }
        left = seen.line.ends_with("/calls").then(|| serde_json::from_str::<CallBatch>(&seen.body).unwrap());
    }
    assert_eq!(left, Some(CallBatch { session: "s1".to_owned(), calls: vec![Call::Leave(SessionId(1))] }));
    assert!(first_replies.try_recv().is_err(), "the first registration has no reply");
}

/// Bytes that a request with calls may have.
const SMALL: usize = 2_000;

/// Answers the first request with calls when `go` is set, and refuses large ones.
fn small_server(go: Arc<(Mutex<bool>, Condvar)>) -> Server {
    Server::start(move |seen| {
        let sent = |body: &str| answer("200 OK", "content-type: application/json\r\n", body).into_bytes();
        if seen.line.ends_with("/register") {
            let registered = Registered { session: SessionId(1), rules: Arc::default() };
            let opened = OpenedSession { session: "s1".to_owned(), registered };
            return sent(&serde_json::to_string(&opened).unwrap());
        }
        if !seen.line.ends_with("/calls") {
            return Vec::new();
        }
        drop(go.1.wait_while(go.0.lock().unwrap(), |go| !*go).unwrap());
        if seen.body.len() > SMALL {
            return answer("413 Payload Too Large", "", "<html>no</html>").into_bytes();
        }
        let batch: CallBatch = serde_json::from_str(&seen.body).unwrap();
        let replies = vec![Some(Reply::Verdict(Verdict::Accepted)); batch.calls.len()];
        sent(&json!({ "replies": replies }).to_string())
    })
}

fn report(number: u64, bytes: usize) -> Call {
    let unit = Unit { execution: 1, run: number, fence: number };
    let outcome = Outcome::Done { output: json!("x".repeat(bytes)) };
    Call::Report(Box::new(Report { unit, outcome, patch: Default::default(), metadata: Default::default() }))
}

#[test]
fn calls_that_are_too_large_together_are_sent_in_parts_and_one_that_is_too_large_alone_is_refused() {
    let go = Arc::default();
    let server = small_server(Arc::clone(&go));
    let folder = tempfile::tempdir().unwrap();
    let port = connected(&server, folder.path());
    let (registered, registrations) = replies();
    port(register("worker"), registered);
    assert!(matches!(registrations.recv_timeout(PATIENCE).unwrap(), Reply::Registered(_)));
    // The first call is on its way while the others become one batch.
    let answers: Vec<Receiver<Reply>> = [10, 800, 800, 4_000, 800, 800, 800]
        .into_iter()
        .zip(1..)
        .map(|(bytes, number)| {
            let (reply, received) = replies();
            port(report(number, bytes), reply);
            received
        })
        .collect();
    *go.0.lock().unwrap() = true;
    go.1.notify_all();
    for (index, answer) in answers.iter().enumerate() {
        match answer.recv_timeout(PATIENCE).unwrap() {
            Reply::Verdict(verdict) => assert_eq!((verdict, index == 3), (Verdict::Accepted, false)),
            Reply::Refused(why) => {
                assert_eq!((why.code.as_str(), index), ("RESULT_TOO_LARGE", 3));
                let message = &why.message;
                assert!(message.contains("4") && message.contains("413"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_call_beyond_the_limit_of_every_server_is_refused_without_being_sent() {
    let server = small_server(Arc::new((Mutex::new(true), Condvar::new())));
    let folder = tempfile::tempdir().unwrap();
    let port = connected(&server, folder.path());
    let (registered, registrations) = replies();
    port(register("worker"), registered);
    assert!(matches!(registrations.recv_timeout(PATIENCE).unwrap(), Reply::Registered(_)));
    let (reply, answers) = replies();
    port(report(1, CALLS_BYTES_MAX), reply);
    let Reply::Refused(why) = answers.recv_timeout(PATIENCE).unwrap() else { panic!("it is refused") };
    assert!(why.message.contains(&format!("more than the limit of {CALLS_BYTES_MAX} bytes")), "{why:?}");
    assert!(server.seen().iter().all(|seen| !seen.line.ends_with("/calls")), "nothing is sent");
}
