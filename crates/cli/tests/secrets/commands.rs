//! The command itself: what it keeps, what it shows, what it refuses.

use crate::place::{assert_nowhere_on_disk, set, try_set};
use crate::rig::{CommandOutput, Place};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

const VALUE: &str = "correct-horse-battery";

fn names(place: &Place) -> Vec<(String, u64)> {
    let output = place.windlass(&["secrets", "list", "--json"]).expect(0).json();
    let entry = |entry: &Value| {
        (entry["name"].as_str().unwrap_or_default().to_owned(), entry["version"].as_u64().unwrap_or_default())
    };
    output["secrets"].as_array().expect("a list").iter().map(entry).collect()
}

fn key_of(place: &Place) -> String {
    let store = Connection::open(place.path("data/windlass.db")).expect("a store");
    let key = "SELECT key FROM secrets WHERE name = 'api'";
    store.query_row(key, [], |row| row.get(0)).expect("the secret has a key")
}

#[test]
fn a_secret_is_set_listed_and_deleted_and_its_value_is_never_shown() {
    let place = Place::new();
    let output = set(&place, "api", &format!("{VALUE}\n"));
    assert!(output.err.contains("`api` is set (version 1)") && output.out.is_empty(), "{output:?}");
    set(&place, "api", "another-value");
    set(&place, "db/main", VALUE);
    assert_eq!(names(&place), [("api".to_owned(), 2), ("db/main".to_owned(), 1)]);
    let listed = place.windlass(&["secrets", "list"]).expect(0);
    assert!(listed.out.contains("db/main  version 1"), "{}", listed.out);
    let output = place.windlass(&["secrets", "delete", "api", "--json"]).expect(0).json();
    assert_eq!(output, json!({ "name": "api", "deleted": true }));
    place.windlass(&["secrets", "delete", "api"]).expect(2).says("there is no secret `api`");
    assert_eq!(names(&place), [("db/main".to_owned(), 1)]);
    assert_nowhere_on_disk(&place, VALUE.as_bytes());
}

#[test]
fn the_key_file_is_its_owners_alone() {
    let place = Place::new();
    set(&place, "api", VALUE);
    let key = place.path("data/master.key");
    assert_eq!(fs::metadata(&key).expect("a key").mode() & 0o777, 0o600);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).expect("the mode is set");
    try_set(&place, "other", VALUE.as_bytes()).expect(1).says("chmod 600 data/master.key");
    assert_eq!(names(&place), [("api".to_owned(), 1)]);
}

