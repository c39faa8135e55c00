//! Commits: all or nothing, one version after the other.

use super::world::{World, chain, circle};
use super::{StoreSite, answered, commit, everything, position, reader, written};
use crate::commit::{Applied, CommitId, Letter, Mail, Session, Stop, Write};
use crate::store::{PageBounds, Reader, Store};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Event, Fence, Input, Millis, Patch, Record, RunId};

pub fn a_commit_is_read_back_whole<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&chain(3), 7);
    let first = created.clone();
    let position = position(written(&mut store, &[commit(created)])[0]);
    let row = &reader(&store).journal(world.id(), 0, 10).expect("a journal")[0];
    assert_eq!((row.position, row.commit, row.version), (position, first.id, 0));
    assert_eq!(row.records, *first.records);
    for step in ["a", "b"] {
        let done = world.done(json!({ "step": step }));
        written(&mut store, &[commit(done)]);
        let stored = reader(&store).load(world.id()).expect("a state").expect("it was created");
        assert_eq!(stored.state, world.state);
        assert_eq!((stored.origin.definition, stored.origin.trigger.as_ref()), (None, "manual"));
    }
    let unknown = windlass_kernel::ExecutionId(8);
    assert!(reader(&store).load(unknown).expect("an answer").is_none());
    assert!(reader(&store).rows(unknown).expect("an answer").is_none());
    assert!(reader(&store).journal(unknown, 0, 10).expect("an answer").is_empty());
}

pub fn a_batch_is_applied_in_order<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut one, create_one) = World::create(&circle(), 1);
    let (mut two, create_two) = World::create(&circle(), 2);
    let batch = [
        commit(create_one),
        commit(one.done(json!(1))),
        commit(create_two),
        commit(two.done(json!(2))),
        commit(one.done(json!(3))),
    ];
    assert_eq!(written(&mut store, &batch).len(), 5);
    for world in [&one, &two] {
        let stored = reader(&store).load(world.id()).expect("a state").expect("it was created");
        assert_eq!(stored.state, world.state);
    }
    assert_eq!(store.write(&[]), Ok(Vec::new()), "a batch of nothing is nothing");
}

pub fn positions_rise_over_all_executions<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut one, create_one) = World::create(&circle(), 2);
    let (mut two, create_two) = World::create(&circle(), 1);
    let mut positions = Vec::new();
    for write in
        [commit(create_one), commit(create_two), commit(one.done(json!(1))), commit(two.done(json!(2)))]
    {
        positions.push(position(answered(&mut store, write)));
    }
    assert!(positions.is_sorted_by(|before, after| before < after), "{positions:?}");
}

pub fn a_journal_is_read_from_any_version_on<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    let (mut other, other_created) = World::create(&circle(), 2);
    let mut records: Vec<Record> = created.records.to_vec();
    written(&mut store, &[commit(created), commit(other_created)]);
    for n in 0..100 {
        let done = world.done(json!(n));
        records.extend(done.records.iter().cloned());
        written(&mut store, &[commit(done), commit(other.done(json!(n)))]);
    }
    let mut reader = reader(&store);
    for from in 0..records.len() {
        let rows = reader.journal(world.id(), from as u64, 3).expect("a journal");
        let first = usize::try_from(rows[0].version).expect("a short journal");
        let read: Vec<&Record> = rows.iter().flat_map(|row| &row.records).collect();
        assert!(first <= from && from < first + rows[0].records.len(), "row {first} does not hold {from}");
        assert!(read.iter().copied().eq(&records[first..first + read.len()]), "from {from}");
        assert!(rows.len() == 3 || first + read.len() == records.len(), "from {from} there is more");
    }
    for from in [records.len(), records.len() + 1, 1 << 40] {
        assert!(reader.journal(world.id(), from as u64, 3).expect("a journal").is_empty(), "from {from}");
    }
    assert!(reader.journal(world.id(), 0, 0).expect("a journal").is_empty());
    let mut page = |from: usize, rows_max, bytes_max| {
        let page = reader.journal_page(world.id(), from as u64, PageBounds { rows_max, bytes_max });
        let page = page.expect("a journal");
        (page.rows.len(), page.more)
    };
    assert_eq!(page(0, 3, usize::MAX), (3, true));
    assert_eq!(page(0, 1_000, usize::MAX), (101, false));
    assert_eq!(page(0, 1_000, 1), (1, true), "a page has one row at least");
    assert_eq!(page(records.len(), 1_000, 1), (0, false));
    let (some, more) = page(0, 1_000, 4_096);
    assert!((2..100).contains(&some) && more, "{some} rows");
}

pub fn an_execution_is_created_once<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (world, created) = World::create(&chain(2), 1);
    written(&mut store, &[commit(created.clone())]);
    let before = everything(&mut reader(&store), world.id());
    let again = crate::commit::Commit { id: CommitId(99), ..created };
    assert_eq!(answered(&mut store, commit(again)), Applied::Duplicate);
    assert_eq!(everything(&mut reader(&store), world.id()), before);
}

