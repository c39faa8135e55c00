//! The suite for secrets, and what only SQLite can show.

use super::Folder;
use crate::conformance as suite;
use crate::secrets::{Secrets as _, StoredSecret};
use crate::sqlite::{Sqlite, SqliteSecrets};
use windlass_kernel::Millis;

fn check(case: fn(SqliteSecrets)) {
    let folder = Folder::new();
    drop(folder.open());
    case(Sqlite::secrets(&folder.path()).unwrap());
}

#[test]
fn it_passes_the_suite() {
    check(suite::a_secret_is_read_back_and_listed_by_name);
    check(suite::versions_follow_each_other);
    check(suite::a_deleted_secret_is_gone);
    check(suite::rewrapping_changes_all_or_nothing);
    check(suite::tenants_have_secrets_of_their_own);
}

#[test]
fn secrets_are_put_beside_a_store_that_is_open_and_stay() {
    let folder = Folder::new();
    let store = folder.open();
    let secret = StoredSecret {
        tenant: "default".to_owned(),
        name: "api".to_owned(),
        version: 1,
        key: "k".to_owned(),
        sealed: vec![1, 2, 3],
        created_at: Millis(1),
        updated_at: Millis(1),
    };
    assert!(Sqlite::secrets(&folder.path()).unwrap().put(&secret, None).unwrap());
    drop(store);
    let store = folder.open();
    assert_eq!(Sqlite::secrets(&folder.path()).unwrap().get("default", "api").unwrap(), Some(secret));
    drop(store);
}

#[test]
fn without_a_store_there_are_none() {
    let folder = Folder::new();
    let error = Sqlite::secrets(&folder.path()).unwrap_err().to_string();
    assert!(error.contains("there is no store"), "{error}");
}

/// A folder of the release before is brought up to date with what is in it.
#[test]
fn an_older_store_gets_the_table() {
    let folder = Folder::new();
    drop(folder.older(1));
    let error = Sqlite::secrets(&folder.path()).unwrap_err().to_string();
    assert!(error.contains("was written by an older version (schema 1"), "{error}");
    drop(folder.open());
    assert_eq!(Sqlite::secrets(&folder.path()).unwrap().all(None).unwrap(), []);
}
