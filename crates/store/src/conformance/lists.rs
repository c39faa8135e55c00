//! Tests of lists: offers, executions, definitions, logs.

use super::world::{World, chain, circle, definition, net, task};
use super::{StoreSite, answered, commit, pages, reader, written};
use crate::commit::{
    Applied, Commit, Definition, DefinitionId, LogChunk, Position, Target, WorkflowId, Write,
};
use crate::origin::{IdempotencyKey, Options, Origin, Priority, Tenant};
use crate::store::{
    DueTimer, ListedExecution, Offer, Query, Reader, Status, Store, StoredDefinition, StoredLog, Which,
};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{
    Cancel, Create, Event, ExecutionId, Fence, Input, Millis, Outcome, Phase, RunId, Timer,
};

pub fn offers_are_listed_page_by_page<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let wide = net(json!({
        "steps": (0..4).map(|n| task(&format!("s{n}"), &[])).collect::<Vec<_>>(), "policy": { "join": "all" }
    }));
    let mut expected = Vec::new();
    for id in [5, 3, 9] {
        let (mut world, created) = World::create(&wide, id);
        written(&mut store, &[commit(created), commit(world.done(json!(1)))]);
        expected.extend(world.open().into_iter().map(|(run, fence)| (world.id(), run, fence)));
    }
    expected.sort_unstable();
    for size in 1..12 {
        let mut reader = reader(&store);
        let offers = pages(size, |after: Option<&Offer>, limit| {
            reader.offers(after.map(|offer| (offer.execution, offer.run)), limit).expect("offers")
        });
        let mut found: Vec<(ExecutionId, RunId, Fence)> =
            offers.iter().map(|offer| (offer.execution, offer.run, offer.fence)).collect();
        found.sort_unstable();
        assert_eq!(found, expected, "pages of {size}");
        let own = pages(size, |after: Option<&Offer>, limit| {
            let after = after.map_or(RunId(0), |offer| offer.run);
            reader.offers_of(ExecutionId(3), after, limit).expect("offers")
        });
        let of_one: Vec<Offer> =
            offers.iter().filter(|offer| offer.execution == ExecutionId(3)).cloned().collect();
        assert!(own == of_one && !own.is_empty(), "pages of {size}: {own:?}");
        assert_eq!(reader.offers_of(ExecutionId(404), RunId(0), size).expect("offers"), []);
    }
}

/// Lists executions, all of which must be of one tenant.
fn list(store: &impl Store, status: Option<Status>, size: usize) -> Vec<ListedExecution> {
    let of = |tenant: Option<Tenant>| {
        let mut reader = reader(store);
        pages(size, |after: Option<&ListedExecution>, limit| {
            let before = after.map(|listed| listed.execution);
            let query = Query { tenant: tenant.clone(), status, before, limit, ..Query::default() };
            reader.list(&query).expect("a list")
        })
    };
    let all = of(None);
    assert_eq!(of(Some(Tenant::default())), all, "{status:?} in pages of {size}");
    assert_eq!(of(Some(Tenant::new("other"))), [], "{status:?} in pages of {size}");
    all
}

fn ids(listed: &[ListedExecution]) -> Vec<u128> {
    listed.iter().map(|listed| listed.execution.0).collect()
}

pub fn executions_are_listed_newest_first<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let net = chain(2);
    let defined = written(&mut store, &[Write::Define(Box::new(definition("d", "source", &net)))]);
    let Applied::Defined(id, 1, _) = defined[0] else { panic!("{defined:?}") };
    let mut last = None;
    for number in [4, 2, 9] {
        let mut world = World { definition: (number == 2).then_some(id), ..World::new(&net) };
        let create = Create::new(ExecutionId(number), json!({}));
        written(&mut store, &[commit(world.begin(create))]);
        last = Some(world);
    }
    for size in 1..5 {
        assert_eq!(ids(&list(&store, None, size)), [9, 2, 4], "pages of {size}");
    }
    let found = list(&store, None, 10);
    assert_eq!((&found[1].name, found[1].version), (&Some("d".to_owned()), Some(1)));
    assert_eq!((found[1].origin.definition, found[1].dialect.as_deref()), (Some(id), Some("playbook")));
    assert_eq!((&found[0].name, found[0].version, found[0].origin.definition), (&None, None, None));
    let mut world = last.expect("the last one");
    world.now = Millis(7_000);
    written(&mut store, &[commit(world.give(&Input::Hold { by: "me".into(), reason: String::new() }))]);
    let held = &list(&store, None, 1)[0];
    assert_eq!((held.phase, held.held, held.origin.trigger.as_ref()), (world.state.phase(), true, "manual"));
    assert_eq!((held.created_at, held.at), (Millis(1_000), Millis(7_000)));
}

