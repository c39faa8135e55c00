//! Texts of definitions made fit for a picture. They are the author's: nothing in them may steer who shows it.

use std::fmt::Write;

/// Returns an expression without the braces around it, on one line.
pub(super) fn bare(expression: &str) -> String {
    let trimmed = expression.trim();
    let inner = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let lone = inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}"));
    lone.unwrap_or(trimmed).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns at most this many characters, without control characters.
pub(super) fn shortened(text: &str, most: usize) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let mut shown: String = text.chars().filter(|c| !steers(*c)).map(plain).take(most + 1).collect();
    if shown.chars().count() > most {
        shown = shown.chars().take(most - 1).chain(['…']).collect();
    }
    shown
}

/// Marks that turn the direction of text, and those that no XML may hold.
fn steers(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

pub(super) fn for_xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Escapes a text for Mermaid, which has its own entities with `#` in place of `&`; everything it could read as markup
/// becomes one.
pub(super) fn for_mermaid(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_alphanumeric() || " .,:-+/()[]{}=_…·'!?%".contains(c) {
            out.push(c);
        } else {
            let _ = write!(out, "#{};", u32::from(c));
        }
    }
    out
}

pub(super) fn for_dot(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}

/// Returns the width in a fixed font, in letters; East Asian characters and emoji take two.
pub(crate) fn columns(text: &str) -> usize {
    let wide = |c: char| matches!(c, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe6f}' | '\u{ff00}'..='\u{ff60}' | '\u{1f300}'..='\u{1faff}' | '\u{20000}'..);
    text.chars().map(|c| 1 + usize::from(wide(c))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_lose_their_braces_and_lines() {
        assert_eq!(bare("{{ ctx.n\n  > 3 }}"), "ctx.n > 3");
        assert_eq!(bare("ctx.n"), "ctx.n");
        assert_eq!(bare("{{ a }} and {{ b }}"), "{{ a }} and {{ b }}");
    }

    #[test]
    fn long_text_is_truncated_and_control_characters_are_removed() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefg", 6), "abcde…");
        assert_eq!(shortened("a\u{1b}[31m\nb\u{202e}c", 20), "a [31m bc");
        assert_eq!(shortened("éééé", 3), "éé…");
    }

    #[test]
    fn nothing_is_markup() {
        assert_eq!(for_xml("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        assert_eq!(for_mermaid("<b>\"#`|;"), "#60;b#62;#34;#35;#96;#124;#59;");
        assert_eq!(for_dot("a\"\\n"), "a\\\"\\\\n");
    }
}
