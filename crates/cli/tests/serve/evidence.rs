//! Evidence: every attempt and every end, with the actor, as a chain that can be checked without a server.

use crate::executions::{finish, get, start, until, waits_for};
use crate::rig::{Place, Server, windlass};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The first attempt fails, the second does not; then a person is asked.
fn flaky(marker: &std::path::Path) -> String {
    let command = format!("test -e {0} || {{ touch {0}; exit 75; }}", marker.display());
    json!({
        "name": "release",
        "nodes": [
            { "id": "build", "type": "shell", "name": "Build", "config": { "command": command } },
            { "id": "ask", "type": "approval", "name": "Ask Ann", "config": {} }
        ],
        "edges": [ { "source": "build", "target": "ask" } ]
    })
    .to_string()
}

fn evidence(server: &Server, id: &str) -> Vec<Value> {
    get(server, id, "/evidence")["evidence"].as_array().unwrap().clone()
}

/// Checks the chain as a reader of the documentation would.
fn check_chain(entries: &[Value]) {
    let mut previous = None;
    for entry in entries {
        let mut entry = entry.as_object().unwrap().clone();
        let hash = entry.shift_remove("hashSha256").unwrap();
        entry.shift_remove("anchor");
        assert_eq!(entry.get("previousHash"), previous.as_ref(), "{entry:?}");
        assert_eq!(json!(sha256(canonical(&Value::Object(entry)))), hash);
        previous = Some(hash);
    }
}

