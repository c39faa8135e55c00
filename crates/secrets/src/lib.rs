//! Secrets: how values are encrypted on disk, and how they are kept out of everything else (K9).
//!
//! | part | is |
//! |---|---|
//! | [`seal`], [`open`], [`rewrap`] | the envelope: a value under its own key, that key under a master key |
//! | [`Keyring`], [`MasterKeys`] | master keys in memory, and where they come from |
//! | [`Redactor`], [`Stream`] | takes known values out of texts, JSON and output that comes in pieces |
//! | [`Marks`] | names for values, which say nothing of them |
//! | [`check_name`], [`check_value`] | what may be a secret at all |
//! | [`is_guessable`], [`Weakness`] | which secrets are not searched for, since an echo would confirm them |

mod decode;
mod envelope;
mod keyring;
mod marks;
mod master;
mod parts;
mod redactor;
mod rules;
mod stream;

pub use envelope::{Sealed, SealedError, SecretId, open, rewrap, seal};
pub use keyring::{KEYS_MAX, KeyError, KeyId, Keyring};
pub use marks::Marks;
pub use master::{KEY_FILE, KEY_VARIABLE, KeyLock, MasterError, MasterKeys};
pub use redactor::{LOOKAHEAD, REPLACEMENT, Redactor};
pub use rules::{
    NAME_MAX, Refused, VALUE_MAX, VALUE_MIN, Weakness, check_name, check_value, is_guessable, is_public_field,
};
pub use stream::Stream;
pub use zeroize::Zeroizing;

/// Environment variables of the engine itself. Processes of steps do not get them, and no template can read them.
pub const ENGINE_VARIABLES: [&str; 4] =
    [KEY_VARIABLE, "WINDLASS_TOKEN", "WINDLASS_JWT_SECRET", "WINDLASS_DATABASE_URL"];

/// Environment variable that marks a process of the engine whose secrets arrive on standard input.
pub const HANDED_OVER_VARIABLE: &str = "WINDLASS_SECRETS_ON_STDIN";

/// Returns the environment variables that no process of a step inherits.
pub fn withheld_variables() -> impl Iterator<Item = &'static str> {
    ENGINE_VARIABLES.into_iter().chain([HANDED_OVER_VARIABLE])
}
