//! Splits a template into literal text and inserted values, for fields whose values must not become part of another
//! language.

use minijinja::machinery::{Token, tokenize};

use crate::builtins::syntax;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// Literal text of the output, without comments and without the tags of raw blocks.
    Text(String),
    /// Source between `{{` and `}}`.
    Expression(String),
    /// Source of a `{% … %}`; the pieces around it may be left out or repeated.
    Statement(String),
}

/// Splits a text that compiles as a template; the rest after an invalid part is ignored.
#[must_use]
pub fn pieces(source: &str) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    let mut from = None;
    for (token, span) in tokenize(source, false, syntax()).map_while(Result::ok) {
        match token {
            Token::TemplateData(text) => match found.last_mut() {
                Some(Piece::Text(before)) => before.push_str(text),
                _ => found.push(Piece::Text(text.to_owned())),
            },
            Token::VariableStart => from = Some(span.end_offset as usize),
            Token::VariableEnd => {
                let inner = from.take().and_then(|from| source.get(from..span.start_offset as usize));
                found.push(Piece::Expression(inner.unwrap_or_default().trim().to_owned()));
            }
            Token::BlockStart => from = Some(span.start_offset as usize),
            Token::BlockEnd => {
                let whole = from.take().and_then(|from| source.get(from..span.end_offset as usize));
                found.push(Piece::Statement(whole.unwrap_or_default().to_owned()));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(source: &str) -> Vec<String> {
        let describe = |piece: Piece| match piece {
            Piece::Text(text) => format!("text {text}"),
            Piece::Expression(source) => format!("expr {source}"),
            Piece::Statement(source) => format!("statement {source}"),
        };
        pieces(source).into_iter().map(describe).collect()
    }

    #[test]
    fn a_text_is_split_into_literal_text_and_inserted_values() {
        assert_eq!(describe("plain"), ["text plain"]);
        assert_eq!(describe("a {{ x | trim }}b"), ["text a ", "expr x | trim", "text b"]);
        assert_eq!(describe("{{ '}}' ~ y }}{{z}}"), ["expr '}}' ~ y", "expr z"]);
        assert_eq!(describe("a {{- x -}} b"), ["text a", "expr x", "text b"]);
        assert_eq!(describe("a {% raw %}{{ x }}{% endraw %}{# no #} b"), ["text a {{ x }} b"]);
        assert_eq!(
            describe("{% if x %}y{% endif %}"),
            ["statement {% if x %}", "text y", "statement {% endif %}"]
        );
    }
}
