//! Values that decisions need: the store must find the same values as a fold of the whole journal.

use super::world::{World, net, reported, task, with};
use super::{StoreSite, commit, everything, reader, written};
use crate::commit::{Applied, Commit};
use crate::store::{Query, Reader, Store};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use windlass_kernel::*;

/// Asks for every value that could be, and compares with the journal.
pub(super) fn compare(reader: &mut impl Reader, world: &World) {
    let rows = reader.journal(world.id(), 0, usize::MAX).expect("a journal");
    let journal: Vec<Record> = rows.into_iter().flat_map(|row| row.records).collect();
    let mut needs = Vec::new();
    for record in &journal {
        needs.extend(record.answer().map(|((run, fence), _)| Need::Answer(run, fence)));
        match &record.event {
            Event::Offered { run, fence, .. }
            | Event::ChildStarted { run, fence, .. }
            | Event::AwaitingManual { run, fence, .. } => needs.push(Need::Answer(*run, *fence)),
            Event::Done { run, .. } if world.net.reads_outputs() => needs.push(Need::Output(*run)),
            Event::LoopStarted { run, .. } => needs.extend([Need::Items(*run), Need::Results(*run)]),
            _ => {}
        }
    }
    needs.extend([Need::Output(RunId(1 << 40)), Need::Items(RunId(0)), Need::Artifact("a".into())]);
    needs.push(Need::Firings);
    needs.extend([Need::Answer(RunId(3), Fence(0)), Need::Answer(RunId(0), Fence(u64::MAX >> 1))]);
    let mut expected = Values::default();
    expected.load(&journal, &needs);
    let found = reader.values(world.id(), &needs).expect("values");
    assert_eq!(found.outputs, expected.outputs);
    assert_eq!(found.items, expected.items);
    assert_eq!(found.results, expected.results);
    assert_eq!(found.firings, expected.firings);
    assert_eq!(found.answers, expected.answers);
    assert_eq!(found.artifacts, BTreeMap::from([("a".to_owned(), None)]));
}

pub fn outputs_and_items_are_loaded_by_need<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let items = json!({ "for_each": { "items": [{ "n": 0.1 }, { "n": 2 }] } });
    let repeat = json!({ "kind": items, "iterator": "item", "cap": 1, "body": "own" });
    let looped = with(task("loop", &[1]), json!({ "repeat": repeat }));
    let empty =
        json!({ "kind": { "for_each": { "items": [] } }, "iterator": "item", "cap": 1, "body": "own" });
    let nothing = with(task("nothing", &[2]), json!({ "repeat": empty }));
    let reads = with(task("reads", &[]), json!({ "reads": [0, 1] }));
    let net = net(json!({ "steps": [looped, nothing, reads], "policy": { "join": "all" } }));
    let (mut world, created) = World::create(&net, 1);
    let loop_run = created.records.iter().find_map(|record| match &record.event {
        Event::LoopStarted { run, .. } => Some(*run),
        _ => None,
    });
    written(&mut store, &[commit(created)]);
    while !world.open().is_empty() {
        written(&mut store, &[commit(world.done(json!({ "float": 0.3, "text": "ü" })))]);
        compare(&mut reader(&store), &world);
    }
    let run = loop_run.expect("a loop began");
    let values = reader(&store).values(world.id(), &[Need::Items(run)]).expect("values");
    assert_eq!(values.items[&run], Arc::new(json!([{ "n": 0.1 }, { "n": 2 }])));
    let nowhere = reader(&store).values(ExecutionId(9), &[Need::Items(run)]).expect("values");
    assert!(nowhere.items.is_empty());
}

pub fn imported_outputs_are_loaded_by_need<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let steps = [task("a", &[1]), task("b", &[2]), with(task("c", &[]), json!({ "reads": [0, 1] }))];
    let net = net(json!({ "steps": steps, "policy": { "join": "all" } }));
    let mut world = World::new(&net);
    let mut create = Create::new(ExecutionId(1), json!({}));
    let emitted = Some(vec![Emission { arc: 0, token: TokenValue::Live(None) }]);
    create.imports = vec![Import { step: StepId(0), output: Arc::new(json!({ "old": 1 })), emitted }];
    written(&mut store, &[commit(world.begin(create))]);
    written(&mut store, &[commit(world.done(json!({ "new": 2 })))]);
    let (old, new) = (RunId::first(1), RunId::first(1).next());
    let values = reader(&store).values(world.id(), &[Need::Output(new), Need::Output(old)]).expect("values");
    assert_eq!(values.outputs[&old], Arc::new(json!({ "old": 1 })));
    assert_eq!(values.outputs[&new], Arc::new(json!({ "new": 2 })));
}

