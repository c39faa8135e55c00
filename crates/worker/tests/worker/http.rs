//! http tasks against real servers.

use crate::engine::{Finished, Shop, UNIT, pipeline};
use crate::server::{Server, answer};
use serde_json::{Value, json};
use std::io::BufRead;
use windlass_protocol::{Failure, Order, Outcome, Work};
use windlass_worker::egress::Egress;

fn http(config: Value) -> Work {
    pipeline(
        json!({ "inline_bytes": 10_000_000, "tasks": [{ "label": "call", "kind": "http", "config": config }] }),
    )
}

fn run(config: Value) -> Finished {
    Shop::open().run(http(config))
}

fn failure(config: Value) -> Failure {
    run(config).failure().clone()
}

#[test]
fn an_answer_is_a_result_with_its_data() {
    let kind = |kind: &str| format!("content-type: {kind}\r\nx-two: a\r\nx-two: b\r\n");
    let check = |content: &str, body: &str, data: Value| {
        let server = Server::answering(&answer("200 OK", &kind(content), body));
        let finished = run(json!({ "url": server.url("/a?b=c") }));
        let mut output = finished.output().clone();
        assert!(output["elapsed"].as_f64().unwrap() > 0.0);
        output["elapsed"] = json!(0);
        let length = body.len().to_string();
        let headers = json!({ "connection": "close", "content-length": length, "content-type": content, "x-two": "a, b" });
        let expected = json!({
            "status_code": 200, "headers": headers, "url": server.url("/a?b=c"), "elapsed": 0, "data": data,
        });
        assert_eq!(output, expected);
    };
    check("application/json", r#"{"n": [1, null]}"#, json!({ "n": [1, null] }));
    check("application/problem+json; charset=utf-8", "3", json!(3));
    check("application/json", "", Value::Null);
    check("text/html", "<p>ä", json!("<p>ä"));
    let large = format!("[{}0]", "1,".repeat(200_000));
    check("application/json", &large, serde_json::from_str(&large).unwrap());
    check("text/plain", r#"{"n": 1}"#, json!(r#"{"n": 1}"#));
}

#[test]
fn bytes_that_are_no_text_are_base64() {
    let with = |head: &'static str| {
        let server = Server::start(move |_| {
            [
                format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{head}content-length: 3\r\n\r\n").as_bytes(),
                b"\xffa\xe9",
            ]
            .concat()
        });
        run(json!({ "url": server.url("/") })).output()["data"].clone()
    };
    assert_eq!(with("content-type: image/png\r\n"), json!({ "$base64": "/2Hp" }));
    assert_eq!(with("content-type: text/plain; charset=ISO-8859-1\r\n"), json!("ÿaé"));
    let server = Server::answering(&answer("200 OK", "content-type: application/json\r\n", "<p>"));
    let failed = failure(json!({ "url": server.url("/") }));
    assert_eq!((failed.code.as_str(), &failed.details["body"]), ("RESPONSE_NOT_JSON", &json!("<p>")));
}

#[test]
fn a_request_is_made_of_the_fields() {
    let ok = || Server::answering(&answer("200 OK", "", ""));
    let sent = |config: Value| {
        let server = ok();
        let mut config = config;
        config["url"] = json!(server.url(config["url"].as_str().unwrap_or("/")));
        let finished = run(config);
        assert!(matches!(finished.outcome, Outcome::Done { .. }), "{:?}", finished.outcome);
        server.request()
    };
    let seen = sent(
        json!({ "url": "/p?own=1", "params": { "n": 3, "none": null, "list": ["a b", 2, null], "flag": true } }),
    );
    assert_eq!(seen.line, "GET /p?own=1&n=3&list=a+b&list=2&flag=true");
    assert_eq!((seen.header("idempotency-key"), seen.body.as_str()), (None, ""));
    let seen =
        sent(json!({ "method": "post", "body": { "a": [1] }, "headers": { "X-N": 4, "x-none": null } }));
    assert_eq!((seen.line.as_str(), seen.body.as_str()), ("POST /", r#"{"a":[1]}"#));
    assert_eq!(
        (seen.header("content-type"), seen.header("x-n"), seen.header("x-none")),
        (Some("application/json"), Some("4"), None)
    );
    let seen = sent(json!({ "method": "PUT", "payload": "just text" }));
    assert_eq!(
        (seen.body.as_str(), seen.header("content-type")),
        ("just text", Some("text/plain; charset=utf-8"))
    );
    let seen = sent(
        json!({ "method": "PUT", "json": "text", "headers": { "Content-Type": "application/vnd.x+json" } }),
    );
    assert_eq!(
        (seen.body.as_str(), seen.header("content-type")),
        ("\"text\"", Some("application/vnd.x+json"))
    );
    let seen = sent(json!({ "method": "POST", "form": { "a": "ä&b", "l": [1, 2] } }));
    assert_eq!(
        (seen.body.as_str(), seen.header("content-type")),
        ("a=%C3%A4%26b&l=1&l=2", Some("application/x-www-form-urlencoded"))
    );
    let seen = sent(json!({ "method": "POST", "data": { "query": { "q": 1 }, "body": [2] } }));
    assert_eq!((seen.line.as_str(), seen.body.as_str()), ("POST /?q=1", "[2]"));
    let seen = sent(json!({ "method": "POST", "data": { "query": 1, "more": 2 } }));
    assert_eq!((seen.line.as_str(), seen.body.as_str()), ("POST /", r#"{"query":1,"more":2}"#));
}

#[test]
fn every_form_of_credentials_is_sent() {
    let sent = |auth: Value| {
        let server = Server::answering(&answer("200 OK", "", ""));
        run(json!({ "url": server.url("/"), "auth": auth }));
        server.request()
    };
    assert_eq!(sent(json!({ "type": "bearer", "token": "t1" })).header("authorization"), Some("Bearer t1"));
    assert_eq!(
        sent(json!({ "type": "oauth2", "data": { "access_token": "t2" } })).header("authorization"),
        Some("Bearer t2")
    );
    assert_eq!(sent(json!({ "token": "t3" })).header("authorization"), Some("Bearer t3"));
    let basic = json!({ "type": "basic", "username": "u", "password": "p:w" });
    assert_eq!(sent(basic).header("authorization"), Some("Basic dTpwOnc="));
    assert_eq!(sent(json!({ "type": "api_key", "value": "k" })).header("x-api-key"), Some("k"));
    assert_eq!(sent(json!({ "type": "api_key", "header": "X-Own", "key": "k" })).header("x-own"), Some("k"));
    let query = json!({ "type": "api_key", "name": "key", "value": "k&", "in": "query" });
    assert_eq!(sent(query.clone()).line, "GET /?key=k%26");
    let server = Server::answering(&answer("200 OK", "", ""));
    let host = format!("user:pw@127.0.0.1:{}", server.port);
    let finished = run(json!({ "url": format!("http://{host}/?a=1"), "auth": query }));
    assert_eq!(finished.output()["url"], server.url("/?a=1&key=***"), "the result has no secret");
    assert_eq!(server.request().header("authorization"), Some("Basic dXNlcjpwdw=="));
}

#[test]
fn an_idempotency_key_identifies_the_tries_of_one_call() {
    let server = Server::start(|seen| {
        let status = if seen.body == "1" { "503 Busy" } else { "200 OK" };
        answer(status, "", "").into_bytes()
    });
    let retry = json!({ "do": "retry", "attempts": 2, "backoff": "constant", "delay_ms": 0 });
    let task = |label: &str, body: &str, own: Value| {
        let config = json!({ "url": server.url("/"), "method": "POST", "body": body, "headers": { "Idempotency-Key": own } });
        let rules = json!([
            { "when": "outcome.status == 'error' and _attempt < 2", "action": retry },
            { "action": { "do": "continue" } },
        ]);
        json!({ "label": label, "kind": "http", "config": config, "rules": rules })
    };
    let tasks = [task("a", "1", Value::Null), task("b", "2", Value::Null), task("c", "3", json!("own"))];
    Shop::open().run(pipeline(json!({ "tasks": tasks })));
    let keys: Vec<String> =
        (0..4).map(|_| server.request().header("idempotency-key").unwrap().to_owned()).collect();
    let key = format!("{:032x}:7", 0xabc);
    assert_eq!(keys, [key.clone(), key.clone(), format!("{key}:1"), "own".to_owned()]);
}

#[test]
fn a_status_beyond_2xx_is_an_error_of_its_class() {
    let check = |status: &str, expected: &str| {
        let server = Server::answering(&answer(status, "", "why"));
        let failed = failure(json!({ "url": server.url("/x?secret=1") }));
        assert_eq!(format!("{} {}", failed.class.name(), failed.code), expected, "{status}");
        let message = format!("GET {} was answered with {status}", server.url("/x"));
        assert_eq!((failed.message, &failed.details["body"]), (message, &json!("why")));
    };
    check("400 Bad Request", "validation VALIDATION_ERROR");
    check("401 Unauthorized", "auth AUTHENTICATION_FAILED");
    check("403 Forbidden", "policy PERMISSION_DENIED");
    check("404 Not Found", "validation RESOURCE_NOT_FOUND");
    check("408 Request Timeout", "timeout NETWORK_TIMEOUT");
    check("409 Conflict", "conflict CONFLICT");
    check("429 Too Many Requests", "rate_limit RATE_LIMIT_EXCEEDED");
    check("500 Internal Server Error", "transient_5xx SERVICE_UNAVAILABLE");
    check("503 Service Unavailable", "transient_5xx SERVICE_UNAVAILABLE");
    check("300 Multiple Choices", "validation VALIDATION_ERROR");
}

#[test]
fn rules_see_status_headers_and_kind() {
    let sees = |status: &str, when: &str| {
        let server = Server::answering(&answer(status, "retry-after: 7\r\nx-left: 0\r\n", "{}"));
        let rules = json!([{ "when": when, "action": { "do": "break" } }, { "action": { "do": "fail" } }]);
        let task =
            json!({ "label": "a", "kind": "http", "config": { "url": server.url("/") }, "rules": rules });
        let finished = Shop::open().run(pipeline(json!({ "tasks": [task] })));
        assert!(matches!(finished.outcome, Outcome::Done { .. }), "{when}: {:?}", finished.outcome);
    };
    sees(
        "200 OK",
        "outcome.http.status == 200 and outcome.http.headers['x-left'] == '0' and outcome.status == 'ok'",
    );
    sees("503 Busy", "outcome.http.status in [500, 503] and outcome.error.http_status == 503");
    sees(
        "503 Busy",
        "outcome.error.kind == 'transient_5xx' and outcome.error.httpStatus and outcome.error.retryable and outcome.error.source == 'http'",
    );
    sees(
        "429 Slow",
        "outcome.error.kind == 'rate_limit' and outcome.error.retryAfterMs == 7000 and outcome.error.httpStatus == 429 and outcome.error.retry_after == 7 and outcome.error.retryable",
    );
    sees("403 No", "outcome.error.kind == 'policy' and not outcome.error.retryable");
    sees("404 No", "outcome.error.code == 'RESOURCE_NOT_FOUND' and not outcome.error.retryable");
    sees("422 No", "outcome.error.kind == 'validation' and outcome.error.details.body == '{}'");
}

#[test]
fn trouble_on_the_way_is_a_failed_connection() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let failed = failure(json!({ "url": format!("http://{closed}/") }));
    assert_eq!((failed.class.name(), failed.code.as_str()), ("transport", "CONNECTION_REFUSED"));
    assert!(failed.message.contains("Connection refused"), "{}", failed.message);
    let server = Server::answering("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 100\r\n\r\ncut");
    assert_eq!(failure(json!({ "url": server.url("/") })).class.name(), "transport");
    let server = Server::answering("nonsense\r\n\r\n");
    assert_eq!(failure(json!({ "url": server.url("/") })).class.name(), "transport");
}

/// Only the response itself identifies the server.
#[test]
fn a_server_without_a_trusted_certificate_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let openssl = |args: &str| {
        let mut command = std::process::Command::new("openssl");
        command.args(args.split(' ')).current_dir(dir.path());
        command.stdin(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        command
    };
    let made = openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout key -out cert")
        .status();
    assert!(made.unwrap().success());
    let mut server = openssl("s_server -accept 127.0.0.1:0 -www -key key -cert cert");
    let mut server = server.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut ports =
        lines.filter_map(|line| line.strip_prefix("ACCEPT 127.0.0.1:")?.trim().parse::<u16>().ok());
    let port = ports.next().expect("it prints its port");
    let failed = failure(json!({ "url": format!("https://localhost:{port}/") }));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(failed.class.name(), "transport");
    assert!(failed.message.contains("certificate"), "{}", failed.message);
}

const REDIRECTS: [&str; 8] = [
    "http://169.254.169.254/latest/meta-data/",
    "//169.254.169.254/",
    "http://0xa9fea9fe/",
    "http://2852039166/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://0/",
];

#[test]
fn what_is_never_reached_is_not_reached_through_a_redirect() {
    for target in REDIRECTS {
        let server = Server::answering(&answer("302 Found", &format!("location: {target}\r\n"), ""));
        let failed = failure(json!({ "url": server.url("/") }));
        assert_eq!((failed.class.name(), failed.code.as_str()), ("policy", "EGRESS_REFUSED"), "{target}");
        if target.starts_with("http") {
            assert_eq!(failure(json!({ "url": target })).code, "EGRESS_REFUSED", "{target}");
        }
    }
    for target in ["file:///etc/passwd", "gopher://127.0.0.1/", "http://"] {
        let server = Server::answering(&answer("302 Found", &format!("location: {target}\r\n"), ""));
        assert_eq!(failure(json!({ "url": server.url("/") })).code, "BAD_REDIRECT", "{target}");
        assert_eq!(failure(json!({ "url": target })).code, "INVALID_CONFIGURATION", "{target}");
    }
}

#[test]
fn this_machine_is_reached_only_where_that_is_allowed() {
    let server = Server::answering(&answer("200 OK", "", ""));
    let names = [
        server.url("/"),
        format!("http://localhost:{}/", server.port),
        format!("http://127.1:{}/", server.port),
    ];
    for url in &names {
        let failed = Shop::reaching(Egress::default()).run(http(json!({ "url": url }))).failure().clone();
        assert_eq!(failed.code, "EGRESS_REFUSED", "{url}");
        assert!(failed.message.contains("WINDLASS_EGRESS_ALLOW can open its range"), "{}", failed.message);
    }
    assert_eq!(server.others(), 0, "no connection was made");
    let open = Egress::default().allowing("127.0.0.0/8").unwrap();
    assert_eq!(Shop::reaching(open).run(http(json!({ "url": names[0] }))).output()["status_code"], 200);
}

#[test]
fn redirects_are_followed_and_change_the_method_as_they_should() {
    let hop = |status: &'static str| {
        let server = Server::start(move |seen| match seen.line.ends_with("/end") {
            true => answer("200 OK", "", "end").into_bytes(),
            false => answer(status, "location: /end\r\n", "").into_bytes(),
        });
        let finished = run(json!({ "url": server.url("/start"), "method": "POST", "json": { "a": 1 } }));
        assert_eq!(
            (&finished.output()["data"], &finished.output()["url"]),
            (&json!("end"), &json!(server.url("/end")))
        );
        server.request();
        let last = server.request();
        (last.line.clone(), last.body.clone(), last.header("content-type").map(str::to_owned))
    };
    for status in ["301 Moved", "302 Found", "303 See Other"] {
        assert_eq!(hop(status), ("GET /end".to_owned(), String::new(), None), "{status}");
    }
    for status in ["307 Temporary", "308 Permanent"] {
        let kept = ("POST /end".to_owned(), r#"{"a":1}"#.to_owned(), Some("application/json".to_owned()));
        assert_eq!(hop(status), kept, "{status}");
    }
    let server = Server::answering(&answer("302 Found", "location: /again\r\n", ""));
    let failed = failure(json!({ "url": server.url("/") }));
    assert_eq!((failed.code.as_str(), server.others()), ("TOO_MANY_REDIRECTS", 11));
    let failed = failure(json!({ "url": server.url("/"), "follow_redirects": false }));
    assert_eq!((failed.details["status_code"].as_u64(), server.others()), (Some(302), 1));
}

#[test]
fn credentials_stay_with_the_origin_they_were_meant_for() {
    let other = Server::answering(&answer("200 OK", "", ""));
    let location = format!("location: {}\r\n", other.url("/there"));
    let first = Server::start(move |seen| match seen.line.ends_with("/same") {
        true => answer("302 Found", &location, "").into_bytes(),
        false => answer("302 Found", "location: /same\r\n", "").into_bytes(),
    });
    run(json!({
        "url": first.url("/"),
        "headers": { "Authorization": "Bearer t", "Cookie": "c=1", "X-Api-Key": "k", "X-Plain": "p" },
        "auth": { "type": "api_key", "header": "X-Own", "value": "own" },
    }));
    let seen = |server: &Server| {
        let seen = server.request();
        ["authorization", "cookie", "x-api-key", "x-own", "x-plain"].map(|name| seen.header(name).is_some())
    };
    assert_eq!(seen(&first), [true; 5]);
    assert_eq!(seen(&first), [true; 5], "the same origin");
    assert_eq!(seen(&other), [false, false, false, false, true]);
}

#[test]
fn an_answer_that_is_too_large_is_refused_and_not_held() {
    let check = |server: &Server, max: u64| {
        let failed = failure(json!({ "url": server.url("/"), "max_response_bytes": max }));
        assert_eq!((failed.class.name(), failed.code.as_str()), ("validation", "RESPONSE_TOO_LARGE"));
        assert!(
            failed.message.contains(&format!("larger than {max} bytes; `max_response_bytes` allows more"))
        );
    };
    let finished = Server::answering(&answer("200 OK", "", &"x".repeat(101)));
    check(&finished, 100);
    assert_eq!(
        run(json!({ "url": finished.url("/"), "max_response_bytes": 101 })).output()["status_code"],
        200
    );
    let untold =
        Server::answering(&format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(1_000_000)));
    check(&untold, 999_999);
    // 64 KiB in a hundred bytes.
    const BOMB: [u8; 96] = [
        31, 139, 8, 0, 0, 0, 0, 0, 2, 3, 237, 193, 1, 1, 0, 0, 0, 128, 144, 254, 175, 238, 8, 10, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 106, 235, 142, 151, 215,
        0, 0, 1, 0,
    ];
    let bomb = Server::start(|_| {
        [b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-encoding: gzip\r\n\r\n".as_slice(), &BOMB].concat()
    });
    check(&bomb, 65_535);
    assert_eq!(
        run(json!({ "url": bomb.url("/"), "max_response_bytes": 65_536 })).output()["data"]
            .as_str()
            .unwrap()
            .len(),
        65_536
    );
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    let server = Server::start(|_| Vec::new());
    let limits = [
        json!({ "timeout": 0.2 }),
        json!({ "timeout": { "connect": 0.1, "read": 0.1 } }),
        json!({ "timeout_seconds": 0.2 }),
    ];
    for limit in limits {
        let mut config = limit.clone();
        config["url"] = json!(server.url("/"));
        let failed = failure(config);
        assert_eq!((failed.class.name(), failed.code.as_str()), ("timeout", "NETWORK_TIMEOUT"), "{limit}");
    }
}

#[test]
fn a_stopped_request_is_hung_up() {
    let server = Server::start(|_| Vec::new());
    let shop = Shop::open();
    shop.order(Order::Run(Box::new(http(json!({ "url": server.url("/") })))));
    server.request();
    shop.order(Order::Stop { unit: UNIT, grace_ms: 60_000 });
    assert_eq!(shop.finished().outcome, Outcome::Stopped);
    server.hung_up();
}

#[test]
fn what_cannot_be_meant_is_refused_without_telling_secrets() {
    let check = |config: Value, expected: &str| {
        let failed = failure(config);
        assert_eq!((failed.code.as_str(), failed.message.as_str()), ("INVALID_CONFIGURATION", expected));
    };
    let with = |more: Value| {
        let mut config = json!({ "url": "http://127.0.0.1:1/" });
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    check(json!({}), "http needs `url`, an address with http:// or https://");
    check(json!({ "url": "/path" }), "`url` of http is not a URL (relative URL without a base): `/path`");
    check(json!({ "url": 3 }), "`url` of http is a text, not 3");
    check(
        with(json!({ "endpoint": "http://x" })),
        "http has both `url` and `endpoint`, which mean the same; keep one of them",
    );
    check(
        with(json!({ "body": 1, "json": 2 })),
        "http has both `body` and `json`, which mean the same; keep one of them",
    );
    check(with(json!({ "method": "G T" })), "`method` of http is a word like GET, not `G T`");
    check(with(json!({ "headers": { "a b": "x" } })), "the header `a b` of http has a name that is none");
    check(
        with(json!({ "headers": { "X-A": "s3cret\n" , "X-B": "s3\ncret" } })),
        "the header `X-B` of http has characters that no header can have",
    );
    check(
        with(json!({ "params": { "a": { "b": 1 } } })),
        "`params.a` of http is a text, a number or a list of them",
    );
    check(
        with(json!({ "timeout": 0 })),
        "`timeout` of http is a number of seconds above 0, or {connect, read} of them, not 0",
    );
    check(
        with(json!({ "timeout": { "conect": 1 } })),
        "`timeout` of http is a number of seconds above 0, or {connect, read} of them, not {\"conect\":1}",
    );
    check(
        with(json!({ "max_response_bytes": -1 })),
        "`max_response_bytes` of http is a number of bytes, not -1",
    );
    let unknown = failure(with(json!({ "auth": "github" })));
    let finished = (unknown.code.as_str(), unknown.message.as_str());
    assert_eq!(
        finished,
        ("RESOURCE_NOT_FOUND", "there is no secret `github`: store it with `windlass secrets set github`")
    );
    check(
        with(json!({ "auth": { "type": "ntlm", "token": "s3cret" } })),
        "`auth` of http has the type `ntlm`; it knows bearer, oauth2, basic and api_key",
    );
    check(
        with(json!({ "auth": { "type": "basic", "password": "s3cret" } })),
        "`auth` of http has no `username`",
    );
    check(
        with(json!({ "auth": { "type": "bearer", "token": "s3\ncret" } })),
        "`auth` of http has characters that no header can have",
    );
}

#[test]
fn with_any_status_an_error_of_the_server_is_a_result_with_its_whole_body() {
    let long = json!({ "error": { "code": "E1" }, "trace": "x".repeat(6_000) });
    let check = |kind: &str, body: &str, expected: &Value| {
        let kind = format!("content-type: {kind}\r\n");
        let server = Server::answering(&answer("500 Oops", &kind, body));
        let finished = run(json!({ "url": server.url("/"), "any_status": true }));
        let result = finished.output();
        assert_eq!((&result["status_code"], &result["data"]), (&json!(500), expected));
        assert_eq!(failure(json!({ "url": server.url("/") })).code, "SERVICE_UNAVAILABLE");
    };
    check("application/json", &long.to_string(), &long);
    check("application/json", "<h1>Bad gateway</h1>", &json!("<h1>Bad gateway</h1>"));
    check("text/plain", "busy", &json!("busy"));
}
