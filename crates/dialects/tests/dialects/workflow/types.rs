//! Node types as editors get them.

use serde_json::{Value, json};
use windlass_dialects::workflow::node_types;
use windlass_dialects::{Dialect, compile};

#[test]
fn every_type_has_a_schema_that_is_one_and_knows_its_fields() {
    let types = node_types();
    let names: Vec<&str> = types.iter().map(|kind| kind.name).collect();
    assert_eq!(names.len(), 15);
    for kind in &types {
        jsonschema::draft202012::meta::validate(&kind.schema)
            .unwrap_or_else(|error| panic!("{}: {error}", kind.name));
        assert!(!kind.description.is_empty() && !kind.category.is_empty() && !kind.handles.is_empty());
        for field in kind.schema["properties"].as_object().expect("fields").keys() {
            let config = json!({ field: null });
            let text = json!({ "nodes": [{ "id": "a", "type": kind.name, "config": config }] }).to_string();
            let unknown = compile(&text).diagnostics.into_iter().any(|diagnostic| diagnostic.code == "E0103");
            assert!(!unknown, "the parser does not know `{field}` of {}", kind.name);
        }
        let text =
            json!({ "nodes": [{ "id": "a", "type": kind.name, "config": { "nonsense": 1 } }] }).to_string();
        assert!(compile(&text).errors().any(|diagnostic| diagnostic.code == "E0103"), "{}", kind.name);
        let refused = jsonschema::is_valid(&kind.schema, &json!({ "nonsense": 1 }));
        assert!(!refused, "the schema of {} accepts a field that does not exist", kind.name);
    }
}

#[test]
fn the_schema_of_documents_refuses_what_the_parser_refuses() {
    let schema = Dialect::of_name("workflow").and_then(Dialect::schema).expect("workflows have a schema");
    jsonschema::draft202012::meta::validate(&schema).expect("a schema");
    let check = |document: Value, good: bool| {
        assert_eq!(jsonschema::is_valid(&schema, &document), good, "{document}");
        assert_eq!(compile(&document.to_string()).is_valid(), good, "{document}");
    };
    let node =
        |config: Value| json!({ "name": "t", "nodes": [{ "id": "a", "type": "delay", "config": config }] });
    check(node(json!({ "duration": 1 })), true);
    check(node(json!({ "duration": 1, "unit": "years" })), false);
    check(node(json!({ "duration": 1, "length": 1 })), false);
    let drawn = |config: Value| json!({ "name": "t", "nodes": [{ "id": "a", "type": "x", "data": { "nodeType": "delay", "config": config } }] });
    check(drawn(json!({ "duration": 1, "length": 1 })), false);
    check(drawn(json!({ "duration": 1 })), true);
    check(json!({ "nodes": [] }), false);
    check(json!({ "nodes": [{ "id": "a", "type": "trigger" }], "settings": { "failureMode": "x" } }), false);
    check(json!({ "nodes": [{ "id": "a", "type": "trigger" }], "edges": [{ "source": "a" }] }), false);
}

#[test]
fn the_page_on_workflows_lists_every_type_field_and_handle() {
    let page = include_str!("../../../../../docs/workflows.md");
    let said = |word: &str| {
        page.contains(&format!("`{word}`"))
            || page.contains(&format!("{word}:"))
            || page.contains(&format!("{word}}}"))
    };
    for kind in node_types() {
        let heading =
            page.lines().any(|line| line.starts_with("###") && line.split(' ').any(|word| word == kind.name));
        assert!(heading, "there is no heading for {}", kind.name);
        for field in kind.schema["properties"].as_object().expect("fields").keys() {
            let diagnostic = said(field) || page.contains(&format!("`config.{field}`"));
            assert!(diagnostic, "`{field}` of {} is not on the page", kind.name);
        }
        for handle in &kind.handles {
            assert!(said(handle.name), "the handle `{}` of {} is not on the page", handle.name, kind.name);
        }
    }
}
