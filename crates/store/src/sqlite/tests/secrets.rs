//! Tests of secrets while a store is open, and in stores of earlier versions.

use super::Folder;
use crate::secrets::{Secrets as _, StoredSecret};
use crate::sqlite::Sqlite;
use windlass_kernel::Millis;

#[test]
fn secrets_are_stored_while_a_store_is_open_and_stay() {
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
