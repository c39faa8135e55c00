//! How long a caller may go on: a stream outlives the request that opened it, and the token need not.

use super::{Caller, Digest};
use crate::app::App;
use crate::host::now;
use crate::problem::Problem;
use std::time::Duration;
use windlass_kernel::Millis;

/// What a caller came in with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Credential {
    /// A token of ours: until it ends or is revoked.
    Token(Digest),
    /// A JWT: until it ends.
    Until(Millis),
    /// A webhook's request, which needs none.
    Free,
    /// Access to the data folder itself.
    Folder,
}

/// The end of a credential that is further away is looked for again then.
const LOOK_AGAIN: Duration = Duration::from_secs(3_600);

impl Caller {
    /// A 401 from the moment on at which what the caller came in with opens nothing any more.
    pub fn check_credential(&self, app: &App) -> Result<(), Problem> {
        let passes = match self.credential {
            Credential::Token(digest) => app.directory.is_valid(&digest, now()),
            Credential::Until(end) => now() < end,
            Credential::Free | Credential::Folder => true,
        };
        match passes {
            true => Ok(()),
            false => {
                Err(Problem::unauthenticated("the token has ended or was revoked; come again with a new one"))
            }
        }
    }

    /// Comes when it does not credential any more.
    pub async fn wait_for_expiry(&self, app: &App) -> Problem {
        // Before the first look, so that nothing is missed between.
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

    fn ends_at(&self, app: &App) -> Option<Millis> {
        match self.credential {
            Credential::Token(digest) => app.directory.ends_at(&digest),
            Credential::Until(end) => Some(end),
            Credential::Free | Credential::Folder => None,
        }
    }
}
