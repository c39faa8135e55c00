//! Values of expressions. `check` takes an expression and its expected JSON, in one scope for all.

use serde_json::{Value, json};
use windlass_expr::{CompileError, EvalError, Expr, Map, Template, is_true};

fn scope() -> Map {
    let scope = json!({
        "ctx": {
            "n": 4, "s": "text", "big": u64::MAX, "exact": 9007199254740993_i64, "f": 0.5, "no": null, "yes": true,
            "list": [3, 1, 2], "names": ["b", "A"], "deep": {"er": {"x": 1}}, "order": {"z": 1, "a": 2, "m": 3},
            "rows": [{"id": 1, "tag": "a"}, {"id": 2, "tag": "b"}, {"id": 3, "tag": "a"}],
        },
        "key": "n", "text": "a\nb",
    });
    match scope {
        Value::Object(scope) => scope,
        _ => unreachable!(),
    }
}

#[track_caller]
fn check(source: &str, expected: Value) {
    let expr = Expr::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(expr.eval(&scope()), Ok(expected), "{source}");
}

#[track_caller]
fn check_fails(source: &str, part_of_message: &str) {
    let expr = Expr::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    match expr.eval(&scope()) {
        Err(EvalError::Failed(message)) => assert!(message.contains(part_of_message), "{source}: {message}"),
        other => panic!("{source}: {other:?}"),
    }
}

#[track_caller]
fn check_refused(source: &str, expected: (&str, usize, usize)) {
    let CompileError { message, line, column, .. } = Expr::compile(source).expect_err(source);
    assert!(message.contains(expected.0), "{source}: {message}");
    assert_eq!((line, column), (expected.1, expected.2), "{source}: {message}");
}

