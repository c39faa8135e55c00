//! Expressions of expr-lang, the language of plan conditions, translated to the source of an [`crate::Expr`].
//!
//! Literals, member access, slices, ranges, arithmetic, comparisons, logic, `in`, `contains`, `startsWith`, `endsWith`,
//! `matches`, `?:`, `??`, the functions of [`FUNCTIONS`] and those of [`PREDICATES`] are translated. Everything else is refused by its name: nothing is
//! translated to something that merely looks alike. Comparisons are those of `strict`, which converts nothing: `<` of a
//! number and a text is an error, and they are never equal.

mod lexer;
mod parser;

use crate::{CompileError, Value};
use std::cell::RefCell;
use std::fmt::Write;

/// Maximum length of an expression. Conditions are read by people.
pub const SOURCE_MAX: usize = 10_000;

/// Encloses the number of a replacement. Literals escape it, and it is no token.
const MARK: char = '\0';

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

/// Functions with a predicate, which `strict_each` evaluates for each item of a list, and the kinds of their results.
const PREDICATES: [(&str, ValueKind); 7] = [
    ("all", ValueKind::Boolean),
    ("any", ValueKind::Boolean),
    ("none", ValueKind::Boolean),
    ("one", ValueKind::Boolean),
    ("filter", ValueKind::List),
    ("map", ValueKind::List),
    ("count", ValueKind::Number),
];

/// Knowledge about the value of an expression before it is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    Nil,
    Boolean,
    Number,
    Text,
    List,
    Map,
    /// The sum of two unknown values.
    NumberOrText,
    Unknown,
}

impl ValueKind {
    #[must_use]
    pub fn of(value: &Value) -> ValueKind {
        match value {
            Value::Null => ValueKind::Nil,
            Value::Bool(_) => ValueKind::Boolean,
            Value::Number(_) => ValueKind::Number,
            Value::String(_) => ValueKind::Text,
            Value::Array(_) => ValueKind::List,
            Value::Object(_) => ValueKind::Map,
        }
    }

    /// Returns the kind of the values that fit a JSON Schema, as far as its `type` determines one.
    #[must_use]
    pub fn of_schema(schema: &Value) -> ValueKind {
        match schema.get("type").and_then(Value::as_str) {
            Some("boolean") => ValueKind::Boolean,
            Some("integer" | "number") => ValueKind::Number,
            Some("string") => ValueKind::Text,
            Some("array") => ValueKind::List,
            Some("object") => ValueKind::Map,
            _ => ValueKind::Unknown,
        }
    }

    /// Returns the noun for a message.
    fn noun(self) -> &'static str {
        match self {
            ValueKind::Nil => "nil",
            ValueKind::Boolean => "true or false",
            ValueKind::Number => "a number",
            ValueKind::Text => "a text",
            ValueKind::List => "a list",
            ValueKind::Map => "a map",
            ValueKind::NumberOrText => "a number or a text",
            ValueKind::Unknown => "a value",
        }
    }

    /// Returns whether values of both kinds may be of the same kind.
    fn overlaps(self, other: ValueKind) -> bool {
        use ValueKind::{Number, NumberOrText, Text, Unknown};
        match (self, other) {
            (Unknown, _) | (_, Unknown) => true,
            (NumberOrText, one) | (one, NumberOrText) => matches!(one, Number | Text | NumberOrText),
            (left, right) => left == right,
        }
    }

    /// Returns whether values of the kind may have an order.
    fn may_be_ordered(self) -> bool {
        self.overlaps(ValueKind::NumberOrText)
    }
}

/// The replacement of a name of an expression.
#[derive(Debug, Clone)]
pub struct BoundName {
    /// Source of an [`crate::Expr`].
    pub source: String,
    pub kind: ValueKind,
}

/// An expression of expr-lang as the source of an [`crate::Expr`].
#[derive(Debug, Clone)]
pub struct Translation {
    pub source: String,
    /// Parts that are valid and whose value is always the same.
    pub warnings: Vec<CompileError>,
}

/// A part of an expression as source of an [`crate::Expr`], in parentheses wherever it needs them.
#[derive(Debug, Clone)]
struct Translated {
    source: String,
    kind: ValueKind,
    /// The value of a text or a number that is written in the expression.
    literal: Option<Value>,
}

impl Translated {
    fn new(source: String, kind: ValueKind) -> Translated {
        Translated { source, kind, literal: None }
    }
}

/// Translates a condition: an expression that is true or false. `bind` returns what replaces a name, or an error that
/// says which names exist. A value that turns out to be neither true nor false is an error of the evaluation.
pub fn translate_condition(
    source: &str,
    bind: &dyn Fn(&str) -> Result<BoundName, String>,
) -> Result<Translation, CompileError> {
    // The parser copies the source of an operand for each operator around it, so a long replacement follows at the end.
    let replacements = RefCell::new(Vec::new());
    let mark = |name: &str| {
        let BoundName { source, kind } = bind(name)?;
        let mut replacements = replacements.borrow_mut();
        replacements.push(source);
        Ok(BoundName { source: format!("{MARK}{}{MARK}", replacements.len() - 1), kind })
    };
    let (translated, warnings) = parser::parse(source, &mark)?;
    let condition = match translated.kind {
        ValueKind::Boolean => translated.source,
        ValueKind::Unknown => format!("({})|strict_bool", translated.source),
        kind => {
            let message = format!("the expression is {}, and a condition is true or false", kind.noun());
            return Err(error_at(source, message, 0));
        }
    };
    Ok(Translation { source: replace_marks(&condition, &replacements.into_inner()), warnings })
}

/// Replaces the number between two marks by the source with this number.
fn replace_marks(marked: &str, replacements: &[String]) -> String {
    let mut source =
        String::with_capacity(marked.len() + replacements.iter().map(String::len).sum::<usize>());
    for (place, part) in marked.split(MARK).enumerate() {
        let replacement =
            part.parse().ok().filter(|_| place % 2 == 1).and_then(|at: usize| replacements.get(at));
        source.push_str(replacement.map_or(part, String::as_str));
    }
    source
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
