//! The bytes that tenants use are known after a crash at any moment, however they were counted.

use super::Folder;
use crate::commit::{Applied, LogChunk, Write};
use crate::conformance::world::{World, chain, circle};
use crate::entry::Entry;
use crate::origin::{Origin, Tenant};
use crate::sqlite::Sqlite;
use crate::sqlite::usage::COUNT_EVERY;
use crate::store::Store as _;
use crate::usage::Usage;
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Millis, RunId};

const TENANTS: [&str; 2] = ["default", "fleet"];

fn commit(commit: crate::commit::Commit) -> Write {
    Write::Commit(Box::new(commit))
}

/// Begins an execution of a tenant.
fn begin(world: &mut World, id: u128, tenant: &str) -> Write {
    let mut begun = world.begin(Create::new(ExecutionId(id), json!({})));
    if let Some(creation) = &mut begun.creation {
        creation.origin = Arc::new(Origin { tenant: Tenant::new(tenant), ..Origin::default() });
    }
    commit(begun)
}

fn log(id: u128, length: usize) -> Write {
    let (execution, run, step, lines) = (ExecutionId(id), RunId(1), "s0".to_owned(), vec![b'x'; length]);
    Write::Log(LogChunk { execution, run, step, attempt: 1, lines, at: Millis(1) })
}

fn entry(entry: Entry) -> Write {
    Write::Entry(Box::new(entry))
}

fn used(store: &Sqlite) -> [Usage; 2] {
    TENANTS.map(|tenant| store.usages().of(&Tenant::new(tenant)))
}

/// Sums over all rows, those of forgotten executions included.
fn stored(folder: &Folder) -> [Usage; 2] {
    let raw = folder.raw();
    let sum = |table: &str, column: &str, tenant: &str| -> i64 {
        let sql = format!(
            "SELECT coalesce(sum(length({column})), 0) FROM {table} t WHERE EXISTS (SELECT 1 FROM executions e \
             WHERE e.key = t.execution AND e.tenant = ?1) OR EXISTS (SELECT 1 FROM forgotten f \
             WHERE f.key = t.execution AND f.tenant = ?1)"
        );
        raw.query_row(&sql, [tenant], |row| row.get(0)).unwrap()
    };
    TENANTS.map(|tenant| Usage {
        journal: sum("journal", "records", tenant),
        logs: sum("logs", "lines", tenant),
        ..Usage::default()
    })
}

/// Checks that the store counts what it has, and would do so after a crash at this moment.
fn check(folder: &Folder, store: &Sqlite, moment: &str) {
    let after_a_crash = used(&folder.copy().open());
    assert_eq!((used(store), after_a_crash), (stored(folder), stored(folder)), "{moment}");
}

/// Number of appended rows that no row of the usage counts.
fn uncounted(folder: &Folder) -> i64 {
    let sql = "SELECT (SELECT count(*) FROM journal WHERE position > position_counted) \
               + (SELECT count(*) FROM logs WHERE position > position_counted) \
               FROM (SELECT position AS position_counted FROM usage_counted)";
    folder.raw().query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn appended_rows_are_counted_while_they_are_in_no_row_of_the_usage() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut worlds = [World::new(&circle()), World::new(&circle())];
    for (id, (world, tenant)) in (1..).zip(worlds.iter_mut().zip(TENANTS)) {
        let begun = begin(world, id, tenant);
        store.write(&[begun, log(id, 7)]).unwrap();
        check(&folder, &store, tenant);
    }
    for (id, world) in (1..).zip(&mut worlds) {
        let done = commit(world.done(json!("x".repeat(100))));
        store.write(&[done, log(id, 1_000)]).unwrap();
        check(&folder, &store, "after a step");
    }
    assert_eq!(uncounted(&folder), 8, "no transaction wrote a row of the usage");
}

#[test]
fn the_rows_that_an_opening_reads_are_bounded() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut world = World::new(&circle());
    let begun = begin(&mut world, 1, TENANTS[1]);
    store.write(&[begun]).unwrap();
    let batch = 100;
    for written in 0..2 * COUNT_EVERY / batch + 2 {
        let steps: Vec<Write> = (0..batch).map(|n| commit(world.done(json!(n)))).collect();
        store.write(&steps).unwrap();
        assert!(uncounted(&folder) < COUNT_EVERY + batch, "after {written} batches");
        if written % 5 == 0 {
            check(&folder, &store, &format!("after {written} batches"));
        }
    }
    check(&folder, &store, "at the end");
}

