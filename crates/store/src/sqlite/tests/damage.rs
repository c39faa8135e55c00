//! Files that were cut, flipped or torn: what was answered is there, or the damage is reported.

use super::{Folder, log_of, worlds, write};
use crate::check::check;
use crate::commit::{Commit, Write};
use crate::conformance::world::{World, circle, definition};
use crate::sqlite::Sqlite;
use crate::store::{Damage, Reader as _, Store as _, StoreError};
use serde_json::json;
use windlass_kernel::ExecutionId;

const SECTOR: usize = 512;

/// Writes two batches: the first was answered, the second was in progress. Returns the log before and after the second.
struct Torn {
    folder: Folder,
    before: Vec<u8>,
    after: Vec<u8>,
    answered: Vec<World>,
    written: Vec<World>,
}

fn torn(log_begins_anew: bool) -> Torn {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut worlds = worlds(&mut store);
    if log_begins_anew {
        // From now on the log is overwritten from its beginning.
        store.write(&[Write::Define(Box::new(definition("circle", "circle", &circle())))]).unwrap();
        for n in 0..30 {
            let (mut world, created) = World::create(&circle(), 100 + n);
            write(&mut store, [created, world.done(json!("x".repeat(500)))]);
        }
        let raw = folder.raw();
        let busy: i64 = raw.query_row("PRAGMA wal_checkpoint(RESTART)", [], |row| row.get(0)).unwrap();
        assert_eq!(busy, 0);
    }
    write(&mut store, [worlds[0].done(json!(1))]);
    let answered = worlds.clone();
    let before = std::fs::read(log_of(&folder.path())).unwrap();
    write(&mut store, [worlds[1].done(json!("y".repeat(2_000))), worlds[2].done(json!(3))]);
    let after = std::fs::read(log_of(&folder.path())).unwrap();
    assert_eq!(log_begins_anew, after.len() == before.len());
    let copy = folder.copy();
    Torn { folder: copy, before, after, answered, written: worlds }
}

impl Torn {
    /// The store opens over such a log, and has the first batch whole and the second whole or not at all.
    fn opens_with(&self, log: &[u8], what: &str) -> bool {
        let copy = self.folder.copy();
        std::fs::write(log_of(&copy.path()), log).unwrap();
        let mut store = copy.open();
        let mut reader = store.reader().unwrap();
        let mut load = |id: ExecutionId| reader.load(id).unwrap().unwrap().state;
        let found: Vec<_> = self.answered.iter().map(|world| load(world.id())).collect();
        let states = |worlds: &[World]| worlds.iter().map(|world| world.state.clone()).collect::<Vec<_>>();
        let whole = found == states(&self.written);
        assert!(whole || found == states(&self.answered), "{what}: something was lost or half written");
        let report = check(&mut reader, &mut |_| {}).unwrap();
        assert!(report.is_sound(), "{what}: {:?}", report.problems);
        let mut next = if whole { self.written[0].clone() } else { self.answered[0].clone() };
        write(&mut store, [next.done(json!("goes on"))]);
        whole
    }
}

#[test]
fn a_log_that_is_cut_anywhere_keeps_what_was_answered() {
    let torn = torn(false);
    let mut whole = 0;
    for end in (torn.before.len()..torn.after.len()).step_by(SECTOR).chain([torn.after.len()]) {
        whole += usize::from(torn.opens_with(&torn.after[..end], &format!("cut at {end}")));
        let mut rubbish = torn.after[..end].to_vec();
        rubbish.resize(torn.after.len(), 0xa5);
        torn.opens_with(&rubbish, &format!("rubbish from {end} on"));
    }
    assert_eq!(whole, 1, "only the uncut log has the second batch");
}

#[test]
fn a_log_that_is_half_written_over_keeps_what_was_answered() {
    let torn = torn(true);
    let sectors = torn.after.len() / SECTOR;
    let differs = |n: &usize| {
        let range = n * SECTOR..(n + 1) * SECTOR;
        torn.before[range.clone()] != torn.after[range]
    };
    let changed: Vec<usize> = (0..sectors).filter(differs).collect();
    assert!(changed.len() > 8, "the second batch is in {} sectors", changed.len());
    let mixed = |new: &dyn Fn(usize) -> bool| {
        let mut log = torn.before.clone();
        for (_, sector) in changed.iter().enumerate().filter(|(place, _)| new(*place)) {
            let range = sector * SECTOR..(sector + 1) * SECTOR;
            log[range.clone()].copy_from_slice(&torn.after[range]);
        }
        log
    };
    for count in 0..changed.len() {
        let log = mixed(&|place| place < count);
        assert!(!torn.opens_with(&log, &format!("{count} sectors written")));
    }
    // The disk may write sectors in any order.
    let mut bits: u64 = 7;
    for round in 0..40 {
        bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let log = mixed(&|place| place + 1 < changed.len() && bits.rotate_left(place as u32) & 1 == 1);
        torn.opens_with(&log, &format!("round {round}"));
    }
    assert!(torn.opens_with(&torn.after, "all sectors written"));
}

