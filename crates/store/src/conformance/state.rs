//! Executions of every kind, driven at random: after every commit the rows are what the journal says (K1).

use super::timers::{listed, running};
use super::values::compare;
use super::world::{World, definition, net, reported, task, with};
use super::{ServerSite, StoreSite, commit, pages, reader, written};
use crate::check::check;
use crate::commit::{Commit, Write};
use crate::project::stored_rows;
use crate::rows::{PartRow, Rows, WHOLE};
use crate::store::{Offer, Reader, Store};
use serde_json::{Value, json};
use std::sync::Arc;
use windlass_kernel::*;

const WORLDS: u128 = 56;
const INPUTS: u64 = 40;

pub fn rows_are_what_the_journal_says_after_every_commit<P: StoreSite>(site: &P) {
    let mut store = site.open();
    let nets = zoo();
    for (net, number) in nets.iter().zip(0..) {
        let name = format!("net {number}");
        written(&mut store, &[Write::Define(Box::new(definition(&name, &name, net)))]);
    }
    let mut worlds = Vec::new();
    for (net, id) in nets.iter().cycle().zip(0..WORLDS) {
        let (mut world, created) = World::create(net, id);
        written(&mut store, &[commit(created)]);
        let mut chance = Chance(u64::try_from(id).expect("a small number"));
        for _ in 0..INPUTS {
            step(&mut store, &mut world, &mut chance);
        }
        compare(&mut reader(&store), &world);
        worlds.push(world);
    }
    assert_eq!(listed(&store, Millis(i64::MAX), 7), running(worlds.iter()));
    let offered = worlds.iter().flat_map(|world| world.open().into_iter().map(|open| (world.id(), open)));
    let mut reader = reader(&store);
    let offers = pages(7, |after: Option<&Offer>, limit| {
        reader.offers(after.map(|offer| (offer.execution, offer.run)), limit).expect("offers")
    });
    let of_runs = offers.iter().filter(|offer| offer.run != WHOLE);
    assert!(of_runs.map(|offer| (offer.execution, (offer.run, offer.fence))).eq(offered));
    let whole = |world: &&World| {
        world.net.policy().affinity == net::Affinity::OneWorker && !world.state.phase().is_ended()
    };
    let wholes =
        worlds.iter().filter(whole).map(|world| (world.id(), Fence::first(world.state.head.generation)));
    let listed = offers.iter().filter(|offer| offer.run == WHOLE).map(|offer| (offer.execution, offer.fence));
    assert!(listed.eq(wholes), "executions that one worker takes as a whole");
    let ended = worlds.iter().filter(|world| world.state.phase().is_ended()).count();
    assert!(ended > 3 && ended < worlds.len(), "{ended} of {} have ended", worlds.len());
}

/// The check of a store replays every journal: executions that run or have ended, also those that one worker takes as a
/// whole.
pub fn a_check_finds_no_problem_in_executions_of_every_kind<P: ServerSite>(site: &P) {
    let mut store = site.open();
    let (mut wholes, mut ended) = (0, 0);
    for (net, id) in zoo().iter().cycle().zip(0..WORLDS) {
        let (mut world, created) = World::create(net, id);
        written(&mut store, &[Write::Net(net.clone()), commit(created)]);
        let mut chance = Chance(u64::try_from(id).expect("a small number"));
        for _ in 0..INPUTS {
            step(&mut store, &mut world, &mut chance);
        }
        let report = check(&mut reader(&store), &mut |_| {}).expect("a store that can be read");
        assert_eq!(report.problems, Vec::new(), "after execution {id}");
        if net.policy().affinity == net::Affinity::OneWorker {
            wholes += 1;
            ended += u32::from(world.state.phase().is_ended());
        }
    }
    assert!(0 < ended && ended < wholes, "{ended} of {wholes} have ended");
}

fn step(store: &mut impl Store, world: &mut World, chance: &mut Chance) {
    world.now = world.now.plus(chance.below(30));
    let Some(input) = input(world, chance) else { return };
    let Some(made) = give(store, world, &input) else { return };
    if made.records.is_empty() {
        return;
    }
    written(store, &[commit(made.clone())]);
    let mut reader = reader(store);
    let stored = reader.load(world.id()).expect("a state").expect("it was created");
    assert_eq!(stored.state, world.state, "after {input:?}");
    let rows = reader.rows(world.id()).expect("rows").expect("it was created");
    let mut expected = stored_rows(&world.net, &world.state, &made.records);
    // Facts are of the whole journal, which `compare` looks at in the end.
    expected.facts.clone_from(&rows.facts);
    assert_eq!(sorted(rows), sorted(expected), "after {input:?}");
}