fn canonical(value: &Value) -> String {
    match value {
        Value::Object(object) => {
            let mut keys: Vec<&String> = object.keys().collect();
            keys.sort();
            let members: Vec<String> =
                keys.iter().map(|key| format!("{}:{}", json!(key), canonical(&object[*key]))).collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        plain => plain.to_string(),
    }
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn part(entry: &Value, keys: &[&str]) -> Value {
    let found = keys.iter().filter_map(|key| Some(((*key).to_owned(), entry.get(*key)?.clone())));
    Value::Object(found.collect::<Map<_, _>>())
}

#[test]
fn act_18_every_attempt_and_every_end_leaves_evidence() {
    let place = Place::new();
    let server = place.serve();
    let workflow = server.define(&flaky(&place.data().join("built")));
    let options = json!({ "correlationId": "order-7", "retryPolicy": {
        "maxRetries": 1, "backoffMultiplier": 1, "initialDelayMs": 1, "maxDelayMs": 1, "retryableErrors": ["SHELL_EXIT"] } });
    let id = start(&server, &workflow, options);
    until(&server, &id, "paused");
    let answer = json!({ "outcome": "Succeeded", "notes": "looks good", "evidenceRefs": ["ticket-1"] });
    let (status, answer) = server.post(&format!("/api/v1/executions/{id}/actions/ask/complete"), &answer);
    assert!(status.is_success(), "{answer}");
    let ended = until(&server, &id, "completed");

    let entries = evidence(&server, &id);
    let user = json!({ "kind": "User", "userId": ended["metadata"]["triggeredBy"] });
    let keys =
        ["actionId", "attempt", "category", "outcome", "terminal", "error", "actor", "notes", "evidenceRefs"];
    let mut answer: Vec<Value> = entries.iter().map(|entry| part(entry, &keys)).collect();
    let system = json!({ "kind": "System" });
    let message = answer[0]["error"]["message"].take();
    assert!(message.as_str().unwrap().contains("75"), "{message}");
    let expected = [
        json!({ "actionId": "build", "attempt": 1, "category": "Action", "outcome": "Failed", "terminal": false,
            "error": { "code": "SHELL_EXIT", "class": "unknown", "message": null, "retryable": false }, "actor": system }),
        json!({ "actionId": "build", "attempt": 2, "category": "Action", "outcome": "Succeeded", "terminal": true,
            "actor": system }),
        json!({ "actionId": "ask", "attempt": 1, "category": "Approval", "outcome": "Succeeded", "terminal": false,
            "actor": user, "notes": "looks good", "evidenceRefs": ["ticket-1"] }),
        json!({ "actionId": "ask", "attempt": 1, "category": "Action", "outcome": "Succeeded", "terminal": true,
            "actor": system }),
        json!({ "category": "System", "outcome": "Succeeded", "terminal": true, "actor": system }),
    ];
    assert_eq!(answer, expected);
    for (entry, number) in entries.iter().zip(1..) {
        assert_eq!(entry["evidenceId"], json!(format!("{id}.{number}")));
        assert_eq!((&entry["schemaVersion"], &entry["rulesVersion"]), (&json!(1), &json!(2)));
        assert_eq!((&entry["runId"], &entry["correlationId"]), (&json!(id), &json!("order-7")));
        assert!(entry["startedAtIso"].as_str().unwrap() <= entry["endedAtIso"].as_str().unwrap(), "{entry}");
    }
    assert_eq!(entries.last().unwrap()["endedAtIso"], ended["completedAt"]);
    check_chain(&entries);

    let shown = |flag: &[&str]| {
        let output =
            windlass().args(["evidence", &id, "--data"]).arg(place.data()).args(flag).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let lines: Vec<Value> =
        shown(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, entries, "the command asks the server");
    assert!(shown(&[]).contains("build, attempt 1: Failed (SHELL_EXIT)"));
    server.stop();
    let lines: Vec<Value> =
        shown(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, entries, "and reads the folder when there is none: the chain is the same");
}

#[test]
fn act_18_who_cancelled_is_in_the_evidence_and_work_in_flight_too() {
    let place = Place::new();
    let server = place.serve();
    let id = start(&server, &server.define(&waits_for(&place.data().join("never"))), json!({}));
    let path = |rest: &str| format!("/api/v1/executions/{id}/{rest}");
    server.post(&path("pause"), &json!({ "reason": "wait a moment" }));
    server.post(&path("resume"), &json!({}));
    server.post(&path("cancel"), &json!({ "reason": "enough" }));
    let ended = until(&server, &id, "cancelled");
    let user = json!({ "kind": "User", "userId": ended["metadata"]["triggeredBy"] });
    let entries = evidence(&server, &id);
    check_chain(&entries);
    let answer = |outcome: &str| {
        let found = entries.iter().find(|entry| entry["outcome"] == outcome);
        found.unwrap_or_else(|| panic!("no {outcome} in {entries:?}"))
    };
    assert_eq!((&answer("Held")["actor"], &answer("Held")["notes"]), (&user, &json!("wait a moment")));
    assert_eq!(answer("Released")["actor"], user);
    let last = entries.last().unwrap();
    assert_eq!((&last["outcome"], &last["actor"]), (&json!("Cancelled"), &user));
    assert_eq!(last["error"]["message"], "enough");
    let waiting = entries.iter().find(|entry| entry["actionId"] == "wait").unwrap();
    assert_eq!((&waiting["outcome"], &waiting["terminal"]), (&json!("Cancelled"), &json!(true)));
}

#[test]
fn act_18_evidence_is_paged_and_what_a_retry_took_over_names_the_execution_before() {
    let place = Place::new();
    let server = place.serve();
    let file = place.data().join("fixed");
    let text = format!(
        "metadata: {{name: mends}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: 'echo ran'}}, next: b}}\n\
         - {{step: b, tool: {{kind: shell, command: 'test -e {}'}}}}\n",
        file.display()
    );
    let id = finish(&server, &server.define(&text), json!({}))["executionId"].as_str().unwrap().to_owned();
    std::fs::write(&file, "").unwrap();
    let (_, answer) = server.post(&format!("/api/v1/executions/{id}/retry"), &json!({}));
    let new = answer["executionId"].as_str().unwrap().to_owned();
    until(&server, &new, "completed");
    let entries = evidence(&server, &new);
    check_chain(&entries);
    let runs: Vec<(&Value, &Value)> =
        entries.iter().map(|entry| (&entry["runId"], &entry["outcome"])).collect();
    let (before, now, well) = (json!(id), json!(new), json!("Succeeded"));
    assert_eq!(runs, [(&before, &well), (&now, &well), (&now, &well)]);

    let (mut paged, mut query) = (Vec::new(), "?limit=1".to_owned());
    loop {
        let page = get(&server, &new, &format!("/evidence{query}"));
        paged.extend(page["evidence"].as_array().unwrap().clone());
        let Some(cursor) = page["pagination"]["cursor"].as_str() else { break };
        query = format!("?limit=1&cursor={cursor}");
    }
    assert_eq!(paged, entries);
    for bad in ["?limit=0", "?limit=1001", "?cursor=x", "?page=2"] {
        let refused = server.get(&format!("/api/v1/executions/{new}/evidence{bad}"));
        assert_eq!(refused.status(), 400, "{bad}");
    }
}

/// Steps whose names, notes and messages have more than ASCII; the last one fails, so that a step is never reached.
const SPOKEN: &str = r#"{
    "name": "spoken",
    "nodes": [
        { "id": "größe", "type": "shell", "name": "Größe 🪢", "config": { "command": "true" } },
        { "id": "ende", "type": "shell", "name": "Ende", "config": { "command": "echo 'schlimm: é \"q\"' >&2; exit 3" } },
        { "id": "danach", "type": "shell", "name": "Danach", "config": { "command": "true" } }
    ],
    "edges": [ { "source": "größe", "target": "ende" }, { "source": "ende", "target": "danach" } ]
}"#;

/// An ended execution, exported as JSON lines.
struct Exported {
    place: Place,
    server: Server,
    id: String,
    lines: Vec<String>,
}

impl Exported {
    fn new() -> Exported {
        let place = Place::new();
        let server = place.serve();
        let workflow = server.define(SPOKEN);
        let (id, lines) = export(&server, &workflow);
        Exported { place, server, id, lines }
    }

    /// Verifies a file with these lines.
    fn verify(&self, lines: &[String]) -> (i32, String) {
        self.verify_text(&lines.iter().map(|line| format!("{line}\n")).collect::<String>())
    }

    fn verify_text(&self, text: &str) -> (i32, String) {
        self.place.write("evidence.jsonl", text);
        let answer = self.place.windlass(&["evidence", "verify", "evidence.jsonl"]);
        (answer.code, if answer.code == 0 { answer.err } else { answer.out })
    }

    /// Verifies the lines after a change, and checks the words about it.
    #[track_caller]
    fn refuses(&self, words: &[&str], change: impl FnOnce(&mut Vec<String>)) {
        let mut lines = self.lines.clone();
        change(&mut lines);
        assert_ne!(lines, self.lines, "nothing was changed");
        let (code, out) = self.verify(&lines);
        assert_eq!(code, 1, "{out}");
        for word in words {
            assert!(out.contains(&word.replace("ID", &self.id)), "{out} without {word}");
        }
        assert_eq!(out.lines().count(), 1, "only the first one is named: {out}");
    }
}

/// Runs a workflow to its end; returns its id and the lines of its evidence.
fn export(server: &Server, workflow: &str) -> (String, Vec<String>) {
    let id = start(server, workflow, json!({ "correlationId": "order-7" }));
    until(server, &id, "failed");
    let answer = server.get(&format!("/api/v1/executions/{id}/evidence?format=jsonl"));
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"application/jsonl".parse().unwrap())
    );
    let text = answer.text().unwrap();
    assert!(text.ends_with('\n'), "{text}");
    (id, text.lines().map(str::to_owned).collect())
}