pub fn executions_are_listed_by_phase<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let net = chain(1);
    for id in 1..=9 {
        let (mut world, created) = World::create(&net, id);
        written(&mut store, &[commit(created)]);
        let next = match id % 3 {
            0 => commit(world.done(json!(1))),
            1 => commit(world.give(&Input::Cancel(Cancel::default()))),
            _ if id == 5 => commit(world.give(&Input::Hold { by: "me".into(), reason: String::new() })),
            _ => continue,
        };
        written(&mut store, &[next]);
    }
    let of = |phase: Phase, size| ids(&list(&store, Some(Status::Phase(phase)), size));
    for size in 1..5 {
        assert_eq!(of(Phase::Ended(Outcome::Completed), size), [9, 6, 3]);
        assert_eq!(of(Phase::Ended(Outcome::Cancelled), size), [7, 4, 1]);
        assert_eq!(of(Phase::Running, size), [8, 2]);
        assert_eq!(of(Phase::Paused, size), [5]);
        assert!(of(Phase::Draining, size).is_empty());
        assert_eq!(ids(&list(&store, Some(Status::Open), size)), [8, 5, 2]);
        assert_eq!(ids(&list(&store, None, size)), [9, 8, 7, 6, 5, 4, 3, 2, 1]);
    }
}

pub fn what_goes_on_by_itself_is_found<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let pure = |n: u32| json!({ "name": format!("s{n}"), "work": { "pure": {} }, "router": { "arcs": [{ "to": n + 1 }] } });
    let steps: Vec<_> = (0..5).map(pure).chain([task("s5", &[])]).collect();
    let policy = json!({ "join": "each", "limits": { "firings_per_decide": 2 } });
    let (mut world, created) = World::create(&net(json!({ "steps": steps, "policy": policy })), 1);
    let (_, other) = World::create(&circle(), 2);
    written(&mut store, &[commit(created), commit(other)]);
    let mut rounds = 0;
    while !reader(&store).unfinished(10).expect("a list").is_empty() {
        assert_eq!(reader(&store).unfinished(10), Ok(vec![world.id()]));
        let next = world.give(&Input::Continue);
        let goes_on = matches!(next.records.last().map(|record| &record.event), Some(Event::Continued));
        written(&mut store, &[commit(next)]);
        rounds += 1;
        assert_eq!(reader(&store).unfinished(10).expect("a list").len(), usize::from(goes_on));
    }
    assert!(rounds > 1, "it went on {rounds} times");
}

fn find(store: &impl Store, name: &str, version: Option<u32>) -> Option<StoredDefinition> {
    let which = Which::Name(name.to_owned());
    reader(store).find_definition(&Tenant::default(), &which, version).expect("an answer")
}

pub fn definitions_are_numbered_per_name<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (short, long) = (chain(1), chain(2));
    let define = |name: &str, source: &str, net| Write::Define(Box::new(definition(name, source, net)));
    let batch = [
        define("a", "one", &short),
        define("a", "two", &long),
        define("b", "one", &short),
        define("a", "two", &long),
        // An old text that is registered again is the newest from then on.
        define("a", "one", &short),
        // The same text means another net: a later program compiles it otherwise.
        define("a", "one", &long),
    ];
    let defined: Vec<(DefinitionId, u32)> = written(&mut store, &batch)
        .into_iter()
        .map(|applied| match applied {
            Applied::Defined(id, version, _) => (id, version),
            other => panic!("a definition was answered {other:?}"),
        })
        .collect();
    let versions: Vec<u32> = defined.iter().map(|(_, version)| *version).collect();
    assert_eq!(versions, [1, 2, 1, 2, 3, 4]);
    assert_eq!(defined[1].0, defined[3].0);
    drop(store);
    let store = site.open();
    let newest = find(&store, "a", None).expect("it is known");
    assert_eq!((newest.id, newest.version, newest.net), (defined[5].0, 4, long.digest()));
    let second = find(&store, "a", Some(2)).expect("it is known");
    assert_eq!((second.id, second.version, second.source.as_str()), (defined[1].0, 2, "two"));
    assert!(find(&store, "a", Some(5)).is_none());
    let first = reader(&store).definition(defined[0].0).expect("an answer").expect("it is known");
    assert_eq!((first.name.as_str(), first.source.as_str(), first.version), ("a", "one", 1));
    assert_eq!(
        (first.dialect.as_str(), first.workload, first.net),
        ("playbook", json!({ "n": 1 }), short.digest())
    );
    assert!(find(&store, "c", None).is_none());
    assert!(reader(&store).definition(DefinitionId(99)).expect("an answer").is_none());
}

