//! Lists of commands: pipelines, here-documents at the end of a line, what a command prints.

use super::command::Command;
use super::lexer::{Around, Found, Lexer, Read, Sign};
use super::redirection::Target;
use super::words::Word;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Parenthesis,
}

/// The state of a list of commands.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) command: Command,
    pub(super) word: Word,
    pub(super) target: Option<Target>,
    /// A value in what the commands of the pipeline print.
    pub(super) piped: Found,
    /// Here-documents from here on belong to the pipeline.
    here_from: usize,
    pub(super) found: Found,
    /// Results before each open `{`, `if`, `do` and `case`.
    pub(super) blocks: Vec<Found>,
    pub(super) cases: usize,
    pub(super) in_pattern: bool,
    /// The next command reads what the one before prints, even if it is on another line.
    pub(super) after_pipe: bool,
}

impl Lexer<'_> {
    /// Reads commands; returns a value that they may print.
    pub(super) fn commands(&mut self, until: Until) -> Read<Found> {
        self.deeper(|lexer| lexer.list(until))
    }

    /// Reads the commands of a substitution. A here-document that was announced outside of it does not begin in it.
    pub(super) fn substitution(&mut self, until: Until) -> Read<Found> {
        let outer = std::mem::replace(&mut self.here_floor, self.here.len());
        let found = self.commands(until)?;
        self.here_floor = outer;
        Ok(found)
    }

    fn list(&mut self, until: Until) -> Read<Found> {
        let mut list = List { here_from: self.here.len(), ..List::default() };
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char(')') if until == Until::Parenthesis && !list.in_pattern => {
                    self.end_command(&mut list)?;
                    self.copy(1);
                    break;
                }
                Sign::Char(sign) => self.sign(sign, &mut list)?,
                Sign::Part(part) => self.part(part, Around::Nothing, &mut list.word),
            }
        }
        self.end_command(&mut list)?;
        Ok(list.found)
    }

    fn sign(&mut self, sign: char, list: &mut List) -> Read<()> {
        match sign {
            ' ' | '\t' | '\r' => {
                self.copy(1);
                self.end_word(list)
            }
            '\n' => self.newline(list),
            '#' if !list.word.begun => {
                self.comment();
                Ok(())
            }
            ';' => self.semicolon(list),
            '&' if self.follows("&>") => self.redirection(list),
            '&' => self.separator(list, if self.follows("&&") { 2 } else { 1 }),
            '|' if self.follows("||") => self.separator(list, 2),
            '|' => self.pipe(list),
            '(' => self.parenthesis(list),
            ')' => {
                self.separator(list, 1)?;
                list.in_pattern = false;
                Ok(())
            }
            '<' | '>' => self.redirection(list),
            _ => self.piece(&mut list.word),
        }
    }

    fn newline(&mut self, list: &mut List) -> Read<()> {
        let goes_on = list.after_pipe && !list.word.begun;
        if !goes_on {
            self.end_pipeline(list)?;
        }
        self.copy(1);
        let found = self.here_documents()?;
        list.found = list.found.or(found);
        list.piped = list.piped.or(found.filter(|_| goes_on));
        list.here_from = self.here.len();
        Ok(())
    }

    fn semicolon(&mut self, list: &mut List) -> Read<()> {
        let ends_case = self.follows(";;") || self.follows(";&");
        self.separator(list, if ends_case { 2 } else { 1 })?;
        list.in_pattern = ends_case && list.cases > 0;
        Ok(())
    }

    /// Signs between two pipelines.
    fn separator(&mut self, list: &mut List, length: usize) -> Read<()> {
        self.end_pipeline(list)?;
        self.copy(length);
        Ok(())
    }

    fn pipe(&mut self, list: &mut List) -> Read<()> {
        self.end_command(list)?;
        self.copy(if self.follows("|&") { 2 } else { 1 });
        list.after_pipe = true;
        Ok(())
    }

    pub(super) fn comment(&mut self) {
        while let Some(sign) = self.peek().filter(|sign| *sign != Sign::Char('\n')) {
            match sign {
                Sign::Char(_) => self.copy(1),
                Sign::Part(_) => self.at += 1,
            }
        }
    }

    fn end_pipeline(&mut self, list: &mut List) -> Read<()> {
        self.end_command(list)?;
        list.piped = None;
        list.here_from = self.here.len();
        Ok(())
    }

    fn end_command(&mut self, list: &mut List) -> Read<()> {
        self.end_word(list)?;
        list.target = None;
        let command = std::mem::take(&mut list.command);
        let of_grammar =
            command.words.first().is_some_and(|word| word.is("for") || word.is("select") || word.is("case"));
        if !of_grammar {
            command.check(list.piped).map_err(|danger| self.danger(danger))?;
            self.declare_integers(&command)?;
            if command.reads_program() {
                let name = command.program().map(|at| command.words[at].base_name().to_owned());
                self.here[list.here_from..].iter_mut().for_each(|here| here.program.clone_from(&name));
            }
        }
        let printed = command.words.iter().find_map(|word| word.value.or(word.file)).or(command.input);
        list.piped = list.piped.or(printed);
        list.found = list.found.or(printed);
        Ok(())
    }
}
