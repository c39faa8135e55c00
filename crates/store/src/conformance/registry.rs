//! Actions with their revisions, routing targets, and what waits for them.

use super::tasks::of_tenant;
use super::world::{World, net, task, with};
use super::{ServerSite, commit, entry, pages, reader, written};
use crate::commit::Applied;
use crate::entry::Entry;
use crate::origin::Tenant;
use crate::quarantine::Suspect;
use crate::registry::{
    ActionDocument, ActionId, AwaitedRoute, Registry as _, RegistryWrite, RoutingTarget, StoredAction,
    TargetKind, TargetPoll, WhichAction,
};
use serde_json::json;
use windlass_kernel::{ExecutionId, Input, Millis, RunState};

fn put(id: u128, (tenant, name): (&str, &str), document: &str, at: i64) -> RegistryWrite {
    RegistryWrite::PutAction(Box::new(ActionDocument {
        id: ActionId(id),
        tenant: Tenant::new(tenant),
        name: name.to_owned(),
        description: Some(format!("about {document}")),
        document: document.to_owned(),
        author: "user_1".to_owned(),
        at: Millis(at),
    }))
}

fn named(name: &str) -> WhichAction {
    WhichAction::Name(name.to_owned())
}

fn delete(tenant: &str, name: &str) -> RegistryWrite {
    RegistryWrite::DeleteAction { tenant: Tenant::new(tenant), name: name.to_owned() }
}

pub fn revisions_of_an_action_are_kept_until_it_is_deleted<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let enable = |tenant: &str, enabled| RegistryWrite::EnableAction {
        tenant: Tenant::new(tenant),
        name: "build".to_owned(),
        enabled,
        at: Millis(8),
    };
    let cases = [
        (put(1, ("a", "build"), "one", 1), Applied::Done),
        (put(2, ("a", "build"), "one", 2), Applied::Duplicate),
        (put(2, ("a", "build"), "two", 3), Applied::Done),
        (put(2, ("a", "build"), "one", 4), Applied::Done),
        (put(3, ("b", "build"), "one", 5), Applied::Done),
        (put(4, ("a", "check"), "x", 6), Applied::Done),
        (put(5, ("a", "gone"), "x", 7), Applied::Done),
        (enable("c", false), Applied::Duplicate),
        (enable("a", false), Applied::Done),
        (delete("a", "gone"), Applied::Done),
        (delete("a", "gone"), Applied::Duplicate),
        (delete("c", "build"), Applied::Duplicate),
    ];
    for (write, applied) in cases {
        assert_eq!(entry(&mut store, Entry::Registry(Box::new(write.clone()))), applied, "{write:?}");
    }
    drop(store);
    let (store, tenant) = (site.open(), Tenant::new("a"));
    let mut reader = reader(&store);
    let build = StoredAction {
        id: ActionId(1),
        tenant: tenant.clone(),
        name: "build".to_owned(),
        description: Some("about one".to_owned()),
        enabled: false,
        revision: 3,
        created_at: Millis(1),
        updated_at: Millis(8),
    };
    let mut document = |which: &WhichAction, revision| {
        let found = reader.action(&tenant, which, revision).expect("a healthy store");
        found.map(|(action, revision)| (action.id.0, revision.revision, revision.document, revision.at.0))
    };
    let expected = |revision, text: &str, at| Some((1, revision, text.to_owned(), at));
    assert_eq!(document(&named("build"), None), expected(3, "one", 4));
    assert_eq!(document(&WhichAction::Id(ActionId(1)), Some(2)), expected(2, "two", 3));
    assert_eq!(document(&WhichAction::Id(ActionId(3)), None), None, "it is another tenant's");
    assert_eq!(document(&named("build"), Some(4)), None);
    assert_eq!(document(&named("gone"), None), None);
    for size in 1..4 {
        let listed = pages(size, |after: Option<&StoredAction>, limit| {
            reader.actions(&tenant, after.map(|action| action.name.as_str()), limit).expect("actions")
        });
        let names: Vec<&str> = listed.iter().map(|action| action.name.as_str()).collect();
        assert_eq!((names, &listed[0]), (vec!["build", "check"], &build), "pages of {size}");
    }
    let mut revisions = |before| {
        let found = reader.action_revisions(&tenant, "build", before, 2).expect("revisions");
        found.into_iter().map(|found| (found.revision, found.document, found.author)).collect::<Vec<_>>()
    };
    let row = |revision| (revision, String::new(), "user_1".to_owned());
    assert_eq!((revisions(None), revisions(Some(2))), (vec![row(3), row(2)], vec![row(1)]));
}

fn target(tenant: &str, kind: TargetKind, name: &str, at: i64) -> RoutingTarget {
    RoutingTarget {
        tenant: Tenant::new(tenant),
        kind,
        name: name.to_owned(),
        cluster: Some("eu".to_owned()),
        routing_key: None,
        ready: false,
        ready_url: Some("http://ready/".to_owned()),
        reason: None,
        polled_at: None,
        created_at: Millis(at),
        updated_at: Millis(at),
    }
}

