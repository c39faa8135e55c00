//! Random documents and expressions against the front end: no panic, no hang, never above [`MEMORY_MAX_KIB`].
//!
//! One test in a binary of its own, because it measures the whole process. docs/fuzzing.md says how to run it longer.

mod expressions;
mod mutate;
mod random;
mod schemas;

use random::Random;
use serde_json::Value;
use std::panic;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};
use windlass_dialects::compile;
use windlass_dialects::graph::{Format, draw};

const MEMORY_MAX_KIB: u64 = 256 * 1024;

/// Default time for all cases together.
const SECONDS: u64 = 30;

/// Maximum time of one case. In a debug build on a busy machine the slowest take some seconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// A main thread has so much; what needs more would break a program that compiles on it.
const STACK_BYTES: usize = 8 << 20;

static PANICS: AtomicU64 = AtomicU64::new(0);

enum Case {
    Document(String),
    Expression(String, Value),
    Schema(Value, Value),
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

#[test]
fn every_text_is_handled_in_little_time_and_memory() {
    let (seed, seconds) = (number("WINDLASS_FUZZ_SEED", 1), number("WINDLASS_FUZZ_SECONDS", SECONDS));
    let hook = panic::take_hook();
    // Panics inside the expression engine are caught there; here they are found all the same.
    panic::set_hook(Box::new(move |info| {
        PANICS.fetch_add(1, Ordering::SeqCst);
        hook(info);
    }));
    let end = Instant::now() + Duration::from_secs(seconds);
    let (cases, next) = channel::<Case>();
    let (done, answers) = channel();
    let worker = thread::Builder::new().stack_size(STACK_BYTES).spawn(move || {
        for case in next {
            let accepted = panic::catch_unwind(|| survive(&case));
            let _ = done.send(accepted.ok());
        }
    });
    let mut random = Random::new(seed);
    let corpus = mutate::corpus();
    let (mut tried, mut accepted) = ([0_u64; 3], [0_u64; 3]);
    while Instant::now() < end {
        let case = match random.below(3) {
            0 => Case::Document(mutate::document(&mut random, &corpus)),
            1 => Case::Expression(expressions::expression(&mut random), expressions::value(&mut random, 4)),
            _ => Case::Schema(schemas::schema(&mut random), expressions::value(&mut random, 4)),
        };
        let (kind, text) = match &case {
            Case::Document(text) => (0, text.clone()),
            Case::Expression(text, value) => (1, format!("{text}\n--- over ---\n{value}")),
            Case::Schema(schema, value) => (2, format!("{schema}\n--- over ---\n{value}")),
        };
        cases.send(case).expect("the worker lives");
        let answer = match answers.recv_timeout(PATIENCE) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => panic!("no end after {PATIENCE:?}: {}", kept(seed, &text)),
            Err(RecvTimeoutError::Disconnected) => panic!("the stack is too small: {}", kept(seed, &text)),
        };
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a panic: {}", kept(seed, &text));
        let memory = memory_kib();
        assert!(memory <= MEMORY_MAX_KIB, "{memory} KiB: {}", kept(seed, &text));
        tried[kind] += 1;
        accepted[kind] += u64::from(answer == Some(true));
    }
    drop(cases);
    worker.expect("a thread").join().expect("the worker ends");
    println!(
        "seed {seed}, {seconds} s: {} documents ({} valid), {} expressions ({} with a value), {} schemas ({} usable), at most {} MiB",
        tried[0],
        accepted[0],
        tried[1],
        accepted[1],
        tried[2],
        accepted[2],
        memory_kib() / 1024
    );
    // Else the cases say nothing about what comes after reading.
    assert!(
        accepted.iter().zip(&tried).all(|(accepted, tried)| accepted * 50 > *tried),
        "hardly anything is valid"
    );
}

/// Whether it was valid.
fn survive(case: &Case) -> bool {
    match case {
        Case::Document(text) => {
            let compiled = compile(text);
            for diagnostic in &compiled.diagnostics {
                assert!(diagnostic.line >= 1 && diagnostic.column >= 1 && !diagnostic.message.is_empty());
                let _ = diagnostic.render(text, "f");
            }
            let Some(net) = &compiled.net else { return false };
            for format in [Format::Mermaid, Format::Dot, Format::Svg] {
                assert!(
                    draw(net, None, format).is_ok_and(|picture| !picture.is_empty()) || format == Format::Svg
                );
            }
            let _ = windlass_expr::with_defaults(&compiled.workload, serde_json::json!({}), "0");
            true
        }
        Case::Expression(text, value) => expressions::survives(text, value),
        Case::Schema(schema, value) => schemas::survives(schema, value),
    }
}

/// Writes the case to a file, for a report.
fn kept(seed: u64, text: &str) -> String {
    let file = std::env::temp_dir().join(format!("windlass-fuzz-{seed}-{}.txt", std::process::id()));
    match std::fs::write(&file, text) {
        Ok(()) => format!("the case is in {}", file.display()),
        Err(_) => text.chars().take(2_000).collect(),
    }
}

/// The most memory this process ever had.
fn memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
