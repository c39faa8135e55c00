//! Encryption of a stored value: it is sealed under a key of its own, which a master key wraps.
//!
//! ```text
//! 1 | nonce 24 | wrapped key 32 + 16 | nonce 24 | value + 16
//! ```
//! The cipher is XChaCha20-Poly1305 with random nonces. Tenant, name and version are associated data of both parts,
//! so that a row opens only for its own id. Rewrapping changes only the first part.

use crate::keyring::{KeyError, KeyId, Keyring, fill_random};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use std::fmt;
use zeroize::Zeroizing;

const FORMAT: u8 = 1;
const NONCE: usize = 24;
const KEY: usize = 32;
const TAG: usize = 16;
/// Offset of the value's own nonce.
const VALUE_AT: usize = 1 + NONCE + KEY + TAG;

/// Identity of a stored value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SecretId<'p> {
    pub tenant: &'p str,
    pub name: &'p str,
    pub version: u32,
}

/// An encrypted value as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Sealed {
    pub key: KeyId,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for Sealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealed({} bytes under {})", self.bytes.len(), self.key)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealedError {
    #[error(
        "secret `{name}` is sealed under the master key {key}, which is not available; restore the key file or the value of WINDLASS_MASTER_KEY it was set with, or set it again"
    )]
    NoKey { name: String, key: KeyId },
    #[error(
        "secret `{name}` (version {version}) cannot be opened: its stored value was changed or belongs to another secret; set it again"
    )]
    Broken { name: String, version: u32 },
    #[error(
        "secret `{name}` is stored in format {format}, but this program supports {FORMAT}; use the program that set it"
    )]
    Format { name: String, format: u8 },
    #[error(transparent)]
    Key(#[from] KeyError),
}

/// Seals a value under a new key, and that key under the newest of the ring.
pub fn seal(ring: &Keyring, id: SecretId<'_>, value: &[u8]) -> Result<Sealed, SealedError> {
    let mut own = Zeroizing::new([0; KEY]);
    fill_random(&mut *own)?;
    let mut bytes = vec![FORMAT];
    bytes.extend(wrap_key(ring, id, &own)?);
    bytes.extend(encrypt(&own, &id.associated_data("value"), value)?);
    Ok(Sealed { key: ring.newest().clone(), bytes })
}

pub fn open(ring: &Keyring, id: SecretId<'_>, sealed: &Sealed) -> Result<Zeroizing<Vec<u8>>, SealedError> {
    let own = unwrap_key(ring, id, sealed)?;
    decrypt(&own, &id.associated_data("value"), &sealed.bytes[VALUE_AT..]).ok_or_else(|| id.broken_error())
}

/// Returns the same value with its key wrapped by the newest of the ring.
pub fn rewrap(ring: &Keyring, id: SecretId<'_>, sealed: &Sealed) -> Result<Sealed, SealedError> {
    // A row that does not open is an error and is not rewrapped.
    open(ring, id, sealed)?;
    let own = unwrap_key(ring, id, sealed)?;
    let mut bytes = vec![FORMAT];
    bytes.extend(wrap_key(ring, id, &own)?);
    bytes.extend(&sealed.bytes[VALUE_AT..]);
    Ok(Sealed { key: ring.newest().clone(), bytes })
}

impl SecretId<'_> {
    /// Returns the associated data. Lengths precede the texts, so that it is unique.
    fn associated_data(&self, part: &str) -> Vec<u8> {
        let mut bytes = b"windlass secret".to_vec();
        for text in [part, self.tenant, self.name] {
            bytes.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend(self.version.to_be_bytes());
        bytes
    }

    fn broken_error(&self) -> SealedError {
        SealedError::Broken { name: self.name.to_owned(), version: self.version }
    }
}

fn wrap_key(ring: &Keyring, id: SecretId<'_>, own: &[u8; KEY]) -> Result<Vec<u8>, SealedError> {
    let master = ring.key(ring.newest()).ok_or_else(|| id.broken_error())?;
    encrypt(master, &id.associated_data("key"), own)
}

fn unwrap_key(
    ring: &Keyring,
    id: SecretId<'_>,
    sealed: &Sealed,
) -> Result<Zeroizing<[u8; KEY]>, SealedError> {
    match sealed.bytes.first() {
        Some(&FORMAT) if sealed.bytes.len() >= VALUE_AT + NONCE + TAG => {}
        Some(&FORMAT) | None => return Err(id.broken_error()),
        Some(&format) => return Err(SealedError::Format { name: id.name.to_owned(), format }),
    }
    let name = || id.name.to_owned();
    let master =
        ring.key(&sealed.key).ok_or_else(|| SealedError::NoKey { name: name(), key: sealed.key.clone() })?;
    let own = decrypt(master, &id.associated_data("key"), &sealed.bytes[1..VALUE_AT]);
    let own = own.and_then(|own| own.as_slice().try_into().ok());
    own.map(Zeroizing::new).ok_or_else(|| id.broken_error())
}

