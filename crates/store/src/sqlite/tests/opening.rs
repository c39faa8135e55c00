//! Tests of files that can be opened, and of files that are refused.

use super::{Folder, log_of, worlds, write};
use crate::access::{Access as _, TenantLimits};
use crate::catalog::{Catalog as _, WorkflowQuery};
use crate::check::check;
use crate::commit::Write;
use crate::conformance::world::{World, chain, circle, definition};
use crate::origin::Tenant;
use crate::sqlite::{Sqlite, migrate};
use crate::store::{Reader as _, Store as _, StoreError};
use std::fs;
use std::path::Path;
use windlass_kernel::ExecutionId;

/// Opening is refused either way, with these words, and not a byte of the file changes.
fn refused(path: &Path, words: &str) -> StoreError {
    let before = fs::read(path).ok();
    let error = Sqlite::open(path).unwrap_err();
    assert!(error.to_string().contains(words), "{error}");
    let reading = Sqlite::read_only(path).map(drop).unwrap_err();
    assert!(reading.to_string().contains(words), "{reading}");
    assert_eq!(fs::read(path).ok(), before, "the file was changed");
    error
}

#[test]
fn a_store_of_a_newer_version_is_refused_untouched() {
    for left_open in [false, true] {
        let folder = Folder::new();
        let mut store = folder.open();
        worlds(&mut store);
        drop(store);
        let raw = folder.raw();
        raw.execute_batch("INSERT INTO migrations VALUES (70, 'later', x'00'), (77, 'much later', x'00')")
            .unwrap();
        // A newer process may have been killed and left its log.
        let copy = folder.copy();
        drop(raw);
        let folder = if left_open { copy } else { folder };
        let log = fs::read(log_of(&folder.path())).unwrap_or_default();
        let newer = refused(&folder.path(), "written by a newer version (schema 77, this program knows ");
        let path = folder.path().display().to_string();
        assert_eq!(newer, StoreError::Newer { path, found: 77, known: migrate::KNOWN });
        assert_eq!(fs::read(log_of(&folder.path())).unwrap_or_default(), log, "the log was changed");
    }
}

#[test]
fn a_store_whose_schema_was_made_otherwise_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    folder.raw().execute_batch("UPDATE migrations SET sha256 = zeroblob(32)").unwrap();
    refused(&folder.path(), "the checksum differs");
}

#[test]
fn a_file_that_is_no_store_is_refused() {
    let folder = Folder::new();
    fs::write(
        folder.path(),
        "this is a text file, and long enough to be taken for something else".repeat(90),
    )
    .unwrap();
    let error = refused(&folder.path(), "not a database");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
    let other = Folder::new();
    other.raw().execute_batch("CREATE TABLE songs (name TEXT)").unwrap();
    let error = refused(&other.path(), "is a database of another program");
    assert!(matches!(error, StoreError::Corrupt(_)), "{error:?}");
}

