//! Lists of what waits for people.

use super::world::{World, net, task, with};
use super::{ServerSite, commit, pages, reader, written};
use crate::commit::Commit;
use crate::origin::{Origin, Tenant};
use crate::tasks::{GateQuery, HeldQuery, StoredGate, StoredTask, TaskQuery, Tasks};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{Cancel, ExecutionId, Input, ManualNote, Millis, Patch, RunId, RunState, StepId};

fn tasks(reader: &mut impl Tasks, tenant: &str, size: usize) -> Vec<StoredTask> {
    pages(size, |after: Option<&StoredTask>, limit| {
        let after = after.map(|task| (task.execution.execution, task.run));
        let query = TaskQuery { tenant: Tenant::new(tenant), execution: None, after, limit };
        reader.tasks(&query).expect("tasks")
    })
}

fn found(reader: &mut impl Tasks, tenant: &str, size: usize) -> Vec<(ExecutionId, RunId, Option<Millis>)> {
    let found = tasks(reader, tenant, size);
    found.iter().map(|task| (task.execution.execution, task.run, task.asked_at)).collect()
}

pub(super) fn of_tenant(mut created: Commit, tenant: &str) -> Commit {
    let creation = created.creation.as_mut().expect("it is created");
    creation.origin = Arc::new(Origin { tenant: Tenant::new(tenant), ..(*creation.origin).clone() });
    created
}

pub fn tasks_of_a_tenant_are_listed_until_they_are_answered<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let manual = json!({ "completion": { "manual": {} } });
    let wide = net(json!({
        "steps": (0..3).map(|n| with(task(&format!("s{n}"), &[]), manual.clone())).collect::<Vec<_>>(),
        "policy": { "join": "all" }
    }));
    let mut worlds = Vec::new();
    for (id, tenant) in [(5, "a"), (3, "b"), (9, "a")] {
        let (mut world, created) = World::create(&wide, id);
        written(&mut store, &[commit(of_tenant(created, tenant))]);
        assert_eq!(found(&mut reader(&store), tenant, 9).iter().filter(|(at, ..)| at.0 == id).count(), 0);
        world.now = Millis(7_000 + i64::try_from(id).unwrap_or_default());
        for _ in 0..2 {
            written(&mut store, &[commit(world.done(json!(1)))]);
        }
        worlds.push(world);
    }
    let waiting = |world: &World| {
        let asked = world.state.runs.iter().filter(|(_, run)| matches!(run.state, RunState::Manual { .. }));
        asked.map(|(run, _)| (world.id(), *run, Some(world.now))).collect::<Vec<_>>()
    };
    let of_a = [waiting(&worlds[0]), waiting(&worlds[2])].concat();
    assert_eq!(of_a.len(), 4);
    for size in 1..6 {
        assert_eq!(found(&mut reader(&store), "a", size), of_a, "pages of {size}");
    }
    assert_eq!(found(&mut reader(&store), "b", 2), waiting(&worlds[1]));
    assert!(found(&mut reader(&store), "c", 2).is_empty());
    for (tenant, execution, expected) in
        [("a", 9, waiting(&worlds[2])), ("b", 9, Vec::new()), ("a", 7, Vec::new())]
    {
        let of_one = |after| {
            let execution = Some(ExecutionId(execution));
            let query = TaskQuery { tenant: Tenant::new(tenant), execution, after, limit: 9 };
            let found = reader(&store).tasks(&query).expect("tasks");
            found.iter().map(|task| (task.execution.execution, task.run, task.asked_at)).collect::<Vec<_>>()
        };
        assert_eq!(of_one(None), expected);
        assert_eq!(of_one(Some((worlds[0].id(), RunId(0)))), expected, "after a task of another execution");
    }
    let first = tasks(&mut reader(&store), "a", 9).remove(0);
    assert_eq!((first.net, Some(&first.state)), (wide.digest(), worlds[0].state.run(first.run)));
    let Some(fence) = worlds[0].state.run(first.run).and_then(|run| run.fence) else { panic!("no fence") };
    let answer = Input::Complete { run: first.run, fence, note: Box::new(ManualNote::default()), seen: None };
    let answered = worlds[0].give(&answer);
    written(&mut store, &[commit(answered)]);
    drop(store);
    assert_eq!(found(&mut reader(&site.open()), "a", 2), of_a[1..]);
}

