//! Expressions of definitions as text. They are the author's: nothing in them may steer what shows them.

use windlass_kernel::net::{Admit, AdmitRule};

/// Maximum number of characters of an expression in an answer. Conditions that people write are much shorter.
const EXPRESSION_MAX: usize = 4_096;

/// Returns an expression for an answer: without the braces around it, on one line. One that was cut ends with `…`.
#[must_use]
pub fn shown_expression(source: &str) -> String {
    shortened(&bare(source), EXPRESSION_MAX)
}

/// Returns the expression under which a gate lets a token in, made of all of its rules; None if no rule allows one. It is
/// truncated while it is made: a definition may have many long rules.
pub(crate) fn opening(admit: &Admit) -> Option<String> {
    let end = admit.rules.iter().position(|rule| rule.when.is_none());
    let decided = &admit.rules[..end.map_or(admit.rules.len(), |end| end + 1)];
    // Refusals after the last rule that allows change nothing.
    let mut rules = &decided[..=decided.iter().rposition(|rule| rule.allow)?];
    let (mut shown, mut open) = (BoundedText::default(), 0);
    // The first rule that matches decides: the refusals before a rule must not match, and those of earlier rules are written
    // in front of all that follows them.
    while !shown.is_full() {
        let (refusals, rest) = rules.split_at(rules.iter().take_while(|rule| !rule.allow).count());
        for (place, rule) in refusals.iter().enumerate() {
            if shown.is_full() {
                break;
            }
            shown.push(if place == 0 { "not (" } else { " and not (" });
            shown.push(&condition(rule));
            shown.push(")");
        }
        let is_last_else = matches!(rest, [AdmitRule { when: None, .. }]);
        if is_last_else && !refusals.is_empty() {
            break;
        }
        if !refusals.is_empty() {
            shown.push(" and (");
            open += 1;
        }
        let (allowed, later) = rest.split_at(rest.iter().take_while(|rule| rule.allow).count());
        if let ([one], []) = (allowed, later) {
            shown.push(&condition(one));
            break;
        }
        for (place, rule) in allowed.iter().enumerate() {
            if shown.is_full() {
                break;
            }
            shown.push(if place == 0 { "(" } else { " or (" });
            shown.push(&condition(rule));
            shown.push(")");
        }
        if later.is_empty() {
            break;
        }
        shown.push(" or (");
        open += 1;
        rules = later;
    }
    (0..open.min(EXPRESSION_MAX)).for_each(|_| shown.push(")"));
    Some(shown.finish())
}

/// Returns the condition of a rule as text; a rule without one always matches.
fn condition(rule: &AdmitRule) -> String {
    rule.when.as_ref().map_or("true".to_owned(), |when| bare(when.written()))
}

/// A text for an answer that takes up to [`EXPRESSION_MAX`] characters.
#[derive(Default)]
struct BoundedText {
    text: String,
    characters: usize,
}

impl BoundedText {
    fn is_full(&self) -> bool {
        self.characters > EXPRESSION_MAX
    }

    fn push(&mut self, text: &str) {
        let left = EXPRESSION_MAX + 1 - self.characters;
        for shown in plain(text).take(left) {
            self.text.push(shown);
            self.characters += 1;
        }
    }

    fn finish(self) -> String {
        shortened(&self.text, EXPRESSION_MAX)
    }
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
    let mut shown: String = plain(text).take(most + 1).collect();
    if shown.chars().count() > most {
        shown = shown.chars().take(most - 1).chain(['…']).collect();
    }
    shown
}

/// Returns the characters of a text on one line, without those that steer what shows it.
fn plain(text: &str) -> impl Iterator<Item = char> {
    text.chars().filter(|c| !steers(*c)).map(|c| if c.is_control() { ' ' } else { c })
}

/// Marks that turn the direction of text, and those that no XML may hold.
fn steers(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_expr::Expr;
    use windlass_kernel::net::OnDeny;

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
        check(
            &[("ctx.a", false), ("ctx.b", true), ("ctx.c", true), ("ctx.d", false), ("else", true)],
            Some("not (ctx.a) and ((ctx.b) or (ctx.c) or (not (ctx.d)))"),
        );
        check(&[("ctx.a", true), ("else", true)], Some("(ctx.a) or (true)"));
        check(&[("ctx.a", true), ("ctx.b", false)], Some("ctx.a"));
        check(&[("else", false), ("ctx.a", true)], None);
        check(&[("ctx.a", false)], None);
    }

    #[test]
    fn a_gate_with_many_long_rules_is_truncated_while_its_expression_is_made() {
        let rule = |when: &str, allow| AdmitRule { when: Some(Expr::compile(when).unwrap()), allow };
        let refusal = rule(&format!("ctx.a and '{}' == ''", "x".repeat(250_000)), false);
        let opens = rule("ctx.a", true);
        let rules: Vec<_> =
            std::iter::repeat_n(refusal, 6).chain(std::iter::repeat_n(opens, 20_000)).collect();
        // Repeating the refusals for each of the others would take 30 GB.
        let shown = opening(&Admit { rules, on_deny: OnDeny::Wait, deadline_ms: None }).unwrap();
        assert_eq!((shown.chars().count(), shown.chars().last()), (EXPRESSION_MAX, Some('…')));
        assert!(shown.starts_with("not (ctx.a and 'xxx"), "{}", &shown[..40]);
    }
}
