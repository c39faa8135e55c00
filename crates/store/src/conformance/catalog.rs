//! Workflows, their versions and their hooks: always of one tenant.

use super::world::{World, chain, definition};
use super::{ServerSite, answered, commit, entry, reader, written};
use crate::catalog::{Catalog as _, WorkflowQuery};
use crate::commit::{Applied, Definition, DefinitionId, StoredManifest, Target, WorkflowId, Write};
use crate::entry::{Entry, WorkflowStatus};
use crate::hooks::{HookClaim, HookReader as _, StoredHook};
use crate::origin::Tenant;
use crate::store::Reader as _;
use serde_json::json;
use windlass_kernel::{Create, ExecutionId, Millis};

fn define(of: &str, id: u128, source: &str) -> Definition {
    let target = Target::New(WorkflowId(id));
    Definition { tenant: Tenant::new(of), target, ..definition("d", source, &chain(1)) }
}

fn defined(definition: Definition) -> Write {
    Write::Define(Box::new(definition))
}

pub fn versions_of_a_workflow_are_listed_newest_first<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let next = |source, expected| {
        let target = Target::After(WorkflowId(1), expected);
        defined(Definition { target, ..define("a", 1, source) })
    };
    written(&mut store, &[defined(define("a", 1, "one")), next("two", Some(1)), next("three", None)]);
    let (own, other) = (Tenant::new("a"), Tenant::new("b"));
    let mut reader = reader(&store);
    let mut numbers = |tenant: &Tenant, before, limit| -> Vec<u32> {
        let versions = reader.versions(tenant, WorkflowId(1), before, limit).expect("versions");
        versions.iter().map(|version| version.version).collect()
    };
    assert_eq!(numbers(&own, None, 9), [3, 2, 1]);
    assert_eq!(numbers(&own, None, 2), [3, 2]);
    assert_eq!(numbers(&own, Some(2), 9), [1]);
    assert!(numbers(&other, None, 9).is_empty());
    let first = &reader.versions(&own, WorkflowId(1), Some(2), 9).expect("versions")[0];
    assert_eq!((first.name.as_str(), first.dialect.as_str(), first.at), ("d", "playbook", Millis(5)));
    assert_eq!(first.net, chain(1).digest());
    let mut source = |tenant, version| {
        let found = reader.version(tenant, WorkflowId(1), version).expect("an answer");
        found.map(|found| found.source)
    };
    assert_eq!(source(&own, None).as_deref(), Some("three"));
    assert_eq!(source(&own, Some(1)).as_deref(), Some("one"));
    assert_eq!((source(&own, Some(4)), source(&other, None)), (None, None));
    let workflow = reader.workflow(&own, WorkflowId(1)).expect("an answer").expect("it exists");
    assert_eq!((workflow.version, workflow.status), (3, WorkflowStatus::Active));
    assert!(reader.workflow(&other, WorkflowId(1)).expect("an answer").is_none());
}

pub fn workflows_are_listed_by_status_and_name_until_they_are_deleted<P: ServerSite>(site: &P) {
    let mut store = site.open();
    for number in 1..=3 {
        written(&mut store, &[defined(define("a", number, "one"))]);
    }
    let tenant = Tenant::new("a");
    let status = |workflow, status| Entry::WorkflowStatus {
        tenant: tenant.clone(),
        workflow: WorkflowId(workflow),
        status,
        at: Millis(9),
    };
    let delete = |workflow| Entry::WorkflowDeleted {
        tenant: tenant.clone(),
        workflow: WorkflowId(workflow),
        at: Millis(9),
    };
    assert_eq!(entry(&mut store, status(2, WorkflowStatus::Paused)), Applied::Done);
    assert_eq!(entry(&mut store, status(8, WorkflowStatus::Paused)), Applied::Duplicate);
    for (workflow, applied) in [(1, Applied::Done), (1, Applied::Duplicate), (8, Applied::Duplicate)] {
        assert_eq!(entry(&mut store, delete(workflow)), applied);
    }
    let mut reader = reader(&store);
    let mut list = |status, search: Option<&str>, limit, offset| -> Vec<u128> {
        let search = search.map(str::to_owned);
        let query = WorkflowQuery { tenant: tenant.clone(), status, search, dialect: None, limit, offset };
        reader.workflows(&query).expect("a list").into_iter().map(|workflow| workflow.id.0).collect()
    };
    assert_eq!(list(None, None, 9, 0), [3, 2]);
    assert_eq!(list(None, None, 1, 1), [2]);
    assert_eq!(list(Some(WorkflowStatus::Paused), None, 9, 0), [2]);
    assert_eq!(list(None, Some("D"), 9, 0), [3, 2], "in upper or lower case");
    assert!(list(None, Some("%"), 9, 0).is_empty(), "no pattern");
}

