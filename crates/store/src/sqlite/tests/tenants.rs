//! Tenants, workflows and what finds an execution beside its id.

use super::Folder;
use crate::catalog::{Catalog as _, WorkflowQuery};
use crate::commit::{Applied, Commit, Definition, DefinitionId, Target, WorkflowId, Write};
use crate::conformance::world::{World, chain, definition};
use crate::entry::{Entry, WorkflowStatus};
use crate::origin::{IdempotencyKey, Options, Priority, Tenant};
use crate::sqlite::Sqlite;
use crate::store::{Query, Reader as _, Store as _, Which};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Create, ExecutionId, Millis};

fn tenant(name: &str) -> Tenant {
    Tenant::new(name)
}

fn defined(store: &mut Sqlite, of: &str, target: Target, source: &str) -> Applied {
    let definition = Definition { tenant: tenant(of), target, ..definition("d", source, &chain(1)) };
    store.write(&[Write::Define(Box::new(definition))]).unwrap()[0]
}

fn id_of(applied: Applied) -> (DefinitionId, u32, WorkflowId) {
    match applied {
        Applied::Defined(id, version, workflow) => (id, version, workflow),
        other => panic!("a definition was answered {other:?}"),
    }
}

/// A beginning, with what was asked for beside its inputs.
fn begun(id: u128, of: &str, definition: Option<DefinitionId>, options: Options) -> Commit {
    let mut world = World { definition, ..World::new(&chain(1)) };
    let mut commit = world.begin(Create::new(ExecutionId(id), json!({})));
    if let Some(creation) = &mut commit.creation {
        creation.tenant = tenant(of);
        creation.options = Arc::new(options);
    }
    commit
}

fn keyed(mut commit: Commit, key: &str, forgotten: Millis) -> Write {
    if let Some(creation) = &mut commit.creation {
        creation.key = Some(idempotency(key, forgotten));
    }
    Write::Commit(Box::new(commit))
}

fn idempotency(key: &str, forgotten: Millis) -> IdempotencyKey {
    IdempotencyKey { key: key.to_owned(), request: [7; 32], forgotten }
}

fn found(store: &Sqlite, query: &Query) -> Vec<u128> {
    let listed = store.reader().unwrap().list(&Query { limit: 9, ..query.clone() }).unwrap();
    listed.into_iter().map(|listed| listed.execution.0).collect()
}

#[test]
fn a_workflow_has_versions_and_its_tenant_alone_sees_it() {
    let folder = Folder::new();
    let mut store = folder.open();
    let (_, first, workflow) = id_of(defined(&mut store, "a", Target::New(WorkflowId(1)), "one"));
    let (_, second, same) = id_of(defined(&mut store, "a", Target::After(workflow, Some(1)), "two"));
    assert_eq!((first, second, same), (1, 2, workflow));
    assert_eq!(defined(&mut store, "a", Target::After(workflow, Some(1)), "three"), Applied::Fenced);
    assert_eq!(defined(&mut store, "b", Target::After(workflow, None), "three"), Applied::Fenced);
    let (_, other, twin) = id_of(defined(&mut store, "a", Target::New(WorkflowId(2)), "one"));
    assert_eq!((other, twin), (1, WorkflowId(2)), "names may repeat");
    let mut reader = store.reader().unwrap();
    let of = |which: &Which, of: &str, reader: &mut crate::sqlite::SqliteReader| {
        reader.find_definition(&tenant(of), which, None).unwrap().map(|found| found.source)
    };
    assert_eq!(of(&Which::Id(workflow), "a", &mut reader).as_deref(), Some("two"));
    assert_eq!(of(&Which::Name("d".to_owned()), "a", &mut reader).as_deref(), Some("one"), "the newest");
    assert_eq!(of(&Which::Id(workflow), "b", &mut reader), None);
    assert_eq!(of(&Which::Name("d".to_owned()), "b", &mut reader), None);
    assert!(reader.workflow(&tenant("b"), workflow).unwrap().is_none());
    assert!(reader.versions(&tenant("b"), workflow, None, 9).unwrap().is_empty());
    let versions: Vec<u32> =
        reader.versions(&tenant("a"), workflow, None, 9).unwrap().iter().map(|one| one.version).collect();
    assert_eq!(versions, [2, 1]);
}

