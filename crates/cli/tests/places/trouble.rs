//! Failures of the connection to a server.

use crate::rig::{Place, Running, Server, playbook, until};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs until the file is there; files are named by their whole paths, because a server works elsewhere.
fn lasting(place: &Place) -> String {
    let go = place.path("go").display().to_string();
    let steps = format!(
        "workflow:\n- step: lasting\n  tool: {{kind: shell, command: 'echo begun; while ! test -e {go}; do sleep 0.02; done; echo over'}}\n"
    );
    playbook("lasting", &steps)
}

/// A server, and a client elsewhere whose execution at it lasts.
fn begun() -> (Place, Server, Place, Running) {
    let host = Place::new();
    let server = host.serve();
    let place = Place::new().at(&server);
    place.write("play.yaml", &lasting(&place));
    let mut running = place.start(&["run", "play.yaml"]);
    running.until_says("lasting | begun");
    (host, server, place, running)
}

#[test]
fn a_wrong_token_is_reported_with_the_way_to_get_a_valid_one() {
    let host = Place::new();
    let server = host.serve();
    let nobody = Place::new().variable("WINDLASS_URL", server.url());
    for place in
        [nobody, Place::new().variable("WINDLASS_URL", server.url()).variable("WINDLASS_TOKEN", "wdl_wrong")]
    {
        for args in [&["executions", "list"][..], &["workflows", "list"], &["secrets", "list"]] {
            let output = place.windlass(args).expect(2).says("AUTHENTICATION_FAILED");
            output.says("WINDLASS_TOKEN").says("owner.token");
        }
    }
}

#[test]
fn a_token_may_lie_in_a_file() {
    let host = Place::new();
    let server = host.serve();
    let place = Place::new();
    place.write("token", &format!("{}\n", server.token()));
    place.windlass(&["executions", "list", "--url", server.url(), "--token-file", "token"]).expect(0);
    let output = place.windlass(&["executions", "list", "--url", server.url(), "--token-file", "none"]);
    output.expect(2).says("cannot read the token in none");
}

#[test]
fn a_server_that_is_not_there_is_reported_with_its_address() {
    // There is no listener on the first port.
    let place = Place::new().variable("WINDLASS_URL", "http://127.0.0.1:1").variable("WINDLASS_TOKEN", "x");
    place.write("play.yaml", &playbook("play", "workflow:\n- {step: a}\n"));
    for args in
        [&["executions", "list"][..], &["workflows", "list"], &["run", "play.yaml"], &["secrets", "list"]]
    {
        let output = place.windlass(args).expect(1).says("cannot reach the server at http://127.0.0.1:1");
        output.says("refused").says("WINDLASS_URL");
    }
    assert!(!place.path("data").exists(), "nothing was done here instead");
}

#[test]
fn what_is_no_url_is_reported() {
    for (url, why) in
        [("127.0.0.1:7070", "http://"), ("ftp://example.com", "http://"), ("nonsense", "http://")]
    {
        let output = Place::new().windlass(&["executions", "list", "--url", url]).expect(2);
        output.says("is not the URL of a server").says(why);
    }
}

#[test]
fn another_program_on_the_port_is_reported_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answering = std::thread::spawn(move || {
        let (mut asked, _) = listener.accept().unwrap();
        let _ = asked.read(&mut [0; 4096]).unwrap();
        asked
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
            .unwrap();
    });
    let output = Place::new().windlass(&["executions", "list", "--url", &url]).expect(2);
    output.says("HTTP 404").says("is the URL that of a Windlass server?");
    answering.join().unwrap();
}

/// Returns the URL of a proxy to the server whose connection breaks during the response to the first start.
fn behind_a_bad_line(server: &Server) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (address, is_broken) = (server.address().to_owned(), Arc::new(AtomicBool::new(false)));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (there, breaks) = (TcpStream::connect(&address).unwrap(), Arc::new(AtomicBool::new(false)));
            let (from, to) = (client.try_clone().unwrap(), there.try_clone().unwrap());
            let (asking, broken) = (breaks.clone(), is_broken.clone());
            std::thread::spawn(move || {
                carry(from, to, |part| {
                    let is_start = part.windows(8).any(|word| word == b"/execute");
                    asking.store(is_start && !broken.swap(is_start, Ordering::SeqCst), Ordering::SeqCst);
                    true
                });
            });
            std::thread::spawn(move || carry(there, client, |_| !breaks.load(Ordering::SeqCst)));
        }
    });
    url
}

/// Copies bytes until either side ends, or `passes` refuses a part.
fn carry(mut from: TcpStream, mut to: TcpStream, passes: impl Fn(&[u8]) -> bool) {
    let mut part = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut part) {
        if !passes(&part[..read]) || to.write_all(&part[..read]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[test]
fn a_start_whose_answer_is_lost_is_sent_again_and_starts_nothing_twice() {
    let host = Place::new();
    let server = host.serve();
    let url = behind_a_bad_line(&server);
    let place = Place::new().variable("WINDLASS_URL", &url).variable("WINDLASS_TOKEN", server.token());
    place.write("play.yaml", &playbook("play", "workflow:\n- {step: a}\n"));
    place.windlass(&["run", "play.yaml"]).expect(0).says("completed");
    let listed = place.windlass(&["executions", "list", "--json"]).expect(0);
    assert_eq!(listed.out.matches("executionId").count(), 1, "{}", listed.out);
}

#[test]
fn a_server_that_is_killed_and_started_again_is_waited_for() {
    let (host, server, place, running) = begun();
    let address = server.address().to_owned();
    server.kill();
    let _server = host.serve_on(&address);
    place.write("go", "");
    let (code, _, err) = running.end();
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("completed after"), "{err}");
}

#[test]
fn a_server_that_stays_unreachable_is_reported_with_the_command_to_continue() {
    let (host, server, place, running) = begun();
    let address = server.address().to_owned();
    server.kill();
    let (code, _, err) = running.end();
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("it continues at the server; follow it with:"), "{err}");
    assert!(err.contains("cannot reach the server at"), "{err}");
    let follow = err.lines().find(|line| line.contains("executions watch")).unwrap();
    let _server = host.serve_on(&address);
    place.write("go", "");
    let words: Vec<&str> = follow.split_whitespace().skip(1).collect();
    place.windlass(&words).expect(0).says("completed");
}

#[test]
fn an_interrupted_command_reports_that_the_execution_continues() {
    let (_host, _server, place, running) = begun();
    running.signal(Signal::INT);
    let (code, _, err) = running.end();
    assert_eq!(code, Some(130), "{err}");
    assert!(err.contains("windlass executions cancel exec_"), "{err}");
    place.write("go", "");
    until("the execution completes", || {
        let output = place.windlass(&["executions", "list", "--status", "completed"]).expect(0);
        output.out.contains("lasting").then_some(())
    });
}

#[test]
fn what_only_the_owner_of_a_folder_does_is_not_done_elsewhere() {
    let place = Place::new().variable("WINDLASS_URL", "http://127.0.0.1:1");
    place.windlass(&["secrets", "rotate"]).expect(2).says("this command works in a data folder");
    place.windlass(&["admin", "check"]).expect(2).says("there is no data").says("WINDLASS_URL is set");
}
