//! Codes of sign-in links. A code is used once, within minutes, at the server that made it; it is in memory only, so that a
//! restart ends all of them.

use crate::auth::{Caller, Digest, Token};
use std::sync::{Mutex, PoisonError};
use windlass_kernel::Millis;

pub(crate) const CODE_MINUTES: u64 = 15;
/// Maximum number of unused codes of a user, and of a tenant; the oldest is dropped. Links of one user leave those of
/// others.
const OF_USER_MAX: usize = 8;
const OF_TENANT_MAX: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct SignInCodes(Mutex<Vec<Code>>);

/// An unused code, and the caller as whom it signs in.
#[derive(Debug)]
struct Code {
    digest: Digest,
    until: Millis,
    caller: Caller,
}

impl SignInCodes {
    /// Returns a new code.
    pub(crate) fn issue(&self, caller: Caller, now: Millis) -> Result<Token, getrandom::Error> {
        let token = Token::random()?;
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.retain(|code| now < code.until);
        drop_oldest(&mut codes, OF_USER_MAX, |code| {
            code.caller.tenant == caller.tenant && code.caller.id == caller.id
        });
        drop_oldest(&mut codes, OF_TENANT_MAX, |code| code.caller.tenant == caller.tenant);
        codes.push(Code { digest: token.digest(), until: now.plus(CODE_MINUTES * 60_000), caller });
        Ok(token)
    }

    /// Returns the caller who requested a code, which stays unused.
    pub(crate) fn look_up(&self, code: &str, now: Millis) -> Option<Caller> {
        let digest = Token::read(code)?.digest();
        let codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        codes.iter().find(|code| code.digest == digest && now < code.until).map(|code| code.caller.clone())
    }

    /// Uses a code up, and returns the caller who requested it.
    pub(crate) fn redeem(&self, code: &str, now: Millis) -> Option<Caller> {
        let digest = Token::read(code)?.digest();
        let mut codes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = codes.iter().position(|code| code.digest == digest && now < code.until)?;
        Some(codes.remove(place).caller)
    }
}

/// Makes room for one more code of a kind.
fn drop_oldest(codes: &mut Vec<Code>, max: usize, is_of_kind: impl Fn(&Code) -> bool) {
    if codes.iter().filter(|code| is_of_kind(code)).count() >= max
        && let Some(oldest) = codes.iter().position(is_of_kind)
    {
        codes.remove(oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{Credential, Role};
    use windlass_store::Tenant;

    fn caller(tenant: &str, id: &str) -> Caller {
        Caller::in_tenant(Tenant::new(tenant), Role::Viewer, id.to_owned(), Credential::Folder)
    }

    #[test]
    fn a_code_is_used_once_and_within_its_time() {
        let codes = SignInCodes::default();
        let (start, late) = (Millis(0), Millis(0).plus(CODE_MINUTES * 60_000));
        let code = codes.issue(caller("a", "ann"), start).unwrap();
        assert_eq!(codes.redeem("wdl_", start), None);
        assert_eq!(codes.redeem(code.text(), late), None);
        assert_eq!((codes.look_up(code.text(), late), codes.look_up("wdl_", start)), (None, None));
        assert_eq!(codes.look_up(code.text(), start), Some(caller("a", "ann")));
        assert_eq!(codes.redeem(code.text(), start), Some(caller("a", "ann")));
        assert_eq!(codes.redeem(code.text(), start), None);
        assert_eq!(codes.look_up(code.text(), start), None);
    }

    #[test]
    fn the_oldest_code_of_a_user_and_of_a_tenant_is_dropped() {
        let (codes, start) = (SignInCodes::default(), Millis(0));
        let issue = |tenant: &str, id: &str| codes.issue(caller(tenant, id), start).unwrap();
        let (first, other) = (issue("a", "ann"), issue("b", "bob"));
        (0..OF_USER_MAX).for_each(|_| drop(issue("a", "ann")));
        assert_eq!(codes.redeem(first.text(), start), None);
        let own = issue("a", "cid");
        (0..OF_TENANT_MAX).for_each(|number| drop(issue("a", &number.to_string())));
        assert_eq!(codes.redeem(own.text(), start), None);
        assert_eq!(codes.redeem(other.text(), start), Some(caller("b", "bob")));
        assert!(codes.0.lock().unwrap().len() <= OF_TENANT_MAX);
    }
}
