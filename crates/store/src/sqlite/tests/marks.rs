//! Marks lead to places in long journals. The first row has none.

use super::{Folder, write};
use crate::conformance::world::{World, circle};
use crate::sqlite::Sqlite;
use crate::sqlite::commit::MARK_EVERY;
use crate::store::{Reader as _, Store as _};
use serde_json::json;

/// An execution with this many steps.
fn stored(store: &mut Sqlite, steps: u64) -> World {
    let (mut world, created) = World::create(&circle(), 1);
    let steps = (0..steps).map(|n| world.done(json!(n)));
    let commits: Vec<_> = std::iter::once(created).chain(steps).collect();
    write(store, commits);
    world
}

/// Versions of the marked rows.
fn marked(folder: &Folder) -> Vec<u64> {
    let raw = folder.raw();
    let sql = "SELECT version FROM journal WHERE mark IS NOT NULL ORDER BY version";
    let mut statement = raw.prepare(sql).unwrap();
    statement
        .query_map([], |row| Ok(row.get::<_, i64>(0)?.cast_unsigned()))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Checks that the row of each version is found.
fn is_found_from_any_version(store: &Sqlite, world: &World) {
    let mut reader = store.reader().unwrap();
    for from in 0..world.state.head.version {
        let rows = reader.journal(world.id(), from, 1).unwrap();
        let (first, count) = (rows[0].version, rows[0].records.len() as u64);
        assert!(first <= from && from < first + count, "row {first} does not hold {from}");
    }
}

#[test]
fn a_short_journal_is_read_without_marks() {
    let folder = Folder::new();
    let mut store = folder.open();
    let world = stored(&mut store, 5);
    assert!(world.state.head.version < MARK_EVERY, "{}", world.state.head.version);
    assert_eq!(marked(&folder), [] as [u64; 0]);
    is_found_from_any_version(&store, &world);
}

#[test]
fn a_long_journal_has_a_mark_in_every_part() {
    let folder = Folder::new();
    let mut store = folder.open();
    let world = stored(&mut store, 100);
    let parts: Vec<u64> = marked(&folder).into_iter().map(|version| version.div_ceil(MARK_EVERY)).collect();
    assert_eq!(parts, (1..world.state.head.version.div_ceil(MARK_EVERY)).collect::<Vec<_>>());
    is_found_from_any_version(&store, &world);
}

#[test]
fn a_journal_whose_first_row_an_older_release_marked_is_read() {
    let folder = Folder::new();
    let mut store = folder.open();
    let world = stored(&mut store, 100);
    folder.raw().execute_batch("UPDATE journal SET mark = 1 WHERE version = 0").unwrap();
    is_found_from_any_version(&store, &world);
}
