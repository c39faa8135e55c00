//! Memory of the engine, and the number of rows that it reads at a time.

use crate::rig::{PATIENCE, Rig, chain, net, task};
use crate::{COMPLETED, work};
use serde_json::json;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Instant;
use windlass_engine::{
    ChildCheck, ChildReading, Config, EngineAnswer, Found, Load, Lookup, Request, look_up,
};
use windlass_kernel::net::{Completion, Policy, Step};
use windlass_kernel::{Event, ExecutionId, Input, ManualNote};
use windlass_protocol::{Call, Order, Reply, Verdict};

fn load(rig: &Rig) -> Load {
    match rig.call(Request::Load) {
        EngineAnswer::Load(load) => load,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_callback_of_a_worker_that_leaves_is_dropped() {
    let rig = Rig::new();
    let (session, orders) = rig.worker(1);
    assert_eq!(orders.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(rig.send(Call::Leave(session)), Reply::Verdict(Verdict::Accepted));
    assert_eq!(orders.try_recv(), Err(TryRecvError::Disconnected), "no sender of orders is left");
}

#[test]
fn the_callback_of_a_worker_that_is_lost_is_dropped() {
    let rig = Rig::with_config(Config { lease_ttl_ms: 50, ..Config::default() }, 1);
    let (_, orders) = rig.worker(1);
    assert_eq!(orders.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

const IDLE_MAX: usize = 10;

#[test]
fn executions_whose_offers_are_queued_leave_memory_and_run_when_there_are_slots() {
    let rig = Rig::with_config(Config { idle_max: IDLE_MAX, ..Config::default() }, 0);
    let ids: Vec<ExecutionId> = (0..100).map(|n| rig.start("chain", chain(2), json!({ "n": n }))).collect();
    // An execution is queued after its start is answered.
    let end = Instant::now() + PATIENCE;
    let live = loop {
        let Load { queued, live, .. } = load(&rig);
        if queued == ids.len() {
            break live;
        }
        assert!(Instant::now() < end, "{queued} of {} executions are queued", ids.len());
        std::thread::yield_now();
    };
    assert!(live <= IDLE_MAX, "{live} executions are in memory");
    let (_, orders) = rig.worker(3);
    for _ in 0..2 * ids.len() {
        match orders.recv_timeout(PATIENCE) {
            Ok(Order::Run(work)) => assert_eq!(rig.done(&work, json!(1)), Verdict::Accepted),
            other => panic!("{other:?}"),
        }
    }
    for id in ids {
        assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    }
}

/// Ten thousand of them cost rows and nothing else: no memory, no timer, and nothing to read at a start.
#[test]
fn executions_that_wait_for_people_are_neither_in_memory_nor_loaded_at_a_start() {
    let mut rig = Rig::with_config(Config { idle_max: IDLE_MAX, ..Config::default() }, 4);
    let manual = || Step { completion: Completion::Manual { deadline_ms: None }, ..task("s", &[]) };
    let ids: Vec<ExecutionId> = (0..100)
        .map(|n| {
            let id = rig.start("manual", net(Policy::default(), vec![manual()]), json!({ "n": n }));
            assert_eq!(rig.done(&rig.work(), json!(n)), Verdict::Accepted);
            id
        })
        .collect();
    let Load { queued, in_flight, live, .. } = load(&rig);
    assert_eq!((queued, in_flight), (0, 0));
    assert!(live <= IDLE_MAX, "{live} executions are in memory");
    rig.restart();
    let end = Instant::now() + PATIENCE;
    while !load(&rig).recovered {
        assert!(Instant::now() < end, "it does not recover");
        std::thread::yield_now();
    }
    assert_eq!(load(&rig).live, 0, "nothing is loaded before a person answers");
    let (run, fence) = rig
        .events(ids[7])
        .into_iter()
        .find_map(|event| match event {
            Event::AwaitingManual { run, fence, .. } => Some((run, fence)),
            _ => None,
        })
        .expect("it waits");
    let note = Box::new(ManualNote { actor: "ann".into(), ..ManualNote::default() });
    let input = Input::Complete { run, fence, note, seen: None };
    assert_eq!(rig.call(Request::Give { execution: ids[7], input, audit: None }), EngineAnswer::Accepted);
    assert_eq!(rig.call(Request::Await(ids[7])), COMPLETED);
}

/// Longer than one page of a journal.
const STEPS: u32 = 150;

#[test]
fn the_long_journal_of_a_child_is_read_page_by_page() {
    let rig = Rig::with_slots(1);
    rig.define("child", chain(STEPS));
    let child = work(json!({ "child": { "definition": { "path": "child" }, "inputs": {} } }));
    let id = rig.start("parent", net(Policy::default(), vec![Step::new("c", child)]), json!({}));
    let mut child = 0;
    for n in 0..STEPS {
        let work = rig.work();
        child = work.unit.execution;
        rig.done(&work, json!({ "n": n }));
    }
    assert_eq!(rig.call(Request::Await(id)), COMPLETED);
    let output = rig.events(id).into_iter().find_map(|event| match event {
        Event::Done { output, .. } => Some(output),
        _ => None,
    });
    assert_eq!(output.as_deref(), Some(&json!({ "n": STEPS - 1 })));

    let first = Lookup::Result(Box::new(ChildReading::new(ExecutionId(child))));
    let found = look_up(&mut rig.reader(), &first, &ChildCheck::default()).unwrap();
    assert!(matches!(found, Found::ResultLater(_)), "one lookup read the whole journal: {found:?}");
}
