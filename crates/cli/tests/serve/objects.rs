//! Artifacts in a bucket: copied while executions run, awaited by executions of plans, and read back.

use crate::bucket::{Bucket, NAME, SECRET_KEY};
use crate::plan_executions::{artifact, begin, large, output, part, status, step, until_phase, worker};
use crate::plans::{greeting, inline, send};
use crate::rig::{self, Place, files};
use reqwest::Method;
use rusqlite::Connection;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fs::{self, File};
use std::time::{Duration, SystemTime};

/// The key of the object with these bytes.
fn key(bytes: &[u8]) -> String {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("some/prefix/t-default/{}/{digest}", &digest[..2])
}

fn remove_files(place: &Place) {
    fs::remove_dir_all(place.data().join("artifacts")).unwrap();
}

/// A plan whose only step writes a large output.
fn writes(script: &str) -> Value {
    json!({
        "steps": [{ "id": "make", "action": { "script": script, "outputs": [{ "name": "big" }] } }],
        "output": { "big": "steps.make.outputs.big" },
    })
}

fn zeros(count: usize, letter: char) -> Value {
    writes(&format!("head -c {count} /dev/zero | tr '\\0' {letter} > outputs/big"))
}

fn made(status: &Value) -> &Value {
    &output(step(status, "make"), "big")["artifact"]
}

#[test]
fn pln_30_artifacts_are_copied_to_a_bucket_and_read_from_there_when_their_files_are_gone() {
    let bucket = Bucket::open();
    let place = bucket.place();
    let server = place.serve();
    let _worker = worker(&place, &server);
    let path = begin(&server, &large(), &json!({}));
    let ended = until_phase(&server, &path, "completed");
    let (big, logged) = ("x".repeat(200_000), "y".repeat(100_000));
    assert_eq!(made(&ended), &artifact(big.as_bytes()));
    assert_eq!(output(&ended, "big")["artifact"]["ready"], true);
    assert_eq!(step(&ended, "doc")["logs"][0]["artifact"], artifact(logged.as_bytes()));
    assert_eq!(bucket.object(&key(big.as_bytes())).unwrap(), big.as_bytes());
    assert_eq!(bucket.object(&key(logged.as_bytes())).unwrap(), logged.as_bytes());
    assert_eq!(bucket.keys().len(), 3, "two texts and a document");
    remove_files(&place);
    assert_eq!(until_phase(&server, &path, "completed"), ended);
    let big_path = format!("{path}/outputs/big");
    let sent = server.get(&big_path);
    assert_eq!(
        (sent.status().as_u16(), &sent.headers()["Content-Type"]),
        (200, &"text/x-big".parse().unwrap())
    );
    assert!(sent.text().unwrap() == big);
    let some = part(&server, &big_path, "bytes=199990-300000");
    assert_eq!(
        (some.status().as_u16(), &some.headers()["Content-Range"]),
        (206, &"bytes 199990-199999/200000".parse().unwrap())
    );
    assert_eq!(some.text().unwrap(), "x".repeat(10));
    assert_eq!(part(&server, &big_path, "bytes=200000-").status().as_u16(), 416);
    assert!(server.get(&format!("{path}/steps/doc/logs")).text().unwrap() == logged);
    assert!(!place.data().join("artifacts").exists(), "they pass through the server");
    assert_eq!(server.get(&format!("{path}/outputs/part")).text().unwrap(), "deep");
    bucket.replace(&key(big.as_bytes()), "z".repeat(200_000).as_bytes());
    assert!(server.get(&big_path).bytes().is_err(), "other bytes are not sent to the end");
}