#[test]
fn workflows_are_listed_by_status_and_name_until_they_are_deleted() {
    let folder = Folder::new();
    let mut store = folder.open();
    for number in 1..=3 {
        defined(&mut store, "a", Target::New(WorkflowId(number)), "one");
    }
    let (tenant, at) = (tenant("a"), Millis(9));
    let paused = Entry::WorkflowStatus {
        tenant: tenant.clone(),
        workflow: WorkflowId(2),
        status: WorkflowStatus::Paused,
        at,
    };
    let gone = |workflow| Entry::WorkflowDeleted { tenant: tenant.clone(), workflow, at };
    let entries = [paused, gone(WorkflowId(1)), gone(WorkflowId(1)), gone(WorkflowId(8))];
    let writes: Vec<Write> = entries.into_iter().map(|entry| Write::Entry(Box::new(entry))).collect();
    let applied = store.write(&writes).unwrap();
    assert_eq!(applied, [Applied::Done, Applied::Done, Applied::Duplicate, Applied::Duplicate]);
    let mut reader = store.reader().unwrap();
    let mut list = |status, search: Option<&str>, limit, offset| -> Vec<u128> {
        let search = search.map(str::to_owned);
        let query = WorkflowQuery { tenant: tenant.clone(), status, search, limit, offset };
        reader.workflows(&query).unwrap().into_iter().map(|workflow| workflow.id.0).collect()
    };
    assert_eq!(list(None, None, 9, 0), [3, 2]);
    assert_eq!(list(None, None, 1, 1), [2]);
    assert_eq!(list(Some(WorkflowStatus::Paused), None, 9, 0), [2]);
    assert_eq!(list(None, Some("D"), 9, 0), [3, 2], "whatever the case");
    assert!(list(None, Some("%"), 9, 0).is_empty(), "no pattern");
}

#[test]
fn an_idempotency_key_starts_one_execution_until_it_is_forgotten() {
    let folder = Folder::new();
    let mut store = folder.open();
    let (definition, _, workflow) = id_of(defined(&mut store, "a", Target::New(WorkflowId(1)), "one"));
    let (other, ..) = id_of(defined(&mut store, "a", Target::New(WorkflowId(2)), "one"));
    let begun = |id, definition| begun(id, "a", Some(definition), Options::default());
    let never = Millis(0);
    let batch = [
        keyed(begun(1, definition), "k", never),
        keyed(begun(2, definition), "k", never),
        keyed(begun(3, definition), "l", never),
        keyed(begun(4, other), "k", never),
    ];
    let applied = store.write(&batch).unwrap();
    let taken: Vec<bool> = applied.iter().map(|one| *one == Applied::Taken).collect();
    assert_eq!(taken, [false, true, false, false]);
    let mut reader = store.reader().unwrap();
    let mut known = |of: &str, forgotten: Millis| {
        let found = reader.keyed(&tenant(of), workflow, &idempotency("k", forgotten)).unwrap();
        found.map(|(execution, request)| {
            assert_eq!(request, [7; 32]);
            execution.0
        })
    };
    assert_eq!((known("a", never), known("b", never)), (Some(1), None));
    // It has not ended, so it is not forgotten.
    assert_eq!(known("a", Millis(i64::MAX)), Some(1));
    let late = keyed(begun(5, definition), "k", Millis(i64::MAX));
    assert_eq!(store.write(&[late]).unwrap(), [Applied::Taken]);
    folder.raw().execute_batch("UPDATE heads SET phase = 10, at = 500").unwrap();
    assert_eq!(store.write(&[keyed(begun(6, definition), "k", Millis(500))]).unwrap(), [Applied::Taken]);
    assert_eq!((known("a", Millis(500)), known("a", Millis(501))), (Some(1), None));
    let free = store.write(&[keyed(begun(7, definition), "k", Millis(501))]).unwrap();
    assert!(matches!(free[..], [Applied::Committed(_)]), "{free:?}");
    assert_eq!(known("a", Millis(501)), Some(7));
}