pub fn the_holder_of_an_idempotency_key_is_found<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let Applied::Defined(id, ..) = answered(&mut store, defined(define("default", 1, "one"))) else {
        panic!("it is defined");
    };
    let (mut world, created) = super::lists::keyed(id, 1, "k", Millis(0));
    written(&mut store, &[created]);
    let find = |of: &str, key: &str, expires: i64| {
        let key = super::lists::idempotency(key, Millis(expires));
        reader(&store).keyed(&Tenant::new(of), WorkflowId(1), &key).expect("an answer")
    };
    let holder = Some((ExecutionId(1), [7; 32]));
    assert_eq!(find("default", "k", i64::MAX), holder, "it has not ended");
    assert_eq!((find("default", "l", 0), find("other", "k", 0)), (None, None));
    world.now = Millis(1_500);
    written(&mut store, &[commit(world.done(json!(1)))]);
    let find = |expires: i64| {
        let key = super::lists::idempotency("k", Millis(expires));
        reader(&store).keyed(&Tenant::default(), WorkflowId(1), &key).expect("an answer")
    };
    assert_eq!((find(1_500), find(1_501)), (holder, None));
}

pub fn executions_of_a_workflow_are_counted_up_to_a_bound<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let applied =
        written(&mut store, &[defined(define("default", 1, "one")), defined(define("default", 2, "two"))]);
    let [Applied::Defined(one, ..), Applied::Defined(two, ..)] = applied[..] else { panic!("{applied:?}") };
    for (number, definition) in [(1, Some(one)), (2, Some(two)), (3, Some(one)), (4, None), (5, Some(one))] {
        let mut world = World { definition, ..World::new(&chain(1)) };
        written(&mut store, &[commit(world.begin(Create::new(ExecutionId(number), json!({}))))]);
        if number == 3 {
            written(&mut store, &[commit(world.done(json!(1)))]);
        }
    }
    drop(store);
    let mut reader = reader(&site.open());
    let mut count = |of: &str, workflow, bound| {
        reader.count_executions(&Tenant::new(of), WorkflowId(workflow), bound).expect("a count")
    };
    assert_eq!(count("default", 1, 9), 3, "open and ended ones");
    assert_eq!([count("default", 1, 2), count("default", 1, 3), count("default", 1, 0)], [2, 3, 0]);
    assert_eq!([count("default", 2, 9), count("default", 3, 9), count("other", 1, 9)], [1, 0, 0]);
}

pub fn durations_are_those_of_completed_executions<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let Applied::Defined(id, ..) = answered(&mut store, defined(define("default", 1, "one"))) else {
        panic!("it is defined");
    };
    for (number, took) in [(1, Some(10)), (2, None), (3, Some(30))] {
        let mut world = World { definition: Some(id), ..World::new(&chain(1)) };
        written(&mut store, &[commit(world.begin(Create::new(ExecutionId(number), json!({}))))]);
        if let Some(took) = took {
            world.now = world.now.plus(took);
            written(&mut store, &[commit(world.done(json!(1)))]);
        }
    }
    let durations = |of: &str, limit| {
        reader(&store).durations(&Tenant::new(of), WorkflowId(1), limit).expect("durations")
    };
    assert_eq!(durations("default", 9), [30, 10]);
    assert_eq!(durations("default", 1), [30]);
    assert!(durations("other", 9).is_empty());
}

