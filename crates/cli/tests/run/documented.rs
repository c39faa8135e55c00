//! Runs the programs and workflows of the documentation unchanged.

use crate::rig::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;

const NODES: &str = include_str!("../../../../docs/nodes.md");
const FAILURES: &str = include_str!("../../../../docs/failures.md");
const TUTORIAL: &str = include_str!("../../../../docs/tutorial.md");
const WORKFLOWS: &str = include_str!("../../../../docs/workflows.md");

/// The first block of a language behind a headline.
fn block(page: &'static str, headline: &str, language: &str) -> &'static str {
    let rest = page.split_once(headline).expect("the headline").1;
    let rest = rest.split_once(&format!("```{language}\n")).expect("the block").1;
    rest.split_once("```").expect("its end").0
}

fn example(language: &str) -> &'static str {
    block(NODES, "\n## Examples\n", language)
}

fn place(nodes: Value, edges: Value) -> Place {
    let place = Place::playing("workflow: []\n");
    place.given(&["secrets", "set", "API_KEY"], "open-sesame").expect(0);
    place.write("flow.json", &json!({ "name": "manual", "nodes": nodes, "edges": edges }).to_string());
    place
}

#[track_caller]
fn output(place: &Place, inputs: &[&str], node: &str) -> Value {
    let inputs = inputs.iter().flat_map(|input| ["--input", input]);
    let args: Vec<&str> = ["run", "flow.json", "--json"].into_iter().chain(inputs).collect();
    let output = place.windlass(&args).expect(0).json();
    let entries = output["nodeExecutions"].as_array().expect("entries");
    entries.iter().find(|entry| entry["nodeId"] == node).expect("the node")["output"].clone()
}

#[test]
fn wfl_22_the_python_example_reads_what_the_node_before_it_gave() {
    let fetch = json!({ "language": "python", "code": "result = {'rows': [1, 2, 3]}" });
    let send =
        json!({ "language": "python", "code": example("python"), "credentials": { "API_KEY": "API_KEY" } });
    let nodes = json!([{ "id": "fetch", "type": "code", "config": fetch }, { "id": "send", "type": "code", "config": send }]);
    let place = place(nodes, json!([{ "source": "fetch", "target": "send" }]));
    assert_eq!(output(&place, &[], "send"), json!({ "sent": 3 }));
}

#[test]
fn wfl_22_the_javascript_example_asks_the_url_that_the_execution_was_started_with() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let reader = BufReader::new(stream.try_clone().expect("a stream"));
        let head: Vec<String> =
            reader.lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\netag: e1\r\nconnection: close\r\ncontent-length: 12\r\n\r\n{\"price\": 3}";
        stream.write_all(answer.as_bytes()).expect("it is written");
        head
    });
    let config = json!({ "language": "javascript", "code": example("javascript"), "credentials": { "API_KEY": "API_KEY" } });
    let nodes =
        json!([{ "id": "start", "type": "trigger" }, { "id": "ask", "type": "code", "config": config }]);
    let place = place(nodes, json!([{ "source": "start", "target": "ask" }]));
    assert_eq!(output(&place, &[&format!("url={url}")], "ask"), json!({ "price": 3 }));
    let head = asked.join().expect("it was asked");
    assert!(
        head.iter().any(|line| line.eq_ignore_ascii_case("authorization: Bearer open-sesame")),
        "{head:?}"
    );
}

#[test]
fn wfl_22_the_shell_example_copies_what_it_is_given_and_fails_without_it() {
    let place = place(
        json!([{ "id": "copy", "type": "shell", "config": { "command": example("sh"), "retryPolicy": { "maxRetries": 0 } } }]),
        json!([]),
    );
    place.write("a.txt", "text");
    let path = place.path("a.txt");
    assert_eq!(output(&place, &[&format!("path={}", path.display())], "copy"), json!({ "copied": 1 }));
    let output = place.windlass(&["run", "flow.json", "--json"]).expect(1).json();
    let message = output["errors"][0]["message"].as_str().expect("a message").to_owned();
    assert!(message.contains("exit code 1") && message.contains("there is no input `path`"), "{message}");
}

#[test]
fn the_first_workflow_of_the_manual_greets_the_given_name() {
    let place = place(json!([{ "id": "unused", "type": "trigger" }]), json!([]));
    place.write("flow.json", block(WORKFLOWS, "# Workflows\n", "yaml"));
    let names = ["Ann", "x'; echo ran > /dev/stderr; echo '", "$(echo ran)\"`echo ran`\\"];
    for name in names {
        let greeted = output(&place, &[&format!("name={}", json!(name))], "greet");
        assert_eq!(
            (&greeted["stdout"], &greeted["stderr"]),
            (&json!(format!("Hello, {name}!\n")), &json!(""))
        );
    }
}

/// Lists the definitions of a page: each has its file name in backticks before it.
fn definitions(page: &str) -> Vec<(&str, &str)> {
    let mut rest = page;
    let mut found = Vec::new();
    while let Some((before, behind)) = rest.split_once("```yaml\n") {
        let (text, next) = behind.split_once("```").expect("its end");
        let name = before.rsplit('`').find(|word| word.ends_with(".yaml"));
        found.extend(name.map(|name| (name, text)));
        rest = next;
    }
    found
}

/// The report at the end of an output, without the ids.
fn report(output: &str) -> String {
    let report = &output[output.find("\nerror: ").expect("a report") + 1..];
    let mut parts = report.trim_end().split("exec_");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, part| {
        let is_id = |sign: char| sign.is_ascii_hexdigit() || sign == '…';
        format!("{shown}ID{}", part.trim_start_matches(is_id))
    })
}

#[test]
fn the_failures_of_the_manual_are_reported_as_they_are_printed_there() {
    let sections: Vec<&str> =
        FAILURES.split("\n### ").filter(|section| section.contains("\nAfter:\n")).collect();
    assert_eq!(sections.len(), 10);
    for section in sections {
        let place = Place::new();
        let definitions = definitions(section);
        definitions.iter().for_each(|(name, text)| place.write(name, text));
        let file = definitions.first().expect("a definition").0;
        let failed = place.windlass(&["run", file]).expect(1);
        let after = section.split_once("\nAfter:\n\n```\n").expect("its output").1;
        let after = after.split_once("\n```").expect("its end").0;
        assert_eq!(report(&failed.err), report(after), "{file}");
    }
}

#[test]
fn the_definitions_of_the_tutorial_are_valid() {
    let place = Place::new();
    let definitions = definitions(TUTORIAL);
    let names: Vec<&str> = definitions.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["orders.yaml", "price.yaml", "release.yaml"]);
    for (name, text) in definitions {
        place.write(name, text);
        let valid = place.windlass(&["validate", name]).expect(0).out;
        assert!(valid.ends_with("no problem\n"), "{valid}");
    }
}
