//! Completion tokens of tasks that wait for people. A token is an HMAC under a key of its tenant, so no token is stored: every
//! server with the same store computes the same one, before and after a restart (docs/adr/0044).

use crate::problem::Problem;
use crate::vault::SharedVault;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use subtle::ConstantTimeEq as _;
use windlass_store::Tenant;
use windlass_views::TaskRef;

/// Prefix that people and secret scanners recognise.
const PREFIX: &str = "wct_";

/// Computes and checks the tokens of all tenants.
pub struct CompletionTokens {
    vault: Arc<SharedVault>,
    /// Whether a missing key is created.
    creates: bool,
    /// Keys that were read; at most one for each tenant.
    known: Mutex<HashMap<Tenant, Hmac<Sha256>>>,
}

impl CompletionTokens {
    pub(crate) fn new(vault: Arc<SharedVault>, creates: bool) -> CompletionTokens {
        CompletionTokens { vault, creates, known: Mutex::default() }
    }

    /// Returns the token of a task; None while the tenant has no key and this process may not create one. Blocks on the disk
    /// for the first token of a tenant.
    pub(crate) fn of(&self, tenant: &Tenant, task: TaskRef) -> Result<Option<String>, Problem> {
        let Some(mut mac) = self.key(tenant)? else { return Ok(None) };
        mac.update(b"completion");
        mac.update(&task.execution.0.to_be_bytes());
        mac.update(&task.run.0.to_be_bytes());
        mac.update(&task.fence.0.to_be_bytes());
        Ok(Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))))
    }

    /// Reports whether a string is the token of a task, in constant time.
    pub(crate) fn is_of(&self, tenant: &Tenant, task: TaskRef, given: &str) -> Result<bool, Problem> {
        let token = self.of(tenant, task)?;
        Ok(token.is_some_and(|token| token.as_bytes().ct_eq(given.as_bytes()).into()))
    }

    fn key(&self, tenant: &Tenant) -> Result<Option<Hmac<Sha256>>, Problem> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mac) = known.get(tenant) {
            return Ok(Some(mac.clone()));
        }
        let Some(key) = self.vault.with(|vault| vault.completion_key(tenant, self.creates))? else {
            return Ok(None);
        };
        let mac = Hmac::<Sha256>::new_from_slice(&*key).map_err(Problem::internal)?;
        known.insert(tenant.clone(), mac.clone());
        Ok(Some(mac))
    }
}

impl fmt::Debug for CompletionTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CompletionTokens")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine_secrets::EngineSecrets;
    use crate::vault::LocalVault;
    use windlass_kernel::{ExecutionId, Fence, RunId};

    const TASK: TaskRef = TaskRef { execution: ExecutionId(1), run: RunId(2), fence: Fence(3) };

    fn tokens(folder: &std::path::Path, creates: bool) -> CompletionTokens {
        let vault = LocalVault::make(folder, EngineSecrets::default()).unwrap();
        CompletionTokens::new(Arc::new(SharedVault::new(vault)), creates)
    }

    #[test]
    fn act_20_a_token_is_the_same_after_a_restart_and_differs_for_every_task_and_tenant() {
        let folder = tempfile::tempdir().unwrap();
        let (tenant, other) = (Tenant::default(), Tenant::new("tnt_other"));
        assert_eq!(tokens(folder.path(), false).of(&tenant, TASK), Ok(None));
        let token = tokens(folder.path(), true).of(&tenant, TASK).unwrap().unwrap();
        let later = tokens(folder.path(), true);
        assert_eq!(tokens(folder.path(), false).of(&tenant, TASK), Ok(Some(token.clone())));
        assert!(later.is_of(&tenant, TASK, &token).unwrap());
        for task in [
            TaskRef { execution: ExecutionId(2), ..TASK },
            TaskRef { run: RunId(3), ..TASK },
            TaskRef { fence: Fence(4), ..TASK },
        ] {
            assert!(!later.is_of(&tenant, task, &token).unwrap(), "{task:?}");
        }
        assert!(!later.is_of(&other, TASK, &token).unwrap());
        for wrong in ["", "wct_", &token[..token.len() - 1], &format!("{token}A")] {
            assert!(!later.is_of(&tenant, TASK, wrong).unwrap(), "{wrong}");
        }
    }

    #[test]
    fn act_20_no_file_of_the_folder_has_a_token() {
        let folder = tempfile::tempdir().unwrap();
        let token = tokens(folder.path(), true).of(&Tenant::default(), TASK).unwrap().unwrap();
        for file in std::fs::read_dir(folder.path()).unwrap() {
            let path = file.unwrap().path();
            let bytes = if path.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            let found = bytes.windows(token.len()).any(|part| part == token.as_bytes());
            assert!(!found, "{}", path.display());
        }
    }
}
