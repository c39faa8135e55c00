//! Arithmetic, in which a value is a number.

use super::lexer::{Around, Lexer, Read, Sign};
use super::words::Word;
use crate::programs::written::Part;

impl Lexer<'_> {
    /// Reads to the end of the expression. A value must be a number there, or the step fails; variables with values
    /// must be numbers, too.
    pub(super) fn arithmetic(&mut self, end: &str) -> Read<()> {
        let (open, close) = if end == "))" { ('(', ')') } else { ('[', ']') };
        let mut depth = 0usize;
        while let Some(sign) = self.peek() {
            if depth == 0 && self.follows(end) {
                self.copy(end.len());
                return Ok(());
            }
            match sign {
                Sign::Part(part) => self.number(part),
                Sign::Char('$') if self.peek_char(1).is_some_and(|next| "({".contains(next)) => {
                    self.evaluated_word(|lexer, word| lexer.dollar(word, Around::Double))?;
                }
                Sign::Char('`') => {
                    self.evaluated_word(|lexer, word| lexer.backticks(word, Around::Double))?
                }
                Sign::Char(sign) if sign == '_' || sign.is_ascii_alphabetic() => self.evaluated_name()?,
                Sign::Char(sign) => {
                    self.copy(1);
                    depth += usize::from(sign == open);
                    depth = depth.saturating_sub(usize::from(sign == close));
                }
            }
        }
        Ok(())
    }

    /// Reads the name of a variable that arithmetic evaluates.
    fn evaluated_name(&mut self) -> Read<()> {
        let name = self.name();
        match self.assigned.get(&name).copied() {
            Some(part) => Err(self.evaluated(&name, part)),
            None => Ok(()),
        }
    }

    /// Reads `${NAME}` or the output of commands in arithmetic, whose result the shell evaluates.
    fn evaluated_word(&mut self, read: impl FnOnce(&mut Self, &mut Word) -> Read<()>) -> Read<()> {
        let name = if self.follows("${") { self.name_ahead(2) } else { String::new() };
        if let Some(part) = self.assigned.get(&name).copied() {
            return Err(self.evaluated(&name, part));
        }
        let mut word = Word::default();
        read(self, &mut word)?;
        let hint = "make it a number first: `n=$(( {{ x }} ))`";
        word.value.map_or(Ok(()), |part| self.refuse(part, "in what arithmetic evaluates", hint))
    }

    fn number(&mut self, part: usize) {
        self.at += 1;
        let parts = self.parts;
        match &parts[part] {
            Part::Text(_) => {}
            Part::Choice { source, .. } => self.out.expression(source),
            Part::Value(source) => {
                let name = self.variable(&format!("({source}) | int"));
                self.out.text(&format!("(${{{name}-0}})"));
            }
        }
    }
}
