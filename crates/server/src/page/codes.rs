//! Codes of sign-in links. A code is used once, within minutes, at the server that made it; it is in memory only, so that a
//! restart ends all of them.

use crate::auth::{Digest, Role, Token};
use std::sync::{Arc, Mutex, PoisonError};
use windlass_kernel::Millis;
use windlass_store::Tenant;

pub(crate) const CODE_MINUTES: u64 = 15;
/// Maximum number of unused codes of the server; the oldest is dropped.
const CODES_MAX: usize = 64;

/// The user that a code signs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignIn {
    pub tenant: Tenant,
    pub role: Role,
    pub roles: Arc<[String]>,
    /// The user who asked for the link, and as whom the session acts.
    pub by: String,
    /// When the credential expires that asked for the link: no session outlives it.
    pub until: Option<Millis>,
}

#[derive(Debug, Default)]
pub(crate) struct SignInCodes(Mutex<Vec<(Digest, Millis, SignIn)>>);

impl SignInCodes {
    /// Returns a new code.
    pub(crate) fn issue(&self, sign_in: SignIn, now: Millis) -> Result<Token, getrandom::Error> {
        let code = Token::random()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|(_, until, _)| now < *until);
        if codes.len() == CODES_MAX {
            codes.remove(0);
        }
        codes.push((code.digest(), now.plus(CODE_MINUTES * 60_000), sign_in));
        Ok(code)
    }

    /// Uses a code up.
    pub(crate) fn redeem(&self, code: &str, now: Millis) -> Option<SignIn> {
        let digest = Token::read(code)?.digest();
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = codes.iter().position(|(known, until, _)| *known == digest && now < *until)?;
        Some(codes.remove(place).2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_used_once_and_within_its_time() {
        let codes = SignInCodes::default();
        let sign_in = SignIn {
            tenant: Tenant::default(),
            role: Role::Viewer,
            roles: Arc::default(),
            by: "owner".to_owned(),
            until: None,
        };
        let (start, late) = (Millis(0), Millis(0).plus(CODE_MINUTES * 60_000));
        let code = codes.issue(sign_in.clone(), start).unwrap();
        assert_eq!(codes.redeem("wdl_", start), None);
        assert_eq!(codes.redeem(code.text(), late), None);
        assert_eq!(codes.redeem(code.text(), start), Some(sign_in));
        assert_eq!(codes.redeem(code.text(), start), None);
    }
}
