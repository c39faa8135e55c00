//! Reads a script as a shell does, up to the words of its commands, and writes it again with references in the place of
//! values.

use super::VARIABLE;
use super::command::{Command, Danger, check_test};
use super::here::HereDocument;
use super::words::{UNKNOWN, VALUE, Word, has_value_in_index};
use crate::programs::Refusal;
use crate::programs::written::{Part, Written};
use std::collections::{BTreeMap, BTreeSet};

/// Substitutions inside of each other. Each level is a call of the lexer; scripts have three or four.
const NESTING_MAX: usize = 60;

/// One sign of the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Char(char),
    /// A part that is no text.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    End,
    Parenthesis,
}

pub(super) struct Lexer<'p> {
    parts: &'p [Part],
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
    assigned: BTreeMap<String, usize>,
    /// Variables that the script declares as numbers: what is assigned to them is evaluated.
    integers: BTreeSet<String>,
    nesting: usize,
}

/// What the redirection before a word makes of the word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    File,
    Input,
    /// After `>&` and `<&`. bash expands a name there twice, the second time with the substitutions in it.
    Descriptor,
}

/// The state of a list of commands.
#[derive(Debug, Default)]
struct List {
    command: Command,
    word: Word,
    target: Option<Target>,
    /// A value in what the commands of the pipeline print.
    piped: Found,
    /// Here-documents from here on belong to the pipeline.
    here_from: usize,
    found: Found,
    /// What was found before each `{`, `if`, `do` and `case` that is open.
    blocks: Vec<Found>,
    cases: usize,
    in_pattern: bool,
    /// The next command reads what the one before prints, even if it is on another line.
    after_pipe: bool,
}