#[test]
fn a_read_only_folder_is_an_error() {
    let folder = Folder::new();
    let is_a_folder = folder.0.path();
    for path in [Path::new("/proc/windlass.db"), &folder.0.path().join("missing/windlass.db"), is_a_folder] {
        let error = Sqlite::open(path).unwrap_err();
        assert!(matches!(error, StoreError::Io(_)), "{error:?}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}

#[test]
fn there_is_nothing_to_read_where_there_is_no_store() {
    let folder = Folder::new();
    let error = Sqlite::read_only(&folder.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("there is no store at"), "{error}");
    assert!(!folder.path().exists(), "reading makes no file");
    fs::write(folder.path(), "").unwrap();
    let error = Sqlite::read_only(&folder.path()).map(drop).unwrap_err();
    assert!(error.to_string().contains("there is no store at"), "{error}");
}

#[test]
fn a_store_whose_making_was_interrupted_is_made() {
    let folder = Folder::new();
    fs::write(folder.path(), "").unwrap();
    drop(folder.open());
    let folder = Folder::new();
    folder.raw().execute_batch("PRAGMA journal_mode = WAL").unwrap();
    let mut store = folder.open();
    assert_eq!(worlds(&mut store).len(), 3);
}

#[test]
fn a_reader_in_another_place_sees_what_was_answered_before() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut reader = Sqlite::read_only(&folder.path()).unwrap();
    for id in 0..5 {
        let (world, created) = World::create(&circle(), id);
        write(&mut store, [created]);
        assert_eq!(reader.load(ExecutionId(id)).unwrap().unwrap().state, world.state);
    }
    drop(store);
    assert!(reader.load(ExecutionId(4)).unwrap().is_some(), "after a clean end, too");
}

#[test]
fn a_clean_end_leaves_nothing_in_the_log() {
    let folder = Folder::new();
    let mut store = folder.open();
    worlds(&mut store);
    let reader = store.reader().unwrap();
    assert!(fs::metadata(log_of(&folder.path())).unwrap().len() > 0);
    drop(store);
    assert_eq!(fs::metadata(log_of(&folder.path())).map_or(0, |file| file.len()), 0);
    drop(reader);
}

#[test]
fn two_processes_may_write_side_by_side() {
    let folder = Folder::new();
    let (mut one, mut two) = (folder.open(), folder.open());
    let net = circle();
    let (mut world, created) = World::create(&net, 1);
    write(&mut one, [created]);
    two.write(&[Write::Define(Box::new(definition("n", "s", &net)))]).unwrap();
    write(&mut two, [world.done(serde_json::json!(1))]);
    write(&mut one, [world.done(serde_json::json!(2))]);
    drop(two);
    write(&mut one, [world.done(serde_json::json!(3))]);
    assert_eq!(one.reader().unwrap().load(world.id()).unwrap().unwrap().state, world.state);
}

#[test]
fn a_copy_is_whole_and_of_one_moment() {
    let folder = Folder::new();
    let mut store = folder.open();
    worlds(&mut store);
    let copy = Folder::new();
    Sqlite::copy(&folder.path(), &copy.path()).unwrap();
    write(&mut store, [World::create(&circle(), 9).1]);
    let copied = copy.open();
    assert!(check(&mut copied.reader().unwrap(), &mut |_| {}).unwrap().is_sound());
    let mut reader = copied.reader().unwrap();
    assert!(reader.load(ExecutionId(1)).unwrap().is_some());
    assert!(reader.load(ExecutionId(9)).unwrap().is_none());
    assert!(Sqlite::copy(&folder.path(), &copy.path()).is_err(), "nothing is overwritten");
}

#[test]
fn a_store_without_workflows_gets_one_for_each_name() {
    let folder = Folder::new();
    let raw = folder.older(2);
    let net = chain(1);
    raw.execute(
        "INSERT INTO nets (digest, spec) VALUES (?1, ?2)",
        rusqlite::params![net.digest().0, serde_json::to_string(net.spec()).unwrap()],
    )
    .unwrap();
    for (name, version) in [("d", 1), ("e", 1), ("d", 2)] {
        let row = rusqlite::params![name, version, net.digest().0];
        let sql = "INSERT INTO definitions (name, version, dialect, net, at, workload, source) \
                   VALUES (?1, ?2, 'playbook', ?3, 5, '{}', 'text')";
        raw.execute(sql, row).unwrap();
    }
    drop(raw);
    let mut reader = folder.open().reader().unwrap();
    let query = WorkflowQuery {
        tenant: Tenant::default(),
        status: None,
        search: None,
        dialect: None,
        limit: 9,
        offset: 0,
    };
    let found: Vec<(String, u32)> =
        reader.workflows(&query).unwrap().into_iter().map(|one| (one.name, one.version)).collect();
    assert_eq!(found, [("e".to_owned(), 1), ("d".to_owned(), 2)]);
}

#[test]
fn limits_of_tenants_survive_the_change_from_columns_to_one_object() {
    let folder = Folder::new();
    let row = "INSERT INTO tenants (id, name, slots, storage, created_at, updated_at) VALUES ('a', 'A', 3, 0, 1, 2)";
    folder.older(17).execute_batch(row).unwrap();
    let found = folder.open().reader().unwrap().tenants().unwrap();
    let limits = TenantLimits { slots: Some(3), storage: Some(0), ..TenantLimits::default() };
    assert_eq!(found.iter().map(|tenant| tenant.limits).collect::<Vec<_>>(), [limits]);
}

#[test]
fn an_unknown_limit_of_a_tenant_is_refused() {
    let folder = Folder::new();
    drop(folder.open());
    let row = "INSERT INTO tenants (id, name, limits, created_at, updated_at) VALUES ('a', 'A', '{\"gpus\":1}', 1, 2)";
    folder.raw().execute_batch(row).unwrap();
    let error = folder.open().reader().unwrap().tenants().unwrap_err();
    assert!(error.to_string().contains("unknown field `gpus`"), "{error}");
}
