//! Forgetting executions, and the check of a whole store.

use super::world::{World, chain, definition};
use super::{ServerSite, answered, commit, entry, pages, reader, written};
use crate::check::{Audit as _, SealedRow, check};
use crate::commit::{Applied, Commit, Letter, LogChunk, Mail, Position, Write};
use crate::entry::Entry;
use crate::origin::{Origin, Runner, Tenant, Webhook};
use crate::outbox::{NewDeliveries, NewDelivery, Outbox as _};
use crate::retention::Retention as _;
use crate::store::{Reader as _, Store};
use crate::workers::Workers as _;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_kernel::{Cancel, Create, ExecutionId, Fence, Input, Millis, Parent, RunId};

const STEPS: u32 = 20;

/// An execution from its beginning to its end.
fn ended(id: u128, parent: Option<u128>) -> Vec<Write> {
    let mut world = World::new(&chain(STEPS));
    let parent = parent.map(|id| Parent { execution: ExecutionId(id), run: RunId(1), fence: Fence(1) });
    let begun = world.begin(Create { parent, ..Create::new(ExecutionId(id), json!({})) });
    let steps: Vec<Commit> = (0..STEPS).map(|number| world.done(json!({ "n": number }))).collect();
    std::iter::once(begun).chain(steps).map(commit).collect()
}

fn log(id: u128) -> Write {
    let (execution, run, step, lines) = (ExecutionId(id), RunId(1), "s0".to_owned(), b"[]".to_vec());
    Write::Log(LogChunk { execution, run, step, attempt: 1, lines, at: Millis(1) })
}

fn forget(store: &mut impl Store, id: u128) -> Applied {
    forget_ended(store, id, Millis(i64::MAX))
}

fn forget_ended(store: &mut impl Store, id: u128, ended_before: Millis) -> Applied {
    entry(store, Entry::Forget { execution: ExecutionId(id), ended_before })
}

/// An execution from its beginning to its end that has a webhook.
fn ended_with_webhook(id: u128) -> Vec<Write> {
    let mut writes = ended(id, None);
    if let Some(Write::Commit(begun)) = writes.first_mut()
        && let Some(creation) = &mut begun.creation
    {
        let webhook = Some(Webhook { url: "https://example.org/".into(), events: Vec::new() });
        Arc::make_mut(&mut creation.origin).options.webhook = webhook;
    }
    writes
}

fn problems<P: ServerSite>(store: &P::Store) -> Vec<String> {
    let report = check(&mut reader(store), &mut |_| {}).expect("a store that can be read");
    report.problems.iter().map(ToString::to_string).collect()
}

pub fn a_forgotten_execution_is_deleted_in_pieces_and_no_other_is<P: ServerSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &[Write::Net(chain(STEPS)), Write::Net(chain(2))]);
    written(&mut store, &ended(1, None));
    written(&mut store, &[log(1), commit(World::create(&chain(2), 7).1)]);
    assert_eq!(forget(&mut store, 7), Applied::Duplicate, "it has not ended");
    assert_eq!(forget(&mut store, 1), Applied::Done);
    assert_eq!(forget(&mut store, 1), Applied::Duplicate);
    let mut gone = reader(&store);
    assert!(gone.load(ExecutionId(1)).expect("an answer").is_none());
    assert!(gone.journal(ExecutionId(1), 0, 9).expect("an answer").is_empty());
    assert!(gone.logs(ExecutionId(1), Position(0), 9).expect("an answer").is_empty());
    let mut pieces = 0;
    while entry(&mut store, Entry::Clear { rows: 7 }) == Applied::Done {
        pieces += 1;
        assert_eq!(problems::<P>(&store), [] as [&str; 0], "after {pieces} pieces");
        drop(store);
        store = site.open();
    }
    assert!(pieces > 3, "{pieces} pieces");
    assert_eq!(problems::<P>(&store), [] as [&str; 0], "nothing of it is left");
    assert!(reader(&store).load(ExecutionId(7)).expect("an answer").is_some());
    // Its id is free again.
    written(&mut store, &ended(1, None));
    assert_eq!(problems::<P>(&store), [] as [&str; 0]);
}

pub fn rows_of_a_forgotten_execution_are_not_taken_for_those_of_a_new_one<P: ServerSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &[Write::Net(chain(STEPS))]);
    written(&mut store, &ended(1, None));
    written(&mut store, &[log(1)]);
    for id in 2..5 {
        assert_eq!(forget(&mut store, id - 1), Applied::Done);
        // Rows of the one before are there when it is created, and are deleted while it lives.
        written(&mut store, &ended(id, None));
        assert!(reader(&store).logs(ExecutionId(id), Position(0), 9).expect("logs").is_empty());
        while entry(&mut store, Entry::Clear { rows: 7 }) == Applied::Done {}
        assert_eq!(problems::<P>(&store), [] as [&str; 0]);
        let journal = reader(&store).journal(ExecutionId(id), 0, 99).expect("a journal");
        assert_eq!(journal.len(), STEPS as usize + 1);
        drop(store);
        store = site.open();
    }
}