pub fn nets_are_found_by_digest<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let net = circle();
    assert!(reader(&store).net(net.digest()).expect("an answer").is_none());
    written(&mut store, &[Write::Define(Box::new(definition("n", "s", &net)))]);
    let found = reader(&store).net(net.digest()).expect("an answer").expect("it is known");
    assert_eq!((found.digest(), found.spec()), (net.digest(), net.spec()));
    let other = chain(3);
    assert_eq!([0, 1].map(|_| answered(&mut store, Write::Net(other.clone()))), [Applied::Done; 2]);
    let found = reader(&store).net(other.digest()).expect("an answer").expect("it is known");
    assert_eq!(found.spec(), other.spec());
}

pub fn a_workflow_is_found_by_its_own_tenant_alone<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let mut define = |of: &str, target, source: &str| {
        let definition = definition("d", source, &chain(1));
        let definition = Definition { tenant: Tenant::new(of), target, ..definition };
        answered(&mut store, Write::Define(Box::new(definition)))
    };
    let (one, two, plan) = (WorkflowId(1), WorkflowId(2), WorkflowId(3));
    let cases = [
        (define("a", Target::New(one), "one"), Ok((1, one))),
        (define("a", Target::After(one, Some(1)), "two"), Ok((2, one))),
        (define("a", Target::After(one, Some(1)), "three"), Err(Applied::Fenced)),
        (define("b", Target::After(one, None), "three"), Err(Applied::Fenced)),
        (define("a", Target::After(WorkflowId(9), None), "three"), Err(Applied::Fenced)),
        (define("a", Target::New(two), "one"), Ok((1, two))),
        (define("b", Target::Identified(plan), "of b"), Ok((1, plan))),
        (define("c", Target::Identified(plan), "of c"), Ok((1, plan))),
        (define("b", Target::Identified(plan), "of b"), Ok((1, plan))),
    ];
    for (applied, expected) in cases {
        let found = match applied {
            Applied::Defined(_, version, workflow) => Ok((version, workflow)),
            refused => Err(refused),
        };
        assert_eq!(found, expected, "names may repeat, versions may not");
    }
    let find = |of: &str, which: &Which| {
        let found = reader(&store).find_definition(&Tenant::new(of), which, None).expect("an answer");
        found.map(|found| found.source)
    };
    let named = Which::Name("d".to_owned());
    assert_eq!(find("a", &Which::Id(one)).as_deref(), Some("two"));
    assert_eq!(find("a", &named).as_deref(), Some("one"), "the newest workflow of that name");
    assert_eq!(find("b", &Which::Id(one)), None);
    assert_eq!(find("b", &Which::Id(plan)).as_deref(), Some("of b"));
    assert_eq!(find("c", &Which::Id(plan)).as_deref(), Some("of c"));
}

/// The first commit of an execution, with what was recorded with its start.
fn begun(id: u128, of: &str, definition: Option<DefinitionId>, options: Options) -> Commit {
    let mut world = World { definition, ..World::new(&chain(1)) };
    let mut commit = world.begin(Create::new(ExecutionId(id), json!({})));
    if let Some(creation) = &mut commit.creation {
        let origin = Arc::make_mut(&mut creation.origin);
        (origin.tenant, origin.options) = (Tenant::new(of), options);
    }
    commit
}

