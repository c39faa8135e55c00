//! Expressions that try to use all memory fail, and have not used much by then.
//!
//! The test has a binary of its own, because it measures the whole process: `VmHWM` is its peak memory.

use std::fmt::Write;

use serde_json::{Value, json};
use windlass_expr::{BYTES_MAX, EvalError, Expr, Map};

/// Allowance for intermediate values, their copies and the result: each `BYTES_MAX` or a small multiple of it.
const GROWTH_MAX: usize = 8 * BYTES_MAX;

fn scope() -> Map {
    let rows: Vec<Value> = (0..2_000).map(|n| json!({"id": n, "text": "x".repeat(100)})).collect();
    let ctx = json!({
        "big": "a".repeat(900_000), "lines": "a\n".repeat(400_000), "n": 100_000_000, "rows": rows,
        "numbers": (0..20_000).collect::<Vec<_>>(), "special": "<\"'".repeat(200_000),
    });
    Map::from_iter([("ctx".to_owned(), ctx)])
}

fn attacks() -> Vec<String> {
    let mut all: Vec<String> = include_str!("attacks.txt").lines().map(str::to_owned).collect();
    all.retain(|line| !line.is_empty() && !line.starts_with("##"));
    let repeated =
        |start: &str, step: &str, times: usize, end: &str| start.to_owned() + &step.repeat(times) + end;
    let grown = [
        ("'xx'", "a ~ a", 40),
        ("'xx'", "a + a", 40),
        ("'xx'", "a * 2", 40),
        ("'xx'", "a|replace('x', a)", 40),
        ("[1]", "a + a", 40),
        ("[1]", "a|chain(a)", 60),
        ("[1]", "a|zip(a, a)", 60),
        ("[1]", "[a, a]", 60),
        ("[1]", "(a, a)", 60),
        ("[1]", "dict(x=a, y=a)", 60),
        ("[1]", "[a, a]|map('list')", 60),
        ("[1]", "[none]|map('default', [a, a], true)", 60),
        ("{}", "{'x': a, 'y': a}", 60),
        ("{}", "{[a, a]: 1}", 60),
        ("[1]", "a|batch(1)", 3_000),
        ("[1]", "[a]", 3_000),
    ];
    for (start, step, times) in grown {
        let (start, step) = (format!("{{% set a = {start} %}}"), format!("{{% set a = {step} %}}"));
        all.push(repeated(&start, &step, times, "{{ a|length }}"));
    }
    all.push(repeated("{% set a = 'xx' %}", "{% set a %}{{ a }}{{ a }}{% endset %}", 40, "{{ a }}"));
    all.push(repeated(
        "{% set a = 1 %}{% set b = 1 %}",
        "{% set a = [a, a] %}{% set b = [b, b] %}",
        60,
        "{{ a == b }}",
    ));
    all.push(repeated("ctx.rows|sort(attribute='id", ",text", 5_000, "')|length"));
    all.push(repeated("['", "%(big)s", 3_000, "'|format(ctx)]"));
    all.push(repeated("'", "{0}", 3_000, "'.format(ctx.big)"));
    all.push(repeated("[", "ctx.big, ", 200, "]"));
    all.push(repeated("[", "ctx.big|upper, ", 200, "]|length"));
    all.push(repeated("ctx.numbers", "|list", 200, "|length"));
    all.push(repeated("ctx.numbers", "[1:]", 40, "|length"));
    all
}

/// Returns the peak memory of this process. The counter is approximate and can decrease slightly.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("VmHWM");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<usize>().ok()).expect("KiB") * 1024
}

#[test]
fn no_expression_takes_much_more_memory_than_it_may_make() {
    let (scope, attacks) = (scope(), attacks());
    // The scope is converted once before the measurement, so that its memory is not counted.
    assert_eq!(Expr::compile("ctx|length").unwrap().eval(&scope), Ok(json!(6)));
    let before = peak_bytes();
    let mut wrong = String::new();
    for source in &attacks {
        let peak = peak_bytes();
        let result = Expr::compile(source).map(|expr| expr.eval(&scope));
        let grown = peak_bytes().saturating_sub(peak);
        let head: String = source.chars().take(100).collect();
        match result {
            Ok(Err(EvalError::Failed(message))) if message.contains("cannot evaluate") => {
                writeln!(wrong, "panicked: {head}").unwrap();
            }
            Ok(Ok(_)) => writeln!(wrong, "has a value: {head}").unwrap(),
            Err(error) => writeln!(wrong, "did not compile: {head}: {}", error.message).unwrap(),
            Ok(Err(_)) => {}
        }
        if grown > GROWTH_MAX / 2 {
            writeln!(wrong, "took {} MiB: {head}", grown / 1024 / 1024).unwrap();
        }
    }
    let grown = peak_bytes().saturating_sub(before);
    assert!(wrong.is_empty(), "{wrong}");
    assert!(grown < GROWTH_MAX, "{} attacks took {} MiB", attacks.len(), grown / 1024 / 1024);
    println!("{} attacks took {} KiB", attacks.len(), grown / 1024);
}
