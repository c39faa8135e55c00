//! Forgetting executions, and copies of a store.

use super::{Folder, write};
use crate::check;
use crate::commit::{Applied, Commit, Letter, LogChunk, Mail, Write};
use crate::conformance::world::{World, chain};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::retention::Retention as _;
use crate::sqlite::Sqlite;
use crate::store::{Reader as _, Store as _};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use windlass_kernel::{Cancel, Create, ExecutionId, Fence, Input, Millis, Parent, RunId};

const STEPS: u32 = 20;

/// An execution from its beginning to its end.
fn ended(id: u128, parent: Option<u128>) -> Vec<Commit> {
    let mut world = World::new(&chain(STEPS));
    let parent = parent.map(|id| Parent { execution: ExecutionId(id), run: RunId(1), fence: Fence(1) });
    let begun = world.begin(Create { parent, ..Create::new(ExecutionId(id), json!({})) });
    let steps = (0..STEPS).map(|number| world.done(json!({ "n": number })));
    std::iter::once(begun).chain(steps.collect::<Vec<_>>()).collect()
}

fn log(id: u128) -> Write {
    let (execution, run, step, lines) = (ExecutionId(id), RunId(1), "s0".to_owned(), b"[]".to_vec());
    Write::Log(LogChunk { execution, run, step, attempt: 1, lines, at: Millis(1) })
}

fn keep_nets(store: &mut Sqlite) {
    store.write(&[Write::Net(chain(STEPS)), Write::Net(chain(2))]).unwrap();
}

fn entry(store: &mut Sqlite, entry: Entry) -> Applied {
    store.write(&[Write::Entry(Box::new(entry))]).unwrap()[0]
}

fn forget(store: &mut Sqlite, id: u128) -> Applied {
    entry(store, Entry::Forget { execution: ExecutionId(id) })
}

fn problems(store: &Sqlite) -> Vec<String> {
    let report = check::check(&mut store.reader().unwrap(), &mut |_| {}).unwrap();
    report.problems.iter().map(ToString::to_string).collect()
}

fn rows(folder: &Folder) -> i64 {
    let tables =
        ["executions", "heads", "journal", "facts", "parts", "logs", "step_runs", "contexts", "forgotten"];
    let count = |table| {
        folder.raw().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, i64>(0))
    };
    tables.into_iter().map(|table| count(table).unwrap()).sum::<i64>()
}

#[test]
fn a_forgotten_execution_goes_piece_by_piece_and_nothing_else_does() {
    let folder = Folder::new();
    let mut store = folder.open();
    keep_nets(&mut store);
    write(&mut store, ended(1, None));
    store.write(&[log(1)]).unwrap();
    let (_, open) = World::create(&chain(2), 7);
    write(&mut store, [open]);
    drop(store);
    let alone = {
        let other = Folder::new();
        let mut store = other.open();
        write(&mut store, [World::create(&chain(2), 7).1]);
        rows(&other)
    };
    let mut store = folder.open();
    assert_eq!(forget(&mut store, 7), Applied::Duplicate, "it has not ended");
    assert_eq!(forget(&mut store, 1), Applied::Done);
    assert_eq!(forget(&mut store, 1), Applied::Duplicate);
    let mut reader = store.reader().unwrap();
    assert!(reader.load(ExecutionId(1)).unwrap().is_none());
    assert!(reader.journal(ExecutionId(1), 0, 9).unwrap().is_empty());
    assert!(reader.logs(ExecutionId(1), crate::Position(0), 9).unwrap().is_empty());
    let mut pieces = 0;
    while entry(&mut store, Entry::Clear { rows: 7 }) == Applied::Done {
        pieces += 1;
        assert_eq!(problems(&store), [] as [&str; 0], "after {pieces} pieces");
        drop(store);
        store = folder.open();
    }
    assert!(pieces > 3, "{pieces} pieces");
    assert_eq!(rows(&folder), alone);
    // Its id is free again.
    write(&mut store, ended(1, None));
    assert_eq!(problems(&store), [] as [&str; 0]);
}

