//! Sessions and units in the form in which workers get them. Both are random or sealed, and meaningless to all others.

use crate::problem::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt;
use windlass_protocol::{Failure, SessionId, Unit};
use windlass_views::canonical;

const SESSION_PREFIX: &str = "wks_";
const UNIT_PREFIX: &str = "wku_";
const ID_BYTES: usize = 8;
const SECRET_BYTES: usize = 24;
/// Execution, run and fence.
const UNIT_BYTES: usize = 32;
const SEAL_BYTES: usize = 16;

/// A session: its number and a secret that only its worker has.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    bytes: [u8; ID_BYTES + SECRET_BYTES],
}

impl SessionHandle {
    pub(crate) fn random() -> Result<SessionHandle, Problem> {
        let mut bytes = [0; ID_BYTES + SECRET_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| Problem::internal(format!("no random bytes: {error}")))?;
        Ok(SessionHandle { bytes })
    }

    /// Parses a session; returns None for any other format.
    pub(crate) fn read(text: &str) -> Option<SessionHandle> {
        let decoded = URL_SAFE_NO_PAD.decode(text.strip_prefix(SESSION_PREFIX)?).ok()?;
        Some(SessionHandle { bytes: decoded.try_into().ok()? })
    }

    pub(crate) fn text(&self) -> String {
        format!("{SESSION_PREFIX}{}", URL_SAFE_NO_PAD.encode(self.bytes))
    }

    pub(crate) fn id(&self) -> SessionId {
        let mut id = [0; ID_BYTES];
        id.copy_from_slice(&self.bytes[..ID_BYTES]);
        SessionId(u64::from_be_bytes(id))
    }

    pub(crate) fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.bytes).into()
    }

    /// Returns a unit as the worker of this session writes it.
    pub(crate) fn unit_text(&self, unit: Unit) -> String {
        let bytes = unit_bytes(unit);
        let sealed: Vec<u8> = bytes.into_iter().chain(self.seal(&bytes)).collect();
        format!("{UNIT_PREFIX}{}", URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Parses a unit; returns None if it does not belong to this session.
    pub(crate) fn read_unit(&self, text: &str) -> Option<Unit> {
        let sealed = URL_SAFE_NO_PAD.decode(text.strip_prefix(UNIT_PREFIX)?).ok()?;
        let (bytes, seal) = sealed.split_at_checked(UNIT_BYTES)?;
        let bytes: [u8; UNIT_BYTES] = bytes.try_into().ok()?;
        (self.seal(&bytes)[..] == *seal).then(|| unit_of(&bytes))
    }

    /// Returns the proof that a worker reported this for a unit. Without the session it reveals nothing about the
    /// report.
    pub(crate) fn receipt(&self, unit: Unit, outcome: &Result<Value, Box<Failure>>) -> [u8; 32] {
        let reported = match outcome {
            Ok(result) => json!({ "result": result }),
            Err(failure) => json!({ "error": failure }),
        };
        let digest = Sha256::new().chain_update(self.bytes).chain_update(unit_bytes(unit));
        digest.chain_update(canonical(&reported)).finalize().into()
    }

    fn seal(&self, unit: &[u8; UNIT_BYTES]) -> [u8; SEAL_BYTES] {
        let digest = Sha256::new().chain_update(self.bytes).chain_update(unit).finalize();
        let mut seal = [0; SEAL_BYTES];
        seal.copy_from_slice(&digest[..SEAL_BYTES]);
        seal
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionHandle({})", self.id().0)
    }
}

fn unit_bytes(unit: Unit) -> [u8; UNIT_BYTES] {
    let mut bytes = [0; UNIT_BYTES];
    bytes[..16].copy_from_slice(&unit.execution.to_be_bytes());
    bytes[16..24].copy_from_slice(&unit.run.to_be_bytes());
    bytes[24..].copy_from_slice(&unit.fence.to_be_bytes());
    bytes
}

fn unit_of(bytes: &[u8; UNIT_BYTES]) -> Unit {
    let number = |range: std::ops::Range<usize>| {
        bytes[range].iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte))
    };
    let half = |range| u64::try_from(number(range)).unwrap_or_default();
    Unit { execution: number(0..16), run: half(16..24), fence: half(24..32) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_read_by_its_own_session_only() {
        let (session, other) = (SessionHandle::random().unwrap(), SessionHandle::random().unwrap());
        let unit = Unit { execution: u128::MAX - 7, run: 1 << 40, fence: 3 };
        let text = session.unit_text(unit);
        assert_eq!(session.read_unit(&text), Some(unit));
        assert_eq!(other.read_unit(&text), None);
        let again = SessionHandle::read(&session.text()).unwrap();
        assert_eq!((again.id(), again.digest()), (session.id(), session.digest()));
        assert_eq!(again.read_unit(&text), Some(unit));
        assert!(!format!("{session:?}").contains(&session.text()[12..]));
    }

    #[test]
    fn a_receipt_is_that_of_one_report_of_one_session() {
        let (session, other) = (SessionHandle::random().unwrap(), SessionHandle::random().unwrap());
        let unit = Unit { execution: 1, run: 2, fence: 3 };
        let done = |text: &str| Ok(serde_json::from_str::<Value>(text).unwrap());
        let receipt = session.receipt(unit, &done(r#"{"a": 1, "b": [2]}"#));
        assert_eq!(session.receipt(unit, &done(r#"{"b": [2], "a": 1}"#)), receipt);
        let failed = Err(Box::new(Failure::of_code("A", "broken".to_owned())));
        let others = [
            session.receipt(unit, &done(r#"{"a": 1, "b": [3]}"#)),
            session.receipt(unit, &failed),
            session.receipt(Unit { fence: 4, ..unit }, &done(r#"{"a": 1, "b": [2]}"#)),
            other.receipt(unit, &done(r#"{"a": 1, "b": [2]}"#)),
        ];
        assert!(!others.contains(&receipt));
    }

    #[test]
    fn texts_of_another_format_are_refused() {
        let session = SessionHandle::random().unwrap();
        let text = session.text();
        for wrong in ["", "wks_", &text[1..], &text[..text.len() - 1], &format!("{text}A"), "wks_ä"] {
            assert!(SessionHandle::read(wrong).is_none(), "{wrong}");
        }
        let unit = session.unit_text(Unit { execution: 1, run: 1, fence: 1 });
        for wrong in ["", "wku_", "wku_AAAA", &unit[..unit.len() - 2], &text] {
            assert_eq!(session.read_unit(wrong), None, "{wrong}");
        }
    }
}
