//! Words of a command as far as the text shows them.

/// Placeholder of a value in the text of a word, or of a variable or an output that has one.
pub(super) const VALUE: char = '\u{f8ff}';
/// Placeholder of other text that is known only when the script runs.
pub(super) const UNKNOWN: char = '\u{f8fe}';

#[derive(Debug, Default, Clone)]
pub(super) struct Word {
    /// Text without its quotes.
    pub(super) text: String,
    /// Whether anything was written, also a pair of quotes.
    pub(super) begun: bool,
    pub(super) quoted: bool,
    /// The part whose value is in it, or in a variable or the output of a command that is in it.
    pub(super) value: Option<usize>,
    /// The part whose value is in the output of a process substitution.
    pub(super) file: Option<usize>,
}

impl Word {
    pub(super) fn push(&mut self, sign: char) {
        self.begun = true;
        self.text.push(sign);
    }

    pub(super) fn add_value(&mut self, part: usize) {
        self.push(VALUE);
        self.value.get_or_insert(part);
    }

    pub(super) fn add_unknown(&mut self, value: Option<usize>) {
        match value {
            Some(part) => self.add_value(part),
            None => self.push(UNKNOWN),
        }
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.text == text
    }

    /// Returns whether it is written without quotes and without anything unknown.
    pub(super) fn is_bare(&self, text: &str) -> bool {
        !self.quoted && self.text == text
    }

    pub(super) fn is_known(&self) -> bool {
        !self.text.contains([VALUE, UNKNOWN])
    }

    /// Returns whether it is nothing but what the shell puts in, without quotes: then it may be no word at all.
    pub(super) fn may_vanish(&self) -> bool {
        !self.quoted && self.text.chars().all(|sign| sign == UNKNOWN)
    }

    pub(super) fn is_option(&self) -> bool {
        self.text.starts_with('-') && self.text.len() > 1
    }

    pub(super) fn base_name(&self) -> &str {
        base_name(&self.text)
    }

    /// Returns the name and the index in `NAME=…`, `NAME+=…` and `NAME[…]=…`.
    pub(super) fn assigned(&self) -> Option<(&str, &str)> {
        let (left, _) = self.text.split_once('=')?;
        let left = left.strip_suffix('+').unwrap_or(left);
        let (name, index) = match left.split_once('[') {
            Some((name, index)) => (name, index.strip_suffix(']')?),
            None => (left, ""),
        };
        is_name(name).then_some((name, index))
    }
}

/// Returns whether an element of `(…)` has a value in its index: `[…]=`.
pub(super) fn has_value_in_index(elements: &str) -> bool {
    let index = |element: &str| Some(element.strip_prefix('[')?.split_once("]=")?.0.contains(VALUE));
    elements.split_whitespace().filter_map(index).any(|has_value| has_value)
}

pub(super) fn is_name(text: &str) -> bool {
    text.chars().all(|sign| sign == '_' || sign.is_ascii_alphanumeric())
        && text.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
}

/// Returns the program's name without its folder and its version: `python` of `/usr/bin/python3.11`.
pub(super) fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    let bare = name.trim_end_matches(|sign: char| sign.is_ascii_digit() || sign == '.' || sign == '-');
    if bare.is_empty() { name } else { bare }
}
