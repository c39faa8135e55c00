use super::*;
use crate::Expr;
use serde_json::json;

fn names() -> Value {
    json!({
        "code": 503, "name": "web-1", "tags": ["a", "b"], "empty": [], "ok": true, "nothing": null, "five": "5",
        "response": { "status-code": 200, "body": { "items": [{ "id": 7 }] } },
    })
}

/// Translates a condition whose names have the given kind; None: that of their values.
fn translate_with(source: &str, kind: Option<ValueKind>) -> Result<Translation, CompileError> {
    let names = names();
    translate_condition(source, &|name| match names.get(name) {
        Some(value) => Ok(BoundName {
            source: format!("(x[\"{name}\"]|default(none))"),
            kind: kind.unwrap_or(ValueKind::of(value)),
        }),
        None => Err(format!("there is no input `{name}`")),
    })
}

fn translate(source: &str) -> Result<String, CompileError> {
    translate_with(source, Some(ValueKind::Unknown)).map(|translated| translated.source)
}

fn eval(source: &str) -> Result<Value, String> {
    let translated = translate(source).map_err(|error| error.to_string())?;
    let expr = Expr::compile(&translated).map_err(|error| format!("{translated}: {error}"))?;
    let mut scope = crate::Map::new();
    scope.insert("x".to_owned(), names());
    expr.eval(&scope).map_err(|error| error.to_string())
}

#[test]
fn conditions_mean_what_they_mean_in_expr_lang() {
    for source in [
        "code >= 500",
        "code == 503 and not (name == 'x')",
        "ok && !false || false",
        "not ok == false",
        "name startsWith 'web' and name endsWith \"-1\"",
        "name matches '^web-[0-9]+$'",
        "name contains 'eb'",
        "'a' in tags and 'z' not in tags",
        "name not contains 'zz'",
        "len(tags) == 2 && len(empty) == 0",
        "nothing == nil",
        "nothing ?? 'x' == 'x'",
        "(nothing ?? nothing ?? 3) == 3",
        "response.body.items[0].id == 7",
        "response?.body?.nothing == nil",
        "response['status-code'] == 200",
        "tags[0:1] == ['a']",
        "tags[1:] == ['b']",
        "1 + 2 * 3 == 7 and 2 ** 3 ** 2 == 512 and 7 % 4 == 3",
        "-1 < 0 and 2 ^ 3 == 8",
        "-7 % 3 == -1 and 7 % -3 == 1 and -7.5 % 2 == -1.5",
        "1 < 1.5 and 'a' < 'b' and 2 >= 2.0 and 'b' > 'a'",
        "five != 5 and 5 != five and not (five == 5) and five == '5'",
        "ok != 1 and true != 1 and [true] != [1] and {a: 1} == {'a': 1.0} and {a: 1} != {a: true}",
        "nothing != 0 and nothing != '' and nothing != false and tags == ['a', 'b'] and tags != ['a']",
        "1_000 == 1e3",
        "int('5\\n') == 5 and float(' 1.5') == 1.5 and string(5) == '5'",
        "lower('A') == 'a' and upper('b') == 'B' and trim(' c ') == 'c'",
        "(code > 500 ? 'bad' : 'good') == 'bad'",
        "{a: 1}.a == 1 and {'b': 2}[\"b\"] == 2",
        "`a\\b` == 'a\\\\b'",
        "'{{ x }}' == \"{\\u007b x }}\"",
        "ok",
    ] {
        assert_eq!(eval(source), Ok(json!(true)), "{source}: {:?}", translate(source));
    }
    for source in ["code < 500", "ok == false", "'z' in tags", "nothing != nil", "!ok"] {
        assert_eq!(eval(source), Ok(json!(false)), "{source}");
    }
}

#[test]
fn a_condition_that_is_neither_true_nor_false_is_an_error() {
    let message = |source: &str| eval(source).expect_err("it is refused");
    assert!(message("code").contains("true or false"), "{}", message("code"));
    assert!(message("code and ok").contains("true or false"));
    assert!(message("1 + 2").contains("a number, and a condition is true or false"));
    assert!(message("code + 2").contains("a number or a text, and a condition is true or false"));
    assert!(message("'yes'").contains("a text, and a condition"));
    assert!(message("tags[0]").contains("true or false"));
}