#[test]
fn rows_that_are_deleted_before_they_were_counted_are_not_counted() {
    let folder = Folder::new();
    let mut store = folder.open();
    let length = 20;
    for (id, tenant) in (1..).zip(TENANTS) {
        let mut world = World::new(&chain(length));
        let mut writes = vec![begin(&mut world, id, tenant), log(id, 50)];
        writes.extend((0..length).map(|n| commit(world.done(json!({ "n": n })))));
        store.write(&writes).unwrap();
    }
    let forget = Entry::Forget { execution: ExecutionId(2), ended_before: Millis(i64::MAX) };
    assert_eq!(store.write(&[entry(forget)]).unwrap(), [Applied::Done]);
    check(&folder, &store, "hidden, not deleted");
    let mut other = World::new(&circle());
    let mut next = Some(begin(&mut other, 3, TENANTS[0]));
    let mut pieces = 0;
    // Other commits in the same transaction, before and after the deletion.
    loop {
        let before = next.take().unwrap_or_else(|| commit(other.done(json!(1))));
        let after = commit(other.done(json!(2)));
        let applied = store.write(&[before, entry(Entry::Clear { rows: 3 }), after]).unwrap();
        check(&folder, &store, &format!("after {pieces} pieces"));
        if applied[1] == Applied::Duplicate {
            break;
        }
        pieces += 1;
    }
    assert!(pieces > 3, "{pieces} pieces");
    assert_eq!(used(&store)[1], Usage::default(), "nothing of the tenant is left");
}

#[test]
fn rows_that_are_appended_after_the_newest_were_deleted_are_counted() {
    let folder = Folder::new();
    let mut store = folder.open();
    let length = 20;
    let mut world = World::new(&chain(length));
    let mut writes = vec![begin(&mut world, 1, TENANTS[1]), log(1, 50)];
    writes.extend((0..length).map(|n| commit(world.done(json!({ "n": n })))));
    store.write(&writes).unwrap();
    let forget = Entry::Forget { execution: ExecutionId(1), ended_before: Millis(i64::MAX) };
    assert_eq!(store.write(&[entry(forget)]).unwrap(), [Applied::Done]);
    while store.write(&[entry(Entry::Clear { rows: 3 })]).unwrap() == [Applied::Done] {}
    assert_eq!(used(&store)[1], Usage::default(), "the store has no rows");
    let mut next = World::new(&circle());
    let begun = begin(&mut next, 2, TENANTS[1]);
    store.write(&[begun, log(2, 30)]).unwrap();
    check(&folder, &store, "after the first rows of the next execution");
    assert!(used(&store)[1].journal > 0 && used(&store)[1].logs == 30);
}

#[test]
fn two_processes_count_what_both_wrote() {
    let folder = Folder::new();
    let (mut one, mut two) = (folder.open(), folder.open());
    let mut world = World::new(&circle());
    let begun = begin(&mut world, 1, TENANTS[0]);
    one.write(&[begun]).unwrap();
    for n in 0..COUNT_EVERY / 10 + 2 {
        let store = if n % 3 == 0 { &mut one } else { &mut two };
        store.write(&[0; 10].map(|_| log(1, 10))).unwrap();
    }
    assert!(uncounted(&folder) < COUNT_EVERY);
    assert_eq!(used(&folder.copy().open()), stored(&folder));
}

#[test]
fn an_older_store_continues_with_its_count() {
    let folder = Folder::new();
    let raw = folder.older(33);
    raw.execute_batch(
        "INSERT INTO executions (key, id, net, trigger, inputs, created_at, tenant) \
         VALUES (1, x'01', x'', 'api', '{}', 7, 'fleet');
         INSERT INTO journal (position, execution, version, commit_id, format, checksum, records) \
         VALUES (4, 1, 0, x'', 1, 1, x'0102030405');
         INSERT INTO logs (position, execution, run, step, attempt, at, lines) VALUES (5, 1, 1, 's', 1, 7, x'5b5d');
         INSERT INTO usage (tenant, journal, logs) VALUES ('fleet', 5, 2)",
    )
    .unwrap();
    drop(raw);
    let store = folder.open();
    check(&folder, &store, "after the upgrade");
    assert_eq!(used(&store)[1], Usage { journal: 5, logs: 2, ..Usage::default() });
}