#[test]
fn pln_30_a_file_larger_than_a_part_is_uploaded_in_parts_and_its_copy_passes_to_workers() {
    const BYTES: usize = 9 << 20;
    let bucket = Bucket::open();
    let place = bucket.place();
    let server = place.serve();
    let (began, gate) = (place.path("began"), place.path("gate"));
    let wait =
        format!("echo $$ > {}; while [ ! -e {} ]; do sleep 0.05; done", began.display(), gate.display());
    let field = json!([{ "name": "big" }]);
    let plan = json!({
        "steps": [
            { "id": "make", "action": { "script": format!("head -c {BYTES} /dev/zero > outputs/big"), "outputs": field } },
            { "id": "wait", "action": { "script": wait, "params": [{ "name": "big" }], "outputs": [{ "name": "done" }] },
              "args": { "refs": { "big": "steps.make.outputs.big" } } },
            { "id": "count", "action": { "script": "wc -c < context/big > outputs/count", "params": [{ "name": "big" }, { "name": "done" }], "outputs": [{ "name": "count" }] },
              "args": { "refs": { "big": "steps.make.outputs.big", "done": "steps.wait.outputs.done" } } },
        ],
        "output": { "count": "steps.count.outputs.count" },
    });
    let _worker = worker(&place, &server);
    let path = begin(&server, &plan, &json!({}));
    rig::process_of(&place, "began");
    let object = rig::until("the object is there", || bucket.object(&key(&vec![0; BYTES])));
    assert!(object == vec![0; BYTES]);
    rig::until("it is ready", || (made(&status(&server, &path))["ready"] == true).then_some(()));
    remove_files(&place);
    place.write("gate", "");
    let ended = until_phase(&server, &path, "completed");
    assert_eq!(output(&ended, "count")["value"].as_str().unwrap().trim(), BYTES.to_string());
}

#[test]
fn pln_31_an_execution_is_finalizing_until_its_artifacts_are_uploaded_also_after_a_crash() {
    let mut bucket = Bucket::open();
    let place = bucket.place().with(&["--artifact-attempts", "1000000"]);
    let server = place.serve();
    let slots = ["--group", "default", "--cluster", "local", "--slots", "1"];
    let token = crate::runners::token(&server, json!({ "name": "w", "role": "worker", "group": "default" }));
    let _worker = crate::runners::worker(&place, &server, &token, &slots);
    bucket.close();
    let path = begin(&server, &zeros(100_000, 'x'), &json!({}));
    let waiting = until_phase(&server, &path, "finalizing");
    assert_eq!((&made(&waiting)["ready"], made(&waiting).get("error")), (&json!(false), None));
    assert_eq!((waiting.get("completedAt"), waiting.get("outputs")), (None, None), "{waiting}");
    assert_eq!(waiting["stepCounts"]["completed"], 1);
    let refused = server.get(&format!("{path}/steps/make/outputs/big"));
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("Retry-After")), (503, true));
    assert!(refused.text().unwrap().contains("being uploaded"));
    let other = begin(&server, &greeting(&inline()), &json!({ "params": { "who": "Ada" } }));
    let small = until_phase(&server, &other, "completed");
    assert_eq!(
        output(&small, "greeting")["value"],
        "hi Ada",
        "the only slot is free, and nothing is uploaded"
    );
    let cancelled = begin(&server, &zeros(100_001, 'y'), &json!({}));
    until_phase(&server, &cancelled, "finalizing");
    assert_eq!(send(&server, Method::PUT, &format!("{cancelled}/cancel"), &json!({})).0, 200);
    let address = server.address().to_owned();
    server.kill();
    let server = place.serve_on(&address);
    let listed = crate::plans::get(&server, "/api/v1/plan-executions?phase=finalizing").1;
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(made(&until_phase(&server, &path, "finalizing"))["ready"], false);
    bucket.reopen();
    let ended = until_phase(&server, &path, "completed");
    let bytes = "x".repeat(100_000);
    assert_eq!(made(&ended), &artifact(bytes.as_bytes()));
    assert_eq!(bucket.object(&key(bytes.as_bytes())).unwrap(), bytes.as_bytes());
    assert!(server.get(&format!("{path}/outputs/big")).text().unwrap() == bytes);
    assert_eq!(status(&server, &cancelled)["phase"], "cancelled");
}

