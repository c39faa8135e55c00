//! Executions that are not worked on.

use super::world::{World, circle, net, task};
use super::{ServerSite, commit, entry, reader, written};
use crate::commit::{Applied, Letter, Mail, Session, Stop, Write};
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::quarantine::{ExecutionOutline, Quarantine, Quarantined as _, Suspect};
use crate::store::{Query, Reader as _, Status, Store};
use serde_json::json;
use windlass_kernel::{ExecutionId, Fence, Input, Millis, Outcome, Phase, RunId};

const BAD: ExecutionId = ExecutionId(1);

/// An execution with everything that finds work: an offer, a deadline, a stop, a letter.
fn begin(store: &mut impl Store) -> World {
    let policy = json!({ "join": "all", "timeout_ms": 5_000 });
    let (world, mut created) = World::create(&net(json!({ "steps": [task("a", &[])], "policy": policy })), 1);
    created.stops = vec![Stop { execution: BAD, run: RunId(7), fence: Fence(7), session: Session(1) }];
    let letter = Letter::Input(Input::Continue);
    created.mail = vec![Mail { to: BAD, letter, answered: false, at: Millis(1) }];
    written(store, &[commit(created), commit(World::create(&circle(), 2).1)]);
    world
}

fn suspect(quarantined_at: Option<i64>) -> Suspect {
    let (version, deaths, reason) = (4, 3, "it died three times".to_owned());
    Suspect { execution: BAD, version, deaths, quarantined_at: quarantined_at.map(Millis), reason }
}

/// Numbers of offers, timers and letters that are found.
fn work<P: ServerSite>(store: &P::Store) -> [usize; 3] {
    let mut reader = reader(store);
    let offers = reader.offers(None, 9).expect("offers").len();
    let timers = reader.due(None, Millis(i64::MAX), 9).expect("timers").len();
    [offers, timers, reader.inbox(None, 9).expect("mail").len()]
}

pub fn a_quarantined_execution_is_listed_and_not_worked_on<P: ServerSite>(site: &P) {
    let mut store = site.open();
    begin(&mut store);
    let put = |suspect: Suspect| Entry::Suspect(Box::new(suspect));
    assert_eq!(work::<P>(&store), [2, 1, 1]);
    assert_eq!(entry(&mut store, put(suspect(None))), Applied::Done);
    assert_eq!(work::<P>(&store), [2, 1, 1], "a suspect is worked on");
    assert_eq!(entry(&mut store, put(suspect(Some(50)))), Applied::Done);
    assert_eq!(work::<P>(&store), [1, 0, 0]);
    let mut found = reader(&store);
    assert_eq!(found.suspects(), Ok(vec![suspect(Some(50))]));
    assert_eq!(found.suspect(BAD), Ok(Some(suspect(Some(50)))));
    assert_eq!(found.suspect(ExecutionId(2)), Ok(None));
    assert_eq!(found.offers_of(BAD, RunId(0), 9).expect("offers").len(), 1, "its offers can be looked at");
    let listed = found.list(&Query { limit: 9, ..Query::default() }).expect("a list");
    let reason = "it died three times".to_owned();
    let quarantine = Quarantine { since: Millis(50), reason, deaths: 3 };
    assert_eq!([&listed[0].quarantine, &listed[1].quarantine], [&None, &Some(quarantine)]);
    let release = Entry::Released { execution: BAD };
    assert_eq!(entry(&mut store, release.clone()), Applied::Done);
    assert_eq!(entry(&mut store, release), Applied::Duplicate);
    assert_eq!(work::<P>(&store), [2, 1, 1]);
    assert_eq!(reader(&store).suspects(), Ok(Vec::new()));
}

pub fn an_unfinished_execution_in_quarantine_is_not_continued<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let pure = |n: u32| json!({ "name": format!("s{n}"), "work": { "pure": {} }, "router": { "arcs": [{ "to": n + 1 }] } });
    let steps: Vec<_> = (0..5).map(pure).chain([task("s5", &[])]).collect();
    let policy = json!({ "join": "each", "limits": { "firings_per_decide": 2 } });
    let (_, created) = World::create(&net(json!({ "steps": steps, "policy": policy })), 1);
    written(&mut store, &[commit(created)]);
    assert_eq!(reader(&store).unfinished(9), Ok(vec![BAD]));
    entry(&mut store, Entry::Suspect(Box::new(suspect(Some(50)))));
    assert_eq!(reader(&store).unfinished(9), Ok(Vec::new()));
}

pub fn an_abandoned_execution_is_over_and_keeps_its_journal<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let world = begin(&mut store);
    entry(&mut store, Entry::Suspect(Box::new(suspect(Some(50)))));
    let standing =
        ExecutionOutline { version: world.state.head.version, tenant: Tenant::default(), parent: None };
    assert_eq!(reader(&store).outline(BAD), Ok(Some(standing)));
    assert_eq!(reader(&store).outline(ExecutionId(404)), Ok(None));
    let journal = reader(&store).journal(BAD, 0, 9);
    let abandon = |execution| Entry::Abandoned { execution, at: Millis(9_000) };
    assert_eq!(entry(&mut store, abandon(BAD)), Applied::Done);
    assert_eq!(entry(&mut store, abandon(BAD)), Applied::Duplicate);
    assert_eq!(entry(&mut store, abandon(ExecutionId(404))), Applied::Duplicate);
    assert_eq!(work::<P>(&store), [1, 0, 0], "the other one is offered");
    let mut found = reader(&store);
    assert_eq!((found.suspects(), found.stops(None, 9)), (Ok(Vec::new()), Ok(Vec::new())));
    let cancelled = Status::Phase(Phase::Ended(Outcome::Cancelled));
    let query = Query { status: Some(cancelled), limit: 9, ..Query::default() };
    let listed = found.list(&query).expect("a list");
    assert_eq!(listed.iter().map(|one| (one.execution, one.at)).collect::<Vec<_>>(), [(BAD, Millis(9_000))]);
    assert_eq!(found.journal(BAD, 0, 9), journal);
    let stopped = Stop { execution: BAD, run: RunId(7), fence: Fence(7), session: Session(1) };
    assert_eq!(store.write(&[Write::Stopped(stopped)]), Ok(vec![Applied::Duplicate]));
}
