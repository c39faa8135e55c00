//! Variables of the script that have values in them.

use super::command::Command;
use super::lexer::{Lexer, Read, Stop};
use super::words::{VALUE, Word};

impl Lexer<'_> {
    /// Copies the letters of a name.
    pub(super) fn name(&mut self) -> String {
        let name = self.name_ahead(0);
        self.copy(name.len());
        name
    }

    pub(super) fn name_ahead(&self, from: usize) -> String {
        let signs = (from..).map_while(|ahead| self.peek_char(ahead));
        signs.take_while(|sign| *sign == '_' || sign.is_ascii_alphanumeric()).collect()
    }

    pub(super) fn assign(&mut self, word: &Word) -> Read<()> {
        let Some((name, index)) = word.assigned() else { return Ok(()) };
        let Some(part) = word.value else { return Ok(()) };
        if index.contains(VALUE) {
            return self.refuse_index(part);
        }
        self.hold(name, part)
    }

    /// Notes that a variable of the script has a value in it.
    pub(super) fn hold(&mut self, name: &str, part: usize) -> Read<()> {
        if self.integers.contains(name) {
            return Err(self.evaluated(name, part));
        }
        self.assigned.insert(name.to_owned(), part);
        Ok(())
    }

    pub(super) fn refuse_index<T>(&self, part: usize) -> Read<T> {
        self.refuse(part, "in an index, which is evaluated", "use a number: `i=$(( {{ x }} ))`")
    }

    /// The variable must be a number, because arithmetic evaluates it.
    pub(super) fn evaluated(&self, name: &str, part: usize) -> Stop {
        let place = format!("in `{name}`, which arithmetic evaluates");
        let hint = format!("make it a number first: `{name}=$(( {{{{ x }}}} ))`");
        Stop::Number { name: name.to_owned(), refusal: Box::new(self.refusal(part, place, hint)) }
    }

    /// Notes the variables that a command declares as numbers.
    pub(super) fn declare_integers(&mut self, command: &Command) -> Read<()> {
        for name in command.integers() {
            if let Some(part) = self.assigned.get(name).copied() {
                return Err(self.evaluated(name, part));
            }
            self.integers.insert(name.to_owned());
        }
        Ok(())
    }
}
