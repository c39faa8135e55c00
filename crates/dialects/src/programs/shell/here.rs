//! Here-documents. One that takes nothing in (`<<'END'`) is written as one that does, when it has a value: everything else
//! in it is escaped.

use super::lexer::{Around, Found, Lexer, Read, Sign};
use super::words::Word;

/// The end of here-documents that are written anew is this word and a number.
const END: &str = "WINDLASS_END_";

#[derive(Debug)]
pub(super) struct HereDocument {
    end: String,
    /// Nothing in it is expanded.
    literal: bool,
    /// Tabs at the beginning of its lines do not count.
    indented: bool,
    /// Where the end is announced.
    announced: usize,
    /// The interpreter that reads it as a program.
    pub(super) program: Option<String>,
    read: bool,
}

impl Lexer<'_> {
    /// `<<END` up to the end of that word; what it holds comes with the next line.
    pub(super) fn here_document(&mut self) -> Read<()> {
        self.copy(2);
        let indented = self.peek_char(0) == Some('-');
        if indented {
            self.copy(1);
        }
        while self.peek_char(0).is_some_and(|sign| sign == ' ' || sign == '\t') {
            self.copy(1);
        }
        let (mut written, mut end, mut literal, mut quote) = (String::new(), String::new(), false, None);
        while let Some(sign) = self.peek() {
            let sign = match sign {
                Sign::Char(sign) => sign,
                Sign::Part(part) => {
                    return self.refuse(
                        part,
                        "as the end of a here-document",
                        "write a word that no line is",
                    );
                }
            };
            match (sign, quote) {
                ('\'' | '"', None) => (literal, quote) = (true, Some(sign)),
                (sign, Some(open)) if sign == open => quote = None,
                ('\\', None) => literal = true,
                (sign, None) if sign.is_whitespace() || ";&|<>()".contains(sign) => break,
                (sign, _) => end.push(sign),
            }
            written.push(sign);
            self.at += 1;
        }
        let announced = self.out.replaceable(&written);
        self.here.push(HereDocument { end, literal, indented, announced, program: None, read: false });
        Ok(())
    }

    /// The bodies that begin with this line, in their order.
    pub(super) fn here_documents(&mut self) -> Read<Found> {
        let mut found = None;
        for place in 0..self.here.len() {
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