fn replaced(lines: &mut [String], place: usize, from: &str, to: &str) {
    assert!(lines[place].contains(from), "{} without {from}", lines[place]);
    lines[place] = lines[place].replacen(from, to, 1);
}

#[test]
fn act_18_an_export_is_the_whole_chain_with_its_signed_end() {
    let exported = Exported::new();
    let Exported { place, server, id, lines } = &exported;
    let records: Vec<Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    check_chain(&records);
    let bare: Vec<Value> = records
        .iter()
        .map(|record| {
            let mut record = record.clone();
            record.as_object_mut().unwrap().shift_remove("anchor");
            record
        })
        .collect();
    assert_eq!(bare, evidence(server, id));
    let (last, others) = records.split_last().unwrap();
    assert!(others.iter().all(|record| record.get("anchor").is_none()));
    assert_eq!(last["anchor"]["hashSha256"], last["hashSha256"]);
    assert_eq!(last["anchor"]["evidenceId"], json!(format!("{id}.{}", records.len())));
    let outcomes: Vec<&str> = records.iter().map(|record| record["summary"].as_str().unwrap()).collect();
    let code = records[1]["error"]["code"].as_str().unwrap();
    let expected = [
        "größe, attempt 1: Succeeded".to_owned(),
        format!("ende, attempt 1: Failed ({code})"),
        "danach: Cancelled".to_owned(),
        format!("the execution: Failed ({code})"),
    ];
    assert_eq!(outcomes, expected, "every terminal transition, also of a step that never started");
    assert_eq!(records[2]["notes"], "never started");

    let printed = place.windlass(&["evidence", id, "--jsonl"]).expect(0).out;
    assert_eq!(printed.lines().collect::<Vec<_>>(), lines.iter().map(String::as_str).collect::<Vec<_>>());
    let (code, out) = exported.verify(lines);
    assert_eq!((code, out.trim()), (0, "4 records verified: none was changed"));
    for (query, field) in
        [("format=jsonl&limit=1", "limit"), ("format=jsonl&cursor=x", "cursor"), ("format=xml", "format")]
    {
        let answer = server.get(&format!("/api/v1/executions/{id}/evidence?{query}"));
        assert_eq!(answer.status(), 400, "{query}");
        assert!(answer.text().unwrap().contains(field), "{query}");
    }
    let missing =
        server.get("/api/v1/executions/exec_00000000000000000000000000000001/evidence?format=jsonl");
    assert_eq!(missing.status(), 404);
}

