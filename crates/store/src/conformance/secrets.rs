//! Sealed secrets.

use super::ServerSite;
use crate::secrets::{Secrets, StoredSecret, TENANT, Wrapped};
use crate::store::StoreError;
use windlass_kernel::Millis;

const WORKS: &str = "the store works";

/// The secrets of a store that exists.
fn secrets<P: ServerSite>(site: &P) -> P::Secrets {
    drop(site.open());
    site.secrets()
}

fn secret(name: &str, version: u32) -> StoredSecret {
    let sealed = format!("sealed {name} {version}").into_bytes();
    let (created_at, updated_at) = (Millis(100), Millis(100 + i64::from(version)));
    let tenant = TENANT.to_owned();
    StoredSecret {
        tenant,
        name: name.to_owned(),
        version,
        key: "old".to_owned(),
        sealed,
        created_at,
        updated_at,
    }
}

fn wrapped(sealed: &str) -> Wrapped {
    Wrapped { key: "new".to_owned(), sealed: sealed.into() }
}

fn names(secrets: &mut impl Secrets) -> Vec<String> {
    secrets
        .all(Some(TENANT))
        .expect(WORKS)
        .iter()
        .map(|secret| format!("{} {}", secret.name, secret.version))
        .collect()
}

pub fn a_secret_is_read_back_and_listed_by_name<P: ServerSite>(site: &P) {
    let mut secrets = secrets(site);
    assert_eq!(secrets.get(TENANT, "api").expect(WORKS), None);
    assert_eq!(names(&mut secrets), Vec::<String>::new());
    assert!(secrets.put(&secret("web", 1), None).expect(WORKS));
    assert!(secrets.put(&secret("api", 1), None).expect(WORKS));
    assert_eq!(secrets.get(TENANT, "api").expect(WORKS), Some(secret("api", 1)));
    assert_eq!(names(&mut secrets), ["api 1", "web 1"]);
}

pub fn versions_follow_each_other<P: ServerSite>(site: &P) {
    let mut secrets = secrets(site);
    assert!(!secrets.put(&secret("api", 2), None).expect(WORKS), "there is no first version");
    assert!(secrets.put(&secret("api", 1), None).expect(WORKS));
    assert!(!secrets.put(&secret("api", 1), None).expect(WORKS), "another writer was faster");
    assert!(!secrets.put(&secret("api", 3), None).expect(WORKS));
    let next = StoredSecret { created_at: Millis(999), ..secret("api", 2) };
    assert!(secrets.put(&next, None).expect(WORKS));
    assert_eq!(
        secrets.get(TENANT, "api").expect(WORKS),
        Some(secret("api", 2)),
        "it keeps the time of its creation"
    );
}

pub fn a_deleted_secret_is_gone<P: ServerSite>(site: &P) {
    let mut secrets = secrets(site);
    assert!(!secrets.delete(TENANT, "api", None).expect(WORKS));
    secrets.put(&secret("api", 1), None).expect(WORKS);
    assert!(secrets.delete(TENANT, "api", None).expect(WORKS));
    assert_eq!(secrets.get(TENANT, "api").expect(WORKS), None);
    assert!(secrets.put(&secret("api", 1), None).expect(WORKS));
}

pub fn rewrapping_changes_all_or_nothing<P: ServerSite>(site: &P) {
    let mut secrets = secrets(site);
    for name in ["a", "b", "c"] {
        secrets.put(&secret(name, 1), None).expect(WORKS);
    }
    let failed = secrets.rewrap(|secret| match secret.name.as_str() {
        "c" => Err(StoreError::Io("the key is not here".to_owned())),
        _ => Ok(wrapped("other")),
    });
    assert!(failed.is_err());
    assert_eq!(secrets.get(TENANT, "a").expect(WORKS), Some(secret("a", 1)));
    let done = secrets.rewrap(|secret| Ok::<_, StoreError>(wrapped(&secret.name)));
    assert_eq!(done.expect(WORKS), 3);
    drop(secrets);
    let mut secrets = site.secrets();
    let rewrapped = StoredSecret { key: "new".to_owned(), sealed: b"b".to_vec(), ..secret("b", 1) };
    assert_eq!(secrets.get(TENANT, "b").expect(WORKS), Some(rewrapped));
}

pub fn tenants_have_secrets_of_their_own<P: ServerSite>(site: &P) {
    let mut secrets = secrets(site);
    let other =
        || StoredSecret { tenant: "tnt_b".to_owned(), sealed: b"theirs".to_vec(), ..secret("api", 1) };
    assert!(secrets.put(&secret("api", 1), None).expect(WORKS));
    assert!(secrets.put(&other(), None).expect(WORKS), "each counts its own versions");
    assert_eq!(secrets.get(TENANT, "api").expect(WORKS), Some(secret("api", 1)));
    assert_eq!(secrets.get("tnt_b", "api").expect(WORKS), Some(other()));
    assert_eq!(secrets.get("tnt_c", "api").expect(WORKS), None);
    assert_eq!(names(&mut secrets), ["api 1"]);
    assert_eq!(secrets.all(None).expect(WORKS).len(), 2);
    assert_eq!(secrets.rewrap(|_| Ok::<_, StoreError>(wrapped("new"))).expect(WORKS), 2);
    assert!(secrets.delete(TENANT, "api", None).expect(WORKS));
    assert!(secrets.get("tnt_b", "api").expect(WORKS).is_some_and(|left| left.key == "new"));
}
