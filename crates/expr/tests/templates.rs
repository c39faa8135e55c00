//! Values of template trees.

use serde_json::{Value, json};
use windlass_expr::{CompileError, EvalError, Map, Template};

fn scope() -> Map {
    let ctx =
        json!({"n": 4, "s": "text", "list": [1, 2], "obj": {"b": 1, "a": null}, "mb": "x".repeat(400_000)});
    Map::from_iter([("ctx".to_owned(), ctx)])
}

#[track_caller]
fn check(source: &Value, expected: &Value) {
    let template = Template::compile(source).unwrap_or_else(|error| panic!("{source}: {error}"));
    assert_eq!(template.render(&scope()).as_ref(), Ok(expected), "{source}");
    assert_eq!(template.source(), source);
}

#[test]
fn a_lone_expression_keeps_its_type() {
    check(&json!("{{ ctx.n }}"), &json!(4));
    check(&json!("{{ ctx.obj }}"), &json!({"b": 1, "a": null}));
    check(&json!("{{ ctx.list }}\n"), &json!([1, 2]));
    check(&json!("{{ ctx.nope.deep }}"), &json!(null));
    check(&json!("{{ {'a': {'b': ctx.n}} }}"), &json!({"a": {"b": 4}}));
}

#[test]
fn mixed_text_is_text() {
    check(&json!("{{ ctx.n }}{{ ctx.n }}"), &json!("44"));
    check(&json!("n={{ ctx.n }}; {{ ctx.list }}"), &json!("n=4; [1, 2]"));
    check(&json!("{% if ctx.n %}{{ ctx.n }}{% endif %}"), &json!("4"));
    check(&json!("{{ ctx.n }}\nlast\n"), &json!("4\nlast\n"));
}

#[test]
fn a_string_without_tags_is_itself() {
    check(&json!("ctx.n"), &json!("ctx.n"));
    check(&json!("a } { b"), &json!("a } { b"));
    check(&json!({"{{ ctx.n }}": "ctx.n"}), &json!({"{{ ctx.n }}": "ctx.n"}));
}

#[test]
fn trees_keep_their_shape_and_order() {
    let source = json!({"z": ["{{ ctx.n }}", {"k": "{{ ctx.s }}!"}, 1.5, null, true], "a": "plain"});
    check(&source, &json!({"z": [4, {"k": "text!"}, 1.5, null, true], "a": "plain"}));
    let rendered = Template::compile(&source).unwrap().render(&scope()).unwrap();
    assert_eq!(rendered.to_string(), r#"{"z":[4,{"k":"text!"},1.5,null,true],"a":"plain"}"#);
}

#[test]
fn only_a_tree_without_templates_is_constant() {
    let plain = json!({"a": [1, "x", {"b": null}]});
    assert_eq!(Template::compile(&plain).unwrap().constant(), Some(&plain));
    assert_eq!(Template::compile(&json!({"a": [1, "{# note #}"]})).unwrap().constant(), None);
    assert_eq!(Template::compile(&json!("{{ 1 }}")).unwrap().constant(), None);
}

#[test]
fn an_error_points_into_the_tree() {
    let error = Template::compile(&json!({"a": [1, {"b/c~": "x\n{{ nope( }}"}]})).unwrap_err();
    assert_eq!((error.path.as_str(), error.line, error.column), ("/a/1/b~1c~0", 2, 10));
    assert_eq!(error.source_text, "x\n{{ nope( }}");
    let CompileError { message, path, .. } = Template::compile(&json!(["{{ 1|nope }}"])).unwrap_err();
    assert_eq!((message.as_str(), path.as_str()), ("filter `nope` is unknown", "/0"));
}

#[test]
fn the_limits_count_for_the_tree_as_a_whole() {
    check(&json!(["{{ ctx.mb|length }}", "{{ ctx.mb[:2] if false else 'x' }}"]), &json!([400_000, "x"]));
    let render = |source: Value| Template::compile(&source).unwrap().render(&scope());
    // A value that is passed on is not counted as created.
    assert!(render(json!(["{{ ctx.mb }}", "{{ ctx.mb }}", "{{ ctx.mb }}"])).is_ok());
    assert!(render(json!(["a{{ ctx.mb }}", "a{{ ctx.mb }}"])).is_ok());
    assert_eq!(render(json!(["a{{ ctx.mb }}", "a{{ ctx.mb }}", "a{{ ctx.mb }}"])), Err(EvalError::TooLarge));
    let thousand = "{% for i in range(1000) %}{{ i }}{% endfor %}";
    assert!(render(json!([thousand])).is_ok());
    assert_eq!(render(json!(vec![thousand; 20])), Err(EvalError::Fuel));
}

#[test]
fn templates_compare_by_their_source() {
    let template = Template::compile(&json!({"a": "{{ 1 }}"})).unwrap();
    assert_eq!(template, Template::compile(&json!({"a": "{{ 1 }}"})).unwrap());
    assert_ne!(template, Template::compile(&json!({"a": "{{  1 }}"})).unwrap());
    assert!(format!("{template:?}").contains("{{ 1 }}"));
}
