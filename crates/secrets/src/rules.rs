//! What may be a secret.

/// A shorter value would be found everywhere by chance, and what is redacted then is the output itself.
pub const VALUE_MIN: usize = 4;

/// Below this a chance meeting is still likely enough to be told.
pub const SHORT_BYTES: usize = 8;

/// A certificate chain with its key fits many times; what is larger is a file.
pub const VALUE_MAX: usize = 64 * 1024;

pub const NAME_MAX: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    #[error(
        "`{0}` cannot be the name of a secret: it has 1 to {NAME_MAX} letters, digits and `_`, `-`, `.`, `/`, and begins with none of `.` and `/`"
    )]
    Name(String),
    #[error(
        "the value has {0} bytes: with fewer than {VALUE_MIN}, line breaks and indents not counted, it cannot be told apart from ordinary output and redacted"
    )]
    Short(usize),
    #[error("the value has {0} bytes, more than {VALUE_MAX}: keep a file elsewhere and store its key")]
    Long(usize),
}

/// Names are shown, stored and used in paths.
pub fn check_name(name: &str) -> Result<(), Refused> {
    let inside = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let fits = (1..=NAME_MAX).contains(&name.len()) && name.chars().all(inside);
    match fits && !name.starts_with(['.', '/']) {
        true => Ok(()),
        false => Err(Refused::Name(name.chars().filter(|c| !c.is_control()).take(NAME_MAX).collect())),
    }
}

pub fn check_value(value: &str) -> Result<(), Refused> {
    let length = crate::decode::folded(value.as_bytes()).len();
    match value.len() {
        _ if length < VALUE_MIN => Err(Refused::Short(length)),
        long if long > VALUE_MAX => Err(Refused::Long(long)),
        _ => Ok(()),
    }
}

/// Fields of credentials that are no secrets: `localhost` and `admin` stand in many an honest output.
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

/// Whether the value under this key of a credential may be seen.
#[must_use]
pub fn is_public_field(key: &str) -> bool {
    PUBLIC.iter().any(|public| public.eq_ignore_ascii_case(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for good in ["a", "api-token", "keychain/my_play/api/token", "A.b", &"x".repeat(NAME_MAX)] {
            assert_eq!(check_name(good), Ok(()), "{good}");
        }
        for bad in ["", "a b", "a:b", "/etc", ".hidden", "ä", "a\n", &"x".repeat(NAME_MAX + 1)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn values_are_long_enough_to_be_redacted() {
        for bad in ["", "abc", "a\n b\n", "   \n"] {
            assert!(matches!(check_value(bad), Err(Refused::Short(_))), "{bad:?}");
        }
        assert_eq!(check_value("abcd"), Ok(()));
        assert!(matches!(check_value(&"x".repeat(VALUE_MAX + 1)), Err(Refused::Long(_))));
    }
}