pub fn executions_are_found_by_what_was_recorded_with_their_start<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let definition = Definition { tenant: Tenant::new("a"), ..definition("d", "source", &chain(1)) };
    let defined = answered(&mut store, Write::Define(Box::new(definition)));
    let Applied::Defined(definition, _, workflow) = defined else { panic!("{defined:?}") };
    let options = |tags: &[&str], correlation: Option<&str>| Options {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        correlation: correlation.map(str::to_owned),
        priority: Priority::High,
        ..Options::default()
    };
    let mut second = begun(2, "a", None, options(&["x"], Some("c")));
    if let Some(creation) = &mut second.creation {
        Arc::make_mut(&mut creation.origin).parent = Some(ExecutionId(1));
        creation.at = Millis(2_000);
    }
    let first = begun(1, "a", Some(definition), options(&["x", "y"], None));
    written(&mut store, &[first, second, begun(3, "b", None, options(&["x"], Some("c")))].map(commit));
    let all = Query { tenant: Some(Tenant::new("a")), limit: 9, ..Query::default() };
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (Query { limit: 9, ..Query::default() }, vec![3, 2, 1]),
        (all.clone(), vec![2, 1]),
        (Query { tag: text("x"), ..all.clone() }, vec![2, 1]),
        (Query { tag: text("y"), ..all.clone() }, vec![1]),
        (Query { correlation: text("c"), ..all.clone() }, vec![2]),
        (Query { parent: Some(ExecutionId(1)), ..all.clone() }, vec![2]),
        (Query { workflow: Some(workflow), ..all.clone() }, vec![1]),
        (Query { since: Some(Millis(1_999)), ..all.clone() }, vec![2]),
        (Query { since: Some(Millis(2_000)), ..all.clone() }, vec![]),
        (Query { until: Some(Millis(2_000)), ..all.clone() }, vec![1]),
        (Query { tag: text("x"), status: Some(Status::Open), limit: 1, ..all.clone() }, vec![2]),
        (Query { status: Some(Status::In(&[Phase::Paused, Phase::Draining])), ..all }, vec![]),
    ];
    let mut reader = reader(&store);
    for (query, expected) in cases {
        assert_eq!(ids(&reader.list(&query).expect("a list")), expected, "{query:?}");
    }
    let stored = reader.load(ExecutionId(2)).expect("a state").expect("it exists");
    let expected = Origin {
        tenant: Tenant::new("a"),
        parent: Some(ExecutionId(1)),
        options: options(&["x"], Some("c")),
        ..Origin::default()
    };
    assert_eq!(*stored.origin, expected);
    let stored = reader.load(ExecutionId(1)).expect("a state").expect("it exists");
    assert_eq!((stored.origin.definition, stored.origin.workflow), (Some(definition), Some(workflow)));
    let offers = reader.offers(None, 9).expect("offers");
    assert!(offers.iter().all(|offer| offer.priority == Priority::High), "{offers:?}");
    assert_eq!(offers.last().map(|offer| offer.tenant.clone()), Some(Tenant::new("b")));
}

pub fn executions_are_found_by_tag_and_phase_as_it_changes<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let options = |tags: &[&str]| Options {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..Options::default()
    };
    let mut worlds = Vec::new();
    for id in 1..=6 {
        let (mut world, mut created) = World::create(&chain(1), id);
        if let Some(creation) = &mut created.creation {
            let origin = Arc::make_mut(&mut creation.origin);
            let tags: &[&str] = if id % 2 == 0 { &["x", "even"] } else { &["x"] };
            (origin.tenant, origin.options) = (Tenant::new(if id == 6 { "b" } else { "a" }), options(tags));
        }
        world.now = Millis(2_000);
        written(&mut store, &[commit(created)]);
        worlds.push(world);
    }
    let found = |store: &P::Store, of: &str, tag: &str, status| {
        let of_page = |after: Option<&ListedExecution>, limit| {
            let before = after.map(|listed| listed.execution);
            let (tenant, tag) = (Some(Tenant::new(of)), Some(tag.to_owned()));
            let query = Query { tenant, tag, status: Some(status), before, limit, ..Query::default() };
            reader(store).list(&query).expect("a list")
        };
        ids(&pages(2, of_page))
    };
    let (running, held) = (Status::Phase(Phase::Running), Status::Phase(Phase::Paused));
    let done = Status::Phase(Phase::Ended(Outcome::Completed));
    assert_eq!(found(&store, "a", "x", running), [5, 4, 3, 2, 1]);
    let hold = Input::Hold { by: "me".into(), reason: String::new() };
    written(&mut store, &[commit(worlds[1].give(&hold)), commit(worlds[3].done(json!(1)))]);
    written(&mut store, &[commit(worlds[4].done(json!(1))), commit(worlds[5].done(json!(1)))]);
    drop(store);
    let store = site.open();
    assert_eq!(found(&store, "a", "x", running), [3, 1]);
    assert_eq!(found(&store, "a", "x", held), [2]);
    assert_eq!(found(&store, "a", "x", done), [5, 4]);
    assert_eq!(found(&store, "a", "even", done), [4]);
    assert_eq!(found(&store, "a", "x", Status::Open), [3, 2, 1]);
    assert_eq!((found(&store, "b", "x", done), found(&store, "b", "x", running)), (vec![6], vec![]));
    assert!(found(&store, "c", "x", done).is_empty() && found(&store, "a", "y", done).is_empty());
}

