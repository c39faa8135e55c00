//! The page that tells people the language tells it whole, and what it shows is right.

use crate::told::net;

const PAGE: &str = include_str!("../../../../docs/playbooks.md");

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
fn every_key_of_the_schema_is_told() {
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

#[test]
fn the_playbooks_on_the_page_compile() {
    let blocks = PAGE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let whole: Vec<&str> = blocks.filter(|block| block.contains("\nworkflow:")).collect();
    assert!(!whole.is_empty());
    for text in whole {
        net(text);
    }
}