#[test]
fn act_18_a_changed_record_is_named() {
    let exported = Exported::new();
    let changed = "was changed: its content does not match its hash";
    exported.refuses(&["ID.2", changed], |lines| replaced(lines, 1, "\"Failed\"", "\"Succeeded\""));
    exported.refuses(&["ID.1", changed], |lines| replaced(lines, 0, "\"attempt\":1", "\"attempt\":2"));
    exported.refuses(&["ID.1", changed], |lines| replaced(lines, 0, "order-7", "order-8"));
    exported.refuses(&["ID.1", changed], |lines| replaced(lines, 0, "größe", "gro\u{308}ße"));
    exported.refuses(&["ID.3", changed], |lines| {
        replaced(lines, 2, "\"terminal\":true", "\"terminal\":true,\"more\":1")
    });
    exported.refuses(&["ID.4", changed], |lines| replaced(lines, 3, "\"terminal\":true,", ""));
    exported.refuses(&["ID.2", "has no `hashSha256`"], |lines| replaced(lines, 1, "hashSha256", "hash"));
    // The record and its hash were replaced: the next record names the old one.
    exported.refuses(&["ID.3", "does not contain the hash of the record before it"], |lines| {
        let mut record: Value = serde_json::from_str(&lines[1]).unwrap();
        record["outcome"] = json!("Succeeded");
        let fields = record.as_object_mut().unwrap();
        fields.shift_remove("hashSha256");
        let hash = sha256(canonical(&record));
        record["hashSha256"] = json!(hash);
        lines[1] = record.to_string();
    });
}

#[test]
fn act_18_the_same_record_in_other_words_is_the_same() {
    let exported = Exported::new();
    let mut lines = exported.lines.clone();
    replaced(&mut lines, 0, "\"attempt\":1", "\"attempt\": 1.0");
    replaced(&mut lines, 0, "größe", "gr\\u00f6\\u00dfe");
    let mut record: Value = serde_json::from_str(&lines[1]).unwrap();
    record.sort_all_objects();
    lines[1] = serde_json::to_string_pretty(&record).unwrap();
    let (code, out) = exported.verify(&lines);
    assert_eq!(code, 0, "RFC 8785 knows neither spaces, nor escapes, nor 1.0: {out}");
}

#[test]
fn act_18_missing_repeated_moved_and_foreign_records_are_named() {
    let exported = Exported::new();
    exported.refuses(&["ID.3", "ID.2 is missing, or records were reordered"], |lines| drop(lines.remove(1)));
    exported.refuses(&["ID.2", "ID.1 is missing"], |lines| drop(lines.remove(0)));
    exported
        .refuses(&["ID.3", "is the last record and not the end of the execution"], |lines| drop(lines.pop()));
    exported.refuses(&["ID.3", "ID.2 is missing, or records were reordered"], |lines| lines.swap(1, 2));
    exported.refuses(&["ID.2", "appears a second time"], |lines| lines.insert(2, lines[1].clone()));
    exported.refuses(&["follows the anchored end"], |lines| lines.push(lines[3].clone()));
    exported.refuses(&["ID.4", "follows the end of the execution"], |lines| {
        let mut last: Value = serde_json::from_str(&lines[3]).unwrap();
        last.as_object_mut().unwrap().shift_remove("anchor");
        lines[3] = last.to_string();
        lines.push(last.to_string());
    });
    let other =
        export(&exported.server, &exported.server.define(&SPOKEN.replace("\"spoken\"", "\"other\""))).1;
    exported.refuses(&["belongs to another execution", "ID"], |lines| lines[1].clone_from(&other[1]));
    exported.refuses(&["the anchor belongs to"], |lines| {
        let foreign: Value = serde_json::from_str(other.last().unwrap()).unwrap();
        let mut last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        last["anchor"] = foreign["anchor"].clone();
        *lines.last_mut().unwrap() = last.to_string();
    });
    exported.refuses(&["the anchor was not signed with the key"], |lines| {
        let mut last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
        last["anchor"]["hmac"] = json!("00");
        *lines.last_mut().unwrap() = last.to_string();
    });
}

