//! The write-ahead log stays within its bounds while it is written all the time.

use super::{Folder, log_of, write};
use crate::conformance::world::{World, circle};
use crate::sqlite::Sqlite;
use crate::sqlite::checkpoint::Bounds;
use crate::store::{Reader as _, Store as _, StoreError};
use serde_json::json;
use std::time::Duration;

const PAGE: u64 = 4_096 + 24;
const SMALL: Bounds =
    Bounds { start: 40, rest: 10, soft: 120, hard: 400, patience: Duration::from_millis(20) };

fn log_pages(folder: &Folder) -> u64 {
    std::fs::metadata(log_of(&folder.path())).map_or(0, |file| file.len()) / PAGE
}

/// An execution that goes on for ever.
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
        // The length where the writer takes over, and one batch.
        let pages = log_pages(&folder);
        assert!(pages <= 150, "{pages} pages after {n} commits");
    }
    assert_eq!(store.reader().unwrap().load(world.id()).unwrap().unwrap().state, world.state);
}

#[test]
fn a_reader_that_never_ends_stops_the_writer_before_the_disk_is_full() {
    let folder = Folder::new();
    let mut store = Sqlite::open_within(&folder.path(), SMALL).unwrap();
    let mut world = begun(&mut store);
    let raw = folder.raw();
    raw.execute_batch("BEGIN; SELECT count(*) FROM executions").unwrap();
    let mut durable = world.state.clone();
    let error = loop {
        let next = crate::commit::Write::Commit(Box::new(world.done(json!("x".repeat(3_000)))));
        match store.write(&[next]) {
            Ok(_) => durable = world.state.clone(),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("reading an old state"), "{error}");
    assert!((400..420).contains(&log_pages(&folder)), "{} pages", log_pages(&folder));
    drop(raw);
    // What failed is not tried again, even though nothing is in the way any more.
    let again = store.write(&[]).unwrap_err();
    assert!(matches!(&again, StoreError::Io(what) if what.contains("an earlier write failed")), "{again}");
    let log = std::fs::read(log_of(&folder.path())).unwrap();
    drop(store);
    assert_eq!(std::fs::read(log_of(&folder.path())).unwrap(), log, "after a failure the log is left alone");
    let mut store = Sqlite::open_within(&folder.path(), SMALL).unwrap();
    assert_eq!(store.reader().unwrap().load(world.id()).unwrap().unwrap().state, durable);
    world.state = durable;
    for n in 0..200 {
        write(&mut store, [world.done(json!(n))]);
    }
}

#[test]
fn short_readers_are_waited_for() {
    let folder = Folder::new();
    let patient = Bounds { patience: Duration::from_secs(20), ..SMALL };
    let mut store = Sqlite::open_within(&folder.path(), patient).unwrap();
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
    assert!(log_pages(&folder) < 420, "{} pages", log_pages(&folder));
}
