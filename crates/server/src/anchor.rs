//! The signed end of a chain of evidence.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use windlass_store::{AuditSeal, hex};
use windlass_views::Evidence;

/// The end of a chain, signed by the server. Without the key, no other chain with an anchor can be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    /// Id of the key, which does not reveal the key.
    pub key_id: String,
    /// Id of the last entry.
    pub evidence_id: String,
    /// Hash of the last entry.
    pub hash_sha256: String,
    /// HMAC-SHA-256 over both, in hexadecimal digits.
    pub hmac: String,
}

impl Anchor {
    #[must_use]
    pub fn of(seal: &AuditSeal, last: &Evidence) -> Option<Anchor> {
        let (evidence_id, hash_sha256) = (last.evidence_id.clone(), last.hash_sha256.clone());
        let hmac = hex(&sign(seal, &evidence_id, &hash_sha256));
        Some(Anchor { key_id: seal.id().to_owned(), evidence_id, hash_sha256, hmac })
    }

    /// Reports whether the anchor was signed with this key.
    #[must_use]
    pub fn is_by(&self, seal: &AuditSeal) -> bool {
        let expected = hex(&sign(seal, &self.evidence_id, &self.hash_sha256));
        subtle::ConstantTimeEq::ct_eq(expected.as_bytes(), self.hmac.as_bytes()).into()
    }
}

fn sign(seal: &AuditSeal, id: &str, hash: &str) -> [u8; 32] {
    seal.sign(&[b"evidence", id.as_bytes(), hash.as_bytes()])
}
