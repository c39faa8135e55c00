//! Deeply nested source and values lead to an error or a value, and never overflow the stack.

use std::thread;

use serde_json::{Value, json};
use windlass_expr::{Expr, Map, Template};

/// Stack of the test thread. Threads of the standard library and tokio have 2 MiB, and the callers need some of it.
const STACK_BYTES: usize = 5 * 1024 * 1024 / 4;

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(test).expect("a thread");
    thread.join().expect("no panic");
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!(1), |inner, level| match level % 2 {
        0 => Value::Array(vec![inner]),
        _ => Value::Object(Map::from_iter([("k".to_owned(), inner)])),
    })
}

/// Drops a nested value without recursion, which serde_json would use.
fn drop_nested(mut value: Value) {
    loop {
        value = match value {
            Value::Array(mut items) => items.pop().unwrap_or_default(),
            Value::Object(fields) => fields.into_iter().next().map(|(_, value)| value).unwrap_or_default(),
            _ => return,
        };
    }
}

/// Returns texts that are nested `depth` times. Some are valid up to the limits, some never are.
fn sources(depth: usize) -> Vec<String> {
    let chain = |start: &str, step: &str, end: &str| format!("{start}{}{end}", step.repeat(depth));
    let nest = |open: &str, middle: &str, close: &str| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    vec![
        chain("", "(", ""),
        chain("", "[", ""),
        chain("", "{", ""),
        chain("", "{1:", ""),
        nest("(", "1", ")"),
        nest("[", "1", "]"),
        nest("[ctx, ", "1", "]"),
        nest("{'a': ", "1", "}"),
        nest("range(", "1", ")"),
        nest("1 + (", "1", ")"),
        nest("ctx.a[", "0", "]"),
        nest("ctx.a|default(", "0", ")"),
        nest("[1]|strict_each('map', ", "it", ")"),
        nest("[1]|strict_each('map', (", "it", "))"),
        chain("[1]|strict_each('map', ", "-", "it)"),
        chain("", "-", "1"),
        chain("", "- ", "ctx.a"),
        chain("", "not ", "1"),
        chain("ctx", ".a", ""),
        chain("ctx", "[0]", ""),
        chain("ctx", "[ctx.a]", ""),
        chain("ctx", "[1:]", ""),
        chain("ctx.a", ".upper()", ""),
        chain("ctx.a", "|upper", ""),
        chain("ctx.a", "|list", ""),
        chain("[1]", "|batch(1)", ""),
        chain("ctx.a", " is defined", ""),
        chain("1", " + 1", ""),
        chain("1", " - ctx.a", ""),
        chain("'a'", " ~ 'b'", ""),
        chain("1", " * 1", ""),
        chain("1", " ** 1", ""),
        chain("1", " and 1", ""),
        chain("1", " or ctx.a", ""),
        chain("1", " == 1", ""),
        chain("", "1 if 0 else ", "2"),
        chain("1", " if 1", ""),
        chain("'a'", " 'b'", ""),
        nest("{% if ctx.a %}", "x", "{% endif %}"),
        nest("{% for x in [1] %}", "x", "{% endfor %}"),
        nest("{% filter upper %}", "x", "{% endfilter %}"),
        nest("{% set a %}", "x", "{% endset %}"),
        chain("{% if 0 %}", "{% elif ctx.a %}y", "{% endif %}"),
        format!("{{% for {}x{} in [] %}}{{% endfor %}}", "(".repeat(depth), ",)".repeat(depth)),
        chain("{% set a = 1 %}", "{% set a = [a] %}", "{{ a }}"),
        chain("{% set a = 1 %}", "{% set a = {'k': a} %}", "{{ a == 1 }}"),
        chain("", "{{ ctx.a }}", ""),
        chain("", "{%", ""),
        chain("", "{#", ""),
        chain("", "{{", ""),
    ]
}

#[test]
fn source_text_of_any_depth_ends_in_a_result() {
    on_a_small_stack(|| {
        let scope = Map::from_iter([("ctx".to_owned(), json!({"a": "x"}))]);
        for depth in [10, 40, 75, 100, 150, 330, 480, 990, 10_000] {
            for source in sources(depth) {
                if let Ok(expr) = Expr::compile(&source) {
                    let _ = expr.eval(&scope);
                }
                let _ = Template::compile(&json!(source));
            }
        }
    });
}

#[test]
fn ten_thousand_brackets_are_an_error() {
    on_a_small_stack(|| {
        for source in ["(", "[", "{", "-", "not ", "a.", "a|", "1 if 0 else "].map(|open| open.repeat(10_000))
        {
            assert!(Expr::compile(&source).is_err(), "{}", &source[..10]);
            assert!(Template::compile(&json!(format!("{{{{ {source} }}}}"))).is_err(), "{}", &source[..10]);
        }
    });
}

#[test]
fn usual_depth_is_no_error() {
    for source in
        ["((((((((((1 + 1))))))))))", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"]
    {
        assert!(Expr::compile(source).unwrap().eval(&Map::new()).is_ok());
    }
    let long_sum = format!("0{}", " + 1".repeat(490));
    assert_eq!(Expr::compile(&long_sum).unwrap().eval(&Map::new()), Ok(json!(490)));
}

#[test]
fn deeply_nested_values_are_an_error() {
    on_a_small_stack(|| {
        for source in ["ctx", "ctx.x", "ctx.x == ctx.x", "a {{ ctx.x }}", "ctx.x|tojson"] {
            let expr = Expr::compile(source).unwrap();
            let ctx = |depth| Value::Object(Map::from_iter([("x".to_owned(), nested(depth))]));
            let scope = |depth| Map::from_iter([("ctx".to_owned(), ctx(depth))]);
            assert!(expr.eval(&scope(98)).is_ok(), "{source}");
            let deep = scope(10_000);
            let error = expr.eval(&deep).unwrap_err().to_string();
            assert!(error.contains("nested more than 128 deep"), "{source}: {error}");
            deep.into_iter().for_each(|(_, value)| drop_nested(value));
        }
    });
}

#[test]
fn deeply_nested_templates_are_an_error() {
    on_a_small_stack(|| {
        assert!(Template::compile(&nested(120)).is_ok());
        let deep = nested(10_000);
        let error = Template::compile(&deep).unwrap_err();
        assert!(error.message.contains("nested at most 128 deep"), "{error}");
        assert!(error.path.starts_with("/k/0/k/0"), "{}", error.path);
        drop_nested(deep);
    });
}
