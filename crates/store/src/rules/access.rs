//! Tokens and the audit log: which tokens are added and revoked, and which requests are audited.

use crate::commit::Applied;

/// Facts about a token that is to be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenFacts {
    /// There is a token of its id.
    pub has_id: bool,
    /// There is a token of its digest.
    pub has_digest: bool,
}

/// Decides whether a token is added. Tokens of all tenants count: a digest is found without a tenant.
#[must_use]
pub fn judge_token(facts: TokenFacts) -> Applied {
    if facts.has_id || facts.has_digest { Applied::Duplicate } else { Applied::Done }
}

/// Decides whether a token is revoked; the time of the first revocation stays. `is_revoked` is None if the tenant has no
/// token of that id.
#[must_use]
pub fn judge_token_revocation(is_revoked: Option<bool>) -> Applied {
    match is_revoked {
        Some(false) => Applied::Done,
        Some(true) | None => Applied::Duplicate,
    }
}

/// Returns whether the request of a write is audited: only if the write took effect.
#[must_use]
pub fn is_audited(applied: Applied) -> bool {
    match applied {
        Applied::Committed(_) | Applied::Done | Applied::Defined(..) | Applied::Accepted(_) => true,
        Applied::Conflict
        | Applied::Fenced
        | Applied::Duplicate
        | Applied::Taken
        | Applied::QueueFull
        | Applied::HookTaken(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_added_once_and_revoked_once() {
        for (has_id, has_digest, expected) in [
            (false, false, Applied::Done),
            (true, false, Applied::Duplicate),
            (false, true, Applied::Duplicate),
            (true, true, Applied::Duplicate),
        ] {
            assert_eq!(judge_token(TokenFacts { has_id, has_digest }), expected, "{has_id} {has_digest}");
        }
        for (is_revoked, expected) in
            [(None, Applied::Duplicate), (Some(true), Applied::Duplicate), (Some(false), Applied::Done)]
        {
            assert_eq!(judge_token_revocation(is_revoked), expected, "{is_revoked:?}");
        }
    }

    #[test]
    fn a_refused_write_is_not_audited() {
        assert!(is_audited(Applied::Done));
        for refused in
            [Applied::Conflict, Applied::Fenced, Applied::Duplicate, Applied::Taken, Applied::QueueFull]
        {
            assert!(!is_audited(refused), "{refused:?}");
        }
    }
}
