//! Answers of servers, and paths into them, that take all time or all memory.

use crate::origin::Origin;
use crate::rig::Place;
use crate::stage::Stage;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;

/// The server's memory with the largest answers that it takes, several at a time. It is about 60 MiB at rest.
const PEAK_MIB: u64 = 1_000;

fn stage() -> Stage {
    Stage::at(Place::new().variable("WINDLASS_EGRESS_ALLOW", "127.0.0.1"))
}

fn request(origin: &Origin, more: Value) -> Value {
    let mut tool = json!({ "kind": "http", "url": origin.url, "timeout": 60 });
    tool.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({ "metadata": { "name": "attack" }, "workflow": [{ "step": "a", "tool": tool }] })
}

fn nested(depth: usize) -> Vec<u8> {
    let mut value = json!(1);
    for _ in 0..depth {
        value = json!([value.clone(), { "a": value, "b": 1 }]);
    }
    value.to_string().into_bytes()
}

fn gzip(piece: &[u8], times: usize) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"[").unwrap();
    (0..times).for_each(|_| encoder.write_all(piece).unwrap());
    encoder.write_all(b"0]").unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_path_that_finds_everything_many_times_ends_at_its_limit_and_leaves_others_alone() {
    let stage = stage();
    let token = stage.token("developer");
    let origin = Origin::json(None, nested(12));
    let paths = ["$..*..*..*..*..*", "$[?count(@..*..*..*..*..*..*) > 1]"];
    let attacks: Vec<String> = paths
        .iter()
        .cycle()
        .take(6)
        .map(|path| stage.start(&token, &request(&origin, json!({ "response_mapping": path }))))
        .collect();
    for _ in 0..3 {
        println!("bystander {:?}, its step {:?}", stage.bystander(), stage.bystander_step());
    }
    for id in &attacks {
        let ended = stage.ended(&token, id);
        let code = ended["errors"][0]["code"].as_str().unwrap_or_default();
        assert!(["LIMIT_EXCEEDED", "RESULT_TOO_LARGE"].contains(&code), "{ended}");
    }
    println!("peak {} MiB", stage.peak_mib());
    assert!(stage.peak_mib() < PEAK_MIB, "{} MiB", stage.peak_mib());
    let stage = stage.restarted();
    stage.bystander_step();
}

#[test]
fn a_path_that_is_nested_without_end_is_refused_and_crashes_nothing() {
    let stage = stage();
    let token = stage.token("developer");
    let origin = Origin::json(None, nested(2));
    for depth in [10, 1_900] {
        let path = format!("$[?{}@.a{}]", "(".repeat(depth), ")".repeat(depth));
        let ended =
            stage.ended(&token, &stage.start(&token, &request(&origin, json!({ "response_mapping": path }))));
        let code = &ended["errors"][0]["code"];
        assert!(depth == 10 || ended["status"] == "failed", "{ended}");
        assert!(code.is_null() || code == "LIMIT_EXCEEDED" || code == "INVALID_CONFIGURATION", "{ended}");
    }
    stage.bystander_step();
}

#[test]
fn answers_that_grow_when_they_are_unpacked_or_parsed_are_bounded() {
    let stage = stage();
    let token = stage.token("developer");
    let bombs = [
        // 1 GiB, with as much as the definition may ask for.
        (gzip(&vec![b' '; 1 << 20], 1024), "RESPONSE_TOO_LARGE"),
        // 16 MiB of small values, which are gigabytes in memory.
        (gzip(b"[],", 5_500_000), "RESPONSE_TOO_LARGE"),
        (gzip(b"{\"a\":0},", 2_000_000), "RESPONSE_TOO_LARGE"),
        (gzip(b"0,", 8_000_000), "RESPONSE_TOO_LARGE"),
        // As large as it may be.
        (gzip(b"0,", 1_500_000), "completed"),
        (b"[".repeat(100_000), "RESPONSE_TOO_LARGE"),
    ];
    let origins: Vec<(Origin, &str)> = bombs
        .into_iter()
        .enumerate()
        .map(|(index, (body, expected))| (Origin::json((index < 5).then_some("gzip"), body), expected))
        .collect();
    let attacks: Vec<(String, &str)> = origins
        .iter()
        .cycle()
        .take(12)
        .map(|(origin, expected)| {
            let bomb = request(origin, json!({ "max_response_bytes": 10_u64 << 30 }));
            (stage.start(&token, &bomb), *expected)
        })
        .collect();
    for _ in 0..3 {
        println!("bystander {:?}, its step {:?}", stage.bystander(), stage.bystander_step());
    }
    for (id, expected) in &attacks {
        let ended = stage.ended(&token, id);
        let code = ended["errors"][0]["code"].as_str().or(ended["status"].as_str()).unwrap();
        assert_eq!(code, *expected, "{}", ended["errors"]);
    }
    println!("peak {} MiB", stage.peak_mib());
    assert!(stage.peak_mib() < PEAK_MIB, "{} MiB", stage.peak_mib());
    let stage = stage.restarted();
    stage.bystander_step();
}
