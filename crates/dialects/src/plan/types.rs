//! Types that the values of a schema can have, and those of a part of them. Only what is certain is excluded: where a
//! schema says more than these functions understand, every type is possible.

use serde_json::{Map, Value};
use std::ops::{BitAnd, BitOr};
use windlass_protocol::drill_into;

type Fields = Map<String, Value>;

/// A set of JSON types. Whole numbers and fractions are separate, so that `number` and `integer` overlap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Types(u8);

impl Types {
    pub(super) const NONE: Types = Types(0);
    pub(super) const ALL: Types = Types(0b111_1111);
    pub(super) const STRING: Types = Types(0b1);
    const OBJECT: Types = Types(0b10);
    const ARRAY: Types = Types(0b100);
    const BOOLEAN: Types = Types(0b1000);
    const NULL: Types = Types(0b1_0000);
    const INTEGER: Types = Types(0b10_0000);
    const NUMBER: Types = Types(0b110_0000);

    /// Types by their names; `number` comes before `integer`, which it includes.
    const NAMED: [(&str, Types); 7] = [
        ("string", Types::STRING),
        ("object", Types::OBJECT),
        ("array", Types::ARRAY),
        ("boolean", Types::BOOLEAN),
        ("null", Types::NULL),
        ("number", Types::NUMBER),
        ("integer", Types::INTEGER),
    ];

    fn named(name: &str) -> Types {
        Types::NAMED.iter().find(|(known, _)| *known == name).map_or(Types::ALL, |(_, types)| *types)
    }

    fn of_value(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(number) if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
                Types::NUMBER
            }
            Value::Number(_) => Types::INTEGER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }

    fn has(self, other: Types) -> bool {
        self & other == other
    }

    /// Returns the names of the types for a message.
    pub(super) fn names(self) -> String {
        let mut names: Vec<&str> =
            Types::NAMED.iter().filter(|(_, types)| self.has(*types)).map(|(name, _)| *name).collect();
        if self.has(Types::NUMBER) {
            names.retain(|name| *name != "integer");
        }
        names.join(" or ")
    }
}

impl BitAnd for Types {
    type Output = Types;

    fn bitand(self, other: Types) -> Types {
        Types(self.0 & other.0)
    }
}

impl BitOr for Types {
    type Output = Types;

    fn bitor(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }
}

/// Returns the types that a part can have in values that fit a schema; none if no such value has the part.
pub(super) fn types_at(schema: &Value, drill: &[String]) -> Types {
    let fields = match schema {
        Value::Bool(false) => return Types::NONE,
        // What a reference leads to is not followed, and in older drafts nothing beside it counts.
        Value::Object(fields) if !fields.contains_key("$ref") => fields,
        _ => return Types::ALL,
    };
    let of_all = |key: &str| branches(fields, key).iter().map(|branch| types_at(branch, drill));
    let mut types = of_all("allOf").fold(types_of_keys(fields, drill), BitAnd::bitand);
    for key in ["anyOf", "oneOf"] {
        types = types & of_all(key).reduce(BitOr::bitor).unwrap_or(Types::ALL);
    }
    let of_value = |value| drill_into(value, drill).map_or(Types::NONE, Types::of_value);
    types = types & fields.get("const").map_or(Types::ALL, of_value);
    types & branches(fields, "enum").iter().map(of_value).reduce(BitOr::bitor).unwrap_or(Types::ALL)
}

fn branches<'s>(fields: &'s Fields, key: &str) -> &'s [Value] {
    fields.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn types_of_keys(fields: &Fields, drill: &[String]) -> Types {
    let declared = match fields.get("type") {
        Some(Value::String(name)) => Types::named(name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).map(Types::named).fold(Types::NONE, BitOr::bitor)
        }
        _ => Types::ALL,
    };
    let Some((segment, rest)) = drill.split_first() else { return declared };
    let of_field = match declared.has(Types::OBJECT) {
        true => types_of_field(fields, segment, rest),
        false => Types::NONE,
    };
    match segment.parse() {
        Ok(index) if declared.has(Types::ARRAY) => of_field | types_of_item(fields, index, rest),
        _ => of_field,
    }
}

fn types_of_field(fields: &Fields, name: &str, rest: &[String]) -> Types {
    if let Some(declared) = fields.get("properties").and_then(|properties| properties.get(name)) {
        return types_at(declared, rest);
    }
    match fields.get("additionalProperties") {
        Some(others) if !fields.contains_key("patternProperties") => types_at(others, rest),
        _ => Types::ALL,
    }
}

fn types_of_item(fields: &Fields, index: usize, rest: &[String]) -> Types {
    let is_beyond = |most: u64| usize::try_from(most).is_ok_and(|most| index >= most);
    if fields.get("maxItems").and_then(Value::as_u64).is_some_and(is_beyond) {
        return Types::NONE;
    }
    let first = branches(fields, "prefixItems").get(index).or(branches(fields, "items").get(index));
    let others = fields.get("items").filter(|items| !items.is_array());
    first.or(others).map_or(Types::ALL, |item| types_at(item, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(schema: Value, drill: &str, expected: &str) {
        let drill: Vec<String> = drill.split_terminator('.').map(str::to_owned).collect();
        let types = types_at(&schema, &drill);
        assert_eq!(
            if types == Types::ALL { "anything".to_owned() } else { types.names() },
            expected,
            "{schema} {drill:?}"
        );
    }

    #[test]
    fn types_follow_from_what_is_certain() {
        check(json!({}), "", "anything");
        check(json!(true), "a.0", "anything");
        check(json!({ "type": ["integer", "null"] }), "", "null or integer");
        check(json!({ "type": "number" }), "", "number");
        check(json!({ "enum": ["a", 1.0, 2.5] }), "", "string or number");
        check(json!({ "const": [] }), "", "array");
        check(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }), "", "string or null");
        check(
            json!({ "allOf": [{ "type": ["string", "null"] }, { "type": ["string", "array"] }] }),
            "",
            "string",
        );
        check(json!({ "$ref": "#/$defs/a", "type": "string" }), "", "anything");
        check(json!({ "not": { "type": "string" } }), "", "anything");
    }

    #[test]
    fn a_part_has_the_types_that_its_schema_allows() {
        let object = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
        check(object.clone(), "a", "string");
        check(object.clone(), "b", "anything");
        check(object.clone(), "0", "anything");
        check(object, "a.b", "");
        let closed = json!({ "properties": { "a": { "items": { "type": "integer" }, "maxItems": 2 } }, "additionalProperties": false });
        check(closed.clone(), "b", "");
        check(closed.clone(), "a.1", "anything");
        check(closed, "0", "anything");
        let list = json!({ "type": "array", "prefixItems": [{ "type": "string" }], "items": { "type": "integer" }, "maxItems": 2 });
        check(list.clone(), "0", "string");
        check(list.clone(), "1", "integer");
        check(list.clone(), "2", "");
        check(list, "length", "");
        check(json!({ "type": ["object", "null"], "additionalProperties": { "type": "null" } }), "x", "null");
        check(json!({ "patternProperties": { "^x": {} }, "additionalProperties": false }), "y", "anything");
        check(json!({ "enum": [{ "a": 1 }, "b"] }), "a", "integer");
        check(json!({ "enum": [{ "a": 1 }, "b"] }), "b", "");
        check(json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }), "a", "");
        check(json!({ "oneOf": [{ "type": "string" }, { "type": "object" }] }), "a", "anything");
    }
}
