//! Keyed digests that distinguish values without revealing them.

use crate::Zeroizing;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// Length of a mark: enough that no two values of a tenant have the same.
const MARK_BYTES: usize = 12;

/// Key of the marks. Without the key, a mark reveals nothing about its value, even if only few values are possible.
#[derive(Clone, PartialEq, Eq)]
pub struct Marks(Zeroizing<[u8; 32]>);

impl Marks {
    pub const KEY_BYTES: usize = 32;

    #[must_use]
    pub fn new(key: [u8; Marks::KEY_BYTES]) -> Marks {
        Marks(Zeroizing::new(key))
    }

    /// Returns the mark of a value; it is the same for the same value in the same place, and different for any other.
    #[must_use]
    pub fn of(&self, place: &str, value: &str) -> String {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.0).expect("a key of any length will do");
        mac.update(&(place.len() as u64).to_be_bytes());
        mac.update(place.as_bytes());
        mac.update(value.as_bytes());
        mac.finalize().into_bytes().iter().take(MARK_BYTES).map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Marks")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_depends_on_key_place_and_value() {
        let marks = Marks::new([7; 32]);
        let mark = marks.of("a/b", "c");
        assert_eq!((mark.len(), &mark), (2 * MARK_BYTES, &marks.of("a/b", "c")));
        for other in [marks.of("a/b", "d"), marks.of("a/", "bc"), Marks::new([8; 32]).of("a/b", "c")] {
            assert_ne!(mark, other);
        }
    }
}
