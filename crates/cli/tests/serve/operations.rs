//! Data for operators: measurements, traces, and a backup of a running server.

use crate::executions::{FAILS, TWO, finish, start, waits_for};
use crate::receiver::Receiver;
use crate::rig::{Place, until, windlass};
use reqwest::Method;
use serde_json::json;

/// The value of one line.
fn measured(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is missing in {text}")).parse().unwrap()
}

#[test]
fn metrics_count_executions_and_need_no_token() {
    let place = Place::new();
    let server = place.serve();
    let (two, fails) = (server.define(TWO), server.define(FAILS));
    assert_eq!(finish(&server, &two, json!({}))["status"], "completed");
    assert_eq!(finish(&server, &fails, json!({}))["status"], "failed");
    let text = server.bare(Method::GET, "/metrics").send().unwrap().text().unwrap();
    for (name, value) in [
        ("windlass_executions_started_total", 2.0),
        ("windlass_executions_ended_total{status=\"completed\"}", 1.0),
        ("windlass_executions_ended_total{status=\"failed\"}", 1.0),
        ("windlass_steps_total{status=\"completed\"}", 3.0),
        ("windlass_steps_total{status=\"failed\"}", 1.0),
        ("windlass_queue_depth", 0.0),
        ("windlass_lease_losses_total", 0.0),
        ("windlass_recovered", 1.0),
    ] {
        assert_eq!(measured(&text, name), value, "{name}");
    }
    assert!(measured(&text, "windlass_commit_seconds_count") >= 2.0);
    let route = "route=\"/api/v1/workflows/{workflowId}/execute\"";
    assert!(text.contains(route), "requests are reported by route: {text}");
}

#[test]
fn undelivered_events_are_measured_and_controls_are_logged_with_their_execution() {
    let place = Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1").with(&["--log-format", "json"]);
    let server = place.serve();
    let closed = Receiver::answering(|_, _| "503 Service Unavailable".to_owned());
    let file = place.data().join("never");
    let workflow = server.define(&waits_for(&file));
    let id = start(&server, &workflow, json!({ "webhookUrl": closed.url }));
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/cancel"), &json!({}));
    assert_eq!(status, 200, "{answer}");
    // Started and cancelled.
    let backlog = || {
        let text = server.bare(Method::GET, "/metrics").send().unwrap().text().unwrap();
        measured(&text, "windlass_webhook_backlog")
    };
    until("two events wait", || (backlog() == 2.0).then_some(()));
    let (_, said) = server.stop();
    let line =
        said.lines().find(|line| line.contains("execution.cancel")).unwrap_or_else(|| panic!("{said}"));
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["execution"], &line["tenant"]), (&json!(id), &json!("default")), "{line}");
}

#[test]
fn an_execution_is_sent_as_a_trace_when_it_has_ended() {
    let collector = Receiver::new();
    let address = collector.url.strip_suffix("/in").unwrap();
    let place = Place::new().with(&["--otlp-endpoint", address]);
    let server = place.serve();
    let answer = finish(&server, &server.define(TWO), json!({}));
    let id = answer["executionId"].as_str().unwrap().to_owned();
    // Traces are sent together, every few seconds.
    let trace =
        until("the trace comes", || collector.all().into_iter().find(|received| received.body.contains(&id)));
    assert_eq!(trace.path, "/v1/traces");
    for part in ["execution two", "windlass.node.id", "shell", "completed"] {
        assert!(trace.body.contains(part), "`{part}` is missing");
    }
}

#[test]
fn a_server_is_backed_up_while_it_runs() {
    let place = Place::new();
    let server = place.serve();
    let answer = finish(&server, &server.define(TWO), json!({}));
    let saved = place.data().with_file_name("saved");
    let run = |args: &[&std::ffi::OsStr]| {
        let output = windlass().args(args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let (data, back) = (place.data(), place.data().with_file_name("back"));
    run(&["admin".as_ref(), "backup".as_ref(), saved.as_ref(), "--data".as_ref(), data.as_ref()]);
    run(&["admin".as_ref(), "restore".as_ref(), saved.as_ref(), "--data".as_ref(), back.as_ref()]);
    let listed =
        run(&["executions".as_ref(), "list".as_ref(), "--json".as_ref(), "--data".as_ref(), back.as_ref()]);
    assert!(listed.contains(answer["executionId"].as_str().unwrap()), "{listed}");
}
