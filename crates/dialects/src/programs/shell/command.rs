//! Checks whether a command passes a value to an interpreter: `eval`, `sh -c`, `| sh`, `trap` and others.

use super::words::{Word, is_name};

/// One command, with all its words.
#[derive(Debug, Default)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Values that come through its standard input, as far as they are known when it ends.
    pub(super) input: Option<usize>,
}

/// A value that would be read as a program or as a name.
#[derive(Debug)]
pub(super) struct Danger {
    pub(super) part: usize,
    pub(super) place: String,
    pub(super) hint: &'static str,
}

const AS_ARGUMENT: &str = "pass it as an argument of the script: `sh -c '… \"$1\"' _ {{ x }}`";
const NAME_IT: &str = "write the name; a value can choose among names with `case`";

fn danger(part: usize, place: impl Into<String>, hint: &'static str) -> Result<(), Danger> {
    Err(Danger { part, place: place.into(), hint })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    /// `-c SCRIPT`, also among other letters.
    Command,
    /// `-e SCRIPT`.
    Expression,
    /// `-r SCRIPT`.
    Run,
}

/// Programs that run a script which is one of their arguments, or else their input.
const INTERPRETERS: [(&str, Takes); 20] = [
    ("sh", Takes::Command),
    ("bash", Takes::Command),
    ("dash", Takes::Command),
    ("ash", Takes::Command),
    ("ksh", Takes::Command),
    ("mksh", Takes::Command),
    ("zsh", Takes::Command),
    ("fish", Takes::Command),
    ("csh", Takes::Command),
    ("tcsh", Takes::Command),
    ("python", Takes::Command),
    ("su", Takes::Command),
    ("runuser", Takes::Command),
    ("script", Takes::Command),
    ("perl", Takes::Expression),
    ("ruby", Takes::Expression),
    ("node", Takes::Expression),
    ("lua", Takes::Expression),
    ("Rscript", Takes::Expression),
    ("php", Takes::Run),
];

/// Commands that run the command which follows them.
const PREFIXES: [&str; 16] = [
    "env", "exec", "command", "builtin", "nohup", "sudo", "doas", "time", "nice", "ionice", "timeout",
    "stdbuf", "setsid", "xargs", "busybox", "chroot",
];

/// Commands of `PREFIXES` whose next word is the command, unless it is an option.
const DIRECT: [&str; 11] =
    ["exec", "command", "builtin", "nohup", "time", "setsid", "xargs", "busybox", "sudo", "doas", "env"];

/// Commands whose words are programs: all of them, joined.
const EVALUATORS: [&str; 4] = ["eval", "alias", "watch", "parallel"];

/// Commands whose words are names of variables, which have indexes that are evaluated.
const NAMERS: [&str; 10] =
    ["export", "readonly", "local", "declare", "typeset", "unset", "read", "getopts", "mapfile", "readarray"];

/// Options of ssh that have a value of their own.
const SSH_OPTIONS: &str = "BbcDEeFIiJLlmOopQRSWw";

impl Command {
    /// Refuses values in places where they would be a program. `piped` is a value in what the commands before it print.
    pub(super) fn check(&self, piped: Option<usize>) -> Result<(), Danger> {
        let Some(place) = self.program() else { return Ok(()) };
        let (program, rest) = (&self.words[place], &self.words[place + 1..]);
        if let Some(part) = program.value {
            return danger(part, "where the name of a command is", NAME_IT);
        }
        self.check_prefix()?;
        self.check_vanishing(place)?;
        let name = program.base_name();
        let any = rest.iter().find_map(|word| word.value);
        match name {
            _ if EVALUATORS.contains(&name) => joined(name, any)?,
            "let" => joined(name, any)?,
            "trap" => joined(name, rest.iter().find(|word| !word.is_option()).and_then(|word| word.value))?,
            "." | "source" => joined(name, any.or_else(|| rest.iter().find_map(|word| word.file)))?,
            "test" | "[" => names_variable(rest, "-v")?,
            "printf" => names_variable(rest, "-v")?,
            "ssh" => remote(rest)?,
            _ if NAMERS.contains(&name) => named(rest)?,
            _ => {}
        }
        self.check_scripts(place)?;
        self.check_input(place, self.input.or(piped))
    }

    /// Returns the place of the word that names the program.
    pub(super) fn program(&self) -> Option<usize> {
        let first = self.words.iter().position(|word| word.assigned().is_none())?;
        if !PREFIXES.contains(&self.words[first].base_name()) {
            return Some(first);
        }
        let interpreter = (first..self.words.len()).find(|at| takes(&self.words[*at]).is_some());
        interpreter
            .or_else(|| (first + 1..self.words.len()).find(|at| self.is_run(first, *at)))
            .or(Some(first))
    }