pub fn gates_of_a_tenant_are_listed_until_they_open<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let gate =
        |key: &str| json!({ "rules": [{ "when": format!("ctx.{key}"), "allow": true }], "deadline_ms": 200 });
    // The first step runs, so the execution does not pause.
    let net = net(json!({
        "steps": [
            task("runs", &[]),
            with(task("b", &[]), json!({ "admit": gate("b") })),
            with(task("c", &[]), json!({ "admit": gate("c") })),
        ],
        "policy": { "join": "all" }
    }));
    let mut worlds = Vec::new();
    for (id, tenant) in [(5, "a"), (3, "b"), (9, "a")] {
        let (world, created) = World::create(&net, id);
        written(&mut store, &[commit(of_tenant(created, tenant))]);
        worlds.push(world);
    }
    let query = |tenant: &str, execution: Option<u128>, after, limit| {
        let (tenant, execution) = (Tenant::new(tenant), execution.map(ExecutionId));
        GateQuery { tenant, execution, after, limit }
    };
    let listed = |store: &P::Store, tenant: &str, execution, size| {
        let found = pages(size, |after: Option<&StoredGate>, limit| {
            let after = after.map(|gate| (gate.execution.execution, gate.step, gate.token));
            reader(store).gates(&query(tenant, execution, after, limit)).expect("gates")
        });
        found.iter().map(|gate| (gate.execution.execution.0, gate.step)).collect::<Vec<_>>()
    };
    let (b, c) = (StepId(1), StepId(2));
    for size in 1..6 {
        assert_eq!(listed(&store, "a", None, size), [(5, b), (5, c), (9, b), (9, c)], "pages of {size}");
    }
    assert_eq!(listed(&store, "b", None, 1), [(3, b), (3, c)]);
    assert_eq!(listed(&store, "a", Some(9), 1), [(9, b), (9, c)]);
    assert_eq!((listed(&store, "a", Some(3), 9), listed(&store, "c", None, 9)), (vec![], vec![]));
    let found = reader(&store).gates(&query("a", None, None, 1)).expect("gates").remove(0);
    let times = (found.asked_at, found.deadline);
    assert_eq!((found.net, times), (net.digest(), (Some(Millis(1_000)), Some(Millis(1_200)))));
    let patch =
        Input::Patch { patch: Patch::from_iter([("b".into(), Arc::new(json!(true)))]), by: "me".into() };
    worlds[0].now = Millis(1_100);
    written(&mut store, &[commit(worlds[0].give(&patch))]);
    drop(store);
    assert_eq!(listed(&site.open(), "a", None, 2), [(5, c), (9, b), (9, c)]);
}

pub fn held_executions_of_a_tenant_are_listed_until_they_are_resumed_or_end<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let net = net(json!({ "steps": [task("a", &[])], "policy": { "join": "all" } }));
    let mut worlds = Vec::new();
    let by = || "me".into();
    for (id, tenant) in [(5, "a"), (3, "b"), (9, "a"), (7, "a"), (2, "a")] {
        let (mut world, created) = World::create(&net, id);
        written(&mut store, &[commit(of_tenant(created, tenant))]);
        if id != 2 {
            written(&mut store, &[commit(world.give(&Input::Hold { by: by(), reason: String::new() }))]);
        }
        worlds.push(world);
    }
    let listed = |store: &P::Store, tenant: &str, execution: Option<u128>, size| {
        let found = pages(size, |after: Option<&crate::store::ListedExecution>, limit| {
            let after = after.map(|held| held.execution);
            let (tenant, execution) = (Tenant::new(tenant), execution.map(ExecutionId));
            reader(store).held(&HeldQuery { tenant, execution, after, limit }).expect("held executions")
        });
        found.iter().map(|held| held.execution.0).collect::<Vec<_>>()
    };
    for size in 1..5 {
        assert_eq!(listed(&store, "a", None, size), [5, 9, 7], "pages of {size}");
    }
    assert_eq!((listed(&store, "b", None, 1), listed(&store, "c", None, 1)), (vec![3], vec![]));
    assert_eq!((listed(&store, "a", Some(7), 1), listed(&store, "a", Some(3), 1)), (vec![7], vec![]));
    written(&mut store, &[commit(worlds[0].give(&Input::Resume { by: by() }))]);
    written(&mut store, &[commit(worlds[2].give(&Input::Cancel(Cancel::default())))]);
    drop(store);
    assert_eq!(listed(&site.open(), "a", None, 2), [7]);
}
