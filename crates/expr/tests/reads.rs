//! Names that an expression reports as read, and that it reads no others.

use std::borrow::Cow;
use std::cell::RefCell;

use serde_json::{Value, json};
use windlass_expr::{Expr, Read, Scope, Template};

fn named(reads: &[Read]) -> String {
    let name = |read: &Read| match &read.key {
        Some(key) => format!("{}.{key}", read.root),
        None => read.root.clone(),
    };
    reads.iter().map(name).collect::<Vec<_>>().join(" ")
}

/// Scope that returns an object for every name and records the lookups.
struct Asked(RefCell<Vec<Read>>);

impl Scope for Asked {
    fn get(&self, root: &str, key: Option<&str>) -> Option<Cow<'_, Value>> {
        self.0.borrow_mut().push(Read { root: root.to_owned(), key: key.map(str::to_owned) });
        Some(Cow::Owned(json!({"x": {"y": 1}})))
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let expr = Expr::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(named(expr.reads()), expected, "{source}");
    let asked = Asked(RefCell::default());
    let _ = expr.eval(&asked);
    assert_eq!(asked.0.into_inner(), expr.reads(), "{source}");
}

#[test]
fn a_key_is_known_from_the_text() {
    check("ctx.x > 3", "ctx.x");
    check("ctx.x.y.z", "ctx.x");
    check("ctx['x'].y + ctx.b", "ctx.b ctx.x");
    check("steps.a.result.id == workload.n", "steps.a workload.n");
    check("1 + 2", "");
}

#[test]
fn a_bare_or_computed_use_reads_the_whole_root_once() {
    check("ctx", "ctx");
    check("ctx[name]", "ctx name");
    check("ctx.x and ctx", "ctx");
    check("ctx[0] + ctx.a", "ctx");
    check("ctx|length", "ctx");
    check("ctx|attr('x')", "ctx");
}

#[test]
fn a_method_is_not_a_key() {
    check("ctx.get('x')", "ctx");
    check("ctx.x.upper()", "ctx.x");
    check("ctx.items()", "ctx");
}

#[test]
fn names_of_filters_tests_functions_and_keywords_are_not_reads() {
    check("range(n)|map('upper')|list is defined", "n");
    check("dict(a=ctx.b)", "ctx.b");
    check("ctx.a|join(sep, attribute=field)", "ctx.a field sep");
}

#[test]
fn every_kind_of_expression_is_searched() {
    check("a.x[b.x:c.x:d.x]", "a.x b.x c.x d.x");
    check("[a.x, (b.x,), {c.x: d.x}]", "a.x b.x c.x d.x");
    check("a.x if b.x else c.x", "a.x b.x c.x");
    check("a.x < b.x < c.x", "a.x b.x c.x");
    check("not -a.x ~ b.x in c.x", "a.x b.x c.x");
    check("a.x is divisibleby(b.x)", "a.x b.x");
}

#[test]
fn names_bound_inside_are_not_reads() {
    check("{% for x in ctx.xs if x.ok %}{{ x.y }}{{ loop.index }}{% endfor %}{{ 1 }}", "ctx.xs");
    check("{% for k, v in ctx.m.items() %}{{ k }}{{ v }}{% endfor %}", "ctx.m");
    check("{% set a = ctx.b %}{{ a.c }}", "ctx.b");
    check("{% with a = ctx.b, c = a.d %}{{ c }}{% endwith %}{{ c.e }}", "c.e ctx.b");
    check("{% set t %}{{ ctx.x }}{% endset %}{{ t }}", "ctx.x");
}

#[test]
fn an_expression_for_each_item_reads_what_is_passed_to_it() {
    check("ctx.rows|strict_each('any', it.id > least, least=ctx.n)", "ctx.n ctx.rows");
    check("ctx.rows|strict_each('any', o|strict_each('all', it > p, p=p), p=p, o=ctx.o)", "ctx.o ctx.rows p");
}

#[test]
fn a_name_is_read_until_it_is_bound() {
    check("{% set ctx = ctx.x %}{{ ctx.y }}", "ctx.x");
    check("{{ a.b }}{% set a = 1 %}{{ a.c }}", "a.b");
    check("{% for a in a.b %}{{ a.c }}{% endfor %}{{ a.d }}", "a.b a.d");
    check("{% if c %}{% set a = 1 %}{% endif %}{{ a.x }}", "a.x c");
    check("{{ loop.x }}{% for x in [] %}{% else %}{{ x.y }}{% endfor %}", "loop.x x.y");
}

#[test]
fn filters_of_blocks_are_searched() {
    check("{% filter replace(a.x, b.x) %}{{ c.x }}{% endfilter %}{{ 1 }}", "a.x b.x c.x");
    check("{% set t | replace('a', a.x) %}a{% endset %}{{ t }}", "a.x");
}

#[test]
fn a_template_reads_what_its_strings_read() {
    let template =
        Template::compile(&json!({"a": "{{ ctx.x }}", "b": ["{{ ctx.y }}-", "ctx.z", 1, "{{ args.v }}"]}));
    assert_eq!(named(template.unwrap().reads()), "args.v ctx.x ctx.y");
}
