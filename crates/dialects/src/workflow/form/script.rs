//! Where in a shell script a text ends. A value is put in as a variable, never as text, so a place that is read wrongly
//! gives a wrong word and no other program.

use std::iter::Peekable;
use std::str::Chars;

/// A part of a script that is read by rules of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// `( … )` and `$( … )`: commands, as outside.
    Group,
    Comment,
    SingleQuotes,
    /// `$'…'`
    EscapedQuotes,
    DoubleQuotes,
    Backticks,
    /// `${…}`
    Parameter,
    /// `(( … ))`
    Arithmetic,
    /// `[[ … ]]`
    Test,
    /// Which lines are the document is not followed up.
    HereDocument,
}

#[derive(Debug, Default)]
pub(super) struct Script {
    inside: Vec<Inside>,
    escaped: bool,
    last: Option<char>,
    words: Words,
}

impl Script {
    pub(super) fn text(&mut self, text: &str) {
        let mut signs = text.chars().peekable();
        while let Some(sign) = signs.next() {
            if !std::mem::take(&mut self.escaped) {
                self.sign(sign, &mut signs);
            }
            self.last = Some(sign);
            self.words.sign(sign);
        }
    }

    /// A value has been put in.
    pub(super) fn value(&mut self) {
        self.last = Some('_');
        self.words.sign('_');
    }

    /// Why a value has no meaning here that is sure.
    pub(super) fn objection(&self) -> Option<&'static str> {
        if self.escaped || self.last == Some('$') {
            return Some("right after a sign that changes what follows");
        }
        let around = self.inside.iter().find_map(|inside| match inside {
            Inside::Group | Inside::Comment => None,
            Inside::SingleQuotes | Inside::EscapedQuotes | Inside::DoubleQuotes => Some("inside quotes"),
            Inside::Backticks => Some("inside backticks"),
            Inside::Parameter => Some("inside `${ }`"),
            Inside::Arithmetic => Some("inside arithmetic"),
            Inside::Test => Some("inside `[[ ]]`"),
            Inside::HereDocument => Some("after `<<`"),
        });
        around.or_else(|| self.words.make_programs().then_some("where a shell takes it for a script"))
    }

    fn sign(&mut self, sign: char, rest: &mut Peekable<Chars<'_>>) {
        match self.inside.last() {
            Some(Inside::HereDocument) => {}
            Some(Inside::Comment) => self.leave_at(sign == '\n'),
            Some(Inside::SingleQuotes) => self.leave_at(sign == '\''),
            Some(Inside::EscapedQuotes) => self.quoted(sign, '\''),
            Some(Inside::DoubleQuotes) => self.quoted(sign, '"'),
            Some(Inside::Backticks) => self.quoted(sign, '`'),
            Some(Inside::Parameter) => self.quoted(sign, '}'),
            Some(Inside::Arithmetic) => self.leave_at(sign == ')' && self.last == Some(')')),
            Some(Inside::Test) => self.leave_at(sign == ']' && self.last == Some(']')),
            Some(Inside::Group) | None => self.command(sign, rest),
        }
    }

    fn leave_at(&mut self, over: bool) {
        if over {
            self.inside.pop();
        }
    }

    fn quoted(&mut self, sign: char, end: char) {
        self.escaped = sign == '\\';
        self.leave_at(sign == end);
    }

    fn command(&mut self, sign: char, rest: &mut Peekable<Chars<'_>>) {
        let begins = self.last.is_none_or(|last| last.is_whitespace() || ";&|(".contains(last));
        let entered = match (sign, rest.peek()) {
            ('\\', _) => {
                self.escaped = true;
                return;
            }
            ('\'', _) if self.last == Some('$') => Inside::EscapedQuotes,
            ('\'', _) => Inside::SingleQuotes,
            ('"', _) => Inside::DoubleQuotes,
            ('`', _) => Inside::Backticks,
            ('#', _) if begins => Inside::Comment,
            ('{', _) if self.last == Some('$') => Inside::Parameter,
            ('(', _) if self.last == Some('(') => {
                self.inside.pop();
                Inside::Arithmetic
            }
            ('(', _) => Inside::Group,
            ('[', Some('[')) if begins => Inside::Test,
            ('<', Some(next)) if self.last == Some('<') && *next != '<' => Inside::HereDocument,
            (')', _) => return self.leave_at(true),
            _ => return,
        };
        self.inside.push(entered);
    }
}

/// The words before a place, as far as they say that the next one is a script.
#[derive(Debug, Default)]
struct Words {
    last: String,
    /// After `eval` all that follows.
    evaluates: bool,
    /// The command is a shell, whose script comes after `-c`.
    interprets: bool,
    script_next: bool,
}

/// Programs that take a script after `-c`.
const INTERPRETERS: [&str; 9] = ["sh", "bash", "dash", "ash", "ksh", "zsh", "python", "python3", "su"];

impl Words {
    fn sign(&mut self, sign: char) {
        let ends_command = ";&|()\n".contains(sign);
        if !sign.is_whitespace() && !ends_command {
            return self.last.push(sign);
        }
        let word = std::mem::take(&mut self.last);
        if !word.is_empty() {
            self.evaluates |= word == "eval";
            self.script_next = self.interprets && word.starts_with('-') && word.ends_with('c');
            self.interprets |= interpreter(&word);
        }
        if ends_command {
            (self.interprets, self.script_next) = (false, false);
        }
    }

    fn make_programs(&self) -> bool {
        self.evaluates || (self.script_next && self.last.is_empty())
    }
}

fn interpreter(word: &str) -> bool {
    INTERPRETERS.contains(&word.rsplit('/').next().unwrap_or(word))
}

/// A shell whose quotes are read here.
pub(super) fn is_known(shell: &str) -> bool {
    INTERPRETERS[..6].contains(&shell.trim().rsplit('/').next().unwrap_or(shell))
}