/// Loads what the decision needs from the store. Inputs that do not fit are refused by the kernel: no commit.
fn give(store: &impl Store, world: &mut World, input: &Input) -> Option<Commit> {
    let mut values = Values::default();
    loop {
        match world.try_give(input, &values) {
            Ok(commit) => return Some(commit),
            Err(Rejected::Needs(needs)) => {
                let found = reader(store).values(world.id(), &needs).expect("values");
                let before = format!("{values:?}");
                values.outputs.extend(found.outputs);
                values.items.extend(found.items);
                values.results.extend(found.results);
                values.answers.extend(found.answers);
                assert_ne!(format!("{values:?}"), before, "{needs:?} are not in the store");
            }
            Err(_) => return None,
        }
    }
}

fn sorted(mut rows: Rows) -> Rows {
    rows.runs.sort_by_key(|row| row.run);
    rows.parts.sort_by_key(|row: &PartRow| (row.part, row.key.clone()));
    rows
}

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() {
            return None;
        }
        let index = usize::try_from(self.below(of.len() as u64)).expect("a short list");
        Some(of[index].clone())
    }
}

fn input(world: &World, chance: &mut Chance) -> Option<Input> {
    if matches!(world.state.phase(), Phase::Queued) {
        return Some(Input::Assign { worker: "w".into() });
    }
    let me = || "me".to_owned();
    match chance.below(20) {
        0..=8 => {
            let (run, fence) = chance.one(&world.open())?;
            Some(reported(run, fence, result(chance)))
        }
        9..=12 => chance.one(&world.state.timers()).map(|(timer, _)| Input::TimerDue(timer)),
        13 | 14 => waiting(world, chance),
        15 => {
            let patch = Patch::from([("open".to_owned(), Arc::new(json!(chance.below(2) == 0)))]);
            Some(Input::Patch { patch, by: me() })
        }
        16 => Some(Input::Hold { by: me(), reason: "a look".into() }),
        17 => Some(Input::Resume { by: me() }),
        18 if chance.below(8) == 0 => Some(Input::Cancel(Cancel { by: me(), ..Cancel::default() })),
        18 => Some(Input::Begin),
        _ => lost(world, chance).or(Some(Input::Continue)),
    }
}

fn result(chance: &mut Chance) -> WorkResult {
    let value = Arc::new(json!({ "n": chance.below(3), "share": 1.0 / (1 + chance.below(9)) as f64 }));
    match chance.below(10) {
        0 => WorkResult::Failed(Failure::of_code("SERVICE_UNAVAILABLE", "down")),
        1 => WorkResult::Failed(Failure::of_code("VALIDATION_ERROR", "wrong")),
        2 => WorkResult::Later { delay_ms: chance.below(50), cursor: Some(value) },
        _ => WorkResult::Done { output: value },
    }
}

fn waiting(world: &World, chance: &mut Chance) -> Option<Input> {
    let all: Vec<(RunId, RunState)> =
        world.state.runs.iter().map(|(run, step_run)| (*run, step_run.state.clone())).collect();
    let (run, state) = chance.one(&all)?;
    match state {
        RunState::Manual { fence, .. } => {
            let outcome = if chance.below(4) == 0 { ManualOutcome::Failed } else { ManualOutcome::Succeeded };
            let note = ManualNote { outcome, actor: "me".into(), ..ManualNote::default() };
            Some(Input::Complete { run, fence, note: Box::new(note), seen: None })
        }
        RunState::Child { fence, child, .. } => {
            let (outcome, output) = (Outcome::Completed, Arc::new(json!({ "of": "child" })));
            let result = ChildResult { outcome, output, failure: None };
            Some(Input::ChildEnded { run, fence, child, result })
        }
        RunState::Waiting { .. } => Some(Input::RouteReady { run }),
        _ => None,
    }
}