    /// Returns whether the word is the program that a prefix runs, and no option or number of the prefix.
    fn is_run(&self, prefix: usize, at: usize) -> bool {
        let (word, before) = (&self.words[at], &self.words[at - 1]);
        let counts = word.text.starts_with(|sign: char| sign.is_ascii_digit());
        let is_own =
            word.is_option() || counts || word.assigned().is_some() || PREFIXES.contains(&word.base_name());
        let of_option =
            word.value.is_some() && (before.is_option() || !DIRECT.contains(&self.words[prefix].base_name()));
        !is_own && !of_option
    }

    fn check_prefix(&self) -> Result<(), Danger> {
        for pair in self.words.windows(2) {
            let [prefix, next] = pair else { continue };
            match next.value {
                Some(part)
                    if DIRECT.contains(&prefix.base_name())
                        && !next.is_option()
                        && next.assigned().is_none() =>
                {
                    return danger(part, "where the name of a command is", NAME_IT);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// `$CMD {{ x }}`: without quotes nothing is left of an empty variable, and the next word names the command.
    fn check_vanishing(&self, place: usize) -> Result<(), Danger> {
        let next = self.words.get(place + 1).filter(|word| !word.is_option());
        match next.and_then(|word| word.value).filter(|_| self.words[place].may_vanish()) {
            Some(part) => {
                danger(part, "after a name that may be empty", "put quotes around it: `\"$NAME\" {{ x }}`")
            }
            None => Ok(()),
        }
    }

    /// Scripts among the words, wherever the interpreter is named: `find … -exec sh -c SCRIPT`.
    fn check_scripts(&self, place: usize) -> Result<(), Danger> {
        for (at, word) in self.words.iter().enumerate() {
            let unknown = at == place && !word.is_known();
            let Some(takes) = takes(word).or(unknown.then_some(Takes::Command)) else { continue };
            let shown = if unknown { "a command of an unknown name" } else { word.base_name() };
            if let Some(part) = script(&self.words[at + 1..], takes).and_then(|script| script.value) {
                return danger(part, format!("in a script that {shown} runs"), AS_ARGUMENT);
            }
        }
        self.words.iter().enumerate().try_for_each(|(at, word)| {
            let runs = at == place
                || (at > 0 && ["-exec", "-execdir", "xargs"].contains(&&*self.words[at - 1].text));
            if runs { filter(word.base_name(), &self.words[at + 1..]) } else { Ok(()) }
        })
    }

    /// A program that has neither a script nor a file reads its program from its input.
    fn check_input(&self, place: usize, input: Option<usize>) -> Result<(), Danger> {
        let (word, rest) = (&self.words[place], &self.words[place + 1..]);
        let fed = rest.iter().find_map(|word| word.file).or(input);
        let Some(part) = fed else { return Ok(()) };
        if self.reads_program() {
            return danger(part, format!("in what {} reads as its program", word.base_name()), AS_ARGUMENT);
        }
        let replaced = |script: &Word| script.text.contains("{}");
        let scripts = self.words.iter().enumerate();
        let mut scripts = scripts.filter_map(|(at, word)| script(&self.words[at + 1..], takes(word)?));
        match self.words.iter().any(|word| word.is("xargs")) && scripts.any(replaced) {
            true => danger(part, "in what xargs puts into a script", AS_ARGUMENT),
            false => Ok(()),
        }
    }

    /// Names of the variables that the command declares as numbers.
    pub(super) fn integers(&self) -> impl Iterator<Item = &str> {
        let place = self.program().filter(|place| NAMERS.contains(&self.words[*place].base_name()));
        let words = place.map_or(&[][..], |place| &self.words[place + 1..]);
        let numeric = words.iter().any(|word| word.is_option() && word.text.contains('i'));
        let names = words.iter().filter(move |word| numeric && !word.is_option());
        names.filter_map(|word| word.text.split(['=', '+']).next())
    }

    pub(super) fn reads_program(&self) -> bool {
        let Some(place) = self.program() else { return false };
        let rest = &self.words[place + 1..];
        let mut operands = rest.iter().enumerate().filter(|(at, word)| {
            let of_option = *at > 0 && ["-o", "-O"].contains(&&*rest[at - 1].text);
            !(word.is_option() || word.text.starts_with('+') || of_option)
        });
        let operand = operands.next().map(|(_, word)| word);
        let from_input =
            operand.is_none_or(|word| word.file.is_some() || ["-", "/dev/stdin"].contains(&&*word.text));
        let says_so = rest.iter().any(|word| word.is("-s"));
        let word = &self.words[place];
        match takes(word) {
            Some(takes) => (from_input || says_so) && script(rest, takes).is_none(),
            None => [".", "source"].contains(&&*word.text) && from_input,
        }
    }
}

fn takes(word: &Word) -> Option<Takes> {
    let name = word.is_known().then(|| word.base_name())?;
    INTERPRETERS.iter().find(|(known, _)| *known == name).map(|(_, takes)| *takes)
}

/// Returns the script after the option that announces it, or the option itself when both are one word.
fn script(words: &[Word], takes: Takes) -> Option<&Word> {
    let (letters, long): (&[char], &[&str]) = match takes {
        Takes::Command => (&['c'], &["--command"]),
        Takes::Expression => (&['e', 'E', 'p'], &["--eval", "--print"]),
        Takes::Run => (&['r', 'B', 'E', 'R'], &["--run"]),
    };
    let announces = |word: &&Word| {
        let short = word.is_option() && !word.text.starts_with("--") && word.text.contains(letters);
        short || long.iter().any(|option| word.text.split('=').next() == Some(*option))
    };
    let at = words.iter().position(|word| announces(&word))?;
    if words[at].value.is_some() {
        return words.get(at);
    }
    words[at + 1..].iter().find(|word| !word.is_option())
}

fn joined(name: &str, part: Option<usize>) -> Result<(), Danger> {
    part.map_or(Ok(()), |part| {
        danger(part, format!("in what `{name}` evaluates"), "keep it in a variable and use `\"$NAME\"`")
    })
}

fn names_variable(words: &[Word], option: &str) -> Result<(), Danger> {
    let found = words.windows(2).find(|pair| pair[0].is(option)).and_then(|pair| pair[1].value);
    found.map_or(Ok(()), |part| danger(part, "where the name of a variable is", NAME_IT))
}

/// `export NAME=…` has a name; what follows it is a value, unless the variable is a number or the name of another one.
fn named(words: &[Word]) -> Result<(), Danger> {
    let numeric = words.iter().any(|word| word.is_option() && word.text.contains(['i', 'n']));
    for word in words.iter().filter(|word| !word.is_option()) {
        let Some(part) = word.value else { continue };
        let name = word.text.split('=').next().unwrap_or_default();
        if numeric || !(is_name(name) || is_name(name.trim_end_matches('+'))) {
            return danger(part, "where the name or the number of a variable is", NAME_IT);
        }
    }
    Ok(())
}

/// Checks the words after the host, which are a script for a shell there.
fn remote(words: &[Word]) -> Result<(), Danger> {
    let hint =
        "send it through the input of a script there: `printf %s {{ x }} | ssh host 'IFS= read -r x; …'`";
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.is_option() {
            break;
        }
        let separate = word.text.len() == 2 && word.text.contains(|sign| SSH_OPTIONS.contains(sign));
        let given = if separate { words.next() } else { Some(word) };
        if let (true, Some(part)) = (word.text.starts_with("-o"), given.and_then(|word| word.value)) {
            return danger(part, "in an option of ssh", NAME_IT);
        }
    }
    words.find_map(|word| word.value).map_or(Ok(()), |part| danger(part, "in a script that ssh runs", hint))
}

/// awk and sed can start programs from the program that is their argument.
fn filter(name: &str, words: &[Word]) -> Result<(), Danger> {
    let hint = match name {
        "awk" | "gawk" | "mawk" | "nawk" => "pass it as `-v name={{ x }}` and use the variable `name`",
        "sed" if !words.iter().any(|word| word.is("--sandbox")) => {
            "add the option `--sandbox`, with which sed starts no programs"
        }
        _ => return Ok(()),
    };
    let check = |word: Option<&Word>| match word.and_then(|word| word.value) {
        Some(part) => danger(part, format!("in a program of {name}"), hint),
        None => Ok(()),
    };
    let (mut words, mut has_program) = (words.iter(), false);
    while let Some(word) = words.next() {
        let short = word.is_option() && !word.text.starts_with("--");
        match &*word.text {
            "-f" | "--file" | "-v" | "-F" | "-l" => {
                has_program |= word.text.starts_with("-f") || word.is("--file");
                words.next();
            }
            text if name == "sed" && (short && text.ends_with('e') || text == "--expression") => {
                has_program = true;
                check(words.next())?;
            }
            text if text.starts_with("--expression=") || (name == "sed" && short && text.contains('e')) => {
                has_program = true;
                check(Some(word))?;
            }
            _ if word.is_option() => {}
            _ if has_program => return Ok(()),
            _ => return check(Some(word)),
        }
    }
    Ok(())
}

/// Operators of `[[ ]]` that evaluate their operands.
const EVALUATING: [&str; 8] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"];

/// Checks `[[ … ]]`, whose comparisons of numbers evaluate their operands.
pub(super) fn check_test(words: &[Word]) -> Result<(), Danger> {
    let evaluates = words.iter().any(|word| EVALUATING.contains(&&*word.text));
    match words.iter().find_map(|word| word.value).filter(|_| evaluates) {
        Some(part) => {
            danger(part, "where `[[ ]]` evaluates it", "compare with `[ … ]`, which evaluates nothing")
        }
        None => Ok(()),
    }
}
