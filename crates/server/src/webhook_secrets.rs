//! The secret that signs the webhooks of a tenant: created when it is first needed, encrypted on disk, replaced on demand. For
//! a grace period, both the new and the previous one sign.

use crate::host::now;
use crate::problem::Problem;
use crate::vault::SharedVault;
use crate::webhooks::signature::Secret;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use windlass_kernel::Millis;
use windlass_secrets::Zeroizing;
use windlass_store::{Audit, Tenant};

/// Name of the secret in the vault; users cannot set such a name.
const NAME: &str = ".webhook";
/// Grace period in which receivers switch to the new secret.
pub(crate) const GRACE_MS: i64 = 24 * 60 * 60 * 1_000;

pub struct WebhookSecrets {
    vault: Arc<SharedVault>,
    known: Mutex<HashMap<Tenant, Signing>>,
}

/// The secrets that sign the webhooks of a tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signing {
    pub current: Secret,
    pub since: Millis,
    /// The previous secret, and the time until which it signs.
    pub previous: Option<(Secret, Millis)>,
}

/// The serialised form in the vault.
#[derive(Serialize, Deserialize)]
struct Sealed {
    current: String,
    since: Millis,
    previous: Option<(String, Millis)>,
}

impl Signing {
    /// Returns all secrets that sign at this time, the newest first.
    #[must_use]
    pub fn at(&self, now: Millis) -> Vec<Secret> {
        let previous =
            self.previous.iter().filter(|(_, until)| now < *until).map(|(secret, _)| secret.clone());
        std::iter::once(self.current.clone()).chain(previous).collect()
    }

    fn sealed(&self) -> Sealed {
        let text = Secret::to_text;
        let previous = self.previous.as_ref().map(|(secret, until)| (text(secret), *until));
        Sealed { current: text(&self.current), since: self.since, previous }
    }

    fn opened(sealed: Sealed) -> Result<Signing, Problem> {
        let parsed = |text: String| Secret::parse(&text).map_err(Problem::internal);
        let previous =
            sealed.previous.map(|(text, until)| Ok::<_, Problem>((parsed(text)?, until))).transpose()?;
        Ok(Signing { current: parsed(sealed.current)?, since: sealed.since, previous })
    }
}

impl WebhookSecrets {
    pub(crate) fn new(vault: Arc<SharedVault>) -> WebhookSecrets {
        WebhookSecrets { vault, known: Mutex::default() }
    }

    /// Returns the secrets of a tenant. Blocks on the disk.
    pub fn of(&self, tenant: &Tenant) -> Result<Signing, Problem> {
        let mut known = self.lock();
        if let Some(signing) = known.get(tenant) {
            return Ok(signing.clone());
        }
        let kept = self.vault.with(|vault| vault.open(tenant, NAME))?;
        let signing = match kept {
            Some(text) => Signing::opened(serde_json::from_str(&text).map_err(Problem::internal)?)?,
            None => {
                self.store_secret(tenant, Signing { current: fresh()?, since: now(), previous: None }, None)?
            }
        };
        known.insert(tenant.clone(), signing.clone());
        Ok(signing)
    }

    /// Replaces the secret of a tenant; the previous one signs for the grace period. Blocks on the disk.
    pub fn rotate(&self, tenant: &Tenant, audit: Audit) -> Result<Signing, Problem> {
        let old = self.of(tenant)?;
        let mut known = self.lock();
        let now = now();
        let previous = Some((old.current, Millis(now.0 + GRACE_MS)));
        let signing =
            self.store_secret(tenant, Signing { current: fresh()?, since: now, previous }, Some(audit))?;
        known.insert(tenant.clone(), signing.clone());
        Ok(signing)
    }

    fn store_secret(
        &self,
        tenant: &Tenant,
        signing: Signing,
        audit: Option<Audit>,
    ) -> Result<Signing, Problem> {
        let text = Zeroizing::new(serde_json::to_string(&signing.sealed()).map_err(Problem::internal)?);
        self.vault.with(|vault| vault.set_own(tenant, NAME, &text, audit))?;
        Ok(signing)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Tenant, Signing>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn fresh() -> Result<Secret, Problem> {
    Secret::random().map_err(Problem::internal)
}

impl fmt::Debug for WebhookSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecrets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_secret_signs_until_the_grace_period_ends() {
        let (current, old) = (Secret::random().unwrap(), Secret::random().unwrap());
        let signing =
            Signing { current: current.clone(), since: Millis(0), previous: Some((old.clone(), Millis(10))) };
        assert_eq!(signing.at(Millis(9)), [current.clone(), old]);
        assert_eq!(signing.at(Millis(10)), [current]);
        assert_eq!(Signing::opened(signing.sealed()).unwrap(), signing);
    }
}
