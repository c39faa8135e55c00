//! Text of programs on a terminal. A program may print anything; only its colours may reach a terminal.

use std::io::{IsTerminal, stdout};

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
/// One character instead of `ESC [`.
const CSI: char = '\u{9b}';
const RESET: &str = "\u{1b}[0m";

/// Removes all characters that control a terminal.
pub fn plain(text: &str) -> String {
    legible(text, Colours::Removed)
}

/// Whether the colours of a text are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    Kept,
    Removed,
}

impl Colours {
    /// Returns whether a terminal shows colours, which its user can disable.
    pub fn for_stdout() -> Colours {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb {
            true => Colours::Kept,
            false => Colours::Removed,
        }
    }
}

/// Returns a line as a terminal would finally show it, without control sequences. A program that draws a progress bar
/// returns to the beginning of the line many times: only the last state of the line is shown.
pub fn legible(text: &str, colours: Colours) -> String {
    let text = text.replace("\r\n", "\n");
    let mut states = text.rsplit('\r').map(|state| without_sequences(state, colours));
    match states.find(|(shown, _)| !shown.trim().is_empty()) {
        Some((shown, true)) => shown + RESET,
        Some((shown, false)) => shown,
        None => String::new(),
    }
}

/// Returns the text, and whether it has colours.
fn without_sequences(text: &str, colours: Colours) -> (String, bool) {
    let mut shown = String::with_capacity(text.len());
    let mut is_coloured = false;
    let mut rest = text.chars();
    while let Some(sign) = rest.next() {
        match sign {
            ESCAPE => match rest.next() {
                Some('[') => is_coloured |= control_sequence(&mut rest, colours, &mut shown),
                // Titles, links and other strings end at BEL or ESC \.
                Some(']' | 'P' | 'X' | '^' | '_') => skip_string(&mut rest),
                Some('(' | ')' | '*' | '+' | '#' | '%' | ' ') => drop(rest.next()),
                Some(_) | None => {}
            },
            CSI => is_coloured |= control_sequence(&mut rest, colours, &mut shown),
            '\t' | '\n' => shown.push(' '),
            sign if sign.is_control() => {}
            sign => shown.push(sign),
        }
    }
    (shown, is_coloured)
}

/// Reads the rest of a control sequence, and keeps it if it is a colour that is wanted.
fn control_sequence(rest: &mut std::str::Chars<'_>, colours: Colours, shown: &mut String) -> bool {
    let mut parameters = String::new();
    for sign in rest.by_ref() {
        match sign {
            '0'..='?' => parameters.push(sign),
            ' '..='/' => {}
            'm' if colours == Colours::Kept && is_colour(&parameters) => {
                shown.push_str(&format!("{ESCAPE}[{parameters}m"));
                return true;
            }
            _ => return false,
        }
    }
    false
}

fn is_colour(parameters: &str) -> bool {
    parameters.chars().all(|sign| sign.is_ascii_digit() || sign == ';' || sign == ':')
}

fn skip_string(rest: &mut std::str::Chars<'_>) {
    while let Some(sign) = rest.next() {
        if sign == BELL || sign == '\u{9c}' {
            return;
        }
        if sign == ESCAPE {
            rest.next();
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_reach_a_terminal() {
        for (text, kept, removed) in [
            ("a\tb", "a b", "a b"),
            ("\u{1b}[31mred\u{1b}[0m!", "\u{1b}[31mred\u{1b}[0m!\u{1b}[0m", "red!"),
            ("a\u{1b}[2Jb\u{1b}[1;1Hc", "abc", "abc"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://a\u{1b}\\y", "xy", "xy"),
            ("\u{9b}2Kx\u{8}y\u{1b}", "xy", "xy"),
            ("\u{1b}[?25lx\u{1b}(Bz\u{1b}[31", "xz", "xz"),
            ("\u{1b}[>4;2mx", "x", "x"),
        ] {
            assert_eq!((legible(text, Colours::Kept), plain(text)), (kept.to_owned(), removed.to_owned()));
        }
    }

    #[test]
    fn a_progress_bar_is_shown_in_its_last_state() {
        assert_eq!(plain("10%\r\u{1b}[K20%\r100%\r"), "100%");
        assert_eq!(plain("done\r"), "done");
        assert_eq!(plain("\r"), "");
    }
}