pub fn a_routing_target_is_put_polled_and_deleted_by_its_tenant<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let (box_kind, group) = (TargetKind::Sandbox, TargetKind::RouteGroup);
    let put = |target: RoutingTarget| RegistryWrite::PutTarget(Box::new(target));
    let keyed =
        |target: RoutingTarget, key: &str| RoutingTarget { routing_key: Some(key.to_owned()), ..target };
    let poll = |name: &str, url: &str| {
        RegistryWrite::TargetPolled(Box::new(TargetPoll {
            tenant: Tenant::new("a"),
            kind: box_kind,
            name: name.to_owned(),
            ready_url: url.to_owned(),
            ready: true,
            routing_key: Some("polled".to_owned()),
            reason: Some("it says so".to_owned()),
            at: Millis(9),
        }))
    };
    let delete = |tenant: &str, name: &str| RegistryWrite::DeleteTarget {
        tenant: Tenant::new(tenant),
        kind: box_kind,
        name: name.to_owned(),
    };
    let cases = [
        (put(keyed(target("a", box_kind, "s1", 1), "k")), Applied::Done),
        (put(target("a", box_kind, "s1", 2)), Applied::Done),
        (put(target("a", box_kind, "s2", 3)), Applied::Done),
        (put(target("a", group, "s1", 4)), Applied::Done),
        (put(target("b", box_kind, "s1", 5)), Applied::Done),
        (put(target("a", box_kind, "s3", 6)), Applied::Done),
        (poll("s2", "http://ready/"), Applied::Done),
        (poll("s1", "http://earlier/"), Applied::Duplicate),
        (poll("s4", "http://ready/"), Applied::Duplicate),
        (delete("a", "s3"), Applied::Done),
        (delete("a", "s3"), Applied::Duplicate),
        (delete("c", "s1"), Applied::Duplicate),
    ];
    for (write, applied) in cases {
        assert_eq!(entry(&mut store, Entry::Registry(Box::new(write.clone()))), applied, "{write:?}");
    }
    drop(store);
    let (store, tenant) = (site.open(), Tenant::new("a"));
    let mut reader = reader(&store);
    let kept = RoutingTarget { created_at: Millis(1), ..keyed(target("a", box_kind, "s1", 2), "k") };
    let polled = RoutingTarget {
        ready: true,
        reason: Some("it says so".to_owned()),
        polled_at: Some(Millis(9)),
        updated_at: Millis(9),
        ..keyed(target("a", box_kind, "s2", 3), "polled")
    };
    for size in 1..4 {
        let listed = pages(size, |after: Option<&RoutingTarget>, limit| {
            reader
                .targets(&tenant, box_kind, after.map(|target| target.name.as_str()), limit)
                .expect("targets")
        });
        assert_eq!(listed, [kept.clone(), polled.clone()], "pages of {size}");
    }
    assert_eq!(reader.target(&tenant, box_kind, "s2"), Ok(Some(polled)));
    assert_eq!(reader.target(&tenant, group, "s1"), Ok(Some(target("a", group, "s1", 4))));
    assert_eq!(reader.target(&tenant, TargetKind::Cluster, "s1"), Ok(None));
}

pub fn steps_that_wait_for_their_route_are_found_until_they_go_on<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let routed = json!({ "wait_for": { "target": "box", "timeout_ms": 100 } });
    let wide = net(json!({
        "steps": [with(task("a", &[]), routed.clone()), task("b", &[]), with(task("c", &[]), routed)],
        "policy": { "join": "all" }
    }));
    let mut worlds = Vec::new();
    for (id, tenant) in [(5, "a"), (3, "b"), (9, "a")] {
        let (world, created) = World::create(&wide, id);
        written(&mut store, &[commit(of_tenant(created, tenant))]);
        worlds.push(world);
    }
    let waiting = |world: &World, tenant: &str| {
        let runs = world.state.runs.iter().filter(|(_, run)| matches!(run.state, RunState::Waiting { .. }));
        let found = runs.map(|(run, state)| AwaitedRoute {
            execution: world.id(),
            tenant: Tenant::new(tenant),
            run: *run,
            state: (**state).clone(),
        });
        found.collect::<Vec<_>>()
    };
    let expected = [waiting(&worlds[0], "a"), waiting(&worlds[1], "b"), waiting(&worlds[2], "a")].concat();
    assert_eq!(expected.len(), 6);
    let found = |store: &P::Store, size| {
        let mut reader = reader(store);
        pages(size, |after: Option<&AwaitedRoute>, limit| {
            let after = after.map(|route| (route.execution, route.run));
            reader.awaited_routes(after, limit).expect("routes")
        })
    };
    for size in 1..8 {
        assert_eq!(found(&store, size), expected, "pages of {size}");
    }
    let ready = worlds[0].give(&Input::RouteReady { run: expected[0].run });
    written(&mut store, &[commit(ready)]);
    let suspect = Suspect {
        execution: ExecutionId(3),
        version: 1,
        deaths: 3,
        quarantined_at: Some(Millis(5)),
        reason: "it died".to_owned(),
    };
    assert_eq!(entry(&mut store, Entry::Suspect(Box::new(suspect))), Applied::Done);
    drop(store);
    assert_eq!(found(&site.open(), 2), [&expected[1..2], &expected[4..]].concat());
}