pub fn a_hook_belongs_to_one_workflow_of_a_tenant<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let claim = |path: &str| HookClaim { method: "POST".into(), path: path.into(), require_auth: true };
    let with = |definition: Definition, paths: &[&str]| {
        defined(Definition { hooks: paths.iter().map(|path| claim(path)).collect(), ..definition })
    };
    let next =
        |paths| with(Definition { target: Target::After(WorkflowId(1), None), ..define("a", 1, "n") }, paths);
    written(&mut store, &[with(define("a", 1, "one"), &["x", "y", "x"])]);
    let taken = Applied::HookTaken(WorkflowId(1));
    assert_eq!(answered(&mut store, with(define("a", 2, "two"), &["z", "y"])), taken);
    assert!(reader(&store).workflow(&Tenant::new("a"), WorkflowId(2)).expect("an answer").is_none());
    written(&mut store, &[with(define("b", 3, "other tenant"), &["y"])]);
    let owners = |store: &P::Store, of: &str, path: &str| -> Vec<StoredHook> {
        reader(store).hooks(&Tenant::new(of), path).expect("hooks")
    };
    let hook = |workflow, path| StoredHook { workflow: WorkflowId(workflow), claim: claim(path) };
    assert_eq!(owners(&store, "a", "y"), [hook(1, "y")]);
    assert_eq!(owners(&store, "b", "y"), [hook(3, "y")]);
    assert!(owners(&store, "a", "z").is_empty() && owners(&store, "b", "x").is_empty());
    // The newest version says what is claimed, and a deleted workflow claims nothing.
    written(&mut store, &[next(&["y"]), with(define("a", 2, "two"), &["x"])]);
    assert_eq!(
        (owners(&store, "a", "x"), owners(&store, "a", "y")),
        (vec![hook(2, "x")], vec![hook(1, "y")])
    );
    let (tenant, workflow) = (Tenant::new("a"), WorkflowId(1));
    written(
        &mut store,
        &[Write::Entry(Box::new(Entry::WorkflowDeleted { tenant, workflow, at: Millis(9) }))],
    );
    assert!(owners(&store, "a", "y").is_empty());
    // Every definition that is written through the port lists its claims.
    assert!(reader(&store).unread_hooks(9).expect("hooks").is_empty());
    let read = Entry::HooksRead {
        tenant: Tenant::new("a"),
        workflow: WorkflowId(2),
        hooks: vec![claim("q")],
        at: Millis(9),
    };
    assert_eq!(entry(&mut store, read), Applied::Duplicate);
    assert!(owners(&store, "a", "q").is_empty());
    assert_eq!(
        reader(&store).find_definition(&Tenant::new("a"), &crate::Which::Id(WorkflowId(1)), None),
        Ok(None)
    );
}

pub fn versions_of_older_compilers_are_listed_until_they_are_compiled_again<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let of = |compiler: u32, id| {
        let manifest = StoredManifest { compiler, json: format!("{{\"by\":{compiler}}}") };
        defined(Definition { manifest, ..define("a", id, "text") })
    };
    let applied = written(&mut store, &[of(3, 1), of(1, 2), of(2, 3), Write::Net(chain(2))]);
    let ids: Vec<DefinitionId> = applied
        .iter()
        .filter_map(|one| if let Applied::Defined(id, ..) = one { Some(*id) } else { None })
        .collect();
    let outdated = |store: &P::Store, compiler, limit| -> Vec<DefinitionId> {
        let found = reader(store).outdated_versions(compiler, limit).expect("versions");
        found.into_iter().map(|version| version.id).collect()
    };
    assert_eq!(outdated(&store, 3, 9), [ids[1], ids[2]]);
    assert_eq!((outdated(&store, 3, 1), outdated(&store, 1, 9)), (vec![ids[1]], vec![]));
    let manifest = StoredManifest { compiler: 3, json: "{}".to_owned() };
    let recompiled =
        |definition| Entry::Recompiled { definition, net: chain(2).digest(), manifest: manifest.clone() };
    assert_eq!(entry(&mut store, recompiled(ids[1])), Applied::Done);
    assert_eq!(entry(&mut store, recompiled(DefinitionId(404))), Applied::Duplicate);
    assert_eq!(outdated(&store, 3, 9), [ids[2]]);
    let found = reader(&store).definition(ids[1]).expect("an answer").expect("it exists");
    assert_eq!((found.net, found.manifest), (chain(2).digest(), manifest));
}