fn forgettable<P: ServerSite>(store: &P::Store, before: i64) -> Vec<u128> {
    let mut reader = reader(store);
    let found = reader.forgettable(Millis(before), 9).expect("a list");
    assert_eq!(reader.count_forgettable(Millis(before)), Ok(found.len() as u64));
    assert_eq!(reader.forgettable(Millis(before), 1).expect("a list").len(), found.len().min(1));
    let mut ids: Vec<u128> = found.into_iter().map(|one| one.execution.0).collect();
    ids.sort_unstable();
    ids
}

pub fn an_execution_that_is_needed_is_not_forgettable<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let (mut parent, begun) = World::create(&chain(1), 1);
    written(&mut store, &[commit(begun)]);
    written(&mut store, &ended(2, Some(1)));
    written(&mut store, &ended(3, None));
    written(&mut store, &ended_with_webhook(4));
    assert_eq!(forgettable::<P>(&store, i64::MAX), [3], "the parent of 2 runs, and 4 has events to deliver");
    assert!(forgettable::<P>(&store, 0).is_empty(), "none ended before then");
    written(&mut store, &[commit(parent.done(json!(1)))]);
    entry(&mut store, Entry::OutboxClosed { execution: ExecutionId(4) });
    assert_eq!(forgettable::<P>(&store, i64::MAX), [1, 2, 3, 4]);
}

pub fn an_answer_that_is_not_fetched_protects_an_execution_for_a_time<P: ServerSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &ended(1, None));
    let ended_at = reader(&store).load(ExecutionId(1)).expect("a state").expect("it exists").state.head.at;
    let letter = Letter::Input(Input::Cancel(Cancel::default()));
    let asked = Mail { to: ExecutionId(1), letter, answered: true, at: ended_at.plus(10) };
    let Applied::Accepted(mail) = answered(&mut store, Write::Accept(asked)) else {
        panic!("it is accepted")
    };
    assert!(forgettable::<P>(&store, i64::MAX).is_empty(), "the letter is not read yet");
    written(&mut store, &[Write::Settle { mail, refused: Some("it has ended".to_owned()) }]);
    assert!(forgettable::<P>(&store, ended_at.0 + 1).is_empty(), "the answer may still be fetched");
    assert_eq!(forgettable::<P>(&store, ended_at.0 + 11), [1]);
    assert_eq!(forget(&mut store, 1), Applied::Done);
    assert!(reader(&store).answer(mail).is_err(), "the answer is deleted with it");
}

pub fn an_execution_that_is_needed_since_it_was_listed_is_not_forgotten<P: ServerSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &[Write::Net(chain(STEPS)), Write::Net(chain(1))]);
    let (mut parent, begun) = World::create(&chain(1), 1);
    written(&mut store, &[commit(begun)]);
    written(&mut store, &ended(2, Some(1)));
    assert_eq!(forget(&mut store, 2), Applied::Duplicate, "its parent runs");
    written(&mut store, &[commit(parent.done(json!(1)))]);
    written(&mut store, &ended_with_webhook(3));
    let execution = ExecutionId(3);
    let event = "execution.completed".to_owned();
    let made = vec![NewDelivery { number: 1, message: 1, event, body: "{}".to_owned() }];
    let at = Millis(9);
    entry(&mut store, Entry::Deliveries(Box::new(NewDeliveries { execution, seen: 1, made, at })));
    let why = "gone".to_owned();
    assert_eq!(entry(&mut store, Entry::GivenUp { execution, why: why.clone(), at }), Applied::Done);
    assert_eq!(entry(&mut store, Entry::OutboxClosed { execution }), Applied::Done);
    let listed = forgettable::<P>(&store, i64::MAX);
    assert_eq!(listed, [1, 2, 3]);
    // All of this arrives between the list and the deletion.
    let again = Entry::Redeliver { tenant: Tenant::default(), execution, number: 1, at };
    assert_eq!(entry(&mut store, again), Applied::Done);
    let letter = Letter::Input(Input::Cancel(Cancel::default()));
    let asked = Mail { to: ExecutionId(2), letter, answered: false, at };
    let Applied::Accepted(mail) = answered(&mut store, Write::Accept(asked)) else {
        panic!("it is accepted")
    };
    let pending = |store: &P::Store| reader(store).pending(execution, 9).expect("deliveries").len();
    assert_eq!([2, 3].map(|id| forget(&mut store, id)), [Applied::Duplicate; 2]);
    assert_eq!(pending(&store), 1);
    assert_eq!(reader(&store).inbox_of(ExecutionId(2), 9).expect("mail").len(), 1);
    assert_eq!(problems::<P>(&store), [] as [&str; 0]);
    written(&mut store, &[Write::Settle { mail, refused: None }]);
    assert_eq!(entry(&mut store, Entry::GivenUp { execution, why, at }), Applied::Done);
    assert_eq!(entry(&mut store, Entry::OutboxClosed { execution }), Applied::Done);
    let ended_at = reader(&store).load(execution).expect("a state").expect("it exists").state.head.at;
    assert_eq!(forget_ended(&mut store, 3, ended_at), Applied::Duplicate, "it ended no earlier");
    assert_eq!(forget_ended(&mut store, 3, ended_at.plus(1)), Applied::Done);
    assert_eq!([1, 2].map(|id| forget(&mut store, id)), [Applied::Done; 2]);
}