fn lost(world: &World, chance: &mut Chance) -> Option<Input> {
    let (run, fence) = chance.one(&world.open())?;
    let unit = match world.net.policy().affinity {
        net::Affinity::AnyWorker => LeaseUnit::Run { run, fence },
        net::Affinity::OneWorker => LeaseUnit::Execution { generation: world.state.head.generation },
    };
    let loss = Loss::of(chance.below(2) == 0);
    Some(Input::LeaseLost(LeaseLost { unit, loss, cursor: Some(Arc::new(json!({ "at": 1 }))) }))
}

fn zoo() -> Vec<Arc<Net>> {
    let retry = json!({ "attempts_max": 3, "initial_ms": 10, "jitter": 0.1 });
    let gate = json!({ "rules": [{ "when": "ctx.open", "allow": true }], "deadline_ms": 200 });
    let guarded = |to: u32, when: &str| json!({ "to": to, "guard": when, "args": { "from": to } });
    let hook = json!({ "work": { "task": { "spec": {} } }, "retry": {} });
    let items = json!({ "for_each": { "items": [1, 2, 3, 4, 5] } });
    let own = json!({ "kind": items, "iterator": "item", "cap": 2, "body": "own" });
    let region = json!({ "kind": { "count": { "times": 3 } }, "iterator": "i", "cap": 2, "body": "region" });
    let choose = json!({ "arcs": [guarded(1, "steps.a.n > 0"), guarded(2, "steps.a.n == 0")] });
    let pure =
        json!({ "pure": { "output": { "x": 1 }, "patch": [{ "key": "seen", "value": "{{ steps.a.n }}" }] } });
    let specs: Vec<(Value, Value)> = vec![
        (
            json!([
                with(task("a", &[]), json!({ "router": choose, "retry": retry })),
                with(task("b", &[0]), json!({ "admit": gate })),
                { "name": "c", "work": { "delay": { "ms": 25 } }, "router": { "arcs": [{ "to": 0 }] } },
            ]),
            json!({ "join": "each", "limits": { "firings_per_decide": 3 } }),
        ),
        (
            json!([
                with(task("a", &[1, 2]), json!({ "compensation": hook, "side_effecting": true })),
                with(task("b", &[3]), json!({ "completion": { "manual": { "deadline_ms": 300 } } })),
                with(
                    task("c", &[3]),
                    json!({ "retry": retry, "compensation": hook, "side_effecting": true })
                ),
                with(task("d", &[]), json!({ "reads": [0, 1, 2] })),
            ]),
            json!({ "join": "all", "failure": "fail_fast", "compensate": true, "max_parallel": 1, "timeout_ms": 900 }),
        ),
        (
            json!([
                with(task("loop", &[1]), json!({ "repeat": own, "retry": retry })),
                { "name": "after", "work": { "pure": {} } },
            ]),
            json!({ "join": "all" }),
        ),
        (
            json!([
                { "name": "loop", "work": { "pure": {} }, "repeat": region,
                  "router": { "arcs": [{ "to": 1 }, { "to": 3 }] } },
                with(task("in", &[2]), json!({ "region": 0 })),
                with(task("deep", &[]), json!({ "region": 0, "reads": [1] })),
                task("out", &[]),
            ]),
            json!({ "join": "any_live", "failure": "continue", "end": "partial" }),
        ),
        (
            json!([
                { "name": "kid", "work": { "child": { "definition": "d", "inputs": {} } }, "timeout_ms": 400,
                  "retry": retry, "router": { "arcs": [{ "to": 1 }] } },
                { "name": "ok", "work": { "approval": { "deadline_ms": 500 } }, "router": { "arcs": [{ "to": 2 }] } },
                task("end", &[]),
            ]),
            json!({ "join": "any_live", "failure": "collect" }),
        ),
        (
            json!([
                with(task("a", &[1, 2]), json!({ "wait_for": { "target": "x", "timeout_ms": 100 } })),
                with(task("b", &[]), json!({ "condition": "steps.a.n > 0" })),
                task("c", &[]),
            ]),
            json!({ "join": "all", "recovery": "restart_execution", "affinity": "one_worker", "max_parallel": 10 }),
        ),
        (
            json!([
                task("a", &[1]),
                { "name": "b", "work": pure, "router": { "arcs": [{ "to": 2 }] } },
                task("c", &[0]),
                task("last", &[]),
            ]),
            json!({ "join": "each", "finish": { "step": 3 }, "failure": "fail_fast" }),
        ),
    ];
    specs.into_iter().map(|(steps, policy)| net(json!({ "steps": steps, "policy": policy }))).collect()
}