/// A caller who removes the anchor can replace every record. The folder that made the file detects that.
#[test]
fn act_18_a_folder_that_is_named_must_have_signed_the_end() {
    let exported = Exported::new();
    let mut forged: Vec<Value> =
        exported.lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    forged[0]["correlationId"] = json!("order-8");
    let mut previous = Value::Null;
    for record in &mut forged {
        let fields = record.as_object_mut().unwrap();
        for field in ["anchor", "hashSha256", "previousHash"] {
            fields.shift_remove(field);
        }
        if !previous.is_null() {
            record["previousHash"] = previous;
        }
        previous = json!(sha256(canonical(record)));
        record["hashSha256"] = previous.clone();
    }
    let text: String = forged.iter().map(|record| format!("{record}\n")).collect();
    exported.place.write("forged.jsonl", &text);
    exported.place.write("whole.jsonl", &exported.lines.join("\n"));
    let verify = |file: &str, flags: &[&str]| {
        exported.place.windlass(&[&["evidence", "verify", file], flags].concat())
    };
    let data = exported.place.data().display().to_string();
    assert!(verify("forged.jsonl", &[]).expect(0).err.contains("the file has no anchor"));
    assert!(verify("forged.jsonl", &["--data", &data]).expect(1).out.contains("the file has no anchor"));
    verify("whole.jsonl", &["--data", &data]).expect(0);
    let nowhere = verify("whole.jsonl", &["--data", "nowhere"]).expect(1).out;
    assert!(nowhere.contains("nowhere is not a data folder"), "{nowhere}");
    // A file needs no server, also where the variables name one.
    let mut command = exported.place.command(&["evidence", "verify", "whole.jsonl"]);
    assert!(command.env("WINDLASS_URL", "http://127.0.0.1:1").status().unwrap().success());
}

#[test]
fn act_18_a_file_that_is_no_evidence_is_refused() {
    let exported = Exported::new();
    let huge = format!("{{\"a\":\"{}\"}}", "x".repeat(65 << 20));
    for (text, words) in [
        ("", "the file has no records"),
        ("\n\n", "the file has no records"),
        ("this is not JSON\n", "record 1 of the file is not valid"),
        ("{\"evidence\": 7}", "is not a list"),
        ("[1, 2]", "record 1 of the file has no `hashSha256`"),
        ("{\"hashSha256\": \"x\"}", "record 1 of the file has no valid `evidenceId`"),
        (huge.as_str(), ""),
    ] {
        let (code, out) = exported.verify_text(text);
        assert_eq!(code, 1, "{out}");
        assert!(out.contains(words), "{out} without {words}");
    }
    // A reader that takes the first of two keys would see another outcome than one that takes the last.
    exported.refuses(&["record 2 of the file is not valid", "the key `outcome` twice"], |lines| {
        replaced(lines, 1, "{", "{\"outcome\":\"Succeeded\",");
    });
    let half = &exported.lines.join("\n")[..700];
    assert_eq!(exported.verify_text(half).0, 1, "cut in the middle of a record");
    let answer = exported.place.windlass(&["evidence", "verify", "nowhere.jsonl"]);
    assert!(answer.code != 0 && answer.err.contains("nowhere.jsonl"), "{answer:?}");
}

#[test]
fn act_18_an_export_of_an_execution_that_runs_ends_with_its_anchor() {
    let place = Place::new();
    let server = place.serve();
    let id = start(
        &server,
        &server.define(&flaky(&place.data().join("built"))),
        json!({ "retryPolicy": {
        "maxRetries": 1, "backoffMultiplier": 1, "initialDelayMs": 1, "maxDelayMs": 1, "retryableErrors": ["SHELL_EXIT"] } }),
    );
    until(&server, &id, "paused");
    let text = place.windlass(&["evidence", &id, "--jsonl"]).expect(0).out;
    let exported = |text: &str| {
        place.write("evidence.jsonl", text);
        place.windlass(&["evidence", "verify", "evidence.jsonl"])
    };
    exported(&text).expect(0);
    let cut: String = text.lines().take(1).map(|line| format!("{line}\n")).collect();
    let answer = exported(&cut).expect(1);
    assert!(answer.out.contains(&format!("{id}.1 is the last record and not the end")), "{}", answer.out);
}
