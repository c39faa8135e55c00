//! Expressions of definitions as text. They are the author's: nothing in them may steer what shows them.

use windlass_kernel::net::Admit;

/// Maximum number of characters of an expression in an answer. Conditions that people write are much shorter.
const EXPRESSION_MAX: usize = 4_096;

/// Returns an expression for an answer: without the braces around it, on one line. One that was cut ends with `…`.
#[must_use]
pub fn shown_expression(source: &str) -> String {
    shortened(&bare(source), EXPRESSION_MAX)
}

/// Returns the expression under which a gate lets a token in, made of all of its rules; None if no rule allows one.
pub(crate) fn opening(admit: &Admit) -> Option<String> {
    let (mut refusals, mut openings) = (Vec::new(), Vec::new());
    for rule in &admit.rules {
        // The first rule that matches decides: those before it that refuse must not match.
        match (rule.when.as_ref().map(|when| bare(when.written())), rule.allow) {
            (Some(when), false) => refusals.push(format!("not ({when})")),
            (Some(when), true) if refusals.is_empty() => openings.push(when),
            (Some(when), true) => openings.push(format!("{} and ({when})", refusals.join(" and "))),
            (None, false) => break,
            (None, true) => {
                openings.push(if refusals.is_empty() { "true".to_owned() } else { refusals.join(" and ") });
                break;
            }
        }
    }
    let opening = match &openings[..] {
        [] => return None,
        [one] => one.clone(),
        several => several.iter().map(|one| format!("({one})")).collect::<Vec<_>>().join(" or "),
    };
    Some(shortened(&opening, EXPRESSION_MAX))
}

/// Returns an expression without the braces around it, on one line.
#[must_use]
pub fn bare(expression: &str) -> String {
    let trimmed = expression.trim();
    let inner = trimmed.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    let lone = inner.filter(|inner| !inner.contains("{{") && !inner.contains("}}"));
    lone.unwrap_or(trimmed).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns at most this many characters, without control characters.
#[must_use]
pub fn shortened(text: &str, most: usize) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_expr::Expr;
    use windlass_kernel::net::{AdmitRule, OnDeny};

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
        let long = shown_expression(&format!("{{{{ ctx.n == '{}' }}}}", "x".repeat(EXPRESSION_MAX)));
        assert_eq!((long.chars().count(), long.chars().last()), (EXPRESSION_MAX, Some('…')));
    }

    #[test]
    fn a_gate_opens_under_one_expression_of_all_of_its_rules() {
        let check = |rules: &[(&str, bool)], expected: Option<&str>| {
            let rule = |(when, allow): &(&str, bool)| AdmitRule {
                when: (*when != "else").then(|| Expr::compile(when).unwrap()),
                allow: *allow,
            };
            let admit =
                Admit { rules: rules.iter().map(rule).collect(), on_deny: OnDeny::Wait, deadline_ms: None };
            assert_eq!(opening(&admit).as_deref(), expected, "{rules:?}");
        };
        check(&[("{{ ctx.a }}", true), ("else", false)], Some("ctx.a"));
        check(&[("ctx.a", true), ("{{ ctx.b }}", true)], Some("(ctx.a) or (ctx.b)"));
        check(&[("ctx.a", false), ("ctx.b", true)], Some("not (ctx.a) and (ctx.b)"));
        check(&[("ctx.a", false), ("else", true)], Some("not (ctx.a)"));
        check(
            &[("ctx.a", true), ("ctx.b", false), ("ctx.c", true)],
            Some("(ctx.a) or (not (ctx.b) and (ctx.c))"),
        );
        check(&[("else", false), ("ctx.a", true)], None);
        check(&[("ctx.a", false)], None);
    }
}
