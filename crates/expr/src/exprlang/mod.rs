//! Expressions of expr-lang, the language of plan conditions, translated to the source of an [`crate::Expr`].
//!
//! Literals, member access, slices, arithmetic, comparisons, logic, `in`, `contains`, `startsWith`, `endsWith`, `matches`,
//! `?:`, `??` and the functions of [`FUNCTIONS`] are translated. Everything else is refused by its name: nothing is
//! translated to something that merely looks alike.

mod lexer;
mod parser;

use crate::{CompileError, Value};
use std::fmt::Write;

/// Maximum length of an expression. Conditions are read by people.
pub const SOURCE_MAX: usize = 10_000;

/// Functions with one argument, and the filter that each of them is.
const FUNCTIONS: [(&str, &str); 7] = [
    ("len", "length"),
    ("int", "int"),
    ("float", "float"),
    ("string", "string"),
    ("lower", "lower"),
    ("upper", "upper"),
    ("trim", "trim"),
];

/// Knowledge about the value of an expression before it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Boolean,
    /// The noun for a message.
    Other(&'static str),
    Unknown,
}

/// A part of an expression as source of an [`crate::Expr`], in parentheses wherever it needs them.
#[derive(Debug, Clone)]
struct Translated {
    source: String,
    kind: Kind,
}

/// Translates a condition: an expression that is true or false. `bind` returns the source that replaces a name, or an
/// error that says which names exist. A value that turns out to be neither true nor false is an error of the evaluation.
pub fn translate_condition(
    source: &str,
    bind: &dyn Fn(&str) -> Result<String, String>,
) -> Result<String, CompileError> {
    let translated = parser::parse(source, bind)?;
    match translated.kind {
        Kind::Boolean => Ok(translated.source),
        Kind::Unknown => Ok(format!("({})|strict_bool", translated.source)),
        Kind::Other(noun) => {
            let message = format!("the expression is {noun}, and a condition is true or false");
            Err(error_at(source, message, 0))
        }
    }
}

/// Writes a value as an expression. Braces are escaped, so that no part of a text looks like a tag.
#[must_use]
pub fn literal(value: &Value) -> String {
    let mut out = String::new();
    write_literal(value, &mut out);
    out
}

fn write_literal(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("none"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        // A sign must not change the meaning of an operator before it.
        Value::Number(number) => {
            let _ = write!(out, "({number})");
        }
        Value::String(text) => write_text(text, out),
        Value::Array(items) => {
            out.push('[');
            items.iter().for_each(|item| {
                write_literal(item, out);
                out.push(',');
            });
            out.push(']');
        }
        Value::Object(fields) => {
            // A space keeps two braces apart, which would begin a tag.
            out.push_str("{ ");
            for (key, field) in fields {
                write_text(key, out);
                out.push(':');
                write_literal(field, out);
                out.push(',');
            }
            out.push_str(" }");
        }
    }
}

fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for sign in text.chars() {
        if sign.is_alphanumeric() || " _-.:/".contains(sign) {
            out.push(sign);
        } else {
            let mut units = [0; 2];
            for unit in sign.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push('"');
}

fn error_at(source: &str, message: String, offset: usize) -> CompileError {
    let before = source.get(..offset).unwrap_or(source);
    CompileError {
        message,
        line: before.matches('\n').count() + 1,
        column: before.chars().rev().take_while(|sign| *sign != '\n').count() + 1,
        path: String::new(),
        source_text: source.to_owned(),
    }
}

#[cfg(test)]
mod tests;