#[test]
fn the_number_of_a_forgotten_execution_is_never_given_again() {
    let folder = Folder::new();
    let mut store = folder.open();
    keep_nets(&mut store);
    let newest = || -> i64 {
        folder.raw().query_row("SELECT max(key) FROM executions", [], |row| row.get(0)).unwrap()
    };
    write(&mut store, ended(1, None));
    store.write(&[log(1)]).unwrap();
    let first = newest();
    assert_eq!(forget(&mut store, 1), Applied::Done);
    // What is left of the first is there when the second comes, and goes while that lives.
    write(&mut store, ended(2, None));
    let second = newest();
    assert!(second > first, "{second} after {first}");
    while entry(&mut store, Entry::Clear { rows: 7 }) == Applied::Done {}
    assert_eq!(problems(&store), [] as [&str; 0]);
    assert_eq!(store.reader().unwrap().journal(ExecutionId(2), 0, 99).unwrap().len(), STEPS as usize + 1);
    assert_eq!(forget(&mut store, 2), Applied::Done);
    while entry(&mut store, Entry::Clear { rows: 7 }) == Applied::Done {}
    drop(store);
    let mut store = folder.open();
    write(&mut store, ended(3, None));
    assert!(newest() > second, "nor when nothing of it is left");
}

#[test]
fn what_somebody_needs_is_not_forgettable() {
    let folder = Folder::new();
    let mut store = folder.open();
    let (mut parent, begun) = World::create(&chain(1), 1);
    write(&mut store, [begun]);
    write(&mut store, ended(2, Some(1)));
    write(&mut store, ended(3, None));
    let found = |store: &Sqlite, before| -> Vec<u128> {
        let mut reader = store.reader().unwrap();
        let found = reader.forgettable(Millis(before), 9).unwrap();
        assert_eq!(reader.count_forgettable(Millis(before)).unwrap(), found.len() as u64);
        found.into_iter().map(|one| one.execution.0).collect()
    };
    assert_eq!(found(&store, i64::MAX), [3], "one has not ended, one has a parent that has not");
    assert!(found(&store, 0).is_empty(), "none ended before then");
    write(&mut store, [parent.done(json!(1))]);
    let mut all = found(&store, i64::MAX);
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
}

#[test]
fn an_answer_that_nobody_fetched_keeps_nothing_for_ever() {
    let folder = Folder::new();
    let mut store = folder.open();
    write(&mut store, ended(1, None));
    let letter = Letter::Input(Input::Cancel(Cancel::default()));
    let asked = Mail { to: ExecutionId(1), letter, answered: true, at: Millis(3) };
    let [Applied::Accepted(mail)] = store.write(&[Write::Accept(asked)]).unwrap()[..] else { panic!() };
    let count = |store: &Sqlite, before| store.reader().unwrap().count_forgettable(Millis(before)).unwrap();
    assert_eq!(count(&store, i64::MAX), 0, "the letter is not read yet");
    store.write(&[Write::Settle { mail, refused: Some("it has ended".to_owned()) }]).unwrap();
    let ended_at = store.reader().unwrap().load(ExecutionId(1)).unwrap().unwrap().state.head.at;
    folder.raw().execute("UPDATE inbox SET at = ?1", [ended_at.0 + 10]).unwrap();
    assert_eq!(count(&store, ended_at.0 + 1), 0, "whoever asked may still come for it");
    assert_eq!(count(&store, ended_at.0 + 11), 1);
    assert_eq!(forget(&mut store, 1), Applied::Done);
    let left: i64 = folder.raw().query_row("SELECT count(*) FROM inbox", [], |row| row.get(0)).unwrap();
    assert_eq!(left, 0);
}

#[test]
fn every_artifact_that_is_named_is_found() {
    let folder = Folder::new();
    let mut store = folder.open();
    let key = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let mut world = World::new(&chain(2));
    let begun =
        world.begin(Create::new(ExecutionId(1), json!({ "a": { "$artifact": key("a"), "bytes": 1 } })));
    let done = world.done(json!([{ "$artifact": key("b"), "bytes": 1 }, "sha256:short"]));
    write(&mut store, [begun, done]);
    let found = store.reader().unwrap().referenced().unwrap();
    let keys = BTreeSet::from([key("a"), key("b")]);
    assert_eq!(found, BTreeMap::from([(Tenant::default(), keys)]));
}

#[test]
fn a_copy_is_whole_and_of_one_moment() {
    let folder = Folder::new();
    let mut store = folder.open();
    keep_nets(&mut store);
    write(&mut store, ended(1, None));
    let copy = Folder::new();
    Sqlite::copy(&folder.path(), &copy.path()).unwrap();
    write(&mut store, ended(2, None));
    let copied = copy.open();
    assert_eq!(problems(&copied), [] as [&str; 0]);
    let mut reader = copied.reader().unwrap();
    assert!(reader.load(ExecutionId(1)).unwrap().is_some());
    assert!(reader.load(ExecutionId(2)).unwrap().is_none());
    assert!(Sqlite::copy(&folder.path(), &copy.path()).is_err(), "nothing is written over");
}
