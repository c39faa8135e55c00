//! Texts of definitions made fit for a picture. They are the author's: nothing in them may steer who shows it.

use std::fmt::Write;

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
    fn nothing_is_markup() {
        assert_eq!(for_xml("<script>'\"&"), "&lt;script&gt;&#39;&quot;&amp;");
        assert_eq!(for_mermaid("<b>\"#`|;"), "#60;b#62;#34;#35;#96;#124;#59;");
        assert_eq!(for_dot("a\"\\n"), "a\\\"\\\\n");
    }
}