pub fn an_execution_is_listed_with_its_newest_retry<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let (mut old, created) = World::create(&chain(1), 1);
    written(&mut store, &[commit(created), commit(old.give(&Input::Cancel(Cancel::default())))]);
    let rows = reader(&store).journal(old.id(), 0, usize::MAX).expect("a journal");
    let journal: Vec<_> = rows.into_iter().flat_map(|row| row.records).collect();
    // The newest one has the lower id.
    for id in [9, 4] {
        written(&mut store, &[commit(old.fork(&journal, ExecutionId(id)).1)]);
    }
    let mut started = begun(7, "default", None, Options::default());
    if let Some(creation) = &mut started.creation {
        Arc::make_mut(&mut creation.origin).parent = Some(old.id());
    }
    written(&mut store, &[commit(started)]);
    let listed = list(&store, None, 9);
    let found: Vec<_> =
        listed.iter().map(|one| (one.execution.0, one.origin.retry_of, one.retried_by)).collect();
    let (of, by) = (Some(ExecutionId(1)), Some(ExecutionId(4)));
    assert_eq!(found, [(7, None, None), (4, of, None), (9, of, None), (1, None, by)]);
}

pub fn open_executions_of_a_tenant_are_counted_up_to_a_bound<P: StoreSite>(site: &P) {
    let mut store = site.open();
    for id in 1..=4 {
        written(&mut store, &[commit(begun(id, "a", None, Options::default()))]);
    }
    let (mut world, created) = World::create(&chain(1), 5);
    written(&mut store, &[commit(created), commit(world.done(json!(1)))]);
    let count = |of: &str, bound| reader(&store).open_executions(&Tenant::new(of), bound);
    assert_eq!((count("a", 9), count("a", 2), count("b", 9)), (Ok(4), Ok(2), Ok(0)));
    assert_eq!(count("default", 9), Ok(0), "it has ended");
}

pub(super) fn idempotency(key: &str, forgotten: Millis) -> IdempotencyKey {
    IdempotencyKey { key: key.to_owned(), request: [7; 32], forgotten }
}

/// An execution that begins under a key.
pub(super) fn keyed(definition: DefinitionId, id: u128, key: &str, forgotten: Millis) -> (World, Write) {
    let mut world = World { definition: Some(definition), ..World::new(&chain(1)) };
    let mut begun = world.begin(Create::new(ExecutionId(id), json!({})));
    if let Some(creation) = &mut begun.creation {
        Arc::make_mut(&mut creation.origin).key = Some(idempotency(key, forgotten));
    }
    (world, commit(begun))
}

