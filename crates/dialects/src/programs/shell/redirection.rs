//! Redirections, up to the word that names their target.

use super::lexer::{Lexer, Read};
use super::list::{List, Until};
use super::words::{UNKNOWN, Word};

/// Effect of the redirection before a word on the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    File,
    Input,
    /// Word after `>&` and `<&`. bash expands a name there twice, the second time with the substitutions in it.
    Descriptor,
}

impl Lexer<'_> {
    pub(super) fn redirection(&mut self, list: &mut List) -> Read<()> {
        if list.word.text.chars().all(|sign| sign.is_ascii_digit()) && !list.word.quoted {
            list.word = Word::default();
        }
        if self.follows("<(") || self.follows(">(") {
            return self.process(list);
        }
        self.end_word(list)?;
        if self.follows("<<<") {
            self.copy(3);
            list.target = Some(Target::Input);
            return Ok(());
        }
        if self.follows("<<") {
            return self.here_document();
        }
        let long = ["&>>", "&>", ">>", ">&", "<&", ">|", "<>"].iter().find(|text| self.follows(text));
        self.copy(long.map_or(1, |text| text.len()));
        let duplicates = matches!(long, Some(&(">&" | "<&")));
        list.target = Some(if duplicates { Target::Descriptor } else { Target::File });
        Ok(())
    }

    /// `<(…)` and `>(…)`
    fn process(&mut self, list: &mut List) -> Read<()> {
        self.copy(2);
        let found = self.substitution(Until::Parenthesis)?;
        list.word.push(UNKNOWN);
        list.word.file = list.word.file.or(found);
        list.found = list.found.or(found);
        Ok(())
    }

    /// The word after a redirection.
    pub(super) fn end_target(&self, target: Target, word: &Word, list: &mut List) -> Read<()> {
        let hint = "write the number of the descriptor, or `> {{ x }} 2>&1` for a file";
        match (target, word.value) {
            (Target::Descriptor, Some(part)) => {
                self.refuse(part, "after `>&`, where bash evaluates it", hint)
            }
            (Target::Input, value) => {
                list.command.input = list.command.input.or(value);
                Ok(())
            }
            (Target::File | Target::Descriptor, _) => Ok(()),
        }
    }
}