const OPENERS: [&str; 4] = ["{", "if", "while", "until"];
const CLOSERS: [&str; 4] = ["}", "fi", "done", "esac"];
/// Words after which a command begins.
const BETWEEN: [&str; 6] = ["then", "else", "elif", "do", "!", "coproc"];

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

    /// Reads other signs, then goes on with these.
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

    fn refusal(&self, part: usize, place: impl Into<String>, hint: impl Into<String>) -> Refusal {
        let source = match &self.parts[part] {
            Part::Choice { source, .. } | Part::Value(source) | Part::Text(source) => source,
        };
        Refusal::new(source, place, hint)
    }

    fn danger(&self, danger: Danger) -> Stop {
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

    fn variable(&mut self, source: &str) -> String {
        loop {
            self.counted += 1;
            let name = format!("{VARIABLE}{}", self.counted);
            if !(self.is_taken)(&name) {
                self.values.push((name.clone(), source.to_owned()));
                return name;
            }
        }
    }

    /// One level deeper; each is a call inside of a call.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.nesting >= NESTING_MAX {
            let first = self.parts.iter().position(|part| matches!(part, Part::Value(_))).unwrap_or(0);
            let hint = "put the script into a file and pass the value as an argument";
            return self.refuse(first, format!("in a script that is nested over {NESTING_MAX} deep"), hint);
        }
        self.nesting += 1;
        let read = read(self)?;
        self.nesting -= 1;
        Ok(read)
    }

    /// Reads commands; returns a value that they may print.
    pub(super) fn commands(&mut self, until: Until) -> Read<Found> {
        self.deeper(|lexer| lexer.list(until))
    }

    /// Reads the commands of a substitution. A here-document that was announced outside of it does not begin in it.
    fn substitution(&mut self, until: Until) -> Read<Found> {
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
            '\n' => {
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
            '#' if !list.word.begun => {
                self.comment();
                Ok(())
            }
            ';' => {
                self.end_pipeline(list)?;
                let ends_case = self.follows(";;") || self.follows(";&");
                self.copy(if ends_case { 2 } else { 1 });
                list.in_pattern = ends_case && list.cases > 0;
                Ok(())
            }
            '&' if self.follows("&>") => self.redirection(list),
            '&' => {
                self.end_pipeline(list)?;
                self.copy(if self.follows("&&") { 2 } else { 1 });
                Ok(())
            }
            '|' if self.follows("||") => {
                self.end_pipeline(list)?;
                self.copy(2);
                Ok(())
            }
            '|' => {
                self.end_command(list)?;
                self.copy(if self.follows("|&") { 2 } else { 1 });
                list.after_pipe = true;
                Ok(())
            }
            '(' => self.parenthesis(list),
            ')' => {
                self.end_pipeline(list)?;
                self.copy(1);
                list.in_pattern = false;
                Ok(())
            }
            '<' | '>' => self.redirection(list),
            _ => self.piece(&mut list.word),
        }
    }

    fn comment(&mut self) {
        while let Some(sign) = self.peek().filter(|sign| *sign != Sign::Char('\n')) {
            match sign {
                Sign::Char(_) => self.copy(1),
                Sign::Part(_) => self.at += 1,
            }
        }
    }

    fn parenthesis(&mut self, list: &mut List) -> Read<()> {
        let arithmetic = self.follows("((") && !list.word.begun;
        let in_for = matches!(&list.command.words[..], [word] if word.is("for"));
        if arithmetic && (list.command.words.is_empty() || in_for) {
            self.copy(2);
            list.word.begun = true;
            return self.arithmetic("))");
        }
        if list.in_pattern {
            self.copy(1);
            return Ok(());
        }
        // `name()` begins a function.
        if list.word.begun && self.follows("()") {
            self.copy(2);
            list.word = Word::default();
            list.command.words.clear();
            return Ok(());
        }
        if list.word.begun {
            self.copy(1);
            let before = list.word.text.len();
            self.array(&mut list.word)?;
            return match list.word.value {
                Some(part) if has_value_in_index(&list.word.text[before..]) => self.refuse_index(part),
                _ => Ok(()),
            };
        }
        self.copy(1);
        let found = self.commands(Until::Parenthesis)?;
        list.piped = list.piped.or(found);
        list.found = list.found.or(found);
        Ok(())
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

    fn redirection(&mut self, list: &mut List) -> Read<()> {
        if list.word.text.chars().all(|sign| sign.is_ascii_digit()) && !list.word.quoted {
            list.word = Word::default();
        }
        if self.follows("<(") || self.follows(">(") {
            self.copy(2);
            let found = self.substitution(Until::Parenthesis)?;
            list.word.push(UNKNOWN);
            list.word.file = list.word.file.or(found);
            list.found = list.found.or(found);
            return Ok(());
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

    fn end_word(&mut self, list: &mut List) -> Read<()> {
        if !list.word.begun {
            return Ok(());
        }
        let word = std::mem::take(&mut list.word);
        list.after_pipe = false;
        match list.target.take() {
            Some(Target::File) => return Ok(()),
            Some(Target::Descriptor) => return self.check_descriptor(&word),
            Some(Target::Input) => {
                list.command.input = list.command.input.or(word.value);
                return Ok(());
            }
            None => {}
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

    fn check_descriptor(&self, word: &Word) -> Read<()> {
        let hint = "write the number of the descriptor, or `> {{ x }} 2>&1` for a file";
        word.value.map_or(Ok(()), |part| self.refuse(part, "after `>&`, where bash evaluates it", hint))
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

    fn assign(&mut self, word: &Word) -> Read<()> {
        let Some((name, index)) = word.assigned() else { return Ok(()) };
        let Some(part) = word.value else { return Ok(()) };
        if index.contains(VALUE) {
            return self.refuse_index(part);
        }
        self.hold(name, part)
    }

    /// Notes that a variable of the script has a value in it.
    fn hold(&mut self, name: &str, part: usize) -> Read<()> {
        if self.integers.contains(name) {
            return Err(self.evaluated(name, part));
        }
        self.assigned.insert(name.to_owned(), part);
        Ok(())
    }

    fn refuse_index<T>(&self, part: usize) -> Read<T> {
        self.refuse(part, "in an index, which is evaluated", "use a number: `i=$(( {{ x }} ))`")
    }

    /// The variable must be a number, because arithmetic evaluates it.
    fn evaluated(&self, name: &str, part: usize) -> Stop {
        let place = format!("in `{name}`, which arithmetic evaluates");
        let hint = format!("make it a number first: `{name}=$(( {{{{ x }}}} ))`");
        Stop::Number { name: name.to_owned(), refusal: Box::new(self.refusal(part, place, hint)) }
    }

    /// Notes the variables that a command declares as numbers.
    fn declare_integers(&mut self, command: &Command) -> Read<()> {
        for name in command.integers() {
            if let Some(part) = self.assigned.get(name).copied() {
                return Err(self.evaluated(name, part));
            }
            self.integers.insert(name.to_owned());
        }
        Ok(())
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

    /// A piece of a word: quotes, a substitution, or one character.
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
    fn single_quotes(&mut self, word: &mut Word, opening: &str) -> Read<()> {
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

    fn double_quotes(&mut self, word: &mut Word) -> Read<()> {
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

    /// One sign inside of double quotes, or of a here-document.
    pub(super) fn in_double_quotes(&mut self, sign: Sign, word: &mut Word) -> Read<()> {
        match sign {
            Sign::Part(part) => self.part(part, Around::Double, word),
            Sign::Char('\\') => {
                self.copy(1);
                word.push('\\');
                match self.peek() {
                    // It stays a backslash, and must not change what follows.
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

    fn dollar(&mut self, word: &mut Word, around: Around) -> Read<()> {
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
                self.copy(1);
                let name = self.name();
                let special = self.peek_char(0).filter(|sign| name.is_empty() && "@*#?$!-".contains(*sign));
                self.copy(usize::from(special.is_some()));
                match name.is_empty() && special.is_none() {
                    true => word.push('$'),
                    false => word.add_unknown(self.assigned.get(&name).copied()),
                }
                Ok(())
            }
        }
    }

    /// Copies the letters of a name.
    fn name(&mut self) -> String {
        let name = self.name_ahead(0);
        self.copy(name.len());
        name
    }

    fn name_ahead(&self, from: usize) -> String {
        let signs = (from..).map_while(|ahead| self.peek_char(ahead));
        signs.take_while(|sign| *sign == '_' || sign.is_ascii_alphanumeric()).collect()
    }

    /// `${NAME}`, `${NAME:-word}` and others.
    fn parameter(&mut self, word: &mut Word, around: Around) -> Read<()> {
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
        let says = |text: &[&str]| text.iter().any(|text| self.follows(text));
        let takes_word = says(&["-", "=", "+", "?", ":-", ":=", ":+", ":?"]);
        let takes_numbers = !takes_word && says(&[":"]);
        if takes_numbers {
            return self.arithmetic("}");
        }
        while let Some(sign) = self.peek() {
            match sign {
                Sign::Char('}') => {
                    self.copy(1);
                    break;
                }
                Sign::Part(part) if !takes_word && matches!(self.parts[part], Part::Value(_)) => {
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

    /// Up to its end. A value is a number there, or the step fails; variables that hold values must be numbers, too.
    fn arithmetic(&mut self, end: &str) -> Read<()> {
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

    /// The name of a variable that arithmetic evaluates.
    fn evaluated_name(&mut self) -> Read<()> {
        let name = self.name();
        match self.assigned.get(&name).copied() {
            Some(part) => Err(self.evaluated(&name, part)),
            None => Ok(()),
        }
    }

    /// `${NAME}` or the output of commands in arithmetic, which evaluates what comes of it.
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

    /// `` `…` `` is written as `$(…)`, which means the same and has no escapes of its own.
    fn backticks(&mut self, word: &mut Word, around: Around) -> Read<()> {
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
