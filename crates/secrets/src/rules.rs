//! Rules for names and values of secrets, and for values that are strong enough to be searched for.

use crate::decode::fold_text;
use crate::parts::{is_frame_line, json_leaves};
use std::collections::BTreeSet;
use std::fmt;

/// Minimum length of a value. A shorter one is a mistake, such as an empty file or an unset variable. A value of this
/// length can still be guessed, see [`is_guessable`].
pub const VALUE_MIN: usize = 4;

/// Maximum length of a value. A certificate chain with its key fits many times; a larger value belongs in a file.
pub const VALUE_MAX: usize = 64 * 1024;

pub const NAME_MAX: usize = 200;

/// Minimum number of characters of a value that cannot be enumerated: one output of a megabyte holds 100,000 guesses.
pub const UNGUESSABLE_LENGTH: usize = 8;

/// Minimum number of digits of a number that cannot be guessed. Fewer are a PIN, a date, a phone or an account
/// number.
pub const UNGUESSABLE_DIGITS: usize = 16;

/// Minimum number of different characters. Fewer are a pattern like `abababab`.
pub const UNGUESSABLE_DISTINCT: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "`{0}` cannot be the name of a secret; use 1 to {NAME_MAX} letters, digits, `_`, `-`, `.` and `/`, and begin with neither `.` nor `/`"
    )]
    Name(String),
    #[error("the value has {0} bytes without line breaks and indents; a secret needs at least {VALUE_MIN}")]
    Short(usize),
    #[error("the value has {0} bytes, more than {VALUE_MAX}; keep a file elsewhere and store its key")]
    Long(usize),
}

/// Checks a name, which is displayed, stored and used in paths.
pub fn check_name(name: &str) -> Result<(), Refused> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let fits = (1..=NAME_MAX).contains(&name.len()) && name.chars().all(inside);
    match fits && !name.starts_with(['.', '/']) {
        true => Ok(()),
        false => Err(Refused::Name(name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect())),
    }
}

pub fn check_value(value: &str) -> Result<(), Refused> {
    let length = fold_text(value.as_bytes()).len();
    match value.len() {
        _ if length < VALUE_MIN => Err(Refused::Short(length)),
        long if long > VALUE_MAX => Err(Refused::Long(long)),
        _ => Ok(()),
    }
}

/// Returns whether a value can be found by enumeration. Such a value is never searched for, because anyone who can
/// print a text in a step that uses it would see which guess is redacted.
#[must_use]
pub fn is_guessable(value: &str) -> bool {
    let folded = fold_text(value.trim().as_bytes());
    let text = String::from_utf8_lossy(&folded);
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || b" -+/:.,()_#*".contains(&byte));
    text.chars().count() < UNGUESSABLE_LENGTH
        || (is_number && digits < UNGUESSABLE_DIGITS)
        || text.chars().collect::<BTreeSet<char>>().len() < UNGUESSABLE_DISTINCT
}

/// Parts of a value that outputs are not searched for, because they can be guessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Weakness {
    /// No part of the value is searched for.
    Value,
    /// Fields of a JSON credential, by name.
    Fields(Vec<String>),
}

impl Weakness {
    /// Returns the weakness of a value, if it has one.
    #[must_use]
    pub fn of(value: &str) -> Option<Weakness> {
        let Some(leaves) = json_leaves(value) else {
            return is_guessable(&strip_frame(value)).then_some(Weakness::Value);
        };
        let weak: BTreeSet<String> =
            leaves.into_iter().filter(|leaf| is_guessable(&leaf.text)).map(|leaf| leaf.name).collect();
        (!weak.is_empty()).then(|| Weakness::Fields(weak.into_iter().collect()))
    }
}

impl fmt::Display for Weakness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Weakness::Value => f.write_str("the value can be guessed")?,
            Weakness::Fields(fields) => {
                let names: Vec<String> = fields.iter().map(|field| format!("`{field}`")).collect();
                write!(f, "values of these fields can be guessed: {}", names.join(", "))?;
            }
        }
        f.write_str(
            ", so outputs are not searched for it and a step that prints it publishes it; use a generated value of at \
             least 16 characters",
        )
    }
}

/// Returns the value without the first and last line of a key file, which are the same for every key.
pub(crate) fn strip_frame(value: &str) -> String {
    value.lines().filter(|line| !is_frame_line(line)).collect::<Vec<_>>().join("\n")
}

/// Fields of credentials that are not secret: `localhost` and `admin` occur in many outputs.
const PUBLIC: [&str; 28] = [
    "type",
    "kind",
    "host",
    "hostname",
    "port",
    "database",
    "db",
    "dbname",
    "db_name",
    "schema",
    "sslmode",
    "user",
    "username",
    "db_user",
    "region",
    "endpoint",
    "token_url",
    "auth_uri",
    "token_uri",
    "header",
    "header_name",
    "in",
    "name",
    "grant_type",
    "scope",
    "audience",
    "method",
    "content-type",
];

/// Returns whether the value under this key of a credential is public.
#[must_use]
pub fn is_public_field(key: &str) -> bool {
    PUBLIC.iter().any(|public| public.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_plain_characters() {
        for good in ["a", "api-token", "keychain/my_play/api/token", "A.b", &"x".repeat(NAME_MAX)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "a:b", "/etc", ".hidden", "ä", "a\n", &"x".repeat(NAME_MAX + 1)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_have_a_minimum_and_a_maximum_length() {
        for bad in ["", "abc", "a\n b\n", "   \n"] {
            assert!(matches!(check_value(bad), Err(Refused::Short(_))), "{bad:?}");
        }
        assert_eq!(check_value("abcd"), Ok(()));
        assert!(matches!(check_value(&"x".repeat(VALUE_MAX + 1)), Err(Refused::Long(_))));
    }

    #[test]
    fn values_that_can_be_enumerated_are_guessable() {
        for weak in [
            "",
            "1234",
            "hunter2",
            "  hunter2\n",
            "12345678",
            "123456789012345",
            "2024-12-31",
            "2024-12-31 23:59:59",
            "+49 (170) 123-4567",
            "4111-2345-6789-111",
            "aaaaaaaaaaaaaaaaaaaa",
            "abababababab",
            "a\nb\nc\nd\ne",
            "äöüß",
        ] {
            assert!(is_guessable(weak), "{weak:?}");
        }
        for strong in ["hunter22", "correct-horse", "1234567890123456", "4111-2345-6789-1111", "äöüßéèêë"]
        {
            assert!(!is_guessable(strong), "{strong:?}");
        }
    }

    #[test]
    fn a_weakness_names_the_fields_that_can_be_guessed() {
        assert_eq!(Weakness::of("correct-horse"), None);
        assert_eq!(Weakness::of("1234"), Some(Weakness::Value));
        assert_eq!(Weakness::of("-----BEGIN PIN-----\n1234\n-----END PIN-----"), Some(Weakness::Value));
        let credential =
            r#"{"user": "bo", "password": "1234", "key": "correct-horse", "more": [{"pin": 77}]}"#;
        let weak = Weakness::of(credential).unwrap();
        assert_eq!(weak, Weakness::Fields(vec!["password".to_owned(), "pin".to_owned()]));
        assert!(weak.to_string().starts_with("values of these fields can be guessed: `password`, `pin`, so"));
        assert_eq!(Weakness::of(r#"{"user": "bo", "password": "correct-horse"}"#), None);
    }
}