#[test]
fn what_is_not_translated_is_refused_by_name_and_place() {
    for (source, expected) in [
        ("find(tags, {# == 'a'}) == 'a'", "the function `find` is not supported in a condition; use len"),
        ("shout(name)", "there is no function `shout`"),
        ("name | lower() == 'x'", "the pipe operator `|`"),
        ("name.upper() == 'X'", "the method `upper`"),
        ("let a = 1; a == 1", "a variable"),
        ("nope == 1", "there is no input `nope` (line 1, column 1)"),
        ("code ==", "expected a value, found the end"),
        ("(code == 1", "expected `)`, found the end"),
        ("code == 1 2", "unexpected `2`"),
        ("'open", "a text has no end"),
        ("code == 1x", "`1x` is not a decimal number"),
        ("code @ 1", "`@` is not a part of an expression"),
        ("", "expected a value"),
        ("1 <= 2 <= 3", "`<=` follows a comparison: write `a < b and b < c` (line 1, column 8)"),
        ("code == 1 == true", "`==` follows a comparison"),
        ("name matches '(a{1000}){1000}'", "is not a regular expression"),
        ("name matches 'a' and name not matches '('", "is not a regular expression"),
        ("'5' > 3", "`>` compares two numbers or two texts, not a text and a number: declare a schema"),
        ("code < nil", "not a value and nil: test first"),
        ("ok and [1] < [2]", "not a list and a list: compare a part of the value"),
        ("len(name) > 'a'", "not a number and a text"),
        ("code % 0 == 0", "`%` divides by zero"),
        ("name % 2 == 0", "`%` divides two numbers, not a text and a number"),
    ] {
        let message = eval(source).expect_err(source);
        assert!(message.contains(expected), "{source}: {message}");
    }
    let deep = format!("{}ok{}", "(".repeat(500), ")".repeat(500));
    assert!(eval(&deep).expect_err("too deep").contains("nested"));
    assert!(eval(&"!".repeat(5_000)).expect_err("too deep").contains("nested"));
    assert!(eval(&"1".repeat(SOURCE_MAX + 1)).expect_err("too long").contains("bytes"));
}

#[test]
fn predicates_are_evaluated_for_each_item_of_a_list() {
    for source in [
        "all(tags, {# != 'z'}) and any(tags, {# == 'b'}) and none(tags, # == 'z') and one(tags, # == 'a')",
        "not all(tags, # == 'a') and not any(tags, # == 'z') and not none(tags, # == 'a') and not one(tags, # != 'z')",
        "all(empty, {# > 1}) and none(empty, {# > 1}) and not any(empty, {# > 1}) and not one(empty, {# > 1})",
        "filter(tags, {# != 'a'}) == ['b'] and map(tags, upper(#)) == ['A', 'B'] and count(tags, # > 'a') == 1",
        "len(filter(tags, # == 'z')) == 0 and filter(tags, {# == 'b'})[0] == 'b'",
        "any(response.body.items, {.id == 7}) and map(response.body.items, {#.id}) == [7]",
        "map(response.body.items, {?.nothing}) == [nil] and map(response.body.items, {.id ?? 1}) == [7]",
        "count([true, false, true]) == 2",
        "any(1..3, {# * 10 == 30}) and 1..3 == [1, 2, 3] and 3..1 == [] and 2 in 1..3 and len(1..2 + 3) == 5",
        "any(1..3, # == len(tags)) and all(tags, {# != name and ok})",
        "any([[1, 2], [3]], {any(#, {# == 3}) and len(#) == len(tags) - 1})",
        "all(1..2, {any(1..3, {any([code], {# > 500 and len(tags) == 2})})})",
        "map([{a: 1}, {a: 2}], {{b: .a}})[1].b == 2",
        "all(tags, {# in ['a', 'b']}) and all(tags, # in tags)",
        "filter(map(1..4, # * 2), # > 4) == [6, 8]",
        "(ok ? filter(tags, # == 'a') : tags) == ['a']",
        "ok or all(nothing, # > 1)",
        "all([{codes: [500, 204]}], {any(.codes, {# in 200..299})}) and count([{ready: true}], {not .ready}) == 0",
        "any(1..3, # == 1 or # > 'a')",
    ] {
        assert_eq!(eval(source), Ok(json!(true)), "{source}: {:?}", translate(source));
    }
}