/// Returns the nonce, then the ciphertext and its tag.
fn encrypt(key: &[u8; KEY], aad: &[u8], msg: &[u8]) -> Result<Vec<u8>, SealedError> {
    let mut nonce = [0; NONCE];
    fill_random(&mut nonce)?;
    let sealed = XChaCha20Poly1305::new(key.into()).encrypt(&XNonce::from(nonce), Payload { msg, aad });
    let sealed = sealed.expect("a value is far shorter than the cipher's bound");
    Ok([&nonce[..], &sealed].concat())
}

fn decrypt(key: &[u8; KEY], aad: &[u8], bytes: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, msg) = bytes.split_first_chunk::<NONCE>()?;
    let opened = XChaCha20Poly1305::new(key.into()).decrypt(&XNonce::from(*nonce), Payload { msg, aad });
    opened.ok().map(Zeroizing::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SecretId<'_> = SecretId { tenant: "default", name: "api", version: 3 };

    fn rings() -> (Keyring, Sealed) {
        let ring = Keyring::generate().unwrap();
        let sealed = seal(&ring, ID, b"swordfish").unwrap();
        (ring, sealed)
    }

    #[test]
    fn a_value_opens_under_its_own_id() {
        let (ring, sealed) = rings();
        assert_eq!(open(&ring, ID, &sealed).unwrap().as_slice(), b"swordfish");
        let again = seal(&ring, ID, b"swordfish").unwrap();
        assert_ne!(again.bytes, sealed.bytes, "the same value never has the same bytes");
    }

    #[test]
    fn a_value_does_not_open_under_another_id() {
        let (ring, sealed) = rings();
        for id in [
            SecretId { tenant: "other", ..ID },
            SecretId { name: "apj", ..ID },
            SecretId { version: 4, ..ID },
            SecretId { tenant: "defaulta", name: "pi", ..ID },
        ] {
            assert!(matches!(open(&ring, id, &sealed), Err(SealedError::Broken { .. })), "{id:?}");
            assert!(matches!(rewrap(&ring, id, &sealed), Err(SealedError::Broken { .. })), "{id:?}");
        }
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let (ring, sealed) = rings();
        for at in 0..sealed.bytes.len() {
            let mut changed = sealed.clone();
            changed.bytes[at] ^= 1;
            assert!(open(&ring, ID, &changed).is_err(), "byte {at}");
        }
        for length in 0..sealed.bytes.len() {
            let cut = Sealed { bytes: sealed.bytes[..length].to_vec(), ..sealed.clone() };
            assert!(open(&ring, ID, &cut).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn parts_of_two_rows_do_not_open_together() {
        let (ring, sealed) = rings();
        let other = seal(&ring, ID, b"marlin").unwrap();
        let mixed = [&sealed.bytes[..VALUE_AT], &other.bytes[VALUE_AT..]].concat();
        let mixed = Sealed { bytes: mixed, ..sealed };
        assert!(matches!(open(&ring, ID, &mixed), Err(SealedError::Broken { .. })));
    }

    #[test]
    fn another_key_does_not_open_and_is_named() {
        let (ring, sealed) = rings();
        let other = Keyring::generate().unwrap();
        let expected = SealedError::NoKey { name: "api".into(), key: ring.newest().clone() };
        assert_eq!(open(&other, ID, &sealed).unwrap_err(), expected);
        let lying = Sealed { key: other.newest().clone(), ..sealed };
        assert!(matches!(open(&other, ID, &lying), Err(SealedError::Broken { .. })));
    }

    #[test]
    fn after_a_rotation_the_new_key_alone_opens() {
        let (ring, sealed) = rings();
        let both = ring.renewed().unwrap();
        let rewrapped = rewrap(&both, ID, &sealed).unwrap();
        assert_eq!(&rewrapped.key, both.newest());
        assert_eq!(open(&both.newest_alone(), ID, &rewrapped).unwrap().as_slice(), b"swordfish");
        assert!(open(&ring, ID, &rewrapped).is_err());
        assert!(open(&both, ID, &sealed).is_ok(), "older keys still open");
    }

    #[test]
    fn a_later_format_is_an_error_of_its_own() {
        let (ring, mut sealed) = rings();
        sealed.bytes[0] = 2;
        let error = open(&ring, ID, &sealed).unwrap_err();
        assert!(matches!(error, SealedError::Format { format: 2, .. }), "{error}");
    }
}