/// A commit that changes every kind of row, decided on the state as `world` has it.
fn of_everything(world: &mut World, consumed: crate::commit::MailId) -> crate::commit::Commit {
    let mut all = world.done(json!({ "big": "x".repeat(100) }));
    let patch = Patch::from([("k".to_owned(), Arc::new(json!(1)))]);
    all.rows.ctx = world.give(&Input::Patch { patch, by: "me".into() }).rows.ctx;
    all.rows.facts = vec![RunId(1)];
    all.stops = vec![Stop { execution: world.id(), run: RunId(1), fence: Fence(1), session: Session(1) }];
    all.mail = vec![letter(world)];
    all.consumed = vec![consumed];
    all.leases = vec![world.lease(5)];
    all
}

fn letter(world: &World) -> Mail {
    Mail { to: world.id(), letter: Letter::Input(Input::Continue), answered: false, at: Millis(1) }
}

pub fn a_conflict_writes_nothing<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    let Applied::Accepted(mail) = answered(&mut store, Write::Accept(letter(&world))) else {
        panic!("mail is accepted");
    };
    let mut late = world.clone();
    written(&mut store, &[commit(world.done(json!(1)))]);
    let before = everything(&mut reader(&store), world.id());
    let stale = of_everything(&mut late, mail);
    assert_eq!(answered(&mut store, commit(stale)), Applied::Conflict);
    assert_eq!(everything(&mut reader(&store), world.id()), before);
    let ahead = {
        let mut ahead = world.clone();
        ahead.done(json!(2));
        ahead.done(json!(3))
    };
    assert_eq!(answered(&mut store, commit(ahead)), Applied::Conflict);
    assert_eq!(everything(&mut reader(&store), world.id()), before);
}

pub fn a_conflict_refuses_later_commits_of_its_execution_and_no_others<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    let (mut other, other_created) = World::create(&circle(), 2);
    written(&mut store, &[commit(created), commit(other_created)]);
    let mut late = world.clone();
    let first = world.done(json!(1));
    // The second commit of the batch would fit what is stored, but it was decided after one that does not.
    let (stale, fits) = (late.done(json!(0)), world.clone().done(json!(2)));
    written(&mut store, &[commit(first)]);
    let batch = [commit(stale), commit(other.done(json!(3))), commit(fits), commit(other.done(json!(4)))];
    let applied = store.write(&batch).expect("a healthy store");
    assert_eq!((applied[0], applied[2]), (Applied::Conflict, Applied::Conflict));
    position(applied[1]);
    position(applied[3]);
    for world in [&world, &other] {
        let stored = reader(&store).load(world.id()).expect("a state").expect("it was created");
        assert_eq!(stored.state, world.state);
    }
}

pub fn what_follows_a_refused_creation_is_refused<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    let (mut again, created_again) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    // By chance the stored version is the one that the second commit expects.
    let batch = [commit(created_again), commit(again.done(json!("again")))];
    let applied = store.write(&batch).expect("a healthy store");
    assert_eq!(applied, [Applied::Duplicate, Applied::Conflict]);
    written(&mut store, &[commit(world.done(json!("first")))]);
}

pub fn a_commit_of_an_unknown_execution_is_a_conflict<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, _) = World::create(&circle(), 1);
    assert_eq!(answered(&mut store, commit(world.done(json!(1)))), Applied::Conflict);
    assert!(reader(&store).load(world.id()).expect("an answer").is_none());
}

pub fn an_answer_counts_under_the_open_fence_only<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created)]);
    let before = everything(&mut reader(&store), world.id());
    let (run, fence) = world.open()[0];
    let mut after = world.clone();
    let done = after.done(json!(1));
    for wrong in [(run, fence.next()), (run.next(), fence), (run, Fence(0))] {
        let mut commit_of = done.clone();
        commit_of.answered.push(wrong);
        assert_eq!(answered(&mut store, commit(commit_of)), Applied::Fenced, "{wrong:?}");
        assert_eq!(everything(&mut reader(&store), world.id()), before);
    }
    written(&mut store, &[commit(done)]);
    world = after;
    // In one batch, too, an offer is answered once.
    let (second, mut twice) = (world.done(json!(2)), world.done(json!(3)));
    twice.answered.clone_from(&second.answered);
    let applied = store.write(&[commit(second), commit(twice)]).expect("a healthy store");
    position(applied[0]);
    assert_eq!(applied[1], Applied::Fenced);
}

pub fn reopening_loses_nothing<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut world, created) = World::create(&circle(), 1);
    written(&mut store, &[commit(created), Write::Accept(letter(&world))]);
    let mail = reader(&store).inbox(None, 1).expect("mail")[0].id;
    written(&mut store, &[commit(of_everything(&mut world.clone(), mail))]);
    world.done(json!({ "big": "x".repeat(100) }));
    let before = everything(&mut reader(&store), world.id());
    assert!(before.contains("session: Session(5)"), "the lease is there");
    for _ in 0..3 {
        drop(store);
        store = site.open();
        assert_eq!(everything(&mut reader(&store), world.id()), before);
    }
    // It continues where it was, and a journal stays one.
    let next = world.done(json!(1));
    written(&mut store, &[commit(next)]);
    let journal = reader(&store).journal(world.id(), 0, 100).expect("a journal");
    let events = journal.iter().flat_map(|row| &row.records).map(|record| &record.event);
    assert_eq!(events.filter(|event| matches!(event, Event::Done { .. })).count(), 2);
    assert_eq!(journal.len(), 3);
}
