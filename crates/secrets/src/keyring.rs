//! Master keys: the newest one seals, and all of them open.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// Maximum number of keys. A rotation needs two; more than a few mean that rotations were not completed.
pub const KEYS_MAX: usize = 16;

const KEY_BYTES: usize = 32;

/// Name of a key that does not reveal it: the beginning of a digest over it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(String);

impl KeyId {
    /// Restores a key id from its stored text.
    #[must_use]
    pub fn stored(text: &str) -> KeyId {
        KeyId(text.to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error(
        "key {number} is not {KEY_BYTES} bytes in base64; create one with `head -c {KEY_BYTES} /dev/urandom | base64`"
    )]
    Malformed { number: usize },
    #[error("there is no key; create one with `head -c {KEY_BYTES} /dev/urandom | base64`")]
    Empty,
    #[error("there are more than {KEYS_MAX} keys; finish the rotation and keep only the newest")]
    TooMany,
    #[error("the system provides no random bytes: {0}")]
    NoRandomness(String),
}

type Key = Zeroizing<[u8; KEY_BYTES]>;

/// Master keys, newest first; at least one. They are erased from memory when the ring is dropped, and never printed.
#[derive(Clone)]
pub struct Keyring {
    keys: Vec<(KeyId, Key)>,
}

impl Keyring {
    /// Generates a key from the system's randomness.
    pub fn generate() -> Result<Keyring, KeyError> {
        let mut key = Key::default();
        fill_random(&mut *key)?;
        Ok(Keyring { keys: vec![(key_id(&key), key)] })
    }

    /// Parses keys in base64, newest first, separated by spaces, commas or line ends. `#` begins a comment.
    pub fn parse(text: &str) -> Result<Keyring, KeyError> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split([' ', '\t', ','])).filter(|word| !word.is_empty());
        let mut keys: Vec<(KeyId, Key)> = Vec::new();
        for (number, word) in (1..).zip(words) {
            let key = decode_key(word).ok_or(KeyError::Malformed { number })?;
            let id = key_id(&key);
            if keys.iter().all(|(known, _)| *known != id) {
                keys.push((id, key));
            }
            if keys.len() > KEYS_MAX {
                return Err(KeyError::TooMany);
            }
        }
        if keys.is_empty() { Err(KeyError::Empty) } else { Ok(Keyring { keys }) }
    }

    /// Formats the keys for `parse`, one per line.
    #[must_use]
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::new());
        for (_, key) in &self.keys {
            text.push_str(&Zeroizing::new(STANDARD.encode(**key)));
            text.push('\n');
        }
        text
    }

    /// Returns a ring with a new key in front of these.
    pub fn renewed(&self) -> Result<Keyring, KeyError> {
        let mut keys = Keyring::generate()?.keys;
        keys.extend(self.keys.iter().cloned());
        keys.truncate(KEYS_MAX);
        Ok(Keyring { keys })
    }

    #[must_use]
    pub fn newest_alone(&self) -> Keyring {
        Keyring { keys: self.keys[..1].to_vec() }
    }

    /// Returns the id of the key that seals.
    #[must_use]
    pub fn newest(&self) -> &KeyId {
        &self.keys[0].0
    }

    pub fn ids(&self) -> impl Iterator<Item = &KeyId> {
        self.keys.iter().map(|(id, _)| id)
    }

    pub(crate) fn key(&self, id: &KeyId) -> Option<&[u8; KEY_BYTES]> {
        self.keys.iter().find(|(known, _)| known == id).map(|(_, key)| &**key)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.ids()).finish()
    }
}

pub(crate) fn fill_random(bytes: &mut [u8]) -> Result<(), KeyError> {
    getrandom::fill(bytes).map_err(|error| KeyError::NoRandomness(error.to_string()))
}

fn decode_key(word: &str) -> Option<Key> {
    let bytes = Zeroizing::new(STANDARD.decode(word).ok()?);
    Some(Key::new(bytes.as_slice().try_into().ok()?))
}

fn key_id(key: &Key) -> KeyId {
    let digest = Sha256::new().chain_update(b"windlass master key").chain_update(**key).finalize();
    KeyId(digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        let ring = Keyring::generate().unwrap().renewed().unwrap();
        let read = Keyring::parse(&ring.text()).unwrap();
        assert!(read.ids().eq(ring.ids()) && ring.ids().count() == 2);
        let line = ring.text().replace('\n', ", ");
        assert!(Keyring::parse(&format!("# mine\n {line} # both")).unwrap().ids().eq(ring.ids()));
        assert_eq!(ring.newest_alone().newest(), ring.newest());
    }

    #[test]
    fn an_invalid_key_is_refused_without_showing_it() {
        let short = STANDARD.encode([7; 16]);
        for (text, expected) in [
            ("", KeyError::Empty),
            ("# nothing\n", KeyError::Empty),
            (short.as_str(), KeyError::Malformed { number: 1 }),
            ("hunter2", KeyError::Malformed { number: 1 }),
        ] {
            let error = Keyring::parse(text).unwrap_err();
            assert_eq!(error, expected);
            assert!(!error.to_string().contains("hunter2"));
        }
    }

    #[test]
    fn debug_output_of_a_keyring_names_its_keys_only() {
        let ring = Keyring::generate().unwrap();
        assert_eq!(format!("{ring:?}"), format!("{{KeyId(\"{}\")}}", ring.newest()));
    }
}
