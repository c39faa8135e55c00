//! Texts in the languages of programs, with values in them. A value reaches a program as data wherever it is written in
//! the text: the shell gets it through the environment, Python as a literal. Every dialect uses these functions.

mod python;
mod shell;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use python::python;
pub(crate) use shell::shell;
pub(crate) use written::raw;

/// Reason why a value cannot be data where it is written, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The expression, or the statement, as it is written.
    pub(crate) source: String,
    /// Follows the expression in a sentence: "as the name of a command".
    pub(crate) place: String,
    pub(crate) hint: String,
}

impl Refusal {
    pub(crate) fn new(source: &str, place: impl Into<String>, hint: impl Into<String>) -> Refusal {
        Refusal { source: source.to_owned(), place: place.into(), hint: hint.into() }
    }

    /// Returns the text to look for in the definition.
    pub(crate) fn needle(&self) -> &str {
        &self.source
    }

    /// Returns the expression or statement as a message shows it.
    pub(crate) fn shown(&self) -> String {
        match self.source.starts_with("{%") {
            true => format!("`{}`", self.source),
            false => format!("`{{{{ {} }}}}`", self.source),
        }
    }
}