#[test]
fn bare_text_and_braces_are_the_same_expression() {
    check("ctx.n > 3", json!(true));
    check("{{ ctx.n > 3 }}", json!(true));
    check(" \n{{- ctx.n > 3 -}}\n ", json!(true));
    check("{# why #}{{ ctx.n }}", json!(4));
    check(r#"{{ "}}" }}"#, json!("}}"));
    check("{{ '{{ ctx.n }}' }}", json!("{{ ctx.n }}"));
}

#[test]
fn text_with_several_tags_is_text() {
    check("{{ ctx.n }}{{ ctx.n }}", json!("44"));
    check("n is {{ ctx.n }}\n", json!("n is 4\n"));
    check("{% if ctx.n > 3 %}yes{% elif ctx.n %}maybe{% else %}no{% endif %}", json!("yes"));
    check(
        "{% for r in ctx.rows if r.id > 1 %}{{ loop.index }}:{{ r.tag }} {% else %}none{% endfor %}",
        json!("1:b 2:a "),
    );
    check("{% for a, (b, c) in [(1, (2, 3))] %}{{ a + b + c }}{% endfor %}", json!("6"));
    check("{% set a, b = 1, 2 %}{% with c = a + b, (d) = 4 %}{{ c * d }}{% endwith %}", json!("12"));
    check("{% set t | upper %}a{{ ctx.s }}{% endset %}{{ t }}", json!("ATEXT"));
    check("{% filter replace('a', 'b') | upper %}a{{ 1 }}{% endfilter %}", json!("B1"));
    check("{% raw %}{{ ctx.n }}{% endraw %}{{ ctx.n }}", json!("{{ ctx.n }}4"));
    check("a \"quoted\" \\n {{ 1 }} {# gone #}\\", json!("a \"quoted\" \\n 1 \\"));
    check("  a {%- if true -%} b {%- endif %} c", json!("  ab c"));
}

#[test]
fn text_that_looks_like_a_tag_is_written_in_a_raw_block() {
    check("{% raw %}${#x} {{ x }} {% if %}{% endraw %}", json!("${#x} {{ x }} {% if %}"));
    check("x={{ ctx.n }}; {% raw %}echo ${#x}{% endraw %}", json!("x=4; echo ${#x}"));
    check("print(f\"{{ '{{' }}{n}{{ '}}' }}\") # {{ ctx.n }}", json!("print(f\"{{{n}}}\") # 4"));
    check("{% raw -%}  {{ a }}  {%- endraw %}!", json!("{{ a }}!"));
    check_refused("x=1; echo ${#x}", ("`${#` begins a comment here", 1, 11));
    check_refused("{{ ctx.n }}\necho ${#x} ${y#}", ("write `{% raw %}", 2, 6));
    check("{{ ctx.n }}{# $ #}$", json!("4$"));
}

#[test]
fn filters_read_and_write_encoded_values() {
    check("'hé' | b64encode", json!("aMOp"));
    check("'aMOp' | b64decode", json!("hé"));
    check("'YQ' | b64decode", json!("a"));
    check("'YQ==\n' | b64decode", json!("a"));
    check("'a' | b64encode | b64decode", json!("a"));
    check_fails("'?' | b64decode", "the text is not base64");
    check_fails("'/w==' | b64decode", "not UTF-8");
    check_fails("1 | b64encode", "`b64encode` needs text, not a number");
    check("'{\"a\": [1, null, 1.5]}' | fromjson", json!({"a": [1, null, 1.5]}));
    check("('[1, 2]' | fromjson)[1]", json!(2));
    check("ctx.order | tojson", json!(r#"{"z": 1, "a": 2, "m": 3}"#));
    check("ctx.order | tojson | fromjson", json!({"z": 1, "a": 2, "m": 3}));
    check_fails("'{' | fromjson", "the text is not JSON");
    check_fails("nope | fromjson", "needs text, not a undefined");
}

#[test]
fn maps_are_split_into_keys_and_values() {
    check("ctx.order | keys", json!(["z", "a", "m"]));
    check("ctx.order | values", json!([1, 2, 3]));
    check("ctx.order | items", json!([["z", 1], ["a", 2], ["m", 3]]));
    check_fails("ctx.list | keys", "`keys` needs a map");
    check_fails("'ab' | values", "`values` needs a map");
    check("ctx.order | get('a')", json!(2));
    check("ctx.order | get('nope')", json!(null));
    check("ctx.order | get('nope', 7)", json!(7));
    check("ctx.list | get(1)", json!(1));
    check("ctx.list | get(9, 'none')", json!("none"));
    check("nope | get('a', 1)", json!(1));
    check("'a,b' | split(',')", json!(["a", "b"]));
    check("ctx.s | safe", json!("text"));
}

#[test]
fn every_filter_and_test_that_playbooks_name_exists() {
    for filter in
        "b64encode b64decode tojson fromjson default int float string lower upper trim split join first last \
                   length keys values items get safe replace round list map select"
            .split_whitespace()
    {
        assert!(!refusal(&format!("x | {filter}")).contains("unknown"), "{filter}");
    }
    for test in "defined undefined none string number sequence mapping".split_whitespace() {
        check(&format!("ctx.n is {test} or true"), json!(true));
    }
    check(
        "ctx.n is number and ctx.s is string and ctx.list is sequence and ctx.deep is mapping",
        json!(true),
    );
    check("ctx.no is none and nope is undefined and ctx.no is defined", json!(true));
    check(
        "' a '|trim ~ ('B'|lower) ~ ('c'|upper) ~ ('3'|int + 1) ~ ('1.5'|float) ~ (2.567|round(1))",
        json!("abC41.52.6"),
    );
}

fn refusal(source: &str) -> String {
    Expr::compile(source).err().map(|error| error.message).unwrap_or_default()
}

#[test]
fn numbers_are_exact_within_64_bits() {
    check("ctx.exact", json!(9007199254740993_i64));
    check("ctx.big", json!(u64::MAX));
    check("ctx.big - 1", json!(u64::MAX - 1));
    check("-ctx.exact", json!(-9007199254740993_i64));
    check("-9223372036854775808", json!(i64::MIN));
    check("ctx.f", json!(0.5));
    check("1e16 + 0.5", json!(1e16));
    check("1.5e-7", json!(1.5e-7));
    check_fails("2 ** 70", "does not fit in a 64-bit integer");
    check_fails("ctx.big * ctx.big", "too large for an integer");
    check_fails("ctx.big ** 3", "unable to calculate");
    check_fails("10 ** 38 * 10", "too large for an integer");
    check_fails("1e308 * 10", "inf");
    check_fails("(1e308 * 10) - (1e308 * 10)", "NaN");
}

#[test]
fn arithmetic_keeps_jinjas_rules() {
    check("ctx.n * 2 + 1", json!(9));
    check("ctx.n - 1 - 1", json!(2));
    check("ctx.n - (1 - 1)", json!(4));
    check("2 ** 3 ** 2", json!(64));
    check("7 // 2 * 2 + 7 % 2", json!(7));
    check("7 / 2", json!(3.5));
    check("-ctx.n|abs", json!(4));
    check("-(ctx.n + 1) * 2", json!(-10));
    check("1 + true", json!(2));
    check("true * 1.5", json!(1.5));
    check("1 ~ 2 * 3", json!("16"));
    check("'a' + 'b' * 3", json!("abbb"));
    check("[1] + [2] * 2", json!([1, 2, 2]));
    check("3 * 'ab'", json!("ababab"));
    check("'a' ~ none ~ 1 ~ [1, 'x']", json!("aNone1[1, 'x']"));
    check("1 + 2 == 3 and not 1 > 2 or false", json!(true));
    check("(1 if ctx.no else 2) if true else 3", json!(2));
    check("1 < ctx.n <= 4 != 5", json!(true));
    check("2 not in ctx.list", json!(false));
    check("not (1 in ctx.list)", json!(false));
    check_fails("ctx.s * 1.5", "repeated");
    check_fails("ctx.s * -1", "repeated");
    check_fails("ctx.s + 1", "unsupported types string and number");
}

#[test]
fn undefined_is_chainable_and_null() {
    check("ctx.nope", Value::Null);
    check("ctx.nope.deep[3].er", Value::Null);
    check("nope.deep", Value::Null);
    check("ctx[nope][1:2]", json!([]));
    check("ctx.nope > 3", json!(false));
    check("ctx.nope == ctx.also", json!(true));
    check("ctx.nope is defined", json!(false));
    check("ctx.no is none", json!(true));
    check("ctx.nope|default('d')", json!("d"));
    check("ctx.nope or 'd'", json!("d"));
    check("1 if ctx.nope", Value::Null);
    check("3 in ctx.nope", json!(false));
    check("a{{ ctx.nope.deep }}b{{ 1 }}", json!("ab1"));
    check_fails("ctx.nope + 1", "undefined");
    check_fails("ctx.nope.upper()", "has no method");
}

#[test]
fn order_of_keys_is_kept() {
    let text = Expr::compile("ctx.order").unwrap().eval(&scope()).unwrap().to_string();
    assert_eq!(text, r#"{"z":1,"a":2,"m":3}"#);
    check("{'b': 1, 'a': ctx.n, 1: 2, true: 3}", json!({"b": 1, "a": 4, "1": 2, "true": 3}));
    check("dict(ctx.deep, y=2)", json!({"er": {"x": 1}, "y": 2}));
    check("ctx.order|chain({'z': 9})", json!({"z": 9, "a": 2, "m": 3}));
    check_fails("{[1]: 2}", "key");
}

#[test]
fn items_and_slices_follow_python() {
    check("ctx.list[0]", json!(3));
    check("ctx.list[-1]", json!(2));
    check("ctx[key]", json!(4));
    check("ctx['s'][1]", json!("e"));
    check("ctx.list[ctx.n - 3]", json!(1));
    check("ctx.list[1:]", json!([1, 2]));
    check("ctx.list[::-1]", json!([2, 1, 3]));
    check("ctx.list[0:2:-1]", json!([]));
    check("ctx.list[-2:99]", json!([1, 2]));
    check("ctx.list[5:0:-2]", json!([2]));
    check("ctx.s[1:3]", json!("ex"));
    check("ctx.s[::-2]", json!("te"));
    check("'äöü'[1:]", json!("öü"));
    check("ctx.list[-9223372036854775807:9223372036854775807:-9223372036854775807]", json!([]));
    check_fails("ctx.list[::0]", "step");
    check_fails("ctx.n[1:]", "cannot be sliced");
}

#[test]
fn filters_methods_and_tests_work() {
    check("ctx.list|sort|join(', ')", json!("1, 2, 3"));
    check("ctx.names|sort", json!(["A", "b"]));
    check("ctx.rows|map(attribute='tag')|unique|list", json!(["a", "b"]));
    check("ctx.rows|selectattr('tag', 'eq', 'a')|map(attribute='id')|sum", json!(4));
    check("(ctx.rows|groupby('tag'))[0].list|length", json!(2));
    check("ctx.rows|groupby('tag')|map('first')|list", json!(["a", "b"]));
    check("ctx.list|zip(ctx.names)|list", json!([[3, "b"], [1, "A"]]));
    check("ctx.order|items|list", json!([["z", 1], ["a", 2], ["m", 3]]));
    check("ctx.order|dictsort|first", json!(["a", 2]));
    check("range(5)|batch(2)|list", json!([[0, 1], [2, 3], [4]]));
    check("range(4)|slice(2, 'x')|list", json!([[0, 1, "x"], [2, 3, "x"]]));
    check("range(5, 0, -2)|reverse|list", json!([1, 3, 5]));
    check("ctx.list|reverse|first", json!(2));
    check("{'a': [1, '<']}|tojson", json!("{\"a\": [1, \"\\u003c\"]}"));
    check("text|indent(2)", json!("a\n  b"));
    check(
        "'%05.1f %s %(x)s'|format(1.25, 'b') if false else '%05.1f %s'|format(1.25, 'b')",
        json!("001.2 b"),
    );
    check("'{:>4}|{0}'.format('a') if false else '{:>4}|{}'.format('a', 2)", json!("   a|2"));
    check("' a '.strip().upper() ~ 'b,c'.split(',')[1]", json!("Ac"));
    check("'-'.join(['a', 1])", json!("a-1"));
    check("ctx.deep.items()|list", json!([["er", {"x": 1}]]));
    check("ctx.get('n', 0) + ctx.get('x', 1)", json!(5));
    check("ctx.list.count(3)", json!(1));
    check("'a b'|urlencode ~ ('<'|e)", json!("a%20b&lt;"));
    check("ctx.n is divisibleby 2 and ctx.n is even and ctx.s is string", json!(true));
    check("ctx.n is not odd|string", json!("True"));
    check("ctx.list|select('>', 1)|list", json!([3, 2]));
    check("'3'|int + '2.5'|float", json!(5.5));
    check("'3\n'|int + ' 2.5'|float", json!(5.5));
    check("'x'|int(7) + ''|float(0.5)", json!(7.5));
    check("ctx.list|min ~ ctx.list|max ~ ctx.list|last", json!("132"));
}

#[test]
fn an_expression_is_evaluated_for_each_item() {
    check("ctx.rows|strict_each('any', it.id > least, least=ctx.n - 2)", json!(true));
    check("ctx.rows|strict_each('filter', it.tag == tag, tag='a')|map(attribute='id')|list", json!([1, 3]));
    check("ctx.list|strict_each('map', {'n': it ~ \"\\\"'\"})|first", json!({ "n": "3\"'" }));
    check(
        "[[1, 2], [3]]|strict_each('map', it|strict_each('map', it * by, by=by), by=2)",
        json!([[2, 4], [6]]),
    );
    check(
        "{% for n in ctx.list %}{{ ctx.list|strict_each('count', it > n, n=n) }}{% endfor %}",
        json!("021"),
    );
    check("[1, 'a']|strict_each('any', it == 1 or it > 'b')", json!(true));
    check_fails("['a', 1]|strict_each('any', it|length > 1)", "cannot calculate length");
    check_fails("ctx.s|strict_each('any', it == 't')", "`any` needs a list, not a text");
    check_fails("ctx.list|strict_each('any', it)", "true or false for each item, not a number");
    check_refused(
        "ctx.list|strict_each('some', it > 1)",
        ("in place of \"any\" one of \"all\", \"any\"", 1, 10),
    );
    check_refused("ctx.list|strict_each('any')", ("write `list|strict_each", 1, 10));
    check_refused("ctx.list|strict_each('any', it > 1, 2)", ("write `list|strict_each", 1, 10));
    check_refused(
        "ctx.list|strict_each('any', it > ctx.n)",
        ("reads `ctx`: pass it by name, as in `ctx=ctx`", 1, 27),
    );
    check_refused("ctx.list|strict_each('any', it > now())", ("pass it by name, as in `at=now()`", 1, 27));
    check_refused("ctx.list|strict_each('any', it|nope)", ("filter `nope` is unknown", 1, 32));
    let nested = |depth: usize| format!("{}it{}", "[1]|strict_each('map', ".repeat(depth), ")".repeat(depth));
    check(&nested(4), json!([[[[1]]]]));
    check_refused(&nested(5), ("`strict_each` can be nested at most 4 deep", 1, 116));
    let long = format!("[1]|strict_each('map', '{}')", "x".repeat(70_000));
    check_refused(&long, ("at most 65536 bytes", 1, 24));
}

#[test]
fn unknown_names_are_refused_with_their_position() {
    check_refused("ctx.n|nope", ("filter `nope` is unknown", 1, 7));
    check_refused("ctx.n is nope", ("test `nope` is unknown", 1, 10));
    check_refused("now('%Y')", ("`now()` takes no arguments", 1, 1));
    check_refused("1 + random()", ("function `random` is unknown", 1, 5));
    check_refused("a {{ debug() }}", ("function `debug` is unknown", 1, 6));
    check_refused("ctx.n|__add(1)", ("filter `__add` is unknown", 1, 7));
    check_refused("line one\n  {{ 'ä' 1 }}", ("unexpected integer", 2, 10));
    check_refused("{{ 1 }} {% macro m() %}{% endmacro %}", ("statement `macro` is not supported", 1, 12));
    check_refused("{{ 1 }} {% include 'x' %}", ("statement `include` is not supported", 1, 12));
    check_fails("{% set ctx.x = 1 %}{{ ctx }}", "assign");
    check_refused("range(*[1])", ("unpacked", 1, 8));
    check_refused("'{{ ctx.n }}' == 4", ("inside quotes", 1, 1));
    check_refused("{% for x in y recursive %}{{ loop(x) }}{% endfor %}", ("recursive", 1, 4));
    check_refused("1 +", ("unexpected end of input", 1, 3));
    check_refused("", ("unexpected end of input", 1, 1));
    check_fails("ctx.s.nope()", "no method named nope");
    check_fails("[1]|map('nope')|list", "unknown filter");
}

#[test]
fn known_panics_of_minijinja_are_errors() {
    check_fails("1 is divisibleby 0", "divisible by 0");
    check_fails("'%(é)s'|format(ctx)", "ASCII");
    check_fails("'{é}'.format(1)", "ASCII");
    check_fails("'%.99999f'|format(1)", "at most 1000");
    check_fails("'{:99999}'.format(1)", "at most 1000");
    check("range(9223372036854775807, 9223372036854775806, -1)", json!([i64::MAX]));
    check_refused("{% for x in [1] %}{{ loop.cycle() }}{% endfor %}", ("cycle", 1, 26));
}

#[test]
fn truth_follows_values_and_words() {
    for no in [json!(null), json!(false), json!(0), json!(0.0), json!(-0.0), json!(""), json!([]), json!({})]
    {
        assert!(!is_true(&no), "{no}");
    }
    for no in ["false", " FALSE\n", "0", "No", "none", "NULL", "off"] {
        assert!(!is_true(&json!(no)), "{no}");
    }
    for yes in
        [json!(true), json!(1), json!(-0.1), json!("x"), json!("1"), json!(" "), json!([0]), json!({"a": 0})]
    {
        assert!(is_true(&yes), "{yes}");
    }
    let truthy = |source| Expr::compile(source).unwrap().truthy(&scope()).unwrap();
    assert!(!truthy("{% if ctx.n > 9 %}true{% else %}false{% endif %}"));
    assert!(!truthy("ctx.nope.deep"));
    assert!(truthy("ctx.list"));
}

#[test]
fn expressions_compare_by_their_source_and_cross_threads() {
    fn is_shared<T: Send + Sync + Clone + std::fmt::Debug>(_: &T) {}
    let expr = Expr::compile("ctx.n").unwrap();
    is_shared(&expr);
    assert_eq!(expr, Expr::compile("ctx.n").unwrap());
    assert_ne!(expr, Expr::compile(" ctx.n").unwrap());
    assert_eq!(format!("{expr:?}"), r#"Expr("ctx.n")"#);
    assert_eq!(expr.source(), "ctx.n");
}

/// An expression is limited in what it creates, not in what it passes on.
#[test]
fn a_large_value_is_passed_on_whole() {
    let rows: Vec<Value> = (0..20_000).map(|n| json!({ "id": n, "text": "x".repeat(100) })).collect();
    let scope = Map::from_iter([("big".to_owned(), json!({ "rows": rows }))]);
    let template = Template::compile(&json!({ "all": "{{ big.rows }}", "count": "{{ big.rows | length }}" }));
    let rendered = template.unwrap().render(&scope).unwrap();
    assert_eq!(rendered["all"], json!(rows));
    assert_eq!(rendered["count"], 20_000);
    let twice = Template::compile(&json!(["{{ big.rows }}", "{{ big.rows }}"])).unwrap().render(&scope);
    assert_eq!(twice, Ok(json!([rows, rows])));
    let many = Expr::compile("[big.rows, big.rows, big.rows]").unwrap().eval(&scope);
    assert_eq!(many, Err(EvalError::TooLarge));
}

#[test]
fn a_pattern_matches_anywhere_and_has_limits() {
    check("ctx.s is matching('^te.t$')", json!(true));
    check("ctx.s is matching('^ex')", json!(false));
    check("ctx.n is matching('4')", json!(false));
    check("ctx.list | map('string') | select('matching', '[12]') | list", json!(["1", "2"]));
    check_fails("ctx.s is matching('(')", "is not a regular expression");
    check_fails("ctx.s is matching(4)", "needs a text pattern");
    check_fails("ctx.s is matching('x' * 2000)", "has at most 1000 bytes");
    check_fails("('a' * 70000) is matching('b')", "searches at most");
    check_fails("ctx.s is matching('(a{100}){100}{100}')", "is not a regular expression");
}
