//! Credentials of callers, and their expiry: a stream may outlive the token that opened it.

use super::{Caller, Digest};
use crate::app::App;
use crate::host::now;
use crate::problem::Problem;
use std::time::Duration;
use windlass_kernel::Millis;

/// The credential that authenticated a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// A token of this server, valid until it expires or is revoked.
    Token(Digest),
    /// A JWT, valid until this time.
    Until(Millis),
    /// No credential: a request to a hook that requires none.
    Free,
    /// Access to the data folder itself.
    Folder,
}

/// Maximum time between two checks of a credential.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);

impl Caller {
    /// Refuses with 401 if the credential is no longer valid.
    pub fn check_credential(&self, app: &App) -> Result<(), Problem> {
        let is_valid = match self.credential {
            Credential::Token(digest) => app.directory.is_valid(&digest, now()),
            Credential::Until(end) => now() < end,
            Credential::Free | Credential::Folder => true,
        };
        match is_valid {
            true => Ok(()),
            false => {
                Err(Problem::unauthenticated("the token has expired or was revoked; retry with a new one"))
            }
        }
    }

    /// Completes when the credential is no longer valid.
    pub async fn wait_for_expiry(&self, app: &App) -> Problem {
        // Subscribes before the first check, so that no revocation is missed.
        let mut revocations = app.directory.revocations();
        loop {
            if let Err(problem) = self.check_credential(app) {
                return problem;
            }
            let left = self.ends_at(app).map_or(LOOK_AGAIN, |end| Duration::from_millis(end.since(now())));
            tokio::select! {
                () = tokio::time::sleep(left.min(LOOK_AGAIN)) => {}
                // The sender lives as long as the app.
                _ = revocations.changed() => {}
            }
        }
    }

    /// Returns when the credential expires by itself.
    pub(crate) fn ends_at(&self, app: &App) -> Option<Millis> {
        match self.credential {
            Credential::Token(digest) => app.directory.ends_at(&digest),
            Credential::Until(end) => Some(end),
            Credential::Free | Credential::Folder => None,
        }
    }
}
