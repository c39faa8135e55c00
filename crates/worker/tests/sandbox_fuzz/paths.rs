//! JSONPaths: what the process finds is what the library finds, within the limits.

use super::random::Random;
use super::{Bounds, Job, Limits, Yard, repeat};
use serde_json::{Map, Value, json};
use serde_json_path::JsonPath;
use std::thread;
use std::time::Duration;

const BOUNDS: Bounds = Bounds {
    what: "the JSONPath",
    limits: Limits { memory_bytes: 384 << 20, cpu_seconds: 2, file_bytes: Some(0) },
    time: Duration::from_secs(10),
    result_bytes_max: super::super::FOUND_BYTES_MAX,
};

/// Paths nested to the bound of a process's stack are refused there; the library is asked with more.
const STACK_BYTES: usize = 256 << 20;

const SEGMENTS: &[&str] = &[
    ".a",
    ".b",
    ".é",
    "['a']",
    "[\"b\"]",
    "[0]",
    "[-1]",
    "[9007199254740991]",
    "[9007199254740992]",
    "[*]",
    ".*",
    "..*",
    "..a",
    "..[0]",
    "..[*]",
    "[::2]",
    "[1:3]",
    "[::-1]",
    "[::0]",
    "[-9:9:1]",
    "['a','b',0,*]",
    "[0,0,0,0]",
    "[?@.a]",
    "[?@.a > 1]",
    "[?@.a == 'x' && @.b != null]",
    "[?!(@.a || @.b)]",
    "[?@..*]",
    "[?@ == $]",
    "[?$..a == @]",
    "[?length(@) > 1]",
    "[?count(@..*) > 2]",
    "[?count($..*..*) > 2]",
    "[?value(@.a) == 1]",
    "[?match(@.a, 'a.*')]",
    "[?search(@, '(a+)+$')]",
    "[?match(@, 'a{1000}{1000}')]",
    "[?search(@.b, $.a)]",
    "[?@.a < 1e400]",
    "[?@.a == -0]",
    "[?nope(@)]",
    "['\\ud83d\\ude00']",
    "['\\ud83d']",
    "['\\u0000']",
    "[ ? @ ]",
    "[?(@.a)]",
    "[?@[?@.a]]",
    "[?@['a','b']]",
    "[01]",
    "[-0]",
    ".",
    "..",
    "[",
    "]",
    "[?",
    "['",
    "@",
    "$",
    " ",
    "\u{0}",
    "(",
    "\n",
];

fn path(random: &mut Random) -> String {
    match random.below(30) {
        0 => random
            .one(&["..*", "[*]", ".a", "[?@", "[?(", "[?!", "[?@.a &&", "[-"])
            .repeat(random.below(2_000)),
        1 => (0..random.below(20)).map(|_| random.one(SEGMENTS)).collect(),
        2 => format!("${}", "..*".repeat(2 + random.below(4))),
        _ => format!("${}", (0..random.below(5)).map(|_| random.one(&SEGMENTS[..52])).collect::<String>()),
    }
}

fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 4 } else { 8 }) {
        0 => random
            .one(&[&json!(null), &json!(true), &json!(0), &json!(-1.5), &json!(u64::MAX), &json!(1e300)])
            .clone(),
        1 => json!("a".repeat(random.below(40))),
        2 | 3 => json!(random.below(4)),
        4 | 5 => (0..random.below(5)).map(|_| value(random, depth - 1)).collect(),
        _ => {
            let fields = (0..random.below(5))
                .map(|_| (random.one(&["a", "b", "é", "", "😀"]).to_owned(), value(random, depth - 1)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
    }
}

fn data(random: &mut Random) -> Value {
    match random.below(12) {
        0 => (0..random.below(120)).fold(json!({ "a": 1 }), |inner, _| json!({ "a": inner })),
        1 => (0..random.below(120)).fold(json!([1]), |inner, _| json!([inner, 1])),
        2 => json!((0..random.below(20_000)).collect::<Vec<_>>()),
        _ => value(random, 5),
    }
}

/// Returns what the library finds; fails if it cannot parse one of the paths.
fn found(paths: Vec<String>, data: Value) -> Result<Vec<u8>, String> {
    let found = move || {
        let paths: Vec<JsonPath> = paths
            .iter()
            .map(|path| JsonPath::parse(path))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        let found: Vec<Vec<&Value>> = paths.iter().map(|path| path.query(&data).all()).collect();
        Ok(serde_json::to_vec(&found).unwrap())
    };
    thread::Builder::new().stack_size(STACK_BYTES).spawn(found).unwrap().join().unwrap()
}

#[test]
fn paths_find_what_the_library_finds_within_their_limits() {
    let yard = Yard::new();
    repeat("paths", 20, |random| {
        let paths: Vec<String> = (0..1 + random.below(2)).map(|_| path(random)).collect();
        let data = data(random);
        let job = Job::FindPaths { paths: paths.clone(), data: data.clone() };
        match yard.run(job, &BOUNDS) {
            Ok(bytes) => {
                let expected = found(paths.clone(), data.clone());
                assert!(
                    expected.as_ref() == Ok(&bytes),
                    "{paths:?}\n{data}\n{}",
                    String::from_utf8_lossy(&bytes)
                );
                "done".to_owned()
            }
            Err(failure) => match failure.code.as_str() {
                "INVALID_CONFIGURATION" => {
                    assert!(found(paths.clone(), data).is_err(), "{paths:?}: {}", failure.message);
                    "no path".to_owned()
                }
                "LIMIT_EXCEEDED" | "RESULT_TOO_LARGE" => failure.code.clone(),
                _ => panic!("{failure:?}\n{paths:?}\n{data}"),
            },
        }
    });
}
