//! The write-ahead log stays within its bounds while it is written all the time.

use super::{Folder, log_of, write};
use crate::conformance::world::{World, circle};
use crate::sqlite::Sqlite;
use crate::sqlite::checkpoint::Bounds;
use crate::store::{Reader as _, Store as _};
use serde_json::json;

const PAGE: u64 = 4_096 + 24;
const SMALL: Bounds = Bounds { start: 40, rest: 10, soft: 120, long: 400 };

fn log_pages(folder: &Folder) -> u64 {
    std::fs::metadata(log_of(&folder.path())).map_or(0, |file| file.len()) / PAGE
}

/// An execution that never ends.
fn begun(store: &mut Sqlite) -> World {
    let (world, created) = World::create(&circle(), 1);
    write(store, [created]);
    world
}

#[test]
fn the_log_does_not_grow_while_it_is_written() {
    let folder = Folder::new();
    let mut store = Sqlite::open_within(&folder.path(), SMALL).unwrap();
    let mut world = begun(&mut store);
    for n in 0..600 {
        write(&mut store, [world.done(json!({ "n": n, "text": "x".repeat(300) }))]);
        // The length where the writer takes over, and what it writes while the thread copies; without copying there
        // would be thousands.
        let pages = log_pages(&folder);
        assert!(pages <= 600, "{pages} pages after {n} commits");
    }
    assert_eq!(store.reader().unwrap().load(world.id()).unwrap().unwrap().state, world.state);
}

#[test]
fn a_reader_of_an_old_state_makes_the_log_longer_and_blocks_no_writer() {
    let folder = Folder::new();
    let mut store = Sqlite::open_within(&folder.path(), SMALL).unwrap();
    let mut world = begun(&mut store);
    let raw = folder.raw();
    raw.execute_batch("BEGIN; SELECT count(*) FROM executions").unwrap();
    while log_pages(&folder) < 3 * SMALL.long.cast_unsigned() {
        write(&mut store, [world.done(json!("x".repeat(3_000)))]);
    }
    drop(raw);
    for n in 0..1_000 {
        write(&mut store, [world.done(json!(n))]);
    }
    assert_eq!(store.reader().unwrap().load(world.id()).unwrap().unwrap().state, world.state);
    drop(store);
    assert_eq!(log_pages(&folder), 0, "when it has gone all is copied");
}

#[test]
fn short_readers_are_waited_for() {
    let folder = Folder::new();
    let mut store = Sqlite::open_within(&folder.path(), SMALL).unwrap();
    let mut world = begun(&mut store);
    let mut reader = store.reader().unwrap();
    let id = world.id();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let reading = std::thread::spawn(move || {
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            reader.load(id).unwrap();
        }
    });
    for n in 0..600 {
        write(&mut store, [world.done(json!({ "n": n, "text": "x".repeat(300) }))]);
    }
    drop(stop);
    reading.join().unwrap();
    // Without a new beginning it would have thousands.
    assert!(log_pages(&folder) < 1_500, "{} pages", log_pages(&folder));
}