pub fn a_forked_journal_is_an_execution_of_its_own<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let steps = [task("a", &[1, 2]), task("b", &[]), with(task("c", &[]), json!({ "reads": [0] }))];
    let split = json!({ "mode": "inclusive", "arcs": [{ "to": 1 }, { "to": 2 }] });
    let steps = [with(steps[0].clone(), json!({ "router": split })), steps[1].clone(), steps[2].clone()];
    let (mut old, created) = World::create(&net(json!({ "steps": steps, "policy": { "join": "each" } })), 1);
    written(&mut store, &[commit(created), commit(old.done(json!({ "kept": 1 })))]);
    let (run, fence) = old.open()[0];
    let failed = reported(run, fence, WorkResult::Failed(Failure::of_code("VALIDATION_ERROR", "no")));
    written(&mut store, &[commit(old.give(&failed))]);
    written(&mut store, &[commit(old.done(json!(2)))]);
    assert_eq!(old.state.phase(), Phase::Ended(Outcome::Failed));
    let rows = reader(&store).journal(old.id(), 0, usize::MAX).expect("a journal");
    let journal: Vec<Record> = rows.into_iter().flat_map(|row| row.records).collect();
    let before = everything(&mut reader(&store), old.id());

    let (mut new, forked) = old.fork(&journal, ExecutionId(2));
    written(&mut store, &[commit(forked)]);
    let stored = reader(&store).load(new.id()).expect("a state").expect("it was created");
    assert_eq!(stored.state, new.state);
    assert_eq!(new.open().len(), 1, "the step that failed is offered again");
    compare(&mut reader(&store), &new);
    while !new.open().is_empty() {
        written(&mut store, &[commit(new.done(json!({ "new": 1 })))]);
        compare(&mut reader(&store), &new);
    }
    assert_eq!(new.state.phase(), Phase::Ended(Outcome::Completed));
    let (_, again) = old.fork(&journal, ExecutionId(2));
    let refused = store.write(&[commit(again)]).expect("a healthy store");
    assert_eq!(refused, [Applied::Duplicate], "its id is taken");
    let listed = reader(&store).list(&Query { limit: 9, ..Query::default() }).expect("a list");
    let parents: Vec<_> = listed.iter().map(|listed| (listed.execution, listed.origin.parent)).collect();
    assert_eq!(parents, [(new.id(), Some(old.id())), (old.id(), None)]);
    let after = everything(&mut reader(&store), old.id());
    assert_eq!(after, before, "the old one is as it was");
}

pub fn answers_are_loaded_as_the_journal_has_them<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let retry = json!({ "attempts_max": 9, "initial_ms": 1 });
    let steps: Vec<Value> = vec![
        with(task("a", &[1]), json!({ "retry": retry })),
        with(task("b", &[2]), json!({ "completion": { "manual": {} } })),
        json!({ "name": "c", "work": { "child": { "definition": "d", "inputs": {} } }, "router": { "arcs": [{ "to": 3 }] } }),
        task("d", &[]),
    ];
    let net = net(json!({ "steps": steps, "policy": { "join": "all" } }));
    let (mut world, created) = World::create(&net, 1);
    let mut give = |world: &mut World, made: Commit| {
        written(&mut store, &[commit(made)]);
        compare(&mut reader(&store), world);
    };
    give(&mut world, created);
    let report = |world: &World, result| {
        let (run, fence) = world.open()[0];
        reported(run, fence, result)
    };
    let down = WorkResult::Failed(Failure::of_code("SERVICE_UNAVAILABLE", "down"));
    let later = WorkResult::Later { delay_ms: 5, cursor: Some(Arc::new(json!({ "at": 2 }))) };
    for result in [down.clone(), later, down] {
        let made = world.give(&report(&world.clone(), result));
        give(&mut world, made);
        world.now = world.now.plus(60_000);
        let (timer, _) = world.state.timers()[0];
        let made = world.give(&Input::TimerDue(timer));
        give(&mut world, made);
    }
    let made = world.done(json!(1));
    give(&mut world, made);
    let made = world.done(json!(2));
    give(&mut world, made);
    let (run, fence) = waiting(&world);
    let note = ManualNote { outcome: ManualOutcome::Succeeded, actor: "me".into(), ..ManualNote::default() };
    let made = world.give(&Input::Complete { run, fence, note: Box::new(note), seen: None });
    give(&mut world, made);
    let (run, fence) = waiting(&world);
    let Some(RunState::Child { child, .. }) = world.state.run(run).map(|run| run.state.clone()) else {
        panic!("a child runs");
    };
    let result = ChildResult { outcome: Outcome::Completed, output: Arc::new(json!(3)), failure: None };
    let made = world.give(&Input::ChildEnded { run, fence, child, result });
    give(&mut world, made);
    let made = world.give(&report(&world.clone(), WorkResult::Failed(Failure::of_code("X", "no"))));
    give(&mut world, made);
    let by_child = reader(&store).values(world.id(), &[Need::Answer(run, fence)]).expect("values");
    assert_eq!(by_child.answers[&(run, fence)], Some(Answer::Child));
}