pub fn an_idempotency_key_starts_one_execution_until_it_expires<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let define = |id| {
        let target = Target::New(WorkflowId(id));
        Write::Define(Box::new(Definition { target, ..definition("d", "source", &chain(1)) }))
    };
    let defined = written(&mut store, &[define(1), define(2)]);
    let [Applied::Defined(one, ..), Applied::Defined(other, ..)] = defined[..] else { panic!("{defined:?}") };
    let never = Millis(0);
    let (mut world, first) = keyed(one, 1, "k", never);
    let batch =
        [first, keyed(one, 2, "k", never).1, keyed(one, 3, "l", never).1, keyed(other, 4, "k", never).1];
    let applied = store.write(&batch).expect("a healthy store");
    let taken: Vec<bool> = applied.iter().map(|one| *one == Applied::Taken).collect();
    assert_eq!(taken, [false, true, false, false]);
    let mut start = |id, forgotten| answered(&mut store, keyed(one, id, "k", Millis(forgotten)).1);
    assert_eq!(start(5, i64::MAX), Applied::Taken, "its execution has not ended");
    world.now = Millis(1_500);
    assert!(matches!(answered(&mut store, commit(world.done(json!(1)))), Applied::Committed(_)));
    let mut start = |id, forgotten| answered(&mut store, keyed(one, id, "k", Millis(forgotten)).1);
    assert_eq!(start(6, 1_500), Applied::Taken);
    assert!(matches!(start(7, 1_501), Applied::Committed(_)));
    assert_eq!(start(8, 1_501), Applied::Taken, "the new execution holds it");
}

pub fn logs_are_read_on_from_a_place<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let chunk = |id: u128, n: u32| LogChunk {
        execution: ExecutionId(id),
        run: RunId(u64::from(n)),
        step: format!("s{n}"),
        attempt: n,
        lines: format!("[\"line {n} of {id}\"]").into_bytes(),
        at: Millis(1),
    };
    assert_eq!(answered(&mut store, Write::Log(chunk(1, 0))), Applied::Fenced, "there is no such execution");
    for id in [1, 2] {
        written(&mut store, &[commit(World::create(&circle(), id).1)]);
    }
    for n in 0..7 {
        written(&mut store, &[Write::Log(chunk(1, n)), Write::Log(chunk(2, n))]);
    }
    for size in 1..9 {
        let mut reader = reader(&store);
        let found = pages(size, |after: Option<&StoredLog>, limit| {
            let after = after.map_or(Position(0), |log| log.position);
            reader.logs(ExecutionId(2), after, limit).expect("logs")
        });
        let listed: Vec<_> =
            found.into_iter().map(|log| (log.run, log.step, log.attempt, log.lines)).collect();
        let sent: Vec<_> =
            (0..7).map(|n| chunk(2, n)).map(|log| (log.run, log.step, log.attempt, log.lines)).collect();
        assert_eq!(listed, sent, "pages of {size}");
        let newest_first = pages(size, |after: Option<&StoredLog>, limit| {
            let before = after.map_or(Position(i64::MAX), |log| log.position);
            reader.logs_before(ExecutionId(2), before, limit).expect("logs")
        });
        let reversed: Vec<_> =
            newest_first.into_iter().rev().map(|log| (log.run, log.step, log.attempt, log.lines)).collect();
        assert_eq!(reversed, sent, "pages of {size}, the newest first");
    }
    assert!(reader(&store).logs(ExecutionId(3), Position(0), 9).expect("logs").is_empty());
    written(&mut store, &[Write::Log(chunk(2, 5)), Write::Log(chunk(2, 6))]);
    let found = pages(1, |after: Option<&StoredLog>, limit| {
        let after = after.map_or(Position(0), |log| log.position);
        reader(&store).run_logs(ExecutionId(2), RunId(5), after, limit).expect("logs")
    });
    assert_eq!(found.iter().map(|log| log.run.0).collect::<Vec<_>>(), [5, 5], "of one step-run");
    assert!(reader(&store).run_logs(ExecutionId(3), RunId(5), Position(0), 9).expect("logs").is_empty());
}

pub fn lists_do_not_go_on_from_nowhere<P: StoreSite>(site: &P) {
    let mut store = site.open();
    written(&mut store, &[commit(World::create(&circle(), 1).1)]);
    let mut reader = reader(&store);
    let nowhere = ExecutionId(99);
    let timer = DueTimer { at: Millis(1), execution: nowhere, timer: Timer::Start };
    let query = Query { before: Some(nowhere), limit: 5, ..Query::default() };
    assert!(reader.offers(Some((nowhere, RunId(1))), 5).is_err());
    assert!(reader.due(Some(&timer), Millis(9), 5).is_err());
    assert!(reader.list(&query).is_err());
}
