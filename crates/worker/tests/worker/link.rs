//! The connection of a worker process to a server that answers late.

use crate::engine::PATIENCE;
use crate::server::{Server, answer};
use serde_json::json;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};
use windlass_protocol::{
    Call, CallBatch, OpenedSession, PROTOCOL_VERSION, Register, Registered, Reply, SessionId, Verdict,
};
use windlass_worker::{LinkConfig, connect};

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

#[test]
fn the_session_of_a_superseded_registration_is_left_and_gets_no_orders() {
    let server = late_server();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let handle = runtime.handle().clone();
    std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
    let folder = tempfile::tempdir().unwrap();
    let config = LinkConfig {
        server: server.url(""),
        token: "t".to_owned().into(),
        group: "lab".to_owned(),
        cluster: None,
        release: "1".to_owned(),
        downloads: folder.path().to_owned(),
    };
    let port = {
        let _inside = handle.enter();
        connect(config, Arc::new(|_| {})).unwrap()
    };
    let register = |worker: &str| {
        Call::Register(Register { protocol: PROTOCOL_VERSION, worker: worker.to_owned(), slots: 1 })
    };
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
