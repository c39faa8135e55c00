//! Seals of audit rows: each is a keyed hash over the row and the seal of the tenant's row before it. Without the key,
//! an editor of the store can neither change a row nor recompute the seals after it.

use crate::access::{Audit, StoredAudit};
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
    /// Returns the seals under a key. Rows up to `from` were written before the folder had a key.
    #[must_use]
    pub fn new(key: &[u8; SEAL_KEY_BYTES], from: i64) -> AuditSeal {
        let mac = Hmac::<Sha256>::new_from_slice(key).expect("every length is a key");
        let mut seal = AuditSeal { mac, id: String::new(), from };
        seal.id = hex(&seal.sign(&[b"id"]))[..ID_DIGITS].to_owned();
        seal
    }

    /// Returns the id of the key, which does not reveal the key.
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

    /// Returns the seal of a row. `previous` is the seal of the row before it; `details` are as they are stored.
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

    /// Returns the seal that marks a row as the newest of its tenant: without it, the last rows could be removed
    /// unnoticed.
    pub(crate) fn head(&self, tenant: &Tenant, seq: i64, seal: &[u8]) -> [u8; 32] {
        self.sign(&[b"head", tenant.0.as_bytes(), &seq.to_be_bytes(), seal])
    }
}

/// Verifies the audit rows of one tenant in their order.
pub(crate) struct AuditChain<'s> {
    seal: &'s AuditSeal,
    /// Number and seal of the last row.
    last: Option<(i64, Vec<u8>)>,
}

impl AuditChain<'_> {
    pub(crate) fn new(seal: &AuditSeal) -> AuditChain<'_> {
        AuditChain { seal, last: None }
    }

    /// Adds the next row; None if it cannot be read. `details` are as they are stored. Returns what is wrong with the
    /// row.
    pub(crate) fn add(&mut self, seq: i64, row: Option<&StoredAudit>, details: &str) -> Result<(), String> {
        let Some(row) = row else { return Err(format!("row {seq} cannot be read")) };
        let Some(found) = &row.seal else { return Err(format!("row {seq} has no seal")) };
        let before = self.last.as_ref().map(|(_, seal)| &seal[..]);
        if *found != self.seal.row(before, seq, &row.audit, details) {
            return Err(format!(
                "row {seq} is not as it was written, or the row before it was changed or removed: its seal differs"
            ));
        }
        self.last = Some((seq, found.clone()));
        Ok(())
    }

    /// Returns what is wrong with the end of the chain. `head` is the stored seal of the tenant's newest row.
    pub(crate) fn finish(self, tenant: &Tenant, head: Option<(i64, Vec<u8>)>) -> Option<String> {
        match (self.last, head) {
            (None, None) => None,
            (Some((seq, row)), Some((newest, head)))
                if seq == newest && head == self.seal.head(tenant, seq, &row) =>
            {
                None
            }
            (Some((seq, _)), _) => Some(format!("rows after row {seq} are missing: it was not the newest")),
            (None, Some((newest, _))) => Some(format!("all rows up to row {newest} are missing")),
        }
    }
}

/// Formats bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
