//! Duration of evaluations. It asserts nothing: `cargo test --release -p windlass-expr --test speed -- --ignored --nocapture`.

use std::time::Instant;

use serde_json::{Value, json};
use windlass_expr::{Expr, Map, Template};

const TIMES: u32 = 200_000;

fn scope() -> Map {
    let list: Vec<Value> = (0..1_000).map(|id| json!({"id": id, "name": "a name"})).collect();
    let ctx = json!({"x": 4, "y": 5, "s": "some text of usual length", "list": list, "small": [1, 2, 3]});
    let outcome = json!({"status": "error", "error": {"retryable": true}, "http": {"status": 502}});
    Map::from_iter([("ctx".to_owned(), ctx), ("outcome".to_owned(), outcome)])
}

fn report<T>(name: &str, mut run: impl FnMut() -> T) {
    let start = Instant::now();
    for _ in 0..TIMES {
        std::hint::black_box(run());
    }
    println!("{:>8.0} ns  {name}", start.elapsed().as_nanos() as f64 / f64::from(TIMES));
}

#[test]
#[ignore = "it measures and asserts nothing"]
fn speed_of_usual_expressions() {
    let scope = scope();
    for source in [
        "true",
        "ctx.x > 3",
        "ctx.x * 2 + 1",
        "ctx.x == ctx.y",
        "outcome.status == 'error' and outcome.error.retryable",
        "outcome.http.status in [500, 502, 503]",
        "ctx.small|length > 2",
        "ctx.small|strict_each('any', it > 2)",
        "ctx.s|upper",
        "id-{{ ctx.x }}-{{ ctx.y }}",
    ] {
        let expr = Expr::compile(source).unwrap();
        report(source, || expr.truthy(&scope));
    }
    let args = json!({"url": "https://host/{{ ctx.x }}", "body": {"n": "{{ ctx.y }}", "s": "{{ ctx.s }}", "fixed": [1, 2]}});
    let template = Template::compile(&args).unwrap();
    report("a template of three strings", || template.render(&scope));
    report("compile ctx.x > 3", || Expr::compile("ctx.x > 3"));
    report("compile id-{{ ctx.x }}-{{ ctx.y }}", || Expr::compile("id-{{ ctx.x }}-{{ ctx.y }}"));
}