#[test]
fn pln_31_an_upload_that_fails_in_all_attempts_fails_the_execution() {
    let mut bucket = Bucket::open();
    let place = bucket.place().with(&["--artifact-attempts", "2"]);
    let server = place.serve();
    let _worker = worker(&place, &server);
    bucket.close();
    let plan = zeros(100_000, 'x');
    let path = begin(&server, &plan, &json!({}));
    let failed = until_phase(&server, &path, "failed");
    assert_eq!(failed["stepCounts"]["completed"], 1, "no step failed");
    let error = failed["error"].as_str().unwrap();
    for part in ["an upload failed", "100000 bytes", "2 attempts", "cannot be reached"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(!error.contains("127.0.0.1"), "{error}");
    let artifact_of = made(&failed);
    assert_eq!((&artifact_of["ready"], &artifact_of["size"]), (&json!(false), &json!(100_000)));
    assert!(artifact_of["error"].as_str().unwrap().contains("cannot be reached"), "{artifact_of}");
    assert!(failed.get("outputs").is_none(), "{failed}");
    let refused = server.get(&format!("{path}/steps/make/outputs/big"));
    assert_eq!(refused.status().as_u16(), 503);
    assert!(refused.text().unwrap().contains("cannot be reached"));
    bucket.reopen();
    let again = begin(&server, &plan, &json!({}));
    let ended = until_phase(&server, &again, "completed");
    assert_eq!(made(&ended), &artifact("x".repeat(100_000).as_bytes()));
    let before = status(&server, &path);
    assert_eq!(
        (&before["phase"], &before["error"]),
        (&json!("failed"), &failed["error"]),
        "the end never changes"
    );
    assert_eq!(made(&before)["ready"], true, "the same bytes are in the bucket now");
    let (_, said) = server.stop();
    assert!(said.contains("was not uploaded in all attempts") && !said.contains(SECRET_KEY), "{said}");
}

#[test]
fn artifacts_of_other_dialects_are_copied_and_nothing_waits_for_them() {
    let mut bucket = Bucket::open();
    let place = bucket.place();
    let server = place.serve();
    bucket.close();
    let text = "metadata: {name: a}\nworkflow:\n- {step: a, tool: {kind: python, code: \"result = 'x' * 100000\"}}\n";
    let workflow = server.define(text);
    let (code, started) = server
        .post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "options": { "async": false } }));
    assert!(code.is_success(), "{started}");
    assert_eq!(started["status"], "completed", "{started}");
    assert_eq!(files(&place.data().join("artifacts")).len(), 1);
    bucket.reopen();
    let bytes = serde_json::to_vec(&"x".repeat(100_000)).unwrap();
    let object = rig::until("it is copied", || bucket.object(&key(&bytes)));
    assert!(object == bytes);
}

