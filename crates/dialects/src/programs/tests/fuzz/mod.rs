//! Random programs with values in them, run by the real shells and the real Python.
//!
//! The reference is the program with a harmless word in each place of a value. The program under test has hostile values in
//! these places, and must do the same, with the values where the word was. docs/fuzzing.md says how to run it longer.

mod code;
mod interpreter;
#[path = "../../../../tests/fuzz/random.rs"]
mod random;
mod scripts;
mod shells;
mod soup;
mod values;

use random::Random;
use serde_json::{Map, Value, json};
use std::time::{Duration, Instant};
use windlass_expr::Template;

/// Time for each fuzzer.
const SECONDS: u64 = 10;

/// Words for values in the reference: no program has them for another reason.
const WORDS: [(&str, &str); 2] = [("x", "Zq7"), ("y", "Yw8")];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Result of a case.
enum Verdict {
    /// No result: the program is not valid, or was refused.
    Skipped,
    Held,
    /// The story of a failure.
    Failed(String),
}

/// Draws cases until the time is over, and fails with the shortest story. At least this share of the cases must say
/// something, in percent.
#[track_caller]
fn repeat(what: &str, share: u64, mut case: impl FnMut(&mut Random) -> Verdict) {
    let (seed, seconds) = (number("WINDLASS_FUZZ_SEED", 1), number("WINDLASS_FUZZ_SECONDS", SECONDS));
    let mut random = Random::new(seed);
    let end = Instant::now() + Duration::from_secs(seconds);
    let (mut tried, mut held, mut failed) = (0_u64, 0_u64, Vec::new());
    while Instant::now() < end {
        tried += 1;
        match case(&mut random) {
            Verdict::Skipped => {}
            Verdict::Held => held += 1,
            Verdict::Failed(story) => failed.push(story),
        }
    }
    println!("seed {seed}, {seconds} s: {tried} {what}, {held} as they should be");
    if let Some(shortest) = failed.iter().min_by_key(|story| story.len()) {
        panic!("seed {seed}: {} of {tried} {what} failed; the shortest:\n{shortest}", failed.len());
    }
    assert!(held * 100 >= tried * share, "hardly any case says something: {held} of {tried}");
}

/// The program with the words in the places of the values.
fn reference(text: &str) -> String {
    WORDS.iter().fold(text.replace("{{ n }}", "5"), |text, (name, word)| {
        text.replace(&format!("{{{{ {name} }}}}"), word)
    })
}

fn scope(values: &[String; 2]) -> Map<String, Value> {
    let mut scope: Map<String, Value> =
        WORDS.iter().zip(values).map(|((name, _), value)| ((*name).to_owned(), json!(value))).collect();
    scope.insert("n".to_owned(), json!(5));
    scope
}

/// Whether it compiles; else the upload is refused.
fn is_template(text: &str) -> bool {
    Template::compile(&json!(text)).is_ok()
}

/// None: a value cannot be in that place, as a text in arithmetic; the step fails.
fn rendered(source: &str, scope: &Map<String, Value>) -> Option<String> {
    let template = Template::compile(&json!(source)).unwrap_or_else(|error| panic!("{source}: {error}"));
    let rendered = template.render(scope).ok()?;
    Some(rendered.as_str().map_or_else(|| rendered.to_string(), str::to_owned))
}
