//! What the engine keeps in memory, and what it reads at a time.

use crate::rig::{PATIENCE, Rig, chain, net};
use crate::{COMPLETED, work};
use serde_json::json;
use std::sync::mpsc::{RecvTimeoutError, TryRecvError};
use std::time::Instant;
use windlass_engine::{Answer, ChildCheck, ChildReading, Config, Found, Load, Lookup, Request, look_up};
use windlass_kernel::net::{Policy, Step};
use windlass_kernel::{Event, ExecutionId};
use windlass_protocol::{Call, Order, Reply, Verdict};

fn load(rig: &Rig) -> Load {
    match rig.call(Request::Load) {
        Answer::Load(load) => load,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_callback_of_a_worker_that_leaves_is_dropped() {
    let rig = Rig::new();
    let (session, orders) = rig.worker(1);
    assert_eq!(orders.try_recv(), Err(TryRecvError::Empty));
    assert_eq!(rig.send(Call::Leave(session)), Reply::Verdict(Verdict::Accepted));
    assert_eq!(orders.try_recv(), Err(TryRecvError::Disconnected), "nobody can send an order any more");
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