#[test]
fn artifacts_of_a_folder_that_had_no_bucket_are_copied_when_it_gets_one() {
    let bucket = Bucket::open();
    let place = Place::new();
    let server = place.serve();
    let running = worker(&place, &server);
    let path = begin(&server, &zeros(100_000, 'x'), &json!({}));
    assert_eq!(made(&until_phase(&server, &path, "completed"))["ready"], true, "it is on the disk");
    drop(running);
    server.stop();
    let place = place
        .with(&["--artifacts", &format!("s3://{NAME}/some/prefix")])
        .variable("AWS_ENDPOINT_URL", &bucket.endpoint())
        .variable("AWS_ACCESS_KEY_ID", "key-of-tests")
        .variable("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
    let server = place.serve();
    let bytes = "x".repeat(100_000);
    rig::until("it is copied", || bucket.object(&key(bytes.as_bytes())));
    rig::until("it is ready", || (made(&status(&server, &path))["ready"] == true).then_some(()));
}

#[test]
fn a_wrong_bucket_is_refused_at_the_start() {
    let mut bucket = Bucket::open();
    let refused = |place: &Place, parts: &[&str]| {
        let (status, said) = place.refuse();
        assert!(!status.success(), "{said}");
        for part in parts {
            assert!(said.contains(part), "`{part}` is missing in:\n{said}");
        }
        assert!(!said.contains(SECRET_KEY), "{said}");
    };
    refused(
        &bucket.named("s3://no-such-bucket"),
        &["s3://no-such-bucket", "does not exist", "create the bucket"],
    );
    refused(&bucket.named("/some/folder"), &["WINDLASS_ARTIFACTS", "s3://BUCKET/PREFIX"]);
    let keyless = bucket.place().variable("AWS_SECRET_ACCESS_KEY", "");
    refused(&keyless, &["AWS_SECRET_ACCESS_KEY is not set", "hint: set AWS_ACCESS_KEY_ID"]);
    refused(&bucket.place().with(&["--artifact-attempts", "0"]), &["artifact-attempts", "above 0"]);
    bucket.close();
    let place = bucket.place();
    refused(&place, &["cannot be reached", "AWS_ENDPOINT_URL"]);
    bucket.reopen();
    place.serve().stop();
    bucket.close();
    let (_, said) = place.serve().stop();
    assert!(said.contains("warning: ") && said.contains("artifacts wait for it"), "{said}");
}

#[test]
fn steps_do_not_see_the_credentials_of_the_bucket() {
    let bucket = Bucket::open();
    let place = bucket.place().variable("PASSED_ON", "yes").with(&["--env-secrets", "AWS_*"]);
    let server = place.serve();
    let look = "env; tr '\\\\0' '\\\\n' < /proc/$PPID/environ || true; cat /proc/*/environ 2>/dev/null | tr '\\\\0' '\\\\n' || true";
    let text = format!(
        "metadata: {{name: a}}\nworkflow:\n- {{step: a, tool: {{kind: shell, command: \"{look}\"}}}}\n"
    );
    let workflow = server.define(&text);
    let (code, started) = server
        .post(&format!("/api/v1/workflows/{workflow}/execute"), &json!({ "options": { "async": false } }));
    assert!(code.is_success() && started["status"] == "completed", "{started}");
    let shown = started.to_string();
    assert!(shown.contains("PASSED_ON=yes"), "the environment is inherited: {shown}");
    assert!(!shown.contains(SECRET_KEY), "{shown}");
    let (_, said) = server.stop();
    assert!(!said.contains(SECRET_KEY), "{said}");
    for file in files(&place.data()) {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(SECRET_KEY.len()).any(|part| part == SECRET_KEY.as_bytes());
        assert!(!found, "{}", file.display());
    }
}

/// Makes files of artifacts as old as files that may be removed.
fn age(place: &Place) {
    let old = SystemTime::now() - Duration::from_secs(48 * 3_600);
    for file in files(&place.data().join("artifacts")) {
        File::options().append(true).open(file).unwrap().set_modified(old).unwrap();
    }
}

#[test]
fn files_beyond_the_cache_are_removed_once_they_are_in_the_bucket() {
    let bucket = Bucket::open();
    let place = bucket.place().with(&["--artifact-cache", "150KiB"]);
    let server = place.serve();
    let _worker = worker(&place, &server);
    let first = begin(&server, &zeros(100_000, 'x'), &json!({}));
    until_phase(&server, &first, "completed");
    age(&place);
    let second = begin(&server, &zeros(100_001, 'y'), &json!({}));
    until_phase(&server, &second, "completed");
    let left = rig::until("the older file is removed", || {
        let left = files(&place.data().join("artifacts"));
        (left.len() == 1).then_some(left)
    });
    assert_eq!(fs::metadata(&left[0]).unwrap().len(), 100_001, "the newest stays");
    for (path, bytes) in [(&first, "x".repeat(100_000)), (&second, "y".repeat(100_001))] {
        assert!(server.get(&format!("{path}/outputs/big")).text().unwrap() == bytes);
    }
    let backup = place.path("backup");
    place.windlass(&["admin", "backup", backup.to_str().unwrap()]).expect(0);
}

#[test]
fn a_copy_is_deleted_with_the_last_execution_that_refers_to_it() {
    let bucket = Bucket::open();
    let place = bucket.place();
    let server = place.serve();
    let running = worker(&place, &server);
    let path = begin(&server, &zeros(100_000, 'x'), &json!({}));
    until_phase(&server, &path, "completed");
    assert_eq!(bucket.keys().len(), 1);
    drop(running);
    server.stop();
    // A recent artifact may be about to be referred to.
    age(&place);
    let store = Connection::open(place.data().join("windlass.db")).unwrap();
    assert_eq!(store.execute("UPDATE objects SET put_at = 0", []).unwrap(), 1);
    drop(store);
    place.windlass(&["admin", "prune", "--keep", "0d", "--yes"]).expect(0);
    assert_eq!(bucket.keys().len(), 1, "the command does not reach the bucket");
    let server = place.serve();
    rig::until("the object is deleted", || bucket.keys().is_empty().then_some(()));
    assert_eq!(server.get(&path).status().as_u16(), 404);
    assert!(files(&place.data().join("artifacts")).is_empty());
}

#[test]
fn another_bucket_gets_every_artifact() {
    let bucket = Bucket::open();
    let place = bucket.place();
    let server = place.serve();
    let running = worker(&place, &server);
    let path = begin(&server, &zeros(100_000, 'x'), &json!({}));
    until_phase(&server, &path, "completed");
    drop(running);
    server.stop();
    let place = place.variable("WINDLASS_ARTIFACTS", &format!("s3://{NAME}/other"));
    let server = place.serve();
    let keys = rig::until("it is copied again", || Some(bucket.keys()).filter(|keys| keys.len() == 2));
    assert!(keys.iter().any(|key| key.starts_with("other/t-default/")), "{keys:?}");
    rig::until("it is ready", || (made(&status(&server, &path))["ready"] == true).then_some(()));
}

#[test]
fn the_inline_limit_is_a_setting() {
    let place = Place::new().with(&["--inline-limit", "2KiB"]);
    let server = place.serve();
    let _worker = worker(&place, &server);
    let sizes = [(1_000, false), (1_100, true)];
    for (size, is_artifact) in sizes {
        let path = begin(&server, &zeros(size, 'x'), &json!({}));
        let ended = until_phase(&server, &path, "completed");
        let made = output(step(&ended, "make"), "big");
        assert_eq!(made.get("artifact").is_some(), is_artifact, "half of it is for outputs: {made}");
    }
    for (size, is_artifact) in [(2_000, false), (2_100, true)] {
        let text = format!(
            "metadata: {{name: a}}\nworkflow:\n- {{step: a, tool: {{kind: python, code: \"result = 'x' * {size}\"}}}}\n"
        );
        let workflow = server.define(&text);
        let before = files(&place.data().join("artifacts")).len();
        let body = json!({ "options": { "async": false } });
        let (code, ended) = server.post(&format!("/api/v1/workflows/{workflow}/execute"), &body);
        assert!(code.is_success() && ended["status"] == "completed", "{ended}");
        let after = files(&place.data().join("artifacts")).len();
        assert_eq!(after - before, usize::from(is_artifact), "{size}");
    }
    for bad in ["100", "2MiB"] {
        let (status, said) = Place::new().with(&["--inline-limit", bad]).refuse();
        assert!(
            !status.success() && said.contains("--inline-limit") && said.contains("1KiB to 1MiB"),
            "{said}"
        );
    }
}
