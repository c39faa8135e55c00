//! Pieces of words: quotes, escapes and backticks.

use super::lexer::{Around, Lexer, Read, Sign};
use super::list::Until;
use super::words::Word;
use crate::programs::written::Part;

impl Lexer<'_> {
    /// Reads a piece of a word: quotes, a substitution, or one character.
    pub(super) fn piece(&mut self, word: &mut Word) -> Read<()> {
        match self.peek_char(0) {
            Some('\'') => self.single_quotes(word, "'"),
            Some('"') => self.double_quotes(word),
            Some('\\') => {
                self.escaped(word);
                Ok(())
            }
            Some('$') => self.dollar(word, Around::Nothing),
            Some('`') => self.backticks(word, Around::Nothing),
            Some(sign) => {
                self.copy(1);
                word.push(sign);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A backslash outside of quotes makes the next sign ordinary, which a value is anyway.
    fn escaped(&mut self, word: &mut Word) {
        if let Some(Sign::Part(part)) = self.signs.get(self.at + 1).copied() {
            self.at += 1;
            return self.part(part, Around::Nothing, word);
        }
        let next = self.peek_char(1);
        self.copy(2);
        if let Some(sign) = next.filter(|sign| *sign != '\n') {
            word.push(sign);
            word.quoted = true;
        }
    }

    /// `'…'`, or `$'…'` whose opening is already written.
    pub(super) fn single_quotes(&mut self, word: &mut Word, opening: &str) -> Read<()> {
        (word.begun, word.quoted) = (true, true);
        self.copy(1);
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char('\'') => {
                    self.copy(1);
                    break;
                }
                Sign::Char('\\')
                    if opening == "$'" && matches!(self.signs.get(self.at + 1), Some(Sign::Char(_))) =>
                {
                    self.copy(2);
                    word.push('\\');
                }
                Sign::Char(sign) => {
                    self.copy(1);
                    word.push(sign);
                }
                Sign::Part(part) if matches!(self.parts[part], Part::Value(_)) => {
                    self.out.sign('\'');
                    self.part(part, Around::Nothing, word);
                    self.out.text(opening);
                }
                Sign::Part(part) => self.part(part, Around::Nothing, word),
            }
        }
        Ok(())
    }

    pub(super) fn double_quotes(&mut self, word: &mut Word) -> Read<()> {
        (word.begun, word.quoted) = (true, true);
        self.copy(1);
        while let Some(sign) = self.peek() {
            if sign == Sign::Char('"') {
                self.copy(1);
                break;
            }
            self.in_double_quotes(sign, word)?;
        }
        Ok(())
    }

    /// Reads one character inside of double quotes, or of a here-document.
    pub(super) fn in_double_quotes(&mut self, sign: Sign, word: &mut Word) -> Read<()> {
        match sign {
            Sign::Part(part) => self.part(part, Around::Double, word),
            Sign::Char('\\') => {
                self.copy(1);
                word.push('\\');
                match self.peek() {
                    // The backslash is kept, and must not change the following text.
                    Some(Sign::Part(_)) => self.out.sign('\\'),
                    Some(Sign::Char(sign)) => {
                        self.copy(1);
                        word.push(sign);
                    }
                    None => {}
                }
            }
            Sign::Char('$') => self.dollar(word, Around::Double)?,
            Sign::Char('`') => self.backticks(word, Around::Double)?,
            Sign::Char(sign) => {
                self.copy(1);
                word.push(sign);
            }
        }
        Ok(())
    }

    /// `` `…` `` is written as `$(…)`, which means the same and has no escapes of its own.
    pub(super) fn backticks(&mut self, word: &mut Word, around: Around) -> Read<()> {
        self.at += 1;
        let mut inner = Vec::new();
        while let Some(sign) = self.peek() {
            self.at += 1;
            if sign == Sign::Char('`') {
                break;
            }
            let next = self.peek_char(0);
            let unescapes =
                next.is_some_and(|next| "`\\$".contains(next) || (next == '"' && around == Around::Double));
            if sign == Sign::Char('\\') && unescapes {
                inner.extend(self.peek());
                self.at += 1;
            } else {
                inner.push(sign);
            }
        }
        inner.push(Sign::Char('\n'));
        // The space keeps a subshell inside of it from becoming arithmetic: `$((`.
        self.out.text("$( ");
        let found = self.within(inner, |lexer| lexer.substitution(Until::End))?;
        self.out.sign(')');
        word.add_unknown(found);
        Ok(())
    }
}
