//! Signatures of webhooks. The body has the field `signature` of the specification; the headers are those of Standard
//! Webhooks, which also cover the id and the time, so that a copy cannot be replayed later.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::Value;
use sha2::Sha256;
use std::fmt;
use windlass_views::canonical;

pub(crate) const SECRET_PREFIX: &str = "whsec_";
/// Bytes of a new secret; Standard Webhooks requires 24 to 64.
const SECRET_BYTES: usize = 32;

/// A key that server and receiver share.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("a webhook secret must be `whsec_` and 24 to 64 bytes in base64")]
pub struct BadSecret;

impl Secret {
    pub fn random() -> Result<Secret, getrandom::Error> {
        let mut bytes = vec![0; SECRET_BYTES];
        getrandom::fill(&mut bytes)?;
        Ok(Secret(bytes))
    }

    pub fn parse(text: &str) -> Result<Secret, BadSecret> {
        let encoded = text.strip_prefix(SECRET_PREFIX).ok_or(BadSecret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadSecret)?;
        if (24..=64).contains(&bytes.len()) { Ok(Secret(bytes)) } else { Err(BadSecret) }
    }

    /// Returns the secret in the format of Standard Webhooks.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{SECRET_PREFIX}{}", STANDARD.encode(&self.0))
    }

    fn mac(&self, content: &[u8]) -> [u8; 32] {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length is taken");
        mac.update(content);
        mac.finalize().into_bytes().into()
    }
}

/// Returns the signature in the body: over the canonical JSON of the body without it.
#[must_use]
pub(crate) fn of_body(secret: &Secret, unsigned: &Value) -> String {
    let mac = secret.mac(canonical(unsigned).as_bytes());
    let hex: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// Returns the value of `webhook-signature`: a signature per secret, so that a receiver may still have the previous one.
#[must_use]
pub(crate) fn of_message(secrets: &[Secret], id: &str, timestamp: i64, body: &str) -> String {
    let content = format!("{id}.{timestamp}.{body}");
    let signed = |secret: &Secret| format!("v1,{}", STANDARD.encode(secret.mac(content.as_bytes())));
    secrets.iter().map(signed).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    fn secret() -> Secret {
        Secret::parse(SECRET).expect("a good secret")
    }

    /// Body and signature are from the reference implementation.
    #[test]
    fn the_header_is_what_standard_webhooks_computes() {
        let body = r#"{"test": 2432232314}"#;
        let signed = of_message(&[secret()], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn while_a_secret_changes_there_is_a_signature_of_each() {
        let other = Secret::random().expect("random bytes");
        let signed = of_message(&[other.clone(), secret()], "msg_1", 1, "{}");
        let parts: Vec<&str> = signed.split(' ').collect();
        let alone = |secret: Secret| of_message(&[secret], "msg_1", 1, "{}");
        assert_eq!(parts, [alone(other), alone(secret())]);
    }

    #[test]
    fn the_body_is_signed_in_its_canonical_form() {
        let one: Value = serde_json::from_str(r#"{"b": 1.0, "a": "x"}"#).expect("JSON");
        assert_eq!(of_body(&secret(), &one), of_body(&secret(), &json!({ "a": "x", "b": 1 })));
        assert_ne!(of_body(&secret(), &one), of_body(&secret(), &json!({ "a": "x", "b": 2 })));
        assert!(of_body(&secret(), &one).starts_with("sha256=") && of_body(&secret(), &one).len() == 71);
    }

    #[test]
    fn secrets_have_a_prefix_and_a_length_and_are_not_shown_by_debug() {
        assert_eq!(secret().to_text(), SECRET);
        assert!(!format!("{:?}", secret()).contains("MfKQ"));
        for bad in ["", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_", "whsec_c2hvcnQ=", "whsec_!!"] {
            assert_eq!(Secret::parse(bad), Err(BadSecret), "{bad}");
        }
        let fresh = Secret::random().expect("random bytes");
        assert_eq!(Secret::parse(&fresh.to_text()), Ok(fresh));
    }
}