pub fn every_artifact_that_a_row_refers_to_is_found<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let key = |digit: &str| format!("sha256:{}", digit.repeat(64));
    let mut world = World::new(&chain(2));
    let begun =
        world.begin(Create::new(ExecutionId(1), json!({ "a": { "$artifact": key("a"), "bytes": 1 } })));
    let done = world.done(json!([{ "$artifact": key("b"), "bytes": 1 }, "sha256:short"]));
    written(&mut store, &[commit(begun), commit(done)]);
    let keys = BTreeSet::from([key("a"), key("b")]);
    assert_eq!(reader(&store).referenced(), Ok(BTreeMap::from([(Tenant::default(), keys)])));
    let counted = Entry::ArtifactsCounted { left: BTreeMap::from([(Tenant::default(), 7)]) };
    assert_eq!(entry(&mut store, counted), Applied::Done);
}

pub fn a_check_sees_every_row_of_a_sound_store<P: ServerSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &[Write::Define(Box::new(definition("d", "source", &chain(STEPS))))]);
    for id in [4, 2, 9] {
        written(&mut store, &ended(id, None));
    }
    let report = check(&mut reader(&store), &mut |_| {}).expect("a store that can be read");
    assert_eq!((report.problems, report.executions), (Vec::new(), 3));
    assert_eq!(report.journal_rows, 3 * u64::from(STEPS + 1));
    let mut seen = reader(&store);
    assert_eq!((seen.medium(), seen.strays(9)), (Ok(Vec::new()), Ok(Vec::new())));
    let all = pages(2, |after: Option<&ExecutionId>, limit| {
        seen.executions(after.copied(), limit).expect("executions")
    });
    assert_eq!(all, [4, 2, 9].map(ExecutionId));
    let creation = seen.creation(ExecutionId(2)).expect("an answer").expect("it exists");
    assert_eq!((creation.net, creation.origin.trigger.as_ref()), (chain(STEPS).digest(), "manual"));
    assert_eq!(seen.creation(ExecutionId(404)), Ok(None));
    let sealed = pages(7, |after: Option<&SealedRow>, limit| {
        seen.sealed(after.map_or(Position(0), |row| row.position), limit).expect("journal rows")
    });
    assert!(sealed.is_sorted_by(|before, after| before.position < after.position));
    for id in all {
        let journal = seen.journal(id, 0, usize::MAX).expect("a journal");
        let own = sealed.iter().filter(|row| row.execution == Some(id));
        assert!(own.map(|row| (row.position, row.version, row.commit)).eq(journal.iter().map(|row| (
            row.position,
            row.version,
            row.commit
        ))));
        let rows = seen.rows(id).expect("rows").expect("it exists");
        let facts: Vec<RunId> = seen.facts(id).expect("facts").into_iter().map(|(run, _)| run).collect();
        assert_eq!(facts, rows.facts);
    }
}

pub fn an_execution_stays_while_its_sub_executions_have_its_large_values<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let runner = Runner { group: "lab".to_owned(), cluster: None };
    let begin = |id: u128, parent: Option<u128>, runner: Option<Runner>| {
        let mut writes = ended(id, None);
        let creation = writes.iter_mut().find_map(|write| match write {
            Write::Commit(commit) => commit.creation.as_mut(),
            _ => None,
        });
        let origin = Arc::make_mut(&mut creation.expect("a creation").origin);
        (origin.parent, origin.options.runner) = (parent.map(ExecutionId), runner);
        origin.trigger = if parent.is_some() { Origin::CHILD.into() } else { "api".into() };
        writes
    };
    written(&mut store, &[Write::Net(chain(STEPS))]);
    for (id, parent, runner) in
        [(1, None, Some(&runner)), (2, Some(1), Some(&runner)), (3, None, None), (4, Some(3), None)]
    {
        written(&mut store, &begin(id, parent, runner.cloned()));
    }
    let owned = Entry::ArtifactsOwned { execution: ExecutionId(2), artifacts: vec!["a".to_owned()] };
    assert_eq!(entry(&mut store, owned), Applied::Done);
    assert_eq!(forgettable::<P>(&store, i64::MAX), [2, 3, 4], "2 has the values of 1");
    assert_eq!(reader(&store).owns_artifact(ExecutionId(2), "a"), Ok(true));
    assert_eq!(forget(&mut store, 2), Applied::Done);
    assert_eq!(forgettable::<P>(&store, i64::MAX), [1, 3, 4]);
}
