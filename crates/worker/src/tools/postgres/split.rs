//! Splits a text into its statements. It knows only where strings, names and comments end.

/// Returns the statements without their `;`. Whitespace and comments alone are not a statement.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (statement, says_something, next) = first(rest);
        if says_something {
            found.push(statement.trim());
        }
        rest = next;
    }
    found
}

/// Returns the first statement, whether it has content, and the text after its `;`.
fn first(text: &str) -> (&str, bool, &str) {
    let bytes = text.as_bytes();
    let mut says_something = false;
    let mut at = 0;
    while at < bytes.len() {
        let (length, is_comment) = match bytes[at] {
            b';' => return (&text[..at], says_something, &text[at + 1..]),
            b'\'' => (quoted(&bytes[at..], b'\'', is_escape(text, at)), false),
            b'"' => (quoted(&bytes[at..], b'"', false), false),
            b'-' if bytes[at..].starts_with(b"--") => (line(&bytes[at..]), true),
            b'/' if bytes[at..].starts_with(b"/*") => (comment(&bytes[at..]), true),
            b'$' if !continues_a_name(text, at) => (dollars(&text[at..]), false),
            space if space.is_ascii_whitespace() => (1, true),
            _ => (1, false),
        };
        says_something |= !is_comment;
        at += length;
    }
    (text, says_something, "")
}

/// Skips to after the closing quote; a doubled quote is part of the text.
fn quoted(bytes: &[u8], quote: u8, has_escapes: bool) -> usize {
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' if has_escapes => at += 2,
            byte if byte == quote && bytes.get(at + 1) == Some(&quote) => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// Skips `E'…'`, which has backslash escapes.
fn is_escape(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before.ends_with(['e', 'E']) && !continues_a_name(text, at - 1)
}

fn continues_a_name(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == '$')
}

fn line(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1)
}

/// Skips a comment; comments nest.
fn comment(bytes: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

/// Skips `$tag$ … $tag$`, or a single dollar, as of a parameter.
fn dollars(text: &str) -> usize {
    let Some(end) = text[1..].find('$').map(|end| end + 1) else { return 1 };
    let tag = &text[1..end];
    let is_tag = !tag.starts_with(|first: char| first.is_ascii_digit())
        && tag.chars().all(|letter| letter == '_' || letter.is_alphanumeric());
    if !is_tag {
        return 1;
    }
    let mark = &text[..=end];
    text[end + 1..].find(mark).map_or(text.len(), |close| end + 1 + close + mark.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text), expected, "{text}");
    }

    #[test]
    fn statements_end_at_semicolons() {
        check("select 1", &["select 1"]);
        check(" select 1 ; select 2;\n", &["select 1", "select 2"]);
        check("", &[]);
        check(" ;; -- nothing\n; /* at all */", &[]);
        check("-- why\nselect 1", &["-- why\nselect 1"]);
        check("select 'ä;ö'; select \"ü;\"", &["select 'ä;ö'", "select \"ü;\""]);
    }

    #[test]
    fn texts_names_and_comments_hide_them() {
        check("select 'a''b;c', 'd'; x", &["select 'a''b;c', 'd'", "x"]);
        check("select 'a\\'; x", &["select 'a\\'", "x"]);
        check("select E'a\\';b'; x", &["select E'a\\';b'", "x"]);
        check("select type'a\\'; x", &["select type'a\\'", "x"]);
        check("select 1 -- a;b\n; x", &["select 1 -- a;b", "x"]);
        check("select /* a; /* b; */ c; */ 1; x", &["select /* a; /* b; */ c; */ 1", "x"]);
    }

    #[test]
    fn dollars_quote_and_number_params() {
        check("do $$ begin; end $$; x", &["do $$ begin; end $$", "x"]);
        check("do $f$ a; $$ b; $f$; x", &["do $f$ a; $$ b; $f$", "x"]);
        check("select $1; select $2", &["select $1", "select $2"]);
        check("select $1, a$b$ ; select $b$", &["select $1, a$b$", "select $b$"]);
    }

    #[test]
    fn what_never_ends_is_one_statement() {
        for open in ["select 'a; b", "select \"a; b", "select $$a; b", "select 1 /* a; b", "select E'a\\"] {
            check(open, &[open]);
        }
    }
}
