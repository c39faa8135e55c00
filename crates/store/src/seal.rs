//! Seals of audit rows: each is a keyed hash over the row and the seal of the tenant's row before it. Who edits the store
//! without the key can neither change a row nor recompute what follows it.

use crate::access::Audit;
use crate::origin::Tenant;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt;

/// Bytes of the key.
pub const SEAL_KEY_BYTES: usize = 32;
/// Digits of a key's id.
const ID_DIGITS: usize = 16;

/// The key that audit rows are sealed with.
#[derive(Clone)]
pub struct AuditSeal {
    mac: Hmac<Sha256>,
    id: String,
    from: i64,
}

impl fmt::Debug for AuditSeal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuditSeal").field("id", &self.id).field("from", &self.from).finish_non_exhaustive()
    }
}

impl AuditSeal {
    /// Rows up to `from` were written before there was a key.
    #[must_use]
    pub fn new(key: &[u8; SEAL_KEY_BYTES], from: i64) -> AuditSeal {
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("every length is a key");
        let mut seal = AuditSeal { mac, id: String::new(), from };
        seal.id = hex(&seal.sign(&[b"id"]))[..ID_DIGITS].to_owned();
        seal
    }

    /// Names the key without revealing it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn from(&self) -> i64 {
        self.from
    }

    /// Signs parts so that no other division of the same bytes has the same signature.
    #[must_use]
    pub fn sign(&self, parts: &[&[u8]]) -> [u8; 32] {
        let mut mac = self.mac.clone();
        for part in parts {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part);
        }
        mac.finalize().into_bytes().into()
    }

    /// The seal of a row after the one with that seal; `details` as they are stored.
    pub(crate) fn row(&self, previous: Option<&[u8]>, seq: i64, audit: &Audit, details: &str) -> [u8; 32] {
        let Audit { tenant, at, actor, role, action, target, .. } = audit;
        self.sign(&[
            b"row",
            previous.unwrap_or_default(),
            &seq.to_be_bytes(),
            tenant.0.as_bytes(),
            &at.0.to_be_bytes(),
            actor.as_bytes(),
            role.as_bytes(),
            action.as_bytes(),
            target.as_bytes(),
            details.as_bytes(),
        ])
    }

    /// The seal of a tenant's newest row as its newest: without it, rows could be cut off unnoticed.
    pub(crate) fn head(&self, tenant: &Tenant, seq: i64, seal: &[u8]) -> [u8; 32] {
        self.sign(&[b"head", tenant.0.as_bytes(), &seq.to_be_bytes(), seal])
    }
}

/// Bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
