//! Mapping of requests under `/hooks` to workflows. A path belongs to a tenant: `/hooks/{tenant}/{path}`, and without a
//! tenant to `default`. Claims are rows; see docs/adr/0024.

use crate::database::Database;
use crate::host::now;
use crate::ids;
use crate::problem::{Detail, Problem};
use windlass_dialects::{Hook, Manifest};
use windlass_store::{Entry, HookClaim, HookReader as _, Store as _, StoreError, Tenant, UnreadHooks, Write};

/// Maximum length of the path of a hook in bytes: it is a key of the store, and of a limit that is held in memory.
const PATH_MAX: usize = 500;
/// Maximum number of hooks of one definition: each is a row that is looked up when the definition is stored.
const HOOKS_MAX: usize = 100;
/// Number of definitions that are searched for hooks in one transaction.
const PAGE: usize = 100;

/// Returns the requests that start a definition.
#[must_use]
pub(crate) fn claims_of(manifest: &Manifest) -> Vec<HookClaim> {
    let claim = |Hook { method, path, require_auth }: Hook| HookClaim { method, path, require_auth };
    manifest.hooks.iter().cloned().map(claim).collect()
}

/// Refuses paths that a request could not reach.
pub(crate) fn check(claims: &[HookClaim]) -> Result<(), Problem> {
    if claims.len() > HOOKS_MAX {
        return Err(Problem::invalid("nodes", format!("a definition may have {HOOKS_MAX} hooks at most")));
    }
    claims.iter().try_for_each(|claim| {
        if claim.path.len() > PATH_MAX || claim.path.chars().any(char::is_control) {
            let message = format!("the path of a hook may have {PATH_MAX} bytes and no control characters");
            return Err(Problem::invalid("nodes", message));
        }
        match address(&claim.path).0 {
            Some(_) => Err(Problem::invalid(
                "nodes",
                format!("`{}` begins with the id of a tenant; remove that part", claim.path),
            )),
            None => Ok(()),
        }
    })
}

/// Splits the path after `/hooks/` into the tenant, if it begins with one, and the path of the hook.
#[must_use]
pub(crate) fn address(text: &str) -> (Option<Tenant>, &str) {
    let text = text.trim_matches('/');
    let (first, rest) = text.split_once('/').unwrap_or((text, ""));
    match ids::is_tenant(first) {
        true => (Some(Tenant::new(first)), rest.trim_matches('/')),
        false => (None, text),
    }
}

/// Describes a path that another workflow has, for the author of the definition.
#[must_use]
pub(crate) fn describe_taken_path(claim: &HookClaim, other: &str) -> Detail {
    let HookClaim { method, path, .. } = claim;
    Detail {
        hint: Some("change one of the paths, or delete that workflow".to_owned()),
        code: Some("W0247".to_owned()),
        ..Detail::new("nodes", format!("{method} /hooks/{path} already starts the workflow `{other}`"))
    }
}

/// Claims the hooks of workflows that an earlier version of the program stored, the oldest workflow first. Returns
/// warnings about those that lost their path to an older workflow of the tenant.
pub(crate) fn claim_stored(store: &mut Database) -> Result<Vec<String>, StoreError> {
    let mut reader = store.reader()?;
    let mut warnings = Vec::new();
    loop {
        let unread = reader.unread_hooks(PAGE)?;
        if unread.is_empty() {
            return Ok(warnings);
        }
        for unread in unread {
            claim(store, &unread)?;
            for claim in claims(&unread) {
                let held = reader.hooks(&unread.tenant, &claim.path)?;
                let lost = held
                    .iter()
                    .any(|held| held.claim.method == claim.method && held.workflow != unread.workflow);
                if lost {
                    warnings.push(format!(
                        "{} /hooks/{} of tenant {} starts the oldest workflow that has it, and no longer workflow {}",
                        claim.method, claim.path, unread.tenant, unread.workflow
                    ));
                }
            }
        }
    }
}

fn claim(store: &mut Database, unread: &UnreadHooks) -> Result<(), StoreError> {
    let entry = Entry::HooksRead {
        tenant: unread.tenant.clone(),
        workflow: unread.workflow,
        hooks: claims(unread),
        at: now(),
    };
    store.write(&[Write::Entry(Box::new(entry))]).map(drop)
}

fn claims(unread: &UnreadHooks) -> Vec<HookClaim> {
    claims_of(&serde_json::from_str(&unread.manifest).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(path: &str, require_auth: bool) -> HookClaim {
        HookClaim { method: "POST".to_owned(), path: path.to_owned(), require_auth }
    }

    #[test]
    fn an_address_names_a_tenant_or_means_the_default_one() {
        let tenant = format!("tnt_{}", "0a".repeat(16));
        let check = |text: &str, named: Option<&str>, path: &str| {
            assert_eq!(address(text), (named.map(Tenant::new), path), "{text}");
        };
        check("orders/new", None, "orders/new");
        check("/orders/", None, "orders");
        check("default/orders", Some("default"), "orders");
        check(&format!("{tenant}/a/b"), Some(&tenant), "a/b");
        check(&tenant, Some(&tenant), "");
        check("tnt_short/a", None, "tnt_short/a");
    }

    #[test]
    fn a_path_that_no_request_reaches_is_refused() {
        let tenant = format!("tnt_{}/p", "0a".repeat(16));
        for bad in ["default/p", &tenant, "a\nb", &"x".repeat(PATH_MAX + 1)] {
            assert!(check(&[claim(bad, true)]).is_err(), "{bad}");
        }
        assert!(check(&vec![claim("p", true); HOOKS_MAX + 1]).is_err());
        assert!(check(&[claim("orders/default", true)]).is_ok());
    }
}
