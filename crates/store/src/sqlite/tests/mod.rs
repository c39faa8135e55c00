mod audit;
mod checking;
mod conformance;
mod creation_times;
mod damage;
mod full;
mod log;
mod marks;
mod opening;
mod people;
mod plans;
mod secrets;
mod usage;

use crate::commit::{Applied, Commit, Write};
use crate::conformance::world::{World, definition, net, task, with};
use crate::sqlite::Sqlite;
use crate::store::Store as _;
use serde_json::json;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use windlass_kernel::{Input, Patch};

/// A folder with a store.
struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("windlass.db")
    }

    fn open(&self) -> Sqlite {
        Sqlite::open(&self.path()).unwrap()
    }

    /// Opens the database of the store with SQLite directly.
    fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }

    /// Creates a store in the version with this number of schema steps.
    fn older(&self, steps: u32) -> rusqlite::Connection {
        let raw = self.raw();
        (0..steps).for_each(|done| crate::sqlite::migrate::apply_next(&raw, done).unwrap());
        raw
    }

    /// The files as they are now, in another folder.
    fn copy(&self) -> Folder {
        let copy = Folder::new();
        for file in ["windlass.db", "windlass.db-wal"] {
            let from = self.0.path().join(file);
            if from.exists() {
                std::fs::copy(from, copy.0.path().join(file)).unwrap();
            }
        }
        copy
    }
}

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("windlass.db-wal")
}

fn write(store: &mut Sqlite, commits: impl IntoIterator<Item = Commit>) {
    let writes: Vec<Write> = commits.into_iter().map(|commit| Write::Commit(Box::new(commit))).collect();
    for applied in store.write(&writes).unwrap() {
        assert!(matches!(applied, Applied::Committed(_)), "{applied:?}");
    }
}

/// Executions that fill every table: contexts, joins, facts, offers, waiting step-runs. Three offers are open.
fn worlds(store: &mut Sqlite) -> Vec<World> {
    let wait = json!({ "target": "x", "timeout_ms": 9 });
    let steps = [
        task("a", &[1, 2, 4, 5, 6]),
        task("b", &[3]),
        with(task("c", &[3]), json!({ "wait_for": wait })),
        with(task("d", &[]), json!({ "reads": [0, 1] })),
        task("e", &[]),
        task("f", &[]),
        task("g", &[]),
    ];
    let net = net(json!({ "steps": steps, "policy": { "join": "all", "timeout_ms": 5_000 } }));
    store.write(&[Write::Define(Box::new(definition("d", "source", &net)))]).unwrap();
    let mut worlds = Vec::new();
    for id in 1..=3 {
        let (mut world, created) = World::create(&net, id);
        let first = world.done(json!({ "n": id as u64 }));
        let patch = Patch::from([("k".to_owned(), std::sync::Arc::new(json!(1)))]);
        let patched = world.give(&Input::Patch { patch, by: "me".into() });
        let second = world.done(json!(2));
        write(store, [created, first, patched, second]);
        worlds.push(world);
    }
    worlds
}
