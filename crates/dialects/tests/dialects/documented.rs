//! The pages about definitions are complete, and the definitions on them compile.

use crate::compiled::net;

const PAGE: &str = include_str!("../../../../docs/playbooks.md");

/// Pages for new users, with the number of definitions on each.
const GUIDES: [(&str, usize); 3] = [
    (include_str!("../../../../README.md"), 1),
    (include_str!("../../../../docs/tutorial.md"), 3),
    (include_str!("../../../../docs/failures.md"), 12),
];

fn has_word(word: &str) -> bool {
    PAGE.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|found| found == word)
}

#[test]
fn every_filter_and_test_is_listed() {
    let is_word = |name: &&str| name.chars().all(char::is_alphanumeric);
    let aliases = ["equalto", "lessthan", "greaterthan"];
    for name in windlass_expr::filter_names().chain(windlass_expr::test_names()).filter(is_word) {
        assert!(has_word(name) || aliases.contains(&name), "{name}");
    }
}

#[test]
fn every_key_of_the_schema_is_listed() {
    let schema = windlass_dialects::Dialect::of_name("playbook")
        .and_then(windlass_dialects::Dialect::schema)
        .expect("a schema");
    let maps = schema["$defs"].as_object().expect("definitions").values().chain([&schema]);
    let keys = maps.filter_map(|map| map["properties"].as_object()).flatten();
    let idle = |value: &serde_json::Value| value["deprecated"] == true;
    for (key, _) in keys.filter(|(_, value)| !idle(value)) {
        let free = ["version", "description", "labels", "tags", "assert", "exec"].contains(&key.as_str());
        assert!(has_word(key) || free, "{key}");
    }
}

/// Complete definitions in the YAML blocks of a page.
fn definitions(page: &'static str) -> Vec<&'static str> {
    let blocks = page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains("\nworkflow:") || block.contains("\nnodes:")).collect()
}

#[test]
fn the_playbooks_on_the_page_compile() {
    assert!(!definitions(PAGE).is_empty());
    for text in definitions(PAGE) {
        net(text);
    }
}

#[test]
fn the_definitions_in_the_guides_compile() {
    for (page, count) in GUIDES {
        let found = definitions(page);
        assert_eq!(found.len(), count, "{found:?}");
        for text in found {
            assert!(windlass_dialects::compile(text).is_valid(), "{text}");
        }
    }
}