#[test]
fn bad_predicates_and_ranges_are_refused_by_name_and_place() {
    for (source, expected) in [
        ("all(tags, {# > 1}", "expected `)`, found the end (line 1, column 18)"),
        ("all(tags, {# == 'a')", "expected `}`, found `)` (line 1, column 20)"),
        ("all(tags)", "expected `,`, found `)` (line 1, column 9)"),
        ("all(tags, {})", "expected a value, found `}` (line 1, column 12)"),
        ("ok and # == 1", "`#` is the item of a predicate, as in `all(list, {# > 1})` (line 1, column 8)"),
        (".id == 1", "expected a value, found `.` (line 1, column 1)"),
        ("any(tags, #index > 1)", "`#index` is not supported in a condition; use `#` (line 1, column 11)"),
        ("all(tags, {nope == #})", "there is no input `nope` (line 1, column 12)"),
        (
            "ok and any(tags, {len(#)})",
            "`any` needs an expression that is true or false for each item, not a number (line 1, column 18)",
        ),
        ("any('text', {# == 't'})", "`any` needs a list, not a text: declare a schema with `type: array`"),
        ("any(nothing, {# == 't'})", "`any` needs a list, not nil: test first that the value is there"),
        ("any(response, {# == 't'})", "`any` needs a list, not a map"),
        ("any(name, {# == 't'})", "`any` needs a list, not a text"),
        ("any(tags, {#})", "`any` needs an expression that is true or false for each item, not a text"),
        ("count(tags) == 0", "`count` needs an expression that is true or false for each item, not a text"),
        ("all(tags, {# > 1})", "`>` compares two numbers or two texts, not a text and a number"),
        ("filter(tags, {# > 'a'})", "the expression is a list, and a condition is true or false"),
        ("count(tags, {# > 'a'})", "the expression is a number, and a condition is true or false"),
        (
            "1 in 1..1_000_000_000",
            "`1..1000000000` has more than 10000 numbers: compare with its ends instead (line 1, column 7)",
        ),
        ("1 in 1..(code * 1000000)", "`1..503000000` has more than 10000 numbers"),
        ("1 in -9000000000000000000..(code + 9000000000000000000)", "has more than 10000 numbers"),
        (
            "1 in 1..'a'",
            "`..` counts from a whole number to another, not from a number to a text (line 1, column 7)",
        ),
        ("1 in 1..nothing", "`..` counts from a whole number to another, not from 1 to nil"),
        ("1 in 1..1.5", "`..` counts from a whole number to another, not from 1 to 1.5"),
        ("all(1..9000, {any(1..9000, {# > 9000})})", "takes too long"),
        ("len(map(1..9000, {1..9000})) > 1", "makes too much data"),
    ] {
        let message = eval(source).expect_err(source);
        assert!(message.contains(expected), "{source}: {message}");
    }
    let nested = |depth: usize| format!("{}ok{}", "any(1..2, {".repeat(depth), "})".repeat(depth));
    assert_eq!(eval(&nested(4)), Ok(json!(true)));
    assert!(
        eval(&nested(5))
            .expect_err("too deep")
            .contains("`any` is nested in more than 4 predicates (line 1, column 45)")
    );
}

#[test]
fn values_of_different_kinds_have_no_order() {
    for (source, expected) in [
        (
            "five > 100",
            "`>` compares two numbers or two texts, not a text and a number: declare a schema for the value",
        ),
        ("100 <= five", "`<=` compares two numbers or two texts, not a number and a text: declare a schema"),
        ("nothing < 1", "not nil and a number: test first that the value is there"),
        ("ok >= 1", "not true or false and a number"),
        ("tags < 'z'", "not a list and a text"),
        ("response > 1", "not a map and a number"),
    ] {
        let message = eval(source).expect_err(source);
        assert!(message.contains(expected), "{source}: {message}");
        let message = translate_with(source, None).expect_err(source).message;
        assert!(message.contains(expected), "the kinds are known before: {source}: {message}");
    }
    assert_eq!(eval("nothing != nil and nothing < 1"), Ok(json!(false)), "the repair of the message");
    assert_eq!(eval("int(five) > 100"), Ok(json!(false)));
}

#[test]
fn a_comparison_that_is_always_the_same_is_a_warning() {
    let warnings = |source: &str| -> Vec<String> {
        let translated = translate_with(source, None).expect("a condition");
        translated.warnings.iter().map(ToString::to_string).collect()
    };
    let expected = "`==` compares a text with a number, so it is always false (line 1, column 6)";
    assert_eq!(warnings("five == 5"), [expected]);
    assert_eq!(warnings("ok and code != '503'").len(), 1);
    for source in
        ["five == '5'", "nothing == 5", "code == nil", "code + 1 == 5", "response.body == 5", "1 == 1.5"]
    {
        assert_eq!(warnings(source), [""; 0], "{source}");
    }
}

#[test]
fn a_literal_is_the_value_and_never_a_tag() {
    let value = json!({ "a {{ b": ["}}", { "c": null }], "n": -1.5, "q": "\"'\\\n", "u": "ü😀", "t": true });
    let source = literal(&value);
    assert!(!crate::has_tags(&source), "{source}");
    let expr = Expr::compile(&source).expect("an expression");
    assert_eq!(expr.eval(&crate::Map::new()), Ok(value));
}

#[test]
fn names_are_replaced_in_their_order_and_digits_stay() {
    let bind = |name: &str| Ok(BoundName { source: format!("<{name}>"), kind: ValueKind::Unknown });
    let translated = translate_condition("a == 1 and b == a", &bind).unwrap().source;
    assert_eq!(translated, "((<a> is strict_equal((1))) and (<b> is strict_equal(<a>)))");
}

#[test]
fn a_long_replacement_is_not_copied_for_each_operator() {
    let long = "x".repeat(100_000);
    let bind = |_: &str| Ok(BoundName { source: long.clone(), kind: ValueKind::Number });
    let predicate = format!("all([1], {{{}# > 0}})", "v+".repeat(100));
    let translated = translate_condition(&predicate, &bind).unwrap().source;
    assert_eq!(translated.matches('x').count(), long.len(), "its value is passed once");
    // One hundred values among thousands of operators: with a copy for each of them, it would take minutes.
    let source = format!("{}{} > 0", "v+".repeat(100), "1+".repeat(4_800) + "1");
    let translated = translate_condition(&source, &bind).unwrap().source;
    assert_eq!(translated.matches('x').count(), 100 * long.len());
}