#[test]
fn what_cannot_be_a_secret_is_refused_and_nothing_is_made() {
    let place = Place::new();
    try_set(&place, "api", b"abc\n").expect(2).says("3 bytes");
    try_set(&place, "api", b"").expect(2).says("0 bytes");
    try_set(&place, "a b", VALUE.as_bytes()).expect(2).says("cannot be the name of a secret");
    try_set(&place, "api", b"\xff\xfe\xfd\xfc\xfb").expect(2).says("not UTF-8");
    try_set(&place, "api", &[b'x'; 70_000]).expect(2).says("more than 65536");
    place.windlass(&["secrets", "set", "api", "value"]).expect(2).says("unexpected argument");
    assert!(!place.path("data").exists());
    place.windlass(&["secrets", "list"]).expect(2).says("there is no data in data");
    assert!(!place.path("data").exists());
    set(&place, "pin", "1234").says("warning: secret `pin`: the value can be guessed");
    set(&place, "login", r#"{"username": "bo", "password": "hunter2"}"#).says("can be guessed: `password`");
    assert!(!set(&place, "api", VALUE).err.contains("warning"));
}

#[test]
fn without_the_key_nothing_is_opened_and_nothing_is_written() {
    let place = Place::new();
    set(&place, "api", VALUE);
    let kept = fs::read(place.path("data/master.key")).expect("a key");
    fs::remove_file(place.path("data/master.key")).expect("the key is removed");
    place.windlass(&["secrets", "rotate"]).expect(1).says("there is no master key");
    // A new key is not created if there are secrets that it cannot decrypt.
    try_set(&place, "other", VALUE.as_bytes()).expect(1).says("there is no master key");
    assert!(!place.path("data/master.key").exists());
    fs::write(place.path("data/master.key"), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
        .expect("another key");
    fs::set_permissions(place.path("data/master.key"), fs::Permissions::from_mode(0o600)).expect("its mode");
    try_set(&place, "other", VALUE.as_bytes()).expect(1).says("secret `api` is sealed under the master key");
    assert_eq!(names(&place), [("api".to_owned(), 1)]);
    fs::write(place.path("data/master.key"), kept).expect("the key comes back");
    set(&place, "other", VALUE);
}

#[test]
fn a_rotation_leaves_one_new_key_that_opens_everything() {
    let place = Place::new();
    set(&place, "api", VALUE);
    set(&place, "web", VALUE);
    let (old, file) = (key_of(&place), fs::read(place.path("data/master.key")).expect("a key"));
    let output = place.windlass(&["secrets", "rotate", "--json"]).expect(0).json();
    assert_eq!((&output["secrets"], output["keyId"] == old.as_str()), (&json!(2), false));
    assert_eq!(key_of(&place), output["keyId"].as_str().unwrap_or_default());
    set(&place, "api", "third-value");
    fs::write(place.path("data/master.key"), file).expect("the old key comes back");
    place.windlass(&["secrets", "rotate"]).expect(1).says("which is not available");
}

#[test]
fn a_rotation_that_meets_a_broken_row_changes_nothing() {
    let place = Place::new();
    set(&place, "api", VALUE);
    set(&place, "web", VALUE);
    let store = Connection::open(place.path("data/windlass.db")).expect("a store");
    // An attacker replaces the bytes of one row by those of another.
    let swapped =
        "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE name = 'api') WHERE name = 'web'";
    store.execute(swapped, []).expect("a row changes");
    drop(store);
    let (old, file) = (key_of(&place), fs::read(place.path("data/master.key")).expect("a key"));
    place.windlass(&["secrets", "rotate"]).expect(1).says("secret `web` (version 1) cannot be opened");
    assert_eq!((key_of(&place), fs::read(place.path("data/master.key")).expect("a key")), (old, file));
    place.windlass(&["secrets", "delete", "web"]).expect(0);
    place.windlass(&["secrets", "rotate"]).expect(0);
}

#[test]
fn keys_of_the_variable_win_and_are_rotated_by_hand() {
    let place = Place::new();
    let (one, two) =
        ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "//////////////////////////////////////////8=");
    let with = |keys: &str, args: &[&str], input: &str| {
        let mut command = place.command(args);
        command.env("WINDLASS_MASTER_KEY", keys);
        let output = CommandOutput::given(command, input.as_bytes());
        (output.code, output.err)
    };
    assert_eq!(with(one, &["secrets", "set", "api"], VALUE).0, 0);
    assert!(!place.path("data/master.key").exists());
    let (code, said) = with(one, &["secrets", "rotate"], "");
    assert!(code == 1 && said.contains("put a new key in front"), "{said}");
    assert_eq!(with(&format!("{two},{one}"), &["secrets", "rotate"], "").0, 0);
    assert_eq!(with(two, &["secrets", "set", "web"], VALUE).0, 0);
    let (code, said) = with("nonsense", &["secrets", "set", "web"], VALUE);
    assert!(code == 1 && said.contains("WINDLASS_MASTER_KEY: key 1 is not 32 bytes"), "{said}");
}

#[test]
fn secrets_are_set_while_an_engine_runs() {
    let place = Place::playing(
        "workflow:\n- step: lasting\n  tool: {kind: shell, command: 'echo begun; while ! test -e go; do sleep 0.02; done'}\n",
    );
    let mut running = place.start(&["run", "play.yaml"]);
    running.until_says("lasting | begun");
    set(&place, "api", VALUE);
    assert_eq!(names(&place), [("api".to_owned(), 1)]);
    place.windlass(&["secrets", "rotate"]).expect(0);
    place.windlass(&["secrets", "delete", "api"]).expect(0);
    place.write("go", "");
    assert_eq!(running.end().0, Some(0));
}
