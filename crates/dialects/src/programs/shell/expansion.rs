//! Expansions after a `$`: variables, substitutions, and `${ }` with its forms.

use super::lexer::{Around, Lexer, Read, Sign};
use super::list::Until;
use super::words::Word;
use crate::programs::written::Part;

impl Lexer<'_> {
    pub(super) fn dollar(&mut self, word: &mut Word, around: Around) -> Read<()> {
        word.begun = true;
        if let Some(Sign::Part(part)) = self.signs.get(self.at + 1).copied() {
            let hint = "a value cannot be the name of a variable; leave the `$` out";
            return self.refuse(part, "right after `$`", hint);
        }
        match self.peek_char(1) {
            Some('(') if self.follows("$((") => {
                self.copy(3);
                word.add_unknown(None);
                self.deeper(|lexer| lexer.arithmetic("))"))
            }
            Some('[') => {
                self.copy(2);
                word.add_unknown(None);
                self.deeper(|lexer| lexer.arithmetic("]"))
            }
            Some('(') => {
                self.copy(2);
                let found = self.substitution(Until::Parenthesis)?;
                word.add_unknown(found);
                Ok(())
            }
            Some('{') => self.deeper(|lexer| lexer.parameter(word, around)),
            Some('\'') if around == Around::Nothing => {
                self.copy(1);
                self.single_quotes(word, "$'")
            }
            Some('"') if around == Around::Nothing => {
                self.copy(1);
                self.double_quotes(word)
            }
            _ => {
                self.plain_variable(word);
                Ok(())
            }
        }
    }

    /// `$NAME`, `$?` and the like, or a `$` that is a sign like others.
    fn plain_variable(&mut self, word: &mut Word) {
        self.copy(1);
        let name = self.name();
        let special = self.peek_char(0).filter(|sign| name.is_empty() && "@*#?$!-".contains(*sign));
        self.copy(usize::from(special.is_some()));
        match name.is_empty() && special.is_none() {
            true => word.push('$'),
            false => word.add_unknown(self.assigned.get(&name).copied()),
        }
    }

    /// `${NAME}`, `${NAME:-word}` and others.
    fn parameter(&mut self, word: &mut Word, around: Around) -> Read<()> {
        self.parameter_name(word)?;
        let says = |text: &[&str]| text.iter().any(|text| self.follows(text));
        let takes_word = says(&["-", "=", "+", "?", ":-", ":=", ":+", ":?"]);
        let takes_numbers = !takes_word && says(&[":"]);
        if takes_numbers {
            return self.arithmetic("}");
        }
        self.parameter_word(word, around, takes_word)
    }

    /// Reads the name in `${NAME`, up to the operator after it.
    fn parameter_name(&mut self, word: &mut Word) -> Read<()> {
        self.copy(2);
        let indirect = self.peek_char(0) == Some('!');
        if let Some('!' | '#') = self.peek_char(0) {
            self.copy(1);
        }
        let name = self.name();
        let of_name = self.assigned.get(&name).copied();
        if let (true, Some(part)) = (indirect, of_name) {
            return self.refuse(part, "where the name of a variable is", "write the name");
        }
        if let (true, Some(part)) = (self.follows("@P"), of_name) {
            return self.refuse(part, "in what `@P` evaluates", "leave the `@P` out");
        }
        word.add_unknown(of_name);
        if self.peek_char(0) == Some('[') {
            self.copy(1);
            self.arithmetic("]")?;
        }
        Ok(())
    }

    /// The rest of `${ }`: a word, or a pattern, in which no value can be.
    fn parameter_word(&mut self, word: &mut Word, around: Around, takes_value: bool) -> Read<()> {
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char('}') => {
                    self.copy(1);
                    break;
                }
                Sign::Part(part) if !takes_value && matches!(self.parts[part], Part::Value(_)) => {
                    let hint = "keep it in a variable and use that: `\"${name#\"$value\"}\"`";
                    return self.refuse(part, "inside of `${ }`, where it would be a pattern", hint);
                }
                Sign::Part(part) => self.part(part, around, word),
                Sign::Char('\'') if around == Around::Double => {
                    self.copy(1);
                    word.push('\'');
                }
                Sign::Char('$') => self.dollar(word, around)?,
                Sign::Char('`') => self.backticks(word, around)?,
                Sign::Char(_) => self.piece(word)?,
            }
        }
        Ok(())
    }
}
