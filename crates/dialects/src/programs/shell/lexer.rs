//! Reads a script as a shell does, up to the words of its commands, and writes it again with references in the place of
//! values.

use super::VARIABLE;
use super::command::Danger;
use super::here::HereDocument;
use super::list::Until;
use super::words::Word;
use crate::programs::Refusal;
use crate::programs::written::{Part, Written};
use std::collections::{BTreeMap, BTreeSet};

/// Substitutions inside of each other. Each level is a call of the lexer; scripts have three or four.
const NESTING_MAX: usize = 60;

/// One sign of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Char(char),
    /// A part that is not text.
    Part(usize),
}

/// Reason why a script cannot be written with references.
#[derive(Debug)]
pub(super) enum Stop {
    Refused(Box<Refusal>),
    /// Arithmetic evaluates this variable: it must be a number.
    Number {
        name: String,
        refusal: Box<Refusal>,
    },
}

pub(super) type Read<T> = Result<T, Stop>;

/// The value that something has in it.
pub(super) type Found = Option<usize>;

/// The quoting around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Around {
    Nothing,
    Double,
}

pub(super) struct Lexer<'p> {
    pub(super) parts: &'p [Part],
    numbers: &'p BTreeSet<String>,
    is_taken: &'p dyn Fn(&str) -> bool,
    pub(super) signs: Vec<Sign>,
    pub(super) at: usize,
    pub(super) out: Written,
    pub(super) here: Vec<HereDocument>,
    /// Here-documents from here on belong to the substitution that is being read.
    pub(super) here_floor: usize,
    /// Names of variables, and expressions.
    values: Vec<(String, String)>,
    counted: usize,
    /// Variables of the script that values were assigned to.
    pub(super) assigned: BTreeMap<String, usize>,
    /// Variables that the script declares as integers; values assigned to them are evaluated.
    pub(super) integers: BTreeSet<String>,
    nesting: usize,
}

impl<'p> Lexer<'p> {
    pub(super) fn new(
        parts: &'p [Part],
        numbers: &'p BTreeSet<String>,
        is_taken: &'p dyn Fn(&str) -> bool,
    ) -> Lexer<'p> {
        let mut signs = Vec::new();
        for (place, part) in parts.iter().enumerate() {
            match part {
                Part::Text(text) => signs.extend(text.chars().map(Sign::Char)),
                Part::Choice { .. } | Part::Value(_) => signs.push(Sign::Part(place)),
            }
        }
        Lexer {
            parts,
            numbers,
            is_taken,
            signs,
            at: 0,
            out: Written::default(),
            here: Vec::new(),
            here_floor: 0,
            values: Vec::new(),
            counted: 0,
            assigned: BTreeMap::new(),
            integers: BTreeSet::new(),
            nesting: 0,
        }
    }

    pub(super) fn script(mut self) -> Read<(Written, Vec<(String, String)>)> {
        self.commands(Until::End)?;
        Ok((self.out, self.values))
    }

    pub(super) fn peek(&self) -> Option<Sign> {
        self.signs.get(self.at).copied()
    }

    pub(super) fn peek_char(&self, ahead: usize) -> Option<char> {
        match self.signs.get(self.at + ahead) {
            Some(Sign::Char(sign)) => Some(*sign),
            Some(Sign::Part(_)) | None => None,
        }
    }

    pub(super) fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(ahead, sign)| self.peek_char(ahead) == Some(sign))
    }

    /// Writes the next characters as they are.
    pub(super) fn copy(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(sign) = self.peek_char(0) {
                self.out.sign(sign);
            }
            self.at += 1;
        }
    }

    /// Reads other signs, then continues with these.
    pub(super) fn within<T>(&mut self, signs: Vec<Sign>, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        let (outer, at) = (std::mem::replace(&mut self.signs, signs), std::mem::take(&mut self.at));
        let read = read(self);
        (self.signs, self.at) = (outer, at);
        read
    }

    pub(super) fn refuse<T>(
        &self,
        part: usize,
        place: impl Into<String>,
        hint: impl Into<String>,
    ) -> Read<T> {
        Err(Stop::Refused(Box::new(self.refusal(part, place, hint))))
    }

    /// Refuses the script because of its text, for all values.
    pub(super) fn refuse_any<T>(&self, place: String) -> Read<T> {
        let first = self.parts.iter().position(|part| matches!(part, Part::Value(_))).unwrap_or(0);
        self.refuse(first, place, "put the script into a file and pass the value as an argument")
    }

    pub(super) fn refusal(&self, part: usize, place: impl Into<String>, hint: impl Into<String>) -> Refusal {
        let source = match &self.parts[part] {
            Part::Choice { source, .. } | Part::Value(source) | Part::Text(source) => source,
        };
        Refusal::new(source, place, hint)
    }

    pub(super) fn danger(&self, danger: Danger) -> Stop {
        Stop::Refused(Box::new(self.refusal(danger.part, danger.place, danger.hint)))
    }

    /// Writes a part as one word, or as a piece of one.
    pub(super) fn part(&mut self, part: usize, around: Around, word: &mut Word) {
        self.at += 1;
        let parts = self.parts;
        match &parts[part] {
            Part::Text(_) => {}
            Part::Choice { source, word: text } => {
                self.out.expression(source);
                text.chars().for_each(|sign| word.push(sign));
            }
            Part::Value(source) => {
                let number = word.assigned().is_some_and(|(name, _)| self.numbers.contains(name));
                let name = match number {
                    true => self.variable(&format!("({source}) | int")),
                    false => self.variable(source),
                };
                match around {
                    Around::Nothing => self.out.text(&format!("\"${{{name}-}}\"")),
                    Around::Double => self.out.text(&format!("${{{name}-}}")),
                }
                match number {
                    true => word.add_unknown(None),
                    false => word.add_value(part),
                }
            }
        }
    }

    pub(super) fn variable(&mut self, source: &str) -> String {
        loop {
            self.counted += 1;
            let name = format!("{VARIABLE}{}", self.counted);
            if !(self.is_taken)(&name) {
                self.values.push((name.clone(), source.to_owned()));
                return name;
            }
        }
    }

    /// Enters one level of nesting; each is a nested call.
    pub(super) fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.nesting >= NESTING_MAX {
            return self.refuse_any(format!("in a script that is nested over {NESTING_MAX} deep"));
        }
        self.nesting += 1;
        let read = read(self)?;
        self.nesting -= 1;
        Ok(read)
    }
}
