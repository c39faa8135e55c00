//! Here-documents. One that takes nothing in (`<<'END'`) is written as one that does, when it has a value: everything else
//! in it is escaped.

use super::lexer::{Around, Found, Lexer, Read, Sign};
use super::words::Word;

/// The end of here-documents that are written anew is this word and a number.
const END: &str = "WINDLASS_END_";

#[derive(Debug)]
pub(super) struct HereDocument {
    end: String,
    /// Whether nothing in it is expanded.
    literal: bool,
    /// Tabs at the beginning of its lines do not count.
    indented: bool,
    /// Position of the operator that announces it.
    announced: usize,
    /// The interpreter that reads it as a program.
    pub(super) program: Option<String>,
    read: bool,
}

/// The word that ends a here-document.
#[derive(Debug, Default)]
struct EndWord {
    written: String,
    /// Delimiter without its quotes.
    text: String,
    /// Whether the delimiter has quotes, so that nothing in the document is expanded.
    literal: bool,
    quote: Option<char>,
}

impl EndWord {
    fn ends_before(&self, sign: char) -> bool {
        self.quote.is_none() && (sign.is_whitespace() || ";&|<>()".contains(sign))
    }

    /// Adds a sign, and the next one if the sign escapes it; returns how many were added.
    fn add(&mut self, sign: char, next: Option<char>) -> usize {
        self.written.push(sign);
        match (sign, self.quote, next) {
            // A line that continues.
            ('\\', None | Some('"'), Some('\n')) => return self.escape('\n', ""),
            ('\\', None, Some(next)) => {
                self.literal = true;
                return self.escape(next, next.encode_utf8(&mut [0; 4]));
            }
            ('\\', Some('"'), Some(next)) if "\\\"$`".contains(next) => {
                return self.escape(next, next.encode_utf8(&mut [0; 4]));
            }
            ('\\', None, None) => self.literal = true,
            ('\'' | '"', None, _) => (self.literal, self.quote) = (true, Some(sign)),
            (sign, Some(open), _) if sign == open => self.quote = None,
            _ => self.text.push(sign),
        }
        1
    }

    fn escape(&mut self, next: char, text: &str) -> usize {
        self.written.push(next);
        self.text.push_str(text);
        2
    }
}

impl Lexer<'_> {
    /// Reads `<<END` up to the end of that word; the content comes with the next line.
    pub(super) fn here_document(&mut self) -> Read<()> {
        self.copy(2);
        let indented = self.peek_char(0) == Some('-');
        if indented {
            self.copy(1);
        }
        while self.peek_char(0).is_some_and(|sign| sign == ' ' || sign == '\t') {
            self.copy(1);
        }
        let word = self.end_word_of_document()?;
        let announced = self.out.replaceable(&word.written);
        let EndWord { text: end, literal, .. } = word;
        self.here.push(HereDocument { end, literal, indented, announced, program: None, read: false });
        Ok(())
    }

    fn end_word_of_document(&mut self) -> Read<EndWord> {
        let mut word = EndWord::default();
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char(sign) if word.ends_before(sign) => break,
                Sign::Char(sign) => {
                    let length = word.add(sign, self.peek_char(1));
                    self.at += length;
                }
                Sign::Part(part) => {
                    let hint = "write a word that is not a line of the document";
                    return self.refuse(part, "as the end of a here-document", hint);
                }
            }
        }
        Ok(word)
    }

    /// Reads the bodies that begin with this line, in their order.
    pub(super) fn here_documents(&mut self) -> Read<Found> {
        let mut found = None;
        for place in self.here_floor..self.here.len() {
            if self.here[place].read {
                continue;
            }
            self.here[place].read = true;
            let (body, last) = self.body(place);
            let (literal, announced) = (self.here[place].literal, self.here[place].announced);
            let has_part = body.iter().any(|sign| matches!(sign, Sign::Part(_)));
            let anew = literal && has_part;
            let mut word = Word::default();
            self.within(body, |lexer| lexer.document(literal && !has_part, anew, &mut word))?;
            if let (Some(part), Some(program)) = (word.value, self.here[place].program.clone()) {
                let hint = "pass it as an argument of the script: `sh -s -- {{ x }} <<'END'` and `\"$1\"`";
                return self.refuse(part, format!("in what {program} reads as its program"), hint);
            }
            found = found.or(word.value);
            if anew {
                let end = format!("{END}{place}");
                self.out.replace(announced, &end);
                self.out.text(&end);
                self.out.text(if last.ends_with('\n') { "\n" } else { "" });
            } else {
                self.out.text(&last);
            }
        }
        Ok(found)
    }

    /// Takes the lines up to the end, and the line that ends them.
    fn body(&mut self, place: usize) -> (Vec<Sign>, String) {
        let (mut body, here) = (Vec::new(), &self.here[place]);
        while self.at < self.signs.len() {
            let rest = &self.signs[self.at..];
            let length =
                rest.iter().position(|sign| *sign == Sign::Char('\n')).map_or(rest.len(), |at| at + 1);
            let line = &rest[..length];
            self.at += length;
            let text: Option<String> = line
                .iter()
                .map(|sign| match sign {
                    Sign::Char(sign) => Some(*sign),
                    Sign::Part(_) => None,
                })
                .collect();
            if let Some(text) = text {
                let bare = text.strip_suffix('\n').unwrap_or(&text);
                let bare = if here.indented { bare.trim_start_matches('\t') } else { bare };
                if bare == here.end {
                    return (body, text);
                }
            }
            body.extend_from_slice(line);
        }
        (body, String::new())
    }

    fn document(&mut self, as_it_is: bool, anew: bool, word: &mut Word) -> Read<()> {
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char(_) if as_it_is => self.copy(1),
                Sign::Char('\\' | '$' | '`') if anew => {
                    self.out.sign('\\');
                    self.copy(1);
                }
                Sign::Char(_) if anew => self.copy(1),
                Sign::Part(part) => self.part(part, Around::Double, word),
                sign => self.in_double_quotes(sign, word)?,
            }
        }
        Ok(())
    }
}