#[test]
fn executions_are_found_by_whatever_was_said_about_them() {
    let folder = Folder::new();
    let mut store = folder.open();
    let (definition, _, workflow) = id_of(defined(&mut store, "a", Target::New(WorkflowId(1)), "one"));
    let options = |tags: &[&str], correlation: Option<&str>| Options {
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        correlation: correlation.map(str::to_owned),
        priority: Priority::High,
        ..Options::default()
    };
    let mut second = begun(2, "a", None, options(&["x"], Some("c")));
    if let Some(creation) = &mut second.creation {
        creation.parent = Some(ExecutionId(1));
        creation.at = Millis(2_000);
    }
    let commits = [
        begun(1, "a", Some(definition), options(&["x", "y"], None)),
        second,
        begun(3, "b", None, options(&["x"], Some("c"))),
    ];
    let writes: Vec<Write> = commits.into_iter().map(|commit| Write::Commit(Box::new(commit))).collect();
    store.write(&writes).unwrap();
    let all = Query { tenant: Some(tenant("a")), ..Query::default() };
    assert_eq!(found(&store, &Query::default()), [3, 2, 1]);
    assert_eq!(found(&store, &all), [2, 1]);
    assert_eq!(found(&store, &Query { tag: Some("x".into()), ..all.clone() }), [2, 1]);
    assert_eq!(found(&store, &Query { tag: Some("y".into()), ..all.clone() }), [1]);
    assert_eq!(found(&store, &Query { correlation: Some("c".into()), ..all.clone() }), [2]);
    assert_eq!(found(&store, &Query { parent: Some(ExecutionId(1)), ..all.clone() }), [2]);
    assert_eq!(found(&store, &Query { workflow: Some(workflow), ..all.clone() }), [1]);
    assert_eq!(found(&store, &Query { since: Some(Millis(2_000)), ..all.clone() }), [2]);
    assert_eq!(found(&store, &Query { until: Some(Millis(2_000)), ..all.clone() }), [1]);
    let stored = store.reader().unwrap().load(ExecutionId(2)).unwrap().unwrap();
    assert_eq!((stored.tenant, stored.parent), (tenant("a"), Some(ExecutionId(1))));
    assert_eq!(*stored.options, options(&["x"], Some("c")));
    let offers = store.reader().unwrap().offers(None, 9).unwrap();
    assert!(offers.iter().all(|offer| offer.priority == Priority::High), "{offers:?}");
    assert_eq!(offers.last().map(|offer| offer.tenant.clone()), Some(tenant("b")));
}

#[test]
fn a_store_without_workflows_gets_one_for_each_name() {
    let folder = Folder::new();
    let raw = folder.older(2);
    let net = chain(1);
    raw.execute(
        "INSERT INTO nets (digest, spec) VALUES (?1, ?2)",
        rusqlite::params![net.digest().0, serde_json::to_string(net.spec()).unwrap()],
    )
    .unwrap();
    for (name, version) in [("d", 1), ("e", 1), ("d", 2)] {
        let row = rusqlite::params![name, version, net.digest().0];
        let sql = "INSERT INTO definitions (name, version, dialect, net, at, workload, source) \
                   VALUES (?1, ?2, 'playbook', ?3, 5, '{}', 'text')";
        raw.execute(sql, row).unwrap();
    }
    drop(raw);
    let mut reader = folder.open().reader().unwrap();
    let query = WorkflowQuery { tenant: Tenant::default(), status: None, search: None, limit: 9, offset: 0 };
    let found: Vec<(String, u32)> =
        reader.workflows(&query).unwrap().into_iter().map(|one| (one.name, one.version)).collect();
    assert_eq!(found, [("e".to_owned(), 1), ("d".to_owned(), 2)]);
}
