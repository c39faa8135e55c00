//! Words of the shell's own grammar: blocks, cases, functions, arrays and `[[ ]]`.

use super::command::{Command, check_test};
use super::lexer::{Around, Lexer, Read, Sign};
use super::list::{List, Until};
use super::words::{Word, has_value_in_index};

const OPENERS: [&str; 4] = ["{", "if", "while", "until"];
const CLOSERS: [&str; 4] = ["}", "fi", "done", "esac"];
/// Words after which a command begins.
const BETWEEN: [&str; 6] = ["then", "else", "elif", "do", "!", "coproc"];

impl Lexer<'_> {
    pub(super) fn end_word(&mut self, list: &mut List) -> Read<()> {
        if !list.word.begun {
            return Ok(());
        }
        let word = std::mem::take(&mut list.word);
        list.after_pipe = false;
        if let Some(target) = list.target.take() {
            return self.end_target(target, &word, list);
        }
        if list.in_pattern {
            if word.is_bare("esac") {
                list.in_pattern = false;
                self.close(list, true);
            }
            return Ok(());
        }
        self.assign(&word)?;
        let begins = list.command.words.iter().all(|word| word.assigned().is_some());
        if begins && !word.quoted && self.reserved(&word, list)? {
            return Ok(());
        }
        list.found = list.found.or(word.value);
        list.command.words.push(word);
        self.after_word(list)
    }

    /// Words of the shell's own grammar, where a command could begin.
    fn reserved(&mut self, word: &Word, list: &mut List) -> Read<bool> {
        let text = word.text.as_str();
        if text == "[[" {
            self.test()?;
            return Ok(true);
        }
        if OPENERS.contains(&text) {
            list.blocks.push(list.found.take());
            return Ok(true);
        }
        if CLOSERS.contains(&text) {
            self.close(list, text == "esac");
            return Ok(true);
        }
        if ["for", "select", "case"].contains(&text) {
            list.blocks.push(list.found.take());
        }
        Ok(BETWEEN.contains(&text))
    }

    fn close(&mut self, list: &mut List, is_case: bool) {
        let inner = list.found;
        list.found = list.blocks.pop().flatten().or(inner);
        list.piped = list.piped.or(inner);
        if is_case {
            list.cases = list.cases.saturating_sub(1);
        }
    }

    /// `case WORD in` is followed by patterns, `function NAME` by commands, `for NAME in …` assigns.
    fn after_word(&mut self, list: &mut List) -> Read<()> {
        let words = &list.command.words;
        match (&words[0], words.last()) {
            (first, Some(last)) if first.is_bare("case") && words.len() == 3 && last.is_bare("in") => {
                list.command = Command::default();
                list.cases += 1;
                list.in_pattern = true;
            }
            (first, _) if first.is_bare("function") && words.len() == 2 => list.command = Command::default(),
            (first, Some(last)) if (first.is_bare("for") || first.is_bare("select")) && words.len() > 3 => {
                if let Some(part) = last.value {
                    return self.hold(&words[1].text, part);
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn parenthesis(&mut self, list: &mut List) -> Read<()> {
        let arithmetic = self.follows("((") && !list.word.begun;
        let in_for = matches!(&list.command.words[..], [word] if word.is("for"));
        match () {
            () if arithmetic && (list.command.words.is_empty() || in_for) => {
                self.copy(2);
                list.word.begun = true;
                self.arithmetic("))")
            }
            () if list.in_pattern => {
                self.copy(1);
                Ok(())
            }
            () if list.word.begun && self.follows("()") => {
                self.begin_function(list);
                Ok(())
            }
            () if list.word.begun => self.elements(&mut list.word),
            () => self.subshell(list),
        }
    }

    /// `name()`
    fn begin_function(&mut self, list: &mut List) {
        self.copy(2);
        list.word = Word::default();
        list.command.words.clear();
    }

    fn subshell(&mut self, list: &mut List) -> Read<()> {
        self.copy(1);
        let found = self.commands(Until::Parenthesis)?;
        list.piped = list.piped.or(found);
        list.found = list.found.or(found);
        Ok(())
    }

    /// `(…)` after a word: elements of an array, whose indexes are evaluated.
    fn elements(&mut self, word: &mut Word) -> Read<()> {
        self.copy(1);
        let before = word.text.len();
        self.array(word)?;
        match word.value {
            Some(part) if has_value_in_index(&word.text[before..]) => self.refuse_index(part),
            _ => Ok(()),
        }
    }

    /// `name=(…)`, and patterns such as `@(…)`.
    fn array(&mut self, word: &mut Word) -> Read<()> {
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char(')') => {
                    self.copy(1);
                    return Ok(());
                }
                Sign::Char('#') if word.text.ends_with(char::is_whitespace) => self.comment(),
                Sign::Char('(') => {
                    self.copy(1);
                    self.deeper(|lexer| lexer.array(word))?;
                }
                Sign::Char(sign) if "<>;&|".contains(sign) && self.ends_array(word) => {
                    return self
                        .refuse_any(format!("in a script with `{sign}` in an array, which no shell reads"));
                }
                Sign::Char(sign) if sign.is_whitespace() || "<>;&|".contains(sign) => {
                    self.copy(1);
                    word.push(sign);
                }
                Sign::Char(_) => self.piece(word)?,
                Sign::Part(part) => self.part(part, Around::Nothing, word),
            }
        }
        Ok(())
    }

    /// Returns whether an operator is a mistake here. bash continues after it with the next line, which would be read
    /// as elements here.
    fn ends_array(&self, word: &Word) -> bool {
        word.assigned().is_some() && self.peek_char(1) != Some('(')
    }

    /// `[[ … ]]`
    fn test(&mut self) -> Read<()> {
        let (mut words, mut word) = (Vec::new(), Word::default());
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char(sign) if sign.is_whitespace() => {
                    self.copy(1);
                    let word = std::mem::take(&mut word);
                    if word.is_bare("]]") {
                        break;
                    }
                    words.extend(word.begun.then_some(word));
                }
                Sign::Char(';') if word.is_bare("]]") => break,
                Sign::Char('(' | ')' | '<' | '>' | '|' | '&' | ';') => self.copy(1),
                Sign::Char(_) => self.piece(&mut word)?,
                Sign::Part(part) => self.part(part, Around::Nothing, &mut word),
            }
        }
        check_test(&words).map_err(|danger| self.danger(danger))
    }
}
