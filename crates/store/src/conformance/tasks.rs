//! Lists of what waits for people.

use super::world::{World, net, task, with};
use super::{ServerSite, commit, pages, reader, written};
use crate::commit::Commit;
use crate::origin::{Origin, Tenant};
use crate::tasks::{StoredTask, TaskQuery, Tasks};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::{ExecutionId, Input, ManualNote, Millis, RunId, RunState};

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
