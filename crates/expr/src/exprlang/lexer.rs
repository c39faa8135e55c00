//! Tokens of expr-lang.

/// A token and the offset of its first byte.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) at: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind {
    /// Text as written, without underscores.
    Number(String),
    Text(String),
    /// A name or a word such as `and`.
    Name(String),
    Sign(&'static str),
    End,
}

/// Longer signs come first.
const SIGNS: [&str; 35] = [
    "...", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "..", "**", "+", "-", "*", "/", "%", "^", "<",
    ">", "!", "?", ":", ",", ".", "(", ")", "[", "]", "{", "}", "|", "#", ";", "=", "$",
];

pub(super) type Problem = (String, usize);

pub(super) fn tokenize(source: &str) -> Result<Vec<Token>, Problem> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = source[at..].chars().next() {
        let (kind, length) = match first {
            space if space.is_whitespace() => {
                at += space.len_utf8();
                continue;
            }
            '"' | '\'' => text(&source[at..], first, at)?,
            '`' => raw_text(&source[at..], at)?,
            digit if digit.is_ascii_digit() => number(&source[at..], at)?,
            letter if letter.is_alphabetic() || letter == '_' => {
                let is_part = |sign: char| sign.is_alphanumeric() || sign == '_';
                let length = source[at..].find(|sign| !is_part(sign)).unwrap_or(source.len() - at);
                (TokenKind::Name(source[at..at + length].to_owned()), length)
            }
            other => match SIGNS.iter().find(|sign| source[at..].starts_with(*sign)) {
                Some(sign) => (TokenKind::Sign(sign), sign.len()),
                None => return Err((format!("`{other}` is not a part of an expression"), at)),
            },
        };
        tokens.push(Token { kind, at });
        at += length;
    }
    tokens.push(Token { kind: TokenKind::End, at });
    Ok(tokens)
}

fn number(rest: &str, at: usize) -> Result<(TokenKind, usize), Problem> {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let mut length = rest.find(|sign| !is_part(sign)).unwrap_or(rest.len());
    let fraction =
        rest[length..].strip_prefix('.').filter(|digits| digits.starts_with(|c: char| c.is_ascii_digit()));
    if let Some(digits) = fraction {
        length += 1 + digits.find(|sign| !is_part(sign)).unwrap_or(digits.len());
    }
    let written: String = rest[..length].chars().filter(|sign| *sign != '_').collect();
    let is_number = written.parse::<f64>().is_ok_and(f64::is_finite);
    match is_number {
        true => Ok((TokenKind::Number(written), length)),
        false => Err((format!("`{}` is not a decimal number", &rest[..length]), at)),
    }
}

fn raw_text(rest: &str, at: usize) -> Result<(TokenKind, usize), Problem> {
    match rest[1..].find('`') {
        Some(length) => Ok((TokenKind::Text(rest[1..=length].to_owned()), length + 2)),
        None => Err(("a text has no end".to_owned(), at)),
    }
}

fn text(rest: &str, quote: char, at: usize) -> Result<(TokenKind, usize), Problem> {
    let mut text = String::new();
    let mut signs = rest.char_indices().skip(1);
    while let Some((offset, sign)) = signs.next() {
        match sign {
            _ if sign == quote => return Ok((TokenKind::Text(text), offset + 1)),
            '\\' => {
                let escaped = signs.next().map(|(_, sign)| sign);
                text.push(match escaped {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(sign @ ('\\' | '"' | '\'' | '/')) => sign,
                    Some('u') => {
                        let digits: String = signs.by_ref().take(4).map(|(_, sign)| sign).collect();
                        let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        code.ok_or_else(|| (format!("`\\u{digits}` is not a character"), at + offset))?
                    }
                    other => {
                        let shown = other.map(String::from).unwrap_or_default();
                        return Err((format!("a text has no escape `\\{shown}`"), at + offset));
                    }
                });
            }
            sign => text.push(sign),
        }
    }
    Err(("a text has no end".to_owned(), at))
}
