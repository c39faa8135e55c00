//! Values in a shell script. Each one becomes a variable of the environment, and the script refers to it as one word in
//! the quoting that is written around it. The shell expands the variable after it has read the script, so a place that is
//! read wrongly here changes a word and never the program.
//!
//! A value that would reach an interpreter is refused if the text of the script shows it. The author is responsible for what
//! a command does with its arguments.
//!
//! | file | holds |
//! |---|---|
//! | `lexer.rs` | the characters of a script, the copied text, values as variables |
//! | `list.rs`, `grammar.rs` | commands and pipelines; the words of the shell's own grammar |
//! | `redirection.rs`, `here.rs` | redirections; here-documents |
//! | `quotes.rs`, `expansion.rs`, `arithmetic.rs` | the pieces of a word |
//! | `variables.rs` | variables of the script that have values in them |
//! | `words.rs`, `command.rs` | words as far as they are known; commands that hand a value to an interpreter |

mod arithmetic;
mod command;
mod expansion;
mod grammar;
mod here;
mod lexer;
mod list;
mod quotes;
mod redirection;
#[cfg(test)]
mod tests;
mod variables;
mod words;

use super::Refusal;
use super::written::{Part, Written, parts};
use lexer::{Lexer, Stop};
use std::collections::BTreeSet;

/// Variables of values are this word and a number.
const VARIABLE: &str = "WINDLASS_VALUE_";

/// Variables that arithmetic uses are made numbers one by one. A script with more of them is written otherwise.
const NUMBERS_MAX: usize = 32;

const SHELLS: [&str; 7] = ["sh", "bash", "dash", "ash", "ksh", "mksh", "zsh"];

/// A script whose values are variables.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    /// A template without values.
    pub(crate) command: String,
    /// Names of variables and their expressions, in the order of the script.
    pub(crate) values: Vec<(String, String)>,
}

/// Returns whether the rules of quoting here are the shell's.
fn is_known(shell: &str) -> bool {
    SHELLS.contains(&words::base_name(shell.trim()))
}

/// Binds the values of a script to variables whose names `is_taken` does not claim. `program` is the shell, `sh` if it is
/// not named.
pub(crate) fn shell(
    text: &str,
    program: Option<&str>,
    is_taken: &dyn Fn(&str) -> bool,
) -> Result<Bound, Refusal> {
    let parts = parts(text)?;
    let first = parts.iter().find_map(|part| match part {
        Part::Value(source) => Some(source),
        Part::Text(_) | Part::Choice { .. } => None,
    });
    let Some(first) = first else {
        return Ok(Bound { command: plain(&parts), values: Vec::new() });
    };
    if !program.is_none_or(is_known) {
        return Err(Refusal::new(first, "for a shell whose quotes are not known", "pass it by `env`"));
    }
    let mut numbers = BTreeSet::new();
    loop {
        match Lexer::new(&parts, &numbers, is_taken).script() {
            Ok((written, values)) => return Ok(Bound { command: written.source(), values }),
            Err(Stop::Refused(refusal)) => return Err(*refusal),
            Err(Stop::Number { name, refusal }) => {
                if numbers.len() >= NUMBERS_MAX || !numbers.insert(name) {
                    return Err(*refusal);
                }
            }
        }
    }
}

fn plain(parts: &[Part]) -> String {
    let mut written = Written::default();
    for part in parts {
        match part {
            Part::Text(text) => written.text(text),
            Part::Choice { source, .. } | Part::Value(source) => written.expression(source),
        }
    }
    written.source()
}