/// The one step-run, which waits for a person or a child.
fn waiting(world: &World) -> (RunId, Fence) {
    let found = world.state.runs.iter().find_map(|(run, step_run)| match step_run.state {
        RunState::Manual { fence, .. } | RunState::Child { fence, .. } => Some((*run, fence)),
        _ => None,
    });
    found.expect("one waits")
}

pub fn numbers_come_back_as_they_were<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let steps = [task("a", &[1]), with(task("b", &[]), json!({ "reads": [0] }))];
    let (mut world, created) = World::create(&net(json!({ "steps": steps, "policy": { "join": "all" } })), 1);
    let numbers = json!([0.24324074771567494, -3.597847523160892e-242, 1.0, u64::MAX, i64::MIN, 1e300, -0.0]);
    let run = world.open()[0].0;
    let patch = Patch::from([("numbers".to_owned(), Arc::new(numbers.clone()))]);
    written(&mut store, &[commit(created), commit(world.give(&Input::Patch { patch, by: "me".into() }))]);
    written(&mut store, &[commit(world.done(numbers.clone()))]);
    let values = reader(&store).values(world.id(), &[Need::Output(run)]).expect("values");
    // Compared as text: two numbers that are equal may still be written differently.
    assert_eq!(values.outputs[&run].to_string(), numbers.to_string());
    let stored = reader(&store).load(world.id()).expect("a state").expect("it is there");
    assert_eq!(stored.state.head.ctx["numbers"].to_string(), numbers.to_string());
    let journal = reader(&store).journal(world.id(), 0, 10).expect("a journal");
    let state = replay(&world.net, journal.iter().flat_map(|row| &row.records)).expect("a sound journal");
    assert_eq!(state.head.ctx["numbers"].to_string(), numbers.to_string());
}

pub fn an_artifact_is_loaded_for_its_own_tenant_alone<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let value = json!({ "text": "käse", "n": 0.1 });
    let artifact = windlass_artifact::set_aside(&value, windlass_artifact::Source::Own, 1);
    let (_, artifact) = artifact.expect("it is longer than a byte");
    for (id, tenant) in [(1, "a"), (2, "b"), (3, "a")] {
        let mut created =
            World::create(&net(json!({ "steps": [task("s", &[])], "policy": { "join": "all" } })), id).1;
        if let Some(creation) = &mut created.creation {
            Arc::make_mut(&mut creation.origin).tenant = crate::Tenant::new(tenant);
        }
        if id == 1 {
            created.artifacts.push(artifact.clone());
        }
        written(&mut store, &[commit(created)]);
    }
    let load = |id| {
        let need = Need::Artifact(artifact.key.clone());
        reader(&store).values(ExecutionId(id), &[need]).expect("values").artifacts[&artifact.key].clone()
    };
    let found = Some(Arc::new(value));
    assert_eq!(
        (load(1), load(3)),
        (found.clone(), found),
        "of the tenant, for every execution that refers to it"
    );
    assert_eq!((load(2), load(4)), (None, None));
}
