//! Expressions made of the language's words, and values for them to look at.

use crate::random::Random;
use serde_json::{Map, Value, json};
use windlass_expr::{Expr, Template};

const LEAVES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2.5",
    "1e308",
    "9223372036854775807",
    "18446744073709551616",
    "'a'",
    "\"é\\n\"",
    "''",
    "true",
    "none",
    "ctx",
    "ctx.x",
    "ctx.y",
    "ctx.list",
    "ctx.map",
    "ctx['x']",
    "ctx.deep.er.x",
    "workload.n",
    "name",
    "event.name",
    "iter.x",
    "_prev",
    "outcome.error.retryable",
    "nope.deep",
    "[]",
    "{}",
    "()",
    "loop.index",
    "'%s %5.2f'",
    "'{0:>9}'",
    "'a,b,c'",
    "'eyJhIjpbMV19'",
    "'{\"a\": [1, {\"b\": null}]}'",
];

const OPERATORS: &[&str] = &[
    "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
];

const POSTFIXES: &[&str] = &[
    "[0]",
    "[-1]",
    "[1:]",
    "[::-1]",
    "[ctx.x]",
    ".x",
    ".upper()",
    ".items()",
    ".get('x')",
    ".split(',')",
    ".format(1, x=2)",
    ".join(['a', 'b'])",
    ".replace('a', 'aa')",
    " is defined",
    " is none",
    " is mapping",
    " is divisibleby 0",
    " is in [1, 2]",
    "|map('upper')",
    "|select('odd')",
    "|batch(3, 0)",
    "|slice(99999999)",
    "|indent(1000000)",
    "|join(ctx.map)",
    "|round(300)",
    "|format(ctx, 1)",
    "|replace('', ctx)",
    "|sort(attribute='x,y')",
    "|groupby('x')",
    "|default(ctx)",
    "|attr('x')",
    "|get('x', 1)",
    "|sum(start=[])",
    "|tojson(indent=9999999)",
    "|split('')",
    "|center(9)",
    "|unique(attribute='x')",
];

const TEMPLATES: &[&str] = &[
    "{% for a in @ %}{{ a }}{{ loop.cycle(1, 2) }}{% else %}no{% endfor %}",
    "{% if @ %}x{% elif @ %}y{% endif %}",
    "{% set a = @ %}{{ a }}{{ @ }}",
    "{% set a %}{{ @ }}{% endset %}{{ a }}",
    "{% with a = @ %}{{ a ~ @ }}{% endwith %}",
    "{% filter upper %}{{ @ }}{% endfilter %}",
    "{% raw %}{{ @ }}{% endraw %}{{ @ }}",
    "a {{ @ }} b {{- @ -}} c",
    "{% for a in @ %}{% for b in @ %}{{ a ~ b }}{% endfor %}{% endfor %}",
    "{# @ #}{{ @ }}",
    "{{ @ }}",
    "{{ @",
    "@ }}",
    "${#@}",
    "{% macro x() %}{{ @ }}{% endmacro %}",
    "{% include @ %}",
];

/// Generates an expression, with or without mistakes.
pub fn expression(random: &mut Random) -> String {
    let depth = 1 + random.below(5);
    let inner = tree(random, depth);
    let text = match random.below(4) {
        0 => {
            let mut text = random.one(TEMPLATES).to_owned();
            while text.contains('@') && text.len() < 4_000 {
                let depth = random.below(4);
                text = text.replacen('@', &tree(random, depth), 1);
            }
            text
        }
        _ => inner,
    };
    match random.below(12) {
        0 => broken(random, &text),
        1 => {
            random.one(&["(", "[", "-", "not ", "{{", "1 if ", "a.", "|"]).repeat(random.below(3_000)) + &text
        }
        _ => text,
    }
}

fn tree(random: &mut Random, depth: usize) -> String {
    if depth == 0 {
        return random.one(LEAVES).to_owned();
    }
    let next = |random: &mut Random| tree(random, depth - 1);
    let (a, b) = (next(random), next(random));
    match random.below(9) {
        0 | 1 => format!("({a}) {} ({b})", random.one(OPERATORS)),
        2 => format!("{a} {} {b}", random.one(OPERATORS)),
        3 => format!("({a}){}", random.one(POSTFIXES)),
        4 => {
            let filters: Vec<&str> = windlass_expr::filter_names().collect();
            format!("({a})|{}", random.one(&filters))
        }
        5 => format!("({a})|{}({b})", random.one(&windlass_expr::filter_names().collect::<Vec<_>>())),
        6 => format!("[{a}, {b}]"),
        7 => format!("{{{b}: {a}, 'k': {b}}}"),
        _ => format!("{a} if {b} else {}", next(random)),
    }
}

fn broken(random: &mut Random, text: &str) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    let at = random.below(letters.len() + 1);
    match random.below(3) {
        0 => letters.truncate(at),
        1 => letters.insert(
            at,
            random
                .one(&["{", "}", "%", "'", "\"", "\\", "\u{0}", "é", "|", "("])
                .chars()
                .next()
                .unwrap_or(' '),
        ),
        _ => drop(letters.drain(at..(at + random.below(9)).min(letters.len()))),
    }
    letters.into_iter().collect()
}

/// Any JSON value, not deeper than this; sometimes a large or a deep one.
pub fn value(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 7 } else { 12 }) {
        0 => Value::Null,
        1 => json!(random.below(2) == 0),
        2 => json!(random.below(100)),
        3 => json!(random.one(&[&i64::MAX, &i64::MIN, &0, &-1])),
        4 => json!(random.one(&[&1e308_f64, &-0.0, &0.1, &f64::MIN_POSITIVE])),
        5 => json!("é<a>\"'\n{{ x }}".repeat(random.below(4))),
        6 if random.below(20) == 0 => json!("ab\n".repeat(random.below(200_000))),
        6 => json!("text"),
        7 if random.below(20) == 0 => json!((0..random.below(5_000)).collect::<Vec<_>>()),
        7 if random.below(20) == 0 => (0..random.below(200)).fold(json!(1), |inner, _| json!([inner])),
        7..=9 => (0..random.below(5)).map(|_| value(random, depth - 1)).collect(),
        _ => {
            let keys = ["x", "y", "list", "map", "deep", "er", "n", "name", "a b"];
            let fields =
                (0..random.below(6)).map(|_| (random.one(&keys).to_owned(), value(random, depth - 1)));
            Value::Object(fields.collect())
        }
    }
}

/// Whether it has a value over this one.
pub fn survives(text: &str, value: &Value) -> bool {
    let roots = ["ctx", "workload", "iter", "event", "outcome", "_prev", "name"];
    let scope: Map<String, Value> = roots.iter().map(|root| ((*root).to_owned(), value.clone())).collect();
    let guard = Expr::compile(text).is_ok_and(|expr| {
        let _ = expr.truthy(&scope);
        expr.eval(&scope).is_ok()
    });
    let tree = json!({ "a": text, "b": [format!("{{{{ {text} }}}}"), value] });
    let rendered = Template::compile(&tree).is_ok_and(|template| template.render(&scope).is_ok());
    let defaults = json!({ "a": format!("{{{{ {text} }}}}"), "ctx": value, "name": "{{ a }}" });
    let _ = windlass_expr::with_defaults(&defaults, json!({ "n": value }), "0");
    guard || rendered
}
