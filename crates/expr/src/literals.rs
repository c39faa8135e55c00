//! Values as source code of other languages. The positions are found when a definition is compiled; these filters
//! write a value as data there. Only letters and digits are written unescaped, so that even in a misjudged position
//! the value is at most one name and never a statement.

use std::fmt::Write;

use minijinja::Error;
use minijinja::Value as Jinja;

use crate::Value;
use crate::convert::to_json;
use crate::limits::failed;

/// Formats a literal of Python: `None`, `True`, `1.5`, `"text"`, `[…]`, `{…}`.
pub(crate) fn as_python(value: &Jinja) -> Result<String, Error> {
    let value = to_json(value).map_err(|error| failed(error.to_string()))?;
    let mut out = String::new();
    write_literal(&value, &mut out);
    Ok(out)
}

/// Formats the inside of a Python string in quotes of any kind. A leading digit is escaped, because it could continue
/// an escape before it, as in `\0`.
pub(crate) fn in_python(value: &Jinja) -> String {
    let (value, mut out) = (value.to_string(), String::new());
    let first = value.chars().next().filter(char::is_ascii_digit);
    if let Some(digit) = first {
        write_escape(&mut out, "x", u32::from(digit), 2);
    }
    write_text(&value[first.map_or(0, char::len_utf8)..], &mut out);
    out
}

/// Formats the inside of a Python bytes literal: the text in UTF-8.
pub(crate) fn in_python_bytes(value: &Jinja) -> String {
    let mut out = String::new();
    for (place, byte) in value.to_string().bytes().enumerate() {
        match byte.is_ascii_alphabetic() || (byte.is_ascii_digit() && place > 0) {
            true => out.push(char::from(byte)),
            false => write_escape(&mut out, "x", u32::from(byte), 2),
        }
    }
    out
}

fn write_literal(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(true) => out.push_str("True"),
        Value::Bool(false) => out.push_str("False"),
        // A sign before the number must not change its meaning: `2 ** -1`, `a -1`.
        Value::Number(number) => match number.to_string() {
            negative if negative.starts_with('-') => {
                out.push('(');
                out.push_str(&negative);
                out.push(')');
            }
            positive => out.push_str(&positive),
        },
        Value::String(string) => write_quoted(string, out),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                write_literal(item, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (key, value) in fields {
                write_quoted(key, out);
                out.push_str(": ");
                write_literal(value, out);
                out.push_str(", ");
            }
            out.push('}');
        }
    }
}

fn write_quoted(string: &str, out: &mut String) {
    out.push('"');
    write_text(string, out);
    out.push('"');
}

fn write_text(string: &str, out: &mut String) {
    for sign in string.chars() {
        match (sign, u32::from(sign)) {
            _ if sign.is_alphanumeric() => out.push(sign),
            (_, code @ 0..=0xff) => write_escape(out, "x", code, 2),
            (_, code @ 0x100..=0xffff) => write_escape(out, "u", code, 4),
            (_, code) => write_escape(out, "U", code, 8),
        }
    }
}

fn write_escape(out: &mut String, kind: &str, code: u32, digits: usize) {
    // Writing to a string cannot fail.
    let _ = write!(out, "\\{kind}{code:0digits$x}");
}

#[cfg(test)]
mod tests {
    use crate::{Map, Template, Value};
    use serde_json::json;

    fn check(filter: &str, value: Value, expected: &str) {
        let template = Template::compile(&json!(format!("{{{{ v | {filter} }}}}"))).unwrap();
        let rendered = template.render(&Map::from_iter([("v".to_owned(), value)])).unwrap();
        assert_eq!(rendered, json!(expected));
    }

    #[test]
    fn literals_follow_python() {
        let value = json!({ "a b": [null, true, false, 1, -2, 1.5, "x\"'\\\n\u{2028}😀é"] });
        let expected =
            r#"{"a\x20b": [None, True, False, 1, (-2), 1.5, "x\x22\x27\x5c\x0a\u2028\U0001f600é", ], }"#;
        check("as_python", value, expected);
        check("get('nothing') | as_python", json!({}), "None");
    }

    #[test]
    fn texts_contain_no_character_that_ends_a_string() {
        check("in_python", json!("a'\"{b}\\"), r"a\x27\x22\x7bb\x7d\x5c");
        check("in_python", json!(57), r"\x357");
        check("in_python_bytes", json!(57), r"\x357");
        check("in_python_bytes", json!("é\n"), r"\xc3\xa9\x0a");
    }
}
