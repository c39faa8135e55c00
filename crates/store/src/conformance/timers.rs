//! Timers: what the states say is due is what the store says is due.

use super::world::{World, net, task, with};
use super::{StoreSite, commit, pages, reader, written};
use crate::store::{DueTimer, Reader, Store};
use serde_json::json;
use std::sync::Arc;
use windlass_kernel::*;

/// Every timer that runs in these executions, the earliest first.
pub(super) fn running<'w>(worlds: impl Iterator<Item = &'w World>) -> Vec<DueTimer> {
    let of = |world: &World| {
        let execution = world.id();
        let timers = world.state.timers().into_iter();
        timers.map(move |(timer, at)| DueTimer { at, execution, timer }).collect::<Vec<_>>()
    };
    let mut timers: Vec<DueTimer> = worlds.flat_map(of).collect();
    timers.sort_unstable();
    timers
}

/// Returns every timer that the store lists until then, in pages; they must be ordered by time.
pub(super) fn listed(store: &impl Store, until: Millis, size: usize) -> Vec<DueTimer> {
    let mut reader = reader(store);
    let mut timers = pages(size, |after, limit| reader.due(after, until, limit).expect("timers"));
    assert!(timers.is_sorted_by_key(|timer| timer.at), "{timers:?}");
    timers.sort_unstable();
    timers
}

fn zoo() -> Vec<Arc<Net>> {
    let retry = json!({ "attempts_max": 3, "initial_ms": 40, "backoff": "fixed" });
    let wait = json!({ "target": "x", "timeout_ms": 30 });
    let gate = json!({ "rules": [{ "when": "ctx.open", "allow": true }], "deadline_ms": 50 });
    let delay = |name: &str, ms: u64| json!({ "name": name, "work": { "delay": { "ms": ms } } });
    let child =
        json!({ "name": "c", "work": { "child": { "definition": "d", "inputs": {} } }, "timeout_ms": 60 });
    vec![
        net(
            json!({ "steps": [delay("a", 10), delay("b", 10), delay("c", 20)], "policy": { "join": "all" } }),
        ),
        net(
            json!({ "steps": [with(task("a", &[]), json!({ "retry": retry }))], "policy": { "join": "all" } }),
        ),
        net(json!({ "steps": [with(task("a", &[]), json!({ "wait_for": wait }))],
            "policy": { "join": "all", "timeout_ms": 10 } })),
        net(
            json!({ "steps": [with(task("a", &[]), json!({ "admit": gate }))], "policy": { "join": "each" } }),
        ),
        net(json!({ "steps": [{ "name": "a", "work": { "approval": { "deadline_ms": 20 } } }],
            "policy": { "join": "all" } })),
        net(json!({ "steps": [child], "policy": { "join": "all" } })),
    ]
}

fn worlds(store: &mut impl Store) -> Vec<World> {
    let mut worlds = Vec::new();
    for (net, id) in zoo().iter().cycle().take(14).zip(1..) {
        let mut world = World { now: Millis(1_000 + id % 3 * 10), ..World::new(net) };
        let mut create = Create::new(ExecutionId(u128::from(id.unsigned_abs())), json!({}));
        if id % 4 == 0 {
            create.start = StartWhen::At(world.now.plus(20));
        }
        written(store, &[commit(world.begin(create))]);
        if let Some((run, fence)) = world.open().first().copied() {
            let failed = WorkResult::Failed(Failure::of_code("SERVICE_UNAVAILABLE", "down"));
            written(store, &[commit(world.give(&super::world::reported(run, fence, failed)))]);
        }
        worlds.push(world);
    }
    worlds
}

pub fn timers_come_due_in_order_and_page_by_page<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let worlds = worlds(&mut store);
    let expected = running(worlds.iter());
    let kinds: std::collections::BTreeSet<_> = expected
        .iter()
        .map(|due| std::mem::discriminant(&due.timer))
        .map(|kind| format!("{kind:?}"))
        .collect();
    assert_eq!(kinds.len(), 8, "every kind of timer runs: {expected:?}");
    for size in [1, 2, 3, 100] {
        assert_eq!(listed(&store, Millis(i64::MAX), size), expected, "pages of {size}");
    }
    for until in 1_000..1_100 {
        let due: Vec<DueTimer> = expected.iter().filter(|due| due.at.0 <= until).copied().collect();
        assert_eq!(listed(&store, Millis(until), 4), due, "until {until}");
    }
}

pub fn a_hold_keeps_timers_from_coming_due<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let mut worlds = worlds(&mut store);
    let hold = Input::Hold { by: "me".into(), reason: "wait".into() };
    for world in worlds.iter_mut().filter(|world| world.state.phase() != Phase::Queued) {
        written(&mut store, &[commit(world.give(&hold))]);
    }
    let held = running(worlds.iter());
    assert!(!held.is_empty(), "those that have not begun are not held");
    assert_eq!(listed(&store, Millis(i64::MAX), 3), held);
    for world in worlds.iter_mut().filter(|world| world.state.head.held) {
        written(&mut store, &[commit(world.give(&Input::Resume { by: "me".into() }))]);
    }
    let resumed = running(worlds.iter());
    assert!(resumed.len() > held.len());
    assert_eq!(listed(&store, Millis(i64::MAX), 3), resumed);
    for world in &mut worlds {
        written(&mut store, &[commit(world.give(&Input::Cancel(Cancel::default())))]);
    }
    assert_eq!(listed(&store, Millis(i64::MAX), 3), []);
}
