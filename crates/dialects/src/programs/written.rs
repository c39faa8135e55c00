//! Splits a text with templates into literals of its author and inserted values, and joins them again.

use super::Refusal;
use serde_json::{Map, Value, json};
use windlass_expr::{Expr, Piece, Template, pieces};

/// A part of a program's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Text(String),
    /// An expression whose value is one of a few words that the author wrote: `{{ '-v' if workload.loud else '' }}`.
    Choice {
        source: String,
        word: String,
    },
    /// An expression whose value the author did not write.
    Value(String),
}

/// Takes a text apart. A statement (`{% … %}`) would leave out or repeat parts of the program, so it is refused.
pub(super) fn parts(text: &str) -> Result<Vec<Part>, Refusal> {
    let mut found: Vec<Part> = Vec::new();
    for piece in pieces(text) {
        let part = match piece {
            Piece::Text(text) => Part::Text(text),
            Piece::Expression(source) => expression(source),
            Piece::Statement(source) => {
                let hint = "move the condition into the program, into a value, or into a separate step";
                return Err(Refusal::new(&source, "around parts of a program", hint));
            }
        };
        match (found.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => before.push_str(&text),
            (_, part) => found.push(part),
        }
    }
    Ok(found)
}

fn expression(source: String) -> Part {
    if let Some(text) = constant(&source) {
        return Part::Text(text);
    }
    match choice(&source) {
        Some(word) => Part::Choice { source, word },
        None => Part::Value(source),
    }
}

/// Returns the text of an expression that reads nothing: it is the author's own.
fn constant(source: &str) -> Option<String> {
    let expr = Expr::compile(source).ok().filter(|expr| expr.reads().is_empty())?;
    let template = Template::compile(&json!(format!("{{{{ {} }}}}", expr.source()))).ok()?;
    let value = template.render(&Map::new()).ok()?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// The longer word of `'a' if … else 'b'`, when both are plain: whichever is chosen, the rest of the program is read alike.
fn choice(source: &str) -> Option<String> {
    let (first, rest) = quoted(source.trim())?;
    let rest = rest.strip_prefix(" if ")?;
    let at = rest.rfind(" else ")?;
    if rest[..at].contains("else") {
        return None;
    }
    let (second, end) = quoted(rest[at + " else ".len()..].trim())?;
    let plain = |word: &str| word.chars().all(|sign| sign.is_alphanumeric() || " _-=./:,@%+".contains(sign));
    let longer = if first.len() >= second.len() { first } else { second };
    (end.is_empty() && plain(first) && plain(second)).then(|| longer.to_owned())
}

fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|sign| "'\"".contains(*sign))?;
    let (word, rest) = text[1..].split_once(quote)?;
    Some((word, rest))
}

/// A template under construction. Literals of the author are kept unchanged, including tags.
#[derive(Debug, Default)]
pub(super) struct Written(Vec<Piece>);

impl Written {
    pub(super) fn text(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Piece::Text(before)) => before.push_str(text),
            _ => self.0.push(Piece::Text(text.to_owned())),
        }
    }

    pub(super) fn sign(&mut self, sign: char) {
        self.text(sign.encode_utf8(&mut [0; 4]));
    }

    /// Removes the last signs.
    pub(super) fn take_back(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(Piece::Text(text)) = self.0.last_mut() {
                text.pop();
            }
        }
    }

    pub(super) fn expression(&mut self, source: &str) {
        self.0.push(Piece::Expression(source.to_owned()));
    }

    /// Adds a text that may be replaced later; returns its place.
    pub(super) fn replaceable(&mut self, text: &str) -> usize {
        self.0.push(Piece::Text(text.to_owned()));
        // The next text must not be joined to it.
        self.0.push(Piece::Text(String::new()));
        self.0.len() - 2
    }

    pub(super) fn replace(&mut self, place: usize, text: &str) {
        self.0[place] = Piece::Text(text.to_owned());
    }

    /// Returns the source of the template.
    pub(super) fn source(self) -> String {
        let alone = self.0.iter().all(|piece| matches!(piece, Piece::Text(_)));
        if alone {
            let texts = self.0.iter().map(|piece| match piece {
                Piece::Text(text) => text.as_str(),
                Piece::Expression(_) | Piece::Statement(_) => "",
            });
            return raw(&texts.collect::<String>());
        }
        let piece = |piece: Piece| match piece {
            Piece::Text(text) => untagged(&text),
            Piece::Expression(source) => format!("{{{{ {source} }}}}"),
            Piece::Statement(source) => source,
        };
        self.0.into_iter().map(piece).collect()
    }
}

/// Returns a text that no template engine changes.
pub(crate) fn raw(text: &str) -> String {
    match has_tags(text) {
        false => text.to_owned(),
        true if text.contains("endraw") => format!("{{{{ {} }}}}", literal(text)),
        true => format!("{{% raw %}}{text}{{% endraw %}}"),
    }
}

/// The same inside of a larger text, where a brace may meet the one of an expression.
fn untagged(text: &str) -> String {
    match has_tags(text) || text.ends_with('{') {
        true => format!("{{{{ {} }}}}", literal(text)),
        false => text.to_owned(),
    }
}

fn has_tags(text: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|tag| text.contains(tag))
}

fn literal(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted.replace('{', "\\u007b").replace('}', "\\u007d").replace('%', "\\u0025").replace('#', "\\u0023")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_author_chose_is_no_value() {
        let part = |source: &str| expression(source.to_owned());
        assert_eq!(part("1 + 2"), Part::Text("3".to_owned()));
        assert_eq!(part("workload.x"), Part::Value("workload.x".to_owned()));
        for (source, word) in [("'-v' if workload.loud else ''", "-v"), ("\"a\" if x == 1 else 'bcd'", "bcd")]
        {
            assert_eq!(part(source), Part::Choice { source: source.to_owned(), word: word.to_owned() });
        }
        for source in [
            "'a' if x else y if z else 'b'",
            "'a' if x else y",
            "'a;b' if x else ''",
            "'a' if x else 'b' ~ y",
        ] {
            assert_eq!(part(source), Part::Value(source.to_owned()));
        }
    }

    #[test]
    fn texts_come_out_of_the_template_as_they_went_in() {
        for text in
            ["{", "a{", "{{", "{% x %}", "{# no #}", "{% endraw %}{{ x }}", "\\u007b", "}}", "\"quoted\"{{"]
        {
            let mut written = Written::default();
            written.text(text);
            written.expression("x");
            written.text(text);
            let template = Template::compile(&json!(written.source())).unwrap();
            let rendered = template.render(&Map::from_iter([("x".to_owned(), json!("{{ v }}"))])).unwrap();
            assert_eq!(rendered, json!(format!("{text}{{{{ v }}}}{text}")));
            let alone = Template::compile(&json!(raw(text))).unwrap();
            assert_eq!(alone.render(&Map::new()).unwrap(), json!(text));
        }
    }
}
