//! What every store of secrets does. It knows the trait [`Secrets`] and nothing else.

use crate::secrets::{Secrets, StoredSecret};
use crate::store::StoreError;
use windlass_kernel::Millis;

fn secret(name: &str, version: u32) -> StoredSecret {
    let sealed = format!("sealed {name} {version}").into_bytes();
    let (created_at, updated_at) = (Millis(100), Millis(100 + i64::from(version)));
    StoredSecret { name: name.to_owned(), version, key: "old".to_owned(), sealed, created_at, updated_at }
}

fn names(secrets: &mut impl Secrets) -> Vec<String> {
    secrets.all().unwrap().iter().map(|secret| format!("{} {}", secret.name, secret.version)).collect()
}

pub fn a_secret_is_read_back_and_listed_by_name(mut secrets: impl Secrets) {
    assert_eq!(secrets.get("api").unwrap(), None);
    assert_eq!(names(&mut secrets), Vec::<String>::new());
    assert!(secrets.put(&secret("web", 1)).unwrap());
    assert!(secrets.put(&secret("api", 1)).unwrap());
    assert_eq!(secrets.get("api").unwrap(), Some(secret("api", 1)));
    assert_eq!(names(&mut secrets), ["api 1", "web 1"]);
}

pub fn versions_follow_each_other(mut secrets: impl Secrets) {
    assert!(!secrets.put(&secret("api", 2)).unwrap(), "there is no first version");
    assert!(secrets.put(&secret("api", 1)).unwrap());
    assert!(!secrets.put(&secret("api", 1)).unwrap(), "somebody else was faster");
    assert!(!secrets.put(&secret("api", 3)).unwrap());
    let next = StoredSecret { created_at: Millis(999), ..secret("api", 2) };
    assert!(secrets.put(&next).unwrap());
    assert_eq!(secrets.get("api").unwrap(), Some(secret("api", 2)), "it keeps the time it was made");
}

pub fn a_deleted_secret_is_gone(mut secrets: impl Secrets) {
    assert!(!secrets.delete("api").unwrap());
    secrets.put(&secret("api", 1)).unwrap();
    assert!(secrets.delete("api").unwrap());
    assert_eq!(secrets.get("api").unwrap(), None);
    assert!(secrets.put(&secret("api", 1)).unwrap());
}

pub fn rewrapping_changes_all_or_nothing(mut secrets: impl Secrets) {
    for name in ["a", "b", "c"] {
        secrets.put(&secret(name, 1)).unwrap();
    }
    let before = secrets.changes().unwrap();
    let failed = secrets.rewrap(&mut |secret| match secret.name.as_str() {
        "c" => Err(StoreError::Io("the key is not here".to_owned())),
        _ => Ok(("new".to_owned(), b"other".to_vec())),
    });
    assert!(failed.is_err());
    assert_eq!(secrets.get("a").unwrap(), Some(secret("a", 1)));
    assert_eq!(secrets.changes().unwrap(), before);
    let done = secrets.rewrap::<StoreError>(&mut |secret| Ok(("new".to_owned(), secret.name.clone().into())));
    assert_eq!(done.unwrap(), 3);
    let rewrapped = StoredSecret { key: "new".to_owned(), sealed: b"b".to_vec(), ..secret("b", 1) };
    assert_eq!(secrets.get("b").unwrap(), Some(rewrapped));
}

pub fn every_change_is_counted(mut secrets: impl Secrets) {
    let mut last = secrets.changes().unwrap();
    let mut rises = |secrets: &mut dyn FnMut() -> u64| {
        let now = secrets();
        assert!(now > last, "{now} after {last}");
        last = now;
    };
    secrets.put(&secret("api", 1)).unwrap();
    rises(&mut || secrets.changes().unwrap());
    secrets.put(&secret("api", 2)).unwrap();
    rises(&mut || secrets.changes().unwrap());
    secrets.rewrap::<StoreError>(&mut |_| Ok(("new".to_owned(), Vec::new()))).unwrap();
    rises(&mut || secrets.changes().unwrap());
    secrets.delete("api").unwrap();
    rises(&mut || secrets.changes().unwrap());
}