#[test]
fn a_flipped_bit_in_a_journal_row_is_found_by_a_read() {
    let folder = Folder::new();
    let mut store = folder.open();
    let worlds = worlds(&mut store);
    drop(store);
    let raw = folder.raw();
    let sql = "SELECT position, version, records FROM journal WHERE execution = 2 ORDER BY position";
    let rows: Vec<(i64, i64, Vec<u8>)> = raw
        .prepare(sql)
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    for (position, version, records) in rows {
        for place in [0, records.len() / 2, records.len() - 1] {
            let mut flipped = records.clone();
            flipped[place] ^= 4;
            let set = "UPDATE journal SET records = ?2 WHERE position = ?1";
            raw.execute(set, rusqlite::params![position, flipped]).unwrap();
            let mut reader = Sqlite::read_only(&folder.path()).unwrap();
            let error = reader.journal(worlds[1].id(), u64::try_from(version).unwrap(), 100).unwrap_err();
            let StoreError::Damaged(Damage { execution, version: at, .. }) = error else { panic!("{error}") };
            assert_eq!((execution, at), (worlds[1].id(), u64::try_from(version).unwrap()));
            assert!(reader.journal(worlds[0].id(), 0, 100).is_ok(), "another journal is not touched");
            raw.execute(set, rusqlite::params![position, records]).unwrap();
        }
    }
    assert!(Sqlite::read_only(&folder.path()).unwrap().journal(worlds[1].id(), 0, 100).is_ok());
}

#[test]
fn a_row_that_must_be_there_and_is_not_stops_the_writer() {
    let folder = Folder::new();
    let mut store = folder.open();
    let mut worlds = worlds(&mut store);
    folder.raw().execute_batch("DELETE FROM step_runs WHERE class = 0 AND execution = 2").unwrap();
    let (before, good) = (worlds[0].state.clone(), worlds[0].done(json!(1)));
    let bad = Commit { answered: Vec::new(), ..worlds[1].done(json!(2)) };
    let error = store.write(&[good, bad].map(|commit| Write::Commit(Box::new(commit)))).unwrap_err();
    assert!(matches!(&error, StoreError::Corrupt(what) if what.contains("(K1)")), "{error}");
    let again = store.write(&[]).unwrap_err();
    assert!(again.to_string().contains("an earlier write failed"), "{again}");
    // Nothing of the batch is stored, and it does not prevent other writes.
    let mut reader = store.reader().unwrap();
    assert_eq!(reader.load(worlds[0].id()).unwrap().unwrap().state, before);
    let mut other = folder.open();
    write(&mut other, [worlds[2].done(json!(3))]);
    assert_eq!(reader.load(worlds[2].id()).unwrap().unwrap().state, worlds[2].state);
}

#[test]
fn a_broken_page_is_found() {
    let folder = Folder::new();
    let mut store = folder.open();
    for n in 0..60 {
        let (mut world, created) = World::create(&circle(), n);
        write(&mut store, [created, world.done(json!("z".repeat(1_000)))]);
    }
    drop(store);
    let sql = "SELECT pageno FROM dbstat WHERE name = 'journal' AND pagetype = 'leaf' LIMIT 3";
    let pages: Vec<u32> = folder
        .raw()
        .prepare(sql)
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut bytes = std::fs::read(folder.path()).unwrap();
    for page in pages {
        bytes[(page as usize - 1) * 4096..][..600].fill(0xee);
    }
    std::fs::write(folder.path(), bytes).unwrap();
    let report = check(&mut Sqlite::read_only(&folder.path()).unwrap(), &mut |_| {}).unwrap();
    assert!(report.problems.iter().any(|problem| problem.table == "file"), "{:?}", report.problems);
    assert!(report.problems.len() > 1, "the rest is checked, too");
}
